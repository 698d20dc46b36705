//! Blocks that do not fit into memory.

use std::io::{self, BufRead, Read, Seek, Write};

use crate::error::{WarcError, damaged};
use crate::http::header;
use crate::reader::RecordReader;
use crate::record::Record;

/// The longest line that says how long a chunk is.
const MAX_CHUNK_LINE: u64 = 4096;

impl<R: Read + Seek> RecordReader<R> {
    /// Reads the record at an offset and hands its block to `take` part by part. The record that is
    /// returned has no block.
    pub fn read_in_parts(
        &mut self,
        offset: u64,
        take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<Record, WarcError> {
        self.seek(offset)?;
        let gone = || damaged(offset, "there is no record here any more");
        let fields = self.read_head(offset)?.ok_or_else(gone)?;
        let length = fields.get("Content-Length").and_then(|length| length.parse().ok());
        let mut left: u64 = length.ok_or_else(|| damaged(offset, "it has no Content-Length"))?;
        while left > 0 {
            let bytes = self.fill()?;
            if bytes.is_empty() {
                return Err(damaged(offset, "the file ends inside its block"));
            }
            let taken = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            take(&bytes[..taken])?;
            self.take(taken);
            left -= taken as u64;
        }
        Ok(Record::new(offset, fields))
    }
}

/// Whether the head of a response says that its body comes in chunks.
pub fn is_chunked(head: &[u8]) -> bool {
    header(head, b"transfer-encoding")
        .is_some_and(|value| value.to_ascii_lowercase().ends_with(b"chunked"))
}

/// Copies a body without its chunks. False if it has none: many collectors write the body without
/// them but leave the header unchanged.
pub fn copy_without_chunks(body: &mut dyn BufRead, out: &mut dyn Write) -> io::Result<bool> {
    loop {
        let mut line = Vec::new();
        (&mut *body).take(MAX_CHUNK_LINE).read_until(b'\n', &mut line)?;
        let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        let is_number =
            (1..=15).contains(&digits.len()) && digits.iter().all(u8::is_ascii_hexdigit);
        let text = std::str::from_utf8(digits).ok().filter(|_| is_number && line.ends_with(b"\n"));
        let Some(length) = text.and_then(|text| u64::from_str_radix(text, 16).ok()) else {
            return Ok(false);
        };
        if length == 0 {
            return Ok(true);
        }
        if io::copy(&mut (&mut *body).take(length), out)? != length {
            return Ok(false);
        }
        let mut end = Vec::new();
        (&mut *body).take(2).read_until(b'\n', &mut end)?;
        if !matches!(&end[..], b"\r\n" | b"\n") {
            return Ok(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_undone_where_there_are_some() {
        for (body, plain) in [
            ("3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n", Some("abcde")),
            ("3\nabc\n0\n\n", Some("abc")),
            ("0\r\n\r\n", Some("")),
            ("already plain", None),
            ("3\r\nab", None),
            ("+3\r\nabc\r\n0\r\n\r\n", None),
            ("ffffffffffffffff\r\n", None),
        ] {
            let mut out = Vec::new();
            let is_plain = copy_without_chunks(&mut body.as_bytes(), &mut out).unwrap();
            assert_eq!(is_plain.then_some(&out[..]), plain.map(str::as_bytes), "{body:?}");
        }
    }
}
