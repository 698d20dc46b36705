//! `5; url=http://…`, in `meta` elements and `Refresh` headers.

use std::ops::Range;

/// Position of the URL in the value of a refresh.
pub(crate) fn url_range(value: &[u8]) -> Option<Range<usize>> {
    let is_skipped = |b: &u8| b.is_ascii_whitespace() || matches!(b, b';' | b',');
    let number = value.iter().take_while(|b| !is_skipped(b) || b.is_ascii_whitespace()).count();
    let mut at = number + value[number..].iter().take_while(|b| is_skipped(b)).count();
    if at == number {
        return None;
    }
    if value.get(at..at + 3).is_some_and(|word| word.eq_ignore_ascii_case(b"url")) {
        let after = at + 3 + spaces(&value[at + 3..]);
        if value.get(after) == Some(&b'=') {
            at = after + 1 + spaces(&value[after + 1..]);
        }
    }
    let (start, end) = match value.get(at)? {
        quote @ (b'"' | b'\'') => {
            let length = memchr::memchr(*quote, &value[at + 1..]);
            (at + 1, length.map_or(value.len(), |l| at + 1 + l))
        }
        _ => (at, value.len()),
    };
    (start < end).then_some(start..end)
}

fn spaces(text: &[u8]) -> usize {
    text.iter().take_while(|b| b.is_ascii_whitespace()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_of_a_refresh_is_found() {
        for (value, expected) in [
            ("0;url=/x", Some("/x")),
            ("5; URL = 'http://e.com/' ", Some("http://e.com/")),
            ("5, http://e.com/", Some("http://e.com/")),
            ("0;URL=\"/x\"", Some("/x")),
            ("30", None),
            ("", None),
            ("5;", None),
        ] {
            let found = url_range(value.as_bytes()).map(|range| &value[range]);
            assert_eq!(found, expected, "{value}");
        }
    }
}
