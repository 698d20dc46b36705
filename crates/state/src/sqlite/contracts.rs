//! The contracts, implemented by this engine.

use std::{
    path::Path,
    sync::{PoisonError, atomic::Ordering},
};

use nenrin_lang::Hint;
use nenrin_urls::{CanonicalUrl, UrlKey};

use super::{
    changes, check, clock, commit, due, engine::SqliteState, incidents, joint, links, log, lost,
    mail, overview, prune, read, received, removal, schedule, settings, sites, structure, times,
    watches, worth,
};
use crate::{
    Change, ChangePortion, ChangeQuery, Changes, Committed, CrawlState, DayCounts, DayQuery,
    Division, DueLoad, DuePage, DueQuery, Epoch, FoundPage, Incident, KeptVersion, KindSums, Nth,
    NumberedMail, OrderCurve, PageFilter, PageId, PageIndex, PageLinks, PageRecord, PartitionId,
    PartitionState, Partitioning, PathQuery, ProblemGroup, PruneRow, Received, Registry, Removal,
    RemovalRow, Reports, Round, RoundId, ServerId, ServerRecord, Site, SiteConditions, SiteId,
    SitePages, SiteServer, SiteSums, SiteWorth, Skips, StateError, StateStats, Summary, TreeEntry,
    Upkeep, VersionId, VersionIndex, VersionQuery, VersionRow, VisitFilter, VisitRow, Watch,
    WatchHit, WatchId,
};

impl SqliteState {
    /// Commits, if the partition is still held under this epoch.
    fn commit_if(&self, epoch: Option<Epoch>, changes: &[Change]) -> Result<Committed, StateError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut fresh = Vec::new();
        let committed = self.write("written", |t| {
            if let Some(Epoch(held)) = epoch {
                let Epoch(current) = settings::epoch(t)?;
                if held != current {
                    return Err(StateError::Superseded { held, current }.into());
                }
            }
            commit::commit(t, self.settings, changes, &known, &mut fresh)
        })?;
        for (key, depth, place) in fresh {
            known.learn(key, depth, place);
        }
        Ok(committed)
    }
}

impl PageIndex for SqliteState {
    fn pages_of(&self, urls: &[&CanonicalUrl]) -> Result<Vec<Option<PageRecord>>, StateError> {
        self.read(|c| {
            if urls.len() == 1 {
                return read::pages_of(c, urls);
            }
            // One look at the database instead of two for each.
            let t = c.unchecked_transaction()?;
            read::pages_of(&t, urls)
        })
    }

    fn url_of(&self, page: PageId) -> Result<Option<CanonicalUrl>, StateError> {
        self.read(|c| structure::url_of(c, page))
    }

    fn pages(&self, filter: PageFilter) -> Result<Vec<PageRecord>, StateError> {
        self.read(|c| read::pages(c, filter))
    }

    fn pages_by_path(&self, query: &PathQuery) -> Result<Vec<PageRecord>, StateError> {
        self.read(|c| overview::pages_by_path(c, query))
    }

    fn directory(&self, query: &PathQuery) -> Result<Vec<TreeEntry>, StateError> {
        self.read(|c| overview::directory(c, query))
    }

    fn site_servers(&self, site: SiteId, limit: usize) -> Result<Vec<SiteServer>, StateError> {
        self.read(|c| overview::site_servers(c, site, limit))
    }
}

impl CrawlState for SqliteState {
    fn commit(&self, changes: &[Change]) -> Result<Committed, StateError> {
        self.commit_if(None, changes)
    }

    fn begin_round(&self, site: SiteId, now_s: i64) -> Result<Round, StateError> {
        self.write("written", |t| sites::begin_round(t, site, now_s))
    }

    fn load_round(
        &self,
        round: &Round,
        after: Option<PageId>,
        limit: usize,
    ) -> Result<Vec<DuePage>, StateError> {
        self.read(|c| read::load_round(c, round, after, limit))
    }

    fn load_pages(&self, round: &Round, pages: &[PageId]) -> Result<Vec<DuePage>, StateError> {
        self.read(|c| structure::load_pages(c, round, pages))
    }

