//! LZMA for pixels: it knows at which byte of a pixel it is, which zstd does not, and takes a
//! sixth less for it. Its decoder needs time by the bytes that come in, and those are few.

use std::io::{Read, Write};

use lzma_rust2::{LzmaOptions, LzmaReader, LzmaWriter};

use super::MAX_PLAIN_BYTES;
use crate::wire::{Malformed, Reader, put_bytes, put_varint};

const PRESET: u32 = 9;
const MIN_DICTIONARY_BYTES: usize = 4096;
/// The encoder takes about ten times as much memory.
const MAX_DICTIONARY_BYTES: usize = 4 << 20;

/// How long the unit is that the data is made of, as far as LZMA can follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Bytes, such as indexes into a palette.
    One = 0,
    /// Grey with alpha, or 16 bits.
    Two = 1,
    /// RGBA.
    Four = 2,
}

impl Unit {
    fn from_byte(byte: u8) -> Option<Self> {
        [Self::One, Self::Two, Self::Four].into_iter().find(|unit| *unit as u8 == byte)
    }

    /// Literal context, literal position and position bits.
    fn bits(self) -> (u32, u32, u32) {
        match self {
            Self::One => (3, 0, 0),
            Self::Two => (2, 1, 1),
            Self::Four => (2, 2, 2),
        }
    }
}

/// Appends `raw`, compressed, with everything that [`take`] needs.
pub(super) fn put(out: &mut Vec<u8>, raw: &[u8], unit: Unit) -> Option<()> {
    let mut options = LzmaOptions::with_preset(PRESET);
    (options.lc, options.lp, options.pb) = unit.bits();
    options.dict_size = dictionary_bytes(raw.len());
    let mut writer = LzmaWriter::new_no_header(Vec::new(), &options, false).ok()?;
    writer.write_all(raw).ok()?;
    let data = writer.finish().ok()?;
    out.push(unit as u8);
    put_varint(out, raw.len() as u64);
    put_bytes(out, &data);
    Some(())
}

/// What [`put`] wrote.
pub(super) fn take(reader: &mut Reader<'_>) -> Result<Vec<u8>, Malformed> {
    let unit = Unit::from_byte(reader.byte()?).ok_or(Malformed("unknown unit of pixels"))?;
    let raw_bytes = reader.count(MAX_PLAIN_BYTES)?;
    let data = reader.bytes(MAX_PLAIN_BYTES)?;
    let (lc, lp, pb) = unit.bits();
    let unreadable = Malformed("lzma stream not readable");
    let dictionary_bytes = dictionary_bytes(raw_bytes);
    let stream = LzmaReader::new(data, raw_bytes as u64, lc, lp, pb, dictionary_bytes, None);
    let mut raw = Vec::with_capacity(raw_bytes);
    let Ok(mut stream) = stream else { return Err(unreadable) };
    // One byte more than expected would be seen, and no bomb can go on for ever.
    let outcome = Read::take(&mut stream, raw_bytes as u64 + 1).read_to_end(&mut raw);
    match outcome {
        Ok(read) if read == raw_bytes => Ok(raw),
        _ => Err(unreadable),
    }
}

fn dictionary_bytes(raw_bytes: usize) -> u32 {
    raw_bytes.clamp(MIN_DICTIONARY_BYTES, MAX_DICTIONARY_BYTES) as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_put_is_taken(raw: Vec<u8>, repeat in 1usize..50, unit in 0u8..3) {
            let raw = raw.repeat(repeat);
            let mut out = vec![7];
            put(&mut out, &raw, Unit::from_byte(unit).unwrap()).unwrap();
            out.push(8);
            let mut reader = Reader::new(&out[1..]);
            prop_assert_eq!(take(&mut reader), Ok(raw));
            prop_assert_eq!(reader.rest(), [8]);
        }

        #[test]
        fn junk_is_refused_without_panic(junk: Vec<u8>) {
            let _ = take(&mut Reader::new(&junk));
        }
    }

    #[test]
    fn a_stream_cut_short_is_refused() {
        let raw: Vec<u8> = (0..4000u32).flat_map(|n| (n * n).to_le_bytes()).collect();
        let mut out = Vec::new();
        put(&mut out, &raw, Unit::Four).unwrap();
        // The length in front of the data still says how long it was.
        assert!(take(&mut Reader::new(&out[..out.len() / 2])).is_err());
    }
}
