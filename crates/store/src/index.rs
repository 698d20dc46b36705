//! The index: where versions and bodies are. It can be deleted; it is made again from the packs.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;

use rusqlite::{Connection, OpenFlags, OptionalExtension, Transaction, params};

use crate::digest::BodyKey;
use crate::error::{INDEX, StoreError, is_unusable};
use crate::locations::{self, Locations};
use crate::pack::{Location, damaged};
use crate::share::Share;
use crate::wire::Malformed;

/// Raised when the tables change: an index of another number is rebuilt, never migrated.
const INDEX_FORMAT: i64 = 1;
/// What SQLite keeps in memory.
const CACHE_KB: i64 = 8000;
/// A table takes a page at least, so a small index has small pages. One above this size has those
/// with which look-ups take fewer steps.
const SMALL_PAGE_BYTES: i64 = 512;
const PAGE_BYTES: i64 = 4096;
const SMALL_INDEX_BYTES: i64 = 1 << 20;
/// How long another process that writes is waited for; rusqlite's own default.
const BUSY: std::time::Duration = std::time::Duration::from_secs(5);

const TABLES: &str = "
CREATE TABLE meta(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE bodies(slot INTEGER PRIMARY KEY, place INTEGER NOT NULL);
CREATE TABLE versions(row INTEGER PRIMARY KEY, count INTEGER NOT NULL, places BLOB NOT NULL);
CREATE TABLE packs(number INTEGER PRIMARY KEY, bytes INTEGER NOT NULL, ended INTEGER NOT NULL,
  generation INTEGER NOT NULL);
CREATE TABLE shares(pack INTEGER, site INTEGER, html_bytes INTEGER NOT NULL,
  text_bytes INTEGER NOT NULL, other_bytes INTEGER NOT NULL, record_bytes INTEGER NOT NULL,
  unique_bytes INTEGER NOT NULL, versions INTEGER NOT NULL,
  PRIMARY KEY(pack, site)) WITHOUT ROWID;
CREATE TABLE forgotten(id INTEGER PRIMARY KEY, site INTEGER NOT NULL);
";

pub(crate) struct Index {
    connection: Connection,
    /// How often it was changed here.
    changes: u64,
    /// Generations whose last pack was looked at here, and the packs that they replaced: others may
    /// not have deleted those yet.
    pub(crate) looked_at: BTreeSet<u64>,
    pub(crate) replaced: BTreeSet<u64>,
    /// Above this many bytes it gets larger pages.
    grows_at_bytes: i64,
}

/// What the index knows of a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackRecord {
    pub(crate) number: u64,
    /// Indexed up to here.
    pub(crate) bytes: u64,
    pub(crate) ended: bool,
    pub(crate) generation: u64,
}

/// Whether the body with this key is at this location.
pub(crate) type Holds<'a> = &'a dyn Fn(Location, BodyKey) -> bool;

impl Index {
    fn over(connection: Connection) -> Self {
        Self {
            connection,
            changes: 0,
            looked_at: BTreeSet::new(),
            replaced: BTreeSet::new(),
            grows_at_bytes: SMALL_INDEX_BYTES,
        }
    }

