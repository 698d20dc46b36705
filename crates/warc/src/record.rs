use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, Range};

/// The longest head of a record, in bytes; a longer one is damaged or hostile.
pub(crate) const MAX_HEAD_BYTES: usize = 1 << 20;
/// The most fields of a record's head.
const MAX_FIELDS: usize = 1000;
/// Capacity for the fields of most heads.
const USUAL_FIELDS: usize = 16;

/// The type of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordType {
    /// About the file.
    Warcinfo,
    /// A complete response.
    Response,
    /// The request that led to a response.
    Request,
    /// A visit that found the content of another record.
    Revisit,
    /// A resource without its protocol exchange.
    Resource,
    /// About another record.
    Metadata,
    /// Another form of a record's content.
    Conversion,
    /// A later part of a record that was cut in pieces.
    Continuation,
    /// An unknown type.
    Other,
}

impl RecordType {
    const NAMES: [(&str, Self); 8] = [
        ("warcinfo", Self::Warcinfo),
        ("response", Self::Response),
        ("request", Self::Request),
        ("revisit", Self::Revisit),
        ("resource", Self::Resource),
        ("metadata", Self::Metadata),
        ("conversion", Self::Conversion),
        ("continuation", Self::Continuation),
    ];

    fn of(name: &str) -> Self {
        let found = Self::NAMES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known));
        found.map_or(Self::Other, |(_, kind)| *kind)
    }
}

impl fmt::Display for RecordType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = Self::NAMES.iter().find(|(_, kind)| kind == self);
        f.pad(found.map_or("other", |(name, _)| name))
    }
}

/// The named fields of a record's head, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields {
    /// Names and values, one after the other: a file has millions of them.
    text: String,
    /// Where each name and each value ends.
    ends: Vec<(usize, usize)>,
}

impl Fields {
    /// The first value of a field, with its name in any case.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// All values of a field, in order.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.iter()
            .filter(move |(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// Adds a field at the end.
    pub fn push(&mut self, name: impl AsRef<str>, value: impl AsRef<str>) {
        self.text.push_str(name.as_ref());
        let name_end = self.text.len();
        self.text.push_str(value.as_ref());
        self.ends.push((name_end, self.text.len()));
    }

    /// Every field, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut start = 0;
        self.ends.iter().map(move |&(name_end, end)| {
            let field = (&self.text[start..name_end], &self.text[name_end..end]);
            start = end;
            field
        })
    }

    /// Adds to the value of the last field; false if there is none.
    fn go_on(&mut self, more: &str) -> bool {
        let Some((_, end)) = self.ends.last_mut() else { return false };
        self.text.push(' ');
        self.text.push_str(more);
        *end = self.text.len();
        true
    }

    /// Reads `Name: value` lines, joining folded ones. Fails on other lines, and on too many
    /// fields.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, &'static str> {
        let (text_bytes, count) = (text.len(), USUAL_FIELDS);
        let mut fields =
            Self { text: String::with_capacity(text_bytes), ends: Vec::with_capacity(count) };
        // Nearly all heads are valid text, and checking is quicker than replacing.
        let text = match std::str::from_utf8(text) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(text),
        };
        let ends = memchr::memchr_iter(b'\n', text.as_bytes()).chain([text.len()]);
        let mut start = 0;
        for end in ends {
            // Some collectors wrote `\r\r\n`.
            let line = text[start..end].trim_end_matches('\r');
            start = end + 1;
            if line.is_empty() {
                continue;
            }
            if line.starts_with([' ', '\t']) {
                if !fields.go_on(line.trim_ascii()) {
                    return Err("its head begins with a continued line");
                }
                continue;
            }
            let Some(colon) = memchr::memchr(b':', line.as_bytes()) else {
                return Err("a line of its head is not a field");
            };
            let (name, value) = (&line[..colon], &line[colon + 1..]);
            if fields.ends.len() == MAX_FIELDS {
                return Err("its head has more than 1000 fields");
            }
            fields.push(name.trim_ascii(), value.trim_ascii());
        }
        Ok(fields)
    }
}

/// One record of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Where it begins in the file: at its gzip member or zstd frame if it has one.
    pub offset: u64,
    /// How many bytes of the file it takes.
    pub length: u64,
    /// What it is.
    pub kind: RecordType,
    /// Its fields.
    pub fields: Fields,
    /// Its block, or the front of it.
    pub block: Block,
    /// Only the front of the block is there, because it is longer than the reader's limit.
    pub is_block_left_out: bool,
    /// Its compressed form, if that was requested and it has a gzip member of its own.
    pub packed: Option<Packed>,
}

/// A record's block. Where a gzip member was decoded as a whole, the record's head and end are in
/// memory before and after it.
#[derive(Debug, Clone, Default)]
pub struct Block {
    buffer: Vec<u8>,
    range: Range<usize>,
}

impl Block {
    /// A part of a buffer.
    pub(crate) fn within(buffer: Vec<u8>, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= buffer.len(), "a block is in its buffer");
        Self { buffer, range }
    }

    /// Bytes of memory that it occupies.
    pub fn memory_bytes(&self) -> usize {
        self.buffer.capacity()
    }

    /// Gives up its memory, to be used again.
    pub fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }
}

impl From<Vec<u8>> for Block {
    fn from(buffer: Vec<u8>) -> Self {
        Self { range: 0..buffer.len(), buffer }
    }
}

impl Deref for Block {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer[self.range.clone()]
    }
}

impl PartialEq for Block {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Block {}

/// The compressed form of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Packed {
    /// Hardly smaller than the block: compressing again would gain nothing.
    Dense,
    /// Deflated bytes.
    Deflated(Deflated),
}

impl Packed {
    /// Bytes of memory that it takes.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Self::Dense => 0,
            Self::Deflated(deflated) => deflated.data.capacity(),
        }
    }
}

/// A record as it is compressed in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deflated {
    /// Deflated bytes, without the head and trailer of their gzip member.
    pub data: Vec<u8>,
    /// Decoded bytes before the record's block: its head.
    pub front_bytes: usize,
    /// Decoded bytes after it: empty lines.
    pub behind_bytes: usize,
}

impl Record {
    pub(crate) fn new(offset: u64, fields: Fields) -> Self {
        let kind = RecordType::of(fields.get("WARC-Type").unwrap_or_default());
        Self {
            offset,
            length: 0,
            kind,
            fields,
            block: Block::default(),
            is_block_left_out: false,
            packed: None,
        }
    }

    /// Approximate memory in bytes: its block, its compressed form, its head.
    pub fn memory_bytes(&self) -> usize {
        let packed_bytes = self.packed.as_ref().map_or(0, Packed::memory_bytes);
        self.block.memory_bytes() + packed_bytes + self.fields.text.len()
    }

    /// The record's id.
    pub fn id(&self) -> &str {
        self.fields.get("WARC-Record-ID").unwrap_or_default()
    }

    /// The URI it is about, without the angle brackets that old versions of wget write.
    pub fn target_uri(&self) -> Option<&str> {
        self.fields.get("WARC-Target-URI").map(bare)
    }

    /// Its date in seconds since the epoch.
    pub fn date_s(&self) -> Option<i64> {
        crate::parse_date(self.fields.get("WARC-Date")?)
    }
}

/// A value without the angle brackets around it.
pub(crate) fn bare(value: &str) -> &str {
    value.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')).unwrap_or(value)
}
