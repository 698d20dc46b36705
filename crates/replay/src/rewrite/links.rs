//! Where a reference leads inside the archive.

use nenrin_urls::CanonicalUrl;

use crate::{date::Stamp, modifier::Modifier};

/// Turns references of one page, as of one date, into references into the archive.
#[derive(Debug, Clone)]
pub(crate) struct Links {
    date: String,
    /// The modifier with which linked pages are opened.
    page_modifier: Modifier,
    base: CanonicalUrl,
}

impl Links {
    pub(crate) fn new(at_s: i64, modifier: Modifier, url: CanonicalUrl) -> Self {
        let page_modifier = if modifier.is_page() { modifier } else { Modifier::Page };
        Self { date: Stamp(at_s).to_string(), page_modifier, base: url }
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
        format!("/web/{}{}/{url}", self.date, modifier.as_str())
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
                Some(self.prefixed(modifier, &[self.base.scheme().as_bytes(), b"://", rest]))
            }
            [b'/' | b'\\', rest @ ..] => {
                Some(self.prefixed(modifier, &[self.base.server().as_str().as_bytes(), b"/", rest]))
            }
            _ => match scheme(text) {
                Some(scheme) => self.with_scheme(text, scheme, modifier),
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
                Some(self.prefixed(modifier, &[text]))
            }
            _ => self.joined(text, modifier),
        }
    }

    /// Relative references work inside the archive, unless they climb above the root: on the web
    /// they stop at the root, but the archive's paths continue above it.
    fn relative(&self, text: &[u8], was_cleaned: bool, modifier: Modifier) -> Option<Vec<u8>> {
        let path = text.split(|b| matches!(b, b'?' | b'#')).next().unwrap_or_default();
        let mut level = self.base.directory().matches('/').count() as i64 - 1;
        for segment in path.split(|b| is_slash(*b)) {
            level += match segment {
                b".." => -1,
                b"." => 0,
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

    fn prefixed(&self, modifier: Modifier, parts: &[&[u8]]) -> Vec<u8> {
        let mut out = format!("/web/{}{}/", self.date, modifier.as_str()).into_bytes();
        parts.iter().for_each(|part| out.extend_from_slice(part));
        out
    }
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

    proptest! {
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
