//! Pixels of a PNG, by LZMA, or by zstd where its readers would wait too long for LZMA.

use super::lzma::{self, Unit};
use super::{MAX_PLAIN_BYTES, per_kib};
use crate::squeeze;
use crate::wire::{Malformed, Reader, put_bytes, put_varint};

/// In the position of LZMA's unit.
const BY_ZSTD: u8 = 3;
const ZSTD_LEVEL: i32 = 19;
/// What a KiB takes to restore (docs/benchmarks.md): by LZMA of what is stored, by zstd of what
/// comes out.
const LZMA_US_PER_KIB: f64 = 95.0;
const ZSTD_US_PER_KIB: f64 = 0.4;

/// How pixels are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packer {
    Lzma,
    Zstd,
}

impl Packer {
    /// About how many microseconds restoring pixels takes.
    pub(super) fn expected_us(self, raw_bytes: usize, packed_bytes: usize) -> f64 {
        match self {
            Self::Lzma => per_kib(packed_bytes, LZMA_US_PER_KIB),
            Self::Zstd => per_kib(raw_bytes, ZSTD_US_PER_KIB),
        }
    }

    /// Appends `raw`, compressed, with everything that [`take`] needs.
    pub(super) fn put(self, out: &mut Vec<u8>, raw: &[u8], unit: Unit) -> Option<()> {
        match self {
            Self::Lzma => lzma::put(out, raw, unit),
            Self::Zstd => {
                out.push(BY_ZSTD);
                put_varint(out, raw.len() as u64);
                put_bytes(out, &squeeze::compress(raw, ZSTD_LEVEL, b""));
                Some(())
            }
        }
    }
}

/// What [`Packer::put`] wrote.
pub(super) fn take(reader: &mut Reader<'_>) -> Result<Vec<u8>, Malformed> {
    if reader.rest().first() != Some(&BY_ZSTD) {
        return lzma::take(reader);
    }
    reader.byte()?;
    let raw_bytes = reader.count(MAX_PLAIN_BYTES)?;
    squeeze::decompress(reader.bytes(MAX_PLAIN_BYTES)?, raw_bytes, b"")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_put_is_taken(raw: Vec<u8>, repeat in 1usize..50, by_zstd: bool) {
            let raw = raw.repeat(repeat);
            let packer = if by_zstd { Packer::Zstd } else { Packer::Lzma };
            let mut out = vec![7];
            packer.put(&mut out, &raw, Unit::Four).unwrap();
            out.push(8);
            let mut reader = Reader::new(&out[1..]);
            prop_assert_eq!(take(&mut reader), Ok(raw));
            prop_assert_eq!(reader.rest(), [8]);
        }

        #[test]
        fn junk_is_refused_without_panic(mut junk: Vec<u8>) {
            let _ = take(&mut Reader::new(&junk));
            junk.insert(0, BY_ZSTD);
            let _ = take(&mut Reader::new(&junk));
        }
    }
}
