//! JSON Feed 1.0 and 1.1.

use nenrin_urls::CanonicalUrl;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::feed::Feed;
use crate::dates::parse_date;

/// A text, or any other value in its position.
#[derive(Deserialize)]
#[serde(untagged)]
enum Loose {
    Text(String),
    Other(IgnoredAny),
}

impl Loose {
    fn text(this: Option<Self>) -> Option<String> {
        match this {
            Some(Self::Text(text)) => Some(text),
            Some(Self::Other(_)) | None => None,
        }
    }
}

#[derive(Deserialize)]
struct JsonFeed {
    home_page_url: Option<Loose>,
    next_url: Option<Loose>,
    #[serde(default)]
    items: Vec<JsonItem>,
}

#[derive(Deserialize)]
struct JsonItem {
    id: Option<Loose>,
    url: Option<Loose>,
    date_modified: Option<Loose>,
    date_published: Option<Loose>,
}

pub(super) fn read(url: &CanonicalUrl, text: &str) -> Feed {
    let Ok(json) = serde_json::from_str::<JsonFeed>(text.trim()) else {
        return Feed { truncated: true, ..Feed::default() };
    };
    let join = |reference: Option<Loose>| {
        Loose::text(reference).and_then(|reference| url.join(&reference).ok())
    };
    let date = |value: Option<Loose>| Loose::text(value).and_then(|text| parse_date(&text));
    let mut feed =
        Feed { home: join(json.home_page_url), next: join(json.next_url), ..Feed::default() };
    for item in json.items {
        // Many feeds have the page's URL only as the identifier.
        let id = Loose::text(item.id).and_then(|id| CanonicalUrl::parse(&id).ok());
        let modified_s = date(item.date_modified).or_else(|| date(item.date_published));
        if !feed.push(join(item.url).or(id), modified_s) {
            break;
        }
    }
    feed
}

#[cfg(test)]
mod tests {
    use super::*;

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
