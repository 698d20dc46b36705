//! A bodies chunk: one or many bodies, compressed together, behind a head that lists them.

use crate::digest::{BODY_KEY_BYTES, BodyKey};
use crate::media::Class;
use crate::wire::{Malformed, Reader, put_varint};

/// The stored form of a large body: the list of its pieces.
pub(crate) const LIST: u8 = 7;
/// The largest body that the format takes.
pub const MAX_BODY_BYTES: u64 = 4 << 30;
/// Bodies in one chunk.
pub(crate) const MAX_ENTRIES: usize = 1 << 16;

/// What precedes the compressed bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BodiesHead {
    /// The site whose content this is.
    pub(crate) group: u32,
    pub(crate) class: Class,
    pub(crate) coding: Coding,
    pub(crate) reference: Reference,
    /// How many chunks must be read before this one: 0 without a reference.
    pub(crate) depth: u8,
    pub(crate) entries: Vec<BodyEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BodyEntry {
    pub(crate) key: BodyKey,
    /// Length of the body as received.
    pub(crate) body_bytes: u64,
    /// How the body was rewritten before compressing; 0 is not at all.
    pub(crate) recoding: u8,
    /// Its length inside the chunk.
    pub(crate) stored_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    Plain = 0,
    Zstd = 1,
    /// A single body as somebody else compressed it: see [`crate::deflated`].
    Deflate = 2,
}

/// What zstd was given as a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reference {
    Nothing,
    /// Another body, wherever it is now.
    Body(BodyKey),
    /// A prefix chunk of the same pack: its raw bytes.
    Chunk(u64),
}

impl BodiesHead {
    pub(crate) fn raw_bytes(&self) -> u64 {
        self.entries.iter().map(|entry| entry.stored_bytes).sum()
    }

    /// Sum of the bodies as received.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.entries.iter().map(|entry| entry.body_bytes).sum()
    }

    pub(crate) fn encode(&self, data: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.max_bytes() + data.len());
        self.put(&mut out);
        out.extend_from_slice(data);
        out
    }

    /// No head is longer when it is encoded.
    pub(crate) fn max_bytes(&self) -> usize {
        32 * self.entries.len() + 48
    }

    /// Everything but the data, which follows.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, u64::from(self.group));
        out.extend_from_slice(&[self.class as u8, self.coding as u8, self.depth]);
        match &self.reference {
            Reference::Nothing => out.push(0),
            Reference::Body(key) => {
                out.push(1);
                out.extend_from_slice(&key.0);
            }
            Reference::Chunk(offset) => {
                out.push(2);
                put_varint(out, *offset);
            }
        }
        put_varint(out, self.entries.len() as u64);
        for entry in &self.entries {
            out.extend_from_slice(&entry.key.0);
            put_varint(out, entry.body_bytes);
            out.push(entry.recoding);
            if entry.recoding != 0 {
                put_varint(out, entry.stored_bytes);
            }
        }
    }

    /// The head, and the compressed bytes behind it. With less than the whole payload it still
    /// gives the head when that is complete.
    pub(crate) fn parse(payload: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let mut reader = Reader::new(payload);
        let group = u32::try_from(reader.varint()?).map_err(|_| Malformed("group too large"))?;
        let class = Class::from_byte(reader.byte()?).ok_or(Malformed("unknown class"))?;
        let coding = match reader.byte()? {
            0 => Coding::Plain,
            1 => Coding::Zstd,
            2 => Coding::Deflate,
            _ => return Err(Malformed("unknown coding")),
        };
        let depth = reader.byte()?;
        let reference = match reader.byte()? {
            0 => Reference::Nothing,
            1 => Reference::Body(BodyKey(reader.array()?)),
            2 => Reference::Chunk(reader.varint()?),
            _ => return Err(Malformed("unknown reference")),
        };
        let count = reader.count(MAX_ENTRIES)?;
        let mut entries = Vec::with_capacity(count.min(payload.len() / (BODY_KEY_BYTES + 2) + 1));
        let mut raw_bytes = 0u64;
        for _ in 0..count {
            let key = BodyKey(reader.array()?);
            let body_bytes = bounded(reader.varint()?)?;
            let recoding = reader.byte()?;
            let stored_bytes = if recoding == 0 { body_bytes } else { bounded(reader.varint()?)? };
            raw_bytes = bounded(raw_bytes + stored_bytes)?;
            entries.push(BodyEntry { key, body_bytes, recoding, stored_bytes });
        }
        Ok((Self { group, class, coding, reference, depth, entries }, reader.rest()))
    }

    /// Where in the raw bytes this body is.
    pub(crate) fn find(&self, key: BodyKey) -> Option<(u64, &BodyEntry)> {
        let mut start = 0;
        for entry in &self.entries {
            if entry.key == key {
                return Some((start, entry));
            }
            start += entry.stored_bytes;
        }
        None
    }
}

fn bounded(bytes: u64) -> Result<u64, Malformed> {
    // A recoded body may be larger than the body itself, but not without end.
    if bytes <= 2 * MAX_BODY_BYTES { Ok(bytes) } else { Err(Malformed("length above its limit")) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Digest;

    proptest! {
        #[test]
        fn a_head_comes_back_with_its_data(
            group: u32, lengths in proptest::collection::vec((0u64..1 << 20, 0u8..3), 0..20),
            data: Vec<u8>, reference in 0..3,
        ) {
            let entries = lengths.into_iter().map(|(length, recoding)| BodyEntry {
                key: Digest::of(&length.to_le_bytes()).key(),
                body_bytes: length,
                recoding,
                stored_bytes: if recoding == 0 { length } else { length / 2 },
            }).collect();
            let reference = match reference {
                0 => Reference::Nothing,
                1 => Reference::Body(Digest::of(b"x").key()),
                _ => Reference::Chunk(77),
            };
            let head = BodiesHead {
                group, class: Class::Html, coding: Coding::Zstd, reference, depth: 3, entries,
            };
            let payload = head.encode(&data);
            let (parsed, rest) = BodiesHead::parse(&payload).unwrap();
            prop_assert_eq!(parsed, head);
            prop_assert_eq!(rest, &data[..]);
        }

        #[test]
        fn junk_never_panics(junk: Vec<u8>) {
            let _ = BodiesHead::parse(&junk);
        }
    }
}
