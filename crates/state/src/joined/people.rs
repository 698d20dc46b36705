//! Sites, incidents, watches and upkeep. Every partition has every site, with the same numbers; what
//! the archive has once is in the first.

use std::path::Path;

use super::{JoinedState, partition_of};
use crate::{
    Incident, KeptVersion, PageId, PruneRow, Registry, Removal, RemovalRow, Site, SiteConditions,
    SiteId, StateError, Upkeep, VersionId, Watch, WatchHit, WatchId,
};

impl JoinedState {
    /// Enters sites in partitions that do not have them yet, because entering them was interrupted.
    pub fn complete_sites(&self) -> Result<(), StateError> {
        let sites = self.first().sites()?;
        for part in &self.parts[1..] {
            let has = part.sites()?.len();
            for site in sites.iter().skip(has) {
                part.add_site(&site.name, &site.conditions, site.created_s)?;
            }
        }
        Ok(())
    }

    /// The first pages of what partitions list by page.
    fn by_page<T>(mut listed: Vec<T>, pages: usize, page: impl Fn(&T) -> PageId) -> Vec<T> {
        listed.sort_by_key(&page);
        let (mut seen, mut last) = (0, None);
        let mut is_wanted = |one: &T| {
            let here = Some(page(one));
            seen += usize::from(here != last);
            last = here;
            seen <= pages
        };
        let end = listed.iter().position(|one| !is_wanted(one)).unwrap_or(listed.len());
        listed.truncate(end);
        listed
    }
}

impl Registry for JoinedState {
    fn add_site(
        &self,
        name: &str,
        conditions: &SiteConditions,
        now_s: i64,
    ) -> Result<Site, StateError> {
        self.complete_sites()?;
        let site = self.first().add_site(name, conditions, now_s)?;
        self.complete_sites()?;
        let is_it = |known: &Site| known.id == site.id;
        Ok(self.sites()?.into_iter().find(is_it).unwrap_or(site))
    }

    fn set_site(
        &self,
        site: SiteId,
        conditions: &SiteConditions,
        now_s: i64,
    ) -> Result<(), StateError> {
        self.each(|part| part.set_site(site, conditions, now_s))
    }

    fn rename_site(&self, site: SiteId, name: &str) -> Result<(), StateError> {
        self.each(|part| part.rename_site(site, name))
    }

    fn pause_site(&self, site: SiteId, paused: bool) -> Result<(), StateError> {
        self.each(|part| part.pause_site(site, paused))
    }

    fn remove_site(
        &self,
        site: SiteId,
        removal: Option<Removal>,
        reason: &str,
        now_s: i64,
    ) -> Result<(), StateError> {
        self.each(|part| part.remove_site(site, removal, reason, now_s))
    }

    fn removals(&self) -> Result<Vec<RemovalRow>, StateError> {
        self.first().removals()
    }

    fn sites(&self) -> Result<Vec<Site>, StateError> {
        let known = self.first().sites()?;
        let mut sites = self.added(
            |part| part.sites(),
            |site| site.id,
            |sum, one| {
                sum.counts.pages += one.counts.pages;
                sum.counts.visits += one.counts.visits;
                sum.counts.versions += one.counts.versions;
                sum.counts.problems += one.counts.problems;
                sum.counts.raw_bytes += one.counts.raw_bytes;
                sum.collected_s = sum.collected_s.max(one.collected_s);
                sum.round_open |= one.round_open;
            },
        )?;
        sites.retain(|site| known.iter().any(|known| known.id == site.id));
        Ok(sites)
    }

    fn keep_incidents(&self, incidents: &[Incident]) -> Result<(), StateError> {
        self.first().keep_incidents(incidents)
    }

    fn end_incidents(&self, ids: &[String], now_s: i64) -> Result<(), StateError> {
        self.first().end_incidents(ids, now_s)
    }

    fn incidents(&self) -> Result<Vec<Incident>, StateError> {
        self.first().incidents()
    }

    fn keep_watch(&self, watch: &Watch) -> Result<Watch, StateError> {
        self.first().keep_watch(watch)
    }

    fn drop_watch(&self, watch: WatchId) -> Result<bool, StateError> {
        self.first().drop_watch(watch)
    }

    fn watches(&self) -> Result<Vec<Watch>, StateError> {
        self.first().watches()
    }

    fn keep_watch_hits(&self, hits: &[WatchHit]) -> Result<(), StateError> {
        self.first().keep_watch_hits(hits)
    }

    fn watch_hits(&self) -> Result<Vec<WatchHit>, StateError> {
        self.first().watch_hits()
    }
}

impl Upkeep for JoinedState {
    fn copy_to(&self, path: &Path) -> Result<(), StateError> {
        self.first().copy_to(path)
    }

    fn denied_versions(
        &self,
        site: SiteId,
        after: Option<PageId>,
        pages: usize,
    ) -> Result<Vec<(PageId, VersionId)>, StateError> {
        let all = self.gather(|part| part.denied_versions(site, after, pages))?;
        Ok(Self::by_page(all, pages, |(page, _)| *page))
    }

    fn drop_versions(&self, pages: &[PageId]) -> Result<u64, StateError> {
        let mut dropped = 0;
        for (part, some) in self.sorted(pages, |page| partition_of(*page)) {
            dropped += part.drop_versions(&some.into_iter().copied().collect::<Vec<_>>())?;
        }
        Ok(dropped)
    }

    fn site_versions(
        &self,
        site: SiteId,
        after: Option<PageId>,
        pages: usize,
    ) -> Result<Vec<KeptVersion>, StateError> {
        let all = self.gather(|part| part.site_versions(site, after, pages))?;
        Ok(Self::by_page(all, pages, |version| version.page))
    }

    fn prune(&self, row: &PruneRow, versions: &[KeptVersion]) -> Result<u64, StateError> {
        let mut pruned = 0;
        for (part, some) in self.sorted(versions, |version| partition_of(version.page)) {
            pruned += part.prune(row, &some.into_iter().cloned().collect::<Vec<_>>())?;
        }
        Ok(pruned)
    }

    fn pruning(&self, limit: usize) -> Result<Vec<VersionId>, StateError> {
        self.first_of(limit, |part| part.pruning(limit), |version| *version)
    }

    fn pruned(&self, versions: &[VersionId]) -> Result<(), StateError> {
        self.each(|part| part.pruned(versions))
    }

    fn drop_lost(&self, versions: &[VersionId], why: &str, at_s: i64) -> Result<u64, StateError> {
        let mut lost = 0;
        for part in &self.parts {
            lost += part.drop_lost(versions, why, at_s)?;
        }
        Ok(lost)
    }

    fn prunes(&self) -> Result<Vec<PruneRow>, StateError> {
        self.first_of(10_000, |part| part.prunes(), |row| std::cmp::Reverse(row.at_s))
    }

    fn check(&self) -> Result<Vec<String>, StateError> {
        let mut wrong = Vec::new();
        for (number, part) in self.parts.iter().enumerate() {
            let found = part.check()?;
            wrong.extend(found.into_iter().map(|what| format!("partition {number}: {what}")));
        }
        Ok(wrong)
    }

    fn set_clock_back(&self, now_s: i64) -> Result<Option<u64>, StateError> {
        let mut pages = None;
        for part in &self.parts {
            if let Some(more) = part.set_clock_back(now_s)? {
                pages = Some(pages.unwrap_or(0) + more);
            }
        }
        Ok(pages)
    }

    fn tidy_up(&self) -> Result<(), StateError> {
        self.each(|part| part.tidy_up())
    }
}
