//! A site as an archive stores it: numbered pages of one or several servers, what is remembered of
//! them from round to round, and the plan of one round over them.

mod map;
mod memory;
mod plan;
mod view;

pub use map::{MapPage, MappedSite, SiteMap};
pub use plan::{LeftOut, SitePlan, SiteStep, Why};
pub use view::{FamilyView, StructureView, Together, TopsView};
