//! HTTP messages inside records.

use std::borrow::Cow;

/// The most fields of a head that are read.
const MAX_FIELDS: usize = 1000;
/// Put before the name of a header that no longer describes the stored body.
const ORIGINALLY: &[u8] = b"X-Orig-";
const TRANSFER_ENCODING: &[u8] = b"Transfer-Encoding";

/// A response from a record, with its body as the archive stores it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpResponse<'a> {
    /// The status code.
    pub status: u16,
    /// Status line and header lines as received, with the empty line that ends them.
    pub head: Cow<'a, [u8]>,
    /// The body without its transfer coding and with its content coding.
    pub body: Cow<'a, [u8]>,
}

impl<'a> HttpResponse<'a> {
    /// Takes a record's block apart. `None` if it does not begin with a status line.
    pub fn parse(block: &'a [u8]) -> Option<Self> {
        let status = status(block)?;
        let (head, body) = split_message(block);
        let is_chunked = header(head, b"transfer-encoding")
            .is_some_and(|value| value.to_ascii_lowercase().ends_with(b"chunked"));
        // Many collectors write the body without its chunks but leave the header unchanged.
        let body = match is_chunked.then(|| without_chunks(body)).flatten() {
            Some(body) => Cow::Owned(body),
            None => Cow::Borrowed(body),
        };
        Some(Self { status, head: received_head(head, body.len()), body })
    }

    /// The first value of a header.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        header(&self.head, name.as_bytes())
    }
}

/// The longest method name that is recognised.
const MAX_METHOD_BYTES: usize = 20;

/// The method of a request head; `?` if there is none.
pub fn request_method(head: &[u8]) -> &str {
    let is_letter = |byte: &&u8| byte.is_ascii_alphabetic() || **byte == b'-';
    let length = head.iter().take(MAX_METHOD_BYTES + 1).take_while(is_letter).count();
    let is_word = (1..=MAX_METHOD_BYTES).contains(&length) && head.get(length) == Some(&b' ');
    let word = std::str::from_utf8(&head[..length]).ok();
    word.filter(|_| is_word).unwrap_or("?")
}

/// The status code of a response's first line.
pub fn status(block: &[u8]) -> Option<u16> {
    let line = block.split(|byte| *byte == b'\n').next()?;
    let is_http = line.len() >= 5 && line[..5].eq_ignore_ascii_case(b"HTTP/");
    let code = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty()).nth(1)?;
    let code = code.trim_ascii();
    let is_code = is_http && code.len() == 3 && code.iter().all(u8::is_ascii_digit);
    is_code.then(|| code.iter().fold(0, |number, digit| number * 10 + u16::from(digit - b'0')))
}

/// Head and body; the head includes the empty line that ends it. Without one, everything is head.
pub fn split_message(block: &[u8]) -> (&[u8], &[u8]) {
    let mut at = 0;
    while let Some(end) = memchr::memchr(b'\n', &block[at..]) {
        let line = &block[at..at + end];
        at += end + 1;
        // Some collectors wrote `\r\r\n`.
        if line.iter().all(|byte| *byte == b'\r') {
            return block.split_at(at);
        }
    }
    (block, b"")
}

/// The first value of a header; its name in lower case.
pub(crate) fn header<'a>(head: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    lines(head).find_map(|line| {
        let colon = memchr::memchr(b':', line)?;
        line[..colon]
            .trim_ascii()
            .eq_ignore_ascii_case(name)
            .then(|| line[colon + 1..].trim_ascii())
    })
}

/// Header lines without the first line.
fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    head.split_inclusive(|byte| *byte == b'\n').skip(1).take(MAX_FIELDS)
}

/// The head as it is written beside a body without chunks: Transfer-Encoding is renamed and, if
/// there is no Content-Length, one is written instead.
pub fn archived_head(head: &[u8], body_bytes: usize) -> Cow<'_, [u8]> {
    if header(head, b"transfer-encoding").is_none() {
        return Cow::Borrowed(head);
    }
    let mut needs_length = header(head, b"content-length").is_none();
    let mut written = Vec::with_capacity(head.len() + 48);
    for line in head.split_inclusive(|byte| *byte == b'\n') {
        if !is_named(line, TRANSFER_ENCODING) {
            written.extend_from_slice(line);
            continue;
        }
        written.extend_from_slice(ORIGINALLY);
        written.extend_from_slice(line);
        if std::mem::take(&mut needs_length) {
            let end = if line.ends_with(b"\r\n") { "\r\n" } else { "\n" };
            written.extend_from_slice(format!("Content-Length: {body_bytes}{end}").as_bytes());
        }
    }
    Cow::Owned(written)
}

/// The head as it was received: undoes what [`archived_head`] did.
pub fn received_head(head: &[u8], body_bytes: usize) -> Cow<'_, [u8]> {
    let renamed = [ORIGINALLY, TRANSFER_ENCODING].concat();
    if header(head, &renamed.to_ascii_lowercase()).is_none()
        || header(head, b"transfer-encoding").is_some()
    {
        return Cow::Borrowed(head);
    }
    let length = format!("Content-Length: {body_bytes}");
    let mut received = Vec::with_capacity(head.len());
    let mut is_after = false;
    for line in head.split_inclusive(|byte| *byte == b'\n') {
        let is_renamed = is_named(line, &renamed);
        if is_renamed {
            received.extend_from_slice(&line[ORIGINALLY.len()..]);
        } else if !(is_after && line.trim_ascii_end() == length.as_bytes()) {
            received.extend_from_slice(line);
        }
        is_after = is_renamed;
    }
    Cow::Owned(received)
}

