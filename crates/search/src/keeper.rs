//! Keeps the index up to date: follows the log of visits from a stored position, and goes through
//! all pages where there is no index yet.

use std::{collections::BTreeSet, sync::Arc};

use nenrin_archive::Archive;
use nenrin_extract::PageText;
use nenrin_state::{Outcome, PageFilter, PageId, PageRecord, SiteId, VisitFilter};
use nenrin_urls::CanonicalUrl;

use crate::{
    SearchError,
    history::{Slot, distinct, hash},
    index::{self, NewBlock, PageEntry, Position, Writer},
    language::Language,
    matching::BlockKind,
    page_kind::PageKind,
    reading,
};

/// Pages that are asked for at once.
const PORTION: usize = 500;
/// Text after which a batch is committed, in bytes.
const BATCH_BYTES: usize = 8 << 20;
/// Visits that are followed in one step.
const VISITS: i64 = 2_000;

/// What a step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// There was nothing to do.
    Idle,
    /// Pages were looked at; there may be more to do.
    Busy {
        /// Pages gone through so far, while an index is being built.
        walked: Option<u64>,
    },
    /// Another process keeps the index.
    Elsewhere,
}

impl Step {
    /// What two partitions did, together.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Busy { walked: one }, Self::Busy { walked: other }) => {
                Self::Busy { walked: one.map_or(other, |one| Some(one + other.unwrap_or(0))) }
            }
            (busy @ Self::Busy { .. }, _) | (_, busy @ Self::Busy { .. }) => busy,
            (Self::Elsewhere, _) | (_, Self::Elsewhere) => Self::Elsewhere,
            (Self::Idle, Self::Idle) => Self::Idle,
        }
    }
}

/// Keeps the index of an archive, or those of its partitions. One process at a time does.
pub struct Keeper {
    archive: Arc<Archive>,
    parts: Vec<Part>,
}

impl Keeper {
    /// Nothing is opened yet.
    pub fn new(archive: Arc<Archive>) -> Self {
        let parts = archive.partitions();
        Self { archive, parts: parts.into_iter().map(Part::new).collect() }
    }

    /// Deletes the index; it is built again by the next steps. Fails if another process keeps it.
    pub fn begin_anew(&mut self) -> Result<(), SearchError> {
        self.parts.iter_mut().try_for_each(Part::begin_anew)
    }

    /// Does a bounded piece of work. A damaged index is deleted and built again.
    pub fn step(&mut self) -> Result<Step, SearchError> {
        let mut done = Step::Idle;
        for part in &mut self.parts {
            done = done.and(part.step()?);
        }
        Ok(done)
    }

    /// Steps until there is nothing to do.
    pub fn catch_up(&mut self, progress: &mut dyn FnMut(u64, u64)) -> Result<Step, SearchError> {
        let pages = self.archive.state().stats()?.pages;
        loop {
            match self.step()? {
                Step::Busy { walked } => {
                    if let Some(walked) = walked {
                        progress(walked, pages);
                    }
                }
                done => return Ok(done),
            }
        }
    }

    /// Ends it after the files are in order.
    pub fn finish(self) -> Result<(), SearchError> {
        let mut writers = self.parts.into_iter().filter_map(|part| part.writer);
        writers.try_for_each(Writer::finish)
    }
}

/// Keeps the index of one partition, or of an archive that has only one.
struct Part {
    archive: Arc<Archive>,
    writer: Option<Writer>,
}

impl Part {
    fn new(archive: Arc<Archive>) -> Self {
        Self { archive, writer: None }
    }

    fn begin_anew(&mut self) -> Result<(), SearchError> {
        self.open()?;
        match self.writer.take() {
            None => Err(SearchError::Elsewhere),
            Some(writer) => {
                drop(writer);
                index::delete(self.archive.folder())
            }
        }
    }

    fn step(&mut self) -> Result<Step, SearchError> {
        match self.try_step() {
            Err(error) if error.is_damage() => {
                tracing::warn!("the search index is damaged and is built again: {error}");
                self.writer = None;
                index::delete(self.archive.folder())?;
                Ok(Step::Busy { walked: Some(0) })
            }
            Err(error) => {
                self.writer = None;
                Err(error)
            }
            done => done,
        }
    }

    fn open(&mut self) -> Result<(), SearchError> {
        if self.writer.is_none() {
            self.writer = Writer::open(&index::folder(self.archive.folder()))?;
        }
        Ok(())
    }

