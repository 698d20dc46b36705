//! The records that the state keeps and takes, by what they are about.

mod body_kind;
mod bytes;
mod change;
mod choice;
mod incident;
mod keeping;
mod links;
mod numbers;
mod page;
mod partition;
mod removal;
mod road;
mod round;
mod server;
mod site;
mod structure;
mod visit;
mod watch;
mod worth;

pub(crate) use self::visit::is_problem;
pub use self::{
    body_kind::BodyKind,
    bytes::Bytes,
    change::{Announced, Change, Committed, FoundPages, PageLessons, PullForward},
    choice::{IgnoredPart, PagePatterns, SiteHeader, SiteLabels},
    incident::{Incident, IncidentKind},
    keeping::{Keeping, KeptVersion, OnePer, PruneRow, PruneRule, Thinning},
    links::{FoundPage, Linked, PageLinks, Reading},
    numbers::{ContentMark, Nth, PageId, RoundId, ServerId, SiteId},
    page::{DuePage, NewPage, PageRecord},
    partition::{
        Division, Epoch, Mail, Need, NumberedMail, PartitionId, Partitioning, Received, url_hash,
    },
    removal::{Removal, RemovalRow},
    road::{RenderRule, RenderWhen, SiteRoad, SiteScripts},
    round::{Round, RoundCounts, RoundEnd},
    server::{RobotsCopy, ServerNote, ServerPace, ServerRecord},
    site::{RobotsPolicy, Schedule, ScheduleBy, Site, SiteConditions, SiteCounts, SiteHints},
    structure::{KeptStructure, MappedPage, SitePages, Skips},
    visit::{Discovered, Origin, PageUpdate, VersionRow, VisitCommit, VisitRow, VisitedPage},
    watch::{Watch, WatchEvent, WatchFinding, WatchHit, WatchId, WatchTrouble, WatchedPart},
    worth::{Estimate, OrderCurve, SiteWorth, WorthGroup},
};
pub use nenrin_revisit::Outcome;
pub use nenrin_urls::{Validators, VersionId};
