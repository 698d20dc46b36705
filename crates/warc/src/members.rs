//! The bytes of a file behind their coding: plain, gzip members or zstd frames, and where each
//! member begins.

use std::{
    io::{self, Read, Seek, SeekFrom},
    ops::Range,
};

use flate2::{Decompress, FlushDecompress, Status};
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use crate::error::{WarcError, damaged, not_readable};

const INPUT_BYTES: usize = 3 << 20;
/// What is decoded between two looks; also the longest content of a gzip member that is decoded at
/// once.
const OUTPUT_BYTES: usize = 1 << 20;
/// What is read at least: a member that goes on behind what is wanted is not read byte by byte.
const READ_MIN_BYTES: usize = 256 << 10;
/// Undecoded bytes at hand when a gzip member begins: a shorter one is decoded at once.
const AT_ONCE_BYTES: usize = 512 << 10;
/// A dictionary in front of a zstd file; larger ones are hostile.
const MAX_DICTIONARY_BYTES: usize = 16 << 20;
/// What a frame may ask for as its window: 128 MiB, the largest that zstd's own tool takes unasked.
const MAX_WINDOW_LOG: u32 = 27;

/// What ends a record, behind its block.
const END_BYTES_MAX: usize = 16;

/// The extra field alone may have 64 KiB; names are short.
const MAX_GZIP_HEAD_BYTES: usize = 72 << 10;

const GZIP_MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const ZSTD_DICTIONARY_MAGIC: [u8; 4] = [0x5d, 0x2a, 0x4d, 0x18];

/// How a file is coded.
enum Coding {
    Plain,
    Gzip(Box<Gzip>),
    Zstd { decoder: Box<Decoder<'static>>, dictionary: Vec<u8> },
}

/// A gzip member that is being decoded: head and trailer are read here, which is quicker than
/// making a decoder for each of a million members.
struct Gzip {
    /// For members that are at hand as a whole, which are most: it takes two thirds of the time.
    at_once: libdeflater::Decompressor,
    inflate: Decompress,
    checksum: crc32fast::Hasher,
    length: u32,
}

impl Gzip {
    fn new() -> Self {
        Self {
            at_once: libdeflater::Decompressor::new(),
            inflate: Decompress::new(false),
            checksum: crc32fast::Hasher::new(),
            length: 0,
        }
    }

    fn reset(&mut self) {
        self.inflate.reset(false);
        self.checksum.reset();
        self.length = 0;
    }

