//! Which pictures may become slow to read: those that save most for each version that waits for
//! them, and only so many. Of the others only as much is recoded as can be given back quickly.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::CompactOptions;
use super::order::Order;
use crate::Digest;
use crate::error::StoreError;
use crate::media::Class;
use crate::recode::{self, Extent, Recoded, Recoding};
use crate::store::Store;

/// Pictures that are tried for each place: what they save is known only then.
const TRIED_PER_PLACE: u64 = 2;
/// Recoded pictures that are kept until their frame is written; further ones are recoded again.
const MAX_KEPT_BYTES: usize = 32 << 20;

/// Pictures that may become slow, as they will be stored where that is still known.
pub(super) type MayBeSlow = BTreeMap<Digest, Option<Recoded>>;

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
    let (candidates, taken) = candidates(store, order, options, places * TRIED_PER_PLACE)?;
    places = places.saturating_sub(taken);
    let mut tried = Vec::new();
    let mut kept_bytes = 0;
    for (digest, versions) in candidates {
        let body = store.stored(&digest)?.bytes;
        let Some(recoded) = whole(&body, options) else { continue };
        let (gain, is_slow) = (recoded.gain(&body) as u64 / versions.max(1), recoded.is_slow());
        kept_bytes += recoded.bytes.len();
        let kept = (kept_bytes <= MAX_KEPT_BYTES).then_some(recoded);
        match is_slow {
            true => tried.push((Reverse(gain), digest, versions, kept)),
            // It takes less time than expected, and no place.
            false => drop(chosen.insert(digest, kept)),
        }
    }
    tried.sort_by_key(|(gain, digest, ..)| (*gain, *digest));
    for (_, digest, versions, kept) in tried {
        if let Some(left) = places.checked_sub(versions) {
            places = left;
            chosen.insert(digest, kept);
        }
    }
    Ok(chosen)
}

/// Pictures that would be slow and how many versions they are of, those first that should save
/// most for each of them; and how many versions are of pictures that are slow already.
fn candidates(
    store: &Store,
    order: &Order,
    options: &CompactOptions,
    limit: u64,
) -> Result<(Vec<(Digest, u64)>, u64), StoreError> {
    let mut best = BinaryHeap::new();
    let mut slow_already = 0;
    order.new_bodies(Class::Other, &mut |digest, versions| {
        let stored = match store.stored(&digest) {
            Ok(stored) => stored,
            Err(StoreError::Damaged { .. }) => return Ok(()),
            Err(other) => return Err(other),
        };
        if stored.entry.recoding != 0 {
            let is_slow = recode::is_slow_gif(stored.entry.recoding, stored.entry.body_bytes as usize);
            slow_already += if is_slow { versions } else { 0 };
            return Ok(());
        }
        let may_become_slow = |recoding: &Recoding| {
            recoding.is_slow(&stored.bytes)
                && recoding.expected(&stored.bytes).is_some_and(|time| time <= options.recode_cap)
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
    let best = best.into_iter().map(|Reverse((_, digest, versions))| (digest, versions));
    Ok((best.collect(), slow_already))
}

fn whole(body: &[u8], options: &CompactOptions) -> Option<Recoded> {
    let recoding = Recoding::for_body(body)?;
    let recoded = recode::recode(body, recoding, Extent::Whole, options.recode_cap)?;
    recoded.is_worth_it(body).then_some(recoded)
}

/// A body in a smaller form, if that is worth the time of those who will read it.
pub(super) fn recode(
    may_be_slow: &MayBeSlow,
    options: &CompactOptions,
    digest: &Digest,
    body: &[u8],
) -> Option<Recoded> {
    let recoding = Recoding::for_body(body)?;
    if recoding == Recoding::Gzip {
        // Its plain text is larger, and finds its like in the frame.
        return recode::recode(body, recoding, Extent::Whole, options.recode_cap);
    }
    if !options.recode_images {
        return None;
    }
    match may_be_slow.get(digest) {
        Some(Some(known)) => Some(known.clone()),
        Some(None) => whole(body, options),
        None => recode::recode(body, recoding, Extent::Quick, options.recode_cap)
            .filter(|recoded| recoded.is_worth_it(body)),
    }
}