fn is_named(line: &[u8], name: &[u8]) -> bool {
    line.len() > name.len()
        && line[..name.len()].eq_ignore_ascii_case(name)
        && line[name.len()..].trim_ascii_start().starts_with(b":")
}

/// The body of a chunked message; `None` if it is not chunked from its first to its last byte.
fn without_chunks(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::with_capacity(rest.len());
    loop {
        let end = memchr::memchr(b'\n', rest)?;
        let line = rest[..end].trim_ascii();
        let digits = line.split(|byte| *byte == b';').next()?.trim_ascii();
        let is_number = (1..=8).contains(&digits.len()) && digits.iter().all(u8::is_ascii_hexdigit);
        if !is_number {
            return None;
        }
        let length = usize::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        rest = &rest[end + 1..];
        if length == 0 {
            // Trailers may follow; they are not stored.
            return Some(body);
        }
        body.extend_from_slice(rest.get(..length)?);
        rest = &rest[length..];
        rest = rest.strip_prefix(b"\r").unwrap_or(rest).strip_prefix(b"\n")?;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn status_lines_of_all_kinds_are_read() {
        for (line, code) in [
            ("HTTP/1.1 200 OK\r\n\r\n", Some(200)),
            ("HTTP/1.0 404\r\n\r\n", Some(404)),
            ("HTTP/2 301 \n\n", Some(301)),
            ("http/1.1  200 OK\r\n", Some(200)),
            ("HTTP/1.1 2000 OK\r\n", None),
            ("HTTP/1.1\r\n", None),
            ("<html>", None),
            ("", None),
        ] {
            assert_eq!(status(line.as_bytes()), code, "{line:?}");
        }
    }

    #[test]
    fn heads_end_with_an_empty_line_however_it_is_written() {
        for end in ["\n", "\r\n", "\r\r\n"] {
            let head = format!("HTTP/1.1 200 OK{end}Content-Type: text/html{end}{end}");
            let block = format!("{head}<p>body\n\n");
            let response = HttpResponse::parse(block.as_bytes()).unwrap();
            assert_eq!(response.head, head.as_bytes());
            assert_eq!(response.body, &b"<p>body\n\n"[..]);
            assert_eq!(
                (response.status, response.header("content-type")),
                (200, Some(&b"text/html"[..]))
            );
        }
    }

    #[test]
    fn the_method_of_a_request_is_a_short_word() {
        let long = "A".repeat(100_000);
        for (head, method) in [
            ("GET / HTTP/1.1\r\n\r\n", "GET"),
            ("M-SEARCH * HTTP/1.1\r\n\r\n", "M-SEARCH"),
            ("get", "?"),
            (" / HTTP/1.1", "?"),
            ("G\u{e9}T /", "?"),
            (&long, "?"),
            ("", "?"),
        ] {
            assert_eq!(request_method(head.as_bytes()), method);
        }
    }

    #[test]
    fn chunks_are_undone_where_there_are_some() {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        for (body, plain) in [
            ("3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n", "abcde"),
            ("3\nabc\n0\n\n", "abc"),
            ("0\r\n\r\n", ""),
            ("already plain", "already plain"),
            ("3\r\nab", "3\r\nab"),
            ("+3\r\nabc\r\n0\r\n\r\n", "+3\r\nabc\r\n0\r\n\r\n"),
        ] {
            let block = format!("{head}{body}");
            let response = HttpResponse::parse(block.as_bytes()).unwrap();
            assert_eq!(response.body, plain.as_bytes(), "{body:?}");
            assert_eq!(response.head, head.as_bytes());
        }
    }

    #[test]
    fn a_chunked_answer_is_written_with_its_length_and_comes_back_exactly() {
        for head in [
            "HTTP/1.1 200 OK\r\nServer: x\r\ntransfer-encoding: chunked\r\nX-A: b\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\nContent-Length: 9\r\n\r\n",
            "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n",
        ] {
            let written = archived_head(head.as_bytes(), 4);
            assert_eq!(header(&written, b"transfer-encoding"), None);
            assert!(header(&written, b"content-length").is_some());
            let block = [&written[..], b"body"].concat();
            let response = HttpResponse::parse(&block).unwrap();
            assert_eq!(response.head, head.as_bytes());
            assert_eq!(response.body, &b"body"[..]);
        }
    }

    proptest! {
        #[test]
        fn any_block_is_taken_apart_without_a_panic(junk: Vec<u8>) {
            let _ = HttpResponse::parse(&junk);
            let block = [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &junk[..]].concat();
            prop_assert!(HttpResponse::parse(&block).is_some());
            let (head, body) = split_message(&junk);
            prop_assert_eq!([head, body].concat(), junk);
        }
    }
}
