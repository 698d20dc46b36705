use std::fmt;
use std::str::FromStr;

use crate::incremental::{CutOff, DepthLimit1, IncrementalPageRank};
use crate::opic::Opic;
use crate::page_rank::SweptPageRank;
use crate::simple::{BackLinks, BreadthFirst, Omniscient};
use crate::{AutoOrder, CrawlOrder, OrderError};

/// Sweeps of PR over a whole crawl, as in paper 003.
const SWEEPS: u64 = 100;
/// L of PL.
const PAGE_LIMIT: usize = 8;
/// The threshold of VR.
const VALUE_RATIO: f64 = 1.5;
/// The threshold of AR.
const ACCUMULATED_RATIO: f64 = 29.0 / 30.0;

/// The orders that can be chosen by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strategy {
    /// `bf`: in the order of discovery.
    BreadthFirst,
    /// `blc`: by the number of collected pages that link to it.
    BackLinks,
    /// `pr`: PageRank of the collected graph, one sweep after every hundredth of the crawl.
    PageRank,
    /// `ipr-dl1`: incremental PageRank, direct targets only.
    IprDl1,
    /// `ipr-pl`: incremental PageRank, on through 8 pages.
    IprPl,
    /// `ipr-vr`: incremental PageRank, on while the share is large for the page.
    IprVr,
    /// `ipr-ar`: incremental PageRank, on once enough has accumulated.
    IprAr,
    /// `opic`: on-line page importance computation, greedy by cash.
    Opic,
    /// `omniscient`: by true importance, as an upper bound.
    Omniscient,
    /// `auto`: ours, the default.
    Auto,
}

impl Strategy {
    /// All strategies: those of the papers first, ours last.
    pub const ALL: [Self; 10] = [
        Self::BreadthFirst,
        Self::BackLinks,
        Self::PageRank,
        Self::IprDl1,
        Self::IprPl,
        Self::IprVr,
        Self::IprAr,
        Self::Opic,
        Self::Omniscient,
        Self::Auto,
    ];
    /// Their names, in the same order as [`Self::ALL`].
    pub const NAMES: [&'static str; 10] =
        ["bf", "blc", "pr", "ipr-dl1", "ipr-pl", "ipr-vr", "ipr-ar", "opic", "omniscient", "auto"];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// An order of this kind that knows no page yet. `expected_pages` sets how often PR sweeps.
    #[must_use]
    pub fn build(self, expected_pages: u64) -> Box<dyn CrawlOrder + Send> {
        let incremental = |cut_off| Box::new(IncrementalPageRank::new(cut_off));
        match self {
            Self::BreadthFirst => Box::new(BreadthFirst::default()),
            Self::BackLinks => Box::new(BackLinks::default()),
            Self::PageRank => Box::new(SweptPageRank::new(expected_pages / SWEEPS)),
            Self::IprDl1 => Box::new(DepthLimit1::default()),
            Self::IprPl => incremental(CutOff::Pages(PAGE_LIMIT)),
            Self::IprVr => incremental(CutOff::ValueRatio(VALUE_RATIO)),
            Self::IprAr => incremental(CutOff::AccumulatedRatio(ACCUMULATED_RATIO)),
            Self::Opic => Box::new(Opic::default()),
            Self::Omniscient => Box::new(Omniscient::default()),
            Self::Auto => Box::new(AutoOrder::default()),
        }
    }
}

impl Strategy {
    /// Whether a crawler can use it: `pr` must know the number of pages in advance, and
    /// `omniscient` their true importance.
    #[must_use]
    pub fn can_collect(self) -> bool {
        !matches!(self, Self::PageRank | Self::Omniscient)
    }

    /// An order that continues from a [`CrawlOrder::snapshot`], if this strategy has snapshots.
    ///
    /// # Errors
    /// [`OrderError::BadSnapshot`] when the bytes were not made by such an order.
    pub fn restore(self, snapshot: &[u8]) -> Result<Box<dyn CrawlOrder + Send>, OrderError> {
        match self {
            Self::Auto => Ok(Box::new(AutoOrder::import(snapshot)?)),
            _ => Err(OrderError::BadSnapshot { reason: "this order has no snapshots" }),
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for Strategy {
    type Err = OrderError;

    fn from_str(name: &str) -> Result<Self, OrderError> {
        let found = Self::ALL.into_iter().find(|strategy| strategy.name() == name);
        found.ok_or_else(|| OrderError::UnknownStrategy { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_to_its_strategy_and_back() {
        for (strategy, name) in Strategy::ALL.into_iter().zip(Strategy::NAMES) {
            assert_eq!(name.parse(), Ok(strategy));
            assert_eq!(strategy.to_string(), name);
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let error = "dl2".parse::<Strategy>().unwrap_err().to_string();
        assert!(error.contains("\"dl2\"") && error.contains("ipr-dl1"), "{error}");
    }
}
