use std::{borrow::Cow, fmt};

use serde::{Deserialize, Serialize};

use crate::CanonicalUrl;

/// The key under which versions of a URL are looked up: a SURT as other archives write it
/// (`com,example)/path?a=1&b=2`). It ignores differences that mean nothing to people: letter case,
/// `www.`, a slash at the end, the order of query arguments, session ids, http or https. Several
/// URLs may share a key; the exact URL is stored beside it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UrlKey(String);

impl UrlKey {
    pub(crate) fn of(url: &CanonicalUrl) -> Self {
        let mut key = host_key(url.host());
        if let Some(port) = url.as_url().port() {
            key.push_str(&format!(":{port}"));
        }
        key.push(')');
        key.push_str(&path_key(url.path()));
        if let Some(query) = url.query().map(query_key).filter(|q| !q.is_empty()) {
            key.push('?');
            key.push_str(&query);
        }
        Self(key)
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UrlKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for UrlKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn host_key(host: &str) -> String {
    let host = without_www(host);
    let is_v4 = host.split('.').count() == 4 && host.split('.').all(|l| l.parse::<u8>().is_ok());
    if host.starts_with('[') || is_v4 {
        return host.to_owned();
    }
    host.trim_end_matches('.').rsplit('.').collect::<Vec<_>>().join(",")
}

/// `www.`, `www2.` and so on, unless nothing but a top-level domain would be left.
fn without_www(host: &str) -> &str {
    let Some(rest) = host.strip_prefix("www") else { return host };
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    match rest.strip_prefix('.') {
        Some(rest) if rest.contains('.') => rest,
        _ => host,
    }
}

fn path_key(path: &str) -> String {
    let path = escape(&unescape_fully(path.as_bytes()), b"%#?");
    let path = path.to_ascii_lowercase();
    let path = without_path_session(&path);
    match path.trim_end_matches('/') {
        "" => "/".to_owned(),
        path => path.to_owned(),
    }
}

fn query_key(query: &str) -> String {
    let query = escape(&unescape_fully(query.as_bytes()), b"%#").to_ascii_lowercase();
    let mut arguments: Vec<&str> = query
        .split('&')
        .filter(|argument| !argument.is_empty() && !is_session_argument(argument))
        .collect();
    arguments.sort_unstable();
    arguments.join("&")
}

/// `;jsessionid=…` at the end of a path segment and ASP.NET's `/(s(…))/` segment.
fn without_path_session(path: &str) -> Cow<'_, str> {
    let mut path = Cow::Borrowed(path);
    if let Some(start) = path.find(";jsessionid=") {
        let rest = &path[start + 1..];
        let end = rest.find(['/', ';']).map_or(path.len(), |i| start + 1 + i);
        path = Cow::Owned(format!("{}{}", &path[..start], &path[end..]));
    }
    for open in ["/(s(", "/(a("] {
        if let Some(start) = path.find(open)
            && let Some(length) = path[start..].find("))/")
        {
            path = Cow::Owned(format!("{}{}", &path[..start], &path[start + length + 2..]));
        }
    }
    path
}

fn is_session_argument(argument: &str) -> bool {
    let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
    let long_token = value.len() >= 24 && value.bytes().all(|b| b.is_ascii_alphanumeric());
    matches!(name, "jsessionid" | "phpsessid" | "cfid" | "cftoken")
        || name.starts_with("aspsessionid")
        || (matches!(name, "sid" | "sessionid") && long_token)
}

/// Percent-decodes until nothing changes, at most eight times, so that nested escapes cost little.
fn unescape_fully(text: &[u8]) -> Vec<u8> {
    let mut current = text.to_vec();
    for _ in 0..8 {
        let next = unescape(&current);
        if next == current {
            break;
        }
        current = next;
    }
    current
}

fn unescape(text: &[u8]) -> Vec<u8> {
    let hex = |b: u8| (b as char).to_digit(16).map(|d| d as u8);
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, tail)) = rest.split_first() {
        match (first, tail) {
            (b'%', [a, b, after @ ..]) if hex(*a).is_some() && hex(*b).is_some() => {
                out.push(hex(*a).unwrap_or(0) << 4 | hex(*b).unwrap_or(0));
                rest = after;
            }
            _ => {
                out.push(first);
                rest = tail;
            }
        }
    }
    out
}