    fn load_due(&self, query: &DueQuery) -> Result<DueLoad, StateError> {
        let last_coarse = due::coarse(self.settings.bucket_s, query.until_s);
        loop {
            let (load, laid_out) = self.read(|c| {
                Ok((schedule::load_due(c, self.settings.bucket_s, query)?, due::laid_out(c)?))
            })?;
            if query.new || load.next.is_some() || laid_out >= last_coarse {
                return Ok(load);
            }
            // Every page in a bucket was seen, and more may be loaded.
            while !self
                .write("written", |t| Ok(due::lay_out(t, self.settings.bucket_s, last_coarse)?))?
            {
            }
        }
    }

    fn load_found(&self, places: &[Nth]) -> Result<Vec<DuePage>, StateError> {
        self.read(|c| links::load_found(c, places))
    }

    fn found(&self, after: Nth, limit: usize) -> Result<Vec<FoundPage>, StateError> {
        self.read(|c| links::found(c, after, limit))
    }

    fn links(&self, places: &[Nth]) -> Result<Vec<PageLinks>, StateError> {
        self.read(|c| links::links(c, places, self.settings.partitioning.count > 1))
    }

    fn order(&self) -> Result<Vec<u8>, StateError> {
        self.read(links::order)
    }

    fn shared(&self, site: SiteId) -> Result<Vec<u8>, StateError> {
        self.read(|c| schedule::shared(c, site))
    }

    fn visits_on(&self, site: SiteId, day: i64) -> Result<u64, StateError> {
        self.read(|c| overview::visits_on(c, site, day))
    }

    fn site_pages(&self, site: SiteId) -> Result<SitePages, StateError> {
        self.read_long(|c| structure::site_pages(c, site))
    }

    fn servers(&self, ids: &[ServerId]) -> Result<Vec<ServerRecord>, StateError> {
        self.read(|c| read::servers(c, ids))
    }

    fn bucket_s(&self) -> i64 {
        self.settings.bucket_s
    }
}

impl PartitionState for SqliteState {
    fn partition(&self) -> (Partitioning, PartitionId) {
        (self.settings.partitioning, self.settings.own)
    }

    fn take_over(&self) -> Result<Epoch, StateError> {
        self.write("written", |t| Ok(settings::take_over(t)?))
    }

    fn commit_under(&self, epoch: Epoch, changes: &[Change]) -> Result<Committed, StateError> {
        self.commit_if(Some(epoch), changes)
    }

    fn outbox(
        &self,
        to: PartitionId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<NumberedMail>, StateError> {
        self.read_divided(|c| mail::outbox(c, to, after, limit))
    }

    fn mail_read(&self, from: PartitionId) -> Result<u64, StateError> {
        self.read_divided(|c| mail::last_read(c, from))
    }

    fn received(&self) -> Result<Vec<Received>, StateError> {
        self.read_divided(received::all)
    }

    fn may_begin_round(&self, site: SiteId) -> Result<bool, StateError> {
        self.read(|c| joint::may_begin_round(c, &self.settings, site))
    }

    fn division(&self, site: Option<SiteId>, day: i64) -> Result<Option<Division>, StateError> {
        self.read(|c| joint::division(c, &self.settings, site, day))
    }
}

impl VersionIndex for SqliteState {
    fn versions(
        &self,
        key: &UrlKey,
        query: VersionQuery,
    ) -> Result<Vec<(CanonicalUrl, VersionRow)>, StateError> {
        self.read(|c| read::versions(c, key, query))
    }

    fn newest_versions(
        &self,
        key: &UrlKey,
        before: (i64, VersionId),
        limit: usize,
    ) -> Result<Vec<(CanonicalUrl, VersionRow)>, StateError> {
        self.read(|c| overview::newest_versions(c, key, before, limit))
    }

    fn version_as_of(
        &self,
        key: &UrlKey,
        at_s: i64,
    ) -> Result<Option<(CanonicalUrl, VersionRow)>, StateError> {
        self.read(|c| read::version_as_of(c, key, at_s))
    }

    fn site_as_of(
        &self,
        site: SiteId,
        at_s: i64,
        after: Option<PageId>,
        limit: usize,
    ) -> Result<Vec<(PageId, CanonicalUrl, VersionRow)>, StateError> {
        self.read(|c| read::site_as_of(c, site, at_s, after, limit))
    }

    fn urls(&self, from: &str, to: &str, limit: usize) -> Result<Vec<CanonicalUrl>, StateError> {
        self.read(|c| read::urls(c, from, to, limit))
    }

    fn version_days(
        &self,
        key: &UrlKey,
        from_day: i64,
        to_day: i64,
    ) -> Result<Vec<(i64, u64)>, StateError> {
        self.read(|c| overview::version_days(c, key, from_day, to_day))
    }

