//! Answers a query by looking at every block of every version: slow, and right by its simplicity.
//! The index is judged by it.

use std::collections::BTreeMap;

use nenrin_archive::Archive;
use nenrin_extract::{PageBlock, PageText};
use nenrin_state::PageFilter;

use crate::{
    SearchError,
    history::{Slot, SlotSet, Span},
    language::Language,
    matching::BlockKind,
    page_kind::PageKind,
    query::{Leaf, Query},
    reading,
    units::Units,
};

/// A page with the text of all its versions.
pub struct ScannedPage {
    url: String,
    kind: PageKind,
    language: Language,
    /// The time of each version.
    pub slots: Vec<Slot>,
    /// The different blocks, and in which versions each was.
    blocks: Vec<(PageBlock, Units, Vec<bool>)>,
}

/// Reads every page with text, with all its versions.
pub fn scan(archive: &Archive, look: &mut dyn FnMut(ScannedPage)) -> Result<(), SearchError> {
    let mut after = None;
    loop {
        let pages = archive.state().pages(PageFilter { site: None, after, limit: 500 })?;
        let Some(last) = pages.last() else { return Ok(()) };
        after = Some(last.id);
        for page in pages {
            let (rows, slots) = reading::versions(archive, &page.url)?;
            let texts: Result<Vec<_>, _> =
                rows.iter().map(|row| reading::text(archive, &page.url, row)).collect();
            let texts = texts?;
            let kind = texts.iter().rev().find_map(|(kind, _)| *kind);
            if let Some(kind) = kind {
                let texts = texts.into_iter().map(|(_, text)| text).collect();
                look(ScannedPage::new(page.url.shown(), kind, slots, texts));
            }
        }
    }
}

impl ScannedPage {
    fn new(url: String, kind: PageKind, slots: Vec<Slot>, texts: Vec<PageText>) -> Self {
        let language = texts.last().map(Language::of).unwrap_or_default();
        let mut blocks: BTreeMap<PageBlock, Vec<bool>> = BTreeMap::new();
        for (at, text) in texts.into_iter().enumerate() {
            for block in text.blocks {
                blocks.entry(block).or_insert_with(|| vec![false; slots.len()])[at] = true;
            }
        }
        let with_units = |(block, there): (PageBlock, Vec<bool>)| {
            let units = Units::of(&block.text);
            (block, units, there)
        };
        Self { url, kind, language, slots, blocks: blocks.into_iter().map(with_units).collect() }
    }

    /// Its address as people read it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The texts of its different blocks.
    pub fn texts(&self) -> impl ExactSizeIterator<Item = &str> {
        self.blocks.iter().map(|(block, ..)| block.text.as_str())
    }

    /// In which versions a leaf is on the page.
    fn versions_with(&self, leaf: &Leaf, significant: bool) -> Vec<bool> {
        let everywhere = leaf.is_in(BlockKind::Url, self.language, &Units::of(&self.url));
        let mut with = vec![everywhere; self.slots.len()];
        for (block, units, there) in &self.blocks {
            if !leaf.is_in(BlockKind::Text(block.kind), self.language, units) {
                continue;
            }
            for at in 0..there.len() {
                // It came with the version from which on it was there without a break.
                let came = (0..at).rev().take_while(|at| there[*at]).last().unwrap_or(at);
                with[at] |= there[at] && !(significant && self.slots[came].is_noise);
            }
        }
        with
    }

    /// When the page answers the query; whether its site does is the caller's question.
    pub fn spans(&self, query: &Query) -> Vec<Span> {
        if !query.filters.takes_page(self.kind, self.language) {
            return Vec::new();
        }
        let mut answers: Vec<bool> = self.slots.iter().map(|slot| slot.is_readable).collect();
        for clause in &query.clauses {
            let mut any = vec![false; answers.len()];
            for leaf in &clause.any {
                let with = self.versions_with(leaf, query.filters.is_significant);
                any.iter_mut().zip(with).for_each(|(any, with)| *any |= with);
            }
            answers.iter_mut().zip(any).for_each(|(all, any)| *all &= any != clause.is_excluded);
        }
        let set = SlotSet::from_fn(answers.len(), |at| answers[at]);
        set.spans(&self.slots).into_iter().filter(|span| query.filters.takes(span)).collect()
    }
}
