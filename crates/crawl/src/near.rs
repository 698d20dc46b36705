//! Pages near one that changed: which are asked for, and how the state finds them.

use nenrin_revisit::{Circle, PagesByPath, pages_near};
use nenrin_state::{PageId, PageIndex, PageRecord, PathQuery, SiteId, StateError};
use nenrin_urls::CanonicalUrl;

/// Asks for pages in the circles of one that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearQuery {
    /// The site.
    pub site: SiteId,
    /// The page that changed.
    pub page: PageId,
    /// Its URL.
    pub url: CanonicalUrl,
    /// The circles, from the closest.
    pub circles: Vec<Circle>,
    /// The pages that it links to, if those below it are among the circles.
    pub links: Vec<CanonicalUrl>,
    /// At most this many pages.
    pub limit: usize,
    /// Whether they are what the page's scripts ask for, which is visited with it.
    pub is_data: bool,
}

/// Finds the pages that a query asks for, by [`pages_near`].
///
/// # Errors
/// [`StateError`] when the state cannot be read.
pub fn load_near(state: &dyn PageIndex, query: &NearQuery) -> Result<Vec<PageRecord>, StateError> {
    pages_near(&Stored { state, query }, query.url.path_and_query(), &query.circles, query.limit)
}

/// The pages of the state around the page of a query.
struct Stored<'a> {
    state: &'a dyn PageIndex,
    query: &'a NearQuery,
}

impl PagesByPath for Stored<'_> {
    type Page = PageRecord;
    type Error = StateError;

    fn in_order(
        &self,
        circle: Circle,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<PageRecord>, StateError> {
        let of_paths = PathQuery {
            site: self.query.site,
            server: self.query.page.server(),
            prefix: prefix.to_owned(),
            after: after.map(str::to_owned),
            limit,
        };
        match circle {
            // Jumps over the pages of directories below.
            Circle::Directory => {
                let entries = self.state.directory(&of_paths)?;
                Ok(entries.into_iter().filter_map(|entry| entry.page).collect())
            }
            _ => self.state.pages_by_path(&of_paths),
        }
    }

    fn linked(&self, limit: usize) -> Result<Vec<PageRecord>, StateError> {
        let urls: Vec<&CanonicalUrl> = self.query.links.iter().take(limit).collect();
        Ok(self.state.pages_of(&urls)?.into_iter().flatten().collect())
    }

    fn path(page: &PageRecord) -> &str {
        page.url.path_and_query()
    }
}
