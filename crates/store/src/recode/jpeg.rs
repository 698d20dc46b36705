//! JPEG by Lepton. Segments that carry text, profiles and thumbnails are kept apart, because
//! they repeat from picture to picture and Lepton would hide that.

use std::io::Cursor;

use lepton_jpeg::{EnabledFeatures, SingleThreadPool, decode_lepton, encode_lepton};

use crate::wire::{Malformed, Reader, put_varint};

const MAX_SEGMENTS: usize = 1000;

pub(super) fn recode(body: &[u8]) -> Option<Vec<u8>> {
    let segments = segments_apart(body)?;
    let mut picture = Vec::with_capacity(body.len());
    let mut apart = Vec::new();
    let mut out = Vec::new();
    put_varint(&mut out, segments.len() as u64);
    let mut at = 0;
    for (start, end) in segments {
        picture.extend_from_slice(&body[at..start]);
        put_varint(&mut out, (start - at) as u64);
        put_varint(&mut out, (end - start) as u64);
        apart.extend_from_slice(&body[start..end]);
        at = end;
    }
    picture.extend_from_slice(&body[at..]);
    let mut lepton = Cursor::new(Vec::with_capacity(picture.len()));
    let mut features = EnabledFeatures::compat_lepton_vector_write();
    features.max_partitions = 1;
    let pool = SingleThreadPool::default();
    encode_lepton(&mut Cursor::new(&picture), &mut lepton, &features, &pool).ok()?;
    out.extend_from_slice(&apart);
    out.extend_from_slice(lepton.get_ref());
    (out.len() < body.len()).then_some(out)
}

pub(super) fn restore(stored: &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut reader = Reader::new(stored);
    let count = reader.count(MAX_SEGMENTS)?;
    let mut segments = Vec::with_capacity(count);
    for _ in 0..count {
        segments.push((reader.count(stored.len() * 16)?, reader.count(stored.len())?));
    }
    let mut apart = Vec::with_capacity(count);
    for (before, length) in segments {
        apart.push((before, reader.take(length)?));
    }
    let mut picture = Vec::new();
    let mut lepton = Cursor::new(reader.rest());
    let pool = SingleThreadPool::default();
    let features = EnabledFeatures::compat_lepton_vector_read();
    decode_lepton(&mut lepton, &mut picture, &features, &pool)
        .map_err(|_| Malformed("lepton stream not readable"))?;
    let mut body = Vec::with_capacity(picture.len() + stored.len());
    let mut picture = Reader::new(&picture);
    for (before, segment) in apart {
        body.extend_from_slice(picture.take(before)?);
        body.extend_from_slice(segment);
    }
    body.extend_from_slice(picture.rest());
    Ok(body)
}

/// Where the APPn and COM segments in front of the picture lie.
fn segments_apart(body: &[u8]) -> Option<Vec<(usize, usize)>> {
    let mut found = Vec::new();
    let mut at = 2;
    while let [0xff, marker, high, low, ..] = *body.get(at..)? {
        let end = at + 2 + usize::from(u16::from_be_bytes([high, low]));
        if end > body.len() || marker == 0xda || marker < 0xc0 {
            break;
        }
        // The JFIF segment stays: Lepton knows it.
        let is_apart = matches!(marker, 0xe1..=0xef | 0xfe);
        if is_apart && found.len() < MAX_SEGMENTS {
            found.push((at, end));
        }
        at = end;
    }
    Some(found)
}
