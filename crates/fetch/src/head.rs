use std::borrow::Cow;

use http::{HeaderMap, StatusCode};

/// The header fields of a message head in HTTP/1 form, in order: names as written, values without
/// surrounding white space and with folded lines joined. Lines that are not fields are skipped, so
/// any bytes can be given; the first line is the status or request line.
pub fn header_fields(head: &[u8]) -> impl Iterator<Item = (&[u8], Cow<'_, [u8]>)> {
    let mut lines = head.split(|byte| *byte == b'\n').skip(1).peekable();
    std::iter::from_fn(move || {
        loop {
            let line = lines.next()?;
            let Some(colon) = memchr::memchr(b':', line) else { continue };
            let name = line[..colon].trim_ascii_end();
            if name.is_empty() || is_folded(line) {
                continue;
            }
            let mut value = Cow::Borrowed(line[colon + 1..].trim_ascii());
            while let Some(more) = lines.next_if(|next| is_folded(next)) {
                let value = value.to_mut();
                value.push(b' ');
                value.extend_from_slice(more.trim_ascii());
            }
            return Some((name, value));
        }
    })
}

/// A head in which the values of these fields are replaced by `redacted`. What comes after it, a body,
/// stays as it is.
pub fn redacted<'h>(whole: &'h [u8], names: &[&str]) -> Cow<'h, [u8]> {
    let name_of = |line: &[u8]| -> Option<usize> {
        let colon = memchr::memchr(b':', line)?;
        let name = line[..colon].trim_ascii();
        let is_named = |wanted: &&str| name.eq_ignore_ascii_case(wanted.as_bytes());
        names.iter().any(is_named).then_some(colon)
    };
    let mut end = 0;
    for line in whole.split_inclusive(|byte| *byte == b'\n') {
        end += line.len();
        if line.trim_ascii().is_empty() {
            break;
        }
    }
    let (head, after) = whole.split_at(end);
    let lines = || head.split_inclusive(|byte| *byte == b'\n');
    if !lines().any(|line| name_of(line).is_some()) {
        return Cow::Borrowed(whole);
    }
    let mut clean = Vec::with_capacity(whole.len());
    let mut is_secret = false;
    for line in lines() {
        // A folded line belongs to the one before it.
        is_secret = if is_folded(line) { is_secret } else { name_of(line).is_some() };
        match name_of(line).filter(|_| !is_folded(line)) {
            Some(colon) => {
                clean.extend_from_slice(&line[..=colon]);
                clean.extend_from_slice(b" redacted");
                clean.extend_from_slice(if line.ends_with(b"\r\n") { b"\r\n" } else { b"\n" });
            }
            None if is_secret => {}
            None => clean.extend_from_slice(line),
        }
    }
    clean.extend_from_slice(after);
    Cow::Owned(clean)
}

/// A line that continues the one before it (obs-fold).
fn is_folded(line: &[u8]) -> bool {
    matches!(line.first(), Some(b' ' | b'\t')) && !line.trim_ascii().is_empty()
}

