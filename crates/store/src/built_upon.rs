//! What must not go: stored bodies that something refers to that was written while compacting.

use rusqlite::Connection;

use crate::digest::BodyKey;
use crate::error::StoreError;

/// In a temporary file: compacting may take long, and much may be written meanwhile.
pub(crate) struct BuiltUpon {
    connection: Connection,
}

impl BuiltUpon {
    pub(crate) fn new() -> Result<Self, StoreError> {
        // The empty name is a file that SQLite deletes by itself.
        let connection = Connection::open("")?;
        connection.execute_batch(
            "PRAGMA cache_size = -2000;
             CREATE TABLE bodies(key BLOB PRIMARY KEY) WITHOUT ROWID;
             BEGIN;",
        )?;
        Ok(Self { connection })
    }

    pub(crate) fn note(&self, key: BodyKey) -> Result<(), StoreError> {
        let mut note = self.connection.prepare_cached("INSERT OR IGNORE INTO bodies VALUES(?1)")?;
        note.execute([key.0])?;
        Ok(())
    }

    pub(crate) fn visit(
        &self,
        visit: &mut dyn FnMut(BodyKey) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut statement = self.connection.prepare_cached("SELECT key FROM bodies")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            visit(BodyKey(row.get(0)?))?;
        }
        Ok(())
    }
}
