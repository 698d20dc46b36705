//! The methods that are compared, each as a plan for a round.

use std::sync::Arc;

use nenrin_structure::{
    ChoOptions, ChoSampling, GatedPlan, OrderedPlan, PageRef, RoundPlan, ThenPlan, run_round,
};

use crate::structure::prepared::Site;

/// A method of choosing what to visit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Method {
    /// Every page.
    Everything,
    /// Pages down to a depth.
    BreadthFirst(u32),
    /// Paper 000, by directory.
    A,
    /// Paper 000, by links.
    B,
    /// Paper 000, by links under upper sites.
    C,
    /// C first, then what B adds.
    CThenB,
    /// Servers by their true share of changed pages, at least this.
    Cho(f64),
    /// The same, with A inside the servers chosen.
    ChoA(f64),
    /// The same, with B.
    ChoB(f64),
    /// The same, with C.
    ChoC(f64),
}

impl Method {
    /// Its name in results and reports.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Everything => "everything".to_owned(),
            Self::BreadthFirst(depth) => format!("breadth-first({depth})"),
            Self::A => "A".to_owned(),
            Self::B => "B".to_owned(),
            Self::C => "C".to_owned(),
            Self::CThenB => "C then B".to_owned(),
            Self::Cho(share) => format!("Cho(>={:.0}%)", share * 100.0),
            Self::ChoA(share) => format!("Cho(>={:.0}%)+A", share * 100.0),
            Self::ChoB(share) => format!("Cho(>={:.0}%)+B", share * 100.0),
            Self::ChoC(share) => format!("Cho(>={:.0}%)+C", share * 100.0),
        }
    }
}

/// Visits and what they found.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
pub struct Tally {
    /// Pages that could be visited.
    pub pages: usize,
    /// Pages that changed, visited or not.
    pub changed: usize,
    /// Number of visits.
    pub visits: usize,
    /// Changed pages among the visited.
    pub found: usize,
}

impl Tally {
    /// The share of visits that found a change.
    #[must_use]
    pub fn update_rate(&self) -> f64 {
        share(self.found, self.visits)
    }

    /// The share of changed pages that were visited.
    #[must_use]
    pub fn coverage(&self) -> f64 {
        share(self.found, self.changed)
    }

    /// The share of pages that were visited.
    #[must_use]
    pub fn visited_share(&self) -> f64 {
        share(self.visits, self.pages)
    }

    pub(crate) fn add(&mut self, other: Tally) {
        self.pages += other.pages;
        self.changed += other.changed;
        self.visits += other.visits;
        self.found += other.found;
    }
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// The pages of each site and those of them that changed, nothing visited yet.
pub(crate) fn tallies(sites: &[Site], from: usize, to: usize) -> Vec<Tally> {
    let tally = |site: &Site| {
        if to >= site.visits.len() {
            return Tally::default();
        }
        let (pages, changed) = (site.visits[from].reached.len(), site.changed(from, to));
        Tally { pages, changed, ..Tally::default() }
    };
    sites.iter().map(tally).collect()
}

/// Counts visits, site by site.
pub(crate) fn count(sites: &[Site], from: usize, to: usize, visited: &[PageRef]) -> Vec<Tally> {
    let mut tallies = tallies(sites, from, to);
    for page in visited {
        let tally = &mut tallies[page.server as usize];
        tally.visits += 1;
        let site = &sites[page.server as usize];
        tally.found += usize::from(site.is_changed(from, to, page.page));
    }
    tallies
}

pub(crate) fn sum(tallies: &[Tally]) -> Tally {
    let mut sum = Tally::default();
    tallies.iter().for_each(|&tally| sum.add(tally));
    sum
}

/// The visits of a method, from the structure at `from`, at the state of `to`.
pub(crate) fn visits(method: Method, sites: &[Site], from: usize, to: usize) -> Vec<PageRef> {
    let there: Vec<&Site> = sites.iter().filter(|site| to < site.visits.len()).collect();
    let look = |page: PageRef| sites[page.server as usize].look(from, to, page.page);
    let run = |mut plan: Box<dyn RoundPlan>| run_round(plan.as_mut(), usize::MAX, look);
    match method {
        Method::Cho(least) | Method::ChoA(least) | Method::ChoB(least) | Method::ChoC(least) => {
            let inside = match method {
                Method::ChoA(_) => Method::A,
                Method::ChoB(_) => Method::B,
                Method::ChoC(_) => Method::C,
                _ => Method::Everything,
            };
            let servers = there.iter().map(|site| {
                let true_share = share(site.changed(from, to), site.visits[from].reached.len());
                (site.number, true_share, site_plan(inside, site, from))
            });
            let options = ChoOptions { share_min: least, ..ChoOptions::default() };
            run(Box::new(ChoSampling::with_true_shares(servers.collect(), options)))
        }
        _ => there.iter().flat_map(|site| run(site_plan(method, site, from))).collect(),
    }
}

/// The plan of a method for one site.
pub(crate) fn site_plan(method: Method, site: &Site, visit: usize) -> Box<dyn RoundPlan> {
    let structure = &site.visits[visit];
    let graph = || Arc::clone(&structure.graph);
    let gated = |split: &Arc<_>| GatedPlan::new(site.number, graph(), Arc::clone(split));
    let under = || {
        let (split, upper) = (Arc::clone(&structure.by_links), Arc::clone(&structure.upper));
        GatedPlan::under_upper_sites(site.number, graph(), split, upper)
    };
    match method {
        Method::A | Method::ChoA(_) => Box::new(gated(&structure.by_directory)),
        Method::B | Method::ChoB(_) => Box::new(gated(&structure.by_links)),
        Method::C | Method::ChoC(_) => Box::new(under()),
        Method::CThenB => {
            Box::new(ThenPlan::new(Box::new(under()), Box::new(gated(&structure.by_links))))
        }
        Method::BreadthFirst(depth) => {
            Box::new(OrderedPlan::by_depth(&[(site.number, &structure.graph)], depth))
        }
        Method::Everything | Method::Cho(_) => Box::new(OrderedPlan::new(site.pages(visit))),
    }
}
