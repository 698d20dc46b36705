//! The text of a body as blocks: a title, headings, paragraphs, cells, texts of images.

use std::borrow::Cow;

use serde_json::Value;

use crate::ContentKind;
use crate::charset::charset;
use crate::entities::{TextContext, decode_entities};
use crate::hash::stable_hash;
use crate::significance::{MAX_SEGMENTS, SegmentKind, attributes, markup_segments, tag_name};
use crate::text::is_inline;

/// The most blocks of one body.
pub const MAX_TEXT_BLOCKS: usize = 50_000;
/// A block that has grown to this size ends at the next good place.
const LONG_BLOCK_BYTES: usize = 1_500;
/// No block is longer than this.
const MAX_BLOCK_BYTES: usize = 8_000;
/// In a long block of lines, one line in this many ends it.
const LINES_PER_CUT: u64 = 4;
/// Longer JSON is not read: in memory it takes many times as much.
const MAX_JSON_BYTES: usize = 4 << 20;
/// Shorter strings in JSON are names and numbers, not sentences.
const MIN_DATA_CHARS: usize = 8;

/// What a block of text is in its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TextKind {
    /// The title of the page.
    Title,
    /// A heading, or the title of an entry of a feed.
    Heading,
    /// Text that readers see.
    Body,
    /// The text of an image, for those who do not see it.
    Alt,
    /// A description of the page, or text in the data that its scripts use.
    Data,
}

/// One block of text, white space folded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PageBlock {
    /// What it is.
    pub kind: TextKind,
    /// The text, never empty.
    pub text: String,
}

/// All text of a body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageText {
    /// The language that the page names, as written: `de-AT`.
    pub lang: Option<String>,
    /// The blocks in the order of the page.
    pub blocks: Vec<PageBlock>,
}

impl PageText {
    /// The title, if there is one.
    pub fn title(&self) -> Option<&str> {
        let is_title = |block: &&PageBlock| block.kind == TextKind::Title;
        self.blocks.iter().find(is_title).map(|block| block.text.as_str())
    }
}

/// The text blocks of a body, at most `max_bytes` of text. Kinds without text give none.
pub fn page_text(
    kind: ContentKind,
    content_type: Option<&str>,
    body: &[u8],
    max_bytes: usize,
) -> PageText {
    use ContentKind::{
        Css, Feed, Html, Image, JavaScript, Json, Other, Sitemap, Svg, Text, Xhtml, Xml,
    };
    let mut cutter = Cutter::new(max_bytes);
    match kind {
        Html | Xhtml | Xml => cutter.markup(&charset(content_type, body).decode(body).0),
        Feed => {
            cutter.is_feed = true;
            let text = charset(content_type, body).decode(body).0;
            match text.trim_start().starts_with('{') {
                true => cutter.json(&text),
                false => cutter.markup(&text),
            }
        }
        Text => cutter.lines(&charset(content_type, body).decode(body).0),
        Json => cutter.json(&charset(content_type, body).decode(body).0),
        Svg | Sitemap | Css | JavaScript | Image | Other => {}
    }
    cutter.finish()
}

struct Cutter {
    page: PageText,
    left_bytes: usize,
    is_feed: bool,
    /// The block that is being read.
    open: String,
    pending_space: bool,
    in_title: bool,
    has_title: bool,
    heading: bool,
    /// How many `pre` elements are open.
    preformatted: u32,
    /// The element whose content is not shown, while it is open.
    skipped: Option<String>,
}

impl Cutter {
    fn new(max_bytes: usize) -> Self {
        Self {
            page: PageText::default(),
            left_bytes: max_bytes,
            is_feed: false,
            open: String::new(),
            pending_space: false,
            in_title: false,
            has_title: false,
            heading: false,
            preformatted: 0,
            skipped: None,
        }
    }

    fn is_full(&self) -> bool {
        self.left_bytes == 0 || self.page.blocks.len() >= MAX_TEXT_BLOCKS
    }

    fn finish(mut self) -> PageText {
        self.close();
        self.page
    }

    /// Ends the open block.
    fn close(&mut self) {
        self.pending_space = false;
        if self.open.is_empty() {
            return;
        }
        let text = std::mem::take(&mut self.open);
        let kind = match () {
            () if self.in_title && !self.has_title => TextKind::Title,
            () if self.heading || (self.in_title && self.is_feed) => TextKind::Heading,
            () => TextKind::Body,
        };
        self.has_title |= kind == TextKind::Title;
        self.take(kind, text);
    }

