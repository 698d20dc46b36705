//! A site's conditions in the API: their schema, and the limits that their types do not enforce.

use nenrin_extract::PartSelector;
use nenrin_revisit::RevisitSettings;
use nenrin_state::{
    IgnoredPart, PagePatterns, RobotsPolicy, Schedule, SiteConditions, SiteHeader, SiteLabels,
    SiteRoad, SiteScripts,
};
use nenrin_structure::RoundsBy;
use serde_json::{Value, json};

use super::{
    call::bad,
    schemas::{exactly, record},
};
use crate::{
    WebError,
    form::{MAX_INTERVAL_S, MAX_PATH_RULES, MAX_REASON_CHARS, MAX_WINDOWS},
};

/// A top page that redirects adds its target, so there may be more than the form allows.
const MAX_TOPS: usize = 1_000;
/// A century; a longer period is a mistake.
const MAX_PERIOD_S: i64 = 3_155_760_000;

const REQUIRED: [&str; 7] =
    ["tops", "scope", "depth", "embeds", "schedule", "allow_private", "robots"];

/// Whether conditions that can be read are also within the limits.
pub(super) fn check(conditions: &SiteConditions) -> Result<(), WebError> {
    let problem = if conditions.tops.is_empty() || conditions.tops.len() > MAX_TOPS {
        Some("`tops` needs 1 to 1000 top pages")
    } else if conditions.depth == 0 {
        Some("`depth` counts from 1, the top page")
    } else if is_too_large(conditions) {
        Some("a number is larger than 2^63 - 1")
    } else if let Some(problem) = bad_choice(conditions) {
        Some(problem)
    } else if conditions.windows.len() > MAX_WINDOWS {
        Some("`windows` has more than 50")
    } else if is_bad_reason(&conditions.robots) {
        Some("`robots.ignore.reason` needs 1 to 1000 characters")
    } else {
        bad_schedule(&conditions.schedule)
    };
    problem.map_or(Ok(()), |problem| Err(bad("the body", problem)))
}

fn bad_choice(conditions: &SiteConditions) -> Option<&'static str> {
    let PagePatterns { include, exclude } = &conditions.pages;
    let labels = &conditions.labels;
    let is_unread = |part: &IgnoredPart| PartSelector::parse(&part.selector).is_err();
    let is_bad = |label: &String| {
        label.chars().count() > SiteLabels::CHARS_MAX || label.chars().any(char::is_control)
    };
    if include.len().max(exclude.len()) > PagePatterns::MAX {
        Some("`pages` has more than 100 patterns of a kind")
    } else if conditions.headers.len() > SiteHeader::MAX {
        Some("`headers` has more than 20")
    } else if conditions.headers.iter().any(SiteHeader::is_secret) {
        Some("`headers` has a secret; set it with `nenrin site set SITE --secret-headers FILE`")
    } else if conditions.ignored.len() > IgnoredPart::MAX
        || conditions.ignored.iter().any(is_unread)
    {
        Some("`ignored` has more than 100 parts, or a selector that is not understood")
    } else if conditions.scripts.paths.len() > SiteScripts::PATHS_MAX {
        Some("`scripts` has more than 100 rules for paths")
    } else if conditions.road.problem().is_some() {
        conditions.road.problem()
    } else if labels.tags.len() > SiteLabels::TAGS_MAX
        || labels.tags.iter().any(|tag| tag.is_empty() || is_bad(tag))
        || is_bad(&labels.group)
    {
        Some("`labels` has more than 20 tags, or one that is empty or longer than 50 characters")
    } else {
        None
    }
}

/// Whether a number is too large for the state.
fn is_too_large(conditions: &SiteConditions) -> bool {
    let budget = conditions.schedule.continuous().and_then(|settings| settings.visits_per_day);
    let numbers =
        [conditions.max_pages, conditions.delay_ms, conditions.keeping.quota_bytes, budget];
    numbers.into_iter().flatten().any(|number| i64::try_from(number).is_err())
}

fn is_bad_reason(robots: &RobotsPolicy) -> bool {
    match robots {
        RobotsPolicy::Obey => false,
        RobotsPolicy::Ignore { reason } => {
            reason.trim().is_empty() || reason.chars().count() > MAX_REASON_CHARS
        }
    }
}

fn bad_schedule(schedule: &Schedule) -> Option<&'static str> {
    match schedule {
        Schedule::Manual => None,
        Schedule::Rounds { period_s } => (!(1..=MAX_PERIOD_S).contains(period_s))
            .then_some("`schedule.rounds.period_s` is not between 1 second and a century"),
        Schedule::Continuous(settings) => bad_settings(settings),
    }
}

fn bad_settings(settings: &RevisitSettings) -> Option<&'static str> {
    let least_s = settings.min_s.unwrap_or(0);
    if !(0..=MAX_INTERVAL_S).contains(&least_s) || !(1..=MAX_INTERVAL_S).contains(&settings.max_s) {
        Some("`min_s` and `max_s` are not between 1 second and a century")
    } else if settings.paths.len() > MAX_PATH_RULES {
        Some("`paths` has more than 100 rules")
    } else if settings.visits_per_day == Some(0) {
        Some("`visits_per_day` is 0; pause the site instead, or leave it out for no limit")
    } else {
        None
    }
}

