//! An archive that several machines share: the state in PostgreSQL, the content in objects.

mod alone;
mod balance;

pub use self::balance::{LoadGauge, left_by, taken_by};

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use nenrin_crawl::{Event, MAIL_MAX};
use nenrin_state::{
    Change, Epoch, Found, JoinedState, Lease, MailRow, News, PartitionId, Partitioning,
    PostgresArchive, PostgresPlace, SiteId, State, StateError, WorkerId,
};
use nenrin_store::{
    BackendError, FirstNumbers, ObjectBackend, ObjectPlace, Store, StoreError, StoreOptions,
};

use crate::{Archive, ArchiveError, Result, SitesTaken, lock::Lock};

/// The clocks of two machines may differ by so much.
const CLOCKS_APART_MS: i64 = 30_000;
/// What a reader or a holder keeps of objects on its own disk, at most.
const CACHE_BYTES: u64 = 1 << 30;
/// Workers that reported within this time are listed.
const HEARD: Duration = Duration::from_secs(3_600);
/// How old what a reader knows of the workers' packs may be.
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

/// The states of partitions that are held here, and under which epoch.
type HeldStates = BTreeMap<PartitionId, (Epoch, Arc<dyn State>)>;

/// A shared archive, open.
#[derive(Clone)]
pub struct SharedArchive {
    database: PostgresArchive,
    place: ObjectPlace,
    local: PathBuf,
    opened_s: i64,
    held: Arc<Mutex<HeldStates>>,
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
        let (local, opened_s, held) = (local.to_owned(), now_ms / 1000, Arc::default());
        Ok(Self { database, place, local, opened_s, held })
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
                "worker {id}: {name}, {partitions} partitions, last report {heard_s} s ago"
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

    fn held(&self) -> MutexGuard<'_, HeldStates> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
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
        let state: Arc<dyn State> = Arc::new(self.database.hold(lease.partition));
        self.held().insert(lease.partition, (lease.epoch, state.clone()));
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
                if let Err(error) = store.follow() {
                    tracing::warn!("what was stored last is not shown yet: {error}");
                }
            }
        });
        Ok(archive)
    }
}

/// Why content cannot be stored at an address, for the person who named it.
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

/// How long a worker holds a partition without reporting.
pub const LEASE: Duration = Duration::from_secs(20);

/// A holder that could not report for this long stops: its last requests are over before others may
/// take the partition.
pub const LEASE_SAFE: Duration = Duration::from_secs(15);

/// What sites take is said with every so many turns.
const SIZE_TURNS: u64 = 6;

/// Mail that was taken in is dropped with every so many looks for mail.
const DROP_LOOKS: u64 = 15;

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

/// What came for the partitions of a worker.
pub struct Arrived {
    /// Events for the machines of partitions.
    pub events: Vec<(PartitionId, Event)>,
    /// Partitions that others changed.
    pub changed: Vec<PartitionId>,
}

/// One of the workers of a shared archive.
pub struct Worker {
    shared: SharedArchive,
    id: WorkerId,
    dropped: BTreeMap<(PartitionId, PartitionId), u64>,
    /// How often it looked for mail, and how often others had changed each partition then.
    looks: u64,
    seen: BTreeMap<PartitionId, i64>,
    /// How often leases were tended, and what sites take in all partitions.
    tended: u64,
    taken: SitesTaken,
    /// Two workers on one machine need folders of their own.
    _alone: Lock,
}

impl Worker {
    /// Enters the archive as a worker of some name, which must be able to write content.
    pub fn enter(shared: &SharedArchive, name: &str) -> Result<Self> {
        let alone = Lock::hold(&shared.local)?;
        shared.place.check_writing().map_err(unusable)?;
        let id = shared.database.enter_worker(name)?;
        let (shared, dropped, seen) = (shared.clone(), BTreeMap::new(), BTreeMap::new());
        let (looks, tended, taken) = (0, 0, SitesTaken::default());
        Ok(Self { shared, id, dropped, looks, seen, tended, taken, _alone: alone })
    }

    /// Says that this worker is alive, takes partitions that nobody holds, and names those that it
    /// keeps or should leave to others. To be called at least three times in [`LEASE_SAFE`].
    ///
    /// `driven` are the partitions that are at work here, with what each weighs; `ending` those that
    /// have lost the partition or leave it, and still need its folder.
    pub fn tend(
        &mut self,
        driven: &BTreeMap<PartitionId, u64>,
        ending: &BTreeSet<PartitionId>,
    ) -> Result<Turn> {
        let database = &self.shared.database;
        let mut now = database.renew(self.id, LEASE, driven)?;
        let still: BTreeSet<PartitionId> = now.held.keys().copied().collect();
        let is_driven = |own: &PartitionId| driven.contains_key(own);
        // Taken, but the answer was lost on the way: nobody works there.
        let idle = still.iter().filter(|own| !is_driven(own) && !ending.contains(own));
        let idle: Vec<PartitionId> = idle.copied().collect();
        if !idle.is_empty() {
            database.hand_over(self.id, &idle)?;
        }
        // What was lost or is about to be left still needs its folder.
        now.held.retain(|own, _| is_driven(own));
        now.free.retain(|(own, _)| !is_driven(own) && !ending.contains(own));
        let wanted = balance::taken_by(self.id, &now);
        let gained = match wanted.is_empty() {
            true => Vec::new(),
            false => database.take_partitions(self.id, LEASE, &wanted)?,
        };
        let spare = balance::left_by(self.id, &now);
        let kept = now.held.into_keys().collect();
        Ok(Turn { gained, kept, spare })
    }

