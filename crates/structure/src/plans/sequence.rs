//! One plan after another: first C, then what B has beyond it.

use crate::round::{PageRef, RoundPlan, Seen, Skipped, Step};

/// Runs a plan to its end, then what a second one adds to it.
pub struct ThenPlan {
    plans: [Box<dyn RoundPlan>; 2],
    asked: std::collections::BTreeSet<PageRef>,
    current: usize,
}

impl ThenPlan {
    /// `first`, and then what `second` has beyond it.
    #[must_use]
    pub fn new(first: Box<dyn RoundPlan>, second: Box<dyn RoundPlan>) -> Self {
        Self { plans: [first, second], asked: std::collections::BTreeSet::new(), current: 0 }
    }
}

impl RoundPlan for ThenPlan {
    fn next(&mut self) -> Step {
        loop {
            match self.plans[self.current].next() {
                Step::Visit(page) if !self.asked.insert(page) => {}
                Step::Done if self.current == 0 => self.current = 1,
                step => return step,
            }
        }
    }

    fn seen(&mut self, page: PageRef, seen: Seen) {
        self.asked.insert(page);
        for plan in &mut self.plans {
            plan.seen(page, seen);
        }
    }

    fn skipped(&self, page: PageRef) -> Skipped {
        if self.asked.contains(&page) { Skipped::No } else { self.plans[1].skipped(page) }
    }
}
