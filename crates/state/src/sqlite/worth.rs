//! What pages are worth: their parts in the sums, and the sums.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::rows;
use crate::{
    Nth, OrderCurve, PageId, PageRecord, SiteId, SiteWorth, WorthGroup,
    rules::{ALL_SITES, Part, WorthSums},
};

/// The columns that [`read_part`] reads, in its order.
pub(super) const PART: &str = "site, importance, rate, sure, turn";

/// A page's part from a row, after `at` other columns.
pub(super) fn read_part(row: &Row<'_>, at: usize) -> rusqlite::Result<Part> {
    Ok(Part {
        site: SiteId(row.get(at)?),
        importance_percent: row.get(at + 1)?,
        estimate: rows::estimate(row, at + 2)?,
        turn: row.get(at + 4)?,
    })
}

/// A page's part from its record and its turn.
pub(super) fn part_of(page: &PageRecord, turn: u32) -> Part {
    let PageRecord { site, importance_percent, estimate, .. } = *page;
    Part { site, importance_percent, estimate, turn }
}

/// The turn of a page that gets its first version now.
pub(super) fn next_turn(
    c: &Connection,
    sums: &mut WorthSums,
    site: SiteId,
) -> rusqlite::Result<u32> {
    let (of_site, of_all) = (turns(c, sums, site.0)?, turns(c, sums, ALL_SITES)?);
    Ok(sums.next_turn(site, of_site, of_all))
}

/// How many pages have a turn.
fn turns(c: &Connection, sums: &WorthSums, site: u32) -> rusqlite::Result<u64> {
    if let Some(turns) = sums.turns(site) {
        return Ok(turns);
    }
    c.prepare_cached("SELECT turns FROM site_worth WHERE site = ?1")?
        .query_row([site], |row| rows::unsigned(row, 0))
        .optional()
        .map(Option::unwrap_or_default)
}

/// The importance of some pages changed, by their discovery numbers.
pub(super) fn weigh(
    t: &Transaction<'_>,
    sums: &mut WorthSums,
    pages: &[(Nth, u32)],
) -> rusqlite::Result<()> {
    for &(nth, importance_percent) in pages {
        let page = t
            .prepare_cached("SELECT page FROM found WHERE nth = ?1")?
            .query_row([nth], |row| Ok(PageId(row.get(0)?)))
            .optional()?;
        let Some(page) = page else { continue };
        let before = part(t, page)?;
        sums.replace(&before, &Part { importance_percent, ..before });
        t.prepare_cached("UPDATE pages SET importance = ?2 WHERE id = ?1")?
            .execute(params![page.0, importance_percent])?;
    }
    Ok(())
}

/// A page's part as it is.
pub(super) fn part(c: &Connection, page: PageId) -> rusqlite::Result<Part> {
    c.prepare_cached(&format!("SELECT {PART} FROM pages WHERE id = ?1"))?
        .query_row([page.0], |row| read_part(row, 0))
}

pub(super) fn site_worth(c: &Connection) -> rusqlite::Result<Vec<SiteWorth>> {
    c.prepare_cached(
        "SELECT site, estimated, rate, sure, weighed, importance, significant
         FROM site_worth WHERE site > 0 ORDER BY site",
    )?
    .query_map([], |row| {
        Ok(SiteWorth {
            site: SiteId(row.get(0)?),
            estimated_pages: rows::unsigned(row, 1)?,
            rate_micros: rows::unsigned(row, 2)?,
            confidence_percent: rows::unsigned(row, 3)?,
            weighed_pages: rows::unsigned(row, 4)?,
            importance_percent: rows::unsigned(row, 5)?,
            significant_versions: rows::unsigned(row, 6)?,
        })
    })?
    .collect()
}

pub(super) fn order_curve(c: &Connection, site: Option<SiteId>) -> rusqlite::Result<OrderCurve> {
    let groups = |best: bool| -> rusqlite::Result<Vec<WorthGroup>> {
        c.prepare_cached(
            "SELECT pages, importance FROM worth_groups
             WHERE site = ?1 AND best = ?2 AND pages > 0 ORDER BY grp",
        )?
        .query_map(params![site.map_or(ALL_SITES, |site| site.0), best], |row| {
            Ok(WorthGroup {
                pages: rows::unsigned(row, 0)?,
                importance_percent: rows::unsigned(row, 1)?,
            })
        })?
        .collect()
    };
    Ok(OrderCurve { collected: groups(false)?, best: groups(true)? })
}

/// Counts sites whose sums are not those of their pages.
pub(super) const LAW: &str = "SELECT COUNT(*) FROM site_worth w LEFT JOIN
    (SELECT site, COUNT(rate) AS estimated, SUM(COALESCE(rate, 0)) AS rate,
        SUM(importance > 0) AS weighed, SUM(importance) AS importance
     FROM pages GROUP BY site) p ON p.site = w.site
    WHERE w.site > 0 AND (w.estimated, w.rate, w.weighed, w.importance) IS NOT
        (COALESCE(p.estimated, 0), COALESCE(p.rate, 0), COALESCE(p.weighed, 0),
         COALESCE(p.importance, 0))";
