//! Captures become versions with their dates, whatever the order in which they come.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{OnceLock, mpsc},
};

use nenrin_state::{Change, Discovered, Origin, SiteId, VersionRow, VisitCommit};
use nenrin_urls::CanonicalUrl;

use super::{
    capture::RawCapture,
    reading::{Found, Taking, read_all},
    revisits::{Revisits, has_visits},
    room::Room,
    source::Source,
    spawn,
    storer::{Pending, Storer, Told},
};
use crate::archive::Archive;

/// Visits put before they are made durable and committed: pages have their records all over the
/// state, so that a commit of few writes as much as one of many.
const BATCH: usize = 3500;
/// Toward the end of the files commits are smaller, so that little is left to do when all is read;
/// but not smaller than this.
const BATCH_MIN: usize = 500;
/// Bytes put before they are made durable and committed: what is done again after an interruption.
const BATCH_BYTES: u64 = 192 << 20;
/// Captures, or answers to them, that go to another thread together: waking it for each takes as
/// long as storing a small one.
const TOGETHER: usize = 24;
/// And what they may weigh.
const TOGETHER_BYTES: u64 = 1 << 20;
/// As many of those may wait for a storer, which waits now and then while others write.
const WAITING: usize = 128;
/// And so many for the commit: storing goes on while one is made.
pub(super) const TOLD_WAITING: usize = 256;
/// Threads that check, compress and store captures.
const STORERS_MAX: usize = 8;
/// Visits that may be on their way to their commit: a batch that is filled, one that is being
/// committed, and what waits or is in the hands of a storer.
pub(super) const UNCOMMITTED_MAX: usize = 2 * BATCH + (TOLD_WAITING + STORERS_MAX) * TOGETHER;
/// When so many bytes are stored, the disk may begin to write them: the next commit waits for the
/// less.
const AHEAD_BYTES: u64 = 16 << 20;
/// Kinds of records that are not imported, by name.
const KINDS_KEPT: usize = 100;
/// Troubles that are kept for the answer; all are counted.
const TROUBLES_KEPT: usize = 10_000;

/// From so many bytes on files are taken in quickly, and `compact` makes them small.
const MUCH_BYTES: u64 = 256 << 20;

/// Whether files are taken in quickly.
pub(crate) fn is_much(sources: &[Source]) -> bool {
    sources.iter().map(|source| source.bytes).sum::<u64>() >= MUCH_BYTES
}

/// What an import came to.
#[derive(Debug, Default, serde::Serialize)]
pub(crate) struct Imported {
    /// Captures that became versions.
    pub(crate) versions: u64,
    /// Revisits that became visits.
    pub(crate) unchanged: u64,
    /// What the archive had already.
    pub(crate) known: u64,
    pub(crate) body_bytes: u64,
    pub(crate) stored_bytes: u64,
    /// Records of kinds that are not imported.
    pub(crate) skipped: BTreeMap<String, u64>,
    /// Records that could not be read or resolved.
    pub(crate) damaged: u64,
    pub(crate) troubles: Vec<String>,
}

/// Takes all files in. The site is asked for when the first capture comes; `tell` hears how many
/// bytes of the files were read.
///
/// Some threads read and check, some compress and store, one makes durable what is stored, and this
/// one commits. All captures of a URL go through the same thread, so that each finds the one before
/// it.
pub(crate) fn import(
    archive: &Archive,
    sources: &[Source],
    is_trusting: bool,
    site: &mut (dyn FnMut(&CanonicalUrl) -> anyhow::Result<SiteId> + Send),
    tell: &mut dyn FnMut(u64),
) -> anyhow::Result<Imported> {
    let room = Room::new(is_much(sources));
    let the_site = OnceLock::new();
    let mut importer = Importer::new(archive)?;
    std::thread::scope(|scope| {
        let (sender, told) = mpsc::sync_channel(TOLD_WAITING);
        let (room, the_site) = (&room, &the_site);
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        let mut storers = Vec::new();
        let threads = cores.min(STORERS_MAX);
        for _ in 0..threads {
            let (captures, waiting) = mpsc::sync_channel::<Vec<RawCapture>>(WAITING);
            storers.push(Hand { captures, held: Vec::new(), held_bytes: 0 });
            let told = sender.clone();
            spawn(scope, "warc store", move || {
                let mut storer = Storer::new(archive);
                for captures in waiting {
                    let Some(&site) = the_site.get() else { return };
                    let outcomes = storer.captures(site, captures, room, |capture| {
                        capture.open(sources, is_trusting)
                    });
                    if told.send(outcomes).is_err() {
                        return;
                    }
                }
            });
        }
        spawn(scope, "warc deal", move || {
            let others = Vec::new();
            let mut dealing = Dealing { site, the_site, storers, others, told: sender };
            read_all(sources, room, (threads, is_trusting), &mut dealing);
        });
        let (ahead, wanted) = mpsc::sync_channel(1);
        spawn(scope, "warc sync", move || make_durable_ahead(archive, wanted));
        importer.ahead = Some(ahead);
        let all_bytes = sources.iter().map(|source| source.bytes).sum();
        let taken = importer.take_all(the_site, told, (room, all_bytes), tell);
        importer.ahead = None;
        room.close();
        taken
    })?;
    importer.batch_visits = BATCH;
    importer.revisits(sources, &the_site)?;
    Ok(importer.imported)
}

