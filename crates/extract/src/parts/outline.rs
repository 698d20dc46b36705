//! The elements and texts of a page in their order, with the nesting that a browser would see as far
//! as it can be known from the tags alone. Bounded by the number of segments of a page.

use std::borrow::Cow;

use crate::{
    entities::{TextContext, decode_entities},
    significance::segment::{Segment, SegmentKind, attributes, markup_segments, tag_name},
};

/// Elements nested deeper belong to the one at this depth.
const MAX_DEPTH: usize = 256;
/// Different tag names among the children of one element that are counted.
const MAX_NAMES: usize = 64;

const VOID: [&str; 14] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr",
];
const INLINE: [&str; 29] = [
    "a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i",
    "ins", "kbd", "label", "mark", "q", "s", "samp", "small", "span", "strong", "sub", "sup",
    "time", "u", "var",
];

/// An element of a page.
pub(super) struct Element<'t> {
    /// As written.
    pub(super) name: &'t str,
    tag: &'t str,
    pub(super) parent: Option<usize>,
    pub(super) nth_child: u32,
    pub(super) nth_of_type: u32,
    /// Bytes of the source, from its start tag to the end of its end tag.
    pub(super) start: usize,
    pub(super) end: usize,
}

impl<'t> Element<'t> {
    pub(super) fn attribute(&self, name: &str) -> Option<Cow<'t, str>> {
        let mut all = attributes(self.tag);
        let (_, value) = all.find(|(key, _)| key.eq_ignore_ascii_case(name))?;
        Some(decode_entities(value, TextContext::Attribute))
    }

    pub(super) fn has_class(&self, class: &str) -> bool {
        self.attribute("class").is_some_and(|all| all.split_ascii_whitespace().any(|c| c == class))
    }

    pub(super) fn is_inline(&self) -> bool {
        is_one_of(&INLINE, self.name)
    }
}

/// A run of text between tags.
pub(super) struct Piece<'t> {
    pub(super) at: usize,
    /// The innermost element that has it.
    pub(super) within: Option<usize>,
    text: &'t str,
    /// Whether a reader sees a space or a new block before it, and a space after it.
    space_before: bool,
    space_after: bool,
}

/// A page without its scripts, styles and comments.
pub(super) struct Outline<'t> {
    pub(super) elements: Vec<Element<'t>>,
    pub(super) pieces: Vec<Piece<'t>>,
}

impl<'t> Outline<'t> {
    pub(super) fn read(html: &'t str) -> Self {
        let mut builder = Builder {
            html,
            outline: Self { elements: Vec::new(), pieces: Vec::new() },
            open: Vec::new(),
            top: Counts::default(),
            is_new_block: true,
        };
        for segment in markup_segments(html) {
            builder.take(&segment);
        }
        builder.close_to(0, html.len());
        builder.outline
    }

    /// What a reader sees of a part of the source: entities decoded, white space folded.
    pub(super) fn text(&self, start: usize, end: usize, max_bytes: usize) -> String {
        let from = self.pieces.partition_point(|piece| piece.at < start);
        let mut text = String::new();
        let mut gap = false;
        for piece in self.pieces[from..].iter().take_while(|piece| piece.at < end) {
            if text.len() >= max_bytes {
                break;
            }
            let decoded = decode_entities(piece.text, TextContext::Text);
            let is_apart = piece.space_before || decoded.starts_with(char::is_whitespace);
            if (gap || is_apart) && !text.is_empty() {
                text.push(' ');
            }
            for (n, word) in decoded.split_whitespace().enumerate() {
                text.push_str(if n > 0 { " " } else { "" });
                text.push_str(word);
            }
            gap = piece.space_after || decoded.ends_with(char::is_whitespace);
        }
        truncated(text, max_bytes)
    }
}

/// The text, at most so many bytes of it.
pub(super) fn truncated(mut text: String, max_bytes: usize) -> String {
    let end = (0..=max_bytes.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text.truncate(end.unwrap_or(0));
    text
}

#[derive(Default)]
struct Counts {
    children: u32,
    by_name: Vec<(String, u32)>,
}

impl Counts {
    fn next(&mut self, name: &str) -> (u32, u32) {
        self.children += 1;
        let is_same = |(known, _): &(String, u32)| known.eq_ignore_ascii_case(name);
        let known = self.by_name.iter().position(is_same);
        if known.is_none() && self.by_name.len() < MAX_NAMES {
            self.by_name.push((name.to_owned(), 0));
        }
        let place = known.unwrap_or(self.by_name.len() - 1);
        let (last, count) = &mut self.by_name[place];
        if !last.eq_ignore_ascii_case(name) {
            return (self.children, 0);
        }
        *count += 1;
        (self.children, *count)
    }
}

struct Builder<'t> {
    html: &'t str,
    outline: Outline<'t>,
    /// Elements that are not closed yet, with the number of their children.
    open: Vec<(usize, Counts)>,
    top: Counts,
    is_new_block: bool,
}

