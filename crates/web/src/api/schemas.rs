//! The schema of each answer, for the document that describes the API.

use nenrin_state::{IncidentKind, Removal};
use serde_json::{Map, Value, json};

use super::{conditions, watches};
use crate::form::MAX_REASON_CHARS;

/// The words for outcomes of a visit.
pub(super) const OUTCOMES: [&str; 6] =
    ["changed", "same", "not-modified", "gone", "refused", "failed"];

/// What searching finds, and the history of a page's blocks.
fn matches() -> Value {
    let moment = || json!({"type": "string", "format": "date-time"});
    let maybe = |what: &str| json!({"type": ["string", "null"], "format": "date-time", "description": what});
    json!({
        "Match": record(&[
            ("url", text()), ("title", maybe_text()), ("site", whole()), ("site_name", text()),
            ("kind", text()), ("lang", text()), ("from", moment()),
            ("before", maybe("when the version before that was received")),
            ("to", maybe("when it ended; null if it is still so")),
            ("spans", list(record(&[("from", moment()), ("to", maybe("when it ended"))]))),
            ("snippet", text()),
            ("marks", list(json!({"type": "array", "items": {"type": "integer"}, "description": "where the words are in the snippet: first character and the one after the last"}))),
        ]),
        "Matches": record(&[
            ("items", list(reference("Match"))),
            ("next", json!({"type": ["integer", "null"], "description": "what to skip for the next ones"})),
        ]),
        "Blame": record(&[
            ("url", text()), ("at_s", time()), ("oldest_s", time()), ("versions", whole()),
            ("title", maybe_text()),
            ("blocks", list(record(&[
                ("first_s", time()), ("since_s", time()), ("before_s", maybe_time()),
                ("is_heading", json!({"type": "boolean"})), ("text", text()),
            ]))),
        ]),
    })
}

/// The schemas that the document refers to.
pub(super) fn schemas() -> Value {
    let error = json!({"Error": record(&[("error", text())])});
    let groups = [
        error,
        sites(),
        removals(),
        happenings(),
        pages(),
        changes(),
        matches(),
        totals(),
        watches::schemas(),
    ];
    let all: Map<String, Value> = groups
        .into_iter()
        .filter_map(|group| match group {
            Value::Object(schemas) => Some(schemas),
            _ => None,
        })
        .flatten()
        .collect();
    Value::Object(all)
}

/// Sites, how they are made and described.
fn sites() -> Value {
    json!({
        "Conditions": conditions::schema(),
        "Name": exactly(record(&[("name", site_name())])),
        "Copy": exactly(record(&[("name", site_name()), ("tops", conditions::tops())])),
        "NewSite": exactly(record(&[
            ("name", site_name()),
            ("conditions", reference("Conditions")),
        ])),
        "Site": record(&[
            ("id", whole()), ("name", text()), ("conditions", reference("Conditions")),
            ("created_s", time()), ("collected_s", maybe_time()),
            ("paused", json!({"type": "boolean"})), ("counts", json!({"type": "object"})),
            ("received_bytes", whole()), ("stored_bytes", whole()),
            ("importance", json!({"type": "number", "description": "sum over its pages; the average known page has 1"})),
            ("importance_share", share()), ("rate_per_day", rate()), ("confidence", share()),
            ("logged_out", json!({
                "type": ["object", "null"],
                "description": "why it is paused, if its log-in has ended; only where one site is asked for",
            })),
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
            ("top", text()), ("robots", text()), ("sitemap", text()),
            ("links", list(text())),
            ("estimated_pages", json!({"type": ["integer", "null"]})),
            ("estimated_bytes", json!({"type": ["integer", "null"]})),
        ]),
    })
}

/// Removals, restorations and their reasons.
fn removals() -> Value {
    json!({
        "RemovalWanted": exactly(json!({
            "type": "object", "required": ["how", "reason"],
            "properties": {
                "how": {"type": "string", "enum": Removal::ALL.map(Removal::as_str)},
                "reason": reason(),
                "confirm": {"type": ["string", "null"], "description": "to delete: the site's name"},
            },
        })),
        "Reason": exactly(record(&[("reason", reason())])),
        "Removal": record(&[
            ("site", whole()), ("name", text()), ("how", maybe_text()),
            ("reason", text()), ("at_s", time()),
        ]),
        "Removals": list(reference("Removal")),
    })
}

