use nenrin_urls::CanonicalUrl;

use super::xml_tree::{Visitor, XmlTag, walk};
use super::{MAX_ENTRIES, MAX_ENTRIES_BYTES, json_feed};
use crate::charset::charset;
use crate::dates::parse_date;

/// An entry of a feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedEntry {
    /// The page that it announces.
    pub url: CanonicalUrl,
    /// When that page last changed or appeared, according to the feed, in seconds since the epoch.
    pub modified_s: Option<i64>,
}

/// What a feed announces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Feed {
    /// The entries, in the order of the feed.
    pub entries: Vec<FeedEntry>,
    /// The page that the feed belongs to.
    pub home: Option<CanonicalUrl>,
    /// Where changes of the feed can be subscribed to (WebSub).
    pub hub: Option<CanonicalUrl>,
    /// The next, older part of a feed that comes in parts.
    pub next: Option<CanonicalUrl>,
    /// Entries without a URL that can be archived.
    pub refused: u32,
    /// A limit was reached or the feed is damaged: there may be more.
    pub truncated: bool,
    pub(super) entries_bytes: usize,
}

impl Feed {
    /// Adds an entry; returns whether more can be added.
    pub(super) fn push(&mut self, url: Option<CanonicalUrl>, modified_s: Option<i64>) -> bool {
        let is_full = self.entries.len() >= MAX_ENTRIES || self.entries_bytes >= MAX_ENTRIES_BYTES;
        match url {
            Some(_) if is_full => self.truncated = true,
            Some(url) => {
                self.entries_bytes += url.as_str().len();
                self.entries.push(FeedEntry { url, modified_s });
            }
            None => self.refused = self.refused.saturating_add(1),
        }
        !self.truncated
    }
}

/// Reads RSS of any version (0.9 to 2.0, RDF), Atom, or JSON Feed. Anything else announces nothing.
pub fn feed(url: &CanonicalUrl, content_type: Option<&str>, body: &[u8]) -> Feed {
    let (text, _, _) = charset(content_type, body).decode(body);
    if text.trim_start().starts_with('{') {
        return json_feed::read(url, &text);
    }
    let mut reader = FeedReader {
        feed: Feed::default(),
        feed_base: url.clone(),
        entry_base: None,
        entry: RawEntry::default(),
    };
    let complete = walk(&text, &mut reader);
    reader.feed.truncated |= !complete;
    reader.feed
}

/// Whether an XML text's first elements are a feed's.
pub(super) fn looks_like_feed(text: &str) -> bool {
    struct Root(bool);
    impl Visitor for Root {
        fn open(&mut self, _: &str, name: &str, _: &XmlTag<'_>) -> bool {
            self.0 = matches!(name, "rss" | "feed" | "RDF");
            false
        }
        fn close(&mut self, _: &str, _: &str, _: &str) -> bool {
            false
        }
    }
    let mut root = Root(false);
    walk(text, &mut root);
    root.0
}

#[derive(Default)]
struct RawEntry {
    link: Option<String>,
    /// An identifier that may be a URL.
    guid: Option<String>,
    guid_is_link: bool,
    /// The page itself, where `link` only counts clicks.
    original: Option<String>,
    updated_s: Option<i64>,
    published_s: Option<i64>,
}

struct FeedReader {
    feed: Feed,
    feed_base: CanonicalUrl,
    entry_base: Option<CanonicalUrl>,
    entry: RawEntry,
}

impl Visitor for FeedReader {
    fn open(&mut self, parent: &str, name: &str, tag: &XmlTag<'_>) -> bool {
        match name {
            "feed" | "RDF" | "rss" if parent.is_empty() => {
                if let Some(base) = self.join(tag.attribute("xml:base")) {
                    self.feed_base = base;
                }
            }
            "item" | "entry" => {
                self.entry_base = self.join(tag.attribute("xml:base"));
                self.entry = RawEntry {
                    guid: tag.attribute("rdf:about"),
                    guid_is_link: true,
                    ..RawEntry::default()
                };
            }
            "guid" if parent == "item" => {
                let is_link = tag.attribute("isPermaLink");
                self.entry.guid_is_link = is_link.is_none_or(|value| value != "false");
            }
            "link" => self.link_tag(parent, tag),
            _ => {}
        }
        true
    }

