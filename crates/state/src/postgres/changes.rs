//! Changes of pages by time, and what was read of their versions.

use std::collections::BTreeMap;

use super::{
    engine::PostgresState,
    reports::{VISIT, visit},
    rows::{self, count, get, number, unsigned},
};
use crate::{
    ChangeCursor, ChangePortion, ChangeQuery, Changes, PageChange, PageId, SiteId, StateError,
    Summary, VersionId, VisitRow,
};

/// Candidates that are read at a time.
const TOGETHER: usize = 500;

/// A candidate: when, and whether it is a change that is asked for.
struct Seen {
    at: ChangeCursor,
    change: Option<PageChange>,
}

impl PostgresState {
    /// Makes an index that only some archives need, unless it is there.
    pub(super) fn index_once(&self, name: &str, on: &str) -> Result<(), StateError> {
        let sql = "SELECT to_regclass($1) IS NOT NULL";
        let found = self.read(sql, &[&format!("{}.{name}", self.schema)])?;
        if self.one(&found, |row| get(row, 0))? {
            return Ok(());
        }
        self.maintain(&format!("CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON {on}"))
    }

    /// Versions and times at which pages were gone before a position, newest first, with what is
    /// needed to see whether they are asked for.
    fn candidates(
        &self,
        query: &ChangeQuery,
        before: ChangeCursor,
        limit: usize,
    ) -> Result<Vec<Seen>, StateError> {
        let found = self.read(
            "SELECT c.at_s, c.page, c.version, s.name || p.path, p.site,
                (NOT $5 OR c.permille IS DISTINCT FROM 0) AND p.denied IS NULL AND
                ($6::integer IS NULL OR EXISTS
                    (SELECT 1 FROM @members b WHERE b.site = $6 AND b.page = c.page)) AND
                (c.version > 0 OR (o.at_s IS NOT NULL AND NOT EXISTS
                    (SELECT 1 FROM @gone g WHERE g.page = c.page AND g.at_s > o.at_s
                     AND g.at_s < c.at_s))),
                c.at_s, c.version, c.status, m.name, c.bytes, c.permille,
                o.at_s, o.version, o.status, om.name, o.bytes, o.permille
             FROM (SELECT * FROM ((SELECT at_s, page, version, status, mime, bytes, permille
                    FROM @versions
                    WHERE at_s >= $1 AND at_s <= $2 AND (at_s, page, version) < ($2, $3, $4)
                    ORDER BY at_s DESC, page DESC, version DESC LIMIT $7)
                 UNION ALL (SELECT at_s, page, 0, 0, 0, 0, NULL FROM @gone
                    WHERE at_s >= $1 AND at_s <= $2 AND (at_s, page, 0::bigint) < ($2, $3, $4)
                    ORDER BY at_s DESC, page DESC LIMIT $7)) both_lists
                ORDER BY at_s DESC, page DESC, version DESC LIMIT $7) c
             JOIN @pages p ON p.id = c.page JOIN @servers s ON s.id = (p.id >> 39)::integer
             LEFT JOIN @mimes m ON m.id = c.mime
             LEFT JOIN LATERAL (SELECT * FROM @versions w WHERE w.page = c.page
                AND (w.at_s, w.version) < (c.at_s,
                    CASE WHEN c.version = 0 THEN 9223372036854775807 ELSE c.version END)
                ORDER BY w.at_s DESC, w.version DESC LIMIT 1) o ON true
             LEFT JOIN @mimes om ON om.id = o.mime
             ORDER BY c.at_s DESC, c.page DESC, c.version DESC",
            &[
                &query.from_s,
                &before.0,
                &before.1.0,
                &(before.2.0 as i64),
                &query.significant,
                &query.site.map(|site| site.0 as i32),
                &count(limit),
            ],
        )?;
        self.all(&found, |row| {
            let at = ChangeCursor(get(row, 0)?, PageId(get(row, 1)?), VersionId(unsigned(row, 2)?));
            if !get::<Option<bool>>(row, 5)?.unwrap_or(false) {
                return Ok(Seen { at, change: None });
            }
            let has_previous = get::<Option<i64>>(row, 12)?.is_some();
            let change = PageChange {
                at_s: at.0,
                page: at.1,
                url: rows::url(row, 3)?,
                site: SiteId(number(row, 4)?),
                version: (at.2.0 > 0).then(|| rows::version_row(row, 6)).transpose()?,
                previous: has_previous.then(|| rows::version_row(row, 12)).transpose()?,
            };
            Ok(Seen { at, change: Some(change) })
        })
    }
}

