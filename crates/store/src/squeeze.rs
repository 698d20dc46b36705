//! zstd with a reference: the only module that knows the compressor.

use std::cell::RefCell;

use zstd::zstd_safe::{CCtx, CParameter, DCtx, DParameter, InBuffer, OutBuffer};

use crate::wire::Malformed;

/// Above this, long-distance matching finds what the level's own tables would have forgotten.
const LONG_DISTANCE_FROM_BYTES: usize = 1 << 20;

/// The matches that zstd looks for when it takes all the time that it can use, at any level.
const LONGEST_MATCH: u32 = 999;

/// Enough for the head of any zstd frame; from then on zstd says what it wants next.
const FRAME_HEAD_BYTES: usize = 18;

thread_local! {
    /// Making a context takes as long as decompressing fifty kilobytes. Only one that refers to
    /// nothing can be used again: a reference would have to outlive it.
    static CONTEXT: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
    /// The same for compressing, with the buffer for what comes out.
    static COMPRESSING: RefCell<(CCtx<'static>, Vec<u8>)> =
        RefCell::new((CCtx::create(), Vec::new()));
}

/// Larger buffers are given back.
const KEPT_BUFFER_BYTES: usize = 4 << 20;
/// Above this, a context holds too much memory to be kept.
const KEPT_LEVEL_MAX: i32 = 9;

/// Compresses `raw` at `level`; `reference` must be given again to get it back.
pub(crate) fn compress(raw: &[u8], level: i32, reference: &[u8]) -> Vec<u8> {
    let is_large = raw.len() > LONG_DISTANCE_FROM_BYTES;
    if !reference.is_empty() || level > KEPT_LEVEL_MAX || is_large {
        let mut out = Vec::new();
        compress_with(&mut CCtx::create(), &mut out, raw, (level, None), reference);
        return out;
    }
    COMPRESSING.with_borrow_mut(|(context, out)| {
        compress_with(context, out, raw, (level, None), b"");
        let data = out.clone();
        if out.capacity() > KEPT_BUFFER_BYTES {
            *out = Vec::new();
        }
        data
    })
}

/// As [`compress`], a little smaller and about half as fast.
pub(crate) fn compress_longest(raw: &[u8], level: i32, reference: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let effort = (level, Some(LONGEST_MATCH));
    compress_with(&mut CCtx::create(), &mut out, raw, effort, reference);
    out
}

fn compress_with<'a>(
    context: &mut CCtx<'a>,
    out: &mut Vec<u8>,
    raw: &[u8],
    (level, match_bytes): (i32, Option<u32>),
    reference: &'a [u8],
) {
    out.clear();
    out.reserve(zstd::zstd_safe::compress_bound(raw.len()));
    let result = (|| {
        context.set_parameter(CParameter::CompressionLevel(level))?;
        if let Some(match_bytes) = match_bytes {
            context.set_parameter(CParameter::TargetLength(match_bytes))?;
        }
        // The length is in the head of the bodies, the checksum in that of the chunk: the frame repeats neither.
        context.set_parameter(CParameter::ContentSizeFlag(false))?;
        context.set_parameter(CParameter::ChecksumFlag(false))?;
        let reach = raw.len() + reference.len();
        if !reference.is_empty() || reach > LONG_DISTANCE_FROM_BYTES {
            let window_log = (usize::BITS - reach.leading_zeros()).clamp(10, 27);
            context.set_parameter(CParameter::WindowLog(window_log))?;
            let far = reach > LONG_DISTANCE_FROM_BYTES;
            context.set_parameter(CParameter::EnableLongDistanceMatching(far))?;
            context.ref_prefix(reference)?;
        }
        context.compress2(out, raw)
    })();
    assert!(result.is_ok(), "zstd compresses any bytes into a buffer of its own bound");
}

/// The `raw_bytes` bytes that were compressed against `reference`.
pub(crate) fn decompress(
    data: &[u8],
    raw_bytes: usize,
    reference: &[u8],
) -> Result<Vec<u8>, Malformed> {
    decompress_into(Vec::new(), data, raw_bytes, reference)
}