    fn close(&mut self, parent: &str, name: &str, text: &str) -> bool {
        match (parent, name) {
            ("item", "link") if !text.is_empty() => self.entry.link = Some(text.to_owned()),
            ("item", "guid") | ("entry", "id") => self.entry.guid = Some(text.to_owned()),
            ("item" | "entry", "origLink") => self.entry.original = Some(text.to_owned()),
            ("item" | "entry", "updated" | "modified" | "date") => {
                self.entry.updated_s = parse_date(text).or(self.entry.updated_s);
            }
            ("item" | "entry", "pubDate" | "published" | "issued" | "created") => {
                self.entry.published_s = parse_date(text).or(self.entry.published_s);
            }
            ("channel", "link") if !text.is_empty() => {
                self.feed.home = self.join(Some(text.to_owned())).or(self.feed.home.take());
            }
            (_, "item" | "entry") => return self.finish(),
            _ => {}
        }
        true
    }
}

impl FeedReader {
    fn join(&self, reference: Option<String>) -> Option<CanonicalUrl> {
        let base = self.entry_base.as_ref().unwrap_or(&self.feed_base);
        base.join(&reference?).ok()
    }

    /// A link of Atom, which RSS uses too.
    fn link_tag(&mut self, parent: &str, tag: &XmlTag<'_>) {
        let Some(href) = tag.attribute("href") else { return };
        let rel = tag.attribute("rel").unwrap_or_else(|| "alternate".to_owned());
        let rel = rel.to_ascii_lowercase();
        // A relation may be written as the URI that Atom defines for it.
        let rel = rel.strip_prefix("http://www.iana.org/assignments/relation/").unwrap_or(&rel);
        match (parent, rel) {
            ("entry" | "item", "alternate") => {
                self.entry.link.get_or_insert(href);
            }
            ("feed" | "channel", "alternate") if self.feed.home.is_none() => {
                self.feed.home = self.join(Some(href));
            }
            ("feed" | "channel", "hub") => self.feed.hub = self.join(Some(href)),
            ("feed" | "channel", "next" | "prev-archive") => self.feed.next = self.join(Some(href)),
            _ => {}
        }
    }

