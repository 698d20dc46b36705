//! Answers of the API.

use nenrin_archive::{LoggedOut, PageRenderings};
use nenrin_state::{
    Estimate, OrderCurve, Outcome, PageId, PageRecord, Removal, RemovalRow, ServerRecord, Site,
    SiteSums, SiteWorth, VersionRow, VisitRow,
};
use nenrin_urls::{CanonicalUrl, Server};
use serde::Serialize;
use serde_json::Value;

use crate::{StoreSummary, app::replay_link, format};

/// A site with its sums.
#[derive(Serialize)]
pub(super) struct SiteAnswer {
    #[serde(flatten)]
    pub(super) site: Site,
    pub(super) received_bytes: u64,
    pub(super) stored_bytes: u64,
    /// Sum over all its pages; the average known page has 1.
    importance: f64,
    /// Its share of the importance of all sites' pages.
    importance_share: Option<f64>,
    /// Estimated changes per day of its pages, on average.
    rate_per_day: Option<f64>,
    confidence: Option<f64>,
    /// Why it is paused, if its log-in has ended.
    pub(super) logged_out: Option<LoggedOut>,
}

/// Sums over sites.
pub(super) struct Sums {
    pub(super) cost: Vec<SiteSums>,
    pub(super) worth: Vec<SiteWorth>,
}

impl SiteAnswer {
    pub(super) fn new(site: Site, sums: &Sums) -> Self {
        let cost = sums.cost.iter().find(|sums| sums.site == site.id);
        let worth = sums.worth.iter().find(|sums| sums.site == site.id);
        Self {
            site,
            received_bytes: cost.map_or(0, |sums| sums.received_bytes),
            stored_bytes: cost.map_or(0, |sums| sums.stored_bytes),
            importance: worth.map_or(0.0, SiteWorth::importance),
            importance_share: worth.and_then(|own| own.share_of(&sums.worth)),
            rate_per_day: worth.and_then(SiteWorth::mean_rate_per_day),
            confidence: worth.and_then(SiteWorth::mean_confidence),
            logged_out: None,
        }
    }
}

/// How early the order of collecting found the important pages.
#[derive(Serialize)]
pub(super) struct OrderAnswer {
    pages: u64,
    collected: Vec<(f64, f64)>,
    best: Vec<(f64, f64)>,
}

impl From<OrderCurve> for OrderAnswer {
    fn from(curve: OrderCurve) -> Self {
        Self {
            pages: curve.collected.iter().map(|group| group.pages).sum(),
            collected: OrderCurve::points(&curve.collected),
            best: OrderCurve::points(&curve.best),
        }
    }
}

/// A page, without the policies' internal memory.
#[derive(Serialize)]
pub(super) struct PageAnswer {
    id: PageId,
    url: CanonicalUrl,
    site: u32,
    discovered_s: i64,
    visited_s: Option<i64>,
    due_s: Option<i64>,
    outcome: Option<Outcome>,
    visits: u32,
    changes: u32,
    significant: u32,
    failures: u32,
    bytes: u64,
    /// The average known page has 1.
    importance: Option<f64>,
    /// Estimated changes per day, after the last visit.
    rate_per_day: Option<f64>,
    confidence: Option<f64>,
    /// Why it is rendered in a browser or not; only where one page is asked for.
    pub(super) rendering: Option<PageRenderings>,
}

impl From<PageRecord> for PageAnswer {
    fn from(page: PageRecord) -> Self {
        let importance = page.importance();
        Self {
            id: page.id,
            url: page.url,
            site: page.site.0,
            discovered_s: page.discovered_s,
            visited_s: page.visited_s,
            due_s: page.due_s,
            outcome: page.outcome,
            visits: page.visits,
            changes: page.changes,
            significant: page.significant,
            failures: page.failures,
            bytes: page.bytes,
            importance,
            rate_per_day: page.estimate.map(Estimate::rate_per_day),
            confidence: page.estimate.map(Estimate::confidence),
            rendering: None,
        }
    }
}

/// A version and its replay link.
#[derive(Serialize)]
pub(super) struct VersionAnswer {
    url: CanonicalUrl,
    at: String,
    #[serde(flatten)]
    version: VersionRow,
    replay: String,
}

impl VersionAnswer {
    pub(super) fn new(replay: &str, url: CanonicalUrl, version: VersionRow) -> Self {
        Self {
            at: format::rfc3339(version.at_s),
            replay: replay_link(replay, version.at_s, &url),
            url,
            version,
        }
    }
}

/// What was learnt about a server.
#[derive(Serialize)]
pub(super) struct LearntAnswer {
    server: Server,
    /// By topic: `probe`, `traps`, `signals`.
    notes: serde_json::Map<String, Value>,
}

impl LearntAnswer {
    /// The server's notes without the parts that only the machine can read: claims about single
    /// pages, counts of directories, noisy parts of pages.
    pub(super) fn new(record: ServerRecord) -> Self {
        let mut notes = serde_json::Map::new();
        for (name, text) in record.notes.into_iter().filter(|(name, _)| name != "noise") {
            let Ok(mut note) = serde_json::from_str::<Value>(&text) else { continue };
            if let Value::Object(fields) = &mut note {
                fields.remove("counted");
            }
            if let Some(Value::Object(sources)) = note.get_mut("sources") {
                for source in sources.values_mut().filter_map(Value::as_object_mut) {
                    source.remove("claims");
                }
            }
            notes.insert(name, note);
        }
        Self { server: record.server, notes }
    }
}

/// A removal, or its undoing.
#[derive(Serialize)]
pub(super) struct RemovalAnswer {
    site: u32,
    name: String,
    /// `null` where the site was restored.
    how: Option<Removal>,
    reason: String,
    at_s: i64,
}

impl RemovalAnswer {
    pub(super) fn new(row: RemovalRow, sites: &[Site]) -> Self {
        let name = sites.iter().find(|site| site.id == row.site).map(|site| site.name.clone());
        Self {
            site: row.site.0,
            name: name.unwrap_or_default(),
            how: row.removal,
            reason: row.reason,
            at_s: row.at_s,
        }
    }
}

/// Totals of the archive.
#[derive(Serialize)]
pub(super) struct StatsAnswer {
    pub(super) sites: u64,
    pub(super) pages: u64,
    pub(super) visits: u64,
    pub(super) versions: u64,
    pub(super) problems: u64,
    pub(super) raw_bytes: u64,
    pub(super) unique_bytes: u64,
    pub(super) stored_bytes: u64,
    pub(super) store: StoreSummary,
}

/// A part of a list, and how to get the next.
#[derive(Serialize)]
pub(super) struct Portion<T> {
    pub(super) items: Vec<T>,
    /// The value of `before` or `after` for the next part.
    pub(super) next: Option<String>,
}

impl Portion<VisitRow> {
    pub(super) fn of_visits(items: Vec<VisitRow>, limit: usize) -> Self {
        let next = (items.len() == limit).then(|| items.last().map(|v| v.id.to_string())).flatten();
        Self { items, next }
    }
}
