//! Pages, visits, versions and rounds as rows of tables, and as JSON for programs.

use std::collections::BTreeSet;

use nenrin_lang::{Lang, Reason, Table, readable_bytes};
use nenrin_state::{
    Outcome, PageRecord, Round, RoundCounts, Site, SiteId, State, StateError, VersionRow, VisitRow,
};
use nenrin_urls::CanonicalUrl;
use serde_json::{Value, json};

use super::DueReason;
use crate::{changes::changed_text, digits14, readable_date, rfc3339};

/// Column heads of a list of visits.
pub const VISIT_HEADER: [&str; 7] =
    ["visited (UTC)", "outcome", "status", "time", "received", "page", "why"];

/// Column heads of a list of pages.
pub const PAGE_HEADER: [&str; 12] = [
    "page",
    "visits",
    "changes",
    "significant",
    "last visit (UTC)",
    "outcome",
    "size",
    "importance",
    "changes/day",
    "sure",
    "due (UTC)",
    "why",
];

/// Column heads of what a round found.
pub const ROUND_HEADER: [&str; 12] = [
    "visits",
    "new",
    "changed",
    "same",
    "not modified",
    "missing",
    "refused",
    "failed",
    "received",
    "stored",
    "traps",
    "skipped",
];

/// What a round found, in the order of [`ROUND_HEADER`].
pub fn round_cells(counts: &RoundCounts) -> [String; 12] {
    [
        counts.visits().to_string(),
        counts.first.to_string(),
        counts.changed_again().to_string(),
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

/// The name of a site, or its number if it is not among these.
pub(super) fn name_of(sites: &[Site], id: SiteId) -> String {
    let site = sites.iter().find(|site| site.id == id);
    site.map_or_else(|| id.0.to_string(), |site| site.name.clone())
}

/// A round, for programs.
pub fn round_json(round: &Round, sites: &[Site]) -> Value {
    json!({
        "round": round.id, "site": round.site, "name": name_of(sites, round.site),
        "started": rfc3339(round.started_s), "ended": round.ended_s.map(rfc3339),
        "visits": round.counts.visits(), "counts": round.counts,
    })
}

/// Rounds, one a row.
pub fn rounds_table(rounds: &[Round], sites: &[Site]) -> Table {
    let header = ["round", "site", "began (UTC)", "took"].into_iter().chain(ROUND_HEADER);
    let mut table = Table::new(&header.collect::<Vec<_>>());
    for round in rounds {
        let mut row = vec![
            round.id.to_string(),
            name_of(sites, round.site),
            readable_date(round.started_s),
            round.ended_s.map_or("running".into(), |end| format!("{} s", end - round.started_s)),
        ];
        row.extend(round_cells(&round.counts));
        table.row(row);
    }
    table
}

/// A visit, for programs.
pub fn visit_json(visit: &VisitRow) -> Value {
    json!({
        "at": rfc3339(visit.at_s), "url": visit.url, "site": visit.site,
        "outcome": visit.outcome, "status": visit.status,
        "detail": visit.reason.as_ref().map(Reason::to_string), "reason": visit.reason,
        "elapsed_ms": visit.elapsed_ms, "received_bytes": visit.received_bytes,
    })
}

/// The visits among these that found the first version of their page, by their numbers.
pub fn first_versions(state: &dyn State, visits: &[VisitRow]) -> Result<BTreeSet<i64>, StateError> {
    let mut first = BTreeSet::new();
    for visit in visits.iter().filter(|visit| visit.outcome == Outcome::Changed) {
        let before = state.version_as_of(&visit.url.key(), visit.at_s - 1)?;
        if before.is_none_or(|(_, row)| row.at_s >= visit.at_s) {
            first.insert(visit.id);
        }
    }
    Ok(first)
}

/// Visits, in the order of [`VISIT_HEADER`]. A first version is new, not changed, and a page that is not
/// there is missing or gone by what its server says.
pub fn visit_rows(state: &dyn State, visits: &[VisitRow]) -> Result<Vec<Vec<String>>, StateError> {
    let first = first_versions(state, visits)?;
    Ok(visits.iter().map(|visit| visit_cells(visit, first.contains(&visit.id))).collect())
}

fn visit_cells(visit: &VisitRow, is_first: bool) -> Vec<String> {
    let outcome = match (visit.outcome, visit.status) {
        (Outcome::Changed, _) if is_first => "new".to_owned(),
        (Outcome::Gone, 404) => "missing".to_owned(),
        (outcome, _) => outcome.to_string(),
    };
    vec![
        readable_date(visit.at_s),
        outcome,
        if visit.status == 0 { "–".to_owned() } else { visit.status.to_string() },
        format!("{} ms", visit.elapsed_ms),
        readable_bytes(visit.received_bytes),
        visit.url.to_string(),
        visit.reason.as_ref().map(Reason::to_string).unwrap_or_default(),
    ]
}

/// A version, for programs.
pub fn version_json(url: &CanonicalUrl, row: &VersionRow) -> Value {
    json!({
        "url": url, "at": rfc3339(row.at_s), "timestamp": digits14(row.at_s),
        "version": row.version, "status": row.status, "mime": row.mime, "bytes": row.bytes,
        "changed_permille": row.changed_permille, "significant": row.is_significant(),
    })
}

/// Versions, one a row.
pub fn versions_table(versions: &[(CanonicalUrl, VersionRow)]) -> Table {
    let header = ["received (UTC)", "version", "status", "type", "size", "changed", "page"];
    let mut table = Table::new(&header);
    for (url, row) in versions {
        table.row(vec![
            readable_date(row.at_s),
            row.version.to_string(),
            row.status.to_string(),
            row.mime.clone(),
            readable_bytes(row.bytes),
            changed_text(row.changed_permille),
            url.to_string(),
        ]);
    }
    table
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
            match page.outcome {
                Some(Outcome::Changed) if page.visits == 1 => "new".to_owned(),
                Some(Outcome::Gone) if page.changes == 0 => "missing".to_owned(),
                outcome => outcome.map_or(String::new(), |outcome| outcome.to_string()),
            },
            readable_bytes(page.bytes),
            page.importance().map_or(String::new(), |importance| format!("{importance:.2}")),
            self.rate_per_day.map_or(String::new(), |rate| format!("{rate:.3}")),
            self.confidence.map_or(String::new(), |sure| format!("{:.0}%", sure * 100.0)),
            page.due_s.map_or(String::new(), readable_date),
            self.text(Lang::En),
        ]
    }
}
