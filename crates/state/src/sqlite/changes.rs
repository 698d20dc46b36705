//! Changes of pages by time, and what was read of their versions.

use rusqlite::{Connection, OptionalExtension, Rows, Transaction, params};

use super::{bags, open::has_table, rows};
use crate::{
    ChangeCursor, ChangePortion, ChangeQuery, PageChange, PageId, SiteId, Summary, VersionId,
    VersionRow,
};

/// Made when someone first asks for changes: the key of versions begins with their page.
pub(super) fn index(t: &Transaction<'_>) -> rusqlite::Result<()> {
    t.execute_batch(
        "CREATE INDEX IF NOT EXISTS versions_by_time ON versions (at_s, page, version);
         CREATE INDEX IF NOT EXISTS gone_by_time ON gone (at_s, page);",
    )
}

pub(super) fn has_index(c: &Connection) -> rusqlite::Result<bool> {
    c.prepare_cached("SELECT 1 FROM sqlite_master WHERE name = 'versions_by_time'")?.exists([])
}

/// A row of one of the two lists, before anything else is looked up.
#[derive(Clone, Copy)]
struct Seen {
    at: ChangeCursor,
    is_noise: bool,
}

pub(super) fn changes(c: &Connection, query: &ChangeQuery) -> rusqlite::Result<ChangePortion> {
    let end = ChangeCursor(query.to_s, PageId(i64::MAX), VersionId(i64::MAX as u64));
    let before = query.before.map_or(end, |before| before.min(end));
    let mut versions = c.prepare_cached(
        "SELECT at_s, page, version, permille = 0 FROM versions
         WHERE at_s >= ?1 AND at_s <= ?2 AND (at_s, page, version) < (?2, ?3, ?4)
         ORDER BY at_s DESC, page DESC, version DESC",
    )?;
    let mut gone = c.prepare_cached(
        "SELECT at_s, page, 0, 0 FROM gone
         WHERE at_s >= ?1 AND at_s <= ?2 AND (at_s, page, 0) < (?2, ?3, ?4)
         ORDER BY at_s DESC, page DESC",
    )?;
    let bounds = params![query.from_s, before.0, before.1.0, before.2.0 as i64];
    let (mut versions, mut gone) = (versions.query(bounds)?, gone.query(bounds)?);
    let mut next = (step(&mut versions)?, step(&mut gone)?);
    let mut found = ChangePortion::default();
    for _ in 0..query.looked_at {
        let seen = match next {
            (Some(version), other) if other.is_none_or(|gone| gone.at < version.at) => {
                next.0 = step(&mut versions)?;
                version
            }
            (_, Some(gone_row)) => {
                next.1 = step(&mut gone)?;
                gone_row
            }
            _ => return Ok(ChangePortion { next: None, ..found }),
        };
        found.next = Some(seen.at);
        found.looked_at += 1;
        found.changes.extend(change(c, query, seen)?);
        if found.changes.len() >= query.limit {
            break;
        }
    }
    if next.0.is_none() && next.1.is_none() {
        found.next = None;
    }
    Ok(found)
}

fn step(rows: &mut Rows<'_>) -> rusqlite::Result<Option<Seen>> {
    let Some(row) = rows.next()? else { return Ok(None) };
    let at = ChangeCursor(row.get(0)?, PageId(row.get(1)?), VersionId(rows::unsigned(row, 2)?));
    Ok(Some(Seen { at, is_noise: row.get::<_, Option<bool>>(3)?.unwrap_or(false) }))
}

/// The change, if it is asked for.
fn change(c: &Connection, query: &ChangeQuery, seen: Seen) -> rusqlite::Result<Option<PageChange>> {
    let ChangeCursor(at_s, page, VersionId(number)) = seen.at;
    let has = |sql: &str, by: &[i64]| c.prepare_cached(sql)?.exists(rusqlite::params_from_iter(by));
    let is_of = |site: SiteId| {
        has("SELECT 1 FROM members WHERE site = ?1 AND page = ?2", &[i64::from(site.0), page.0])
    };
    if (query.significant && seen.is_noise)
        || !query.site.map_or(Ok(true), is_of)?
        || has("SELECT 1 FROM denied WHERE page = ?1", &[page.0])?
    {
        return Ok(None);
    }
    let version = if number > 0 { version_at(c, page, at_s, number)? } else { None };
    let previous = version_before(c, page, at_s, number)?;
    if number == 0 {
        // "Gone" is listed once: not for a page that never existed, and not again at every later visit.
        let Some(last) = &previous else { return Ok(None) };
        let again = "SELECT 1 FROM gone WHERE page = ?1 AND at_s > ?2 AND at_s < ?3";
        if has(again, &[page.0, last.at_s, at_s])? {
            return Ok(None);
        }
    }
    let site = c
        .prepare_cached("SELECT site FROM pages WHERE id = ?1")?
        .query_row([page.0], |row| row.get(0).map(SiteId))?;
    let Some(url) = bags::url(c, page)? else { return Ok(None) };
    Ok(Some(PageChange { at_s, page, url, site, version, previous }))
}

