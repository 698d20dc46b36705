//! What the interface reads. Sums per day and per site are kept with every commit, so that ten
//! million visits need not be counted for a chart.

use std::collections::BTreeMap;

use nenrin_urls::{Server, UrlKey};
use rusqlite::{Connection, OptionalExtension, params, types::Type};

use super::{
    bags::{self, List, Walk},
    read, rows,
};
use crate::{
    BodyKind, DayCounts, DayQuery, KindSums, PageId, PageRecord, PathQuery, ServerId, SiteId,
    SiteServer, SiteSums, TreeEntry, VersionId, VersionRow, rules::ALL_SITES,
};

const DAY_S: i64 = 86_400;

pub(super) fn visits_on(c: &Connection, site: SiteId, day: i64) -> rusqlite::Result<u64> {
    c.prepare_cached("SELECT visits FROM days WHERE site = ?1 AND day = ?2")?
        .query_row(params![site.0, day], |row| rows::unsigned(row, 0))
        .optional()
        .map(Option::unwrap_or_default)
}

pub(super) fn days(c: &Connection, query: DayQuery) -> rusqlite::Result<Vec<DayCounts>> {
    c.prepare_cached(
        "SELECT day, visits, versions, problems, raw_bytes, received_bytes, stored_bytes
         FROM days WHERE site = ?1 AND day BETWEEN ?2 AND ?3 ORDER BY day",
    )?
    .query_map(
        params![query.site.map_or(ALL_SITES, |s| s.0), query.from_day, query.to_day],
        |row| {
            Ok(DayCounts {
                day: row.get(0)?,
                visits: rows::unsigned(row, 1)?,
                versions: rows::unsigned(row, 2)?,
                problems: rows::unsigned(row, 3)?,
                raw_bytes: rows::unsigned(row, 4)?,
                received_bytes: rows::unsigned(row, 5)?,
                stored_bytes: rows::unsigned(row, 6)?,
            })
        },
    )?
    .collect()
}

pub(super) fn kind_sums(c: &Connection, site: Option<SiteId>) -> rusqlite::Result<Vec<KindSums>> {
    let mut query = c.prepare_cached(
        "SELECT kind, versions, received_bytes, stored_bytes FROM kind_sums WHERE site = ?1
         ORDER BY kind",
    )?;
    let mut found = query.query([site.map_or(ALL_SITES, |site| site.0)])?;
    let mut sums = Vec::new();
    while let Some(row) = found.next()? {
        let kind = BodyKind::ALL.get(usize::from(row.get::<_, u8>(0)?)).copied();
        sums.push(KindSums {
            kind: kind.unwrap_or(BodyKind::Other),
            versions: rows::unsigned(row, 1)?,
            received_bytes: rows::unsigned(row, 2)?,
            stored_bytes: rows::unsigned(row, 3)?,
        });
    }
    Ok(sums)
}

pub(super) fn site_sums(c: &Connection, since_day: i64) -> rusqlite::Result<Vec<SiteSums>> {
    c.prepare_cached(
        "SELECT site_sums.site, site_sums.received_bytes, site_sums.stored_bytes,
            COALESCE(SUM(d.stored_bytes), 0), COALESCE(SUM(d.versions), 0),
            COALESCE(SUM(d.problems), 0)
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
            recent_problems: rows::unsigned(row, 5)?,
        })
    })?
    .collect()
}

pub(super) fn newest_versions(
    c: &Connection,
    key: &UrlKey,
    before: (i64, VersionId),
    limit: usize,
) -> rusqlite::Result<Vec<(nenrin_urls::CanonicalUrl, VersionRow)>> {
    let mut merged = Vec::new();
    for page in bags::pages_of_key(c, key)? {
        // One page at a time, so that each is read backwards in its own order without sorting.
        let mut query = c.prepare_cached(
            "SELECT s.name || p.path, v.at_s, v.version, v.status, mimes.name, v.bytes, v.permille
             FROM versions v JOIN pages p ON p.id = v.page JOIN servers s ON s.id = p.id >> 39
             JOIN mimes ON mimes.id = v.mime
             WHERE v.page = ?1 AND (v.at_s, v.version) < (?2, ?3)
             ORDER BY v.at_s DESC, v.version DESC LIMIT ?4",
        )?;
        let version = i64::try_from(before.1.0).unwrap_or(i64::MAX);
        let found = query
            .query_map(params![page.0, before.0, version, read::count(limit)], rows::version)?;
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
    let mut days = BTreeMap::new();
    let mut query = c.prepare_cached(
        "SELECT at_s / 86400, COUNT(*) FROM versions
         WHERE page = ?1 AND at_s >= ?2 AND at_s < ?3 GROUP BY 1",
    )?;
    for page in bags::pages_of_key(c, key)? {
        let bounds = params![page.0, from_day * DAY_S, (to_day + 1) * DAY_S];
        let mut found = query.query(bounds)?;
        while let Some(row) = found.next()? {
            *days.entry(row.get(0)?).or_default() += rows::unsigned(row, 1)?;
        }
    }
    Ok(days.into_iter().collect())
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
    let mut found = Vec::new();
    let mut paths = Paths::new(c, query)?;
    while found.len() < query.limit
        && let Some((_, page)) = paths.step()?
    {
        found.push(read::page_by_id(c, page)?);
    }
    Ok(found)
}

pub(super) fn directory(c: &Connection, query: &PathQuery) -> rusqlite::Result<Vec<TreeEntry>> {
    let mut entries: Vec<TreeEntry> = Vec::new();
    let mut paths = Paths::new(c, query)?;
    while entries.len() < query.limit
        && let Some((path, page)) = paths.step()?
    {
        let below = path.get(query.prefix.len()..).unwrap_or_default();
        let plain = below.find('?').unwrap_or(below.len());
        match below[..plain].find('/') {
            // A directory: one entry, and the scan goes on behind all that is in it.
            Some(slash) => {
                let name = path[..=query.prefix.len() + slash].to_owned();
                paths.walk.seek(&past(&name))?;
                let page = (name == path).then(|| read::page_by_id(c, page)).transpose()?;
                entries.push(TreeEntry { page, path: name });
            }
            None => {
                let page = Some(read::page_by_id(c, page)?);
                entries.push(TreeEntry { path, page });
            }
        }
    }
    Ok(entries)
}

/// The paths of a site on one server, from a position on.
struct Paths<'c> {
    c: &'c Connection,
    site: SiteId,
    walk: Walk<'c>,
    end: String,
}

impl<'c> Paths<'c> {
    fn new(c: &'c Connection, query: &PathQuery) -> rusqlite::Result<Self> {
        let prefix = query.prefix.as_str();
        let from = match query.after.as_deref().filter(|after| *after >= prefix) {
            // The least text that is greater.
            Some(after) => format!("{after}\0"),
            None => prefix.to_owned(),
        };
        let walk = Walk::from(c, List::Paths(query.server), &from)?;
        Ok(Self { c, site: query.site, walk, end: past(prefix) })
    }

    fn step(&mut self) -> rusqlite::Result<Option<(String, PageId)>> {
        while let Some((path, page)) = self.walk.step()? {
            if path >= self.end {
                break;
            }
            let is_member = self
                .c
                .prepare_cached("SELECT 1 FROM members WHERE site = ?1 AND page = ?2")?
                .exists(params![self.site.0, page.0])?;
            if is_member {
                return Ok(Some((path, page)));
            }
        }
        Ok(None)
    }
}

/// The least text that is greater than every URL path with this prefix: paths are ASCII.
fn past(prefix: &str) -> String {
    format!("{prefix}\u{7f}")
}
