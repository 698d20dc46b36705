//! Where a reference leads inside the archive.

use std::{cell::RefCell, sync::Arc};

use nenrin_urls::CanonicalUrl;

use crate::{
    date::Stamp,
    modifier::Modifier,
    origins::{Origins, Shelf},
};

/// Turns references of one page, as of one date, into references into the archive.
#[derive(Debug, Clone)]
pub(crate) struct Links {
    at_s: i64,
    date: String,
    /// The modifier with which linked pages are opened.
    page_modifier: Modifier,
    base: CanonicalUrl,
    shelves: Option<Shelves>,
}

/// Archived servers have origins of their own.
#[derive(Debug, Clone)]
struct Shelves {
    origins: Arc<Origins>,
    is_bare: bool,
    /// The last server and its origin: most references of a page lead to few servers.
    last: RefCell<(Vec<u8>, String)>,
}

impl Links {
    pub(crate) fn new(at_s: i64, modifier: Modifier, url: CanonicalUrl) -> Self {
        let page_modifier = if modifier.is_page() { modifier } else { Modifier::Page };
        Self { at_s, date: Stamp(at_s).to_string(), page_modifier, base: url, shelves: None }
    }

    /// Where archived servers have origins of their own: the page is shown on one of them.
    pub(crate) fn on(mut self, origins: &Arc<Origins>, is_bare: bool) -> Self {
        let last = RefCell::default();
        self.shelves = Some(Shelves { origins: origins.clone(), is_bare, last });
        self
    }

    /// Whether the page is shown on an origin of its own.
    pub(crate) fn is_on_own_origin(&self) -> bool {
        self.shelves.is_some()
    }

    /// The modifier with which linked pages are opened.
    pub(crate) fn page_modifier(&self) -> Modifier {
        self.page_modifier
    }

    /// Applies a `base` element.
    pub(crate) fn set_base(&mut self, reference: &[u8]) {
        if let Ok(base) = self.base.join(&String::from_utf8_lossy(reference)) {
            self.base = base;
        }
    }

    /// The replay URL of an absolute URL.
    pub(crate) fn to(&self, url: &CanonicalUrl, modifier: Modifier) -> String {
        match &self.shelves {
            Some(shelves) => {
                let server = url.server();
                let shelf = Shelf { at_s: self.at_s, is_bare: shelves.is_bare, server };
                format!("{}{}", shelves.origins.of(&shelf), url.path_and_query())
            }
            None => format!("/web/{}{}/{url}", self.date, modifier.as_str()),
        }
    }

    /// The replacement of a reference; `None` if it already leads into the archive, as relative
    /// ones do, or does not lead to the web.
    ///
    /// The text is not changed except for a prefix, because browsers escape characters outside
    /// ASCII in the encoding of the page, which is not known here.
    pub(crate) fn rewrite(&self, reference: &[u8], modifier: Modifier) -> Option<Vec<u8>> {
        let cleaned = cleaned(reference);
        let text = cleaned.as_deref().unwrap_or(reference).trim_ascii();
        let text = &text[text.iter().take_while(|b| **b <= b' ').count()..];
        match text {
            [] | [b'#' | b'?', ..] => None,
            [b'/' | b'\\', b'/' | b'\\', rest @ ..] => {
                let rest = &rest[rest.iter().take_while(|b| is_slash(**b)).count()..];
                self.absolute(self.base.scheme().as_bytes(), rest, modifier)
            }
            [b'/' | b'\\', rest @ ..] => match self.shelves {
                // The browser's own rules are right.
                Some(_) => None,
                None => {
                    let server = self.base.server();
                    Some(self.prefixed(modifier, server.as_str().as_bytes(), rest))
                }
            },
            _ => match scheme(text) {
                Some(scheme) => self.with_scheme(text, scheme, modifier),
                None if self.shelves.is_some() => None,
                None => self.relative(text, cleaned.is_some(), modifier),
            },
        }
    }

    fn with_scheme(&self, text: &[u8], scheme: &[u8], modifier: Modifier) -> Option<Vec<u8>> {
        let is_web = scheme.eq_ignore_ascii_case(b"http") || scheme.eq_ignore_ascii_case(b"https");
        if !is_web {
            return None;
        }
        match &text[scheme.len() + 1..] {
            [b'/', b'/', rest @ ..] if !matches!(rest, [b'/' | b'\\', ..]) => {
                self.absolute(scheme, rest, modifier)
            }
            _ => self.joined(text, modifier),
        }
    }

