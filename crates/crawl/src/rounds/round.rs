//! One round under way.

use std::collections::{BTreeMap, BTreeSet};

use nenrin_lang::Reason;
use nenrin_state::{
    DuePage, PageId, Round, RoundCounts, RoundEnd, RoundId, ServerId, SiteId, Skips, VisitCommit,
};
use nenrin_structure::Seen;
use nenrin_urls::CanonicalUrl;

use crate::{
    events::{Load, RoundReport},
    plans::{PlanJob, Planned, Survey, VisitResult},
};

/// Redirects remembered to recognise loops.
const REDIRECTS_KEPT: usize = 100_000;

/// A round under way.
#[derive(Debug)]
pub(super) struct RunningRound {
    round: Round,
    /// Someone asked for it now, whatever the site's hours.
    wanted: bool,
    /// What was found since this process took the round up.
    counts: RoundCounts,
    /// Pages queued, under way or not yet committed.
    open: usize,
    /// Pages taken up, with those of an earlier process.
    taken: u64,
    page_limit_reached: bool,
    /// Pages left for the next round.
    left: BTreeMap<ServerId, BTreeSet<PageId>>,
    scan: Scan,
    /// Pages must be found again that the queue had no capacity for, or that went back to rest.
    again: bool,
    /// How it chooses its pages, if it does and its map is known.
    planned: Option<Planned>,
    /// The end has been sent to be committed.
    ending: bool,
    redirects: BTreeMap<CanonicalUrl, CanonicalUrl>,
}

/// How far the scan over the site's pages is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scan {
    /// The site's map is to be loaded first.
    Unmapped,
    /// To go on after this page.
    At(Option<PageId>),
    /// A load is under way.
    Loading,
    /// Every page was seen.
    Done,
}

/// How a round that is over ends.
#[derive(Debug)]
pub(super) enum Ending {
    /// By a commit.
    Commit(RoundEnd),
    /// After its plan was written down.
    Plan(PlanJob),
}

impl RunningRound {
    pub(super) fn new(round: Round, wanted: bool, chooses: bool) -> Self {
        let taken = round.counts.visits();
        Self {
            round,
            wanted,
            counts: RoundCounts::default(),
            open: 0,
            taken,
            page_limit_reached: false,
            left: BTreeMap::new(),
            scan: if chooses { Scan::Unmapped } else { Scan::At(None) },
            again: false,
            planned: None,
            ending: false,
            redirects: BTreeMap::new(),
        }
    }

    pub(super) fn id(&self) -> RoundId {
        self.round.id
    }

    pub(super) fn round(&self) -> Round {
        self.round.clone()
    }

    pub(super) fn site(&self) -> SiteId {
        self.round.site
    }

    pub(super) fn started_s(&self) -> i64 {
        self.round.started_s
    }

    /// Whether someone asked for it now, whatever the site's hours.
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// Pages visited so far, and pages waiting.
    pub(super) fn progress(&self) -> (u64, u64) {
        (self.round.counts.visits() + self.counts.visits(), self.open as u64)
    }

    /// Whether nothing is left to do.
    fn is_over(&self) -> bool {
        let chosen = |planned: &Planned| planned.is_over(self.page_limit_reached);
        self.open == 0
            && self.scan == Scan::Done
            && !self.again
            && self.planned.as_ref().is_none_or(chosen)
    }

    /// How it ends, if nothing is left to do; once.
    pub(super) fn end(&mut self, at_s: i64) -> Option<Ending> {
        if self.ending || !self.is_over() {
            return None;
        }
        self.ending = true;
        let (round, site) = (self.round.id, self.round.site);
        Some(match self.planned.take() {
            Some(planned) => Ending::Plan(planned.end()),
            None => Ending::Commit(RoundEnd { round, site, at_s, skips: None }),
        })
    }

    /// Its plan was written down, with the pages that it left out: it ends by a commit.
    pub(super) fn plan_ended(&mut self, at_s: i64, skips: Option<Skips>) -> RoundEnd {
        if let Some(skips) = &skips {
            self.counts.skipped = skips.pages();
        }
        RoundEnd { round: self.round.id, site: self.round.site, at_s, skips }
    }

    pub(super) fn report(self) -> RoundReport {
        let left = self.left.iter().map(|(&server, pages)| (server, pages.len() as u64));
        RoundReport {
            round: self.round.id,
            site: self.round.site,
            counts: self.counts,
            left: left.collect(),
            page_limit_reached: self.page_limit_reached,
        }
    }
}

/// Loading its pages.
impl RunningRound {
    /// Whether it may have pages to load: every step asks it of every round.
    pub(super) fn has_more(&self) -> bool {
        self.chooses() || self.again || !matches!(self.scan, Scan::Done | Scan::Loading)
    }

    /// The next load of its scan, if it is to make one.
    pub(super) fn next_load(&mut self, limit: usize) -> Option<Load> {
        if self.scan == Scan::Unmapped {
            self.scan = Scan::Loading;
            return Some(Load::Map(self.round.clone()));
        }
        if self.scan == Scan::Done && std::mem::take(&mut self.again) {
            self.scan = Scan::At(None);
        }
        match self.scan {
            Scan::At(after) if !self.page_limit_reached => {
                self.scan = Scan::Loading;
                Some(Load::Round { round: self.round.clone(), after, limit })
            }
            _ => None,
        }
    }

