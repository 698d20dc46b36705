//! Look-ups of versions by URL and date.

use nenrin_calendar::DAY_S;
use nenrin_urls::{CanonicalUrl, UrlKey};

use super::{
    engine::PostgresState,
    rows::{self, count, get, unsigned},
};
use crate::{PageId, SiteId, StateError, VersionId, VersionIndex, VersionQuery, VersionRow};

/// Versions shown in one statement when all are.
const TOGETHER: i64 = 10_000;

/// Pages with a key: the index has hashes of them.
const OF_KEY: &str = "hashtext(p.key) = hashtext($1) AND p.key = $1";

impl PostgresState {
    /// Versions of the pages that share a key. `more` filters and orders those of one page, so that
    /// a limit is met without reading the rest: a page may have a hundred thousand.
    fn of_key(
        &self,
        key: &UrlKey,
        more: &str,
        values: &[&dyn super::values::Value],
    ) -> Result<Vec<(CanonicalUrl, VersionRow)>, StateError> {
        let sql = format!(
            "SELECT {} FROM @pages p JOIN @servers s ON s.id = (p.id >> 39)::integer
             CROSS JOIN LATERAL (SELECT * FROM @versions w WHERE w.page = p.id AND {more}) v
             JOIN @mimes m ON m.id = v.mime WHERE {OF_KEY}",
            rows::VERSION
        );
        let text = key.as_str();
        let mut all: Vec<&dyn super::values::Value> = vec![&text];
        all.extend(values);
        let found = self.read(&sql, &all)?;
        self.all(&found, rows::version)
    }
}

fn time((_, row): &(CanonicalUrl, VersionRow)) -> (i64, VersionId) {
    (row.at_s, row.version)
}

impl VersionIndex for PostgresState {
    fn versions(
        &self,
        key: &UrlKey,
        query: VersionQuery,
    ) -> Result<Vec<(CanonicalUrl, VersionRow)>, StateError> {
        let mut found = self.of_key(
            key,
            "w.at_s BETWEEN $2 AND $3 ORDER BY w.at_s, w.version LIMIT $4",
            &[&query.from_s, &query.to_s, &count(query.limit)],
        )?;
        found.sort_by_key(time);
        found.truncate(query.limit);
        Ok(found)
    }

    fn newest_versions(
        &self,
        key: &UrlKey,
        before: (i64, VersionId),
        limit: usize,
    ) -> Result<Vec<(CanonicalUrl, VersionRow)>, StateError> {
        let version = i64::try_from(before.1.0).unwrap_or(i64::MAX);
        let mut found = self.of_key(
            key,
            "(w.at_s, w.version) < ($2, $3) ORDER BY w.at_s DESC, w.version DESC LIMIT $4",
            &[&before.0, &version, &count(limit)],
        )?;
        found.sort_by_key(|one| std::cmp::Reverse(time(one)));
        found.truncate(limit);
        Ok(found)
    }

    fn version_as_of(
        &self,
        key: &UrlKey,
        at_s: i64,
    ) -> Result<Option<(CanonicalUrl, VersionRow)>, StateError> {
        let newest = self.of_key(
            key,
            "w.at_s <= $2 ORDER BY w.at_s DESC, w.version DESC LIMIT 1",
            &[&at_s],
        )?;
        if let Some(found) = newest.into_iter().max_by_key(time) {
            return Ok(Some(found));
        }
        let later = self.of_key(key, "w.at_s > $2 ORDER BY w.at_s, w.version LIMIT 1", &[&at_s])?;
        Ok(later.into_iter().min_by_key(time))
    }