    fn each_version(
        &self,
        look: &mut dyn FnMut(&CanonicalUrl, &VersionRow),
    ) -> Result<(), StateError> {
        self.read(|c| read::each_version(c, look))
    }

    fn gone_times(&self, url: &CanonicalUrl) -> Result<Vec<i64>, StateError> {
        self.read(|c| read::gone_times(c, url))
    }

    fn round_began(&self, site: SiteId, after_s: i64, until_s: i64) -> Result<bool, StateError> {
        self.read(|c| read::round_began(c, site, after_s, until_s))
    }
}

impl Registry for SqliteState {
    fn add_site(
        &self,
        name: &str,
        conditions: &SiteConditions,
        now_s: i64,
    ) -> Result<Site, StateError> {
        self.write("written", |t| sites::add_site(t, self.settings, name, conditions, now_s))
    }

    fn set_site(
        &self,
        site: SiteId,
        conditions: &SiteConditions,
        now_s: i64,
    ) -> Result<(), StateError> {
        self.write("written", |t| sites::set_site(t, self.settings, site, conditions, now_s))
    }

    fn rename_site(&self, site: SiteId, name: &str) -> Result<(), StateError> {
        self.write("written", |t| sites::rename_site(t, site, name))
    }

    fn pause_site(&self, site: SiteId, paused: bool) -> Result<(), StateError> {
        self.write("written", |t| sites::pause_site(t, site, paused))
    }

    fn remove_site(
        &self,
        site: SiteId,
        removal: Option<Removal>,
        reason: &str,
        now_s: i64,
    ) -> Result<(), StateError> {
        self.write("written", |t| removal::remove(t, site, removal, reason, now_s))
    }

    fn removals(&self) -> Result<Vec<RemovalRow>, StateError> {
        self.read(removal::log)
    }

    fn sites(&self) -> Result<Vec<Site>, StateError> {
        self.read(read::sites)
    }

    fn keep_incidents(&self, incidents: &[Incident]) -> Result<(), StateError> {
        self.write("written", |t| Ok(incidents::keep(t, incidents)?))
    }

    fn end_incidents(&self, ids: &[String], now_s: i64) -> Result<(), StateError> {
        self.write("written", |t| Ok(incidents::end(t, ids, now_s)?))
    }

    fn incidents(&self) -> Result<Vec<Incident>, StateError> {
        self.read(incidents::all)
    }

    fn keep_watch(&self, watch: &Watch) -> Result<Watch, StateError> {
        self.write("written", |t| Ok(watches::keep(t, watch)?))
    }

    fn drop_watch(&self, watch: WatchId) -> Result<bool, StateError> {
        self.write("written", |t| Ok(watches::drop(t, watch)?))
    }

    fn watches(&self) -> Result<Vec<Watch>, StateError> {
        self.read(watches::all)
    }

    fn keep_watch_hits(&self, hits: &[WatchHit]) -> Result<(), StateError> {
        self.write("written", |t| Ok(watches::keep_hits(t, hits)?))
    }

    fn watch_hits(&self) -> Result<Vec<WatchHit>, StateError> {
        self.read(watches::hits)
    }
}

impl Upkeep for SqliteState {
    fn denied_versions(
        &self,
        site: SiteId,
        after: Option<PageId>,
        pages: usize,
    ) -> Result<Vec<(PageId, VersionId)>, StateError> {
        self.read(|c| removal::denied_versions(c, site, after, pages))
    }

    fn drop_versions(&self, pages: &[PageId]) -> Result<u64, StateError> {
        self.write("written", |t| Ok(removal::drop_versions(t, pages)?))
    }

    fn site_versions(
        &self,
        site: SiteId,
        after: Option<PageId>,
        pages: usize,
    ) -> Result<Vec<KeptVersion>, StateError> {
        self.read(|c| prune::site_versions(c, site, after, pages))
    }

    fn prune(&self, row: &PruneRow, versions: &[KeptVersion]) -> Result<u64, StateError> {
        self.write("written", |t| Ok(prune::prune(t, row, versions)?))
    }

    fn pruning(&self, limit: usize) -> Result<Vec<VersionId>, StateError> {
        self.read(|c| prune::pruning(c, limit))
    }

    fn pruned(&self, versions: &[VersionId]) -> Result<(), StateError> {
        self.write("written", |t| Ok(prune::pruned(t, versions)?))
    }

