//! The connections, and the transactions around every call.

use std::{
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
};

use rusqlite::Connection;

use super::{open, settings::Settings};
use crate::{PartitionId, Partitioning, StateError, known::Known};

/// The embedded state. One connection writes, another reads, so that the interface never waits for
/// a commit; what takes seconds to read has one of its own for that time, so that no other reader
/// waits for it.
pub struct SqliteState {
    path: PathBuf,
    pub(super) settings: Settings,
    writer: Mutex<Connection>,
    pub(super) known: Mutex<Known>,
    /// `None` in memory, where a second connection would see another database.
    pub(super) reader: Option<Mutex<Connection>>,
    /// Held during a long read: each takes the memory of a connection, so there is one at a time.
    long_read: Mutex<()>,
    pub(super) has_visits_by_page: AtomicBool,
    /// Above this many bytes it gets larger pages.
    grows_at_bytes: AtomicI64,
}

impl SqliteState {
    /// Opens or creates the state in a file, not divided into partitions. `bucket_s` is the
    /// resolution of the long-term queue; an existing state keeps its own.
    pub fn open(path: &Path, bucket_s: i64) -> Result<Self, StateError> {
        Self::open_partition(path, bucket_s, Partitioning::SINGLE, PartitionId(0))
    }

    /// Opens or creates the state of one partition in a file. An existing state keeps how it is
    /// divided.
    pub fn open_partition(
        path: &Path,
        bucket_s: i64,
        partitioning: Partitioning,
        own: PartitionId,
    ) -> Result<Self, StateError> {
        let writer = open::writer(path, &Settings { bucket_s, partitioning, own })?;
        let reader = open::reader(path)?;
        Self::over(path.to_owned(), writer, Some(reader))
    }

    /// Opens an existing state to read. Where the disk is full, it is read all the same.
    pub fn open_to_read(path: &Path, bucket_s: i64) -> Result<Self, StateError> {
        match Self::open(path, bucket_s) {
            Err(StateError::NoRoom { .. }) => Self::over(path.to_owned(), open::alone(path)?, None),
            other => other,
        }
    }

    /// Whether this file was made by [`open`](Self::open) and not emptied since.
    pub fn is_begun(path: &Path) -> Result<bool, StateError> {
        open::has_tables(path)
    }

    /// A state in memory, for simulations and tests.
    pub fn in_memory(bucket_s: i64) -> Result<Self, StateError> {
        Self::partition_in_memory(bucket_s, Partitioning::SINGLE, PartitionId(0))
    }

    /// The state of one partition in memory, for simulations and tests.
    pub fn partition_in_memory(
        bucket_s: i64,
        partitioning: Partitioning,
        own: PartitionId,
    ) -> Result<Self, StateError> {
        let path = PathBuf::from(":memory:");
        let writer = open::writer(&path, &Settings { bucket_s, partitioning, own })?;
        Self::over(path, writer, None)
    }

    fn over(
        path: PathBuf,
        writer: Connection,
        reader: Option<Connection>,
    ) -> Result<Self, StateError> {
        let settings = Settings::read(&writer).map_err(|e| open::explain(&path, "read", e))?;
        Ok(Self {
            path,
            settings,
            writer: Mutex::new(writer),
            known: Mutex::default(),
            reader: reader.map(Mutex::new),
            long_read: Mutex::default(),
            has_visits_by_page: AtomicBool::new(false),
            grows_at_bytes: AtomicI64::new(open::SMALL_STATE_BYTES),
        })
    }

    pub(super) fn write<T>(
        &self,
        action: &'static str,
        work: impl FnOnce(&rusqlite::Transaction<'_>) -> Result<T, Refusal>,
    ) -> Result<T, StateError> {
        let mut writer = lock(&self.writer);
        self.grow(&writer)?;
        let explain = |e| open::explain(&self.path, action, e);
        let transaction = writer
            .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
            .map_err(explain)?;
        let answer = work(&transaction).map_err(|refusal| match refusal {
            Refusal::Engine(e) => explain(e),
            Refusal::State(e) => e,
        })?;
        transaction.commit().map_err(explain)?;
        Ok(answer)
    }

    /// Gives the database of a grown state larger pages. That is not possible while another process
    /// has it open, or without free space: then it is tried again when the state has doubled.
    fn grow(&self, writer: &Connection) -> Result<(), StateError> {
        let explain = |e| open::explain(&self.path, "given larger pages", e);
        let Some(reader) = &self.reader else { return Ok(()) };
        let bytes = open::small_pages_bytes(writer).map_err(explain)?;
        if bytes <= self.grows_at_bytes.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.grows_at_bytes.store(2 * bytes, Ordering::Relaxed);
        let mut reader = lock(reader);
        // The engine wants to be alone with the file.
        *reader = Connection::open_in_memory().map_err(explain)?;
        let grown = open::enlarge_pages(writer).map_err(explain);
        *reader = open::reader(&self.path)?;
        grown
    }

    pub(super) fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StateError> {
        let reader = lock(self.reader.as_ref().unwrap_or(&self.writer));
        work(&reader).map_err(|e| open::explain(&self.path, "read", e))
    }

    /// Reads what only one of several partitions has.
    pub(super) fn read_divided<T: Default>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StateError> {
        if self.settings.is_divided() { self.read(work) } else { Ok(T::default()) }
    }

    /// Reads what can take seconds.
    pub(super) fn read_long<T>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StateError> {
        if self.reader.is_none() {
            return self.read(work);
        }
        let _alone = self.long_read.lock().unwrap_or_else(PoisonError::into_inner);
        let reader = open::reader(&self.path)?;
        work(&reader).map_err(|e| open::explain(&self.path, "read", e))
    }

    /// Copies all of it, as it is at one moment, into a new file.
    pub(super) fn copy(&self, to: &Path) -> Result<(), StateError> {
        let name = to.to_string_lossy();
        let copied = self.read_long(|c| {
            c.pragma_update(None, "query_only", false)?;
            c.execute("VACUUM INTO ?1", [&*name])
        });
        copied.map(drop)
    }

    /// Frees the space that deletions and updates left unused.
    pub(super) fn shrink(&self) -> Result<(), StateError> {
        lock(&self.writer)
            .execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE);")
            .map_err(|e| open::explain(&self.path, "tidied up", e))
    }
}

/// A panic while the lock was held rolled its transaction back, so the connection is sound.
fn lock(connection: &Mutex<Connection>) -> MutexGuard<'_, Connection> {
    connection.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why a transaction is rolled back.
pub(super) enum Refusal {
    Engine(rusqlite::Error),
    State(StateError),
}

impl From<rusqlite::Error> for Refusal {
    fn from(error: rusqlite::Error) -> Self {
        Self::Engine(error)
    }
}

impl From<StateError> for Refusal {
    fn from(error: StateError) -> Self {
        Self::State(error)
    }
}
