//! Looking for pages of a site by any part of their address or title, with filters, in any order. The pages are
//! read from beginning to end in portions, so that results so far can be shown of a site of any size.

use std::{cmp::Ordering, collections::BTreeMap};

use nenrin_state::{
    BodyKind, Outcome, PageFilter, PageId, PageRecord, Site, State, StateError, Summary,
};

use nenrin_urls::VersionId;

use crate::changes::{folder_of, searched};

/// Pages that are kept; the others that match are counted.
const KEPT_MAX: usize = 1_000;
/// Folders that are counted; the pages of further ones are counted together.
const FOLDERS_MAX: usize = 300;
/// The name under which the pages of further folders are counted.
const OTHER_FOLDERS: &str = "…";
const DAY_S: i64 = 86_400;

/// What a page's last visit found, as people look for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageResult {
    /// It was not visited yet.
    Never,
    /// The last visit found this.
    Found(Outcome),
}

/// When a page is visited again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageDue {
    /// Its time has come.
    Now,
    /// Within a day.
    Day,
    /// In more than a day.
    Later,
    /// It has no time of its own.
    None,
}

/// What pages are sorted by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the column of this name")]
pub enum PageSort {
    #[default]
    Address,
    Title,
    Type,
    Result,
    Visits,
    Versions,
    Importance,
    Rate,
    Size,
    Visited,
    Due,
}

/// Which pages to look for, and in which order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageQuery {
    /// A part of the address or the title, in any case.
    pub text: String,
    /// Only this kind of content.
    pub kind: Option<BodyKind>,
    /// Only these results.
    pub result: Option<PageResult>,
    /// Only those due then.
    pub due: Option<PageDue>,
    /// Only this folder ([`folder_of`]).
    pub folder: Option<String>,
    /// The order.
    pub sort: PageSort,
    /// Largest first.
    pub down: bool,
}

/// A page that was found.
#[derive(Debug, Clone)]
pub struct FoundPage {
    /// The page, without its history.
    pub page: PageRecord,
    /// The type of its newest version, if that was asked for.
    pub mime: Option<String>,
    /// Its title, if that was read and asked for.
    pub title: Option<String>,
}

/// What was found so far.
#[derive(Debug, Clone, Default)]
pub struct PageSearch {
    /// Pages looked at.
    pub looked_at: u64,
    /// Pages that match.
    pub matches: u64,
    /// Of the pages looked at by text, those whose title is not known yet.
    pub untitled: u64,
    /// Matches by folder.
    pub folders: BTreeMap<String, u64>,
    /// The first in the order asked for.
    pub pages: Vec<FoundPage>,
    after: Option<PageId>,
}

impl PageSearch {
    /// Looks at further pages, about `limit` of them; returns whether there are more.
    pub fn go_on(
        &mut self,
        state: &dyn State,
        site: &Site,
        query: &PageQuery,
        now_s: i64,
        limit: usize,
    ) -> Result<bool, StateError> {
        let pages = state.pages(PageFilter { site: Some(site.id), after: self.after, limit })?;
        let is_more = pages.len() >= limit;
        let text = searched(&query.text);
        let mut mimes = self.mimes(state, site, query, limit)?;
        let titles = match !text.is_empty() || query.sort == PageSort::Title {
            true => titles_of(state, &pages)?,
            false => vec![None; pages.len()],
        };
        self.after = pages.last().map(|page| page.id).or(self.after);
        for (mut page, title) in pages.into_iter().zip(titles) {
            self.looked_at += 1;
            let mime = mimes.remove(&page.id);
            let is_unread = title.is_none() && page.version.is_some();
            let title = title.map(|summary| summary.title).filter(|title| !title.is_empty());
            if !is_meant(query, &page, mime.as_deref(), now_s) {
                continue;
            }
            if !text.is_empty() && !has_text(&page, title.as_deref(), &text) {
                self.untitled += u64::from(is_unread);
                continue;
            }
            let folder = folder_of(site, &page.url);
            self.count_folder(&folder);
            if query.folder.as_ref().is_some_and(|only| *only != folder) {
                continue;
            }
            self.matches += 1;
            page.history = Vec::new();
            self.pages.push(FoundPage { page, mime, title });
            if self.pages.len() >= 2 * KEPT_MAX {
                self.put_in_order(query);
            }
        }
        self.put_in_order(query);
        Ok(is_more)
    }

