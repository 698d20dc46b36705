//! `/web/timemap/<format>/<url>`: all versions of a page, in the formats that programs read.

use axum::{body::Body, http::Response};

use crate::{
    ReplayError,
    ask::Ask,
    cdx,
    memento::{TimeMap, origin},
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
    let map = TimeMap { origin: &origin(ask), url: &url, captures: &captures };
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
