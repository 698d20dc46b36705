//! Links without end, which a crawler would follow for ever, and how many of them a server may
//! have.
//!
//! A link is checked before its page becomes known ([`Traps::check`]); pages that became known are
//! counted ([`Traps::met`]), so that what is bounded is bounded by pages that exist in the archive.
//! Nothing is dropped silently: every link that is not followed is counted by its [`Trap`].

mod dates;
mod shape;

use std::collections::{BTreeMap, BTreeSet};

use nenrin_urls::CanonicalUrl;
use serde::{Deserialize, Serialize};

use dates::url_date;
pub(crate) use shape::without_session;
use shape::{arguments, directory_key, has_repetition, name_set_key, path_key, sorted_key};

/// Browsers and servers agree on about this much; what is longer was put together by a loop.
const URL_BYTES_MAX: usize = 2_000;
/// Directories below each other (Heritrix has 20 as well).
const SEGMENTS_MAX: usize = 20;
/// Different sets of parameter names of one path: a form with a few switches has a dozen.
const NAME_SETS_MAX: usize = 24;
/// Pages of one path with this many parameters or more are bounded, by the number below.
const SOME_ARGUMENTS: usize = 3;
const SOME_ARGUMENTS_PAGES_MAX: u32 = 20_000;
const MANY_ARGUMENTS: usize = 4;
const MANY_ARGUMENTS_PAGES_MAX: u32 = 2_000;
/// Pages of one path that differ by a date in the query: a calendar of eight years by day.
const DATED_QUERIES_MAX: u32 = 3_000;
/// Dates later than this from now are the far future.
const FUTURE_S: i64 = 2 * 365 * 86_400;
/// Pages of one directory with a date in the far future, and with one before 1970.
const FUTURE_PAGES_MAX: u32 = 24;
const PAST_PAGES_MAX: u32 = 600;
/// Pages of a server that may wait for their first visit before sitemaps add no more: some days of
/// visits at a polite pace.
const LISTED_WAITING_MAX: u64 = 200_000;
/// The same for links, once many pages were tried.
const WAITING_MAX: u64 = 1_000_000;
/// Links of a server of which little was seen yet: those of one very long page, and so many more for
/// each page that was tried. A few pages cannot make a million known.
const WAITING_AT_FIRST: u64 = 50_000;
const WAITING_PER_TRIED: u64 = 1_000;
/// A first version that takes no more than this in the store brought almost nothing new: its record
/// takes about half of it.
const LITTLE_BYTES: u64 = 512;
/// About what a link that no page had before takes of that. It says nothing by itself: a farm has new
/// links on every page.
const LINK_BYTES: u64 = 24;
/// Links that are remembered, to see which are new.
const LINKS_MAX: usize = 16_384;
/// So many pages of one path or directory are tried before they are judged, if their bodies are
/// those of other pages, and if they bring almost nothing; of a whole server ten times as many.
const SAME_FROM: u64 = 300;
const LITTLE_FROM: u64 = 10_000;
const SERVER_TIMES: u64 = 10;
/// If of so many pages all but one brought nothing, no more of their kind are followed.
const PAGES_PER_NEW: u64 = 20;
/// Paths and directories counted for one server; the least are forgotten first.
const COUNTED_MAX: usize = 256;
/// Orders of parameters remembered.
const ORDERS_MAX: usize = 4_096;

/// Why a link is not followed, or not as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trap {
    /// The URL is too long.
    LongUrl,
    /// Too many directories below each other.
    DeepPath,
    /// Directories repeat (`/a/b/a/b/a/b`).
    RepeatedSegments,
    /// Too many combinations of parameters of one path, or one that is known in another order.
    QueryCombinations,
    /// A calendar that runs into the far future or past.
    Calendar,
    /// A session id: the page is taken without it.
    SessionId,
    /// A sitemap index inside another.
    NestedIndex,
    /// More sitemaps than are visited of one index.
    ManySitemaps,
    /// More pages wait for their first visit than are entered.
    Backlog,
    /// Frames or other parts inside each other without end.
    DeepParts,
    /// Pages of this path, directory or server brought nothing new again and again.
    NothingNew,
}

