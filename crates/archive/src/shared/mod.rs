//! An archive that several machines share: the state in PostgreSQL, the content in objects.

mod alone;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use nenrin_crawl::Event;
use nenrin_state::{
    Epoch, Found, JoinedState, Lease, MailRow, PartitionId, Partitioning, PostgresArchive,
    PostgresPlace, State, StateError, WorkerId,
};
use nenrin_store::{
    BackendError, FirstNumbers, ObjectBackend, ObjectPlace, Store, StoreError, StoreOptions,
};

use crate::{Archive, ArchiveError, Result, lock::Lock};

/// The clocks of two machines may differ by so much.
const CLOCKS_APART_MS: i64 = 30_000;
/// What a reader or a holder keeps of objects on its own disk, at most.
const CACHE_BYTES: u64 = 1 << 30;
/// Workers that were heard within this time are listed.
const HEARD: Duration = Duration::from_secs(3_600);
/// How often a reader learns what all workers stored.
const CATCH_UP_PAUSE: Duration = Duration::from_secs(5);

/// Where a shared archive is, as people write it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedPlaces {
    /// `postgres://…`
    pub state: String,
    /// `s3://bucket/prefix`
    pub content: String,
    /// How many partitions a new archive gets.
    pub partitions: u32,
}

/// A shared archive, open.
#[derive(Clone)]
pub struct SharedArchive {
    database: PostgresArchive,
    place: ObjectPlace,
    local: PathBuf,
    opened_s: i64,
}

impl SharedArchive {
    /// Opens a shared archive; makes it where `bucket_s`, the resolution of due times, is given.
    /// `local` is a folder of this machine, for indexes and a cache, which may be deleted. Everything
    /// that can be wrong is found before anything is written.
    pub fn open(
        places: &SharedPlaces,
        local: &Path,
        bucket_s: Option<i64>,
        now_ms: i64,
    ) -> Result<Self> {
        let why = |why: String| StateError::NoDatabase { why };
        let address: PostgresPlace = places.state.parse().map_err(why)?;
        if !(1..=FirstNumbers::PARTITIONS_MAX).contains(&places.partitions) {
            let most = FirstNumbers::PARTITIONS_MAX;
            return Err(ArchiveError::Input(format!(
                "an archive has 1 to {most} partitions, not {}",
                places.partitions
            )));
        }
        let place = ObjectPlace::open(&places.content).map_err(unusable)?;
        place.check().map_err(unusable)?;
        let partitioning = Partitioning { count: places.partitions };
        let mut content = None;
        let make = bucket_s.map(|bucket_s| (bucket_s, partitioning));
        let database = PostgresArchive::open(&address, make, |found| {
            content.clone_from(&found.content);
            check(found, &address, &place, now_ms)
        })?;
        if content.is_none() {
            database.bind_content(place.shown())?;
        }
        std::fs::create_dir_all(local).map_err(ArchiveError::io("create", local))?;
        Ok(Self { database, place, local: local.to_owned(), opened_s: now_ms / 1000 })
    }

    /// The database: leases, workers, partitions.
    pub fn database(&self) -> &PostgresArchive {
        &self.database
    }

    /// The folder of this machine.
    pub(crate) fn local(&self) -> &Path {
        &self.local
    }

    /// Requests for objects made so far.
    pub fn object_requests(&self) -> u64 {
        self.place.requests()
    }

    /// For people: who is at work, who holds which partition, and what waits there.
    pub fn workers(&self) -> Result<Vec<String>> {
        let mut lines = Vec::new();
        for worker in self.database.workers(HEARD)? {
            let (id, name, heard_s) = (worker.id.0, &worker.name, worker.heard_ago_s);
            let partitions = worker.partitions;
            lines.push(format!(
                "worker {id}: {name}, {partitions} partitions, heard {heard_s} s ago"
            ));
        }
        for row in self.database.partitions()? {
            let by = row.worker.map_or("nobody".to_owned(), |id| format!("worker {}", id.0));
            lines.push(format!(
                "partition {}: {by}, epoch {}, {} s left, {} letters wait",
                row.partition.0, row.epoch.0, row.left_s, row.mail_waiting
            ));
        }
        Ok(lines)
    }

