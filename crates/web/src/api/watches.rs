//! Watches in the API.

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use nenrin_archive::watching::check_watch;
use nenrin_state::{Watch, WatchEvent, WatchId, WatchedPart};
use nenrin_urls::CanonicalUrl;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    call::{Call, bad, ok},
    schemas::{exactly, list, maybe_time, record, reference, text, time, whole},
};
use crate::{WebError, pages::watches};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewWatch {
    #[serde(default)]
    name: String,
    url: CanonicalUrl,
    part: WatchedPart,
    on: WatchEvent,
    #[serde(default)]
    paused: bool,
}

impl NewWatch {
    fn watch(self, now_s: i64) -> Result<Watch, WebError> {
        let is_long = |text: &str| text.chars().count() > Watch::TEXT_CHARS_MAX;
        let words = match &self.part {
            WatchedPart::Words(words) => words.as_str(),
            _ => "",
        };
        if is_long(&self.name) || is_long(words) || self.name.chars().any(char::is_control) {
            return Err(bad("the body", "name and words have at most 300 characters in one line"));
        }
        if matches!(self.on, WatchEvent::Above(n) | WatchEvent::Below(n) if !n.is_finite()) {
            return Err(bad("on", "is not a number"));
        }
        let watch = Watch {
            id: WatchId(0),
            name: self.name,
            url: self.url,
            part: self.part,
            on: self.on,
            paused: self.paused,
            created_s: now_s,
            last: None,
            trouble: None,
        };
        check_watch(&watch).map_err(|error| bad("part:", &error.to_string()))?;
        Ok(watch)
    }
}

pub(super) fn all(call: &Call<'_>) -> Result<Response, WebError> {
    ok(call.app.state.watches()?)
}

pub(super) fn one(call: &Call<'_>) -> Result<Response, WebError> {
    ok(found(call)?)
}

pub(super) fn hits(call: &Call<'_>) -> Result<Response, WebError> {
    ok(call.app.state.watch_hits()?)
}

fn found(call: &Call<'_>) -> Result<Watch, WebError> {
    watches::find(call.app, call.id())
}

pub(super) fn add(call: &Call<'_>) -> Result<Response, WebError> {
    let watch = call.json::<NewWatch>()?.watch(call.now_s())?;
    if call.app.state.watches()?.len() >= Watch::MAX {
        return Err(bad("the archive", "has 1,000 watches already"));
    }
    let kept = call.app.state.keep_watch(&watch)?;
    Ok((StatusCode::CREATED, Json(kept)).into_response())
}

pub(super) fn set(call: &Call<'_>) -> Result<Response, WebError> {
    let before = found(call)?;
    let watch = call.json::<NewWatch>()?.watch(before.created_s)?;
    ok(call.app.state.keep_watch(&Watch { id: before.id, ..watch })?)
}

pub(super) fn remove(call: &Call<'_>) -> Result<Response, WebError> {
    call.app.state.drop_watch(found(call)?.id)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// The schemas of watches.
pub(super) fn schemas() -> Value {
    let words = json!({"type": "string", "minLength": 1, "maxLength": Watch::TEXT_CHARS_MAX, "pattern": "\\S"});
    let selector = json!({
        "type": "object", "required": ["selector"], "additionalProperties": false,
        "properties": {
            "selector": {"type": "string", "examples": ["#main p.price"]},
            "nth": {"type": "integer", "minimum": 0, "maximum": u32::MAX, "default": 0,
                "description": "which of the elements, from 1; 0 for all"},
        },
    });
    let part = json!({"oneOf": [
        {"const": "page"},
        exactly(record(&[("words", words)])),
        exactly(record(&[("selector", selector)])),
    ]});
    let number = || json!({"type": "number"});
    let on = json!({"oneOf": [
        {"type": "string", "enum": ["changes", "appears", "vanishes"]},
        exactly(record(&[("above", number())])),
        exactly(record(&[("below", number())])),
    ]});
    let name = json!({"type": "string", "maxLength": Watch::TEXT_CHARS_MAX, "default": ""});
    let url = json!({"type": "string", "format": "uri"});
    let maybe_text = json!({"type": ["string", "null"]});
    json!({
        "NewWatch": {
            "type": "object", "required": ["url", "part", "on"], "additionalProperties": false,
            "properties": {
                "name": name, "url": url, "part": part, "on": on,
                "paused": {"type": "boolean", "default": false},
            },
        },
        "Watch": record(&[
            ("id", whole()), ("name", text()), ("url", text()),
            ("part", json!({"type": ["string", "object"]})), ("on", json!({"type": ["string", "object"]})),
            ("paused", json!({"type": "boolean"})), ("created_s", time()),
            ("last", json!({"type": ["object", "null"]})), ("trouble", maybe_text.clone()),
        ]),
        "Watches": list(reference("Watch")),
        "WatchHits": list(record(&[
            ("id", whole()), ("watch", whole()), ("title", text()), ("url", text()),
            ("at_s", time()), ("before_s", maybe_time()), ("before", maybe_text.clone()),
            ("after", maybe_text.clone()), ("trouble", maybe_text),
            ("mailed", json!({"type": "boolean"})),
        ])),
    })
}
