//! What an earlier export has.

use nenrin_state::VersionId;

/// What an export has already.
#[derive(Debug, Clone, Default)]
pub(super) struct Since {
    /// Ranges of version numbers, both ends included, in order.
    pub(super) versions: Vec<(u64, u64)>,
    /// Visits of the log behind this one and up to that one are new.
    pub(super) visits: (i64, i64),
}

impl Since {
    pub(super) fn has_version(&self, version: VersionId) -> bool {
        let place = self.versions.partition_point(|(_, last)| *last < version.0);
        self.versions.get(place).is_some_and(|(first, _)| *first <= version.0)
    }

    pub(super) fn has_visit(&self, visit: i64) -> bool {
        visit <= self.visits.0 || visit > self.visits.1
    }
}
