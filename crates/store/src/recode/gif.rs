//! GIF by redoing LZW: the pixels are stored, and compressed again when the body is read.
//!
//! An encoder that always takes the longest code that it knows is reproduced by its pixels and by
//! when it cleared its table, which each does in its own way. A picture from any other encoder
//! stays unchanged.

use std::time::Duration;

use super::lzma::{self, Unit};
use super::{MAX_PLAIN_BYTES, Recoded, Recoding, microseconds, per_kib};
use crate::wire::{Malformed, Reader, put_bytes, put_varint};

const MAX_CODES: usize = 4096;
const MAX_IMAGES: usize = 4096;
/// Encoders that clear more often than this do not compress.
const MAX_CLEARS: usize = 1 << 16;

/// What a KiB takes to restore (docs/benchmarks.md).
const US_PER_KIB: f64 = 80.0;

pub(super) fn expected(bytes: usize) -> Duration {
    microseconds(per_kib(bytes, US_PER_KIB))
}

/// All images, or the first ones if a limit is given.
pub(super) fn recode(body: &[u8], limit: Option<Duration>) -> Option<Recoded> {
    let mut heads = Vec::new();
    let mut pixels = Vec::new();
    let mut from = 0;
    let mut found = find_images(body)?;
    found.retain(|(_, end)| limit.is_none_or(|limit| expected(*end) <= limit));
    if found.is_empty() || found.len() > MAX_IMAGES {
        return None;
    }
    for (start, end) in &found {
        let width = *body.get(*start)?;
        let blocks = &body[start + 1..*end];
        let block_bytes = *blocks.first()?;
        let data = join_blocks(blocks)?;
        let image = unpack(&data, width)?;
        if split_blocks(&data, block_bytes) != blocks || pack(&image, width) != data {
            return None;
        }
        put_bytes(&mut heads, &body[from..=*start]);
        heads.push(block_bytes);
        put_varint(&mut heads, image.clears.len() as u64);
        image.clears.iter().for_each(|codes| put_varint(&mut heads, *codes as u64));
        heads.push(u8::from(image.has_end));
        put_bytes(&mut heads, &image.behind);
        put_varint(&mut heads, image.pixels.len() as u64);
        pixels.extend_from_slice(&image.pixels);
        if pixels.len() > MAX_PLAIN_BYTES {
            return None;
        }
        from = *end;
    }
    let mut out = Vec::new();
    put_varint(&mut out, found.len() as u64);
    out.extend_from_slice(&heads);
    lzma::put(&mut out, &pixels, Unit::One)?;
    out.extend_from_slice(&body[from..]);
    Some(Recoded {
        recoding: Recoding::Gif,
        bytes: out,
        taken_bytes: from,
        expected: expected(from),
    })
}

pub(super) fn restore(stored: &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut reader = Reader::new(stored);
    let count = reader.count(MAX_IMAGES)?;
    let mut images = Vec::with_capacity(count);
    for _ in 0..count {
        let front = reader.bytes(stored.len())?;
        let width = *front.last().ok_or(Malformed("image without a head"))?;
        if !(1..=8).contains(&width) {
            return Err(Malformed("code size of an image"));
        }
        let (block_bytes, image, length) = take_image(&mut reader)?;
        images.push((front, width, block_bytes, image, length));
    }
    let pixels = lzma::take(&mut reader)?;
    let mut pixels = Reader::new(&pixels);
    let mut body = Vec::new();
    for (front, width, block_bytes, mut image, length) in images {
        image.pixels = pixels.take(length)?.to_vec();
        body.extend_from_slice(front);
        body.extend_from_slice(&split_blocks(&pack(&image, width), block_bytes));
    }
    body.extend_from_slice(reader.rest());
    Ok(body)
}

/// Everything about an image but its pixels: length of its blocks, and how many pixels it has.
fn take_image(reader: &mut Reader<'_>) -> Result<(u8, Image, usize), Malformed> {
    let block_bytes = reader.byte()?;
    let count = reader.count(MAX_CLEARS)?;
    let clears =
        (0..count).map(|_| reader.count(MAX_PLAIN_BYTES)).collect::<Result<Vec<_>, Malformed>>()?;
    let has_end = reader.byte()? != 0;
    let behind = reader.bytes(MAX_PLAIN_BYTES)?.to_vec();
    let length = reader.count(MAX_PLAIN_BYTES)?;
    Ok((block_bytes, Image { clears, has_end, behind, ..Image::default() }, length))
}

