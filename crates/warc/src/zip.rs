//! Zip files without compression: enough for WACZ, and nothing that a hostile file could misuse.

use std::io::{self, Read, Seek, SeekFrom, Write};

use sha2::{Digest as _, Sha256};

use crate::digest::base16;
use crate::error::{WarcError, not_readable};

const LOCAL_MAGIC: u32 = 0x0403_4b50;
const CENTRAL_MAGIC: u32 = 0x0201_4b50;
const END_MAGIC: u32 = 0x0605_4b50;
const END_64_MAGIC: u32 = 0x0606_4b50;
const LOCATOR_64_MAGIC: u32 = 0x0706_4b50;
/// 1 January 1980, the first day of the format: the entries have no times of their own.
const DOS_DATE: u16 = 0x0021;
/// Names are UTF-8.
const FLAGS: u16 = 0x0800;

const MAX_ENTRIES: u64 = 100_000;
const MAX_DIRECTORY_BYTES: u64 = 64 << 20;
/// The end record and the longest comment after it.
const MAX_END_BYTES: u64 = 22 + 65_535;

/// A file in a zip file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name: a relative path without `..`.
    pub name: String,
    /// Offset of its bytes.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
    /// Whether it is stored without compression; compressed entries are not read here.
    pub is_stored: bool,
}

/// The files of a zip file.
#[derive(Debug)]
pub struct ZipReader<R> {
    file: R,
    entries: Vec<Entry>,
}

impl<R: Read + Seek> ZipReader<R> {
    /// Reads the directory. Refuses names that lead outside, entries that share bytes, and
    /// impossible sizes.
    pub fn open(mut file: R) -> Result<Self, WarcError> {
        let file_bytes = file.seek(SeekFrom::End(0))?;
        let (count, directory_bytes, directory_offset) = find_directory(&mut file, file_bytes)?;
        let is_inside = directory_offset
            .checked_add(directory_bytes)
            .is_some_and(|directory_end| directory_end <= file_bytes);
        if count > MAX_ENTRIES || directory_bytes > MAX_DIRECTORY_BYTES || !is_inside {
            return Err(not_readable("its zip directory is larger than the limit"));
        }
        let directory = read_at(&mut file, directory_offset, directory_bytes)?;
        let mut rest = Bytes(&directory);
        let mut entries = Vec::new();
        for _ in 0..count {
            let (entry, local_offset) = central_entry(&mut rest)?;
            entries.push((entry, local_offset));
        }
        let mut found = Vec::new();
        for (mut entry, local_offset) in entries {
            entry.offset = data_offset(&mut file, local_offset)?;
            if entry.offset.checked_add(entry.length).is_none_or(|end| end > directory_offset) {
                return Err(not_readable(format!("its entry {} is outside the file", entry.name)));
            }
            found.push(entry);
        }
        refuse_overlaps(&found)?;
        Ok(Self { file, entries: found })
    }

    /// Every file, in the order of the directory.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The bytes of a stored file, if it is not longer than `limit`.
    pub fn read(&mut self, entry: &Entry, limit: u64) -> Result<Vec<u8>, WarcError> {
        if !entry.is_stored || entry.length > limit {
            return Err(not_readable(format!("its entry {} cannot be read here", entry.name)));
        }
        read_at(&mut self.file, entry.offset, entry.length)
    }
}

fn read_at<R: Read + Seek>(file: &mut R, offset: u64, length: u64) -> Result<Vec<u8>, WarcError> {
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.by_ref().take(length).read_to_end(&mut bytes)?;
    if (bytes.len() as u64) < length {
        return Err(not_readable("it ends inside its zip directory"));
    }
    Ok(bytes)
}

/// Number of entries, and size and offset of the central directory.
fn find_directory<R: Read + Seek>(
    file: &mut R,
    file_bytes: u64,
) -> Result<(u64, u64, u64), WarcError> {
    let tail_bytes = file_bytes.min(MAX_END_BYTES);
    let tail_offset = file_bytes - tail_bytes;
    let tail = read_at(file, tail_offset, tail_bytes)?;
    let at = memchr::memmem::rfind(&tail, &END_MAGIC.to_le_bytes())
        .ok_or_else(|| not_readable("it is not a zip file"))?;
    let mut end = Bytes(&tail[at + 4..]);
    end.take(6)?;
    let (count, bytes, offset) =
        (u64::from(end.u16()?), u64::from(end.u32()?), u64::from(end.u32()?));
    let is_64 = count == 0xffff || bytes == 0xffff_ffff || offset == 0xffff_ffff;
    let locator_offset = (tail_offset + at as u64).checked_sub(20);
    let Some(locator_offset) = locator_offset.filter(|_| is_64) else {
        return Ok((count, bytes, offset));
    };
    let locator = read_at(file, locator_offset, 20)?;
    let mut locator = Bytes(&locator);
    if locator.u32()? != LOCATOR_64_MAGIC {
        return Ok((count, bytes, offset));
    }
    locator.take(4)?;
    let end_offset = locator.u64()?;
    if end_offset > file_bytes {
        return Err(not_readable("its zip directory is outside the file"));
    }
    let end = read_at(file, end_offset, 56.min(file_bytes - end_offset))?;
    let mut end = Bytes(&end);
    if end.u32()? != END_64_MAGIC {
        return Err(not_readable("the end of its zip directory is damaged"));
    }
    end.take(28)?;
    Ok((end.u64()?, end.u64()?, end.u64()?))
}