    fn take(&mut self, kind: TextKind, mut text: String) {
        if self.is_full() || !text.chars().any(char::is_alphanumeric) {
            return;
        }
        if text.len() > self.left_bytes {
            text.truncate(floor(&text, self.left_bytes));
            self.left_bytes = 0;
        } else {
            self.left_bytes -= text.len();
        }
        if !text.is_empty() {
            self.page.blocks.push(PageBlock { kind, text });
        }
    }

    /// Adds text to the open block, white space folded.
    fn push(&mut self, text: &str) {
        for word in text.split_inclusive(char::is_whitespace) {
            if self.is_full() {
                return;
            }
            let bare = word.trim_end();
            if !bare.is_empty() {
                if self.open.len() >= LONG_BLOCK_BYTES && self.pending_space && self.ends_sentence()
                    || self.open.len() + bare.len() >= MAX_BLOCK_BYTES
                {
                    self.close();
                }
                if self.pending_space && !self.open.is_empty() {
                    self.open.push(' ');
                }
                self.push_long(bare);
                self.pending_space = false;
            }
            self.pending_space |= bare.len() < word.len();
        }
    }

    fn ends_sentence(&self) -> bool {
        self.open.ends_with(['.', '!', '?', '。', '！', '？', ':', ';'])
    }

    /// Text without white space may be longer than a block: Japanese, or nonsense.
    fn push_long(&mut self, mut text: &str) {
        while self.open.len() + text.len() >= MAX_BLOCK_BYTES {
            if self.is_full() {
                return;
            }
            let front = floor(text, MAX_BLOCK_BYTES - self.open.len().min(MAX_BLOCK_BYTES - 8));
            let end = text[..front].rfind('。').map_or(front, |at| at + '。'.len_utf8());
            self.open.push_str(&text[..end]);
            self.close();
            text = &text[end..];
        }
        self.open.push_str(text);
    }

    /// Text in which lines count: an empty line ends a block, and of a long block the content of a
    /// line decides whether it ends there, so that a change moves few ends.
    fn lines(&mut self, text: &str) {
        for line in text.split('\n') {
            if self.is_full() {
                return;
            }
            let bare = line.trim();
            if bare.is_empty() {
                self.close();
                continue;
            }
            self.pending_space = true;
            self.push(bare);
            let cuts = stable_hash(bare.bytes()).is_multiple_of(LINES_PER_CUT);
            if self.open.len() >= LONG_BLOCK_BYTES && cuts {
                self.close();
            }
        }
    }

    fn markup(&mut self, html: &str) {
        // What comes after so many is not cut at its tags.
        for segment in markup_segments(html).into_iter().take(MAX_SEGMENTS) {
            if self.is_full() {
                return;
            }
            match segment.kind {
                SegmentKind::Tag => {
                    // White space alone between two tags is no segment.
                    let start = segment.text.as_ptr() as usize - html.as_ptr() as usize;
                    self.pending_space |=
                        self.skipped.is_none() && html[..start].ends_with(char::is_whitespace);
                    self.tag(segment.text);
                }
                SegmentKind::Text if self.skipped.is_none() => self.text(html, segment.text),
                SegmentKind::Script { json: true } => {
                    self.close();
                    self.json(segment.text);
                }
                _ => {}
            }
        }
    }

    /// Text between tags. The segment has lost the white space around it.
    fn text(&mut self, html: &str, text: &str) {
        let start = text.as_ptr() as usize - html.as_ptr() as usize;
        let space = |c: Option<char>| c.is_some_and(char::is_whitespace);
        self.pending_space |= space(html[..start].chars().next_back());
        let after = space(html[start + text.len()..].chars().next());
        let inner = text.strip_prefix("<![CDATA[").map(|t| t.strip_suffix("]]>").unwrap_or(t));
        let text = match inner {
            Some(inner) => Cow::Borrowed(inner),
            None => decode_entities(text, TextContext::Text),
        };
        if self.is_feed && text.contains('<') {
            // An entry's content is a page of its own, quoted.
            self.close();
            let mut entry = Self::new(self.left_bytes);
            entry.markup(&text);
            for block in entry.finish().blocks {
                self.take(block.kind.max(TextKind::Heading), block.text);
            }
        } else if self.preformatted > 0 {
            self.lines(&text);
        } else {
            self.push(&text);
        }
        self.pending_space |= after;
    }

