use std::collections::VecDeque;

use crate::queues::{ServerQueues, by_queues};
use crate::{CrawlOrder, HandOn, NewPage, PageIndex};

/// The note of a page that was collected.
const COLLECTED: u32 = 0;

/// Incremental PageRank with depth limit 1 (paper 003, DL1), in f64: each collected page adds 1 to
/// its score and divides the score among its targets, and no further.
#[derive(Debug, Default)]
pub(crate) struct DepthLimit1 {
    queues: ServerQueues<f64, f64>,
    additions: u64,
}

impl DepthLimit1 {
    fn give(&mut self, targets: &[PageIndex], share: f64) {
        self.queues.touch(targets);
        for target in targets {
            self.queues.raise(*target, |score| {
                *score += share;
                *score
            });
        }
        self.additions += targets.len() as u64;
    }
}

impl CrawlOrder for DepthLimit1 {
    by_queues!();

    fn discover(&mut self, page: &NewPage) -> PageIndex {
        self.queues.insert(page.server, 0.0, 0.0)
    }

    fn collected(&mut self, page: PageIndex, targets: &[PageIndex], links: usize) {
        self.queues.remove(page);
        let score = self.queues.data_mut(page);
        *score += 1.0;
        let share = *score / links as f64;
        self.give(targets, share);
    }

    fn collected_again(&mut self, page: PageIndex, new_targets: &[PageIndex], links: usize) {
        let share = self.queues.data(page) / links.max(1) as f64;
        self.give(new_targets, share);
    }

    fn score(&self, page: PageIndex) -> f64 {
        *self.queues.data(page)
    }

    fn additions(&self) -> u64 {
        self.additions
    }
}

impl HandOn for DepthLimit1 {
    fn amount(&self, page: PageIndex, again: bool) -> Option<f64> {
        Some(self.queues.data(page) + if again { 0.0 } else { 1.0 })
    }

    fn receive(&mut self, page: PageIndex, share: f64) {
        self.give(&[page], share);
    }
}

/// How far a share of score goes on beyond the direct targets of the page just collected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum CutOff {
    /// PL: breadth-first until this many further pages with links handed on.
    Pages(usize),
    /// VR: on from a page while the share is at least this many times the score that the page had.
    ValueRatio(f64),
    /// AR: on from a page once more than this part of its score has not been handed on.
    AccumulatedRatio(f64),
}

/// Incremental PageRank that goes on beyond the direct targets (paper 003: PL, VR, AR), in f64,
/// as published: without damping.
#[derive(Debug)]
pub(crate) struct IncrementalPageRank {
    cut_off: CutOff,
    queues: ServerQueues<f64, f64>,
    /// AR: score that a collected page received and has not handed on. PL: score received in this
    /// event.
    pending: Vec<f64>,
    /// Pages whose turn to hand on is still to come, first come first served. VR: with the share
    /// that each received.
    waiting: VecDeque<(PageIndex, f64)>,
    /// Whether a page is in `waiting` (AR) or was seen in this event (PL).
    is_marked: Vec<bool>,
    /// PL: pages whose mark and `pending` the next event resets.
    seen: Vec<PageIndex>,
    /// PL: how many pages may still hand on in this event.
    hand_ons_left: usize,
    additions: u64,
}

impl IncrementalPageRank {
    pub(crate) fn new(cut_off: CutOff) -> Self {
        Self {
            cut_off,
            queues: ServerQueues::default(),
            pending: Vec::new(),
            waiting: VecDeque::new(),
            is_marked: Vec::new(),
            seen: Vec::new(),
            hand_ons_left: 0,
            additions: 0,
        }
    }

    fn is_collected(&self, page: PageIndex) -> bool {
        self.queues.note(page) == Some(COLLECTED)
    }

    fn add(&mut self, target: PageIndex, share: f64) -> f64 {
        self.queues.raise(target, |score| {
            *score += share;
            *score
        });
        self.additions += 1;
        *self.queues.data(target)
    }

