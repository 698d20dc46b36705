//! What is known of a page.

use nenrin_revisit::KnownPage;
use nenrin_urls::CanonicalUrl;

use crate::{ContentMark, Estimate, Nth, Outcome, PageId, SiteId, Validators, VersionId};

/// All that is known of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRecord {
    /// Its number.
    pub id: PageId,
    /// Its discovery number; see [`FoundPage`](crate::FoundPage).
    pub nth: Nth,
    /// Its URL.
    pub url: CanonicalUrl,
    /// The site that keeps its schedule: the one that found it first, or else the first of those
    /// that know it and let every page have its own.
    pub site: SiteId,
    /// When it became known.
    pub discovered_s: i64,
    /// How important the crawl order estimated it at its last visit, in percent of the mean of all
    /// known pages; 0 if unknown.
    pub importance_percent: u32,
    /// What its schedule believed of it after its last visit.
    pub estimate: Option<Estimate>,
    /// When it was last tried.
    pub visited_s: Option<i64>,
    /// What the last visit found.
    pub outcome: Option<Outcome>,
    /// When it is to be visited again, if it has a time of its own.
    pub due_s: Option<i64>,
    /// Visits made.
    pub visits: u32,
    /// Visits that saw new content.
    pub changes: u32,
    /// Of these, the ones that were not mere noise.
    pub significant: u32,
    /// Visits in a row that did not see it.
    pub failures: u32,
    /// The validators of the last version.
    pub validators: Validators,
    /// Mark of the last content.
    pub mark: Option<ContentMark>,
    /// Size of the last content.
    pub bytes: u64,
    /// The store's number of the last version.
    pub version: Option<VersionId>,
    /// The revisit policy's memory, opaque here.
    pub history: Vec<u8>,
}

impl PageRecord {
    /// A page that became known and was not tried yet.
    pub fn unvisited(
        (id, nth): (PageId, Nth),
        url: CanonicalUrl,
        site: SiteId,
        discovered_s: i64,
        due_s: Option<i64>,
    ) -> Self {
        Self {
            id,
            nth,
            url,
            site,
            discovered_s,
            importance_percent: 0,
            estimate: None,
            visited_s: None,
            outcome: None,
            due_s,
            visits: 0,
            changes: 0,
            significant: 0,
            failures: 0,
            validators: Validators::default(),
            mark: None,
            bytes: 0,
            version: None,
            history: Vec::new(),
        }
    }

    /// Its importance, if it is known; the average known page has 1.
    pub fn importance(&self) -> Option<f64> {
        (self.importance_percent > 0).then(|| f64::from(self.importance_percent) / 100.0)
    }

    /// The page as its schedule sees it.
    pub fn known(&self) -> KnownPage<'_> {
        KnownPage {
            server: u64::from(self.id.server().0),
            path: self.url.path_and_query(),
            history: &self.history,
            found: self.outcome,
            failures: self.failures,
            importance_percent: if self.importance_percent == 0 {
                100
            } else {
                self.importance_percent
            },
        }
    }
}

/// A page that is to be visited for a site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuePage {
    /// The page.
    pub page: PageRecord,
    /// The site for which it is visited.
    pub site: SiteId,
    /// Its depth in that site.
    pub depth: u32,
    /// Redirects followed to reach it.
    pub hops: u32,
    /// Whether a signal pulled it forward.
    pub pulled: bool,
}

/// A page that a commit made known or brought nearer to a top page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPage {
    /// The page, ready to be visited.
    pub due: DuePage,
}
