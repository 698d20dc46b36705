//! zstd with a reference: the only place that knows the compressor.

use zstd::zstd_safe::{CCtx, CParameter, DCtx};

use crate::wire::Malformed;

/// Above this, long-distance matching finds what the level's own tables would have forgotten.
const LONG_DISTANCE_FROM_BYTES: usize = 1 << 20;

/// Compresses `raw` at `level`; `reference` must be given again to get it back.
pub(crate) fn compress(raw: &[u8], level: i32, reference: &[u8]) -> Vec<u8> {
    let reach = raw.len() + reference.len();
    let mut context = CCtx::create();
    let mut out = Vec::with_capacity(zstd::zstd_safe::compress_bound(raw.len()));
    let result = (|| {
        context.set_parameter(CParameter::CompressionLevel(level))?;
        // The length is in the directory, the checksum in the chunk: the frame repeats neither.
        context.set_parameter(CParameter::ContentSizeFlag(false))?;
        context.set_parameter(CParameter::ChecksumFlag(false))?;
        if !reference.is_empty() {
            let window_log = (usize::BITS - reach.leading_zeros()).clamp(10, 27);
            context.set_parameter(CParameter::WindowLog(window_log))?;
            let far = reach > LONG_DISTANCE_FROM_BYTES;
            context.set_parameter(CParameter::EnableLongDistanceMatching(far))?;
            context.ref_prefix(reference)?;
        }
        context.compress2(&mut out, raw)
    })();
    assert!(result.is_ok(), "zstd compresses any bytes into a buffer of its own bound");
    out
}

/// The `raw_bytes` bytes that were compressed against `reference`.
pub(crate) fn decompress(
    data: &[u8],
    raw_bytes: usize,
    reference: &[u8],
) -> Result<Vec<u8>, Malformed> {
    let mut context = DCtx::create();
    if !reference.is_empty() {
        context.ref_prefix(reference).map_err(|_| Malformed("reference not usable"))?;
    }
    let mut out = Vec::with_capacity(raw_bytes);
    let written =
        context.decompress(&mut out, data).map_err(|_| Malformed("zstd frame not readable"))?;
    if written == raw_bytes { Ok(out) } else { Err(Malformed("zstd frame has another length")) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_compressed_comes_back(raw: Vec<u8>, reference: Vec<u8>, level in 1..10) {
            let data = compress(&raw, level, &reference);
            prop_assert_eq!(decompress(&data, raw.len(), &reference), Ok(raw));
        }

        #[test]
        fn junk_is_refused_without_panic(junk: Vec<u8>, length in 0usize..4096) {
            let _ = decompress(&junk, length, b"");
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
