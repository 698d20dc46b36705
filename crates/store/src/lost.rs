//! Versions that an index knew and another does not.

use rusqlite::Connection;

use crate::VersionId;
use crate::error::StoreError;
use crate::index::Index;

/// Versions that are named; beyond, they are counted.
const MAX_NAMED: usize = 1000;
/// Versions that are looked up at a time.
const BATCH: usize = 4096;

/// Versions that are lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LostVersions {
    /// How many.
    pub count: u64,
    /// The first of them.
    pub versions: Vec<VersionId>,
}

/// The numbers of all versions of an index as stretches without a gap, in a temporary file.
pub(crate) struct KnownVersions(Connection);

impl KnownVersions {
    /// As far as the index can be read.
    pub(crate) fn of(index: &Index) -> Result<Self, StoreError> {
        // An empty name is a temporary file of its own.
        let known = Self(Connection::open("")?);
        known.0.execute_batch("CREATE TABLE known(first INTEGER, last INTEGER); BEGIN")?;
        let mut stretch: Option<(u64, u64)> = None;
        let mut next = 0;
        while let Ok(batch) = index.versions_from(next, BATCH) {
            let Some((last, _)) = batch.last() else { break };
            next = last + 1;
            for (id, _) in batch {
                stretch = match stretch {
                    Some((first, last)) if last + 1 == id => Some((first, id)),
                    other => {
                        known.add(other)?;
                        Some((id, id))
                    }
                };
            }
        }
        known.add(stretch)?;
        known.0.execute_batch("COMMIT")?;
        Ok(known)
    }

    fn add(&self, stretch: Option<(u64, u64)>) -> Result<(), StoreError> {
        let Some((first, last)) = stretch else { return Ok(()) };
        let mut add = self.0.prepare_cached("INSERT INTO known VALUES(?1, ?2)")?;
        add.execute([first as i64, last as i64])?;
        Ok(())
    }

    pub(crate) fn missing_in(self, index: &Index) -> Result<LostVersions, StoreError> {
        let mut lost = LostVersions::default();
        let mut stretches = self.0.prepare("SELECT first, last FROM known")?;
        let mut rows = stretches.query([])?;
        while let Some(row) = rows.next()? {
            for id in row.get::<_, i64>(0)?..=row.get::<_, i64>(1)? {
                if index.version(id as u64)?.is_none() {
                    lost.count += 1;
                    if lost.versions.len() < MAX_NAMED {
                        lost.versions.push(VersionId(id as u64));
                    }
                }
            }
        }
        Ok(lost)
    }
}
