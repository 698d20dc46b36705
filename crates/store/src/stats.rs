use crate::error::{StoreError, from_backend};
use crate::pack::pack_number;
use crate::share::Share;
use crate::store::Store;

/// What the archive takes, and for what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Versions that can be read.
    pub versions: u64,
    /// Different bodies.
    pub bodies: u64,
    /// Sum of the different bodies, as received.
    pub unique_bytes: u64,
    /// All files of the store: packs and index.
    pub stored_bytes: u64,
    /// HTML in the packs.
    pub html_bytes: u64,
    /// Everything else that was fetched, in the packs.
    pub other_bytes: u64,
    /// Records, framing and the index file.
    pub index_bytes: u64,
    /// The number of packs.
    pub packs: u64,
    /// By site.
    pub sites: Vec<SiteBytes>,
}

/// What one site takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteBytes {
    /// The site's number.
    pub group: u32,
    /// Versions written; those that were forgotten count until `compact`.
    pub versions: u64,
    /// Sum of the different bodies, as received.
    pub unique_bytes: u64,
    /// HTML in the packs.
    pub html_bytes: u64,
    /// Everything else that was fetched, in the packs.
    pub other_bytes: u64,
    /// Its records in the packs.
    pub record_bytes: u64,
}

impl SiteBytes {
    pub(crate) fn of(group: u32, share: &Share) -> Self {
        Self {
            group,
            versions: share.versions,
            unique_bytes: share.unique_bytes,
            html_bytes: share.html_bytes,
            other_bytes: share.text_bytes + share.other_bytes,
            record_bytes: share.record_bytes,
        }
    }

    /// All that the site takes in the packs.
    pub fn stored_bytes(&self) -> u64 {
        self.html_bytes + self.other_bytes + self.record_bytes
    }
}

impl Store {
    /// Counts without reading content; what was put since the last sync is not counted.
    pub fn stats(&self) -> Result<StoreStats, StoreError> {
        let mut stats = StoreStats::default();
        let mut packs_bytes = 0;
        for (name, length) in self.backend.list().map_err(from_backend)? {
            stats.packs += u64::from(pack_number(&name).is_some());
            packs_bytes += length;
        }
        let index = self.index();
        stats.versions = index.count_versions()?;
        stats.bodies = index.count_bodies()?;
        for (group, share) in index.shares()? {
            stats.html_bytes += share.html_bytes;
            stats.other_bytes += share.text_bytes + share.other_bytes;
            stats.unique_bytes += share.unique_bytes;
            stats.sites.push(SiteBytes::of(group, &share));
        }
        stats.stored_bytes = packs_bytes + self.index_file_bytes();
        let content = stats.html_bytes + stats.other_bytes;
        stats.index_bytes = stats.stored_bytes.saturating_sub(content);
        Ok(stats)
    }

    pub(crate) fn index_file_bytes(&self) -> u64 {
        let Some(path) = &self.options.index_path else { return 0 };
        ["", "-wal"]
            .iter()
            .map(|tail| {
                let mut name = path.as_os_str().to_owned();
                name.push(tail);
                std::fs::metadata(name).map_or(0, |metadata| metadata.len())
            })
            .sum()
    }
}