    fn finish(&mut self) -> bool {
        let entry = std::mem::take(&mut self.entry);
        // An identifier counts as a URL only if it is absolute.
        let guid = entry.guid.filter(|_| entry.guid_is_link);
        let guid = guid.and_then(|guid| CanonicalUrl::parse(&guid).ok());
        let url = self.join(entry.original).or_else(|| self.join(entry.link)).or(guid);
        self.entry_base = None;
        self.feed.push(url, entry.updated_s.or(entry.published_s))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(body: &[u8]) -> Feed {
        feed(&CanonicalUrl::parse("http://example.com/blog/feed").unwrap(), None, body)
    }

    fn shown(feed: &Feed) -> Vec<(&str, Option<i64>)> {
        feed.entries.iter().map(|entry| (entry.url.path_and_query(), entry.modified_s)).collect()
    }

    const MARCH: i64 = 1_709_251_200;

    #[test]
    fn rss_2_is_read() {
        let feed = read(
            b"<?xml version='1.0'?><rss version='2.0'><channel><title>T</title>\
              <atom:link rel='self' href='http://example.com/blog/feed'/>\
              <atom:link rel='hub' href='http://hub.example/'/>\
              <link>http://example.com/blog/</link>\
              <image><link>http://example.com/</link></image>\
              <item><title>a & b</title><link>http://example.com/a?x&amp;y</link>\
                <guid isPermaLink='false'>tag:1</guid>\
                <pubDate>Fri, 01 Mar 2024 00:00:00 +0000</pubDate>\
                <media:content url='x'/><description><![CDATA[<link>no</link>]]></description></item>\
              <item><guid>http://example.com/b</guid><dc:date>2024-03-01</dc:date></item>\
              <item><link>http://feeds.example/c</link>\
                <feedburner:origLink>http://example.com/c</feedburner:origLink></item>\
              <item><title>no link</title><guid>tag:2</guid></item>\
              </channel></rss>",
        );
        assert_eq!(shown(&feed), [("/a?x&y", Some(MARCH)), ("/b", Some(MARCH)), ("/c", None)]);
        assert_eq!(feed.home.unwrap().as_str(), "http://example.com/blog/");
        assert_eq!(feed.hub.unwrap().as_str(), "http://hub.example/");
        assert_eq!((feed.refused, feed.truncated), (1, false));
    }

    #[test]
    fn rss_1_and_older_are_read() {
        let feed = read(
            b"<rdf:RDF xmlns='http://purl.org/rss/1.0/'><channel><link>http://example.com/</link>\
              </channel><item rdf:about='http://example.com/a'><link>http://example.com/a</link>\
              <dc:date>2024-03-01T00:00:00Z</dc:date></item>\
              <item rdf:about='http://example.com/b'/></rdf:RDF>",
        );
        assert_eq!(shown(&feed), [("/a", Some(MARCH)), ("/b", None)]);
        let feed =
            read(b"<rss version='0.91'><channel><item><link>\n/rel </link></item></channel></rss>");
        assert_eq!(shown(&feed), [("/rel", None)]);
    }

    #[test]
    fn atom_is_read_with_its_bases() {
        let feed = read(
            b"<feed xmlns='http://www.w3.org/2005/Atom' xml:base='http://example.com/x/'>\
              <link href='/'/><link rel='next' href='page2'/><updated>2000-01-01</updated>\
              <entry><link rel='self' href='no'/><link href='a'/><id>http://example.com/id</id>\
                <published>2000-01-01</published><updated>2024-03-01T00:00:00Z</updated>\
                <source><link href='no'/><updated>2001-01-01</updated></source></entry>\
              <entry xml:base='y/'><link rel='alternate' href='b'/>\
                <published>2024-03-01</published></entry></feed>",
        );
        assert_eq!(shown(&feed), [("/x/a", Some(MARCH)), ("/x/y/b", Some(MARCH))]);
        assert_eq!(feed.home.unwrap().path(), "/");
        assert_eq!(feed.next.unwrap().path(), "/x/page2");
    }

    #[test]
    fn an_atom_entry_without_a_link_is_announced_by_its_id() {
        let feed = read(
            b"<feed><entry><id>http://example.com/a</id><link rel='self' href='/api/a'/></entry>\
              <entry><id>tag:example.com,2024:b</id></entry>\
              <entry><id>http://example.com/id</id><link href='/c'/></entry>\
              <entry><id>http://example.com/id2</id>\
              <link rel='http://www.iana.org/assignments/relation/alternate' href='/d'/></entry>\
              <entry><link rel='Alternate' href='/e'/></entry></feed>",
        );
        assert_eq!(shown(&feed), [("/a", None), ("/c", None), ("/d", None), ("/e", None)]);
        assert_eq!(feed.refused, 1);
    }

    #[test]
    fn a_feed_in_a_legacy_charset_is_read() {
        let mut body =
            b"<?xml version='1.0' encoding='EUC-JP'?><rss><channel><item><title>".to_vec();
        body.extend_from_slice(b"\xc7\xaf\xce\xd8</title><link>http://example.com/\xc7\xaf</link>");
        body.extend_from_slice(b"</item></channel></rss>");
        assert_eq!(shown(&read(&body)), [("/%E5%B9%B4", None)]);
    }

    #[test]
    fn a_broken_feed_gives_what_it_has() {
        let feed = read(
            b"<rss><channel><item><link>http://example.com/a</link></item><item><link>http://",
        );
        assert_eq!(shown(&feed), [("/a", None)]);
        let feed =
            read(b"<rss><channel><item><link>/a</link></b></item><item><link>/b</link></item>");
        assert!(!feed.entries.is_empty());
        assert!(read(b"<html><a href=x></html>").entries.is_empty());
    }

    proptest! {
        #[test]
        fn any_bytes_never_panic(body in prop::collection::vec(any::<u8>(), 0..300)) {
            read(&body);
        }

        #[test]
        fn any_xml_never_panics(body in "(<item>|</item>|<entry|<link|</link>|href='|rel='|'|>|/>|<|&|;|x|\\PC){0,30}") {
            read(format!("<rss><channel>{body}").as_bytes());
        }
    }
}
