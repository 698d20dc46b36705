//! JPEG by Lepton. Segments that carry text, profiles and thumbnails are kept apart, because
//! they repeat from picture to picture and Lepton would hide that.

use std::io::Cursor;
use std::time::Duration;

use lepton_jpeg::{EnabledFeatures, SingleThreadPool, decode_lepton, encode_lepton};

use super::blocks::count_blocks;
use super::{MAX_BYTES, Recoded, Recoding, lepton, microseconds, per_kib};
use crate::wire::{Malformed, Reader, put_varint};

const MAX_SEGMENTS: usize = 1000;
/// A shorter front of a scan is not worth the tables of the model.
const MIN_FRONT_BYTES: usize = 4096;
/// How long restoring a picture takes: to begin, for a KiB of the scan, and for a block of 64
/// values, which a picture of several scans goes through again and again (docs/benchmarks.md).
const BEGIN_US: f64 = 135.0;
const US_PER_KIB: f64 = 107.0;
const US_PER_BLOCK: f64 = 0.39;
const US_PER_BLOCK_OF_SCANS: f64 = 1.1;

/// About how long restoring it takes, if it has the head of a picture.
pub(super) fn expected(body: &[u8]) -> Option<Duration> {
    Some(microseconds(Sketch::of(body)?.expected_us(body.len())))
}

/// All of it, or as much of its front as can be restored within the limit.
pub(super) fn recode(body: &[u8], limit: Option<Duration>) -> Option<Recoded> {
    let sketch = Sketch::of(body);
    let cut = match limit {
        None => body.len(),
        Some(limit) => sketch.as_ref()?.cut(limit)?,
    };
    let front = recode_front(&body[..cut])?;
    let expected = sketch.map_or(0.0, |sketch| sketch.expected_us(cut));
    let (recoding, bytes) = match body.len() - cut {
        0 => (Recoding::Jpeg, front),
        behind => {
            let mut out = Vec::with_capacity(front.len() + behind + 4);
            put_varint(&mut out, behind as u64);
            out.extend_from_slice(&front);
            out.extend_from_slice(&body[cut..]);
            (Recoding::JpegFront, out)
        }
    };
    Some(Recoded { recoding, bytes, taken_bytes: cut, expected: microseconds(expected) })
}

