//! Commits what was stored, in batches.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::mpsc,
};

use nenrin_state::{Change, VisitCommit, VisitFilter, VisitedPage};
use nenrin_urls::CanonicalUrl;

use super::{
    found::{Found, LargeCapture, Revisits},
    limits::{BATCH, BATCH_BYTES, BATCH_MIN},
    memory::MemoryBudget,
    storer::Stored,
};
use crate::{Archive, Result, counted, ingest::Lessons, readable_bytes};

/// When this many bytes are stored, the disk begins to write them, so that the next commit waits
/// for less.
const AHEAD_BYTES: u64 = 16 << 20;
/// Kinds of records that are not imported, by name.
const KINDS_KEPT: usize = 100;
/// Problems that are kept for the answer; all are counted.
const PROBLEMS_KEPT: usize = 10_000;

/// What an import brought.
#[derive(Debug, Default, serde::Serialize)]
pub struct Imported {
    /// Captures that became versions.
    pub versions: u64,
    /// Revisits that became visits.
    pub unchanged: u64,
    /// Captures and revisits that the archive had already.
    pub known: u64,
    /// Bytes of the versions' bodies.
    pub body_bytes: u64,
    /// Bytes that were added to the packs.
    pub stored_bytes: u64,
    /// Records of kinds that are not imported.
    pub skipped: BTreeMap<String, u64>,
    /// Records that could not be read or resolved.
    pub damaged: u64,
    /// What was wrong with them, as far as it is kept.
    pub problems: Vec<String>,
}

impl Imported {
    /// Adds what the same files brought to another part of an archive. What is not imported is seen
    /// with every part.
    pub(super) fn add(&mut self, other: Self) {
        self.versions += other.versions;
        self.unchanged += other.unchanged;
        self.known += other.known;
        self.body_bytes += other.body_bytes;
        self.stored_bytes += other.stored_bytes;
        self.skipped = other.skipped;
        if other.damaged > self.damaged {
            (self.damaged, self.problems) = (other.damaged, other.problems);
        }
    }

    /// For people. `can_shrink` is whether it is worth compacting.
    pub fn lines(&self, can_shrink: bool, elapsed_ms: i64) -> Vec<String> {
        let mut lines = vec![format!(
            "{} and {}, {} known already; {} of content, {} stored, in {:.1} s",
            counted(self.versions, "version"),
            counted(self.unchanged, "unchanged visit"),
            self.known,
            readable_bytes(self.body_bytes),
            readable_bytes(self.stored_bytes),
            elapsed_ms as f64 / 1000.0
        )];
        if can_shrink {
            lines.push("`nenrin compact` makes it smaller".to_owned());
        }
        let skipped = self.skipped.iter();
        lines.extend(skipped.map(|(what, count)| format!("not imported: {count} of kind {what}")));
        if self.damaged > 0 {
            let damaged = counted(self.damaged, "damaged record");
            lines.push(format!("not imported: {damaged}, named above"));
        }
        lines
    }
}

/// Commits what was stored.
pub(super) struct Importer<'a> {
    pub(super) archive: &'a Archive,
    pub(super) imported: Imported,
    pub(super) revisits: Revisits,
    /// Captures that are too large for memory.
    pub(super) large: Vec<LargeCapture>,
    /// What the visits teach once all are committed.
    pub(super) lessons: Lessons,
    /// Whether anything was visited before the import began.
    pub(super) has_older_visits: bool,
    visits: Vec<VisitCommit>,
    visits_bytes: u64,
    /// So many are committed together.
    pub(super) batch_visits: usize,
    /// Asks for what is stored to be made durable.
    pub(super) ahead: Option<mpsc::SyncSender<()>>,
    /// Bytes stored since it was asked.
    ahead_bytes: u64,
}

impl<'a> Importer<'a> {
    pub(super) fn new(archive: &'a Archive) -> Result<Self> {
        Ok(Self {
            archive,
            imported: Imported::default(),
            revisits: Revisits::default(),
            large: Vec::new(),
            lessons: Lessons::default(),
            has_older_visits: has_visits(archive)?,
            visits: Vec::new(),
            visits_bytes: 0,
            batch_visits: BATCH,
            ahead: None,
            ahead_bytes: 0,
        })
    }

    pub(super) fn take_all(
        &mut self,
        stored: mpsc::Receiver<Vec<Result<Stored>>>,
        (memory, all_bytes): (&MemoryBudget, u64),
        tell: &mut dyn FnMut(u64),
    ) -> Result<()> {
        self.receive_all(stored, &mut |importer| {
            let read_bytes = memory.read_bytes();
            importer.batch_visits = batch_visits(importer.imported.versions, read_bytes, all_bytes);
            tell(read_bytes);
        })
    }

