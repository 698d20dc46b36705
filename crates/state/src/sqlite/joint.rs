//! Sites over several partitions: how many rounds each partition has ended, and what its pages ask
//! for on a day.

use rusqlite::{Connection, Transaction, params};

use super::{batch::Batch, rows, settings::Settings};
use crate::{Division, Mail, Need, PartitionId, RoundEnd, RoundId, SiteId};

/// Days for which needs are kept.
const DAYS_KEPT: i64 = 3;
/// In place of a site: all of them.
const ARCHIVE: SiteId = SiteId(0);

/// Rounds of a site that have ended here, besides one.
fn ended(c: &Connection, site: SiteId, besides: RoundId) -> rusqlite::Result<u64> {
    c.prepare_cached(
        "SELECT COUNT(*) FROM rounds WHERE site = ?1 AND id <> ?2 AND ended_s IS NOT NULL",
    )?
    .query_row(params![site.0, besides], |row| rows::unsigned(row, 0))
}

/// A round ends: every other partition gets mail about it.
pub(super) fn round_ends(b: &mut Batch<'_>, end: &RoundEnd) -> rusqlite::Result<()> {
    if b.is_divided() {
        let ended = ended(b.t, end.site, end.round)? + 1;
        b.send_to_all(&Mail::RoundEnd { site: end.site, ended });
    }
    Ok(())
}

/// Another partition has ended rounds of a site.
pub(super) fn round_ended(
    t: &Transaction<'_>,
    from: PartitionId,
    site: SiteId,
    ended: u64,
) -> rusqlite::Result<()> {
    t.prepare_cached(
        "INSERT INTO rounds_elsewhere VALUES (?1, ?2, ?3)
         ON CONFLICT (site, partition) DO UPDATE SET ended = MAX(ended, excluded.ended)",
    )?
    .execute(params![site.0, from.0, ended as i64])?;
    Ok(())
}

pub(super) fn may_begin_round(
    c: &Connection,
    settings: &Settings,
    site: SiteId,
) -> rusqlite::Result<bool> {
    let others = i64::from(settings.partitioning.count.max(1)) - 1;
    if others == 0 {
        return Ok(true);
    }
    let open = "SELECT 1 FROM rounds WHERE site = ?1 AND ended_s IS NULL";
    let ended = ended(c, site, RoundId(0))?;
    if ended == 0 || c.prepare_cached(open)?.exists([site.0])? {
        return Ok(true);
    }
    let level: i64 = c
        .prepare_cached("SELECT COUNT(*) FROM rounds_elsewhere WHERE site = ?1 AND ended >= ?2")?
        .query_row(params![site.0, ended as i64], |row| row.get(0))?;
    Ok(level == others)
}

/// What the pages of a site, or of all, ask for on a day, here or in another partition. What was said
/// first holds, so that all partitions divide alike; returns whether this was it.
pub(super) fn need(
    t: &Transaction<'_>,
    from: PartitionId,
    site: Option<SiteId>,
    day: i64,
    need: Need,
) -> rusqlite::Result<bool> {
    let site = site.unwrap_or(ARCHIVE);
    t.prepare_cached("DELETE FROM needs WHERE site = ?1 AND day < ?2")?
        .execute(params![site.0, day - DAYS_KEPT])?;
    let added = t
        .prepare_cached("INSERT OR IGNORE INTO needs VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![site.0, day, from.0, need.milli_visits as i64, need.pages as i64])?;
    Ok(added > 0)
}

pub(super) fn division(
    c: &Connection,
    settings: &Settings,
    site: Option<SiteId>,
    day: i64,
) -> rusqlite::Result<Option<Division>> {
    let site = site.unwrap_or(ARCHIVE);
    let Settings { partitioning, own, .. } = *settings;
    if partitioning.count <= 1 {
        return Ok(None);
    }
    let needs: rusqlite::Result<Vec<Need>> = c
        .prepare_cached(
            "SELECT milli_visits, pages FROM needs WHERE site = ?1 AND day = ?2 ORDER BY partition",
        )?
        .query_map(params![site.0, day], |row| {
            let (milli_visits, pages) = (rows::unsigned(row, 0)?, rows::unsigned(row, 1)?);
            Ok(Need { milli_visits, pages })
        })?
        .collect();
    let all = partitioning.count as usize;
    let equal = || vec![Need { milli_visits: 1, pages: 1 }; all];
    let needs = Some(needs?).filter(|needs| needs.len() == all).unwrap_or_else(equal);
    Ok(Some(Division { day, needs, own }))
}
