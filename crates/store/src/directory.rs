//! The directory of a pack: which chunks it has, and which bodies are in them. It is the last chunk of
//! a pack that has ended, so that an index is made without reading bodies.
//!
//! The keys of bodies would take most of its space, and records have them already. So a
//! body is named by the record of the pack that it belongs to.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::bodies::BodiesHead;
use crate::chunk::{CHUNK_HEAD_BYTES, ChunkHead, ChunkKind, MAX_PAYLOAD_BYTES};
use crate::digest::BodyKey;
use crate::error::StoreError;
use crate::media::Class;
use crate::pack::Generation;
use crate::packfile::{Chunk, PackFile};
use crate::rows::{self, MAX_ROWS, RowKey};
use crate::wire::{Malformed, Reader, put_signed, put_varint};
use crate::{forgotten, squeeze};

const LEVEL: i32 = 12;
/// What a directory may take when it is unpacked.
const MAX_RAW_BYTES: usize = 256 << 20;
/// Behind the directory: its length, by which it is found from the end of the pack.
const TAIL_BYTES: usize = 4;
/// Enough for the head of most chunks that hold one body.
const FRONT_BYTES: usize = 240;

/// A chunk of a pack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) offset: u64,
    pub(crate) kind: ChunkKind,
    pub(crate) total_bytes: u64,
    pub(crate) content: Content,
}

/// What the index must know of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Bodies of a site with their lengths as received.
    Bodies {
        site: u32,
        class: Class,
        bodies: Vec<(BodyKey, u64)>,
    },
    Versions(Vec<RowKey>),
    /// Sites and numbers of versions.
    Forgotten(Vec<(u32, u64)>),
    Generation(Generation),
    /// Nothing, or nothing that can be read.
    Nothing,
}

impl Content {
    /// Bodies need only the front of their payload.
    pub(crate) fn of(kind: ChunkKind, payload: &[u8]) -> Result<Self, Malformed> {
        Ok(match kind {
            ChunkKind::Bodies => {
                let (head, _) = BodiesHead::parse(payload)?;
                let bodies = head.entries.iter().map(|entry| (entry.key, entry.body_bytes));
                Self::Bodies { site: head.group, class: head.class, bodies: bodies.collect() }
            }
            ChunkKind::Versions => Self::Versions(rows::decode_keys(payload)?),
            ChunkKind::Forgotten => Self::Forgotten(forgotten::decode(payload)?),
            ChunkKind::Generation => Self::Generation(Generation::parse(payload)?),
            ChunkKind::PackHead | ChunkKind::Prefix | ChunkKind::Parity | ChunkKind::PackEnd => {
                Self::Nothing
            }
        })
    }
}

impl Listed {
    pub(crate) fn payload_bytes(&self) -> u64 {
        self.total_bytes - CHUNK_HEAD_BYTES as u64
    }

    pub(crate) fn of(chunk: &Chunk) -> Result<Self, Malformed> {
        let Chunk { offset, kind, payload } = chunk;
        let content = Content::of(*kind, payload)?;
        Ok(Self { offset: *offset, kind: *kind, total_bytes: chunk.total_bytes(), content })
    }
}

/// The payload of the chunk that ends a pack at `end`. None if something in front of that is not a
/// chunk; no bodies are read for it.
pub(crate) fn build(pack: &PackFile<'_>, end: u64) -> Result<Option<Vec<u8>>, StoreError> {
    let mut listed = Vec::new();
    let mut offset = 0;
    while offset < end {
        let Some(chunk) = list_chunk(pack, offset)? else { return Ok(None) };
        offset += chunk.total_bytes;
        listed.push(chunk);
    }
    Ok(Some(encode(&columns(&listed))))
}

