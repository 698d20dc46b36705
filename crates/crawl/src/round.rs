use std::collections::{BTreeMap, BTreeSet};

use nenrin_state::{PageId, Round, RoundCounts, ServerId};
use nenrin_urls::CanonicalUrl;

/// Redirects remembered to recognise loops.
const REDIRECTS_KEPT: usize = 100_000;

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
    /// The end has been sent to be committed.
    pub(crate) ending: bool,
    redirects: BTreeMap<CanonicalUrl, CanonicalUrl>,
}

/// Where the scan over the site's pages stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scan {
    /// To go on after this page.
    At(Option<PageId>),
    /// A load is under way.
    Loading,
    /// Every page was seen. `again` when pages became known that the queue had no room for.
    Done { again: bool },
}

impl RoundState {
    pub(crate) fn new(round: Round, wanted: bool) -> Self {
        let taken = round.counts.visits();
        Self {
            round,
            wanted,
            counts: RoundCounts::default(),
            open: 0,
            taken,
            page_limit_reached: false,
            left: BTreeMap::new(),
            scan: Scan::At(None),
            ending: false,
            redirects: BTreeMap::new(),
        }
    }

    /// Pages were found that are not queued: another scan must find them.
    pub(crate) fn scan_again(&mut self) {
        if let Scan::Done { again } = &mut self.scan {
            *again = true;
        }
    }

    /// Whether nothing is left to do.
    pub(crate) fn is_over(&self) -> bool {
        self.open == 0 && matches!(self.scan, Scan::Done { again: false })
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
