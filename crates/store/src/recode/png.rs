//! PNG as its pixels and what is needed to filter and deflate them the same way; or its front,
//! up to the end of a deflate block, so that it can be restored quickly.

use std::time::Duration;

use super::deflate::{Inflated, deflate, inflate};
use super::lzma::Unit;
use super::pixels::{self, Packer};
use super::rows::{self, Shape};
use super::{Recoded, Recoding, microseconds, per_kib};
use crate::wire::{Malformed, Reader, put_bytes, put_varint};

const MAX_CHUNKS: usize = 1 << 16;
const SIGNATURE_BYTES: usize = 8;
/// A shorter front is not worth it.
const MIN_FRONT_BYTES: usize = 4096;
/// Fronts that are tried: how long one takes is known for sure only when it was made.
const MAX_TRIES: usize = 6;
/// What a KiB takes to restore (docs/benchmarks.md): of the deflate stream, of the rows, and of
/// corrections, for which the encoder was guessed wrong.
const STREAM_US_PER_KIB: f64 = 16.0;
const ROWS_US_PER_KIB: f64 = 1.4;
const CORRECTIONS_US_PER_KIB: f64 = 1950.0;
/// What most streams take with their pixels and corrections, before these are known.
const WHOLE_STREAM_US_PER_KIB: f64 = 75.0;
/// The part of a stream that its pixels take when compressed, as a first guess.
const PIXELS_OF_STREAM: f64 = 0.5;

/// About how long restoring it takes, as its head says.
pub(super) fn expected(body: &[u8]) -> Option<Duration> {
    let rows_bytes = rows::pixel_bytes(body)?;
    Some(microseconds(
        per_kib(body.len(), WHOLE_STREAM_US_PER_KIB) + per_kib(rows_bytes, ROWS_US_PER_KIB),
    ))
}

/// All of it, or as much of its front as can be restored within the limit.
pub(super) fn recode(body: &[u8], limit: Option<Duration>) -> Option<Recoded> {
    let picture = split(body)?;
    let stream = picture.stream.get(2..)?;
    let Some(limit) = limit else {
        return rewrite(&picture, &inflate(stream)?, Packer::Lzma);
    };
    let within = |time: Duration| limit.as_secs_f64() / time.as_secs_f64().max(1e-6);
    // Many take less than what is expected, and inflating more than is used costs little.
    let mut taken = (stream.len() as f64 * (3.0 * within(expected(body)?)).min(1.0)) as usize;
    let mut best: Option<Recoded> = None;
    for _ in 0..MAX_TRIES {
        if taken < MIN_FRONT_BYTES.min(stream.len()) {
            break;
        }
        let Some(inflated) = inflate(&stream[..taken]) else { break };
        let pixels_bytes = (inflated.deflated_bytes as f64 * PIXELS_OF_STREAM) as usize;
        let mut share = within(time_of(&inflated, Packer::Lzma, pixels_bytes));
        if share >= 1.0 {
            let recoded = rewrite(&picture, &inflated, Packer::Lzma)?;
            share = within(recoded.expected);
            if share >= 1.0 {
                return smaller(best, recoded);
            }
        }
        // More of it by zstd may save more than less of it by LZMA.
        if best.is_none() {
            let by_zstd = within(time_of(&inflated, Packer::Zstd, 0));
            match by_zstd >= 1.0 {
                true => best = Some(rewrite(&picture, &inflated, Packer::Zstd)?),
                false => share = by_zstd,
            }
        }
        // Less than what is too much, so that its last block is left out.
        taken = (inflated.deflated_bytes as f64 * share) as usize;
    }
    best
}

fn smaller(best: Option<Recoded>, other: Recoded) -> Option<Recoded> {
    match best {
        Some(best) if best.bytes.len() <= other.bytes.len() => Some(best),
        _ => Some(other),
    }
}

/// About how long restoring a front takes.
fn time_of(inflated: &Inflated, packer: Packer, pixels_bytes: usize) -> Duration {
    microseconds(
        per_kib(inflated.deflated_bytes, STREAM_US_PER_KIB)
            + per_kib(inflated.plain.len(), ROWS_US_PER_KIB)
            + packer.expected_us(inflated.plain.len(), pixels_bytes)
            + per_kib(inflated.corrections.len(), CORRECTIONS_US_PER_KIB),
    )
}

