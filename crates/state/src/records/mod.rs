//! The records that the state keeps and is told, by what they are about.

mod change;
mod links;
mod numbers;
mod outcome;
mod page;
mod round;
mod server;
mod site;
mod stats;
mod visit;

pub use self::{
    change::{Announced, Change, Committed, FoundPages, PullForward},
    links::{FoundPage, Linked, PageLinks, Reading},
    numbers::{ContentMark, PageId, ServerId, SiteId},
    outcome::Outcome,
    page::{DuePage, NewPage, PageRecord},
    round::{Round, RoundCounts, RoundEnd},
    server::{RobotsCopy, ServerNote, ServerPace, ServerRecord},
    site::{RobotsPolicy, Schedule, ScheduleBy, Site, SiteConditions, SiteCounts, SiteHints},
    stats::StateStats,
    visit::{Discovered, PageUpdate, VersionRow, VisitCommit, VisitRow},
};
