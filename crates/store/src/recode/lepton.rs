//! What a Lepton stream asks for before it decodes anything. Its decoder reserves what the stream says,
//! and a stream in a hostile pack may say gigabytes; so what it says is looked at first.

use super::MAX_BYTES;
use super::blocks::count_blocks;
use crate::deflated::MAX_EXPANSION;
use crate::wire::{Malformed, Reader};

/// What is in front of the compressed head: behind this many bytes its length when it is
/// inflated, at the end that of the compressed one.
const HEAD_LENGTH_AT: usize = 10;
const FIXED_BYTES: usize = 28;
/// The head holds the picture's own head and whatever follows the picture.
const MAX_HEAD_BYTES: usize = MAX_BYTES + (1 << 20);
/// Blocks of 64 values in two bytes each: 128 MiB. What is written has a quarter of that at most,
/// or it would take longer to restore than is allowed.
const MAX_BLOCKS: usize = 1 << 20;
/// Where a partition of the picture begins, and in which state.
const PARTITION_BYTES: usize = 16;
/// Where a picture that breaks off ends.
const BREAK_BYTES: usize = 28;

/// Refuses a stream that would take more memory than any that is written.
pub(super) fn check(stream: &[u8]) -> Result<(), Malformed> {
    let mut reader = Reader::new(stream);
    reader.take(HEAD_LENGTH_AT)?;
    let head_bytes = u32::from_le_bytes(reader.array()?) as usize;
    reader.take(FIXED_BYTES - HEAD_LENGTH_AT - 8)?;
    let packed_bytes = u32::from_le_bytes(reader.array()?) as usize;
    let packed = reader.take(packed_bytes)?;
    if head_bytes > MAX_HEAD_BYTES || head_bytes / MAX_EXPANSION > packed_bytes {
        return Err(Malformed("lepton head above its limit"));
    }
    let mut head = vec![0; head_bytes];
    let found = libdeflater::Decompressor::new().zlib_decompress(packed, &mut head);
    if found != Ok(head_bytes) {
        return Err(Malformed("lepton head not readable"));
    }
    let mut head = Reader::new(&head);
    if head.take(3)? != b"HDR" {
        return Err(Malformed("lepton head without a picture's"));
    }
    if blocks(take_counted(&mut head, 1)?) > MAX_BLOCKS {
        return Err(Malformed("picture above its limit"));
    }
    while !head.rest().is_empty() {
        match head.take(3)? {
            b"P0D" => head.take(1)?,
            b"CRS" => take_counted(&mut head, 4)?,
            b"FRS" | b"GRB" | b"PGR" => take_counted(&mut head, 1)?,
            b"EEE" => head.take(BREAK_BYTES)?,
            // Each partition would have a picture of its own; one is written.
            [b'H', b'H', 1] => head.take(PARTITION_BYTES)?,
            _ => return Err(Malformed("unknown part of a lepton head")),
        };
    }
    Ok(())
}

/// So many things as a number in front of them says, of this many bytes each.
fn take_counted<'a>(head: &mut Reader<'a>, each_bytes: usize) -> Result<&'a [u8], Malformed> {
    let count = u32::from_le_bytes(head.array()?) as usize;
    head.take(count.saturating_mul(each_bytes))
}

/// The blocks of the picture, by its segments up to the first scan; none if it is not a picture.
fn blocks(mut segments: &[u8]) -> usize {
    while let [0xff, marker, high, low, rest @ ..] = segments {
        match marker {
            0xc0..=0xc2 => return count_blocks(rest).map_or(0, |(blocks, _)| blocks),
            0xd9 | 0xda => return 0,
            _ => {}
        }
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        segments = segments.get(2 + length..).unwrap_or_default();
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream with this head, and nothing behind it.
    fn stream(head: &[&[u8]]) -> Vec<u8> {
        let head = head.concat();
        let packed = miniz_oxide::deflate::compress_to_vec_zlib(&head, 6);
        let [head_bytes, packed_bytes] =
            [head.len(), packed.len()].map(|length| (length as u32).to_le_bytes());
        [&[0; 10], &head_bytes[..], &[0; 10], &packed_bytes, &packed].concat()
    }

    /// The segment that says how large a grey picture is.
    fn frame(height: u16, width: u16) -> Vec<u8> {
        let [height, width] = [height.to_be_bytes(), width.to_be_bytes()];
        [&[0xff, 0xc0, 0, 11, 8], &height[..], &width, &[1, 1, 0x11, 0]].concat()
    }

    fn picture(segments: &[u8]) -> Vec<u8> {
        [b"HDR", &(segments.len() as u32).to_le_bytes()[..], segments].concat()
    }

    #[test]
    fn what_asks_for_too_much_is_refused() {
        let small = picture(&frame(64, 64));
        assert_eq!(check(&stream(&[&small, b"P0D\0", b"HH\x01", &[0; 16]])), Ok(()));
        for refused in [
            stream(&[&picture(&frame(16_000, 16_000))]),
            stream(&[b"HDR\xff\xff\xff\xff"]),
            stream(&[&small, b"GRB\xff\xff\xff\xff"]),
            stream(&[&small, b"CRS\xff\xff\xff\xff"]),
            stream(&[&small, b"HH\x02", &[0; 32]]),
            stream(&[&small, &vec![0; MAX_HEAD_BYTES]]),
            stream(&[&small])[..40].to_vec(),
            [&[0xff; 28], &stream(&[&small])[28..]].concat(),
            Vec::new(),
        ] {
            assert!(check(&refused).is_err());
        }
    }

    #[test]
    fn segments_in_front_of_the_frame_are_walked_over() {
        let tables = [0xff, 0xdb, 0, 4, 0xff, 0xc0];
        let segments = [&tables[..], &frame(0xffff, 8)].concat();
        assert_eq!(blocks(&segments), 8192);
        assert_eq!(blocks(&[0xff, 0xda, 0, 2, 0xff, 0xc0]), 0);
        assert_eq!(blocks(&[0xff, 0xdb, 0xff, 0xff]), 0);
    }
}
