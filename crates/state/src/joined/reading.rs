//! Look-ups of pages and versions, reports and changes.

use std::cmp::Reverse;

use nenrin_lang::Hint;
use nenrin_urls::{CanonicalUrl, UrlKey};

use super::{JoinedState, partition_of};
use crate::{
    ChangePortion, ChangeQuery, Changes, DayCounts, DayQuery, KindSums, OrderCurve, PageFilter,
    PageId, PageIndex, PageRecord, PathQuery, ProblemGroup, Reports, Round, RoundId, ServerRecord,
    SiteId, SiteServer, SiteSums, SiteWorth, Skips, StateError, StateStats, Summary, TreeEntry,
    VersionId, VersionIndex, VersionQuery, VersionRow, VisitFilter, VisitRow,
};

type Found = (CanonicalUrl, VersionRow);

fn time((_, row): &Found) -> (i64, VersionId) {
    (row.at_s, row.version)
}

impl PageIndex for JoinedState {
    fn pages_of(&self, urls: &[&CanonicalUrl]) -> Result<Vec<Option<PageRecord>>, StateError> {
        let mut pages = vec![None; urls.len()];
        let numbered: Vec<(usize, &CanonicalUrl)> = urls.iter().copied().enumerate().collect();
        let partition =
            |(_, url): &(usize, &CanonicalUrl)| self.partitioning.of(&url.server()).0 as usize;
        for (part, some) in self.sorted(&numbered, partition) {
            let asked: Vec<&CanonicalUrl> = some.iter().map(|(_, url)| *url).collect();
            for ((at, _), page) in some.iter().zip(part.pages_of(&asked)?) {
                pages[*at] = page;
            }
        }
        Ok(pages)
    }

    fn url_of(&self, page: PageId) -> Result<Option<CanonicalUrl>, StateError> {
        self.of_page(page).url_of(page)
    }

    fn pages(&self, filter: PageFilter) -> Result<Vec<PageRecord>, StateError> {
        self.first_of(filter.limit, |part| part.pages(filter), |page| page.id)
    }

    fn pages_by_path(&self, query: &PathQuery) -> Result<Vec<PageRecord>, StateError> {
        self.of_server(query.server).pages_by_path(query)
    }

    fn directory(&self, query: &PathQuery) -> Result<Vec<TreeEntry>, StateError> {
        self.of_server(query.server).directory(query)
    }

    fn site_servers(&self, site: SiteId, limit: usize) -> Result<Vec<SiteServer>, StateError> {
        self.first_of(limit, |part| part.site_servers(site, limit), |server| server.id)
    }
}

impl VersionIndex for JoinedState {
    fn versions(&self, key: &UrlKey, query: VersionQuery) -> Result<Vec<Found>, StateError> {
        self.first_of(query.limit, |part| part.versions(key, query), time)
    }

    fn newest_versions(
        &self,
        key: &UrlKey,
        before: (i64, VersionId),
        limit: usize,
    ) -> Result<Vec<Found>, StateError> {
        let ask = |part: &dyn crate::State| part.newest_versions(key, before, limit);
        self.first_of(limit, ask, |found| Reverse(time(found)))
    }

    fn version_as_of(&self, key: &UrlKey, at_s: i64) -> Result<Option<Found>, StateError> {
        let all = self.gather(|part| Ok(part.version_as_of(key, at_s)?.into_iter().collect()))?;
        let newest =
            all.iter().filter(|found| found.1.at_s <= at_s).max_by_key(|found| time(found));
        Ok(newest.or_else(|| all.iter().min_by_key(|found| time(found))).cloned())
    }

    fn site_as_of(
        &self,
        site: SiteId,
        at_s: i64,
        after: Option<PageId>,
        limit: usize,
    ) -> Result<Vec<(PageId, CanonicalUrl, VersionRow)>, StateError> {
        let ask = |part: &dyn crate::State| part.site_as_of(site, at_s, after, limit);
        self.first_of(limit, ask, |(page, ..)| *page)
    }

