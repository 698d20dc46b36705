use nenrin_urls::{CanonicalUrl, Server};
use serde::Serialize;

use crate::{PageId, PageRecord, ServerId, SiteId, StateError};

/// Which pages to list, in the order of their numbers.
#[derive(Debug, Clone, Copy, Default)]
pub struct PageFilter {
    /// Only pages of this site.
    pub site: Option<SiteId>,
    /// Begin after this page.
    pub after: Option<PageId>,
    /// At most this many.
    pub limit: usize,
}

/// Which pages of a server to list, in the order of their paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathQuery {
    /// Pages of this site.
    pub site: SiteId,
    /// Pages of this server.
    pub server: ServerId,
    /// Only paths that begin like this.
    pub prefix: String,
    /// Begin after this path.
    pub after: Option<String>,
    /// At most this many.
    pub limit: usize,
}

/// A server that has pages of a site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SiteServer {
    /// Its number.
    pub id: ServerId,
    /// Its name.
    pub server: Server,
}

/// One entry of a directory of a server: a page, a directory below, or both at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    /// The path up to and including this entry; a directory's ends in `/`.
    pub path: String,
    /// The page at exactly this path, if it is one.
    pub page: Option<PageRecord>,
}

/// Look-ups of pages: by URL, by number, by path.
pub trait PageIndex: Send + Sync {
    /// What is known of several URLs at one moment, in their order.
    fn pages_of(&self, urls: &[&CanonicalUrl]) -> Result<Vec<Option<PageRecord>>, StateError>;

    /// What is known of a URL.
    fn page(&self, url: &CanonicalUrl) -> Result<Option<PageRecord>, StateError> {
        Ok(self.pages_of(&[url])?.pop().flatten())
    }

    /// The URL of a page by its number.
    fn url_of(&self, page: PageId) -> Result<Option<CanonicalUrl>, StateError>;

    /// Pages in the order of their numbers.
    fn pages(&self, filter: PageFilter) -> Result<Vec<PageRecord>, StateError>;

    /// Pages of a site on one server, in the order of their paths.
    fn pages_by_path(&self, query: &PathQuery) -> Result<Vec<PageRecord>, StateError>;

    /// What is directly in the directory `query.prefix`, which ends in `/`: pages and directories,
    /// in the order of their paths.
    fn directory(&self, query: &PathQuery) -> Result<Vec<TreeEntry>, StateError>;

    /// The servers with pages of a site, by number.
    fn site_servers(&self, site: SiteId, limit: usize) -> Result<Vec<SiteServer>, StateError>;
}
