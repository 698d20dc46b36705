//! Versions in the index.

use rusqlite::{Transaction, params};

use super::{bags, batch::Batch};
use crate::{PageId, VersionRow};

/// Enters a version of a page; returns whether it was not there.
pub(super) fn insert(b: &mut Batch<'_>, page: PageId, row: &VersionRow) -> rusqlite::Result<bool> {
    let mime = b.mime(&row.mime)?;
    let is_first =
        !b.t.prepare_cached("SELECT 1 FROM versions WHERE page = ?1 LIMIT 1")?.exists([page.0])?;
    let inserted = enter(b.t, page, row, mime)?;
    // A denied page stays denied, also when it is visited again.
    let is_denied = || b.t.prepare_cached("SELECT 1 FROM denied WHERE page = ?1")?.exists([page.0]);
    if is_first
        && !is_denied()?
        && let Some(url) = bags::url(b.t, page)?
    {
        b.entered.key(page, &url.key());
    }
    Ok(inserted > 0)
}

pub(super) fn enter(
    t: &Transaction<'_>,
    page: PageId,
    row: &VersionRow,
    mime: i64,
) -> rusqlite::Result<usize> {
    t.prepare_cached("INSERT OR IGNORE INTO versions VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?.execute(
        params![
            page.0,
            row.at_s,
            row.version.0 as i64,
            row.status,
            mime,
            row.bytes as i64,
            row.changed_permille,
        ],
    )
}