    fn site_as_of(
        &self,
        site: SiteId,
        at_s: i64,
        after: Option<PageId>,
        limit: usize,
    ) -> Result<Vec<(PageId, CanonicalUrl, VersionRow)>, StateError> {
        let after = after.map_or(-1, |page| page.0);
        let found = self.read(
            &format!(
                "SELECT {}, p.id FROM @members b JOIN @pages p ON p.id = b.page
                 JOIN @servers s ON s.id = (p.id >> 39)::integer
                 CROSS JOIN LATERAL (SELECT * FROM @versions w
                    WHERE w.page = p.id AND w.at_s <= $2
                    ORDER BY w.at_s DESC, w.version DESC LIMIT 1) v
                 JOIN @mimes m ON m.id = v.mime
                 WHERE b.site = $1 AND b.page > $3 AND p.denied IS NULL AND NOT EXISTS
                    (SELECT 1 FROM @gone g WHERE g.page = p.id AND g.at_s > v.at_s
                     AND g.at_s <= $2)
                 ORDER BY b.page LIMIT $4",
                rows::VERSION
            ),
            &[&(site.0 as i32), &at_s, &after, &count(limit)],
        )?;
        self.all(&found, |row| {
            let (url, version) = rows::version(row)?;
            Ok((PageId(get(row, 7)?), url, version))
        })
    }

    fn urls(&self, from: &str, to: &str, limit: usize) -> Result<Vec<CanonicalUrl>, StateError> {
        self.index_once("pages_in_order", "@pages (key, id) WHERE key IS NOT NULL")?;
        let found = self.read(
            "SELECT s.name || p.path FROM @pages p
             JOIN @servers s ON s.id = (p.id >> 39)::integer
             WHERE p.key >= $1 AND p.key < $2 ORDER BY p.key, p.id LIMIT $3",
            &[&from, &to, &count(limit)],
        )?;
        self.all(&found, |row| rows::url(row, 0))
    }

    fn version_days(
        &self,
        key: &UrlKey,
        from_day: i64,
        to_day: i64,
    ) -> Result<Vec<(i64, u64)>, StateError> {
        let found = self.read(
            &format!(
                "SELECT v.at_s / 86400, COUNT(*) FROM @pages p JOIN @versions v ON v.page = p.id
                 WHERE {OF_KEY} AND v.at_s >= $2 AND v.at_s < $3 GROUP BY 1 ORDER BY 1"
            ),
            &[&key.as_str(), &(from_day * DAY_S), &((to_day + 1) * DAY_S)],
        )?;
        self.all(&found, |row| Ok((get(row, 0)?, unsigned(row, 1)?)))
    }

    fn gone_times(&self, url: &CanonicalUrl) -> Result<Vec<i64>, StateError> {
        let Some(page) = self.find(url)? else { return Ok(Vec::new()) };
        let found =
            self.read("SELECT at_s FROM @gone WHERE page = $1 ORDER BY at_s", &[&page.0])?;
        self.all(&found, |row| get(row, 0))
    }

    fn each_version(
        &self,
        look: &mut dyn FnMut(&CanonicalUrl, &VersionRow),
    ) -> Result<(), StateError> {
        let sql = format!(
            "SELECT {}, v.page FROM @versions v {}
             WHERE (v.page, v.at_s, v.version) > ($1, $2, $3)
             ORDER BY v.page, v.at_s, v.version LIMIT {TOGETHER}",
            rows::VERSION,
            rows::OF_VERSION
        );
        let mut after = (-1_i64, i64::MIN, i64::MIN);
        loop {
            let found = self.read(&sql, &[&after.0, &after.1, &after.2])?;
            let some = self.all(&found, |row| Ok((get::<i64>(row, 7)?, rows::version(row)?)))?;
            let Some((page, (_, row))) = some.last() else { return Ok(()) };
            after = (*page, row.at_s, row.version.0 as i64);
            some.iter().for_each(|(_, (url, row))| look(url, row));
        }
    }

    fn round_began(&self, site: SiteId, after_s: i64, until_s: i64) -> Result<bool, StateError> {
        let found = self.read(
            "SELECT EXISTS (SELECT 1 FROM @rounds
                WHERE site = $1 AND started_s > $2 AND started_s <= $3)",
            &[&(site.0 as i32), &after_s, &until_s],
        )?;
        self.one(&found, |row| get(row, 0))
    }
}
