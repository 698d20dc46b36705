//! Quotas: a site, or all of them, pause when their size has reached a limit, and resume by
//! themselves when there is space again.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use nenrin_lang::IncidentDetail;
use nenrin_state::{Site, SiteId};
use nenrin_store::SiteBytes;

/// The largest sizes in bytes; 0 for no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quotas {
    /// By all files of the archive.
    pub archive_bytes: u64,
    /// By a site that has no quota of its own, in the packs.
    pub site_bytes: u64,
}

impl Quotas {
    /// The quota of a site, if it has one.
    pub fn of(self, site: &Site) -> Option<u64> {
        let own = site.conditions.keeping.quota_bytes;
        own.or(Some(self.site_bytes)).filter(|&bytes| bytes > 0)
    }
}

/// A quota that is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reached {
    /// The site; `None` for the archive.
    pub site: Option<(SiteId, String)>,
    /// Bytes that it takes.
    pub bytes: u64,
    /// The limit.
    pub quota_bytes: u64,
}

impl Reached {
    /// As an incident says it.
    pub fn detail(&self) -> IncidentDetail {
        let Self { bytes, quota_bytes, .. } = *self;
        let site = self.site.as_ref().map(|(_, name)| name.clone());
        IncidentDetail::Quota { site, bytes, quota_bytes }
    }
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.detail().fmt(f)
    }
}

impl std::error::Error for Reached {}

/// Collecting goes on when this part of a quota is free, so that it does not stop and go with every
/// page: a twentieth.
const SPARE_PART: u64 = 20;

/// Watches what sites and the archive take.
#[derive(Debug, Clone, Default)]
pub struct QuotaGuard {
    /// The limits.
    pub quotas: Quotas,
    sites: Vec<Site>,
    full: BTreeMap<Option<SiteId>, Reached>,
}

impl QuotaGuard {
    /// A guard that knows no site yet.
    pub fn new(quotas: Quotas) -> Self {
        Self { quotas, ..Self::default() }
    }

    /// The sites as they are registered now.
    pub fn know(&mut self, sites: &[Site]) {
        self.sites = sites.to_vec();
    }

    /// Whether there is any quota to watch.
    pub fn is_needed(&self) -> bool {
        self.quotas.archive_bytes > 0
            || self.sites.iter().any(|site| self.quotas.of(site).is_some())
            || !self.full.is_empty()
    }

    /// Everything that is full now.
    pub fn reached(&self) -> impl Iterator<Item = &Reached> {
        self.full.values()
    }

    /// Sites that are full.
    pub fn full_sites(&self) -> BTreeSet<SiteId> {
        self.full.keys().copied().flatten().collect()
    }

    /// Whether the whole archive is full.
    pub fn is_archive_full(&self) -> bool {
        self.full.contains_key(&None)
    }

    /// Checks the current sizes, and says in the log what has become full and what is no longer.
    /// Returns whether anything has.
    pub fn look(&mut self, archive_bytes: u64, site_bytes: &[SiteBytes]) -> bool {
        let (fresh, over) = self.turn(archive_bytes, site_bytes);
        for reached in &fresh {
            tracing::warn!("{reached}; its collecting is paused until there is space");
        }
        for reached in &over {
            let whose = reached.site.as_ref().map_or("the archive", |(_, name)| name);
            tracing::warn!("{whose} is below its quota again, collecting resumes");
        }
        !(fresh.is_empty() && over.is_empty())
    }

    /// What has become full, and what is no longer.
    pub fn turn(
        &mut self,
        archive_bytes: u64,
        site_bytes: &[SiteBytes],
    ) -> (Vec<Reached>, Vec<Reached>) {
        let mut now = BTreeMap::new();
        let archive = (None, archive_bytes, Some(self.quotas.archive_bytes).filter(|&q| q > 0));
        let of_site = |site: &Site| {
            let bytes = site_bytes.iter().find(|bytes| bytes.group == site.id.0);
            let taken = bytes.map_or(0, SiteBytes::stored_bytes);
            (Some((site.id, site.name.clone())), taken, self.quotas.of(site))
        };
        for (site, bytes, quota) in std::iter::once(archive).chain(self.sites.iter().map(of_site)) {
            let Some(quota_bytes) = quota else { continue };
            let key = site.as_ref().map(|(id, _)| *id);
            let was_full = self.full.contains_key(&key);
            let spare = if was_full { quota_bytes / SPARE_PART } else { 0 };
            if bytes >= quota_bytes.saturating_sub(spare) {
                now.insert(key, Reached { site, bytes, quota_bytes });
            }
        }
        let fresh = now.iter().filter(|(key, _)| !self.full.contains_key(*key));
        let fresh = fresh.map(|(_, reached)| reached.clone()).collect();
        let before = std::mem::replace(&mut self.full, now);
        let over = before.into_iter().filter(|(key, _)| !self.full.contains_key(key));
        (fresh, over.map(|(_, reached)| reached).collect())
    }
}

