//! Rounds under a budget: `auto`, learning as it goes, and what it is compared with.

use std::sync::Arc;

use nenrin_structure::{
    AutoOptions, AutoRound, AutoServer, Beliefs, ChoOptions, ChoSampling, OrderedPlan, PageIndex,
    PageRef, RoundPlan, SharedBeliefs, Step, run_round,
};

use crate::structure::methods::{Method, site_plan};
use crate::structure::prepared::Site;

/// `auto` from round to round.
#[derive(Debug, Clone)]
pub(crate) struct AutoLearner {
    options: AutoOptions,
    beliefs: Vec<Beliefs>,
    shared: SharedBeliefs,
}

/// How much a round may visit.
#[derive(Debug, Clone)]
pub(crate) enum Budget {
    /// Every page: a round to learn from.
    Everything,
    /// One budget over all sites.
    Shared(usize),
    /// One for each site.
    PerSite(Vec<usize>),
    /// Until no page has a higher chance of a change than this.
    StopBelow(f64),
}

impl AutoLearner {
    pub(crate) fn new(sites: &[Site], options: &AutoOptions) -> Self {
        Self {
            options: options.clone(),
            beliefs: vec![Beliefs::new(options); sites.len()],
            shared: SharedBeliefs::new(options),
        }
    }

    /// One round over all sites; the pages visited, in order.
    pub(crate) fn round(
        &mut self,
        sites: &[Site],
        from: usize,
        to: usize,
        budget: &Budget,
    ) -> Vec<PageRef> {
        self.round_of(sites, &|_| true, from, to, budget)
    }

    /// One round over the sites that take part.
    pub(crate) fn round_of(
        &mut self,
        sites: &[Site],
        takes_part: &dyn Fn(&Site) -> bool,
        from: usize,
        to: usize,
        budget: &Budget,
    ) -> Vec<PageRef> {
        let mut options = AutoOptions { stop_below: 0.0, ..self.options.clone() };
        match budget {
            Budget::Shared(visits) => options.budget = Some(*visits),
            Budget::StopBelow(chance) => options.stop_below = *chance,
            Budget::Everything | Budget::PerSite(_) => {}
        }
        let there = sites.iter().filter(|site| to < site.visits.len() && takes_part(site));
        let servers = there.map(|site| {
            let mut server = self.server(site, from);
            if let Budget::PerSite(budgets) = budget {
                server.budget = Some(budgets[site.number as usize]);
            }
            server
        });
        let mut plan = AutoRound::new(options, self.shared.clone(), servers.collect());
        let mut visited = Vec::new();
        while let Step::Visit(page) = plan.next() {
            visited.push(page);
            let site = &sites[page.server as usize];
            let seen = site.look(from, to, page.page);
            plan.saw(page, seen, site.lost_blocks(from, to, page.page).as_deref());
        }
        let (beliefs, shared) = plan.finish();
        self.shared = shared;
        for (site, kept) in beliefs {
            self.beliefs[site as usize] = kept;
        }
        visited
    }

    fn server(&self, site: &Site, from: usize) -> AutoServer {
        let structure = &site.visits[from];
        let beliefs = self.beliefs[site.number as usize].clone();
        let graph = Arc::clone(&structure.graph);
        let mut server = AutoServer::new(site.number, graph, beliefs, structure.reached.clone());
        let blocks_of = |page: &PageIndex| structure.blocks[page.0 as usize].clone();
        server.fragments = server.pages.iter().map(blocks_of).collect();
        for (page, evidence) in server.pages.iter().zip(&mut server.evidence) {
            let modified_s = structure.modified_s[page.0 as usize];
            evidence.age_at_last_visit_s = modified_s.map(|modified| structure.at_s - modified);
        }
        server
    }
}

/// What `auto` is compared with at the same number of visits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Rival {
    /// Pages in a random order.
    Random,
    /// Pages by their share of changed visits in all rounds before (all of them known).
    PastRate,
    /// Cho's sampling with three pages a site.
    Cho,
}

impl Rival {
    pub(crate) const ALL: [(Self, &'static str); 3] =
        [(Self::Random, "random"), (Self::PastRate, "past_rate"), (Self::Cho, "cho")];

    /// The pages visited within `budget`.
    pub(crate) fn visits(
        self,
        sites: &[Site],
        from: usize,
        to: usize,
        budget: usize,
        seed: u64,
    ) -> Vec<PageRef> {
        let there = || sites.iter().filter(|site| to < site.visits.len());
        let mut plan: Box<dyn RoundPlan> = match self {
            Self::Random => {
                Box::new(OrderedPlan::random(there().flat_map(|site| site.pages(from)), seed))
            }
            Self::PastRate => {
                let scored = there().flat_map(|site| {
                    site.pages(from).map(|page| (past_rate(site, from, page), page))
                });
                Box::new(OrderedPlan::by_score(scored, seed))
            }
            Self::Cho => {
                let servers = there().map(|site| {
                    let inside = site_plan(Method::Everything, site, from);
                    (site.number, site.pages(from).collect(), inside)
                });
                let options = ChoOptions { seed, ..ChoOptions::default() };
                Box::new(ChoSampling::new(servers.collect(), options))
            }
        };
        run_round(plan.as_mut(), budget, |page| {
            sites[page.server as usize].look(from, to, page.page)
        })
    }
}

/// The share of the rounds up to visit `now` in which a page that was there changed.
fn past_rate(site: &Site, now: usize, page: PageRef) -> f64 {
    let there = |visit: &usize| site.visits[*visit].content[page.page.0 as usize].is_some();
    let rounds: Vec<usize> = (0..now).filter(there).collect();
    let changed =
        rounds.iter().filter(|&&visit| site.is_changed(visit, visit + 1, page.page)).count();
    if rounds.is_empty() { 0.0 } else { changed as f64 / rounds.len() as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::methods::{Tally, count, sum, visits};
    use crate::structure::prepared::prepare;
    use crate::structure::synthetic::SyntheticWeb;

    /// Coverage at A's visits once three rounds were learnt from: A's own, and that of `auto`.
    fn at_visits_of_a(tops_announce: bool) -> (f64, f64) {
        let web = SyntheticWeb { tops_announce, ..SyntheticWeb::default() };
        let sites = prepare(&web.history()).unwrap();
        let mut learner = AutoLearner::new(&sites, &AutoOptions::default());
        let (mut own, mut auto) = (Tally::default(), Tally::default());
        for from in 0..web.visits - 1 {
            let by_a = visits(Method::A, &sites, from, from + 1);
            let learns = from < 3;
            let budget = if learns { Budget::Everything } else { Budget::Shared(by_a.len()) };
            let visited = learner.round(&sites, from, from + 1, &budget);
            if !learns {
                own.add(sum(&count(&sites, from, from + 1, &by_a)));
                auto.add(sum(&count(&sites, from, from + 1, &visited)));
            }
        }
        (own.coverage(), auto.coverage())
    }

    #[test]
    fn auto_finds_what_a_finds_where_tops_announce_and_more_where_they_do_not() {
        let (own, auto) = at_visits_of_a(true);
        assert!(auto > own - 0.02, "announcing: A {own}, auto {auto}");
        let (own, auto) = at_visits_of_a(false);
        assert!(auto > own, "silent: A {own}, auto {auto}");
    }
}
