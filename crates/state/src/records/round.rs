//! A pass over a site.

use serde::{Deserialize, Serialize};

use crate::{Outcome, RoundId, SiteId, Skips, VisitCommit};

/// One pass over a site; a row of the collection log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Round {
    /// Its number.
    pub id: RoundId,
    /// The site.
    pub site: SiteId,
    /// When it began.
    pub started_s: i64,
    /// When it was finished, if it is.
    pub ended_s: Option<i64>,
    /// What it found.
    pub counts: RoundCounts,
}

/// What a round found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RoundCounts {
    /// Pages that became known.
    pub new_pages: u64,
    /// Visits with new content.
    pub changed: u64,
    /// Those among them that brought the first version of a page.
    pub first: u64,
    /// Visits with the same content sent again.
    pub same: u64,
    /// Visits answered by 304.
    pub not_modified: u64,
    /// Visits to pages that are gone.
    pub gone: u64,
    /// Visits that were not allowed.
    pub refused: u64,
    /// Visits without a usable answer.
    pub failed: u64,
    /// Bytes of bodies received.
    pub received_bytes: u64,
    /// Bytes added to packs.
    pub stored_bytes: u64,
    /// Links not followed because they look like a trap.
    pub trapped: u64,
    /// Pages that were not worth a visit in a round that chooses.
    pub skipped: u64,
}

impl RoundCounts {
    /// All visits.
    pub fn visits(&self) -> u64 {
        self.changed + self.same + self.not_modified + self.gone + self.refused + self.failed
    }

    /// Visits with other content than the page's last version.
    pub fn changed_again(&self) -> u64 {
        self.changed.saturating_sub(self.first)
    }

    /// Counts one visit.
    pub fn count(&mut self, visit: &VisitCommit) {
        self.received_bytes += visit.received_bytes;
        self.stored_bytes += visit.stored_bytes;
        self.trapped += visit.trapped;
        self.first += u64::from(visit.is_first && visit.outcome == Outcome::Changed);
        *match visit.outcome {
            Outcome::Changed => &mut self.changed,
            Outcome::Same => &mut self.same,
            Outcome::NotModified => &mut self.not_modified,
            Outcome::Gone => &mut self.gone,
            Outcome::Refused => &mut self.refused,
            Outcome::Failed => &mut self.failed,
        } += 1;
    }

    /// Adds another round's counts.
    pub fn add(&mut self, other: &Self) {
        self.new_pages += other.new_pages;
        self.changed += other.changed;
        self.first += other.first;
        self.same += other.same;
        self.not_modified += other.not_modified;
        self.gone += other.gone;
        self.refused += other.refused;
        self.failed += other.failed;
        self.received_bytes += other.received_bytes;
        self.stored_bytes += other.stored_bytes;
        self.trapped += other.trapped;
        self.skipped += other.skipped;
    }
}

/// The end of a round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundEnd {
    /// The round.
    pub round: RoundId,
    /// The site.
    pub site: SiteId,
    /// When it ended, in seconds since the epoch.
    pub at_s: i64,
    /// The pages that it left out, if it chose.
    pub skips: Option<Skips>,
}
