//! Reads the records of a file one after the other, even if the file is damaged.

use std::io::{Read, Seek};

use crate::error::{WarcError, damaged, not_readable};
use crate::members::Members;
use crate::record::{Block, Deflated, MAX_HEAD_BYTES, Packed, Record};
use crate::{Fields, arc};

/// Every WARC record begins with this.
const WARC_WORDS: &[u8] = b"WARC/";
/// The longest first line of a record.
const MAX_LINE_BYTES: usize = 64 << 10;
/// Empty bytes skipped before a record; two line ends are right.
const MAX_EMPTY_BYTES: usize = 1024;
/// How much of a possible member is decoded to see whether a record begins there: a line with the
/// version, or one with a URL.
const FIRST_WARC_BYTES: usize = 16;
const FIRST_ARC_BYTES: usize = 8 << 10;
/// What is kept of a block that is longer than the limit: the head of a response fits in.
const FRONT_BYTES: u64 = 256 << 10;
/// How many buffers are kept for blocks, and their length.
const SPARE_MAX: usize = 24;
const SPARE_MIN_BYTES: usize = 4 << 10;
const SPARE_MAX_BYTES: usize = 256 << 10;
/// A block is dense if compressing it saved less than one part in this many. Pictures save less
/// than half of that.
const DENSE_PART: usize = 32;

/// Which blocks are read, and up to which length.
#[derive(Debug, Clone, Copy)]
pub struct ReadOptions {
    /// A longer block is skipped, and the record says so.
    pub max_block_bytes: u64,
    /// From this length on, a block comes with the compressed form from its gzip member. `None` if
    /// the caller does not need it.
    pub packed_from_bytes: Option<usize>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { max_block_bytes: 64 << 20, packed_from_bytes: None }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Warc,
    Arc,
}

/// Reads the records of a WARC or ARC file: plain, gzip or zstd, with or without a member for each
/// record.
///
/// A record that cannot be read gives an error; the next call continues after it.
pub struct RecordReader<R> {
    members: Members<R>,
    format: Format,
    options: ReadOptions,
    /// Where to search for the next record after damage.
    search_from: Option<u64>,
    line: Vec<u8>,
    /// Buffers for the next blocks.
    spare: Vec<Vec<u8>>,
}

impl<R: Read + Seek> RecordReader<R> {
    /// Opens a file and reads its beginning.
    pub fn open(file: R, options: ReadOptions) -> Result<Self, WarcError> {
        let members = Members::open(file)?;
        let (line, spare) = (Vec::new(), Vec::new());
        let mut reader =
            Self { members, format: Format::Warc, options, search_from: None, line, spare };
        match reader.members.fill() {
            Ok(first) if first.starts_with(arc::FILE_WORDS) => reader.format = Format::Arc,
            Ok(first) if first.trim_ascii_start().starts_with(WARC_WORDS) => {}
            Ok([]) => return Err(not_readable("it is empty")),
            Ok(_) => {
                // Perhaps only its first record is damaged.
                reader.search_from = Some(0);
                if !reader.find_record()? {
                    return Err(not_readable("it is not a WARC or ARC file"));
                }
            }
            Err(WarcError::Io(error)) => return Err(error.into()),
            Err(_) => {}
        }
        if reader.search_from.is_none() {
            reader.members.seek(reader.members.first_offset())?;
        }
        reader.search_from = None;
        Ok(reader)
    }

    /// Returns the buffers of blocks that are no longer needed, to be filled again: allocating
    /// memory takes longer than filling it.
    pub fn reuse(&mut self, buffers: impl IntoIterator<Item = Vec<u8>>) {
        let room = SPARE_MAX.saturating_sub(self.spare.len());
        let is_handy =
            |buffer: &Vec<u8>| (SPARE_MIN_BYTES..=SPARE_MAX_BYTES).contains(&buffer.capacity());
        self.spare.extend(buffers.into_iter().filter(is_handy).take(room));
    }

