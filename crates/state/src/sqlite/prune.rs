//! Thinning out: versions leave the index and wait in a list of their own until the store has
//! forgotten them, so that a crash in between loses neither.

use rusqlite::{Connection, Transaction, params};

use super::{changes, read, rows};
use crate::{KeptVersion, PageId, PruneRow, SiteId, VersionId, rules};

pub(super) fn site_versions(
    c: &Connection,
    site: SiteId,
    after: Option<PageId>,
    pages: usize,
) -> rusqlite::Result<Vec<KeptVersion>> {
    // Whole pages: a rule looks at all versions of one.
    let mut statement = c.prepare_cached(
        "SELECT v.page, v.at_s, v.version, v.bytes, v.version = COALESCE(p.version, -1)
         FROM versions v JOIN pages p ON p.id = v.page WHERE v.page IN
            (SELECT m.page FROM members m JOIN pages o ON o.id = m.page
             WHERE m.site = ?1 AND o.site = ?1 AND m.page > ?2
             AND EXISTS (SELECT 1 FROM versions w WHERE w.page = m.page)
             ORDER BY m.page LIMIT ?3)
         ORDER BY v.page, v.at_s, v.version",
    )?;
    let after = after.map_or(-1, |page| page.0);
    let found = statement.query(params![site.0, after, read::count(pages)])?;
    rows::whole_pages(found, |row| {
        Ok(KeptVersion {
            page: PageId(row.get(0)?),
            at_s: row.get(1)?,
            version: VersionId(rows::unsigned(row, 2)?),
            bytes: rows::unsigned(row, 3)?,
            is_current: row.get(4)?,
        })
    })
}

pub(super) fn prune(
    t: &Transaction<'_>,
    row: &PruneRow,
    versions: &[KeptVersion],
) -> rusqlite::Result<u64> {
    let mut gone = PruneRow { versions: 0, raw_bytes: 0, ..row.clone() };
    for version in versions {
        if !rules::may_go(read::page_before(t, version.page)?.version, version.version) {
            continue;
        }
        let number = version.version.0 as i64;
        let count = t
            .prepare_cached("DELETE FROM versions WHERE page = ?1 AND at_s = ?2 AND version = ?3")?
            .execute(params![version.page.0, version.at_s, number])?;
        if count > 0 {
            t.prepare_cached("INSERT OR IGNORE INTO pruning VALUES (?1)")?.execute([number])?;
            changes::forget(t, number)?;
            gone.versions += 1;
            gone.raw_bytes += version.bytes;
        }
    }
    if gone.versions == 0 {
        return Ok(0);
    }
    t.execute(
        "UPDATE sites SET versions = MAX(versions - ?2, 0) WHERE id = ?1",
        params![row.site.0, gone.versions as i64],
    )?;
    t.execute(
        "INSERT INTO prunes (site, at_s, rule, versions, raw_bytes) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![row.site.0, row.at_s, row.rule, gone.versions as i64, gone.raw_bytes as i64],
    )?;
    Ok(gone.versions)
}

pub(super) fn pruning(c: &Connection, limit: usize) -> rusqlite::Result<Vec<VersionId>> {
    c.prepare_cached("SELECT version FROM pruning ORDER BY version LIMIT ?1")?
        .query_map([read::count(limit)], |row| rows::unsigned(row, 0).map(VersionId))?
        .collect()
}

/// Whether a version was dropped and only waits for the store to forget it.
pub(super) fn is_pruning(c: &Connection, version: VersionId) -> rusqlite::Result<bool> {
    c.prepare_cached("SELECT 1 FROM pruning WHERE version = ?1")?.exists([version.0 as i64])
}

pub(super) fn pruned(t: &Transaction<'_>, versions: &[VersionId]) -> rusqlite::Result<()> {
    let mut done = t.prepare_cached("DELETE FROM pruning WHERE version = ?1")?;
    versions.iter().try_for_each(|version| done.execute([version.0 as i64]).map(drop))
}

pub(super) fn log(c: &Connection) -> rusqlite::Result<Vec<PruneRow>> {
    c.prepare_cached(
        "SELECT site, at_s, rule, versions, raw_bytes FROM prunes ORDER BY id DESC LIMIT 10000",
    )?
    .query_map([], |row| {
        Ok(PruneRow {
            site: SiteId(row.get(0)?),
            at_s: row.get(1)?,
            rule: row.get(2)?,
            versions: rows::unsigned(row, 3)?,
            raw_bytes: rows::unsigned(row, 4)?,
        })
    })?
    .collect()
}
