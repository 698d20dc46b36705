use crate::VersionId;
use crate::chunk::ChunkKind;
use crate::error::StoreError;
use crate::store::Store;
use crate::wire::{Malformed, Reader, put_varint};

/// Numbers in one chunk.
pub(crate) const MAX_FORGOTTEN: usize = 1 << 16;

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

/// Sites and version numbers, in the order of the numbers.
pub(crate) fn encode(forgotten: &[(u32, u64)]) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, forgotten.len() as u64);
    let mut last = 0;
    for (site, id) in forgotten {
        put_varint(&mut out, u64::from(*site));
        put_varint(&mut out, id - last);
        last = *id;
    }
    out
}

pub(crate) fn decode(payload: &[u8]) -> Result<Vec<(u32, u64)>, Malformed> {
    let mut reader = Reader::new(payload);
    let count = reader.count(MAX_FORGOTTEN)?;
    let mut last = 0u64;
    (0..count)
        .map(|_| {
            let site = u32::try_from(reader.varint()?).map_err(|_| Malformed("site too large"))?;
            last = last.checked_add(reader.varint()?).ok_or(Malformed("number too large"))?;
            Ok((site, last))
        })
        .collect()
}
