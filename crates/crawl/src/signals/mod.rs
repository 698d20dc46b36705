//! What a server's sitemaps and feeds say about its pages, and how far they can be trusted.
//!
//! A sitemap or feed is a page like others, visited and stored on its own schedule. Its content
//! goes into [`Signals`]: each [`Source`] keeps the dates that it claims, and every later visit to
//! a page of the server shows whether a claim was right ([`Signals::seen`]). The [`Trust`] earned
//! that way decides whether a claim moves a page's visit forward ([`Signals::pulls`]).

mod trust;

use std::collections::BTreeMap;

use nenrin_urls::CanonicalUrl;
use serde::{Deserialize, Serialize};

pub use trust::Trust;

use crate::answer::{Announcement, SignalKind};

/// Sources of one server that are remembered; the one read longest ago is forgotten first.
const SOURCES_MAX: usize = 20;
/// Claims of one source that are remembered, the newest dates first. A source that changes more
/// pages than this between two readings is measured on a part of them.
const CLAIMS_MAX: usize = 500;
/// A claimed date may be this far in the future: clocks differ, and dates without a time mean their whole day.
const AHEAD_S: i64 = 86_400;
/// `/sitemap.xml` is looked for again after this long.
const CUSTOM_FRESH_S: i64 = 30 * 86_400;

/// What the sitemaps and feeds of one server say.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Signals {
    /// The sources, by URL.
    pub sources: BTreeMap<CanonicalUrl, Source>,
    /// When `/sitemap.xml` was last looked for.
    pub custom_s: Option<i64>,
}

/// A sitemap or a feed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// Which of both.
    pub kind: SignalKind,
    /// When it was last seen with new content.
    pub read_s: i64,
    /// When it was last visited, with new content or not.
    #[serde(default)]
    pub checked_s: i64,
    /// Pages that it named then.
    pub entries: u32,
    /// Of these, the ones with a date.
    pub dated: u32,
    /// How right its dates were.
    pub trust: Trust,
    /// Page → claimed date, sorted by page.
    claims: Vec<(u64, i64)>,
}

impl Signals {
    /// Whether `/sitemap.xml` should be looked for.
    pub fn custom_is_due(&self, now_s: i64) -> bool {
        self.custom_s.is_none_or(|looked_s| now_s - looked_s >= CUSTOM_FRESH_S)
    }

    /// Whether a URL is known as a sitemap or feed.
    pub fn is_source(&self, url: &CanonicalUrl) -> bool {
        self.sources.contains_key(url)
    }

    /// A robots.txt or an index names a sitemap, which has not been read yet.
    pub fn name(&mut self, url: &CanonicalUrl) {
        if self.sources.len() < SOURCES_MAX && !self.is_source(url) {
            let source = Source {
                kind: SignalKind::Sitemap,
                read_s: 0,
                checked_s: 0,
                entries: 0,
                dated: 0,
                trust: Trust::default(),
                claims: Vec::new(),
            };
            self.sources.insert(url.clone(), source);
        }
    }

    /// Takes in a sitemap or feed with new content.
    pub fn read(
        &mut self,
        now_s: i64,
        source: &CanonicalUrl,
        kind: SignalKind,
        entries: &[Announcement],
    ) {
        if !self.sources.contains_key(source) && self.sources.len() >= SOURCES_MAX {
            let oldest = self.sources.iter().min_by_key(|(_, source)| source.read_s);
            if let Some(oldest) = oldest.map(|(url, _)| url.clone()) {
                self.sources.remove(&oldest);
            }
        }
        let believable =
            |entry: &&Announcement| entry.modified_s.is_some_and(|s| s <= now_s + AHEAD_S);
        let mut claims: Vec<(u64, i64)> = entries
            .iter()
            .filter(believable)
            .map(|entry| (page_key(&entry.url), entry.modified_s.unwrap_or_default()))
            .collect();
        let dated = claims.len() as u32;
        claims.sort_by_key(|&(page, claimed_s)| (std::cmp::Reverse(claimed_s), page));
        claims.truncate(CLAIMS_MAX);
        claims.sort_unstable();
        claims.dedup_by_key(|claim| claim.0);
        let trust = self.sources.get(source).map(|known| known.trust).unwrap_or_default();
        let entries = entries.len() as u32;
        let (read_s, checked_s) = (now_s, now_s);
        let read = Source { kind, read_s, checked_s, entries, dated, trust, claims };
        self.sources.insert(source.clone(), read);
    }

