//! Watches and what they reported, each as one document.

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::open::has_table;
use crate::{Watch, WatchHit, WatchId};

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS watches (id INTEGER PRIMARY KEY, watch TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS watch_hits (id INTEGER PRIMARY KEY, hit TEXT NOT NULL);";

/// Stores a watch; one without a number gets the next.
pub(super) fn keep(t: &Transaction<'_>, watch: &Watch) -> rusqlite::Result<Watch> {
    t.execute_batch(TABLES)?;
    let mut kept = watch.clone();
    if kept.id.0 == 0 {
        let last: Option<u32> =
            t.query_row("SELECT MAX(id) FROM watches", [], |row| row.get(0)).optional()?.flatten();
        kept.id = WatchId(last.unwrap_or(0) + 1);
    }
    t.prepare_cached("INSERT OR REPLACE INTO watches (id, watch) VALUES (?1, ?2)")?
        .execute(params![kept.id.0, written(&kept)])?;
    Ok(kept)
}

pub(super) fn drop(t: &Transaction<'_>, watch: WatchId) -> rusqlite::Result<bool> {
    Ok(has_table(t, "watches")? && t.execute("DELETE FROM watches WHERE id = ?1", [watch.0])? > 0)
}

pub(super) fn all(c: &Connection) -> rusqlite::Result<Vec<Watch>> {
    documents(c, "watches", "SELECT watch FROM watches ORDER BY id")
}

/// Stores what was reported, oldest first; those with a number replace what is stored.
pub(super) fn keep_hits(t: &Transaction<'_>, hits: &[WatchHit]) -> rusqlite::Result<()> {
    if hits.is_empty() {
        return Ok(());
    }
    t.execute_batch(TABLES)?;
    for hit in hits {
        let mut kept = hit.clone();
        if kept.id == 0 {
            let last: Option<i64> = t
                .query_row("SELECT MAX(id) FROM watch_hits", [], |row| row.get(0))
                .optional()?
                .flatten();
            kept.id = last.unwrap_or(0) + 1;
        }
        t.prepare_cached("INSERT OR REPLACE INTO watch_hits (id, hit) VALUES (?1, ?2)")?
            .execute(params![kept.id, written(&kept)])?;
    }
    t.execute(
        "DELETE FROM watch_hits WHERE id <= (SELECT MAX(id) FROM watch_hits) - ?1",
        [WatchHit::KEPT as i64],
    )?;
    Ok(())
}

pub(super) fn hits(c: &Connection) -> rusqlite::Result<Vec<WatchHit>> {
    documents(c, "watch_hits", "SELECT hit FROM watch_hits ORDER BY id DESC")
}

fn written(document: &impl serde::Serialize) -> String {
    // Plain data with text keys always has a JSON form.
    serde_json::to_string(document).unwrap_or_default()
}

/// Documents of a later build are passed over.
fn documents<T: serde::de::DeserializeOwned>(
    c: &Connection,
    table: &str,
    query: &str,
) -> rusqlite::Result<Vec<T>> {
    if !has_table(c, table)? {
        return Ok(Vec::new());
    }
    let mut query = c.prepare_cached(query)?;
    let mut found = query.query([])?;
    let mut all = Vec::new();
    while let Some(row) = found.next()? {
        all.extend(serde_json::from_str(row.get_ref(0)?.as_str()?).ok());
    }
    Ok(all)
}
