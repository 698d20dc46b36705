use std::collections::{BTreeMap, BTreeSet};

use nenrin_state::{Outcome, PageId, Round, RoundCounts, Schedule, ServerId};
use nenrin_structure::Seen;
use nenrin_urls::CanonicalUrl;

use crate::{planned::Planned, planning::Heard};

/// Redirects remembered to recognise loops.
const REDIRECTS_KEPT: usize = 100_000;

/// A page that is gone is looked for once in a quarter of a year at least.
const GONE_REST_MAX_S: i64 = 90 * 86_400;

/// A round under way.
#[derive(Debug)]
pub(crate) struct RoundState {
    pub(crate) round: Round,
    /// Someone asked for it now, whatever the site's hours.
    pub(crate) wanted: bool,
    /// What was found since this process took the round up.
    pub(crate) counts: RoundCounts,
    /// Pages queued, under way or not yet committed.
    pub(crate) open: usize,
    /// Pages taken up, with those of an earlier process.
    pub(crate) taken: u64,
    pub(crate) page_limit_reached: bool,
    /// Pages left for the next round.
    pub(crate) left: BTreeMap<ServerId, BTreeSet<PageId>>,
    pub(crate) scan: Scan,
    /// How it chooses its pages, if it does and its map is known.
    pub(crate) planned: Option<Planned>,
    /// The end has been sent to be committed.
    pub(crate) ending: bool,
    redirects: BTreeMap<CanonicalUrl, CanonicalUrl>,
}

/// Where the scan over the site's pages stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scan {
    /// The site's map is to be loaded first.
    Unmapped,
    /// To go on after this page.
    At(Option<PageId>),
    /// A load is under way.
    Loading,
    /// Every page was seen. `again` when pages became known that the queue had no room for.
    Done { again: bool },
}

impl RoundState {
    pub(crate) fn new(round: Round, wanted: bool, chooses: bool) -> Self {
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
            planned: None,
            ending: false,
            redirects: BTreeMap::new(),
        }
    }

    /// A page has no place in the queue now: it must be found again.
    pub(crate) fn not_queued(&mut self, page: PageId) {
        match (&mut self.planned, &mut self.scan) {
            (Some(planned), _) => planned.owe(page),
            (None, Scan::Done { again }) => *again = true,
            _ => {}
        }
    }

    /// What a visit of this round showed.
    pub(crate) fn told(&mut self, heard: Heard) {
        if let Some(planned) = &mut self.planned {
            planned.told(heard);
        }
    }

    /// There will be no visit to a page.
    pub(crate) fn cannot_see(&mut self, page: PageId) {
        self.told(Heard { page, seen: Seen::Failed, lost: None });
    }

    /// Whether nothing is left to do.
    pub(crate) fn is_over(&self) -> bool {
        let chosen = |planned: &Planned| planned.is_over(self.page_limit_reached);
        self.open == 0
            && matches!(self.scan, Scan::Done { again: false })
            && self.planned.as_ref().is_none_or(chosen)
    }

    /// Remembers a redirect and tells the loop that it closes, if it closes one.
    pub(crate) fn redirected(
        &mut self,
        from: &CanonicalUrl,
        to: &CanonicalUrl,
        hops_max: u32,
    ) -> Option<String> {
        if self.redirects.len() < REDIRECTS_KEPT {
            self.redirects.insert(from.clone(), to.clone());
        }
        let mut at = to;
        for _ in 0..hops_max {
            at = self.redirects.get(at)?;
            if at == from {
                return Some(format!("redirect loop: {from} → {to} → … → {from}"));
            }
        }
        None
    }
}

/// How long a page that was found gone several times in a row is left alone.
pub(crate) fn gone_rest_s(
    schedule: &Schedule,
    outcome: Option<Outcome>,
    failures: u32,
) -> Option<i64> {
    let Schedule::Rounds { period_s } = *schedule else { return None };
    let rounds = (1_i64 << failures.saturating_sub(1).min(16)) - 1;
    let rests = outcome == Some(Outcome::Gone) && failures > 1;
    rests.then(|| rounds.saturating_mul(period_s).min(GONE_REST_MAX_S))
}
