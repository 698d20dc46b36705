//! Queries. Each is bounded by its limit and answered from a key or an index.

use nenrin_urls::{CanonicalUrl, UrlKey};
use rusqlite::{Connection, OptionalExtension, params};

use super::{
    bags::{self, List, Walk},
    notes, rows, worth,
};
use crate::{
    DuePage, PageFilter, PageId, PageRecord, Round, ServerId, ServerRecord, Site, SiteId,
    StateStats, VersionId, VersionQuery, VersionRow,
    rules::{Indexed, PageBefore},
};

/// Neighbouring numbers tried for pages whose hashes collide.
pub(super) const PROBES: i64 = 8;

pub(super) fn sites(c: &Connection) -> rusqlite::Result<Vec<Site>> {
    let mut query = c.prepare_cached(&format!("SELECT {} FROM sites ORDER BY id", rows::SITE))?;
    query.query_map([], rows::site)?.collect()
}

pub(super) fn site(c: &Connection, id: SiteId) -> rusqlite::Result<Option<Site>> {
    let mut query = c.prepare_cached(&format!("SELECT {} FROM sites WHERE id = ?1", rows::SITE))?;
    query.query_row([id.0], rows::site).optional()
}

pub(super) fn servers(c: &Connection, ids: &[ServerId]) -> rusqlite::Result<Vec<ServerRecord>> {
    let mut query =
        c.prepare_cached(&format!("SELECT {} FROM servers WHERE id = ?1", rows::SERVER))?;
    let mut found = ids
        .iter()
        .filter_map(|id| query.query_row([id.0], rows::server).optional().transpose())
        .collect::<rusqlite::Result<Vec<_>>>()?;
    for record in &mut found {
        record.notes = notes::of_server(c, record.id)?;
    }
    Ok(found)
}

pub(super) fn load_round(
    c: &Connection,
    round: &Round,
    after: Option<PageId>,
    limit: usize,
) -> rusqlite::Result<Vec<DuePage>> {
    let mut query = c.prepare_cached(&format!(
        "SELECT {}, m.site, m.depth, m.hops, 0, {}
         FROM members m JOIN pages p ON p.id = m.page {}
         WHERE m.site = ?1 AND m.page > ?2 AND (m.round IS NULL OR m.round < ?3)
         ORDER BY m.page LIMIT ?4",
        rows::PAGE,
        rows::MEETS,
        rows::PAGE_SERVER
    ))?;
    let after = after.map_or(-1, |page| page.0);
    query
        .query_map(params![round.site.0, after, round.id, count(limit)], rows::due_page_of_round)?
        .collect()
}

pub(super) fn page_by_id(c: &Connection, id: PageId) -> rusqlite::Result<PageRecord> {
    c.prepare_cached(&format!(
        "SELECT {} FROM pages p {} WHERE p.id = ?1",
        rows::PAGE,
        rows::PAGE_SERVER
    ))?
    .query_row([id.0], rows::page)
}

/// What [`page_before`] reads; its end is [`worth::PART`].
const BEFORE: &str = "SELECT due_s, visited_s, version, nth, site, importance, rate, sure, turn
    FROM pages WHERE id = ?1";

/// A page as visits find it.
pub(super) fn page_before(c: &Connection, page: PageId) -> rusqlite::Result<PageBefore> {
    c.prepare_cached(BEFORE)?.query_row([page.0], |row| {
        Ok(PageBefore {
            due_s: row.get(0)?,
            visited_s: row.get(1)?,
            version: row.get::<_, Option<i64>>(2)?.map(|version| VersionId(version as u64)),
            nth: row.get(3)?,
            worth: worth::read_part(row, 4)?,
        })
    })
}

/// A page as a version from the packs finds it.
pub(super) fn indexed(c: &Connection, page: PageId) -> rusqlite::Result<Indexed> {
    c.prepare_cached(
        "SELECT (SELECT MAX(at_s) FROM versions WHERE page = ?1), visited_s, visits, outcome
         FROM pages WHERE id = ?1",
    )?
    .query_row([page.0], |row| {
        Ok(Indexed {
            newest_s: row.get(0)?,
            visited_s: row.get(1)?,
            visits: row.get(2)?,
            outcome: rows::optional_outcome(row, 3)?,
        })
    })
}

/// What is known of several URLs. The server of neighbours is looked up once: most have the same.
pub(super) fn pages_of(
    c: &Connection,
    urls: &[&CanonicalUrl],
) -> rusqlite::Result<Vec<Option<PageRecord>>> {
    let mut pages = Vec::with_capacity(urls.len());
    for neighbours in urls.chunk_by(|url, next| url.server() == next.server()) {
        let server = find_server(c, neighbours[0])?;
        for url in neighbours {
            let page = match server {
                Some(server) => find_on_server(c, server, url)?,
                None => None,
            };
            pages.push(page.map(|page| page_by_id(c, page)).transpose()?);
        }
    }
    Ok(pages)
}

