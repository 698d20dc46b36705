//! Work on a round's plan. On a large site it takes seconds, so the machine never does it itself: it
//! hands out [`PlanWork`], goes on with other sites, and takes back [`PlanDone`].

use std::collections::{BTreeMap, BTreeSet};

use nenrin_fetch::http_date;
use nenrin_state::{MappedPage, Outcome, PageId, RoundId, Schedule, ServerId, SitePages, Skips};
use nenrin_structure::{
    AutoOptions, Evidence, Hint, MappedSite, RoundsBy, Seen, SharedBeliefs, SitePlan, SiteStep,
};
use nenrin_urls::{CanonicalUrl, Server};

use crate::{gone::gone_rest_s, signals::Signals};

/// Work on the plan of a round. It is pure, and takes the longer the larger the site is.
#[derive(Debug, Clone)]
pub struct PlanWork {
    pub(crate) round: RoundId,
    pub(crate) job: PlanJob,
}

/// The result of [`PlanWork`].
#[derive(Debug, Clone)]
pub struct PlanDone {
    pub(crate) round: RoundId,
    pub(crate) result: PlanResult,
}

#[derive(Debug, Clone)]
pub(crate) enum PlanJob {
    /// Find the pages to be visited whatever a plan says. The paths are those of the sitemaps and
    /// feeds of each server.
    Survey { map: Box<SitePages>, sources: BTreeMap<ServerId, BTreeSet<String>> },
    /// Make the plan, and choose.
    Begin { beginning: Box<Beginning>, choice: Choice },
    /// Choose pages by a plan that is already made.
    Choose { plan: Box<SitePlan>, choice: Choice },
    /// Write down what was learnt. A round that ends before it has a plan leaves its map.
    End { plan: Result<Box<SitePlan>, Box<SitePages>>, results: Vec<VisitResult> },
}

/// What visits showed since the plan last chose, and how many pages it may name now.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    pub(crate) results: Vec<VisitResult>,
    pub(crate) most: usize,
}

/// What a visit showed, or that there was none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VisitResult {
    pub(crate) page: PageId,
    pub(crate) seen: Seen,
    /// The blocks that the page had lost, if it changed and that is known.
    pub(crate) lost: Option<Vec<u32>>,
}

impl VisitResult {
    fn report_to(&self, plan: &mut SitePlan) {
        plan.seen(self.page.0, self.seen, self.lost.as_deref());
    }
}

/// All that a plan is made of.
#[derive(Debug, Clone)]
pub(crate) struct Beginning {
    pub(crate) map: Box<SitePages>,
    pub(crate) rounds_by: RoundsBy,
    pub(crate) schedule: Schedule,
    pub(crate) max_pages: Option<u64>,
    /// Someone asked for the round: pages that are gone are looked for as well.
    pub(crate) wanted: bool,
    pub(crate) now_s: i64,
    /// What sitemaps and feeds say, of servers that have any.
    pub(crate) signals: BTreeMap<ServerId, (Server, Signals)>,
}

#[derive(Debug, Clone)]
pub(crate) enum PlanResult {
    /// Nothing was visited before: there is nothing to choose by.
    NothingKnown,
    Surveyed(Survey),
    /// More pages than a plan takes, or the work failed.
    NoPlan,
    Chosen {
        plan: Box<SitePlan>,
        pages: Vec<PageId>,
        rest: Rest,
    },
    Ended(Option<Ended>),
}

#[derive(Debug, Clone)]
pub(crate) struct Survey {
    pub(crate) map: Box<SitePages>,
    pub(crate) new: BTreeSet<PageId>,
    /// Sitemaps and feeds that are to be visited before a plan is made.
    pub(crate) sources: BTreeSet<PageId>,
}

/// What a plan can say beyond the pages that it named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// There may be more.
    More,
    /// Nothing before it learns of another visit.
    Wait,
    /// The round is over.
    Done,
}

#[derive(Debug, Clone)]
pub(crate) struct Ended {
    pub(crate) skips: Skips,
    pub(crate) kept: Vec<u8>,
    pub(crate) kept_of_all: Vec<u8>,
}

impl PlanWork {
    /// The answer when the work cannot be done: the round visits everything.
    pub fn failed(round: RoundId) -> PlanDone {
        PlanDone { round, result: PlanResult::NoPlan }
    }

    /// The round that it belongs to.
    pub fn round(&self) -> RoundId {
        self.round
    }

    /// Does the work. The answer depends on nothing but the work.
    pub fn carry_out(self) -> PlanDone {
        let round = self.round;
        let result = match self.job {
            PlanJob::Survey { map, sources } => survey(map, &sources, round),
            PlanJob::Begin { beginning, choice } => match beginning.plan(round) {
                Some(plan) => choose(Box::new(plan), choice),
                None => PlanResult::NoPlan,
            },
            PlanJob::Choose { plan, choice } => choose(plan, choice),
            PlanJob::End { plan, results } => {
                PlanResult::Ended(plan.ok().map(|p| end(p, &results)))
            }
        };
        PlanDone { round, result }
    }
}

fn survey(
    map: Box<SitePages>,
    sources: &BTreeMap<ServerId, BTreeSet<String>>,
    round: RoundId,
) -> PlanResult {
    if !map.pages.iter().any(|page| was_known(page, round)) {
        return PlanResult::NothingKnown;
    }
    let is_source = |page: &&MappedPage| {
        let paths = sources.get(&page.id.server());
        page.round != Some(round) && paths.is_some_and(|paths| paths.contains(&page.path))
    };
    let is_new = |page: &&MappedPage| page.visited_s.is_none();
    let new = map.pages.iter().filter(is_new).map(|page| page.id).collect();
    let sources = map.pages.iter().filter(is_source).map(|page| page.id).collect();
    PlanResult::Surveyed(Survey { map, new, sources })
}

