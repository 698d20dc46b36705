//! The long-term queue: buckets of due pages, and what their schedules share.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::{
    batch::Batch,
    due::{self, Moves, NEW_BUCKET},
    read::count,
    rows,
    worth::{self, Part},
};
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
    c.execute_batch(SCHEMA)
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
    b: &mut Batch<'_>,
    site: SiteId,
    page: PageId,
    depth: u32,
    due_s: i64,
) -> rusqlite::Result<()> {
    let t = b.t;
    let before = worth::part(t, page)?;
    let visited: Option<bool> = t
        .prepare_cached(
            "UPDATE pages SET due_s = ?2, site = ?3 WHERE id = ?1 AND due_s IS NULL
             RETURNING visited_s IS NOT NULL",
        )?
        .query_row(params![page.0, due_s, site.0], |row| row.get(0))
        .optional()?;
    let Some(is_visited) = visited else { return Ok(()) };
    b.sums.worth.replace(&before, &Part { site, ..before });
    match is_visited {
        true => b.moves.go(page, None, Some(due_s)),
        false => b.moves.enter_new(page, depth, due_s),
    }
}

/// Gives every page of a site a time of its own, where it has none.
pub(super) fn schedule_site(b: &mut Batch<'_>, site: SiteId, now_s: i64) -> rusqlite::Result<()> {
    let t = b.t;
    let mut others = t.prepare(&format!(
        "SELECT {} FROM pages WHERE due_s IS NULL AND site <> ?1
            AND id IN (SELECT page FROM members WHERE site = ?1)",
        Part::COLUMNS
    ))?;
    for before in others.query_map([site.0], |row| Part::read(row, 0))? {
        let before = before?;
        b.sums.worth.replace(&before, &Part { site, ..before });
    }
    let mut update = t.prepare(
        "UPDATE pages SET due_s = MAX(?2, COALESCE(visited_s, 0) + ?3), site = ?1
         WHERE due_s IS NULL AND id IN (SELECT page FROM members WHERE site = ?1)
         RETURNING id, due_s, visited_s IS NOT NULL,
            (SELECT depth FROM members m WHERE m.site = ?1 AND m.page = id)",
    )?;
    let mut changed = update.query(params![site.0, now_s, FIRST_WAIT_S])?;
    while let Some(row) = changed.next()? {
        let (page, due_s) = (PageId(row.get(0)?), row.get(1)?);
        match row.get(2)? {
            true => b.moves.go(page, None, Some(due_s))?,
            false => b.moves.enter_new(page, row.get(3)?, due_s)?,
        }
    }
    Ok(())
}

/// Takes the times of a site's pages away. Those in heaps are left out when it is laid out.
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
    let new = format!("DELETE FROM due WHERE bucket = {NEW_BUCKET} AND page IN ({own})");
    t.execute(&new, [site.0])?;
    t.execute(&format!("UPDATE pages SET due_s = NULL WHERE id IN ({own})"), [site.0])?;
    t.execute("DELETE FROM shared WHERE site = ?1", [site.0])?;
    Ok(())
}

pub(super) fn set_due(
    t: &Transaction<'_>,
    moves: &mut Moves<'_>,
    page: PageId,
    due_s: i64,
) -> rusqlite::Result<()> {
    let Some(before_s) = due_of(t, page)? else { return Ok(()) };
    t.prepare_cached("UPDATE pages SET due_s = ?2 WHERE id = ?1")?
        .execute(params![page.0, due_s])?;
    // A page that was never visited waits for its turn, not for a time.
    if due::is_new(t, page)? { Ok(()) } else { moves.go(page, Some(before_s), Some(due_s)) }
}

pub(super) fn due_of(t: &Transaction<'_>, page: PageId) -> rusqlite::Result<Option<i64>> {
    let due_s = t
        .prepare_cached("SELECT due_s FROM pages WHERE id = ?1")?
        .query_row([page.0], |row| row.get(0))
        .optional()?;
    Ok(due_s.flatten())
}

pub(super) fn pull_forward(
    t: &Transaction<'_>,
    moves: &mut Moves<'_>,
    pull: &PullForward,
) -> rusqlite::Result<()> {
    let Some(due_s) = due_of(t, pull.page)?.filter(|&due_s| due_s > pull.to_s) else {
        return Ok(());
    };
    let left = 100 - i64::from(pull.odds_percent.min(100));
    let nearer_s = pull.to_s + (due_s - pull.to_s) / 100 * left;
    t.prepare_cached("INSERT OR REPLACE INTO pulled VALUES (?1, ?2)")?
        .execute(params![pull.page.0, pull.why])?;
    set_due(t, moves, pull.page, nearer_s)
}

/// Whether any page is pulled forward.
pub(super) fn has_pulls(c: &Connection) -> rusqlite::Result<bool> {
    c.prepare_cached("SELECT 1 FROM pulled LIMIT 1")?.exists([])
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

/// Loads due pages bucket by bucket, as far as heaps were laid out. Once a server has given its
/// share, the scan jumps over the rest of its pages: their numbers lie together.
pub(super) fn load_due(
    c: &Connection,
    bucket_s: i64,
    query: &DueQuery,
) -> rusqlite::Result<DueLoad> {
    let (first_bucket, last_bucket) = match query.new {
        true => (NEW_BUCKET, NEW_BUCKET),
        false => {
            let laid_out = due::last_bucket(due::laid_out(c)?).min(NEW_BUCKET - 1);
            (i64::MIN, query.until_s.div_euclid(bucket_s).min(laid_out))
        }
    };
    let mut load = DueLoad::default();
    let mut taken: BTreeMap<ServerId, usize> = BTreeMap::new();
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
