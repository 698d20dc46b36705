//! The plan: always the page most likely to have changed, of all servers, until no page is worth a
//! visit.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use crate::auto::beliefs::{Beliefs, SharedBeliefs};
use crate::auto::evidence::Evidence;
use crate::auto::gaussian::normal_below;
use crate::auto::options::AutoOptions;
use crate::auto::server::{LEAST_PRICE, ServerRound};
use crate::auto::templates::templates_from_links;
use crate::graph::{PageIndex, SiteGraph};
use crate::plans::GatedPlan;
use crate::round::{PageRef, RoundPlan, Seen, Skipped, Step};
use crate::split::{SiteSplit, SplitOptions};

/// A server that takes part in a round.
#[derive(Debug, Clone)]
pub struct AutoServer {
    /// Its number in this round.
    pub server: u32,
    /// Its graph, with depths refreshed.
    pub graph: Arc<SiteGraph>,
    /// The beliefs about it.
    pub beliefs: Beliefs,
    /// The pages that may be visited.
    pub pages: Vec<PageIndex>,
    /// Further evidence about each of them; empty, or one entry for each page.
    pub evidence: Vec<Evidence>,
    /// Hashes of the fragments that each of them had when last seen; empty, or a list for each
    /// page.
    pub fragments: Vec<Vec<u32>>,
    /// Its own limit of visits, if it has one.
    pub budget: Option<usize>,
}

impl AutoServer {
    /// A server with these pages, templates guessed from links, and no other evidence.
    #[must_use]
    pub fn new(
        server: u32,
        graph: Arc<SiteGraph>,
        beliefs: Beliefs,
        pages: Vec<PageIndex>,
    ) -> Self {
        let templates = templates_from_links(&graph);
        let evidence = pages
            .iter()
            .map(|page| Evidence { template: Some(templates[page.at()]), ..Evidence::default() })
            .collect();
        Self { server, graph, beliefs, pages, evidence, fragments: Vec::new(), budget: None }
    }
}

/// The progress of a round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoundEstimate {
    /// Pages handed out for a visit.
    pub visits: usize,
    /// Changed pages among those visited.
    pub found: usize,
    /// Changed pages expected among the others.
    pub expected_left: f64,
    /// Number of chances computed so far.
    pub looked_at: u64,
}

/// How often in a round the price of a visit is computed again.
const PRICES_PER_ROUND: usize = 16;
/// Servers with up to so many tops are also visited by method A where nothing is likely any more:
/// so few pages do not show for sure that nothing changes, and their tops cost little.
const FEW_TOPS: usize = 24;
/// Learning during the round separates likely pages from unlikely ones, so the last visits bring
/// less than it seems now: only this share.
const PRICE_SHARE: f64 = 0.5;

#[derive(Debug, Clone, Copy)]
struct ServerScore {
    score: f64,
    server: usize,
    /// Entries with an earlier stamp are outdated.
    stamp: u64,
}

