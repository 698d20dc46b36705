//! The text that a reader of a page sees.

use lol_html::html_content::{TextChunk, TextType};
use lol_html::{HtmlRewriter, MemorySettings, Settings, doc_text};

use crate::ContentKind;
use crate::charset::charset;
use crate::endless_tag::before_endless_tag;
use crate::entities::{TextContext, decode_entities};

/// Memory in bytes for the parser's own use.
const MAX_PARSER_BYTES: usize = 16 * 1024 * 1024;

/// The visible text of a body, at most `max_bytes` of it: title first, without scripts and styles,
/// white space folded, one line for each HTML block element. Kinds without text give an empty
/// string.
pub fn visible_text(
    kind: ContentKind,
    content_type: Option<&str>,
    body: &[u8],
    max_bytes: usize,
) -> String {
    use ContentKind::{
        Css, Feed, Html, Image, JavaScript, Json, Other, Sitemap, Svg, Text, Xhtml, Xml,
    };
    let mut lines = Lines::new(max_bytes);
    match kind {
        Html | Xhtml | Svg | Xml | Feed | Sitemap => {
            lines.read_markup(&charset(content_type, body).decode(body).0);
        }
        Text | Json => {
            for line in charset(content_type, body).decode(body).0.lines() {
                lines.push(line, Gap::Block);
            }
        }
        Css | JavaScript | Image | Other => {}
    }
    lines.text
}

/// What is between two pieces of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    /// Nothing that a reader sees: `tr<b>ee</b>`.
    None,
    /// The end of a block element: a paragraph, a cell, a line.
    Block,
}

struct Lines {
    text: String,
    max_bytes: usize,
    /// White space or a block's end that was seen and is not written yet.
    pending: Option<char>,
}

impl Lines {
    fn new(max_bytes: usize) -> Self {
        Self { text: String::new(), max_bytes, pending: None }
    }

    fn is_full(&self) -> bool {
        self.text.len() >= self.max_bytes
    }

    fn push(&mut self, text: &str, gap: Gap) {
        if gap == Gap::Block {
            self.pending = Some('\n');
        }
        for c in text.chars() {
            if c.is_whitespace() {
                self.pending.get_or_insert(' ');
                continue;
            }
            let separator = self.pending.take().filter(|_| !self.text.is_empty());
            let bytes = c.len_utf8() + separator.map_or(0, char::len_utf8);
            if self.text.len() + bytes > self.max_bytes {
                self.max_bytes = self.text.len();
                return;
            }
            self.text.extend(separator);
            self.text.push(c);
        }
    }

    fn read_markup(&mut self, html: &str) {
        let html = before_endless_tag(html);
        let mut node = TextNode { html, lines: self, text: String::new(), start: 0, end: 0 };
        let memory = MemorySettings::new().with_max_allowed_memory_usage(MAX_PARSER_BYTES);
        let settings = Settings::new()
            .with_strict(false)
            .with_memory_settings(memory)
            .append_document_content_handler(doc_text!(|chunk| {
                node.take(chunk);
                if node.lines.is_full() { Err("enough".into()) } else { Ok(()) }
            }));
        let mut rewriter = HtmlRewriter::new(settings, |_: &[u8]| {});
        // The text read before an error is used.
        let _ = rewriter.write(html.as_bytes()).and_then(|()| rewriter.end());
    }
}

/// One run of text between tags, which comes in pieces.
struct TextNode<'n> {
    html: &'n str,
    lines: &'n mut Lines,
    text: String,
    start: usize,
    /// Where the last visible text ended.
    end: usize,
}

impl TextNode<'_> {
    fn take(&mut self, chunk: &TextChunk<'_>) {
        if !matches!(chunk.text_type(), TextType::Data | TextType::RCData | TextType::CDataSection)
        {
            return;
        }
        let at = chunk.source_location().bytes();
        if self.text.is_empty() {
            self.start = at.start;
        }
        self.text.push_str(chunk.as_str());
        if chunk.last_in_text_node() {
            let between = self.html.get(self.end..self.start).unwrap_or_default();
            let gap = gap_of(between);
            self.lines.push(&decode_entities(&self.text, TextContext::Text), gap);
            self.text.clear();
            self.end = at.end;
        }
    }
}

/// Whether the tags between two texts separate them for a reader.
fn gap_of(between: &str) -> Gap {
    let bytes = between.as_bytes();
    let parts = |at: usize| {
        let name = &bytes[at + 1..];
        let name = name.strip_prefix(b"/").unwrap_or(name);
        let length = name.iter().take_while(|b| b.is_ascii_alphanumeric()).count();
        length > 0 && !is_inline(&name[..length])
    };
    if memchr::memchr_iter(b'<', bytes).any(parts) { Gap::Block } else { Gap::None }
}

/// Elements that do not interrupt a line.
pub(crate) fn is_inline(name: &[u8]) -> bool {
    const INLINE: [&str; 33] = [
        "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn",
        "em", "font", "i", "ins", "kbd", "label", "mark", "nobr", "q", "rb", "ruby", "s", "samp",
        "small", "span", "strike", "strong", "sub", "sup", "tt", "u",
    ];
    const MORE: [&str; 6] = ["var", "wbr", "time", "blink", "tspan", "output"];
    INLINE.iter().chain(&MORE).any(|inline| name.eq_ignore_ascii_case(inline.as_bytes()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn html(body: &str) -> String {
        visible_text(ContentKind::Html, Some("text/html; charset=utf-8"), body.as_bytes(), 10_000)
    }

    #[test]
    fn readers_see_text_without_scripts_and_styles() {
        assert_eq!(
            html(
                "<html><head><title>Rings &amp; trees</title><style>p { color: red }</style>\
                 <script>var x = '<p>no</p>'</script></head><body><!-- no --><h1>One\n  ring</h1>\
                 <p>for <b>every</b> y<i>ea</i>r.<br>Two&nbsp;lines<noscript>no</noscript></p>\
                 <table><tr><td>a<td>b</table>"
            ),
            "Rings & trees\nOne ring\nfor every year.\nTwo lines\na\nb"
        );
        assert_eq!(html("plain &lt;b&gt;"), "plain <b>");
        assert_eq!(html(""), "");
    }

    #[test]
    fn the_text_is_cut_at_a_character() {
        let cut = visible_text(
            ContentKind::Html,
            Some("text/html; charset=utf-8"),
            "<p>年輪年輪".as_bytes(),
            7,
        );
        assert_eq!(cut, "年輪");
        let long = "word ".repeat(100_000);
        assert!(html(&long).len() <= 10_000);
    }

    #[test]
    fn other_kinds_have_their_own_text() {
        let text = |kind, body: &str| visible_text(kind, None, body.as_bytes(), 100);
        assert_eq!(text(ContentKind::Text, " a  b \n\n c"), "a b\nc");
        assert_eq!(text(ContentKind::JavaScript, "alert(1)"), "");
        assert_eq!(text(ContentKind::Svg, "<svg><text>a</text></svg>"), "a");
        let jis = b"<p>\x1b$BG/NX\x1b(B";
        assert_eq!(visible_text(ContentKind::Html, None, jis, 100), "年輪");
    }

    proptest! {
        #[test]
        fn any_bytes_have_text_within_the_limit(
            body in prop::collection::vec(any::<u8>(), 0..300), max in 0_usize..50
        ) {
            for kind in [ContentKind::Html, ContentKind::Text, ContentKind::Xml] {
                prop_assert!(visible_text(kind, None, &body, max).len() <= max);
            }
        }
    }
}
