//! Undoes content codings within limits.

use std::borrow::Cow;
use std::io::Read;

use flate2::bufread::{DeflateDecoder, GzDecoder, ZlibDecoder};

use crate::ExtractError;

/// How many times larger a body may become when it is decoded, once it is larger than
/// [`RATIO_FLOOR_BYTES`]. Deflate cannot exceed 1032 and real pages stay below 50; anything above
/// is a bomb.
pub const MAX_RATIO: usize = 250;

/// Below this size the ratio is not checked: a few KB of blank lines may compress well.
pub const RATIO_FLOOR_BYTES: usize = 4 * 1024 * 1024;

/// The most codings that are undone in a row.
pub const MAX_CODINGS: usize = 4;

/// The largest window that a zstd body may require: 8 MB, as RFC 9659 sets for HTTP.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

impl Coding {
    const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }
}

/// Undoes `Content-Encoding`: gzip, deflate (with and without zlib's header), br and zstd, also
/// several in a row, starting with the last one named. Without a coding the body is borrowed.
///
/// The result never exceeds `max_bytes` nor, beyond [`RATIO_FLOOR_BYTES`], [`MAX_RATIO`] times the
/// body. Memory is limited by that and by the decoders' windows (16 MB at most). An empty body (the
/// answer to HEAD, a 304) is empty in every coding.
pub fn decode_content<'a>(
    content_encoding: Option<&str>,
    body: &'a [u8],
    max_bytes: usize,
) -> Result<Cow<'a, [u8]>, ExtractError> {
    let codings = codings(content_encoding.unwrap_or_default())?;
    if codings.is_empty() || body.is_empty() {
        return bounded_identity(body, max_bytes);
    }
    let mut decoded = Cow::Borrowed(body);
    for &coding in codings.iter().rev() {
        let allowance = Allowance::new(coding, body.len(), max_bytes);
        decoded = Cow::Owned(undo(coding, &decoded, allowance)?);
    }
    Ok(decoded)
}

/// The content of a body that is gzipped as a file (`sitemap.xml.gz`), whatever its headers say,
/// and whether it is complete: a damaged or endless file is cut. Other bodies are borrowed, and cut
/// as well.
pub(crate) fn gunzip_file(body: &[u8], max_bytes: usize) -> (Cow<'_, [u8]>, bool) {
    if !is_gzip(body) {
        return (Cow::Borrowed(&body[..body.len().min(max_bytes)]), body.len() <= max_bytes);
    }
    let mut out = Vec::new();
    let allowance = Allowance::new(Coding::Gzip, body.len(), max_bytes);
    let complete = gunzip(body, &mut out, allowance).is_ok();
    (Cow::Owned(out), complete)
}

pub(crate) fn is_gzip(body: &[u8]) -> bool {
    body.starts_with(&[0x1f, 0x8b, 8])
}

fn bounded_identity(body: &[u8], max_bytes: usize) -> Result<Cow<'_, [u8]>, ExtractError> {
    if body.len() > max_bytes {
        return Err(ExtractError::TooLarge { coding: "identity", limit_bytes: max_bytes });
    }
    Ok(Cow::Borrowed(body))
}

fn codings(content_encoding: &str) -> Result<Vec<Coding>, ExtractError> {
    let mut found = Vec::new();
    for token in content_encoding.split(',') {
        let token = token.trim();
        let coding = match token.to_ascii_lowercase().as_str() {
            // Servers that put a charset or a transfer word here mean no coding; browsers do the
            // same.
            "" | "identity" | "none" | "binary" | "8bit" | "7bit" | "utf-8" | "utf8"
            | "iso-8859-1" | "text/html" | "text/plain" => continue,
            "gzip" | "x-gzip" => Coding::Gzip,
            "deflate" | "x-deflate" => Coding::Deflate,
            "br" => Coding::Brotli,
            "zstd" => Coding::Zstd,
            _ => {
                return Err(ExtractError::UnknownCoding {
                    coding: token.chars().take(40).collect(),
                });
            }
        };
        found.push(coding);
        if found.len() > MAX_CODINGS {
            let count = content_encoding.split(',').count();
            return Err(ExtractError::TooManyCodings { count, limit: MAX_CODINGS });
        }
    }
    Ok(found)
}

/// How much may come out of one coding, and which limit sets that.
#[derive(Clone, Copy)]
struct Allowance {
    coding: Coding,
    coded_bytes: usize,
    max_bytes: usize,
    ratio_bytes: usize,
}

impl Allowance {
    fn new(coding: Coding, coded_bytes: usize, max_bytes: usize) -> Self {
        let ratio_bytes = coded_bytes.saturating_mul(MAX_RATIO).max(RATIO_FLOOR_BYTES);
        Self { coding, coded_bytes, max_bytes, ratio_bytes }
    }

    fn bytes(&self) -> usize {
        self.max_bytes.min(self.ratio_bytes)
    }