    /// A page that was visited before was seen again, changed or not: every source was right or
    /// wrong about it. A source that was not visited since the page's last visit had no chance to
    /// announce anything, so its silence counts for nothing. Returns whether anything was learnt.
    pub fn seen(
        &mut self,
        now_s: i64,
        url: &CanonicalUrl,
        last_visit_s: i64,
        changed: bool,
    ) -> bool {
        if let Some(source) = self.sources.get_mut(url) {
            source.checked_s = now_s;
            return false;
        }
        if self.sources.is_empty() {
            return false;
        }
        let page = page_key(url);
        for source in self.sources.values_mut().filter(|source| source.dated > 0) {
            match source.claim(page) {
                Some(claimed_s) if claimed_s > last_visit_s => source.trust.count(true, changed),
                Some(_) if source.checked_s <= last_visit_s => {}
                Some(_) => source.trust.count(false, changed),
                None if changed => source.trust.count_undated(),
                None => {}
            }
        }
        true
    }

    /// The date that a believed source claims for a page, if that is after its last visit.
    pub fn pulls(
        &self,
        url: &CanonicalUrl,
        last_visit_s: Option<i64>,
    ) -> Option<(SignalKind, i64)> {
        let page = page_key(url);
        self.sources
            .values()
            .filter(|source| source.trust.is_believed())
            .filter_map(|source| Some((source.kind, source.claim(page)?)))
            .filter(|&(_, claimed_s)| last_visit_s.is_none_or(|last_s| claimed_s > last_s))
            .max_by_key(|&(_, claimed_s)| claimed_s)
    }
}

impl Signals {
    /// What believed sources say of a page since its last visit: that it changed, or that it did not.
    pub fn says(&self, url: &CanonicalUrl, last_visit_s: i64) -> Option<bool> {
        let page = page_key(url);
        let believed = self.sources.values().filter(|source| source.trust.is_believed());
        let claimed_s = believed.filter_map(|source| source.claim(page)).max();
        claimed_s.map(|claimed_s| claimed_s > last_visit_s)
    }
}

impl Source {
    fn claim(&self, page: u64) -> Option<i64> {
        let at = self.claims.binary_search_by_key(&page, |claim| claim.0).ok()?;
        Some(self.claims[at].1)
    }
}

fn page_key(url: &CanonicalUrl) -> u64 {
    let mut first = [0; 8];
    first.copy_from_slice(&blake3::hash(url.as_str().as_bytes()).as_bytes()[..8]);
    // Kept as JSON, whose numbers other programs read with 53 bits.
    u64::from_le_bytes(first) >> 11
}

