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

    /// Visits bodies that were never compacted, in the order of their digests, and tells how many
    /// versions each one is of.
    pub(super) fn new_bodies(
        &self,
        class: Class,
        visit: &mut dyn FnMut(Digest, u64) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT digest, count(*) FROM items WHERE new AND class = ?1
             GROUP BY digest ORDER BY digest",
        )?;
        let mut rows = statement.query([class as u8])?;
        while let Some(row) = rows.next()? {
            visit(Digest(row.get(0)?), row.get::<_, i64>(1)? as u64)?;
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

    /// The bodies of each page of a site, in the order of their addresses.
    pub(super) fn pages(&self, site: u32, class: Class) -> Result<Vec<Vec<Digest>>, StoreError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT digest, url FROM items WHERE site = ?1 AND class = ?2
             ORDER BY url, visited, id",
        )?;
        let mut rows = statement.query(params![site, class as u8])?;
        let mut pages: Vec<Vec<Digest>> = Vec::new();
        let mut page: Option<String> = None;
        while let Some(row) = rows.next()? {
            let (digest, url) = (Digest(row.get(0)?), row.get(1)?);
            match pages.last_mut() {
                Some(bodies) if page.as_ref() == Some(&url) => bodies.push(digest),
                _ => {
                    pages.push(vec![digest]);
                    page = Some(url);
                }
            }
        }
        Ok(pages)
    }

    /// Gives the body its place. Returns false if it has one.
    pub(super) fn place(&self, digest: &Digest) -> Result<bool, StoreError> {
        let mut mark = self.connection.prepare_cached("INSERT OR IGNORE INTO placed VALUES(?1)")?;
        Ok(mark.execute([digest.0])? == 1)
    }

    /// Whether the body has a place.
    pub(super) fn is_placed(&self, digest: &Digest) -> Result<bool, StoreError> {
        let mut statement =
            self.connection.prepare_cached("SELECT 1 FROM placed WHERE digest = ?1")?;
        Ok(statement.exists([digest.0])?)
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