/// Requests under way, visits and problems.
fn happenings() -> Value {
    json!({
        "UnderWay": list(record(&[
            ("url", text()), ("server", text()), ("since_s", time()), ("phase", text()),
        ])),
        "Round": record(&[
            ("id", whole()), ("site", whole()), ("started_s", time()),
            ("ended_s", maybe_time()), ("counts", json!({"type": "object"})),
        ]),
        "Rounds": list(reference("Round")),
        "Visit": record(&[
            ("id", whole()), ("at_s", time()), ("url", text()), ("site", whole()),
            ("outcome", outcome()), ("status", whole()), ("detail", maybe_text()),
            ("reason", visit_reason()), ("elapsed_ms", whole()), ("received_bytes", whole()),
        ]),
        "Visits": portion("Visit"),
        "Problem": record(&[
            ("outcome", outcome()), ("status", whole()),
            ("detail", maybe_text()), ("reason", visit_reason()), ("count", whole()),
            ("last_s", time()), ("last_url", text()),
        ]),
        "Problems": list(reference("Problem")),
        "Incident": record(&[
            ("id", text()),
            ("event", json!({"type": "string", "enum": IncidentKind::ALL.map(IncidentKind::as_str)})),
            ("at_s", time()), ("over_s", maybe_time()),
            ("site", json!({"type": ["integer", "null"]})),
            ("name", text()), ("detail", text()), ("about", visit_reason()),
        ]),
        "Incidents": list(reference("Incident")),
    })
}

/// Pages, their versions and estimates.
fn pages() -> Value {
    json!({
        "Page": record(&[
            ("id", whole()), ("url", text()), ("site", whole()),
            ("discovered_s", time()), ("visited_s", maybe_time()), ("due_s", maybe_time()),
            ("outcome", maybe_text()), ("visits", whole()),
            ("changes", whole()), ("significant", whole()), ("failures", whole()), ("bytes", whole()),
            ("importance", importance()), ("rate_per_day", rate()), ("confidence", share()),
            ("rendering", json!({
                "type": ["object", "null"],
                "description": "why it is rendered in a browser or not, and when; only where one page is asked for",
            })),
        ]),
        "Pages": portion("Page"),
        "Version": record(&[
            ("url", text()), ("at", json!({"type": "string", "format": "date-time"})),
            ("at_s", time()), ("version", whole()), ("status", whole()),
            ("mime", text()), ("bytes", whole()),
            ("replay", json!({"type": "string", "format": "uri"})),
            ("changed_permille", json!({
                "type": ["integer", "null"],
                "description": "share of the content that changed, in thousandths; 0 is noise",
            })),
        ]),
        "Versions": portion("Version"),
        "Order": record(&[
            ("pages", whole()), ("collected", list(point())), ("best", list(point())),
        ]),
        "Outlook": outlook(),
        "Structure": structure(),
        "Learnt": list(record(&[
            ("server", text()), ("notes", json!({"type": "object"})),
        ])),
    })
}

/// Changes by time, and between two dates.
fn changes() -> Value {
    let mut side = record(&[
        ("version", whole()),
        ("at", json!({"type": "string", "format": "date-time"})),
        ("status", whole()),
        ("mime", text()),
        ("bytes", whole()),
    ]);
    side["type"] = json!(["object", "null"]);
    let switch = json!({"type": "boolean"});
    let kind = json!({"type": "string", "enum": ["new", "changed", "gone"]});
    let both = [
        ("url", text()),
        ("kind", kind),
        ("significant", switch.clone()),
        ("old", side.clone()),
        ("new", side),
        ("compare", maybe_text()),
        ("replay", maybe_text()),
    ];
    let by_time = [
        ("at", json!({"type": "string", "format": "date-time"})),
        ("at_s", time()),
        ("site", whole()),
        ("name", maybe_text()),
        ("title", maybe_text()),
        ("line", maybe_text()),
        ("removed", switch.clone()),
        ("read", switch),
    ];
    json!({
        "Change": record(&[by_time.as_slice(), both.as_slice()].concat()),
        "Changes": portion("Change"),
        "Difference": record(&both),
        "Differences": record(&[
            ("items", list(reference("Difference"))), ("next", maybe_text()), ("compared", whole()),
        ]),
    })
}