    /// Receives what other threads have stored until they end, and commits all of it.
    pub(super) fn receive_all(
        &mut self,
        stored: mpsc::Receiver<Vec<Result<Stored>>>,
        after_each: &mut dyn FnMut(&mut Self),
    ) -> Result<()> {
        for stored in stored {
            stored.into_iter().try_for_each(|stored| self.receive(stored?))?;
            after_each(self);
        }
        self.commit()
    }

    pub(super) fn receive(&mut self, stored: Stored) -> Result<()> {
        match stored {
            Stored::Visit(visit) => return self.remember(*visit),
            Stored::Known => self.imported.known += 1,
            Stored::Lessons(lessons) => self.lessons.merge(*lessons),
            Stored::Found(Found::Revisit(revisit)) => self.revisits.add(*revisit),
            Stored::Found(Found::Large(large)) => self.large.push(*large),
            Stored::Found(Found::Skipped(why)) => {
                let is_new = !self.imported.skipped.contains_key(&why);
                let is_many = self.imported.skipped.len() >= KINDS_KEPT;
                let kind = if is_new && is_many { "another".to_owned() } else { why };
                *self.imported.skipped.entry(kind).or_default() += 1;
            }
            Stored::Found(Found::Damaged(what)) => self.trouble(what),
        }
        Ok(())
    }

    pub(super) fn trouble(&mut self, what: String) {
        tracing::warn!("not imported: {what}");
        self.imported.damaged += 1;
        if self.imported.problems.len() < PROBLEMS_KEPT {
            self.imported.problems.push(what);
        }
    }

    fn remember(&mut self, visit: VisitCommit) -> Result<()> {
        if visit.version.is_some() {
            self.imported.versions += 1;
            self.imported.body_bytes += visit.received_bytes;
            self.imported.stored_bytes += visit.stored_bytes;
            self.ahead_bytes += visit.stored_bytes;
        } else {
            self.imported.unchanged += 1;
        }
        if self.ahead_bytes >= AHEAD_BYTES && self.ahead.is_some() {
            self.ahead_bytes = 0;
            // If the disk is busy still, it will be asked with the next bytes.
            let _busy = self.ahead.as_ref().map(|ahead| ahead.try_send(()));
        }
        self.visits_bytes += visit.received_bytes;
        self.visits.push(visit);
        match self.visits.len() >= self.batch_visits || self.visits_bytes >= BATCH_BYTES {
            true => self.commit(),
            false => Ok(()),
        }
    }

    pub(super) fn commit(&mut self) -> Result<()> {
        let mut visits = std::mem::take(&mut self.visits);
        self.visits_bytes = 0;
        if visits.is_empty() {
            return Ok(());
        }
        self.archive.store().sync()?;
        page_by_page(&mut visits);
        let changes: Vec<Change> =
            visits.into_iter().map(|visit| Change::Visit(Box::new(visit))).collect();
        self.archive.commit(&changes)?;
        Ok(())
    }
}

/// Brings the visits of each page together, to where the first of them is, so that they are
/// written together. Their order among themselves stays.
fn page_by_page(visits: &mut [VisitCommit]) {
    let mut first_places = BTreeMap::new();
    for (place, visit) in visits.iter().enumerate() {
        first_places.entry(url_of(visit).map(url_hash)).or_insert(place);
    }
    visits.sort_by_cached_key(|visit| first_places.get(&url_of(visit).map(url_hash)).copied());
}

/// At most half of the visits that seem to be left.
fn batch_visits(done: u64, read_bytes: u64, all_bytes: u64) -> usize {
    let left_bytes = u128::from(all_bytes.saturating_sub(read_bytes));
    let left = u128::from(done) * left_bytes / u128::from(read_bytes.max(1));
    usize::try_from(left / 2).unwrap_or(BATCH).clamp(BATCH_MIN, BATCH)
}

/// The URL of a visit that names its page by it.
fn url_of(visit: &VisitCommit) -> Option<&CanonicalUrl> {
    match &visit.page {
        VisitedPage::Url(found) => Some(&found.url),
        VisitedPage::Known(_) => None,
    }
}

pub(super) fn url_hash(url: &CanonicalUrl) -> u64 {
    let mut hasher = DefaultHasher::new();
    url.as_str().hash(&mut hasher);
    hasher.finish()
}

/// Whether anything was visited yet.
fn has_visits(archive: &Archive) -> Result<bool> {
    let newest = archive.state().visits(VisitFilter { limit: 1, ..VisitFilter::default() })?;
    Ok(!newest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_get_smaller_toward_the_end() {
        assert_eq!(batch_visits(1000, 1 << 20, 1 << 30), BATCH);
        assert_eq!(batch_visits(30_000, 900, 1000), 1666);
        assert_eq!(batch_visits(30_000, 1000, 1000), BATCH_MIN);
        assert_eq!(batch_visits(0, 0, u64::MAX), BATCH_MIN);
        assert_eq!(batch_visits(u64::MAX, 1, u64::MAX), BATCH);
    }
}