impl Trap {
    /// The reason in words.
    pub fn text(self) -> &'static str {
        match self {
            Self::LongUrl => "longer than 2000 bytes",
            Self::DeepPath => "more than 20 directories deep",
            Self::RepeatedSegments => "directories that repeat",
            Self::QueryCombinations => "too many combinations of parameters",
            Self::Calendar => "a calendar without end",
            Self::SessionId => "session ids, left out of the URL",
            Self::NestedIndex => "a sitemap index inside another",
            Self::ManySitemaps => "more than 1000 sitemaps in one index",
            Self::Backlog => "too many pages of this server wait for their first visit",
            Self::DeepParts => "frames or styles more than 6 deep",
            Self::NothingNew => "pages like it brought nothing new 19 times out of 20",
        }
    }
}

/// How often a reason was met.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrapCount {
    /// Links, each time they were seen.
    pub links: u64,
    /// The last of them.
    pub example: String,
    /// When it was.
    pub last_s: i64,
}

/// What is counted of one path or directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Counted {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    name_sets: Vec<u32>,
    some_arguments: u32,
    many_arguments: u32,
    dated: u32,
    future: u32,
    past: u32,
    brought: Brought,
}

impl Counted {
    fn weight(&self) -> u32 {
        let queries = self.name_sets.len() as u32 + self.some_arguments;
        queries + self.dated + self.future + self.past + self.brought.same as u32
    }
}

/// What first versions brought.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Brought {
    versions: u64,
    /// Those with the body of another page.
    same: u64,
    /// Those that brought almost nothing, these included.
    little: u64,
}

impl Brought {
    fn count(&mut self, stored_bytes: u64, is_known: bool) {
        self.versions += 1;
        self.same += u64::from(is_known);
        self.little += u64::from(is_known || stored_bytes <= LITTLE_BYTES);
    }

    /// Whether almost all of enough versions brought nothing.
    fn is_nothing(&self, times: u64) -> bool {
        let all = |few: u64, from: u64| {
            self.versions >= from * times && (self.versions - few) * PAGES_PER_NEW <= self.versions
        };
        all(self.same, SAME_FROM) || all(self.little, LITTLE_FROM)
    }
}

/// The traps of one server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Traps {
    /// Links not followed, by reason.
    pub refused: BTreeMap<Trap, TrapCount>,
    counted: BTreeMap<u64, Counted>,
    /// Pages that became known, and those of them that were visited.
    known: u64,
    tried: u64,
    brought: Brought,
    /// Parameters in some order → the order that is known. It only saves work, so it is not stored.
    #[serde(skip)]
    orders: BTreeMap<u64, u64>,
    /// Links that pages had lately; it is not stored either.
    #[serde(skip)]
    links: BTreeSet<u64>,
}

impl Traps {
    /// Whether a link may be followed.
    pub fn check(&self, url: &CanonicalUrl, now_s: i64) -> Result<(), Trap> {
        if url.as_str().len() > URL_BYTES_MAX {
            return Err(Trap::LongUrl);
        }
        let segments: Vec<&str> = url.path().split('/').filter(|s| !s.is_empty()).collect();
        if segments.len() > SEGMENTS_MAX {
            return Err(Trap::DeepPath);
        }
        if has_repetition(&segments) {
            return Err(Trap::RepeatedSegments);
        }
        self.check_query(url)?;
        self.check_date(url, now_s)?;
        self.check_worth(url)
    }

    fn check_worth(&self, url: &CanonicalUrl) -> Result<(), Trap> {
        let kind = self.counted.get(&kind_key(url)).is_some_and(|kind| kind.brought.is_nothing(1));
        if kind || self.brought.is_nothing(SERVER_TIMES) { Err(Trap::NothingNew) } else { Ok(()) }
    }

    /// How many more pages of the server may become known now.
    pub fn room(&self, is_sitemap: bool) -> u64 {
        let most = match is_sitemap {
            true => LISTED_WAITING_MAX,
            false => WAITING_MAX.min(WAITING_AT_FIRST + WAITING_PER_TRIED * self.tried),
        };
        most.saturating_sub(self.known.saturating_sub(self.tried))
    }

    /// Counts a first visit.
    pub fn tried(&mut self) {
        self.tried += 1;
    }

