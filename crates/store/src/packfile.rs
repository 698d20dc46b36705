//! One pack as it is: bytes, chunks whose checksums fit, and where the next one begins.

use crate::backend::ContentBackend;
use crate::bodies::BodiesHead;
use crate::chunk::{CHUNK_HEAD_BYTES, CHUNK_MAGIC, ChunkHead, ChunkKind};
use crate::error::{BackendError, StoreError, from_backend};
use crate::pack::{Location, damaged, pack_name};
use crate::wire::Malformed;

/// How many bytes are looked at together when a chunk is searched behind damage.
const SEARCH_WINDOW_BYTES: usize = 1 << 20;
/// Enough for the heads of most bodies chunks.
const BODIES_HEAD_GUESS_BYTES: usize = 16 << 10;

/// A pack of which `length` bytes are read.
pub(crate) struct PackFile<'b> {
    backend: &'b dyn ContentBackend,
    pub(crate) number: u64,
    pub(crate) length: u64,
    name: String,
}

/// A chunk whose checksum fits.
pub(crate) struct Chunk {
    pub(crate) offset: u64,
    pub(crate) kind: ChunkKind,
    pub(crate) payload: Vec<u8>,
}

impl Chunk {
    pub(crate) fn total_bytes(&self) -> u64 {
        (CHUNK_HEAD_BYTES + self.payload.len()) as u64
    }

    pub(crate) fn end(&self) -> u64 {
        self.offset + self.total_bytes()
    }

    pub(crate) fn is_parity(&self) -> bool {
        self.kind == ChunkKind::Parity
    }
}

impl<'b> PackFile<'b> {
    pub(crate) fn new(backend: &'b dyn ContentBackend, number: u64, length: u64) -> Self {
        Self { backend, number, length, name: pack_name(number) }
    }

    /// The bytes there; none if the pack is shorter.
    pub(crate) fn read(&self, at: u64, count: usize) -> Result<Option<Vec<u8>>, StoreError> {
        if self.length.checked_sub(at).is_none_or(|rest| rest < count as u64) {
            return Ok(None);
        }
        match self.backend.read(&self.name, at, count) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(BackendError::TooShort { .. }) => Ok(None),
            Err(other) => Err(from_backend(other)),
        }
    }

    /// The head of the chunk at `offset`, if one that ends within the pack begins there.
    pub(crate) fn chunk_head(&self, offset: u64) -> Result<Option<ChunkHead>, StoreError> {
        let head = self.read(offset, CHUNK_HEAD_BYTES)?;
        let head = head.and_then(|head| ChunkHead::parse(&head).ok());
        Ok(head.filter(|head| head.total_bytes() <= self.length - offset))
    }

    /// The chunk at `offset` if its checksum fits.
    pub(crate) fn chunk_at(&self, offset: u64) -> Result<Option<Chunk>, StoreError> {
        let Some(head) = self.chunk_head(offset)? else { return Ok(None) };
        let payload = self.read(offset + CHUNK_HEAD_BYTES as u64, head.payload_bytes)?;
        let payload = payload.filter(|payload| head.fits(self.number, offset, payload));
        Ok(payload.map(|payload| Chunk { offset, kind: head.kind, payload }))
    }

    /// The chunks that `bytes`, which belong at `start`, consist of; none if that is not all.
    pub(crate) fn chunks_in(&self, start: u64, bytes: &[u8]) -> Option<Vec<Chunk>> {
        let mut chunks = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let offset = start + (bytes.len() - rest.len()) as u64;
            let (head, behind) = rest.split_at_checked(CHUNK_HEAD_BYTES)?;
            let head = ChunkHead::parse(head).ok()?;
            let (payload, behind) = behind.split_at_checked(head.payload_bytes)?;
            if !head.fits(self.number, offset, payload) {
                return None;
            }
            chunks.push(Chunk { offset, kind: head.kind, payload: payload.to_vec() });
            rest = behind;
        }
        Some(chunks)
    }

    /// The offset of the next chunk whose checksum fits, or the end of the pack.
    pub(crate) fn next_chunk(&self, from: u64) -> Result<u64, StoreError> {
        let mut at = from;
        while at < self.length {
            let count = (self.length - at).min(SEARCH_WINDOW_BYTES as u64) as usize;
            let Some(window) = self.read(at, count)? else { break };
            for found in memchr::memmem::find_iter(&window, &CHUNK_MAGIC) {
                let offset = at + found as u64;
                if self.chunk_at(offset)?.is_some() {
                    return Ok(offset);
                }
            }
            if at + count as u64 == self.length {
                break;
            }
            at += (count - CHUNK_MAGIC.len() + 1) as u64;
        }
        Ok(self.length)
    }
}

/// The head of a bodies chunk, without reading its data and so without its checksum: enough to know
/// whether a body is there, since every body is checked when it is read.
pub(crate) fn read_bodies_head(
    backend: &dyn ContentBackend,
    place: Location,
) -> Result<BodiesHead, StoreError> {
    let name = pack_name(place.pack);
    let read = |offset: u64, length: usize| {
        backend.read(&name, offset, length).map_err(|error| match error {
            BackendError::Io { .. } | BackendError::NoRoom { .. } => from_backend(error),
            _ => damaged("bodies chunk", place, Malformed("it is missing")),
        })
    };
    let head = read(place.offset, CHUNK_HEAD_BYTES)?;
    let head = ChunkHead::parse(&head).map_err(|why| damaged("bodies chunk", place, why))?;
    if head.kind != ChunkKind::Bodies {
        return Err(damaged("bodies chunk", place, Malformed("a chunk of another kind is there")));
    }
    let start = place.offset + CHUNK_HEAD_BYTES as u64;
    let payload = read(start, head.payload_bytes.min(BODIES_HEAD_GUESS_BYTES))?;
    if let Ok((head, _)) = BodiesHead::parse(&payload) {
        return Ok(head);
    }
    let payload = read(start, head.payload_bytes)?;
    let (head, _) =
        BodiesHead::parse(&payload).map_err(|why| damaged("bodies chunk", place, why))?;
    Ok(head)
}
