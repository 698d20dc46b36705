//! Which parts of a server changed: paper 000, and beyond it.
//!
//! Read in this order: [`SiteGraph`] (pages, links, depths, kept up to date link by link),
//! [`SiteSplit`] and [`UpperSites`] (the paper's sites by directory and by links, and who stands above
//! whom), [`RoundPlan`] (the one contract: what to visit next, given what this round has shown),
//! [`GatedPlan`] (methods A, B and C), [`ThenPlan`], [`OrderedPlan`] and [`ChoSampling`] (what they are
//! compared with), [`AutoRound`] with [`Beliefs`] and [`SharedBeliefs`] (our own plan, which learns),
//! and what an archive uses of all this: [`PageBlocks`] (what pages share), [`RoundsBy`] (the choice), [`SiteMap`] and [`MappedSite`] (its
//! pages as a graph, with what is remembered of them), [`SitePlan`] (a round over them).
//!
//! It fetches nothing, keeps no file and reads no clock: it is told what visits showed, and says
//! where to look next. It does not say *when* to come again: that is the revisit schedule.

mod auto;
mod error;
mod graph;
mod page_blocks;
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
pub use page_blocks::PageBlocks;
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
