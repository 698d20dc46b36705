//! What the API answers, and the schema of each answer.

use nenrin_state::{
    Estimate, IncidentKind, OrderCurve, Outcome, PageId, PageRecord, Removal, RemovalRow,
    ServerRecord, Site, SiteSums, SiteWorth, VersionRow, VisitRow,
};
use nenrin_urls::{CanonicalUrl, Server};
use serde::Serialize;
use serde_json::{Value, json};

use super::conditions;
use crate::{StoreSummary, app::replay_link, form::MAX_REASON_CHARS, format};

/// A site and what it has cost.
#[derive(Serialize)]
pub(super) struct SiteAnswer {
    #[serde(flatten)]
    pub(super) site: Site,
    pub(super) received_bytes: u64,
    pub(super) stored_bytes: u64,
    /// Of all its pages; the average known page has 1.
    importance: f64,
    /// Its part of the importance of all sites' pages.
    importance_share: Option<f64>,
    /// Estimated changes per day of its pages, on average.
    rate_per_day: Option<f64>,
    confidence: Option<f64>,
}

/// What is summed up of sites.
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
        }
    }
}

/// How well the order of collecting found the important pages first.
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

/// A page, without the policies' inner memory.
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
        }
    }
}

/// A version and where it can be seen.
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

/// What was learnt of a server.
#[derive(Serialize)]
pub(super) struct LearntAnswer {
    server: Server,
    /// By what it is about: `probe`, `traps`, `signals`.
    notes: serde_json::Map<String, Value>,
}

