//! Memento (RFC 7089): dates in headers, and links between a page's versions.

use axum::http::{HeaderMap, HeaderValue, header};
use nenrin_urls::CanonicalUrl;

use crate::{
    Capture, ReplayError,
    date::Stamp,
    modifier::Modifier,
    router::{Ask, Replay},
};

/// Scheme and host under which the client reached us, for URLs that must be absolute.
pub(crate) fn origin(ask: &Ask) -> String {
    let is_host = |host: &&str| {
        !host.is_empty()
            && host.bytes().all(|b| b.is_ascii_alphanumeric() || b".-:[]_".contains(&b))
    };
    let host = ask.header_str("host").or(ask.uri.authority().map(|a| a.as_str()));
    let host = host.filter(is_host).unwrap_or("localhost");
    let scheme = match ask.header_str("x-forwarded-proto") {
        Some("https") => "https",
        _ => "http",
    };
    format!("{scheme}://{host}")
}

/// Headers of a version: its date, and where the original, the gate and the map are.
pub(crate) fn version_headers(
    ask: &Ask,
    capture: &Capture,
    modifier: Modifier,
    headers: &mut HeaderMap,
) {
    let stamp = Stamp(capture.at_s);
    let origin = origin(ask);
    let date = stamp.http();
    let url = &capture.url;
    let exact = format!("/web/{stamp}{}/{url}", modifier.as_str());
    let link = format!(
        "{}, <{origin}/web/{stamp}/{url}>; rel=\"memento\"; datetime=\"{date}\"",
        relations(&origin, url)
    );
    for (name, value) in
        [("memento-datetime", &date), ("link", &link), ("content-location", &exact)]
    {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
}

/// Headers of the gate's answer.
pub(crate) fn gate_headers(
    replay: &Replay,
    ask: &Ask,
    found: &Capture,
    headers: &mut HeaderMap,
) -> Result<(), ReplayError> {
    let origin = origin(ask);
    let key = found.url.key();
    let first = replay.archive.as_of(&key, i64::MIN)?;
    let last = replay.archive.as_of(&key, i64::MAX)?;
    let mut link = relations(&origin, &found.url);
    for (rel, capture) in [("first memento", first), ("last memento", last)] {
        if let Some(capture) = capture {
            link.push_str(", ");
            link.push_str(&memento_link(&origin, &capture, rel));
        }
    }
    headers.insert(header::VARY, HeaderValue::from_static("accept-datetime"));
    if let Ok(link) = HeaderValue::from_str(&link) {
        headers.insert(header::LINK, link);
    }
    Ok(())
}

/// A link to a version, as link formats write it.
pub(crate) fn memento_link(origin: &str, capture: &Capture, rel: &str) -> String {
    let stamp = Stamp(capture.at_s);
    format!("<{origin}/web/{stamp}/{}>; rel=\"{rel}\"; datetime=\"{}\"", capture.url, stamp.http())
}

fn relations(origin: &str, url: &CanonicalUrl) -> String {
    format!(
        "<{url}>; rel=\"original\", <{origin}/web/{url}>; rel=\"timegate\", \
         <{origin}/web/timemap/link/{url}>; rel=\"timemap\"; type=\"application/link-format\""
    )
}
