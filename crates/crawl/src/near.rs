//! Pages near one that changed: which are asked for, and how the state finds them.

use nenrin_revisit::Circle;
use nenrin_state::{PageId, PageIndex, PageRecord, PathQuery, SiteId, StateError};
use nenrin_urls::CanonicalUrl;

/// Pages looked at for one that changed. Where more of a circle turn out to have changed, these lead
/// on to the next.
pub(crate) const NEAR_MAX: usize = 48;

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
}

/// Finds the pages that a query asks for: around a page those that follow it in the order of paths,
/// the first after the last.
///
/// # Errors
/// [`StateError`] when the state cannot be read.
pub fn load_near(state: &dyn PageIndex, query: &NearQuery) -> Result<Vec<PageRecord>, StateError> {
    let mut found: Vec<PageRecord> = Vec::new();
    for &circle in &query.circles {
        let pages = match circle {
            Circle::Below => linked(state, query)?,
            around => in_circle(state, query, around)?,
        };
        for page in pages {
            let is_new = page.id != query.page && found.iter().all(|known| known.id != page.id);
            if found.len() < query.limit && is_new {
                found.push(page);
            }
        }
    }
    Ok(found)
}

fn linked(state: &dyn PageIndex, query: &NearQuery) -> Result<Vec<PageRecord>, StateError> {
    let urls: Vec<&CanonicalUrl> = query.links.iter().take(query.limit).collect();
    Ok(state.pages_of(&urls)?.into_iter().flatten().collect())
}

fn in_circle(
    state: &dyn PageIndex,
    query: &NearQuery,
    circle: Circle,
) -> Result<Vec<PageRecord>, StateError> {
    let path = query.url.path_and_query();
    let from = |after: Option<&str>| {
        let of_paths = PathQuery {
            site: query.site,
            server: query.page.server(),
            prefix: circle.prefix(path).to_owned(),
            after: after.map(str::to_owned),
            limit: query.limit,
        };
        match circle {
            // Jumps over the pages of directories below.
            Circle::Directory => {
                let entries = state.directory(&of_paths)?;
                Ok(entries.into_iter().filter_map(|entry| entry.page).collect())
            }
            _ => state.pages_by_path(&of_paths),
        }
    };
    let mut pages = from(Some(path))?;
    if pages.len() < query.limit {
        let before = |page: &PageRecord| page.url.path_and_query() < path;
        pages.extend(from(None)?.into_iter().take_while(before));
    }
    pages.retain(|page| circle.joins(path, page.url.path_and_query()));
    Ok(pages)
}
