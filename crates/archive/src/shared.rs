//! An archive that several machines share: the state in PostgreSQL, the content in objects.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use nenrin_crawl::Event;
use nenrin_state::{
    Epoch, JoinedState, Lease, MailRow, PartitionId, Partitioning, PostgresArchive, PostgresPlace,
    State, StateError, WorkerId,
};
use nenrin_store::{FirstNumbers, ObjectBackend, ObjectPlace, Store, StoreError, StoreOptions};

use crate::{Archive, ArchiveError, Result, lock::Lock};

/// The clocks of two machines may differ by so much.
const CLOCKS_APART_MS: i64 = 30_000;
/// What a reader or a holder keeps of objects on its own disk, at most.
const CACHE_BYTES: u64 = 1 << 30;

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
}

impl SharedArchive {
    /// Opens a shared archive, or makes it. `local` is a folder of this machine, for indexes and a
    /// cache, which may be deleted. Everything that can be wrong is found before anything is
    /// written.
    pub fn open(places: &SharedPlaces, local: &Path, bucket_s: i64, now_ms: i64) -> Result<Self> {
        let why = |why: String| StateError::NoDatabase { why };
        let address: PostgresPlace = places.state.parse().map_err(why)?;
        if !(1..=FirstNumbers::PARTITIONS_MAX).contains(&places.partitions) {
            let most = FirstNumbers::PARTITIONS_MAX;
            return Err(ArchiveError::Input(format!(
                "an archive has 1 to {most} partitions, not {}",
                places.partitions
            )));
        }
        let place = ObjectPlace::open(&places.content).map_err(StoreError::from)?;
        place.check().map_err(StoreError::from)?;
        let partitioning = Partitioning { count: places.partitions };
        let database = PostgresArchive::open(&address, bucket_s, partitioning)?;
        let apart_ms = (database.clock_ms()? - now_ms).abs();
        if apart_ms > CLOCKS_APART_MS {
            return Err(ArchiveError::Input(format!(
                "the clock of this machine and that of the database are {} seconds apart; set them \
                 by the same time server",
                apart_ms / 1000
            )));
        }
        place.claim(&database.id()?).map_err(StoreError::from)?;
        database.bind_content(place.shown())?;
        std::fs::create_dir_all(local).map_err(ArchiveError::io("create", local))?;
        Ok(Self { database, place, local: local.to_owned() })
    }

    /// The database: leases, workers, partitions.
    pub fn database(&self) -> &PostgresArchive {
        &self.database
    }

    /// Requests for objects made so far.
    pub fn object_requests(&self) -> u64 {
        self.place.requests()
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
        let store = Store::open(Arc::new(backend), options)?;
        let state = self.partition(lease.partition);
        Ok(Archive::over(&self.local, state, store))
    }

    /// The whole archive, to read. [`Store::catch_up`] shows it what was written since.
    pub fn read(&self) -> Result<Archive> {
        let local = self.local.join("reading");
        let partitions = self.database.partitioning().all().map(|own| own.0);
        let backend = ObjectBackend::reading(&self.place, partitions, local.clone(), CACHE_BYTES)
            .map_err(StoreError::from)?;
        let index_path = Some(local.join("packs.index"));
        let options = StoreOptions { index_path, ..StoreOptions::default() };
        let store = Store::open(Arc::new(backend), options)?;
        Ok(Archive::over(&self.local, self.state()?, store))
    }
}

/// How long a partition is held without being heard.
pub const LEASE: Duration = Duration::from_secs(20);

/// What changed for a worker.
#[derive(Debug, Default)]
pub struct Turn {
    /// Partitions that it holds from now on.
    pub gained: Vec<Lease>,
    /// Partitions that others took: what is under way there is given up at once.
    pub lost: Vec<PartitionId>,
    /// Partitions that it should stop and [hand over](Worker::hand_over), so that others have work.
    pub spare: Vec<PartitionId>,
}

/// One of the workers of a shared archive.
pub struct Worker {
    shared: SharedArchive,
    id: WorkerId,
    held: BTreeSet<PartitionId>,
    dropped: BTreeMap<(PartitionId, PartitionId), u64>,
    /// Two workers on one machine need folders of their own.
    _alone: Lock,
}

impl Worker {
    /// Enters the archive as a worker of some name.
    pub fn enter(shared: &SharedArchive, name: &str) -> Result<Self> {
        let alone = Lock::hold(&shared.local)?;
        let id = shared.database.enter_worker(name)?;
        let (held, dropped) = (BTreeSet::new(), BTreeMap::new());
        Ok(Self { shared: shared.clone(), id, held, dropped, _alone: alone })
    }

    /// Says that this worker is alive, takes partitions that nobody holds, and names those that it
    /// lost or should leave to others. To be called at least three times in a [`LEASE`].
    pub fn tend(&mut self) -> Result<Turn> {
        let database = &self.shared.database;
        let still: BTreeSet<PartitionId> = database.renew(self.id, LEASE)?.into_iter().collect();
        let lost = self.held.difference(&still).copied().collect();
        self.held = still;
        let workers = database.workers(LEASE)?.len().max(1);
        let fair = (database.partitioning().count as usize).div_ceil(workers);
        let room = fair.saturating_sub(self.held.len());
        let gained = match room {
            0 => Vec::new(),
            _ => database.take_partitions(self.id, LEASE, room)?,
        };
        self.held.extend(gained.iter().map(|lease| lease.partition));
        let spare = self.held.iter().rev().take(self.held.len().saturating_sub(fair));
        Ok(Turn { gained, lost, spare: spare.copied().collect() })
    }

    /// Gives a partition back: nothing of it is under way any more.
    pub fn hand_over(&mut self, partition: PartitionId) -> Result<()> {
        self.held.remove(&partition);
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