/// Lets the disk write what is stored, whenever that is much.
fn make_durable_ahead(archive: &Archive, wanted: mpsc::Receiver<()>) {
    for () in wanted {
        if let Err(error) = archive.store.sync_ahead() {
            // The store takes nothing more, which ends the import.
            tracing::error!("cannot make durable what was stored: {error}");
            return;
        }
    }
}

/// Deals captures out among the storers, by URL.
struct Dealing<'a> {
    site: &'a mut (dyn FnMut(&CanonicalUrl) -> anyhow::Result<SiteId> + Send),
    the_site: &'a OnceLock<SiteId>,
    storers: Vec<Hand>,
    /// What was found beside captures and not told yet.
    others: Vec<anyhow::Result<Told>>,
    told: mpsc::SyncSender<Vec<anyhow::Result<Told>>>,
}

/// What goes to one storer.
struct Hand {
    captures: mpsc::SyncSender<Vec<RawCapture>>,
    held: Vec<RawCapture>,
    held_bytes: u64,
}

impl Hand {
    fn add(&mut self, capture: RawCapture) -> Option<()> {
        self.held_bytes += capture.bytes();
        self.held.push(capture);
        match self.held.len() >= TOGETHER || self.held_bytes >= TOGETHER_BYTES {
            true => self.deal(),
            false => Some(()),
        }
    }

    fn deal(&mut self) -> Option<()> {
        self.held_bytes = 0;
        let held = std::mem::take(&mut self.held);
        if held.is_empty() { Some(()) } else { self.captures.send(held).ok() }
    }
}

impl Dealing<'_> {
    fn tell_others(&mut self) -> Option<()> {
        self.told.send(std::mem::take(&mut self.others)).ok()
    }
}

impl Taking for Dealing<'_> {
    fn capture(&mut self, capture: RawCapture) -> Option<()> {
        if self.the_site.get().is_none() {
            match (self.site)(&capture.url) {
                Ok(site) => drop(self.the_site.set(site)),
                Err(error) => {
                    // Nothing can be taken in: the error is the last word.
                    let _unheard = self.told.send(vec![Err(error)]);
                    return None;
                }
            }
        }
        let storer = url_hash(&capture.url) as usize % self.storers.len();
        self.storers[storer].add(capture)
    }

    fn other(&mut self, found: Found) -> Option<()> {
        self.others.push(Ok(Told::Found(found)));
        if self.others.len() < TOGETHER {
            return Some(());
        }
        self.tell_others()
    }

    fn hold_nothing(&mut self) -> Option<()> {
        self.storers.iter_mut().try_for_each(Hand::deal)?;
        if self.others.is_empty() { Some(()) } else { self.tell_others() }
    }
}

fn url_hash(url: &CanonicalUrl) -> u64 {
    let mut hasher = DefaultHasher::new();
    url.as_str().hash(&mut hasher);
    hasher.finish()
}

/// Commits what was stored.
pub(super) struct Importer<'a> {
    pub(super) archive: &'a Archive,
    pub(super) site: Option<SiteId>,
    pub(super) imported: Imported,
    pub(super) revisits: Revisits,
    /// Something was visited before the import began.
    pub(super) has_older_visits: bool,
    visits: Vec<Pending>,
    visits_bytes: u64,
    /// So many are committed together.
    batch_visits: usize,
    /// Asks for what is stored to be made durable.
    ahead: Option<mpsc::SyncSender<()>>,
    /// Bytes stored since it was asked.
    ahead_bytes: u64,
}

impl<'a> Importer<'a> {
    fn new(archive: &'a Archive) -> anyhow::Result<Self> {
        Ok(Self {
            archive,
            site: None,
            imported: Imported::default(),
            revisits: Revisits::default(),
            has_older_visits: has_visits(archive)?,
            visits: Vec::new(),
            visits_bytes: 0,
            batch_visits: BATCH,
            ahead: None,
            ahead_bytes: 0,
        })
    }

    fn take_all(
        &mut self,
        the_site: &OnceLock<SiteId>,
        told: mpsc::Receiver<Vec<anyhow::Result<Told>>>,
        (room, all_bytes): (&Room, u64),
        tell: &mut dyn FnMut(u64),
    ) -> anyhow::Result<()> {
        self.hear_all(the_site, told, &mut |importer| {
            let read_bytes = room.read_bytes();
            importer.batch_visits = batch_visits(importer.imported.versions, read_bytes, all_bytes);
            tell(read_bytes);
        })
    }

