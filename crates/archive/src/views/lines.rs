//! Pages and rounds as lines of lists.

use nenrin_lang::{Lang, readable_bytes};
use nenrin_state::{PageRecord, RoundCounts};
use serde_json::{Value, json};

use super::DueReason;
use crate::{readable_date, rfc3339};

/// Column heads of a list of pages.
pub const PAGE_HEADER: [&str; 12] = [
    "page",
    "visits",
    "changes",
    "significant",
    "last visit (UTC)",
    "outcome",
    "bytes",
    "importance",
    "per day",
    "sure",
    "due (UTC)",
    "why",
];

/// Column heads of what a round found.
pub const ROUND_HEADER: [&str; 11] = [
    "visits",
    "changed",
    "same",
    "not modified",
    "gone",
    "refused",
    "failed",
    "received",
    "stored",
    "traps",
    "skipped",
];

/// What a round found, in the order of [`ROUND_HEADER`].
pub fn round_cells(counts: &RoundCounts) -> [String; 11] {
    [
        counts.visits().to_string(),
        counts.changed.to_string(),
        counts.same.to_string(),
        counts.not_modified.to_string(),
        counts.gone.to_string(),
        counts.refused.to_string(),
        counts.failed.to_string(),
        readable_bytes(counts.received_bytes),
        readable_bytes(counts.stored_bytes),
        counts.trapped.to_string(),
        counts.skipped.to_string(),
    ]
}

impl DueReason {
    /// The page, for programs.
    pub fn page_json(&self, page: &PageRecord) -> Value {
        json!({
            "url": page.url, "site": page.site, "discovered": rfc3339(page.discovered_s),
            "visits": page.visits, "changes": page.changes, "significant": page.significant,
            "visited": page.visited_s.map(rfc3339), "outcome": page.outcome,
            "failures": page.failures, "bytes": page.bytes, "due": page.due_s.map(rfc3339),
            "why": self.text(Lang::En), "hint": self.hint, "rate_per_day": self.rate_per_day,
            "confidence": self.confidence, "missed": self.missed, "etag": page.validators.etag,
            "importance": page.importance(), "last_modified": page.validators.last_modified,
        })
    }

    /// The page, in the order of [`PAGE_HEADER`].
    pub fn page_cells(&self, page: &PageRecord) -> Vec<String> {
        vec![
            page.url.to_string(),
            page.visits.to_string(),
            self.changes(page.changes),
            page.significant.to_string(),
            page.visited_s.map_or("never".into(), readable_date),
            page.outcome.map_or(String::new(), |outcome| outcome.to_string()),
            readable_bytes(page.bytes),
            page.importance().map_or(String::new(), |importance| format!("{importance:.2}")),
            self.rate_per_day.map_or(String::new(), |rate| format!("{rate:.3}")),
            self.confidence.map_or(String::new(), |sure| format!("{:.0}%", sure * 100.0)),
            page.due_s.map_or(String::new(), readable_date),
            self.text(Lang::En),
        ]
    }
}
