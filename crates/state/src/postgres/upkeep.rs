//! Dropping versions, checking, freeing space.

use std::path::Path;

use std::collections::{BTreeMap, BTreeSet};

use tokio_postgres::Row;

use super::{
    engine::{PostgresState, Step, Tx},
    loads::Needs,
    rows::{self, Read, count, get, number, unsigned},
    work::{NEW_BUCKET, Work},
};
use crate::{KeptVersion, PageId, PruneRow, SiteId, StateError, Upkeep, VersionId, rules};

/// Times this far ahead are believed: clocks of two machines differ.
const AHEAD_S: i64 = 3_600;
/// Behind so many versions no further page is begun: a page may have very many.
const ENOUGH_VERSIONS: usize = 100_000;

/// The versions of whole pages, which come in the order of pages: those of fewer pages than asked
/// for if they have many.
fn whole_pages<T>(mut versions: Vec<T>, page: impl Fn(&T) -> PageId) -> Vec<T> {
    if let Some(last) = versions.get(ENOUGH_VERSIONS).map(&page) {
        let end = versions.iter().position(|one| page(one) == last).unwrap_or(0);
        let end = match end {
            0 => versions.iter().rposition(|one| page(one) == last).map_or(0, |at| at + 1),
            end => end,
        };
        versions.truncate(end);
    }
    versions
}

fn numbers(versions: &[VersionId]) -> Vec<i64> {
    versions.iter().map(|version| version.0 as i64).collect()
}

fn drop_versions(t: &mut Tx<'_>, pages: &[PageId]) -> Step<u64> {
    let ids: Vec<i64> = pages.iter().map(|page| page.0).collect();
    let found = t.query(
        "WITH gone AS (DELETE FROM @versions WHERE page = ANY($1) RETURNING page, version),
            read AS (DELETE FROM @summaries WHERE version IN (SELECT version FROM gone))
         SELECT p.site, COUNT(*) FROM gone JOIN @pages p ON p.id = gone.page GROUP BY p.site",
        &[&ids],
    )?;
    let dropped = take_from_sites(t, &found)?;
    t.execute("DELETE FROM @gone WHERE page = ANY($1)", &[&ids])?;
    t.execute("DELETE FROM @blocks WHERE page = ANY($1)", &[&ids])?;
    // Without a version there is nothing that a 304 or an equal body could refer to.
    t.execute(
        "UPDATE @pages SET version = NULL, etag = NULL, last_modified = NULL, mark = NULL,
            bytes = 0, key = NULL WHERE id = ANY($1)",
        &[&ids],
    )?;
    Ok(dropped)
}

/// Takes versions from the totals of their sites; rows have a site and a count.
fn take_from_sites(t: &mut Tx<'_>, found: &[Row]) -> Step<u64> {
    let mut all = 0;
    for row in found {
        let (site, count): (i32, i64) = (row.try_get(0)?, row.try_get(1)?);
        let sql = "UPDATE @sites SET versions = GREATEST(versions - $2, 0) WHERE id = $1";
        t.execute(sql, &[&site, &count])?;
        all += count as u64;
    }
    Ok(all)
}

fn log_prune(t: &mut Tx<'_>, row: &PruneRow) -> Step<()> {
    t.execute(
        "INSERT INTO @prunes (site, at_s, rule, versions, raw_bytes) VALUES ($1, $2, $3, $4, $5)",
        &[
            &(row.site.0 as i32),
            &row.at_s,
            &row.rule,
            &(row.versions as i64),
            &(row.raw_bytes as i64),
        ],
    )?;
    Ok(())
}