    /// An empty buffer for this many bytes.
    fn buffer(&mut self, bytes: usize) -> Vec<u8> {
        let is_fitting = |buffer: &mut Vec<u8>| buffer.capacity() / 4 <= bytes;
        let mut buffer = self.spare.pop_if(is_fitting).unwrap_or_default();
        buffer.clear();
        buffer.reserve_exact(bytes);
        buffer
    }

    /// Decoded bytes of the block that follows; none at the end of the file.
    pub(crate) fn fill(&mut self) -> Result<&[u8], WarcError> {
        self.members.fill()
    }

    pub(crate) fn take(&mut self, count: usize) {
        self.members.take(count);
    }

    /// How far into the file reading has come.
    pub fn position(&self) -> u64 {
        self.members.position()
    }

    /// Records that begin at or after this offset will not be needed, so little beyond it is read.
    pub fn read_up_to(&mut self, before: u64) {
        self.members.read_up_to(before);
    }

    /// Goes to a record by its offset.
    pub fn seek(&mut self, offset: u64) -> Result<(), WarcError> {
        self.search_from = None;
        self.members.seek(offset)
    }

    /// The next record; `None` at the end of the file. After [`WarcError::Damaged`] it can be
    /// called again.
    pub fn next_record(&mut self) -> Result<Option<Record>, WarcError> {
        if self.search_from.is_some() && !self.find_record()? {
            return Ok(None);
        }
        if self.members.is_plain() {
            // Where other readers find its first line.
            self.pass_empty_lines(MAX_EMPTY_BYTES)?;
        }
        let (offset, is_first) = self.members.next_offset();
        match self.read_record(offset) {
            Ok(Some(mut record)) => {
                record.offset = if is_first { offset } else { record.offset };
                Ok(Some(record))
            }
            Ok(None) => Ok(None),
            Err(WarcError::Damaged { reason, .. }) => {
                if self.search_from.is_none() {
                    self.search_from = Some(offset + 1);
                }
                Err(damaged(offset, reason))
            }
            Err(other) => Err(other),
        }
    }

    fn read_record(&mut self, offset: u64) -> Result<Option<Record>, WarcError> {
        let begins_member = self.members.is_between_members();
        let Some(fields) = self.read_head(offset)? else { return Ok(None) };
        let length: u64 = fields
            .get("Content-Length")
            .and_then(|length| length.parse().ok())
            .ok_or_else(|| damaged(offset, "it has no Content-Length"))?;
        let mut record = Record::new(offset, fields);
        record.is_block_left_out = length > self.options.max_block_bytes;
        let head_bytes = self.members.passed_bytes();
        self.read_block(&mut record, length)?;
        let block_end = self.members.position();
        self.pass_empty_lines(4)?;
        let end = self.members.end_member()?;
        if begins_member && !record.is_block_left_out {
            record.packed = self.packed(head_bytes, record.block.len());
        }
        // As other indexers count: with the whole member, without the empty lines of a plain file.
        let end = end.filter(|_| !self.members.is_plain()).unwrap_or(block_end);
        record.length = end.saturating_sub(offset);
        Ok(Some(record))
    }

    /// The compressed form of the member just read, if nothing follows this block in it.
    fn packed(&mut self, front_bytes: usize, block_bytes: usize) -> Option<Packed> {
        let is_wanted = self.options.packed_from_bytes.is_some_and(|from| block_bytes >= from);
        if !is_wanted || !self.members.is_between_members() {
            return None;
        }
        let (packed_bytes, length) =
            self.members.deflated().map(|(d, length)| (d.len(), length))?;
        let behind_bytes = length.checked_sub(front_bytes + block_bytes)?;
        if packed_bytes >= length - length / DENSE_PART {
            return Some(Packed::Dense);
        }
        let mut data = self.buffer(packed_bytes);
        data.extend_from_slice(self.members.deflated()?.0);
        Some(Packed::Deflated(Deflated { data, front_bytes, behind_bytes }))
    }

