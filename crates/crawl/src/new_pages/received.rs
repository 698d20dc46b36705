//! Shares of scores that come from the pages of other partitions.

use std::collections::{BTreeMap, BTreeSet};

use nenrin_state::{Nth, Received};

/// What pages got from other partitions, and how much of it the order was given. The state has the
/// truth: the order is given what it lacks, so that nothing is lost or counted twice, whatever was
/// kept of the order.
#[derive(Debug, Default)]
pub(super) struct ReceivedScores {
    pages: BTreeMap<Nth, Scores>,
    /// Pages for which the order was not given everything yet.
    owed: BTreeSet<Nth>,
}

/// In millionths.
#[derive(Debug, Clone, Copy, Default)]
struct Scores {
    /// What the state has.
    all: u64,
    given: u64,
    /// What was given when the order was last kept.
    kept: u64,
}

impl ReceivedScores {
    /// The state has this much of a page.
    pub(super) fn set(&mut self, nth: Nth, micros: u64) {
        let scores = self.pages.entry(nth).or_default();
        scores.all = scores.all.max(micros);
        if scores.all > scores.given {
            self.owed.insert(nth);
        }
    }

    /// What the state has, with what is in the order as it was kept; nothing of it, if the order was
    /// not restored.
    pub(super) fn load(&mut self, received: &[Received], is_restored: bool) {
        for &Received { nth, micros, kept } in received {
            let scores = self.pages.entry(nth).or_default();
            scores.given = if is_restored { kept } else { 0 };
            scores.kept = kept;
            self.set(nth, micros);
        }
    }

    /// The order starts over: it lacks everything.
    pub(super) fn start_over(&mut self) {
        for (nth, scores) in &mut self.pages {
            scores.given = 0;
            if scores.all > 0 {
                self.owed.insert(*nth);
            }
        }
    }

    /// Takes what the order lacks of the pages that it knows.
    pub(super) fn take(&mut self, is_known: impl Fn(Nth) -> bool) -> Vec<(Nth, f64)> {
        let known: Vec<Nth> = self.owed.iter().copied().filter(|nth| is_known(*nth)).collect();
        let mut taken = Vec::with_capacity(known.len());
        for nth in known {
            self.owed.remove(&nth);
            let Some(scores) = self.pages.get_mut(&nth) else { continue };
            let micros = scores.all - std::mem::replace(&mut scores.given, scores.all);
            taken.push((nth, micros as f64 / 1e6));
        }
        taken
    }

    /// The order is kept: the pages of which it has another amount than when it was last kept.
    pub(super) fn keep(&mut self) -> Vec<(Nth, u64)> {
        let changed = self.pages.iter_mut().filter(|(_, scores)| scores.kept != scores.given);
        changed
            .map(|(nth, scores)| {
                scores.kept = scores.given;
                (*nth, scores.given)
            })
            .collect()
    }

    /// All that the order was given.
    pub(super) fn given_micros(&self) -> u64 {
        self.pages.values().map(|scores| scores.given).sum()
    }

    /// Whether the order lacks nothing.
    pub(super) fn is_settled(&self) -> bool {
        self.owed.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Nth = Nth(7);

    #[test]
    fn what_came_is_given_once_whatever_was_kept() {
        let mut scores = ReceivedScores::default();
        scores.set(PAGE, 500_000);
        assert_eq!(scores.take(|_| false), [], "the order does not know the page yet");
        assert_eq!(scores.take(|_| true), [(PAGE, 0.5)]);
        assert_eq!((scores.take(|_| true), scores.given_micros()), (vec![], 500_000));
        assert_eq!(scores.keep(), [(PAGE, 500_000)]);
        assert_eq!(scores.keep(), []);

        // Another process goes on with what was kept, and more had come.
        let received = [Received { nth: PAGE, micros: 700_000, kept: 500_000 }];
        for (is_restored, lacking) in [(true, 0.2), (false, 0.7)] {
            let mut scores = ReceivedScores::default();
            // A commit may be reported before or after the load that saw it.
            scores.set(PAGE, 700_000);
            scores.load(&received, is_restored);
            scores.set(PAGE, 700_000);
            let given = scores.take(|_| true);
            assert_eq!(given.len(), 1);
            assert!((given[0].1 - lacking).abs() < 1e-9, "{given:?}");
            assert!(scores.is_settled() && scores.given_micros() == 700_000);
            scores.start_over();
            assert_eq!(scores.take(|_| true).len(), 1);
        }
    }
}