impl Changes for PostgresState {
    fn changes(&self, query: &ChangeQuery) -> Result<ChangePortion, StateError> {
        let end = ChangeCursor(query.to_s, PageId(i64::MAX), VersionId(i64::MAX as u64));
        let mut before = query.before.map_or(end, |before| before.min(end));
        let mut found = ChangePortion::default();
        while found.looked_at < query.looked_at && found.changes.len() < query.limit {
            let room = TOGETHER.min(query.looked_at - found.looked_at);
            // One more shows whether there are more.
            let seen = self.candidates(query, before, room + 1)?;
            let is_last = seen.len() <= room;
            let all = seen.len().min(room);
            let mut looked = 0;
            for one in seen.into_iter().take(room) {
                looked += 1;
                (found.looked_at, before) = (found.looked_at + 1, one.at);
                found.changes.extend(one.change);
                if found.changes.len() >= query.limit {
                    break;
                }
            }
            found.next = (!is_last || looked < all).then_some(before);
            if found.next.is_none() {
                break;
            }
        }
        Ok(found)
    }

    fn index_changes(&self) -> Result<(), StateError> {
        self.index_once("versions_by_time", "@versions (at_s, page, version)")?;
        self.index_once("gone_by_time", "@gone (at_s, page)")
    }

    fn summaries(&self, versions: &[VersionId]) -> Result<Vec<Option<Summary>>, StateError> {
        let ids: Vec<i64> = versions.iter().map(|version| version.0 as i64).collect();
        let found = self.read(
            "SELECT version, title, line, removed, previous FROM @summaries
             WHERE version = ANY($1)",
            &[&ids],
        )?;
        let known: BTreeMap<i64, Summary> = self
            .all(&found, |row| {
                let previous: Option<i64> = get(row, 4)?;
                let summary = Summary {
                    title: get(row, 1)?,
                    line: get(row, 2)?,
                    removed: get(row, 3)?,
                    previous: previous.map(|version| VersionId(version as u64)),
                };
                Ok((get(row, 0)?, summary))
            })?
            .into_iter()
            .collect();
        Ok(ids.iter().map(|id| known.get(id).cloned()).collect())
    }

    fn keep_summaries(
        &self,
        read: &[(PageId, VersionId, Summary)],
        most: usize,
    ) -> Result<(), StateError> {
        // The engine's texts have no zero characters.
        let text = |text: &str| text.replace('\0', "\u{fffd}");
        let pages: Vec<i64> = read.iter().map(|(page, ..)| page.0).collect();
        let versions: Vec<i64> = read.iter().map(|(_, version, _)| version.0 as i64).collect();
        let titles: Vec<String> = read.iter().map(|(.., summary)| text(&summary.title)).collect();
        let lines: Vec<String> = read.iter().map(|(.., summary)| text(&summary.line)).collect();
        let removed: Vec<bool> = read.iter().map(|(.., summary)| summary.removed).collect();
        let previous: Vec<Option<i64>> =
            read.iter().map(|(.., summary)| summary.previous.map(|v| v.0 as i64)).collect();
        self.write_aside(|t| {
            let kept = t.execute(
                "INSERT INTO @summaries
                 SELECT DISTINCT ON (k.version) k.version, k.title, k.line, k.removed, k.previous
                 FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::boolean[],
                    $6::bigint[]) k(page, version, title, line, removed, previous)
                 WHERE EXISTS (SELECT 1 FROM @versions v
                    WHERE v.page = k.page AND v.version = k.version)
                 ON CONFLICT (version) DO UPDATE SET title = excluded.title,
                    line = excluded.line, removed = excluded.removed,
                    previous = excluded.previous",
                &[&pages, &versions, &titles, &lines, &removed, &previous],
            )?;
            t.head.summaries += kept as i64;
            let most = i64::try_from(most).unwrap_or(i64::MAX);
            // What was put in is counted, and only where that may be too much the rows themselves.
            if t.head.summaries > most {
                t.execute(
                    "DELETE FROM @summaries WHERE version IN
                        (SELECT version FROM @summaries ORDER BY version
                         LIMIT GREATEST((SELECT COUNT(*) FROM @summaries) - $1, 0))",
                    &[&(most - most / 10)],
                )?;
                let found = t.query("SELECT COUNT(*) FROM @summaries", &[])?;
                t.head.summaries = found[0].try_get(0)?;
            }
            Ok(())
        })
    }

    fn recent_visits(
        &self,
        page: PageId,
        before: Option<i64>,
        looked_at: usize,
    ) -> Result<(Vec<VisitRow>, Option<i64>), StateError> {
        self.index_once("visits_by_page", "@visits (page, id)")?;
        let found = self.read(
            &format!("{VISIT} WHERE v.page = $1 AND v.id < $2 ORDER BY v.id DESC LIMIT $3"),
            &[&page.0, &before.unwrap_or(i64::MAX), &count(looked_at)],
        )?;
        let visits = self.all(&found, visit)?;
        let next = visits.last().map(|last| last.id).filter(|_| visits.len() >= looked_at);
        Ok((visits, next))
    }
}
