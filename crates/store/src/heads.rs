//! Request and response heads as templates: what differs from response to response in a known
//! way (dates, the body's length) is taken out, so that the rest repeats exactly.

use crate::http_date;
use crate::wire::{Malformed, Reader, put_signed, put_varint};

/// Marks a hole; the byte behind it says which, twice means itself.
const MARK: u8 = 0x01;
const DATE: u8 = b'D';
const LENGTH: u8 = b'L';
const TARGET: u8 = b'T';
/// The largest head that the format takes, request or response.
pub const MAX_HEAD_BYTES: usize = 1 << 20;

/// Splits heads into templates and dates.
#[derive(Default)]
pub(crate) struct HeadWriter {
    templates: Vec<Vec<u8>>,
    uses: Vec<u8>,
    dates: Vec<u8>,
}

impl HeadWriter {
    pub(crate) fn push(&mut self, head: &[u8], url: &str, time_s: i64, body_bytes: u64) {
        let template = self.template(head, url, time_s, body_bytes);
        // Templates repeat soon or never, so the newest are compared first and not all of them.
        let known = self.templates.iter().rev().take(64).position(|known| *known == template);
        match known {
            Some(back) => put_varint(&mut self.uses, back as u64 + 1),
            None => {
                put_varint(&mut self.uses, 0);
                self.templates.push(template);
            }
        }
    }

    fn template(&mut self, head: &[u8], url: &str, time_s: i64, body_bytes: u64) -> Vec<u8> {
        let length = body_bytes.to_string();
        let mut out = Vec::with_capacity(head.len());
        let mut head = head;
        let target = target(url);
        if let Some(space) = memchr::memchr(b' ', head)
            && let Some(behind) = head[space + 1..].strip_prefix(target)
            && behind.starts_with(b" ")
        {
            escape(&mut out, &head[..=space]);
            out.extend_from_slice(&[MARK, TARGET]);
            head = behind;
        }
        for line in head.split_inclusive(|byte| *byte == b'\n') {
            let Some(start) = memchr::memmem::find(line, b": ").map(|colon| colon + 2) else {
                escape(&mut out, line);
                continue;
            };
            let value = line[start..].trim_ascii_end();
            let end = start + value.len();
            if let Some(date_s) = http_date::parse(value) {
                escape(&mut out, &line[..start]);
                out.extend_from_slice(&[MARK, DATE]);
                put_signed(&mut self.dates, date_s.wrapping_sub(time_s));
            } else if value == length.as_bytes() {
                escape(&mut out, &line[..start]);
                out.extend_from_slice(&[MARK, LENGTH]);
            } else {
                escape(&mut out, &line[..end]);
            }
            escape(&mut out, &line[end..]);
        }
        out
    }

    pub(crate) fn finish(self, out: &mut Vec<u8>) {
        put_varint(out, self.templates.len() as u64);
        for template in &self.templates {
            put_varint(out, template.len() as u64);
        }
        self.templates.iter().for_each(|template| out.extend_from_slice(template));
        for column in [self.uses, self.dates] {
            put_varint(out, column.len() as u64);
            out.extend_from_slice(&column);
        }
    }
}

/// What a request line asks for: the URL behind its host.
fn target(url: &str) -> &[u8] {
    let host = url.find("://").map_or(0, |at| at + 3);
    url[host..].find('/').map_or(b"", |slash| &url.as_bytes()[host + slash..])
}

fn escape(out: &mut Vec<u8>, text: &[u8]) {
    for byte in text {
        out.push(*byte);
        if *byte == MARK {
            out.push(MARK);
        }
    }
}

/// Restores the heads, in the order in which they were pushed.
pub(crate) struct HeadReader<'a> {
    templates: Vec<&'a [u8]>,
    seen: usize,
    uses: Reader<'a>,
    dates: Reader<'a>,
}

impl<'a> HeadReader<'a> {
    pub(crate) fn new(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let count = reader.count(1 << 20)?;
        let limit = 2 * MAX_HEAD_BYTES;
        let lengths =
            (0..count).map(|_| reader.count(limit)).collect::<Result<Vec<_>, Malformed>>()?;
        let templates =
            lengths.into_iter().map(|n| reader.take(n)).collect::<Result<_, Malformed>>()?;
        let uses = Reader::new(reader.bytes(usize::MAX)?);
        let dates = Reader::new(reader.bytes(usize::MAX)?);
        Ok(Self { templates, seen: 0, uses, dates })
    }

    fn template(&mut self) -> Result<&'a [u8], Malformed> {
        let back = self.uses.count(64)?;
        if back == 0 {
            self.seen += 1;
        }
        let at = self.seen.checked_sub(back.max(1)).ok_or(Malformed("no such template"))?;
        self.templates.get(at).copied().ok_or(Malformed("no such template"))
    }

    /// Passes over a head without building it.
    pub(crate) fn skip(&mut self) -> Result<(), Malformed> {
        let mut rest = self.template()?;
        while let Some(at) = memchr::memchr(MARK, rest) {
            if rest.get(at + 1) == Some(&DATE) {
                self.dates.signed()?;
            }
            rest = rest.get(at + 2..).unwrap_or_default();
        }
        Ok(())
    }

    pub(crate) fn next(
        &mut self,
        url: &str,
        time_s: i64,
        body_bytes: u64,
    ) -> Result<Vec<u8>, Malformed> {
        let template = self.template()?;
        let mut head = Vec::with_capacity(template.len() + 32);
        let mut bytes = template.iter();
        while let Some(byte) = bytes.next() {
            if *byte != MARK {
                head.push(*byte);
                continue;
            }
            match bytes.next() {
                Some(&MARK) => head.push(MARK),
                Some(&LENGTH) => head.extend_from_slice(body_bytes.to_string().as_bytes()),
                Some(&TARGET) => head.extend_from_slice(target(url)),
                Some(&DATE) => {
                    let date_s = self.dates.signed()?.wrapping_add(time_s);
                    let text = http_date::write(date_s).ok_or(Malformed("no such date"))?;
                    head.extend_from_slice(&text);
                }
                _ => return Err(Malformed("unknown hole in a head")),
            }
        }
        Ok(head)
    }
}
