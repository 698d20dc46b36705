//! Opening the database: schema, pragmas, and what its errors mean.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::settings::Settings;
use crate::StateError;

/// Marks a file as ours, with the number of its schema in `user_version`.
const APPLICATION_ID: i64 = 0x6e65_6e72;
/// What a new database gets.
const SCHEMA: &str = include_str!("schema.sql");
/// And, if it is one of several partitions, also this.
const PARTITIONS: &str = include_str!("partitions.sql");
/// What brings a database of schema 1 to 2, of 2 to 3 and so on.
const MIGRATIONS: &[&str] = &[
    // Sites over several partitions.
    "CREATE TABLE far_links (nth INTEGER PRIMARY KEY, targets BLOB NOT NULL);
    CREATE TABLE received (
        nth INTEGER PRIMARY KEY, micros INTEGER NOT NULL, kept INTEGER NOT NULL DEFAULT 0);
    CREATE TABLE rounds_elsewhere (
        site INTEGER NOT NULL, partition INTEGER NOT NULL, ended INTEGER NOT NULL,
        PRIMARY KEY (site, partition)) WITHOUT ROWID;
    CREATE TABLE needs (
        site INTEGER NOT NULL, day INTEGER NOT NULL, partition INTEGER NOT NULL,
        milli_visits INTEGER NOT NULL, PRIMARY KEY (site, day, partition)) WITHOUT ROWID;",
    // Watches and what they reported.
    "CREATE TABLE watches (id INTEGER PRIMARY KEY, watch TEXT NOT NULL);
    CREATE TABLE watch_hits (id INTEGER PRIMARY KEY, hit TEXT NOT NULL);",
    // Links to pages of other partitions have their partition beside them, so that score can be handed
    // on to them later. Counts of problems have the name that they have elsewhere.
    "DELETE FROM far_links;
    ALTER TABLE received ADD COLUMN hash INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX received_by_hash ON received (hash);
    ALTER TABLE needs ADD COLUMN pages INTEGER NOT NULL DEFAULT 1;
    ALTER TABLE sites RENAME COLUMN troubles TO problems;
    ALTER TABLE days RENAME COLUMN troubles TO problems;",
    // A new state has no tables for partitions, incidents and watches before it needs them.
    "",
    // What is learnt of sites and of the crawl order is compressed, and counts of rounds that are 0 are left
    // out, when it is written the next time.
    "",
];
/// A table takes a page at least, so a small state has small pages. One above this size has those with
/// which a commit takes fewer steps.
const SMALL_PAGE_BYTES: i64 = 512;
const PAGE_BYTES: i64 = 4096;
pub(super) const SMALL_STATE_BYTES: i64 = 1 << 20;
/// How long another process that writes is waited for.
const BUSY: Duration = Duration::from_secs(10);
/// The number of this schema.
const SCHEMA_NUMBER: i64 = 1 + MIGRATIONS.len() as i64;

pub(super) fn writer(path: &Path, settings: &Settings) -> Result<Connection, StateError> {
    let explain = |e| explain(path, "opened", e);
    let connection = connect(path).map_err(explain)?;
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let found = number("user_version").map_err(explain)?;
    let mark = number("application_id").map_err(explain)?;
    let path = path.to_owned();
    match (found, mark) {
        (0, _) => create(&connection, settings).map_err(explain)?,
        (1..=SCHEMA_NUMBER, APPLICATION_ID) => migrate(&connection, found).map_err(explain)?,
        (found, APPLICATION_ID) => {
            return Err(StateError::SchemaTooNew { path, found, known: SCHEMA_NUMBER });
        }
        _ => return Err(StateError::PreRelease { path }),
    }
    Ok(connection)
}

/// A connection for both reading and writing where the disk has no space for the memory that several
/// connections share. It reads what is there, with the log; nobody else can open the database
/// meanwhile.
pub(super) fn alone(path: &Path) -> Result<Connection, StateError> {
    let open = || {
        let connection = Connection::open(path)?;
        prepare(&connection)?;
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        connection.pragma_update(None, "query_only", true)?;
        connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))?;
        Ok(connection)
    };
    open().or_else(|error| as_it_is(path).map_err(|_| explain(path, "opened", error)))
}

/// Whether the tables are there. A file without them is new, or was emptied.
pub(super) fn has_tables(path: &Path) -> Result<bool, StateError> {
    let explain = |e| explain(path, "opened", e);
    let connection = match connect(path).map_err(explain) {
        Err(StateError::NoRoom { .. }) => alone(path)?,
        other => other?,
    };
    let found = connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0));
    Ok(found.map_err(explain)? != 0)
}

pub(super) fn reader(path: &Path) -> Result<Connection, StateError> {
    let explain = |e| explain(path, "opened", e);
    let connection = connect(path).map_err(explain)?;
    connection.pragma_update(None, "query_only", true).map_err(explain)?;
    Ok(connection)
}

