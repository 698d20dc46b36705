//! PNG as its pixels and what is needed to filter and deflate them the same way.

use super::deflate::{deflate, inflate};
use super::lzma::{self, Unit};
use super::rows::{self, Shape};
use crate::wire::{Malformed, Reader, put_bytes, put_varint};

const MAX_CHUNKS: usize = 1 << 16;
const SIGNATURE_BYTES: usize = 8;

pub(super) fn recode(body: &[u8]) -> Option<Vec<u8>> {
    let picture = split(body)?;
    let (zlib_head, stream) = picture.stream.split_at_checked(2)?;
    let inflated = inflate(stream)?;
    let behind = &stream[inflated.deflated_bytes..];
    let mut out = Vec::new();
    put_bytes(&mut out, picture.front);
    put_varint(&mut out, picture.lengths.len() as u64);
    picture.lengths.iter().for_each(|length| put_varint(&mut out, *length as u64));
    out.extend_from_slice(zlib_head);
    put_bytes(&mut out, behind);
    put_bytes(&mut out, &inflated.corrections);
    put_pixels(&mut out, picture.front, &inflated.plain)?;
    out.extend_from_slice(picture.back);
    Some(out)
}

/// Interlaced pictures keep their filters: their rows have many lengths.
fn put_pixels(out: &mut Vec<u8>, front: &[u8], filtered: &[u8]) -> Option<()> {
    let shape = Shape::of_png(front);
    let unfiltered = shape.and_then(|shape| Some((shape, rows::unfilter(filtered, shape)?)));
    match unfiltered {
        Some((shape, unfiltered)) => {
            out.push(shape.pixel_bytes as u8);
            put_varint(out, shape.row_bytes as u64);
            lzma::put(out, &unfiltered, shape.unit())
        }
        None => {
            out.push(0);
            lzma::put(out, filtered, Unit::Four)
        }
    }
}

fn take_pixels(reader: &mut Reader<'_>) -> Result<Vec<u8>, Malformed> {
    let pixel_bytes = usize::from(reader.byte()?);
    if pixel_bytes == 0 {
        return lzma::take(reader);
    }
    let shape = Shape { pixel_bytes, row_bytes: reader.count(super::MAX_PLAIN_BYTES)? };
    if !shape.is_possible() {
        return Err(Malformed("shape of a picture"));
    }
    let unfiltered = lzma::take(reader)?;
    rows::filter(&unfiltered, shape).ok_or(Malformed("rows of a picture"))
}

/// How the rows lie in the stored form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Plain and filtered, as it was written before pixels were taken out.
    Filtered,
    /// As pixels, compressed.
    Pixels,
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
        Form::Filtered => reader.bytes(stored.len())?.to_vec(),
        Form::Pixels => take_pixels(&mut reader)?,
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