fn prune(t: &mut Tx<'_>, row: &PruneRow, versions: &[KeptVersion]) -> Step<u64> {
    let pages: BTreeSet<i64> = versions.iter().map(|version| version.page.0).collect();
    let pages: Vec<i64> = pages.into_iter().collect();
    let mut last: BTreeMap<PageId, Option<VersionId>> = BTreeMap::new();
    for row in &t.query("SELECT id, version FROM @pages WHERE id = ANY($1)", &[&pages])? {
        let version: Option<i64> = row.try_get(1)?;
        last.insert(PageId(row.try_get(0)?), version.map(|version| VersionId(version as u64)));
    }
    let goes = |version: &&KeptVersion| {
        rules::may_go(last.get(&version.page).copied().flatten(), version.version)
    };
    let going: Vec<&KeptVersion> = versions.iter().filter(goes).collect();
    let pages: Vec<i64> = going.iter().map(|version| version.page.0).collect();
    let times: Vec<i64> = going.iter().map(|version| version.at_s).collect();
    let ids: Vec<i64> = going.iter().map(|version| version.version.0 as i64).collect();
    let found = t.query(
        "WITH gone AS (DELETE FROM @versions v
                USING unnest($1::bigint[], $2::bigint[], $3::bigint[]) k(page, at_s, version)
                WHERE v.page = k.page AND v.at_s = k.at_s AND v.version = k.version
                RETURNING v.version, v.bytes),
            waiting AS (INSERT INTO @pruning SELECT version FROM gone ON CONFLICT DO NOTHING),
            read AS (DELETE FROM @summaries WHERE version IN (SELECT version FROM gone))
         SELECT COUNT(*), COALESCE(SUM(bytes), 0)::bigint FROM gone",
        &[&pages, &times, &ids],
    )?;
    let (count, raw_bytes): (i64, i64) = (found[0].try_get(0)?, found[0].try_get(1)?);
    if count == 0 {
        return Ok(0);
    }
    let sql = "UPDATE @sites SET versions = GREATEST(versions - $2, 0) WHERE id = $1";
    t.execute(sql, &[&(row.site.0 as i32), &count])?;
    let (versions, raw_bytes) = (count as u64, raw_bytes as u64);
    log_prune(t, &PruneRow { versions, raw_bytes, ..row.clone() })?;
    Ok(versions)
}

fn drop_lost(t: &mut Tx<'_>, versions: &[VersionId], why: &str, at_s: i64) -> Step<u64> {
    let ids = numbers(versions);
    let found = t.query(
        "WITH gone AS (DELETE FROM @versions v WHERE v.version = ANY($1)
                RETURNING v.page, v.version, v.bytes),
            read AS (DELETE FROM @summaries WHERE version IN (SELECT version FROM gone)),
            parts AS (DELETE FROM @blocks WHERE page IN (SELECT page FROM gone))
         SELECT p.site, COUNT(*), SUM(gone.bytes)::bigint, array_agg(gone.page)
         FROM gone JOIN @pages p ON p.id = gone.page GROUP BY p.site",
        &[&ids],
    )?;
    let mut pages: Vec<i64> = Vec::new();
    for row in &found {
        pages.extend(row.try_get::<_, Vec<i64>>(3)?);
        let (site, versions, raw_bytes): (i32, i64, i64) =
            (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let (site, rule) = (SiteId(site as u32), why.to_owned());
        let (versions, raw_bytes) = (versions as u64, raw_bytes as u64);
        log_prune(t, &PruneRow { site, at_s, rule, versions, raw_bytes })?;
    }
    // A page whose last version is lost is compared with nothing at its next visit.
    t.execute(
        "UPDATE @pages p SET etag = NULL, last_modified = NULL, mark = NULL, bytes = 0, version =
            (SELECT v.version FROM @versions v WHERE v.page = p.id
             ORDER BY v.at_s DESC, v.version DESC LIMIT 1)
         WHERE p.id = ANY($1) AND p.version = ANY($2)",
        &[&pages, &ids],
    )?;
    t.execute(
        "UPDATE @pages p SET key = NULL WHERE p.id = ANY($1)
         AND NOT EXISTS (SELECT 1 FROM @versions v WHERE v.page = p.id)",
        &[&pages],
    )?;
    take_from_sites(t, &found)
}

fn set_clock_back(t: &mut Tx<'_>, now_s: i64) -> Step<Option<u64>> {
    let ahead_s = now_s + AHEAD_S;
    let found = t.query(
        "SELECT EXISTS (SELECT 1 FROM @servers WHERE asked_ms > $1::bigint * 1000 OR robots_tried_s > $1)
             OR EXISTS (SELECT 1 FROM @sites WHERE collected_s > $1)
             OR EXISTS (SELECT 1 FROM @rounds WHERE ended_s IS NULL AND started_s > $1)",
        &[&ahead_s],
    )?;
    if !found[0].try_get::<_, bool>(0)? {
        return Ok(None);
    }
    let mut work = Work::load(t, &Needs::default())?;
    work.load_where("(p.visited_s > $1 OR p.discovered_s > $1)", &ahead_s)?;
    let bucket_s = work.settings.bucket_s;
    let pages = work.pages.len() as u64;
    for row in work.pages.values_mut() {
        if row.page.visited_s.is_some_and(|visited_s| visited_s > now_s) {
            row.page.history.clear();
        }
        row.page.visited_s = row.page.visited_s.map(|visited_s| visited_s.min(now_s));
        row.page.discovered_s = row.page.discovered_s.min(now_s);
        row.page.due_s = row.page.due_s.map(|_| now_s);
        row.time_changed(bucket_s);
        row.is_changed = true;
    }
    work.finish_now()?;
    // What pages share and what was learnt of servers has times of its own: it is learnt again. What a
    // server shows for pages that do not exist is as it was: without it they would be stored.
    for forget in [
        "DELETE FROM @notes WHERE name <> 'probe'
             AND server IN (SELECT id FROM @servers WHERE asked_ms > $1::bigint * 1000)",
        "DELETE FROM @shared WHERE site IN (SELECT site FROM @pages WHERE visited_s = $1)",
        "UPDATE @servers SET resting_until_ms = NULL, strikes = 0, stretch_percent = 100
             WHERE asked_ms > $1::bigint * 1000",
        "UPDATE @servers SET asked_ms = $1::bigint * 1000 WHERE asked_ms > $1::bigint * 1000",
        "UPDATE @servers SET robots_good_s = $1 WHERE robots_good_s > $1",
        "UPDATE @servers SET robots_tried_s = $1 WHERE robots_tried_s > $1",
        "UPDATE @sites SET collected_s = CASE WHEN collected_s > $1 THEN $1 ELSE collected_s END,
             created_s = LEAST(created_s, $1)",
        "UPDATE @rounds SET started_s = LEAST(started_s, $1) WHERE ended_s IS NULL",
    ] {
        t.execute(forget, &[&now_s])?;
    }
    Ok(Some(pages))
}

