use std::borrow::Cow;

use super::MAX_ROBOTS_BYTES;

/// More than this is never part of the first 500 KiB of text.
const MAX_UTF16_BYTES: usize = 2 * MAX_ROBOTS_BYTES + 4;

/// The fields that are understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    UserAgent,
    Allow,
    Disallow,
    CrawlDelay,
    Sitemap,
}

/// A line that was understood.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// Counted from 1.
    pub(super) number: usize,
    pub(super) field: Field,
    pub(super) value: &'a [u8],
}

/// A robots.txt in UTF-16, which some editors write, as UTF-8; others as they are. Without a mark in
/// front, the zero bytes of its first letters tell.
pub(super) fn as_utf8(text: &[u8]) -> Cow<'_, [u8]> {
    let text = &text[..text.len().min(MAX_UTF16_BYTES)];
    let (rest, is_little) = match text {
        [0xff, 0xfe, rest @ ..] => (rest, true),
        [0xfe, 0xff, rest @ ..] => (rest, false),
        [1..=u8::MAX, 0, 1..=u8::MAX, 0, ..] => (text, true),
        [0, 1..=u8::MAX, 0, 1..=u8::MAX, ..] => (text, false),
        _ => return Cow::Borrowed(text),
    };
    let units = rest.chunks_exact(2).map(|pair| match is_little {
        true => u16::from_le_bytes([pair[0], pair[1]]),
        false => u16::from_be_bytes([pair[0], pair[1]]),
    });
    let letters =
        char::decode_utf16(units).map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER));
    Cow::Owned(letters.collect::<String>().into_bytes())
}

/// The lines of a robots.txt that are understood, up to the limit.
pub(super) fn lines(text: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let text = within_limit(text);
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    let mut number = 0;
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        loop {
            let text = rest?;
            let (line, after) = cut_line(text);
            rest = after;
            number += 1;
            if let Some((field, value)) = field_and_value(line) {
                return Some(Line { number, field, value });
            }
        }
    })
}

/// The first 500 KiB, without the line that the limit cuts.
fn within_limit(text: &[u8]) -> &[u8] {
    let Some(kept) = text.get(..MAX_ROBOTS_BYTES).filter(|kept| kept.len() < text.len()) else {
        return text;
    };
    if matches!(text[MAX_ROBOTS_BYTES], b'\r' | b'\n') {
        return kept;
    }
    let end = memchr::memrchr2(b'\r', b'\n', kept).map_or(0, |at| at + 1);
    &kept[..end]
}

/// The first line, which LF, CR or CRLF ends, and what follows.
fn cut_line(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    let Some(end) = memchr::memchr2(b'\r', b'\n', text) else { return (text, None) };
    let newline = if text[end..].starts_with(b"\r\n") { 2 } else { 1 };
    (&text[..end], Some(&text[end + newline..]))
}

fn field_and_value(line: &[u8]) -> Option<(Field, &[u8])> {
    let line = &line[..memchr::memchr(b'#', line).unwrap_or(line.len())];
    let line = line.trim_ascii();
    if let Some(colon) = memchr::memchr(b':', line)
        && let Some(field) = field(&line[..colon])
    {
        return Some((field, line[colon + 1..].trim_ascii()));
    }
    // People forget the colon: two words are read as a field and its value.
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    match (words.next(), words.next(), words.next()) {
        (Some(name), Some(value), None) => Some((field(name)?, value)),
        _ => None,
    }
}

/// The field of that name, in any case, with the misspellings that are common on the web.
fn field(name: &[u8]) -> Option<Field> {
    let name = name.trim_ascii().to_ascii_lowercase();
    match name.as_slice() {
        b"user-agent" | b"useragent" | b"user agent" => Some(Field::UserAgent),
        b"allow" => Some(Field::Allow),
        b"disallow" | b"dissallow" | b"dissalow" | b"disalow" | b"diasllow" | b"disallaw" => {
            Some(Field::Disallow)
        }
        b"crawl-delay" | b"crawldelay" | b"crawl delay" => Some(Field::CrawlDelay),
        b"sitemap" | b"site-map" => Some(Field::Sitemap),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_with_cr_lf_or_both_and_are_numbered() {
        let found: Vec<_> = lines(b"allow: /a\r\nallow: /b\rallow: /c\n\n\nallow: /d")
            .map(|line| (line.number, line.value.to_vec()))
            .collect();
        assert_eq!(
            found,
            [(1, b"/a".to_vec()), (2, b"/b".to_vec()), (3, b"/c".to_vec()), (6, b"/d".to_vec())]
        );
    }

    #[test]
    fn utf_16_is_read_with_and_without_a_mark() {
        let text = "User-agent: *\r\nDisallow: /\u{e9}\n";
        let units: Vec<u16> = text.encode_utf16().collect();
        let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
        let marked = |mark: &[u8], bytes: &[u8]| [mark, bytes].concat();
        for bytes in [
            marked(&[0xff, 0xfe], &little),
            marked(&[0xfe, 0xff], &big),
            little.clone(),
            big.clone(),
        ] {
            assert_eq!(as_utf8(&bytes), text.as_bytes());
        }
        for plain in [&b"User-agent: *"[..], b"", b"a", b"\xff\xfe", b"a\0"] {
            let is_mark = plain.starts_with(b"\xff\xfe");
            assert_eq!(as_utf8(plain), if is_mark { b"" } else { plain });
        }
    }

    #[test]
    fn the_line_that_the_limit_cuts_is_dropped() {
        let mut text = b"disallow: /kept\n".to_vec();
        text.resize(MAX_ROBOTS_BYTES - 12, b'#');
        text.extend(b"\ndisallow: /cut-here\n");
        assert_eq!(lines(&text).count(), 1);
        let whole = b"\ndisallow: /w";
        let mut text = b"disallow: /kept\n".to_vec();
        text.resize(MAX_ROBOTS_BYTES - whole.len(), b'#');
        text.extend(whole);
        assert_eq!(lines(&text).count(), 2, "a file of just the limit is whole");
        text.push(b'\n');
        assert_eq!(lines(&text).count(), 2, "a line that ends at the limit is whole");
        text.extend(b"disallow: /beyond\n");
        assert_eq!(lines(&text).count(), 2, "nothing beyond the limit is read");
    }

    #[test]
    fn a_forgotten_colon_and_common_misspellings_are_understood() {
        let found: Vec<_> =
            lines(b"useragent foo\nDisalow : /a\n  SITE-MAP:/s # x\nAllow /b c\n:\nfoo: bar\nSitemap https://e.com/s.xml\nDisallow /x:y\nsitemaps https://e.com/t.xml")
                .map(|line| (line.field, line.value.to_vec()))
                .collect();
        assert_eq!(
            found,
            [
                (Field::UserAgent, b"foo".to_vec()),
                (Field::Disallow, b"/a".to_vec()),
                (Field::Sitemap, b"/s".to_vec()),
                (Field::Sitemap, b"https://e.com/s.xml".to_vec()),
                (Field::Disallow, b"/x:y".to_vec()),
            ]
        );
    }
}
