use std::path::Path;

use crate::{KeptVersion, PageId, PruneRow, SiteId, StateError, VersionId};

/// What upkeep needs: dropping versions, checking, freeing space.
pub trait Upkeep: Send + Sync {
    /// The versions of some of a site's denied pages, in the order of pages; goes on after a page.
    fn denied_versions(
        &self,
        site: SiteId,
        after: Option<PageId>,
        pages: usize,
    ) -> Result<Vec<(PageId, VersionId)>, StateError>;

    /// Drops every version of these pages, after the store has forgotten them; returns how many.
    fn drop_versions(&self, pages: &[PageId]) -> Result<u64, StateError>;

    /// The versions of some of a site's own pages, in the order of pages and times; goes on after a
    /// page. Fewer pages than asked for if they have very many versions. A page that several sites
    /// have belongs to the one that found it first.
    fn site_versions(
        &self,
        site: SiteId,
        after: Option<PageId>,
        pages: usize,
    ) -> Result<Vec<KeptVersion>, StateError>;

    /// Drops versions and writes down by which rule; the counts of `row` are set here. They are not
    /// found any more at once, and are listed by [`pruning`](Self::pruning) until the store has
    /// forgotten them. The one that a page's next visit is compared with stays. Returns how many
    /// were dropped.
    fn prune(&self, row: &PruneRow, versions: &[KeptVersion]) -> Result<u64, StateError>;

    /// Versions that were dropped and that the store may not have forgotten yet.
    fn pruning(&self, limit: usize) -> Result<Vec<VersionId>, StateError>;

    /// The store has forgotten these, durably.
    fn pruned(&self, versions: &[VersionId]) -> Result<(), StateError>;

    /// Takes versions off the list that cannot be read any more, and writes down why. A page that
    /// loses its last one is fetched as a whole at its next visit. Returns how many were listed.
    fn drop_lost(&self, versions: &[VersionId], why: &str, at_s: i64) -> Result<u64, StateError>;

    /// What was pruned or is lost, newest first.
    fn prunes(&self) -> Result<Vec<PruneRow>, StateError>;

    /// Checks what can be checked from inside; a sentence for each thing that is wrong.
    fn check(&self) -> Result<Vec<String>, StateError>;

    /// What was visited, found or begun later than now was written while the clock was ahead: it is
    /// made due now, and what was learnt from those times is forgotten. Versions keep their times.
    /// Returns how many pages that were, or nothing if there was no such time.
    fn set_clock_back(&self, now_s: i64) -> Result<Option<u64>, StateError>;

    /// Frees the space that deletions and updates left unused.
    fn tidy_up(&self) -> Result<(), StateError>;

    /// Copies the state as it is at one moment into a new file, while others go on writing.
    fn copy_to(&self, path: &Path) -> Result<(), StateError>;
}
