//! Fragments that pages share, and what a round has shown about them. A menu that was replaced on
//! one page was probably replaced on the other pages that have it. A page that changed but kept all
//! its shared fragments says little about the others.

use std::collections::BTreeMap;

/// A fragment is shared if at least this many pages have it.
const HOLDERS_MIN: usize = 3;

/// The number of a set of shared fragments; pages with the same number share the same fragments.
pub(crate) const NOTHING_SHARED: u32 = 0;

/// What a round has shown about the fragments that a page shares, judged by the fragment that
/// speaks most for a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FragmentState {
    /// Nothing yet, or the page shares nothing.
    Unseen,
    /// Pages that have them did not change.
    Kept,
    /// Pages that have them changed, and kept them: their changes were their own.
    KeptByChanged,
    /// Some pages lost one, but most kept it.
    LostBySome,
    /// One page lost one, and at most one kept it.
    LostOnce,
    /// Several pages lost one, and no more than that kept it.
    Lost,
}

/// States that affect a page: all but [`FragmentState::Unseen`].
pub(crate) const FRAGMENT_STATES: usize = 5;

impl FragmentState {
    /// The number of the state's effect, if it has one.
    pub(crate) fn effect(self) -> Option<usize> {
        (self as usize).checked_sub(1)
    }

    fn of(count: Count) -> Self {
        let Count { seen, changed, lost } = count;
        match lost {
            _ if seen == 0 => Self::Unseen,
            0 if changed == 0 => Self::Kept,
            0 => Self::KeptByChanged,
            _ if lost * 2 < seen => Self::LostBySome,
            1 => Self::LostOnce,
            _ => Self::Lost,
        }
    }
}

/// Pages that had a fragment: how many were seen in this round, how many of these had changed, and
/// how many of these had lost it.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    seen: u32,
    changed: u32,
    lost: u32,
}

/// Prior means of the states' effects.
pub(crate) const FRAGMENT_PRIOR_MEANS: [f64; FRAGMENT_STATES] = [0.0, -0.3, 0.2, 0.6, 1.0];

/// The fragments that pages of one server share.
#[derive(Debug, Clone)]
pub(crate) struct SharedFragments {
    /// Hashes of the shared fragments, ascending.
    hashes: Vec<u32>,
    counts: Vec<Count>,
    /// What pages share: lists of positions in `hashes`. The first is empty.
    sets: Vec<Vec<u32>>,
    states: Vec<FragmentState>,
    /// The sets that each fragment is in.
    sets_of: Vec<Vec<u32>>,
}

impl SharedFragments {
    /// Finds the shared fragments from those of each page; also returns for every page the number
    /// of the set it shares.
    pub(crate) fn new(pages: &[Vec<u32>]) -> (Self, Vec<u32>) {
        let hashes = shared_hashes(pages);
        let mut numbers: BTreeMap<Vec<u32>, u32> = BTreeMap::from([(Vec::new(), NOTHING_SHARED)]);
        let number = |fragments: &Vec<u32>| {
            let position = |hash: &u32| hashes.binary_search(hash).ok().map(|at| at as u32);
            let shared: Vec<u32> = fragments.iter().filter_map(position).collect();
            let next = numbers.len() as u32;
            *numbers.entry(shared).or_insert(next)
        };
        let of_pages = pages.iter().map(number).collect();
        let mut sets = vec![Vec::new(); numbers.len()];
        let mut sets_of = vec![Vec::new(); hashes.len()];
        for (set, number) in numbers {
            set.iter().for_each(|&fragment| sets_of[fragment as usize].push(number));
            sets[number as usize] = set;
        }
        let fragments = Self {
            counts: vec![Count::default(); hashes.len()],
            states: vec![FragmentState::Unseen; sets.len()],
            hashes,
            sets,
            sets_of,
        };
        (fragments, of_pages)
    }

    pub(crate) fn state(&self, set: u32) -> FragmentState {
        self.states[set as usize]
    }

    /// Positions of those fragments that are shared.
    fn shared_of(&self, fragments: &[u32]) -> Vec<u32> {
        let position = |hash: &u32| self.hashes.binary_search(hash).ok().map(|at| at as u32);
        fragments.iter().filter_map(position).collect()
    }

