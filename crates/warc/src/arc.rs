//! Records of ARC files, the format before WARC: one line and the response.

use crate::Fields;

/// The first words of an ARC file.
pub(crate) const FILE_WORDS: &[u8] = b"filedesc://";

/// How lines of captures begin, for finding the next one after damage.
pub(crate) const LINE_WORDS: [&[u8]; 2] = [b"\nhttp://", b"\nhttps://"];

/// Reads `URL address date type length`, or the ten words of version 2, as the fields of a WARC
/// record. `None` for any other line.
pub(crate) fn parse_line(line: &[u8]) -> Option<Fields> {
    let line = std::str::from_utf8(line).ok()?.trim_end();
    // URLs from careless collectors contain spaces, so the fixed words are counted from the end.
    let words: Vec<&str> = line.split(' ').collect();
    let fixed = if is_version_2(&words) { 9 } else { 4 };
    let at = words.len().checked_sub(fixed).filter(|at| *at > 0)?;
    let url = words[..at].join("%20");
    let (address, date, mime) = (words[at], words[at + 1], words[at + 2]);
    let length: u64 = words.last()?.parse().ok()?;
    if !url.contains(':') || crate::parse_date(date).is_none() {
        return None;
    }
    let is_description = url.starts_with("filedesc:");
    let is_web = url.starts_with("http://") || url.starts_with("https://");
    let mut fields = Fields::default();
    let kind = if is_description { "warcinfo" } else { "response" };
    fields.push("WARC-Type", if is_web || is_description { kind } else { "resource" });
    fields.push("WARC-Target-URI", url);
    fields.push("WARC-Date", date);
    if address != "-" && address != "0.0.0.0" {
        fields.push("WARC-IP-Address", address);
    }
    fields.push("Content-Type", if is_web { "application/http; msgtype=response" } else { mime });
    fields.push("Content-Length", length.to_string());
    Some(fields)
}

/// `URL address date type status checksum location offset filename length`.
fn is_version_2(words: &[&str]) -> bool {
    let at = |back: usize| words.len().checked_sub(back).and_then(|at| words.get(at));
    let is_number = |word: Option<&&str>| word.is_some_and(|word| word.parse::<u64>().is_ok());
    let is_date = |word: Option<&&str>| {
        word.is_some_and(|word| word.len() == 14 && word.bytes().all(|b| b.is_ascii_digit()))
    };
    is_number(at(1)) && is_number(at(3)) && is_date(at(8)) && is_number(at(6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_versions_are_read() {
        for line in [
            "http://e.com/a 10.0.0.1 20040101120000 text/html 123",
            "http://e.com/a 10.0.0.1 20040101120000 text/html 200 abc - 77 x.arc 123",
        ] {
            let fields = parse_line(line.as_bytes()).unwrap();
            assert_eq!(fields.get("WARC-Target-URI"), Some("http://e.com/a"), "{line}");
            assert_eq!(fields.get("WARC-IP-Address"), Some("10.0.0.1"), "{line}");
            assert_eq!(fields.get("WARC-Date"), Some("20040101120000"), "{line}");
            assert_eq!(fields.get("Content-Length"), Some("123"), "{line}");
        }
        let spaced = parse_line(b"http://e.com/a b 10.0.0.1 20040101120000 text/html 5").unwrap();
        assert_eq!(spaced.get("WARC-Target-URI"), Some("http://e.com/a%20b"));
    }

    #[test]
    fn other_lines_are_refused() {
        for line in [
            "",
            "1 0 InternetArchive",
            "http://e.com/ 10.0.0.1 yesterday text/html 5",
            "http://e.com/ 10.0.0.1 20040101120000 text/html -5",
            "text/html 5",
        ] {
            assert_eq!(parse_line(line.as_bytes()), None, "{line}");
        }
    }
}
