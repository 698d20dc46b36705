//! The log of visits, rounds, sums and curves.

use std::collections::{BTreeMap, btree_map::Entry};

use nenrin_lang::{Hint, Reason};
use nenrin_urls::CanonicalUrl;
use tokio_postgres::Row;

use super::{
    engine::PostgresState,
    rows::{self, Read, Unreadable, count, get, number, unsigned},
};
use crate::{
    BodyKind, DayCounts, DayQuery, KindSums, OrderCurve, Outcome, PageId, ProblemGroup, Registry,
    Reports, Round, RoundId, ServerRecord, SiteId, SiteSums, SiteWorth, Skips, StateError,
    StateStats, VisitFilter, VisitRow, WorthGroup, rules::ALL_SITES,
};

/// The columns that [`visit`] reads, and their tables.
pub(super) const VISIT: &str = "SELECT v.id, v.at_s, s.name || p.path, v.site, v.outcome, \
    v.status, v.detail, v.elapsed_ms, v.received_bytes FROM @visits v \
    JOIN @pages p ON p.id = v.page JOIN @servers s ON s.id = (p.id >> 39)::integer";

pub(super) fn visit(row: &Row) -> Read<VisitRow> {
    let unknown = || Unreadable::Value("a visit has no outcome".to_owned());
    Ok(VisitRow {
        id: get(row, 0)?,
        at_s: get(row, 1)?,
        url: rows::url(row, 2)?,
        site: SiteId(number(row, 3)?),
        outcome: rows::outcome(row, 4)?.ok_or_else(unknown)?,
        status: number(row, 5)? as u16,
        reason: get::<Option<&str>>(row, 6)?.and_then(Reason::from_json),
        elapsed_ms: unsigned(row, 7)? as u32,
        received_bytes: unsigned(row, 8)?,
    })
}

fn worth_groups(
    state: &PostgresState,
    site: Option<SiteId>,
    best: bool,
) -> Result<Vec<WorthGroup>, StateError> {
    let site = site.map_or(ALL_SITES, |site| site.0) as i32;
    let found = state.read(
        "SELECT pages, importance FROM @worth_groups
         WHERE site = $1 AND best = $2 AND pages > 0 ORDER BY grp",
        &[&site, &best],
    )?;
    state.all(&found, |row| {
        Ok(WorthGroup { pages: unsigned(row, 0)?, importance_percent: unsigned(row, 1)? })
    })
}

impl Reports for PostgresState {
    fn visits(&self, filter: VisitFilter) -> Result<Vec<VisitRow>, StateError> {
        let before = filter.before.unwrap_or(i64::MAX);
        let outcome = filter.outcome.map(rows::outcome_number);
        let mut conditions = vec!["v.id < $1".to_owned()];
        if let Some(site) = filter.site {
            conditions.push(format!("v.site = {}", site.0));
        }
        if let Some(outcome) = outcome {
            conditions.push(format!("v.outcome = {outcome}"));
        }
        let sql = format!("{VISIT} WHERE {} ORDER BY v.id DESC LIMIT $2", conditions.join(" AND "));
        let found = self.read(&sql, &[&before, &count(filter.limit)])?;
        self.all(&found, visit)
    }

    fn visits_of(
        &self,
        url: &CanonicalUrl,
        from_s: i64,
        to_s: i64,
    ) -> Result<Vec<VisitRow>, StateError> {
        self.index_once("visits_by_page", "@visits (page, id)")?;
        let Some(page) = self.find(url)? else { return Ok(Vec::new()) };
        let found = self.read(
            &format!(
                "{VISIT} WHERE v.page = $1 AND v.at_s BETWEEN $2 AND $3 ORDER BY v.at_s, v.id"
            ),
            &[&page.0, &from_s, &to_s],
        )?;
        self.all(&found, visit)
    }