/// What must be so: a statement that counts what is not, and what to say then.
fn laws(bucket_s: i64) -> Vec<(String, &'static str)> {
    let laws = [
        (
            "SELECT COUNT(*) FROM @versions v LEFT JOIN @pages p ON p.id = v.page WHERE p.id IS NULL",
            "versions belong to no page",
        ),
        (
            "SELECT COUNT(*) FROM @versions v LEFT JOIN @mimes m ON m.id = v.mime WHERE m.id IS NULL",
            "versions have no media type",
        ),
        (
            "SELECT COUNT(*) FROM @pages p WHERE p.version IS NOT NULL AND NOT EXISTS
            (SELECT 1 FROM @versions v WHERE v.page = p.id AND v.version = p.version)",
            "pages name a last version that is not listed",
        ),
        (
            "SELECT COUNT(*) FROM @pages p WHERE NOT EXISTS
            (SELECT 1 FROM @members m WHERE m.page = p.id AND m.site = p.site)",
            "pages belong to no site",
        ),
        (
            "SELECT COUNT(*) FROM @pages p LEFT JOIN @servers s ON s.id = (p.id >> 39)::integer
            WHERE s.id IS NULL",
            "pages belong to no server",
        ),
        (
            "SELECT (COUNT(*) <> COALESCE(MAX(nth), 0))::integer::bigint FROM @pages",
            "gap is in the order of discovery",
        ),
        (
            "SELECT COUNT(*) FROM @pages WHERE (visited_s IS NULL) <> (reading = 0)",
            "pages are new in one place and visited in another",
        ),
        (
            "SELECT COUNT(*) FROM @pages p WHERE (p.reading = 3)
            <> EXISTS (SELECT 1 FROM @links l WHERE l.nth = p.nth)",
            "pages are read for links that are not kept",
        ),
        (
            "SELECT COUNT(*) FROM @pages p WHERE (p.key IS NOT NULL) <> (p.denied IS NULL
            AND EXISTS (SELECT 1 FROM @versions v WHERE v.page = p.id))",
            "pages with versions are not found by their addresses",
        ),
        (
            "SELECT COUNT(*) FROM @site_worth w LEFT JOIN
            (SELECT site, COUNT(rate) AS estimated, COALESCE(SUM(rate), 0) AS rate,
                COUNT(*) FILTER (WHERE importance > 0) AS weighed, SUM(importance) AS importance
             FROM @pages GROUP BY site) p ON p.site = w.site
          WHERE w.site > 0 AND (w.estimated <> COALESCE(p.estimated, 0)
            OR w.rate <> COALESCE(p.rate, 0) OR w.weighed <> COALESCE(p.weighed, 0)
            OR w.importance <> COALESCE(p.importance, 0))",
            "sites have sums of rates and importance that are not their pages'",
        ),
    ];
    let mut laws: Vec<(String, &str)> =
        laws.into_iter().map(|(sql, what)| (sql.to_owned(), what)).collect();
    laws.push((
        format!(
            "SELECT COUNT(*) FROM @pages
             WHERE bucket IS DISTINCT FROM floor(due_s::numeric / {bucket_s})::bigint
             AND NOT (visited_s IS NULL AND due_s IS NOT NULL AND bucket = {NEW_BUCKET})"
        ),
        "pages have a due time but are in no bucket",
    ));
    laws
}

fn kept_version(row: &Row) -> Read<KeptVersion> {
    Ok(KeptVersion {
        page: PageId(get(row, 0)?),
        at_s: get(row, 1)?,
        version: VersionId(unsigned(row, 2)?),
        bytes: unsigned(row, 3)?,
        is_current: get(row, 4)?,
    })
}

