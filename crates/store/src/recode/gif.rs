//! GIF by redoing LZW: the pixels are kept plain, and compressed again when the body is wanted.
//!
//! Encoders differ in when they clear their table. The two usual ways are tried: as soon as it is
//! full, and when the next code would not fit any more. Whoever did otherwise stays as it was.

use crate::wire::{Malformed, Reader, put_bytes, put_varint};

use super::MAX_PLAIN_BYTES;
use super::lzma::{self, Unit};

const MAX_CODES: usize = 4096;
const MAX_IMAGES: usize = 4096;

pub(super) fn recode(body: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut plain_bytes = 0;
    let mut from = 0;
    let mut images = Vec::new();
    for (start, end) in find_images(body)? {
        let width = *body.get(start)?;
        let data = join_blocks(&body[start + 1..end])?;
        let pixels = unpack(&data, width)?;
        plain_bytes += pixels.len();
        if plain_bytes > MAX_PLAIN_BYTES || images.len() >= MAX_IMAGES {
            return None;
        }
        let way = Way::ALL.into_iter().find(|way| pack(&pixels, width, *way) == data)?;
        if split_blocks(&data) != body[start + 1..end] {
            return None;
        }
        images.push((&body[from..=start], way, pixels));
        from = end;
    }
    put_varint(&mut out, images.len() as u64);
    for (front, way, pixels) in &images {
        put_bytes(&mut out, front);
        out.push(*way as u8);
        put_varint(&mut out, pixels.len() as u64);
    }
    let pixels: Vec<u8> = images.into_iter().flat_map(|(_, _, pixels)| pixels).collect();
    lzma::put(&mut out, &pixels, Unit::One)?;
    out.extend_from_slice(&body[from..]);
    Some(out)
}

/// How the pixels lie in the stored form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Plain, as it was written before LZMA was there.
    Plain,
    /// Compressed.
    Squeezed,
}

pub(super) fn restore(stored: &[u8], form: Form) -> Result<Vec<u8>, Malformed> {
    let mut reader = Reader::new(stored);
    let count = reader.count(MAX_IMAGES)?;
    let mut images = Vec::with_capacity(count);
    for _ in 0..count {
        let front = reader.bytes(stored.len())?;
        let way = reader.byte()?;
        let way = *Way::ALL.get(usize::from(way)).ok_or(Malformed("unknown way of clearing"))?;
        images.push((front, way, reader.count(MAX_PLAIN_BYTES)?));
    }
    let squeezed = match form {
        Form::Plain => None,
        Form::Squeezed => Some(lzma::take(&mut reader)?),
    };
    let mut plain = squeezed.as_deref().map(Reader::new);
    let mut body = Vec::new();
    for (front, way, length) in images {
        let pixels = plain.as_mut().unwrap_or(&mut reader).take(length)?;
        body.extend_from_slice(front);
        let width = *front.last().ok_or(Malformed("image without a head"))?;
        if !(1..=8).contains(&width) {
            return Err(Malformed("code size of an image"));
        }
        body.extend_from_slice(&split_blocks(&pack(pixels, width, way)));
    }
    body.extend_from_slice(reader.rest());
    Ok(body)
}

/// When an encoder clears its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// When the last code has been given away.
    WhenFull = 0,
    /// One code later.
    WhenOver = 1,
    /// Never: the table stays as it is once it is full.
    Never = 2,
}

