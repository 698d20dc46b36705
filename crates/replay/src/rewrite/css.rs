//! URLs in style sheets: `url(…)`, `src(…)`, `@import "…"`, strings in `image-set(…)`.

use std::borrow::Cow;

use super::{edits::Edits, links::Links};
use crate::modifier::Modifier;

/// Rewrites a style sheet, or the value of a `style` attribute; `None` if nothing changes.
pub(crate) fn rewrite(css: &[u8], links: &Links) -> Option<Vec<u8>> {
    let mut scan = Scan { css, at: 0, links, edits: Edits::default(), is_legacy: None };
    scan.run();
    (!scan.edits.is_empty()).then(|| scan.edits.apply(css))
}

struct Scan<'a> {
    css: &'a [u8],
    at: usize,
    links: &'a Links,
    edits: Edits,
    /// Whether the text is in an old encoding, where a backslash byte may be half a character.
    is_legacy: Option<bool>,
}

/// The position of a string or a bare URL.
struct Token {
    start: usize,
    end: usize,
    /// After its quote, or at its closing character.
    after: usize,
}

impl<'a> Scan<'a> {
    fn run(&mut self) {
        let mut depth = 0_usize;
        let mut image_set: Option<usize> = None;
        let mut at_import = false;
        while let Some(&byte) = self.css.get(self.at) {
            match byte {
                b'/' if self.css.get(self.at + 1) == Some(&b'*') => {
                    let end = memchr::memmem::find(&self.css[self.at + 2..], b"*/");
                    self.at = end.map_or(self.css.len(), |end| self.at + 2 + end + 2);
                }
                b'"' | b'\'' => {
                    let string = self.string(byte);
                    self.at = string.after;
                    if at_import || image_set == Some(depth) {
                        let modifier = if at_import { Modifier::Style } else { Modifier::Image };
                        self.edit(&string, Some(byte), modifier);
                    }
                    at_import = false;
                }
                b'@' => {
                    let word = self.word(self.at + 1);
                    at_import = word.eq_ignore_ascii_case(b"import");
                    let is_namespace = word.eq_ignore_ascii_case(b"namespace");
                    self.at += 1 + word.len();
                    if is_namespace {
                        self.skip_statement();
                    }
                }
                b'(' => {
                    depth += 1;
                    self.at += 1;
                }
                b')' => {
                    image_set = image_set.filter(|open| *open != depth);
                    depth = depth.saturating_sub(1);
                    self.at += 1;
                }
                b';' | b'{' | b'}' => {
                    at_import = false;
                    self.at += 1;
                }
                _ if is_word_byte(byte) => {
                    let word = self.word(self.at);
                    self.at += word.len();
                    if self.css.get(self.at) != Some(&b'(') {
                        continue;
                    }
                    if word.eq_ignore_ascii_case(b"url") || word.eq_ignore_ascii_case(b"src") {
                        let m = if at_import { Modifier::Style } else { Modifier::Image };
                        self.url_function(m);
                        at_import = false;
                    } else if word.to_ascii_lowercase().ends_with(b"image-set") {
                        image_set = Some(depth + 1);
                    }
                }
                _ => self.at += 1,
            }
        }
    }

    fn word(&self, from: usize) -> &'a [u8] {
        let css: &'a [u8] = self.css;
        let rest = &css[from..];
        &rest[..rest.iter().take_while(|b| is_word_byte(**b)).count()]
    }

    /// Called at the opening parenthesis; ends after the closing one.
    fn url_function(&mut self, modifier: Modifier) {
        self.at += 1;
        self.at += self.css[self.at..].iter().take_while(|b| b.is_ascii_whitespace()).count();
        let quote = self.css.get(self.at).copied().filter(|b| matches!(b, b'"' | b'\''));
        let token = match quote {
            Some(quote) => self.string(quote),
            None => self.bare(),
        };
        self.edit(&token, quote, modifier);
        let close = memchr::memchr(b')', &self.css[token.after..]);
        self.at = close.map_or(self.css.len(), |close| token.after + close + 1);
    }

    fn string(&mut self, quote: u8) -> Token {
        let start = self.at + 1;
        let mut end = start;
        while let Some(&byte) = self.css.get(end) {
            match byte {
                b'\\' if self.is_escape(end) => end += 1,
                // A line end closes a bad string.
                b'\n' => return Token { start, end, after: end },
                _ if byte == quote => return Token { start, end, after: end + 1 },
                _ => {}
            }
            end += 1;
        }
        let end = end.min(self.css.len());
        Token { start, end, after: end }
    }

    fn bare(&mut self) -> Token {
        let start = self.at;
        let mut end = start;
        while let Some(&byte) = self.css.get(end) {
            match byte {
                b')' => break,
                b'\\' if self.is_escape(end) => end += 1,
                _ => {}
            }
            end += 1;
        }
        let after = end.min(self.css.len());
        let trimmed = self.css[start..after].trim_ascii_end().len();
        Token { start, end: start + trimmed, after }
    }

    /// In Shift_JIS, GBK and Big5 the byte of the backslash is also the second half of characters.
    fn is_escape(&mut self, at: usize) -> bool {
        let before = at.checked_sub(1).map_or(0, |i| self.css[i]);
        if before < 0x81 {
            return true;
        }
        let css = self.css;
        !*self.is_legacy.get_or_insert_with(|| std::str::from_utf8(css).is_err())
    }

    fn edit(&mut self, token: &Token, quote: Option<u8>, modifier: Modifier) {
        let raw = &self.css[token.start..token.end];
        let url = if memchr::memchr(b'\\', raw).is_some() && self.is_legacy != Some(true) {
            Cow::Owned(unescaped(raw))
        } else {
            Cow::Borrowed(raw)
        };
        let Some(new) = self.links.rewrite(&url, modifier) else { return };
        let written = match &url {
            Cow::Borrowed(_) => new,
            Cow::Owned(_) => escaped(&new, quote),
        };
        self.edits.replace(token.start..token.end, written);
    }

    fn skip_statement(&mut self) {
        let end = memchr::memchr(b';', &self.css[self.at..]);
        self.at = end.map_or(self.css.len(), |end| self.at + end + 1);
    }
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') || byte >= 0x80
}

