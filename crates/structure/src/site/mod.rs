//! A site as an archive keeps it: pages with numbers of their own, of one server or several, what is
//! remembered of them from round to round, and the plan of one round over them.

mod map;
mod memory;
mod plan;
mod view;

pub use map::{MapPage, MappedSite, SiteMap};
pub use plan::{LeftOut, SitePlan, SiteStep, Why};
pub use view::{FamilyView, StructureView, Together, TopsView};