impl Way {
    const ALL: [Self; 3] = [Self::WhenFull, Self::WhenOver, Self::Never];
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

fn split_blocks(data: &[u8]) -> Vec<u8> {
    let mut blocks = Vec::with_capacity(data.len() + data.len() / 255 + 2);
    for block in data.chunks(255) {
        blocks.push(block.len() as u8);
        blocks.extend_from_slice(block);
    }
    blocks.push(0);
    blocks
}

fn unpack(data: &[u8], width: u8) -> Option<Vec<u8>> {
    if !(1..=8).contains(&width) {
        return None;
    }
    let clear = 1usize << width;
    let end = clear + 1;
    let mut bits = Bits { data, at: 0 };
    let mut code_bits = u32::from(width) + 1;
    // Each code as the code before it, its last pixel and its length.
    let mut table: Vec<(u16, u8, u16)> = Vec::with_capacity(MAX_CODES);
    let reset = |table: &mut Vec<(u16, u8, u16)>| {
        table.clear();
        table.extend((0..clear + 2).map(|code| (0, code as u8, 1)));
    };
    reset(&mut table);
    let mut pixels: Vec<u8> = Vec::new();
    let mut before: Option<usize> = None;
    loop {
        let code = bits.take(code_bits)?;
        if code == end {
            return Some(pixels);
        }
        if code == clear {
            reset(&mut table);
            code_bits = u32::from(width) + 1;
            before = None;
            continue;
        }
        if pixels.len() > MAX_PLAIN_BYTES || code > table.len() {
            return None;
        }
        let start = pixels.len();
        match before {
            None if code >= clear => return None,
            None => pixels.push(code as u8),
            Some(before) => {
                let spelled = if code < table.len() { code } else { before };
                spell(&table, spelled, &mut pixels);
                let first = pixels[start];
                if code == table.len() {
                    pixels.push(first);
                }
                if table.len() < MAX_CODES {
                    let length = table[before].2.checked_add(1)?;
                    table.push((before as u16, first, length));
                    if table.len() == 1 << code_bits && code_bits < 12 {
                        code_bits += 1;
                    }
                } else if code >= table.len() {
                    return None;
                }
            }
        }
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

fn pack(pixels: &[u8], width: u8, way: Way) -> Vec<u8> {
    let clear = 1usize << width;
    let mut out = BitWriter::default();
    let mut table = Table::new(clear);
    let mut code_bits = u32::from(width) + 1;
    out.put(clear, code_bits);
    let Some((first, rest)) = pixels.split_first() else {
        out.put(clear + 1, code_bits);
        return out.finish();
    };
    let mut current = usize::from(*first);
    for pixel in rest {
        if let Some(longer) = table.find(current, *pixel) {
            current = longer;
            continue;
        }
        out.put(current, code_bits);
        current = usize::from(*pixel);
        let limit = if way == Way::WhenFull { MAX_CODES - 1 } else { MAX_CODES };
        if table.next < limit {
            let before = out.last;
            table.add(before, *pixel);
            if table.next > 1 << code_bits && code_bits < 12 {
                code_bits += 1;
            }
        } else if way != Way::Never {
            out.put(clear, code_bits);
            table = Table::new(clear);
            code_bits = u32::from(width) + 1;
        }
    }
    out.put(current, code_bits);
    // The decoder has learnt one more code by now and may read the end with one more bit.
    if table.next == 1 << code_bits && code_bits < 12 {
        code_bits += 1;
    }
    out.put(clear + 1, code_bits);
    out.finish()
}

/// Codes by the code before and the next pixel: open addressing, since this is the inner loop.
struct Table {
    next: usize,
    slots: Vec<(u32, u16)>,
}

impl Table {
    const SLOTS: usize = 1 << 14;
    const FREE: u32 = u32::MAX;

    fn new(clear: usize) -> Self {
        Self { next: clear + 2, slots: vec![(Self::FREE, 0); Self::SLOTS] }
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
        let key = (before as u32) << 8 | u32::from(pixel);
        let slot = self.slot(key);
        self.slots[slot] = (key, self.next as u16);
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
    last: usize,
}

impl BitWriter {
    fn put(&mut self, code: usize, count: u32) {
        self.last = code;
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

    proptest! {
        #[test]
        fn what_is_packed_can_be_unpacked_in_every_way(
            seed: u64, length in 0usize..60_000, width in 2u8..=8, way in 0usize..3, calm in 1u64..9,
        ) {
            let mut state = seed;
            let pixels: Vec<u8> = (0..length).map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (((state >> 33) % calm) % (1 << width)) as u8
            }).collect();
            let data = pack(&pixels, width, Way::ALL[way]);
            prop_assert_eq!(unpack(&data, width), Some(pixels));
        }

        #[test]
        fn junk_never_panics(junk: Vec<u8>) {
            let _ = recode(&junk);
            let _ = restore(&junk, Form::Plain);
            let _ = restore(&junk, Form::Squeezed);
            let _ = unpack(&junk, 8);
        }
    }
}