    /// A reference with a server, given from the server's name on.
    fn absolute(&self, scheme: &[u8], rest: &[u8], modifier: Modifier) -> Option<Vec<u8>> {
        let end = rest.iter().position(|b| matches!(b, b'/' | b'\\' | b'?' | b'#'));
        let (host, after) = rest.split_at(end.unwrap_or(rest.len()));
        let server = [scheme, b"://", host].concat();
        let Some(shelves) = &self.shelves else {
            let path = after.strip_prefix(b"/").or(after.strip_prefix(b"\\")).unwrap_or(after);
            return Some(self.prefixed(modifier, &server, path));
        };
        let mut last = shelves.last.borrow_mut();
        if last.0 != server {
            let url = CanonicalUrl::parse(&String::from_utf8_lossy(&server));
            // What is not a server leads to a page that says so.
            let origin = match url {
                Ok(url) => {
                    let (at_s, is_bare) = (self.at_s, shelves.is_bare);
                    shelves.origins.of(&Shelf { at_s, is_bare, server: url.server() })
                }
                Err(_) => format!("{}/web/{}/", shelves.origins.home(), self.date),
            };
            *last = (server, origin);
        }
        Some([last.1.as_bytes(), after].concat())
    }

    /// Relative references work inside the archive, unless they climb above the root: on the web
    /// they stop at the root, but the archive's paths continue above it.
    fn relative(&self, text: &[u8], was_cleaned: bool, modifier: Modifier) -> Option<Vec<u8>> {
        let path = text.split(|b| matches!(b, b'?' | b'#')).next().unwrap_or_default();
        let mut level = self.base.directory().matches('/').count() as i64 - 1;
        for segment in path.split(|b| is_slash(*b)) {
            level += match segment {
                _ if climbs(segment) => -1,
                b"." | b"%2e" | b"%2E" => 0,
                _ => 1,
            };
            if level < 0 {
                return self.joined(text, modifier);
            }
        }
        // A path with a colon after escapes cannot be mistaken for a scheme here.
        (was_cleaned && path.contains(&b'\\')).then(|| self.joined(text, modifier)).flatten()
    }

    fn joined(&self, text: &[u8], modifier: Modifier) -> Option<Vec<u8>> {
        let url = self.base.join(&String::from_utf8_lossy(text)).ok()?;
        Some(self.to(&url, modifier).into_bytes())
    }

    /// A path below the root of a server, on the one origin of replay.
    fn prefixed(&self, modifier: Modifier, server: &[u8], path: &[u8]) -> Vec<u8> {
        let mut out = format!("/web/{}{}/", self.date, modifier.as_str()).into_bytes();
        out.extend_from_slice(server);
        out.push(b'/');
        push_below_root(&mut out, path);
        out
    }
}

/// Adds a path without the segments that would climb above the root.
fn push_below_root(out: &mut Vec<u8>, path: &[u8]) {
    let end = path.iter().position(|b| matches!(b, b'?' | b'#')).unwrap_or(path.len());
    let (path, query) = path.split_at(end);
    let mut level = 0_usize;
    for segment in path.split_inclusive(|b| is_slash(*b)) {
        let name = segment.strip_suffix(b"/").or(segment.strip_suffix(b"\\")).unwrap_or(segment);
        match name {
            _ if climbs(name) && level == 0 => continue,
            _ if climbs(name) => level -= 1,
            b"." | b"%2e" | b"%2E" => {}
            _ => level += 1,
        }
        out.extend_from_slice(segment);
    }
    out.extend_from_slice(query);
}

/// Whether a segment of a path leads one level up: two dots, each also as an escape.
fn climbs(segment: &[u8]) -> bool {
    let dot = |text: &[u8]| match text {
        [b'.', ..] => Some(1),
        [b'%', b'2', b'e' | b'E', ..] => Some(3),
        _ => None,
    };
    let first = dot(segment);
    let second = first.and_then(|length| Some(length + dot(&segment[length..])?));
    second == Some(segment.len())
}

fn is_slash(byte: u8) -> bool {
    matches!(byte, b'/' | b'\\')
}

/// The reference without the tabs and line ends that browsers drop, if it has any.
fn cleaned(reference: &[u8]) -> Option<Vec<u8>> {
    let is_dropped = |b: &u8| matches!(b, b'\t' | b'\n' | b'\r');
    reference
        .iter()
        .any(is_dropped)
        .then(|| reference.iter().copied().filter(|b| !is_dropped(b)).collect())
}

