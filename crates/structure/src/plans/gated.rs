//! Methods A, B and C: tops decide about members, and in C upper sites decide about tops.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::graph::{PageIndex, SiteGraph};
use crate::round::{PageRef, RoundPlan, Seen, Skipped, Step};
use crate::split::SiteSplit;
use crate::upper::UpperSites;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Unasked,
    Queued,
    Asked,
    Visited(Seen),
}

/// Visits the tops of sites, and the members of a site when one of its tops changed.
///
/// With upper sites (method C) a site's tops are visited only when a checked site above it has a
/// changed top. The set of visited pages does not depend on the order of answers.
#[derive(Debug, Clone)]
pub struct GatedPlan {
    server: u32,
    graph: Arc<SiteGraph>,
    split: Arc<SiteSplit>,
    upper: Option<Arc<UpperSites>>,
    states: Vec<State>,
    /// (page, site), ascending: the sites that a page is a top of.
    top_of: Vec<(u32, u32)>,
    checked: Vec<bool>,
    opened: Vec<bool>,
    /// Pages of checked sites, to say why a page was left out.
    in_checked: Vec<bool>,
    /// Pages whose links were already followed to the sites below.
    led_down: Vec<bool>,
    tops: VecDeque<u32>,
    members: VecDeque<u32>,
    under_way: usize,
}

impl GatedPlan {
    /// Methods A and B, by the split: every top is visited.
    #[must_use]
    pub fn new(server: u32, graph: Arc<SiteGraph>, split: Arc<SiteSplit>) -> Self {
        Self::with(server, graph, split, None)
    }

    /// Method C: tops are visited only under changed upper sites.
    #[must_use]
    pub fn under_upper_sites(
        server: u32,
        graph: Arc<SiteGraph>,
        split: Arc<SiteSplit>,
        upper: Arc<UpperSites>,
    ) -> Self {
        Self::with(server, graph, split, Some(upper))
    }

    fn with(
        server: u32,
        graph: Arc<SiteGraph>,
        split: Arc<SiteSplit>,
        upper: Option<Arc<UpperSites>>,
    ) -> Self {
        let mut top_of: Vec<(u32, u32)> = (0..split.len())
            .flat_map(|site| split.tops(site).map(move |top| (top.0, site as u32)))
            .collect();
        top_of.sort_unstable();
        let pages = graph.page_count();
        let mut plan = Self {
            server,
            states: vec![State::Unasked; pages],
            top_of,
            checked: vec![false; split.len()],
            opened: vec![false; split.len()],
            in_checked: vec![false; pages],
            led_down: vec![false; pages],
            tops: VecDeque::new(),
            members: VecDeque::new(),
            under_way: 0,
            graph,
            split,
            upper,
        };
        plan.check_first_sites();
        plan
    }

    fn check_first_sites(&mut self) {
        let mut first: Vec<usize> = match &self.upper {
            Some(upper) => upper.always_checked().collect(),
            None => (0..self.split.len()).collect(),
        };
        let depths = self.split.depths();
        first.sort_by_key(|&site| self.split.tops(site).map(|top| depths[top.at()]).min());
        self.check(first);
    }

    /// Checks sites: hands out their tops, opens those with a top known to have changed, and so on
    /// downwards.
    fn check(&mut self, mut sites: Vec<usize>) {
        while let Some(site) = sites.pop() {
            if std::mem::replace(&mut self.checked[site], true) {
                continue;
            }
            let split = Arc::clone(&self.split);
            for page in split.pages(site) {
                self.in_checked[page as usize] = true;
            }
            for top in split.tops(site) {
                enqueue(&mut self.states, &mut self.tops, top.0);
            }
            if split.tops(site).any(|top| self.states[top.at()] == State::Visited(Seen::Changed)) {
                self.open(site, &mut sites);
            }
        }
    }

    fn open(&mut self, site: usize, below: &mut Vec<usize>) {
        if std::mem::replace(&mut self.opened[site], true) {
            return;
        }
        let split = Arc::clone(&self.split);
        for member in split.members(site) {
            enqueue(&mut self.states, &mut self.members, member.0);
        }
        let Some(upper) = self.upper.clone() else { return };
        for page in split.pages(site) {
            if !std::mem::replace(&mut self.led_down[page as usize], true) {
                below.extend(
                    upper
                        .sites_below(&self.graph, PageIndex(page))
                        .filter(|&site| !self.checked[site]),
                );
            }
        }
    }

    fn sites_topped_by(&self, page: u32) -> impl Iterator<Item = usize> + '_ {
        let from = self.top_of.partition_point(|&(top, _)| top < page);
        self.top_of[from..]
            .iter()
            .take_while(move |&&(top, _)| top == page)
            .map(|&(_, site)| site as usize)
    }
}

fn enqueue(states: &mut [State], queue: &mut VecDeque<u32>, page: u32) {
    if states[page as usize] == State::Unasked {
        states[page as usize] = State::Queued;
        queue.push_back(page);
    }
}

impl RoundPlan for GatedPlan {
    fn next(&mut self) -> Step {
        while let Some(page) = self.tops.pop_front().or_else(|| self.members.pop_front()) {
            if self.states[page as usize] == State::Queued {
                self.states[page as usize] = State::Asked;
                self.under_way += 1;
                return Step::Visit(PageRef::new(self.server, page));
            }
        }
        if self.under_way > 0 { Step::Wait } else { Step::Done }
    }

    fn seen(&mut self, page: PageRef, seen: Seen) {
        let at = page.page.at();
        if page.server != self.server || at >= self.states.len() {
            return;
        }
        if self.states[at] == State::Asked {
            self.under_way -= 1;
        }
        self.states[at] = State::Visited(seen);
        if seen != Seen::Changed {
            return;
        }
        let mut below = Vec::new();
        let changed: Vec<usize> =
            self.sites_topped_by(page.page.0).filter(|&site| self.checked[site]).collect();
        for site in changed {
            self.open(site, &mut below);
        }
        self.check(below);
    }

    fn skipped(&self, page: PageRef) -> Skipped {
        let at = page.page.at();
        if page.server != self.server || self.split.depths().get(at).is_none_or(|&d| d == 0) {
            return Skipped::NotReached;
        }
        match self.states[at] {
            State::Asked | State::Visited(_) => Skipped::No,
            State::Queued => Skipped::NoBudget,
            State::Unasked if self.upper.is_none() || self.in_checked[at] => Skipped::TopSame,
            State::Unasked => Skipped::UpperSame,
        }
    }
}
