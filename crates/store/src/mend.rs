//! Reading over damage: parity restores any one damaged location among the chunks in front of it.
//!
//! Parity joined with the stripes as they are now gives zeros where nothing changed, and else the
//! difference that the damage made. In which stripe the damage is, the checksums of chunks say: the
//! difference is tried on each stripe until they fit.
//!
//! Parity chunks and directories follow from what is in front of them. If one of those is damaged, it
//! is made again and compared.

use std::ops::Range;

use crate::backend::ContentBackend;
use crate::chunk::{CHUNK_HEAD_BYTES, ChunkHead, ChunkKind, MAX_PAYLOAD_BYTES, seal_chunk};
use crate::directory;
use crate::error::{BackendError, StoreError, from_backend};
use crate::pack::{Location, damaged, pack_name};
use crate::packfile::{Chunk, PackFile};
use crate::parity::{Parity, STRIPES, stripe_bytes};
use crate::wire::Malformed;

/// What a walk over a pack finds, in order.
pub(crate) enum Found {
    Chunk(Chunk),
    /// Damaged bytes, as parity restored them; the chunks in them follow.
    Mended {
        start: u64,
        bytes: Vec<u8>,
    },
    /// Bytes that are not a chunk: a torn tail, or damage.
    Gap {
        start: u64,
        end: u64,
    },
}

impl PackFile<'_> {
    /// Visits the chunks from `from` on, where a chunk begins that no parity covers yet. Behind
    /// damage it goes on at the next chunk whose checksum fits.
    pub(crate) fn walk(
        &self,
        from: u64,
        visit: &mut dyn FnMut(Found) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut offset = from;
        // Where the part begins that the next parity chunk covers; none if damage is in it.
        let mut uncovered = Some(from);
        while offset < self.length {
            if let Some(chunk) = self.chunk_at(offset)? {
                offset = chunk.end();
                uncovered = if chunk.is_parity() { Some(offset) } else { uncovered };
                visit(Found::Chunk(chunk))?;
                continue;
            }
            let start = offset;
            offset = self.next_chunk(start + 1)?;
            let mended = mend(self, start..offset, uncovered)?;
            let chunks = mended.as_ref().and_then(|bytes| self.chunks_in(start, bytes));
            let (Some(bytes), Some(chunks)) = (mended, chunks) else {
                uncovered = None;
                visit(Found::Gap { start, end: offset })?;
                continue;
            };
            visit(Found::Mended { start, bytes })?;
            for chunk in chunks {
                uncovered = if chunk.is_parity() { Some(chunk.end()) } else { uncovered };
                visit(Found::Chunk(chunk))?;
            }
        }
        Ok(())
    }

    /// The chunk at `offset`, restored by parity if it is damaged.
    pub(crate) fn chunk_or_mended(&self, offset: u64) -> Result<Option<Chunk>, StoreError> {
        match self.chunk_at(offset)? {
            Some(chunk) => Ok(Some(chunk)),
            None => self.mended(offset),
        }
    }

    fn mended(&self, offset: u64) -> Result<Option<Chunk>, StoreError> {
        if offset >= self.length {
            return Ok(None);
        }
        let end = self.next_chunk(offset + 1)?;
        let mended = mend(self, offset..end, None)?;
        let chunks = mended.and_then(|bytes| self.chunks_in(offset, &bytes));
        Ok(chunks.and_then(|chunks| chunks.into_iter().next()))
    }
}

/// Reads and checks one chunk. If it is damaged, parity restores it, here and not in the pack.
pub(crate) fn read_chunk(
    backend: &dyn ContentBackend,
    place: Location,
    kinds: &[ChunkKind],
) -> Result<Vec<u8>, StoreError> {
    match read_as_it_is(backend, place, kinds) {
        Err(error @ StoreError::Damaged { .. }) => read_mended(backend, place, kinds)?.ok_or(error),
        other => other,
    }
}

fn read_as_it_is(
    backend: &dyn ContentBackend,
    place: Location,
    kinds: &[ChunkKind],
) -> Result<Vec<u8>, StoreError> {
    let name = pack_name(place.pack);
    let missing = |error| match error {
        BackendError::NotFound { .. } => damaged("pack", &name, Malformed("it is missing")),
        BackendError::TooShort { .. } => {
            damaged("chunk", place, Malformed("the pack is cut short"))
        }
        other => from_backend(other),
    };
    let head = backend.read(&name, place.offset, CHUNK_HEAD_BYTES).map_err(missing)?;
    let head = ChunkHead::parse(&head).map_err(|why| damaged("chunk", place, why))?;
    if !kinds.contains(&head.kind) {
        return Err(damaged("chunk", place, Malformed("it is of another kind than expected")));
    }
    let start = place.offset + CHUNK_HEAD_BYTES as u64;
    let payload = backend.read(&name, start, head.payload_bytes).map_err(missing)?;
    if !head.fits(place.pack, place.offset, &payload) {
        return Err(damaged("chunk", place, Malformed("its checksum does not fit")));
    }
    Ok(payload)
}

fn read_mended(
    backend: &dyn ContentBackend,
    place: Location,
    kinds: &[ChunkKind],
) -> Result<Option<Vec<u8>>, StoreError> {
    let name = pack_name(place.pack);
    let listed = backend.list().map_err(from_backend)?;
    let Some((_, length)) = listed.iter().find(|(listed, _)| *listed == name) else {
        return Ok(None);
    };
    let chunk = PackFile::new(backend, place.pack, *length).mended(place.offset)?;
    Ok(chunk.filter(|chunk| kinds.contains(&chunk.kind)).map(|chunk| chunk.payload))
}

/// What belongs in a gap of a pack, if that can be known. `uncovered` is where the part begins that
/// the next parity chunk covers, if it begins in front of the gap and nothing else is damaged in it.
fn mend(
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
    use crate::backend::MemoryBackend;

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
                (Found::Gap { .. }, _) => whole = None,
                (Found::Mended { start, bytes }, Some(whole)) => {
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