/// An entry of the directory, and where its local head is.
fn central_entry(rest: &mut Bytes<'_>) -> Result<(Entry, u64), WarcError> {
    if rest.u32()? != CENTRAL_MAGIC {
        return Err(not_readable("its zip directory is damaged"));
    }
    rest.take(4)?;
    let (flags, method) = (rest.u16()?, rest.u16()?);
    rest.take(8)?;
    let (mut packed, mut length) = (u64::from(rest.u32()?), u64::from(rest.u32()?));
    let (name, extra, comment) = (rest.u16()?, rest.u16()?, rest.u16()?);
    rest.take(8)?;
    let mut local_offset = u64::from(rest.u32()?);
    let name = rest.take(usize::from(name))?;
    let mut extra = Bytes(rest.take(usize::from(extra))?);
    rest.take(usize::from(comment))?;
    while extra.0.len() >= 4 {
        let (kind, size) = (extra.u16()?, extra.u16()?);
        let mut field = Bytes(extra.take(usize::from(size))?);
        if kind == 1 {
            // Only values that did not fit are here, in this order.
            for value in [&mut length, &mut packed, &mut local_offset] {
                if *value == 0xffff_ffff {
                    *value = field.u64()?;
                }
            }
        }
    }
    let name = std::str::from_utf8(name).map_err(|_| not_readable("a name in it is not text"))?;
    if !is_plain_path(name) {
        return Err(not_readable(format!("a name in it leads outside: {name}")));
    }
    let is_stored = method == 0 && packed == length && flags & 1 == 0;
    let length = if is_stored { length } else { packed };
    Ok((Entry { name: name.to_owned(), offset: 0, length, is_stored }, local_offset))
}

/// Whether this is a relative path that stays inside.
fn is_plain_path(name: &str) -> bool {
    let is_part = |part: &str| part != ".." && part != ".";
    !name.is_empty()
        && !name.starts_with('/')
        && !name.contains(['\\', '\0', ':'])
        && name.split('/').all(is_part)
}

fn data_offset<R: Read + Seek>(file: &mut R, local_offset: u64) -> Result<u64, WarcError> {
    let head = read_at(file, local_offset, 30)?;
    let mut head = Bytes(&head);
    if head.u32()? != LOCAL_MAGIC {
        return Err(not_readable("the head of an entry in it is damaged"));
    }
    head.take(22)?;
    let (name, extra) = (head.u16()?, head.u16()?);
    Ok(local_offset + 30 + u64::from(name) + u64::from(extra))
}

/// Entries that share bytes would make a small file look like a large one.
fn refuse_overlaps(entries: &[Entry]) -> Result<(), WarcError> {
    let mut ranges: Vec<(u64, u64)> =
        entries.iter().map(|e| (e.offset, e.offset + e.length)).collect();
    ranges.sort_unstable();
    match ranges.windows(2).any(|pair| pair[1].0 < pair[0].1) {
        true => Err(not_readable("entries in it share bytes")),
        false => Ok(()),
    }
}

/// A part of a file, readable like a file of its own.
#[derive(Debug)]
pub struct Section<R> {
    file: R,
    start: u64,
    length: u64,
    position: u64,
}

impl<R: Read + Seek> Section<R> {
    /// The bytes of a stored entry.
    pub fn new(mut file: R, entry: &Entry) -> io::Result<Self> {
        file.seek(SeekFrom::Start(entry.offset))?;
        Ok(Self { file, start: entry.offset, length: entry.length, position: 0 })
    }
}

impl<R: Read + Seek> Read for Section<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.length - self.position).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(left);
        let read = self.file.read(&mut buffer[..wanted])?;
        self.position += read as u64;
        Ok(read)
    }
}

