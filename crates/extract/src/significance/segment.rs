//! Cuts a page at its tags.

use crate::hash::{mixed, stable_hash};

/// The most segments of one page; the rest is one more segment.
pub(crate) const MAX_SEGMENTS: usize = 100_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SegmentKind {
    /// Text between tags, not only white space.
    Text,
    /// A start tag, an end tag or a declaration.
    Tag,
    /// The content of `script`; with the flag, data in JSON.
    Script { json: bool },
    /// The content of `style`.
    Style,
    /// A comment.
    Comment,
}

/// A run of bytes of a page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment<'t> {
    pub(crate) kind: SegmentKind,
    pub(crate) text: &'t str,
    pub(crate) hash: u64,
    /// Hash of the context in the page: the tags before, by name, class and id.
    pub(crate) context: u64,
}

/// Cuts markup at its tags. White space between tags is left out.
pub(crate) fn markup_segments(html: &str) -> Vec<Segment<'_>> {
    let mut cutter = Cutter { segments: Vec::new(), tags: [0; 3] };
    let mut rest = html;
    while !rest.is_empty() {
        let (kind, length) = if cutter.segments.len() >= MAX_SEGMENTS {
            (SegmentKind::Text, rest.len())
        } else {
            next_piece(rest)
        };
        let (text, after) = rest.split_at(length);
        cutter.push(kind, text);
        rest = after;
        if kind == SegmentKind::Tag
            && let Some((kind, length)) = raw_content(text, rest)
        {
            let (raw, after) = rest.split_at(length);
            cutter.push(kind, raw);
            rest = after;
        }
    }
    cutter.segments
}

/// Cuts plain text into its lines.
pub(crate) fn line_segments(text: &str) -> Vec<Segment<'_>> {
    let mut cutter = Cutter { segments: Vec::new(), tags: [0; 3] };
    let mut rest = text;
    while !rest.is_empty() {
        let end = memchr::memchr(b'\n', rest.as_bytes()).map_or(rest.len(), |at| at + 1);
        let end = if cutter.segments.len() >= MAX_SEGMENTS { rest.len() } else { end };
        cutter.push(SegmentKind::Text, &rest[..end]);
        rest = &rest[end..];
    }
    cutter.segments
}

struct Cutter<'t> {
    segments: Vec<Segment<'t>>,
    /// The last tags, the newest first.
    tags: [u64; 3],
}

impl<'t> Cutter<'t> {
    fn push(&mut self, kind: SegmentKind, text: &'t str) {
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return;
        }
        let [first, second, third] = self.tags;
        let context = mixed(first ^ second.rotate_left(21) ^ third.rotate_left(42) ^ kind.salt());
        let hash = stable_hash(trimmed.bytes()) ^ kind.salt();
        self.segments.push(Segment { kind, text: trimmed, hash, context });
        if kind == SegmentKind::Tag {
            self.tags = [tag_identity(trimmed), first, second];
        }
    }
}

impl SegmentKind {
    fn salt(self) -> u64 {
        match self {
            Self::Text => 1,
            Self::Tag => 2,
            Self::Script { json: false } => 3,
            Self::Script { json: true } => 4,
            Self::Style => 5,
            Self::Comment => 6,
        }
    }
}

/// The kind of the segment that starts here, and its length in bytes (at least one).
fn next_piece(rest: &str) -> (SegmentKind, usize) {
    let bytes = rest.as_bytes();
    if rest.starts_with("<!--") {
        let end = memchr::memmem::find(bytes, b"-->").map_or(rest.len(), |at| at + 3);
        return (SegmentKind::Comment, end);
    }
    if rest.starts_with("<![CDATA[") {
        let end = memchr::memmem::find(bytes, b"]]>").map_or(rest.len(), |at| at + 3);
        return (SegmentKind::Text, end);
    }
    if starts_tag(bytes) {
        return (SegmentKind::Tag, tag_length(bytes));
    }
    let next = memchr::memchr_iter(b'<', bytes).find(|at| *at > 0 && starts_tag(&bytes[*at..]));
    (SegmentKind::Text, next.unwrap_or(rest.len()))
}

fn starts_tag(bytes: &[u8]) -> bool {
    matches!(bytes, [b'<', b'a'..=b'z' | b'A'..=b'Z' | b'/' | b'!' | b'?', ..])
}

/// Length up to the `>` outside quoted values. A quote that is never closed is a typing error and
/// quotes nothing.
fn tag_length(bytes: &[u8]) -> usize {
    let mut at = 1;
    while let Some(found) = memchr::memchr3(b'>', b'"', b'\'', &bytes[at..]) {
        at += found;
        match bytes[at] {
            b'>' => return at + 1,
            quote => match memchr::memchr(quote, &bytes[at + 1..]) {
                // Only a quote after `=` opens a value; others are typing errors.
                Some(length) if opens_value(&bytes[..at]) => at += length + 2,
                _ => at += 1,
            },
        }
    }
    bytes.len()
}

fn opens_value(before: &[u8]) -> bool {
    before.trim_ascii_end().last() == Some(&b'=')
}

