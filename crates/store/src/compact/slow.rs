//! Which pictures may become slow to read: those that save most, and only so many.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use super::CompactOptions;
use super::order::Order;
use crate::Digest;
use crate::error::StoreError;
use crate::media::Class;
use crate::recode::Recoding;
use crate::store::Store;

/// Chooses among all bodies that are compacted for the first time.
pub(super) fn choose(
    store: &Store,
    order: &Order,
    options: &CompactOptions,
) -> Result<BTreeSet<Digest>, StoreError> {
    let limit = order.count_new()? / options.versions_per_slow.max(1);
    let mut best = BinaryHeap::new();
    if limit == 0 || !options.recode_images {
        return Ok(BTreeSet::new());
    }
    order.new_bodies(Class::Other, &mut |digest| {
        let stored = match store.stored(&digest) {
            Ok(stored) if stored.entry.recoding == 0 => stored,
            Ok(_) | Err(StoreError::Damaged { .. }) => return Ok(()),
            Err(other) => return Err(other),
        };
        let recoding = Recoding::for_body(&stored.bytes);
        if let Some(recoding) = recoding.filter(|recoding| recoding.is_slow(&stored.bytes)) {
            best.push(Reverse((recoding.expected_saving(&stored.bytes), digest)));
            if best.len() as u64 > limit {
                best.pop();
            }
        }
        Ok(())
    })?;
    Ok(best.into_iter().map(|Reverse((_, digest))| digest).collect())
}
