//! What a page was in the course of time: slots between its versions, and which blocks of text were
//! there in which slots.

use std::collections::BTreeMap;

use nenrin_extract::{PageText, TextKind};
use nenrin_state::VersionRow;

/// A time without end.
pub const STILL: i64 = i64::MAX;

/// The time in which one version was the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// When the version was received.
    pub from_s: i64,
    /// When the next one was received, or the page was seen to be gone; [`STILL`] if neither was.
    pub until_s: i64,
    /// The store's number of the version.
    pub version: u64,
    /// Whether the change to it was noise.
    pub is_noise: bool,
    /// Whether it is a page with text that can be searched.
    pub is_readable: bool,
}

/// The slots of a page, by its versions (oldest first) and the times at which it was seen to be
/// gone.
pub(crate) fn slots(versions: &[VersionRow], gone_s: &[i64]) -> Vec<Slot> {
    let slot = |(at, row): (usize, &VersionRow)| {
        let next = versions.get(at + 1).map_or(STILL, |next| next.at_s);
        let gone = gone_s.iter().copied().filter(|gone| *gone > row.at_s).min();
        Slot {
            from_s: row.at_s,
            until_s: next.min(gone.unwrap_or(STILL)),
            version: row.version.0,
            is_noise: !row.is_significant(),
            is_readable: (200..300).contains(&row.status),
        }
    };
    versions.iter().enumerate().map(slot).collect()
}

/// A stretch of time in which a page answers a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// From when on.
    pub from_s: i64,
    /// Until when, exclusive; [`STILL`] if it is still so.
    pub until_s: i64,
    /// The first and the last slot.
    pub slots: (usize, usize),
}

/// A set of slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SlotSet(Vec<bool>);

impl SlotSet {
    pub(crate) fn none(count: usize) -> Self {
        Self(vec![false; count])
    }

    pub(crate) fn from_fn(count: usize, is_in: impl FnMut(usize) -> bool) -> Self {
        Self((0..count).map(is_in).collect())
    }

    pub(crate) fn add(&mut self, from: usize, until: usize) {
        let until = until.min(self.0.len());
        if let Some(slots) = self.0.get_mut(from..until) {
            slots.fill(true);
        }
    }

    pub(crate) fn and(&mut self, other: &Self, is_excluded: bool) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a &= *b != is_excluded);
    }

    /// The stretches of time without a gap.
    pub(crate) fn spans(&self, slots: &[Slot]) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        for (at, slot) in slots.iter().enumerate() {
            if !self.0.get(at).copied().unwrap_or(false) || slot.until_s <= slot.from_s {
                continue;
            }
            match spans.last_mut() {
                Some(last) if last.until_s == slot.from_s => {
                    last.until_s = slot.until_s;
                    last.slots.1 = at;
                }
                _ => {
                    spans.push(Span { from_s: slot.from_s, until_s: slot.until_s, slots: (at, at) })
                }
            }
        }
        spans
    }
}

/// A run of slots that has not ended.
pub(crate) const OPEN: u32 = u32::MAX;

/// Which blocks of text a page had in which slots. Blocks are numbered in the order in which they
/// were first seen, from 1 on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BlockRuns {
    /// For each block its runs: first slot, and the slot after the last.
    pub(crate) runs: Vec<Vec<(u32, u32)>>,
    /// The blocks of the newest version, in the order of the page.
    pub(crate) current: Vec<u32>,
    /// Hashes of blocks that are not in the newest version, as far as they are remembered.
    pub(crate) vanished: BTreeMap<u64, u32>,
}

/// What makes two blocks the same.
pub(crate) type BlockKey<'p> = (TextKind, &'p str);

/// The different blocks of a page, in order.
pub(crate) fn distinct(page: &PageText) -> Vec<BlockKey<'_>> {
    let mut seen = std::collections::BTreeSet::new();
    let keys = page.blocks.iter().map(|block| (block.kind, block.text.as_str()));
    keys.filter(|key| seen.insert(*key)).collect()
}

