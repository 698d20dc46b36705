//! What the interface reads, and the small tables that make it quick: sums per day and per site are
//! kept with every commit, so that ten million visits need not be counted for a chart.

use std::collections::BTreeMap;

use nenrin_urls::{Server, UrlKey};
use rusqlite::{Connection, OptionalExtension, Transaction, params, types::Type};

use super::{open, read, rows};
use crate::{
    DayCounts, DayQuery, LogQuery, Outcome, PageId, PageRecord, PathQuery, ServerId, SiteId,
    SiteServer, SiteSums, TreeEntry, TroubleGroup, VersionRow, VisitCommit, VisitRow,
};

const DAY_S: i64 = 86_400;

/// The number under which the sums over all sites stand; sites are numbered from 1.
const ALL_SITES: u32 = 0;

const SCHEMA: &str = "
CREATE TABLE days (
    site INTEGER NOT NULL, day INTEGER NOT NULL, visits INTEGER NOT NULL, versions INTEGER NOT NULL,
    troubles INTEGER NOT NULL, raw_bytes INTEGER NOT NULL, received_bytes INTEGER NOT NULL,
    stored_bytes INTEGER NOT NULL, PRIMARY KEY (site, day)) WITHOUT ROWID;
CREATE TABLE site_sums (
    site INTEGER PRIMARY KEY, received_bytes INTEGER NOT NULL, stored_bytes INTEGER NOT NULL);
CREATE INDEX visits_by_site ON visits (site, outcome, id);
CREATE INDEX troubles_by_outcome ON visits (outcome, id) WHERE outcome >= 3;
CREATE INDEX pages_by_path ON pages (id >> 39, path);
INSERT INTO days SELECT 0, at_s / 86400, COUNT(*), SUM(outcome = 0), SUM(outcome >= 4),
    SUM(received_bytes), SUM(received_bytes), 0 FROM visits GROUP BY 2;
INSERT INTO days SELECT site, at_s / 86400, COUNT(*), SUM(outcome = 0), SUM(outcome >= 4),
    SUM(received_bytes), SUM(received_bytes), 0 FROM visits GROUP BY 1, 2;
INSERT INTO site_sums SELECT site, SUM(received_bytes), 0 FROM visits GROUP BY 1;
";

/// Adds the tables of this file to a state that does not have them yet.
pub(super) fn prepare(c: &Connection) -> rusqlite::Result<()> {
    open::add_tables(c, "days", SCHEMA)
}

/// Sums of one commit by site and day.
#[derive(Default)]
pub(super) struct DaySums(BTreeMap<(u32, i64), DayCounts>);

impl DaySums {
    pub(super) fn count_visit(&mut self, visit: &VisitCommit) {
        let raw_bytes = if visit.outcome.is_seen() { visit.update.bytes } else { 0 };
        let trouble = matches!(visit.outcome, Outcome::Failed | Outcome::Refused);
        self.add(
            visit.site,
            visit.at_s,
            DayCounts {
                day: 0,
                visits: 1,
                versions: u64::from(visit.version.is_some()),
                troubles: u64::from(trouble),
                raw_bytes,
                received_bytes: visit.received_bytes,
                stored_bytes: visit.stored_bytes,
            },
        );
    }

    pub(super) fn count_adopted(&mut self, site: SiteId, row: &VersionRow) {
        let counts = DayCounts { versions: 1, raw_bytes: row.bytes, ..DayCounts::default() };
        self.add(site, row.at_s, counts);
    }

    fn add(&mut self, site: SiteId, at_s: i64, counts: DayCounts) {
        for site in [ALL_SITES, site.0] {
            let sum = self.0.entry((site, at_s.div_euclid(DAY_S))).or_default();
            sum.visits += counts.visits;
            sum.versions += counts.versions;
            sum.troubles += counts.troubles;
            sum.raw_bytes += counts.raw_bytes;
            sum.received_bytes += counts.received_bytes;
            sum.stored_bytes += counts.stored_bytes;
        }
    }