    /// The length of a member's head; none if it is not complete or none.
    fn head_bytes(bytes: &[u8]) -> Option<usize> {
        let flags = *bytes.get(3)?;
        let mut at = 10;
        if flags & 4 != 0 {
            at += 2 + usize::from(u16::from_le_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
        }
        for has_text in [flags & 8 != 0, flags & 16 != 0] {
            if has_text {
                at += memchr::memchr(0, bytes.get(at..)?)? + 1;
            }
        }
        at += if flags & 2 != 0 { 2 } else { 0 };
        (at <= bytes.len() && flags & 0xe0 == 0).then_some(at)
    }

    /// Decodes a member whose head was passed, from where it ends if the next one begins where it
    /// seems to: the length of its deflated bytes, and of what they hold, which fills the output.
    /// None if it is not at hand, too long, or damaged in any way: the slow way says which.
    fn decode_at_once(
        &mut self,
        rest: &[u8],
        is_all: bool,
        output: &mut Vec<u8>,
    ) -> Option<(usize, usize)> {
        let next = memchr::memmem::find(rest, &GZIP_MAGIC);
        let end = next.or(is_all.then_some(rest.len()))?.checked_sub(TRAILER_BYTES)?;
        let announced = rest[end + 4..].first_chunk().map(|length| u32::from_le_bytes(*length))?;
        let length = usize::try_from(announced).ok().filter(|length| *length <= OUTPUT_BYTES)?;
        make_long(output, length);
        let found = self.at_once.deflate_decompress(&rest[..end], &mut output[..length]).ok()?;
        let trailer = trailer(libdeflater::crc32(&output[..found]), found as u32);
        (found == length && rest[end..].starts_with(&trailer)).then_some((end, length))
    }

    fn trailer(&self) -> [u8; TRAILER_BYTES] {
        trailer(self.checksum.clone().finalize(), self.length)
    }
}

/// Makes a buffer so long, or leaves it longer. What it holds does not matter.
fn make_long(buffer: &mut Vec<u8>, length: usize) {
    if buffer.capacity() < length {
        *buffer = vec![0; length];
    } else if buffer.len() < length {
        buffer.resize(length, 0);
    }
}

const TRAILER_BYTES: usize = 8;

fn trailer(checksum: u32, length: u32) -> [u8; TRAILER_BYTES] {
    let mut trailer = [0; TRAILER_BYTES];
    trailer[..4].copy_from_slice(&checksum.to_le_bytes());
    trailer[4..].copy_from_slice(&length.to_le_bytes());
    trailer
}

/// A file as one run of decoded bytes that knows its members.
pub(crate) struct Members<R> {
    file: R,
    input: Vec<u8>,
    input_start: usize,
    input_end: usize,
    /// Where `input[input_start]` lies in the file.
    position: u64,
    coding: Coding,
    /// The member that is being decoded has not ended.
    is_inside: bool,
    member_offset: u64,
    first_offset: u64,
    output: Vec<u8>,
    output_start: usize,
    output_end: usize,
    /// Where in `input` the deflated bytes lie of a member that was decoded at once, and how many
    /// bytes they hold.
    deflated: Option<(Range<usize>, usize)>,
    /// Nothing behind this offset is wanted.
    read_to: u64,
}

impl<R: Read + Seek> Members<R> {
    /// Looks at the first bytes to see how the file is coded.
    pub(crate) fn open(mut file: R) -> Result<Self, WarcError> {
        file.seek(SeekFrom::Start(0))?;
        let mut members = Self {
            file,
            input: vec![0; INPUT_BYTES],
            input_start: 0,
            input_end: 0,
            position: 0,
            coding: Coding::Plain,
            is_inside: false,
            member_offset: 0,
            first_offset: 0,
            output: Vec::new(),
            output_start: 0,
            output_end: 0,
            deflated: None,
            read_to: u64::MAX,
        };
        members.want(8)?;
        let first = members.rest();
        if first.starts_with(&GZIP_MAGIC[..2]) {
            members.coding = Coding::Gzip(Box::new(Gzip::new()));
        } else if first.starts_with(&ZSTD_DICTIONARY_MAGIC) {
            let dictionary = members.read_dictionary()?;
            members.coding = Coding::Zstd { decoder: decoder(&dictionary)?, dictionary };
            members.first_offset = members.position;
        } else if first.starts_with(&ZSTD_MAGIC) {
            members.coding = Coding::Zstd { decoder: decoder(b"")?, dictionary: Vec::new() };
        }
        Ok(members)
    }

    /// The skippable frame that holds the dictionary, itself perhaps compressed.
    fn read_dictionary(&mut self) -> Result<Vec<u8>, WarcError> {
        let first = self.rest();
        let length = u32::from_le_bytes([first[4], first[5], first[6], first[7]]) as usize;
        if length > MAX_DICTIONARY_BYTES {
            return Err(not_readable("its dictionary is longer than 16 MiB"));
        }
        self.consume(8);
        let mut frame = Vec::new();
        while frame.len() < length {
            self.want(1)?;
            let taken = self.rest().len().min(length - frame.len());
            if taken == 0 {
                return Err(not_readable("it ends inside its dictionary"));
            }
            frame.extend_from_slice(&self.rest()[..taken]);
            self.consume(taken);
        }
        if !frame.starts_with(&ZSTD_MAGIC) {
            return Ok(frame);
        }
        zstd::bulk::decompress(&frame, MAX_DICTIONARY_BYTES)
            .map_err(|error| not_readable(format!("its dictionary cannot be read: {error}")))
    }

    /// The undecoded bytes at hand.
    fn rest(&self) -> &[u8] {
        &self.input[self.input_start..self.input_end]
    }

    fn consume(&mut self, count: usize) {
        self.input_start += count;
        self.position += count as u64;
    }

