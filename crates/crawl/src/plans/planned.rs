//! A round that chooses its pages: what it waits for, and what it has still to ask.

use std::collections::{BTreeSet, VecDeque};

use nenrin_state::{PageId, SitePages};
use nenrin_structure::SitePlan;

use super::work::{Choice, PlanJob, Rest, Survey, VisitResult};

/// A round that chooses its pages.
#[derive(Debug)]
pub(crate) struct Planned {
    stage: Stage,
    /// Pages to be visited whatever the plan says: new ones, sources of hints, and those that the
    /// queue had no capacity for.
    owed: BTreeSet<PageId>,
    /// Pages that the plan named and that are still to be loaded.
    chosen: VecDeque<PageId>,
    /// Pages that are being loaded.
    loading: BTreeSet<PageId>,
    /// Pages that the plan asked for and that were not visited yet.
    asked: BTreeSet<PageId>,
    /// How many those may be.
    ahead: usize,
    /// What the plan does not know yet.
    results: Vec<VisitResult>,
}

#[derive(Debug)]
enum Stage {
    /// Sitemaps and feeds are visited first, because what they say is evidence.
    Sources { map: Box<SitePages>, left: BTreeSet<PageId> },
    /// The driver works on the plan.
    Away,
    /// The plan has named all that it could, or was asked for.
    Here { plan: Box<SitePlan>, rest: Rest },
}

impl Planned {
    pub(crate) fn new(survey: Survey, ahead: usize) -> Self {
        let owed = survey.new.union(&survey.sources).copied().collect();
        Self {
            stage: Stage::Sources { map: survey.map, left: survey.sources },
            owed,
            chosen: VecDeque::new(),
            loading: BTreeSet::new(),
            asked: BTreeSet::new(),
            ahead: ahead.max(1),
            results: Vec::new(),
        }
    }

    /// The map, once every source of hints was visited: a plan is to be made of it, and comes back with
    /// [`chose`](Self::chose).
    pub(crate) fn take_map(&mut self) -> Option<(Box<SitePages>, Choice)> {
        if !matches!(&self.stage, Stage::Sources { left, .. } if left.is_empty()) {
            return None;
        }
        match std::mem::replace(&mut self.stage, Stage::Away) {
            Stage::Sources { map, .. } => Some((map, self.choice())),
            _ => None,
        }
    }

    /// The plan, when it can say more than it did.
    pub(crate) fn take_plan(&mut self) -> Option<(Box<SitePlan>, Choice)> {
        let has_more = match &self.stage {
            Stage::Here { rest: Rest::More, .. } => true,
            Stage::Here { rest: Rest::Wait, .. } => !self.results.is_empty(),
            _ => false,
        };
        if !has_more || self.asked.len() >= self.ahead {
            return None;
        }
        match std::mem::replace(&mut self.stage, Stage::Away) {
            Stage::Here { plan, .. } => Some((plan, self.choice())),
            _ => None,
        }
    }

    fn choice(&mut self) -> Choice {
        let most = self.ahead.saturating_sub(self.asked.len());
        Choice { results: std::mem::take(&mut self.results), most }
    }

    /// The plan is back, with the pages that it chose. It will get the results of those that were
    /// visited meanwhile.
    pub(crate) fn chose(&mut self, plan: Box<SitePlan>, mut pages: Vec<PageId>, rest: Rest) {
        pages.retain(|page| self.results.iter().all(|result| result.page != *page));
        self.asked.extend(&pages);
        self.chosen.extend(pages);
        self.stage = Stage::Here { plan, rest };
    }

    /// The pages to load now, at most `room`. `is_taken` says which pages are queued already.
    pub(crate) fn wanted(&mut self, room: usize, is_taken: impl Fn(PageId) -> bool) -> Vec<PageId> {
        let room = room.saturating_sub(self.loading.len());
        let mut wanted = Vec::new();
        while wanted.len() < room
            && let Some(page) = self.owed.pop_first()
        {
            wanted.push(page);
        }
        while wanted.len() < room
            && let Some(page) = self.chosen.pop_front()
        {
            let comes = self.loading.contains(&page) || wanted.contains(&page);
            if !comes && !is_taken(page) {
                wanted.push(page);
            }
        }
        self.loading.extend(&wanted);
        wanted
    }

    pub(crate) fn loaded(&mut self, page: PageId) {
        self.loading.remove(&page);
    }

    /// The page is to be visited, but not yet.
    pub(crate) fn owe(&mut self, page: PageId) {
        self.owed.insert(page);
    }

    /// What a visit showed, or that there will be none.
    pub(crate) fn record(&mut self, result: VisitResult) {
        let page = result.page;
        self.asked.remove(&page);
        self.results.push(result);
        if let Stage::Sources { left, .. } = &mut self.stage {
            left.remove(&page);
        }
    }

    pub(crate) fn is_over(&self, limit_reached: bool) -> bool {
        let done = matches!(self.stage, Stage::Here { rest: Rest::Done, .. });
        let is_here = !matches!(self.stage, Stage::Away);
        let all_loaded = self.owed.is_empty() && self.chosen.is_empty();
        is_here && self.loading.is_empty() && (limit_reached || (done && all_loaded))
    }

    /// What is left to do when the round is over: to give the plan the last results, and to store
    /// it.
    pub(crate) fn end(self) -> PlanJob {
        let plan = match self.stage {
            Stage::Here { plan, .. } => Ok(plan),
            Stage::Sources { map, .. } => Err(map),
            Stage::Away => Err(Box::default()),
        };
        PlanJob::End { plan, results: self.results }
    }
}

#[cfg(test)]
mod tests {
    use nenrin_structure::{AutoOptions, MappedSite, RoundsBy, Seen, SharedBeliefs, SiteMap};

    use super::*;

    fn result(page: i64, seen: Seen) -> VisitResult {
        VisitResult { page: PageId(page), seen, lost: None }
    }

    fn plan() -> Box<SitePlan> {
        let options = AutoOptions::default();
        let site = MappedSite::new(SiteMap::default(), &[], &options).unwrap();
        let shared = SharedBeliefs::new(&options);
        Box::new(SitePlan::new(RoundsBy::Auto, site, |_| None, shared, options))
    }

    #[test]
    fn a_page_visited_while_the_plan_was_away_is_not_asked_for_again() {
        let survey = Survey { map: Box::default(), new: BTreeSet::new(), sources: BTreeSet::new() };
        let mut planned = Planned::new(survey, 2);
        assert!(planned.take_map().is_some() && planned.take_map().is_none());
        planned.record(result(7, Seen::Changed));
        planned.chose(plan(), vec![PageId(7), PageId(8)], Rest::Wait);
        assert_eq!(planned.wanted(10, |_| false), [PageId(8)]);
        let (_, choice) = planned.take_plan().unwrap();
        assert_eq!((choice.results, choice.most), (vec![result(7, Seen::Changed)], 1));
        assert!(!planned.is_over(true), "the plan is away");
    }

    #[test]
    fn a_plan_that_waits_is_not_asked_again_before_it_has_another_result() {
        let survey = Survey { map: Box::default(), new: BTreeSet::new(), sources: BTreeSet::new() };
        let mut planned = Planned::new(survey, 2);
        assert!(planned.take_map().is_some());
        planned.chose(plan(), vec![PageId(8)], Rest::Wait);
        assert!(planned.take_plan().is_none());
        planned.record(result(8, Seen::Same));
        assert!(planned.take_plan().is_some());
    }
}