    fn mimes(
        &self,
        state: &dyn State,
        site: &Site,
        query: &PageQuery,
        limit: usize,
    ) -> Result<BTreeMap<PageId, String>, StateError> {
        if query.kind.is_none() && query.sort != PageSort::Type {
            return Ok(BTreeMap::new());
        }
        let rows = state.site_as_of(site.id, i64::MAX, self.after, limit)?;
        Ok(rows.into_iter().map(|(page, _, row)| (page, row.mime)).collect())
    }

    fn count_folder(&mut self, folder: &str) {
        let is_new = !self.folders.contains_key(folder);
        let name = if is_new && self.folders.len() >= FOLDERS_MAX { OTHER_FOLDERS } else { folder };
        *self.folders.entry(name.to_owned()).or_default() += 1;
    }

    fn put_in_order(&mut self, query: &PageQuery) {
        self.pages.sort_by(|a, b| order(query, a, b));
        self.pages.truncate(KEPT_MAX);
    }
}

fn titles_of(state: &dyn State, pages: &[PageRecord]) -> Result<Vec<Option<Summary>>, StateError> {
    let versions: Vec<VersionId> = pages.iter().filter_map(|page| page.version).collect();
    let mut known = state.summaries(&versions)?.into_iter();
    let title = |page: &PageRecord| page.version.and_then(|_| known.next().flatten());
    Ok(pages.iter().map(title).collect())
}

fn is_meant(query: &PageQuery, page: &PageRecord, mime: Option<&str>, now_s: i64) -> bool {
    let is_kind = |kind: BodyKind| mime.is_some_and(|mime| BodyKind::of(mime) == kind);
    let is_result = |result: PageResult| match result {
        PageResult::Never => page.outcome.is_none(),
        PageResult::Found(outcome) => page.outcome == Some(outcome),
    };
    let is_due = |due: PageDue| match (due, page.due_s) {
        (PageDue::Now, Some(due_s)) => due_s <= now_s,
        (PageDue::Day, Some(due_s)) => due_s > now_s && due_s <= now_s + DAY_S,
        (PageDue::Later, Some(due_s)) => due_s > now_s + DAY_S,
        (PageDue::None, None) => true,
        _ => false,
    };
    query.kind.is_none_or(is_kind)
        && query.result.is_none_or(is_result)
        && query.due.is_none_or(is_due)
}

fn has_text(page: &PageRecord, title: Option<&str>, text: &str) -> bool {
    let has = |place: &str| place.to_lowercase().contains(text);
    has(page.url.as_str()) || title.is_some_and(has) || has(&page.url.shown())
}

/// What is not known comes last, in either direction.
fn order(query: &PageQuery, a: &FoundPage, b: &FoundPage) -> Ordering {
    let (sort, address) = (query.sort, a.page.url.as_str().cmp(b.page.url.as_str()));
    let by = match sort {
        PageSort::Address => address,
        PageSort::Title => text_key(&a.title).cmp(&text_key(&b.title)),
        PageSort::Type => text_key(&a.mime).cmp(&text_key(&b.mime)),
        PageSort::Result => result_key(&a.page).cmp(&result_key(&b.page)),
        PageSort::Visits => a.page.visits.cmp(&b.page.visits),
        PageSort::Versions => a.page.changes.cmp(&b.page.changes),
        PageSort::Importance => a.page.importance_percent.cmp(&b.page.importance_percent),
        PageSort::Rate => rate_key(&a.page).total_cmp(&rate_key(&b.page)),
        PageSort::Size => a.page.bytes.cmp(&b.page.bytes),
        PageSort::Visited => a.page.visited_s.cmp(&b.page.visited_s),
        PageSort::Due => a.page.due_s.cmp(&b.page.due_s),
    };
    let by = if query.down { by.reverse() } else { by };
    is_unknown(sort, a).cmp(&is_unknown(sort, b)).then(by).then(address)
}

fn is_unknown(sort: PageSort, found: &FoundPage) -> bool {
    match sort {
        PageSort::Title => found.title.is_none(),
        PageSort::Type => found.mime.is_none(),
        PageSort::Result => found.page.outcome.is_none(),
        PageSort::Rate => found.page.estimate.is_none(),
        PageSort::Visited => found.page.visited_s.is_none(),
        PageSort::Due => found.page.due_s.is_none(),
        _ => false,
    }
}

fn text_key(text: &Option<String>) -> Option<String> {
    text.as_ref().map(|text| text.to_lowercase())
}

fn result_key(page: &PageRecord) -> Option<usize> {
    page.outcome.and_then(|outcome| Outcome::ALL.iter().position(|one| *one == outcome))
}

fn rate_key(page: &PageRecord) -> f64 {
    page.estimate.map_or(-1.0, |estimate| estimate.rate_per_day())
}
