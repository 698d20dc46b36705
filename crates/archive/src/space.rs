//! Space for collecting: on the disk, and in the quotas of sites and of the archive.

use std::path::{Path, PathBuf};

use nenrin_crawl::Event;
use nenrin_state::Site;
use nenrin_store::{SiteBytes, Store};

use crate::{
    Archive, Result,
    archive::folder_bytes,
    disk::DiskGuard,
    figures::Figures,
    quota::{QuotaGuard, Quotas, Reached, SitesTaken},
};

/// Watches the space that collecting may take, and says what changes for the machine.
#[derive(Debug, Clone)]
pub struct SpaceGuard {
    folder: PathBuf,
    disk: DiskGuard,
    quota: QuotaGuard,
    /// What sites take in all partitions, where there are several.
    taken: Option<SitesTaken>,
    /// Free bytes on the disk when last looked, if the disk reports them.
    free_bytes: Option<u64>,
    /// What the machine knows.
    has_space: bool,
}

impl SpaceGuard {
    /// A guard without limits, for the archive in a folder.
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            disk: DiskGuard::new(folder, 0),
            quota: QuotaGuard::default(),
            taken: None,
            free_bytes: None,
            has_space: true,
        }
    }

    /// Collecting pauses while the disk has less free space than this, and a site, or all of them,
    /// while they take more than their quota.
    pub fn set_limits(&mut self, min_free_bytes: u64, quotas: Quotas) {
        self.disk.min_free_bytes = min_free_bytes;
        self.quota.quotas = quotas;
    }

    /// Quotas hold for what all partitions take.
    pub fn share_quotas(&mut self, taken: SitesTaken) {
        self.taken = Some(taken);
    }

    /// The sites as they are registered now.
    pub fn know(&mut self, sites: &[Site]) {
        self.quota.know(sites);
    }

    /// Looks at the disk and at the sizes of sites. Returns what changed, for the machine.
    pub fn look(&mut self, store: &Store) -> Vec<Event> {
        self.free_bytes = self.disk.look();
        let mut changed = Vec::new();
        if self.quota.is_needed() && self.look_at_quotas(store) {
            changed.push(Event::Full(self.quota.full_sites()));
        }
        let has_space = !self.disk.is_paused() && !self.quota.is_archive_full();
        if std::mem::replace(&mut self.has_space, has_space) != has_space {
            changed.push(Event::DiskSpace(has_space));
        }
        changed
    }

    fn look_at_quotas(&mut self, store: &Store) -> bool {
        let measured = self.measure(store);
        measured
            .is_some_and(|(archive_bytes, site_bytes)| self.quota.look(archive_bytes, &site_bytes))
    }

    /// What the archive and its sites take. None where files came or went meanwhile: then the next look
    /// decides.
    fn measure(&self, store: &Store) -> Option<(u64, Vec<SiteBytes>)> {
        match (&self.taken, self.quota.quotas.archive_bytes) {
            (Some(taken), _) => Some(taken.sums()),
            (None, 0) => Some((0, store.site_bytes().ok()?)),
            (None, _) => Some((folder_bytes(&self.folder).ok()?, store.site_bytes().ok()?)),
        }
    }

    /// Free bytes beyond those that must stay free, when last looked.
    pub fn spare_bytes(&self) -> u64 {
        self.free_bytes.map_or(u64::MAX, |free| free.saturating_sub(self.disk.min_free_bytes))
    }

    /// A quota that is reached, if one is.
    pub fn reached(&self) -> Option<&Reached> {
        self.quota.reached().next()
    }

    /// Writes what was seen last into the metrics.
    pub fn report(&self, figures: &mut Figures) {
        figures.free_bytes = self.free_bytes;
        figures.min_free_bytes = self.disk.min_free_bytes;
        figures.waits_for_space = !self.has_space;
        figures.reached = self.quota.reached().cloned().collect();
    }
}

impl Archive {
    /// The quotas that are reached now.
    pub fn quotas_reached(&self, quotas: Quotas, sites: &[Site]) -> Result<Vec<Reached>> {
        let mut guard = QuotaGuard::new(quotas);
        guard.know(sites);
        if !guard.is_needed() {
            return Ok(Vec::new());
        }
        Ok(guard.turn(self.file_bytes()?, &self.store().site_bytes()?).0)
    }
}
