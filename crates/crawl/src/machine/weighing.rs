//! What the state was told of the pages' importance, and which pages it is to be told of again.
//!
//! A page's importance is told with every visit. Links found later change it without one: the first
//! pages of a site look like all others when they are collected. So with every page collected a few
//! others are looked at in turn, and those of which the order thinks quite otherwise by now are told.

use nenrin_order::PageIndex;
use nenrin_state::Change;

use super::{Crawl, ordering::Ordering};
use crate::Command;

/// Pages looked at for each page collected.
const LOOKS: usize = 16;
/// Looks at once, so that no step takes long.
pub(super) const LOOKS_MAX: usize = 4_096;
/// Pages told at once.
const TOLD_TOGETHER: usize = 64;
/// Pages told at the end, at most.
const TOLD_LAST: usize = 20_000;
/// Eighths of a doubling by which an importance must have changed: half as much again.
const CHANGED: u8 = 4;

/// How far the state has been told.
#[derive(Debug, Default)]
pub(super) struct Weighing {
    /// For each page the importance that the state has, in eighths of a doubling; 0 if this process
    /// does not know.
    told: Vec<u8>,
    /// The page looked at next.
    next: u32,
    looks: usize,
    /// Places and percentages to be told.
    changed: Vec<(u32, u32)>,
}

impl Weighing {
    /// A page was collected.
    pub(super) fn collected(&mut self) {
        self.looks = (self.looks + LOOKS).min(LOOKS_MAX);
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.told.capacity() + self.changed.capacity() * size_of::<(u32, u32)>()
    }

    fn set_told(&mut self, page: PageIndex, eighths: u8) {
        let place = page.0 as usize;
        if self.told.len() <= place {
            let room = place + 1 + place / 8 - self.told.len();
            self.told.reserve_exact(room);
            self.told.resize(place + 1, 0);
        }
        self.told[place] = eighths;
    }

    fn told(&self, page: PageIndex) -> u8 {
        self.told.get(page.0 as usize).copied().unwrap_or(0)
    }
}

/// An importance in eighths of a doubling, from 1 on.
fn eighths(percent: u32) -> u8 {
    // 10^9, the most that is told, is below the 30th doubling.
    (f64::from(percent.max(1)).log2() * 8.0) as u8 + 1
}

impl Ordering {
    /// How important the order thinks a page, in percent of the mean of all known pages.
    fn importance_percent(&self, page: PageIndex) -> Option<u32> {
        let importance = self.order.importance(page)?;
        Some((importance * 100.0).round().clamp(1.0, 1e9) as u32)
    }

    /// Looks at the next page, and notes it if the state is to be told of it.
    fn look(&mut self) {
        let known = self.known();
        if known == 0 {
            return;
        }
        let page = PageIndex(self.weighing.next % known);
        self.weighing.next = page.0 + 1;
        if !self.is_collected(page) {
            return;
        }
        let Some(percent) = self.importance_percent(page) else { return };
        let (now, told) = (eighths(percent), self.weighing.told(page));
        if told == 0 {
            // An earlier process told it.
            self.weighing.set_told(page, now);
        } else if now.abs_diff(told) >= CHANGED {
            self.weighing.set_told(page, now);
            self.weighing.changed.push((page.0 + 1, percent));
        }
    }
}

impl Crawl {
    /// How important the crawl order thinks a page that is being visited.
    pub(super) fn weigh(&mut self, nth: u32) -> Option<u32> {
        let page = self.ordering.index(nth)?;
        let percent = self.ordering.importance_percent(page)?;
        self.ordering.weighing.set_told(page, eighths(percent));
        Some(percent)
    }

    /// Looks at as many pages as were earned, and tells the state when it is worth a commit.
    pub(super) fn weigh_again(&mut self, out: &mut Vec<Command>) {
        let ordering = &mut self.ordering;
        for _ in 0..std::mem::take(&mut ordering.weighing.looks) {
            ordering.look();
        }
        if ordering.weighing.changed.len() >= TOLD_TOGETHER {
            self.tell_weights(out);
        }
    }

    /// Before an end: looks at every page once, or at some of them, and tells what was noted.
    pub(super) fn weigh_all(&mut self, looks_max: usize, out: &mut Vec<Command>) {
        let ordering = &mut self.ordering;
        for _ in 0..looks_max.min(ordering.known() as usize) {
            if ordering.weighing.changed.len() >= TOLD_LAST {
                break;
            }
            ordering.look();
        }
        self.tell_weights(out);
    }

    fn tell_weights(&mut self, out: &mut Vec<Command>) {
        let changed = std::mem::take(&mut self.ordering.weighing.changed);
        if !changed.is_empty() {
            out.push(Command::Commit { ticket: None, change: Change::Weighed(changed) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_importance_is_told_in_eighths_of_a_doubling() {
        assert_eq!([0, 1, 2, 100, 150, 1_000_000_000].map(eighths), [1, 1, 9, 54, 58, 240]);
    }
}