    /// Reads until so many undecoded bytes are at hand, or the file ends.
    fn want(&mut self, count: usize) -> io::Result<()> {
        if self.input_end - self.input_start >= count {
            return Ok(());
        }
        self.deflated = None;
        self.input.copy_within(self.input_start..self.input_end, 0);
        self.input_end -= self.input_start;
        self.input_start = 0;
        let wanted = self.read_to.saturating_sub(self.position);
        let least = count.max(READ_MIN_BYTES);
        let end = usize::try_from(wanted).unwrap_or(usize::MAX).clamp(least, self.input.len());
        while self.input_end < count {
            match self.file.read(&mut self.input[self.input_end..end]) {
                Ok(0) => break,
                Ok(read) => self.input_end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// No member that begins at this offset or behind it is wanted.
    pub(crate) fn read_up_to(&mut self, before: u64) {
        self.read_to = before.saturating_add(AT_ONCE_BYTES as u64);
    }

    /// How far into the file reading has come.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Where the next decoded byte can be reached in the file, and whether it is the first of its
    /// member.
    pub(crate) fn next_offset(&self) -> (u64, bool) {
        match self.coding {
            Coding::Plain => (self.position, true),
            _ if self.output_start == self.output_end && !self.is_inside => (self.position, true),
            _ => (self.member_offset, false),
        }
    }

    /// Decoded bytes; none at the end of the file. Members follow each other without a seam.
    pub(crate) fn fill(&mut self) -> Result<&[u8], WarcError> {
        if matches!(self.coding, Coding::Plain) {
            self.want(1)?;
            return Ok(self.rest());
        }
        while self.output_start == self.output_end {
            if !self.is_inside && !self.begin_member()? {
                break;
            }
            if self.is_inside {
                self.decode()?;
            }
        }
        Ok(&self.output[self.output_start..self.output_end])
    }

    /// Passes over decoded bytes that `fill` gave.
    pub(crate) fn take(&mut self, count: usize) {
        match self.coding {
            Coding::Plain => self.consume(count),
            _ => self.output_start += count,
        }
    }

    /// How many decoded bytes of the member were taken since it was last decoded from.
    pub(crate) fn passed_bytes(&self) -> usize {
        self.output_start
    }

    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.coding, Coding::Plain)
    }

    pub(crate) fn is_gzip(&self) -> bool {
        matches!(self.coding, Coding::Gzip(_))
    }

    /// Where the member begins that is being decoded, or was last.
    pub(crate) fn member_offset(&self) -> u64 {
        self.member_offset
    }

    /// Where the first record lies: behind a dictionary, if there is one.
    pub(crate) fn first_offset(&self) -> u64 {
        self.first_offset
    }

    /// Ends the member if nothing but its end follows, and tells where the next one begins.
    pub(crate) fn end_member(&mut self) -> Result<Option<u64>, WarcError> {
        if matches!(self.coding, Coding::Plain) {
            return Ok(Some(self.position));
        }
        while self.output_start == self.output_end && self.is_inside {
            self.decode()?;
        }
        Ok((self.output_start == self.output_end).then_some(self.position))
    }

    /// Whether no byte of the member is left, so that what follows is another one.
    pub(crate) fn is_between_members(&self) -> bool {
        !matches!(self.coding, Coding::Plain)
            && self.output_start == self.output_end
            && !self.is_inside
    }

    fn begin_member(&mut self) -> Result<bool, WarcError> {
        loop {
            self.want(8)?;
            let offset = self.position;
            self.deflated = None;
            let rest = &self.input[self.input_start..self.input_end];
            if rest.is_empty() {
                return Ok(false);
            }
            match &mut self.coding {
                Coding::Plain => return Ok(true),
                Coding::Gzip(_) => {
                    if !rest.starts_with(&GZIP_MAGIC) {
                        return Err(damaged(offset, "no gzip member begins here"));
                    }
                    self.want(AT_ONCE_BYTES)?;
                    let head = Gzip::head_bytes(self.rest())
                        .ok_or_else(|| damaged(offset, "the head of its gzip member is damaged"))?;
                    self.consume(head);
                    self.member_offset = offset;
                    self.is_inside = !self.decode_at_once();
                    return Ok(true);
                }
                Coding::Zstd { decoder, .. } => {
                    // Other skippable frames mean nothing here.
                    if rest.len() >= 8 && rest[1..4] == [0x2a, 0x4d, 0x18] && rest[0] & 0xf0 == 0x50
                    {
                        let length = u32::from_le_bytes([rest[4], rest[5], rest[6], rest[7]]);
                        self.seek(offset + 8 + u64::from(length))?;
                        continue;
                    }
                    if !rest.starts_with(&ZSTD_MAGIC) {
                        return Err(damaged(offset, "no zstd frame begins here"));
                    }
                    decoder.reinit().map_err(WarcError::Io)?;
                }
            }
            self.member_offset = offset;
            self.is_inside = true;
            return Ok(true);
        }
    }

    /// Decodes a gzip member as a whole if it is at hand and not too long.
    fn decode_at_once(&mut self) -> bool {
        let Coding::Gzip(gzip) = &mut self.coding else { return false };
        let rest = &self.input[self.input_start..self.input_end];
        // Less would be at hand only at the end of the file; a head may have been passed.
        let is_all = rest.len() < AT_ONCE_BYTES - MAX_GZIP_HEAD_BYTES;
        let decoded = gzip.decode_at_once(rest, is_all, &mut self.output);
        let Some((packed_bytes, length)) = decoded else {
            gzip.reset();
            return false;
        };
        self.deflated = Some((self.input_start..self.input_start + packed_bytes, length));
        self.consume(packed_bytes + TRAILER_BYTES);
        (self.output_start, self.output_end) = (0, length);
        true
    }

    /// The deflated bytes of the member that was last begun, and how many bytes they hold, if it
    /// was decoded at once.
    pub(crate) fn deflated(&self) -> Option<(&[u8], usize)> {
        self.deflated.clone().map(|(range, length)| (&self.input[range], length))
    }

    /// Gives away the buffer with the next `length` bytes, and where in it they lie, if they are
    /// the rest of a member that was decoded at once but for a few. Another buffer takes its place.
    pub(crate) fn take_whole(
        &mut self,
        length: usize,
        other: &mut dyn FnMut() -> Vec<u8>,
    ) -> Option<(Vec<u8>, Range<usize>)> {
        let end = self.output_start.checked_add(length)?;
        let left = self.output_end.checked_sub(end)?;
        // A long buffer is not given away for a short block.
        let is_fitting = self.output.capacity() / 4 <= length;
        if self.deflated.is_none() || left > END_BYTES_MAX || !is_fitting {
            return None;
        }
        let mut fresh = other();
        make_long(&mut fresh, left);
        fresh[..left].copy_from_slice(&self.output[end..self.output_end]);
        let begin = self.output_start;
        let given = std::mem::replace(&mut self.output, fresh);
        (self.output_start, self.output_end) = (0, left);
        Some((given, begin..end))
    }

    /// Decodes some of the member.
    fn decode(&mut self) -> Result<(), WarcError> {
        self.want(1)?;
        make_long(&mut self.output, OUTPUT_BYTES);
        let offset = self.member_offset;
        let input = &self.input[self.input_start..self.input_end];
        if input.is_empty() {
            return Err(damaged(offset, "the file ends inside it"));
        }
        let (consumed, produced, has_ended) = match &mut self.coding {
            Coding::Plain => (0, 0, true),
            Coding::Gzip(gzip) => {
                let inflate = &mut gzip.inflate;
                let (before_in, before_out) = (inflate.total_in(), inflate.total_out());
                let status = inflate
                    .decompress(input, &mut self.output, FlushDecompress::None)
                    .map_err(|_| damaged(offset, "its gzip member is damaged"))?;
                let consumed = (inflate.total_in() - before_in) as usize;
                let produced = (inflate.total_out() - before_out) as usize;
                gzip.checksum.update(&self.output[..produced]);
                gzip.length = gzip.length.wrapping_add(produced as u32);
                (consumed, produced, status == Status::StreamEnd)
            }
            Coding::Zstd { decoder, .. } => {
                let mut from = InBuffer::around(input);
                let mut to = OutBuffer::around(&mut self.output[..]);
                let left = decoder.run(&mut from, &mut to).map_err(|error| {
                    damaged(offset, format!("its zstd frame is damaged: {error}"))
                })?;
                (from.pos(), to.pos(), left == 0)
            }
        };
        if consumed == 0 && produced == 0 && !has_ended {
            return Err(damaged(offset, "its compressed bytes lead nowhere"));
        }
        self.consume(consumed);
        (self.output_start, self.output_end) = (0, produced);
        self.is_inside = !has_ended;
        if has_ended { self.check_trailer() } else { Ok(()) }
    }

    /// A gzip member ends with the checksum and the length of what it holds.
    fn check_trailer(&mut self) -> Result<(), WarcError> {
        let Coding::Gzip(gzip) = &self.coding else { return Ok(()) };
        let trailer = gzip.trailer();
        self.want(8)?;
        if !self.rest().starts_with(&trailer) {
            (self.output_start, self.output_end) = (0, 0);
            let reason = match self.rest().len() {
                0..8 => "the file ends inside it",
                _ => "the checksum of its gzip member is wrong",
            };
            return Err(damaged(self.member_offset, reason));
        }
        self.consume(8);
        Ok(())
    }

    /// Goes on at another place of the file, where a member or a plain record begins.
    pub(crate) fn seek(&mut self, position: u64) -> Result<(), WarcError> {
        let input_offset = self.position - self.input_start as u64;
        match position.checked_sub(input_offset) {
            // It is at hand.
            Some(at) if at <= self.input_end as u64 => self.input_start = at as usize,
            _ => {
                self.file.seek(SeekFrom::Start(position))?;
                (self.input_start, self.input_end) = (0, 0);
            }
        }
        self.position = position;
        self.deflated = None;
        (self.output_start, self.output_end) = (0, 0);
        self.is_inside = false;
        if let Coding::Zstd { decoder: old, dictionary } = &mut self.coding {
            *old = decoder(dictionary)?;
        }
        Ok(())
    }

    /// Searches from a place on, and not from `before` on, for where a record begins: a member, or
    /// in a plain file one of the words, of which `is_record` knows the first bytes. Stands there
    /// when it returns true.
    ///
    /// Whatever the file holds, its bytes are read once.
    pub(crate) fn search(
        &mut self,
        from: u64,
        before: u64,
        words: &[&[u8]],
        first_bytes: usize,
        is_record: &dyn Fn(&[u8]) -> bool,
    ) -> Result<bool, WarcError> {
        self.seek(from)?;
        let magics: &[&[u8]] = match self.coding {
            Coding::Plain => words,
            Coding::Gzip(_) => &[&GZIP_MAGIC],
            Coding::Zstd { .. } => &[&ZSTD_MAGIC],
        };
        let longest = magics.iter().map(|magic| magic.len()).max().unwrap_or(1);
        let mut first = vec![0; first_bytes];
        loop {
            self.want(INPUT_BYTES / 2)?;
            let rest = self.rest();
            let Some(at) = find_any(rest, magics) else {
                if rest.len() < longest || self.position >= before {
                    self.consume(rest.len());
                    return Ok(false);
                }
                self.consume(rest.len() - (longest - 1));
                continue;
            };
            self.consume(at);
            if self.position >= before {
                return Ok(false);
            }
            if is_record(self.decode_first(&mut first)) {
                if matches!(self.coding, Coding::Zstd { .. }) {
                    self.seek(self.position)?;
                }
                return Ok(true);
            }
            self.consume(1);
        }
    }

    /// The first bytes of what may be a member, without passing over it.
    fn decode_first<'a>(&'a mut self, first: &'a mut [u8]) -> &'a [u8] {
        let rest = &self.input[self.input_start..self.input_end];
        let length = match &mut self.coding {
            Coding::Plain => return &rest[..rest.len().min(first.len())],
            Coding::Gzip(gzip) => {
                gzip.reset();
                Gzip::head_bytes(rest)
                    .and_then(|head| {
                        let rest = &rest[head..];
                        gzip.inflate.decompress(rest, first, FlushDecompress::None).ok()
                    })
                    .map_or(0, |_| gzip.inflate.total_out() as usize)
            }
            Coding::Zstd { decoder, .. } => {
                let mut to = OutBuffer::around(&mut *first);
                let is_begun = decoder.reinit().is_ok()
                    && decoder.run(&mut InBuffer::around(rest), &mut to).is_ok();
                if is_begun { to.pos() } else { 0 }
            }
        };
        &first[..length]
    }
}

/// Where the first of some words lies; all of them begin with the same byte.
fn find_any(bytes: &[u8], words: &[&[u8]]) -> Option<usize> {
    if let [word] = words {
        return memchr::memmem::find(bytes, word);
    }
    let begin = words.first()?.first()?;
    memchr::memchr_iter(*begin, bytes)
        .find(|at| words.iter().any(|word| bytes[*at..].starts_with(word)))
}

fn decoder(dictionary: &[u8]) -> Result<Box<Decoder<'static>>, WarcError> {
    let mut decoder = Decoder::with_dictionary(dictionary)?;
    decoder.set_parameter(zstd::stream::raw::DParameter::WindowLogMax(MAX_WINDOW_LOG))?;
    Ok(Box::new(decoder))
}