    /// Takes in what is told until nobody tells any more, and commits all of it.
    pub(super) fn hear_all(
        &mut self,
        the_site: &OnceLock<SiteId>,
        told: mpsc::Receiver<Vec<anyhow::Result<Told>>>,
        after_each: &mut dyn FnMut(&mut Self),
    ) -> anyhow::Result<()> {
        for told in told {
            self.site = the_site.get().copied();
            told.into_iter().try_for_each(|told| self.hear(told?))?;
            after_each(self);
        }
        self.commit()
    }

    fn hear(&mut self, told: Told) -> anyhow::Result<()> {
        match told {
            Told::Visit(pending) => return self.remember(*pending),
            Told::Known => self.imported.known += 1,
            Told::Found(Found::Revisit(revisit)) => self.revisits.add(*revisit),
            Told::Found(Found::Skipped(why)) => {
                let is_new = !self.imported.skipped.contains_key(&why);
                let is_many = self.imported.skipped.len() >= KINDS_KEPT;
                let kind = if is_new && is_many { "another".to_owned() } else { why };
                *self.imported.skipped.entry(kind).or_default() += 1;
            }
            Told::Found(Found::Damaged(what)) => self.trouble(what),
        }
        Ok(())
    }

    fn trouble(&mut self, what: String) {
        tracing::warn!("not imported: {what}");
        self.imported.damaged += 1;
        if self.imported.troubles.len() < TROUBLES_KEPT {
            self.imported.troubles.push(what);
        }
    }

    fn remember(&mut self, pending: Pending) -> anyhow::Result<()> {
        if let Some((put, _)) = &pending.version {
            self.imported.versions += 1;
            self.imported.body_bytes += pending.body_bytes;
            self.imported.stored_bytes += put.new_bytes;
            self.ahead_bytes += put.new_bytes;
        } else {
            self.imported.unchanged += 1;
        }
        if self.ahead_bytes >= AHEAD_BYTES && self.ahead.is_some() {
            self.ahead_bytes = 0;
            // If the disk is busy still, it will be asked with the next bytes.
            let _busy = self.ahead.as_ref().map(|ahead| ahead.try_send(()));
        }
        self.visits_bytes += pending.body_bytes;
        self.visits.push(pending);
        match self.visits.len() >= self.batch_visits || self.visits_bytes >= BATCH_BYTES {
            true => self.commit(),
            false => Ok(()),
        }
    }

    fn commit(&mut self) -> anyhow::Result<()> {
        let mut visits = std::mem::take(&mut self.visits);
        self.visits_bytes = 0;
        let Some(site) = self.site.filter(|_| !visits.is_empty()) else { return Ok(()) };
        self.archive.store.sync()?;
        page_by_page(&mut visits);
        let taken = visits.into_iter().map(|pending| Change::Visit(Box::new(visit(pending, site))));
        self.archive.state.commit(&taken.collect::<Vec<_>>())?;
        Ok(())
    }
}

/// Brings the visits of each page together, to where the first of them stands, so that they are
/// written together. Their order among themselves stays.
fn page_by_page(visits: &mut [Pending]) {
    let mut first_places = BTreeMap::new();
    for (place, visit) in visits.iter().enumerate() {
        first_places.entry(url_hash(&visit.url)).or_insert(place);
    }
    visits.sort_by_cached_key(|visit| first_places.get(&url_hash(&visit.url)).copied());
}

/// At most half of the visits that seem to be left.
fn batch_visits(done: u64, read_bytes: u64, all_bytes: u64) -> usize {
    let left_bytes = u128::from(all_bytes.saturating_sub(read_bytes));
    let left = u128::from(done) * left_bytes / u128::from(read_bytes.max(1));
    usize::try_from(left / 2).unwrap_or(BATCH).clamp(BATCH_MIN, BATCH)
}

fn visit(pending: Pending, site: SiteId) -> VisitCommit {
    let stored_bytes = pending.version.as_ref().map_or(0, |(put, _)| put.new_bytes);
    let found = Discovered { url: pending.url, depth: 2, hops: 0, due_s: None };
    VisitCommit {
        status: pending.status,
        received_bytes: pending.body_bytes,
        stored_bytes,
        version: pending.version.map(|(put, mime)| VersionRow {
            at_s: pending.at_s,
            version: put.id.0,
            status: pending.status,
            mime,
            bytes: pending.body_bytes,
            changed_permille: None,
        }),
        update: pending.update,
        origin: Origin::Imported,
        ..VisitCommit::new(found, site, pending.at_s, pending.outcome)
    }
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
