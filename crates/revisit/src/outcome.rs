//! What a visit found.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a visit found. Only the first three teach the revisit schedule; only `Changed` makes a
/// version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// New content, or the first.
    Changed,
    /// The same content was sent again.
    Same,
    /// The server said that nothing changed (304).
    NotModified,
    /// The server says that there is no such page (404, 410), or shows what it shows for pages that
    /// do not exist.
    Gone,
    /// Not got: robots.txt, scope or the address guard forbade it, or a guard's challenge came
    /// instead of the page.
    Refused,
    /// No usable answer.
    Failed,
}

impl Outcome {
    /// Every outcome, in the order of their stored numbers.
    pub const ALL: [Self; 6] =
        [Self::Changed, Self::Same, Self::NotModified, Self::Gone, Self::Refused, Self::Failed];

    /// Whether the page was seen alive.
    pub fn is_seen(self) -> bool {
        matches!(self, Self::Changed | Self::Same | Self::NotModified)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Changed => "changed",
            Self::Same => "same",
            Self::NotModified => "not-modified",
            Self::Gone => "gone",
            Self::Refused => "refused",
            Self::Failed => "failed",
        })
    }
}