/// What sites take in the packs of all partitions of a shared archive, as their holders last said.
#[derive(Debug, Clone, Default)]
pub struct SitesTaken(Arc<Mutex<BTreeMap<SiteId, u64>>>);

impl SitesTaken {
    /// Learns it.
    pub fn set(&self, bytes: BTreeMap<SiteId, u64>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = bytes;
    }

    /// All together, and each site.
    pub fn sums(&self) -> (u64, Vec<SiteBytes>) {
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_site = |(site, bytes): (&SiteId, &u64)| SiteBytes {
            group: site.0,
            other_bytes: *bytes,
            ..SiteBytes::default()
        };
        (taken.values().sum(), taken.iter().map(of_site).collect())
    }
}

#[cfg(test)]
mod tests {
    use nenrin_state::{SiteConditions, SiteCounts};

    use super::*;

    fn site(id: u32, quota_bytes: Option<u64>) -> Site {
        let mut conditions = SiteConditions::new(Vec::new());
        conditions.keeping.quota_bytes = quota_bytes;
        Site {
            id: SiteId(id),
            name: format!("s{id}"),
            conditions,
            created_s: 0,
            collected_s: None,
            round_open: false,
            paused: false,
            removed: None,
            counts: SiteCounts::default(),
        }
    }

    fn taken(group: u32, html_bytes: u64) -> SiteBytes {
        SiteBytes { group, html_bytes, ..SiteBytes::default() }
    }

    #[test]
    fn a_full_site_goes_on_by_itself_when_there_is_room_again() {
        let mut guard = QuotaGuard::default();
        guard.know(&[site(1, Some(1_000)), site(2, None)]);
        let look = |guard: &mut QuotaGuard, bytes| {
            let (fresh, over) = guard.turn(0, &[taken(1, bytes), taken(2, 9_999)]);
            (fresh.len(), over.len(), guard.full_sites().len())
        };
        assert!(guard.is_needed());
        assert_eq!(look(&mut guard, 999), (0, 0, 0));
        assert_eq!(look(&mut guard, 1_000), (1, 0, 1));
        assert_eq!(look(&mut guard, 2_000), (0, 0, 1), "reported once");
        assert_eq!(look(&mut guard, 960), (0, 0, 1), "too little to spare");
        assert_eq!(look(&mut guard, 949), (0, 1, 0));
    }

    #[test]
    fn sites_without_a_quota_have_the_archives_and_zero_means_none() {
        let mut guard = QuotaGuard::new(Quotas { archive_bytes: 0, site_bytes: 100 });
        guard.know(&[site(1, Some(0)), site(2, None), site(3, Some(500))]);
        guard.turn(1 << 40, &[taken(1, 300), taken(2, 300), taken(3, 300)]);
        assert_eq!(guard.full_sites(), BTreeSet::from([SiteId(2)]));
        assert!(!guard.is_archive_full());
    }

    #[test]
    fn the_archive_has_a_quota_of_its_own_and_a_raised_one_lets_it_go_on() {
        let mut guard = QuotaGuard::default();
        guard.quotas.archive_bytes = 1_000;
        let (fresh, _) = guard.turn(1_000, &[]);
        assert_eq!(fresh[0].to_string(), "the archive has reached its quota: 1.00 kB of 1.00 kB");
        assert!(guard.is_archive_full() && guard.full_sites().is_empty());
        guard.quotas.archive_bytes = 2_000;
        assert_eq!(guard.turn(1_000, &[]).1.len(), 1);
        assert!(!guard.is_archive_full());
    }
}