    fn try_step(&mut self) -> Result<Step, SearchError> {
        self.open()?;
        let Some(writer) = &mut self.writer else { return Ok(Step::Elsewhere) };
        let newest = newest_visit(&self.archive)?;
        let mut taking = Taking { archive: &self.archive, writer, bytes: 0 };
        if taking.writer.is_new() {
            let mut position = Position::beginning(newest);
            position.prunes = self.archive.state().prunes()?.len();
            position.removals = self.archive.state().removals()?.len();
            taking.writer.commit(position)?;
        }
        let position = taking.writer.position().clone();
        if newest < position.visit {
            return Err(SearchError::Damaged("the log of visits is shorter than it was".into()));
        }
        if let Some(after) = position.walk {
            return taking.walk(after);
        }
        if taking.removed_pages()? || taking.follow(newest)? {
            return Ok(Step::Busy { walked: None });
        }
        if !taking.writer.without_lender()?.is_empty() {
            // The process that took their lenders out was killed.
            taking.finish(position)?;
            return Ok(Step::Busy { walked: None });
        }
        taking.writer.merge_some()?;
        Ok(Step::Idle)
    }
}

fn newest_visit(archive: &Archive) -> Result<i64, SearchError> {
    let newest = archive.state().visits(VisitFilter { limit: 1, ..VisitFilter::default() })?;
    Ok(newest.first().map_or(0, |visit| visit.id))
}

/// Takes pages of the archive into the index.
struct Taking<'a> {
    archive: &'a Archive,
    writer: &'a mut Writer,
    /// Text taken in since the last commit.
    bytes: usize,
}

