//! Which pictures may become slow to read: those that save most for each version that waits for
//! them, and only so many.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::CompactOptions;
use super::order::Order;
use crate::Digest;
use crate::error::StoreError;
use crate::media::Class;
use crate::recode::{self, Recoding};
use crate::store::Store;

/// Pictures that are tried for each place: some cannot be taken apart.
const TRIED_PER_PLACE: u64 = 2;
/// Recoded pictures that are kept until their frame is written; further ones are recoded again.
const MAX_KEPT_BYTES: usize = 32 << 20;

/// Pictures that may become slow, as they will be stored where that is still known.
pub(super) type MayBeSlow = BTreeMap<Digest, Option<(Recoding, Vec<u8>)>>;

/// Chooses among all bodies that are compacted for the first time.
pub(super) fn choose(
    store: &Store,
    order: &Order,
    options: &CompactOptions,
) -> Result<MayBeSlow, StoreError> {
    let mut places = order.count_new()? / options.versions_per_slow.max(1);
    let mut chosen = MayBeSlow::new();
    if places == 0 || !options.recode_images {
        return Ok(chosen);
    }
    let mut kept_bytes = 0;
    for (digest, versions) in candidates(store, order, options, places * TRIED_PER_PLACE)? {
        let Some(left) = places.checked_sub(versions) else { continue };
        let Some((recoding, recoded)) = recode(store, &digest, options)? else { continue };
        places = left;
        kept_bytes += recoded.len();
        chosen.insert(digest, (kept_bytes <= MAX_KEPT_BYTES).then_some((recoding, recoded)));
    }
    Ok(chosen)
}

/// Pictures that would be slow and how many versions they are of, those first that should save
/// most for each of them.
fn candidates(
    store: &Store,
    order: &Order,
    options: &CompactOptions,
    limit: u64,
) -> Result<Vec<(Digest, u64)>, StoreError> {
    let mut best = BinaryHeap::new();
    order.new_bodies(Class::Other, &mut |digest, versions| {
        let stored = match store.stored(&digest) {
            Ok(stored) if stored.entry.recoding == 0 => stored,
            Ok(_) | Err(StoreError::Damaged { .. }) => return Ok(()),
            Err(other) => return Err(other),
        };
        let may_become_slow = |recoding: &Recoding| {
            recoding.is_slow(&stored.bytes)
                && recoding.expected(&stored.bytes).is_none_or(|time| time <= options.recode_cap)
        };
        if let Some(recoding) = Recoding::for_body(&stored.bytes).filter(may_become_slow) {
            let saving = recoding.expected_saving(&stored.bytes) as u64 / versions.max(1);
            best.push(Reverse((saving, digest, versions)));
            if best.len() as u64 > limit {
                best.pop();
            }
        }
        Ok(())
    })?;
    let best = best.into_sorted_vec();
    Ok(best.into_iter().map(|Reverse((_, digest, versions))| (digest, versions)).collect())
}

fn recode(
    store: &Store,
    digest: &Digest,
    options: &CompactOptions,
) -> Result<Option<(Recoding, Vec<u8>)>, StoreError> {
    let body = store.stored(digest)?.bytes;
    let Some(recoding) = Recoding::for_body(&body) else { return Ok(None) };
    let recoded = recode::recode(&body, recoding, options.recode_cap);
    let worth = recoded.filter(|recoded| recode::is_worth_it(&body, recoded));
    Ok(worth.map(|recoded| (recoding, recoded)))
}