fn scheme(text: &[u8]) -> Option<&[u8]> {
    let is_in_scheme = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.');
    let length = text.iter().take_while(|b| is_in_scheme(b)).count();
    (text.get(length) == Some(&b':') && text[0].is_ascii_alphabetic()).then(|| &text[..length])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn links() -> Links {
        let url = CanonicalUrl::parse("http://e.com/dir/page.html").unwrap();
        Links::new(1_709_640_794, Modifier::Page, url)
    }

    fn rewritten(reference: &str) -> Option<String> {
        let found = links().rewrite(reference.as_bytes(), Modifier::Image);
        found.map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn references_that_leave_the_path_are_brought_into_the_archive() {
        for (reference, expected) in [
            ("http://f.org/x?a=b&c", "http://f.org/x?a=b&c"),
            ("HTTPS://F.org/x", "HTTPS://F.org/x"),
            ("//f.org/x", "http://f.org/x"),
            ("/x", "http://e.com/x"),
            (" \n/x ", "http://e.com/x"),
            ("\\\\f.org/x", "http://f.org/x"),
            ("/\\f.org/x", "http://f.org/x"),
            ("///f.org/x", "http://f.org/x"),
            ("ht\ntp://f.org/x", "http://f.org/x"),
            ("http:\\\\f.org/x", "http://f.org/x"),
            ("http:///f.org/x", "http://f.org/x"),
            ("http:x", "http://e.com/dir/x"),
            ("../../../x", "http://e.com/x"),
            ("%2e%2e/.%2E/x", "http://e.com/x"),
            ("/../x", "http://e.com/x"),
            ("/abc/../../x", "http://e.com/abc/../x"),
            ("/%2e%2e/%2E./x", "http://e.com/x"),
            ("http://f.org/../x", "http://f.org/x"),
            ("http://f.org/a/b/../../../../x?y=/../z", "http://f.org/a/b/../../x?y=/../z"),
            ("//f.org/..\\x", "http://f.org/x"),
            ("http://f.org/..", "http://f.org/"),
            ("http://f.org", "http://f.org/"),
            ("//f.org?x", "http://f.org/?x"),
            ("http://f.org#y", "http://f.org/#y"),
            ("\u{1}http://f.org/", "http://f.org/"),
            ("http://f.org/日本?q=日本", "http://f.org/日本?q=日本"),
        ] {
            let expected = format!("/web/20240305121314im_/{expected}");
            assert_eq!(rewritten(reference), Some(expected), "{reference:?}");
        }
    }

    #[test]
    fn references_that_hold_by_themselves_are_left_alone() {
        for reference in [
            "x",
            "../x",
            "./x",
            "?a",
            "#a",
            "",
            "data:text/plain,x",
            "javascript:void(0)",
            "mailto:a@b",
            "about:blank",
            "a/b:c",
            "blob:x",
        ] {
            assert_eq!(rewritten(reference), None, "{reference:?}");
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_survive() {
        let found = links().rewrite(b"/\x93\xfa\x96{.html", Modifier::Page).unwrap();
        assert!(found.ends_with(b"http://e.com/\x93\xfa\x96{.html"));
    }

    fn on_own_origin(reference: &str) -> Option<String> {
        let origins = Arc::new(Origins::below("http://r.localhost").unwrap());
        let found = links().on(&origins, false).rewrite(reference.as_bytes(), Modifier::Image);
        found.map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn with_an_origin_for_each_server_only_servers_change() {
        for (reference, expected) in [
            ("http://f.org/x?a=b&c", Some("-f-org.r.localhost/x?a=b&c")),
            ("HTTPS://F.org/x", Some("s-f-org.r.localhost/x")),
            ("//f.org:81/x", Some("p81-f-org.r.localhost/x")),
            ("http://f.org", Some("-f-org.r.localhost")),
            ("\\\\f.org/../x", Some("-f-org.r.localhost/../x")),
            ("ht\ntp://f.org/x", Some("-f-org.r.localhost/x")),
            ("http:x", Some("-e-com.r.localhost/dir/x")),
            ("http:///f.org/x", Some("-f-org.r.localhost/x")),
            ("http://e.com/x", Some("-e-com.r.localhost/x")),
            ("http://日本.jp/x", Some("-xn----wgv71a-jp.r.localhost/x")),
            ("/x", None),
            ("../../../x", None),
            ("?x", None),
            ("data:,x", None),
        ] {
            let expected = expected.map(|e| format!("http://20240305121314{e}"));
            assert_eq!(on_own_origin(reference), expected, "{reference:?}");
        }
        let broken = on_own_origin("http://a b/x").unwrap();
        assert_eq!(broken, "http://r.localhost/web/20240305121314//x");
    }

    proptest! {
        #[test]
        fn no_reference_leads_out_of_the_origins(reference in "[a-z:/\\\\.?#\t\n ]{0,12}") {
            let here = CanonicalUrl::parse("http://20240305121314-e-com.r.localhost/dir/page.html");
            let found = on_own_origin(&reference).unwrap_or(reference);
            if let Ok(to) = here.unwrap().join(&found) {
                prop_assert!(to.host().ends_with("r.localhost"), "{}", to);
            }
        }

        #[test]
        fn no_reference_leads_out(reference in "[a-z:/\\\\.?#\t\n ]{0,12}") {
            // As a browser at the replay URL would resolve it.
            let here = "http://replay.test/web/20240305121314/http://e.com/dir/page.html";
            let here = CanonicalUrl::parse(here).unwrap();
            let found = rewritten(&reference).unwrap_or(reference);
            if let Ok(to) = here.join(&found) {
                prop_assert_eq!(to.host(), "replay.test");
                prop_assert!(to.path().starts_with("/web/20240305121314"), "{}", to);
            }
        }
    }
}
