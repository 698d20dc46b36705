//! Finds the character encoding of a text.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

use crate::media_type;

/// How far into the body a declaration is looked for. The standard says 1024 bytes; real heads with
/// inlined scripts need more, and browsers allow it.
const DECLARATION_BYTES: usize = 16 * 1024;

/// How much text the guesser reads, from the first byte that is not plain ASCII.
const GUESS_BYTES: usize = 64 * 1024;

/// The charset of a text: byte order mark, then the header's label, then the declaration in the
/// body (`meta`, the XML declaration, `@charset`), then a guess.
///
/// Text of plain ASCII is UTF-8.
pub fn charset(content_type: Option<&str>, body: &[u8]) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(body) {
        return encoding;
    }
    content_type
        .and_then(|value| media_type::parameter(value, "charset"))
        .and_then(by_label)
        .or_else(|| declared(&body[..body.len().min(DECLARATION_BYTES)]))
        .unwrap_or_else(|| guessed(body))
}

fn by_label(label: &str) -> Option<&'static Encoding> {
    Encoding::for_label_no_replacement(label.as_bytes())
}

/// What the first bytes declare. A declaration that can be read as ASCII cannot be UTF-16.
fn declared(head: &[u8]) -> Option<&'static Encoding> {
    let label = css_charset(head).or_else(|| xml_encoding(head)).or_else(|| meta_charset(head))?;
    let encoding = Encoding::for_label_no_replacement(label)?;
    Some(match encoding {
        e if e == UTF_16LE || e == UTF_16BE => UTF_8,
        e if e == encoding_rs::X_USER_DEFINED => WINDOWS_1252,
        e => e,
    })
}

fn css_charset(head: &[u8]) -> Option<&[u8]> {
    let rest = head.strip_prefix(b"@charset \"")?;
    Some(&rest[..memchr::memchr(b'"', rest)?])
}

fn xml_encoding(head: &[u8]) -> Option<&[u8]> {
    let rest = head.trim_ascii_start().strip_prefix(b"<?xml")?;
    let declaration = &rest[..memchr::memchr(b'>', rest)?];
    let at = memchr::memmem::find(declaration, b"encoding")?;
    let value = declaration[at + b"encoding".len()..].trim_ascii_start().strip_prefix(b"=")?;
    let value = value.trim_ascii_start();
    let (&quote, value) = value.split_first().filter(|(q, _)| matches!(q, b'"' | b'\''))?;
    Some(&value[..memchr::memchr(quote, value)?])
}

/// The first `meta` with a known charset, by WHATWG's prescan: comments and the inside of other
/// tags are skipped.
fn meta_charset(head: &[u8]) -> Option<&[u8]> {
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'<', &head[at..]) {
        at += found;
        let rest = &head[at..];
        if rest.starts_with(b"<!--") {
            at += memchr::memmem::find(rest, b"-->")? + 3;
            continue;
        }
        let mut tag = TagBytes::new(rest);
        if tag.name.eq_ignore_ascii_case(b"meta")
            && let Some(label) = label_of_meta(&mut tag)
        {
            return Some(label);
        }
        at += tag.skip_to_end().max(1);
    }
    None
}

fn label_of_meta<'a>(tag: &mut TagBytes<'a>) -> Option<&'a [u8]> {
    let mut is_content_type = false;
    let mut charset = None;
    let mut content = None;
    while let Some((name, value)) = tag.next_attribute() {
        if name.eq_ignore_ascii_case(b"charset") {
            charset = charset.or(Some(value));
        } else if name.eq_ignore_ascii_case(b"http-equiv") {
            is_content_type |= value.trim_ascii().eq_ignore_ascii_case(b"content-type");
        } else if name.eq_ignore_ascii_case(b"content") {
            content = content.or(Some(value));
        }
    }
    let in_content = content.filter(|_| is_content_type).and_then(charset_in_content);
    charset.or(in_content).filter(|label| Encoding::for_label_no_replacement(label).is_some())
}