    pub(super) fn write(&self, t: &Transaction<'_>) -> rusqlite::Result<()> {
        for (&(site, day), sum) in &self.0 {
            t.prepare_cached(
                "INSERT INTO days VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
                 ON CONFLICT DO UPDATE SET visits = visits + ?3, versions = versions + ?4,
                    troubles = troubles + ?5, raw_bytes = raw_bytes + ?6,
                    received_bytes = received_bytes + ?7, stored_bytes = stored_bytes + ?8",
            )?
            .execute(params![
                site,
                day,
                sum.visits as i64,
                sum.versions as i64,
                sum.troubles as i64,
                sum.raw_bytes as i64,
                sum.received_bytes as i64,
                sum.stored_bytes as i64,
            ])?;
            if site != ALL_SITES {
                t.prepare_cached(
                    "INSERT INTO site_sums VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET
                        received_bytes = received_bytes + ?2, stored_bytes = stored_bytes + ?3",
                )?
                .execute(params![
                    site,
                    sum.received_bytes as i64,
                    sum.stored_bytes as i64
                ])?;
            }
        }
        Ok(())
    }
}

pub(super) fn days(c: &Connection, query: DayQuery) -> rusqlite::Result<Vec<DayCounts>> {
    c.prepare_cached(
        "SELECT day, visits, versions, troubles, raw_bytes, received_bytes, stored_bytes
         FROM days WHERE site = ?1 AND day BETWEEN ?2 AND ?3 ORDER BY day",
    )?
    .query_map(
        params![query.site.map_or(ALL_SITES, |s| s.0), query.from_day, query.to_day],
        |row| {
            Ok(DayCounts {
                day: row.get(0)?,
                visits: rows::unsigned(row, 1)?,
                versions: rows::unsigned(row, 2)?,
                troubles: rows::unsigned(row, 3)?,
                raw_bytes: rows::unsigned(row, 4)?,
                received_bytes: rows::unsigned(row, 5)?,
                stored_bytes: rows::unsigned(row, 6)?,
            })
        },
    )?
    .collect()
}

pub(super) fn site_sums(c: &Connection, since_day: i64) -> rusqlite::Result<Vec<SiteSums>> {
    c.prepare_cached(
        "SELECT site_sums.site, site_sums.received_bytes, site_sums.stored_bytes,
            COALESCE(SUM(d.stored_bytes), 0), COALESCE(SUM(d.versions), 0),
            COALESCE(SUM(d.troubles), 0)
         FROM site_sums LEFT JOIN days d ON d.site = site_sums.site AND d.day >= ?1
         GROUP BY site_sums.site ORDER BY site_sums.site",
    )?
    .query_map([since_day], |row| {
        Ok(SiteSums {
            site: SiteId(row.get(0)?),
            received_bytes: rows::unsigned(row, 1)?,
            stored_bytes: rows::unsigned(row, 2)?,
            recent_stored_bytes: rows::unsigned(row, 3)?,
            recent_versions: rows::unsigned(row, 4)?,
            recent_troubles: rows::unsigned(row, 5)?,
        })
    })?
    .collect()
}

const VISIT: &str = "SELECT v.id, v.at_s, s.name || p.path, v.site, v.outcome, v.status, v.detail,
        v.elapsed_ms, v.received_bytes
     FROM visits v JOIN pages p ON p.id = v.page JOIN servers s ON s.id = p.id >> 39";

