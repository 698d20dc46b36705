//! What one visit taught.

use crate::{Outcome, PageGroups};

/// One visit's result, without its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observation {
    /// What was found. A page that was not seen teaches nothing about changes.
    pub outcome: Outcome,
    /// Last-Modified of the answer; believed only between the previous visit and now.
    pub last_modified_s: Option<i64>,
    /// The page's groups; policies without shared clocks ignore them.
    pub groups: PageGroups,
    /// The page's importance in percent of the mean; policies that do not weigh ignore it.
    pub importance_percent: u32,
}

impl Observation {
    /// A visit that saw other content than the one before.
    pub fn changed() -> Self {
        Self {
            outcome: Outcome::Changed,
            last_modified_s: None,
            groups: PageGroups::default(),
            importance_percent: 100,
        }
    }

    /// A visit that saw the same content, or 304.
    pub fn same() -> Self {
        Self { outcome: Outcome::Same, ..Self::changed() }
    }

    /// A visit without a usable answer.
    pub fn failed() -> Self {
        Self { outcome: Outcome::Failed, ..Self::changed() }
    }

    /// The same observation with the answer's Last-Modified.
    pub fn with_last_modified(self, last_modified_s: Option<i64>) -> Self {
        Self { last_modified_s, ..self }
    }

    /// The same observation of a page that important.
    pub fn with_importance(self, importance_percent: u32) -> Self {
        Self { importance_percent, ..self }
    }

    /// The same observation of a page of these groups.
    pub fn at(self, groups: PageGroups) -> Self {
        Self { groups, ..self }
    }
}