fn recode_front(body: &[u8]) -> Option<Vec<u8>> {
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

/// What [`recode`] made of a front, with what followed it.
pub(super) fn restore_front(stored: &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut reader = Reader::new(stored);
    let behind = reader.count(stored.len())?;
    let front = reader.rest().len().checked_sub(behind).ok_or(Malformed("cut short"))?;
    let mut body = restore(reader.take(front)?)?;
    body.extend_from_slice(reader.rest());
    Ok(body)
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
    lepton::check(reader.rest())?;
    let mut lepton = Cursor::new(reader.rest());
    let pool = SingleThreadPool::default();
    let mut features = EnabledFeatures::compat_lepton_vector_read();
    features.max_jpeg_file_size = MAX_BYTES as u32;
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

/// What the head of a picture says about the work that it makes.
struct Sketch {
    /// Where the first scan begins, and how much follows.
    scan_at: usize,
    scan_bytes: usize,
    blocks: usize,
    /// Whether one scan holds the whole picture: then it can be cut anywhere.
    is_one_scan: bool,
}

impl Sketch {
    fn of(body: &[u8]) -> Option<Self> {
        let mut at = 2;
        let mut frame: Option<(u8, usize, usize)> = None;
        while let [0xff, marker, high, low, ref rest @ ..] = *body.get(at..)? {
            let end = at + 2 + usize::from(u16::from_be_bytes([high, low]));
            match marker {
                0xc0..=0xc2 => {
                    let (blocks, components) = count_blocks(rest)?;
                    frame = Some((marker, blocks, components));
                }
                0xda => {
                    let (kind, blocks, components) = frame?;
                    let in_scan = usize::from(*rest.first()?);
                    let is_one_scan = kind != 0xc2 && in_scan == components;
                    let scan_bytes = body.len().checked_sub(end)?;
                    return Some(Self { scan_at: end, scan_bytes, blocks, is_one_scan });
                }
                _ => {}
            }
            at = end;
        }
        None
    }

    /// What the first `bytes` of the body take.
    fn expected_us(&self, bytes: usize) -> f64 {
        BEGIN_US + self.us_per_byte() * bytes.saturating_sub(self.scan_at) as f64
    }

    fn us_per_byte(&self) -> f64 {
        let us_per_block = if self.is_one_scan { US_PER_BLOCK } else { US_PER_BLOCK_OF_SCANS };
        per_kib(1, US_PER_KIB) + us_per_block * self.blocks as f64 / self.scan_bytes.max(1) as f64
    }

    /// How much of the body can be restored within the limit, if that is worth it.
    fn cut(&self, limit: Duration) -> Option<usize> {
        let scan_us = (limit.as_micros() as f64 - BEGIN_US).max(0.0);
        let scan_bytes = (scan_us / self.us_per_byte()) as usize;
        if scan_bytes >= self.scan_bytes {
            return Some(self.scan_at + self.scan_bytes);
        }
        (self.is_one_scan && scan_bytes >= MIN_FRONT_BYTES).then_some(self.scan_at + scan_bytes)
    }
}

/// Where the APPn and COM segments in front of the picture are.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Bits as a JPEG scan has them: a byte of ones is followed by a zero.
    #[derive(Default)]
    struct Scan {
        bytes: Vec<u8>,
        buffer: u32,
        filled: u32,
    }

    impl Scan {
        fn put(&mut self, value: u32, bits: u32) {
            for bit in (0..bits).rev() {
                self.buffer = self.buffer << 1 | (value >> bit & 1);
                self.filled += 1;
                if self.filled == 8 {
                    self.bytes.push(self.buffer as u8);
                    if self.buffer == 0xff {
                        self.bytes.push(0);
                    }
                    (self.buffer, self.filled) = (0, 0);
                }
            }
        }

        fn finish(mut self) -> Vec<u8> {
            while self.filled > 0 {
                self.put(1, 1);
            }
            self.bytes
        }
    }

    fn segment(out: &mut Vec<u8>, marker: u8, data: &[u8]) {
        out.extend_from_slice(&[0xff, marker]);
        out.extend_from_slice(&(data.len() as u16 + 2).to_be_bytes());
        out.extend_from_slice(data);
    }

    /// A grey picture of 256 by 256, its codes all of three bits, with a note and a profile.
    fn picture(note: &[u8]) -> Vec<u8> {
        picture_of(32, note)
    }

    /// The same with so many blocks along each side.
    fn picture_of(side: u32, note: &[u8]) -> Vec<u8> {
        let mut out = vec![0xff, 0xd8];
        segment(&mut out, 0xe1, b"Exif\0\0 some camera, some lens, some place");
        segment(&mut out, 0xfe, note);
        segment(&mut out, 0xdb, &[&[0][..], &[8; 64]].concat());
        let [high, low] = (side as u16 * 8).to_be_bytes();
        segment(&mut out, 0xc0, &[8, high, low, high, low, 1, 1, 0x11, 0]);
        let lengths = [0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        segment(&mut out, 0xc4, &[&[0x00][..], &lengths, &[0, 1, 2, 3]].concat());
        segment(&mut out, 0xc4, &[&[0x10][..], &lengths, &[0x00, 0x01, 0x02, 0x11]].concat());
        segment(&mut out, 0xda, &[1, 1, 0, 0, 63, 0]);
        let mut scan = Scan::default();
        for block in 0..side * side {
            // A step of one up or down, one wave, and the end of the block.
            scan.put(1, 3);
            scan.put(u32::from(block % 4 < 2), 1);
            scan.put(1, 3);
            scan.put(block / side % 2, 1);
            scan.put(0, 3);
        }
        out.extend(scan.finish());
        out.extend_from_slice(&[0xff, 0xd9]);
        out
    }

    #[test]
    fn a_picture_becomes_smaller_and_comes_back_with_all_its_segments() {
        let body = picture(b"a note that lepton would hide");
        let stored = recode_front(&body).expect("a plain baseline picture can be recoded");
        assert!(stored.len() * 2 < body.len(), "{} of {}", stored.len(), body.len());
        let shown = |text: &[u8]| stored.windows(text.len()).any(|window| window == text);
        assert!(shown(b"a note that lepton would hide") && shown(b"some camera"));
        assert_eq!(restore(&stored), Ok(body));
    }

    #[test]
    fn a_picture_cut_short_or_changed_comes_back_or_is_left_alone() {
        let body = picture(b"note");
        for damaged in [&body[..body.len() / 2], &body[..40], &body[..body.len() - 2]] {
            if let Some(stored) = recode_front(damaged) {
                // What does not come back is refused by the comparison in `super::recode`.
                let _ = restore(&stored);
            }
            let kept = super::super::recode(
                damaged,
                Recoding::Jpeg,
                super::super::Extent::Whole,
                Duration::from_secs(9),
            );
            assert!(kept.is_none_or(|kept| restore(&kept.bytes).as_deref() == Ok(damaged)));
        }
    }

    #[test]
    fn of_a_picture_that_takes_long_the_front_is_recoded() {
        let body = picture_of(128, b"note");
        let limit = Duration::from_millis(4);
        assert!(expected(&body).unwrap() > limit);
        let front = recode(&body, Some(limit)).expect("a baseline picture can be cut");
        assert_eq!(front.recoding, Recoding::JpegFront);
        assert!(front.expected <= limit && front.taken_bytes < body.len() * 2 / 3, "{front:?}");
        assert!(front.bytes.len() < body.len() - body.len() / 10, "{}", front.bytes.len());
        assert_eq!(restore_front(&front.bytes).as_deref(), Ok(&body[..]));
        let whole = recode(&body, None).unwrap();
        assert_eq!((whole.recoding, whole.taken_bytes), (Recoding::Jpeg, body.len()));
        assert!(whole.expected > limit);
    }

    #[test]
    fn a_picture_of_several_scans_takes_longer_and_is_not_cut() {
        let mut body = picture_of(128, b"note");
        let one_scan = expected(&body).unwrap();
        let frame = body.windows(2).position(|window| window == [0xff, 0xc0]).unwrap();
        body[frame + 1] = 0xc2;
        assert!(expected(&body).unwrap() > 2 * one_scan);
        assert!(recode(&body, Some(Duration::from_millis(4))).is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn wherever_it_is_cut_it_comes_back(side in 60u32..130, limit_us in 500u64..20_000) {
            let body = picture_of(side, b"note");
            let limit = Duration::from_micros(limit_us);
            if let Some(front) = recode(&body, Some(limit)) {
                prop_assert!(front.expected <= limit);
                let code = front.recoding as u8;
                prop_assert_eq!(super::super::restore(&front.bytes, code), Ok(body));
            }
        }
    }

    proptest! {
        #[test]
        fn junk_is_refused_without_panic(junk: Vec<u8>) {
            let _ = segments_apart(&junk);
            let _ = super::super::restore(&junk, Recoding::Jpeg as u8);
            let _ = super::super::restore(&junk, Recoding::JpegFront as u8);
            let _ = Sketch::of(&junk);
        }
    }
}