    pub(crate) fn read_head(&mut self, offset: u64) -> Result<Option<Fields>, WarcError> {
        self.pass_empty_lines(MAX_EMPTY_BYTES)?;
        self.line.clear();
        if !self.read_line(MAX_LINE_BYTES, offset)? {
            return Ok(None);
        }
        if self.format == Format::Arc {
            let fields = arc::parse_line(&self.line);
            return fields.map(Some).ok_or_else(|| damaged(offset, "there is no ARC record here"));
        }
        if !self.line.starts_with(WARC_WORDS) {
            return Err(damaged(offset, "there is no record here"));
        }
        self.line.clear();
        loop {
            let before = self.line.len();
            if !self.read_line(MAX_HEAD_BYTES, offset)? {
                return Err(damaged(offset, "the file ends inside its head"));
            }
            if self.line[before..].trim_ascii().is_empty() {
                break;
            }
        }
        Fields::parse(&self.line).map(Some).map_err(|reason| damaged(offset, reason))
    }

    /// Adds a line with its end to `self.line`; false at the end of the file.
    fn read_line(&mut self, limit: usize, offset: u64) -> Result<bool, WarcError> {
        let before = self.line.len();
        loop {
            let bytes = self.members.fill()?;
            if bytes.is_empty() {
                return match self.line.len() - before {
                    0 => Ok(false),
                    _ => Err(damaged(offset, "the file ends inside its head")),
                };
            }
            let end = memchr::memchr(b'\n', bytes).map(|at| at + 1);
            let part = &bytes[..end.unwrap_or(bytes.len())];
            if self.line.len() + part.len() > limit {
                return Err(damaged(offset, "its head is too long"));
            }
            self.line.extend_from_slice(part);
            let count = part.len();
            self.members.take(count);
            if end.is_some() {
                return Ok(true);
            }
        }
    }

    fn read_block(&mut self, record: &mut Record, length: u64) -> Result<(), WarcError> {
        let mut kept = length;
        if record.is_block_left_out {
            kept = FRONT_BYTES.min(self.options.max_block_bytes);
        } else if let Some(block) = self.take_block(length) {
            record.block = block;
            return Ok(());
        }
        // Most lengths are right; a wrong one must not allocate much memory.
        let mut block = self.buffer(kept.min(1 << 20) as usize);
        let mut left = length;
        while left > 0 {
            let is_between = self.members.is_between_members();
            let bytes = self.members.fill()?;
            if bytes.is_empty() {
                return Err(damaged(record.offset, "the file ends inside its block"));
            }
            if is_between && bytes.starts_with(WARC_WORDS) {
                // Its writer was interrupted, and another continued after it.
                let next = self.members.member_offset();
                self.search_from = Some(next);
                return Err(damaged(record.offset, "its block is shorter than its Content-Length"));
            }
            let taken = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let wanted = (kept - block.len() as u64).min(taken as u64) as usize;
            block.extend_from_slice(&bytes[..wanted]);
            self.members.take(taken);
            left -= taken as u64;
        }
        record.block = block.into();
        Ok(())
    }

    /// A block that is already decoded in memory is not copied.
    fn take_block(&mut self, length: u64) -> Option<Block> {
        let length = usize::try_from(length).ok().filter(|length| *length >= SPARE_MIN_BYTES)?;
        let spare = &mut self.spare;
        let (buffer, range) =
            self.members.take_whole(length, &mut || spare.pop().unwrap_or_default())?;
        Some(Block::within(buffer, range))
    }

    fn pass_empty_lines(&mut self, mut limit: usize) -> Result<(), WarcError> {
        while limit > 0 && !self.members.is_between_members() {
            let bytes = self.members.fill()?;
            let is_empty = |byte: &&u8| matches!(byte, b'\r' | b'\n');
            let count = bytes.iter().take(limit).take_while(is_empty).count();
            let is_done = count < bytes.len() || bytes.is_empty();
            self.members.take(count);
            limit -= count;
            if is_done {
                break;
            }
        }
        Ok(())
    }

    /// Whether the file consists of gzip members. A long one can then be read from several offsets
    /// at once.
    pub fn has_gzip_members(&self) -> bool {
        self.members.is_gzip()
    }