/// Header bytes as text: UTF-8, or else Latin-1.
pub(crate) fn as_text(value: Cow<'_, [u8]>) -> Cow<'_, str> {
    match value {
        Cow::Borrowed(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => Cow::Owned(latin1(bytes)),
        },
        Cow::Owned(bytes) => {
            Cow::Owned(String::from_utf8(bytes).unwrap_or_else(|error| latin1(error.as_bytes())))
        }
    }
}

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

/// Writes a response head as HTTP/1.1, as archives store those of HTTP/2.
pub(crate) fn render_response(status: StatusCode, headers: &HeaderMap) -> Vec<u8> {
    let reason = status.canonical_reason().unwrap_or("");
    let mut head = format!("HTTP/1.1 {} {reason}\r\n", status.as_str()).into_bytes();
    render_fields(&mut head, headers);
    head
}

/// Writes a request as HTTP/1.1, with its body if it has one.
pub(crate) fn render_request(
    target: &str,
    host: &str,
    headers: &HeaderMap,
    post: Option<&[u8]>,
) -> Vec<u8> {
    let method = if post.is_some() { "POST" } else { "GET" };
    let mut head = format!("{method} {target} HTTP/1.1\r\nhost: {host}\r\n").into_bytes();
    if let Some(body) = post {
        head.extend_from_slice(format!("content-length: {}\r\n", body.len()).as_bytes());
    }
    render_fields(&mut head, headers);
    head.extend_from_slice(post.unwrap_or_default());
    head
}

fn render_fields(head: &mut Vec<u8>, headers: &HeaderMap) {
    for (name, value) in headers {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
}

/// Cuts the final response head out of the bytes that a server sends, however they are split. It
/// skips empty lines before it, as parsers do, and interim responses (1xx).
#[derive(Debug)]
pub(crate) struct HeadCutter {
    head: Vec<u8>,
    /// Where the current line starts.
    line_start: usize,
    /// All bytes taken before the final head was complete.
    taken: usize,
    limit: usize,
    is_complete: bool,
}

/// Result of giving bytes to the cutter.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The head is not complete yet.
    More,
    /// The head is complete; the last `surplus` bytes belong to what follows.
    Complete {
        /// Bytes after the head.
        surplus: usize,
    },
    /// The head is longer than the limit.
    TooLarge,
}

impl HeadCutter {
    pub(crate) fn new(limit: usize) -> Self {
        Self { head: Vec::new(), line_start: 0, taken: 0, limit, is_complete: false }
    }

    /// Takes the next bytes.
    pub(crate) fn take(&mut self, mut bytes: &[u8]) -> Cut {
        while !self.is_complete && !bytes.is_empty() {
            let end = memchr::memchr(b'\n', bytes).map(|newline| newline + 1);
            let (part, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            self.taken += part.len();
            if self.taken > self.limit {
                return Cut::TooLarge;
            }
            self.head.extend_from_slice(part);
            if end.is_some() {
                self.end_line();
            }
            bytes = rest;
        }
        if self.is_complete { Cut::Complete { surplus: bytes.len() } } else { Cut::More }
    }

    fn end_line(&mut self) {
        let is_empty = matches!(&self.head[self.line_start..], b"\n" | b"\r\n");
        if !is_empty {
            self.line_start = self.head.len();
        } else if self.line_start == 0 || is_interim(&self.head) {
            self.head.clear();
            self.line_start = 0;
        } else {
            self.is_complete = true;
        }
    }

    /// The head, if it is complete.
    pub(crate) fn into_head(self) -> Option<Vec<u8>> {
        self.is_complete.then_some(self.head)
    }
}

/// Whether a head is that of an interim response: 1xx, but not 101, after which no HTTP follows.
fn is_interim(head: &[u8]) -> bool {
    status_digits(head).is_some_and(|digits| digits[0] == b'1' && digits != b"101")
}

/// The status code of a response head, as written.
pub(crate) fn status_digits(head: &[u8]) -> Option<&[u8]> {
    let after_version = head.get(memchr::memchr(b' ', head)? + 1..)?.trim_ascii_start();
    after_version.get(..3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fields(head: &[u8]) -> Vec<(String, String)> {
        header_fields(head)
            .map(|(name, value)| (as_text(name.into()).into(), as_text(value).into()))
            .collect()
    }

    fn cut(parts: &[&[u8]], limit: usize) -> (Cut, Option<Vec<u8>>) {
        let mut cutter = HeadCutter::new(limit);
        let mut last = Cut::More;
        for part in parts {
            last = cutter.take(part);
        }
        (last, cutter.into_head())
    }

    #[test]
    fn fields_are_read_leniently() {
        let head = b"HTTP/1.1 200 OK: fine\r\nA: 1\r\nb :2\nC:\r\n junk \r\nD: x\r\n\ty\r\n  z\r\nno colon\r\n: no name\r\nE: \xFF\r\n\r\n";
        let expected = [("A", "1"), ("b", "2"), ("C", " junk"), ("D", "x y z"), ("E", "ÿ")];
        assert_eq!(fields(head), expected.map(|(n, v)| (n.to_owned(), v.to_owned())));
    }

    #[test]
    fn named_fields_are_redacted_with_their_folded_lines() {
        let head = b"GET / HTTP/1.1\r\nA: 1\r\ncookie: secret\r\n more secret\r\nAuthorization:x\r\nB: 2\r\n\r\n";
        let clean = redacted(head, &["Cookie", "authorization"]);
        assert_eq!(
            &*clean,
            b"GET / HTTP/1.1\r\nA: 1\r\ncookie: redacted\r\nAuthorization: redacted\r\nB: 2\r\n\r\n"
        );
        assert!(matches!(redacted(head, &["set-cookie"]), Cow::Borrowed(_)));
        // A body may say anything.
        let posted = b"POST / HTTP/1.1\r\nCookie: a\r\n\r\ncookie: b";
        let clean = redacted(posted, &["cookie"]);
        assert_eq!(&*clean, b"POST / HTTP/1.1\r\nCookie: redacted\r\n\r\ncookie: b");
    }

    #[test]
    fn a_rendered_head_reads_back() {
        let mut headers = HeaderMap::new();
        headers.append("content-type", "text/html".parse().unwrap());
        headers.append("set-cookie", "a".parse().unwrap());
        headers.append("set-cookie", "b".parse().unwrap());
        let head = render_response(StatusCode::NOT_FOUND, &headers);
        assert_eq!(
            head,
            b"HTTP/1.1 404 Not Found\r\ncontent-type: text/html\r\nset-cookie: a\r\nset-cookie: b\r\n\r\n"
        );
        assert_eq!(fields(&head).len(), 3);
        assert_eq!(
            render_request("/a?b", "e.com", &HeaderMap::new(), None),
            b"GET /a?b HTTP/1.1\r\nhost: e.com\r\n\r\n"
        );
    }

    #[test]
    fn interim_responses_and_leading_empty_lines_are_passed_over() {
        let wire = b"\r\n\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nA: b\r\n\r\nbody\r\n\r\n";
        let (last, head) = cut(&[wire], 1000);
        assert_eq!(last, Cut::Complete { surplus: 8 });
        assert_eq!(head.unwrap(), b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n");
    }

    #[test]
    fn switching_protocols_is_final() {
        let (last, _) = cut(&[b"HTTP/1.1 101 Switching Protocols\r\n\r\nxx"], 1000);
        assert_eq!(last, Cut::Complete { surplus: 2 });
    }

    #[test]
    fn bare_newlines_end_lines_too() {
        let (last, head) = cut(&[b"HTTP/1.0 200 OK\nA: b\n\nbody"], 1000);
        assert_eq!(last, Cut::Complete { surplus: 4 });
        assert_eq!(head.unwrap(), b"HTTP/1.0 200 OK\nA: b\n\n");
    }

    #[test]
    fn a_head_beyond_the_limit_is_noticed_at_once() {
        let wire = b"HTTP/1.1 200 OK\r\n\r\n";
        assert_eq!(cut(&[wire], wire.len()).0, Cut::Complete { surplus: 0 });
        assert_eq!(cut(&[wire], wire.len() - 1).0, Cut::TooLarge);
        let interim = b"HTTP/1.1 100 Continue\r\n\r\n".repeat(100);
        assert_eq!(cut(&[&interim], 1000).0, Cut::TooLarge, "endless interim responses");
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(head in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = fields(&head);
            let mut cutter = HeadCutter::new(200);
            let _ = cutter.take(&head);
        }

        #[test]
        fn any_lines_are_survived(head in "(HTTP/1.[01] [0-9]{2,4}|[ \t:a-c]{0,5}|\r\n|\n){0,20}") {
            let _ = fields(head.as_bytes());
            let (_, found) = cut(&[head.as_bytes()], 1000);
            if let Some(found) = found {
                prop_assert!(found.ends_with(b"\n\n") || found.ends_with(b"\n\r\n"));
            }
        }

        #[test]
        fn how_the_bytes_are_split_does_not_matter(
            interim in 0..3usize,
            pieces in proptest::collection::vec(1..20usize, 1..20),
        ) {
            let head = b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\n";
            let mut wire = b"HTTP/1.1 103 Hints\r\nA: b\r\n\r\n".repeat(interim);
            wire.extend_from_slice(head);
            wire.extend_from_slice(b"the body");
            let mut cutter = HeadCutter::new(1000);
            let mut rest = wire.as_slice();
            let mut after = 0;
            for size in pieces.iter().cycle() {
                if rest.is_empty() { break }
                let (part, others) = rest.split_at((*size).min(rest.len()));
                if let Cut::Complete { surplus } = cutter.take(part) { after += surplus }
                rest = others;
            }
            prop_assert_eq!(after, 8);
            prop_assert_eq!(cutter.into_head().unwrap(), head);
        }
    }
}
