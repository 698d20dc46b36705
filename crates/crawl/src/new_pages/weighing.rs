//! The importance that the state has of each page, and for which pages it is to be committed again.
//!
//! A page's importance is committed with every visit. Links found later change it without one: the
//! first pages of a site look like all others when they are collected. So with every page collected a
//! few others are looked at in turn, and where the order has quite another estimate by now it is
//! committed.

use nenrin_order::PageIndex;
use nenrin_state::{Change, Nth};

/// Pages looked at for each page collected.
const LOOKS: usize = 16;
/// Looks at once, so that no step takes long.
pub(crate) const LOOKS_MAX: usize = 4_096;
/// Pages committed at once.
const COMMITTED_TOGETHER: usize = 64;
/// Pages committed at the end, at most.
const COMMITTED_LAST: usize = 20_000;
/// In place of an importance: the state has none of the page.
const NONE: u8 = u8::MAX;
/// Eighths of a doubling by which an importance must have changed: half as much again.
const CHANGED: u8 = 4;

/// How far the state has the importance of the pages.
#[derive(Debug, Default)]
pub(super) struct Weighing {
    /// For each page the importance that the state has, in eighths of a doubling; 0 if this process
    /// does not know.
    committed: Vec<u8>,
    /// The page looked at next.
    next: u32,
    looks: usize,
    /// Discovery numbers and percentages to be committed.
    changed: Vec<(Nth, u32)>,
}

impl Weighing {
    /// A page was collected.
    pub(super) fn collected(&mut self) {
        self.looks = (self.looks + LOOKS).min(LOOKS_MAX);
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.committed.capacity() + self.changed.capacity() * size_of::<(Nth, u32)>()
    }

    /// The importance of a page, in percent, is committed with a visit.
    pub(super) fn weighed(&mut self, page: PageIndex, percent: u32) {
        self.set(page, eighths(percent));
    }

    /// A page was collected without a visit of ours: the state has no importance of it.
    pub(super) fn unweighed(&mut self, page: PageIndex) {
        if self.committed.get(page.0 as usize).is_none_or(|&committed| committed == 0) {
            self.set(page, NONE);
        }
    }

    /// Looks at as many pages as were earned. `importance` is that of a collected page, in percent.
    /// Returns what is to be committed, when it is worth a commit.
    pub(super) fn look_again(
        &mut self,
        known: u32,
        importance: impl Fn(PageIndex) -> Option<u32>,
    ) -> Option<Change> {
        for _ in 0..std::mem::take(&mut self.looks) {
            self.look(known, &importance);
        }
        if self.changed.len() < COMMITTED_TOGETHER {
            return None;
        }
        self.take_changed()
    }

    /// Before an end: looks at every page once, or at some of them. Returns what is to be committed.
    pub(super) fn look_at_all(
        &mut self,
        looks_max: usize,
        known: u32,
        importance: impl Fn(PageIndex) -> Option<u32>,
    ) -> Option<Change> {
        for _ in 0..looks_max.min(known as usize) {
            if self.changed.len() >= COMMITTED_LAST {
                break;
            }
            self.look(known, &importance);
        }
        self.take_changed()
    }

    fn take_changed(&mut self) -> Option<Change> {
        let changed = std::mem::take(&mut self.changed);
        (!changed.is_empty()).then_some(Change::Weighed(changed))
    }

    /// Looks at the next page, and notes it if its importance is to be committed.
    fn look(&mut self, known: u32, importance: &impl Fn(PageIndex) -> Option<u32>) {
        if known == 0 {
            return;
        }
        let page = PageIndex(self.next % known);
        self.next = page.0 + 1;
        let Some(percent) = importance(page) else { return };
        let now = eighths(percent);
        let committed = self.committed.get(page.0 as usize).copied().unwrap_or(0);
        if committed == 0 {
            // An earlier process committed it.
            self.set(page, now);
        } else if committed == NONE || now.abs_diff(committed) >= CHANGED {
            self.set(page, now);
            self.changed.push((Nth(page.0 + 1), percent));
        }
    }

    fn set(&mut self, page: PageIndex, eighths: u8) {
        let place = page.0 as usize;
        if self.committed.len() <= place {
            let room = place + 1 + place / 8 - self.committed.len();
            self.committed.reserve_exact(room);
            self.committed.resize(place + 1, 0);
        }
        self.committed[place] = eighths;
    }
}

/// An importance in eighths of a doubling, from 1 on.
fn eighths(percent: u32) -> u8 {
    // 10^9, the most that there is, is below the 30th doubling.
    (f64::from(percent.max(1)).log2() * 8.0) as u8 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_importance_is_counted_in_eighths_of_a_doubling() {
        assert_eq!([0, 1, 2, 100, 150, 1_000_000_000].map(eighths), [1, 1, 9, 54, 58, 240]);
    }
}
