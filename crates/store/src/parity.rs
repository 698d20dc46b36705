//! Parity: restores any one damaged place among the chunks in front of it.
//!
//! The bytes since the last parity chunk are cut into stripes of equal length; parity is all of them
//! joined by XOR. Joined with the stripes as they are now, it gives zeros where nothing changed, and
//! else the difference that the damage made. In which stripe the damage is, the checksums of chunks
//! say: the difference is tried on each stripe until they fit.
//!
//! Parity chunks and the end of a pack follow from what is in front of them. If one of those is
//! damaged, it is made again and compared.

use std::ops::Range;

use crate::chunk::{CHUNK_HEAD_BYTES, ChunkKind, MAX_PAYLOAD_BYTES, seal_chunk};
use crate::directory;
use crate::error::StoreError;
use crate::packfile::PackFile;
use crate::wire::{Malformed, Reader, put_varint};

/// Stripes that parity joins: more make it smaller, and shorter damage is all that it restores.
const STRIPES: u64 = 512;
/// A range as long as this gets its parity at once: its stripes are as long as the sector of a disk.
pub(crate) const RANGE_BYTES: u64 = 2 << 20;
const WINDOW_BYTES: u64 = 1 << 20;

/// The payload of a parity chunk.
pub(crate) struct Parity {
    /// How many bytes in front of the chunk it covers.
    covered_bytes: u64,
    stripe: Vec<u8>,
}

impl Parity {
    /// Of this range of a pack.
    pub(crate) fn of(pack: &PackFile<'_>, range: Range<u64>) -> Result<Self, StoreError> {
        let covered_bytes = range.end - range.start;
        let mut parity = Self { covered_bytes, stripe: vec![0; stripe_bytes(covered_bytes)] };
        let mut at = range.start;
        while at < range.end {
            let count = (range.end - at).min(WINDOW_BYTES);
            let Some(window) = pack.read(at, count as usize)? else { break };
            parity.join((at - range.start) as usize, &window);
            at += count;
        }
        Ok(parity)
    }

    /// Joins bytes at this distance from the beginning of the range.
    fn join(&mut self, at: usize, mut bytes: &[u8]) {
        let mut at = at % self.stripe.len();
        while !bytes.is_empty() {
            let count = bytes.len().min(self.stripe.len() - at);
            let (now, rest) = bytes.split_at(count);
            self.stripe[at..at + count].iter_mut().zip(now).for_each(|(sum, byte)| *sum ^= byte);
            (at, bytes) = (0, rest);
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.stripe.len() + 10);
        put_varint(&mut out, self.covered_bytes);
        out.extend_from_slice(&self.stripe);
        out
    }

    fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(payload);
        let covered_bytes = reader.varint()?;
        let stripe = reader.rest().to_vec();
        match covered_bytes > 0 && stripe.len() == stripe_bytes(covered_bytes) {
            true => Ok(Self { covered_bytes, stripe }),
            false => Err(Malformed("parity of another length")),
        }
    }
}

fn stripe_bytes(covered_bytes: u64) -> usize {
    covered_bytes.div_ceil(STRIPES) as usize
}

/// What belongs in a gap of a pack, if that can be known. `uncovered` is where the part begins that
/// the next parity chunk covers, if it begins in front of the gap and nothing else is damaged in it.
pub(crate) fn mend(
    pack: &PackFile<'_>,
    gap: Range<u64>,
    uncovered: Option<u64>,
) -> Result<Option<Vec<u8>>, StoreError> {
    if let Some(mended) = mend_by_parity(pack, &gap)? {
        return Ok(Some(mended));
    }
    match uncovered {
        Some(begin) if begin < gap.start => make_parity(pack, begin, &gap),
        Some(begin) if begin == gap.start => make_end(pack, &gap),
        _ => Ok(None),
    }
}

