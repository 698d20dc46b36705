//! Pages that are queued or under way.

use std::collections::BTreeMap;

use nenrin_state::{Nth, PageId, SiteId};

/// The pages that are queued or under way: none is taken up twice. A page of several sites is
/// visited for one of them at a time, since each visit must know what the one before it found.
#[derive(Debug, Default)]
pub(crate) struct TakenPages {
    pages: BTreeMap<PageId, Taken>,
}

#[derive(Debug)]
struct Taken {
    by: Taker,
    /// Its record is being loaded again, because it was visited for another site meanwhile.
    is_loading: bool,
    /// Sites that want it next.
    waiting: Vec<Taker>,
}

/// A site that takes up a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taker {
    pub(crate) site: SiteId,
    /// Whether a round counts the page.
    pub(crate) in_round: bool,
    /// The page's discovery number, if it was a new one.
    pub(crate) new: Option<Nth>,
}

impl Taken {
    fn takers(&self) -> impl Iterator<Item = &Taker> {
        std::iter::once(&self.by).chain(&self.waiting)
    }
}

impl TakenPages {
    /// A site takes up a page. Returns whether it may be queued; if another site has it, the page is
    /// next for this one when that is done.
    pub(crate) fn take(&mut self, page: PageId, taker: Taker) -> bool {
        match self.pages.get_mut(&page) {
            Some(taken) => {
                taken.waiting.push(taker);
                false
            }
            None => {
                let taken = Taken { by: taker, is_loading: false, waiting: Vec::new() };
                self.pages.insert(page, taken);
                true
            }
        }
    }

    fn taker(&self, site: SiteId, page: PageId) -> Option<&Taker> {
        self.pages.get(&page)?.takers().find(|taker| taker.site == site)
    }

    /// Whether a site has taken up a page, or waits for it.
    pub(crate) fn contains(&self, site: SiteId, page: PageId) -> bool {
        self.taker(site, page).is_some()
    }

    /// Whether a round counts the page.
    pub(crate) fn is_in_round(&self, site: SiteId, page: PageId) -> bool {
        self.taker(site, page).is_some_and(|taker| taker.in_round)
    }

    /// A round counts the page from now on. Returns whether none did before; `None` if the page is
    /// not taken.
    pub(crate) fn join_round(&mut self, site: SiteId, page: PageId) -> Option<bool> {
        let Taken { by, waiting, .. } = self.pages.get_mut(&page)?;
        let taker = std::iter::once(by).chain(waiting).find(|taker| taker.site == site)?;
        Some(!std::mem::replace(&mut taker.in_round, true))
    }

    /// A site has done with a page. Returns whether a round counted it, and the site that has it now,
    /// if one waited.
    pub(crate) fn release(&mut self, site: SiteId, page: PageId) -> (bool, Option<Taker>) {
        let Some(taken) = self.pages.get_mut(&page) else { return (false, None) };
        if taken.by.site != site {
            let waited = taken.waiting.iter().position(|taker| taker.site == site);
            return (waited.is_some_and(|n| taken.waiting.remove(n).in_round), None);
        }
        let was_in_round = taken.by.in_round;
        if taken.waiting.is_empty() {
            self.pages.remove(&page);
            return (was_in_round, None);
        }
        taken.by = taken.waiting.remove(0);
        taken.is_loading = false;
        (was_in_round, Some(taken.by))
    }

    /// The record of a page is loaded again for the site that has it.
    pub(crate) fn load_again(&mut self, page: PageId) {
        if let Some(taken) = self.pages.get_mut(&page) {
            taken.is_loading = true;
        }
    }

    /// Whether a load was for a page that a site has already; once.
    pub(crate) fn loaded_again(&mut self, site: SiteId, page: PageId) -> bool {
        let taken = self.pages.get_mut(&page).filter(|taken| taken.by.site == site);
        taken.is_some_and(|taken| std::mem::take(&mut taken.is_loading))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: PageId = PageId(7);

    fn taker(site: u32, in_round: bool) -> Taker {
        Taker { site: SiteId(site), in_round, new: None }
    }

    #[test]
    fn a_page_goes_from_site_to_site_in_the_order_in_which_they_wanted_it() {
        let mut taken = TakenPages::default();
        assert!(taken.take(PAGE, taker(1, false)));
        assert!(!taken.take(PAGE, taker(2, true)) && !taken.take(PAGE, taker(3, false)));
        assert!(taken.contains(SiteId(3), PAGE) && !taken.contains(SiteId(4), PAGE));
        assert_eq!(taken.join_round(SiteId(1), PAGE), Some(true));
        assert_eq!(taken.join_round(SiteId(2), PAGE), Some(false));
        assert_eq!(taken.release(SiteId(1), PAGE), (true, Some(taker(2, true))));
        taken.load_again(PAGE);
        assert!(!taken.loaded_again(SiteId(3), PAGE), "another site has it");
        assert!(taken.loaded_again(SiteId(2), PAGE) && !taken.loaded_again(SiteId(2), PAGE));
        assert_eq!(taken.release(SiteId(3), PAGE), (false, None), "it waits no longer");
        assert_eq!(taken.release(SiteId(2), PAGE), (true, None));
        assert_eq!(taken.release(SiteId(2), PAGE), (false, None), "nobody has it");
    }
}