    /// Pages of its scan came from the state, at most `limit`.
    pub(super) fn loaded(&mut self, pages: &[DuePage], limit: usize) {
        self.scan = match pages.last() {
            Some(last) if pages.len() >= limit => Scan::At(Some(last.page.id)),
            _ => Scan::Done,
        };
    }

    /// There is nothing to choose by, or no plan can be made: every page is visited.
    pub(super) fn visit_everything(&mut self) {
        self.planned = None;
        self.again = false;
        self.scan = Scan::At(None);
        self.ending = false;
    }

    /// It chooses its pages from now on, at most `ahead` at once.
    pub(super) fn choose(&mut self, survey: Survey, ahead: usize) {
        self.scan = Scan::Done;
        self.again = false;
        self.planned = Some(Planned::new(survey, ahead));
    }

    /// Whether it chooses its pages by a plan.
    pub(super) fn chooses(&self) -> bool {
        self.planned.is_some()
    }

    /// Its plan.
    pub(super) fn plan(&mut self) -> Option<&mut Planned> {
        self.planned.as_mut()
    }

    /// Its plan, unless it has visited as many pages as it may.
    pub(super) fn plan_with_room(&mut self) -> Option<&mut Planned> {
        self.planned.as_mut().filter(|_| !self.page_limit_reached)
    }

    /// The pages that its plan wants loaded now.
    pub(super) fn load_chosen(
        &mut self,
        room: usize,
        is_taken: impl Fn(PageId) -> bool,
    ) -> Option<Load> {
        let pages = self.planned.as_mut()?.wanted(room, is_taken);
        (!pages.is_empty()).then(|| Load::Chosen { round: self.round.clone(), pages })
    }

    /// A load of chosen pages was answered with these.
    pub(super) fn chosen_loaded(&mut self, asked: &[PageId], pages: &[DuePage]) {
        let Some(planned) = &mut self.planned else { return };
        let came: BTreeSet<PageId> = pages.iter().map(|due| due.page.id).collect();
        for &page in asked {
            planned.loaded(page);
            if !came.contains(&page) {
                planned.record(VisitResult { page, seen: Seen::Failed, lost: None });
            }
        }
    }
}

/// Its pages.
impl RunningRound {
    /// Whether it may take up another page; if not, it loads no more.
    pub(super) fn has_room(&mut self, max_pages: Option<u64>) -> bool {
        let is_full = max_pages.is_some_and(|max| self.taken >= max);
        if is_full {
            self.page_limit_reached = true;
            self.scan = Scan::Done;
            self.again = false;
        }
        !is_full
    }

    /// A page of it is queued.
    pub(super) fn take(&mut self) {
        self.open += 1;
        self.taken += 1;
    }

    /// A page that was queued goes back to rest and must be found again.
    pub(super) fn rest(&mut self, page: PageId) {
        self.untake();
        self.not_queued(page);
    }

    /// A page that was queued is left for the next round.
    pub(super) fn leave(&mut self, page: PageId) {
        self.untake();
        self.leave_out(page);
    }

    fn untake(&mut self) {
        self.open -= 1;
        self.taken -= 1;
    }

    /// A page cannot be queued because its server must rest: it is left for the next round.
    pub(super) fn leave_out(&mut self, page: PageId) {
        self.left.entry(page.server()).or_default().insert(page);
        self.cannot_see(page);
    }

    /// A page is not in the queue now: it must be found again.
    pub(super) fn not_queued(&mut self, page: PageId) {
        match &mut self.planned {
            Some(planned) => planned.owe(page),
            // The scan may have passed the page already.
            None => self.again = !self.page_limit_reached,
        }
    }

    /// There will be no visit to a page.
    pub(super) fn cannot_see(&mut self, page: PageId) {
        self.record(VisitResult { page, seen: Seen::Failed, lost: None });
    }

    fn record(&mut self, result: VisitResult) {
        if let Some(planned) = &mut self.planned {
            planned.record(result);
        }
    }

    /// A page became known while it runs.
    pub(super) fn count_new_page(&mut self) {
        self.counts.new_pages += 1;
    }

    /// A visit of it goes to be committed.
    pub(super) fn count(&mut self, visit: &VisitCommit) {
        self.counts.count(visit);
    }

    /// A visit of it is committed.
    pub(super) fn visited(&mut self, result: VisitResult) {
        self.open -= 1;
        self.record(result);
    }

    /// Remembers a redirect and describes the loop that it closes, if it closes one.
    pub(super) fn redirected(
        &mut self,
        from: &CanonicalUrl,
        to: &CanonicalUrl,
        hops_max: u32,
    ) -> Option<Reason> {
        if self.redirects.len() < REDIRECTS_KEPT {
            self.redirects.insert(from.clone(), to.clone());
        }
        let mut at = to;
        for _ in 0..hops_max {
            at = self.redirects.get(at)?;
            if at == from {
                let (from, to) = (from.to_string(), to.to_string());
                return Some(Reason::RedirectLoop { from, to });
            }
        }
        None
    }
}
