//! Undoes content codings within limits.

use std::borrow::Cow;
use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read};

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

/// How much longer than its content a coded body may be.
const SURPLUS_BYTES: usize = 1 << 20;

/// The most gzip members of one body: each costs a decoder of its own.
const MAX_MEMBERS: u32 = 1 << 14;

/// How much of a coded body is read at a time.
const BUFFER_BYTES: usize = 64 << 10;

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

/// Where coded bytes are read from. They may be read more than once, from their beginning.
pub type Source<'a> = &'a dyn Fn() -> Box<dyn BufRead + 'a>;

/// The front of a body without its codings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Front {
    /// The bytes, at most as many as were wanted.
    pub bytes: Vec<u8>,
    /// The limit at which it was cut, if there is more.
    pub cut: Option<ExtractError>,
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
    if body.is_empty() || codings(content_encoding.unwrap_or_default())?.is_empty() {
        return bounded_identity(body, max_bytes);
    }
    let source = || Box::new(body) as Box<dyn BufRead>;
    let front = decode_front(content_encoding, &source, body.len() as u64, max_bytes)?;
    front.cut.map_or(Ok(Cow::Owned(front.bytes)), Err)
}

/// As [`decode_content`], for a body that is read from a file: only what comes out is in memory, and
/// of a body that is too large its front is given.
pub fn decode_front(
    content_encoding: Option<&str>,
    source: Source<'_>,
    coded_bytes: u64,
    max_bytes: usize,
) -> Result<Front, ExtractError> {
    let codings = codings(content_encoding.unwrap_or_default())?;
    let coded_bytes = usize::try_from(coded_bytes).unwrap_or(usize::MAX);
    let Some(&first) = codings.first().filter(|_| coded_bytes > 0) else {
        let mut bytes = Vec::new();
        let limit = max_bytes as u64;
        let read = source().take(limit).read_to_end(&mut bytes);
        read.map_err(|error| damaged("identity", bytes.len(), &error))?;
        let too_large = ExtractError::TooLarge { coding: "identity", limit_bytes: max_bytes };
        return Ok(Front { bytes, cut: (coded_bytes > max_bytes).then_some(too_large) });
    };
    let allowance = Allowance::new(first, coded_bytes, max_bytes);
    let failed = Failed::default();
    let mut bytes = Vec::new();
    match drain(stage(&codings, source, allowance, &failed), &mut bytes, allowance) {
        Ok(cut) => Ok(Front { bytes, cut }),
        // What an inner coding says is nearer to the cause.
        Err(error) => Err(failed.take().unwrap_or(error)),
    }
}

/// Why an inner coding ended.
type Failed = Cell<Option<ExtractError>>;

/// The bytes behind the first of these codings; the others are around it.
fn stage<'s, 'a: 's>(
    codings: &'s [Coding],
    source: Source<'a>,
    allowance: Allowance,
    failed: &'s Failed,
) -> Box<dyn Read + 's> {
    let Some((&coding, outer)) = codings.split_first() else {
        // No honest coding is much longer than what it holds.
        let longest = allowance.bytes().saturating_add(SURPLUS_BYTES) as u64;
        return Box::new(source().take(longest));
    };
    let inner = || -> Box<dyn BufRead + 's> {
        let read = stage(outer, source, allowance, failed);
        match outer.first() {
            Some(&coding) => {
                let allowance = Allowance { coding, ..allowance };
                Box::new(BufReader::new(Bounded {
                    read,
                    left: allowance.bytes(),
                    allowance,
                    failed,
                }))
            }
            None => Box::new(BufReader::with_capacity(BUFFER_BYTES, read)),
        }
    };
    match coding {
        Coding::Gzip => Box::new(Members::new(inner())),
        Coding::Deflate if has_zlib(inner()) => Box::new(ZlibDecoder::new(inner())),
        Coding::Deflate => Box::new(DeflateDecoder::new(inner())),
        Coding::Brotli => Box::new(brotli::Decompressor::new(inner(), 4096)),
        Coding::Zstd => zstd_reader(inner()),
    }
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
    let drained = drain(Members::new(Box::new(body)), &mut out, allowance);
    (Cow::Owned(out), drained == Ok(None))
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
        damaged(self.coding.name(), decoded_bytes, reason)
    }
}

fn damaged(coding: &'static str, decoded_bytes: usize, reason: &impl ToString) -> ExtractError {
    ExtractError::Damaged { coding, decoded_bytes, reason: reason.to_string() }
}

/// What an outer coding may give to the one inside it.
struct Bounded<'s> {
    read: Box<dyn Read + 's>,
    left: usize,
    allowance: Allowance,
    failed: &'s Failed,
}

impl Read for Bounded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.read.read(buffer);
        let decoded = self.allowance.bytes() - self.left;
        let error = match read {
            Ok(count) if count <= self.left => {
                self.left -= count;
                return Ok(count);
            }
            Ok(_) => self.allowance.exceeded(),
            Err(error) => self.allowance.damaged(decoded, &error),
        };
        let text = error.to_string();
        // The first to fail is the outermost.
        self.failed.set(Some(self.failed.take().unwrap_or(error)));
        Err(io::Error::other(text))
    }
}

