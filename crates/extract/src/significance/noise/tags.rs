//! Tags: their attributes, URLs without cache breakers, hidden tokens.

use super::super::segment::{attributes, tag_name};
use super::{Atom, is_token, text_atoms};

/// The parts of a tag: attributes one by one, URLs without cache breakers.
pub(super) fn tag_atoms(tag: &str) -> Vec<Atom> {
    let name = tag_name(tag).to_ascii_lowercase();
    let hides_token = is_hidden_token(tag);
    let mut atoms = vec![Atom::Word(name)];
    for (attribute, value) in attributes(tag) {
        let attribute = attribute.to_ascii_lowercase();
        let made_by_machine = matches!(attribute.as_str(), "nonce" | "integrity")
            || hides_token && matches!(attribute.as_str(), "value" | "content");
        let parts = if made_by_machine {
            vec![Atom::Token]
        } else if is_url_attribute(&attribute) {
            vec![Atom::Word(without_cache_breakers(value))]
        } else {
            text_atoms(value).into_iter().map(Atom::without_number).collect()
        };
        atoms.push(Atom::Word(attribute));
        atoms.extend(parts);
    }
    atoms
}

pub(in crate::significance) fn is_url_attribute(name: &str) -> bool {
    matches!(
        name,
        "href"
            | "src"
            | "srcset"
            | "action"
            | "data"
            | "poster"
            | "data-src"
            | "data-srcset"
            | "background"
            | "xlink:href"
    )
}

/// A hidden field or a `meta` that carries a token against forgery, a session or a view state.
fn is_hidden_token(tag: &str) -> bool {
    const SIGNS: [&str; 8] =
        ["csrf", "xsrf", "token", "nonce", "authenticity", "viewstate", "session", "captcha"];
    let name = tag_name(tag).to_ascii_lowercase();
    let mut named = attributes(tag).filter(|(attribute, _)| {
        ["name", "id", "property"].contains(&attribute.to_ascii_lowercase().as_str())
    });
    matches!(name.as_str(), "input" | "meta")
        && named.any(|(_, value)| {
            let value = value.to_ascii_lowercase();
            SIGNS.iter().any(|sign| value.contains(sign))
        })
}

/// A URL without session identifiers, cache breakers, and digests in file names.
fn without_cache_breakers(url: &str) -> String {
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    let lower = path.to_ascii_lowercase();
    let path = lower.find(";jsessionid=").map_or(path, |at| &path[..at]);
    let mut out = String::with_capacity(url.len());
    for (at, part) in path.split_inclusive(['/', '.', '-', '_']).enumerate() {
        let bare = part.trim_end_matches(['/', '.', '-', '_']);
        // The first part is the scheme or a folder; if it looks like a digest, it is a name.
        if at > 0 && is_token(bare) {
            out.push('*');
            out.push_str(&part[bare.len()..]);
        } else {
            out.push_str(part);
        }
    }
    let query = query.replace("&amp;", "&");
    for parameter in query.split('&').filter(|parameter| !is_cache_breaker(parameter)) {
        out.push('&');
        out.push_str(parameter);
    }
    out
}

fn is_cache_breaker(parameter: &str) -> bool {
    const NAMES: [&str; 27] = [
        "",
        "v",
        "ver",
        "version",
        "t",
        "ts",
        "time",
        "timestamp",
        "_",
        "cb",
        "cachebuster",
        "rnd",
        "rand",
        "random",
        "nocache",
        "hash",
        "h",
        "sid",
        "session",
        "sessionid",
        "phpsessid",
        "jsessionid",
        "zenid",
        "osid",
        "token",
        "nonce",
        "rev",
    ];
    let (name, value) = parameter.split_once('=').unwrap_or(("", parameter));
    let name = name.to_ascii_lowercase();
    if name.is_empty() && !value.is_empty() {
        return value.bytes().all(|b| b.is_ascii_digit()) || is_token(value);
    }
    let is_moment = value.len() >= 10 && value.bytes().all(|b| b.is_ascii_digit());
    NAMES.contains(&name.as_str()) || name.starts_with("utm_") || is_token(value) || is_moment
}