/// Where nothing can be written, the engine cannot make the files that a log needs: then the database
/// is read as it is. The last writer left no log, or left one and still writes.
fn connect(path: &Path) -> rusqlite::Result<Connection> {
    use ErrorCode::{CannotOpen, PermissionDenied, ReadOnly};
    let connection = Connection::open(path)?;
    // This matters only to a file that is made now. Simulations in memory begin with large pages.
    if path.as_os_str() != ":memory:" {
        connection.pragma_update(None, "page_size", SMALL_PAGE_BYTES)?;
    }
    match prepare(&connection).and_then(|()| set_journal(&connection)) {
        Ok(()) => return Ok(connection),
        Err(error) => match error.sqlite_error_code() {
            Some(CannotOpen | PermissionDenied | ReadOnly) => {}
            _ => return Err(error),
        },
    }
    as_it_is(path)
}

/// Reads the file alone, as if nobody could write it.
fn as_it_is(path: &Path) -> rusqlite::Result<Connection> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let Ok(mut address) = url::Url::from_file_path(absolute) else {
        return Err(rusqlite::Error::InvalidPath(path.to_owned()));
    };
    address.set_query(Some("immutable=1"));
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(address.as_str(), flags)?;
    prepare(&connection)?;
    Ok(connection)
}

fn set_journal(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // A busy commit writes more than the engine's 1,000 pages: several share one checkpoint.
    connection.pragma_update(None, "wal_autocheckpoint", 4_000)?;
    // Reading shows whether the log can be used.
    connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0)).map(drop)
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(128);
    // Otherwise the engine plans a statement again for every other value that it is asked with,
    // which took longer than the answer.
    connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "cache_size", -32_000)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(())
}

/// The bytes of a database with small pages, or 0.
pub(super) fn small_pages_bytes(connection: &Connection) -> rusqlite::Result<i64> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let page_bytes = number("page_size")?;
    if page_bytes >= PAGE_BYTES { Ok(0) } else { Ok(page_bytes * number("page_count")?) }
}

/// Gives a database larger pages, unless another connection is in the way or the disk is full. The
/// engine does that only without a log.
pub(super) fn enlarge_pages(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(Duration::ZERO)?;
    let _ = connection.execute_batch(&format!(
        "PRAGMA journal_mode = DELETE; PRAGMA page_size = {PAGE_BYTES}; VACUUM;"
    ));
    connection.busy_timeout(BUSY)?;
    set_journal(connection)
}

fn create(connection: &Connection, settings: &Settings) -> rusqlite::Result<()> {
    let transaction = connection.unchecked_transaction()?;
    transaction.execute_batch(SCHEMA)?;
    if settings.is_divided() {
        transaction.execute_batch(PARTITIONS)?;
    }
    settings.write(&transaction)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", SCHEMA_NUMBER)?;
    transaction.commit()
}

fn migrate(connection: &Connection, found: i64) -> rusqlite::Result<()> {
    for (number, migration) in (2..).zip(MIGRATIONS).filter(|(number, _)| *number > found) {
        let transaction = connection.unchecked_transaction()?;
        transaction.execute_batch(migration)?;
        transaction.pragma_update(None, "user_version", number)?;
        transaction.commit()?;
    }
    Ok(())
}

/// Whether a table that is made when it is first written is there.
pub(super) fn has_table(c: &Connection, name: &str) -> rusqlite::Result<bool> {
    c.prepare_cached("SELECT 1 FROM sqlite_master WHERE name = ?1")?.exists([name])
}

/// Opens a file as often as the engine opens files for a database.
fn open_as_often(path: &Path) -> std::io::Result<()> {
    let files: Result<Vec<_>, _> = (0..4).map(|_| std::fs::File::open(path)).collect();
    files.map(drop)
}

/// What an engine error means for the caller.
pub(super) fn explain(path: &Path, action: &'static str, error: rusqlite::Error) -> StateError {
    let path = path.to_owned();
    // The shared memory that readers and writers of a WAL use is a file as well.
    if error.sqlite_extended_error_code() == Some(rusqlite::ffi::SQLITE_IOERR_SHMSIZE) {
        return StateError::NoRoom { path };
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StateError::NoRoom { path },
        // The engine does not say why; the system does.
        Some(ErrorCode::CannotOpen) => match open_as_often(&path) {
            Err(source) => StateError::Unopened { path, source },
            Ok(()) => StateError::Engine { path, action, source: Box::new(error) },
        },
        // All statements are fixed: the engine refuses one only if the tables are not ours, and
        // a value is unreadable only if it is not what was written.
        None | Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::Unknown) => {
            StateError::Damaged { path, reason: error.to_string() }
        }
        _ => StateError::Engine { path, action, source: Box::new(error) },
    }
}