/// What the LZW data of an image says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Image {
    pixels: Vec<u8>,
    /// Codes in front of each clear, counted from the clear before.
    clears: Vec<usize>,
    /// Whether the code for the end follows the last one.
    has_end: bool,
    /// Whole bytes behind that.
    behind: Vec<u8>,
}

/// Start (at the code size byte) and end of the data of every image.
fn find_images(body: &[u8]) -> Option<Vec<(usize, usize)>> {
    let table_bytes = |flags: u8| if flags & 0x80 != 0 { 3usize << ((flags & 7) + 1) } else { 0 };
    let mut at = 13 + table_bytes(*body.get(10)?);
    let mut images = Vec::new();
    loop {
        match body.get(at) {
            Some(0x21) => at = end_of_blocks(body, at + 2)?,
            Some(0x2c) => {
                let start = at + 10 + table_bytes(*body.get(at + 9)?);
                at = end_of_blocks(body, start + 1)?;
                images.push((start, at));
            }
            // The trailer, or junk that some servers append: it is kept as it is.
            _ => return Some(images),
        }
    }
}

fn end_of_blocks(body: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let length = usize::from(*body.get(at)?);
        at += 1 + length;
        if length == 0 {
            return Some(at);
        }
    }
}

fn join_blocks(mut blocks: &[u8]) -> Option<Vec<u8>> {
    let mut data = Vec::with_capacity(blocks.len());
    while let (length, rest) = blocks.split_first()?
        && *length > 0
    {
        let (block, behind) = rest.split_at_checked(usize::from(*length))?;
        data.extend_from_slice(block);
        blocks = behind;
    }
    Some(data)
}

fn split_blocks(data: &[u8], block_bytes: u8) -> Vec<u8> {
    let mut blocks = Vec::with_capacity(data.len() + data.len() / 255 + 2);
    for block in data.chunks(usize::from(block_bytes.max(1))) {
        blocks.push(block.len() as u8);
        blocks.extend_from_slice(block);
    }
    blocks.push(0);
    blocks
}

/// How many bits the next code has: the reader of the data learns a code with each one but the
/// first, and so the writer knows what the reader knows.
struct CodeBits {
    width: u8,
    known: usize,
    codes: usize,
    bits: u32,
}

impl CodeBits {
    fn new(width: u8) -> Self {
        Self { width, known: (1 << width) + 2, codes: 0, bits: u32::from(width) + 1 }
    }

    fn step(&mut self) {
        self.codes += 1;
        if self.codes > 1 && self.known < MAX_CODES {
            self.known += 1;
            if self.known == 1 << self.bits && self.bits < 12 {
                self.bits += 1;
            }
        }
    }

    fn clear(&mut self) {
        *self = Self::new(self.width);
    }
}

fn unpack(data: &[u8], width: u8) -> Option<Image> {
    if !(1..=8).contains(&width) {
        return None;
    }
    let clear = 1usize << width;
    let end = clear + 1;
    let mut bits = Bits { data, at: 0 };
    let mut code_bits = CodeBits::new(width);
    // Each code as the code before it, its last pixel and its length.
    let mut table: Vec<(u16, u8, u16)> = (0..clear + 2).map(|code| (0, code as u8, 1)).collect();
    let mut image = Image::default();
    let mut before: Option<usize> = None;
    loop {
        let code = match bits.take(code_bits.bits) {
            Some(code) if code != end => code,
            other => {
                image.has_end = other.is_some();
                image.behind = data.get(bits.at.div_ceil(8)..).unwrap_or_default().to_vec();
                return Some(image);
            }
        };
        if code == clear {
            image.clears.push(code_bits.codes);
            table.truncate(clear + 2);
            code_bits.clear();
            before = None;
            if image.clears.len() > MAX_CLEARS {
                return None;
            }
            continue;
        }
        let pixels = &mut image.pixels;
        if pixels.len() > MAX_PLAIN_BYTES || code > table.len() {
            return None;
        }
        let start = pixels.len();
        match before {
            None if code >= clear => return None,
            None => pixels.push(code as u8),
            Some(before) => {
                let spelled = if code < table.len() { code } else { before };
                spell(&table, spelled, pixels);
                let first = pixels[start];
                if code == table.len() {
                    pixels.push(first);
                }
                if table.len() < MAX_CODES {
                    let length = table[before].2.checked_add(1)?;
                    table.push((before as u16, first, length));
                } else if code >= table.len() {
                    return None;
                }
            }
        }
        code_bits.step();
        before = Some(code);
    }
}

