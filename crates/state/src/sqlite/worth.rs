//! Sums of what pages are worth and how often they change. A page's part in them is taken out and
//! put in again whenever its row changes, so they never have to be counted.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::{open, rows};
use crate::{Estimate, OrderCurve, PageId, SiteId, SiteWorth, WorthGroup};

/// `turn` tells when a page got its first version among those of its site (times 256) and of all;
/// see [`group_of`].
const SCHEMA: &str = "
ALTER TABLE pages ADD COLUMN rate INTEGER;
ALTER TABLE pages ADD COLUMN sure INTEGER;
ALTER TABLE pages ADD COLUMN turn INTEGER NOT NULL DEFAULT 0;
CREATE TABLE site_worth (
    site INTEGER PRIMARY KEY, turns INTEGER NOT NULL, estimated INTEGER NOT NULL,
    rate INTEGER NOT NULL, sure INTEGER NOT NULL, weighed INTEGER NOT NULL,
    importance INTEGER NOT NULL, significant INTEGER NOT NULL);
CREATE TABLE worth_groups (
    site INTEGER NOT NULL, best INTEGER NOT NULL, grp INTEGER NOT NULL, pages INTEGER NOT NULL,
    importance INTEGER NOT NULL, PRIMARY KEY (site, best, grp)) WITHOUT ROWID;
INSERT INTO site_worth
    SELECT site, 0, 0, 0, 0, SUM(importance > 0), SUM(importance), SUM(significant)
    FROM pages GROUP BY site;
";

/// The number under which all sites stand together; sites are numbered from 1.
const ALL_SITES: u32 = 0;
/// Groups are numbered from 1 to this.
const GROUP_MAX: u32 = 255;

/// Adds what this file needs to a state that does not have it yet.
pub(super) fn prepare(c: &Connection) -> rusqlite::Result<()> {
    open::add_tables(c, "site_worth", SCHEMA)
}

/// The group of a number from 1 on: eight groups to a doubling.
fn group_of(number: u64) -> u32 {
    let eighths = (number.max(1) as f64).log2() * 8.0;
    (eighths as u32 + 1).min(GROUP_MAX)
}

/// A page's part in the sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) site: SiteId,
    pub(super) importance_percent: u32,
    pub(super) estimate: Option<Estimate>,
    pub(super) turn: u32,
}

impl Part {
    /// The columns that [`Part::read`] reads, in its order.
    pub(super) const COLUMNS: &'static str = "site, importance, rate, sure, turn";

    /// From a row, after `at` other columns.
    pub(super) fn read(row: &Row<'_>, at: usize) -> rusqlite::Result<Self> {
        Ok(Self {
            site: SiteId(row.get(at)?),
            importance_percent: row.get(at + 1)?,
            estimate: rows::estimate(row, at + 2)?,
            turn: row.get(at + 4)?,
        })
    }

    /// Its place in the curves of its site and of all, if it counts there.
    fn groups(&self) -> [(u32, bool, u32); 4] {
        let best = GROUP_MAX + 1 - group_of(u64::from(self.importance_percent));
        let site = self.site.0;
        [
            (site, false, self.turn >> 8),
            (site, true, best),
            (ALL_SITES, false, self.turn & 0xff),
            (ALL_SITES, true, best),
        ]
    }
}

/// What changes in the sums by one transaction.
#[derive(Default)]
pub(super) struct WorthSums {
    sites: BTreeMap<u32, SiteDelta>,
    groups: BTreeMap<(u32, bool, u32), (i64, i64)>,
    /// Pages with a turn so far, as far as they were asked for.
    turns: BTreeMap<u32, u64>,
}

#[derive(Default)]
struct SiteDelta {
    estimated: i64,
    rate: i64,
    sure: i64,
    weighed: i64,
    importance: i64,
    significant: i64,
}

impl WorthSums {
    pub(super) fn replace(&mut self, before: &Part, after: &Part) {
        if before != after {
            self.add(before, -1);
            self.add(after, 1);
        }
    }

    fn add(&mut self, part: &Part, times: i64) {
        let site = self.sites.entry(part.site.0).or_default();
        if let Some(estimate) = part.estimate {
            site.estimated += times;
            site.rate += times * i64::from(estimate.rate_micros);
            site.sure += times * i64::from(estimate.confidence_percent);
        }
        if part.importance_percent == 0 {
            return;
        }
        let importance = times * i64::from(part.importance_percent);
        site.weighed += times;
        site.importance += importance;
        if part.turn > 0 {
            for group in part.groups() {
                let sum = self.groups.entry(group).or_default();
                *sum = (sum.0 + times, sum.1 + importance);
            }
        }
    }

    pub(super) fn count_significant(&mut self, site: SiteId) {
        self.sites.entry(site.0).or_default().significant += 1;
    }

    /// The turn of a page that gets its first version now.
    pub(super) fn next_turn(&mut self, c: &Connection, site: SiteId) -> rusqlite::Result<u32> {
        let own = group_of(self.take_turn(c, site.0)?);
        let of_all = group_of(self.take_turn(c, ALL_SITES)?);
        Ok(own << 8 | of_all)
    }

    fn take_turn(&mut self, c: &Connection, site: u32) -> rusqlite::Result<u64> {
        let before = match self.turns.get(&site) {
            Some(turns) => *turns,
            None => c
                .prepare_cached("SELECT turns FROM site_worth WHERE site = ?1")?
                .query_row([site], |row| rows::unsigned(row, 0))
                .optional()?
                .unwrap_or(0),
        };
        self.turns.insert(site, before + 1);
        self.sites.entry(site).or_default();
        Ok(before + 1)
    }

    pub(super) fn write(&self, t: &Transaction<'_>) -> rusqlite::Result<()> {
        for (site, delta) in &self.sites {
            t.prepare_cached(
                "INSERT INTO site_worth VALUES (?1, COALESCE(?2, 0), ?3, ?4, ?5, ?6, ?7, ?8)
                 ON CONFLICT DO UPDATE SET turns = COALESCE(?2, turns),
                    estimated = estimated + ?3, rate = rate + ?4, sure = sure + ?5,
                    weighed = weighed + ?6, importance = importance + ?7,
                    significant = significant + ?8",
            )?
            .execute(params![
                site,
                self.turns.get(site).map(|turns| *turns as i64),
                delta.estimated,
                delta.rate,
                delta.sure,
                delta.weighed,
                delta.importance,
                delta.significant,
            ])?;
        }
        for (&(site, best, group), &(pages, importance)) in &self.groups {
            if (pages, importance) == (0, 0) {
                continue;
            }
            t.prepare_cached(
                "INSERT INTO worth_groups VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO UPDATE SET
                    pages = pages + ?4, importance = importance + ?5",
            )?
            .execute(params![site, best, group, pages, importance])?;
        }
        Ok(())
    }
}

/// The crawl order thinks otherwise of some pages now, by their places in the order of discovery.
pub(super) fn weigh(
    t: &Transaction<'_>,
    sums: &mut WorthSums,
    pages: &[(u32, u32)],
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
    c.prepare_cached(&format!("SELECT {} FROM pages WHERE id = ?1", Part::COLUMNS))?
        .query_row([page.0], |row| Part::read(row, 0))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_grow_by_an_eighth_of_a_doubling_and_end() {
        assert_eq!([0, 1, 2, 3, 4, 1 << 20].map(group_of), [1, 1, 9, 13, 17, 161]);
        assert_eq!(group_of(u64::MAX), GROUP_MAX);
        assert!((1..10_000).map(group_of).is_sorted());
    }
}