/// The chunk there, by its head and as much of its payload as is needed.
pub(crate) fn list_chunk(pack: &PackFile<'_>, offset: u64) -> Result<Option<Listed>, StoreError> {
    let count = pack.length.saturating_sub(offset).min((CHUNK_HEAD_BYTES + FRONT_BYTES) as u64);
    let Some(front) = pack.read(offset, count as usize)? else { return Ok(None) };
    let Ok(head) = ChunkHead::parse(&front) else { return Ok(None) };
    let (kind, total_bytes) = (head.kind, head.total_bytes());
    let front = front.get(CHUNK_HEAD_BYTES..).unwrap_or_default();
    let front = &front[..front.len().min(head.payload_bytes)];
    let is_enough = kind == ChunkKind::Bodies || front.len() == head.payload_bytes;
    if let (true, Ok(content)) = (is_enough, Content::of(kind, front)) {
        return Ok(Some(Listed { offset, kind, total_bytes, content }));
    }
    let needs_more = !matches!(Content::of(kind, &[]), Ok(Content::Nothing));
    let rest = match needs_more {
        true => pack.read(offset + CHUNK_HEAD_BYTES as u64, head.payload_bytes)?,
        false => Some(Vec::new()),
    };
    let content = rest.and_then(|payload| Content::of(kind, &payload).ok());
    Ok(content.map(|content| Listed { offset, kind, total_bytes, content }))
}

/// Everything that a directory says, column by column.
pub(crate) fn columns(chunks: &[Listed]) -> Vec<u8> {
    let mut raw = Vec::new();
    put_varint(&mut raw, chunks.len() as u64);
    raw.extend(chunks.iter().map(|chunk| chunk.kind as u8));
    chunks.iter().for_each(|chunk| put_varint(&mut raw, chunk.total_bytes));
    let mut rows = BTreeMap::new();
    let mut number = 0;
    for chunk in chunks {
        if let Content::Versions(keys) = &chunk.content {
            put_varint(&mut raw, keys.len() as u64);
            for row in keys {
                rows.entry(row.key).or_insert(number);
                number += 1;
            }
        }
    }
    put_bodies(&mut raw, chunks, &rows);
    raw
}

fn put_bodies(raw: &mut Vec<u8>, chunks: &[Listed], rows: &BTreeMap<BodyKey, i64>) {
    let of_bodies = || {
        chunks.iter().filter_map(|chunk| match &chunk.content {
            Content::Bodies { site, class, bodies } => Some((*site, *class, bodies)),
            _ => None,
        })
    };
    let mut last = 0;
    for (site, ..) in of_bodies() {
        put_signed(raw, i64::from(site) - last);
        last = i64::from(site);
    }
    raw.extend(of_bodies().map(|(_, class, _)| class as u8));
    of_bodies().for_each(|(.., bodies)| put_varint(raw, bodies.len() as u64));
    let mut without_record = Vec::new();
    let mut next = 0;
    for (key, body_bytes) in of_bodies().flat_map(|(.., bodies)| bodies) {
        let Some(row) = rows.get(key) else {
            put_varint(raw, 0);
            without_record.extend_from_slice(&key.0);
            put_varint(&mut without_record, *body_bytes);
            continue;
        };
        let distance = row - next;
        put_varint(raw, (((distance << 1) ^ (distance >> 63)) as u64) + 1);
        next = row + 1;
    }
    raw.extend_from_slice(&without_record);
}

fn encode(raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, raw.len() as u64);
    out.extend_from_slice(&squeeze::compress(raw, LEVEL, b""));
    let length = (out.len() + TAIL_BYTES) as u32;
    out.extend_from_slice(&length.to_le_bytes());
    out
}

/// What [`columns`] made.
pub(crate) fn unpack(payload: &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut reader = Reader::new(payload);
    let raw_bytes = reader.count(MAX_RAW_BYTES)?;
    let frame_bytes = reader.rest().len().checked_sub(TAIL_BYTES);
    let frame = reader.take(frame_bytes.ok_or(Malformed("cut short"))?)?;
    squeeze::decompress(frame, raw_bytes, b"")
}

/// The chunk that ends the pack, if one does.
pub(crate) fn find_end(pack: &PackFile<'_>) -> Result<Option<Chunk>, StoreError> {
    let tail = pack.length.checked_sub(TAIL_BYTES as u64).map(|at| pack.read(at, TAIL_BYTES));
    let Some(tail) = tail.transpose()?.flatten() else { return Ok(None) };
    let total_bytes = CHUNK_HEAD_BYTES as u64 + number(&tail);
    let Some(offset) = pack.length.checked_sub(total_bytes) else { return Ok(None) };
    let is_end =
        |head: ChunkHead| head.kind == ChunkKind::PackEnd && head.total_bytes() == total_bytes;
    match pack.chunk_head(offset)?.is_some_and(is_end) {
        true => pack.chunk_at(offset),
        false => Ok(None),
    }
}