impl Taking<'_> {
    /// Goes on through all pages.
    fn walk(&mut self, after: i64) -> Result<Step, SearchError> {
        let mut position = self.writer.position().clone();
        let mut last = after;
        while self.bytes < BATCH_BYTES {
            let after = (last != 0).then_some(PageId(last));
            let pages =
                self.archive.state().pages(PageFilter { site: None, after, limit: PORTION })?;
            if pages.is_empty() {
                position.walk = None;
                self.finish(position)?;
                self.writer.merge_all()?;
                return Ok(Step::Busy { walked: None });
            }
            for page in &pages {
                // Most pages that were found were never visited, or are parts of others.
                if page.version.is_some() || page.changes > 0 {
                    self.take(page)?;
                }
                last = page.id.0;
                position.walked += 1;
                if self.bytes >= BATCH_BYTES {
                    break;
                }
            }
        }
        position.walk = Some(last);
        let walked = Some(position.walked);
        self.finish(position)?;
        Ok(Step::Busy { walked })
    }

    /// Looks again at the pages of sites that were pruned or removed; returns whether there were
    /// any.
    fn removed_pages(&mut self) -> Result<bool, SearchError> {
        let state = self.archive.state();
        let mut position = self.writer.position().clone();
        let (prunes, removals) = (state.prunes()?, state.removals()?);
        // Both lists begin with the newest.
        let pruned = prunes.iter().take(prunes.len().saturating_sub(position.prunes));
        let removed = removals.iter().take(removals.len().saturating_sub(position.removals));
        let sites: BTreeSet<SiteId> =
            pruned.map(|row| row.site).chain(removed.map(|row| row.site)).collect();
        if sites.is_empty() {
            return Ok(false);
        }
        for site in sites {
            self.look_again(site)?;
        }
        (position.prunes, position.removals) = (prunes.len(), removals.len());
        self.finish(position)?;
        Ok(true)
    }

    fn look_again(&mut self, site: SiteId) -> Result<(), SearchError> {
        let mut after = None;
        loop {
            let pages = self.archive.state().pages(PageFilter {
                site: Some(site),
                after,
                limit: PORTION,
            })?;
            let Some(last) = pages.last() else { return Ok(()) };
            after = Some(last.id);
            for page in &pages {
                self.take(page)?;
            }
            if self.bytes >= BATCH_BYTES {
                self.bytes = 0;
                self.writer.commit(self.writer.position().clone())?;
            }
        }
    }

    /// Takes in the pages of visits that were logged since; returns whether there were any.
    fn follow(&mut self, newest: i64) -> Result<bool, SearchError> {
        let mut position = self.writer.position().clone();
        if newest <= position.visit {
            return Ok(false);
        }
        let until = newest.min(position.visit + VISITS);
        let limit = usize::try_from(until - position.visit).unwrap_or(0);
        let filter = VisitFilter { before: Some(until + 1), limit, ..VisitFilter::default() };
        let visits = self.archive.state().visits(filter)?;
        let matters = |outcome| matches!(outcome, Outcome::Changed | Outcome::Gone);
        let urls: BTreeSet<CanonicalUrl> = visits
            .into_iter()
            .filter(|visit| visit.id > position.visit && matters(visit.outcome))
            .map(|visit| visit.url)
            .collect();
        for url in urls {
            if let Some(page) = self.archive.state().page(&url)? {
                self.take(&page)?;
            }
            if self.bytes >= BATCH_BYTES {
                self.bytes = 0;
                self.writer.commit(position.clone())?;
            }
        }
        position.visit = until;
        self.finish(position)?;
        Ok(true)
    }

    /// Commits a piece of work that is complete.
    fn finish(&mut self, position: Position) -> Result<(), SearchError> {
        self.mend_loans()?;
        self.writer.commit(position)
    }

    /// Brings what is indexed of a page up to date.
    fn take(&mut self, page: &PageRecord) -> Result<(), SearchError> {
        let (rows, slots) = reading::versions(self.archive, &page.url)?;
        let Some(newest) = rows.last() else { return self.writer.remove(page.id) };
        let indexed = self.writer.of_page(page.id)?;
        let kept = indexed.filter(|indexed| continues(&indexed.record.slots, &slots));
        let place = kept.as_ref().map(|kept| kept.place);
        let (mut record, mut loans) =
            kept.map(|kept| (kept.record, kept.loans)).unwrap_or_default();
        let known = record.slots.len();
        record.slots = slots;
        let mut new = Vec::new();
        let mut before = match known.checked_sub(1) {
            Some(at) => Some(reading::text(self.archive, &page.url, &rows[at])?),
            None => None,
        };
        // Other pages of the site can borrow what this one has.
        if let (Some(place), Some((_, text))) = (place, &before)
            && let blocks = distinct(text)
            && blocks.len() == record.blocks.current.len()
        {
            for (key, number) in blocks.into_iter().zip(&record.blocks.current) {
                let at = loans.of(*number).unwrap_or((place, *number));
                self.writer.known.add(page.site, hash(key), at);
            }
        }
        let mut learned = Vec::new();
        for (at, row) in rows.iter().enumerate().skip(known) {
            let text = reading::text(self.archive, &page.url, row)?;
            let earlier = before.as_ref().map(|(_, text)| text);
            let is_added = record.blocks.add(at as u32, earlier, &text.1, &mut |number,
                                                                                key @ (
                kind,
                text,
            )| {
                match self.writer.known.get(page.site, hash(key)) {
                    Some(lent) if Some(lent.0) != place => loans.add(number, lent),
                    _ => {
                        learned.push((hash(key), number));
                        let (kind, text) = (BlockKind::Text(kind), text.to_owned());
                        new.push(NewBlock { number, kind, text });
                    }
                }
            });
            if !is_added {
                // What is stored is read otherwise than it was: all is read again.
                self.writer.remove(page.id)?;
                return self.take(page);
            }
            record.blocks.forget_long_vanished(at as u32);
            before = Some(text);
        }
        let (kind, text) = before.unwrap_or((None, PageText::default()));
        self.bytes += new.iter().map(|block| block.text.len()).sum::<usize>();
        let Some(kind) = kind.or_else(|| self.earlier_kind(page, &rows)) else {
            return self.writer.remove(page.id);
        };
        let entry = PageEntry {
            page: page.id,
            site: page.site,
            kind,
            language: Language::of(&text),
            importance_percent: page.importance_percent,
            changed_s: newest.at_s,
            record: &record,
            loans: &loans,
        };
        let place = match place {
            Some(place) => {
                self.writer.extend(place, &entry, &new)?;
                place
            }
            None => {
                let text = page.url.shown().to_string();
                new.push(NewBlock { number: 0, kind: BlockKind::Url, text });
                self.writer.replace(&entry, &new)?
            }
        };
        for (hash, number) in learned {
            self.writer.known.add(page.site, hash, (place, number));
        }
        Ok(())
    }

    /// Pages that lost what they borrowed are taken in anew.
    fn mend_loans(&mut self) -> Result<(), SearchError> {
        loop {
            let pages = self.writer.without_lender()?;
            if pages.is_empty() {
                return Ok(());
            }
            for page in &pages {
                self.writer.remove(*page)?;
            }
            for page in pages {
                if let Some(url) = self.archive.state().url_of(page)?
                    && let Some(page) = self.archive.state().page(&url)?
                {
                    self.take(&page)?;
                }
            }
        }
    }

    /// The kind of a page whose newest version has no text.
    fn earlier_kind(
        &self,
        page: &PageRecord,
        rows: &[nenrin_state::VersionRow],
    ) -> Option<PageKind> {
        let kind = |row| reading::text(self.archive, &page.url, row).ok()?.0;
        rows.iter().rev().skip(1).find_map(kind)
    }
}

/// Whether versions that are indexed are the first of those that there are.
fn continues(indexed: &[Slot], slots: &[Slot]) -> bool {
    let same = |(a, b): (&Slot, &Slot)| {
        (a.from_s, a.version, a.is_noise, a.is_readable)
            == (b.from_s, b.version, b.is_noise, b.is_readable)
    };
    indexed.len() <= slots.len() && indexed.iter().zip(slots).all(same)
}
