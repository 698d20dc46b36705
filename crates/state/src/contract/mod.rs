//! What may be asked of the state: one contract for each kind of caller. Every implementation runs the same suite
//! (`suite`), which has a part for each contract.

mod changes;
mod crawl;
mod pages;
mod partition;
mod registry;
mod reports;
mod upkeep;
mod versions;

pub use self::{
    changes::{ChangeCursor, ChangePortion, ChangeQuery, Changes, PageChange, Summary},
    crawl::{CrawlState, DueCursor, DueLoad, DueQuery},
    pages::{PageFilter, PageIndex, PathQuery, SiteServer, TreeEntry},
    partition::PartitionState,
    registry::Registry,
    reports::{
        DayCounts, DayQuery, KindSums, ProblemGroup, Reports, SiteSums, StateStats, VisitFilter,
    },
    upkeep::Upkeep,
    versions::{VersionIndex, VersionQuery},
};

use nenrin_urls::CanonicalUrl;

use crate::{Removal, Site, StateError};

/// All contracts together, where one object is handed to many. A function takes the narrowest
/// contract that it needs.
///
/// A caller may rely on this:
/// - a commit is all or nothing and durable when it returns; what it returns was committed;
/// - a page that was ever returned as known stays known;
/// - versions in a commit are durable in the store before it is called (the caller's duty);
/// - reads see every commit that returned before they began.
///
/// An error leaves the state as it was. [`StateError::is_transient`](crate::StateError::is_transient)
/// says whether a retry makes sense.
pub trait State: PartitionState + VersionIndex + Registry + Upkeep + Reports + Changes {}

impl<S: PartitionState + VersionIndex + Registry + Upkeep + Reports + Changes + ?Sized> State
    for S
{
}

/// Whether a page was archived and nobody may read it, because its site was removed.
pub fn is_closed(state: &dyn State, url: &CanonicalUrl) -> Result<bool, StateError> {
    let Some(page) = state.page(url)?.filter(|page| page.changes > 0) else { return Ok(false) };
    let is_its_site = |site: &Site| site.id == page.site;
    let site = state.sites()?.into_iter().find(is_its_site);
    Ok(matches!(site.and_then(|site| site.removed), Some(Removal::Deny | Removal::Delete)))
}
