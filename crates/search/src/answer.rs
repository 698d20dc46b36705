//! Pages that answer a query, as people and programs get them.

use std::{
    os::unix::fs::MetadataExt,
    sync::{Arc, Mutex, PoisonError},
};

use nenrin_archive::{Archive, readable_date, rfc3339, sites};
use nenrin_state::{Site, SiteId, VersionRow, VisitFilter};
use nenrin_urls::{CanonicalUrl, RenderedRecord};
use serde_json::{Value, json};

use crate::{
    Query, SearchError,
    blame::{Blame, blame},
    history::{STILL, Slot, Span},
    index::{self, Found, Index, Order, Wanted},
    reading,
    snippet::{Piece, snippet},
};

/// The most pages in one answer.
const MAX_LIMIT: usize = 1_000;

/// Which of the pages found are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// In which order.
    pub order: Order,
    /// Leave out so many.
    pub skip: usize,
    /// At most so many, and not more than 1,000.
    pub limit: usize,
}

/// Pages that answer a query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// The pages.
    pub pages: Vec<SearchResult>,
    /// Whether there are more.
    pub has_more: bool,
}

/// A page that answers a query.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchResult {
    /// Its address.
    pub url: CanonicalUrl,
    /// Its title then, if it had one.
    pub title: Option<String>,
    /// Its site.
    pub site: SiteId,
    /// The name of its site.
    pub site_name: String,
    /// Its kind: html, text, feed, data, pdf.
    pub kind: &'static str,
    /// The code of its language; empty if it is unknown.
    pub language: &'static str,
    /// When it answered the query first: the version of this time is the first that does.
    pub from_s: i64,
    /// When the version before that was received; none if the page had none.
    pub before_s: Option<i64>,
    /// When it ended, if it did: the time of the first version that does not, or when the page was
    /// seen to be gone.
    pub until_s: Option<i64>,
    /// All times at which it answered the query: from, until.
    pub spans: Vec<(i64, Option<i64>)>,
    /// The sentence, as it was then.
    pub snippet: Vec<Piece>,
}

impl SearchResult {
    /// The result for programs.
    pub fn json(&self) -> Value {
        let time = |at_s: Option<i64>| at_s.map(rfc3339);
        let span = |(from_s, until_s): &(i64, Option<i64>)| json!({"from": rfc3339(*from_s), "to": time(*until_s)});
        let (mut text, mut length, mut marks) = (String::new(), 0, Vec::new());
        for piece in &self.snippet {
            let end = length + piece.text.chars().count();
            if piece.is_match {
                marks.push([length, end]);
            }
            text.push_str(&piece.text);
            length = end;
        }
        json!({
            "url": self.url, "title": self.title, "site": self.site, "site_name": self.site_name,
            "kind": self.kind, "lang": self.language, "from": rfc3339(self.from_s),
            "before": time(self.before_s), "to": time(self.until_s),
            "spans": self.spans.iter().map(span).collect::<Vec<_>>(),
            "snippet": text, "marks": marks,
        })
    }

    /// The result as lines for a terminal.
    pub fn text(&self, marks: Marks) -> String {
        let Marks { begin, end } = marks;
        // What the archive says cannot pass for a mark, unless marks are ordinary characters.
        let own = |text: &str| match begin.is_ascii() {
            true => text.to_owned(),
            false => text.replace([begin, end], "\u{fffd}"),
        };
        let until = self.until_s.map_or("still there".to_owned(), readable_date);
        let piece = |piece: &Piece| match piece.is_match {
            true => format!("{begin}{}{end}", own(&piece.text)),
            false => own(&piece.text),
        };
        let snippet: String = self.snippet.iter().map(piece).collect();
        let title = own(self.title.as_deref().unwrap_or("(no title)"));
        format!(
            "{title}\n  {}\n  {} – {until}  ·  {}\n  {snippet}\n",
            self.url.shown(),
            readable_date(self.from_s),
            own(&self.site_name)
        )
    }
}

/// What stands before and after a match in text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marks {
    /// Before it.
    pub begin: char,
    /// After it.
    pub end: char,
}

impl Default for Marks {
    /// Square brackets.
    fn default() -> Self {
        Self { begin: '[', end: ']' }
    }
}