/// The number of a known page.
pub(super) fn find_page(c: &Connection, url: &CanonicalUrl) -> rusqlite::Result<Option<PageId>> {
    match find_server(c, url)? {
        Some(server) => find_on_server(c, server, url),
        None => Ok(None),
    }
}

fn find_server(c: &Connection, url: &CanonicalUrl) -> rusqlite::Result<Option<ServerId>> {
    c.prepare_cached("SELECT id FROM servers WHERE name = ?1")?
        .query_row([url.server().as_str()], |row| row.get(0).map(ServerId))
        .optional()
}

pub(super) fn find_on_server(
    c: &Connection,
    server: ServerId,
    url: &CanonicalUrl,
) -> rusqlite::Result<Option<PageId>> {
    let first = first_number(server, url);
    c.prepare_cached("SELECT id FROM pages WHERE id >= ?1 AND id < ?1 + ?2 AND path = ?3")?
        .query_row(params![first, PROBES, url.path_and_query()], |row| row.get(0).map(PageId))
        .optional()
}

/// The number that a page has unless another page has it already.
pub(super) fn first_number(server: ServerId, url: &CanonicalUrl) -> i64 {
    let hash = blake3::hash(url.path_and_query().as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&hash.as_bytes()[..8]);
    let space = (1_i64 << PageId::HASH_BITS) - PROBES;
    (i64::from(server.0) << PageId::HASH_BITS) + (u64::from_le_bytes(first) % space as u64) as i64
}

pub(super) fn pages(c: &Connection, filter: PageFilter) -> rusqlite::Result<Vec<PageRecord>> {
    let after = filter.after.map_or(-1, |page| page.0);
    let limit = count(filter.limit);
    match filter.site {
        Some(site) => c
            .prepare_cached(&format!(
                "SELECT {} FROM members m JOIN pages p ON p.id = m.page {}
                 WHERE m.site = ?1 AND m.page > ?2 ORDER BY m.page LIMIT ?3",
                rows::PAGE,
                rows::PAGE_SERVER
            ))?
            .query_map(params![site.0, after, limit], rows::page)?
            .collect(),
        None => c
            .prepare_cached(&format!(
                "SELECT {} FROM pages p {} WHERE p.id > ?1 ORDER BY p.id LIMIT ?2",
                rows::PAGE,
                rows::PAGE_SERVER
            ))?
            .query_map(params![after, limit], rows::page)?
            .collect(),
    }
}

/// Versions of one page. They are in the order of their times already, so that a limit is met
/// without reading the rest: a page may have a hundred thousand.
const VERSION: &str =
    "s.name || p.path, v.at_s, v.version, v.status, mimes.name, v.bytes, v.permille
    FROM versions v CROSS JOIN pages p ON p.id = v.page CROSS JOIN servers s ON s.id = p.id >> 39
    CROSS JOIN mimes ON mimes.id = v.mime
    WHERE v.page = ?1";

pub(super) fn versions(
    c: &Connection,
    key: &UrlKey,
    query: VersionQuery,
) -> rusqlite::Result<Vec<(CanonicalUrl, VersionRow)>> {
    let mut select = c.prepare_cached(&format!(
        "SELECT {VERSION} AND v.at_s BETWEEN ?2 AND ?3 ORDER BY v.at_s, v.version LIMIT ?4"
    ))?;
    let mut found = Vec::new();
    for page in bags::pages_of_key(c, key)? {
        let bounds = params![page.0, query.from_s, query.to_s, count(query.limit)];
        for row in select.query_map(bounds, rows::version)? {
            found.push(row?);
        }
    }
    found.sort_by_key(|(_, row)| (row.at_s, row.version));
    found.truncate(query.limit);
    Ok(found)
}

pub(super) fn version_as_of(
    c: &Connection,
    key: &UrlKey,
    at_s: i64,
) -> rusqlite::Result<Option<(CanonicalUrl, VersionRow)>> {
    let pages = bags::pages_of_key(c, key)?;
    let pick = |order: &str| -> rusqlite::Result<Vec<(CanonicalUrl, VersionRow)>> {
        let mut select =
            c.prepare_cached(&format!("SELECT {VERSION} AND v.at_s {order} LIMIT 1"))?;
        let pick = |page: &PageId| {
            select.query_row(params![page.0, at_s], rows::version).optional().transpose()
        };
        pages.iter().filter_map(pick).collect()
    };
    let time = |(_, row): &(CanonicalUrl, VersionRow)| (row.at_s, row.version);
    let newest = pick("<= ?2 ORDER BY v.at_s DESC, v.version DESC")?.into_iter().max_by_key(time);
    match newest {
        Some(found) => Ok(Some(found)),
        None => Ok(pick("> ?2 ORDER BY v.at_s, v.version")?.into_iter().min_by_key(time)),
    }
}

