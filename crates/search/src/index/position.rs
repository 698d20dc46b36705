//! How far an index is.

/// The number of this format. An index of another is built anew.
pub(super) const FORMAT: i64 = 3;

/// How far the index has followed the archive.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Position {
    /// The last visit of the log that was taken in.
    pub(crate) visit: i64,
    /// While all pages are gone through: the last one that was taken in, 0 at the beginning.
    pub(crate) walk: Option<i64>,
    /// Pages taken in so far by that.
    pub(crate) walked: u64,
    /// How many prunings and removals were taken into account.
    pub(crate) prunes: usize,
    pub(crate) removals: usize,
}

impl Position {
    /// Before anything was taken in.
    pub(crate) fn beginning(visit: i64) -> Self {
        Self { visit, walk: Some(0), ..Self::default() }
    }
}