fn spell(table: &[(u16, u8, u16)], mut code: usize, pixels: &mut Vec<u8>) {
    let length = usize::from(table[code].2);
    let start = pixels.len();
    pixels.resize(start + length, 0);
    for at in (start..start + length).rev() {
        let (before, pixel, _) = table[code];
        pixels[at] = pixel;
        code = usize::from(before);
    }
}

fn pack(image: &Image, width: u8) -> Vec<u8> {
    let clear = 1usize << width;
    let mut out = BitWriter::default();
    let mut table = Table::new(clear);
    let mut code_bits = CodeBits::new(width);
    let mut clears = image.clears.iter().copied().peekable();
    let mut clear_where_due = |code_bits: &mut CodeBits, table: &mut Table, out: &mut BitWriter| {
        while clears.next_if_eq(&code_bits.codes).is_some() {
            out.put(clear, code_bits.bits);
            code_bits.clear();
            table.clear();
        }
    };
    clear_where_due(&mut code_bits, &mut table, &mut out);
    let mut pixels = image.pixels.iter();
    let mut current = pixels.next().map(|first| usize::from(*first));
    while let Some(code) = current {
        let (mut code, mut next) = (code, None);
        for pixel in pixels.by_ref() {
            match table.find(code, *pixel) {
                Some(longer) => code = longer,
                None => {
                    next = Some(*pixel);
                    break;
                }
            }
        }
        out.put(code, code_bits.bits);
        code_bits.step();
        if let Some(pixel) = next {
            table.add(code, pixel);
        }
        current = next.map(usize::from);
        clear_where_due(&mut code_bits, &mut table, &mut out);
    }
    if image.has_end {
        out.put(clear + 1, code_bits.bits);
    }
    let mut data = out.finish();
    data.extend_from_slice(&image.behind);
    data
}

/// Codes by the code before and the next pixel: open addressing, since this is the inner loop.
struct Table {
    first: usize,
    next: usize,
    slots: Vec<(u32, u16)>,
    used: Vec<usize>,
}

impl Table {
    const SLOTS: usize = 1 << 14;
    const FREE: u32 = u32::MAX;

    fn new(clear: usize) -> Self {
        let slots = vec![(Self::FREE, 0); Self::SLOTS];
        Self { first: clear + 2, next: clear + 2, slots, used: Vec::new() }
    }

    fn clear(&mut self) {
        self.next = self.first;
        // Some encoders clear every few codes.
        self.used.drain(..).for_each(|slot| self.slots[slot] = (Self::FREE, 0));
    }

    fn slot(&self, key: u32) -> usize {
        let mut at = (key.wrapping_mul(0x9e37_79b9) >> 18) as usize;
        while self.slots[at].0 != key && self.slots[at].0 != Self::FREE {
            at = (at + 1) % Self::SLOTS;
        }
        at
    }

    fn find(&self, before: usize, pixel: u8) -> Option<usize> {
        let key = (before as u32) << 8 | u32::from(pixel);
        let (found, code) = self.slots[self.slot(key)];
        (found == key).then_some(usize::from(code))
    }

    fn add(&mut self, before: usize, pixel: u8) {
        if self.next == MAX_CODES {
            return;
        }
        let key = (before as u32) << 8 | u32::from(pixel);
        let slot = self.slot(key);
        self.slots[slot] = (key, self.next as u16);
        self.used.push(slot);
        self.next += 1;
    }
}

