use nenrin_urls::CanonicalUrl;

use super::feed::{self, looks_like_feed};
use super::xml_tree::{Visitor, walk};
use super::{MAX_ENTRIES, MAX_ENTRIES_BYTES, MAX_SITEMAP_BYTES};
use crate::charset::charset;
use crate::dates::parse_date;
use crate::decoding::gunzip_file;

/// A page, or another sitemap, that a sitemap lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SitemapEntry {
    /// Its URL.
    pub url: CanonicalUrl,
    /// When it last changed according to the sitemap, in seconds since the epoch.
    pub modified_s: Option<i64>,
}

/// What a sitemap lists.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sitemap {
    /// The pages listed.
    pub entries: Vec<SitemapEntry>,
    /// Further sitemaps, from an index.
    pub sitemaps: Vec<SitemapEntry>,
    /// Entries with a URL that cannot be archived.
    pub refused: u32,
    /// A limit was reached or the sitemap is damaged: there may be more.
    pub truncated: bool,
    entries_bytes: usize,
}

impl Sitemap {
    fn is_full(&self) -> bool {
        self.entries.len() + self.sitemaps.len() >= MAX_ENTRIES
            || self.entries_bytes >= MAX_ENTRIES_BYTES
    }

    fn push(&mut self, is_sitemap: bool, url: CanonicalUrl, modified_s: Option<i64>) {
        self.entries_bytes += url.as_str().len();
        let list = if is_sitemap { &mut self.sitemaps } else { &mut self.entries };
        list.push(SitemapEntry { url, modified_s });
    }
}

/// Reads a sitemap: XML or an index of such, RSS, Atom, or text with a URL per line; gzipped or
/// not, in any namespace. Any other body (an error page) lists nothing.
pub fn sitemap(url: &CanonicalUrl, body: &[u8]) -> Sitemap {
    let (bytes, complete) = gunzip_file(body, MAX_SITEMAP_BYTES);
    let (text, _, _) = charset(None, &bytes).decode(&bytes);
    let mut sitemap = if looks_like_feed(&text) {
        of_feed(url, &bytes)
    } else if text.trim_start().starts_with('<') {
        of_xml(url, &text)
    } else {
        // The last line of a file that was cut is part of a URL.
        let whole = if complete { text.len() } else { text.rfind('\n').map_or(0, |end| end + 1) };
        of_text(url, &text[..whole])
    };
    sitemap.truncated |= !complete;
    sitemap
}

fn of_feed(url: &CanonicalUrl, body: &[u8]) -> Sitemap {
    let feed = feed::feed(url, None, body);
    let entry =
        |entry: feed::FeedEntry| SitemapEntry { url: entry.url, modified_s: entry.modified_s };
    Sitemap {
        entries: feed.entries.into_iter().map(entry).collect(),
        refused: feed.refused,
        truncated: feed.truncated,
        ..Sitemap::default()
    }
}

fn of_text(url: &CanonicalUrl, text: &str) -> Sitemap {
    let mut sitemap = Sitemap::default();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if sitemap.is_full() {
            sitemap.truncated = true;
            break;
        }
        // Only absolute URLs: a text that is not a sitemap must not become a list of pages.
        match CanonicalUrl::parse(line) {
            Ok(entry) if entry != *url => sitemap.push(false, entry, None),
            Ok(_) => {}
            Err(_) => sitemap.refused = sitemap.refused.saturating_add(1),
        }
    }
    sitemap
}

fn of_xml(url: &CanonicalUrl, xml: &str) -> Sitemap {
    let mut reader = SitemapReader { url, sitemap: Sitemap::default(), entry: RawEntry::default() };
    let complete = walk(xml, &mut reader);
    reader.sitemap.truncated |= !complete;
    reader.sitemap
}

#[derive(Default)]
struct RawEntry {
    location: Option<String>,
    modified_s: Option<i64>,
}

struct SitemapReader<'u> {
    url: &'u CanonicalUrl,
    sitemap: Sitemap,
    entry: RawEntry,
}

impl Visitor for SitemapReader<'_> {
    fn close(&mut self, parent: &str, name: &str, text: &str) -> bool {
        match (parent, name) {
            // An image's own `loc` has another parent.
            ("url" | "sitemap", "loc") => self.entry.location = Some(text.to_owned()),
            ("url" | "sitemap", "lastmod") => self.entry.modified_s = parse_date(text),
            ("news", "publication_date") => {
                self.entry.modified_s = self.entry.modified_s.or_else(|| parse_date(text));
            }
            (_, "url") => return self.finish(false, text),
            (_, "sitemap") => return self.finish(true, text),
            _ => {}
        }
        true
    }
}