    /// Counts a first version by what it took in the store beside new links, and whether its body
    /// was known.
    pub fn brought<'l>(
        &mut self,
        url: &CanonicalUrl,
        (stored_bytes, is_known): (u64, bool),
        links: impl ExactSizeIterator<Item = &'l CanonicalUrl>,
    ) {
        let most_bytes = LITTLE_BYTES + LINK_BYTES * links.len() as u64;
        let is_unclear = !is_known && (LITTLE_BYTES + 1..=most_bytes).contains(&stored_bytes);
        let new_links = if is_unclear { self.new_links(links) } else { 0 };
        let own_bytes = stored_bytes.saturating_sub(LINK_BYTES * new_links);
        self.brought.count(own_bytes, is_known);
        self.counted(kind_key(url)).brought.count(own_bytes, is_known);
    }

    /// How many of these links no page had lately.
    fn new_links<'l>(&mut self, links: impl Iterator<Item = &'l CanonicalUrl>) -> u64 {
        if self.links.len() >= LINKS_MAX {
            self.links.clear();
        }
        links.filter(|link| self.links.insert(shape::exact_key(link))).count() as u64
    }

    fn check_query(&self, url: &CanonicalUrl) -> Result<(), Trap> {
        let arguments = arguments(url);
        if arguments.is_empty() {
            return Ok(());
        }
        let known_order = self.orders.get(&sorted_key(url, &arguments));
        if known_order.is_some_and(|&order| order != shape::exact_key(url)) {
            return Err(Trap::QueryCombinations);
        }
        let Some(counted) = self.counted.get(&path_key(url)) else { return Ok(()) };
        let new_names = !counted.name_sets.contains(&name_set_key(&arguments));
        let full = new_names && counted.name_sets.len() >= NAME_SETS_MAX
            || arguments.len() >= MANY_ARGUMENTS
                && counted.many_arguments >= MANY_ARGUMENTS_PAGES_MAX
            || arguments.len() >= SOME_ARGUMENTS
                && counted.some_arguments >= SOME_ARGUMENTS_PAGES_MAX;
        if full { Err(Trap::QueryCombinations) } else { Ok(()) }
    }

    fn check_date(&self, url: &CanonicalUrl, now_s: i64) -> Result<(), Trap> {
        let Some(date) = url_date(url) else { return Ok(()) };
        let by_path = self.counted.get(&path_key(url));
        if date.in_query && by_path.is_some_and(|counted| counted.dated >= DATED_QUERIES_MAX) {
            return Err(Trap::Calendar);
        }
        let Some(counted) = self.counted.get(&directory_key(url)) else { return Ok(()) };
        let endless = date.at_s > now_s + FUTURE_S && counted.future >= FUTURE_PAGES_MAX
            || date.at_s < 0 && counted.past >= PAST_PAGES_MAX;
        if endless { Err(Trap::Calendar) } else { Ok(()) }
    }

    /// Counts a link that was not followed, or not as written.
    pub fn refuse(&mut self, trap: Trap, url: &CanonicalUrl, now_s: i64) -> u64 {
        let count = self.refused.entry(trap).or_default();
        count.links += 1;
        count.last_s = now_s;
        count.example.clear();
        count.example.extend(url.as_str().chars().take(300));
        count.links
    }

    /// Counts a page that became known.
    pub fn met(&mut self, url: &CanonicalUrl, now_s: i64) {
        self.known += 1;
        let arguments = arguments(url);
        let date = url_date(url);
        if !arguments.is_empty() {
            if self.orders.len() >= ORDERS_MAX {
                self.orders.clear();
            }
            self.orders.entry(sorted_key(url, &arguments)).or_insert(shape::exact_key(url));
            let names = name_set_key(&arguments);
            let counted = self.counted(path_key(url));
            if !counted.name_sets.contains(&names) && counted.name_sets.len() < NAME_SETS_MAX {
                counted.name_sets.push(names);
            }
            counted.some_arguments += u32::from(arguments.len() >= SOME_ARGUMENTS);
            counted.many_arguments += u32::from(arguments.len() >= MANY_ARGUMENTS);
            counted.dated += u32::from(date.is_some_and(|date| date.in_query));
        }
        let far = date.filter(|date| date.at_s > now_s + FUTURE_S || date.at_s < 0);
        if let Some(date) = far {
            let counted = self.counted(directory_key(url));
            counted.future += u32::from(date.at_s >= 0);
            counted.past += u32::from(date.at_s < 0);
        }
    }

    fn counted(&mut self, key: u64) -> &mut Counted {
        if self.counted.len() >= COUNTED_MAX && !self.counted.contains_key(&key) {
            let least = self.counted.iter().min_by_key(|(_, counted)| counted.weight());
            if let Some(least) = least.map(|(&key, _)| key) {
                self.counted.remove(&least);
            }
        }
        self.counted.entry(key).or_default()
    }
}

/// Pages of one kind: of one path where it has parameters, else of one directory.
fn kind_key(url: &CanonicalUrl) -> u64 {
    if arguments(url).is_empty() { directory_key(url) } else { path_key(url) }
}

#[cfg(test)]
mod tests;