    /// Goes to the first record that begins in a part of the file, and returns its offset. What
    /// looks like a record may be inside another's block: only reading from the beginning proves
    /// it.
    pub fn seek_first(&mut self, from: u64, before: u64) -> Result<Option<u64>, WarcError> {
        self.search_from = None;
        let is_found = self.find_record_in(from, before)?;
        Ok(is_found.then(|| self.members.position()))
    }

    /// Where the next record can be reached, after any damage. At the end of the file it is the
    /// file's length, or more.
    pub fn next_offset(&mut self) -> Result<u64, WarcError> {
        match self.find_record()? {
            true => Ok(self.members.next_offset().0),
            false => Ok(u64::MAX),
        }
    }

    /// Goes to the next beginning of a record; false if there is none.
    fn find_record(&mut self) -> Result<bool, WarcError> {
        let Some(from) = self.search_from else { return Ok(true) };
        let is_found = self.find_record_in(from, u64::MAX)?;
        self.search_from = if is_found { None } else { Some(self.members.position()) };
        Ok(is_found)
    }

    fn find_record_in(&mut self, from: u64, before: u64) -> Result<bool, WarcError> {
        let members = &mut self.members;
        match self.format {
            Format::Warc => {
                members.search(from, before, &[WARC_WORDS], FIRST_WARC_BYTES, &begins_warc)
            }
            Format::Arc => {
                let words = &arc::LINE_WORDS;
                let is_found = members.search(from, before, words, FIRST_ARC_BYTES, &begins_arc)?;
                if is_found && self.members.is_plain() {
                    // The search included the end of the line before.
                    self.members.seek(self.members.position() + 1)?;
                }
                Ok(is_found)
            }
        }
    }
}

/// `WARC/1.0` and the end of the line; anything else only mentions it.
fn begins_warc(bytes: &[u8]) -> bool {
    let is_line_end = matches!(bytes.get(8), Some(b'\r' | b'\n'));
    (bytes.starts_with(b"WARC/1.") || bytes.starts_with(b"WARC/0.")) && is_line_end
}

