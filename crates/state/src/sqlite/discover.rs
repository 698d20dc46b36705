//! Pages that become known.

use rusqlite::{OptionalExtension, Transaction, params};

use super::{batch::Batch, links, read, schedule};
use crate::{
    Discovered, DuePage, Mail, NewPage, Nth, PageId, PageRecord, Reading, SiteId,
    rules::{self, Finding},
};

/// A page of this partition that was found.
pub(super) struct Found {
    /// Its discovery number.
    pub(super) nth: Nth,
    /// The page, if the site did not know it yet.
    pub(super) new_page: Option<NewPage>,
}

/// Makes a page known to a site. One of another partition leaves as mail, and `None` is returned.
pub(super) fn discover(
    b: &mut Batch<'_>,
    site: SiteId,
    found: &Discovered,
    now_s: i64,
) -> rusqlite::Result<Option<Found>> {
    if let Some(partition) = b.elsewhere(&found.url) {
        b.outbox.send(partition, Mail::Found { site, at_s: now_s, page: found.clone() });
        return Ok(None);
    }
    let is_continuous = found.due_s.is_some() || b.is_continuous(site)?;
    let due_s = rules::due_when_found(found, is_continuous, now_s);
    let page = match place(b, found)? {
        PageSlot::Known(page) => {
            match rules::finding(depth(b.t, site, page)?, found) {
                Finding::New => {}
                Finding::Known => return Ok(Some(Found::known(b, page)?)),
                Finding::Nearer { depth } => {
                    bring_nearer(b.t, site, page, depth, found)?;
                    return Ok(Some(Found::known(b, page)?));
                }
            }
            enter_member(b, site, page, found)?;
            if let Some(due_s) = due_s {
                schedule::schedule_page(b, site, page, found.depth, due_s)?;
            }
            read::page_by_id(b.t, page)?
        }
        PageSlot::Free(page) => enter(b, site, page, found, (now_s, due_s))?,
    };
    let nth = page.nth;
    let (depth, hops) = (found.depth, found.hops);
    let due = DuePage { page, site, depth, hops, pulled: false };
    Ok(Some(Found { nth, new_page: Some(NewPage { due }) }))
}

impl Found {
    fn known(b: &Batch<'_>, page: PageId) -> rusqlite::Result<Self> {
        Ok(Self { nth: links::place(b.t, page)?, new_page: None })
    }
}

/// Enters a page that no site knew.
fn enter(
    b: &mut Batch<'_>,
    site: SiteId,
    page: PageId,
    found: &Discovered,
    (now_s, due_s): (i64, Option<i64>),
) -> rusqlite::Result<PageRecord> {
    let path = found.url.path_and_query();
    let nth = links::enter(b.t, page, Reading::New)?;
    b.t.prepare_cached(
        "INSERT INTO pages (id, path, site, discovered_s, due_s, nth)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![page.0, path, site.0, now_s, due_s, nth])?;
    if let Some(due_s) = due_s {
        b.moves.enter(page, rules::wait(false, found.depth), due_s)?;
    }
    b.entered.path(page, path);
    enter_member(b, site, page, found)?;
    Ok(PageRecord::unvisited((page, nth), found.url.clone(), site, now_s, due_s))
}

pub(super) fn enter_member(
    b: &mut Batch<'_>,
    site: SiteId,
    page: PageId,
    found: &Discovered,
) -> rusqlite::Result<()> {
    b.t.prepare_cached("INSERT INTO members VALUES (?1, ?2, ?3, ?4, NULL)")?.execute(params![
        site.0,
        page.0,
        found.depth,
        found.hops
    ])?;
    b.sums.count_page(site);
    Ok(())
}

/// The depth at which a site knows a page.
fn depth(t: &Transaction<'_>, site: SiteId, page: PageId) -> rusqlite::Result<Option<u32>> {
    t.prepare_cached("SELECT depth FROM members WHERE site = ?1 AND page = ?2")?
        .query_row(params![site.0, page.0], |row| row.get(0))
        .optional()
}

fn bring_nearer(
    t: &Transaction<'_>,
    site: SiteId,
    page: PageId,
    depth: u32,
    found: &Discovered,
) -> rusqlite::Result<()> {
    t.prepare_cached("UPDATE members SET depth = ?3, hops = ?4 WHERE site = ?1 AND page = ?2")?
        .execute(params![site.0, page.0, found.depth, found.hops])?;
    if rules::loses_validators(depth, depth_limit(t, site)?) {
        t.prepare_cached("UPDATE pages SET etag = NULL, last_modified = NULL WHERE id = ?1")?
            .execute([page.0])?;
    }
    Ok(())
}

fn depth_limit(t: &Transaction<'_>, site: SiteId) -> rusqlite::Result<u32> {
    t.prepare_cached("SELECT json_extract(conditions, '$.depth') FROM sites WHERE id = ?1")?
        .query_row([site.0], |row| row.get(0))
}

/// Where a page has its number.
pub(super) enum PageSlot {
    Known(PageId),
    Free(PageId),
}

/// The number of a page, or one that it may have.
pub(super) fn place(b: &mut Batch<'_>, found: &Discovered) -> rusqlite::Result<PageSlot> {
    let first = read::first_number(b.server(&found.url)?, &found.url);
    let path = found.url.path_and_query();
    let mut query = b.t.prepare_cached("SELECT id, path FROM pages WHERE id >= ?1 AND id < ?2")?;
    let mut neighbours = query.query([first, first + read::PROBES])?;
    let mut free = first;
    while let Some(row) = neighbours.next()? {
        let id: i64 = row.get(0)?;
        if row.get_ref(1)?.as_str()? == path {
            return Ok(PageSlot::Known(PageId(id)));
        }
        // They come in order, so the first gap is passed only once it was found.
        if id == free {
            free += 1;
        }
    }
    if free >= first + read::PROBES {
        // Eight pages of one server within eight of 2^39 numbers: the engine's own constraint
        // error says it, and the commit is rolled back.
        return Err(rusqlite::Error::StatementChangedRows(0));
    }
    Ok(PageSlot::Free(PageId(free)))
}
