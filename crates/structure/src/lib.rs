//! Decides which parts of a server to visit, by which of them probably changed: paper 000, and
//! beyond it.
//!
//! Read in this order:
//! - [`SiteGraph`]: pages, links and depths, updated link by link;
//! - [`SiteSplit`] and [`UpperSites`]: the paper's sites by directory and by links, and which site
//!   is above which;
//! - [`RoundPlan`]: the one contract: what to visit next, given what this round has shown;
//! - [`GatedPlan`]: methods A, B and C; [`ThenPlan`], [`OrderedPlan`] and [`ChoSampling`]: what
//!   they are compared with;
//! - [`AutoRound`] with [`Beliefs`] and [`SharedBeliefs`]: our own plan, which learns;
//! - what an archive uses of all this: [`PageFragments`] (fragments that pages share), [`RoundsBy`]
//!   (the choice), [`SiteMap`] and [`MappedSite`] (its pages as a graph, with what is remembered of
//!   them), [`SitePlan`] (a round over them).
//!
//! This crate fetches nothing, stores no file and reads no clock: callers report what visits
//! showed, and it answers where to look next. It does not decide *when* to visit again: that is the
//! revisit schedule.

mod auto;
mod error;
mod graph;
mod page_fragments;
mod paths;
mod plans;
mod random;
mod round;
mod rounds_by;
mod site;
mod split;
mod upper;

pub use auto::{
    AutoOptions, AutoRound, AutoServer, Beliefs, Evidence, Hint, RoundEstimate, SharedBeliefs,
    templates_from_links,
};
pub use error::StructureError;
pub use graph::{MAX_LINKS_PER_PAGE, MAX_PAGES, PageIndex, SiteGraph};
pub use page_fragments::PageFragments;
pub use paths::{directory_of, family_of, is_index};
pub use plans::{ChoOptions, ChoSampling, GatedPlan, OrderedPlan, ThenPlan};
pub use round::{PageRef, RoundPlan, Seen, Skipped, Step, run_round};
pub use rounds_by::RoundsBy;
pub use site::{
    FamilyView, LeftOut, MapPage, MappedSite, SiteMap, SitePlan, SiteStep, StructureView, Together,
    TopsView, Why,
};
pub use split::{SiteSplit, SplitOptions};
pub use upper::UpperSites;