    fn urls(&self, from: &str, to: &str, limit: usize) -> Result<Vec<CanonicalUrl>, StateError> {
        let ask = |part: &dyn crate::State| part.urls(from, to, limit);
        self.first_of(limit, ask, |url| url.key())
    }

    fn version_days(
        &self,
        key: &UrlKey,
        from_day: i64,
        to_day: i64,
    ) -> Result<Vec<(i64, u64)>, StateError> {
        let ask = |part: &dyn crate::State| part.version_days(key, from_day, to_day);
        self.added(ask, |(day, _)| *day, |sum, one| sum.1 += one.1)
    }

    fn gone_times(&self, url: &CanonicalUrl) -> Result<Vec<i64>, StateError> {
        self.of_url(url).gone_times(url)
    }

    fn each_version(
        &self,
        look: &mut dyn FnMut(&CanonicalUrl, &VersionRow),
    ) -> Result<(), StateError> {
        self.parts.iter().try_for_each(|part| part.each_version(look))
    }

    fn round_began(&self, site: SiteId, after_s: i64, until_s: i64) -> Result<bool, StateError> {
        let began = self.gather(|part| Ok(vec![part.round_began(site, after_s, until_s)?]))?;
        Ok(began.contains(&true))
    }
}

impl Reports for JoinedState {
    fn visits(&self, filter: VisitFilter) -> Result<Vec<VisitRow>, StateError> {
        self.first_of(filter.limit, |part| part.visits(filter), |visit| Reverse(visit.id))
    }

    fn visits_of(
        &self,
        url: &CanonicalUrl,
        from_s: i64,
        to_s: i64,
    ) -> Result<Vec<VisitRow>, StateError> {
        self.of_url(url).visits_of(url, from_s, to_s)
    }

    fn problems(&self, site: SiteId, looked_at: usize) -> Result<Vec<ProblemGroup>, StateError> {
        let key = |group: &ProblemGroup| {
            let reason = group.reason.as_ref().map(nenrin_lang::Reason::to_json);
            (format!("{:?}", group.outcome), group.own, group.status, reason)
        };
        let add = |sum: &mut ProblemGroup, one: &ProblemGroup| {
            let count = sum.count + one.count;
            if one.last_s > sum.last_s {
                *sum = one.clone();
            }
            sum.count = count;
        };
        let mut groups = self.added(|part| part.problems(site, looked_at), key, add)?;
        groups.sort_by_key(|group| Reverse((group.count, group.last_s)));
        Ok(groups)
    }

    fn rounds(&self, site: Option<SiteId>, limit: usize) -> Result<Vec<Round>, StateError> {
        let key = |round: &Round| Reverse((round.started_s, round.id));
        self.first_of(limit, |part| part.rounds(site, limit), key)
    }

    fn skips(&self, round: RoundId) -> Result<Option<Skips>, StateError> {
        self.of_number(round.0).skips(round)
    }

    fn pulled(&self, page: PageId) -> Result<Option<Hint>, StateError> {
        self.of_page(page).pulled(page)
    }

    fn stretched(&self, limit: usize) -> Result<Vec<(ServerRecord, u32)>, StateError> {
        self.first_of(limit, |part| part.stretched(limit), |(_, percent)| Reverse(*percent))
    }

    fn days(&self, query: DayQuery) -> Result<Vec<DayCounts>, StateError> {
        self.added(
            |part| part.days(query),
            |day| day.day,
            |sum, one| {
                sum.visits += one.visits;
                sum.versions += one.versions;
                sum.problems += one.problems;
                sum.raw_bytes += one.raw_bytes;
                sum.received_bytes += one.received_bytes;
                sum.stored_bytes += one.stored_bytes;
            },
        )
    }

    fn site_sums(&self, since_day: i64) -> Result<Vec<SiteSums>, StateError> {
        self.added(
            |part| part.site_sums(since_day),
            |sums| sums.site,
            |sum, one| {
                sum.received_bytes += one.received_bytes;
                sum.stored_bytes += one.stored_bytes;
                sum.recent_stored_bytes += one.recent_stored_bytes;
                sum.recent_versions += one.recent_versions;
                sum.recent_problems += one.recent_problems;
            },
        )
    }