impl<R: Read + Seek> Seek for Section<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(by) => self.length.checked_add_signed(by),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
        };
        let position =
            position.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?.min(self.length);
        self.file.seek(SeekFrom::Start(self.start + position))?;
        self.position = position;
        Ok(position)
    }
}

/// Reads numbers from bytes, never beyond their end.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], WarcError> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or_else(|| not_readable("its zip directory is cut short"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WarcError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn u16(&mut self) -> Result<u16, WarcError> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, WarcError> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, WarcError> {
        self.array().map(u64::from_le_bytes)
    }
}

/// A file written into the zip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZipPart {
    /// Its name.
    pub name: String,
    /// Its length in bytes.
    pub length: u64,
    /// `sha256:` and 64 hexadecimal digits.
    pub sha256: String,
    checksum: u32,
    offset: u64,
}

/// Writes a zip file with uncompressed entries.
pub struct ZipWriter<W: Write + Seek> {
    out: W,
    position: u64,
    parts: Vec<ZipPart>,
    open: Option<OpenPart>,
}

struct OpenPart {
    name: String,
    offset: u64,
    length: u64,
    checksum: crc32fast::Hasher,
    sha256: Sha256,
}

impl<W: Write + Seek> ZipWriter<W> {
    /// Writes to `out` from its beginning.
    pub fn new(out: W) -> Self {
        Self { out, position: 0, parts: Vec::new(), open: None }
    }

    /// Begins a file; what is written from now on belongs to it.
    pub fn begin(&mut self, name: &str) -> io::Result<()> {
        self.end()?;
        let offset = self.position;
        self.put(&local_head(name, 0, 0))?;
        let (checksum, sha256) = (crc32fast::Hasher::new(), Sha256::new());
        self.open = Some(OpenPart { name: name.to_owned(), offset, length: 0, checksum, sha256 });
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    /// Ends the current file: its head is written again, now that everything is known.
    pub fn end(&mut self) -> io::Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let length = u32::try_from(open.length)
            .map_err(|_| io::Error::other("a file in a package can have at most 4 GiB"))?;
        let checksum = open.checksum.finalize();
        self.out.seek(SeekFrom::Start(open.offset))?;
        self.out.write_all(&local_head(&open.name, checksum, length))?;
        self.out.seek(SeekFrom::Start(self.position))?;
        self.parts.push(ZipPart {
            name: open.name,
            length: open.length,
            sha256: format!("sha256:{}", base16(&open.sha256.finalize())),
            checksum,
            offset: open.offset,
        });
        Ok(())
    }

    /// The files that are complete.
    pub fn parts(&self) -> &[ZipPart] {
        &self.parts
    }

    /// Writes the directory.
    pub fn finish(mut self) -> io::Result<W> {
        self.end()?;
        let start = self.position;
        for part in std::mem::take(&mut self.parts) {
            self.put(&central_entry_of(&part))?;
            self.parts.push(part);
        }
        let (count, bytes) = (self.parts.len() as u64, self.position - start);
        let end = end_records(count, bytes, start, self.position);
        self.put(&end)?;
        self.out.flush()?;
        Ok(self.out)
    }
}