    /// The state of one partition.
    pub fn partition(&self, partition: PartitionId) -> Arc<dyn State> {
        Arc::new(self.database.partition(partition))
    }

    /// Every partition's state.
    pub fn partitions(&self) -> Vec<Arc<dyn State>> {
        self.database.partitioning().all().map(|own| self.partition(own)).collect()
    }

    /// All partitions as one state.
    pub fn state(&self) -> Result<Arc<dyn State>> {
        let mut parts = self.partitions();
        if parts.len() == 1 {
            return Ok(parts.remove(0));
        }
        let joined = JoinedState::new(parts);
        joined.complete_sites()?;
        Ok(Arc::new(joined))
    }

    /// The part of the archive that a lease is for, to collect into.
    pub fn hold(&self, lease: &Lease) -> Result<Archive> {
        Ok(self.hold_with(lease)?.0)
    }

    /// The same, and where its packs are.
    fn hold_with(&self, lease: &Lease) -> Result<(Archive, Arc<ObjectBackend>)> {
        let number = lease.partition.0;
        let local = self.local.join(format!("p{number}"));
        let backend =
            ObjectBackend::writing(&self.place, number, lease.epoch.0, local.clone(), CACHE_BYTES)
                .map_err(StoreError::from)?;
        let options = StoreOptions {
            index_path: Some(local.join("packs.index")),
            first_numbers: FirstNumbers::of_partition(number),
            ..StoreOptions::default()
        };
        let backend = Arc::new(backend);
        let store = Store::open(backend.clone(), options)?;
        let state = self.partition(lease.partition);
        Ok((Archive::over(&self.local, state, Arc::new(store), Some(lease.epoch)), backend))
    }

    /// The whole archive, to read. It goes on to learn what all workers store.
    pub fn read(&self) -> Result<Archive> {
        let local = self.local.join("reading");
        let partitions = self.database.partitioning().all().map(|own| own.0);
        let backend = ObjectBackend::reading(&self.place, partitions, local.clone(), CACHE_BYTES)
            .map_err(StoreError::from)?;
        let index_path = Some(local.join("packs.index"));
        let options = StoreOptions { index_path, ..StoreOptions::default() };
        let store = Store::open(Arc::new(backend), options)?;
        let archive = Archive::over(&self.local, self.state()?, Arc::new(store), None);
        let archive = archive.with_parts(Arc::new(self.clone()));
        let store = Arc::downgrade(archive.store());
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(CATCH_UP_PAUSE);
                let Some(store) = store.upgrade() else { return };
                if let Err(error) = store.catch_up() {
                    tracing::warn!("what was stored last is not shown yet: {error}");
                }
            }
        });
        Ok(archive)
    }
}

/// Why content cannot be kept in a place, for whoever named it.
fn unusable(error: BackendError) -> ArchiveError {
    match error {
        BackendError::Io { name, source } => {
            ArchiveError::Input(format!("cannot use the content in {name}: {source}"))
        }
        other => StoreError::from(other).into(),
    }
}

/// Whether clocks agree and the content is that of this archive.
fn check(found: &Found, address: &PostgresPlace, place: &ObjectPlace, now_ms: i64) -> Result<()> {
    let apart_ms = (found.clock_ms - now_ms).abs();
    if apart_ms > CLOCKS_APART_MS {
        return Err(ArchiveError::Input(format!(
            "the clock of this machine and that of the database are {} seconds apart; set them by \
             the same time server",
            apart_ms / 1000
        )));
    }
    match &found.content {
        Some(bound) if bound != place.shown() => Err(ArchiveError::Input(format!(
            "the archive in {} has its content in {bound}, not in {}; name it with --content",
            address.shown(),
            place.shown()
        ))),
        _ => place.claim(&found.id).map_err(unusable),
    }
}

/// How long a partition is held without being heard.
pub const LEASE: Duration = Duration::from_secs(20);

/// When a holder gives up unless it was heard again: what it asked for last is over before others
/// may take the partition.
pub const LEASE_SAFE: Duration = Duration::from_secs(15);