    fn exceeded(&self) -> ExtractError {
        let coding = self.coding.name();
        if self.max_bytes <= self.ratio_bytes {
            return ExtractError::TooLarge { coding, limit_bytes: self.max_bytes };
        }
        ExtractError::Bomb {
            coding,
            coded_bytes: self.coded_bytes,
            limit_bytes: self.ratio_bytes,
            ratio: MAX_RATIO,
        }
    }

    fn damaged(&self, decoded_bytes: usize, reason: &impl ToString) -> ExtractError {
        let reason = reason.to_string();
        ExtractError::Damaged { coding: self.coding.name(), decoded_bytes, reason }
    }
}

fn undo(coding: Coding, body: &[u8], allowance: Allowance) -> Result<Vec<u8>, ExtractError> {
    let mut out = Vec::new();
    match coding {
        Coding::Gzip => gunzip(body, &mut out, allowance)?,
        Coding::Deflate => inflate(body, &mut out, allowance)?,
        Coding::Brotli => drain(brotli::Decompressor::new(body, 4096), &mut out, allowance)?,
        Coding::Zstd => unzstd(body, &mut out, allowance)?,
    }
    Ok(out)
}

/// All members of a gzip body. Bytes after the last member that are not a member are ignored, as
/// browsers and gzip do.
fn gunzip(body: &[u8], out: &mut Vec<u8>, allowance: Allowance) -> Result<(), ExtractError> {
    let mut rest = body;
    loop {
        drain(GzDecoder::new(&mut rest), out, allowance)?;
        if !is_gzip(rest) {
            return Ok(());
        }
    }
}

/// "deflate" means zlib's format, but many servers send the bare stream.
fn inflate(body: &[u8], out: &mut Vec<u8>, allowance: Allowance) -> Result<(), ExtractError> {
    let has_zlib_header = matches!(body, [cmf, flags, ..]
        if cmf & 0x0f == 8 && (u16::from(*cmf) << 8 | u16::from(*flags)).is_multiple_of(31));
    if has_zlib_header {
        match drain(ZlibDecoder::new(body), out, allowance) {
            Err(ExtractError::Damaged { decoded_bytes: 0, .. }) => out.clear(),
            result => return result,
        }
    }
    drain(DeflateDecoder::new(body), out, allowance)
}

fn unzstd(body: &[u8], out: &mut Vec<u8>, allowance: Allowance) -> Result<(), ExtractError> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(body)
        .map_err(|error| allowance.damaged(0, &error))?;
    decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).map_err(|error| allowance.damaged(0, &error))?;
    drain(decoder, out, allowance)
}

