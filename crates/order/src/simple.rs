//! Orders that ignore the scores of other pages: breadth-first, back links, omniscient.

use crate::queues::{Priority, ServerQueues, by_queues};
use crate::{CrawlOrder, HandOn, NewPage, PageIndex};

/// Breadth-first: pages in the order of discovery.
#[derive(Debug, Default)]
pub(crate) struct BreadthFirst {
    queues: ServerQueues<(), ()>,
}

/// Back-link count: how many collected pages link to a page; then fewer slashes, then the shorter
/// URL.
#[derive(Debug, Default)]
pub(crate) struct BackLinks {
    queues: ServerQueues<BackLinkCount, BackLinkCount>,
    additions: u64,
}

/// The true importance of each page.
#[derive(Debug, Default)]
pub(crate) struct Omniscient {
    queues: ServerQueues<f64, f64>,
}

#[derive(Clone, Copy, Debug)]
struct BackLinkCount {
    links: u32,
    slashes: u16,
    url_bytes: u16,
}

impl Priority for BackLinkCount {
    type Key = u128;

    fn key(self, page: u32) -> u128 {
        u128::from(self.links) << 64
            | u128::from(!self.slashes) << 48
            | u128::from(!self.url_bytes) << 32
            | u128::from(!page)
    }
}

impl CrawlOrder for BreadthFirst {
    by_queues!();

    fn discover(&mut self, page: &NewPage) -> PageIndex {
        self.queues.insert(page.server, (), ())
    }

    fn collected(&mut self, page: PageIndex, _targets: &[PageIndex], _links: usize) {
        self.queues.remove(page);
    }

    fn score(&self, page: PageIndex) -> f64 {
        -f64::from(page.0)
    }

    fn additions(&self) -> u64 {
        0
    }
}

impl HandOn for BreadthFirst {}

impl CrawlOrder for BackLinks {
    by_queues!();

    fn discover(&mut self, page: &NewPage) -> PageIndex {
        let count = BackLinkCount { links: 0, slashes: page.slashes, url_bytes: page.url_bytes };
        self.queues.insert(page.server, count, count)
    }

    fn collected(&mut self, page: PageIndex, targets: &[PageIndex], _links: usize) {
        self.queues.remove(page);
        for target in targets {
            self.queues.raise(*target, |count| {
                count.links += 1;
                *count
            });
        }
        self.additions += targets.len() as u64;
    }

    fn score(&self, page: PageIndex) -> f64 {
        f64::from(self.queues.data(page).links)
    }

    fn additions(&self) -> u64 {
        self.additions
    }
}

impl HandOn for BackLinks {}

impl CrawlOrder for Omniscient {
    by_queues!();

    fn discover(&mut self, page: &NewPage) -> PageIndex {
        self.queues.insert(page.server, page.importance, page.importance)
    }

    fn collected(&mut self, page: PageIndex, _targets: &[PageIndex], _links: usize) {
        self.queues.remove(page);
    }

    fn score(&self, page: PageIndex) -> f64 {
        *self.queues.data(page)
    }

    fn additions(&self) -> u64 {
        0
    }
}

impl HandOn for Omniscient {}