/// How far the index is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Status {
    /// Pages in it.
    pub pages: u64,
    /// Blocks of text in it.
    pub blocks: u64,
    /// Pages gone through so far, while it is being built.
    pub building: Option<u64>,
    /// Visits that it has still to follow.
    pub behind: u64,
}

/// Searches an archive.
pub struct Search {
    archive: Arc<Archive>,
    /// Its partitions; itself if it is in a folder.
    parts: Vec<Part>,
}

/// A partition, and its index if it was opened.
struct Part {
    archive: Arc<Archive>,
    open: Mutex<Option<Opened>>,
}

/// An index, and which file it was opened from: it may be built again meanwhile.
struct Opened {
    index: Arc<Index>,
    file: (u64, u64),
}

impl Part {
    fn index(&self) -> Result<Arc<Index>, SearchError> {
        let folder = index::folder(self.archive.folder());
        let found =
            std::fs::metadata(folder.join(index::RECORDS)).map_err(|_| SearchError::NoIndex)?;
        let file = (found.dev(), found.ino());
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(opened) = open.as_ref().filter(|opened| opened.file == file) {
            return Ok(opened.index.clone());
        }
        let index = Arc::new(Index::open(&folder)?.ok_or(SearchError::NoIndex)?);
        *open = Some(Opened { index: index.clone(), file });
        Ok(index)
    }
}

impl Search {
    /// Nothing is opened yet.
    pub fn new(archive: Arc<Archive>) -> Self {
        let part = |archive| Part { archive, open: Mutex::new(None) };
        let parts = archive.partitions().into_iter().map(part).collect();
        Self { archive, parts }
    }

    /// The indexes of all partitions that have one. Where there is none at all, that is an error.
    fn indexes(&self) -> Result<Vec<(&Archive, Arc<Index>)>, SearchError> {
        let mut found = Vec::new();
        for part in &self.parts {
            match part.index() {
                Ok(index) => found.push((&*part.archive, index)),
                Err(SearchError::NoIndex) => {}
                Err(error) => return Err(error),
            }
        }
        if found.is_empty() { Err(SearchError::NoIndex) } else { Ok(found) }
    }

    /// How far the index is.
    pub fn status(&self) -> Result<Status, SearchError> {
        let indexes = self.indexes()?;
        let is_complete = indexes.len() == self.parts.len();
        let building = if is_complete { None } else { Some(0) };
        let mut status = Status { pages: 0, blocks: 0, building, behind: 0 };
        for (archive, index) in indexes {
            let position = index.position()?;
            let (pages, blocks) = index.counts()?;
            let newest =
                archive.state().visits(VisitFilter { limit: 1, ..VisitFilter::default() })?;
            let newest = newest.first().map_or(0, |visit| visit.id);
            status.pages += pages;
            status.blocks += blocks;
            status.behind += u64::try_from(newest - position.visit).unwrap_or(0);
            if position.walk.is_some() {
                status.building = Some(status.building.unwrap_or(0) + position.walked);
            }
        }
        Ok(status)
    }

    /// The pages that all partitions find, in the order wanted, and whether there are more.
    fn find_all(
        &self,
        query: &Query,
        wanted: &Wanted<'_>,
    ) -> Result<(Vec<Found>, bool), SearchError> {
        let indexes = self.indexes()?;
        if let [(_, index)] = indexes.as_slice() {
            return index.find(query, wanted);
        }
        // Any of the first may be in one partition.
        let end = wanted.skip.saturating_add(wanted.limit);
        let mut all = Vec::new();
        let mut has_more = false;
        for (_, index) in indexes {
            let (found, more) = index.find(query, &Wanted { skip: 0, limit: end, ..*wanted })?;
            all.extend(found);
            has_more |= more;
        }
        wanted.order.sort(&mut all);
        has_more |= all.len() > end;
        Ok((all.into_iter().skip(wanted.skip).take(wanted.limit).collect(), has_more))
    }

    /// The pages that answer a query. Pages of sites that were removed are never among them.
    pub fn answer(&self, query: &Query, ask: Ask) -> Result<Answer, SearchError> {
        let sites = self.archive.state().sites()?;
        let named = self.named_sites(query)?;
        let takes_site = |site: SiteId| {
            sites.iter().any(|known| known.id == site && known.removed.is_none())
                && crate::query::chosen(&named, &site)
        };
        let limit = ask.limit.min(MAX_LIMIT);
        let wanted = Wanted { order: ask.order, skip: ask.skip, limit, takes_site: &takes_site };
        let (found, has_more) = self.find_all(query, &wanted)?;
        let mut pages = Vec::new();
        for found in found {
            pages.extend(self.result(query, &sites, found)?);
        }
        Ok(Answer { pages, has_more })
    }