struct Bits<'a> {
    data: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn take(&mut self, count: u32) -> Option<usize> {
        let byte = self.at / 8;
        let mut window = [0; 4];
        let rest = self.data.get(byte..)?;
        let available = rest.len().min(3);
        window[..available].copy_from_slice(&rest[..available]);
        if self.at + count as usize > self.data.len() * 8 {
            return None;
        }
        let value = u32::from_le_bytes(window) >> (self.at % 8);
        self.at += count as usize;
        Some((value & ((1 << count) - 1)) as usize)
    }
}

#[derive(Default)]
struct BitWriter {
    bytes: Vec<u8>,
    buffer: u32,
    filled: u32,
}

impl BitWriter {
    fn put(&mut self, code: usize, count: u32) {
        self.buffer |= (code as u32) << self.filled;
        self.filled += count;
        while self.filled >= 8 {
            self.bytes.push(self.buffer as u8);
            self.buffer >>= 8;
            self.filled -= 8;
        }
    }

    fn finish(mut self) -> Vec<u8> {
        if self.filled > 0 {
            self.bytes.push(self.buffer as u8);
        }
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn noise(seed: u64, length: usize, width: u8, calm: u64) -> Vec<u8> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (((state >> 33) % calm) % (1 << width)) as u8
        };
        (0..length).map(|_| next()).collect()
    }

    proptest! {
        #[test]
        fn what_is_packed_can_be_unpacked_however_it_is_cleared(
            seed: u64, length in 1usize..60_000, width in 2u8..=8, calm in 1u64..9,
            begins_with_clear: bool, every in 1usize..6000, has_end: bool,
        ) {
            let mut image = Image {
                pixels: noise(seed, length, width, calm),
                clears: if begins_with_clear { vec![0] } else { Vec::new() },
                has_end,
                behind: Vec::new(),
            };
            image.clears.extend(std::iter::repeat_n(every, 3));
            let data = pack(&image, width);
            let found = unpack(&data, width).unwrap();
            // Without its code the end is where the bits end, and those left may look like one more.
            if has_end || width >= 7 {
                prop_assert_eq!(&pack(&found, width), &data);
                prop_assert_eq!(found.pixels, image.pixels);
                prop_assert!(image.clears.starts_with(&found.clears));
            }
        }

        #[test]
        fn junk_never_panics(junk: Vec<u8>) {
            let _ = recode(&junk, None);
            let _ = restore(&junk);
            let _ = unpack(&junk, 8);
        }
    }

    #[test]
    fn a_picture_in_blocks_of_another_length_with_bytes_behind_its_end_comes_back() {
        let image = Image {
            pixels: noise(7, 9000, 4, 3),
            clears: vec![0, 500, 77],
            has_end: true,
            behind: vec![1, 2, 3],
        };
        let mut body = b"GIF89a\x5a\0\x64\0\0\0\0,\0\0\0\0\x5a\0\x64\0\0\x04".to_vec();
        body.extend(split_blocks(&pack(&image, 4), 254));
        body.extend_from_slice(b"; and some junk");
        let stored = recode(&body, None).unwrap().bytes;
        assert_eq!(restore(&stored), Ok(body));
    }

    #[test]
    fn of_many_images_only_the_first_are_recoded_if_all_would_take_long() {
        let image = Image { pixels: noise(7, 90_000, 8, 256), clears: vec![0], ..Image::default() };
        let image = Image { has_end: true, ..image };
        let mut body = b"GIF89a\x2c\x01\x2c\x01\0\0\0".to_vec();
        for _ in 0..3 {
            body.extend_from_slice(b",\0\0\0\0\x2c\x01\x2c\x01\0\x08");
            body.extend(split_blocks(&pack(&image, 8), 255));
        }
        body.push(b';');
        let limit = expected(body.len() / 2);
        let front = recode(&body, Some(limit)).unwrap();
        assert!(front.expected <= limit && front.taken_bytes < body.len() / 2);
        assert_eq!(restore(&front.bytes).as_deref(), Ok(&body[..]));
        assert_eq!(recode(&body, Some(limit / 4)), None);
    }
}
