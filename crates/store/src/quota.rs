use crate::error::StoreError;
use crate::stats::SiteBytes;
use crate::store::Store;

impl Store {
    /// What each site takes in the packs, without counting anything: cheap enough to be asked every
    /// few seconds. What was put since the last sync is not in it.
    pub fn site_bytes(&self) -> Result<Vec<SiteBytes>, StoreError> {
        let shares = self.index().shares()?;
        Ok(shares.iter().map(|(group, share)| SiteBytes::of(*group, share)).collect())
    }
}
