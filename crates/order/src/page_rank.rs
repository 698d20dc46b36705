use crate::queues::{ServerQueues, by_queues};
use crate::{CrawlOrder, HandOn, NewPage, PageIndex};

const DAMPING: f64 = 0.85;
const JUMP: f64 = 1.0 - DAMPING;

/// PageRank on the collected graph, one sweep from the last values after every so many pages; the
/// queue is reordered only then (Cho et al. 1998, as compared in paper 003).
#[derive(Debug)]
pub(crate) struct SweptPageRank {
    pages_between_sweeps: u64,
    pages_until_sweep: u64,
    /// Queues and the last rank of each page.
    queues: ServerQueues<f64, f64>,
    /// Rank that the running sweep has handed to each page so far.
    incoming: Vec<f64>,
    /// Collected pages in the order of collection: the order in which a sweep hands on.
    collected: Vec<PageIndex>,
    /// Position of the running sweep in `collected`; `None` between sweeps.
    sweep: Option<usize>,
    additions: u64,
}

impl SweptPageRank {
    pub(crate) fn new(pages_between_sweeps: u64) -> Self {
        let pages_between_sweeps = pages_between_sweeps.max(1);
        Self {
            pages_between_sweeps,
            pages_until_sweep: pages_between_sweeps,
            queues: ServerQueues::default(),
            incoming: Vec::new(),
            collected: Vec::new(),
            sweep: None,
            additions: 0,
        }
    }

    fn finish_sweep(&mut self) {
        for (page, incoming) in (0..).map(PageIndex).zip(&mut self.incoming) {
            *self.queues.data_mut(page) = JUMP + DAMPING * std::mem::take(incoming);
        }
        self.queues.reprioritise_all(|rank, _| *rank);
        self.sweep = None;
    }
}

impl CrawlOrder for SweptPageRank {
    by_queues!();

    fn discover(&mut self, page: &NewPage) -> PageIndex {
        self.incoming.push(0.0);
        self.queues.insert(page.server, JUMP, JUMP)
    }

    fn collected(&mut self, page: PageIndex, _targets: &[PageIndex], _links: usize) {
        self.queues.remove(page);
        self.collected.push(page);
        self.pages_until_sweep -= 1;
        if self.pages_until_sweep == 0 {
            self.pages_until_sweep = self.pages_between_sweeps;
            self.sweep = Some(0);
        }
    }

    fn score(&self, page: PageIndex) -> f64 {
        *self.queues.data(page)
    }

    fn additions(&self) -> u64 {
        self.additions
    }
}

impl HandOn for SweptPageRank {
    fn next_hand_on(&mut self) -> Option<PageIndex> {
        let next = self.collected.get(self.sweep?).copied();
        if next.is_none() {
            self.finish_sweep();
        }
        next
    }

    fn hand_on(&mut self, page: PageIndex, targets: &[PageIndex], _links: usize) -> f64 {
        let Some(done) = &mut self.sweep else { return 0.0 };
        *done += 1;
        let share = self.queues.data(page) / targets.len() as f64;
        for target in targets {
            self.incoming[target.0 as usize] += share;
        }
        self.additions += targets.len() as u64;
        0.0
    }
}