    fn tag(&mut self, tag: &str) {
        let name = tag_name(tag).to_ascii_lowercase();
        let (name, is_end) = match name.strip_prefix('/') {
            Some(name) => (name, true),
            None => (name.as_str(), false),
        };
        if let Some(skipped) = &self.skipped {
            if is_end && skipped == name {
                self.skipped = None;
            }
            return;
        }
        if !is_inline(name.as_bytes()) {
            self.close();
        }
        match name {
            "title" => self.in_title = !is_end,
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.heading = !is_end,
            "pre" if is_end => self.preformatted = self.preformatted.saturating_sub(1),
            "pre" => self.preformatted += 1,
            "noscript" | "template" | "iframe" if !is_end && !tag.ends_with("/>") => {
                self.skipped = Some(name.to_owned());
            }
            "body" if !is_end => self.in_title = false,
            "html" if !is_end => self.page.lang = attribute(tag, "lang"),
            "img" | "area" => self.take_attribute(tag, "alt", TextKind::Alt),
            "meta"
                if attribute(tag, "name")
                    .is_some_and(|n| n.eq_ignore_ascii_case("description")) =>
            {
                self.take_attribute(tag, "content", TextKind::Data);
            }
            _ => {}
        }
    }

    fn take_attribute(&mut self, tag: &str, name: &str, kind: TextKind) {
        if let Some(text) = attribute(tag, name) {
            let text = folded(&text);
            self.take(kind, text);
        }
    }

    /// The sentences among the strings of some JSON.
    fn json(&mut self, text: &str) {
        if text.len() > MAX_JSON_BYTES {
            return;
        }
        // It refuses what is nested deeply.
        let Ok(value) = serde_json::from_str::<Value>(text) else { return };
        self.value(&value);
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::String(text) if is_sentence(text) => {
                let plain = if text.contains('<') { without_tags(text) } else { folded(text) };
                for piece in pieces(&plain) {
                    self.take(TextKind::Data, piece.to_owned());
                }
            }
            Value::Array(values) => values.iter().for_each(|value| self.value(value)),
            Value::Object(fields) => fields.values().for_each(|value| self.value(value)),
            _ => {}
        }
    }
}

fn attribute(tag: &str, wanted: &str) -> Option<String> {
    let found = attributes(tag).find(|(name, _)| name.eq_ignore_ascii_case(wanted));
    let value = decode_entities(found?.1, TextContext::Attribute).trim().to_owned();
    Some(value).filter(|value| !value.is_empty())
}

fn folded(text: &str) -> String {
    let mut folded = String::new();
    for word in text.split_whitespace() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        folded.push_str(word);
    }
    folded.truncate(floor(&folded, 8 * MAX_BLOCK_BYTES));
    folded
}

fn without_tags(html: &str) -> String {
    let mut cutter = Cutter::new(8 * MAX_BLOCK_BYTES);
    cutter.markup(html);
    let texts: Vec<String> = cutter.finish().blocks.into_iter().map(|block| block.text).collect();
    texts.join(" ")
}

/// Whether a string in JSON is for readers: some words, or some letters without spaces between
/// words; not a link, a name or a number.
fn is_sentence(text: &str) -> bool {
    let letters = text.chars().filter(|c| c.is_alphabetic()).count();
    let has_words = text.contains(char::is_whitespace) || text.chars().any(|c| c >= '\u{2E80}');
    let is_link = text.starts_with("http") && !text.contains(char::is_whitespace);
    letters * 2 >= text.chars().count().min(MIN_DATA_CHARS * 2)
        && (letters >= MIN_DATA_CHARS || text.chars().any(|c| c >= '\u{2E80}'))
        && has_words
        && !is_link
}

/// A text in pieces no longer than a block.
fn pieces(mut text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    while !text.is_empty() {
        let front = floor(text, MAX_BLOCK_BYTES);
        let cut = match front < text.len() {
            true => text[..front].rfind(' ').map_or(front, |at| at + 1),
            false => front,
        };
        pieces.push(text[..cut].trim());
        text = &text[cut..];
    }
    pieces
}