    /// Records that a page with `set` was seen and has lost these fragments. Returns the sets whose
    /// state changed, with their states before.
    pub(crate) fn saw(
        &mut self,
        set: u32,
        changed: bool,
        lost: &[u32],
    ) -> Vec<(u32, FragmentState)> {
        let mut positions = self.sets[set as usize].clone();
        let is_lost = self.shared_of(lost);
        positions.extend(&is_lost);
        positions.sort_unstable();
        positions.dedup();
        let mut moved: Vec<u32> = Vec::new();
        for position in positions {
            let count = &mut self.counts[position as usize];
            let before = FragmentState::of(*count);
            count.seen += 1;
            count.changed += u32::from(changed);
            count.lost += u32::from(is_lost.contains(&position));
            if before != FragmentState::of(*count) {
                moved.extend(&self.sets_of[position as usize]);
            }
        }
        moved.sort_unstable();
        moved.dedup();
        moved
            .into_iter()
            .filter_map(|set| {
                let now = self.judged(set);
                let before = std::mem::replace(&mut self.states[set as usize], now);
                (before != now).then_some((set, before))
            })
            .collect()
    }

    /// The state of the fragment that speaks most for a change.
    fn judged(&self, set: u32) -> FragmentState {
        let of_fragment = |&at: &u32| FragmentState::of(self.counts[at as usize]);
        self.sets[set as usize].iter().map(of_fragment).max().unwrap_or(FragmentState::Unseen)
    }
}

fn shared_hashes(pages: &[Vec<u32>]) -> Vec<u32> {
    let mut all: Vec<u32> = pages.iter().flatten().copied().collect();
    all.sort_unstable();
    let runs = all.chunk_by(|a, b| a == b);
    runs.filter(|run| run.len() >= HOLDERS_MIN).map(|run| run[0]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four pages with fragment 1, three of them with 2 as well, and a fragment of its own for
    /// each.
    fn fragments() -> (SharedFragments, Vec<u32>) {
        let pages = [vec![1, 2, 10], vec![1, 2, 11], vec![1, 2, 12], vec![1, 13], vec![14]];
        SharedFragments::new(&pages)
    }

    #[test]
    fn pages_are_numbered_by_what_they_share() {
        let (shared, of_pages) = fragments();
        assert_eq!(shared.hashes, [1, 2]);
        assert_eq!(of_pages[0], of_pages[2]);
        assert_ne!(of_pages[0], of_pages[3]);
        assert_eq!(of_pages[4], NOTHING_SHARED);
        assert!(of_pages.iter().all(|&set| shared.state(set) == FragmentState::Unseen));
    }

    #[test]
    fn the_fragment_that_speaks_most_for_a_change_decides() {
        let (mut shared, of_pages) = fragments();
        let (menu, plain) = (of_pages[0], of_pages[3]);
        let mut after = |set, changed, lost: &[u32]| {
            shared.saw(set, changed, lost);
            [menu, plain].map(|set| shared.state(set))
        };
        use FragmentState::{Kept, KeptByChanged, Lost, LostBySome, LostOnce};
        assert_eq!(after(plain, false, &[]), [Kept, Kept]);
        assert_eq!(after(plain, true, &[13]), [KeptByChanged, KeptByChanged]);
        assert_eq!(after(menu, true, &[2, 10]), [LostOnce, KeptByChanged]);
        assert_eq!(after(menu, true, &[2]), [Lost, KeptByChanged]);
        for _ in 0..3 {
            after(menu, false, &[]);
        }
        assert_eq!(after(menu, false, &[]), [LostBySome, KeptByChanged]);
    }

    #[test]
    fn a_page_of_which_nothing_was_known_shows_what_it_lost() {
        let (mut shared, of_pages) = fragments();
        let moved = shared.saw(NOTHING_SHARED, true, &[2, 99]);
        assert_eq!(moved, [(of_pages[0], FragmentState::Unseen)]);
        assert_eq!(shared.state(of_pages[0]), FragmentState::LostOnce);
    }
}
