//! The long-term queue: buckets of due pages, and what their schedules share.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::{read::count, rows};
use crate::{
    DueCursor, DueLoad, DuePage, DueQuery, PageId, PullForward, ServerId, ServerRecord, SiteId,
};

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS shared (site INTEGER PRIMARY KEY, state BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS pulled (page INTEGER PRIMARY KEY, why TEXT NOT NULL);
";

/// A page that was visited before its site let every page have its own time is due this long after
/// that visit.
const FIRST_WAIT_S: i64 = 86_400;

/// Adds the tables of this file to a state that does not have them yet.
pub(super) fn prepare(c: &Connection) -> rusqlite::Result<()> {
    c.execute_batch(SCHEMA)?;
    let there = c
        .prepare("SELECT 1 FROM pragma_table_info('servers') WHERE name = 'stretch_percent'")?
        .exists([])?;
    if !there {
        c.execute_batch(
            "ALTER TABLE servers ADD COLUMN stretch_percent INTEGER NOT NULL DEFAULT 100",
        )?;
    }
    Ok(())
}

/// Where pages stand that a visit found and none has been to yet: a crawl order chooses among
/// them, and a scan of the buckets of time need not pass them by.
const NEW_BUCKET: i64 = i64::MAX - 1;

/// Puts a page from one bucket into another.
pub(super) fn move_due(
    t: &Transaction<'_>,
    bucket_s: i64,
    page: PageId,
    before_s: Option<i64>,
    after_s: Option<i64>,
) -> rusqlite::Result<()> {
    let bucket = |due_s: i64| due_s.div_euclid(bucket_s);
    if before_s.map(bucket) == after_s.map(bucket) {
        return Ok(());
    }
    if let Some(before_s) = before_s {
        leave_bucket(t, bucket(before_s), page)?;
    }
    after_s.map_or(Ok(()), |after_s| enter_bucket(t, bucket(after_s), page))
}

fn enter_bucket(t: &Transaction<'_>, bucket: i64, page: PageId) -> rusqlite::Result<()> {
    t.prepare_cached("INSERT OR IGNORE INTO due VALUES (?1, ?2)")?
        .execute(params![bucket, page.0])?;
    Ok(())
}

fn leave_bucket(t: &Transaction<'_>, bucket: i64, page: PageId) -> rusqlite::Result<()> {
    t.prepare_cached("DELETE FROM due WHERE bucket = ?1 AND page = ?2")?
        .execute(params![bucket, page.0])?;
    Ok(())
}

/// A page was visited for the first time.
pub(super) fn no_longer_new(t: &Transaction<'_>, page: PageId) -> rusqlite::Result<()> {
    leave_bucket(t, NEW_BUCKET, page)
}

/// A page became known. Top pages have no links to be ordered by, and wait for their time like
/// known ones.
pub(super) fn enter_new(
    t: &Transaction<'_>,
    bucket_s: i64,
    page: PageId,
    depth: u32,
    due_s: i64,
) -> rusqlite::Result<()> {
    let bucket = if depth > 1 { NEW_BUCKET } else { due_s.div_euclid(bucket_s) };
    enter_bucket(t, bucket, page)
}

/// Whether the pages of a site have times of their own.
pub(super) fn is_continuous(t: &Transaction<'_>, site: SiteId) -> rusqlite::Result<bool> {
    t.prepare_cached(
        "SELECT json_type(conditions, '$.schedule.continuous') IS NOT NULL FROM sites WHERE id = ?1",
    )?
    .query_row([site.0], |row| row.get(0))
}

/// Gives a page that has no time of its own one, kept by this site.
pub(super) fn schedule_page(
    t: &Transaction<'_>,
    bucket_s: i64,
    site: SiteId,
    page: PageId,
    depth: u32,
    due_s: i64,
) -> rusqlite::Result<()> {
    let visited: Option<bool> = t
        .prepare_cached(
            "UPDATE pages SET due_s = ?2, site = ?3 WHERE id = ?1 AND due_s IS NULL
             RETURNING visited_s IS NOT NULL",
        )?
        .query_row(params![page.0, due_s, site.0], |row| row.get(0))
        .optional()?;
    match visited {
        Some(true) => move_due(t, bucket_s, page, None, Some(due_s)),
        Some(false) => enter_new(t, bucket_s, page, depth, due_s),
        None => Ok(()),
    }
}

/// Gives every page of a site a time of its own, where it has none.
pub(super) fn schedule_site(
    t: &Transaction<'_>,
    bucket_s: i64,
    site: SiteId,
    now_s: i64,
) -> rusqlite::Result<()> {
    t.execute(
        "UPDATE pages SET due_s = MAX(?2, COALESCE(visited_s, 0) + ?3), site = ?1
         WHERE due_s IS NULL AND id IN (SELECT page FROM members WHERE site = ?1)",
        params![site.0, now_s, FIRST_WAIT_S],
    )?;
    t.execute(
        "INSERT OR IGNORE INTO due
         SELECT CASE WHEN p.visited_s IS NULL AND m.depth > 1 THEN ?3 ELSE p.due_s / ?2 END, p.id
         FROM members m JOIN pages p ON p.id = m.page WHERE m.site = ?1 AND p.due_s IS NOT NULL",
        params![site.0, bucket_s, NEW_BUCKET],
    )?;
    Ok(())
}

/// Takes the times of a site's pages away.
pub(super) fn unschedule_site(
    t: &Transaction<'_>,
    bucket_s: i64,
    site: SiteId,
) -> rusqlite::Result<()> {
    let own = "SELECT p.id FROM members m JOIN pages p ON p.id = m.page
               WHERE m.site = ?1 AND p.site = ?1 AND p.due_s IS NOT NULL";
    t.execute(
        "DELETE FROM due WHERE (bucket, page) IN
            (SELECT p.due_s / ?2, p.id FROM members m JOIN pages p ON p.id = m.page
             WHERE m.site = ?1 AND p.site = ?1 AND p.due_s IS NOT NULL)",
        params![site.0, bucket_s],
    )?;
    t.execute(
        &format!("DELETE FROM due WHERE bucket = {NEW_BUCKET} AND page IN ({own})"),
        [site.0],
    )?;
    t.execute(&format!("UPDATE pages SET due_s = NULL WHERE id IN ({own})"), [site.0])?;
    t.execute("DELETE FROM shared WHERE site = ?1", [site.0])?;
    Ok(())
}

pub(super) fn set_due(
    t: &Transaction<'_>,
    bucket_s: i64,
    page: PageId,
    due_s: i64,
) -> rusqlite::Result<()> {
    let Some(before_s) = due(t, page)? else { return Ok(()) };
    let visited: bool = t
        .prepare_cached(
            "UPDATE pages SET due_s = ?2 WHERE id = ?1 RETURNING visited_s IS NOT NULL",
        )?
        .query_row(params![page.0, due_s], |row| row.get(0))?;
    // A page that was never visited waits for its turn, not for a time.
    if visited { move_due(t, bucket_s, page, Some(before_s), Some(due_s)) } else { Ok(()) }
}

fn due(t: &Transaction<'_>, page: PageId) -> rusqlite::Result<Option<i64>> {
    let due_s = t
        .prepare_cached("SELECT due_s FROM pages WHERE id = ?1")?
        .query_row([page.0], |row| row.get(0))
        .optional()?;
    Ok(due_s.flatten())
}

pub(super) fn pull_forward(
    t: &Transaction<'_>,
    bucket_s: i64,
    pull: &PullForward,
) -> rusqlite::Result<()> {
    let Some(due_s) = due(t, pull.page)?.filter(|&due_s| due_s > pull.to_s) else { return Ok(()) };
    let left = 100 - i64::from(pull.odds_percent.min(100));
    let nearer_s = pull.to_s + (due_s - pull.to_s) / 100 * left;
    t.prepare_cached("INSERT OR REPLACE INTO pulled VALUES (?1, ?2)")?
        .execute(params![pull.page.0, pull.why])?;
    set_due(t, bucket_s, pull.page, nearer_s)
}

/// A visit was made: the hint has done its work.
pub(super) fn forget_pull(t: &Transaction<'_>, page: PageId) -> rusqlite::Result<()> {
    t.prepare_cached("DELETE FROM pulled WHERE page = ?1")?.execute([page.0])?;
    Ok(())
}

pub(super) fn pulled(c: &Connection, page: PageId) -> rusqlite::Result<Option<String>> {
    c.prepare_cached("SELECT why FROM pulled WHERE page = ?1")?
        .query_row([page.0], |row| row.get(0))
        .optional()
}

pub(super) fn keep_shared(t: &Transaction<'_>, site: SiteId, bytes: &[u8]) -> rusqlite::Result<()> {
    t.prepare_cached("INSERT OR REPLACE INTO shared VALUES (?1, ?2)")?
        .execute(params![site.0, bytes])?;
    Ok(())
}

pub(super) fn shared(c: &Connection, site: SiteId) -> rusqlite::Result<Vec<u8>> {
    let found = c
        .prepare_cached("SELECT state FROM shared WHERE site = ?1")?
        .query_row([site.0], |row| row.get(0))
        .optional()?;
    Ok(found.unwrap_or_default())
}

pub(super) fn stretched(
    c: &Connection,
    limit: usize,
) -> rusqlite::Result<Vec<(ServerRecord, u32)>> {
    c.prepare_cached(&format!(
        "SELECT {} FROM servers WHERE stretch_percent > 100 ORDER BY stretch_percent DESC LIMIT ?1",
        rows::SERVER
    ))?
    .query_map([count(limit)], |row| {
        let server = rows::server(row)?;
        let percent = server.stretch_percent;
        Ok((server, percent))
    })?
    .collect()
}

/// Loads due pages bucket by bucket. Once a server has given its share, the scan jumps over the
/// rest of its pages: their numbers lie together.
pub(super) fn load_due(
    c: &Connection,
    bucket_s: i64,
    query: &DueQuery,
) -> rusqlite::Result<DueLoad> {
    let last_bucket = if query.new { NEW_BUCKET } else { query.until_s.div_euclid(bucket_s) };
    let mut load = DueLoad::default();
    let mut taken: BTreeMap<ServerId, usize> = BTreeMap::new();
    let first_bucket = if query.new { NEW_BUCKET } else { i64::MIN };
    let mut at: DueCursor = query.after.unwrap_or((first_bucket, PageId(-1)));
    while let Some(bucket) = next_bucket(c, at.0, last_bucket)? {
        if bucket != at.0 {
            at = (bucket, PageId(-1));
        }
        let room = query.limit - load.pages.len();
        let rows = bucket_rows(c, at, query, room)?;
        let full = rows.len() >= room;
        let mut jumped = None;
        for due in rows {
            let server = due.page.id.server();
            let so_far = taken.entry(server).or_default();
            if *so_far >= query.per_server {
                jumped = Some(server);
                break;
            }
            *so_far += 1;
            at.1 = due.page.id;
            load.pages.push(due);
        }
        match jumped {
            Some(server) => {
                if !load.more.contains(&server) {
                    load.more.push(server);
                }
                at.1 = last_page(server);
            }
            None if full => {
                load.next = Some(at);
                return Ok(load);
            }
            None => at = (bucket.saturating_add(1), PageId(-1)),
        }
    }
    Ok(load)
}

fn next_bucket(c: &Connection, from: i64, last: i64) -> rusqlite::Result<Option<i64>> {
    c.prepare_cached("SELECT MIN(bucket) FROM due WHERE bucket >= ?1 AND bucket <= ?2")?
        .query_row([from, last], |row| row.get(0))
}

/// The largest number that a page of a server can have.
fn last_page(server: ServerId) -> PageId {
    PageId(((i64::from(server.0) + 1) << PageId::HASH_BITS) - 1)
}

/// Pages of one bucket after a place, at most one more than a server's share, so that a server's
/// surplus is noticed without reading it all.
fn bucket_rows(
    c: &Connection,
    (bucket, after): DueCursor,
    query: &DueQuery,
    room: usize,
) -> rusqlite::Result<Vec<DuePage>> {
    let (first, last) = match query.server {
        Some(server) => (last_page(server).0 - (1 << PageId::HASH_BITS), last_page(server).0),
        None => (-1, i64::MAX),
    };
    let without: Vec<String> = query.without.iter().map(|site| site.0.to_string()).collect();
    c.prepare_cached(&format!(
        "SELECT {}, p.site, m.depth, m.hops, EXISTS (SELECT 1 FROM pulled u WHERE u.page = p.id)
         FROM due d CROSS JOIN pages p ON p.id = d.page {}
         JOIN members m ON m.site = p.site AND m.page = p.id
         WHERE d.bucket = ?1 AND d.page > ?2 AND d.page <= ?3 AND p.site NOT IN ({})
         ORDER BY d.page LIMIT ?4",
        rows::PAGE,
        rows::PAGE_SERVER,
        without.join(",")
    ))?
    .query_map(params![bucket, after.0.max(first), last, count(room)], rows::due_page)?
    .collect()
}