impl SitemapReader<'_> {
    /// Other languages that an entry names (`xhtml:link`) are entries of their own by the protocol;
    /// taken from here they would appear once for every language.
    fn finish(&mut self, is_sitemap: bool, text: &str) -> bool {
        let entry = std::mem::take(&mut self.entry);
        // Some write the URL without `loc` around it.
        let bare = || CanonicalUrl::parse(text).is_ok().then(|| text.to_owned());
        let Some(location) = entry.location.or_else(bare) else { return true };
        if self.sitemap.is_full() {
            self.sitemap.truncated = true;
            return false;
        }
        match self.url.join(&location) {
            Ok(url) if url == *self.url => {}
            Ok(url) => self.sitemap.push(is_sitemap, url, entry.modified_s),
            Err(_) => self.sitemap.refused = self.sitemap.refused.saturating_add(1),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    fn read(body: &[u8]) -> Sitemap {
        sitemap(&CanonicalUrl::parse("http://example.com/sitemap.xml").unwrap(), body)
    }

    fn shown(entries: &[SitemapEntry]) -> Vec<(&str, Option<i64>)> {
        entries.iter().map(|entry| (entry.url.path_and_query(), entry.modified_s)).collect()
    }

    fn gzip(data: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    const URLSET: &str = "\u{feff}<?xml version='1.0' encoding='UTF-8'?>\
        <sm:urlset xmlns:sm='http://example.com/wrong/namespace'>\
        <sm:url><sm:loc> http://example.com/a?x=1&amp;y=2 </sm:loc>\
          <sm:lastmod>2024-03-01</sm:lastmod><sm:changefreq>daily</sm:changefreq>\
          <image:image><image:loc>http://example.com/i.png</image:loc></image:image></sm:url>\
        <sm:url><sm:loc><![CDATA[http://example.com/b]]></sm:loc><sm:lastmod>x</sm:lastmod>\
          <xhtml:link rel='alternate' hreflang='fr' href='http://example.com/fr/b'/></sm:url>\
        <sm:url><sm:loc>ftp://example.com/c</sm:loc></sm:url>\
        <sm:url><sm:loc>/relative</sm:loc><news:news><news:publication_date>2024-03-01T00:00:01Z\
          </news:publication_date></news:news></sm:url>\
        </sm:urlset>";

    #[test]
    fn pages_are_listed_with_their_dates_in_any_namespace() {
        for body in [URLSET.as_bytes().to_vec(), gzip(URLSET.as_bytes())] {
            let sitemap = read(&body);
            assert_eq!(
                shown(&sitemap.entries),
                [
                    ("/a?x=1&y=2", Some(1_709_251_200)),
                    ("/b", None),
                    ("/relative", Some(1_709_251_201))
                ]
            );
            assert_eq!((sitemap.refused, sitemap.truncated), (1, false));
        }
    }

    #[test]
    fn an_index_lists_sitemaps() {
        let sitemap = read(
            b"<sitemapindex><sitemap><loc>http://example.com/s1.xml.gz</loc>\
              <lastmod>2024-03-01</lastmod></sitemap><sitemap><loc>/s2.xml</loc></sitemap>\
              </sitemapindex>",
        );
        assert_eq!(
            shown(&sitemap.sitemaps),
            [("/s1.xml.gz", Some(1_709_251_200)), ("/s2.xml", None)]
        );
        assert!(sitemap.entries.is_empty());
    }

    #[test]
    fn an_entry_without_loc_is_read_where_it_is_a_url() {
        let sitemap = read(
            b"<sitemapindex><sitemap>http://example.com/s1.xml<lastmod>2024-03-01</lastmod></sitemap>\
              <sitemap>nothing</sitemap><sitemap> http://example.com/s2.xml </sitemap></sitemapindex>",
        );
        assert_eq!(shown(&sitemap.sitemaps), [("/s1.xml", Some(1_709_251_200)), ("/s2.xml", None)]);
        let sitemap = read(b"<urlset><url>http://example.com/a</url><url>/b</url></urlset>");
        assert_eq!(shown(&sitemap.entries), [("/a", None)]);
    }

    #[test]
    fn a_file_that_was_cut_keeps_its_complete_entries_and_no_others() {
        let entries: Vec<String> = (100..400).map(|n| format!("http://example.com/{n}")).collect();
        let of_xml = |url: &String| format!("<url><loc>{url}</loc></url>");
        let xml = format!("<urlset>{}</urlset>", entries.iter().map(of_xml).collect::<String>());
        let text: String = entries.iter().map(|url| format!("{url}\n")).collect();
        for whole in [xml.as_bytes(), text.as_bytes()] {
            let gz = gzip(whole);
            for cut in [gz.len() / 3, gz.len() / 2, gz.len() - 9] {
                let sitemap = read(&gz[..cut]);
                let found: Vec<&str> =
                    sitemap.entries.iter().map(|entry| entry.url.as_str()).collect();
                assert_eq!(found, entries[..found.len()], "{cut}");
                assert!(sitemap.truncated);
            }
        }
        let found = read(&xml.as_bytes()[..xml.len() / 2]);
        assert!(found.entries.len() > 100 && found.entries.len() < 200);
    }

    #[test]
    fn text_and_feeds_are_sitemaps_too() {
        let sitemap = read(b"http://example.com/a\r\n\r\n  http://example.com/b\nnot a url\n");
        assert_eq!(shown(&sitemap.entries), [("/a", None), ("/b", None)]);
        assert_eq!(sitemap.refused, 1);
        let sitemap = read(
            b"<rss><channel><item><link>http://example.com/n</link>\
              <pubDate>Fri, 01 Mar 2024 00:00:00 GMT</pubDate></item></channel></rss>",
        );
        assert_eq!(shown(&sitemap.entries), [("/n", Some(1_709_251_200))]);
    }

    #[test]
    fn a_damaged_sitemap_gives_what_it_has() {
        let cut = &URLSET.as_bytes()[..420];
        let sitemap = read(cut);
        assert_eq!(shown(&sitemap.entries), [("/a?x=1&y=2", Some(1_709_251_200))]);
        let many: String = (0..5000).map(|n| format!("http://example.com/{n}\n")).collect();
        let gz = gzip(many.as_bytes());
        let sitemap = read(&gz[..gz.len() / 2]);
        assert!(sitemap.truncated && sitemap.entries.len() > 100, "{}", sitemap.entries.len());
    }

    #[test]
    fn an_error_page_lists_nothing() {
        let sitemap = read(b"<!doctype html><title>Not found</title><a href=/x>home</a>");
        assert!(sitemap.entries.is_empty() && sitemap.sitemaps.is_empty());
        assert!(read(b"Not found").entries.is_empty());
        assert!(read(b"").entries.is_empty());
    }

    #[test]
    fn entities_of_the_document_are_never_expanded() {
        let sitemap = read(
            b"<!DOCTYPE x [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;'>\
              <!ENTITY f SYSTEM 'file:///etc/passwd'>]>\
              <urlset><url><loc>http://example.com/&b;&f;</loc></url></urlset>",
        );
        assert_eq!(shown(&sitemap.entries), [("/&b;&f;", None)]);
    }

    #[test]
    fn the_number_of_entries_is_bounded() {
        let long = "x".repeat(3_000);
        let many: String = (0..8_000)
            .map(|n| format!("<url><loc>http://example.com/{long}{n}</loc></url>"))
            .collect();
        let sitemap = read(format!("<urlset>{many}</urlset>").as_bytes());
        let bytes: usize = sitemap.entries.iter().map(|entry| entry.url.as_str().len()).sum();
        assert!(sitemap.truncated && bytes < MAX_ENTRIES_BYTES + 4_000, "{bytes}");
        let many: String = (0..MAX_ENTRIES + 10)
            .map(|n| format!("<url><loc>http://example.com/{n}</loc></url>"))
            .collect();
        let sitemap = read(format!("<urlset>{many}</urlset>").as_bytes());
        assert_eq!((sitemap.entries.len(), sitemap.truncated), (MAX_ENTRIES, true));
    }

    #[test]
    fn a_bomb_ends_at_the_limit() {
        let bomb = gzip(&vec![b' '; MAX_SITEMAP_BYTES + 1000]);
        let sitemap = read(&bomb);
        assert!(sitemap.truncated && sitemap.entries.is_empty());
    }

    proptest! {
        #[test]
        fn any_bytes_never_panic(body in prop::collection::vec(any::<u8>(), 0..300)) {
            read(&body);
        }

        #[test]
        fn any_xml_never_panics(body in "(<url>|</url>|<loc>|</loc>|<|>|/|<!\\[CDATA\\[|\\]\\]>|&|;|http://|x|<!DOCTYPE|<\\?|\\PC){0,30}") {
            read(body.as_bytes());
            read(format!("<urlset>{body}").as_bytes());
        }
    }
}
