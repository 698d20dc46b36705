//! The sentence that was found, with marks.

use std::ops::Range;

use nenrin_extract::{PageBlock, PageText, TextKind};
use serde::Serialize;

use crate::{
    language::Language,
    matching::BlockKind,
    query::{Leaf, Query},
    units::Units,
};

/// Characters in front of the first mark, and in all.
const BEFORE_CHARS: usize = 60;
const ALL_CHARS: usize = 240;
/// The most blocks that a snippet is made of.
const MAX_BLOCKS: usize = 2;
/// The most marks in a block.
const MAX_MARKS: usize = 50;

/// A piece of a snippet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Piece {
    /// The text.
    pub text: String,
    /// Whether it is what was searched for.
    pub is_match: bool,
}

/// The block of a page that shows best why it was found, cut around the words.
pub(crate) fn snippet(query: &Query, page: &PageText, language: Language) -> Vec<Piece> {
    let leaves: Vec<&Leaf> = query
        .clauses
        .iter()
        .filter(|clause| !clause.is_excluded)
        .flat_map(|clause| &clause.any)
        .collect();
    let mut left: Vec<bool> = vec![true; leaves.len()];
    let mut pieces = Vec::new();
    for _ in 0..MAX_BLOCKS {
        let Some((block, marks, shown)) = best(&leaves, &left, page, language) else { break };
        shown.into_iter().for_each(|at| left[at] = false);
        if !pieces.is_empty() {
            pieces.push(Piece { text: " … ".to_owned(), is_match: false });
        }
        pieces.extend(cut(&block.text, &marks));
    }
    if pieces.is_empty() {
        // Found by its address alone, or by the time: the page begins like this.
        let is_text = |block: &&PageBlock| block.kind == TextKind::Body && block.text.len() > 40;
        let first = page.blocks.iter().find(is_text).or(page.blocks.first());
        pieces = first.map_or_else(Vec::new, |block| cut(&block.text, &[]));
    }
    pieces
}

type Best<'p> = (&'p PageBlock, Vec<Range<usize>>, Vec<usize>);

/// The block with the most of the words that are left; text rather than the title, which is shown
/// anyway.
fn best<'p>(
    leaves: &[&Leaf],
    left: &[bool],
    page: &'p PageText,
    language: Language,
) -> Option<Best<'p>> {
    let mut best: Option<(u32, Best<'p>)> = None;
    let mut units = Units::default();
    for block in &page.blocks {
        units.read(&block.text);
        let kind = BlockKind::Text(block.kind);
        let is_in = |at: &usize| left[*at] && leaves[*at].is_in(kind, language, &units);
        let found: Vec<usize> = (0..leaves.len()).filter(is_in).collect();
        let is_text = matches!(block.kind, TextKind::Body | TextKind::Heading);
        let worth = found.len() as u32 * 2 + u32::from(is_text);
        if found.is_empty() || best.as_ref().is_some_and(|(most, _)| *most >= worth) {
            continue;
        }
        let mut marks: Vec<Range<usize>> = leaves
            .iter()
            .flat_map(|leaf| leaf.places(language, &units).take(MAX_MARKS))
            .filter_map(|place| {
                let (first, last) = (units.get(place.start)?, units.get(place.end - 1)?);
                Some(first.from as usize..last.to as usize)
            })
            .collect();
        marks.sort_by_key(|mark| (mark.start, mark.end));
        best = Some((worth, (block, marks, found)));
    }
    best.map(|(_, best)| best)
}

fn cut(text: &str, marks: &[Range<usize>]) -> Vec<Piece> {
    let first = marks.first().map_or(0, |mark| mark.start);
    let start = text[..first].char_indices().rev().nth(BEFORE_CHARS).map_or(0, |(at, _)| {
        // At the beginning of a word, if there is one.
        text[at..first].find(' ').map_or(at, |space| at + space + 1)
    });
    let end = text[start..].char_indices().nth(ALL_CHARS).map_or(text.len(), |(at, _)| start + at);
    let mut pieces = Vec::new();
    let mut put = |text: &str, is_match: bool| {
        if !text.is_empty() {
            pieces.push(Piece { text: text.to_owned(), is_match });
        }
    };
    if start > 0 {
        put("…", false);
    }
    let mut at = start;
    for mark in marks {
        let (from, to) = (mark.start.max(at), mark.end.min(end));
        if from < to {
            put(&text[at..from], false);
            put(&text[from..to], true);
            at = to;
        }
    }
    put(&text[at..end], false);
    if end < text.len() {
        put("…", false);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(query: &str, blocks: &[(TextKind, &str)]) -> String {
        let block =
            |(kind, text): &(TextKind, &str)| PageBlock { kind: *kind, text: (*text).to_owned() };
        let page = PageText { lang: None, blocks: blocks.iter().map(block).collect() };
        let pieces = snippet(&Query::parse(query).unwrap(), &page, Language::named("en").unwrap());
        let mark = |piece: &Piece| {
            if piece.is_match { format!("[{}]", piece.text) } else { piece.text.clone() }
        };
        pieces.iter().map(mark).collect()
    }

    #[test]
    fn the_sentence_that_was_found_is_shown_with_marks() {
        use TextKind::*;
        let page = [
            (Title, "Rings"),
            (Body, "Something else at first that is quite long, as texts are"),
            (Body, "Every tree has rings."),
            (Body, "Bark protects it."),
        ];
        assert_eq!(shown("ring", &page), "Every tree has [rings].");
        assert_eq!(shown("ring bark", &page), "Every tree has [rings]. … [Bark] protects it.");
        assert_eq!(shown("\"has rings\" -oak", &page), "Every tree [has rings].");
        assert!(shown("is:significant", &page).starts_with("Something else"));
        assert_eq!(shown("年輪", &[(Body, "木の年輪の色")]), "木の[年輪]の色");
        let long = format!("{}ring {}", "before ".repeat(50), "after ".repeat(90));
        let cut = shown("ring", &[(Body, &long)]);
        assert!(
            cut.starts_with("…before") && cut.ends_with('…') && cut.contains("[ring]"),
            "{cut}"
        );
    }
}