    fn drop_lost(&self, versions: &[VersionId], why: &str, at_s: i64) -> Result<u64, StateError> {
        self.write("written", |t| Ok(lost::drop_lost(t, versions, why, at_s)?))
    }

    fn prunes(&self) -> Result<Vec<PruneRow>, StateError> {
        self.read(prune::log)
    }

    fn check(&self) -> Result<Vec<String>, StateError> {
        self.read(|c| check::check(c, self.settings.bucket_s))
    }

    fn set_clock_back(&self, now_s: i64) -> Result<Option<u64>, StateError> {
        let bucket_s = self.settings.bucket_s;
        self.write("written", |t| Ok(clock::set_back(t, bucket_s, now_s)?))
    }

    fn tidy_up(&self) -> Result<(), StateError> {
        self.shrink()
    }

    fn copy_to(&self, path: &Path) -> Result<(), StateError> {
        self.copy(path)
    }
}

impl Reports for SqliteState {
    fn visits(&self, filter: VisitFilter) -> Result<Vec<VisitRow>, StateError> {
        self.read(|c| log::log(c, filter))
    }

    fn visits_of(
        &self,
        url: &CanonicalUrl,
        from_s: i64,
        to_s: i64,
    ) -> Result<Vec<VisitRow>, StateError> {
        if !self.has_visits_by_page.load(Ordering::Relaxed) {
            match self.write("written", |t| Ok(log::index_pages(t)?)) {
                Err(error) if error.is_of_writing() => self.read(log::index_pages_in_memory)?,
                other => other?,
            }
            self.has_visits_by_page.store(true, Ordering::Relaxed);
        }
        self.read(|c| log::visits_of(c, url, from_s, to_s))
    }

    fn problems(&self, site: SiteId, looked_at: usize) -> Result<Vec<ProblemGroup>, StateError> {
        self.read(|c| log::problems(c, site, looked_at))
    }

    fn rounds(&self, site: Option<SiteId>, limit: usize) -> Result<Vec<Round>, StateError> {
        self.read(|c| read::rounds(c, site, limit))
    }

    fn skips(&self, round: RoundId) -> Result<Option<Skips>, StateError> {
        self.read(|c| structure::skips(c, round))
    }

    fn pulled(&self, page: PageId) -> Result<Option<Hint>, StateError> {
        self.read(|c| times::pulled(c, page))
    }

    fn stretched(&self, limit: usize) -> Result<Vec<(ServerRecord, u32)>, StateError> {
        self.read(|c| schedule::stretched(c, limit))
    }

    fn days(&self, query: DayQuery) -> Result<Vec<DayCounts>, StateError> {
        self.read(|c| overview::days(c, query))
    }

    fn site_sums(&self, since_day: i64) -> Result<Vec<SiteSums>, StateError> {
        self.read(|c| overview::site_sums(c, since_day))
    }

    fn kind_sums(&self, site: Option<SiteId>) -> Result<Vec<KindSums>, StateError> {
        self.read(|c| overview::kind_sums(c, site))
    }

    fn site_worth(&self) -> Result<Vec<SiteWorth>, StateError> {
        self.read(worth::site_worth)
    }

    fn order_curve(&self, site: Option<SiteId>) -> Result<OrderCurve, StateError> {
        self.read(|c| worth::order_curve(c, site))
    }

    fn stats(&self) -> Result<StateStats, StateError> {
        self.read(read::stats)
    }
}

impl Changes for SqliteState {
    fn changes(&self, query: &ChangeQuery) -> Result<ChangePortion, StateError> {
        self.read(|c| changes::changes(c, query))
    }

    fn index_changes(&self) -> Result<(), StateError> {
        if self.read(changes::has_index)? {
            return Ok(());
        }
        self.write("written", |t| Ok(changes::index(t)?))
    }

    fn summaries(&self, versions: &[VersionId]) -> Result<Vec<Option<Summary>>, StateError> {
        self.read(|c| changes::summaries(c, versions))
    }

    fn keep_summaries(
        &self,
        read: &[(PageId, VersionId, Summary)],
        most: usize,
    ) -> Result<(), StateError> {
        self.write("written", |t| Ok(changes::keep_summaries(t, read, most)?))
    }

    fn recent_visits(
        &self,
        page: PageId,
        before: Option<i64>,
        looked_at: usize,
    ) -> Result<(Vec<VisitRow>, Option<i64>), StateError> {
        self.read(|c| log::recent_visits(c, page, before, looked_at))
    }
}
