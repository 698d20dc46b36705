//! A chunk is the unit that is written, checked and lost as a whole.
//!
//! Its checksum covers the pack's number and its own offset: a chunk at another position, for
//! instance inside a body that a website served, is never taken for a chunk of the archive.

use crate::wire::{Malformed, Reader};

pub(crate) const CHUNK_MAGIC: [u8; 3] = *b"nr\xf1";
pub(crate) const CHUNK_HEAD_BYTES: usize = 16;
/// A gigabyte and what is in front of it: larger bodies are in pieces.
pub(crate) const MAX_PAYLOAD_BYTES: usize = (1 << 30) + (1 << 20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkKind {
    PackHead = 1,
    Bodies = 2,
    Versions = 3,
    Forgotten = 4,
    Prefix = 5,
    Generation = 6,
    Parity = 7,
    PackEnd = 8,
}

impl ChunkKind {
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::PackHead,
            2 => Self::Bodies,
            3 => Self::Versions,
            4 => Self::Forgotten,
            5 => Self::Prefix,
            6 => Self::Generation,
            7 => Self::Parity,
            8 => Self::PackEnd,
            _ => return None,
        })
    }
}

/// The fixed part in front of every payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkHead {
    pub(crate) kind: ChunkKind,
    pub(crate) payload_bytes: usize,
    checksum: [u8; 8],
}

impl ChunkHead {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        if reader.array::<3>()? != CHUNK_MAGIC {
            return Err(Malformed("no chunk begins here"));
        }
        let kind = ChunkKind::from_byte(reader.byte()?).ok_or(Malformed("unknown chunk kind"))?;
        let payload_bytes = u32::from_le_bytes(reader.array()?) as usize;
        if payload_bytes > MAX_PAYLOAD_BYTES {
            return Err(Malformed("chunk above its limit"));
        }
        Ok(Self { kind, payload_bytes, checksum: reader.array()? })
    }

    pub(crate) fn fits(&self, pack: u64, offset: u64, payload: &[u8]) -> bool {
        checksum(self.kind, pack, offset, payload) == self.checksum
    }

    /// Length of the whole chunk.
    pub(crate) fn total_bytes(&self) -> u64 {
        (CHUNK_HEAD_BYTES + self.payload_bytes) as u64
    }
}

/// The whole chunk, ready to be appended at `offset` of pack `pack`.
pub(crate) fn seal_chunk(kind: ChunkKind, pack: u64, offset: u64, payload: &[u8]) -> Vec<u8> {
    [&chunk_head(kind, pack, offset, payload), payload].concat()
}

/// What goes in front of a payload.
pub(crate) fn chunk_head(
    kind: ChunkKind,
    pack: u64,
    offset: u64,
    payload: &[u8],
) -> [u8; CHUNK_HEAD_BYTES] {
    assert!(payload.len() <= MAX_PAYLOAD_BYTES, "callers bound what goes into a chunk");
    let mut head = [0; CHUNK_HEAD_BYTES];
    head[..3].copy_from_slice(&CHUNK_MAGIC);
    head[3] = kind as u8;
    head[4..8].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    head[8..].copy_from_slice(&checksum(kind, pack, offset, payload));
    head
}

fn checksum(kind: ChunkKind, pack: u64, offset: u64, payload: &[u8]) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&pack.to_le_bytes());
    hasher.update(&offset.to_le_bytes());
    hasher.update(&[kind as u8]);
    hasher.update(payload);
    let mut short = [0; 8];
    short.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    short
}
