//! What is being compacted, in its new order: kept in a temporary file, because there may be more
//! of it than fits into memory.

use rusqlite::{Connection, params};

use super::portion::{Item, Portion};
use crate::Digest;
use crate::digest::BodyKey;
use crate::error::StoreError;
use crate::forgotten::MAX_FORGOTTEN;
use crate::media::Class;
use crate::pack::{Location, damaged};
use crate::rows::{self, Row};

const TABLES: &str = "
PRAGMA cache_size = -16000;
CREATE TABLE items(site INTEGER, class INTEGER, url TEXT, visited INTEGER, id INTEGER,
  digest BLOB, record BLOB, new INTEGER);
CREATE TABLE placed(key BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE orphans(key BLOB PRIMARY KEY, place INTEGER, wanted INTEGER) WITHOUT ROWID;
CREATE TABLE forgotten(id INTEGER PRIMARY KEY, site INTEGER);
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

    /// Bodies of all versions.
    pub(super) fn count_bodies(&self) -> Result<u64, StoreError> {
        let all = "SELECT count(DISTINCT digest) FROM items";
        let count: i64 = self.connection.query_row(all, [], |row| row.get(0))?;
        Ok(count as u64)
    }

    /// Visits bodies that were never compacted, in the order of their digests, with the number of
    /// versions that have each.
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

    /// The next pages of a site behind `last`, in the order of their addresses: as many as make a
    /// portion. None when all have been given.
    pub(super) fn portion(
        &self,
        site: u32,
        class: Class,
        last: Option<&Item>,
        max_versions: usize,
    ) -> Result<Option<Portion>, StoreError> {
        let (url, visited, id) = position(last);
        let mut statement = self.connection.prepare_cached(
            "SELECT url, visited, id, digest FROM items WHERE site = ?1 AND class = ?2
             AND (url, visited, id) > (?3, ?4, ?5) ORDER BY url, visited, id",
        )?;
        let mut rows = statement.query(params![site, class as u8, url, visited, id])?;
        Portion::take(max_versions, &mut || {
            let Some(row) = rows.next()? else { return Ok(None) };
            let digest = Digest(row.get(3)?);
            Ok(Some(Item { url: row.get(0)?, visited_at_s: row.get(1)?, id: row.get(2)?, digest }))
        })
    }

    /// Marks the body as placed. Returns false if it was already.
    pub(super) fn place(&self, key: BodyKey) -> Result<bool, StoreError> {
        let mut mark = self.connection.prepare_cached("INSERT OR IGNORE INTO placed VALUES(?1)")?;
        Ok(mark.execute([key.0])? == 1)
    }

    /// Whether the body was placed.
    pub(super) fn is_placed(&self, key: BodyKey) -> Result<bool, StoreError> {
        let mut statement =
            self.connection.prepare_cached("SELECT 1 FROM placed WHERE key = ?1")?;
        Ok(statement.exists([key.0])?)
    }

    /// Notes a body that no record of the rewritten sites names.
    pub(super) fn add_orphan(&self, key: BodyKey, place: Location) -> Result<(), StoreError> {
        self.connection
            .prepare_cached("INSERT OR REPLACE INTO orphans VALUES(?1, ?2, 0)")?
            .execute(params![key.0, place.to_number()])?;
        Ok(())
    }

    pub(super) fn has_orphans(&self) -> Result<bool, StoreError> {
        Ok(self.connection.prepare_cached("SELECT 1 FROM orphans")?.exists([])?)
    }

    /// Whether something needs this orphan.
    pub(super) fn is_wanted(&self, key: BodyKey) -> Result<bool, StoreError> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT 1 FROM orphans WHERE key = ?1 AND wanted >= 1")?;
        Ok(statement.exists([key.0])?)
    }

    /// Notes that something needs this body, if it is an orphan.
    pub(super) fn want_orphan(&self, key: BodyKey) -> Result<(), StoreError> {
        self.connection
            .prepare_cached("UPDATE orphans SET wanted = 1 WHERE key = ?1")?
            .execute([key.0])?;
        Ok(())
    }

    /// Visits orphans: only those that are wanted, or all.
    pub(super) fn orphans(
        &self,
        only_wanted: bool,
        visit: &mut dyn FnMut(BodyKey, Location) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut statement =
            self.connection.prepare_cached("SELECT key, place FROM orphans WHERE wanted >= ?1")?;
        let mut rows = statement.query([only_wanted])?;
        while let Some(row) = rows.next()? {
            visit(BodyKey(row.get(0)?), Location::from_number(row.get(1)?))?;
        }
        Ok(())
    }

    /// Notes a version that was forgotten before this compaction began.
    pub(super) fn add_forgotten(&self, site: u32, id: u64) -> Result<(), StoreError> {
        self.connection
            .prepare_cached("INSERT OR REPLACE INTO forgotten VALUES(?1, ?2)")?
            .execute(params![id as i64, site])?;
        Ok(())
    }

    /// Visits the sites and numbers of forgotten versions, a chunk's worth at a time, in the order of
    /// their numbers.
    pub(super) fn forgotten(
        &self,
        mut visit: impl FnMut(&[(u32, u64)]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut statement =
            self.connection.prepare_cached("SELECT site, id FROM forgotten ORDER BY id")?;
        let mut rows = statement.query([])?;
        let mut batch: Vec<(u32, u64)> = Vec::new();
        while let Some(row) = rows.next()? {
            batch.push((row.get(0)?, row.get::<_, i64>(1)? as u64));
            if batch.len() == MAX_FORGOTTEN {
                visit(&batch)?;
                batch.clear();
            }
        }
        if batch.is_empty() { Ok(()) } else { visit(&batch) }
    }

    /// The records of a class of a site behind `behind` up to `last`, in order.
    pub(super) fn rows(
        &self,
        site: u32,
        class: Class,
        behind: Option<&Item>,
        last: &Item,
        visit: &mut dyn FnMut(Row) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT record FROM items WHERE site = ?1 AND class = ?2
             AND (url, visited, id) > (?3, ?4, ?5) AND (url, visited, id) <= (?6, ?7, ?8)
             ORDER BY url, visited, id",
        )?;
        let (url, visited, id) = position(behind);
        let (last_url, last_visited, last_id) = position(Some(last));
        let class = class as u8;
        let mut found = statement.query(params![
            site,
            class,
            url,
            visited,
            id,
            last_url,
            last_visited,
            last_id
        ])?;
        while let Some(row) = found.next()? {
            let record: Vec<u8> = row.get(0)?;
            let decoded = rows::decode(&record)
                .map_err(|why| damaged("record", "the temporary file", why))?;
            decoded.into_iter().try_for_each(&mut *visit)?;
        }
        Ok(())
    }
}

/// The position of a version among those of its class. Every address is behind the empty one.
fn position(item: Option<&Item>) -> (&str, i64, i64) {
    item.map_or(("", i64::MIN, i64::MIN), |item| (&item.url, item.visited_at_s, item.id))
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
