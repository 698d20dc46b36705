//! What a visit makes true.

use nenrin_lang::{Reason, serialize_reason};
use nenrin_urls::CanonicalUrl;
use serde::{Deserialize, Serialize};

use crate::{ContentMark, Estimate, Outcome, PageId, RoundId, SiteId, Validators, VersionId};

/// A page that a visit made known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Discovered {
    /// Its URL.
    pub url: CanonicalUrl,
    /// Its depth in the visiting site.
    pub depth: u32,
    /// Redirects followed to reach it.
    pub hops: u32,
    /// When it is due, if it has a time of its own.
    pub due_s: Option<i64>,
}

/// Whether something is wrong with a visit. What robots.txt or the site's own conditions leave out is
/// as it should be, and a page that the server does not have is no problem of collecting.
pub(crate) fn is_problem(outcome: Outcome, reason: Option<&Reason>) -> bool {
    let is_by_rule =
        matches!(reason, Some(Reason::Robots { .. } | Reason::LeftOut | Reason::LogsOut));
    match outcome {
        Outcome::Failed => true,
        Outcome::Refused => !is_by_rule,
        _ => false,
    }
}

/// What a visit changes in the page's record; by default, all that was known of it is forgotten.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageUpdate {
    /// The validators to send next time.
    pub validators: Validators,
    /// Mark of the content last seen.
    pub mark: Option<ContentMark>,
    /// Size of the content last seen.
    pub bytes: u64,
    /// The revisit policy's memory.
    pub history: Vec<u8>,
    /// When to visit it next, if the page has a time of its own.
    pub due_s: Option<i64>,
    /// Visits in a row that did not see the page.
    pub failures: u32,
}

/// A version of a page, in the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VersionRow {
    /// When it was received.
    pub at_s: i64,
    /// The store's number.
    pub version: VersionId,
    /// HTTP status.
    pub status: u16,
    /// Content type without parameters.
    pub mime: String,
    /// Size of the body as received.
    pub bytes: u64,
    /// How much of the content changed against the version before, in thousandths; 0 is noise that
    /// no reader would call a change. `None` where it was not compared.
    pub changed_permille: Option<u16>,
}

impl VersionRow {
    /// Whether the change to this version is one for readers; what was not compared counts as one.
    pub fn is_significant(&self) -> bool {
        self.changed_permille != Some(0)
    }
}

/// The page of a visit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VisitedPage {
    /// A known page.
    Known(PageId),
    /// By its URL. It becomes known to the visit's site where it was not.
    Url(Discovered),
}

impl VisitedPage {
    /// The page's number, if the visit names its page by it.
    pub fn number(&self) -> Option<PageId> {
        match self {
            Self::Known(page) => Some(*page),
            Self::Url(_) => None,
        }
    }
}

impl From<PageId> for VisitedPage {
    fn from(page: PageId) -> Self {
        Self::Known(page)
    }
}

impl From<Discovered> for VisitedPage {
    fn from(found: Discovered) -> Self {
        Self::Url(found)
    }
}

/// Where a visit comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Origin {
    /// This archive made it.
    #[default]
    Crawled,
    /// Another collection made it. If it is older than the page's last visit, it is counted, and
    /// what is known of the page stays what the last visit found.
    Imported,
    /// Its version was found in the packs. If the index does not have it, it is entered; the visit
    /// itself is neither logged nor counted, since it was made long ago.
    Packs,
}

/// All that one visit makes true, committed at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VisitCommit {
    /// The page.
    pub page: VisitedPage,
    /// Where the visit comes from.
    pub origin: Origin,
    /// The site for which it was visited.
    pub site: SiteId,
    /// The round, if it belongs to one.
    pub round: Option<RoundId>,
    /// When the answer was complete, in seconds since the epoch.
    pub at_s: i64,
    /// What was found.
    pub outcome: Outcome,
    /// Whether the page had no version before.
    pub is_first: bool,
    /// HTTP status, 0 without an answer.
    pub status: u16,
    /// Why, for outcomes that need a reason.
    pub reason: Option<Reason>,
    /// From the request to the last byte.
    pub elapsed_ms: u32,
    /// Bytes of the body received.
    pub received_bytes: u64,
    /// Bytes added to packs.
    pub stored_bytes: u64,
    /// The new version, if there is one; its content is durable already.
    pub version: Option<VersionRow>,
    /// The page's new record.
    pub update: PageUpdate,
    /// Pages found by this visit.
    pub discovered: Vec<Discovered>,
    /// Top pages that the site gains (a top page was redirected).
    pub new_tops: Vec<CanonicalUrl>,
    /// Links of this visit that were not followed because they look like a trap.
    pub trapped: u64,
    /// Where the page's links lead, inside the site or not, if the visit could read them. Those that
    /// lead to known pages are kept, for the crawl order.
    pub links: Option<Vec<CanonicalUrl>>,
    /// The importance that the crawl order estimates for the page, in percent of the mean; `None`
    /// leaves what is known.
    pub importance_percent: Option<u32>,
    /// What the page gives to all pages that it links to together, in millionths of a score; those of
    /// other partitions get their shares by mail. `None` gives nothing.
    pub gives_micros: Option<u64>,
    /// What the page's schedule believes of it now; `None` leaves what is known. A page that is gone
    /// has no rate.
    pub estimate: Option<Estimate>,
}

impl VisitCommit {
    /// A visit of which nothing is known but what it found.
    pub fn new(page: impl Into<VisitedPage>, site: SiteId, at_s: i64, outcome: Outcome) -> Self {
        Self {
            page: page.into(),
            origin: Origin::Crawled,
            site,
            round: None,
            at_s,
            outcome,
            is_first: false,
            status: 0,
            reason: None,
            elapsed_ms: 0,
            received_bytes: 0,
            stored_bytes: 0,
            version: None,
            update: PageUpdate::default(),
            discovered: Vec::new(),
            new_tops: Vec::new(),
            trapped: 0,
            links: None,
            importance_percent: None,
            gives_micros: None,
            estimate: None,
        }
    }

    /// A version that was found in the packs.
    pub fn in_packs(site: SiteId, url: CanonicalUrl, version: VersionRow) -> Self {
        let found = Discovered { url, depth: 1, hops: 0, due_s: None };
        let visit = Self::new(found, site, version.at_s, Outcome::Changed);
        Self { origin: Origin::Packs, version: Some(version), ..visit }
    }
}

/// A visit, in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VisitRow {
    /// Its position in the log; larger is later.
    pub id: i64,
    /// When it was made, in seconds since the epoch.
    pub at_s: i64,
    /// The page.
    pub url: CanonicalUrl,
    /// The site for which it was visited.
    pub site: SiteId,
    /// What was found.
    pub outcome: Outcome,
    /// HTTP status, 0 without an answer.
    pub status: u16,
    /// Why, for outcomes that need a reason.
    #[serde(flatten, serialize_with = "serialize_reason")]
    pub reason: Option<Reason>,
    /// From the request to the last byte.
    pub elapsed_ms: u32,
    /// Bytes of the body received.
    pub received_bytes: u64,
}
