//! Which parts of a server changed (paper 000), and beyond it.
mod error;
mod graph;
mod paths;
mod plans;
mod random;
mod round;
mod split;
mod upper;

pub use error::StructureError;
pub use graph::{MAX_LINKS_PER_PAGE, MAX_PAGES, PageIndex, SiteGraph};
pub use paths::{directory_of, family_of, is_index};
pub use plans::{ChoOptions, ChoSampling, GatedPlan, OrderedPlan, ThenPlan};
pub use round::{PageRef, RoundPlan, Seen, Skipped, Step, run_round};
pub use split::{SiteSplit, SplitOptions};
pub use upper::UpperSites;
