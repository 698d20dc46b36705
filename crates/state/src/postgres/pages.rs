//! Look-ups of pages.

use nenrin_urls::CanonicalUrl;

use super::{
    engine::PostgresState,
    rows::{self, count, number},
    work::{PROBES, first_number},
};
use crate::{
    PageFilter, PageId, PageIndex, PageRecord, PathQuery, ServerId, SiteId, SiteServer, StateError,
    TreeEntry,
};

/// Paths of a server that are read at a time while a directory is listed.
const PATHS_TOGETHER: usize = 1_000;

impl PostgresState {
    /// The number of a known page.
    pub(super) fn find(&self, url: &CanonicalUrl) -> Result<Option<PageId>, StateError> {
        Ok(PageIndex::page(self, url)?.map(|page| page.id))
    }

    /// Pages of a site on one server from a path on, in the order of their paths.
    fn paths(
        &self,
        query: &PathQuery,
        (from, to): (&str, &str),
        limit: usize,
    ) -> Result<Vec<PageRecord>, StateError> {
        self.index_once("pages_by_path", "@pages ((id >> 39), path)")?;
        let first = i64::from(query.server.0) << PageId::HASH_BITS;
        let last = first + (1 << PageId::HASH_BITS);
        let found = self.read(
            &format!(
                "SELECT {} FROM @pages p {} JOIN @members m ON m.site = $1 AND m.page = p.id
                 WHERE p.id >= $2 AND p.id < $3 AND (p.id >> 39) = $4 AND p.path >= $5
                 AND p.path < $6 ORDER BY p.path LIMIT $7",
                rows::PAGE,
                rows::SERVER_OF_PAGE
            ),
            &[
                &(query.site.0 as i32),
                &first,
                &last,
                &i64::from(query.server.0),
                &from,
                &to,
                &count(limit),
            ],
        )?;
        self.all(&found, rows::page)
    }
}

/// The least path that is greater than every path with this prefix: paths are ASCII.
fn past(prefix: &str) -> String {
    format!("{prefix}\u{7f}")
}

/// The least path of a query.
fn begin(query: &PathQuery) -> String {
    match query.after.as_deref().filter(|after| *after >= query.prefix.as_str()) {
        // Paths have no control characters.
        Some(after) => format!("{after}\u{1}"),
        None => query.prefix.clone(),
    }
}

impl PageIndex for PostgresState {
    fn pages_of(&self, urls: &[&CanonicalUrl]) -> Result<Vec<Option<PageRecord>>, StateError> {
        let names: Vec<String> = urls.iter().map(|url| url.server().as_str().to_owned()).collect();
        // The first number of a page is its server's and a hash of its path.
        let hashes: Vec<i64> = urls.iter().map(|url| first_number(ServerId(0), url)).collect();
        let paths: Vec<&str> = urls.iter().map(|url| url.path_and_query()).collect();
        let found = self.read(
            &format!(
                "SELECT {}, k.at FROM unnest($1::text[], $2::bigint[], $3::text[])
                    WITH ORDINALITY k(name, hash, path, at) JOIN @servers s ON s.name = k.name
                 CROSS JOIN LATERAL (SELECT * FROM @pages q
                    WHERE q.id >= (s.id::bigint << 39) + k.hash
                    AND q.id < (s.id::bigint << 39) + k.hash + {PROBES}
                    ORDER BY q.id LIMIT {PROBES}) p WHERE p.path = k.path",
                rows::PAGE
            ),
            &[&names, &hashes, &paths],
        )?;
        let mut pages = vec![None; urls.len()];
        for (at, page) in
            self.all(&found, |row| Ok((rows::unsigned(row, 21)?, rows::page(row)?)))?
        {
            if let Some(place) = (at as usize).checked_sub(1).and_then(|at| pages.get_mut(at)) {
                *place = Some(page);
            }
        }
        Ok(pages)
    }

    fn url_of(&self, page: PageId) -> Result<Option<CanonicalUrl>, StateError> {
        let found = self.read(
            "SELECT s.name || p.path FROM @pages p
             JOIN @servers s ON s.id = (p.id >> 39)::integer WHERE p.id = $1",
            &[&page.0],
        )?;
        Ok(self.all(&found, |row| rows::url(row, 0))?.pop())
    }

    fn pages(&self, filter: PageFilter) -> Result<Vec<PageRecord>, StateError> {
        let after = filter.after.map_or(-1, |page| page.0);
        let limit = count(filter.limit);
        let found = match filter.site {
            Some(site) => self.read(
                &format!(
                    "SELECT {} FROM @members m JOIN @pages p ON p.id = m.page {}
                     WHERE m.site = $1 AND m.page > $2 ORDER BY m.page LIMIT $3",
                    rows::PAGE,
                    rows::SERVER_OF_PAGE
                ),
                &[&(site.0 as i32), &after, &limit],
            )?,
            None => self.read(
                &format!(
                    "SELECT {} FROM @pages p {} WHERE p.id > $1 ORDER BY p.id LIMIT $2",
                    rows::PAGE,
                    rows::SERVER_OF_PAGE
                ),
                &[&after, &limit],
            )?,
        };
        self.all(&found, rows::page)
    }

    fn pages_by_path(&self, query: &PathQuery) -> Result<Vec<PageRecord>, StateError> {
        self.paths(query, (&begin(query), &past(&query.prefix)), query.limit)
    }

    fn directory(&self, query: &PathQuery) -> Result<Vec<TreeEntry>, StateError> {
        let (mut from, end) = (begin(query), past(&query.prefix));
        let mut entries: Vec<TreeEntry> = Vec::new();
        while entries.len() < query.limit {
            let room = PATHS_TOGETHER.min(query.limit.saturating_mul(2).max(16));
            let pages = self.paths(query, (&from, &end), room)?;
            let is_all = pages.len() < room;
            for page in pages {
                let path = page.url.path_and_query().to_owned();
                if path < from || entries.len() >= query.limit {
                    continue;
                }
                let below = path.get(query.prefix.len()..).unwrap_or_default();
                let plain = below.find('?').unwrap_or(below.len());
                match below[..plain].find('/') {
                    // A directory: one entry, and the list goes on behind all that is in it.
                    Some(slash) => {
                        let name = path[..=query.prefix.len() + slash].to_owned();
                        from = past(&name);
                        let page = (name == path).then_some(page);
                        entries.push(TreeEntry { page, path: name });
                    }
                    None => {
                        from = format!("{path}\u{1}");
                        entries.push(TreeEntry { path, page: Some(page) });
                    }
                }
            }
            if is_all {
                break;
            }
        }
        Ok(entries)
    }

    fn site_servers(&self, site: SiteId, limit: usize) -> Result<Vec<SiteServer>, StateError> {
        // From one server to the next, without reading the pages between.
        let found = self.read(
            "WITH RECURSIVE found(server) AS (
                (SELECT page >> 39 FROM @members WHERE site = $1 ORDER BY page LIMIT 1)
                UNION ALL SELECT (SELECT m.page >> 39 FROM @members m
                    WHERE m.site = $1 AND m.page >= (found.server + 1) << 39
                    ORDER BY m.page LIMIT 1) FROM found WHERE found.server IS NOT NULL)
             SELECT s.id, s.name FROM found JOIN @servers s ON s.id = found.server::integer LIMIT $2",
            &[&(site.0 as i32), &count(limit)],
        )?;
        let mut servers = self.all(&found, |row| {
            let (id, server) = (ServerId(number(row, 0)?), rows::server_name(row, 1)?);
            Ok(SiteServer { id, server })
        })?;
        servers.sort_by_key(|server| server.id);
        Ok(servers)
    }
}
