//! The decoded bytes of a file (plain, gzip members or zstd frames), and where each member begins.

use std::{
    io::{self, Read, Seek, SeekFrom},
    ops::Range,
};

use flate2::{Decompress, FlushDecompress, Status};
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use crate::error::{WarcError, damaged, not_readable};

const INPUT_BYTES: usize = 3 << 20;
/// How much is decoded at a time; also the longest content of a gzip member that is decoded in one
/// step.
const OUTPUT_BYTES: usize = 1 << 20;
/// The least that is read at a time, so that a member longer than what is wanted is not read byte
/// by byte.
const READ_MIN_BYTES: usize = 256 << 10;
/// Undecoded bytes in memory when a gzip member begins: a shorter member is decoded in one step.
const AT_ONCE_BYTES: usize = 512 << 10;
/// The longest dictionary at the start of a zstd file; larger ones are hostile.
const MAX_DICTIONARY_BYTES: usize = 16 << 20;
/// The largest window of a zstd frame: 128 MiB, the most that zstd's own tool accepts by default.
const MAX_WINDOW_LOG: u32 = 27;

/// The longest end of a record, after its block.
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

/// A gzip member being decoded. Head and trailer are read here, which is quicker than making a
/// decoder for each of a million members.
struct Gzip {
    /// For members that are completely in memory, which are most: it takes two thirds of the time.
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

    /// The length of a member's head; `None` if it is incomplete or not a head.
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

    /// Decodes a complete member after its head, provided that the next one begins where this one
    /// seems to end. Returns the length of its deflated bytes and of the decoded ones, which fill
    /// the output. `None` if the member is not completely in memory, too long, or damaged in any
    /// way: decoding step by step then finds out which.
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

/// Makes a buffer at least this long, whatever it contains.
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
    /// Offset of `input[input_start]` in the file.
    position: u64,
    coding: Coding,
    /// The current member has not ended.
    is_inside: bool,
    member_offset: u64,
    first_offset: u64,
    output: Vec<u8>,
    output_start: usize,
    output_end: usize,
    /// Where in `input` the deflated bytes of a member decoded in one step are, and how many bytes
    /// they decode to.
    deflated: Option<(Range<usize>, usize)>,
    /// Nothing after this offset is needed.
    read_to: u64,
}

impl<R: Read + Seek> Members<R> {
    /// Reads the first bytes to see how the file is coded.
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

    /// The skippable frame with the dictionary, which may itself be compressed.
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

    /// The undecoded bytes in memory.
    fn rest(&self) -> &[u8] {
        &self.input[self.input_start..self.input_end]
    }

    fn consume(&mut self, count: usize) {
        self.input_start += count;
        self.position += count as u64;
    }

    /// Reads until this many undecoded bytes are in memory, or the file ends.
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

    /// Members that begin at or after this offset will not be needed.
    pub(crate) fn read_up_to(&mut self, before: u64) {
        self.read_to = before.saturating_add(AT_ONCE_BYTES as u64);
    }

    /// How far into the file reading has come.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// The offset from which the next decoded byte can be reached, and whether it is the first of
    /// its member.
    pub(crate) fn next_offset(&self) -> (u64, bool) {
        match self.coding {
            Coding::Plain => (self.position, true),
            _ if self.output_start == self.output_end && !self.is_inside => (self.position, true),
            _ => (self.member_offset, false),
        }
    }

    /// Decoded bytes; empty at the end of the file. Members follow each other without a gap.
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

    /// Skips decoded bytes that `fill` returned.
    pub(crate) fn take(&mut self, count: usize) {
        match self.coding {
            Coding::Plain => self.consume(count),
            _ => self.output_start += count,
        }
    }

    /// Decoded bytes of the member taken since it was last decoded from.
    pub(crate) fn passed_bytes(&self) -> usize {
        self.output_start
    }

    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.coding, Coding::Plain)
    }

    pub(crate) fn is_gzip(&self) -> bool {
        matches!(self.coding, Coding::Gzip(_))
    }

    /// Where the current or last member begins.
    pub(crate) fn member_offset(&self) -> u64 {
        self.member_offset
    }

    /// Where the first record is: after a dictionary, if there is one.
    pub(crate) fn first_offset(&self) -> u64 {
        self.first_offset
    }

    /// Ends the member if only its end follows; returns where the next one begins.
    pub(crate) fn end_member(&mut self) -> Result<Option<u64>, WarcError> {
        if matches!(self.coding, Coding::Plain) {
            return Ok(Some(self.position));
        }
        while self.output_start == self.output_end && self.is_inside {
            self.decode()?;
        }
        Ok((self.output_start == self.output_end).then_some(self.position))
    }

    /// Whether no byte of the member is left, so that another one follows.
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
                    // Other skippable frames have no meaning here.
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

    /// Decodes a gzip member in one step if it is completely in memory and not too long.
    fn decode_at_once(&mut self) -> bool {
        let Coding::Gzip(gzip) = &mut self.coding else { return false };
        let rest = &self.input[self.input_start..self.input_end];
        // Less is in memory only at the end of the file; a head may have been read already.
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

    /// The deflated bytes of the member begun last, and how many bytes they decode to, if it was
    /// decoded in one step.
    pub(crate) fn deflated(&self) -> Option<(&[u8], usize)> {
        self.deflated.clone().map(|(range, length)| (&self.input[range], length))
    }

    /// Gives away the buffer with the next `length` bytes, and their range in it, if they are
    /// nearly all that is left of a member decoded in one step. Another buffer replaces it.
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
            return Err(damaged(offset, "its compressed bytes cannot be decoded"));
        }
        self.consume(consumed);
        (self.output_start, self.output_end) = (0, produced);
        self.is_inside = !has_ended;
        if has_ended { self.check_trailer() } else { Ok(()) }
    }

    /// A gzip member ends with the checksum and the length of its content.
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

    /// Continues at another offset of the file, where a member or a plain record begins.
    pub(crate) fn seek(&mut self, position: u64) -> Result<(), WarcError> {
        let input_offset = self.position - self.input_start as u64;
        match position.checked_sub(input_offset) {
            // It is in memory already.
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

    /// Searches from one offset up to another for the beginning of a record: a member or, in a
    /// plain file, one of the words. `is_record` recognises the first bytes. Stops there when it
    /// returns true.
    ///
    /// Whatever the file contains, its bytes are read once.
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

    /// The first bytes of what may be a member, without skipping it.
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

/// Position of the first of some words; all of them begin with the same byte.
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
