use crate::VersionId;
use crate::chunk::ChunkKind;
use crate::error::StoreError;
use crate::forgotten::{MAX_FORGOTTEN, encode};
use crate::store::Store;

impl Store {
    /// Removes versions from the archive, durably. Their bytes go with the next `compact`, as far
    /// as no other version needs them. Returns how many were there.
    pub fn forget(&self, ids: &[VersionId]) -> Result<u64, StoreError> {
        let mut writer = self.writer();
        writer.check()?;
        self.sync_writer(&mut writer)?;
        let mut known = Vec::new();
        for id in ids {
            match self.row(*id) {
                Ok(row) => known.push((row.group, id.0)),
                Err(StoreError::NotFound { .. }) => {}
                // What cannot be read any more can be forgotten all the same.
                Err(StoreError::Damaged { .. }) => known.push((0, id.0)),
                Err(other) => return Err(other),
            }
        }
        known.sort_unstable_by_key(|(_, id)| *id);
        known.dedup();
        for batch in known.chunks(MAX_FORGOTTEN) {
            self.append(&mut writer, ChunkKind::Forgotten, &encode(batch))?;
        }
        // The packs must say so before the index does.
        self.sync_writer(&mut writer)?;
        self.index().change(|change| {
            known.iter().try_for_each(|(site, id)| change.forget_version(*site, *id))
        })?;
        Ok(known.len() as u64)
    }
}
