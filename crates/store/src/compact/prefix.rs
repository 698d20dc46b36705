//! The prefix of a site: blocks that many of its frames contain, so that each frame need not
//! repeat them. This is paper 001's similarity in space, across frames.

#![expect(
    clippy::disallowed_types,
    reason = "blocks are counted by hash; they are sorted before anything is decided"
)]

use std::collections::HashMap;

use crate::Digest;
use crate::cut::cut;
use crate::error::StoreError;
use crate::similar::hash;
use crate::squeeze;
use crate::wire::{Malformed, Reader, put_varint};

/// Different blocks that are counted; about 40 bytes of memory each.
const MAX_BLOCKS: usize = 1 << 20;
const MAX_PREFIX_BYTES: usize = 16 << 20;

type Read<'a> = &'a dyn Fn(&Digest) -> Result<Option<Vec<u8>>, StoreError>;

/// A block that was seen.
#[derive(Clone, Copy)]
struct Seen {
    frames: u32,
    last_frame: u32,
    body: u32,
    start: u32,
    length: u32,
}

/// Joins the blocks that the most frames share, in the order of the pages, up to `limit_bytes`.
pub(super) fn choose(
    bodies: &[Digest],
    frame_bytes: usize,
    limit_bytes: usize,
    read: Read<'_>,
) -> Result<Vec<u8>, StoreError> {
    let seen = count(bodies, frame_bytes, read)?;
    let mut shared: Vec<Seen> = seen.into_values().filter(|seen| seen.frames > 1).collect();
    shared.sort_unstable_by_key(|seen| (u32::MAX - seen.frames, seen.body, seen.start));
    let mut room = limit_bytes;
    let mut chosen: Vec<Seen> = shared
        .into_iter()
        .map_while(|seen| {
            room = room.checked_sub(seen.length as usize)?;
            Some(seen)
        })
        .collect();
    chosen.sort_unstable_by_key(|seen| (seen.body, seen.start));
    collect(bodies, &chosen, read)
}

/// In how many frames each block occurs.
fn count(
    bodies: &[Digest],
    frame_bytes: usize,
    read: Read<'_>,
) -> Result<HashMap<u64, Seen>, StoreError> {
    let mut seen: HashMap<u64, Seen> = HashMap::new();
    let (mut frame, mut filled) = (0u32, 0);
    for (at, digest) in bodies.iter().enumerate() {
        let Some(body) = read(digest)? else { continue };
        if filled > 0 && filled + body.len() > frame_bytes {
            frame += 1;
            filled = 0;
        }
        filled += body.len();
        let mut start = 0;
        for block in cut(&body) {
            let first = Seen {
                frames: 0,
                last_frame: u32::MAX,
                body: at as u32,
                start: start as u32,
                length: block.len() as u32,
            };
            start += block.len();
            let key = hash(block);
            if seen.len() >= MAX_BLOCKS && !seen.contains_key(&key) {
                continue;
            }
            let known = seen.entry(key).or_insert(first);
            if known.last_frame != frame {
                known.last_frame = frame;
                known.frames += 1;
            }
        }
    }
    Ok(seen)
}

fn collect(bodies: &[Digest], chosen: &[Seen], read: Read<'_>) -> Result<Vec<u8>, StoreError> {
    let mut prefix = Vec::new();
    for of_body in chosen.chunk_by(|a, b| a.body == b.body) {
        let Some(body) = read(&bodies[of_body[0].body as usize])? else { continue };
        for seen in of_body {
            let start = seen.start as usize;
            prefix.extend_from_slice(body.get(start..start + seen.length as usize).unwrap_or(b""));
        }
    }
    Ok(prefix)
}

/// The payload of a prefix chunk.
pub(super) fn encode(prefix: &[u8], level: i32) -> Vec<u8> {
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