impl BlockRuns {
    /// A version follows. `before` is the text of the newest version so far, if there is one; new
    /// blocks go to `found` with their numbers. Returns false, and changes nothing, if `before` is
    /// not what was there.
    pub(crate) fn add(
        &mut self,
        slot: u32,
        before: Option<&PageText>,
        page: &PageText,
        found: &mut dyn FnMut(u32, BlockKey<'_>),
    ) -> bool {
        let old = before.map(distinct).unwrap_or_default();
        if old.len() != self.current.len() {
            return false;
        }
        let mut left: BTreeMap<BlockKey<'_>, u32> =
            old.into_iter().zip(self.current.iter().copied()).collect();
        let mut current = Vec::new();
        for key in distinct(page) {
            let number = match left.remove(&key) {
                Some(number) => number,
                None => match self.vanished.remove(&stored_hash(key)) {
                    Some(number) => {
                        self.begin(number, slot);
                        number
                    }
                    None => {
                        self.runs.push(vec![(slot, OPEN)]);
                        let number = self.runs.len() as u32;
                        found(number, key);
                        number
                    }
                },
            };
            current.push(number);
        }
        for (key, number) in left {
            self.vanished.insert(stored_hash(key), number);
            if let Some((_, end)) = self.of_mut(number).and_then(|runs| runs.last_mut()) {
                *end = slot;
            }
        }
        self.current = current;
        true
    }

    /// Remembers only blocks that vanished with the version of this slot: one that comes back with the
    /// next version keeps its number, one that comes back later gets a new one.
    pub(crate) fn forget_long_vanished(&mut self, slot: u32) {
        let runs = &self.runs;
        self.vanished.retain(|_, number| {
            let runs = (*number as usize).checked_sub(1).and_then(|at| runs.get(at));
            runs.and_then(|runs| runs.last()).is_some_and(|(_, end)| *end >= slot)
        });
    }

    fn begin(&mut self, number: u32, slot: u32) {
        if let Some(runs) = self.of_mut(number) {
            runs.push((slot, OPEN));
        }
    }

    fn of_mut(&mut self, number: u32) -> Option<&mut Vec<(u32, u32)>> {
        self.runs.get_mut((number as usize).checked_sub(1)?)
    }

    /// The runs of a block.
    pub(crate) fn of(&self, number: u32) -> &[(u32, u32)] {
        (number as usize).checked_sub(1).and_then(|at| self.runs.get(at)).map_or(&[], Vec::as_slice)
    }
}

/// So many bits are stored of the hash of a block that vanished.
pub(crate) const HASH_BITS: u32 = 48;

fn stored_hash(key: BlockKey<'_>) -> u64 {
    hash(key) >> (u64::BITS - HASH_BITS)
}

/// FNV-1a; parts of it are stored.
pub(crate) fn hash((kind, text): BlockKey<'_>) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = text.bytes().fold(step(0xcbf2_9ce4_8422_2325, kind as u8), step);
    // The low bits of a short text are poor.
    (hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

#[cfg(test)]
mod tests {
    use nenrin_extract::PageBlock;

    use super::*;

    fn version(at_s: i64, status: u16) -> VersionRow {
        VersionRow {
            at_s,
            version: nenrin_state::VersionId(at_s as u64),
            status,
            mime: "text/html".into(),
            bytes: 1,
            changed_permille: None,
        }
    }

    fn page(texts: &[&str]) -> PageText {
        let block = |text: &&str| PageBlock { kind: TextKind::Body, text: (*text).to_owned() };
        PageText { lang: None, blocks: texts.iter().map(block).collect() }
    }

    #[test]
    fn a_slot_ends_with_the_next_version_or_when_the_page_is_gone() {
        let versions = [version(10, 200), version(20, 200), version(50, 404)];
        let found = slots(&versions, &[5, 30, 40]);
        let times: Vec<(i64, i64)> = found.iter().map(|s| (s.from_s, s.until_s)).collect();
        assert_eq!(times, [(10, 20), (20, 30), (50, STILL)]);
        assert!(found[0].is_readable && !found[2].is_readable);
        let all = SlotSet::from_fn(3, |_| true);
        let spans: Vec<_> =
            all.spans(&found).iter().map(|s| (s.from_s, s.until_s, s.slots)).collect();
        assert_eq!(spans, [(10, 30, (0, 1)), (50, STILL, (2, 2))]);
    }

    #[test]
    fn blocks_keep_their_numbers_when_they_go_and_come_back() {
        let versions =
            [page(&["a", "b", "a"]), page(&["b", "c"]), page(&["a", "c"]), page(&["c", "a"])];
        let mut runs = BlockRuns::default();
        let mut new = Vec::new();
        for (slot, text) in versions.iter().enumerate() {
            let before = slot.checked_sub(1).map(|at| &versions[at]);
            let mut found = |number: u32, key: BlockKey<'_>| new.push((number, key.1.to_owned()));
            assert!(runs.add(slot as u32, before, text, &mut found));
        }
        assert_eq!(new, [(1, "a".into()), (2, "b".into()), (3, "c".into())]);
        assert_eq!(runs.of(1), [(0, 1), (2, OPEN)]);
        assert_eq!(runs.of(2), [(0, 2)]);
        assert_eq!(runs.of(3), [(1, OPEN)]);
        assert_eq!(runs.current, [3, 1]);
        let b = stored_hash((TextKind::Body, "b"));
        runs.forget_long_vanished(2);
        assert!(runs.vanished.contains_key(&b));
        runs.forget_long_vanished(3);
        assert!(!runs.vanished.contains_key(&b));
        assert!(!runs.add(4, Some(&page(&["other"])), &page(&[]), &mut |_, _| {}));
    }
}