/// How deep a page counts that only a sitemap names: the top page has depth 1, and every directory
/// adds one.
pub(crate) fn assumed_depth(url: &CanonicalUrl) -> u32 {
    let segments = url.path().split('/').filter(|segment| !segment.is_empty()).count();
    1 + u32::try_from(segments.max(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(path: &str) -> CanonicalUrl {
        CanonicalUrl::parse(&format!("http://e.com{path}")).unwrap()
    }

    fn page(n: u32) -> CanonicalUrl {
        url(&format!("/p{n}"))
    }

    /// A hundred days of forty pages, half of which change every other day; `claim` is what the
    /// sitemap says of a page that last changed at the time given.
    fn learnt(claim: impl Fn(i64, i64) -> Option<i64>) -> Trust {
        let mut signals = Signals::default();
        let changed_s = |n: u32, day: i64| match n % 2 {
            0 => (day - (day + i64::from(n / 2)) % 2) * 86_400,
            _ => 0,
        };
        for day in 1..100 {
            let now_s = day * 86_400 + 3_600;
            let entries: Vec<Announcement> = (0..40)
                .map(|n| Announcement { url: page(n), modified_s: claim(changed_s(n, day), now_s) })
                .collect();
            signals.read(now_s, &url("/sitemap.xml"), SignalKind::Sitemap, &entries);
            for n in 0..40 {
                let last_s = (day - 1) * 86_400 + 7_200;
                signals.seen(now_s, &page(n), last_s, changed_s(n, day) > last_s);
            }
        }
        signals.sources[&url("/sitemap.xml")].trust
    }

    #[test]
    fn an_honest_sitemap_is_believed() {
        let trust = learnt(|changed_s, _| Some(changed_s));
        assert!(trust.is_believed());
        assert_eq!((trust.precision(), trust.recall()), (Some(1.0), Some(1.0)));
    }

    #[test]
    fn now_on_every_entry_earns_nothing() {
        let trust = learnt(|_, now_s| Some(now_s));
        assert!(!trust.is_believed(), "{trust:?}");
        assert!(trust.odds() < 1.1, "{trust:?}");
        assert_eq!(trust.recall(), Some(1.0));
        let today = learnt(|_, now_s| Some(now_s - now_s % 86_400 + 86_399));
        assert!(!today.is_believed(), "{today:?}");
    }

    #[test]
    fn quiet_pages_that_it_does_not_date_make_no_liar_honest() {
        let mut signals = Signals::default();
        for day in 1..60 {
            let now_s = day * 86_400;
            let entry = |n| Announcement { url: page(n), modified_s: Some(now_s) };
            let entries: Vec<_> = (0..10).map(entry).collect();
            signals.read(now_s, &url("/sitemap.xml"), SignalKind::Sitemap, &entries);
            for n in 0..100 {
                signals.seen(now_s, &page(n), now_s - 40_000, n < 5);
            }
            signals.seen(now_s, &page(200), now_s - 40_000, true);
        }
        let trust = signals.sources[&url("/sitemap.xml")].trust;
        assert!(!trust.is_believed() && trust.odds() < 1.1, "{trust:?}");
        assert!((0.8..0.9).contains(&trust.recall().unwrap()), "{trust:?}");
    }

    #[test]
    fn silence_counts_only_if_the_source_could_have_said_something() {
        let mut signals = Signals::default();
        let sitemap = url("/sitemap.xml");
        for day in 1..60 {
            let now_s = day * 86_400;
            let entry = |n| Announcement { url: page(n), modified_s: Some(now_s) };
            let entries: Vec<_> = (0..10).map(entry).collect();
            signals.read(now_s, &sitemap, SignalKind::Sitemap, &entries);
            for n in 0..10 {
                signals.seen(now_s + 60, &page(n), now_s - 80_000, n < 4);
                // Another site visits the same page just after.
                signals.seen(now_s + 120, &page(n), now_s + 60, false);
            }
        }
        let trust = signals.sources[&sitemap].trust;
        assert!(trust.silent == 0 && !trust.is_believed(), "{trust:?}");
        // A sitemap that is the same as before said that nothing changed.
        signals.seen(61 * 86_400, &sitemap, 59 * 86_400, false);
        signals.seen(61 * 86_400 + 60, &page(1), 60 * 86_400, false);
        assert_eq!(signals.sources[&sitemap].trust.silent, 1);
    }

    #[test]
    fn dates_that_never_move_earn_nothing() {
        assert!(!learnt(|_, _| Some(5)).is_believed());
        assert!(!learnt(|_, _| None).is_believed());
    }

    #[test]
    fn a_believed_source_pulls_only_what_changed_after_the_last_visit() {
        let mut signals = Signals::default();
        let entry = |n, modified_s| Announcement { url: page(n), modified_s: Some(modified_s) };
        signals.read(1_000, &url("/f"), SignalKind::Feed, &[entry(1, 900), entry(2, 500)]);
        assert_eq!(signals.pulls(&page(1), Some(600)), None);
        for _ in 0..20 {
            signals.seen(1_000, &page(1), 600, true);
            signals.seen(1_000, &page(2), 600, false);
        }
        assert_eq!(signals.pulls(&page(1), Some(600)), Some((SignalKind::Feed, 900)));
        assert_eq!(signals.pulls(&page(2), Some(600)), None);
        assert_eq!(signals.pulls(&page(3), None), None);
    }

    #[test]
    fn memory_is_bounded_and_survives_being_written_down() {
        let mut signals = Signals::default();
        for source in 0..50 {
            let entries: Vec<Announcement> = (0..2_000)
                .map(|n| Announcement { url: page(n), modified_s: Some(i64::from(n)) })
                .collect();
            let at = url(&format!("/s{source}.xml"));
            signals.read(10_000 + source, &at, SignalKind::Sitemap, &entries);
        }
        assert_eq!(signals.sources.len(), SOURCES_MAX);
        let newest = &signals.sources[&url("/s49.xml")];
        assert_eq!((newest.claims.len(), newest.entries), (CLAIMS_MAX, 2_000));
        assert!(newest.claim(page_key(&page(1_999))).is_some());
        let text = serde_json::to_string(&signals).unwrap();
        assert_eq!(serde_json::from_str::<Signals>(&text).unwrap(), signals);
    }

    #[test]
    fn dates_in_the_future_are_not_believed() {
        let mut signals = Signals::default();
        let entry = Announcement { url: page(1), modified_s: Some(1_000_000) };
        signals.read(1_000, &url("/f"), SignalKind::Feed, &[entry]);
        assert_eq!(signals.sources[&url("/f")].dated, 0);
    }

    #[test]
    fn the_depth_of_a_page_that_only_a_sitemap_names_is_that_of_its_directories() {
        assert_eq!(assumed_depth(&url("/")), 2);
        assert_eq!(assumed_depth(&url("/a.html")), 2);
        assert_eq!(assumed_depth(&url("/a/b/c.html")), 4);
    }
}
