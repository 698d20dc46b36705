//! An index that is open for reading.

use std::{
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{
    pages::{PageTable, Records},
    position::Position,
    words::Words,
};
use crate::SearchError;

/// An index that is open for reading.
pub(crate) struct Index {
    pub(super) words: Words,
    shared: Mutex<Snapshot>,
}

/// What is read together: the records, and the table of pages in memory.
pub(super) struct Snapshot {
    pub(super) records: Records,
    pub(super) table: PageTable,
}

impl Index {
    /// Opens the index in a folder; `None` if there is none, or one of another format.
    pub(crate) fn open(folder: &Path) -> Result<Option<Self>, SearchError> {
        let Some(records) = Records::open_to_read(folder)? else { return Ok(None) };
        let Some(words) = Words::open(folder)? else { return Ok(None) };
        let table = PageTable::default();
        Ok(Some(Self { words, shared: Mutex::new(Snapshot { records, table }) }))
    }

    pub(super) fn snapshot(&self) -> MutexGuard<'_, Snapshot> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far it has followed.
    pub(crate) fn position(&self) -> Result<Position, SearchError> {
        self.snapshot().records.position()
    }

    /// Pages and blocks in it.
    pub(crate) fn counts(&self) -> Result<(u64, u64), SearchError> {
        let pages = self.snapshot().records.count()?;
        Ok((pages, self.words.count()?))
    }
}