pub(super) fn log(c: &Connection, query: LogQuery) -> rusqlite::Result<Vec<VisitRow>> {
    let before = query.before.unwrap_or(i64::MAX);
    let limit = read::count(query.limit);
    match (query.site, query.outcome) {
        (None, None) => c
            .prepare_cached(&format!("{VISIT} WHERE v.id < ?1 ORDER BY v.id DESC LIMIT ?2"))?
            .query_map(params![before, limit], rows::visit)?
            .collect(),
        // Troubles have an index; the other outcomes are common enough to be met on the way back.
        (None, Some(outcome)) => {
            let number = rows::outcome_number(outcome);
            let wanted = if number >= 3 {
                format!("v.outcome = {number} AND v.outcome >= 3")
            } else {
                format!("+v.outcome = {number}")
            };
            c.prepare_cached(&format!(
                "{VISIT} WHERE {wanted} AND v.id < ?1 ORDER BY v.id DESC LIMIT ?2"
            ))?
            .query_map(params![before, limit], rows::visit)?
            .collect()
        }
        (Some(site), Some(outcome)) => site_log(c, site, outcome, before, limit),
        (Some(site), None) => {
            let mut merged = Vec::new();
            for outcome in Outcome::ALL {
                merged.extend(site_log(c, site, outcome, before, limit)?);
            }
            merged.sort_by_key(|visit| std::cmp::Reverse(visit.id));
            merged.truncate(query.limit);
            Ok(merged)
        }
    }
}

fn site_log(
    c: &Connection,
    site: SiteId,
    outcome: Outcome,
    before: i64,
    limit: i64,
) -> rusqlite::Result<Vec<VisitRow>> {
    c.prepare_cached(&format!(
        "{VISIT} WHERE v.site = ?1 AND v.outcome = ?2 AND v.id < ?3 ORDER BY v.id DESC LIMIT ?4"
    ))?
    .query_map(params![site.0, rows::outcome_number(outcome), before, limit], rows::visit)?
    .collect()
}

pub(super) fn troubles(
    c: &Connection,
    site: SiteId,
    looked_at: usize,
) -> rusqlite::Result<Vec<TroubleGroup>> {
    type Cause = (u8, u16, Option<String>);
    let mut groups: BTreeMap<Cause, (u64, i64, i64)> = BTreeMap::new();
    for outcome in [Outcome::Gone, Outcome::Refused, Outcome::Failed] {
        let number = rows::outcome_number(outcome);
        let mut query = c.prepare_cached(
            "SELECT status, detail, at_s, page FROM visits
             WHERE site = ?1 AND outcome = ?2 ORDER BY id DESC LIMIT ?3",
        )?;
        let mut found = query.query(params![site.0, number, read::count(looked_at)])?;
        while let Some(row) = found.next()? {
            let cause = (number, row.get(0)?, row.get(1)?);
            let first = (0, row.get(2)?, row.get(3)?);
            groups.entry(cause).or_insert(first).0 += 1;
        }
    }
    let mut groups = groups
        .into_iter()
        .map(|((number, status, detail), (count, last_s, page))| {
            Ok(TroubleGroup {
                outcome: Outcome::ALL[usize::from(number)],
                status,
                detail,
                count,
                last_s,
                last_url: read::page_by_id(c, PageId(page))?.url,
            })
        })
        .collect::<rusqlite::Result<Vec<_>>>()?;
    groups.sort_by_key(|group| std::cmp::Reverse((group.count, group.last_s)));
    Ok(groups)
}

