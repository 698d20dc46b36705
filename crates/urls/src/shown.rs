//! URLs as people read them.

use crate::CanonicalUrl;

impl CanonicalUrl {
    /// The URL as people write it.
    pub fn shown(&self) -> String {
        shown_text(self.as_str())
    }

    /// The host as people write it. Labels in Japanese, Chinese and Korean are decoded from their
    /// ASCII form (`xn--…`). Others stay encoded, because they could look like a known host.
    pub fn shown_host(&self) -> String {
        let host = self.host();
        let (shown, read) = idna::uts46::Uts46::new().to_user_interface(
            host.as_bytes(),
            idna::AsciiDenyList::URL,
            idna::uts46::Hyphens::Allow,
            |label, _, _| label.iter().all(|&c| is_east_asian(c)),
        );
        if read.is_ok() { shown.into_owned() } else { host.to_owned() }
    }
}

/// A URL as people write it. Escaped letters outside ASCII are decoded, as browsers do, but not
/// characters that could change how the rest is read.
pub fn shown_text(url: &str) -> String {
    let mut out = String::with_capacity(url.len());
    let mut rest = url;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let escapes = escape_run(&rest[at..]);
        match escapes {
            0 => {
                out.push('%');
                rest = &rest[at + 1..];
            }
            _ => {
                out.push_str(&resolved(&rest[at..at + escapes]));
                rest = &rest[at + escapes..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// Length in bytes of the run of `%XX` at the beginning whose bytes are all above ASCII.
fn escape_run(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut end = 0;
    while let [b'%', high, low, ..] = &bytes[end..] {
        let high_digit = (*high as char).to_digit(16);
        if high_digit.is_none_or(|d| d < 8) || !low.is_ascii_hexdigit() {
            break;
        }
        end += 3;
    }
    end
}

fn resolved(escapes: &str) -> String {
    let bytes: Vec<u8> =
        escapes.split('%').skip(1).map(|hex| u8::from_str_radix(hex, 16).unwrap_or(b'?')).collect();
    match String::from_utf8(bytes) {
        Ok(text) if text.chars().all(is_plain) => text,
        _ => escapes.to_owned(),
    }
}

/// Letters that cannot be mistaken for Latin ones, digits and hyphens. Next to Latin letters, a
/// stroke of kana could look like punctuation between two names.
fn is_east_asian(c: char) -> bool {
    matches!(c, '0'..='9' | '-' | '々' | 'ぁ'..='ゖ' | 'ァ'..='ヺ' | 'ー' | '가'..='힣')
        || matches!(c as u32, 0x3400..=0x4dbf | 0x4e00..=0x9fff)
}

/// Visible letters, marks and signs: no control characters, spaces or direction marks.
fn is_plain(c: char) -> bool {
    !c.is_control()
        && !c.is_whitespace()
        && !matches!(c as u32, 0xad | 0x61c | 0x115f..=0x1160 | 0x17b4..=0x17b5 | 0x180b..=0x180f
            | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0x3164 | 0xfe00..=0xfe0f
            | 0xfeff | 0xffa0 | 0xfff0..=0xffff | 0xe0000..=0xe0fff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_shown_as_written_where_nobody_is_misled() {
        for (written, shown) in [
            ("http://日本語.jp/", "日本語.jp"),
            ("http://はじめよう.みんな/", "はじめよう.みんな"),
            ("http://한국.kr/", "한국.kr"),
            ("http://example.org:81/", "example.org"),
            ("http://127.0.0.1/", "127.0.0.1"),
            ("http://[::1]/", "[::1]"),
            // Cyrillic that looks like `apple`, and kana that looks like a slash.
            ("http://\u{430}\u{440}\u{440}\u{4cf}\u{435}.com/", "xn--80ak6aa92e.com"),
            ("http://example.orgノlogin.jp/", "example.xn--orglogin-634g.jp"),
        ] {
            assert_eq!(CanonicalUrl::parse(written).unwrap().shown_host(), shown);
        }
    }

    #[test]
    fn japanese_paths_are_shown_as_written_and_tricks_stay_escaped() {
        assert_eq!(
            shown_text("http://e.com/%E6%97%A5%E6%9C%AC?q=%20%3Cb%3E"),
            "http://e.com/日本?q=%20%3Cb%3E"
        );
        let url = CanonicalUrl::parse("http://e.com/日本").unwrap();
        assert_eq!(url.shown(), "http://e.com/日本");
        // Signs that cannot be seen, and a run that is cut in the middle of a letter.
        assert_eq!(shown_text("/%E3%81%82%7F%E3%80%80x"), "/あ%7F%E3%80%80x");
        for stays in ["http://e.com/%E2%80%AEx", "/%ff%fe", "/%", "/%e", "/100%", "/%E6%97"] {
            assert_eq!(shown_text(stays), stays);
        }
    }
}