    fn named_sites(&self, query: &Query) -> Result<Vec<(SiteId, bool)>, SearchError> {
        let named = |(name, out): &(String, bool)| {
            Ok((sites::find(&**self.archive.state(), name)?.id, *out))
        };
        query.filters.sites.iter().map(named).collect()
    }

    /// A page as it is shown; `None` if it went since it was indexed.
    fn result(
        &self,
        query: &Query,
        sites: &[Site],
        found: Found,
    ) -> Result<Option<SearchResult>, SearchError> {
        let Some(url) = self.archive.state().url_of(found.page)? else { return Ok(None) };
        let (rows, _) = reading::versions(&self.archive, &url)?;
        let is_there = |slot: &&Slot| rows.iter().any(|row| row.version.0 == slot.version);
        let remains =
            |span: &&Span| found.slots[span.slots.0..=span.slots.1].iter().any(|s| is_there(&s));
        let spans: Vec<Span> = found.spans.iter().filter(remains).copied().collect();
        // The newest of the times is the one that most people mean.
        let Some(span) = spans.last().copied() else { return Ok(None) };
        let (first, last) = span.slots;
        let shown = if query.filters.vanished_s.is_some() { last } else { first };
        let row = found.slots[first..=last]
            .iter()
            .filter(is_there)
            .min_by_key(|slot| slot.from_s.abs_diff(found.slots[shown].from_s))
            .and_then(|slot| rows.iter().find(|row: &&VersionRow| row.version.0 == slot.version));
        let text = match row {
            Some(row) => reading::text(&self.archive, &url, row)?.1,
            None => return Ok(None),
        };
        let ended = |until_s: i64| (until_s != STILL).then_some(until_s);
        let site_name =
            sites.iter().find(|site| site.id == found.site).map(|site| site.name.clone());
        Ok(Some(SearchResult {
            title: text.title().map(str::to_owned),
            snippet: snippet(query, &text, found.language),
            // What a rendering showed is found as the page.
            url: RenderedRecord::parse(&url).map_or(url, |(_, page)| page),
            site: found.site,
            site_name: site_name.unwrap_or_default(),
            kind: found.kind.name(),
            language: found.language.code(),
            from_s: span.from_s,
            before_s: first.checked_sub(1).map(|at| found.slots[at].from_s),
            until_s: ended(span.until_s),
            spans: spans.iter().map(|span| (span.from_s, ended(span.until_s))).collect(),
        }))
    }

    /// Since when each block of a page is there, as of a time; see [`blame`].
    pub fn blame(&self, url: &CanonicalUrl, at_s: i64) -> Result<Option<Blame>, SearchError> {
        blame(&self.archive, url, at_s)
    }

    /// How many of the pages that answer a query are in a portion of them, without reading any.
    pub fn find(&self, query: &Query, skip: usize, limit: usize) -> Result<usize, SearchError> {
        let named = self.named_sites(query)?;
        let takes_site = |site: SiteId| crate::query::chosen(&named, &site);
        let wanted = Wanted { order: Order::Best, skip, limit, takes_site: &takes_site };
        Ok(self.find_all(query, &wanted)?.0.len())
    }

    /// The pages that answer a query and when, without anything of their content: to compare with
    /// [`crate::scan`].
    pub fn spans(&self, query: &Query) -> Result<Vec<(CanonicalUrl, Vec<Span>)>, SearchError> {
        let named = self.named_sites(query)?;
        let takes_site = |site: SiteId| crate::query::chosen(&named, &site);
        let wanted =
            Wanted { order: Order::Best, skip: 0, limit: usize::MAX - 1, takes_site: &takes_site };
        let (found, _) = self.find_all(query, &wanted)?;
        let mut pages = Vec::new();
        for found in found {
            if let Some(url) = self.archive.state().url_of(found.page)? {
                pages.push((url, found.spans));
            }
        }
        Ok(pages)
    }
}