    /// Opens the index file, or one in memory. An unusable file gives way to an empty index.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, StoreError> {
        let Some(path) = path else { return Self::create(Connection::open_in_memory()?) };
        if let Some(index) = Self::found(path)? {
            return Ok(index);
        }
        remove(path)?;
        let connection = Connection::open(path)?;
        connection.pragma_update(None, "page_size", SMALL_PAGE_BYTES)?;
        Self::create(connection)
    }

    /// Opens the index file as it is, which another process may be writing.
    pub(crate) fn open_to_read(path: Option<&Path>) -> Result<Self, StoreError> {
        match path {
            None => Self::open(None),
            Some(path) => {
                Self::find(path)?.ok_or_else(|| StoreError::IndexUnusable { path: path.to_owned() })
            }
        }
    }

    /// The index in this file, if it is one that can be used.
    pub(crate) fn find(path: &Path) -> Result<Option<Self>, StoreError> {
        match Self::found(path) {
            // Where there is no memory for more, it is read with what there is.
            Err(StoreError::NoRoom { .. }) => {
                let alone = open_alone(path).map_err(StoreError::from);
                alone.and_then(Self::adopt_as_it_is)
            }
            other => other,
        }
    }

    fn found(path: &Path) -> Result<Option<Self>, StoreError> {
        if !path.exists() {
            return Ok(None);
        }
        let mut found = Connection::open(path).map_err(StoreError::from).and_then(Self::adopt);
        if let Err(StoreError::Index { source }) = &found
            && is_refused(source)
        {
            // Where nothing can be written, it is read as it is.
            found = open_as_it_is(path).map_err(StoreError::from).and_then(Self::adopt_as_it_is);
        }
        match found {
            Err(StoreError::Index { source }) if is_unusable(&source) => Ok(None),
            other => other,
        }
    }

    fn adopt(connection: Connection) -> Result<Option<Self>, StoreError> {
        set_up(&connection)?;
        Self::adopt_as_it_is(connection)
    }

    fn adopt_as_it_is(connection: Connection) -> Result<Option<Self>, StoreError> {
        let format: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        Ok((format == INDEX_FORMAT).then_some(Self::over(connection)))
    }

    fn create(connection: Connection) -> Result<Self, StoreError> {
        set_up(&connection)?;
        connection.execute_batch(TABLES)?;
        connection.pragma_update(None, "user_version", INDEX_FORMAT)?;
        Ok(Self::over(connection))
    }

    /// As long as this stays the same, look-ups give the same results.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Throws everything away, also the file.
    pub(crate) fn begin_anew(&mut self, path: Option<&Path>) -> Result<(), StoreError> {
        let changes = self.changes + 1;
        // The open connection must be gone before its file is.
        *self = Self { changes, ..Self::open(None)? };
        if let Some(path) = path {
            remove(path)?;
            *self = Self { changes, ..Self::open(Some(path))? };
        }
        Ok(())
    }

    /// What the engine finds wrong with the file, if anything.
    pub(crate) fn check(&self) -> Result<Option<String>, StoreError> {
        let check = || {
            let sql = "PRAGMA integrity_check(1)";
            self.connection.query_row(sql, [], |row| row.get::<_, String>(0))
        };
        match check() {
            Ok(found) if found != "ok" => Ok(Some(found)),
            Ok(_) => self.check_locations(),
            Err(error) if is_unusable(&error) => Ok(Some(error.to_string())),
            Err(other) => Err(other.into()),
        }
    }

    /// What is wrong with rows that the engine can read, if anything.
    fn check_locations(&self) -> Result<Option<String>, StoreError> {
        let mut rows = self.connection.prepare("SELECT row, places FROM versions")?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            let number: i64 = row.get(0)?;
            if let Err(error) = decode(number, row.get_ref(1)?.as_blob().unwrap_or_default()) {
                return Ok(Some(error.to_string()));
            }
        }
        Ok(None)
    }

    /// Where bodies whose key begins like this one may be.
    pub(crate) fn candidates(&self, key: BodyKey) -> Result<Vec<Location>, StoreError> {
        let mut found = Vec::new();
        let mut statement =
            self.connection.prepare_cached("SELECT place FROM bodies WHERE slot = ?1")?;
        for slot in key.slot().. {
            let place: Option<i64> = statement.query_row([slot], |row| row.get(0)).optional()?;
            let Some(place) = place else { break };
            found.push(Location::from_number(place));
        }
        Ok(found)
    }

    pub(crate) fn version(&self, id: u64) -> Result<Option<Location>, StoreError> {
        let (row, at) = locations::row_of(id);
        Ok(locations_in(&self.connection, row)?.get(at))
    }

    /// The next versions from `id` on.
    pub(crate) fn versions_from(
        &self,
        id: u64,
        limit: usize,
    ) -> Result<Vec<(u64, Location)>, StoreError> {
        let (first, from) = locations::row_of(id);
        let mut statement = self
            .connection
            .prepare_cached("SELECT row, places FROM versions WHERE row >= ?1 ORDER BY row")?;
        let mut rows = statement.query([first])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let number: i64 = row.get(0)?;
            let places = decode(number, row.get_ref(1)?.as_blob().unwrap_or_default())?;
            let from = if number == first { from } else { 0 };
            found
                .extend(places.from(from).map(|(at, place)| (locations::id_in(number, at), place)));
            if found.len() >= limit {
                found.truncate(limit);
                break;
            }
        }
        Ok(found)
    }

    pub(crate) fn count_versions(&self) -> Result<u64, StoreError> {
        let count: i64 = self.connection.query_row(
            "SELECT coalesce(sum(count), 0) FROM versions",
            [],
            |row| row.get(0),
        )?;
        Ok(count as u64)
    }

    /// Versions whose numbers are below `end`.
    pub(crate) fn count_versions_before(&self, end: u64) -> Result<u64, StoreError> {
        let (row, at) = locations::row_of(end);
        let mut statement = self
            .connection
            .prepare_cached("SELECT coalesce(sum(count), 0) FROM versions WHERE row < ?1")?;
        let count: i64 = statement.query_row([row], |row| row.get(0))?;
        let of_row = locations_in(&self.connection, row)?;
        Ok(count as u64 + (of_row.len() - of_row.from(at).count()) as u64)
    }

    pub(crate) fn count_bodies(&self) -> Result<u64, StoreError> {
        let count: i64 =
            self.connection.query_row("SELECT count(*) FROM bodies", [], |row| row.get(0))?;
        Ok(count as u64)
    }

    pub(crate) fn packs(&self) -> Result<Vec<PackRecord>, StoreError> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT number, bytes, ended, generation FROM packs ORDER BY number")?;
        let rows = statement.query_map([], |row| {
            Ok(PackRecord {
                number: row.get::<_, i64>(0)? as u64,
                bytes: row.get::<_, i64>(1)? as u64,
                ended: row.get(2)?,
                generation: row.get::<_, i64>(3)? as u64,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// What every site takes, over all packs.
    pub(crate) fn shares(&self) -> Result<Vec<(u32, Share)>, StoreError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT site, sum(html_bytes), sum(text_bytes), sum(other_bytes), sum(record_bytes),
             sum(unique_bytes), sum(versions) FROM shares GROUP BY site ORDER BY site",
        )?;
        let rows = statement.query_map([], |row| {
            let number = |at: usize| row.get::<_, i64>(at).map(|number| number as u64);
            let share = Share {
                html_bytes: number(1)?,
                text_bytes: number(2)?,
                other_bytes: number(3)?,
                record_bytes: number(4)?,
                unique_bytes: number(5)?,
                versions: number(6)?,
            };
            Ok((number(0)? as u32, share))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Sites that have something in this pack.
    pub(crate) fn sites_in(&self, pack: u64) -> Result<Vec<u32>, StoreError> {
        let mut statement =
            self.connection.prepare_cached("SELECT site FROM shares WHERE pack = ?1")?;
        let sites = statement.query_map([pack as i64], |row| row.get(0))?;
        Ok(sites.collect::<Result<_, _>>()?)
    }

    /// Visits sites and numbers of versions that are gone but may still take space.
    pub(crate) fn forgotten(
        &self,
        visit: &mut dyn FnMut(u32, u64) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut statement = self.connection.prepare_cached("SELECT site, id FROM forgotten")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            visit(row.get(0)?, row.get::<_, i64>(1)? as u64)?;
        }
        Ok(())
    }

    pub(crate) fn next_version(&self) -> Result<u64, StoreError> {
        let mut statement =
            self.connection.prepare_cached("SELECT value FROM meta WHERE name = 'next_version'")?;
        let value: Option<i64> = statement.query_row([], |row| row.get(0)).optional()?;
        Ok(value.map_or(1, |value| value as u64))
    }

    /// Everything that `change` does happens at once or not at all.
    pub(crate) fn change<T>(
        &mut self,
        change: impl FnOnce(&mut Change<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.changes += 1;
        self.grow()?;
        let transaction = self.connection.transaction()?;
        let mut batch = Change { transaction, touched: RefCell::default() };
        let value = change(&mut batch)?;
        batch.write_back()?;
        batch.transaction.commit()?;
        Ok(value)
    }

    /// Gives an index that is no longer small larger pages. While others have the file open, or without
    /// space, that cannot be: then it is tried again when the index has doubled.
    fn grow(&mut self) -> Result<(), StoreError> {
        let number = |name| self.connection.pragma_query_value(None, name, |row| row.get(0));
        let page_bytes: i64 = number("page_size")?;
        let bytes = number("page_count")? * page_bytes;
        if page_bytes >= PAGE_BYTES || bytes <= self.grows_at_bytes {
            return Ok(());
        }
        self.grows_at_bytes = 2 * bytes;
        self.connection.busy_timeout(std::time::Duration::ZERO)?;
        let _ = self.connection.execute_batch(&format!(
            "PRAGMA journal_mode = DELETE; PRAGMA page_size = {PAGE_BYTES}; VACUUM;"
        ));
        self.connection.busy_timeout(BUSY)?;
        set_up(&self.connection)
    }

    /// Frees the space of deleted rows and folds the log into the file.
    pub(crate) fn shrink(&self) -> Result<(), StoreError> {
        self.connection.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE);")?;
        Ok(())
    }
}

/// A change of the index under way.
pub(crate) struct Change<'i> {
    transaction: Transaction<'i>,
    /// The row of versions that was touched last, as it will be: the next is mostly the same.
    touched: RefCell<Option<(i64, Locations)>>,
}

impl Change<'_> {
    /// Notes where a body is; a body that is known already is here from now on.
    pub(crate) fn put_body(
        &self,
        key: BodyKey,
        place: Location,
        holds: Holds<'_>,
    ) -> Result<(), StoreError> {
        let mut slot = key.slot();
        let is_free = self
            .transaction
            .prepare_cached("INSERT OR IGNORE INTO bodies(slot, place) VALUES(?1, ?2)")?
            .execute(params![slot, place.to_number()])?
            > 0;
        if is_free {
            return Ok(());
        }
        let mut find =
            self.transaction.prepare_cached("SELECT place FROM bodies WHERE slot = ?1")?;
        loop {
            let known: Option<i64> = find.query_row([slot], |row| row.get(0)).optional()?;
            match known.map(Location::from_number) {
                Some(known) if known != place && !holds(known, key) => slot += 1,
                _ => break,
            }
        }
        self.transaction
            .prepare_cached("INSERT OR REPLACE INTO bodies(slot, place) VALUES(?1, ?2)")?
            .execute(params![slot, place.to_number()])?;
        Ok(())
    }

    /// Forgets a body that is no longer at `place`. A slot with a neighbour stays, empty, because
    /// the neighbour is found through it.
    pub(crate) fn drop_body(&self, key: BodyKey, place: Location) -> Result<(), StoreError> {
        self.transaction
            .prepare_cached(
                "DELETE FROM bodies WHERE slot = ?1 AND place = ?2
                 AND NOT EXISTS (SELECT 1 FROM bodies WHERE slot = ?1 + 1)",
            )?
            .execute(params![key.slot(), place.to_number()])?;
        Ok(())
    }

    /// This is quickest in the order of the numbers of versions.
    pub(crate) fn put_version(&self, id: u64, place: Location) -> Result<(), StoreError> {
        self.touch(id, |places, at| places.put(at, place))
    }

    /// A version that is still there is elsewhere from now on.
    pub(crate) fn move_version(&self, id: u64, place: Location) -> Result<(), StoreError> {
        self.touch(id, |places, at| {
            if places.get(at).is_some() {
                places.put(at, place);
            }
        })
    }

    fn touch(&self, id: u64, change: impl FnOnce(&mut Locations, u8)) -> Result<(), StoreError> {
        let (row, at) = locations::row_of(id);
        if self.touched.borrow().as_ref().is_none_or(|(touched, _)| *touched != row) {
            self.write_back()?;
            *self.touched.borrow_mut() = Some((row, locations_in(&self.transaction, row)?));
        }
        if let Some((_, places)) = &mut *self.touched.borrow_mut() {
            change(places, at);
        }
        Ok(())
    }

    fn write_back(&self) -> Result<(), StoreError> {
        let Some((row, places)) = self.touched.take() else { return Ok(()) };
        if places.len() == 0 {
            self.transaction
                .prepare_cached("DELETE FROM versions WHERE row = ?1")?
                .execute([row])?;
        } else {
            self.transaction
                .prepare_cached("INSERT OR REPLACE INTO versions VALUES(?1, ?2, ?3)")?
                .execute(params![row, places.len() as i64, places.encode()])?;
        }
        Ok(())
    }

    pub(crate) fn forget_version(&self, site: u32, id: u64) -> Result<(), StoreError> {
        self.touch(id, Locations::remove)?;
        self.transaction
            .prepare_cached("INSERT OR REPLACE INTO forgotten VALUES(?1, ?2)")?
            .execute(params![id as i64, site])?;
        Ok(())
    }

    /// What was forgotten stays so, also when a pack that was read again names it.
    pub(crate) fn keep_forgotten(&self) -> Result<(), StoreError> {
        let mut statement = self.transaction.prepare("SELECT id FROM forgotten ORDER BY id")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            self.touch(row.get::<_, i64>(0)? as u64, Locations::remove)?;
        }
        Ok(())
    }

    /// A forgotten version takes no space any more.
    pub(crate) fn settle_forgotten(&self, id: u64) -> Result<(), StoreError> {
        self.transaction
            .prepare_cached("DELETE FROM forgotten WHERE id = ?1")?
            .execute([id as i64])?;
        Ok(())
    }

    pub(crate) fn drop_pack(&self, number: u64) -> Result<(), StoreError> {
        for table in ["packs WHERE number", "shares WHERE pack"] {
            self.transaction
                .prepare_cached(&format!("DELETE FROM {table} = ?1"))?
                .execute([number as i64])?;
        }
        Ok(())
    }

    pub(crate) fn put_pack(&self, record: &PackRecord) -> Result<(), StoreError> {
        self.transaction
            .prepare_cached("INSERT OR REPLACE INTO packs VALUES(?1, ?2, ?3, ?4)")?
            .execute(params![
                record.number as i64,
                record.bytes as i64,
                record.ended,
                record.generation as i64
            ])?;
        Ok(())
    }

    pub(crate) fn add_share(&self, pack: u64, group: u32, share: &Share) -> Result<(), StoreError> {
        self.transaction
            .prepare_cached(
                "INSERT INTO shares VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
                 ON CONFLICT(pack, site) DO UPDATE SET html_bytes = html_bytes + ?3,
                 text_bytes = text_bytes + ?4, other_bytes = other_bytes + ?5,
                 record_bytes = record_bytes + ?6, unique_bytes = unique_bytes + ?7,
                 versions = versions + ?8",
            )?
            .execute(params![
                pack as i64,
                group,
                share.html_bytes as i64,
                share.text_bytes as i64,
                share.other_bytes as i64,
                share.record_bytes as i64,
                share.unique_bytes as i64,
                share.versions as i64,
            ])?;
        Ok(())
    }

    /// Version numbers below this are taken.
    pub(crate) fn raise_next_version(&self, next: u64) -> Result<(), StoreError> {
        self.transaction
            .prepare_cached(
                "INSERT INTO meta VALUES('next_version', ?1)
                 ON CONFLICT(name) DO UPDATE SET value = max(value, ?1)",
            )?
            .execute([next as i64])?;
        Ok(())
    }
}