fn choose(mut plan: Box<SitePlan>, choice: Choice) -> PlanResult {
    choice.results.iter().for_each(|result| result.report_to(&mut plan));
    let mut pages = Vec::new();
    let mut rest = Rest::More;
    while pages.len() < choice.most && rest == Rest::More {
        match plan.next_step() {
            SiteStep::Visit(key) => pages.push(PageId(key)),
            SiteStep::Wait => rest = Rest::Wait,
            SiteStep::Done => rest = Rest::Done,
        }
    }
    PlanResult::Chosen { plan, pages, rest }
}

fn end(mut plan: Box<SitePlan>, results: &[VisitResult]) -> Ended {
    results.iter().for_each(|result| result.report_to(&mut plan));
    let skips = Skips { reasons: plan.left_out() };
    let (kept, shared) = plan.finish();
    Ended { skips, kept, kept_of_all: shared.to_bytes() }
}

/// What a round over a site teaches that somebody else made, with the blocks and links as they are
/// now; none if there are more pages than a plan takes. Returns what is kept of the site and of all.
pub(crate) fn learn_round(
    map: &SitePages,
    results: &[VisitResult],
    was_known: impl Fn(PageId) -> bool,
) -> Option<(Vec<u8>, Vec<u8>)> {
    let options = AutoOptions::default();
    let is_alive = |page: &MappedPage| page.outcome != Some(Outcome::Gone);
    let mapped = MappedSite::new(map.map(is_alive), &map.kept, &options).ok()?;
    let evidence = |key: i64| was_known(PageId(key)).then(Evidence::default);
    let plan =
        SitePlan::new(RoundsBy::Auto, mapped, evidence, shared_beliefs(map, &options), options);
    let ended = end(Box::new(plan), results);
    Some((ended.kept, ended.kept_of_all))
}

fn shared_beliefs(map: &SitePages, options: &AutoOptions) -> SharedBeliefs {
    let shared = SharedBeliefs::from_bytes(&map.kept_of_all);
    shared.unwrap_or_else(|_| SharedBeliefs::new(options))
}

impl Beginning {
    /// The plan, which knows what was visited before a restart; none if there are more pages than a plan
    /// takes.
    fn plan(&self, round: RoundId) -> Option<SitePlan> {
        let map = &self.map;
        let rests = |page: &MappedPage| {
            page.round != Some(round)
                && gone_rest_s(&self.schedule, page.outcome, page.failures)
                    .zip(page.visited_s)
                    .is_some_and(|(rest_s, at_s)| !self.wanted && self.now_s < at_s + rest_s)
        };
        let budget = self.max_pages.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
        let options = AutoOptions { budget, ..AutoOptions::default() };
        let shared = shared_beliefs(map, &options);
        let mapped = MappedSite::new(map.map(|page| !rests(page)), &map.kept, &options).ok()?;
        let places: BTreeMap<i64, &MappedPage> =
            map.pages.iter().map(|page| (page.id.0, page)).collect();
        let evidence = |key: i64| {
            let page = places.get(&key).filter(|page| was_known(page, round))?;
            Some(self.evidence(page, round))
        };
        let mut plan = SitePlan::new(self.rounds_by, mapped, evidence, shared, options);
        for page in map.pages.iter().filter(|page| page.round == Some(round)) {
            if let Some(outcome) = page.outcome {
                let lost = page.blocks.lost.as_deref();
                let lost = lost.filter(|_| outcome == Outcome::Changed);
                plan.seen(page.id.0, seen(outcome, page.failures, true), lost);
            }
        }
        Some(plan)
    }

    /// What is known about a page besides its position in the site, at the beginning of the round.
    fn evidence(&self, page: &MappedPage, round: RoundId) -> Evidence {
        let Some(visited_s) = page.visited_s.filter(|_| page.round != Some(round)) else {
            return Evidence::default();
        };
        let rounds_s = &self.map.rounds_s;
        let modified_s = page.last_modified.as_deref().and_then(http_date::parse);
        let since = rounds_s.len() - rounds_s.partition_point(|&begun_s| begun_s <= visited_s);
        let said = self.signals.get(&page.id.server()).and_then(|(server, signals)| {
            let url = CanonicalUrl::parse(&format!("{server}{}", page.path)).ok();
            signals.says(&url?, visited_s)
        });
        Evidence {
            age_at_last_visit_s: modified_s.map(|modified_s| visited_s - modified_s),
            hint: match said {
                None => Hint::Silent,
                Some(true) => Hint::SaysChanged,
                Some(false) => Hint::SaysSame,
            },
            // The round under way is one of those that began since.
            rounds_unseen: u32::try_from(since.saturating_sub(1)).unwrap_or(u32::MAX),
            template: None,
        }
    }
}

/// Whether a page was seen before this round.
fn was_known(page: &MappedPage, round: RoundId) -> bool {
    page.visits > 1 || (page.visits == 1 && page.round != Some(round))
}

/// The result of a visit as plans see it: a page that has just gone has changed, one that is still
/// gone has not. `counts` says whether new content counts as a change.
pub(crate) fn seen(outcome: Outcome, failures: u32, counts: bool) -> Seen {
    match outcome {
        Outcome::Changed if counts => Seen::Changed,
        Outcome::Gone if failures <= 1 => Seen::Changed,
        Outcome::Changed | Outcome::Same | Outcome::NotModified | Outcome::Gone => Seen::Same,
        Outcome::Refused | Outcome::Failed => Seen::Failed,
    }
}