fn begins_arc(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    arc::parse_line(line).is_some()
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use proptest::prelude::*;

    use super::*;
    use crate::{Compressed, RecordType, RecordWriter};

    fn write(compressed: Compressed, blocks: &[&[u8]]) -> (Vec<u8>, Vec<crate::Written>) {
        let mut writer = RecordWriter::new(Vec::new(), compressed).unwrap();
        let mut written = Vec::new();
        for (number, block) in blocks.iter().enumerate() {
            let mut fields = Fields::default();
            fields.push("WARC-Type", "response");
            fields.push("WARC-Target-URI", format!("<http://e.com/{number}>"));
            fields.push("WARC-Date", "2024-03-01T12:00:00Z");
            written.push(writer.write(&fields, &[block]).unwrap());
        }
        (writer.finish().unwrap(), written)
    }

    const OPTIONS: ReadOptions = ReadOptions { max_block_bytes: 1000, packed_from_bytes: Some(0) };

    fn read(bytes: &[u8]) -> (Vec<Record>, Vec<String>) {
        let mut reader = RecordReader::open(Cursor::new(bytes), OPTIONS).unwrap();
        let (mut records, mut damage) = (Vec::new(), Vec::new());
        loop {
            match reader.next_record() {
                Ok(Some(record)) => records.push(record),
                Ok(None) => return (records, damage),
                Err(error) => damage.push(error.to_string()),
            }
            assert!(damage.len() < 100, "the reader does not come forward");
        }
    }

    fn numbers(records: &[Record]) -> String {
        records
            .iter()
            .map(|record| record.target_uri().unwrap().rsplit('/').next().unwrap())
            .collect()
    }

    const BLOCKS: [&[u8]; 4] = [b"first", b"", b"third \r\n\r\n WARC/1.1 inside", b"fourth"];
    const ALL: [Compressed; 3] = [Compressed::Not, Compressed::Gzip, Compressed::Zstd];

    #[test]
    fn a_record_begins_behind_empty_lines_that_do_not_belong_there() {
        let (bytes, written) = write(Compressed::Not, &BLOCKS);
        let (front, rest) = bytes.split_at(written[1].offset as usize);
        let (records, damage) = read(&[front, b"\r\n\n", rest].concat());
        assert_eq!((numbers(&records).as_str(), damage), ("0123", Vec::new()));
        let offsets: Vec<u64> = records.iter().map(|record| record.offset).collect();
        let moved = |number: usize| written[number].offset + 3;
        assert_eq!(offsets, [0, moved(1), moved(2), moved(3)]);
    }

    #[test]
    fn records_come_back_with_their_offsets() {
        for compressed in ALL {
            let (bytes, written) = write(compressed, &BLOCKS);
            let (records, damage) = read(&bytes);
            assert!(damage.is_empty(), "{damage:?}");
            assert_eq!(records.len(), 4);
            for ((record, one), block) in records.iter().zip(&written).zip(BLOCKS) {
                assert_eq!((record.offset, record.length), (one.offset, one.length));
                assert_eq!(*record.block, *block);
                assert_eq!(record.kind, RecordType::Response);
                let mut reader = RecordReader::open(Cursor::new(&bytes), OPTIONS).unwrap();
                reader.seek(one.offset).unwrap();
                assert_eq!(reader.next_record().unwrap().as_ref(), Some(record));
            }
        }
    }

    #[test]
    fn deflated_records_hold_their_blocks() {
        let page = b"<p>the same words again and again</p>".repeat(20);
        let (bytes, _) = write(Compressed::Gzip, &[&page, b"short", &page]);
        for packed_from_bytes in [None, Some(100)] {
            let options = ReadOptions { packed_from_bytes, ..ReadOptions::default() };
            let mut reader = RecordReader::open(Cursor::new(&bytes), options).unwrap();
            for number in 0..3 {
                let record = reader.next_record().unwrap().unwrap();
                let is_wanted = packed_from_bytes.is_some() && number != 1;
                assert_eq!(record.packed.is_some(), is_wanted, "{number}");
                let Some(Packed::Deflated(deflated)) = record.packed else { continue };
                let mut plain = vec![0; deflated.front_bytes + page.len() + deflated.behind_bytes];
                let length = libdeflater::Decompressor::new()
                    .deflate_decompress(&deflated.data, &mut plain)
                    .unwrap();
                assert_eq!(length, plain.len());
                assert_eq!(plain[deflated.front_bytes..][..page.len()], *record.block);
                assert_eq!(&plain[length - deflated.behind_bytes..], b"\r\n\r\n");
            }
        }
    }

    #[test]
    fn buffers_that_come_back_are_filled_anew() {
        let blocks = [vec![b'a'; 9000], vec![b'b'; 5000], vec![b'c'; 70_000]];
        let blocks: Vec<&[u8]> = blocks.iter().map(Vec::as_slice).collect();
        for compressed in ALL {
            let (bytes, _) = write(compressed, &blocks);
            let mut reader =
                RecordReader::open(Cursor::new(&bytes), ReadOptions::default()).unwrap();
            for block in &blocks {
                let record = reader.next_record().unwrap().unwrap();
                assert!(*record.block == **block, "{compressed:?}");
                reader.reuse([
                    record.block.into_buffer(),
                    Vec::new(),
                    vec![1; SPARE_MAX_BYTES + 1],
                ]);
                assert_eq!(reader.spare.len(), 1);
            }
        }
    }

    #[test]
    fn records_that_share_a_member_are_not_deflated_ones() {
        let page = b"<p>the same words again and again</p>".repeat(20);
        let (plain, _) = write(Compressed::Not, &[&page, &page]);
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&plain).unwrap();
        let (records, _) = read(&encoder.finish().unwrap());
        assert_eq!(records.len(), 2);
        assert!(records.iter().all(|record| record.packed.is_none()));
    }

    #[test]
    fn members_of_any_length_are_read_whichever_way_they_are_decoded() {
        let noise = |length: usize| -> Vec<u8> {
            let mut state = 7_u64;
            let mut next = || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state as u8
            };
            (0..length).map(|_| next()).collect()
        };
        // Longer than what is read at a time, longer than what is decoded in one step, and close to
        // both.
        let blocks = [noise(3 << 20), vec![b'a'; 3 << 20], noise(400_000), noise(540_000), vec![]];
        let blocks: Vec<&[u8]> = blocks.iter().map(Vec::as_slice).collect();
        let (bytes, written) = write(Compressed::Gzip, &blocks);
        let options = ReadOptions { packed_from_bytes: Some(100), ..ReadOptions::default() };
        let mut reader = RecordReader::open(Cursor::new(&bytes), options).unwrap();
        for (block, one) in blocks.iter().zip(&written) {
            let record = reader.next_record().unwrap().unwrap();
            assert_eq!((record.offset, record.length), (one.offset, one.length));
            assert!(*record.block == **block);
            match block.len() {
                400_000 => assert_eq!(record.packed, Some(Packed::Dense)),
                540_000 => {}
                _ => assert_eq!(record.packed, None, "too long or empty"),
            }
        }
        assert!(reader.next_record().unwrap().is_none());
    }

    /// Counts how often it is read from.
    struct Counted<'a>(Cursor<&'a [u8]>, &'a std::cell::Cell<usize>);

    impl Read for Counted<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.1.set(self.1.get() + 1);
            self.0.read(buffer)
        }
    }

    impl Seek for Counted<'_> {
        fn seek(&mut self, to: std::io::SeekFrom) -> std::io::Result<u64> {
            self.0.seek(to)
        }
    }

    #[test]
    fn a_record_that_goes_on_behind_what_is_wanted_is_read_in_large_pieces() {
        let mut state = 7_u64;
        let long: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 56) as u8
        })
        .take(5 << 20)
        .collect();
        for compressed in ALL {
            let (bytes, _) = write(compressed, &[b"a", &long, b"c"]);
            let reads = std::cell::Cell::new(0);
            let file = Counted(Cursor::new(&bytes), &reads);
            let mut reader = RecordReader::open(file, ReadOptions::default()).unwrap();
            reader.read_up_to(300);
            for block in [b"a", &long[..], b"c"] {
                assert!(*reader.next_record().unwrap().unwrap().block == *block, "{compressed:?}");
            }
            assert!(reads.get() < 60, "{compressed:?}: {} reads", reads.get());
        }
    }

    #[test]
    fn one_damaged_record_costs_only_itself() {
        for compressed in ALL {
            let (whole, written) = write(compressed, &BLOCKS);
            for (number, one) in written.iter().enumerate() {
                let mut bytes = whole.clone();
                // In a plain file only a damaged head can be noticed.
                let at = if compressed == Compressed::Not { 1 } else { one.length / 2 };
                bytes[(one.offset + at) as usize] ^= 0xff;
                let (records, damage) = read(&bytes);
                let left: String = (0..4).filter(|n| *n != number).map(|n| n.to_string()).collect();
                assert_eq!(numbers(&records), left, "{compressed:?} {number} {damage:?}");
                if number > 0 {
                    assert_eq!(damage.len(), 1, "{compressed:?} {damage:?}");
                }
            }
        }
    }

    #[test]
    fn a_file_that_ends_early_gives_what_is_whole() {
        for compressed in ALL {
            let (whole, written) = write(compressed, &BLOCKS);
            let cut = written[3].offset + written[3].length - 7;
            let (records, damage) = read(&whole[..cut as usize]);
            assert_eq!(numbers(&records), "012", "{compressed:?}");
            assert_eq!(damage.len(), 1);
            // Another process continued after the cut. In a plain file only digests show that.
            if compressed == Compressed::Not {
                continue;
            }
            let joined = [&whole[..cut as usize], &whole].concat();
            let (records, damage) = read(&joined);
            assert_eq!(numbers(&records), "0120123", "{compressed:?} {damage:?}");
        }
    }

    #[test]
    fn gzip_over_all_records_at_once_is_read_too() {
        let (plain, _) = write(Compressed::Not, &BLOCKS);
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&plain).unwrap();
        let (records, damage) = read(&encoder.finish().unwrap());
        assert_eq!((numbers(&records).as_str(), damage.len()), ("0123", 0));
    }

    #[test]
    fn zstd_with_a_dictionary_is_read() {
        let dictionary: Vec<u8> = b"WARC/1.1\r\nWARC-Type: response\r\n".repeat(20);
        let (plain, _) = write(Compressed::Not, &BLOCKS[..1]);
        for packed in [dictionary.clone(), zstd::bulk::compress(&dictionary, 3).unwrap()] {
            let mut bytes = vec![0x5d, 0x2a, 0x4d, 0x18];
            bytes.extend_from_slice(&(packed.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&packed);
            for _ in 0..2 {
                let mut compressor =
                    zstd::bulk::Compressor::with_dictionary(3, &dictionary).unwrap();
                bytes.extend_from_slice(&compressor.compress(&plain).unwrap());
            }
            let (records, damage) = read(&bytes);
            assert_eq!((numbers(&records).as_str(), damage.len()), ("00", 0), "{damage:?}");
        }
    }

    #[test]
    fn arc_files_are_read_plain_and_compressed() {
        let about =
            "1 0 InternetArchive\nURL IP-address Archive-date Content-type Archive-length\n";
        let head = format!("filedesc://x.arc 0.0.0.0 20040101000000 text/plain {}", about.len());
        let description = &format!("{head}\n{about}\n")[..];
        let first =
            "http://e.com/0 10.0.0.1 20040101120000 text/html 24\nHTTP/1.0 200 OK\n\nhello..\n";
        let second = "http://e.com/1 10.0.0.1 20040101120001 text/html 19\nHTTP/1.0 404 No\n\nxx\n";
        let parts = [description, first, second];
        let mut gzipped = Vec::new();
        for part in parts {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(part.as_bytes()).unwrap();
            gzipped.extend(encoder.finish().unwrap());
        }
        for bytes in [parts.concat().into_bytes(), gzipped] {
            let (records, damage) = read(&bytes);
            assert!(damage.is_empty(), "{damage:?}");
            assert_eq!(records[0].kind, RecordType::Warcinfo);
            assert_eq!(numbers(&records[1..]), "01");
            assert_eq!(*records[1].block, *b"HTTP/1.0 200 OK\n\nhello..");
            assert_eq!(records[1].date_s(), Some(1_072_958_400));
        }
    }

    #[test]
    fn of_a_block_above_the_limit_only_the_front_is_kept() {
        let long = vec![b'x'; 5000];
        for compressed in ALL {
            let (bytes, _) = write(compressed, &[b"a", &long, b"c"]);
            let (records, damage) = read(&bytes);
            assert!(damage.is_empty());
            assert!(records[1].is_block_left_out && records[1].block.len() < long.len());
            assert!(!records[1].block.is_empty() && long.starts_with(&records[1].block));
            assert_eq!(*records[2].block, *b"c");
        }
    }

    #[test]
    fn other_files_are_refused() {
        for bytes in [&b""[..], b"<html>", b"PK\x03\x04", b"\x1f\x8b"] {
            let opened = RecordReader::open(Cursor::new(bytes), ReadOptions::default());
            let read = opened.and_then(|mut reader| reader.next_record());
            assert!(read.is_err(), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn damage_anywhere_never_panics_and_never_loops(
            kind in 0_usize..3, at: prop::sample::Index, to: u8, cut: prop::sample::Index,
        ) {
            let (mut bytes, _) = write(ALL[kind], &BLOCKS);
            let at = at.index(bytes.len());
            bytes[at] = to;
            bytes.truncate(cut.index(bytes.len()).max(200));
            let opened = RecordReader::open(Cursor::new(&bytes), ReadOptions::default());
            if let Ok(mut reader) = opened {
                let mut steps = 0;
                while !matches!(reader.next_record(), Ok(None) | Err(WarcError::Io(_))) {
                    steps += 1;
                    prop_assert!(steps < 1000);
                }
            }
        }
    }
}