fn mend_by_parity(pack: &PackFile<'_>, gap: &Range<u64>) -> Result<Option<Vec<u8>>, StoreError> {
    let Some((range, mut parity)) = parity_behind(pack, gap.end)? else { return Ok(None) };
    if range.start > gap.start {
        return Ok(None);
    }
    let now = Parity::of(pack, range.clone())?;
    parity.join(0, &now.stripe);
    let difference = parity.stripe;
    let Some(burst) = Burst::of(&difference) else { return Ok(None) };
    let Some(mut bytes) = pack.read(gap.start, (gap.end - gap.start) as usize)? else {
        return Ok(None);
    };
    for stripe in 0..STRIPES {
        let at = range.start + stripe * difference.len() as u64 + burst.begin as u64;
        if at < gap.start || at + burst.length as u64 > gap.end {
            continue;
        }
        let place = (at - gap.start) as usize..(at - gap.start) as usize + burst.length;
        burst.apply(&difference, &mut bytes[place.clone()]);
        if pack.chunks_in(gap.start, &bytes).is_some() {
            return Ok(Some(bytes));
        }
        burst.apply(&difference, &mut bytes[place]);
    }
    Ok(None)
}

/// The next parity chunk from here on, and what it covers.
fn parity_behind(
    pack: &PackFile<'_>,
    from: u64,
) -> Result<Option<(Range<u64>, Parity)>, StoreError> {
    let mut at = from;
    while let Some(chunk) = pack.chunk_at(at)? {
        if chunk.kind == ChunkKind::Parity {
            let Ok(parity) = Parity::parse(&chunk.payload) else { return Ok(None) };
            let begin = chunk.offset.checked_sub(parity.covered_bytes);
            return Ok(begin.map(|begin| (begin..chunk.offset, parity)));
        }
        at = chunk.end();
    }
    Ok(None)
}

/// Where in a stripe the damage begins, and how long it is. It may go on in the next stripe.
struct Burst {
    begin: usize,
    length: usize,
}

impl Burst {
    /// The damage is where the longest run of zeros is not. None if nothing differs.
    fn of(difference: &[u8]) -> Option<Self> {
        let length = difference.len();
        let last = difference.iter().rposition(|byte| *byte != 0)?;
        let mut before = last;
        let (mut begin, mut zeros) = (0, 0);
        for at in (0..length).filter(|at| difference[*at] != 0) {
            let run = (at + length - before - 1) % length;
            if run > zeros {
                (begin, zeros) = (at, run);
            }
            before = at;
        }
        Some(Self { begin, length: length - zeros })
    }

    /// Joins the difference with as many bytes as the damage has.
    fn apply(&self, difference: &[u8], bytes: &mut [u8]) {
        let differing = difference.iter().cycle().skip(self.begin);
        bytes.iter_mut().zip(differing).for_each(|(byte, change)| *byte ^= change);
    }
}

/// The gap as the parity chunk of what is in front of it, if it is almost that.
fn make_parity(
    pack: &PackFile<'_>,
    begin: u64,
    gap: &Range<u64>,
) -> Result<Option<Vec<u8>>, StoreError> {
    let is_as_long =
        gap.end - gap.start <= (CHUNK_HEAD_BYTES + 10 + stripe_bytes(gap.start - begin)) as u64;
    if !is_as_long {
        return Ok(None);
    }
    let payload = Parity::of(pack, begin..gap.start)?.encode();
    compare(pack, gap, &seal_chunk(ChunkKind::Parity, pack.number, gap.start, &payload))
}

/// The gap as the end of the pack, if it is almost that.
fn make_end(pack: &PackFile<'_>, gap: &Range<u64>) -> Result<Option<Vec<u8>>, StoreError> {
    let is_possible = gap.start > 0
        && gap.end == pack.length
        && gap.end - gap.start <= (CHUNK_HEAD_BYTES + MAX_PAYLOAD_BYTES) as u64
        && directory::may_be_end(pack, gap)?;
    if !is_possible {
        return Ok(None);
    }
    let Some(payload) = directory::build(pack, gap.start)? else { return Ok(None) };
    compare(pack, gap, &seal_chunk(ChunkKind::PackEnd, pack.number, gap.start, &payload))
}