/// What changed for a worker.
#[derive(Debug, Default)]
pub struct Turn {
    /// Partitions that it holds from now on.
    pub gained: Vec<Lease>,
    /// Partitions that it still holds.
    pub kept: BTreeSet<PartitionId>,
    /// Partitions that it should stop and [hand over](Worker::hand_over), so that others have work.
    pub spare: Vec<PartitionId>,
}

/// One of the workers of a shared archive.
pub struct Worker {
    shared: SharedArchive,
    id: WorkerId,
    dropped: BTreeMap<(PartitionId, PartitionId), u64>,
    /// Two workers on one machine need folders of their own.
    _alone: Lock,
}

impl Worker {
    /// Enters the archive as a worker of some name, which must be able to write content.
    pub fn enter(shared: &SharedArchive, name: &str) -> Result<Self> {
        let alone = Lock::hold(&shared.local)?;
        shared.place.check_writing().map_err(unusable)?;
        let id = shared.database.enter_worker(name)?;
        Ok(Self { shared: shared.clone(), id, dropped: BTreeMap::new(), _alone: alone })
    }

    /// Says that this worker is alive, takes partitions that nobody holds, and names those that it
    /// keeps or should leave to others. To be called at least three times in [`LEASE_SAFE`].
    ///
    /// `driven` are the partitions that are at work here, `ending` those that have lost the
    /// partition or leave it, and still need its folder.
    pub fn tend(
        &mut self,
        driven: &BTreeSet<PartitionId>,
        ending: &BTreeSet<PartitionId>,
    ) -> Result<Turn> {
        let database = &self.shared.database;
        let still: BTreeSet<PartitionId> = database.renew(self.id, LEASE)?.into_iter().collect();
        // Taken, but the answer was lost on the way: nobody works there.
        let idle = still.iter().filter(|own| !driven.contains(own) && !ending.contains(own));
        let idle: Vec<PartitionId> = idle.copied().collect();
        if !idle.is_empty() {
            database.hand_over(self.id, &idle)?;
        }
        let kept: BTreeSet<PartitionId> = still.intersection(driven).copied().collect();
        let workers = database.workers(LEASE)?.len().max(1);
        let fair = (database.partitioning().count as usize).div_ceil(workers);
        let room = fair.saturating_sub(kept.len());
        let but: Vec<PartitionId> = driven.union(ending).copied().collect();
        let gained = match room {
            0 => Vec::new(),
            _ => database.take_partitions(self.id, LEASE, room, &but)?,
        };
        let spare = kept.iter().rev().take(kept.len().saturating_sub(fair)).copied().collect();
        Ok(Turn { gained, kept, spare })
    }

    /// Gives a partition back: nothing of it is under way any more.
    pub fn hand_over(&mut self, partition: PartitionId) -> Result<()> {
        Ok(self.shared.database.hand_over(self.id, &[partition])?)
    }

    /// Takes in the mail of the partitions that are held here; returns the events for their
    /// machines. `epoch` names the epoch under which one is held.
    pub fn take_mail(
        &mut self,
        epoch: impl Fn(PartitionId) -> Option<Epoch>,
    ) -> Result<Vec<(PartitionId, Event)>> {
        let mut events = Vec::new();
        for MailRow { from, to, sent, taken } in self.shared.database.mail()? {
            if let Some(epoch) = epoch(to).filter(|_| sent > taken) {
                let (own, other) = (self.shared.partition(to), self.shared.partition(from));
                let taken = nenrin_crawl::take_mail(&*own, epoch, &*other)?;
                events.extend(taken.into_iter().map(|event| (to, event)));
            }
            let dropped = self.dropped.get(&(from, to)).copied().unwrap_or(0);
            if let Some(epoch) = epoch(from).filter(|_| taken > dropped) {
                let (own, other) = (self.shared.partition(from), self.shared.partition(to));
                nenrin_crawl::drop_taken_mail(&*own, epoch, &*other)?;
                self.dropped.insert((from, to), taken);
            }
        }
        Ok(events)
    }

    /// Ends: others may take at once what this worker held.
    pub fn leave(self) -> Result<()> {
        Ok(self.shared.database.leave(self.id)?)
    }
}

/// What is synced together where every sync writes an object: larger and rarer.
pub const OBJECTS_PAUSE: Duration = Duration::from_secs(2);
