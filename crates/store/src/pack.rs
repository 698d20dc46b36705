//! A pack: an object that begins with a head chunk and, once it is finished, ends with an end
//! chunk. In between it can be walked from chunk to chunk, over damaged places too.

use crate::backend::ContentBackend;
use crate::chunk::{CHUNK_HEAD_BYTES, CHUNK_MAGIC, ChunkHead, ChunkKind};
use crate::error::{BackendError, StoreError, from_backend};
use crate::wire::{Malformed, Reader, put_varint};

/// The newest format that this program writes and reads.
pub(crate) const FORMAT: u16 = 5;
const NAME_HEAD: &str = "pack-";
/// How many bytes are looked at together when a chunk is searched behind damage.
const SEARCH_WINDOW_BYTES: usize = 1 << 20;
const MAX_LISTED: usize = 1 << 20;

/// Where a chunk lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub(crate) pack: u64,
    pub(crate) offset: u64,
}

impl Place {
    /// As one number for the index: packs stay below four gigabytes.
    pub(crate) fn to_number(self) -> i64 {
        ((self.pack << 32) | self.offset) as i64
    }

    pub(crate) fn from_number(number: i64) -> Self {
        Self { pack: number as u64 >> 32, offset: number as u64 & 0xffff_ffff }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} byte {}", pack_name(self.pack), self.offset)
    }
}

pub(crate) fn pack_name(number: u64) -> String {
    format!("{NAME_HEAD}{number:010}")
}

pub(crate) fn pack_number(name: &str) -> Option<u64> {
    let number = name.strip_prefix(NAME_HEAD)?.parse().ok()?;
    (pack_name(number) == name && number < 1 << 31).then_some(number)
}

/// The first chunk of a pack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PackHead {
    pub(crate) number: u64,
    /// Version numbers below this are taken, whatever was deleted since.
    pub(crate) next_version: u64,
    /// Which compaction wrote it; 0 while collecting.
    pub(crate) generation: u64,
}

impl PackHead {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = FORMAT.to_le_bytes().to_vec();
        for number in [self.number, self.next_version, self.generation] {
            put_varint(&mut out, number);
        }
        out
    }

    pub(crate) fn parse(payload: &[u8], name: &str) -> Result<Self, StoreError> {
        let found = payload.first_chunk().map_or(0, |bytes| u16::from_le_bytes(*bytes));
        if found > FORMAT {
            let place = name.to_owned();
            return Err(StoreError::FormatTooNew { place, found, known: FORMAT });
        }
        let parse = || -> Result<Self, Malformed> {
            let mut reader = Reader::new(payload);
            reader.take(2)?;
            let [number, next_version, generation] =
                [reader.varint()?, reader.varint()?, reader.varint()?];
            Ok(Self { number, next_version, generation })
        };
        parse().map_err(|why| damaged("pack head", name, why))
    }
}

/// The last chunk of a finished pack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PackEnd {
    /// In the last pack of a generation: all packs of it.
    pub(crate) generation: Vec<u64>,
    /// And the packs that are not needed any more once all of those are there.
    pub(crate) replaces: Vec<u64>,
}

impl PackEnd {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for list in [&self.generation, &self.replaces] {
            put_varint(&mut out, list.len() as u64);
            list.iter().for_each(|number| put_varint(&mut out, *number));
        }
        out
    }

    pub(crate) fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(payload);
        let mut list = || -> Result<Vec<u64>, Malformed> {
            let count = reader.count(MAX_LISTED)?;
            (0..count).map(|_| reader.varint()).collect()
        };
        Ok(Self { generation: list()?, replaces: list()? })
    }
}

pub(crate) fn damaged(what: &str, place: impl std::fmt::Display, why: Malformed) -> StoreError {
    let (what, place) = (what.to_owned(), place.to_string());
    StoreError::Damaged { what, place, cost: why.0.to_owned() }
}

/// Reads and checks one chunk.
pub(crate) fn read_chunk(
    backend: &dyn ContentBackend,
    place: Place,
    kinds: &[ChunkKind],
) -> Result<(ChunkKind, Vec<u8>), StoreError> {
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
    Ok((head.kind, payload))
}

/// Whether the pack says that it has this program's format. What is written into one of an earlier
/// format would be taken for damage by a program that knows only that.
pub(crate) fn is_of_present_format(
    backend: &dyn ContentBackend,
    number: u64,
) -> Result<bool, StoreError> {
    match read_chunk(backend, Place { pack: number, offset: 0 }, &[ChunkKind::PackHead]) {
        Ok((_, payload)) => Ok(payload.starts_with(&FORMAT.to_le_bytes())),
        Err(StoreError::Damaged { .. }) => Ok(false),
        Err(other) => Err(other),
    }
}

/// What a walk over a pack finds, in order.
pub(crate) enum Found {
    Chunk {
        offset: u64,
        kind: ChunkKind,
        payload: Vec<u8>,
    },
    /// Bytes that are no chunk: a torn tail, or damage.
    Gap {
        start: u64,
        end: u64,
    },
}

/// Walks the chunks of a pack from `from` to `length`, resuming behind damage at the next chunk
/// whose checksum fits.
pub(crate) fn walk(
    backend: &dyn ContentBackend,
    number: u64,
    from: u64,
    length: u64,
    visit: &mut dyn FnMut(Found) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut offset = from;
    while offset < length {
        if let Some((head, payload)) = chunk_at(backend, number, offset, length)? {
            visit(Found::Chunk { offset, kind: head.kind, payload })?;
            offset += head.total_bytes();
        } else {
            let end = next_chunk(backend, number, offset + 1, length)?;
            visit(Found::Gap { start: offset, end })?;
            offset = end;
        }
    }
    Ok(())
}

/// The chunk at `offset` if a sound one lies there.
fn chunk_at(
    backend: &dyn ContentBackend,
    number: u64,
    offset: u64,
    length: u64,
) -> Result<Option<(ChunkHead, Vec<u8>)>, StoreError> {
    let name = pack_name(number);
    let read = |at: u64, count: usize| match backend.read(&name, at, count) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(BackendError::TooShort { .. }) => Ok(None),
        Err(other) => Err(from_backend(other)),
    };
    if length - offset < CHUNK_HEAD_BYTES as u64 {
        return Ok(None);
    }
    let Some(head) = read(offset, CHUNK_HEAD_BYTES)? else { return Ok(None) };
    let Ok(head) = ChunkHead::parse(&head) else { return Ok(None) };
    if head.total_bytes() > length - offset {
        return Ok(None);
    }
    let Some(payload) = read(offset + CHUNK_HEAD_BYTES as u64, head.payload_bytes)? else {
        return Ok(None);
    };
    Ok(head.fits(number, offset, &payload).then_some((head, payload)))
}

/// The offset of the next sound chunk, or the end.
fn next_chunk(
    backend: &dyn ContentBackend,
    number: u64,
    from: u64,
    length: u64,
) -> Result<u64, StoreError> {
    let name = pack_name(number);
    let mut at = from;
    while at < length {
        let count = (length - at).min(SEARCH_WINDOW_BYTES as u64) as usize;
        let window = backend.read(&name, at, count).map_err(from_backend)?;
        for found in memchr::memmem::find_iter(&window, &CHUNK_MAGIC) {
            let offset = at + found as u64;
            if chunk_at(backend, number, offset, length)?.is_some() {
                return Ok(offset);
            }
        }
        if at + count as u64 == length {
            break;
        }
        at += (count - CHUNK_MAGIC.len() + 1) as u64;
    }
    Ok(length)
}
