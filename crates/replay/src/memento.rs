//! Memento (RFC 7089): dates in headers, and links between a page's versions.

use axum::http::{HeaderMap, HeaderValue, header};
use nenrin_urls::CanonicalUrl;
use serde_json::json;

use crate::{Capture, ReplayError, ask::Ask, date::Stamp, modifier::Modifier, served::Replay};

/// Scheme and host under which the client reached us, for absolute URLs.
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

/// Headers of a version: its date, and links to the original, the TimeGate and the TimeMap. At the
/// address that the TimeMap lists (no modifier), also links to the versions around it.
pub(crate) fn version_headers(
    replay: &Replay,
    ask: &Ask,
    capture: &Capture,
    modifier: Modifier,
    headers: &mut HeaderMap,
) -> Result<(), ReplayError> {
    let stamp = Stamp(capture.at_s);
    let url = &capture.url;
    // On the origin of an archived server, its paths are not ours.
    let origins = replay.origins.as_ref().filter(|origins| origins.read(ask.host()).is_some());
    let home = origins.map(|origins| origins.home());
    let exact =
        format!("{}/web/{stamp}{}/{url}", home.as_deref().unwrap_or_default(), modifier.as_str());
    let origin = home.unwrap_or_else(|| origin(ask));
    let versions = match modifier {
        Modifier::Page => around(replay, &origin, capture)?,
        _ => memento_link(&origin, capture, "memento"),
    };
    let link = format!("{}, {versions}", relations(&origin, url));
    for (name, value) in
        [("memento-datetime", &stamp.http()), ("link", &link), ("content-location", &exact)]
    {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
    Ok(())
}

/// Headers of the TimeGate's answer.
pub(crate) fn gate_headers(
    replay: &Replay,
    ask: &Ask,
    found: &Capture,
    headers: &mut HeaderMap,
) -> Result<(), ReplayError> {
    let origin = origin(ask);
    let link = format!("{}, {}", relations(&origin, &found.url), around(replay, &origin, found)?);
    headers.insert(header::VARY, HeaderValue::from_static("accept-datetime"));
    if let Ok(link) = HeaderValue::from_str(&link) {
        headers.insert(header::LINK, link);
    }
    Ok(())
}

/// Links to a version, the ones before and after it, the first and the last: one link for each
/// version, with all its roles.
fn around(replay: &Replay, origin: &str, capture: &Capture) -> Result<String, ReplayError> {
    let archive = &*replay.archive;
    let key = capture.url.key();
    let at_s = capture.at_s;
    let previous = archive.as_of(&key, at_s.saturating_sub(1))?.filter(|c| c.at_s < at_s);
    let next = archive.versions(&key, at_s.saturating_add(1), i64::MAX, 1)?.pop();
    let versions = [
        ("first ", archive.as_of(&key, i64::MIN)?),
        ("prev ", previous),
        ("", Some(capture.clone())),
        ("next ", next),
        ("last ", archive.as_of(&key, i64::MAX)?),
    ];
    let mut named: Vec<(String, Capture)> = Vec::new();
    for (rel, version) in versions {
        let Some(version) = version else { continue };
        match named.iter_mut().find(|(_, c)| c.version == version.version) {
            Some((rels, _)) => rels.push_str(rel),
            None => named.push((rel.to_owned(), version)),
        }
    }
    let links: Vec<String> =
        named.iter().map(|(rels, c)| memento_link(origin, c, &format!("{rels}memento"))).collect();
    Ok(links.join(", "))
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

/// The versions of one page, to be written in a format of RFC 7089 or of its aggregators.
pub(crate) struct TimeMap<'a> {
    pub(crate) origin: &'a str,
    pub(crate) url: &'a CanonicalUrl,
    /// Oldest first.
    pub(crate) captures: &'a [Capture],
}

impl TimeMap<'_> {
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

    /// The form that Memento aggregators read and write.
    pub(crate) fn json(&self) -> String {
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
