//! JSON Feed 1.0 and 1.1.

use std::fmt;

use nenrin_urls::CanonicalUrl;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::{MAX_ENTRIES, feed::Feed};
use crate::dates::parse_date;

/// A text, or any other value in its position, of which nothing is held.
enum Loose {
    Text(String),
    Other,
}

impl Loose {
    fn text(this: Option<Self>) -> Option<String> {
        match this {
            Some(Self::Text(text)) => Some(text),
            Some(Self::Other) | None => None,
        }
    }
}

impl<'de> Deserialize<'de> for Loose {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(LooseVisitor)
    }
}

struct LooseVisitor;

impl<'de> Visitor<'de> for LooseVisitor {
    type Value = Loose;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("any value")
    }

    fn visit_str<E>(self, text: &str) -> Result<Loose, E> {
        Ok(Loose::Text(text.to_owned()))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Loose, E> {
        Ok(Loose::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Loose, E> {
        Ok(Loose::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Loose, E> {
        Ok(Loose::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Loose, E> {
        Ok(Loose::Other)
    }

    fn visit_unit<E>(self) -> Result<Loose, E> {
        Ok(Loose::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Loose, A::Error> {
        while values.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Loose::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut values: A) -> Result<Loose, A::Error> {
        while values.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Loose::Other)
    }
}

/// The first items of a list, no more than are ever taken.
#[derive(Default)]
struct Items(Vec<JsonItem>);

impl<'de> Deserialize<'de> for Items {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(ItemsVisitor)
    }
}

struct ItemsVisitor;

impl<'de> Visitor<'de> for ItemsVisitor {
    type Value = Items;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of items")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Items, A::Error> {
        let mut items = Vec::new();
        // One more, so that it is seen that there are too many.
        while items.len() <= MAX_ENTRIES {
            let Some(item) = values.next_element()? else { return Ok(Items(items)) };
            items.push(item);
        }
        while values.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Items(items))
    }
}

#[derive(Deserialize)]
struct JsonFeed {
    home_page_url: Option<Loose>,
    next_url: Option<Loose>,
    #[serde(default)]
    items: Items,
}

#[derive(Deserialize)]
struct JsonItem {
    id: Option<Loose>,
    url: Option<Loose>,
    date_modified: Option<Loose>,
    date_published: Option<Loose>,
}

pub(super) fn read(url: &CanonicalUrl, text: &str) -> Feed {
    let (json, truncated) = match serde_json::from_str::<JsonFeed>(text.trim()) {
        Ok(json) => (json, false),
        Err(error) => {
            let items = if error.is_eof() { complete_items(text) } else { Vec::new() };
            (JsonFeed { home_page_url: None, next_url: None, items: Items(items) }, true)
        }
    };
    let join = |reference: Option<Loose>| {
        Loose::text(reference).and_then(|reference| url.join(&reference).ok())
    };
    let date = |value: Option<Loose>| Loose::text(value).and_then(|text| parse_date(&text));
    let (home, next) = (join(json.home_page_url), join(json.next_url));
    let mut feed = Feed { home, next, truncated, ..Feed::default() };
    for item in json.items.0 {
        // Many feeds have the page's URL only as the identifier.
        let id = Loose::text(item.id).and_then(|id| CanonicalUrl::parse(&id).ok());
        let modified_s = date(item.date_modified).or_else(|| date(item.date_published));
        if !feed.push(join(item.url).or(id), modified_s) && !truncated {
            break;
        }
    }
    feed
}

/// The items in front of where a feed was cut.
fn complete_items(text: &str) -> Vec<JsonItem> {
    let behind = |text: &'_ str, mark: &str| text.find(mark).map(|at| at + mark.len());
    let list = behind(text, "\"items\"").and_then(|at| Some(at + behind(&text[at..], "[")?));
    let mut rest = list.map_or("", |at| &text[at..]);
    let mut found = Vec::new();
    while found.len() < MAX_ENTRIES {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        let mut items = serde_json::Deserializer::from_str(rest).into_iter::<JsonItem>();
        let Some(Ok(item)) = items.next() else { break };
        rest = &rest[items.byte_offset()..];
        found.push(item);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feed_that_was_cut_keeps_its_complete_entries() {
        let url = CanonicalUrl::parse("http://example.com/feed.json").unwrap();
        let whole =
            r#"{"title": "x", "items": [{"url": "/a"}, {"id": "b", "url": "/b"}, {"url": "/c"}]}"#;
        for (cut, expected) in [(whole.len() - 4, 2), (60, 1), (20, 0)] {
            let feed = read(&url, &whole[..cut]);
            assert_eq!((feed.entries.len(), feed.truncated), (expected, true), "{cut}");
        }
        assert_eq!(read(&url, whole).entries.len(), 3);
    }

    #[test]
    fn no_more_items_are_held_than_are_taken() {
        let url = CanonicalUrl::parse("http://example.com/feed.json").unwrap();
        let items = format!("[{}{{}}]", "{},".repeat(3 * MAX_ENTRIES));
        let read_items: Items = serde_json::from_str(&items).unwrap();
        assert_eq!(read_items.0.len(), MAX_ENTRIES + 1);
        let many = r#"{"url": "/a"},"#.repeat(MAX_ENTRIES + 5);
        let feed = read(&url, &format!(r#"{{"items": [{many}{{}}]}}"#));
        assert_eq!((feed.entries.len(), feed.truncated), (MAX_ENTRIES, true));
        let odd = r#"{"id": [[1, {"a": null}], true, -1, 0.5], "url": "/a"}"#;
        assert_eq!(read(&url, &format!(r#"{{"items": [{odd}]}}"#)).entries.len(), 1);
    }

    #[test]
    fn entries_are_read_and_odd_values_passed_over() {
        let url = CanonicalUrl::parse("http://example.com/feed.json").unwrap();
        let feed = read(
            &url,
            r#"{"version": "https://jsonfeed.org/version/1.1", "home_page_url": "/",
                "next_url": 7, "items": [
                {"id": 1, "url": "/a", "date_published": "2024-03-01T00:00:00Z"},
                {"id": "http://example.com/b", "date_modified": "2024-03-01", "tags": ["x"]},
                {"id": "c"}]}"#,
        );
        let urls: Vec<_> = feed.entries.iter().map(|e| (e.url.path(), e.modified_s)).collect();
        assert_eq!(urls, [("/a", Some(1_709_251_200)), ("/b", Some(1_709_251_200))]);
        assert_eq!((feed.home.unwrap().path(), feed.next, feed.refused), ("/", None, 1));
        assert!(read(&url, "{").truncated);
    }
}
