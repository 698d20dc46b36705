//! Which pages are looked at for one that changed.

use super::Circle;

/// Pages looked at for one that changed. Where more of a circle turn out to have changed, these lead
/// on to the next.
pub const NEAR_MAX: usize = 48;

/// Where the pages of a server are found by their paths: the state of a crawler, or a list.
pub trait PagesByPath {
    /// A page as it is found there.
    type Page;
    /// What can go wrong.
    type Error;

    /// At most `limit` pages of a circle whose paths begin with `prefix`, in the order of paths;
    /// with `after` only those that follow it.
    fn in_order(
        &self,
        circle: Circle,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Self::Page>, Self::Error>;

    /// The pages that the changed page links to, at most `limit`.
    fn linked(&self, limit: usize) -> Result<Vec<Self::Page>, Self::Error>;

    /// Path and query of a page.
    fn path(page: &Self::Page) -> &str;
}

/// At most `limit` pages in the circles of the page at `path`, the closest circle first: those that
/// follow it in the order of paths, the first after the last.
///
/// # Errors
/// What the look-up of pages answers.
pub fn pages_near<P: PagesByPath>(
    pages: &P,
    path: &str,
    circles: &[Circle],
    limit: usize,
) -> Result<Vec<P::Page>, P::Error> {
    let mut found: Vec<P::Page> = Vec::new();
    for &circle in circles {
        let members = match circle {
            Circle::Below => pages.linked(limit)?,
            around => around_page(pages, path, around, limit)?,
        };
        for page in members {
            let at = P::path(&page);
            let is_new = at != path && found.iter().all(|known| P::path(known) != at);
            if found.len() < limit && is_new {
                found.push(page);
            }
        }
    }
    Ok(found)
}

fn around_page<P: PagesByPath>(
    pages: &P,
    path: &str,
    circle: Circle,
    limit: usize,
) -> Result<Vec<P::Page>, P::Error> {
    let prefix = circle.prefix(path);
    let mut members = pages.in_order(circle, prefix, Some(path), limit)?;
    if members.len() < limit {
        let first = pages.in_order(circle, prefix, None, limit)?;
        members.extend(first.into_iter().take_while(|page| P::path(page) < path));
    }
    members.retain(|page| circle.joins(path, P::path(page)));
    Ok(members)
}