    fn kind_sums(&self, site: Option<SiteId>) -> Result<Vec<KindSums>, StateError> {
        self.added(
            |part| part.kind_sums(site),
            |sums| sums.kind,
            |sum, one| {
                sum.versions += one.versions;
                sum.received_bytes += one.received_bytes;
                sum.stored_bytes += one.stored_bytes;
            },
        )
    }

    fn site_worth(&self) -> Result<Vec<SiteWorth>, StateError> {
        self.added(
            |part| part.site_worth(),
            |worth| worth.site,
            |sum, one| {
                sum.estimated_pages += one.estimated_pages;
                sum.rate_micros += one.rate_micros;
                sum.confidence_percent += one.confidence_percent;
                sum.weighed_pages += one.weighed_pages;
                sum.importance_percent += one.importance_percent;
                sum.significant_versions += one.significant_versions;
            },
        )
    }

    /// Each partition has an order of its own: the curve is that of the one with most pages.
    fn order_curve(&self, site: Option<SiteId>) -> Result<OrderCurve, StateError> {
        let curves = self.gather(|part| Ok(vec![part.order_curve(site)?]))?;
        let pages = |curve: &OrderCurve| curve.best.iter().map(|group| group.pages).sum::<u64>();
        Ok(curves.into_iter().max_by_key(pages).unwrap_or_default())
    }

    fn stats(&self) -> Result<StateStats, StateError> {
        let mut all = StateStats::default();
        for part in &self.parts {
            let one = part.stats()?;
            all.sites = one.sites;
            all.servers += one.servers;
            all.pages += one.pages;
            all.visits += one.visits;
            all.versions += one.versions;
            all.raw_bytes += one.raw_bytes;
            all.file_bytes += one.file_bytes;
        }
        Ok(all)
    }
}

impl Changes for JoinedState {
    fn changes(&self, query: &ChangeQuery) -> Result<ChangePortion, StateError> {
        let portions = self.gather(|part| Ok(vec![part.changes(query)?]))?;
        // A partition may have more before the position where it stopped: what is older waits.
        let stop = portions.iter().filter_map(|portion| portion.next).max();
        let mut joined = ChangePortion { next: stop, ..ChangePortion::default() };
        for portion in portions {
            joined.looked_at += portion.looked_at;
            let is_settled =
                |change: &crate::PageChange| stop.is_none_or(|stop| change.cursor() >= stop);
            joined.changes.extend(portion.changes.into_iter().filter(is_settled));
        }
        joined.changes.sort_by_key(|change| Reverse(change.cursor()));
        if joined.changes.len() > query.limit {
            joined.changes.truncate(query.limit);
            joined.next = joined.changes.last().map(crate::PageChange::cursor);
        }
        Ok(joined)
    }

    fn index_changes(&self) -> Result<(), StateError> {
        self.each(|part| part.index_changes())
    }

    fn summaries(&self, versions: &[VersionId]) -> Result<Vec<Option<Summary>>, StateError> {
        let mut found = vec![None; versions.len()];
        for part in &self.parts {
            for (place, summary) in found.iter_mut().zip(part.summaries(versions)?) {
                *place = place.take().or(summary);
            }
        }
        Ok(found)
    }

    fn keep_summaries(
        &self,
        read: &[(PageId, VersionId, Summary)],
        most: usize,
    ) -> Result<(), StateError> {
        for (part, some) in self.sorted(read, |(page, ..)| partition_of(*page)) {
            let some: Vec<_> = some.into_iter().cloned().collect();
            part.keep_summaries(&some, most.div_ceil(self.parts.len()))?;
        }
        Ok(())
    }

    fn recent_visits(
        &self,
        page: PageId,
        before: Option<i64>,
        looked_at: usize,
    ) -> Result<(Vec<VisitRow>, Option<i64>), StateError> {
        self.of_page(page).recent_visits(page, before, looked_at)
    }
}