/// The content of the script or style element that `tag` opens.
fn raw_content(tag: &str, rest: &str) -> Option<(SegmentKind, usize)> {
    let name = tag_name(tag);
    let kind = if name.eq_ignore_ascii_case("script") {
        SegmentKind::Script { json: tag.contains("json") }
    } else if name.eq_ignore_ascii_case("style") {
        SegmentKind::Style
    } else {
        return None;
    };
    // Its content is not looked for: a page of such tags would be read once for each of them.
    if tag.ends_with("/>") {
        return None;
    }
    let ends = |at: &usize| {
        let behind = rest.as_bytes().get(at + 2..at + 2 + name.len());
        behind.is_some_and(|end| end.eq_ignore_ascii_case(name.as_bytes()))
    };
    let length = memchr::memmem::find_iter(rest.as_bytes(), b"</").find(ends).unwrap_or(rest.len());
    Some((kind, length))
}

/// The name of a tag, with the slash of an end tag.
pub(crate) fn tag_name(tag: &str) -> &str {
    let inner = tag.strip_prefix('<').unwrap_or(tag);
    let end = inner
        .char_indices()
        .find(|(at, c)| c.is_ascii_whitespace() || *c == '>' || (*c == '/' && *at > 0))
        .map_or(inner.len(), |(at, _)| at);
    &inner[..end]
}

/// The attributes of a tag as written: name and value.
pub(crate) fn attributes(tag: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = tag.get(1 + tag_name(tag).len()..).unwrap_or_default().trim_end_matches('>');
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
        if rest.is_empty() {
            return None;
        }
        let ends = |c: char| c.is_ascii_whitespace() || c == '=' || c == '/';
        let end = rest.char_indices().skip(1).find(|(_, c)| ends(*c));
        let end = end.map_or(rest.len(), |(at, _)| at);
        let (name, after) = rest.split_at(end);
        let Some(value) = after.trim_ascii_start().strip_prefix('=') else {
            rest = after;
            return Some((name, ""));
        };
        let (value, after) = attribute_value(value.trim_ascii_start());
        rest = after;
        Some((name, value))
    })
}

fn attribute_value(text: &str) -> (&str, &str) {
    match text.chars().next() {
        Some(quote @ ('"' | '\'')) => text[1..].split_once(quote).unwrap_or((&text[1..], "")),
        _ => text.split_at(text.find(|c: char| c.is_ascii_whitespace()).unwrap_or(text.len())),
    }
}

/// Hash of the name with class and id, without digits: it stays the same when a page is rendered
/// again.
fn tag_identity(tag: &str) -> u64 {
    let mut hash = stable_hash(tag_name(tag).bytes().map(|b| b.to_ascii_lowercase()));
    for (name, value) in attributes(tag) {
        if name.eq_ignore_ascii_case("class") || name.eq_ignore_ascii_case("id") {
            hash ^= mixed(stable_hash(value.bytes().filter(|b| !b.is_ascii_digit())));
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut(html: &str) -> Vec<(SegmentKind, &str)> {
        markup_segments(html).into_iter().map(|segment| (segment.kind, segment.text)).collect()
    }

    #[test]
    fn pages_are_cut_at_their_tags() {
        use SegmentKind::*;
        assert_eq!(
            cut("<p title='a > b'>x < y</p>\n <!-- <b> --><script type=application/json>{\"<a>\"}\
                 </SCRIPT><style>p > a {}</style><br/>5 <6"),
            [
                (Tag, "<p title='a > b'>"),
                (Text, "x < y"),
                (Tag, "</p>"),
                (Comment, "<!-- <b> -->"),
                (Tag, "<script type=application/json>"),
                (Script { json: true }, "{\"<a>\"}"),
                (Tag, "</SCRIPT>"),
                (Tag, "<style>"),
                (Style, "p > a {}"),
                (Tag, "</style>"),
                (Tag, "<br/>"),
                (Text, "5 <6"),
            ]
        );
        assert_eq!(cut("<p class=it's>x"), [(Tag, "<p class=it's>"), (Text, "x")]);
        assert_eq!(cut("  "), []);
    }

    #[test]
    fn attributes_are_read_as_written() {
        let read = |tag| attributes(tag).collect::<Vec<_>>();
        assert_eq!(
            read("<a href=\"x y\" b c='d' e = f é=1 />"),
            [("href", "x y"), ("b", ""), ("c", "d"), ("e", "f"), ("é", "1")]
        );
        assert_eq!(read("</a>"), []);
    }

    #[test]
    fn the_context_does_not_depend_on_the_content() {
        let context = |html| markup_segments(html).last().unwrap().context;
        let ad = context("<div class=ad><a href=/x1><img src=a.png>");
        assert_eq!(ad, context("<div class=ad><a href=/y2><img src=b.png>"));
        assert_ne!(ad, context("<div class=news><a href=/x1><img src=a.png>"));
    }

    proptest! {
        #[test]
        fn nothing_but_white_space_is_lost(html in "(<a |<p>|</p>|<script>|</script>|<!--|-->|<!\\[CDATA\\[|'|\"|=|>|<|/| |x|é|\\PC){0,30}") {
            let bare = |text: &str| text.split_whitespace().collect::<String>();
            let segments = markup_segments(&html);
            let joined: String = segments.iter().map(|segment| bare(segment.text)).collect();
            prop_assert_eq!(joined, bare(&html));
            for segment in segments {
                attributes(segment.text).count();
            }
        }
    }
}
