//! The prefix of a site: what many of its frames contain, so that each frame need not repeat it.
//! This is paper 001's similarity in space, across frames.

use crate::Digest;
use crate::error::StoreError;
use crate::squeeze;
use crate::wire::{Malformed, Reader, put_varint};

const MAX_PREFIX_BYTES: usize = 16 << 20;
/// What is counted: so many bytes in a row, which is about what a match costs less than.
const GRAM_BYTES: usize = 8;
/// Grams are counted by hash, in three bytes of memory each.
const TABLE_BITS: u32 = 22;
/// What is taken: parts of pages of this length.
const PART_BYTES: usize = 512;
/// Pages that are looked at, evenly over the site.
const MAX_PAGES: usize = 4096;
/// Times that pages are looked through, for what is less and less common.
const MAX_ROUNDS: usize = 8;

/// Gives the bytes of a body, unless it is damaged.
pub(crate) type Read<'a> = &'a dyn Fn(&Digest) -> Result<Option<Vec<u8>>, StoreError>;

/// Joins the parts of pages that the most frames share, up to `limit_bytes`, the most common ones
/// at the end, where they are nearest. Each of `pages` is one body of a page; they come in the
/// order in which `frames` frames will take them.
pub(crate) fn choose(
    pages: &[Digest],
    frames: usize,
    limit_bytes: usize,
    read: Read<'_>,
) -> Result<Vec<u8>, StoreError> {
    if frames < 2 {
        return Ok(Vec::new());
    }
    let pages: Vec<&Digest> =
        pages.iter().step_by(pages.len().div_ceil(MAX_PAGES).max(1)).collect();
    let mut grams = count(&pages, frames, read)?;
    let mut rounds: Vec<Vec<u8>> = Vec::new();
    let mut space = limit_bytes;
    // By how many further frames a byte that is taken is to be found in, on average.
    let mut shared_by = (frames - 1) / 2;
    while rounds.len() < MAX_ROUNDS && space >= PART_BYTES {
        let chosen = take(&pages, &mut grams, shared_by.max(1), space, read)?;
        space -= chosen.len();
        rounds.push(chosen);
        if shared_by <= 1 {
            break;
        }
        shared_by /= 2;
    }
    rounds.reverse();
    Ok(rounds.concat())
}

/// In how many frames besides the first each gram occurs.
struct Grams(Vec<u8>);

impl Grams {
    fn slot(gram: &[u8]) -> usize {
        const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;
        let word = gram.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        (word.wrapping_mul(PRIME) >> (u64::BITS - TABLE_BITS)) as usize
    }

    fn of(&self, part: &[u8]) -> usize {
        part.windows(GRAM_BYTES).map(|gram| usize::from(self.0[Self::slot(gram)])).sum()
    }

    /// What is in the prefix is worth nothing a second time.
    fn spend(&mut self, part: &[u8]) {
        part.windows(GRAM_BYTES).for_each(|gram| self.0[Self::slot(gram)] = 0);
    }
}

fn count(pages: &[&Digest], frames: usize, read: Read<'_>) -> Result<Grams, StoreError> {
    let mut further = vec![0u8; 1 << TABLE_BITS];
    // The last frame of each gram; frames are counted from 1.
    let mut last = vec![0u16; 1 << TABLE_BITS];
    for (at, digest) in pages.iter().enumerate() {
        let Some(body) = read(digest)? else { continue };
        let frame = (at * frames / pages.len() % usize::from(u16::MAX)) as u16 + 1;
        for gram in body.windows(GRAM_BYTES) {
            let slot = Grams::slot(gram);
            if last[slot] != frame {
                let is_known = last[slot] != 0;
                last[slot] = frame;
                further[slot] = further[slot].saturating_add(u8::from(is_known));
            }
        }
    }
    Ok(Grams(further))
}

/// One look through all pages for parts that are shared by so many further frames.
fn take(
    pages: &[&Digest],
    grams: &mut Grams,
    shared_by: usize,
    space: usize,
    read: Read<'_>,
) -> Result<Vec<u8>, StoreError> {
    let grams_in_part = PART_BYTES - GRAM_BYTES + 1;
    // Hashes meet, and a part need not be shared to its last byte.
    let enough = shared_by.min(usize::from(u8::MAX) / 2) * grams_in_part * 3 / 4;
    let mut chosen = Vec::new();
    for digest in pages {
        if chosen.len() + PART_BYTES > space {
            break;
        }
        let Some(body) = read(digest)? else { continue };
        for part in body.chunks_exact(PART_BYTES) {
            if grams.of(part) >= enough && chosen.len() + PART_BYTES <= space {
                grams.spend(part);
                chosen.extend_from_slice(part);
            }
        }
    }
    Ok(chosen)
}

/// The payload of a prefix chunk.
pub(crate) fn encode(prefix: &[u8], level: i32) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, prefix.len() as u64);
    out.extend_from_slice(&squeeze::compress(prefix, level, b""));
    out
}

pub(crate) fn decode(buffer: Vec<u8>, payload: &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut reader = Reader::new(payload);
    let length = reader.count(MAX_PREFIX_BYTES)?;
    squeeze::decompress_into(buffer, reader.rest(), length, b"")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn noise(seed: u64, bytes: usize) -> Vec<u8> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u8
        };
        (0..bytes).map(|_| next()).collect()
    }

    fn chosen(bodies: Vec<Vec<u8>>, frames: usize, limit_bytes: usize) -> Vec<u8> {
        let by_digest: BTreeMap<Digest, Vec<u8>> =
            bodies.iter().map(|body| (Digest::of(body), body.clone())).collect();
        let pages: Vec<Digest> = bodies.iter().map(|body| Digest::of(body)).collect();
        let read = |digest: &Digest| Ok(by_digest.get(digest).cloned());
        choose(&pages, frames, limit_bytes, &read).unwrap()
    }

    fn contains(prefix: &[u8], wanted: &[u8]) -> bool {
        memchr::memmem::find(prefix, wanted).is_some()
    }

    #[test]
    fn what_frames_share_is_there_once_and_the_most_common_stands_last() {
        let (all, two) = (noise(1, 4096), noise(2, 4096));
        let page = |n: u64| {
            let own = noise(100 + n, 4096);
            [&all[..], if n.is_multiple_of(4) { &two } else { b"" }, &own[..]].concat()
        };
        let prefix = chosen((0..8).map(page).collect(), 8, 1 << 20);
        assert!(prefix.ends_with(&all), "{} bytes", prefix.len());
        assert!(contains(&prefix, &two[..2048]));
        // A part that is cut across where two things meet may come in, but no page of its own.
        assert!(prefix.len() < 4096 * 2 + 4096, "{} bytes", prefix.len());
        assert!((0..8).all(|n| !contains(&prefix, &noise(100 + n, 4096)[..1024])));
    }

    #[test]
    fn the_limit_holds_and_one_frame_needs_no_prefix() {
        let pages: Vec<Vec<u8>> = (0..6).map(|n| [noise(7, 8000), vec![n; 20]].concat()).collect();
        assert_eq!(chosen(pages.clone(), 6, 3000).len(), 3000 / PART_BYTES * PART_BYTES);
        assert!(chosen(pages.clone(), 1, 3000).is_empty());
        assert!(chosen(pages, 6, 100).is_empty());
        assert!(chosen(Vec::new(), 6, 3000).is_empty());
    }
}
