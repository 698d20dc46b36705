//! One round of a site by one of the methods, in the archive's page numbers.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::auto::{
    AutoOptions, AutoRound, AutoServer, Evidence, SharedBeliefs, templates_from_links,
};
use crate::graph::{PageIndex, SiteGraph};
use crate::plans::GatedPlan;
use crate::round::{PageRef, RoundPlan, Seen, Skipped, Step};
use crate::rounds_by::RoundsBy;
use crate::site::map::MappedSite;
use crate::site::memory::SiteMemory;
use crate::split::{SiteSplit, SplitOptions};
use crate::upper::UpperSites;

/// Example pages listed for each reason.
const EXAMPLES: usize = 5;

/// What the caller should do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SiteStep {
    /// Visit this page, and report the result to the plan.
    Visit(i64),
    /// Nothing to visit until the result of a visit under way is reported.
    Wait,
    /// The round is over.
    Done,
}

/// Why pages were left out of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// No top of their sites changed.
    TopSame,
    /// No site above their own changed.
    UpperSame,
    /// They are unlikely to have changed.
    Unlikely,
    /// The limit on pages was reached before their turn.
    NoBudget,
    /// They are gone, and not checked in every round.
    Gone,
    /// No links reach them, or they are too deep.
    NotReached,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::TopSame => "no index page above them changed",
            Self::UpperSame => "no part of the site above theirs changed",
            Self::Unlikely => "unlikely to have changed",
            Self::NoBudget => "the limit on pages was reached",
            Self::Gone => "gone, and not checked in every round",
            Self::NotReached => "too deep, or not reached by links",
        })
    }
}

/// Pages left out for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The reason.
    pub why: Why,
    /// Number of pages.
    pub pages: u64,
    /// Some of them, by their numbers in the archive.
    pub examples: Vec<i64>,
}

/// A round over one site.
///
/// Every visit updates the beliefs, whatever method chooses the pages, so that a site may switch to
/// another method later.
#[derive(Debug, Clone)]
pub struct SitePlan {
    graph: Arc<SiteGraph>,
    by_key: BTreeMap<i64, u32>,
    memory: SiteMemory,
    gate: Option<GatedPlan>,
    auto: AutoRound,
}

impl SitePlan {
    /// Begins a round. `evidence` returns what is known of a page that was visited before, and
    /// `None` for one that never was: such a page is always visited, and says nothing about
    /// changes.
    #[must_use]
    pub fn new(
        by: RoundsBy,
        site: MappedSite,
        mut evidence: impl FnMut(i64) -> Option<Evidence>,
        shared: SharedBeliefs,
        options: AutoOptions,
    ) -> Self {
        let MappedSite { graph, mut fragments, by_key, mut memory, beliefs, .. } = site;
        memory.begin_round();
        let templates = templates_from_links(&graph);
        let (mut pages, mut known, mut shared_by) = (Vec::new(), Vec::new(), Vec::new());
        for (index, &key) in (0u32..).map(PageIndex).zip(&memory.keys) {
            let Some(evidence) = evidence(key).filter(|_| graph.depth(index).is_some()) else {
                continue;
            };
            pages.push(index);
            shared_by.push(std::mem::take(&mut fragments[index.at()]));
            known.push(Evidence { template: Some(templates[index.at()]), ..evidence });
        }
        let server = AutoServer {
            server: 0,
            graph: Arc::clone(&graph),
            beliefs,
            pages,
            evidence: known,
            fragments: shared_by,
            budget: None,
        };
        let auto = AutoRound::new(options, shared, vec![server]);
        Self { gate: gate(by, &graph), graph, by_key, memory, auto }
    }

    /// The next step.
    pub fn next_step(&mut self) -> SiteStep {
        let step = match &mut self.gate {
            Some(gate) => gate.next(),
            None => self.auto.next(),
        };
        match step {
            Step::Visit(page) => SiteStep::Visit(self.memory.keys[page.page.at()]),
            Step::Wait => SiteStep::Wait,
            Step::Done => SiteStep::Done,
        }
    }

