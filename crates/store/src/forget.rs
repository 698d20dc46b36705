use crate::VersionId;
use crate::chunk::ChunkKind;
use crate::error::StoreError;
use crate::store::Store;
use crate::wire::{Malformed, Reader, put_varint};

/// Numbers in one chunk.
const MAX_FORGOTTEN: usize = 1 << 16;

impl Store {
    /// Removes versions from the archive, durably. Their bytes go with the next `compact`, as far
    /// as no other version needs them. Returns how many were there.
    pub fn forget(&self, ids: &[VersionId]) -> Result<u64, StoreError> {
        let mut writer = self.writer();
        writer.check()?;
        self.sync_writer(&mut writer)?;
        let mut known = Vec::new();
        {
            let index = self.index();
            for id in ids {
                if index.version(id.0)?.is_some() {
                    known.push(id.0);
                }
            }
        }
        known.sort_unstable();
        known.dedup();
        for batch in known.chunks(MAX_FORGOTTEN) {
            self.append(&mut writer, ChunkKind::Forgotten, &encode(batch))?;
        }
        // The packs must say so before the index does.
        self.sync_writer(&mut writer)?;
        self.index().change(|change| known.iter().try_for_each(|id| change.forget_version(*id)))?;
        Ok(known.len() as u64)
    }
}

pub(crate) fn encode(ids: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, ids.len() as u64);
    let mut last = 0;
    for id in ids {
        put_varint(&mut out, id - last);
        last = *id;
    }
    out
}

pub(crate) fn decode(payload: &[u8]) -> Result<Vec<u64>, Malformed> {
    let mut reader = Reader::new(payload);
    let count = reader.count(MAX_FORGOTTEN)?;
    let mut last = 0u64;
    (0..count)
        .map(|_| {
            last = last.checked_add(reader.varint()?).ok_or(Malformed("number too large"))?;
            Ok(last)
        })
        .collect()
}