/// As [`decompress`], into a buffer that was used before: fresh memory costs as much time as
/// decompressing into it.
pub(crate) fn decompress_into(
    mut out: Vec<u8>,
    data: &[u8],
    raw_bytes: usize,
    reference: &[u8],
) -> Result<Vec<u8>, Malformed> {
    out.clear();
    out.reserve(raw_bytes);
    let unreadable = |_| Malformed("zstd frame not readable");
    let written = if reference.is_empty() {
        CONTEXT.with_borrow_mut(|context| context.decompress(&mut out, data)).map_err(unreadable)?
    } else {
        let mut context = DCtx::create();
        context.ref_prefix(reference).map_err(|_| Malformed("reference not usable"))?;
        context.decompress(&mut out, data).map_err(unreadable)?
    };
    if written == raw_bytes { Ok(out) } else { Err(Malformed("zstd frame has another length")) }
}

/// The first `until` bytes of what [`decompress`] gives, or a few more: a page at the front of a
/// frame need not wait for those behind it.
pub(crate) fn decompress_until(
    mut out: Vec<u8>,
    data: &[u8],
    raw_bytes: usize,
    until: usize,
    reference: &[u8],
) -> Result<Vec<u8>, Malformed> {
    if until >= raw_bytes {
        return decompress_into(out, data, raw_bytes, reference);
    }
    let unreadable = |_| Malformed("zstd frame not readable");
    let mut context = DCtx::create();
    // The output is its own window: nothing is copied.
    context.set_parameter(DParameter::StableOutBuffer(true)).map_err(unreadable)?;
    if !reference.is_empty() {
        context.ref_prefix(reference).map_err(|_| Malformed("reference not usable"))?;
    }
    out.clear();
    out.reserve(raw_bytes);
    let mut buffer = OutBuffer::around(&mut out);
    let (mut fed, mut wanted) = (0, FRAME_HEAD_BYTES);
    while buffer.pos() < until {
        let end = (fed + wanted).min(data.len());
        let mut input = InBuffer::around(&data[fed..end]);
        wanted = context.decompress_stream(&mut buffer, &mut input).map_err(unreadable)?;
        let taken = input.pos();
        fed += taken;
        if (wanted == 0 || fed == data.len() || taken == 0) && buffer.pos() < until {
            return Err(Malformed("zstd frame ends too soon"));
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_compressed_comes_back(raw: Vec<u8>, reference: Vec<u8>, level in 1..10) {
            for data in [compress(&raw, level, &reference), compress_longest(&raw, level, &reference)] {
                prop_assert_eq!(decompress(&data, raw.len(), &reference), Ok(raw.clone()));
            }
        }

        #[test]
        fn any_front_part_comes_back(
            seed: u64, length in 0usize..400_000, until in 0usize..400_000, reference: Vec<u8>,
        ) {
            let word = |n: usize| seed.wrapping_mul(n as u64 / 7 % 1000 + 1).to_le_bytes()[n % 8];
            let raw: Vec<u8> = (0..length).map(word).collect();
            let until = until.min(length);
            let data = compress(&raw, 3, &reference);
            let part = decompress_until(vec![1], &data, length, until, &reference).unwrap();
            prop_assert!(part.len() >= until && raw.starts_with(&part));
            let _ = decompress_until(Vec::new(), &data[..data.len() / 2], length, until, &reference);
        }

        #[test]
        fn junk_is_refused_without_panic(junk: Vec<u8>, length in 0usize..4096) {
            let _ = decompress(&junk, length, b"");
            let _ = decompress_until(Vec::new(), &junk, length, length / 2, b"");
        }
    }

    #[test]
    fn a_page_against_its_earlier_version_costs_little_and_needs_it() {
        let earlier: Vec<u8> = (0..20_000u32).flat_map(|n| (n * n).to_le_bytes()).collect();
        let mut later = earlier.clone();
        later[40_000] ^= 1;
        let data = compress(&later, 3, &earlier);
        assert!(data.len() < 100, "{} bytes", data.len());
        assert!(decompress(&data, later.len(), b"").is_err());
        assert_eq!(decompress(&data, later.len(), &earlier), Ok(later));
    }
}