fn unescaped(raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        if first != b'\\' {
            out.push(first);
            continue;
        }
        let digits = tail.iter().take(6).take_while(|b| b.is_ascii_hexdigit()).count();
        if digits == 0 {
            continue;
        }
        let text = std::str::from_utf8(&tail[..digits]).unwrap_or_default();
        let character =
            u32::from_str_radix(text, 16).ok().and_then(char::from_u32).unwrap_or('\u{fffd}');
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        rest = &tail[digits..];
        if rest.first().is_some_and(u8::is_ascii_whitespace) {
            rest = &rest[1..];
        }
    }
    out
}

fn escaped(url: &[u8], quote: Option<u8>) -> Vec<u8> {
    let mut out = Vec::with_capacity(url.len());
    for &byte in url {
        let is_special = matches!(byte, b'"' | b'\'' | b'(' | b')' | b'\\')
            || (byte.is_ascii_whitespace() && quote.is_none());
        match byte {
            b'\n' | b'\r' | b'\x0c' => out.extend_from_slice(format!("\\{byte:x} ").as_bytes()),
            _ if is_special => out.extend_from_slice(&[b'\\', byte]),
            _ => out.push(byte),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use nenrin_urls::CanonicalUrl;
    use proptest::prelude::*;

    fn links() -> Links {
        let url = CanonicalUrl::parse("http://e.com/css/main.css").unwrap();
        Links::new(0, Modifier::Style, url)
    }

    fn rewritten(css: &str) -> String {
        let new = rewrite(css.as_bytes(), &links()).unwrap_or(css.as_bytes().to_vec());
        String::from_utf8(new).unwrap().replace("/web/19700101000000", "@@")
    }

    #[test]
    fn urls_of_style_sheets_are_rewritten() {
        for (css, expected) in [
            ("a{b:url(/x.png)}", "a{b:url(@@im_/http://e.com/x.png)}"),
            ("a{b:URL( '/x.png' )}", "a{b:URL( '@@im_/http://e.com/x.png' )}"),
            ("@import \"/a.css\" screen;", "@import \"@@cs_/http://e.com/a.css\" screen;"),
            ("@import url(//f.org/a.css);", "@import url(@@cs_/http://f.org/a.css);"),
            (
                "a{b:image-set('/a.png' 1x, '/b.png' 2x)}",
                "a{b:image-set('@@im_/http://e.com/a.png' 1x, '@@im_/http://e.com/b.png' 2x)}",
            ),
            ("a{b:url(/x\\.png)}", "a{b:url(@@im_/http://e.com/x.png)}"),
            ("a{b:url(\\2f x.png)}", "a{b:url(@@im_/http://e.com/x.png)}"),
            ("/* c */a{b:url(/x)}", "/* c */a{b:url(@@im_/http://e.com/x)}"),
        ] {
            assert_eq!(rewritten(css), expected, "{css}");
        }
    }

    #[test]
    fn other_urls_stay() {
        for css in [
            "a{b:url(x.png)}",
            "a{content:\"url(/x)\"}",
            "/* url(/x) */",
            "a{b:url(data:image/png;base64,AA)}",
            "@namespace url(http://www.w3.org/1999/xhtml);",
            "@namespace svg \"http://www.w3.org/2000/svg\";a{}",
            "@charset \"utf-8\";",
            "a{content:'/x'}",
            "a{b:curl(/x)}",
            "a{b:url(",
            "a{b:'",
        ] {
            assert_eq!(rewritten(css), css);
        }
    }

    #[test]
    fn half_a_shift_jis_character_is_not_a_backslash() {
        let css = b"a{content:\"\x95\\\";b:url(/x)}";
        let new = rewrite(css, &links()).unwrap();
        assert!(new.starts_with(b"a{content:\"\x95\\\";b:url(/web/"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_scanned_without_harm(css in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = rewrite(&css, &links());
        }

        #[test]
        fn any_css_like_text_is_scanned_without_harm(css in "[url()@import'\"/\\\\*; {}]{0,40}") {
            let _ = rewrite(css.as_bytes(), &links());
        }
    }
}