pub(super) fn newest_versions(
    c: &Connection,
    key: &UrlKey,
    before: (i64, u64),
    limit: usize,
) -> rusqlite::Result<Vec<(nenrin_urls::CanonicalUrl, VersionRow)>> {
    let pages: Vec<i64> = c
        .prepare_cached("SELECT page FROM keys WHERE key = ?1")?
        .query_map([key.as_str()], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let mut merged = Vec::new();
    for page in pages {
        // One page at a time, so that each is read backwards in its own order without sorting.
        let mut query = c.prepare_cached(
            "SELECT s.name || p.path, v.at_s, v.version, v.status, mimes.name, v.bytes, v.permille
             FROM versions v JOIN pages p ON p.id = v.page JOIN servers s ON s.id = p.id >> 39
             JOIN mimes ON mimes.id = v.mime
             WHERE v.page = ?1 AND (v.at_s, v.version) < (?2, ?3)
             ORDER BY v.at_s DESC, v.version DESC LIMIT ?4",
        )?;
        let version = i64::try_from(before.1).unwrap_or(i64::MAX);
        let found =
            query.query_map(params![page, before.0, version, read::count(limit)], rows::version)?;
        for version in found {
            merged.push(version?);
        }
    }
    merged.sort_by_key(|(_, version)| std::cmp::Reverse((version.at_s, version.version)));
    merged.truncate(limit);
    Ok(merged)
}

pub(super) fn version_days(
    c: &Connection,
    key: &UrlKey,
    from_day: i64,
    to_day: i64,
) -> rusqlite::Result<Vec<(i64, u64)>> {
    c.prepare_cached(
        "SELECT v.at_s / 86400, COUNT(*) FROM keys k JOIN versions v ON v.page = k.page
         WHERE k.key = ?1 AND v.at_s >= ?2 AND v.at_s < ?3 GROUP BY 1 ORDER BY 1",
    )?
    .query_map(params![key.as_str(), from_day * DAY_S, (to_day + 1) * DAY_S], |row| {
        Ok((row.get(0)?, rows::unsigned(row, 1)?))
    })?
    .collect()
}

pub(super) fn site_servers(
    c: &Connection,
    site: SiteId,
    limit: usize,
) -> rusqlite::Result<Vec<SiteServer>> {
    let mut next = c.prepare_cached(
        "SELECT page >> 39 FROM members WHERE site = ?1 AND page >= ?2 ORDER BY page LIMIT 1",
    )?;
    let mut name = c.prepare_cached("SELECT name FROM servers WHERE id = ?1")?;
    let mut found = Vec::new();
    let mut from_page = 0_i64;
    while found.len() < limit {
        let server: Option<u32> =
            next.query_row(params![site.0, from_page], |row| row.get(0)).optional()?;
        let Some(id) = server else { break };
        let server = Server::try_from(name.query_row([id], |row| row.get::<_, String>(0))?)
            .map_err(|e| rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(e)))?;
        found.push(SiteServer { id: ServerId(id), server });
        from_page = (i64::from(id) + 1) << PageId::HASH_BITS;
    }
    Ok(found)
}

pub(super) fn pages_by_path(
    c: &Connection,
    query: &PathQuery,
) -> rusqlite::Result<Vec<PageRecord>> {
    // One lower bound, the higher of two: given both, the engine would begin its search at the
    // prefix every time and read through all that was listed already.
    let prefix = query.prefix.as_str();
    let (bound, from) = match query.after.as_deref().filter(|after| *after >= prefix) {
        Some(after) => (">", after),
        None => (">=", prefix),
    };
    c.prepare_cached(&format!(
        "SELECT {} FROM pages p {}
         WHERE p.id >> 39 = ?1 AND p.path {bound} ?2 AND p.path < ?3
            AND EXISTS (SELECT 1 FROM members m WHERE m.site = ?4 AND m.page = p.id)
         ORDER BY p.path LIMIT ?5",
        rows::PAGE,
        rows::PAGE_SERVER
    ))?
    .query_map(
        params![query.server.0, from, past(prefix), query.site.0, read::count(query.limit)],
        rows::page,
    )?
    .collect()
}

pub(super) fn directory(c: &Connection, query: &PathQuery) -> rusqlite::Result<Vec<TreeEntry>> {
    let mut entries: Vec<TreeEntry> = Vec::new();
    let mut at = query.clone();
    at.limit = 1;
    while entries.len() < query.limit {
        let Some(page) = pages_by_path(c, &at)?.pop() else { break };
        let path = page.url.path_and_query().to_owned();
        let below = path.get(query.prefix.len()..).unwrap_or_default();
        let plain = below.find('?').unwrap_or(below.len());
        match below[..plain].find('/') {
            // A directory: one entry, and the scan goes on behind all that lies in it.
            Some(slash) => {
                let name = path[..=query.prefix.len() + slash].to_owned();
                at.after = Some(past(&name));
                entries.push(TreeEntry { page: (name == path).then_some(page), path: name });
            }
            None => {
                at.after = Some(path.clone());
                entries.push(TreeEntry { path, page: Some(page) });
            }
        }
    }
    Ok(entries)
}

/// The least text that is greater than every URL path with this prefix: paths are ASCII.
fn past(prefix: &str) -> String {
    format!("{prefix}\u{7f}")
}