/// `charset=…` within the content of a `meta http-equiv`, quoted or not.
fn charset_in_content(content: &[u8]) -> Option<&[u8]> {
    let lower = content.to_ascii_lowercase();
    let mut from = 0;
    loop {
        let at = from + memchr::memmem::find(&lower[from..], b"charset")? + b"charset".len();
        from = at;
        let Some(value) = content[at..].trim_ascii_start().strip_prefix(b"=") else { continue };
        let value = value.trim_ascii_start();
        return match value.first()? {
            quote @ (b'"' | b'\'') => Some(&value[1..1 + memchr::memchr(*quote, &value[1..])?]),
            _ => value.split(|b| b.is_ascii_whitespace() || *b == b';').next(),
        };
    }
}

/// The bytes of one tag, read attribute by attribute without knowing the charset.
struct TagBytes<'a> {
    input: &'a [u8],
    at: usize,
    name: &'a [u8],
}

impl<'a> TagBytes<'a> {
    /// `input` starts with `<`.
    fn new(input: &'a [u8]) -> Self {
        let name_bytes = input[1..]
            .iter()
            .take_while(|b| !b.is_ascii_whitespace() && !matches!(b, b'>' | b'/' | b'<'))
            .count();
        Self { input, at: 1 + name_bytes, name: &input[1..=name_bytes] }
    }

    fn next_attribute(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        self.skip(|b| b.is_ascii_whitespace() || b == b'/');
        let name = self.take(|b| !b.is_ascii_whitespace() && !matches!(b, b'=' | b'>' | b'/'));
        if name.is_empty() && self.peek() != Some(b'=') {
            return None;
        }
        self.skip(|b| b.is_ascii_whitespace());
        if self.peek() != Some(b'=') {
            return Some((name, b""));
        }
        self.at += 1;
        self.skip(|b| b.is_ascii_whitespace());
        let value = match self.peek() {
            Some(quote @ (b'"' | b'\'')) => {
                self.at += 1;
                let value = self.take(|b| b != quote);
                self.at += 1;
                value
            }
            _ => self.take(|b| !b.is_ascii_whitespace() && b != b'>'),
        };
        Some((name, value))
    }

    /// Skips the remaining attributes; returns the offset after the tag.
    fn skip_to_end(&mut self) -> usize {
        while self.next_attribute().is_some() {}
        self.at.min(self.input.len())
    }

    fn peek(&self) -> Option<u8> {
        self.input.get(self.at).copied()
    }

    fn skip(&mut self, passes: impl Fn(u8) -> bool) {
        self.take(passes);
    }

    fn take(&mut self, passes: impl Fn(u8) -> bool) -> &'a [u8] {
        let rest = self.input.get(self.at..).unwrap_or_default();
        let count = rest.iter().take_while(|b| passes(**b)).count();
        self.at += count;
        &rest[..count]
    }
}

/// Undeclared text: the guesser reads from the first byte that is not plain ASCII. ISO-2022-JP is
/// ASCII with escape characters.
fn guessed(body: &[u8]) -> &'static Encoding {
    let first_high = Encoding::ascii_valid_up_to(body);
    let first_escape = memchr::memchr(0x1b, &body[..first_high]).unwrap_or(first_high);
    if first_escape == body.len() {
        return UTF_8;
    }
    let start = first_escape.saturating_sub(16);
    let end = body.len().min(start + GUESS_BYTES);
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(&body[start..end], end == body.len());
    detector.guess(None, Utf8Detection::Allow)
}

#[cfg(test)]
mod tests {
    use encoding_rs::{EUC_JP, ISO_2022_JP, SHIFT_JIS, UTF_8};
    use proptest::prelude::*;

    use super::*;

    fn decoded(content_type: Option<&str>, body: &[u8]) -> String {
        charset(content_type, body).decode(body).0.into_owned()
    }

    /// 「日本語の年輪」 in the three legacy encodings of the Japanese web, byte by byte.
    const NENRIN_SJIS: &[u8] = b"\x93\xfa\x96\x7b\x8c\xea\x82\xcc\x94\x4e\x97\xd6";
    const NENRIN_EUC: &[u8] = b"\xc6\xfc\xcb\xdc\xb8\xec\xa4\xce\xc7\xaf\xce\xd8";
    const NENRIN_JIS: &[u8] = b"\x1b$BF|K\\8l$NG/NX\x1b(B";

