//! Opening the database: format, pragmas, and what its errors mean.

use std::path::Path;

use rusqlite::{Connection, ErrorCode, OptionalExtension};

use super::{bags, due, log, migrate};
use crate::StateError;

const FORMAT: i64 = 2;

const SCHEMA: &str = "
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE sites (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, conditions TEXT NOT NULL,
    created_s INTEGER NOT NULL, collected_s INTEGER, paused INTEGER NOT NULL DEFAULT 0,
    pages INTEGER NOT NULL DEFAULT 0, visits INTEGER NOT NULL DEFAULT 0,
    versions INTEGER NOT NULL DEFAULT 0, troubles INTEGER NOT NULL DEFAULT 0,
    raw_bytes INTEGER NOT NULL DEFAULT 0);
CREATE TABLE servers (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
    robots_good_s INTEGER, robots_status INTEGER, robots_body BLOB, robots_tried_s INTEGER,
    asked_ms INTEGER, resting_until_ms INTEGER, strikes INTEGER NOT NULL DEFAULT 0,
    stretch_percent INTEGER NOT NULL DEFAULT 100);
CREATE TABLE members (
    site INTEGER NOT NULL, page INTEGER NOT NULL, depth INTEGER NOT NULL, hops INTEGER NOT NULL,
    round INTEGER, PRIMARY KEY (site, page)) WITHOUT ROWID;
CREATE TABLE due (
    bucket INTEGER NOT NULL, page INTEGER NOT NULL, PRIMARY KEY (bucket, page)) WITHOUT ROWID;
CREATE TABLE mimes (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE versions (
    page INTEGER NOT NULL, at_s INTEGER NOT NULL, version INTEGER NOT NULL,
    status INTEGER NOT NULL, mime INTEGER NOT NULL, bytes INTEGER NOT NULL, permille INTEGER,
    PRIMARY KEY (page, at_s, version)) WITHOUT ROWID;
CREATE TABLE gone (page INTEGER NOT NULL, at_s INTEGER NOT NULL, PRIMARY KEY (page, at_s)) WITHOUT ROWID;
CREATE TABLE rounds (
    id INTEGER PRIMARY KEY, site INTEGER NOT NULL, started_s INTEGER NOT NULL, ended_s INTEGER,
    counts TEXT NOT NULL);
CREATE INDEX rounds_by_site ON rounds (site, id);
";

/// Validators have no declared type: each value is kept in the shortest form it has.
pub(super) const PAGES: &str = "
CREATE TABLE pages (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL, site INTEGER NOT NULL,
    discovered_s INTEGER NOT NULL, visited_s INTEGER, outcome INTEGER, due_s INTEGER,
    visits INTEGER NOT NULL DEFAULT 0, changes INTEGER NOT NULL DEFAULT 0,
    significant INTEGER NOT NULL DEFAULT 0, failures INTEGER NOT NULL DEFAULT 0,
    etag, last_modified, mark BLOB, bytes INTEGER NOT NULL DEFAULT 0, version INTEGER,
    history BLOB);
";

pub(super) fn writer(path: &Path, bucket_s: i64) -> Result<Connection, StateError> {
    let explain = |e| explain(path, "opened", e);
    let connection = Connection::open(path).map_err(explain)?;
    prepare(&connection).map_err(explain)?;
    let found: i64 =
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(explain)?;
    match found {
        0 => create(&connection, bucket_s).map_err(explain)?,
        1 => rebuild(&connection).map_err(explain)?,
        FORMAT => {}
        found => {
            return Err(StateError::FormatTooNew { path: path.to_owned(), found, known: FORMAT });
        }
    }
    super::overview::prepare(&connection).map_err(explain)?;
    super::learnt::prepare(&connection).map_err(explain)?;
    super::schedule::prepare(&connection).map_err(explain)?;
    super::removal::prepare(&connection).map_err(explain)?;
    super::prune::prepare(&connection).map_err(explain)?;
    super::links::prepare(&connection).map_err(explain)?;
    super::structure::prepare(&connection).map_err(explain)?;
    super::incidents::prepare(&connection).map_err(explain)?;
    super::worth::prepare(&connection).map_err(explain)?;
    Ok(connection)
}

/// Makes tables that a state of an earlier build does not have yet; `marker` is one of them.
pub(super) fn add_tables(c: &Connection, marker: &str, schema: &str) -> rusqlite::Result<()> {
    let query = "SELECT 1 FROM sqlite_master WHERE name = ?1";
    if c.query_row(query, [marker], |_| Ok(())).optional()?.is_some() {
        return Ok(());
    }
    let transaction = c.unchecked_transaction()?;
    transaction.execute_batch(schema)?;
    transaction.commit()
}

pub(super) fn reader(path: &Path) -> Result<Connection, StateError> {
    let explain = |e| explain(path, "opened", e);
    let connection = Connection::open(path).map_err(explain)?;
    prepare(&connection).map_err(explain)?;
    connection.pragma_update(None, "query_only", true).map_err(explain)?;
    Ok(connection)
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(std::time::Duration::from_secs(10))?;
    connection.set_prepared_statement_cache_capacity(128);
    // Otherwise the engine plans a statement anew for every other value that it is asked with,
    // which took longer than the answer.
    connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "cache_size", -32_000)?;
    // A busy commit writes more than the engine's 1,000 pages: several share one checkpoint.
    connection.pragma_update(None, "wal_autocheckpoint", 4_000)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(())
}

fn create(connection: &Connection, bucket_s: i64) -> rusqlite::Result<()> {
    let transaction = connection.unchecked_transaction()?;
    for schema in [SCHEMA, PAGES, bags::SCHEMA, due::SCHEMA, log::SCHEMA] {
        transaction.execute_batch(schema)?;
    }
    transaction.execute("INSERT INTO meta VALUES ('bucket_s', ?1)", [bucket_s.max(1)])?;
    transaction.pragma_update(None, "user_version", FORMAT)?;
    transaction.commit()
}

/// Brings a state of format 1 to this one.
fn rebuild(connection: &Connection) -> rusqlite::Result<()> {
    let transaction = connection.unchecked_transaction()?;
    migrate::from_format_1(&transaction, bucket_s(&transaction)?)?;
    transaction.pragma_update(None, "user_version", FORMAT)?;
    transaction.commit()
}

pub(super) fn bucket_s(connection: &Connection) -> rusqlite::Result<i64> {
    let found = connection
        .query_row("SELECT value FROM meta WHERE name = 'bucket_s'", [], |row| row.get(0))
        .optional()?;
    Ok(found.unwrap_or(3600))
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
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StateError::Damaged { path, reason: error.to_string() }
        }
        _ => StateError::Engine { path, action, source: Box::new(error) },
    }
}