    /// Records what a visit showed, whether or not the plan asked for it. `lost` lists the
    /// fragments that a changed page lost, if known. Pages that are not in the map are ignored.
    pub fn seen(&mut self, key: i64, seen: Seen, lost: Option<&[u32]>) {
        let Some(&page) = self.by_key.get(&key) else { return };
        if let Some(gate) = &mut self.gate {
            gate.seen(PageRef::new(0, page), seen);
        }
        self.auto.saw(PageRef::new(0, page), seen, lost);
        if seen != Seen::Failed {
            self.memory.saw(page as usize, seen == Seen::Changed);
        }
    }

    /// The pages left out so far, by reason.
    #[must_use]
    pub fn left_out(&self) -> Vec<LeftOut> {
        let mut reasons: BTreeMap<Why, LeftOut> = BTreeMap::new();
        for (page, &key) in (0u32..).zip(&self.memory.keys) {
            let Some(why) = self.why(page) else { continue };
            let left = reasons.entry(why).or_insert_with(|| LeftOut {
                why,
                pages: 0,
                examples: Vec::new(),
            });
            left.pages += 1;
            if left.examples.len() < EXAMPLES {
                left.examples.push(key);
            }
        }
        reasons.into_values().collect()
    }

    fn why(&self, page: u32) -> Option<Why> {
        let page_ref = PageRef::new(0, page);
        let skipped = match &self.gate {
            Some(gate) => gate.skipped(page_ref),
            None => self.auto.skipped(page_ref),
        };
        match skipped {
            Skipped::No => None,
            _ if self.memory.seen[page as usize] & 1 == 1 => None,
            _ if !self.graph.is_alive(PageIndex(page)) => Some(Why::Gone),
            Skipped::TopSame | Skipped::ServerSame => Some(Why::TopSame),
            Skipped::UpperSame => Some(Why::UpperSame),
            Skipped::Unlikely(_) => Some(Why::Unlikely),
            Skipped::NoBudget => Some(Why::NoBudget),
            Skipped::NotReached => Some(Why::NotReached),
        }
    }

    /// Ends the round. Returns what to store about the site, and the beliefs of all servers.
    #[must_use]
    pub fn finish(self) -> (Vec<u8>, SharedBeliefs) {
        let (mut beliefs, shared) = self.auto.finish();
        let kept = beliefs.pop().map(|(_, beliefs)| self.memory.written(&beliefs));
        (kept.unwrap_or_default(), shared)
    }
}

