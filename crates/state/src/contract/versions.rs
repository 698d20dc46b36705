use nenrin_urls::{CanonicalUrl, UrlKey};

use crate::{PageId, SiteId, StateError, VersionId, VersionRow};

/// Which versions of a URL to list, oldest first.
#[derive(Debug, Clone, Copy)]
pub struct VersionQuery {
    /// Received at or after this time.
    pub from_s: i64,
    /// Received at or before this time.
    pub to_s: i64,
    /// At most this many.
    pub limit: usize,
}

impl Default for VersionQuery {
    fn default() -> Self {
        Self { from_s: i64::MIN, to_s: i64::MAX, limit: usize::MAX }
    }
}

/// Look-ups of versions by URL and date.
pub trait VersionIndex: Send + Sync {
    /// The URLs with versions that share a key, and their versions, oldest first.
    fn versions(
        &self,
        key: &UrlKey,
        query: VersionQuery,
    ) -> Result<Vec<(CanonicalUrl, VersionRow)>, StateError>;

    /// Versions of the URLs that share a key, newest first, before a time and version number.
    fn newest_versions(
        &self,
        key: &UrlKey,
        before: (i64, VersionId),
        limit: usize,
    ) -> Result<Vec<(CanonicalUrl, VersionRow)>, StateError>;

    /// The newest version at or before a time of the URLs that share a key, and if there is none,
    /// the oldest after it.
    fn version_as_of(
        &self,
        key: &UrlKey,
        at_s: i64,
    ) -> Result<Option<(CanonicalUrl, VersionRow)>, StateError>;

    /// A site as of a time, in the order of pages: each page's newest version at or before it,
    /// without the pages that were gone by then. Goes on after a page, with its number.
    fn site_as_of(
        &self,
        site: SiteId,
        at_s: i64,
        after: Option<PageId>,
        limit: usize,
    ) -> Result<Vec<(PageId, CanonicalUrl, VersionRow)>, StateError>;

    /// The URLs with versions whose keys are from `from` to before `to`, in the order of their
    /// keys, at most `limit`.
    fn urls(&self, from: &str, to: &str, limit: usize) -> Result<Vec<CanonicalUrl>, StateError>;

    /// How many versions of the URLs that share a key were received on each day.
    fn version_days(
        &self,
        key: &UrlKey,
        from_day: i64,
        to_day: i64,
    ) -> Result<Vec<(i64, u64)>, StateError>;

    /// The times at which a page was seen to be gone, oldest first.
    fn gone_times(&self, url: &CanonicalUrl) -> Result<Vec<i64>, StateError>;

    /// Shows every version to `look`, in the order of pages and times.
    fn each_version(
        &self,
        look: &mut dyn FnMut(&CanonicalUrl, &VersionRow),
    ) -> Result<(), StateError>;

    /// Whether a round of the site began after one time and at or before another.
    fn round_began(&self, site: SiteId, after_s: i64, until_s: i64) -> Result<bool, StateError>;
}
