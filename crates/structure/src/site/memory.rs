//! What is stored about a site between rounds: the order of its pages, their last eight rounds,
//! beliefs.

use crate::auto::Beliefs;

const MAGIC: [u8; 4] = *b"nsm1";

/// Rounds remembered for each page, so that people can see what changed together.
pub(crate) const ROUNDS_KEPT: u32 = u8::BITS;

/// The pages in the order of their indices in the graph, with a bit for each of the last rounds,
/// the newest lowest: whether the page was seen, and whether it had changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SiteMemory {
    pub(crate) keys: Vec<i64>,
    pub(crate) seen: Vec<u8>,
    pub(crate) changed: Vec<u8>,
    /// Rounds that chose their pages so far.
    pub(crate) rounds: u32,
}

impl SiteMemory {
    pub(crate) fn grow(&mut self, new: Vec<i64>) {
        self.keys.extend(new);
        self.seen.resize(self.keys.len(), 0);
        self.changed.resize(self.keys.len(), 0);
    }

    pub(crate) fn begin_round(&mut self) {
        self.rounds = self.rounds.saturating_add(1);
        for bits in self.seen.iter_mut().chain(&mut self.changed) {
            *bits <<= 1;
        }
    }

    pub(crate) fn saw(&mut self, page: usize, changed: bool) {
        if let (Some(seen), Some(was)) = (self.seen.get_mut(page), self.changed.get_mut(page)) {
            *seen |= 1;
            *was |= u8::from(changed);
        }
    }

    /// As bytes: the number of pages and rounds, ten bytes for each page, then the beliefs.
    pub(crate) fn written(&self, beliefs: &Beliefs) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend((self.keys.len() as u32).to_le_bytes());
        bytes.extend(self.rounds.to_le_bytes());
        bytes.extend(self.keys.iter().flat_map(|key| key.to_le_bytes()));
        bytes.extend(&self.seen);
        bytes.extend(&self.changed);
        bytes.extend(beliefs.to_bytes());
        bytes
    }

    /// Reads what [`written`](Self::written) wrote; `None` if it is anything else.
    pub(crate) fn read(bytes: &[u8]) -> Option<(Self, Beliefs)> {
        let (head, rest) = bytes.split_first_chunk::<12>()?;
        let [m0, m1, m2, m3, p0, p1, p2, p3, r0, r1, r2, r3] = *head;
        let pages = u32::from_le_bytes([p0, p1, p2, p3]) as usize;
        if [m0, m1, m2, m3] != MAGIC {
            return None;
        }
        let (keys, rest) = rest.split_at_checked(pages.checked_mul(8)?)?;
        let (seen, rest) = rest.split_at_checked(pages)?;
        let (changed, rest) = rest.split_at_checked(pages)?;
        let beliefs = Beliefs::from_bytes(rest, "the site").ok()?;
        let keys = keys.chunks_exact(8).map(|key| {
            let mut number = [0; 8];
            number.copy_from_slice(key);
            i64::from_le_bytes(number)
        });
        let memory = Self {
            keys: keys.collect(),
            seen: seen.to_vec(),
            changed: changed.to_vec(),
            rounds: u32::from_le_bytes([r0, r1, r2, r3]),
        };
        let mut distinct = memory.keys.clone();
        distinct.sort_unstable();
        distinct.dedup();
        (distinct.len() == pages).then_some((memory, beliefs))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::auto::AutoOptions;

    fn memory() -> SiteMemory {
        let mut memory = SiteMemory::default();
        memory.grow(vec![5, -3, 9]);
        memory.begin_round();
        memory.saw(1, true);
        memory.saw(2, false);
        memory
    }

    #[test]
    fn memory_comes_back_as_it_was() {
        let beliefs = Beliefs::new(&AutoOptions::default());
        let (read, believed) = SiteMemory::read(&memory().written(&beliefs)).unwrap();
        assert_eq!((read, believed), (memory(), beliefs));
    }

    #[test]
    fn a_page_named_twice_makes_a_memory_unreadable() {
        let mut twice = memory();
        twice.keys[0] = 9;
        assert!(SiteMemory::read(&twice.written(&Beliefs::new(&AutoOptions::default()))).is_none());
    }

    proptest! {
        #[test]
        fn damaged_memory_never_panics(at in 0usize..500, value: u8, cut in 0usize..500) {
            let mut bytes = memory().written(&Beliefs::new(&AutoOptions::default()));
            let at = at % bytes.len();
            bytes[at] = value;
            bytes.truncate(bytes.len() - cut % bytes.len());
            if let Some((memory, _)) = SiteMemory::read(&bytes) {
                prop_assert_eq!(memory.seen.len(), memory.keys.len());
            }
        }
    }
}
