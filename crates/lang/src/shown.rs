//! Text from the web on a terminal.

use std::borrow::Cow;

/// Text that a terminal shows and does not obey: control characters (escape codes in both of their
/// forms) and marks that turn the direction of writing become `�`. Line breaks and tabs stay.
pub fn shown(text: &str) -> Cow<'_, str> {
    let is_obeyed = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    match text.contains(is_obeyed) {
        true => Cow::Owned(text.replace(is_obeyed, "\u{fffd}")),
        false => Cow::Borrowed(text),
    }
}

/// The same of a JSON text, which stays the same document: JSON has escapes for such characters.
pub fn shown_json(json: &str) -> Cow<'_, str> {
    // Those below a space are escaped in any JSON, and outside of texts there are none.
    let is_obeyed = |c: char| matches!(c, '\u{7f}'..='\u{9f}');
    if !json.contains(is_obeyed) {
        return Cow::Borrowed(json);
    }
    let escaped = json.chars().map(|c| match is_obeyed(c) {
        true => format!("\\u{:04x}", u32::from(c)),
        false => c.to_string(),
    });
    Cow::Owned(escaped.collect())
}

/// Text as it is written in HTML and XML: nothing in it is markup. Control characters become spaces, and characters
/// that XML forbids `�`.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' | '\r' => out.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_that_a_terminal_obeys_is_left() {
        let hostile = "a\x1b[2Jb\u{9b}31mc\x07d\x08e\u{202e}f\r\ng\th\x7f";
        assert_eq!(shown(hostile), "a�[2Jb�31mc�d�e�f�\ng\th�");
        assert!(matches!(shown("plain é 日本"), Cow::Borrowed(_)));
        assert_eq!(shown_json("\"a\u{9b}b\u{7f}\""), "\"a\\u009bb\\u007f\"");
        assert!(matches!(shown_json("\"é\""), Cow::Borrowed(_)));
    }

    #[test]
    fn nothing_escaped_is_markup() {
        let text = "<b a=\"x\" b='y'>&amp;\n\u{1}\u{ffff}é";
        assert_eq!(
            escaped(text),
            "&lt;b a=&quot;x&quot; b=&#39;y&#39;&gt;&amp;amp; \u{fffd}\u{fffd}é"
        );
    }
}