impl<W: Write + Seek> Write for ZipWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(open) = &mut self.open else {
            return Err(io::Error::other("no file of the package is open"));
        };
        open.length += bytes.len() as u64;
        open.checksum.update(bytes);
        open.sha256.update(bytes);
        self.put(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn local_head(name: &str, checksum: u32, length: u32) -> Vec<u8> {
    let mut head = Vec::with_capacity(30 + name.len());
    head.extend_from_slice(&LOCAL_MAGIC.to_le_bytes());
    common_head(&mut head, name, checksum, length);
    head.extend_from_slice(&0_u16.to_le_bytes());
    head.extend_from_slice(name.as_bytes());
    head
}

/// The common part of the local head and the directory: from the version needed to the name's
/// length.
fn common_head(head: &mut Vec<u8>, name: &str, checksum: u32, length: u32) {
    for word in [20, FLAGS, 0, 0, DOS_DATE] {
        head.extend_from_slice(&word.to_le_bytes());
    }
    for word in [checksum, length, length] {
        head.extend_from_slice(&word.to_le_bytes());
    }
    head.extend_from_slice(&(name.len() as u16).to_le_bytes());
}

fn central_entry_of(part: &ZipPart) -> Vec<u8> {
    let mut entry = Vec::new();
    entry.extend_from_slice(&CENTRAL_MAGIC.to_le_bytes());
    entry.extend_from_slice(&45_u16.to_le_bytes());
    common_head(&mut entry, &part.name, part.checksum, part.length as u32);
    let short = u32::try_from(part.offset).ok().filter(|offset| *offset < u32::MAX);
    let extra: u16 = if short.is_some() { 0 } else { 12 };
    entry.extend_from_slice(&extra.to_le_bytes());
    entry.extend_from_slice(&[0; 10]);
    entry.extend_from_slice(&short.unwrap_or(u32::MAX).to_le_bytes());
    entry.extend_from_slice(part.name.as_bytes());
    if short.is_none() {
        entry.extend_from_slice(&1_u16.to_le_bytes());
        entry.extend_from_slice(&8_u16.to_le_bytes());
        entry.extend_from_slice(&part.offset.to_le_bytes());
    }
    entry
}

/// The end of the directory, also in the long form if the short one is too small.
fn end_records(count: u64, bytes: u64, start: u64, position: u64) -> Vec<u8> {
    let mut end = Vec::new();
    let is_long = start + bytes >= u64::from(u32::MAX) || count >= u64::from(u16::MAX);
    if is_long {
        end.extend_from_slice(&END_64_MAGIC.to_le_bytes());
        end.extend_from_slice(&44_u64.to_le_bytes());
        end.extend_from_slice(&[45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        for number in [count, count, bytes, start] {
            end.extend_from_slice(&number.to_le_bytes());
        }
        end.extend_from_slice(&LOCATOR_64_MAGIC.to_le_bytes());
        end.extend_from_slice(&0_u32.to_le_bytes());
        end.extend_from_slice(&position.to_le_bytes());
        end.extend_from_slice(&1_u32.to_le_bytes());
    }
    let short_count = u16::try_from(count).unwrap_or(u16::MAX);
    let short = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    end.extend_from_slice(&END_MAGIC.to_le_bytes());
    end.extend_from_slice(&[0; 4]);
    end.extend_from_slice(&short_count.to_le_bytes());
    end.extend_from_slice(&short_count.to_le_bytes());
    end.extend_from_slice(&short(bytes).to_le_bytes());
    end.extend_from_slice(&short(start).to_le_bytes());
    end.extend_from_slice(&0_u16.to_le_bytes());
    end
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in files {
            writer.begin(name).unwrap();
            writer.write_all(bytes).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    #[test]
    fn files_come_back() {
        let bytes = zip(&[("archive/a.warc.gz", b"abc"), ("empty", b"")]);
        let mut reader = ZipReader::open(Cursor::new(bytes)).unwrap();
        let entries = reader.entries().to_vec();
        assert_eq!(entries.len(), 2);
        assert_eq!(entries[0].name, "archive/a.warc.gz");
        assert_eq!(reader.read(&entries[0], 10).unwrap(), b"abc");
        assert_eq!(reader.read(&entries[1], 10).unwrap(), b"");
        assert!(reader.read(&entries[0], 2).is_err(), "longer than allowed");
    }

    #[test]
    fn names_that_lead_outside_are_refused() {
        for name in ["../a", "/etc/passwd", "a/../../b", "a\\b", "c:/x", "a/./b"] {
            let error = ZipReader::open(Cursor::new(zip(&[(name, b"x")]))).unwrap_err();
            assert!(error.to_string().contains("outside"), "{name}: {error}");
        }
    }

    #[test]
    fn entries_that_share_bytes_are_refused() {
        let mut bytes = zip(&[("a", b"0123456789"), ("b", b"0123456789")]);
        // Both entries of the directory point to the first local head.
        let second = memchr::memmem::rfind(&bytes, &CENTRAL_MAGIC.to_le_bytes()).unwrap();
        bytes[second + 42..second + 46].fill(0);
        let error = ZipReader::open(Cursor::new(bytes)).unwrap_err();
        assert!(error.to_string().contains("share bytes"), "{error}");
    }

    #[test]
    fn sizes_that_the_file_cannot_have_are_refused() {
        let mut bytes = zip(&[("a", b"0123456789")]);
        let central = memchr::memmem::rfind(&bytes, &CENTRAL_MAGIC.to_le_bytes()).unwrap();
        bytes[central + 20..central + 28].fill(0x7f);
        assert!(ZipReader::open(Cursor::new(bytes)).is_err());
    }

    proptest! {
        #[test]
        fn damage_never_panics(at in 0_usize..300, to: u8, cut in 0_usize..300) {
            let mut bytes = zip(&[("archive/a", b"abc"), ("pages/b", b"def")]);
            let at = at % bytes.len();
            bytes[at] = to;
            let _ = ZipReader::open(Cursor::new(&bytes));
            bytes.truncate(cut.min(bytes.len()));
            let _ = ZipReader::open(Cursor::new(&bytes));
        }
    }
}
