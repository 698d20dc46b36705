//! Character references of HTML.

use std::borrow::Cow;
use std::sync::LazyLock;

/// Names and code points of the HTML standard, one per line. A name without `;` in the table may
/// also be used without it, as before HTML 4.
static TABLE: LazyLock<Vec<Entity>> =
    LazyLock::new(|| include_str!("entities.txt").lines().filter_map(Entity::of_line).collect());

struct Entity {
    name: &'static str,
    needs_semicolon: bool,
    text: String,
}

impl Entity {
    fn of_line(line: &'static str) -> Option<Self> {
        let (name, codes) = line.split_once(' ')?;
        let code = |hex| u32::from_str_radix(hex, 16).ok().and_then(char::from_u32);
        let text = codes.split(' ').filter_map(code).collect();
        let bare = name.trim_end_matches(';');
        Some(Self { name: bare, needs_semicolon: bare.len() < name.len(), text })
    }
}

fn named(name: &str) -> Option<&'static Entity> {
    TABLE.binary_search_by(|entity| entity.name.cmp(name)).ok().map(|at| &TABLE[at])
}

/// Where a text is decides how a reference without `;` is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextContext {
    /// `?a=1&copy=2` in an attribute contains no reference.
    Attribute,
    /// `&copy2024` in text does.
    Text,
}

/// Longer than any name in the standard's table: longer runs are not names.
const MAX_NAME_BYTES: usize = 32;

/// Recontexts the character references of a text by their characters.
pub(crate) fn decode_entities(text: &str, context: TextContext) -> Cow<'_, str> {
    let Some(first) = memchr::memchr(b'&', text.as_bytes()) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len());
    out.push_str(&text[..first]);
    let mut rest = &text[first..];
    while let Some(after) = rest.strip_prefix('&') {
        let used = reference(after, context, &mut out);
        if used == 0 {
            out.push('&');
        }
        let tail = &after[used..];
        let next = memchr::memchr(b'&', tail.as_bytes()).unwrap_or(tail.len());
        out.push_str(&tail[..next]);
        rest = &tail[next..];
    }
    Cow::Owned(out)
}

/// Reads one reference after `&`; returns how many bytes it takes, 0 if there is none.
fn reference(after: &str, context: TextContext, out: &mut String) -> usize {
    if let Some(number) = after.strip_prefix('#') {
        return numeric(number, out).map_or(0, |used| used + 1);
    }
    let name_bytes =
        after.bytes().take(MAX_NAME_BYTES).take_while(u8::is_ascii_alphanumeric).count();
    let name = &after[..name_bytes];
    let next = after.as_bytes().get(name_bytes);
    if next == Some(&b';')
        && let Some(entity) = named(name)
    {
        out.push_str(&entity.text);
        return name_bytes + 1;
    }
    let shortest = match context {
        TextContext::Attribute if next == Some(&b'=') => return 0,
        TextContext::Attribute => name_bytes.max(1),
        TextContext::Text => 2,
    };
    for bytes in (shortest..=name_bytes).rev() {
        if let Some(entity) = named(&name[..bytes]).filter(|entity| !entity.needs_semicolon) {
            out.push_str(&entity.text);
            return bytes;
        }
    }
    0
}

/// `123;` or `x7B;` after `&#`.
fn numeric(number: &str, out: &mut String) -> Option<usize> {
    let (radix, start) = if number.starts_with(['x', 'X']) { (16, 1) } else { (10, 0) };
    let digits = number[start..].bytes().take_while(|b| (*b as char).is_digit(radix)).count();
    if digits == 0 {
        return None;
    }
    let end = start + digits;
    let code = u32::from_str_radix(&number[start..end], radix).unwrap_or(u32::MAX);
    out.push(character(code));
    Some(end + usize::from(number.as_bytes().get(end) == Some(&b';')))
}

/// Codes 128 to 159 mean windows-1252 by the standard; invalid codes become U+FFFD.
fn character(code: u32) -> char {
    match code {
        0x80..=0x9f => {
            let byte = [u8::try_from(code).unwrap_or(b'?')];
            let text = encoding_rs::WINDOWS_1252.decode_without_bom_handling(&byte).0;
            text.chars().next().unwrap_or(char::REPLACEMENT_CHARACTER)
        }
        0 => char::REPLACEMENT_CHARACTER,
        code => char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn attribute(text: &str) -> String {
        decode_entities(text, TextContext::Attribute).into_owned()
    }

    fn text(text: &str) -> String {
        decode_entities(text, TextContext::Text).into_owned()
    }

    #[test]
    fn the_table_is_sorted_and_whole() {
        assert_eq!(TABLE.len(), 2125);
        assert!(TABLE.is_sorted_by(|a, b| a.name < b.name));
        assert!(TABLE.iter().all(|entity| !entity.text.is_empty()));
    }

    #[test]
    fn references_are_recontextd() {
        assert_eq!(attribute("?a=1&amp;b=2"), "?a=1&b=2");
        assert_eq!(attribute("&lt;&#62;&#x3E;&#X3e&eacute;&NotEqualTilde;"), "<>>>é≂̸");
        assert_eq!(text("&copy2024 &amp &ampx &notit;"), "©2024 & &x ¬it;");
        assert_eq!(text("&#128; &#0; &#xD800; &#99999999999;"), "€ \u{fffd} \u{fffd} \u{fffd}");
    }

    #[test]
    fn other_ampersands_stay() {
        assert_eq!(attribute("?a=1&copy=2&b"), "?a=1&copy=2&b");
        assert_eq!(attribute("?a=1&copyright=2&ampx"), "?a=1&copyright=2&ampx");
        assert_eq!(attribute("&; & &# &#x &unknown; &&amp;"), "&; & &# &#x &unknown; &&");
        assert!(matches!(decode_entities("plain", TextContext::Text), Cow::Borrowed("plain")));
    }

    proptest! {
        #[test]
        fn any_text_is_read(t in "(&|#|x|;|=|amp|é|[0-9a-zA-Z]|\\PC){0,30}") {
            let _ = (attribute(&t), text(&t));
        }
    }
}
