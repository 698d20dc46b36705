//! What is fixed when a state is made, the epoch, and other numbers that are kept by name.

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use crate::{Epoch, PartitionId, Partitioning};

/// What is fixed when a state is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    /// The resolution of the long-term queue.
    pub(super) bucket_s: i64,
    /// How the archive is divided.
    pub(super) partitioning: Partitioning,
    /// Which part of it this is.
    pub(super) own: PartitionId,
}

impl Settings {
    /// Writes them into a new state.
    pub(super) fn write(&self, t: &Transaction<'_>) -> rusqlite::Result<()> {
        set(t, "bucket_s", self.bucket_s.max(1))?;
        set(t, "partitions", self.partitioning.count.max(1).into())?;
        set(t, "partition", self.own.0.into())
    }

    /// Whether there are other partitions.
    pub(super) fn is_divided(&self) -> bool {
        self.partitioning.count > 1
    }

    pub(super) fn read(c: &Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            bucket_s: get(c, "bucket_s")?.unwrap_or(3600),
            partitioning: Partitioning { count: get(c, "partitions")?.unwrap_or(1) as u32 },
            own: PartitionId(get(c, "partition")?.unwrap_or(0) as u32),
        })
    }
}

/// The epoch under which the partition is held; 0 if it was never taken over.
pub(super) fn epoch(c: &Connection) -> rusqlite::Result<Epoch> {
    Ok(Epoch(get(c, "epoch")?.unwrap_or(0) as u64))
}

pub(super) fn take_over(t: &Transaction<'_>) -> rusqlite::Result<Epoch> {
    let next = Epoch(epoch(t)?.0 + 1);
    set(t, "epoch", next.0 as i64)?;
    Ok(next)
}

/// A number that is kept under a name.
pub(super) fn get(c: &Connection, name: &str) -> rusqlite::Result<Option<i64>> {
    c.prepare_cached("SELECT value FROM meta WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()
}

pub(super) fn set(t: &Transaction<'_>, name: &str, value: i64) -> rusqlite::Result<()> {
    t.prepare_cached("INSERT OR REPLACE INTO meta VALUES (?1, ?2)")?
        .execute(params![name, value])?;
    Ok(())
}