const VERSION: &str = "SELECT '', v.at_s, v.version, v.status, mimes.name, v.bytes, v.permille
    FROM versions v CROSS JOIN mimes ON mimes.id = v.mime WHERE v.page = ?1";

fn row(row: &rusqlite::Row<'_>) -> rusqlite::Result<VersionRow> {
    Ok(VersionRow {
        at_s: row.get(1)?,
        version: VersionId(rows::unsigned(row, 2)?),
        status: row.get(3)?,
        mime: row.get(4)?,
        bytes: rows::unsigned(row, 5)?,
        changed_permille: row.get(6)?,
    })
}

fn version_at(
    c: &Connection,
    page: PageId,
    at_s: i64,
    number: u64,
) -> rusqlite::Result<Option<VersionRow>> {
    c.prepare_cached(&format!("{VERSION} AND v.at_s = ?2 AND v.version = ?3"))?
        .query_row(params![page.0, at_s, number as i64], row)
        .optional()
}

/// The version before one, or where `number` is 0, the newest at or before a time.
fn version_before(
    c: &Connection,
    page: PageId,
    at_s: i64,
    number: u64,
) -> rusqlite::Result<Option<VersionRow>> {
    let number = if number == 0 { i64::MAX } else { number as i64 };
    c.prepare_cached(&format!(
        "{VERSION} AND v.at_s <= ?2 AND (v.at_s, v.version) < (?2, ?3)
         ORDER BY v.at_s DESC, v.version DESC LIMIT 1"
    ))?
    .query_row(params![page.0, at_s, number], row)
    .optional()
}

fn has_summaries(c: &Connection) -> rusqlite::Result<bool> {
    has_table(c, "summaries")
}

pub(super) fn summaries(
    c: &Connection,
    versions: &[VersionId],
) -> rusqlite::Result<Vec<Option<Summary>>> {
    if !has_summaries(c)? {
        return Ok(vec![None; versions.len()]);
    }
    let mut select = c.prepare_cached(
        "SELECT title, line, removed, previous FROM summaries WHERE version = ?1",
    )?;
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Summary {
            title: row.get(0)?,
            line: row.get(1)?,
            removed: row.get(2)?,
            previous: row.get::<_, Option<i64>>(3)?.map(|version| VersionId(version as u64)),
        })
    };
    versions.iter().map(|version| select.query_row([version.0 as i64], read).optional()).collect()
}

pub(super) fn keep_summaries(
    t: &Transaction<'_>,
    read: &[(PageId, VersionId, Summary)],
    most: usize,
) -> rusqlite::Result<()> {
    if !has_summaries(t)? {
        t.execute_batch(
            "CREATE TABLE summaries (
                version INTEGER PRIMARY KEY, title TEXT NOT NULL, line TEXT NOT NULL,
                removed INTEGER NOT NULL, previous INTEGER)",
        )?;
    }
    let mut put =
        t.prepare_cached("INSERT OR REPLACE INTO summaries VALUES (?1, ?2, ?3, ?4, ?5)")?;
    let mut is_there =
        t.prepare_cached("SELECT 1 FROM versions WHERE page = ?1 AND version = ?2")?;
    let mut kept = 0;
    for (page, version, summary) in read {
        let version = version.0 as i64;
        if is_there.exists([page.0, version])? {
            let previous = summary.previous.map(|version| version.0 as i64);
            kept += put.execute(params![
                version,
                summary.title,
                summary.line,
                summary.removed,
                previous
            ])?;
        }
    }
    bound_summaries(t, kept, most)
}

/// Counts what was put in, and only where that may be too much the rows themselves.
fn bound_summaries(t: &Transaction<'_>, kept: usize, most: usize) -> rusqlite::Result<()> {
    const NAME: &str = "summaries";
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let put: Option<i64> = t
        .prepare_cached("SELECT value FROM meta WHERE name = ?1")?
        .query_row([NAME], |row| row.get(0))
        .optional()?;
    let mut count = put.unwrap_or(0) + kept as i64;
    if count > most {
        t.execute(
            "DELETE FROM summaries WHERE version IN
                (SELECT version FROM summaries ORDER BY version
                 LIMIT MAX((SELECT COUNT(*) FROM summaries) - ?1, 0))",
            [most - most / 10],
        )?;
        count = t.query_row("SELECT COUNT(*) FROM summaries", [], |row| row.get(0))?;
    }
    t.prepare_cached("INSERT OR REPLACE INTO meta VALUES (?1, ?2)")?
        .execute(params![NAME, count])?;
    Ok(())
}

/// Forgets what was read of the versions of a page that are dropped.
pub(super) fn forget_page(t: &Transaction<'_>, page: PageId) -> rusqlite::Result<()> {
    if has_summaries(t)? {
        t.prepare_cached(
            "DELETE FROM summaries WHERE version IN
                (SELECT version FROM versions WHERE page = ?1)",
        )?
        .execute([page.0])?;
    }
    Ok(())
}

/// Forgets what was read of a version that is dropped.
pub(super) fn forget(t: &Transaction<'_>, version: i64) -> rusqlite::Result<()> {
    if has_summaries(t)? {
        t.prepare_cached("DELETE FROM summaries WHERE version = ?1")?.execute([version])?;
    }
    Ok(())
}