fn gate(by: RoundsBy, graph: &Arc<SiteGraph>) -> Option<GatedPlan> {
    let (graph, options) = (Arc::clone(graph), SplitOptions::default());
    let by_links = |graph: &SiteGraph| Arc::new(SiteSplit::by_links(graph, options));
    match by {
        RoundsBy::All | RoundsBy::Auto => None,
        RoundsBy::A => {
            let split = Arc::new(SiteSplit::by_directory(&graph, options));
            Some(GatedPlan::new(0, graph, split))
        }
        RoundsBy::B => {
            let split = by_links(&graph);
            Some(GatedPlan::new(0, graph, split))
        }
        RoundsBy::C => {
            let split = by_links(&graph);
            let upper = Arc::new(UpperSites::new(&graph, &split));
            Some(GatedPlan::under_upper_sites(0, graph, split, upper))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::map::{MapPage, SiteMap};

    /// Three directories of five pages below a top, each with an index that links to the others.
    fn map() -> SiteMap {
        let mut map = SiteMap { tops: vec![0], ..SiteMap::default() };
        let mut add = |path: String| {
            let key = 1_000 + map.pages.len() as i64;
            map.pages.push(MapPage { key, path, alive: true, fragments: Vec::new() });
            map.pages.len() as u32 - 1
        };
        let top = add(String::new());
        let mut links = Vec::new();
        let mut indexes = Vec::new();
        for directory in ["a", "b", "c"] {
            let index = add(format!("{directory}/"));
            let members = (0..4).map(|n| add(format!("{directory}/{n}.html"))).collect();
            indexes.push(index);
            links.push((index, members));
        }
        links.push((top, indexes));
        map.links = links;
        map
    }

    fn plan(by: RoundsBy, kept: &[u8]) -> SitePlan {
        let options = AutoOptions::default();
        let site = MappedSite::new(map(), kept, &options).unwrap();
        let known = |_| Some(Evidence::default());
        SitePlan::new(by, site, known, SharedBeliefs::new(&options), options)
    }

    fn run(plan: &mut SitePlan, changed: &[i64]) -> Vec<i64> {
        let mut visited = Vec::new();
        while let SiteStep::Visit(key) = plan.next_step() {
            visited.push(key);
            let seen = if changed.contains(&key) { Seen::Changed } else { Seen::Same };
            plan.seen(key, seen, None);
        }
        visited.sort_unstable();
        visited
    }

    #[test]
    fn a_directory_is_visited_when_its_index_changed_and_others_are_listed_by_reason() {
        for by in [RoundsBy::A, RoundsBy::B] {
            let mut plan = plan(by, &[]);
            let visited = run(&mut plan, &[1006]);
            assert_eq!(visited, [1000, 1001, 1006, 1007, 1008, 1009, 1010, 1011], "{by}");
            let left = plan.left_out();
            assert_eq!(left.len(), 1);
            assert_eq!((left[0].why, left[0].pages), (Why::TopSame, 8));
            assert_eq!(left[0].examples, [1002, 1003, 1004, 1005, 1012]);
        }
    }

    #[test]
    fn below_an_unchanged_top_method_c_looks_at_nothing() {
        let mut plan = plan(RoundsBy::C, &[]);
        assert_eq!(run(&mut plan, &[]), [1000]);
        let left: Vec<_> = plan.left_out().iter().map(|left| (left.why, left.pages)).collect();
        assert_eq!(left, [(Why::UpperSame, 15)]);
    }

    #[test]
    fn a_site_that_never_changes_is_left_alone_after_a_while_and_remembered() {
        let mut kept = Vec::new();
        let mut visits = Vec::new();
        for _ in 0..6 {
            let mut round = plan(RoundsBy::Auto, &kept);
            visits.push(run(&mut round, &[]).len());
            kept = round.finish().0;
        }
        assert!(visits[5] < 16 && visits[5] <= visits[0], "{visits:?}");
        let again = run(&mut plan(RoundsBy::Auto, &kept), &[]);
        assert_eq!(again, run(&mut plan(RoundsBy::Auto, &kept), &[]));
    }

    #[test]
    fn a_round_taken_up_again_asks_for_no_page_twice() {
        for by in [RoundsBy::A, RoundsBy::B, RoundsBy::C, RoundsBy::Auto] {
            let all = run(&mut plan(by, &[]), &[1000, 1006]);
            let mut first = plan(by, &[]);
            let mut half = Vec::new();
            for _ in 0..3 {
                let SiteStep::Visit(key) = first.next_step() else { break };
                half.push(key);
                let changed = [1000, 1006].contains(&key);
                first.seen(key, if changed { Seen::Changed } else { Seen::Same }, None);
            }
            let mut again = plan(by, &[]);
            for &key in &half {
                let changed = [1000, 1006].contains(&key);
                again.seen(key, if changed { Seen::Changed } else { Seen::Same }, None);
            }
            let rest = run(&mut again, &[1000, 1006]);
            assert!(rest.iter().all(|key| !half.contains(key)), "{by}");
            let mut both = [half, rest].concat();
            both.sort_unstable();
            if by != RoundsBy::Auto {
                assert_eq!(both, all, "{by}");
            }
        }
    }
}
