//! A pack: an object that begins with a head chunk and, once it has ended, ends with its directory.

use crate::error::StoreError;
use crate::wire::{Malformed, Reader, put_varint};

/// The format that this program writes and reads.
pub(crate) const FORMAT: u16 = 1;
const NAME_HEAD: &str = "pack-";
const MAX_LISTED: usize = 1 << 20;

/// Where a chunk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Location {
    pub(crate) pack: u64,
    pub(crate) offset: u64,
}

impl Location {
    /// As one number for the index: packs stay below four gigabytes.
    pub(crate) fn to_number(self) -> i64 {
        ((self.pack << 32) | self.offset) as i64
    }

    pub(crate) fn from_number(number: i64) -> Self {
        Self { pack: number as u64 >> 32, offset: number as u64 & 0xffff_ffff }
    }
}

impl std::fmt::Display for Location {
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

/// What completes a compaction: a chunk in the last pack that it wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Generation {
    /// All packs that the compaction wrote.
    pub(crate) packs: Vec<u64>,
    /// The packs that are not needed any more once all of those have ended.
    pub(crate) replaces: Vec<u64>,
}

impl Generation {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for list in [&self.packs, &self.replaces] {
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
        Ok(Self { packs: list()?, replaces: list()? })
    }
}

pub(crate) fn damaged(what: &str, place: impl std::fmt::Display, why: Malformed) -> StoreError {
    let (what, place) = (what.to_owned(), place.to_string());
    StoreError::Damaged { what, place, cost: why.0.to_owned() }
}
