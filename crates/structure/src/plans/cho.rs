//! Cho's sampling: a few pages of every server show which servers are worth the visits.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::random::SplitMix;
use crate::round::{PageRef, RoundPlan, Seen, Skipped, Step};

/// How servers are sampled and cut.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChoOptions {
    /// Pages sampled from every server.
    pub samples_per_server: usize,
    /// Servers whose share of changed pages is below this are not visited further.
    pub share_min: f64,
    /// Seed for the order of the sample and for ties.
    pub seed: u64,
}

impl Default for ChoOptions {
    fn default() -> Self {
        Self { samples_per_server: 3, share_min: 0.0, seed: 1 }
    }
}

/// Samples every server, then visits servers by their share of changed pages, each by its own plan.
pub struct ChoSampling {
    options: ChoOptions,
    sample: VecDeque<PageRef>,
    under_way: BTreeSet<PageRef>,
    asked: BTreeSet<PageRef>,
    reported: BTreeMap<u32, (u32, u32)>,
    known_share: BTreeMap<u32, f64>,
    servers: Vec<(u32, Box<dyn RoundPlan>)>,
    /// Servers still to visit, the best last; set when the sample is complete.
    order: Option<Vec<usize>>,
}

impl ChoSampling {
    /// Each server with its pages and the plan inside it (all of them, or A, B, C).
    #[must_use]
    pub fn new(servers: Vec<(u32, Vec<PageRef>, Box<dyn RoundPlan>)>, options: ChoOptions) -> Self {
        let mut random = SplitMix::new(options.seed);
        let mut sample = VecDeque::new();
        let mut plans = Vec::with_capacity(servers.len());
        for (server, mut pages, plan) in servers {
            random.shuffle(&mut pages);
            sample.extend(pages.into_iter().take(options.samples_per_server));
            plans.push((server, plan));
        }
        Self {
            options,
            sample,
            under_way: BTreeSet::new(),
            asked: BTreeSet::new(),
            reported: BTreeMap::new(),
            known_share: BTreeMap::new(),
            servers: plans,
            order: None,
        }
    }

    /// The paper's setting: the true share of changed pages of every server is known in advance,
    /// and no visits are spent on a sample.
    #[must_use]
    pub fn with_true_shares(
        servers: Vec<(u32, f64, Box<dyn RoundPlan>)>,
        options: ChoOptions,
    ) -> Self {
        let shares = servers.iter().map(|&(server, share, _)| (server, share)).collect();
        let servers = servers.into_iter().map(|(server, _, plan)| (server, Vec::new(), plan));
        let mut plan = Self::new(servers.collect(), options);
        plan.known_share = shares;
        plan
    }

    fn share(&self, server: u32) -> f64 {
        if let Some(&share) = self.known_share.get(&server) {
            return share;
        }
        let (changed, visits) = self.reported.get(&server).copied().unwrap_or_default();
        if visits == 0 { 0.0 } else { f64::from(changed) / f64::from(visits) }
    }

    fn rank_servers(&mut self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.servers.len()).collect();
        SplitMix::new(self.options.seed ^ 0x5e4e).shuffle(&mut order);
        order.retain(|&at| self.share(self.servers[at].0) >= self.options.share_min);
        order.sort_by(|&a, &b| {
            self.share(self.servers[a].0).total_cmp(&self.share(self.servers[b].0))
        });
        order
    }

    fn visit(&mut self, page: PageRef) -> Step {
        self.asked.insert(page);
        self.under_way.insert(page);
        Step::Visit(page)
    }
}

impl RoundPlan for ChoSampling {
    fn next(&mut self) -> Step {
        while let Some(page) = self.sample.pop_front() {
            if !self.asked.contains(&page) {
                return self.visit(page);
            }
        }
        if self.order.is_none() {
            if !self.under_way.is_empty() {
                return Step::Wait;
            }
            self.order = Some(self.rank_servers());
        }
        while let Some(&at) = self.order.as_ref().and_then(|order| order.last()) {
            match self.servers[at].1.next() {
                Step::Visit(page) if self.asked.contains(&page) => {}
                Step::Visit(page) => return self.visit(page),
                Step::Wait => return Step::Wait,
                Step::Done => drop(self.order.as_mut().and_then(Vec::pop)),
            }
        }
        if self.under_way.is_empty() { Step::Done } else { Step::Wait }
    }

    fn seen(&mut self, page: PageRef, seen: Seen) {
        self.under_way.remove(&page);
        self.asked.insert(page);
        if seen != Seen::Failed && self.order.is_none() {
            let (changed, visits) = self.reported.entry(page.server).or_default();
            *changed += u32::from(seen == Seen::Changed);
            *visits += 1;
        }
        for (server, plan) in &mut self.servers {
            if *server == page.server {
                plan.seen(page, seen);
            }
        }
    }

    fn skipped(&self, page: PageRef) -> Skipped {
        if self.asked.contains(&page) {
            return Skipped::No;
        }
        if self.share(page.server) < self.options.share_min {
            return Skipped::ServerSame;
        }
        let plan = self.servers.iter().find(|(server, _)| *server == page.server);
        plan.map_or(Skipped::NotReached, |(_, plan)| plan.skipped(page))
    }
}
