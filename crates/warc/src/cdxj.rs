//! CDXJ: a sorted line for each capture, saying where its record is.

use std::io::{self, Write};

use flate2::{Compression, write::GzEncoder};
use serde::{Deserialize, Serialize};

use crate::error::{WarcError, not_readable};
use crate::surt::key_of_uri;
use crate::{
    DigestAlgorithm, HttpResponse, Record, RecordType, date_digits, split_message, status,
};

/// Lines in one gzip member of a compressed index, as the other tools write them.
const LINES_PER_MEMBER: usize = 300;
/// The longest line that is read.
const MAX_LINE_BYTES: usize = 1 << 20;

/// One capture in an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CdxLine {
    /// The key by which it is looked up.
    pub key: String,
    /// Date as 14 digits.
    pub timestamp: String,
    /// The JSON part.
    pub fields: CdxFields,
}

/// The JSON part of a line; every value is a string, as in pywb.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CdxFields {
    /// The page.
    pub url: String,
    /// Its content type; `warc/revisit` for revisits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime: Option<String>,
    /// HTTP status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The payload's labelled digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Length of the record in its file, in bytes.
    pub length: String,
    /// Offset of the record in its file, in bytes.
    pub offset: String,
    /// Name of the file.
    pub filename: String,
    /// How it was asked for, if that was not a GET.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
}

impl CdxLine {
    /// The line of a record; `None` for a record that is not indexed.
    pub fn of(record: &Record, filename: &str) -> Option<Self> {
        let content_type = record.fields.get("Content-Type").unwrap_or_default();
        let is_listed = match record.kind {
            RecordType::Response | RecordType::Revisit => true,
            RecordType::Resource | RecordType::Metadata => {
                content_type != "application/warc-fields"
            }
            _ => false,
        };
        let uri = record.target_uri().filter(|_| is_listed)?;
        let key = key_of_uri(uri);
        let timestamp = date_digits(record.date_s()?);
        let code = status(&record.block).map(|code| code.to_string());
        let mime = match record.kind {
            RecordType::Revisit => Some("warc/revisit".to_owned()),
            RecordType::Response => HttpResponse::parse(&record.block).and_then(|r| {
                r.header("content-type").map(|v| String::from_utf8_lossy(v).into_owned())
            }),
            _ => Some(content_type.to_owned()),
        };
        // ARC files have no digests; other indexers make this one, over the body as it is there.
        let made = || DigestAlgorithm::Sha1.of(&[split_message(&record.block).1]);
        let digest = match record.fields.get("WARC-Payload-Digest") {
            Some(digest) => Some(digest.to_owned()),
            None if record.kind == RecordType::Response => (!record.is_block_left_out).then(made),
            None => None,
        };
        Some(Self {
            key,
            timestamp,
            fields: CdxFields {
                url: uri.to_owned(),
                mime: mime.map(|mime| essence(&mime)).filter(|mime| !mime.is_empty()),
                status: code,
                digest,
                length: record.length.to_string(),
                offset: record.offset.to_string(),
                filename: filename.to_owned(),
                method: None,
            },
        })
    }

    /// Reads a line.
    pub fn parse(line: &str) -> Result<Self, WarcError> {
        let wrong = || not_readable("a line of the index is not CDXJ");
        if line.len() > MAX_LINE_BYTES {
            return Err(not_readable("a line of the index is longer than 1 MiB"));
        }
        let mut parts = line.trim_end().splitn(3, ' ');
        let (key, timestamp) = (parts.next().ok_or_else(wrong)?, parts.next().ok_or_else(wrong)?);
        let is_date = (4..=17).contains(&timestamp.len())
            && timestamp.bytes().all(|byte| byte.is_ascii_digit());
        if key.is_empty() || !is_date {
            return Err(wrong());
        }
        let fields = serde_json::from_str(parts.next().ok_or_else(wrong)?).map_err(|_| wrong())?;
        Ok(Self { key: key.to_owned(), timestamp: timestamp.to_owned(), fields })
    }
}

impl std::fmt::Display for CdxLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Plain data with text keys always has a JSON form.
        let json = serde_json::to_string(&self.fields).unwrap_or_default();
        write!(f, "{} {} {json}", self.key, self.timestamp)
    }
}

/// The type without its parameters, up to the first space.
pub(crate) fn essence(content_type: &str) -> String {
    content_type.split([';', ' ', '\t']).next().unwrap_or_default().trim().to_owned()
}

/// Writes a sorted index: plain lines, or gzip members of 300 lines with a second index over them.
pub struct CdxWriter<W: Write, I: Write> {
    lines: Lines<W, I>,
    last: String,
    count: u64,
}

enum Lines<W: Write, I: Write> {
    Plain(W),
    Members(Box<IndexedLines<W, I>>),
}

/// A compressed index and the index over its members.
struct IndexedLines<W: Write, I: Write> {
    data: W,
    index: I,
    offset: u64,
    lines: usize,
    first: String,
    member: GzEncoder<Vec<u8>>,
}

impl<W: Write> CdxWriter<W, io::Sink> {
    /// Plain lines: `index.cdx`, `index.cdxj`.
    pub fn plain(out: W) -> Self {
        Self { lines: Lines::Plain(out), last: String::new(), count: 0 }
    }
}

