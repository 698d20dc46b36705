//! `srcset`: candidates of an image, separated by commas that URLs may contain too.

use super::edits::Edits;

/// The most candidates of one attribute.
const MAX_CANDIDATES: usize = 1000;

/// Rewrites the URLs of a `srcset`; `None` if nothing changes.
pub(crate) fn rewrite(
    value: &[u8],
    mut rewrite_url: impl FnMut(&[u8]) -> Option<Vec<u8>>,
) -> Option<Vec<u8>> {
    let mut edits = Edits::default();
    let mut at = 0;
    for _ in 0..MAX_CANDIDATES {
        at += skip(&value[at..], |b| b.is_ascii_whitespace() || b == b',');
        let length = skip(&value[at..], |b| !b.is_ascii_whitespace());
        if length == 0 {
            break;
        }
        let commas = value[at..at + length].iter().rev().take_while(|b| **b == b',').count();
        let url = at..at + length - commas;
        if let Some(new) = rewrite_url(&value[url.clone()]) {
            edits.replace(url, new);
        }
        at += length;
        if commas == 0 {
            at += descriptors(&value[at..]);
        }
    }
    (!edits.is_empty()).then(|| edits.apply(value))
}

/// Length of the descriptors up to the comma after them; commas in parentheses do not count.
fn descriptors(text: &[u8]) -> usize {
    let mut depth = 0_usize;
    for (i, byte) in text.iter().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => return i,
            _ => {}
        }
    }
    text.len()
}

fn skip(text: &[u8], is_skipped: impl Fn(u8) -> bool) -> usize {
    text.iter().take_while(|b| is_skipped(**b)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_candidate_is_rewritten_once() {
        for (value, expected) in [
            ("/a 1x, /b 2x", "</a> 1x, </b> 2x"),
            ("/a,b.png 100w,/c 2x", "</a,b.png> 100w,</c> 2x"),
            ("/a, /b", "</a>, </b>"),
            (" ,/a", " ,</a>"),
            ("/a (1,2) , /b", "</a> (1,2) , </b>"),
        ] {
            let found = rewrite(value.as_bytes(), |url| Some([b"<", url, b">"].concat())).unwrap();
            assert_eq!(String::from_utf8(found).unwrap(), expected);
        }
        assert_eq!(rewrite(b"a.png 2x", |_| None), None);
    }
}