impl PartialEq for ServerScore {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for ServerScore {}

impl PartialOrd for ServerScore {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ServerScore {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then(other.server.cmp(&self.server))
    }
}

/// The chance of the last page within the budget, given (chance, pages).
fn last_chance(mut chances: Vec<(f64, f64)>, budget: f64) -> f64 {
    chances.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut pages = 0.0;
    let mut within = |&(_, more): &(f64, f64)| {
        pages += more;
        pages <= budget
    };
    chances.iter().find(|entry| !within(entry)).map_or(0.0, |&(chance, _)| chance)
}

/// Method A's plan of a server, if it has few tops.
fn method_a(server: &AutoServer) -> Option<GatedPlan> {
    let split = SiteSplit::by_directory(&server.graph, SplitOptions::default());
    let tops: usize = (0..split.len()).map(|site| split.tops(site).count()).sum();
    let plan = || GatedPlan::new(server.server, Arc::clone(&server.graph), Arc::new(split));
    (tops <= FEW_TOPS).then(plan)
}

/// One visit after the other over any number of servers, with one budget or one each.
#[derive(Debug, Clone)]
pub struct AutoRound {
    options: AutoOptions,
    shared: SharedBeliefs,
    servers: Vec<ServerRound>,
    numbers: Vec<u32>,
    by_number: BTreeMap<u32, usize>,
    order: BinaryHeap<ServerScore>,
    stamps: Vec<u64>,
    under_way: usize,
    visits: usize,
    found: usize,
    /// Method A's plans of servers with few tops, which begin where no page is likely enough.
    by_tops: Vec<Option<GatedPlan>>,
    /// The round ended because no page left was likely enough.
    stopped: bool,
}

impl AutoRound {
    /// Begins a round.
    #[must_use]
    pub fn new(options: AutoOptions, shared: SharedBeliefs, servers: Vec<AutoServer>) -> Self {
        let numbers: Vec<u32> = servers.iter().map(|server| server.server).collect();
        let by_number = numbers.iter().enumerate().map(|(at, &number)| (number, at)).collect();
        let stops = options.stop_below > 0.0;
        let by_tops = servers.iter().map(|server| method_a(server).filter(|_| stops)).collect();
        let servers: Vec<ServerRound> = servers
            .into_iter()
            .map(|input| {
                let mut round = ServerRound::new(
                    &input.graph,
                    input.beliefs,
                    &input.pages,
                    &input.evidence,
                    &input.fragments,
                    &options,
                    &shared,
                );
                round.budget = input.budget.unwrap_or(round.budget);
                round
            })
            .collect();
        let mut round = Self {
            stamps: vec![0; servers.len()],
            order: BinaryHeap::new(),
            under_way: 0,
            visits: 0,
            found: 0,
            by_tops,
            stopped: false,
            options,
            shared,
            servers,
            numbers,
            by_number,
        };
        for server in 0..round.servers.len() {
            round.push(server);
        }
        round
    }

    fn push(&mut self, server: usize) {
        self.stamps[server] += 1;
        if let Some((score, _)) = self.servers[server].best(&self.shared) {
            self.order.push(ServerScore { score, server, stamp: self.stamps[server] });
        }
    }

    /// The likeliest page of all. Shared beliefs move slowly, so a server's score is computed again
    /// only when its turn comes.
    fn best(&mut self) -> Option<(f64, usize, PageIndex)> {
        loop {
            let top = *self.order.peek()?;
            if top.stamp != self.stamps[top.server] {
                self.order.pop();
                continue;
            }
            let Some((score, page)) = self.servers[top.server].best(&self.shared) else {
                self.order.pop();
                continue;
            };
            if score < top.score - 1e-3 {
                self.order.pop();
                self.push(top.server);
                continue;
            }
            return Some((score, top.server, page));
        }
    }

    /// Sets the price of a visit to what the last visit of the budget would bring: the chance, on a
    /// usual day, of the last page within the budget if nothing more were learnt. This samples
    /// cells, a few times in a round.
    fn set_prices(&mut self) {
        let every = self.options.budget.map_or(usize::MAX, |budget| budget / PRICES_PER_ROUND + 1);
        if !self.visits.is_multiple_of(every) {
            return;
        }
        let shared = &self.shared;
        let samples: Vec<_> = self.servers.iter().map(|s| s.usual_chances(shared)).collect();
        let left = self.options.budget.map(|budget| budget.saturating_sub(self.visits) as f64);
        let price =
            left.map_or(0.0, |left| last_chance(samples.iter().flatten().copied().collect(), left));
        for (server, sample) in self.servers.iter_mut().zip(samples) {
            let left = server.budget.saturating_sub(server.visits) as f64;
            server.price = (PRICE_SHARE * price.max(last_chance(sample, left))).max(LEAST_PRICE);
        }
    }

    /// The next page that method A visits on a server with few tops.
    fn next_by_tops(&mut self) -> Option<(usize, PageIndex)> {
        for (at, plan) in self.by_tops.iter_mut().enumerate() {
            while let Some(Step::Visit(page)) = plan.as_mut().map(GatedPlan::next) {
                let server = &self.servers[at];
                let is_open = server.is_candidate(page.page) && !server.was_asked(page.page);
                if is_open && server.visits < server.budget {
                    return Some((at, page.page));
                }
            }
        }
        None
    }