impl<W: Write, I: Write> CdxWriter<W, I> {
    /// `index.cdx.gz`, which is named `data_name` in the other file, `index.idx`.
    pub fn compressed(data: W, mut index: I, data_name: &str) -> io::Result<Self> {
        let about = serde_json::json!({"format": "cdxj-gzip-1.0", "filename": data_name});
        writeln!(index, "!meta 0 {about}")?;
        let members = IndexedLines {
            data,
            index,
            offset: 0,
            lines: 0,
            first: String::new(),
            member: GzEncoder::new(Vec::new(), Compression::new(6)),
        };
        Ok(Self { lines: Lines::Members(Box::new(members)), last: String::new(), count: 0 })
    }

    /// Adds a line. Lines must come in the order of their bytes; a repeated line is written once.
    pub fn write(&mut self, line: &str) -> io::Result<()> {
        if line == self.last {
            return Ok(());
        }
        if line < self.last.as_str() {
            return Err(io::Error::other("the lines of an index must be sorted"));
        }
        match &mut self.lines {
            Lines::Plain(out) => writeln!(out, "{line}")?,
            Lines::Members(members) => members.write(line)?,
        }
        self.last.clear();
        self.last.push_str(line);
        self.count += 1;
        Ok(())
    }

    /// How many lines were written.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Writes what is left.
    pub fn finish(self) -> io::Result<()> {
        match self.lines {
            Lines::Plain(mut out) => out.flush(),
            Lines::Members(mut members) => {
                members.end_member()?;
                members.data.flush()?;
                members.index.flush()
            }
        }
    }
}

impl<W: Write, I: Write> IndexedLines<W, I> {
    fn write(&mut self, line: &str) -> io::Result<()> {
        if self.lines == 0 {
            let mut words = line.splitn(3, ' ');
            let (key, date) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            self.first = format!("{key} {date}");
        }
        writeln!(self.member, "{line}")?;
        self.lines += 1;
        if self.lines == LINES_PER_MEMBER { self.end_member() } else { Ok(()) }
    }

    fn end_member(&mut self) -> io::Result<()> {
        if self.lines == 0 {
            return Ok(());
        }
        let next = GzEncoder::new(Vec::new(), Compression::new(6));
        let member = std::mem::replace(&mut self.member, next).finish()?;
        self.data.write_all(&member)?;
        let member_json = serde_json::json!({"offset": self.offset, "length": member.len()});
        writeln!(self.index, "{} {member_json}", self.first)?;
        self.offset += member.len() as u64;
        self.lines = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use proptest::prelude::*;

    use super::*;

    fn line(number: u32) -> String {
        CdxLine {
            key: format!("com,e)/{number:05}"),
            timestamp: "20240301120000".to_owned(),
            fields: CdxFields {
                url: format!("http://e.com/{number:05}"),
                mime: Some("text/html".to_owned()),
                status: Some("200".to_owned()),
                digest: Some("sha1:A".to_owned()),
                length: "12".to_owned(),
                offset: "0".to_owned(),
                filename: "a.warc.gz".to_owned(),
                method: None,
            },
        }
        .to_string()
    }

    #[test]
    fn lines_come_back() {
        let text = line(7);
        assert_eq!(CdxLine::parse(&text).unwrap().to_string(), text);
        for junk in ["", "a", "a b", "a 20240301120000", "a 2024 {}", "a 2024 []", " 2024 {}"] {
            assert!(CdxLine::parse(junk).is_err(), "{junk}");
        }
    }

    #[test]
    fn a_compressed_index_can_be_entered_at_every_member() {
        let (mut data, mut index) = (Vec::new(), Vec::new());
        let mut writer = CdxWriter::compressed(&mut data, &mut index, "index.cdx.gz").unwrap();
        for number in 0..700 {
            writer.write(&line(number)).unwrap();
            writer.write(&line(number)).unwrap();
        }
        assert!(writer.write(&line(5)).is_err(), "out of order");
        assert_eq!(writer.count(), 700);
        writer.finish().unwrap();
        let index = String::from_utf8(index).unwrap();
        let mut lines = index.lines();
        assert!(lines.next().unwrap().starts_with("!meta 0 {"));
        let members: Vec<&str> = lines.collect();
        assert_eq!(members.len(), 3);
        for (number, member_json) in members.iter().enumerate() {
            let (first, json) = member_json.split_once(" {").unwrap();
            let json: serde_json::Value = serde_json::from_str(&format!("{{{json}")).unwrap();
            let from = json["offset"].as_u64().unwrap() as usize;
            let to = from + json["length"].as_u64().unwrap() as usize;
            let mut text = String::new();
            flate2::read::GzDecoder::new(&data[from..to]).read_to_string(&mut text).unwrap();
            assert_eq!(text.lines().next().unwrap(), line(300 * number as u32));
            assert!(text.starts_with(first));
        }
    }

    proptest! {
        #[test]
        fn junk_is_refused_without_a_panic(junk: String) {
            let _ = CdxLine::parse(&junk);
        }
    }
}