impl Upkeep for PostgresState {
    fn copy_to(&self, _: &Path) -> Result<(), StateError> {
        Err(StateError::NoDatabase {
            why: "a state in PostgreSQL is copied with its own tools, such as pg_dump".to_owned(),
        })
    }

    fn denied_versions(
        &self,
        site: SiteId,
        after: Option<PageId>,
        pages: usize,
    ) -> Result<Vec<(PageId, VersionId)>, StateError> {
        let found = self.read(
            "SELECT v.page, v.version FROM @versions v WHERE v.page IN
                (SELECT p.id FROM @pages p WHERE p.denied = $1 AND p.id > $2
                 AND EXISTS (SELECT 1 FROM @versions w WHERE w.page = p.id)
                 ORDER BY p.id LIMIT $3)
             ORDER BY v.page",
            &[&(site.0 as i32), &after.map_or(-1, |page| page.0), &count(pages)],
        )?;
        let found =
            self.all(&found, |row| Ok((PageId(get(row, 0)?), VersionId(unsigned(row, 1)?))))?;
        Ok(whole_pages(found, |(page, _)| *page))
    }

    fn drop_versions(&self, pages: &[PageId]) -> Result<u64, StateError> {
        self.write(|t| drop_versions(t, pages))
    }

    fn site_versions(
        &self,
        site: SiteId,
        after: Option<PageId>,
        pages: usize,
    ) -> Result<Vec<KeptVersion>, StateError> {
        let found = self.read(
            "SELECT v.page, v.at_s, v.version, v.bytes, v.version = COALESCE(p.version, -1)
             FROM @versions v JOIN @pages p ON p.id = v.page WHERE v.page IN
                (SELECT m.page FROM @members m JOIN @pages o ON o.id = m.page
                 WHERE m.site = $1 AND o.site = $1 AND m.page > $2
                 AND EXISTS (SELECT 1 FROM @versions w WHERE w.page = m.page)
                 ORDER BY m.page LIMIT $3)
             ORDER BY v.page, v.at_s, v.version",
            &[&(site.0 as i32), &after.map_or(-1, |page| page.0), &count(pages)],
        )?;
        Ok(whole_pages(self.all(&found, kept_version)?, |version| version.page))
    }

    fn prune(&self, row: &PruneRow, versions: &[KeptVersion]) -> Result<u64, StateError> {
        self.write(|t| prune(t, row, versions))
    }

    fn pruning(&self, limit: usize) -> Result<Vec<VersionId>, StateError> {
        let sql = "SELECT version FROM @pruning ORDER BY version LIMIT $1";
        let found = self.read(sql, &[&count(limit)])?;
        self.all(&found, |row| Ok(VersionId(unsigned(row, 0)?)))
    }

    fn pruned(&self, versions: &[VersionId]) -> Result<(), StateError> {
        let ids = numbers(versions);
        self.write(|t| {
            t.execute("DELETE FROM @pruning WHERE version = ANY($1)", &[&ids])?;
            Ok(())
        })
    }

    fn drop_lost(&self, versions: &[VersionId], why: &str, at_s: i64) -> Result<u64, StateError> {
        self.write(|t| drop_lost(t, versions, why, at_s))
    }

    fn prunes(&self) -> Result<Vec<PruneRow>, StateError> {
        let found = self.read(
            "SELECT site, at_s, rule, versions, raw_bytes FROM @prunes ORDER BY id DESC
             LIMIT 10000",
            &[],
        )?;
        self.all(&found, |row| {
            Ok(PruneRow {
                site: SiteId(number(row, 0)?),
                at_s: get(row, 1)?,
                rule: get(row, 2)?,
                versions: unsigned(row, 3)?,
                raw_bytes: unsigned(row, 4)?,
            })
        })
    }

    fn check(&self) -> Result<Vec<String>, StateError> {
        crate::Registry::sites(self)?;
        let mut wrong = Vec::new();
        for (sql, what) in laws(self.settings.bucket_s) {
            let found = self.read(&sql, &[])?;
            let count: i64 = self.one(&found, |row| rows::get(row, 0))?;
            if count > 0 {
                wrong.push(format!("{count} {what}"));
            }
        }
        Ok(wrong)
    }

    fn set_clock_back(&self, now_s: i64) -> Result<Option<u64>, StateError> {
        self.write(|t| set_clock_back(t, now_s))
    }

    fn tidy_up(&self) -> Result<(), StateError> {
        for table in ["pages", "versions", "links", "members", "outbox"] {
            self.maintain(&format!("VACUUM (ANALYZE) @{table}"))?;
        }
        Ok(())
    }
}
