//! The head of an archived answer: status line and header lines as they were received.

use nenrin_extract::media_type;
use nenrin_urls::CanonicalUrl;

/// The most header lines that are read, far more than servers send.
const MAX_LINES: usize = 256;

/// Header lines of an archived answer, in their order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Head<'a> {
    lines: Vec<(&'a [u8], &'a [u8])>,
}

impl<'a> Head<'a> {
    /// Reads a head; lines that are not headers are left out.
    pub(crate) fn parse(raw: &'a [u8]) -> Self {
        let lines = raw
            .split(|&b| b == b'\n')
            .skip(1)
            .filter_map(|line| {
                let colon = memchr::memchr(b':', line)?;
                Some((line[..colon].trim_ascii(), line[colon + 1..].trim_ascii()))
            })
            .filter(|(name, _)| !name.is_empty())
            .take(MAX_LINES)
            .collect();
        Self { lines }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        self.lines.iter().copied()
    }

    /// The first value of a header.
    pub(crate) fn get(&self, name: &str) -> Option<&'a [u8]> {
        self.iter().find(|(n, _)| n.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
    }

    pub(crate) fn get_str(&self, name: &str) -> Option<&'a str> {
        self.get(name).and_then(|value| std::str::from_utf8(value).ok())
    }

    /// The content type that counts: that which a browser would take of all that are named.
    pub(crate) fn content_type(&self) -> Option<String> {
        let named = self.iter().filter(|(name, _)| name.eq_ignore_ascii_case(b"content-type"));
        let values: Vec<_> = named.map(|(_, value)| String::from_utf8_lossy(value)).collect();
        media_type(&values.join(",")).map(str::to_owned)
    }

    /// The target of a redirect, if it is a web page. Servers send raw UTF-8 here, too.
    pub(crate) fn location(&self, url: &CanonicalUrl) -> Option<CanonicalUrl> {
        url.join(&String::from_utf8_lossy(self.get("location")?)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_whatever_their_ends_and_case() {
        let head =
            Head::parse(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\nX-A:  b \r\njunk\r\n\r\n");
        assert_eq!(head.get_str("content-type"), Some("text/html"));
        assert_eq!(head.get("x-a"), Some(&b"b"[..]));
        assert_eq!(head.iter().count(), 2);
    }

    #[test]
    fn a_location_is_resolved_against_its_page() {
        let url = CanonicalUrl::parse("http://e.com/a/b").unwrap();
        let to = |value: &str| {
            let raw = format!("HTTP/1.1 302 X\r\nLocation: {value}\r\n\r\n");
            Head::parse(raw.as_bytes()).location(&url).map(|u| u.to_string())
        };
        assert_eq!(to("c").as_deref(), Some("http://e.com/a/c"));
        assert_eq!(to("//f.org/").as_deref(), Some("http://f.org/"));
        assert_eq!(to("日本").as_deref(), Some("http://e.com/a/%E6%97%A5%E6%9C%AC"));
        assert_eq!(to("javascript:alert(1)"), None);
    }
}