/// The picture with as much of its stream taken apart as was inflated.
fn rewrite(picture: &Split<'_>, inflated: &Inflated, packer: Packer) -> Option<Recoded> {
    let (zlib_head, stream) = picture.stream.split_at_checked(2)?;
    let behind = &stream[inflated.deflated_bytes..];
    let mut out = Vec::new();
    put_bytes(&mut out, picture.front);
    put_varint(&mut out, picture.lengths.len() as u64);
    picture.lengths.iter().for_each(|length| put_varint(&mut out, *length as u64));
    out.extend_from_slice(zlib_head);
    put_bytes(&mut out, behind);
    put_bytes(&mut out, &inflated.corrections);
    let before = out.len();
    let recoding = put_pixels(&mut out, picture.front, &inflated.plain, packer)?;
    let expected = time_of(inflated, packer, out.len() - before);
    out.extend_from_slice(picture.back);
    Some(Recoded { recoding, bytes: out, taken_bytes: inflated.deflated_bytes, expected })
}

/// Interlaced pictures keep their filters: their rows have many lengths. A row that the front
/// breaks off keeps its filter, too.
fn put_pixels(
    out: &mut Vec<u8>,
    front: &[u8],
    filtered: &[u8],
    packer: Packer,
) -> Option<Recoding> {
    let shape = Shape::of_png(front);
    let broken_bytes = shape.map_or(0, |shape| filtered.len() % (shape.row_bytes + 1));
    let (rows, broken) = filtered.split_at(filtered.len() - broken_bytes);
    let unfiltered = shape.and_then(|shape| Some((shape, rows::unfilter(rows, shape)?)));
    let Some((shape, unfiltered)) = unfiltered else {
        out.push(0);
        packer.put(out, filtered, Unit::Four)?;
        return Some(Recoding::Png);
    };
    out.push(shape.pixel_bytes as u8);
    put_varint(out, shape.row_bytes as u64);
    packer.put(out, &unfiltered, shape.unit())?;
    if broken.is_empty() {
        return Some(Recoding::Png);
    }
    put_bytes(out, broken);
    Some(Recoding::PngFront)
}

fn take_pixels(reader: &mut Reader<'_>) -> Result<Vec<u8>, Malformed> {
    let pixel_bytes = usize::from(reader.byte()?);
    if pixel_bytes == 0 {
        return pixels::take(reader);
    }
    let shape = Shape { pixel_bytes, row_bytes: reader.count(super::MAX_PLAIN_BYTES)? };
    if !shape.is_possible() {
        return Err(Malformed("shape of a picture"));
    }
    let unfiltered = pixels::take(reader)?;
    rows::filter(&unfiltered, shape).ok_or(Malformed("rows of a picture"))
}

/// How the stored form holds the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As pixels, compressed.
    Pixels,
    /// The same, and the beginning of one more row, filtered.
    Front,
}

pub(super) fn restore(stored: &[u8], form: Form) -> Result<Vec<u8>, Malformed> {
    let mut reader = Reader::new(stored);
    let front = reader.bytes(stored.len())?;
    let count = reader.count(MAX_CHUNKS)?;
    let lengths =
        (0..count).map(|_| reader.count(1 << 31)).collect::<Result<Vec<_>, Malformed>>()?;
    let zlib_head = reader.take(2)?;
    let behind = reader.bytes(stored.len())?;
    let corrections = reader.bytes(stored.len())?;
    let plain = match form {
        Form::Pixels => take_pixels(&mut reader)?,
        Form::Front => {
            let mut rows = take_pixels(&mut reader)?;
            rows.extend_from_slice(reader.bytes(stored.len())?);
            rows
        }
    };
    let stream = [zlib_head, &deflate(&plain, corrections)?, behind].concat();
    let mut body = front.to_vec();
    let mut stream = Reader::new(&stream);
    for length in lengths {
        let data = stream.take(length)?;
        let begin = body.len() + 4;
        body.extend_from_slice(&(length as u32).to_be_bytes());
        body.extend_from_slice(b"IDAT");
        body.extend_from_slice(data);
        let checksum = libdeflater::crc32(&body[begin..]);
        body.extend_from_slice(&checksum.to_be_bytes());
    }
    body.extend_from_slice(reader.rest());
    Ok(body)
}