    fn problems(&self, site: SiteId, looked_at: usize) -> Result<Vec<ProblemGroup>, StateError> {
        let sites = self.sites()?;
        let Some(site) = sites.into_iter().find(|known| known.id == site) else {
            return Ok(Vec::new());
        };
        type Cause = (i16, u16, Option<String>);
        let mut by_cause: BTreeMap<(Cause, bool), ProblemGroup> = BTreeMap::new();
        for outcome in [Outcome::Gone, Outcome::Refused, Outcome::Failed] {
            // By server, whose name says whether it is the site's own.
            let found = self.read(
                "SELECT g.status, g.detail, g.count, g.last_s, s.name || p.path
                 FROM (SELECT t.status, t.detail, COUNT(*) AS count, MAX(t.at_s) AS last_s,
                        (array_agg(t.page ORDER BY t.id DESC))[1] AS page
                    FROM (SELECT * FROM @visits v WHERE v.outcome = $1 AND v.outcome >= 3
                        AND v.site = $2 ORDER BY v.id DESC LIMIT $3) t
                    GROUP BY t.status, t.detail, t.page >> 39) g
                 JOIN @pages p ON p.id = g.page JOIN @servers s ON s.id = (p.id >> 39)::integer",
                &[&rows::outcome_number(outcome), &(site.id.0 as i32), &count(looked_at)],
            )?;
            let groups = self.all(&found, |row| {
                let detail: Option<String> = get(row, 1)?;
                let last_url = rows::url(row, 4)?;
                let group = ProblemGroup {
                    outcome,
                    own: site.conditions.is_own(&last_url),
                    status: number(row, 0)? as u16,
                    reason: detail.as_deref().and_then(Reason::from_json),
                    count: unsigned(row, 2)?,
                    last_s: get(row, 3)?,
                    last_url,
                };
                Ok(((rows::outcome_number(outcome), group.status, detail), group))
            })?;
            for (cause, group) in groups {
                match by_cause.entry((cause, group.own)) {
                    Entry::Vacant(free) => drop(free.insert(group)),
                    Entry::Occupied(mut known) => {
                        let count = known.get().count + group.count;
                        if group.last_s > known.get().last_s {
                            known.insert(group);
                        }
                        known.get_mut().count = count;
                    }
                }
            }
        }
        let mut groups: Vec<ProblemGroup> = by_cause.into_values().collect();
        groups.sort_by_key(|group| std::cmp::Reverse((group.count, group.last_s)));
        Ok(groups)
    }

    fn rounds(&self, site: Option<SiteId>, limit: usize) -> Result<Vec<Round>, StateError> {
        let site = site.map(|site| site.0 as i32);
        let found = self.read(
            &format!(
                "SELECT {} FROM @rounds WHERE $1::integer IS NULL OR site = $1
                 ORDER BY id DESC LIMIT $2",
                rows::ROUND
            ),
            &[&site, &count(limit)],
        )?;
        self.all(&found, rows::round)
    }

    fn skips(&self, round: RoundId) -> Result<Option<Skips>, StateError> {
        let found = self.read("SELECT reasons FROM @skips WHERE round = $1", &[&round.0])?;
        Ok(self.all(&found, |row| rows::json(row, 0))?.pop())
    }

    fn pulled(&self, page: PageId) -> Result<Option<Hint>, StateError> {
        let found = self.read("SELECT pulled FROM @pages WHERE id = $1", &[&page.0])?;
        let text: Option<String> = self.one(&found, |row| get(row, 0))?;
        Ok(text.as_deref().and_then(Hint::from_json))
    }

    fn stretched(&self, limit: usize) -> Result<Vec<(ServerRecord, u32)>, StateError> {
        let found = self.read(
            &format!(
                "SELECT {} FROM @servers s WHERE s.stretch_percent > 100
                 ORDER BY s.stretch_percent DESC LIMIT $1",
                rows::SERVER
            ),
            &[&count(limit)],
        )?;
        let servers = self.all(&found, rows::server)?;
        Ok(servers
            .into_iter()
            .map(|server| {
                let percent = server.stretch_percent;
                (server, percent)
            })
            .collect())
    }

