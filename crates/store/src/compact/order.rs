//! The versions that are being compacted, in their new order: kept in a temporary file, because
//! there may be more of them than fit into memory.

use rusqlite::{Connection, params};

use crate::Digest;
use crate::error::StoreError;
use crate::media::Class;
use crate::pack::damaged;
use crate::rows::{self, Row};

const TABLES: &str = "
PRAGMA cache_size = -16000;
CREATE TABLE items(site INTEGER, class INTEGER, url TEXT, visited INTEGER, id INTEGER,
  digest BLOB, record BLOB, new INTEGER);
CREATE TABLE placed(digest BLOB PRIMARY KEY) WITHOUT ROWID;
BEGIN;
";

pub(super) struct Order {
    connection: Connection,
}

impl Order {
    pub(super) fn new() -> Result<Self, StoreError> {
        // The empty name is a file that SQLite deletes by itself.
        let connection = Connection::open("")?;
        connection.execute_batch(TABLES)?;
        Ok(Self { connection })
    }

    pub(super) fn add(&self, row: &Row, class: Class, is_new: bool) -> Result<(), StoreError> {
        let record = rows::encode(std::slice::from_ref(row), 0, 1);
        self.connection
            .prepare_cached("INSERT INTO items VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?
            .execute(params![
                row.group,
                class as u8,
                directory_order(&row.url),
                row.visited_at_s,
                row.id as i64,
                row.digest.0,
                record,
                is_new
            ])?;
        Ok(())
    }

    /// To be called between adding and asking.
    pub(super) fn sort(&self) -> Result<(), StoreError> {
        self.connection
            .execute_batch("CREATE INDEX sorted ON items(site, class, url, visited, id, digest)")?;
        Ok(())
    }

    pub(super) fn count(&self) -> Result<u64, StoreError> {
        let count: i64 =
            self.connection.query_row("SELECT count(*) FROM items", [], |row| row.get(0))?;
        Ok(count as u64)
    }

    /// Visits bodies that were never compacted, in the order of their digests.
    pub(super) fn new_bodies(
        &self,
        class: Class,
        visit: &mut dyn FnMut(Digest) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT DISTINCT digest FROM items WHERE new AND class = ?1 ORDER BY digest",
        )?;
        let mut rows = statement.query([class as u8])?;
        while let Some(row) = rows.next()? {
            visit(Digest(row.get(0)?))?;
        }
        Ok(())
    }

    /// Versions that were never compacted.
    pub(super) fn count_new(&self) -> Result<u64, StoreError> {
        let count: i64 =
            self.connection
                .query_row("SELECT count(*) FROM items WHERE new", [], |row| row.get(0))?;
        Ok(count as u64)
    }

    pub(super) fn sites(&self) -> Result<Vec<u32>, StoreError> {
        let mut statement =
            self.connection.prepare("SELECT DISTINCT site FROM items ORDER BY site")?;
        let sites = statement.query_map([], |row| row.get(0))?;
        Ok(sites.collect::<Result<_, _>>()?)
    }

    /// The bodies of a site in order, each at its first place only, and whether another page
    /// begins with it.
    pub(super) fn bodies(
        &self,
        site: u32,
        class: Class,
    ) -> Result<Vec<(Digest, bool)>, StoreError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT digest, url FROM items WHERE site = ?1 AND class = ?2
             ORDER BY url, visited, id",
        )?;
        let mut mark = self.connection.prepare_cached("INSERT OR IGNORE INTO placed VALUES(?1)")?;
        let mut rows = statement.query(params![site, class as u8])?;
        let mut bodies = Vec::new();
        let mut page = String::new();
        while let Some(row) = rows.next()? {
            let digest = Digest(row.get(0)?);
            if mark.execute([digest.0])? == 1 {
                let url: String = row.get(1)?;
                bodies.push((digest, url != page));
                page = url;
            }
        }
        Ok(bodies)
    }

    /// Whether the body was taken by [`bodies`](Self::bodies).
    pub(super) fn is_placed(&self, digest: &Digest) -> Result<bool, StoreError> {
        let mut statement =
            self.connection.prepare_cached("SELECT 1 FROM placed WHERE digest = ?1")?;
        Ok(statement.exists([digest.0])?)
    }

    pub(super) fn set_placed(&self, digest: &Digest) -> Result<(), StoreError> {
        self.connection
            .prepare_cached("INSERT OR IGNORE INTO placed VALUES(?1)")?
            .execute([digest.0])?;
        Ok(())
    }

    /// The records of a site in order.
    pub(super) fn rows(
        &self,
        site: u32,
        visit: &mut dyn FnMut(Row) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT record FROM items WHERE site = ?1 ORDER BY class, url, visited, id",
        )?;
        let mut found = statement.query([site])?;
        while let Some(row) = found.next()? {
            let record: Vec<u8> = row.get(0)?;
            let decoded = rows::decode(&record)
                .map_err(|why| damaged("record", "the temporary file", why))?;
            decoded.rows.into_iter().try_for_each(&mut *visit)?;
        }
        Ok(())
    }
}

/// Sorts pages of a directory together, before those of its subdirectories.
fn directory_order(url: &str) -> String {
    let path_end = url.find('?').unwrap_or(url.len());
    let slash = url[..path_end].rfind('/').map_or(0, |slash| slash + 1);
    format!("{}\u{1}{}", &url[..slash], &url[slash..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_a_directory_stay_together() {
        let mut urls =
            ["https://a/x/y/1", "https://a/x/b?q=/z", "https://a/x/y/2", "https://a/x/z"];
        urls.sort_by_key(|url| directory_order(url));
        assert_eq!(
            urls,
            ["https://a/x/b?q=/z", "https://a/x/z", "https://a/x/y/1", "https://a/x/y/2"]
        );
    }
}