impl<'t> Builder<'t> {
    fn take(&mut self, segment: &Segment<'t>) {
        // Segments are parts of the page's own text.
        let at = (segment.text.as_ptr() as usize).saturating_sub(self.html.as_ptr() as usize);
        match segment.kind {
            SegmentKind::Text => self.text(at, segment.text),
            SegmentKind::Tag => self.tag(at, segment.text),
            SegmentKind::Script { .. } | SegmentKind::Style | SegmentKind::Comment => {}
        }
    }

    fn text(&mut self, at: usize, text: &'t str) {
        let (before, after) = (&self.html[..at], &self.html[at + text.len()..]);
        self.outline.pieces.push(Piece {
            at,
            within: self.open.last().map(|(element, _)| *element),
            text,
            space_before: self.is_new_block || before.ends_with(char::is_whitespace),
            space_after: after.starts_with(char::is_whitespace),
        });
        self.is_new_block = false;
    }

    fn tag(&mut self, at: usize, tag: &'t str) {
        let name = tag_name(tag);
        // White space alone is not a segment.
        self.is_new_block |= self.html[..at].ends_with(char::is_whitespace);
        if let Some(name) = name.strip_prefix('/') {
            self.is_new_block |= !is_one_of(&INLINE, name);
            if let Some(depth) = self.nearest(&[name], &[]) {
                self.close_to(depth, at + tag.len());
            }
            return;
        }
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return;
        }
        self.close_implied(name, at);
        self.is_new_block |= !is_one_of(&INLINE, name);
        let counts = self.open.last_mut().map_or(&mut self.top, |(_, counts)| counts);
        let (nth_child, nth_of_type) = counts.next(name);
        let parent = self.open.last().map(|(element, _)| *element);
        let end = at + tag.len();
        self.outline.elements.push(Element {
            name,
            tag,
            parent,
            nth_child,
            nth_of_type,
            start: at,
            end,
        });
        let has_content = !tag.ends_with("/>") && !is_one_of(&VOID, name);
        if has_content && self.open.len() < MAX_DEPTH {
            self.open.push((self.outline.elements.len() - 1, Counts::default()));
        }
    }

    /// The depth of the nearest open element of these names, unless one of the others is nearer.
    fn nearest(&self, names: &[&str], borders: &[&str]) -> Option<usize> {
        for (depth, (element, _)) in self.open.iter().enumerate().rev() {
            let name = self.outline.elements[*element].name;
            if is_one_of(names, name) {
                return Some(depth);
            }
            if is_one_of(borders, name) {
                return None;
            }
        }
        None
    }

    /// Closes what a start tag closes without an end tag being written.
    fn close_implied(&mut self, name: &str, at: usize) {
        let ended: Option<(&[&str], &[&str])> = match name.to_ascii_lowercase().as_str() {
            "li" => Some((&["li"], &["ul", "ol", "menu"])),
            "dt" | "dd" => Some((&["dt", "dd"], &["dl"])),
            "tr" | "tbody" | "tfoot" => Some((&["tr"], &["table"])),
            "td" | "th" => Some((&["td", "th"], &["tr", "table"])),
            "option" => Some((&["option"], &["select"])),
            name if is_one_of(&INLINE, name) || is_one_of(&VOID, name) => None,
            _ => {
                Some((&["p"], &["div", "section", "article", "td", "th", "li", "button", "table"]))
            }
        };
        if let Some((names, borders)) = ended
            && let Some(depth) = self.nearest(names, borders)
        {
            self.close_to(depth, at);
        }
    }

    fn close_to(&mut self, depth: usize, end: usize) {
        for (element, _) in self.open.drain(depth.min(self.open.len())..) {
            self.outline.elements[element].end = end;
        }
    }
}

fn is_one_of(names: &[&str], name: &str) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}