impl LearntAnswer {
    /// The server's notes without what only the machine can read: claims page by page, counts of
    /// directories, blocks of pages.
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

/// A removal as it was done, or undone.
#[derive(Serialize)]
pub(super) struct RemovalAnswer {
    site: u32,
    name: String,
    /// `null` where the site was given back.
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
    pub(super) troubles: u64,
    pub(super) raw_bytes: u64,
    pub(super) unique_bytes: u64,
    pub(super) stored_bytes: u64,
    pub(super) store: StoreSummary,
}

/// A portion of a list, and how to go on.
#[derive(Serialize)]
pub(super) struct Portion<T> {
    pub(super) items: Vec<T>,
    /// The value of `before` or `after` for the next portion.
    pub(super) next: Option<String>,
}

impl Portion<VisitRow> {
    pub(super) fn of_visits(items: Vec<VisitRow>, limit: usize) -> Self {
        let next = (items.len() == limit).then(|| items.last().map(|v| v.id.to_string())).flatten();
        Self { items, next }
    }
}

/// The words for what came of a visit.
pub(super) const OUTCOMES: [&str; 6] =
    ["changed", "same", "not-modified", "gone", "refused", "failed"];

/// The words for what can happen to a site besides a change.
fn incident_words() -> [&'static str; IncidentKind::ALL.len()] {
    IncidentKind::ALL.map(IncidentKind::as_str)
}

/// The schemas that the document refers to.
pub(super) fn schemas() -> Value {
    let whole = json!({"type": "integer", "minimum": 0});
    let time = json!({"type": "integer", "description": "seconds since the epoch, UTC"});
    let maybe_time =
        json!({"type": ["integer", "null"], "description": "seconds since the epoch, UTC"});
    let text = json!({"type": "string"});
    let outcome = json!({"type": "string", "enum": OUTCOMES});
    let importance =
        json!({"type": ["number", "null"], "description": "the average known page has 1"});
    let rate = json!({"type": ["number", "null"], "description": "estimated changes per day"});
    let share = json!({"type": ["number", "null"], "minimum": 0, "maximum": 1});
    let point = json!({
        "type": "array", "items": {"type": "number"},
        "description": "share of the pages, share of their importance",
    });
    let reason =
        json!({"type": "string", "minLength": 1, "maxLength": MAX_REASON_CHARS, "pattern": "\\S"});
    json!({
        "Error": record(&[("error", text.clone())]),
        "Conditions": conditions::schema(),
        "NewSite": exactly(record(&[
            ("name", json!({"type": "string", "minLength": 1, "maxLength": 100, "pattern": "^\\S"})),
            ("conditions", reference("Conditions")),
        ])),
        "Site": record(&[
            ("id", whole.clone()), ("name", text.clone()), ("conditions", reference("Conditions")),
            ("created_s", time.clone()), ("collected_s", maybe_time.clone()),
            ("paused", json!({"type": "boolean"})), ("counts", json!({"type": "object"})),
            ("received_bytes", whole.clone()), ("stored_bytes", whole.clone()),
            ("importance", json!({"type": "number", "description": "of all its pages; the average known page has 1"})),
            ("importance_share", share.clone()), ("rate_per_day", rate.clone()), ("confidence", share.clone()),
        ]),
        "Sites": list(reference("Site")),
        "Look": exactly(json!({
            "type": "object", "required": ["url"],
            "properties": {
                "url": {"type": "string", "format": "uri"},
                "allow_private": {"type": "boolean", "default": false},
            },
        })),
        "Preview": record(&[
            ("top", text.clone()), ("robots", text.clone()), ("sitemap", text.clone()),
            ("links", list(text.clone())),
            ("estimated_pages", json!({"type": ["integer", "null"]})),
            ("estimated_bytes", json!({"type": ["integer", "null"]})),
        ]),
        "RemovalWanted": exactly(json!({
            "type": "object", "required": ["how", "reason"],
            "properties": {
                "how": {"type": "string", "enum": Removal::ALL.map(Removal::as_str)},
                "reason": reason.clone(),
                "confirm": {"type": ["string", "null"], "description": "to delete: the site's name"},
            },
        })),
        "Reason": exactly(record(&[("reason", reason)])),
        "Removal": record(&[
            ("site", whole.clone()), ("name", text.clone()), ("how", json!({"type": ["string", "null"]})),
            ("reason", text.clone()), ("at_s", time.clone()),
        ]),
        "Incident": record(&[
            ("id", text.clone()),
            ("event", json!({"type": "string", "enum": incident_words()})),
            ("at_s", time.clone()), ("over_s", maybe_time.clone()),
            ("site", json!({"type": ["integer", "null"]})),
            ("name", text.clone()), ("detail", text.clone()),
        ]),
        "Incidents": list(reference("Incident")),
        "Removals": list(reference("Removal")),
        "Outlook": outlook(),
        "Structure": structure(),
        "Day": record(&[
            ("day", json!({"type": "integer", "description": "days since the epoch, UTC"})),
            ("visits", whole.clone()), ("versions", whole.clone()), ("troubles", whole.clone()),
            ("raw_bytes", whole.clone()), ("received_bytes", whole.clone()), ("stored_bytes", whole.clone()),
        ]),
        "Days": list(reference("Day")),
        "Round": record(&[
            ("id", whole.clone()), ("site", whole.clone()), ("started_s", time.clone()),
            ("ended_s", maybe_time.clone()), ("counts", json!({"type": "object"})),
        ]),
        "Rounds": list(reference("Round")),
        "Trouble": record(&[
            ("outcome", outcome.clone()), ("status", whole.clone()),
            ("detail", json!({"type": ["string", "null"]})), ("count", whole.clone()),
            ("last_s", time.clone()), ("last_url", text.clone()),
        ]),
        "Troubles": list(reference("Trouble")),
        "Page": record(&[
            ("id", whole.clone()), ("url", text.clone()), ("site", whole.clone()),
            ("discovered_s", time.clone()), ("visited_s", maybe_time.clone()), ("due_s", maybe_time.clone()),
            ("outcome", json!({"type": ["string", "null"]})), ("visits", whole.clone()),
            ("changes", whole.clone()), ("significant", whole.clone()), ("failures", whole.clone()), ("bytes", whole.clone()),
            ("importance", importance.clone()), ("rate_per_day", rate.clone()), ("confidence", share.clone()),
        ]),
        "Order": record(&[
            ("pages", whole.clone()), ("collected", list(point.clone())), ("best", list(point)),
        ]),
        "Learnt": list(record(&[
            ("server", text.clone()), ("notes", json!({"type": "object"})),
        ])),
        "Pages": portion("Page"),
        "Visit": record(&[
            ("id", whole.clone()), ("at_s", time.clone()), ("url", text.clone()), ("site", whole.clone()),
            ("outcome", outcome), ("status", whole.clone()), ("detail", json!({"type": ["string", "null"]})),
            ("elapsed_ms", whole.clone()), ("received_bytes", whole.clone()),
        ]),
        "Visits": portion("Visit"),
        "Version": record(&[
            ("url", text.clone()), ("at", json!({"type": "string", "format": "date-time"})),
            ("at_s", time.clone()), ("version", whole.clone()), ("status", whole.clone()),
            ("mime", text.clone()), ("bytes", whole.clone()),
            ("replay", json!({"type": "string", "format": "uri"})),
            ("changed_permille", json!({
                "type": ["integer", "null"],
                "description": "share of the content that changed, in thousandths; 0 is noise",
            })),
        ]),
        "Versions": portion("Version"),
        "Stats": record(&[
            ("sites", whole.clone()), ("pages", whole.clone()), ("visits", whole.clone()),
            ("versions", whole.clone()), ("troubles", whole.clone()), ("raw_bytes", whole.clone()),
            ("unique_bytes", whole.clone()), ("stored_bytes", whole.clone()),
            ("store", record(&[
                ("raw_bytes", whole.clone()), ("unique_bytes", whole.clone()),
                ("html_bytes", whole.clone()), ("other_bytes", whole.clone()),
                ("index_bytes", whole),
            ])),
        ]),
        "UnderWay": list(record(&[
            ("url", text.clone()), ("server", text.clone()), ("since_s", time), ("phase", text),
        ])),
    })
}

fn outlook() -> Value {
    let number = json!({"type": "number"});
    let point = record(&[
        ("factor", number.clone()),
        ("visits_per_day", number.clone()),
        ("coverage", number),
    ]);
    let forecast = record(&[("pages", json!({"type": "integer"})), ("points", list(point))]);
    let mut schema = record(&[
        ("policy", json!({"type": "string"})),
        ("visits_per_day", json!({"type": ["integer", "null"]})),
        ("paths", list(json!({"type": "string"}))),
        ("forecast", forecast),
        ("stretched", list(json!({"type": "array"}))),
    ]);
    schema["type"] = json!(["object", "null"]);
    schema["required"] = json!([]);
    record(&[("outlook", schema)])
}

fn structure() -> Value {
    let whole = json!({"type": "integer"});
    let text = json!({"type": "string"});
    let pair =
        json!({"type": "array", "items": whole, "description": "seen, and changed of these"});
    let site = record(&[
        ("tops", list(text.clone())),
        ("depth", whole.clone()),
        ("members", list(text.clone())),
        ("member_count", whole.clone()),
        ("top_seen", whole.clone()),
        ("top_changed", whole.clone()),
        ("under_changed", pair.clone()),
        ("under_same", pair),
    ]);
    let together = ["rounds", "all", "some", "seen", "changed"].map(|name| (name, whole.clone()));
    let family = record(&[
        ("family", text.clone()),
        ("pages", whole.clone()),
        ("together", record(&together)),
    ]);
    let mut view = record(&[
        ("pages", whole.clone()),
        ("links", whole.clone()),
        ("rounds", whole.clone()),
        ("method", text.clone()),
        ("site_count", whole.clone()),
        ("sites", list(site)),
        ("family_count", whole.clone()),
        ("families", list(family)),
        ("learnt_shifts", json!({"type": "object"})),
    ]);
    let reason = record(&[
        ("why", text.clone()),
        ("pages", whole.clone()),
        ("examples", list(text.clone())),
    ]);
    let mut round = record(&[
        ("round", whole.clone()),
        ("started_s", whole.clone()),
        ("visits", whole.clone()),
        ("changed", whole.clone()),
        ("skipped", whole),
        ("reasons", list(reason)),
    ]);
    for schema in [&mut view, &mut round] {
        schema["type"] = json!(["object", "null"]);
        schema["required"] = json!([]);
    }
    record(&[("rounds_by", text), ("structure", view), ("last_round", round)])
}

/// Nothing else is understood.
pub(super) fn exactly(mut schema: Value) -> Value {
    schema["additionalProperties"] = json!(false);
    schema
}

/// An object with exactly these required properties (more may be added).
pub(super) fn record(properties: &[(&str, Value)]) -> Value {
    let names: Vec<&str> = properties.iter().map(|(name, _)| *name).collect();
    let properties: serde_json::Map<String, Value> =
        properties.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    json!({"type": "object", "required": names, "properties": properties})
}

fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

fn portion(of: &str) -> Value {
    record(&[("items", list(reference(of))), ("next", json!({"type": ["string", "null"]}))])
}

pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}