/// A PNG around its picture data.
struct Split<'a> {
    front: &'a [u8],
    lengths: Vec<usize>,
    stream: Vec<u8>,
    back: &'a [u8],
}

fn split(body: &[u8]) -> Option<Split<'_>> {
    let mut at = SIGNATURE_BYTES;
    let mut lengths = Vec::new();
    let mut stream = Vec::new();
    let mut front = None;
    while let Some((head, _)) = body.get(at..)?.split_first_chunk::<8>() {
        let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let end = at.checked_add(length)?.checked_add(12)?;
        if &head[4..] == b"IDAT" {
            front = front.or(Some(at));
            lengths.push(length);
            stream.extend_from_slice(body.get(at + 8..end.checked_sub(4)?)?);
        } else if front.is_some() {
            break;
        }
        if lengths.len() > MAX_CHUNKS {
            return None;
        }
        at = end;
    }
    let front = front?;
    Some(Split { front: &body[..front], lengths, stream, back: body.get(at..)? })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A grey picture 256 pixels wide: each row is the one before with a few pixels changed.
    fn picture(rows: usize, seed: u64, interlaced: u8) -> Vec<u8> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize
        };
        let mut row: Vec<u8> = (0..256).map(|_| next() as u8).collect();
        let mut filtered = Vec::new();
        for _ in 0..rows {
            for _ in 0..4 {
                row[next() % 256] = next() as u8;
            }
            filtered.push(0);
            filtered.extend_from_slice(&row);
        }
        let mut head = vec![0, 0, 1, 0];
        head.extend_from_slice(&(rows as u32).to_be_bytes());
        head.extend_from_slice(&[8, 0, 0, 0, interlaced]);
        let stream = miniz_oxide::deflate::compress_to_vec_zlib(&filtered, 6);
        let mut body = b"\x89PNG\r\n\x1a\n".to_vec();
        for (kind, data) in [(b"IHDR", &head), (b"IDAT", &stream), (b"IEND", &Vec::new())] {
            body.extend_from_slice(&(data.len() as u32).to_be_bytes());
            let begin = body.len();
            body.extend_from_slice(kind);
            body.extend_from_slice(data);
            let checksum = libdeflater::crc32(&body[begin..]);
            body.extend_from_slice(&checksum.to_be_bytes());
        }
        body
    }

    fn comes_back(body: &[u8], recoded: &Recoded) -> bool {
        super::super::restore(&recoded.bytes, recoded.recoding as u8).as_deref() == Ok(body)
    }

    #[test]
    fn of_a_picture_that_takes_long_the_front_is_recoded() {
        let body = picture(6000, 1, 0);
        let whole = recode(&body, None).unwrap();
        assert_eq!((whole.recoding, comes_back(&body, &whole)), (Recoding::Png, true));
        let limit = whole.expected / 2;
        let front = recode(&body, Some(limit)).unwrap();
        assert_eq!((front.recoding, comes_back(&body, &front)), (Recoding::PngFront, true));
        assert!(front.expected <= limit);
        assert!(whole.bytes.len() < front.bytes.len() && front.bytes.len() < body.len());
        assert!(recode(&body, Some(Duration::from_micros(50))).is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        #[test]
        fn however_much_is_taken_it_comes_back(
            rows in 10usize..2500, seed: u64, limit_us in 200u64..6000, interlaced in 0u8..2,
        ) {
            let body = picture(rows, seed, interlaced);
            let limit = Duration::from_micros(limit_us);
            if let Some(recoded) = recode(&body, Some(limit)) {
                prop_assert!(recoded.expected <= limit);
                prop_assert!(comes_back(&body, &recoded));
            }
        }

        #[test]
        fn junk_is_refused_without_panic(junk: Vec<u8>) {
            for recoding in [Recoding::Png, Recoding::PngFront] {
                let _ = super::super::restore(&junk, recoding as u8);
            }
            let _ = split(&junk);
        }
    }
}