    /// Adds a share to a target and decides whether the target hands on in turn.
    fn give(&mut self, target: PageIndex, share: f64, is_direct: bool) {
        match self.cut_off {
            CutOff::Pages(_) => {
                self.add(target, share);
                self.pending[target.0 as usize] += share;
                if !std::mem::replace(&mut self.is_marked[target.0 as usize], true) {
                    self.seen.push(target);
                    self.waiting.push_back((target, 0.0));
                }
            }
            CutOff::ValueRatio(ratio) => {
                let goes_on = share / self.queues.data(target) >= ratio;
                if is_direct || goes_on {
                    self.add(target, share);
                }
                if goes_on && self.is_collected(target) {
                    self.waiting.push_back((target, share));
                }
            }
            CutOff::AccumulatedRatio(ratio) => {
                let score = self.add(target, share);
                if self.is_collected(target) {
                    let pending = &mut self.pending[target.0 as usize];
                    *pending += share;
                    let is_marked = &mut self.is_marked[target.0 as usize];
                    if *pending / score > ratio && !std::mem::replace(is_marked, true) {
                        self.waiting.push_back((target, 0.0));
                    }
                }
            }
        }
    }

    fn start_event(&mut self) {
        if let CutOff::Pages(limit) = self.cut_off {
            self.waiting.clear();
            for page in self.seen.drain(..) {
                self.is_marked[page.0 as usize] = false;
                self.pending[page.0 as usize] = 0.0;
            }
            self.hand_ons_left = limit;
        }
    }

    /// The amount that the first waiting page hands on.
    fn take_amount(&mut self, page: PageIndex, share: f64, has_links: bool) -> f64 {
        let index = page.0 as usize;
        match self.cut_off {
            CutOff::ValueRatio(_) => share,
            CutOff::Pages(_) => {
                self.hand_ons_left -= usize::from(has_links);
                self.pending[index]
            }
            CutOff::AccumulatedRatio(_) => {
                self.is_marked[index] = false;
                std::mem::take(&mut self.pending[index])
            }
        }
    }
}

impl CrawlOrder for IncrementalPageRank {
    by_queues!();

    fn discover(&mut self, page: &NewPage) -> PageIndex {
        self.pending.push(0.0);
        self.is_marked.push(false);
        self.queues.insert(page.server, 0.0, 0.0)
    }

    fn collected(&mut self, page: PageIndex, targets: &[PageIndex], _links: usize) {
        self.queues.remove(page);
        self.queues.set_note(page, COLLECTED);
        self.start_event();
        let score = self.queues.data_mut(page);
        *score += 1.0;
        let share = *score / targets.len() as f64;
        for target in targets {
            self.give(*target, share, true);
        }
    }

    fn collected_again(&mut self, page: PageIndex, new_targets: &[PageIndex], links: usize) {
        let share = self.queues.data(page) / links.max(1) as f64;
        for target in new_targets {
            self.add(*target, share);
        }
    }

    fn score(&self, page: PageIndex) -> f64 {
        *self.queues.data(page)
    }

    fn additions(&self) -> u64 {
        self.additions
    }
}

impl HandOn for IncrementalPageRank {
    fn next_hand_on(&mut self) -> Option<PageIndex> {
        if self.hand_ons_left == 0 && matches!(self.cut_off, CutOff::Pages(_)) {
            return None;
        }
        while let Some((page, _)) = self.waiting.front().copied() {
            if self.is_collected(page) {
                return Some(page);
            }
            self.waiting.pop_front();
        }
        None
    }

    fn hand_on(&mut self, page: PageIndex, targets: &[PageIndex], _links: usize) -> f64 {
        let Some((first, share)) = self.waiting.pop_front() else { return 0.0 };
        assert_eq!(first, page, "pages hand on in the order in which they were named");
        let amount = self.take_amount(page, share, !targets.is_empty());
        let share = amount / targets.len() as f64;
        for target in targets {
            self.give(*target, share, false);
        }
        0.0
    }
}
