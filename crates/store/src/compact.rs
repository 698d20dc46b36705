use crate::error::StoreError;
use crate::store::Store;

/// How to compact.
#[derive(Clone, Debug, Default)]
pub struct CompactOptions {}

/// What compacting came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactReport {
    /// All files of the store before.
    pub bytes_before: u64,
    /// And after.
    pub bytes_after: u64,
}

impl Store {
    /// Gives back what the index does not need.
    pub fn compact(
        &self,
        _options: &CompactOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<CompactReport, StoreError> {
        self.sync()?;
        let bytes_before = self.stats()?.stored_bytes;
        self.index().shrink()?;
        progress(1, 1);
        Ok(CompactReport { bytes_before, bytes_after: self.stats()?.stored_bytes })
    }
}
