use nenrin_urls::{CanonicalUrl, VersionId};
use serde::Serialize;

use crate::{PageId, SiteId, StateError, VersionRow, VisitRow};

/// Which changes of pages to list, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangeQuery {
    /// Only pages of this site.
    pub site: Option<SiteId>,
    /// Seen at or after this time.
    pub from_s: i64,
    /// Seen at or before this time.
    pub to_s: i64,
    /// Begin after this one.
    pub before: Option<ChangeCursor>,
    /// Without versions that differ by noise alone.
    pub significant: bool,
    /// At most this many.
    pub limit: usize,
    /// At most this many are looked at, so that a filter that nothing passes ends soon.
    pub looked_at: usize,
}

/// Where a list of changes goes on: the time, page and version of the last one looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ChangeCursor(pub i64, pub PageId, pub VersionId);

/// A page that is new, has changed or is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageChange {
    /// When that was seen.
    pub at_s: i64,
    /// The page.
    pub page: PageId,
    /// Its URL.
    pub url: CanonicalUrl,
    /// The site that keeps its schedule.
    pub site: SiteId,
    /// The version that was found; `None` where the page was gone.
    pub version: Option<VersionRow>,
    /// The version before; `None` where the page is new.
    pub previous: Option<VersionRow>,
}

impl PageChange {
    /// Where a list goes on after this one.
    pub fn cursor(&self) -> ChangeCursor {
        let version = self.version.as_ref().map_or(VersionId(0), |row| row.version);
        ChangeCursor(self.at_s, self.page, version)
    }
}

/// Some changes, and where to go on; `next` is `None` when there are no more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangePortion {
    /// The changes, newest first.
    pub changes: Vec<PageChange>,
    /// Where the next portion begins.
    pub next: Option<ChangeCursor>,
    /// How many were looked at.
    pub looked_at: usize,
}

/// What a version says, in a few words: read from its content, and kept so that it is read once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// The page's title; empty if it has none.
    pub title: String,
    /// The line that says most about what changed since the version before; empty if there is none.
    pub line: String,
    /// Whether that line was taken out, rather than added.
    pub removed: bool,
    /// The version that it was compared with.
    pub previous: Option<VersionId>,
}

/// Changes of pages by time, and what their versions say.
pub trait Changes: Send + Sync {
    /// Pages that are new, have changed or are gone, newest first. Pages that nobody may read are
    /// left out.
    fn changes(&self, query: &ChangeQuery) -> Result<ChangePortion, StateError>;

    /// Makes the index by which [`changes`](Self::changes) are found quickly, unless it is there.
    /// Archives that never ask do without the space it takes.
    fn index_changes(&self) -> Result<(), StateError>;

    /// What is known of some versions, in their order.
    fn summaries(&self, versions: &[VersionId]) -> Result<Vec<Option<Summary>>, StateError>;

    /// Keeps what was read of some versions of pages, unless they were dropped in the meantime. Of
    /// more than `most` the oldest are forgotten.
    fn keep_summaries(
        &self,
        read: &[(PageId, VersionId, Summary)],
        most: usize,
    ) -> Result<(), StateError>;

    /// The visits of a page, newest first, before a row of the log. At most `looked_at` rows of the
    /// log are read; returns also where to go on, if there may be more.
    fn recent_visits(
        &self,
        page: PageId,
        before: Option<i64>,
        looked_at: usize,
    ) -> Result<(Vec<VisitRow>, Option<i64>), StateError>;
}
