//! Plans with an order fixed in advance: everything, breadth-first, random, by past rate.

use std::collections::{BTreeSet, VecDeque};

use crate::graph::{PageIndex, SiteGraph};
use crate::random::SplitMix;
use crate::round::{PageRef, RoundPlan, Seen, Skipped, Step};

/// Visits given pages in a given order, whatever it sees.
#[derive(Debug, Clone)]
pub struct OrderedPlan {
    waiting: VecDeque<PageRef>,
    reported: BTreeSet<PageRef>,
    listed: BTreeSet<PageRef>,
}

impl OrderedPlan {
    /// Visits `pages` in this order, each once.
    #[must_use]
    pub fn new(pages: impl IntoIterator<Item = PageRef>) -> Self {
        let mut listed = BTreeSet::new();
        let waiting = pages.into_iter().filter(|&page| listed.insert(page)).collect();
        Self { waiting, reported: BTreeSet::new(), listed }
    }

    /// Breadth-first: the shallowest pages first, down to `depth_max`.
    #[must_use]
    pub fn by_depth(servers: &[(u32, &SiteGraph)], depth_max: u32) -> Self {
        let mut pages: Vec<(u32, PageRef)> = servers
            .iter()
            .flat_map(|&(server, graph)| {
                (0..graph.page_count() as u32).filter_map(move |page| {
                    let depth = graph.depth(PageIndex(page))?;
                    (depth <= depth_max).then_some((depth, PageRef::new(server, page)))
                })
            })
            .collect();
        pages.sort_unstable();
        Self::new(pages.into_iter().map(|(_, page)| page))
    }

    /// A random order.
    #[must_use]
    pub fn random(pages: impl IntoIterator<Item = PageRef>, seed: u64) -> Self {
        let mut pages: Vec<PageRef> = pages.into_iter().collect();
        SplitMix::new(seed).shuffle(&mut pages);
        Self::new(pages)
    }

    /// The highest score first (such as a page's past share of changed visits); ties in a random
    /// order.
    #[must_use]
    pub fn by_score(pages: impl IntoIterator<Item = (f64, PageRef)>, seed: u64) -> Self {
        let mut pages: Vec<(f64, PageRef)> = pages.into_iter().collect();
        SplitMix::new(seed).shuffle(&mut pages);
        pages.sort_by(|a, b| b.0.total_cmp(&a.0));
        Self::new(pages.into_iter().map(|(_, page)| page))
    }
}

impl RoundPlan for OrderedPlan {
    fn next(&mut self) -> Step {
        while let Some(page) = self.waiting.pop_front() {
            if !self.reported.contains(&page) {
                return Step::Visit(page);
            }
        }
        Step::Done
    }

    fn seen(&mut self, page: PageRef, _: Seen) {
        self.reported.insert(page);
    }

    fn skipped(&self, page: PageRef) -> Skipped {
        if !self.listed.contains(&page) {
            Skipped::NotReached
        } else if self.waiting.contains(&page) {
            Skipped::NoBudget
        } else {
            Skipped::No
        }
    }
}
