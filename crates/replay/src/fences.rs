//! Keeps archived sites apart where each has an origin of its own. The browser's rules do most of it;
//! here is what a server has to add: which requests of one site to another are answered, and which
//! answers the other may read.

use axum::http::{HeaderMap, HeaderValue, header};

use crate::{
    ask::Ask,
    origins::{Named, Origins},
};

/// Whether a request may be answered on the origin of an archived server.
pub(crate) fn may_ask(ask: &Ask) -> bool {
    let is_request = is_of_script(ask);
    match ask.header("sec-fetch-site") {
        // A program, an address that someone typed, the page's own server.
        None | Some(b"none" | b"same-origin") => true,
        // Another archived server: parts, frames and links. What its scripts ask for must be
        // readable by them, or it is refused: nothing may be sent without being seen.
        Some(b"same-site") => !is_request || ask.header("sec-fetch-mode") == Some(b"cors"),
        // Another website: links and frames. The policy says who may have frames.
        _ => ask.header("sec-fetch-mode") == Some(b"navigate"),
    }
}

/// Whether a request may be answered on the origin of replay itself: archived pages may open its
/// pages, but not read them or load parts from them.
pub(crate) fn may_ask_home(ask: &Ask) -> bool {
    match ask.header("sec-fetch-site") {
        None | Some(b"none" | b"same-origin") => true,
        Some(b"same-site") => ask.header("sec-fetch-mode") == Some(b"navigate"),
        // A page in the sandbox has no origin: what it loads comes from another website.
        _ => !is_of_script(ask),
    }
}

fn is_of_script(ask: &Ask) -> bool {
    ask.header("sec-fetch-dest") == Some(b"empty")
}

/// Lets the page of another archived server read an answer if the archived answer did.
pub(crate) fn allow_as_archived(ask: &Ask, origins: &Origins, headers: &mut HeaderMap) {
    let Some(origin) = ask.headers.get(header::ORIGIN) else { return };
    let archived = headers.get("x-archive-orig-access-control-allow-origin");
    let Some(allowed) = archived.and_then(|value| value.to_str().ok()) else { return };
    let Some(asking) = archived_origin(origin, origins) else { return };
    let without_scheme = |origin: &str| origin.split("://").last().unwrap_or_default().to_owned();
    if allowed != "*" && without_scheme(allowed) != without_scheme(&asking) {
        return;
    }
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    for name in ["access-control-allow-credentials", "access-control-expose-headers"] {
        if let Some(value) = headers.get(format!("x-archive-orig-{name}")).cloned() {
            headers.insert(name, value);
        }
    }
}

/// Lets pages without an origin load fonts and modules, which no script can read.
pub(crate) fn allow_parts(ask: &Ask, headers: &mut HeaderMap) {
    let has_no_origin = ask.header("origin") == Some(b"null");
    if has_no_origin && matches!(ask.header("sec-fetch-dest"), Some(b"font" | b"script")) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("null"));
        headers.append(header::VARY, HeaderValue::from_static("origin"));
    }
}

/// The archived origin of a page that asks from one of our names.
fn archived_origin(origin: &HeaderValue, origins: &Origins) -> Option<String> {
    let (_, host) = origin.to_str().ok()?.split_once("://")?;
    match origins.read(host)? {
        Named::Shelf(shelf) => Some(shelf.server.as_str().to_owned()),
        Named::Forgotten => None,
    }
}

/// What a browser asks before a request with a body or headers of its own: it may ask.
pub(crate) fn preflight(ask: &Ask, origins: &Origins, headers: &mut HeaderMap) {
    let Some(origin) = ask.headers.get(header::ORIGIN) else { return };
    if archived_origin(origin, origins).is_none() {
        return;
    }
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    for (asked, allowed) in [
        (header::ACCESS_CONTROL_REQUEST_METHOD, header::ACCESS_CONTROL_ALLOW_METHODS),
        (header::ACCESS_CONTROL_REQUEST_HEADERS, header::ACCESS_CONTROL_ALLOW_HEADERS),
    ] {
        if let Some(value) = ask.headers.get(asked).cloned() {
            headers.insert(allowed, value);
        }
    }
}
