//! TimeMaps: all versions of a page, in formats for programs.

use axum::{
    body::Body,
    http::{HeaderValue, Response, header},
};
use nenrin_urls::CanonicalUrl;
use serde_json::json;

use crate::{
    Capture, ReplayError,
    ask::Ask,
    cdx,
    date::Stamp,
    memento::{memento_link, origin},
    served::{Replay, text_answer},
    target,
};

/// The most versions in one map.
const MAX_VERSIONS: usize = 50_000;

pub(crate) fn answer(replay: &Replay, ask: &Ask) -> Result<Response<Body>, ReplayError> {
    let rest = ask.rest("/web/timemap/");
    let (format, text) = rest.split_once('/').unwrap_or((rest, ""));
    let (url, _) = target::archived_url(text)?;
    let captures = replay.archive.versions(&url.key(), i64::MIN, i64::MAX, MAX_VERSIONS)?;
    let map = Map { origin: &origin(ask), url: &url, captures: &captures };
    let (mime, body) = match format {
        "link" => ("application/link-format", map.link()),
        "json" => ("application/json", map.json()),
        "cdxj" => ("text/x-cdxj", cdx::lines(replay, &captures)?),
        _ => {
            return Err(ReplayError::BadParameter {
                name: "format",
                value: format.chars().take(20).collect(),
                expected: "link, json or cdxj",
            });
        }
    };
    let status = if captures.is_empty() { 404 } else { 200 };
    let mut answer = text_answer(replay, mime, body);
    *answer.status_mut() =
        axum::http::StatusCode::from_u16(status).unwrap_or(axum::http::StatusCode::OK);
    Ok(answer)
}

pub(crate) struct Map<'a> {
    pub(crate) origin: &'a str,
    pub(crate) url: &'a CanonicalUrl,
    /// Oldest first.
    pub(crate) captures: &'a [Capture],
}

impl Map<'_> {
    /// RFC 7089, section 5.
    pub(crate) fn link(&self) -> String {
        let Self { origin, url, captures } = self;
        let span = match (captures.first(), captures.last()) {
            (Some(first), Some(last)) => format!(
                "; from=\"{}\"; until=\"{}\"",
                Stamp(first.at_s).http(),
                Stamp(last.at_s).http()
            ),
            _ => String::new(),
        };
        let mut lines = vec![
            format!("<{url}>; rel=\"original\""),
            format!(
                "<{origin}/web/timemap/link/{url}>; rel=\"self\"; \
                 type=\"application/link-format\"{span}"
            ),
            format!("<{origin}/web/{url}>; rel=\"timegate\""),
        ];
        let last = captures.len().saturating_sub(1);
        lines.extend(captures.iter().enumerate().map(|(i, capture)| {
            let rel = match i {
                0 if last == 0 => "first last memento",
                0 => "first memento",
                _ if i == last => "last memento",
                _ => "memento",
            };
            memento_link(origin, capture, rel)
        }));
        lines.join(",\n") + "\n"
    }

    /// The JSON format of Memento aggregators.
    fn json(&self) -> String {
        let Self { origin, url, captures } = self;
        let memento = |capture: &Capture| {
            json!({
                "datetime": iso(capture.at_s),
                "uri": format!("{origin}/web/{}/{}", Stamp(capture.at_s), capture.url),
            })
        };
        let list: Vec<_> = captures.iter().map(memento).collect();
        let map = json!({
            "original_uri": url.as_str(),
            "self": format!("{origin}/web/timemap/json/{url}"),
            "timegate_uri": format!("{origin}/web/{url}"),
            "timemap_uri": {
                "link_format": format!("{origin}/web/timemap/link/{url}"),
                "json_format": format!("{origin}/web/timemap/json/{url}"),
                "cdxj_format": format!("{origin}/web/timemap/cdxj/{url}"),
            },
            "mementos": { "first": list.first(), "last": list.last(), "list": list },
        });
        map.to_string() + "\n"
    }
}

fn iso(at_s: i64) -> String {
    Stamp(at_s).plain().replace(' ', "T") + "Z"
}