    fn visit(&mut self, server: usize, page: PageIndex) -> Step {
        self.servers[server].ask(page, &self.shared);
        self.push(server);
        self.under_way += 1;
        self.visits += 1;
        Step::Visit(PageRef { server: self.numbers[server], page })
    }

    fn out_of_budget(&self) -> bool {
        self.options.budget.is_some_and(|budget| self.visits >= budget)
    }

    /// The progress of the round. This looks at every page.
    #[must_use]
    pub fn estimate(&self) -> RoundEstimate {
        RoundEstimate {
            visits: self.visits,
            found: self.found,
            expected_left: self.servers.iter().map(|s| s.expected_left(&self.shared)).sum(),
            looked_at: self.servers.iter().map(|server| server.looked_at).sum(),
        }
    }

    /// The chance that a page changed, by what is known now.
    #[must_use]
    pub fn chance(&self, page: PageRef) -> Option<f64> {
        let &at = self.by_number.get(&page.server)?;
        self.servers[at].chance(page.page, &self.shared)
    }

    /// Records what a visit showed. For a page that changed, `lost` lists the fragments that it no
    /// longer has, if that is known.
    pub fn saw(&mut self, page: PageRef, seen: Seen, lost: Option<&[u32]>) {
        let Some(&at) = self.by_number.get(&page.server) else { return };
        if let Some(plan) = &mut self.by_tops[at] {
            plan.seen(page, seen);
        }
        let server = &mut self.servers[at];
        if !server.is_candidate(page.page) {
            return;
        }
        if server.was_asked(page.page) {
            self.under_way = self.under_way.saturating_sub(1);
        } else {
            server.ask(page.page, &self.shared);
            self.visits += 1;
        }
        if seen != Seen::Failed {
            let changed = seen == Seen::Changed;
            self.found += usize::from(changed);
            let lost = if changed { lost } else { Some(&[][..]) };
            server.learn(page.page, changed, lost, &mut self.shared);
        }
        self.push(at);
    }

    /// Ends the round. Returns the beliefs to store, for every server in the given order and for
    /// all together.
    #[must_use]
    pub fn finish(mut self) -> (Vec<(u32, Beliefs)>, SharedBeliefs) {
        self.shared.drift(&self.options);
        let options = &self.options;
        let known = self.shared.clone();
        let shared = &mut self.shared;
        let finish = |server: ServerRound| server.finish(options, &known, shared);
        let beliefs: Vec<Beliefs> = self.servers.into_iter().map(finish).collect();
        (self.numbers.into_iter().zip(beliefs).collect(), self.shared)
    }
}

impl RoundPlan for AutoRound {
    fn next(&mut self) -> Step {
        let idle = if self.under_way > 0 { Step::Wait } else { Step::Done };
        if self.out_of_budget() {
            return idle;
        }
        self.set_prices();
        let stop_below = self.options.stop_below;
        let best = self.best();
        let is_left = best.is_some();
        let likely = best.filter(|(score, ..)| normal_below(*score) >= stop_below);
        let likely = likely.map(|(_, server, page)| (server, page));
        match likely.or_else(|| self.next_by_tops()) {
            Some((server, page)) => self.visit(server, page),
            None => {
                self.stopped = is_left && self.under_way == 0;
                idle
            }
        }
    }

    fn seen(&mut self, page: PageRef, seen: Seen) {
        self.saw(page, seen, None);
    }

    fn skipped(&self, page: PageRef) -> Skipped {
        let Some(&at) = self.by_number.get(&page.server) else { return Skipped::NotReached };
        let server = &self.servers[at];
        if server.was_asked(page.page) {
            return Skipped::No;
        }
        match server.chance(page.page, &self.shared) {
            None => Skipped::NotReached,
            Some(_) if self.out_of_budget() || !self.stopped => Skipped::NoBudget,
            Some(chance) => Skipped::Unlikely(chance as f32),
        }
    }
}