/// The largest character boundary that is not beyond `at`.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn html(body: &str) -> Vec<(TextKind, String)> {
        let page = page_text(
            ContentKind::Html,
            Some("text/html; charset=utf-8"),
            body.as_bytes(),
            100_000,
        );
        page.blocks.into_iter().map(|block| (block.kind, block.text)).collect()
    }

    #[test]
    fn words_of_elements_in_a_row_stay_apart() {
        let found = html("<p><a>About</a> <a>us</a>\n<b> <i>and</i></b> y<i>o</i>u</p><p>end");
        let expected = ["About us and you", "end"];
        assert_eq!(found, expected.map(|text| (TextKind::Body, text.to_owned())));
    }

    #[test]
    fn a_page_is_title_headings_paragraphs_and_texts_of_images() {
        use TextKind::*;
        let page = "<html lang=de-AT><head><title>Rings &amp; trees</title>\
            <meta name=description content='All about rings'><style>p {}</style></head>\
            <body><h1>One\n <i>ring</i></h1><p>for <b>every</b> y<i>ea</i>r.<br>Two&nbsp;lines\
            <noscript>no</noscript></p><img alt='an oak' src=x><template>no</template>\
            <script type='application/ld+json'>{\"a\": [\"A whole sentence here\", \"x1\"]}</script>\
            <table><tr><td>a<td>b</table><svg><title>icon</title></svg>";
        let found = html(page);
        let expected = [
            (Title, "Rings & trees"),
            (Data, "All about rings"),
            (Heading, "One ring"),
            (Body, "for every year."),
            (Body, "Two lines"),
            (Alt, "an oak"),
            (Data, "A whole sentence here"),
            (Body, "a"),
            (Body, "b"),
            (Body, "icon"),
        ];
        assert_eq!(found, expected.map(|(kind, text)| (kind, text.to_owned())));
        let text = page_text(ContentKind::Html, None, page.as_bytes(), 1000);
        assert_eq!((text.lang.as_deref(), text.title()), (Some("de-AT"), Some("Rings & trees")));
    }

    #[test]
    fn lines_of_preformatted_text_are_one_block_up_to_an_empty_line() {
        let found = html("<pre>one two\nthree\n\nfour <a>five</a>\nsix</pre> seven");
        let texts: Vec<&str> = found.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["one two three", "four five six", "seven"]);
        let plain = page_text(ContentKind::Text, None, b"a b\nc\n\n d", 100);
        let texts: Vec<&str> = plain.blocks.iter().map(|b| b.text.as_str()).collect();
        assert_eq!(texts, ["a b c", "d"]);
    }

    #[test]
    fn the_content_of_a_feed_is_read_as_the_page_it_quotes() {
        let feed = "<rss><channel><title>Trees</title><item><title>Oak</title>\
            <description>&lt;p&gt;An oak&lt;/p&gt;&lt;p&gt;and more&lt;/p&gt;</description></item>\
            <item><title>Ash</title><description><![CDATA[<b>An ash</b>]]></description></item>";
        let page = page_text(ContentKind::Feed, None, feed.as_bytes(), 1000);
        let found: Vec<(TextKind, &str)> =
            page.blocks.iter().map(|b| (b.kind, b.text.as_str())).collect();
        use TextKind::*;
        assert_eq!(
            found,
            [
                (Title, "Trees"),
                (Heading, "Oak"),
                (Body, "An oak"),
                (Body, "and more"),
                (Heading, "Ash"),
                (Body, "An ash"),
            ]
        );
    }

    #[test]
    fn long_text_is_cut_and_everything_is_bounded() {
        let page = format!("<p>{}", "word ".repeat(10_000));
        let blocks = html(&page);
        assert!(blocks.iter().all(|(_, text)| text.len() <= MAX_BLOCK_BYTES));
        assert_eq!(blocks.iter().map(|(_, text)| text.split(' ').count()).sum::<usize>(), 10_000);
        let endless = format!("<p>{}", "年".repeat(20_000));
        let blocks = html(&endless);
        assert_eq!(blocks.iter().map(|(_, text)| text.chars().count()).sum::<usize>(), 20_000);
        let deep = "<div><p>x".repeat(100_000);
        assert!(html(&deep).len() <= MAX_TEXT_BLOCKS);
        let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(page_text(ContentKind::Json, None, nested.as_bytes(), 1000).blocks.is_empty());
    }

    #[test]
    fn a_changed_line_of_a_long_text_leaves_most_blocks_as_they_were() {
        let text = |changed: usize| {
            let line = |n: usize| {
                format!("line {n} of a text {}\n", if n == changed { "new" } else { "old" })
            };
            let text: String = (0..2000).map(line).collect();
            page_text(ContentKind::Text, None, text.as_bytes(), 1 << 20).blocks
        };
        let (old, new) = (text(9999), text(1000));
        let same = new.iter().filter(|block| old.contains(block)).count();
        assert!(new.len() > 15 && same + 2 >= new.len(), "{same} of {}", new.len());
    }

    proptest! {
        #[test]
        fn any_bytes_give_blocks_within_the_limit(
            body in "(<p>|<pre>|</pre>|<title>|</title>|<h1>|&lt;|<!\\[CDATA\\[|\\]\\]>|\n|\n\n| |<script type=json>|</script>|\\PC){0,40}",
            max in 0_usize..60
        ) {
            for kind in [ContentKind::Html, ContentKind::Text, ContentKind::Feed, ContentKind::Json] {
                let page = page_text(kind, None, body.as_bytes(), max);
                let bytes: usize = page.blocks.iter().map(|block| block.text.len()).sum();
                prop_assert!(bytes <= max);
                prop_assert!(page.blocks.iter().all(|block| !block.text.is_empty()));
            }
        }
    }
}
