//! What was learnt of servers and of changes: notes, and columns beside pages and versions.

use rusqlite::{Connection, Transaction, params};

use super::{batch::Batch, open, read};
use crate::{Announced, PullForward, ServerNote, ServerRecord};

const SCHEMA: &str = "
CREATE TABLE notes (
    server INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (server, name)) WITHOUT ROWID;
";

/// Adds what this file needs to a state that does not have it yet.
pub(super) fn prepare(c: &Connection) -> rusqlite::Result<()> {
    open::add_tables(c, "notes", SCHEMA)
}

/// Keeps a note in the place of the one of that name.
pub(super) fn write(t: &Transaction<'_>, note: &ServerNote) -> rusqlite::Result<()> {
    if note.value.is_empty() {
        t.prepare_cached("DELETE FROM notes WHERE server = ?1 AND name = ?2")?
            .execute(params![note.server.0, note.name])?;
        return Ok(());
    }
    t.prepare_cached("INSERT OR REPLACE INTO notes VALUES (?1, ?2, ?3)")?.execute(params![
        note.server.0,
        note.name,
        note.value
    ])?;
    Ok(())
}

/// Brings pages nearer that were not visited since they are said to have changed.
pub(super) fn announced(b: &mut Batch<'_>, announced: &Announced) -> rusqlite::Result<()> {
    let t = b.t;
    for (url, changed_s) in &announced.pages {
        let Some(page) = read::find_page(t, url)? else { continue };
        let visited_s: Option<i64> = t
            .prepare_cached("SELECT visited_s FROM pages WHERE id = ?1")?
            .query_row([page.0], |row| row.get(0))?;
        if visited_s.is_some_and(|visited_s| visited_s < *changed_s) {
            let pull = PullForward {
                page,
                to_s: announced.at_s,
                odds_percent: announced.odds_percent,
                why: announced.why.clone(),
            };
            b.pull_forward(&pull)?;
        }
    }
    Ok(())
}

/// The record with the server's notes.
pub(super) fn with_notes(
    c: &Connection,
    mut record: ServerRecord,
) -> rusqlite::Result<ServerRecord> {
    let mut query = c.prepare_cached("SELECT name, value FROM notes WHERE server = ?1")?;
    record.notes = query
        .query_map([record.id.0], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(record)
}
