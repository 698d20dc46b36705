//! What is known: sites, servers, pages, visits and versions, and the one commit point.
//!
//! Read in this order:
//! - [`State`]: all contracts together; one for each kind of caller: [`CrawlState`] (with [`PageIndex`]
//!   and [`PartitionState`]), [`VersionIndex`], [`Registry`], [`Upkeep`], [`Reports`], [`Changes`];
//! - [`Site`] and [`SiteConditions`]: what a person registered;
//! - [`PageRecord`], [`DuePage`]: a page and what is needed to visit it;
//! - [`Change`], above all [`VisitCommit`]: all that one visit makes true, at once;
//! - [`Removal`]: the three ways to remove a site;
//! - [`Keeping`]: quota and prune rule of a site;
//! - [`SqliteState`]: the embedded implementation;
//! - [`PostgresState`]: the one that workers share; [`JoinedState`]: all its partitions as one.
//!
//! State holds no content: a version row names a version of the store by its number. State may be
//! lost; the version index is rebuilt from packs. It knows no clock: times are arguments.

mod contract;
mod error;
mod joined;
mod known;
mod postgres;
mod records;
mod rules;
mod sqlite;
#[cfg(any(test, feature = "suite"))]
pub mod suite;

pub use contract::*;
pub use error::StateError;
pub use joined::JoinedState;
pub use postgres::{
    Found, IDLE_LOAD, Lease, MailRow, News, PartitionRow, PostgresArchive, PostgresPlace,
    PostgresState, Renewed, RoundTrips, WorkerId, WorkerRow,
};
pub use records::*;
pub use sqlite::SqliteState;
