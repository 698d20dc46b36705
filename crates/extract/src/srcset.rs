//! The `srcset` attribute, by the rules of the HTML standard.

/// The URLs of a `srcset`, at most `max_candidates`. Commas inside a URL stay; a comma at its end
/// separates.
pub(crate) fn srcset_urls(srcset: &str, max_candidates: usize) -> impl Iterator<Item = &str> {
    let mut rest = srcset;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
        if rest.is_empty() {
            return None;
        }
        let end = rest.find(|c: char| c.is_ascii_whitespace()).unwrap_or(rest.len());
        let (url, after) = rest.split_at(end);
        let bare = url.trim_end_matches(',');
        rest = if bare.len() < url.len() { after } else { skip_descriptors(after) };
        Some(bare)
    })
    .take(max_candidates)
}

/// Descriptors end at a comma outside parentheses.
fn skip_descriptors(text: &str) -> &str {
    let mut in_parentheses = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => in_parentheses = true,
            b')' => in_parentheses = false,
            b',' if !in_parentheses => return &text[at + 1..],
            _ => {}
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_divided_as_the_standard_says() {
        for (srcset, expected) in [
            ("a.png", vec!["a.png"]),
            ("a.png 1x, b.png 2x", vec!["a.png", "b.png"]),
            ("a.png, b.png 2x", vec!["a.png", "b.png"]),
            ("a.png,b.png 2x", vec!["a.png,b.png"]),
            (" ,, a.png 100w 50h,\n\tb.png,,", vec!["a.png", "b.png"]),
            (
                "/w_100,h_50/a.png 1x,/w_200,h_90/a.png 2x",
                vec!["/w_100,h_50/a.png", "/w_200,h_90/a.png"],
            ),
            (
                "data:image/png;base64,AAAA 1x, b.png 2x",
                vec!["data:image/png;base64,AAAA", "b.png"],
            ),
            ("a.png (x, y) 1x, b.png", vec!["a.png", "b.png"]),
            ("", vec![]),
            (" , ", vec![]),
        ] {
            assert_eq!(srcset_urls(srcset, 10).collect::<Vec<_>>(), expected, "{srcset}");
        }
        assert_eq!(srcset_urls("a 1x, b 2x, c 3x", 2).count(), 2);
    }
}