pub(super) fn tops() -> Value {
    let url = json!({"type": "string", "format": "uri"});
    json!({"type": "array", "minItems": 1, "maxItems": MAX_TOPS, "items": url})
}

/// The schema of what [`check`] accepts.
pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "description": "how a site is collected; as in `nenrin site show --json`",
        "required": REQUIRED,
        "additionalProperties": false,
        "properties": {
            "tops": tops(),
            "scope": {"type": "string", "enum": ["list", "prefix", "host", "domain", "any"]},
            "depth": {"type": "integer", "minimum": 1, "maximum": u32::MAX},
            "max_pages": {"type": ["integer", "null"], "minimum": 0, "maximum": i64::MAX},
            "embeds": {"type": "boolean"},
            "schedule": {"oneOf": [
                {"const": "manual"},
                exactly(record(&[("continuous", continuous())])),
                tagged("rounds", &[("period_s", json!({"type": "integer", "minimum": 1, "maximum": MAX_PERIOD_S}))]),
            ]},
            "windows": {
                "type": "array", "maxItems": MAX_WINDOWS,
                "description": "when the site may be visited; without any, at any time",
                "items": window(),
            },
            "delay_ms": {"type": ["integer", "null"], "minimum": 0, "maximum": i64::MAX},
            "allow_private": {"type": "boolean"},
            "robots": {"oneOf": [
                {"const": "obey"},
                tagged("ignore", &[("reason", json!({"type": "string", "minLength": 1, "maxLength": MAX_REASON_CHARS, "pattern": "\\S"}))]),
            ]},
            "hints": {
                "type": "object", "additionalProperties": false,
                "properties": {
                    "signals": {
                        "type": "boolean", "default": true,
                        "description": "sitemaps and feeds add pages, and changed pages are visited sooner",
                    },
                    "schedule_by": {
                        "type": "string", "enum": ["any", "significant"], "default": "any",
                        "description": "which changes drive the schedule",
                    },
                },
            },
            "rounds_by": {
                "type": "string", "enum": RoundsBy::ALL.map(RoundsBy::name), "default": "all",
                "description": "which pages a round visits",
            },
            "pages": {
                "type": "object", "additionalProperties": false,
                "description": "which pages inside the scope are collected",
                "properties": {"include": patterns(), "exclude": patterns()},
            },
            "headers": {
                "type": "array", "maxItems": SiteHeader::MAX,
                "description": "sent to the site's own servers",
                "items": {"type": "string", "examples": ["Accept-Language: en"]},
            },
            "ignored": {
                "type": "array", "maxItems": IgnoredPart::MAX,
                "description": "parts of pages whose changes are noise",
                "items": {
                    "type": "object", "required": ["pages", "selector"], "additionalProperties": false,
                    "properties": {
                        "pages": pattern(),
                        "selector": {"type": "string", "examples": ["div.ad"]},
                        "nth": {"type": "integer", "minimum": 0, "maximum": u32::MAX, "default": 0},
                    },
                },
            },
            "labels": {
                "type": "object", "additionalProperties": false,
                "properties": {
                    "group": {"type": "string", "maxLength": SiteLabels::CHARS_MAX},
                    "tags": {
                        "type": "array", "maxItems": SiteLabels::TAGS_MAX,
                        "items": {"type": "string", "minLength": 1, "maxLength": SiteLabels::CHARS_MAX},
                    },
                },
            },
            "road": road(),
            "scripts": scripts(),
            "login_page": {
                "type": "string", "format": "uri",
                "description": "where visitors are led who are not logged in; the log-in itself is not shown",
            },
            "keeping": {
                "type": "object", "additionalProperties": false,
                "properties": {
                    "quota_bytes": {
                        "type": ["integer", "null"], "minimum": 0, "maximum": i64::MAX,
                        "description": "collecting pauses while the site takes this many bytes; 0 for no quota, null for the archive's",
                    },
                    "prune": {
                        "type": ["string", "null"], "examples": ["30d,day:90d,month"],
                        "description": "how old versions are thinned out; null keeps all",
                    },
                },
            },
        },
    })
}

fn road() -> Value {
    json!({
        "type": "object", "additionalProperties": false,
        "description": "how the site is reached",
        "properties": {
            "proxy": {
                "type": "string", "examples": ["http://proxy.example:3128", "socks5h://127.0.0.1:9050", "direct"],
                "description": "without a login, which belongs into the configuration",
            },
            "source": {"type": "string", "description": "the address to send from", "examples": ["192.0.2.7"]},
            "any_certificate": {
                "type": "string", "minLength": 1, "maxLength": SiteRoad::REASON_MAX_CHARS, "pattern": "\\S",
                "description": "why the site's own servers may have any certificate",
            },
        },
    })
}

