//! Rough counts of directories and names too small to be worth a node.

/// Counters; collisions only make a group known a little sooner than it deserves.
const START_COUNTERS: usize = 1 << 12;
const MAX_COUNTERS: usize = 1 << 30;

/// About one byte per page that was met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sketch {
    pub(crate) counters: Vec<u8>,
    pub(crate) added: u64,
}

impl Sketch {
    pub(crate) fn new() -> Self {
        Self { counters: vec![0; START_COUNTERS], added: 0 }
    }

    /// Counts one more and returns how many there were, this one included.
    pub(crate) fn add(&mut self, key: u64) -> u32 {
        if self.added >= self.counters.len() as u64 && self.counters.len() < MAX_COUNTERS {
            // Each counter is copied to both positions its keys may fall into: counts stay upper
            // bounds.
            self.counters.extend_from_within(..);
        }
        self.added += 1;
        let at = (key as usize) & (self.counters.len() - 1);
        self.counters[at] = self.counters[at].saturating_add(1);
        u32::from(self.counters[at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_never_too_low_and_survive_growth() {
        let mut sketch = Sketch::new();
        let key = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for n in [7; 3].into_iter().chain(100..20_000) {
            sketch.add(key(n));
        }
        assert!(sketch.counters.len() > START_COUNTERS);
        assert!(sketch.add(key(7)) >= 4);
        let rare = (30_000..31_000).filter(|&n| sketch.clone().add(key(n)) <= 6).count();
        assert!(rare > 700, "{rare} of 1,000 new keys are seen as rare");
    }
}
