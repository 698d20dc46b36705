//! What kind of content a body is: decides what it is stored near to, never whether it is exact.

/// HTML, other text, or anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Cut at tags, compared with earlier versions and with pages of the same site.
    Html = 0,
    /// CSS, JavaScript, JSON, XML, SVG, feeds, plain text; and WOFF fonts, whose versions have
    /// most of their deflated tables in common.
    Text = 1,
    /// Images, archives and all the rest.
    Other = 2,
}

impl Class {
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Self::Html,
            1 => Self::Text,
            2 => Self::Other,
            _ => return None,
        })
    }

    /// Judges by Content-Type, and by a look at the bytes when there is none.
    pub(crate) fn judge(response_head: &[u8], body: &[u8]) -> Self {
        if body.starts_with(b"wOFF") {
            return Self::Text;
        }
        let value = header(response_head, b"content-type").unwrap_or_default();
        let essence = value.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
        let essence = essence.to_ascii_lowercase();
        let ends = |tail: &[u8]| essence.ends_with(tail);
        match &essence[..] {
            // Nobody knew.
            b"" | b"application/octet-stream" => Self::sniff(body),
            b"text/html" | b"application/xhtml+xml" => Self::Html,
            _ if essence.starts_with(b"text/") => Self::Text,
            _ if ends(b"json") || ends(b"xml") || ends(b"javascript") => Self::Text,
            _ => Self::Other,
        }
    }

    fn sniff(body: &[u8]) -> Self {
        let start = &body[..body.len().min(512)];
        let lower = start.trim_ascii_start().to_ascii_lowercase();
        if lower.starts_with(b"<!doctype html") || lower.starts_with(b"<html") {
            Self::Html
        } else if !start.is_empty() && !start.iter().any(|b| *b < 9) {
            Self::Text
        } else {
            Self::Other
        }
    }
}

/// The value of the first header of this (lower-case) name.
pub(crate) fn header<'h>(head: &'h [u8], name: &[u8]) -> Option<&'h [u8]> {
    head.split(|b| *b == b'\n').skip(1).find_map(|line| {
        let colon = memchr::memchr(b':', line)?;
        line[..colon].eq_ignore_ascii_case(name).then(|| line[colon + 1..].trim_ascii())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_type_decides_and_a_look_at_the_bytes_helps_out() {
        let judge = |head: &str, body: &[u8]| Class::judge(head.as_bytes(), body);
        let ok = "HTTP/1.1 200 OK\r\n";
        assert_eq!(
            judge(&format!("{ok}Content-Type: text/html; charset=x\r\n\r\n"), b""),
            Class::Html
        );
        assert_eq!(
            judge(&format!("{ok}Content-Type: application/octet-stream\r\n\r\n"), b"diff a b"),
            Class::Text
        );
        assert_eq!(
            judge(&format!("{ok}content-TYPE:application/rss+xml\r\n\r\n"), b""),
            Class::Text
        );
        assert_eq!(judge(&format!("{ok}Content-Type: image/png\r\n\r\n"), b"<html"), Class::Other);
        assert_eq!(judge(ok, b"\n <!DOCTYPE HTML>"), Class::Html);
        assert_eq!(judge(ok, b"body { }"), Class::Text);
        assert_eq!(judge(ok, b"\x89PNG\x00"), Class::Other);
        assert_eq!(judge(&format!("{ok}Content-Type: font/woff\r\n\r\n"), b"wOFF"), Class::Text);
        assert_eq!(judge("", b""), Class::Other);
    }
}