fn scripts() -> Value {
    let when = json!({"type": "string", "enum": ["never", "auto", "always"], "default": "never"});
    json!({
        "type": "object", "additionalProperties": false,
        "description": "what is done for the site's scripts",
        "properties": {
            "render": when,
            "paths": {
                "type": "array", "maxItems": SiteScripts::PATHS_MAX,
                "items": exactly(record(&[("pages", pattern()), ("render", when.clone())])),
            },
            "likely_urls": {"type": "boolean", "default": false},
        },
    })
}

fn pattern() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": 500, "pattern": "^\\S+$", "examples": ["/news/*"]})
}

fn patterns() -> Value {
    json!({"type": "array", "maxItems": PagePatterns::MAX, "items": pattern()})
}

/// How pages are revisited, each on its own schedule.
fn continuous() -> Value {
    let rule = json!({
        "type": "string", "examples": ["/news/* min=1h max=1d", "/old/ min=30d"],
    });
    json!({
        "type": "object", "additionalProperties": false,
        "properties": {
            "policy": {
                "type": "string", "default": "auto",
                "description": "as in `nenrin site set --policy`; docs/revisit.md lists them all",
                "examples": ["auto", "auto(fair=0.5)", "every(7d)", "budget(learn=40d,least=90d)"],
            },
            "min_s": {"type": ["integer", "null"], "minimum": 0, "maximum": MAX_INTERVAL_S},
            "max_s": {"type": "integer", "minimum": 1, "maximum": MAX_INTERVAL_S, "default": 31_536_000},
            "paths": {
                "type": "array", "maxItems": MAX_PATH_RULES, "items": rule,
                "description": "other limits for some paths; the first that matches applies",
            },
            "visits_per_day": {"type": ["integer", "null"], "minimum": 1, "maximum": i64::MAX},
        },
    })
}

fn window() -> Value {
    json!({
        "type": "string",
        "examples": ["mon-fri 22:00-06:00 Asia/Tokyo", "sat,sun", "03:00-05:00"],
    })
}

/// An object with one property, whose name is the kind.
fn tagged(name: &str, properties: &[(&str, Value)]) -> Value {
    exactly(record(&[(name, exactly(record(properties)))]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Valid conditions, with one part replaced.
    fn with(part: &str, value: Value) -> Option<SiteConditions> {
        let mut conditions = json!({
            "tops": ["https://e.com/"], "scope": "host", "depth": 8, "max_pages": null, "embeds": true,
            "schedule": "manual", "delay_ms": null, "allow_private": false, "robots": "obey",
        });
        conditions[part] = value;
        serde_json::from_value(conditions).ok()
    }

    fn is_accepted(part: &str, value: Value) -> bool {
        with(part, value).is_some_and(|conditions| check(&conditions).is_ok())
    }

    #[test]
    fn what_is_in_bounds_is_accepted_and_the_rest_is_not() {
        for (part, value, accepted) in [
            ("depth", json!(1), true),
            ("depth", json!(0), false),
            ("max_pages", json!(u64::MAX), false),
            ("delay_ms", json!(i64::MAX), true),
            ("tops", json!([]), false),
            ("schedule", json!({"rounds": {"period_s": 1}}), true),
            ("schedule", json!({"rounds": {"period_s": 0}}), false),
            ("schedule", json!({"continuous": {}}), true),
            ("schedule", json!({"continuous": {"policy": "every(7d)", "visits_per_day": 9}}), true),
            ("schedule", json!({"continuous": {"visits_per_day": 0}}), false),
            ("schedule", json!({"continuous": {"max_s": 0}}), false),
            ("schedule", json!({"continuous": {"min_s": -1}}), false),
            ("schedule", json!({"continuous": {"paths": ["/a min=1h"]}}), true),
            ("schedule", json!({"continuous": {"paths": ["soon"]}}), false),
            ("windows", json!(["mon-fri 22:00-06:00 Asia/Tokyo"]), true),
            ("windows", json!(vec!["daily"; MAX_WINDOWS + 1]), false),
            ("robots", json!({"ignore": {"reason": "ours"}}), true),
            ("robots", json!({"ignore": {"reason": "  "}}), false),
            ("pages", json!({"include": ["/a/*"], "exclude": ["/b c"]}), false),
            ("pages", json!({"include": ["/a/*"], "exclude": ["/b"]}), true),
            ("headers", json!(["Accept-Language: ja"]), true),
            ("headers", json!(["Cookie: a=b"]), false),
            ("headers", json!(["Host: e.com"]), false),
            ("headers", json!(["a: b\r\nc: d"]), false),
            ("ignored", json!([{"pages": "/*", "selector": "div.ad"}]), true),
            ("ignored", json!([{"pages": "/*", "selector": "p:hover"}]), false),
            ("labels", json!({"group": "g", "tags": ["a"]}), true),
            ("labels", json!({"tags": [""]}), false),
            ("hints", json!({"signals": false, "schedule_by": "significant"}), true),
            ("hints", json!({"schedule_by": "mood"}), false),
            ("keeping", json!({"quota_bytes": 5, "prune": "30d,month"}), true),
            ("keeping", json!({"prune": "30d"}), false),
        ] {
            assert_eq!(is_accepted(part, value.clone()), accepted, "{part}: {value}");
        }
    }
}