    /// What sites take in all partitions, as far as workers said.
    pub fn taken(&self) -> &SitesTaken {
        &self.taken
    }

    /// Now and then says what sites take in these partitions, and hears what they take in all. To be
    /// called with every [`tend`](Self::tend).
    pub fn tell_sizes(&mut self, held: &[(PartitionId, Arc<Store>)]) -> Result<()> {
        let is_time = self.tended.is_multiple_of(SIZE_TURNS);
        self.tended += 1;
        if !is_time {
            return Ok(());
        }
        let mut sizes = Vec::new();
        for (partition, store) in held {
            let sites = store.site_bytes()?;
            sizes.extend(sites.iter().map(|of| (*partition, SiteId(of.group), of.stored_bytes())));
        }
        self.taken.set(self.shared.database.keep_sizes(&sizes)?);
        Ok(())
    }

    /// Gives a partition back: nothing of it is under way any more.
    pub fn hand_over(&mut self, partition: PartitionId) -> Result<()> {
        self.shared.held().remove(&partition);
        Ok(self.shared.database.hand_over(self.id, &[partition])?)
    }

    /// Takes in the mail of the partitions that are held here. `epoch` names the epoch under which one
    /// is held.
    pub fn take_mail(&mut self, epoch: impl Fn(PartitionId) -> Option<Epoch>) -> Result<Arrived> {
        let News { mail, changed } = self.shared.database.news()?;
        let mut events = Vec::new();
        let mut waiting: BTreeMap<PartitionId, BTreeMap<PartitionId, u64>> = BTreeMap::new();
        for row in mail.iter().filter(|row| row.sent > row.taken) {
            waiting.entry(row.to).or_default().insert(row.from, row.taken);
        }
        for (to, after) in waiting {
            let Some((epoch, own)) = self.held_state(to, &epoch) else { continue };
            let mail = self.shared.database.mail_to(to, &after, MAIL_MAX)?;
            if !mail.is_empty() {
                let taken = nenrin_crawl::take_in(&*own, epoch, mail)?;
                events.extend(taken.into_iter().map(|event| (to, event)));
            }
        }
        self.drop_taken(&mail, &epoch)?;
        let is_new = |&(own, times): &(&PartitionId, &i64)| self.seen.get(own) != Some(times);
        let news = changed.iter().filter(is_new).map(|(own, _)| *own).collect();
        self.seen = changed;
        Ok(Arrived { events, changed: news })
    }

    /// The state of a partition that is at work here under this epoch.
    fn held_state(
        &self,
        partition: PartitionId,
        epoch: impl Fn(PartitionId) -> Option<Epoch>,
    ) -> Option<(Epoch, Arc<dyn State>)> {
        let held = self.shared.held().get(&partition).cloned();
        held.filter(|(under, _)| epoch(partition) == Some(*under))
    }

    /// Now and then drops mail that was taken in.
    fn drop_taken(
        &mut self,
        mail: &[MailRow],
        epoch: impl Fn(PartitionId) -> Option<Epoch>,
    ) -> Result<()> {
        self.looks += 1;
        if !self.looks.is_multiple_of(DROP_LOOKS) {
            return Ok(());
        }
        for of_sender in mail.chunk_by(|one, next| one.from == next.from) {
            let from = of_sender[0].from;
            let Some((epoch, own)) = self.held_state(from, &epoch) else { continue };
            let dropped = |to| self.dropped.get(&(from, to)).copied().unwrap_or(0);
            let taken = of_sender.iter().filter(|row| row.taken > dropped(row.to));
            let taken: Vec<(PartitionId, u64)> = taken.map(|row| (row.to, row.taken)).collect();
            let changes: Vec<Change> =
                taken.iter().map(|&(to, upto)| Change::MailDelivered { to, upto }).collect();
            own.commit_under(epoch, &changes)?;
            self.dropped.extend(taken.into_iter().map(|(to, upto)| ((from, to), upto)));
        }
        Ok(())
    }

    /// Ends: others may take at once what this worker held.
    pub fn leave(self) -> Result<()> {
        Ok(self.shared.database.leave(self.id)?)
    }
}

/// How long a driver lets what it has wait for more, where each write has its price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pauses {
    /// Versions, until they are uploaded as a pack.
    pub objects: Duration,
    /// Visits, until they are committed.
    pub commits: Duration,
}

/// Those of a shared archive.
pub const PAUSES: Pauses =
    Pauses { objects: Duration::from_secs(4), commits: Duration::from_secs(2) };

/// Visits of a partition that may wait to be stored and committed: more than go into one pack and one
/// commit, so that collecting goes on meanwhile.
pub const UNSTORED_MAX: usize = 1_024;
