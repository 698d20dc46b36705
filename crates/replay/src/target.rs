//! Parses what a replay URL requests.

use nenrin_urls::CanonicalUrl;

use crate::{ReplayError, date::Period, modifier::Modifier};

/// The part of a replay URL that names a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// No date: the newest version.
    Latest,
    /// As of the end of a period.
    AsOf(Period),
    /// `*`: all dates, or all in a period.
    Calendar(Option<Period>),
}

/// A parsed `/web/<date><mod>/<url>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) when: When,
    pub(crate) modifier: Modifier,
    /// The archived URL.
    pub(crate) url: CanonicalUrl,
    /// Whether the URL was written in full. If not (no scheme, `http:/x`, escaped), relative
    /// references in the page would resolve wrongly.
    pub(crate) is_tidy: bool,
    /// Whether the URL ended with `*`: everything below it.
    pub(crate) is_prefix: bool,
}

impl Target {
    /// Reads what follows `/web/` in the request line.
    pub(crate) fn parse(rest: &str) -> Result<Self, ReplayError> {
        let (when, modifier, url) = split(rest);
        let is_calendar = matches!(when, When::Calendar(_));
        let (text, is_prefix) = match url.strip_suffix('*') {
            Some(text) if is_calendar => (text, true),
            _ => (url, false),
        };
        let (url, is_tidy) = archived_url(text)?;
        Ok(Self { when, modifier, url, is_tidy, is_prefix })
    }
}

/// Splits date and modifier from the URL; a first segment that is neither belongs to the URL.
fn split(rest: &str) -> (When, Modifier, &str) {
    let whole = (When::Latest, Modifier::Page, rest);
    let Some((first, url)) = rest.split_once('/') else { return whole };
    if let Some(digits) = first.strip_suffix('*').or(first.strip_suffix("%2A")) {
        // From one date to another.
        if let Some((from, to)) = digits.split_once('-')
            && let (Some(from), Some(to)) = (Period::parse(from), Period::parse(to))
        {
            let period = Period { first_s: from.first_s, last_s: to.last_s, is_full: false };
            return (When::Calendar(Some(period)), Modifier::Page, url);
        }
        return match Period::parse(digits) {
            Some(period) => (When::Calendar(Some(period)), Modifier::Page, url),
            None if digits.is_empty() => (When::Calendar(None), Modifier::Page, url),
            None => whole,
        };
    }
    let digits_end = first.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, letters) = first.split_at(digits_end);
    match (Period::parse(digits), Modifier::parse(letters)) {
        (Some(period), Some(modifier)) => (When::AsOf(period), modifier, url),
        (None, Some(modifier)) if digits.is_empty() && !letters.is_empty() => {
            (When::Latest, modifier, url)
        }
        _ => whole,
    }
}

/// Reads an archived URL as people and programs write it, and returns whether it was complete.
pub(crate) fn archived_url(text: &str) -> Result<(CanonicalUrl, bool), ReplayError> {
    let bad = |source| ReplayError::BadUrl { source };
    let unescaped;
    let (text, mut is_tidy) = match scheme_is_escaped(text) {
        true => {
            unescaped = unescape(text);
            (unescaped.as_str(), false)
        }
        false => (text, true),
    };
    let lower = text.get(..8).unwrap_or(text).to_ascii_lowercase();
    let rest = ["https:", "http:"]
        .into_iter()
        .find_map(|scheme| lower.starts_with(scheme).then(|| (scheme, &text[scheme.len()..])));
    let url = match rest {
        Some((scheme, rest)) => {
            let after = rest.trim_start_matches('/');
            is_tidy &= rest.len() - after.len() == 2 && after.contains('/');
            CanonicalUrl::parse(&format!("{scheme}//{after}")).map_err(bad)?
        }
        None => {
            is_tidy = false;
            CanonicalUrl::parse_typed(text.trim_start_matches('/')).map_err(bad)?
        }
    };
    Ok((url, is_tidy))
}

fn scheme_is_escaped(text: &str) -> bool {
    let head = text.get(..10).unwrap_or(text).to_ascii_lowercase();
    ["http%3a", "https%3a", "http:%2f", "https:%2f"].iter().any(|escaped| head.starts_with(escaped))
}

/// Undoes one layer of percent-escapes, as for a URL that was given as an argument.
pub(crate) fn unescape(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let hex = |i: usize| tail.get(i).and_then(|&b| (b as char).to_digit(16));
        match (first, hex(0), hex(1)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                rest = &tail[2..];
            }
            _ => {
                out.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The first key after all keys that begin with a prefix; keys are ASCII.
pub(crate) fn after_prefix(prefix: &str) -> String {
    format!("{prefix}\u{7f}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(rest: &str) -> (String, &'static str, String, bool) {
        let t = Target::parse(rest).unwrap();
        let when = match t.when {
            When::Latest => "latest".to_owned(),
            When::AsOf(p) => crate::date::Stamp(p.last_s).to_string(),
            When::Calendar(p) => format!("*{}", p.is_some()),
        };
        (when, t.modifier.as_str(), t.url.to_string(), t.is_tidy)
    }

    #[test]
    fn replay_urls_are_read_as_people_write_them() {
        for (rest, when, modifier, url, is_tidy) in [
            (
                "20240305121314/http://e.com/a?b=/c",
                "20240305121314",
                "",
                "http://e.com/a?b=/c",
                true,
            ),
            ("2024id_/https://e.com/", "20241231235959", "id_", "https://e.com/", true),
            ("2024/http:/e.com/a", "20241231235959", "", "http://e.com/a", false),
            ("2024/e.com/a", "20241231235959", "", "https://e.com/a", false),
            ("2024/http%3A%2F%2Fe.com%2Fa%3Fb", "20241231235959", "", "http://e.com/a?b", false),
            ("2024/http://e.com", "20241231235959", "", "http://e.com/", false),
            ("http://e.com/a", "latest", "", "http://e.com/a", true),
            ("e.com", "latest", "", "https://e.com/", false),
            ("mp_/http://e.com/", "latest", "mp_", "http://e.com/", true),
            ("*/http://e.com/", "*false", "", "http://e.com/", true),
            ("2024*/http://e.com/", "*true", "", "http://e.com/", true),
            ("2020-202402*/http://e.com/", "*true", "", "http://e.com/", true),
            ("20240305121314159/http://e.com/", "20240305121314", "", "http://e.com/", true),
            ("2024bn_/http://e.com/", "20241231235959", "", "http://e.com/", true),
            ("2024sw_/http://e.com/", "20241231235959", "js_", "http://e.com/", true),
            ("2024ws_/http://e.com/", "20241231235959", "oe_", "http://e.com/", true),
            ("2024/http://e.com//a//b", "20241231235959", "", "http://e.com//a//b", true),
        ] {
            let expected = (when.to_owned(), modifier, url.to_owned(), is_tidy);
            assert_eq!(parsed(rest), expected, "{rest}");
        }
    }

    #[test]
    fn a_star_after_the_url_means_everything_below() {
        let t = Target::parse("*/http://e.com/a/*").unwrap();
        assert!(t.is_prefix);
        assert_eq!(t.url.as_str(), "http://e.com/a/");
    }

    #[test]
    fn a_text_that_is_not_a_url_is_refused() {
        for rest in ["2024/javascript:alert(1)", "2024/\u{7f}", "2024/", "2024/file:///x"] {
            assert!(Target::parse(rest).is_err(), "{rest}");
        }
    }

    proptest! {
        #[test]
        fn any_path_is_read_or_refused_without_harm(rest in "\\PC{0,60}") {
            let _ = Target::parse(&rest);
        }
    }
}