/// All members of a gzip body. Bytes after the last member that are not a member are ignored, as
/// browsers and gzip do.
struct Members<'s> {
    decoder: Option<GzDecoder<Ahead<'s>>>,
    left: u32,
}

impl<'s> Members<'s> {
    fn new(coded: Box<dyn BufRead + 's>) -> Self {
        let decoder = Some(GzDecoder::new(Ahead { coded, peeked: Vec::new(), at: 0 }));
        Self { decoder, left: MAX_MEMBERS }
    }
}

impl Read for Members<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(decoder) = &mut self.decoder else { return Ok(0) };
            let count = decoder.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            let Some(mut rest) = self.decoder.take().map(GzDecoder::into_inner) else {
                return Ok(0);
            };
            if !rest.begins_member()? {
                return Ok(0);
            }
            self.left = self.left.checked_sub(1).ok_or_else(|| {
                io::Error::other(format!("it has more than {MAX_MEMBERS} gzip members"))
            })?;
            self.decoder = Some(GzDecoder::new(rest));
        }
    }
}

/// Coded bytes whose next three can be looked at.
struct Ahead<'s> {
    coded: Box<dyn BufRead + 's>,
    peeked: Vec<u8>,
    at: usize,
}

impl Ahead<'_> {
    fn begins_member(&mut self) -> io::Result<bool> {
        let mut front = self.peeked.split_off(self.at);
        let missing = 3_u64.saturating_sub(front.len() as u64);
        (&mut self.coded).take(missing).read_to_end(&mut front)?;
        (self.peeked, self.at) = (front, 0);
        Ok(is_gzip(&self.peeked))
    }
}

impl Read for Ahead<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Ahead<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self.at < self.peeked.len() {
            true => Ok(&self.peeked[self.at..]),
            false => self.coded.fill_buf(),
        }
    }

    fn consume(&mut self, count: usize) {
        match self.at < self.peeked.len() {
            true => self.at += count,
            false => self.coded.consume(count),
        }
    }
}

/// "deflate" means zlib's format, but many servers send the bare stream.
fn has_zlib(mut coded: Box<dyn BufRead + '_>) -> bool {
    let is_head = matches!(coded.fill_buf(), Ok([cmf, flags, ..])
        if cmf & 0x0f == 8 && (u16::from(*cmf) << 8 | u16::from(*flags)).is_multiple_of(31));
    is_head && ZlibDecoder::new(coded).read(&mut [0]).is_ok()
}

fn zstd_reader<'s>(coded: Box<dyn BufRead + 's>) -> Box<dyn Read + 's> {
    let decoder = zstd::stream::read::Decoder::with_buffer(coded)
        .and_then(|mut decoder| decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).map(|()| decoder));
    match decoder {
        Ok(decoder) => Box::new(decoder),
        Err(error) => Box::new(Broken(Some(error))),
    }
}

/// A decoder that could not be made.
struct Broken(Option<io::Error>);

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// Reads a decoder to its end, or up to the limit, which it names then.
fn drain(
    mut decoder: impl Read,
    out: &mut Vec<u8>,
    allowance: Allowance,
) -> Result<Option<ExtractError>, ExtractError> {
    let mut chunk = [0; 16 * 1024];
    loop {
        let count = match decoder.read(&mut chunk) {
            Ok(0) => return Ok(None),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(allowance.damaged(out.len(), &error)),
        };
        let room = allowance.bytes().saturating_sub(out.len());
        out.extend_from_slice(&chunk[..count.min(room)]);
        if count > room {
            return Ok(Some(allowance.exceeded()));
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

    #[test]
    fn the_front_of_a_body_that_is_too_large_is_given() {
        let zeros = vec![b'x'; 64 << 10];
        for (coding, body) in
            [("gzip", gzip(&zeros)), ("br", br(&zeros)), ("identity", zeros.clone())]
        {
            let source = || Box::new(&body[..]) as Box<dyn BufRead>;
            let front = decode_front(Some(coding), &source, body.len() as u64, 1000).unwrap();
            assert_eq!(front.bytes, zeros[..1000], "{coding}");
            assert!(matches!(front.cut, Some(ExtractError::TooLarge { .. })), "{coding}");
            let whole = decode_front(Some(coding), &source, body.len() as u64, MAX).unwrap();
            assert_eq!(whole, Front { bytes: zeros.clone(), cut: None }, "{coding}");
        }
    }

    #[test]
    fn members_and_bytes_that_bring_nothing_are_bounded() {
        let empty = gzip(b"");
        let error = decode_content(Some("gzip"), &empty.repeat(20_000), MAX).unwrap_err();
        assert!(error.to_string().contains("gzip members"), "{error}");
        // Stored blocks without content: five bytes each.
        let mut idle = [0, 0, 0, 0xff, 0xff].repeat(1 << 20);
        idle.extend([1, 0, 0, 0xff, 0xff]);
        assert!(decode_content(Some("deflate"), &idle, 1 << 20).is_err());
        // A bomb inside a coding that hides what comes out of it.
        let hidden = gzip(&gzip(b"").repeat(16_000)).repeat(3);
        let _ = decode_content(Some("gzip, gzip"), &hidden, MAX);
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
