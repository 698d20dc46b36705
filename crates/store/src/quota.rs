use crate::error::{StoreError, from_backend};
use crate::stats::SiteBytes;
use crate::store::Store;

impl Store {
    /// What each site takes in the packs, without counting anything: cheap enough to be asked every
    /// few seconds. What was put since the last sync is not in it.
    pub fn site_bytes(&self) -> Result<Vec<SiteBytes>, StoreError> {
        let shares = self.index().shares()?;
        Ok(shares.iter().map(|(group, share)| SiteBytes::of(*group, share)).collect())
    }

    /// All bytes of the packs.
    pub fn pack_bytes(&self) -> Result<u64, StoreError> {
        let packs = self.backend.list().map_err(from_backend)?;
        Ok(packs.into_iter().map(|(_, length)| length).sum())
    }
}
