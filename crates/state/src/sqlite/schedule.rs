//! The long-term queue: buckets of due pages, and what their schedules share.

use std::collections::BTreeMap;

use nenrin_revisit::{PageRevisitScheduler, RevisitSettings};
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::{
    batch::Batch,
    due::{self, NEW_BUCKET},
    packed,
    read::{self, count},
    rows, worth,
};
use crate::{
    DueCursor, DueLoad, DuePage, DueQuery, PageId, ServerId, ServerRecord, SiteId,
    rules::{self, Part, Wait},
};

const SET_DUE: &str = "UPDATE pages SET due_s = ?2, site = ?3 WHERE id = ?1";

/// Gives a page that has no time of its own one, kept by this site.
pub(super) fn schedule_page(
    b: &mut Batch<'_>,
    site: SiteId,
    page: PageId,
    depth: u32,
    due_s: i64,
) -> rusqlite::Result<()> {
    let before = read::page_before(b.t, page)?;
    if before.due_s.is_some() {
        return Ok(());
    }
    b.t.prepare_cached(SET_DUE)?.execute(params![page.0, due_s, site.0])?;
    b.sums.worth.replace(&before.worth, &Part { site, ..before.worth });
    b.moves.enter(page, rules::wait(before.visited_s.is_some(), depth), due_s)
}

/// Gives every page of a site a time of its own, where it has none: by what its visits taught, which
/// other collections may have made.
pub(super) fn schedule_site(
    b: &mut Batch<'_>,
    site: SiteId,
    settings: &RevisitSettings,
    now_s: i64,
) -> rusqlite::Result<()> {
    let t = b.t;
    let mut scheduler = PageRevisitScheduler::new(settings.clone(), b.settings.bucket_s);
    // What is damaged, or another policy's, is learnt again.
    let _ = scheduler.restore(&shared(t, site)?);
    let mut pages = t.prepare(&format!(
        "SELECT {}, m.depth, p.turn FROM members m JOIN pages p ON p.id = m.page {}
         WHERE m.site = ?1 AND p.due_s IS NULL",
        rows::PAGE,
        rows::PAGE_SERVER
    ))?;
    let timeless = pages
        .query_map([site.0], |row| {
            let page = rows::page(row)?;
            let due_s = rules::due_when_scheduled(
                scheduler.due_again(&page.known()),
                page.visited_s,
                now_s,
            );
            let wait = rules::wait(page.visited_s.is_some(), row.get("depth")?);
            Ok((page.id, worth::part_of(&page, row.get("turn")?), wait, due_s))
        })?
        .collect::<rusqlite::Result<Vec<(PageId, Part, Wait, i64)>>>()?;
    let mut update = t.prepare_cached(SET_DUE)?;
    for (page, before, wait, due_s) in timeless {
        update.execute(params![page.0, due_s, site.0])?;
        b.sums.worth.replace(&before, &Part { site, ..before });
        b.moves.enter(page, wait, due_s)?;
    }
    Ok(())
}

/// Takes the times of a site's pages away. Those in coarse buckets are left out when it is laid out.
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

pub(super) fn keep_shared(t: &Transaction<'_>, site: SiteId, bytes: &[u8]) -> rusqlite::Result<()> {
    t.prepare_cached("INSERT OR REPLACE INTO shared VALUES (?1, ?2)")?
        .execute(params![site.0, &*packed::pack(bytes)])?;
    Ok(())
}

pub(super) fn shared(c: &Connection, site: SiteId) -> rusqlite::Result<Vec<u8>> {
    let found = c
        .prepare_cached("SELECT state FROM shared WHERE site = ?1")?
        .query_row([site.0], |row| Ok(packed::unpack(row.get_ref(0)?.as_blob()?)?.into_owned()))
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

/// Loads due pages bucket by bucket, as far as coarse ones were split into buckets. Once a server has
/// given its share, the scan skips the rest of its pages: their numbers are consecutive.
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

/// Pages of one bucket after a position, at most one more than a server's share, so that a server's
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
