//! Scores that pages got from pages of other partitions.

use nenrin_urls::CanonicalUrl;
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::{links, read, rows};
use crate::{Nth, Received, url_hash};

/// A page gets a share. Returns its number and all that it got so far.
pub(super) fn add(
    t: &Transaction<'_>,
    url: &CanonicalUrl,
    micros: u64,
) -> rusqlite::Result<Option<(Nth, u64)>> {
    // The mail that made it known came before.
    let Some(page) = read::find_page(t, url)? else { return Ok(None) };
    let nth = links::place(t, page)?;
    let all = t
        .prepare_cached(
            "INSERT INTO received (nth, micros, hash) VALUES (?1, ?2, ?3)
             ON CONFLICT (nth) DO UPDATE SET micros = micros + excluded.micros RETURNING micros",
        )?
        .query_row(params![nth, micros as i64, url_hash(url) as i64], |row| {
            rows::unsigned(row, 0)
        })?;
    Ok(Some((nth, all)))
}

/// A page that got a share before gets more, by the hash of its URL.
pub(super) fn add_more(
    t: &Transaction<'_>,
    hash: u64,
    micros: u64,
) -> rusqlite::Result<Option<(Nth, u64)>> {
    t.prepare_cached(
        "UPDATE received SET micros = micros + ?2 WHERE hash = ?1 RETURNING nth, micros",
    )?
    .query_row(params![hash as i64, micros as i64], |row| {
        Ok((row.get(0)?, rows::unsigned(row, 1)?))
    })
    .optional()
}

/// What was kept of the crawl order has these in it.
pub(super) fn keep(t: &Transaction<'_>, kept: &[(Nth, u64)]) -> rusqlite::Result<()> {
    let mut update = t.prepare_cached("UPDATE received SET kept = ?2 WHERE nth = ?1")?;
    kept.iter().try_for_each(|(nth, micros)| update.execute(params![nth, *micros as i64]).map(drop))
}

pub(super) fn all(c: &Connection) -> rusqlite::Result<Vec<Received>> {
    c.prepare_cached("SELECT nth, micros, kept FROM received ORDER BY nth")?
        .query_map([], |row| {
            let (micros, kept) = (rows::unsigned(row, 1)?, rows::unsigned(row, 2)?);
            Ok(Received { nth: row.get(0)?, micros, kept })
        })?
        .collect()
}