/// Whether a gap at the end of a pack is as long as it says itself that a directory is.
pub(crate) fn may_be_end(pack: &PackFile<'_>, gap: &Range<u64>) -> Result<bool, StoreError> {
    let Some(payload_bytes) = (gap.end - gap.start).checked_sub(CHUNK_HEAD_BYTES as u64) else {
        return Ok(false);
    };
    for at in [gap.start + 4, gap.end - TAIL_BYTES as u64] {
        if pack.read(at, TAIL_BYTES)?.is_some_and(|length| number(&length) == payload_bytes) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn number(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from(u32::from_le_bytes(*bytes)))
}

/// A directory as it is written.
pub(crate) struct Table {
    pub(crate) chunks: Vec<TableRow>,
    /// Lengths of the lists of records, in the order of their chunks.
    pub(crate) row_counts: Vec<usize>,
    pub(crate) bodies: Vec<TableBodies>,
}

pub(crate) struct TableRow {
    pub(crate) kind: ChunkKind,
    pub(crate) total_bytes: u64,
}

pub(crate) struct TableBodies {
    pub(crate) site: u32,
    pub(crate) class: Class,
    pub(crate) bodies: Vec<Named>,
}

/// How a directory names a body.
pub(crate) enum Named {
    ByRow(usize),
    ByKey(BodyKey, u64),
}

impl Table {
    pub(crate) fn parse(raw: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(raw);
        let count = reader.count(raw.len())?;
        let kinds = reader.take(count)?;
        let mut chunks = Vec::with_capacity(count);
        for kind in kinds {
            let kind = ChunkKind::from_byte(*kind).ok_or(Malformed("unknown chunk kind"))?;
            let total_bytes = reader.count(MAX_PAYLOAD_BYTES + CHUNK_HEAD_BYTES)?;
            if total_bytes < CHUNK_HEAD_BYTES {
                return Err(Malformed("chunk shorter than its head"));
            }
            chunks.push(TableRow { kind, total_bytes: total_bytes as u64 });
        }
        let count_of = |kind| chunks.iter().filter(|chunk| chunk.kind == kind).count();
        let row_counts = (0..count_of(ChunkKind::Versions)).map(|_| reader.count(MAX_ROWS));
        let row_counts = row_counts.collect::<Result<_, _>>()?;
        let bodies = parse_bodies(&mut reader, count_of(ChunkKind::Bodies))?;
        Ok(Self { chunks, row_counts, bodies })
    }
}

fn parse_bodies(reader: &mut Reader<'_>, count: usize) -> Result<Vec<TableBodies>, Malformed> {
    let mut site = 0i64;
    let mut next_site = || {
        site = site.wrapping_add(reader.signed()?);
        u32::try_from(site).map_err(|_| Malformed("site too large"))
    };
    let sites = (0..count).map(|_| next_site()).collect::<Result<Vec<_>, _>>()?;
    let classes = reader.take(count)?;
    let limit = reader.rest().len();
    let counts = (0..count).map(|_| reader.count(limit)).collect::<Result<Vec<_>, _>>()?;
    let mut all = Vec::with_capacity(count);
    let mut next = 0i64;
    for ((site, class), count) in sites.into_iter().zip(classes).zip(counts) {
        let class = Class::from_byte(*class).ok_or(Malformed("unknown class"))?;
        let mut bodies = Vec::new();
        for _ in 0..count {
            bodies.push(match reader.varint()?.checked_sub(1) {
                None => Named::ByKey(BodyKey::default(), 0),
                Some(distance) => {
                    let distance = (distance >> 1) as i64 ^ -((distance & 1) as i64);
                    let row = next.wrapping_add(distance);
                    next = row.wrapping_add(1);
                    Named::ByRow(usize::try_from(row).map_err(|_| Malformed("no such record"))?)
                }
            });
        }
        all.push(TableBodies { site, class, bodies });
    }
    for body in all.iter_mut().flat_map(|chunk| &mut chunk.bodies) {
        if let Named::ByKey(key, body_bytes) = body {
            (*key, *body_bytes) = (BodyKey(reader.array()?), reader.varint()?);
        }
    }
    Ok(all)
}
