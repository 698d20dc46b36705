//! ISO-2022-JP writes Japanese with the bytes of `<`, `"` and letters between escape sequences, so
//! HTML and CSS in it cannot be read byte by byte. Here those bytes get their eighth bit set, which
//! the encoding never uses, and lose it again afterwards: nothing else changes.

const ESCAPE: u8 = 0x1b;

/// Whether a text shifts into Japanese as ISO-2022-JP does, and is seven-bit throughout.
pub(crate) fn is_iso_2022_jp(text: &[u8]) -> bool {
    let shifts = memchr::memmem::find(text, b"\x1b$B").is_some()
        || memchr::memmem::find(text, b"\x1b$@").is_some();
    shifts && text.is_ascii()
}

/// The text with the bytes of Japanese characters moved out of ASCII.
pub(crate) fn masked(text: &[u8]) -> Vec<u8> {
    let mut out = text.to_vec();
    let mut in_japanese = false;
    let mut at = 0;
    while at < out.len() {
        if out[at] == ESCAPE {
            match (out.get(at + 1), out.get(at + 2)) {
                (Some(b'$'), Some(b'@' | b'B')) => in_japanese = true,
                (Some(b'('), Some(b'B' | b'J')) => in_japanese = false,
                (Some(b'('), Some(b'I')) => in_japanese = true,
                _ => {
                    at += 1;
                    continue;
                }
            }
            at += 3;
            continue;
        }
        if in_japanese && (0x21..0x7f).contains(&out[at]) {
            out[at] |= 0x80;
        }
        at += 1;
    }
    out
}

/// Undoes [`masked`], after edits that added nothing but ASCII.
pub(crate) fn unmasked(mut text: Vec<u8>) -> Vec<u8> {
    text.iter_mut().for_each(|byte| *byte &= 0x7f);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"<p title=\"\x1b$B<\"F|\x1b(B\">\x1b$B\"<\x1b(B</p>";

    #[test]
    fn japanese_is_masked_and_comes_back() {
        assert!(is_iso_2022_jp(TEXT));
        let masked = masked(TEXT);
        assert_eq!(masked.iter().filter(|b| **b == b'<').count(), 2);
        assert_eq!(masked.iter().filter(|b| **b == b'"').count(), 2);
        assert_eq!(unmasked(masked), TEXT);
    }

    #[test]
    fn other_encodings_are_not_taken_for_it() {
        assert!(!is_iso_2022_jp(b"plain"));
        assert!(!is_iso_2022_jp(b"\x1b$B\xe3\x81\x82"));
    }
}
