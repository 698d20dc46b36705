//! Removing sites: what is hidden, denied and deleted, and who said why.
//!
//! Every way to a version begins at the list of keys, so a page is denied by taking it out there.

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::{
    bags::{self, Entered},
    changes,
    engine::Refusal,
    read, rows, sites, structure,
};
use crate::{PageId, Removal, RemovalRow, Site, SiteId, VersionId, rules};

fn current(t: &Transaction<'_>, site: SiteId) -> rusqlite::Result<Option<Removal>> {
    let word: Option<Option<String>> = t
        .query_row(
            "SELECT removal FROM removals WHERE site = ?1 ORDER BY id DESC LIMIT 1",
            [site.0],
            |row| row.get(0),
        )
        .optional()?;
    Ok(word.flatten().as_deref().and_then(Removal::from_word))
}

pub(super) fn remove(
    t: &Transaction<'_>,
    site: SiteId,
    removal: Option<Removal>,
    reason: &str,
    now_s: i64,
) -> Result<(), Refusal> {
    let effect = rules::remove(site, current(t, site)?, removal)?;
    if effect.pauses {
        sites::pause_site(t, site, true)?;
    }
    t.execute(
        "INSERT INTO removals (site, removal, reason, at_s) VALUES (?1, ?2, ?3, ?4)",
        params![site.0, removal.map(Removal::as_str), reason, now_s],
    )?;
    if effect.denies {
        deny(t, site)?;
    } else {
        allow(t, site)?;
    }
    Ok(())
}

fn deny(t: &Transaction<'_>, site: SiteId) -> rusqlite::Result<()> {
    let pages = pages_alone(t, site)?;
    let mut put = t.prepare("INSERT OR IGNORE INTO denied (page, site) VALUES (?1, ?2)")?;
    for page in pages {
        if let Some(url) = bags::url(t, PageId(page))? {
            bags::take_key(t, &url.key(), PageId(page))?;
        }
        put.execute(params![page, site.0])?;
    }
    Ok(())
}

/// Pages of a site that no site shows which has them as well.
fn pages_alone(t: &Transaction<'_>, site: SiteId) -> rusqlite::Result<Vec<i64>> {
    let shows = |other: &Site| other.id != site && rules::shows_pages(other.removed);
    let others = read::sites(t)?.into_iter().filter(shows).map(|other| other.id.0.to_string());
    t.prepare(&format!(
        "SELECT m.page FROM members m WHERE m.site = ?1 AND NOT EXISTS
            (SELECT 1 FROM members o WHERE o.site IN ({}) AND o.page = m.page)",
        others.collect::<Vec<_>>().join(",")
    ))?
    .query_map([site.0], |row| row.get(0))?
    .collect()
}

/// Restores what was denied: pages that have versions are found by their keys again.
fn allow(t: &Transaction<'_>, site: SiteId) -> rusqlite::Result<()> {
    let pages: Vec<i64> = t
        .prepare(
            "SELECT d.page FROM denied d WHERE d.site = ?1
             AND EXISTS (SELECT 1 FROM versions v WHERE v.page = d.page)",
        )?
        .query_map([site.0], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let mut entered = Entered::default();
    for page in pages {
        if let Some(url) = bags::url(t, PageId(page))? {
            entered.key(PageId(page), &url.key());
        }
    }
    entered.write(t)?;
    t.execute("DELETE FROM denied WHERE site = ?1", [site.0])?;
    Ok(())
}

pub(super) fn log(c: &Connection) -> rusqlite::Result<Vec<RemovalRow>> {
    c.prepare_cached("SELECT site, removal, reason, at_s FROM removals ORDER BY id DESC")?
        .query_map([], |row| {
            let word: Option<String> = row.get(1)?;
            Ok(RemovalRow {
                site: SiteId(row.get(0)?),
                removal: word.as_deref().and_then(Removal::from_word),
                reason: row.get(2)?,
                at_s: row.get(3)?,
            })
        })?
        .collect()
}

pub(super) fn denied_versions(
    c: &Connection,
    site: SiteId,
    after: Option<PageId>,
    limit: usize,
) -> rusqlite::Result<Vec<(PageId, VersionId)>> {
    // Whole pages: the versions of one are dropped together.
    let mut statement = c.prepare_cached(
        "SELECT v.page, v.version FROM versions v WHERE v.page IN
            (SELECT d.page FROM denied d WHERE d.site = ?1 AND d.page > ?2
             AND EXISTS (SELECT 1 FROM versions w WHERE w.page = d.page)
             ORDER BY d.page LIMIT ?3)
         ORDER BY v.page",
    )?;
    let after = after.map_or(-1, |page| page.0);
    let found = statement.query(params![site.0, after, read::count(limit)])?;
    rows::whole_pages(found, |row| Ok((PageId(row.get(0)?), VersionId(rows::unsigned(row, 1)?))))
}

pub(super) fn drop_versions(t: &Transaction<'_>, pages: &[PageId]) -> rusqlite::Result<u64> {
    let mut dropped = 0;
    for page in pages {
        changes::forget_page(t, *page)?;
        let count = t.prepare_cached("DELETE FROM versions WHERE page = ?1")?.execute([page.0])?;
        t.prepare_cached("DELETE FROM gone WHERE page = ?1")?.execute([page.0])?;
        structure::forget_blocks(t, *page)?;
        // Without a version there is nothing that a 304 or an equal body could refer to.
        t.prepare_cached(
            "UPDATE pages SET version = NULL, etag = NULL, last_modified = NULL, mark = NULL,
                bytes = 0 WHERE id = ?1",
        )?
        .execute([page.0])?;
        t.prepare_cached(
            "UPDATE sites SET versions = MAX(versions - ?2, 0)
             WHERE id = (SELECT site FROM pages WHERE id = ?1)",
        )?
        .execute(params![page.0, count as i64])?;
        dropped += count as u64;
    }
    Ok(dropped)
}
