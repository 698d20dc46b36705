//! Which pictures may become slow to read: those that save most for each version that waits for
//! them, and only so many. Of the others only as much is recoded as can be restored quickly.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::options::CompactOptions;
use super::order::Order;
use super::work::Work;
use crate::Digest;
use crate::error::StoreError;
use crate::media::Class;
use crate::recode::{self, Extent, Recoded, Recoding};
use crate::store::Store;

/// Pictures that are tried for each slot for slow ones: what they save is known only then.
const TRIED_PER_PLACE: u64 = 2;
/// Recoded pictures that are kept until their frame is written; further ones are recoded again.
const MAX_KEPT_BYTES: usize = 32 << 20;

/// Pictures that were tried: how much of each is recoded, and as what where that is still known.
pub(super) type Chosen = BTreeMap<Digest, (Extent, Option<Recoded>)>;

/// A picture that takes long as a whole, and what it gains for each version that waits for it.
struct Tried {
    gain: u64,
    digest: Digest,
    versions: u64,
    whole: Option<Recoded>,
    quick: Option<Recoded>,
}

/// Chooses among all bodies that are compacted for the first time.
pub(super) fn choose(
    store: &Store,
    order: &Order,
    options: &CompactOptions,
    work: &mut Work<'_>,
) -> Result<Chosen, StoreError> {
    let mut places = new_places(store.index().count_versions()?, order.count_new()?, options);
    let mut chosen = Chosen::new();
    if places == 0 || !options.recode_images {
        return Ok(chosen);
    }
    let (candidates, taken) = candidates(store, order, options, places * TRIED_PER_PLACE)?;
    places = places.saturating_sub(taken);
    let mut tried = Vec::new();
    let mut kept_bytes = 0;
    work.add(candidates.len() as u64);
    for (digest, versions) in candidates {
        work.step(1);
        let body = store.stored(digest.key())?.bytes;
        let Some(whole) = recode_to(Extent::Whole, &body, options) else { continue };
        kept_bytes += whole.bytes.len();
        let is_kept = kept_bytes <= MAX_KEPT_BYTES;
        if !whole.is_slow() {
            // It takes less time than expected, and needs no slot.
            chosen.insert(digest, (Extent::Whole, is_kept.then_some(whole)));
            continue;
        }
        let quick = recode_to(Extent::Quick, &body, options);
        let quick_bytes = quick.as_ref().map_or(body.len(), |quick| quick.bytes.len());
        let gain = quick_bytes.saturating_sub(whole.bytes.len()) as u64 / versions.max(1);
        kept_bytes += quick.as_ref().map_or(0, |quick| quick.bytes.len());
        let (whole, quick) = (is_kept.then_some(whole), quick.filter(|_| is_kept));
        tried.push(Tried { gain, digest, versions, whole, quick });
    }
    tried.sort_by_key(|tried| (Reverse(tried.gain), tried.digest));
    for Tried { digest, versions, whole, quick, .. } in tried {
        let place = places.checked_sub(versions);
        places = place.unwrap_or(places);
        let choice = if place.is_some() { (Extent::Whole, whole) } else { (Extent::Quick, quick) };
        chosen.insert(digest, choice);
    }
    Ok(chosen)
}

/// Slots for slow pictures that so many new versions bring. They are counted over the whole archive: a
/// part of a slot is not lost when little is new, and a small archive has one.
fn new_places(versions: u64, new: u64, options: &CompactOptions) -> u64 {
    let places = |versions: u64| versions.div_ceil(options.versions_per_slow.max(1));
    places(versions) - places(versions.saturating_sub(new))
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
        let stored = match store.stored(digest.key()) {
            Ok(stored) => stored,
            Err(StoreError::Damaged { .. }) => return Ok(()),
            Err(other) => return Err(other),
        };
        if stored.entry.recoding != 0 {
            let is_slow =
                recode::is_slow_gif(stored.entry.recoding, stored.entry.body_bytes as usize);
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

/// So much of a picture in a smaller form, if that is worth the time of those who will read it.
fn recode_to(extent: Extent, body: &[u8], options: &CompactOptions) -> Option<Recoded> {
    let recoding = Recoding::for_body(body)?;
    let recoded = recode::recode(body, recoding, extent, options.recode_cap)?;
    recoded.is_worth_it(body).then_some(recoded)
}

/// A body in the form in which it goes into its frame, unless that is as it was.
pub(super) fn recode(
    chosen: &Chosen,
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
    match chosen.get(digest) {
        Some((_, Some(known))) => Some(known.clone()),
        Some((extent, None)) => recode_to(*extent, body, options),
        None => recode_to(Extent::Quick, body, options),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_follow_the_versions_of_the_archive_however_few_come_at_a_time() {
        let options = CompactOptions { versions_per_slow: 150, ..CompactOptions::default() };
        assert_eq!(new_places(20, 20, &options), 1);
        assert_eq!(new_places(1500, 1500, &options), 10);
        let mut sum = 0;
        for versions in (20..=3000).step_by(20) {
            sum += new_places(versions, 20, &options);
        }
        assert_eq!(sum, 20);
        assert_eq!(new_places(5, 9, &options), 1);
    }
}
