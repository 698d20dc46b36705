//! A forgotten chunk: versions that were removed.

use crate::wire::{Malformed, Reader, put_varint};

/// Numbers in one chunk.
pub(crate) const MAX_FORGOTTEN: usize = 1 << 16;

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