    fn days(&self, query: DayQuery) -> Result<Vec<DayCounts>, StateError> {
        let site = query.site.map_or(ALL_SITES, |site| site.0) as i32;
        let found = self.read(
            "SELECT day, visits, versions, problems, raw_bytes, received_bytes, stored_bytes
             FROM @days WHERE site = $1 AND day BETWEEN $2 AND $3 ORDER BY day",
            &[&site, &query.from_day, &query.to_day],
        )?;
        self.all(&found, |row| {
            Ok(DayCounts {
                day: get(row, 0)?,
                visits: unsigned(row, 1)?,
                versions: unsigned(row, 2)?,
                problems: unsigned(row, 3)?,
                raw_bytes: unsigned(row, 4)?,
                received_bytes: unsigned(row, 5)?,
                stored_bytes: unsigned(row, 6)?,
            })
        })
    }

    fn site_sums(&self, since_day: i64) -> Result<Vec<SiteSums>, StateError> {
        let found = self.read(
            "SELECT s.site, s.received_bytes, s.stored_bytes,
                COALESCE(SUM(d.stored_bytes), 0)::bigint, COALESCE(SUM(d.versions), 0)::bigint,
                COALESCE(SUM(d.problems), 0)::bigint
             FROM @site_sums s LEFT JOIN @days d ON d.site = s.site AND d.day >= $1
             GROUP BY s.site, s.received_bytes, s.stored_bytes ORDER BY s.site",
            &[&since_day],
        )?;
        self.all(&found, |row| {
            Ok(SiteSums {
                site: SiteId(number(row, 0)?),
                received_bytes: unsigned(row, 1)?,
                stored_bytes: unsigned(row, 2)?,
                recent_stored_bytes: unsigned(row, 3)?,
                recent_versions: unsigned(row, 4)?,
                recent_problems: unsigned(row, 5)?,
            })
        })
    }

    fn kind_sums(&self, site: Option<SiteId>) -> Result<Vec<KindSums>, StateError> {
        let site = site.map_or(ALL_SITES, |site| site.0) as i32;
        let found = self.read(
            "SELECT kind, versions, received_bytes, stored_bytes FROM @kind_sums WHERE site = $1
             ORDER BY kind",
            &[&site],
        )?;
        self.all(&found, |row| {
            let kind = BodyKind::ALL.get(get::<i16>(row, 0)? as usize).copied();
            Ok(KindSums {
                kind: kind.unwrap_or(BodyKind::Other),
                versions: unsigned(row, 1)?,
                received_bytes: unsigned(row, 2)?,
                stored_bytes: unsigned(row, 3)?,
            })
        })
    }

    fn site_worth(&self) -> Result<Vec<SiteWorth>, StateError> {
        let found = self.read(
            "SELECT site, estimated, rate, sure, weighed, importance, significant
             FROM @site_worth WHERE site > 0 ORDER BY site",
            &[],
        )?;
        self.all(&found, |row| {
            Ok(SiteWorth {
                site: SiteId(number(row, 0)?),
                estimated_pages: unsigned(row, 1)?,
                rate_micros: unsigned(row, 2)?,
                confidence_percent: unsigned(row, 3)?,
                weighed_pages: unsigned(row, 4)?,
                importance_percent: unsigned(row, 5)?,
                significant_versions: unsigned(row, 6)?,
            })
        })
    }

    fn order_curve(&self, site: Option<SiteId>) -> Result<OrderCurve, StateError> {
        let collected = worth_groups(self, site, false)?;
        Ok(OrderCurve { collected, best: worth_groups(self, site, true)? })
    }

    fn stats(&self) -> Result<StateStats, StateError> {
        let found = self.read(
            "SELECT COUNT(*), COALESCE(SUM(visits), 0)::bigint,
                COALESCE(SUM(versions), 0)::bigint, COALESCE(SUM(raw_bytes), 0)::bigint,
                (SELECT COUNT(*) FROM @servers), (SELECT pages FROM @partition),
                (SELECT COALESCE(SUM(pg_total_relation_size(c.oid)), 0)::bigint
                 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                 WHERE n.nspname = $1 AND c.relkind = 'r')
             FROM @sites",
            &[&self.schema],
        )?;
        self.one(&found, |row| {
            Ok(StateStats {
                sites: unsigned(row, 0)?,
                visits: unsigned(row, 1)?,
                versions: unsigned(row, 2)?,
                raw_bytes: unsigned(row, 3)?,
                servers: unsigned(row, 4)?,
                pages: unsigned(row, 5)?,
                file_bytes: unsigned(row, 6)?,
            })
        })
    }
}
