//! Pages that are queued or under way.

use std::collections::BTreeMap;

use nenrin_state::{PageId, SiteId};

/// The pages of each site that are queued or under way: none is taken up twice.
#[derive(Debug, Default)]
pub(crate) struct TakenPages {
    /// Whether a round counts the page.
    pages: BTreeMap<(SiteId, PageId), bool>,
}

impl TakenPages {
    pub(crate) fn take(&mut self, site: SiteId, page: PageId, for_round: bool) {
        self.pages.insert((site, page), for_round);
    }

    pub(crate) fn contains(&self, site: SiteId, page: PageId) -> bool {
        self.pages.contains_key(&(site, page))
    }

    /// Whether a round counts the page.
    pub(crate) fn is_in_round(&self, site: SiteId, page: PageId) -> bool {
        self.pages.get(&(site, page)).copied().unwrap_or(false)
    }

    /// A round counts the page from now on. Returns whether none did before; `None` if the page is
    /// not taken.
    pub(crate) fn join_round(&mut self, site: SiteId, page: PageId) -> Option<bool> {
        let in_round = self.pages.get_mut(&(site, page))?;
        Some(!std::mem::replace(in_round, true))
    }

    /// The page is neither queued nor under way any more. Returns whether a round counted it.
    pub(crate) fn release(&mut self, site: SiteId, page: PageId) -> bool {
        self.pages.remove(&(site, page)).unwrap_or(false)
    }
}
