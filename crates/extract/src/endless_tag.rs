//! Finds tags with so many attributes that reading them would take many times the page's own size.

/// The most attributes of a tag.
const MAX_ATTRIBUTES: u32 = 20_000;

/// The HTML parser takes some hundred bytes for each attribute. In a page that is not larger than this,
/// that is little.
const LARGE_BYTES: usize = 256 << 10;

/// The length of a page up to a tag that has more than 20,000 attributes, in any encoding that has ASCII
/// in it. Almost every page has none, and its own length.
///
/// Whatever the parser may take for a tag is looked at, also in comments and scripts, so that no page can
/// hide one. There it takes 20,000 words without a `>` to be mistaken for one.
pub fn readable_length(html: &[u8]) -> usize {
    let found = if html.len() > LARGE_BYTES { find(html) } else { None };
    found.unwrap_or(html.len())
}

/// A page up to such a tag.
pub(crate) fn before_endless_tag(html: &str) -> &str {
    html.get(..readable_length(html.as_bytes())).unwrap_or_default()
}

/// A tag that may have begun at a place, and its attributes so far.
#[derive(Debug, Clone, Copy)]
struct Begun {
    at: usize,
    attributes: u32,
}

/// The one with more attributes: what follows adds as many to either.
fn longer(one: Option<Begun>, other: Option<Begun>) -> Option<Begun> {
    [one, other].into_iter().flatten().max_by_key(|begun| begun.attributes)
}

/// Whether a `=` was just read that separates a name from its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Equals {
    No,
    Yes,
    /// Where an attribute begins, it is part of a name.
    Perhaps,
}

fn find(html: &[u8]) -> Option<usize> {
    // Outside of quoted values, and within those of either quote. What one tag has as a value may be
    // a tag itself, if the first one is in a comment.
    let (mut open, mut single, mut double): (Option<Begun>, Option<Begun>, Option<Begun>) =
        (None, None, None);
    let mut equals = Equals::No;
    let (mut in_name, mut in_value, mut after_space) = (false, false, true);
    let mut at = 0;
    while at < html.len() {
        if open.is_none() && single.is_none() && double.is_none() {
            at += memchr::memchr(b'<', &html[at..])?;
        }
        let byte = html[at];
        let is_slash = byte == b'/' && !in_value && equals != Equals::Yes;
        let is_space = byte.is_ascii_whitespace() || is_slash;
        let mut is_end = false;
        match byte {
            b'<' if begins_tag(&html[at..]) => {
                open = longer(open, Some(Begun { at, attributes: 0 }));
                (in_name, in_value, equals) = (true, false, Equals::No);
            }
            b'>' => {
                open = None;
                (in_name, in_value, equals) = (false, false, Equals::No);
            }
            b'"' | b'\'' => {
                let quoted = if byte == b'"' { &mut double } else { &mut single };
                let closed = quoted.take();
                match equals {
                    Equals::Yes => *quoted = open.take(),
                    Equals::Perhaps => *quoted = open,
                    Equals::No => {}
                }
                is_end = closed.is_some();
                in_value &= !is_end;
                open = longer(open, closed);
                equals = Equals::No;
            }
            b'=' if !in_name && !in_value => {
                let is_behind_name = !after_space && at > 0 && html[at - 1] != b'=';
                equals = if is_behind_name { Equals::Yes } else { Equals::Perhaps };
            }
            b'/' if is_slash => (in_name, equals) = (false, Equals::No),
            _ if is_space => (in_name, in_value) = (false, false),
            _ => {
                in_value |= equals == Equals::Yes;
                equals = Equals::No;
            }
        }
        if !is_space
            && after_space
            && let Some(open) = &mut open
        {
            open.attributes += 1;
            if open.attributes > MAX_ATTRIBUTES {
                return Some(open.at);
            }
        }
        after_space = is_space || is_end;
        at += 1;
    }
    None
}

fn begins_tag(bytes: &[u8]) -> bool {
    matches!(bytes, [b'<', b'a'..=b'z' | b'A'..=b'Z', ..] | [b'<', b'/', b'a'..=b'z' | b'A'..=b'Z', ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: usize = MAX_ATTRIBUTES as usize + 2;

    #[test]
    fn a_tag_with_too_many_attributes_ends_a_page() {
        let front = "<p a=b>x<!-- y --><a href='x'>".to_owned();
        for attribute in ["a ", "a=b ", "a='b c'\n", "a/", "a=\"x\"", "a = b\t"] {
            let many = format!("{front}<img {}>", attribute.repeat(MANY));
            assert_eq!(find(many.as_bytes()), Some(front.len()), "{attribute}");
            let end = format!("{front}</img {}", attribute.repeat(MANY));
            assert_eq!(find(end.as_bytes()), Some(front.len()), "{attribute}");
        }
    }

    #[test]
    fn it_cannot_be_hidden() {
        let tag = format!("<img {}>", "a=b ".repeat(MANY));
        for front in [
            "<!-- --!>",
            "<![CDATA[ >",
            "<script><!--</script>",
            "<!-- <a x=\" -->",
            "<!-- <a x=' --><b y=\" ",
            "<a x='<b y=\"'>\"",
            "<style></style x=\">",
            "<img =\" ",
            "<img a=b=' ",
            "<img a/=\" ",
            "<img a=b =\" ",
        ] {
            let page = format!("{front}{tag} ' \" -->");
            assert!(find(page.as_bytes()).is_some(), "{front}");
        }
    }

    #[test]
    fn what_separates_attributes_cannot_be_hidden() {
        for front in ["<img=/", "<img =/", "<img a=b =/", "<img a=\"b\"=/"] {
            let page = format!("{front}{}>", "a/".repeat(MANY));
            assert_eq!(find(page.as_bytes()), Some(0), "{front}");
        }
    }

    #[test]
    fn other_pages_are_whole() {
        for page in [
            format!("<img src=data:,{}>", "a/b=\"c'".repeat(MANY)),
            format!("<img src=/{}>", "a/".repeat(MANY)),
            format!("<img alt= '{}'>", "a/ ".repeat(MANY)),
            format!("<img src='{}'><b>", "a b=c ".repeat(MANY)),
            format!("<img src=\"{}\"><b>", "a b=c ".repeat(MANY)),
            format!("<p>{}", "words and more ".repeat(MANY)),
            "<p a=b c=d>x".repeat(MANY),
            format!("<script>if (a<b && c>d) {}</script>", "x = 'y' ".repeat(MANY)),
            "<".repeat(MANY),
            "<a<a".repeat(MANY / 2),
        ] {
            assert_eq!(find(page.as_bytes()), None, "{:.40}", page);
            assert_eq!(before_endless_tag(&page), page);
        }
        let small = "<a ".to_owned() + &"a ".repeat(MANY);
        assert_eq!(before_endless_tag(&small), small, "it takes little");
        let large = small.repeat(10);
        assert_eq!(before_endless_tag(&large), "");
    }
}
