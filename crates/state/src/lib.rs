//! What is known: sites, servers, pages, visits and versions, and the one commit point.
//!
//! Read in this order:
//! - [`State`]: the contract, a small set of batch operations;
//! - [`Site`] and [`SiteConditions`]: what a person registered;
//! - [`PageRecord`], [`DuePage`]: a page and what is needed to visit it;
//! - [`Change`], above all [`VisitCommit`]: all that one visit makes true, at once;
//! - [`Removal`]: the three ways to remove a site;
//! - [`Keeping`]: quota and prune rule of a site;
//! - [`SqliteState`]: the embedded implementation.
//!
//! State holds no content: a version row names a version of the store by its number. State may be
//! lost; the version index is rebuilt from packs. It knows no clock: times are arguments.

mod bytes;
mod contract;
mod error;
mod incident;
mod keeping;
mod outlook;
mod overview;
mod records;
mod removal;
mod sqlite;
mod structure;
mod structure_view;
#[cfg(any(test, feature = "suite"))]
pub mod suite;
mod worth;

pub use bytes::Bytes;
pub use contract::{DueCursor, DueLoad, DueQuery, PageFilter, State, VersionQuery, VisitFilter};
pub use error::StateError;
pub use incident::{Incident, IncidentKind};
pub use keeping::{Keeping, KeptVersion, OnePer, PruneRow, PruneRule, Thinning};
pub use outlook::{DueReason, Outlook, Reasons, outlook};
pub use overview::{
    BodyKind, DayCounts, DayQuery, KindSums, LogQuery, PathQuery, SiteServer, SiteSums, TreeEntry,
    TroubleGroup,
};
pub use records::*;
pub use removal::{Removal, RemovalRow};
pub use sqlite::SqliteState;
pub use structure::{KeptStructure, MappedPage, SitePages, Skips};
pub use structure_view::{ChosenRound, SiteStructure, SkippedPages, site_structure};
pub use worth::{Estimate, OrderCurve, SiteWorth, WorthGroup, shown_worth};
