//! Deflate streams as their plain text and the little that is needed to deflate it the same way.

use std::time::Duration;

use preflate_rs::{PreflateConfig, preflate_whole_deflate_stream, recreate_whole_deflate_stream};

use super::{MAX_PLAIN_BYTES, Recoded, Recoding};
use crate::wire::{Malformed, Reader, put_varint};

/// Packs hold what this coder wrote. If this line does not compile, `cabac` is the crate of that name
/// from the registry: add `[patch.crates-io] cabac` as in the workspace's `Cargo.toml`.
const _: () = cabac::THE_CODER_OF_PACKS;

/// A deflate stream taken apart, as far as its blocks are complete.
pub(super) struct Inflated {
    pub(super) plain: Vec<u8>,
    pub(super) corrections: Vec<u8>,
    /// Length of the stream up to there, in whole bytes.
    pub(super) deflated_bytes: usize,
}

pub(super) fn inflate(stream: &[u8]) -> Option<Inflated> {
    let config = PreflateConfig {
        max_chain_length: 1024,
        plain_text_limit: MAX_PLAIN_BYTES,
        // We compare the whole body afterwards.
        verify_compression: false,
    };
    let (found, plain) = preflate_whole_deflate_stream(stream, &config).ok()?;
    Some(Inflated {
        plain: plain.text().to_vec(),
        corrections: found.corrections,
        deflated_bytes: found.compressed_size,
    })
}

pub(super) fn deflate(plain: &[u8], corrections: &[u8]) -> Result<Vec<u8>, Malformed> {
    recreate_whole_deflate_stream(plain, corrections)
        .map_err(|_| Malformed("deflate stream cannot be recreated"))
}

/// Plain text first, so that two versions of a page begin alike; then corrections, what was
/// around the stream, and the lengths, which are read from the end.
pub(super) fn recode_gzip(body: &[u8]) -> Option<Recoded> {
    let start = gzip_head_bytes(body)?;
    let inflated = inflate(&body[start..])?;
    let behind = &body[start + inflated.deflated_bytes..];
    let mut tail = Vec::new();
    for length in [inflated.plain.len(), inflated.corrections.len(), start] {
        put_varint(&mut tail, length as u64);
    }
    let tail_bytes = u8::try_from(tail.len()).ok()?;
    let mut out = inflated.plain;
    for part in [&inflated.corrections, &body[..start], behind, &tail, &[tail_bytes]] {
        out.extend_from_slice(part);
    }
    Some(Recoded {
        recoding: Recoding::Gzip,
        bytes: out,
        taken_bytes: body.len(),
        expected: Duration::ZERO,
    })
}

pub(super) fn restore_gzip(stored: &[u8]) -> Result<Vec<u8>, Malformed> {
    let short = Malformed("cut short");
    let (tail_bytes, stored) = stored.split_last().ok_or(short)?;
    let tail_at =
        stored.len().checked_sub(usize::from(*tail_bytes)).ok_or(Malformed("cut short"))?;
    let (stored, tail) = stored.split_at(tail_at);
    let mut tail = Reader::new(tail);
    let mut parts = Reader::new(stored);
    let plain = parts.take(tail.count(stored.len())?)?;
    let corrections = parts.take(tail.count(stored.len())?)?;
    let head = parts.take(tail.count(stored.len())?)?;
    Ok([head, &deflate(plain, corrections)?, parts.rest()].concat())
}

/// The plain text in front of a recoded gzip body.
pub(crate) fn gzip_plain(stored: &[u8]) -> Option<&[u8]> {
    let (tail_bytes, rest) = stored.split_last()?;
    let tail = rest.get(rest.len().checked_sub(usize::from(*tail_bytes))?..)?;
    let length = Reader::new(tail).count(stored.len()).ok()?;
    stored.get(..length)
}

/// Length of the head of a gzip member (RFC 1952).
fn gzip_head_bytes(body: &[u8]) -> Option<usize> {
    let flags = *body.get(3)?;
    let mut at = 10;
    if flags & 4 != 0 {
        at += 2 + usize::from(u16::from_le_bytes([*body.get(at)?, *body.get(at + 1)?]));
    }
    for flag in [8, 16] {
        if flags & flag != 0 {
            at += memchr::memchr(0, body.get(at..)?)? + 1;
        }
    }
    if flags & 2 != 0 {
        at += 2;
    }
    (at < body.len()).then_some(at)
}