    #[test]
    fn japanese_bytes_are_read_with_every_way_to_declare_them() {
        let table: [(&str, &[u8], &'static Encoding); 3] = [
            ("Shift_JIS", NENRIN_SJIS, SHIFT_JIS),
            ("EUC-JP", NENRIN_EUC, EUC_JP),
            ("ISO-2022-JP", NENRIN_JIS, ISO_2022_JP),
        ];
        for (label, bytes, encoding) in table {
            let header = format!("text/html; charset={label}");
            assert_eq!(decoded(Some(&header), bytes), "日本語の年輪", "{label} by header");
            for head in [
                format!("<html><head><meta charset={label}>"),
                format!("<!-- <meta charset=utf-8> --><META CharSet = '{label}' />"),
                format!(
                    "<meta http-equiv=Content-Type content=\"text/html; charset={label}\"><title>"
                ),
                format!("<?xml version=\"1.0\" encoding=\"{label}\"?>\n<html>"),
                format!("@charset \"{label}\"; "),
            ] {
                let page = [head.as_bytes(), bytes].concat();
                assert_eq!(charset(None, &page), encoding, "{head}");
                assert!(decoded(None, &page).ends_with("日本語の年輪"), "{head}");
            }
        }
    }

    #[test]
    fn undeclared_japanese_is_guessed() {
        let page = |text: &[u8]| {
            let mut page = b"<html><head><title>x</title></head><body>".to_vec();
            (0..20).for_each(|_| page.extend([b"<p>", text].concat()));
            page
        };
        assert_eq!(charset(Some("text/html"), &page(NENRIN_SJIS)), SHIFT_JIS);
        assert_eq!(charset(Some("text/html"), &page(NENRIN_EUC)), EUC_JP);
        assert_eq!(charset(Some("text/html"), &page(NENRIN_JIS)), ISO_2022_JP);
        assert_eq!(charset(None, &page("日本語の年輪".as_bytes())), UTF_8);
    }

    #[test]
    fn odd_labels_of_the_wild_are_known() {
        for (label, encoding) in [
            ("x-sjis", SHIFT_JIS),
            ("windows-31j", SHIFT_JIS),
            ("x-euc-jp", EUC_JP),
            ("csISO2022JP", ISO_2022_JP),
            ("latin1", WINDOWS_1252),
        ] {
            assert_eq!(charset(Some(&format!("text/html;charset=\"{label}\"")), b"x"), encoding);
        }
    }

    #[test]
    fn the_first_of_mark_header_and_declaration_wins() {
        let bom = b"\xef\xbb\xbf<meta charset=euc-jp>";
        assert_eq!(charset(Some("text/html; charset=shift_jis"), bom), UTF_8);
        assert_eq!(charset(None, b"\xff\xfea\0"), UTF_16LE);
        let page = b"<meta charset=euc-jp>";
        assert_eq!(charset(Some("text/html; charset=shift_jis"), page), SHIFT_JIS);
        assert_eq!(charset(Some("text/html; charset=nonsense"), page), EUC_JP);
        assert_eq!(charset(None, b"<meta charset=nonsense><meta charset=euc-jp>"), EUC_JP);
        assert_eq!(charset(None, b"<meta charset=utf-16>"), UTF_8);
        assert_eq!(charset(None, b"plain"), UTF_8);
        assert_eq!(charset(None, b""), UTF_8);
    }

    #[test]
    fn a_charset_that_only_looks_declared_does_not_count() {
        for page in [
            "<!-- <meta charset=euc-jp> -->",
            "<a title='<meta charset=euc-jp>'>",
            "<meta name=description content='charset=euc-jp'>",
        ] {
            assert_eq!(charset(None, page.as_bytes()), UTF_8, "{page}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_have_a_charset(body in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = decoded(None, &body);
        }

        #[test]
        fn any_markup_has_a_charset(body in "(<meta|charset|=|\"|'|>|<!--|-->| |x|content|http-equiv|/){0,20}") {
            let _ = decoded(None, body.as_bytes());
        }
    }
}