/// Sums.
fn totals() -> Value {
    json!({
        "Stats": record(&[
            ("sites", whole()), ("pages", whole()), ("visits", whole()),
            ("versions", whole()), ("problems", whole()), ("raw_bytes", whole()),
            ("unique_bytes", whole()), ("stored_bytes", whole()),
            ("store", record(&[
                ("raw_bytes", whole()), ("unique_bytes", whole()),
                ("html_bytes", whole()), ("other_bytes", whole()),
                ("index_bytes", whole()),
            ])),
        ]),
        "Day": record(&[
            ("day", json!({"type": "integer", "description": "days since the epoch, UTC"})),
            ("visits", whole()), ("versions", whole()), ("problems", whole()),
            ("raw_bytes", whole()), ("received_bytes", whole()), ("stored_bytes", whole()),
        ]),
        "Days": list(reference("Day")),
    })
}

fn outlook() -> Value {
    let number = json!({"type": "number"});
    let point = record(&[
        ("factor", number.clone()),
        ("visits_per_day", number.clone()),
        ("coverage", number.clone()),
    ]);
    let missed = record(&[("versions", number.clone()), ("range", list(number))]);
    let forecast = record(&[("pages", json!({"type": "integer"})), ("points", list(point))]);
    let mut schema = record(&[
        ("policy", json!({"type": "string"})),
        ("visits_per_day", json!({"type": ["integer", "null"]})),
        ("paths", list(json!({"type": "string"}))),
        ("forecast", forecast),
        ("missed", missed),
        ("stretched", list(json!({"type": "array"}))),
    ]);
    schema["type"] = json!(["object", "null"]);
    schema["required"] = json!([]);
    record(&[("outlook", schema)])
}

fn structure() -> Value {
    let whole = json!({"type": "integer"});
    let text = json!({"type": "string"});
    let pair = json!({"type": "array", "items": whole, "description": "number seen, and how many of these changed"});
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

pub(super) fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

fn portion(of: &str) -> Value {
    record(&[("items", list(reference(of))), ("next", maybe_text())])
}

pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

pub(super) fn text() -> Value {
    json!({"type": "string"})
}

fn maybe_text() -> Value {
    json!({"type": ["string", "null"]})
}

/// Why a visit brought no page, as data: a name, or a name with what belongs to it.
fn visit_reason() -> Value {
    json!({"type": ["object", "string", "null"]})
}

pub(super) fn whole() -> Value {
    json!({"type": "integer", "minimum": 0})
}

pub(super) fn time() -> Value {
    json!({"type": "integer", "description": "seconds since the epoch, UTC"})
}

pub(super) fn maybe_time() -> Value {
    json!({"type": ["integer", "null"], "description": "seconds since the epoch, UTC"})
}

fn outcome() -> Value {
    json!({"type": "string", "enum": OUTCOMES})
}

fn importance() -> Value {
    json!({"type": ["number", "null"], "description": "the average known page has 1"})
}

fn rate() -> Value {
    json!({"type": ["number", "null"], "description": "estimated changes per day"})
}

fn share() -> Value {
    json!({"type": ["number", "null"], "minimum": 0, "maximum": 1})
}

/// A point of a curve.
fn point() -> Value {
    let description = "share of the pages, share of their importance";
    json!({"type": "array", "items": {"type": "number"}, "description": description})
}

fn site_name() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": 100, "pattern": "^\\S"})
}

fn reason() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": MAX_REASON_CHARS, "pattern": "\\S"})
}