pub(super) fn site_as_of(
    c: &Connection,
    site: SiteId,
    at_s: i64,
    after: Option<PageId>,
    limit: usize,
) -> rusqlite::Result<Vec<(PageId, CanonicalUrl, VersionRow)>> {
    c.prepare_cached(
        "SELECT s.name || p.path, v.at_s, v.version, v.status, mimes.name, v.bytes, v.permille,
            m.page
         FROM members m JOIN pages p ON p.id = m.page JOIN servers s ON s.id = p.id >> 39
         JOIN versions v ON v.page = m.page AND v.version =
            (SELECT w.version FROM versions w WHERE w.page = m.page AND w.at_s <= ?2
             ORDER BY w.at_s DESC, w.version DESC LIMIT 1)
         JOIN mimes ON mimes.id = v.mime
         WHERE m.site = ?1 AND m.page > ?3
         AND NOT EXISTS (SELECT 1 FROM denied d WHERE d.page = m.page) AND NOT EXISTS
            (SELECT 1 FROM gone g WHERE g.page = m.page AND g.at_s > v.at_s AND g.at_s <= ?2)
         ORDER BY m.page LIMIT ?4",
    )?
    .query_map(params![site.0, at_s, after.map_or(-1, |p| p.0), count(limit)], |row| {
        let (url, version) = rows::version(row)?;
        Ok((PageId(row.get(7)?), url, version))
    })?
    .collect()
}

pub(super) fn gone_times(c: &Connection, url: &CanonicalUrl) -> rusqlite::Result<Vec<i64>> {
    let Some(page) = find_page(c, url)? else { return Ok(Vec::new()) };
    c.prepare_cached("SELECT at_s FROM gone WHERE page = ?1 ORDER BY at_s")?
        .query_map([page.0], |row| row.get(0))?
        .collect()
}

pub(super) fn each_version(
    c: &Connection,
    look: &mut dyn FnMut(&CanonicalUrl, &VersionRow),
) -> rusqlite::Result<()> {
    let mut query = c.prepare_cached(
        "SELECT s.name || p.path, v.at_s, v.version, v.status, mimes.name, v.bytes, v.permille
         FROM versions v JOIN pages p ON p.id = v.page JOIN servers s ON s.id = p.id >> 39
         JOIN mimes ON mimes.id = v.mime ORDER BY v.page, v.at_s",
    )?;
    for row in query.query_map([], rows::version)? {
        let (url, version) = row?;
        look(&url, &version);
    }
    Ok(())
}

pub(super) fn urls(
    c: &Connection,
    from: &str,
    to: &str,
    limit: usize,
) -> rusqlite::Result<Vec<CanonicalUrl>> {
    let mut found = Vec::new();
    let mut walk = Walk::from(c, List::Keys, from)?;
    while found.len() < limit
        && let Some((key, page)) = walk.step()?
        && key.as_str() < to
    {
        found.extend(bags::url(c, page)?);
    }
    Ok(found)
}

pub(super) fn rounds(
    c: &Connection,
    site: Option<SiteId>,
    limit: usize,
) -> rusqlite::Result<Vec<Round>> {
    let filter = if site.is_some() { "WHERE site = ?1" } else { "WHERE ?1 IS NULL" };
    c.prepare_cached(&format!(
        "SELECT {} FROM rounds {filter} ORDER BY id DESC LIMIT ?2",
        rows::ROUND
    ))?
    .query_map(params![site.map(|s| s.0), count(limit)], rows::round)?
    .collect()
}

pub(super) fn round_began(
    c: &Connection,
    site: SiteId,
    after_s: i64,
    until_s: i64,
) -> rusqlite::Result<bool> {
    c.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM rounds WHERE site = ?1 AND started_s > ?2 AND started_s <= ?3)",
    )?
    .query_row(params![site.0, after_s, until_s], |row| row.get(0))
}

pub(super) fn stats(c: &Connection) -> rusqlite::Result<StateStats> {
    let mut stats = c.query_row(
        "SELECT COUNT(*), TOTAL(visits), TOTAL(versions), TOTAL(raw_bytes) FROM sites",
        [],
        |row| {
            Ok(StateStats {
                sites: rows::unsigned(row, 0)?,
                visits: row.get::<_, f64>(1)? as u64,
                versions: row.get::<_, f64>(2)? as u64,
                raw_bytes: row.get::<_, f64>(3)? as u64,
                ..StateStats::default()
            })
        },
    )?;
    let number = |sql: &str| c.query_row(sql, [], |row| rows::unsigned(row, 0));
    stats.servers = number("SELECT COUNT(*) FROM servers")?;
    stats.pages = number("SELECT COUNT(*) FROM pages")?;
    stats.file_bytes =
        number("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")?;
    Ok(stats)
}

pub(super) fn count(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
