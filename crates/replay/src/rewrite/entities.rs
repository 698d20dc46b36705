//! Character references in attribute values, as far as they can hide or spoil a URL.

use std::borrow::Cow;

/// Named references to the characters that have a meaning in URLs or attributes.
const NAMED: [(&[u8], u8); 14] = [
    (b"amp", b'&'),
    (b"AMP", b'&'),
    (b"quot", b'"'),
    (b"apos", b'\''),
    (b"lt", b'<'),
    (b"gt", b'>'),
    (b"colon", b':'),
    (b"sol", b'/'),
    (b"bsol", b'\\'),
    (b"period", b'.'),
    (b"Tab", b'\t'),
    (b"NewLine", b'\n'),
    (b"lpar", b'('),
    (b"rpar", b')'),
];

/// The value with these references decoded; other references stay.
pub(crate) fn decoded(value: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'&', value).is_none() {
        return Cow::Borrowed(value);
    }
    let mut out = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = memchr::memchr(b'&', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        match reference(&rest[1..]) {
            Some((character, length)) => {
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                rest = &rest[1 + length..];
            }
            None => {
                out.push(b'&');
                rest = &rest[1..];
            }
        }
    }
    out.extend_from_slice(rest);
    Cow::Owned(out)
}

/// The character of a reference, and the reference's length after `&`.
fn reference(text: &[u8]) -> Option<(char, usize)> {
    if let Some(number) = text.strip_prefix(b"#") {
        let (digits, radix, skipped) = match number.first()? {
            b'x' | b'X' => (&number[1..], 16, 2),
            _ => (number, 10, 1),
        };
        let length = digits.iter().take_while(|b| (**b as char).is_digit(radix)).count();
        let text_of = std::str::from_utf8(&digits[..length.min(16)]).ok()?;
        let character = char::from_u32(u32::from_str_radix(text_of, radix).ok()?)?;
        let semicolon = usize::from(digits.get(length) == Some(&b';'));
        return Some((character, skipped + length + semicolon));
    }
    NAMED.iter().find_map(|(name, byte)| {
        let after = text.strip_prefix(*name)?;
        let is_closed = after.first() == Some(&b';');
        // Without a semicolon only the oldest names count, and not before `=` or a letter.
        let is_old = matches!(*name, b"amp" | b"AMP" | b"quot" | b"lt" | b"gt");
        let is_cut = !after.first().is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'=');
        (is_closed || (is_old && is_cut))
            .then(|| (*byte as char, name.len() + usize::from(is_closed)))
    })
}

/// A value that is safe between any quotes, or none.
pub(crate) fn encoded(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len() + 16);
    for &byte in value {
        match byte {
            b'&' => out.extend_from_slice(b"&amp;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'\t' | b'\n' | b'\x0c' | b'\r' => {
                out.extend_from_slice(format!("&#{byte};").as_bytes());
            }
            _ => out.push(byte),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_resolved_as_in_attributes() {
        for (raw, expected) in [
            ("a&amp;b", "a&b"),
            ("a&b=1&c", "a&b=1&c"),
            ("http&#58;&#x2F;&sol;e.com", "http://e.com"),
            ("a&lt=b", "a&lt=b"),
            ("&unknown;", "&unknown;"),
            ("&#xZZ;&#;&#99999999999;", "&#xZZ;&#;&#99999999999;"),
            ("j&Tab;s", "j\ts"),
        ] {
            assert_eq!(decoded(raw.as_bytes()), raw_bytes(expected), "{raw}");
        }
    }

    fn raw_bytes(text: &str) -> Cow<'_, [u8]> {
        Cow::Borrowed(text.as_bytes())
    }

    #[test]
    fn what_is_encoded_decodes_to_itself() {
        let value = b"a&b\"c'd<e>f\tg\x93\xfa";
        let encoded = encoded(value);
        assert_eq!(decoded(&encoded), Cow::Borrowed(&value[..]));
        assert!(!encoded.iter().any(|b| matches!(b, b'"' | b'\'' | b'<' | b'>' | b'\t')));
    }
}
