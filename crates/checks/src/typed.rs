//! What people type and hand over, which may come from others.

use nenrin_archive::bulk::{BULK_ADDRESSES_MAX, read_bulk};
use nenrin_extract::{PartSelector, selected_texts, text_blocks, without_parts};
use nenrin_fetch::CookieJar;
use nenrin_search::Query;
use nenrin_urls::CanonicalUrl;

const NOW_S: i64 = 1_704_067_200;

/// A list of sites, a `cookies.txt`, a search and a selector are read, or refused with a reason that
/// points into them.
pub(crate) fn typed(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let list = read_bulk(&text);
    assert!(list.sites.len() <= BULK_ADDRESSES_MAX);
    assert!(list.errors.iter().all(|(line, reason)| *line > 0 && !reason.is_empty()));
    if let Err(error) = Query::parse(&text) {
        assert!(error.at + error.length <= text.chars().count() + 1, "{error:?}");
        let _ = error.pointed(&text);
    }
    cookies(&text);
    let (first, rest) = text.split_once('\n').unwrap_or((&text, &text));
    if let Ok(selector) = PartSelector::parse(first) {
        let _ = selected_texts(rest, &selector);
        assert!(without_parts(rest, &[(selector, 0)]).len() <= rest.len());
    }
    let _ = text_blocks(rest);
}

/// Cookies go out as one line, and only to hosts that may have set them.
fn cookies(text: &str) {
    let url = CanonicalUrl::parse("https://www.example.com/a/b").expect("a URL");
    let other = CanonicalUrl::parse("https://example.net/a/b").expect("a URL");
    let mut set = CookieJar::default();
    for line in text.lines() {
        set.set(&url, line, NOW_S);
    }
    assert_eq!(set.header_for(&other, NOW_S), None);
    let imported = CookieJar::import(text).unwrap_or_default();
    for header in [&set, &imported].into_iter().filter_map(|jar| jar.header_for(&url, NOW_S)) {
        assert!(!header.contains(['\r', '\n', '\0']), "{header:?}");
    }
}
