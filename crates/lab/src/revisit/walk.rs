//! One page's year: visits in slots, and what they see.

use nenrin_revisit::{Observation, PageHistory, RevisitPolicy};

use crate::updates::LoggedPage;

/// What the visits to one page saw.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tally {
    /// Visits, the first included.
    pub visits: u32,
    /// Numbers of the updates whose version was got, ascending.
    pub found: Vec<u32>,
    /// Slots from each update to the first visit after it, summed; to the page's end if none came.
    pub delay_slots: u64,
    /// Updates up to the last visit whose version was not got.
    pub missed: u32,
}

/// A page being visited.
#[derive(Debug, Clone)]
pub struct Walk<'a> {
    page: &'a LoggedPage,
    /// Updates up to the last visit.
    passed: usize,
    last_slot: Option<u32>,
    tally: Tally,
}

impl<'a> Walk<'a> {
    /// A page before its first visit.
    pub fn new(page: &'a LoggedPage) -> Self {
        Self { page, passed: 0, last_slot: None, tally: Tally::default() }
    }

    /// Visits the page: sees all updates up to `slot` as one change, dated by the newest.
    pub fn visit(&mut self, slot: u32, resolution_s: i64) -> Observation {
        self.tally.visits += 1;
        if self.last_slot.replace(slot).is_none() {
            return Observation::changed();
        }
        let before = self.passed;
        while let Some(update) = self.page.updates.get(self.passed).filter(|&&u| u <= slot) {
            self.tally.delay_slots += u64::from(slot - update);
            self.passed += 1;
        }
        if self.passed == before {
            return Observation::same();
        }
        self.tally.found.push(self.passed as u32 - 1);
        let newest = self.page.updates[self.passed - 1];
        Observation::changed().with_last_modified(Some(end_s(newest, resolution_s)))
    }

    /// The tally, with the delays of updates that no visit followed.
    pub fn finish(mut self) -> Tally {
        self.tally.missed = (self.passed - self.tally.found.len()) as u32;
        for update in &self.page.updates[self.passed..] {
            self.tally.delay_slots += u64::from(self.page.end_slot.saturating_sub(*update));
        }
        self.tally
    }
}

/// The end of a slot, when its visit takes place: it sees all updates of the slot.
pub(super) fn end_s(slot: u32, resolution_s: i64) -> i64 {
    (i64::from(slot) + 1) * resolution_s
}

/// Follows one page with a policy that needs no neighbours.
pub(super) fn alone(page: &LoggedPage, policy: &mut dyn RevisitPolicy, resolution_s: i64) -> Tally {
    let mut walk = Walk::new(page);
    let mut history = PageHistory::default();
    let mut slot = page.first_slot;
    while slot < page.end_slot {
        let seen = walk.visit(slot, resolution_s);
        let next = policy.next(end_s(slot, resolution_s), &mut history, seen);
        slot = u32::try_from(next.due_s / resolution_s - 1).unwrap_or(u32::MAX);
    }
    walk.finish()
}