fn escape(bytes: &[u8], reserved: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &byte in bytes {
        if (0x21..0x7f).contains(&byte) && !reserved.contains(&byte) {
            out.push(byte as char);
        } else {
            out.push_str(&format!("%{byte:02x}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(url: &str) -> String {
        CanonicalUrl::parse(url).unwrap().key().0
    }

    #[test]
    fn keys_are_written_as_other_archives_write_them() {
        for (url, expected) in [
            ("http://www.example.com/", "com,example)/"),
            ("https://www2.Example.com/Path/", "com,example)/path"),
            ("http://example.com:8080/a", "com,example:8080)/a"),
            ("http://example.com/a?b=2&a=1&c", "com,example)/a?a=1&b=2&c"),
            ("http://example.com/a;jsessionid=0123456789ABCDEF?x=1", "com,example)/a?x=1"),
            ("http://example.com/?PHPSESSID=abc&x=1", "com,example)/?x=1"),
            ("http://127.0.0.1:8080/x", "127.0.0.1:8080)/x"),
            ("http://[::1]/x", "[::1])/x"),
            ("http://example.com/a%2541", "com,example)/aa"),
            ("http://example.com/%E6%97%A5", "com,example)/%e6%97%a5"),
            ("http://www.com/", "com,www)/"),
            ("http://example.com/(S(abc))/p.aspx", "com,example)/p.aspx"),
            ("http://a.b.example.com/", "com,example,b,a)/"),
            ("http://example.com/a;jsessionid=0123/b;v=1", "com,example)/a/b;v=1"),
            ("http://example.com/a;jsessionid=0123;v=1", "com,example)/a;v=1"),
            ("http://example.com/a%4g%g4%", "com,example)/a%254g%25g4%25"),
            ("http://example.com/a%7E%C3%BF", "com,example)/a~%c3%bf"),
        ] {
            assert_eq!(key(url), expected, "{url}");
        }
    }

    #[test]
    fn only_sessions_are_left_out_of_a_query() {
        let long = "0123456789abcdefABCDEF01";
        for (argument, is_left_out) in [
            ("sid=short", false),
            (&format!("sid={long}")[..], true),
            (&format!("sid={}", &long[1..]), false),
            (&format!("sessionid={long}"), true),
            (&format!("sid={long}!"), false),
            (&format!("side={long}"), false),
            ("aspsessionidabc=x", true),
            ("cfid=1", true),
            ("cfidx=1", false),
        ] {
            let key = key(&format!("http://example.com/?{argument}&z=1"));
            assert_eq!(key == "com,example)/?z=1", is_left_out, "{argument}: {key}");
        }
    }

    #[test]
    fn a_key_is_written_as_itself() {
        let key = CanonicalUrl::parse("http://example.com/a").unwrap().key();
        assert_eq!(key.as_str(), "com,example)/a");
        assert_eq!((key.to_string(), format!("{key:?}")), (key.0.clone(), key.0.clone()));
    }

    #[test]
    fn http_and_https_share_a_key() {
        assert_eq!(key("http://example.com/a"), key("https://example.com/a"));
    }

    proptest! {
        #[test]
        fn a_key_is_ascii_without_spaces(path in "\\PC{0,40}") {
            if let Ok(url) = CanonicalUrl::parse(&format!("http://example.com/{path}")) {
                prop_assert!(url.key().as_str().bytes().all(|b| (0x21..0x7f).contains(&b)));
            }
        }
    }
}