/// The locations of the versions in a row of the index; empty if the row does not exist.
fn locations_in(connection: &Connection, row: i64) -> Result<Locations, StoreError> {
    let mut statement = connection.prepare_cached("SELECT places FROM versions WHERE row = ?1")?;
    let mut found = statement.query([row])?;
    match found.next()? {
        Some(found) => decode(row, found.get_ref(0)?.as_blob().unwrap_or_default()),
        None => Ok(Locations::default()),
    }
}

fn decode(row: i64, places: &[u8]) -> Result<Locations, StoreError> {
    let what = |why: Malformed| damaged(INDEX, format!("row {row} of its versions"), why);
    Locations::decode(places).map_err(what)
}

fn set_up(connection: &Connection) -> Result<(), StoreError> {
    // The packs are the truth: what the log loses in a power cut is read from them again, so it
    // need not be synced at every commit.
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "cache_size", -CACHE_KB)?;
    Ok(())
}

/// Whether the engine could not write what it needs.
fn is_refused(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{CannotOpen, PermissionDenied, ReadOnly};
    matches!(error.sqlite_error_code(), Some(CannotOpen | PermissionDenied | ReadOnly))
}

/// Opens the file without the memory that several connections share, for which there is no space.
/// Nobody else can open it meanwhile.
fn open_alone(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    connection.pragma_update(None, "query_only", true)?;
    match connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0)) {
        Ok(_) => Ok(connection),
        Err(_) => open_as_it_is(path),
    }
}

fn open_as_it_is(path: &Path) -> rusqlite::Result<Connection> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let Ok(mut address) = url::Url::from_file_path(absolute) else {
        return Err(rusqlite::Error::InvalidPath(path.to_owned()));
    };
    address.set_query(Some("immutable=1"));
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    Connection::open_with_flags(address.as_str(), flags)
}

/// Deletes the index with its log.
fn remove(path: &Path) -> Result<(), StoreError> {
    for tail in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(tail);
        match std::fs::remove_file(&name) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                let name = name.to_string_lossy().into_owned();
                return Err(crate::error::BackendError::from_io(&name, error).into());
            }
            _ => {}
        }
    }
    Ok(())
}
