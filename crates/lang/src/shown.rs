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

/// A text with no line wider than a terminal: what does not fit goes on below, indented alike. Lines are
/// broken at spaces, and between characters of scripts without spaces; a long word stays whole.
pub fn wrapped(text: &str, width: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (indent, mut rest) = line.split_at(line.len() - line.trim_start_matches(' ').len());
        out.push_str(indent);
        let mut used = indent.len();
        while !rest.is_empty() {
            let end = rest.find(|c: char| c == ' ' || is_wide(c));
            let end = end.map_or(rest.len(), |at| rest.ceil_char_boundary(at + 1));
            let (word, later) = rest.split_at(end);
            if used > indent.len() && used + columns(word.trim_end()) > width {
                out.truncate(out.trim_end_matches(' ').len());
                out.push('\n');
                out.push_str(indent);
                used = indent.len();
            }
            out.push_str(word);
            used += columns(word);
            rest = later;
        }
    }
    out
}

/// How many columns of a terminal a text takes.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(|c| 1 + usize::from(is_wide(c))).sum()
}

/// Whether a terminal shows a character two columns wide: the scripts of East Asia, and pictures.
fn is_wide(c: char) -> bool {
    matches!(
        c,
        '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}'
            | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe6f}' | '\u{ff00}'..='\u{ff60}'
            | '\u{ffe0}'..='\u{ffe6}' | '\u{1f300}'..='\u{1faff}' | '\u{20000}'..='\u{3fffd}'
    )
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

    #[test]
    fn lines_are_broken_between_words_and_keep_their_indent() {
        assert_eq!(wrapped("  one two three\nfour", 9), "  one two\n  three\nfour");
        assert_eq!(wrapped("one two", 7), "one two");
        assert_eq!(wrapped("a http://long.example/ b", 10), "a\nhttp://long.example/\nb");
        assert_eq!(wrapped(" 木の年輪を数える", 9), " 木の年輪\n を数える");
        assert_eq!(wrapped("", 9), "");
    }
}