/// Reads a decoder to its end, or up to the limit.
fn drain(
    mut decoder: impl Read,
    out: &mut Vec<u8>,
    allowance: Allowance,
) -> Result<(), ExtractError> {
    let mut chunk = [0; 16 * 1024];
    loop {
        let count = match decoder.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(allowance.damaged(out.len(), &error)),
        };
        let room = allowance.bytes().saturating_sub(out.len());
        out.extend_from_slice(&chunk[..count.min(room)]);
        if count > room {
            return Err(allowance.exceeded());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use proptest::prelude::*;

    use super::*;

    const PAGE: &[u8] = b"<html><title>Rings of a tree</title><p>One for every year.</p></html>";
    const MAX: usize = 1 << 20;

    fn gzip(data: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    fn zlib(data: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    fn raw_deflate(data: &[u8]) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    fn br(data: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        brotli::CompressorWriter::new(&mut out, 4096, 5, 22).write_all(data).unwrap();
        out
    }

    fn zst(data: &[u8]) -> Vec<u8> {
        zstd::encode_all(data, 3).unwrap()
    }

    #[test]
    fn every_coding_is_undone() {
        let table: [(&str, Vec<u8>); 9] = [
            ("identity", PAGE.to_vec()),
            ("gzip", gzip(PAGE)),
            ("X-GZip", gzip(PAGE)),
            ("deflate", zlib(PAGE)),
            ("deflate", raw_deflate(PAGE)),
            ("br", br(PAGE)),
            ("zstd", zst(PAGE)),
            ("gzip, br", br(&gzip(PAGE))),
            ("utf-8", PAGE.to_vec()),
        ];
        for (coding, body) in table {
            let decoded = decode_content(Some(coding), &body, MAX).unwrap();
            assert_eq!(decoded, PAGE, "{coding}");
        }
        assert!(matches!(decode_content(None, PAGE, MAX), Ok(Cow::Borrowed(PAGE))));
    }

    #[test]
    fn several_gzip_members_are_one_body_and_rubbish_after_them_is_ignored() {
        let mut body = gzip(&PAGE[..20]);
        body.extend(gzip(&PAGE[20..]));
        body.extend(b"\0\0\0");
        assert_eq!(decode_content(Some("gzip"), &body, MAX).unwrap(), PAGE);
    }

    #[test]
    fn an_empty_body_is_empty_in_every_coding() {
        assert_eq!(decode_content(Some("gzip"), b"", MAX).unwrap(), b"".as_slice());
        assert_eq!(decode_content(Some("br, zstd"), b"", MAX).unwrap(), b"".as_slice());
    }

    #[test]
    fn damage_unknown_codings_and_long_chains_are_named() {
        let cut = &gzip(PAGE)[..30];
        for (coding, body) in
            [("gzip", PAGE), ("gzip", cut), ("br", PAGE), ("zstd", PAGE), ("deflate", PAGE)]
        {
            let error = decode_content(Some(coding), body, MAX).unwrap_err();
            assert!(matches!(error, ExtractError::Damaged { .. }), "{coding}: {error}");
        }
        let error = decode_content(Some("compress"), PAGE, MAX).unwrap_err();
        assert_eq!(
            error.to_string(),
            "content coding `compress` is unknown; gzip, deflate, br, zstd and identity are read"
        );
        let error = decode_content(Some("gzip,gzip,gzip,gzip,gzip"), PAGE, MAX).unwrap_err();
        assert_eq!(error, ExtractError::TooManyCodings { count: 5, limit: MAX_CODINGS });
    }

    #[test]
    fn the_size_limit_is_kept_to_the_byte() {
        let body = gzip(PAGE);
        assert!(decode_content(Some("gzip"), &body, PAGE.len()).is_ok());
        let error = decode_content(Some("gzip"), &body, PAGE.len() - 1).unwrap_err();
        assert!(matches!(error, ExtractError::TooLarge { coding: "gzip", .. }), "{error}");
        assert!(decode_content(None, PAGE, PAGE.len() - 1).is_err());
    }

    /// Bombs of 64 MB of zeros: the ratio stops them long before they are decoded.
    #[test]
    fn a_bomb_stops_at_the_ratio_although_the_size_limit_would_let_it_pass() {
        let zeros = vec![0; 64 << 20];
        for (coding, body) in [("gzip", gzip(&zeros)), ("br", br(&zeros)), ("zstd", zst(&zeros))] {
            let error = decode_content(Some(coding), &body, usize::MAX).unwrap_err();
            assert!(matches!(error, ExtractError::Bomb { .. }), "{coding}: {error}");
        }
        // Two layers: each is within deflate's own ratio, together they are not.
        let body = gzip(&gzip(&zeros));
        let error = decode_content(Some("gzip, gzip"), &body, usize::MAX).unwrap_err();
        assert!(matches!(error, ExtractError::Bomb { .. }), "{error}");
    }

    /// A frame of zstd by hand: 8192 blocks that each repeat one byte 128 KB long.
    #[test]
    fn a_gigabyte_in_32_kilobytes_is_refused() {
        let mut bomb = b"\x28\xb5\x2f\xfd\x00\x38".to_vec();
        for number in 0..8192_u32 {
            let header = (128 << 10) << 3 | 1 << 1 | u32::from(number == 8191);
            bomb.extend_from_slice(&header.to_le_bytes()[..3]);
            bomb.push(b'x');
        }
        let error = decode_content(Some("zstd"), &bomb, usize::MAX).unwrap_err();
        assert!(matches!(error, ExtractError::Bomb { coding: "zstd", .. }), "{error}");
        let error = decode_content(Some("zstd"), &bomb, 1 << 20).unwrap_err();
        assert!(matches!(error, ExtractError::TooLarge { limit_bytes: 1_048_576, .. }), "{error}");
        // The bomb works: without limits it expands in full.
        let mut unlimited = zstd::stream::read::Decoder::with_buffer(&bomb[..]).unwrap();
        assert_eq!(std::io::copy(&mut unlimited, &mut std::io::sink()).unwrap(), 1 << 30);
    }

    /// A window that needs more memory than any body is worth.
    #[test]
    fn a_zstd_window_beyond_the_limit_is_refused() {
        let frame = b"\x28\xb5\x2f\xfd\x00\x88\x09\x00\x00x";
        let error = decode_content(Some("zstd"), frame, MAX).unwrap_err();
        assert!(matches!(error, ExtractError::Damaged { decoded_bytes: 0, .. }), "{error}");
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_coding_never_panic_and_keep_the_limit(
            coding in prop::sample::select(vec!["gzip", "deflate", "br", "zstd", "gzip,br"]),
            body in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            if let Ok(decoded) = decode_content(Some(coding), &body, 1000) {
                prop_assert!(decoded.len() <= 1000);
            }
        }

        #[test]
        fn what_was_coded_is_decoded(data in prop::collection::vec(any::<u8>(), 0..2000)) {
            let gzipped = gzip(&data);
            prop_assert_eq!(&*decode_content(Some("gzip"), &gzipped, MAX).unwrap(), &data[..]);
            let zstd = zst(&data);
            prop_assert_eq!(&*decode_content(Some("zstd"), &zstd, MAX).unwrap(), &data[..]);
        }
    }
}
