//! Versions that are listed and cannot be read any more.

use std::collections::BTreeMap;

use rusqlite::{Transaction, params};

use super::{bags, changes, structure};
use crate::{PageId, VersionId};

pub(super) fn drop_lost(
    t: &Transaction<'_>,
    versions: &[VersionId],
    why: &str,
    at_s: i64,
) -> rusqlite::Result<u64> {
    t.execute_batch("CREATE TEMP TABLE lost (version INTEGER PRIMARY KEY)")?;
    let mut put = t.prepare("INSERT OR IGNORE INTO lost VALUES (?1)")?;
    versions.iter().try_for_each(|version| put.execute([version.0 as i64]).map(drop))?;
    let mut sums = BTreeMap::<i64, (i64, i64)>::new();
    let listed: Vec<(i64, i64, i64, i64, i64)> = t
        .prepare(
            "SELECT v.page, v.at_s, v.version, v.bytes, p.site
             FROM versions v JOIN lost l ON l.version = v.version JOIN pages p ON p.id = v.page",
        )?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)))?
        .collect::<rusqlite::Result<_>>()?;
    for (page, received_s, version, bytes, site) in &listed {
        t.prepare_cached("DELETE FROM versions WHERE page = ?1 AND at_s = ?2 AND version = ?3")?
            .execute([page, received_s, version])?;
        let (count, raw_bytes) = sums.entry(*site).or_default();
        *count += 1;
        *raw_bytes += bytes;
        changes::forget(t, *version)?;
        mend_page(t, PageId(*page), *version)?;
    }
    for (site, (count, raw_bytes)) in sums {
        t.execute(
            "UPDATE sites SET versions = MAX(versions - ?2, 0) WHERE id = ?1",
            [site, count],
        )?;
        t.execute(
            "INSERT INTO prunes (site, at_s, rule, versions, raw_bytes) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![site, at_s, why, count, raw_bytes],
        )?;
    }
    t.execute_batch("DROP TABLE lost")?;
    Ok(listed.len() as u64)
}

/// A page whose last version is lost is compared with nothing at its next visit.
fn mend_page(t: &Transaction<'_>, page: PageId, lost: i64) -> rusqlite::Result<()> {
    t.prepare_cached(
        "UPDATE pages SET etag = NULL, last_modified = NULL, mark = NULL, bytes = 0, version =
            (SELECT version FROM versions WHERE page = ?1 ORDER BY at_s DESC, version DESC LIMIT 1)
         WHERE id = ?1 AND version = ?2",
    )?
    .execute([page.0, lost])?;
    structure::forget_blocks(t, page)?;
    let has_version =
        t.prepare_cached("SELECT 1 FROM versions WHERE page = ?1 LIMIT 1")?.exists([page.0])?;
    if !has_version && let Some(url) = bags::url(t, page)? {
        bags::take_key(t, &url.key(), page)?;
    }
    Ok(())
}
