//! The sites as they are registered, with what this process found out about them since.

use std::collections::{BTreeMap, BTreeSet};

use nenrin_state::{DuePage, ScheduleBy, Site, SiteConditions, SiteId};
use nenrin_urls::{CanonicalUrl, Server};

/// The sites that are collected.
#[derive(Debug, Default)]
pub(crate) struct Sites {
    known: BTreeMap<SiteId, Site>,
    /// Sites that have reached their quota.
    full: BTreeSet<SiteId>,
}

impl Sites {
    /// Takes the sites as the state has them now.
    pub(crate) fn replace(&mut self, sites: Vec<Site>) {
        self.known = sites.into_iter().map(|site| (site.id, site)).collect();
    }

    pub(crate) fn get(&self, site: SiteId) -> Option<&Site> {
        self.known.get(&site)
    }

    pub(crate) fn conditions(&self, site: SiteId) -> Option<&SiteConditions> {
        self.get(site).map(|site| &site.conditions)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Site> {
        self.known.values()
    }

    pub(crate) fn is_full(&self, site: SiteId) -> bool {
        self.full.contains(&site)
    }

    /// Other sites than before have reached their quota. Returns those for which that changed.
    pub(crate) fn set_full(&mut self, sites: BTreeSet<SiteId>) -> Vec<SiteId> {
        let before = std::mem::replace(&mut self.full, sites);
        before.symmetric_difference(&self.full).copied().collect()
    }

    /// A round of a site began; returns the site if it is still registered.
    pub(crate) fn round_began(&mut self, site: SiteId, started_s: i64) -> Option<&Site> {
        let site = self.known.get_mut(&site)?;
        site.collected_s = Some(started_s);
        Some(site)
    }

    pub(crate) fn round_ended(&mut self, site: SiteId) {
        if let Some(site) = self.known.get_mut(&site) {
            site.round_open = false;
        }
    }

    /// A top page was redirected: its target is a top page as well.
    pub(crate) fn add_tops(&mut self, site: SiteId, tops: &[CanonicalUrl]) {
        let Some(site) = self.known.get_mut(&site) else { return };
        for top in tops {
            if !site.conditions.tops.contains(top) {
                site.conditions.tops.push(top.clone());
            }
        }
    }

    /// A page of a site became known.
    pub(crate) fn count_page(&mut self, site: SiteId) {
        if let Some(site) = self.known.get_mut(&site) {
            site.counts.pages += 1;
        }
    }

    pub(crate) fn is_top(&self, due: &DuePage) -> bool {
        self.conditions(due.site).is_some_and(|conditions| conditions.tops.contains(&due.page.url))
    }

    /// Whether each page of the site has a time of its own.
    pub(crate) fn is_continuous(&self, site: SiteId) -> bool {
        self.conditions(site).is_some_and(|conditions| conditions.schedule.continuous().is_some())
    }

    /// Whether the site learns from sitemaps and feeds.
    pub(crate) fn takes_signals(&self, site: SiteId) -> bool {
        self.conditions(site).is_some_and(takes_signals)
    }

    /// Sites that learn from sitemaps and feeds and have a top page on a server.
    pub(crate) fn taking_signals_of(&self, server: &Server) -> Vec<SiteId> {
        let has_top = |site: &&Site| site.conditions.tops.iter().any(|top| top.server() == *server);
        let takes = self.iter().filter(|site| takes_signals(&site.conditions));
        takes.filter(has_top).map(|site| site.id).collect()
    }

    /// Whether new content counts as a change for the site's schedules.
    pub(crate) fn counts_change(&self, site: SiteId, is_significant: bool) -> bool {
        let hints = self.conditions(site).map(|conditions| conditions.hints).unwrap_or_default();
        hints.schedule_by == ScheduleBy::Any || is_significant
    }
}

/// A site of its top pages alone wants no others.
pub(crate) fn takes_signals(conditions: &SiteConditions) -> bool {
    conditions.hints.signals && conditions.depth > 1
}