/// What was made, if most of its bytes are in the gap.
fn compare(
    pack: &PackFile<'_>,
    gap: &Range<u64>,
    made: &[u8],
) -> Result<Option<Vec<u8>>, StoreError> {
    let found = pack.read(gap.start, (gap.end - gap.start) as usize)?;
    let is_almost = found.is_some_and(|found| {
        let differing = found.iter().zip(made).filter(|(a, b)| a != b).count();
        found.len() == made.len() && differing * 2 < made.len()
    });
    Ok(is_almost.then(|| made.to_vec()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::backend::{ContentBackend, MemoryBackend};

    /// A pack of chunks of these lengths with parity behind them.
    fn pack(lengths: &[usize]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (at, length) in lengths.iter().enumerate() {
            let payload: Vec<u8> =
                (0..*length).map(|n| (n * 31 + at * 7 + n / 251) as u8).collect();
            bytes.extend(seal_chunk(ChunkKind::Bodies, 1, bytes.len() as u64, &payload));
        }
        let backend = planted(&bytes);
        let length = bytes.len() as u64;
        let parity = Parity::of(&PackFile::new(&backend, 1, length), 0..length).unwrap();
        bytes.extend(seal_chunk(ChunkKind::Parity, 1, length, &parity.encode()));
        bytes
    }

    fn planted(bytes: &[u8]) -> MemoryBackend {
        let backend = MemoryBackend::default();
        backend.append("pack-0000000001", 0, bytes).unwrap();
        backend
    }

    /// The pack as a walk over it restores it; none if something stays damaged.
    fn walked(bytes: &[u8]) -> Option<Vec<u8>> {
        let backend = planted(bytes);
        let mut whole = Some(bytes.to_vec());
        let pack = PackFile::new(&backend, 1, bytes.len() as u64);
        pack.walk(0, &mut |found| {
            match (found, &mut whole) {
                (crate::packfile::Found::Gap { .. }, _) => whole = None,
                (crate::packfile::Found::Mended { start, bytes }, Some(whole)) => {
                    whole[start as usize..start as usize + bytes.len()].copy_from_slice(&bytes);
                }
                _ => {}
            }
            Ok(())
        })
        .unwrap();
        whole
    }

    proptest! {
        #[test]
        fn any_one_damage_no_longer_than_a_stripe_is_undone(
            lengths in proptest::collection::vec(0usize..9000, 1..6),
            at: prop::sample::Index, noise in proptest::collection::vec(any::<u8>(), 1..60),
        ) {
            let pristine = pack(&lengths);
            let stripe = stripe_bytes(lengths.iter().map(|n| (n + CHUNK_HEAD_BYTES) as u64).sum());
            let mut bytes = pristine.clone();
            let at = at.index(bytes.len());
            // At most half of a stripe, so that it is clear which half it is not.
            for (byte, noise) in bytes[at..].iter_mut().zip(&noise[..noise.len().min(stripe.div_ceil(2))]) {
                *byte ^= noise;
            }
            let begins_in_data = at + noise.len() < pristine.len() - CHUNK_HEAD_BYTES - stripe - 3;
            if begins_in_data || noise.len() == 1 {
                prop_assert!(walked(&bytes) == Some(pristine));
            }
        }

        #[test]
        fn junk_never_panics(junk: Vec<u8>) {
            let _ = Parity::parse(&junk);
            let mut bytes = pack(&[40]);
            bytes.extend(seal_chunk(ChunkKind::Parity, 1, bytes.len() as u64, &junk));
            bytes[20] ^= 1;
            walked(&bytes);
        }
    }

    #[test]
    fn every_flipped_bit_is_undone() {
        let pristine = pack(&[10, 700, 0, 90]);
        for bit in 0..pristine.len() * 8 {
            let mut bytes = pristine.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(walked(&bytes) == Some(pristine.clone()), "bit {bit}");
        }
    }

    #[test]
    fn two_damages_of_one_range_are_not_taken_for_one() {
        let mut bytes = pack(&[4000, 4000]);
        bytes[100] ^= 1;
        bytes[5005] ^= 1;
        assert_eq!(walked(&bytes), None);
    }
}
