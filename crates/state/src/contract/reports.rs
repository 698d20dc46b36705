use nenrin_lang::{Hint, Reason, serialize_reason};
use nenrin_urls::CanonicalUrl;
use serde::Serialize;

use crate::{
    BodyKind, OrderCurve, Outcome, PageId, Round, RoundId, ServerRecord, SiteId, SiteWorth, Skips,
    StateError, VisitRow, records::is_problem,
};

/// Which visits to list, newest first, with an index for every combination.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VisitFilter {
    /// Only visits for this site.
    pub site: Option<SiteId>,
    /// Only visits that found this.
    pub outcome: Option<Outcome>,
    /// Begin before this row.
    pub before: Option<i64>,
    /// At most this many.
    pub limit: usize,
}

/// Which days to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayQuery {
    /// Only this site; `None` sums over all.
    pub site: Option<SiteId>,
    /// The first day, in days since the epoch.
    pub from_day: i64,
    /// The last day.
    pub to_day: i64,
}

/// Sums of one day (UTC), kept with every commit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct DayCounts {
    /// Days since the epoch.
    pub day: i64,
    /// Visits made.
    pub visits: u64,
    /// Versions kept.
    pub versions: u64,
    /// Visits that failed or were refused.
    pub problems: u64,
    /// What a mirror of these visits would take.
    pub raw_bytes: u64,
    /// Bytes of bodies received.
    pub received_bytes: u64,
    /// Bytes added to packs.
    pub stored_bytes: u64,
}

/// What a site has cost and how fast it grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SiteSums {
    /// The site.
    pub site: SiteId,
    /// Bytes of bodies received.
    pub received_bytes: u64,
    /// Bytes added to packs for it.
    pub stored_bytes: u64,
    /// Of them, since the day asked for.
    pub recent_stored_bytes: u64,
    /// Versions kept since the day asked for.
    pub recent_versions: u64,
    /// Visits that failed or were refused since the day asked for.
    pub recent_problems: u64,
}

/// What versions of one kind took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct KindSums {
    /// The kind.
    pub kind: BodyKind,
    /// Versions kept.
    pub versions: u64,
    /// Bytes of their bodies, as received.
    pub received_bytes: u64,
    /// Bytes added to packs for them.
    pub stored_bytes: u64,
}

/// Visits of a site that brought no page, with one cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProblemGroup {
    /// Gone, refused or failed.
    pub outcome: Outcome,
    /// Whether the pages are on the site's own servers ([`crate::SiteConditions::is_own`]).
    pub own: bool,
    /// HTTP status, 0 without an answer.
    pub status: u16,
    /// Why the visits brought no page.
    #[serde(flatten, serialize_with = "serialize_reason")]
    pub reason: Option<Reason>,
    /// How often among the problems looked at.
    pub count: u64,
    /// When last.
    pub last_s: i64,
    /// The page of the last one.
    pub last_url: CanonicalUrl,
}

impl ProblemGroup {
    /// Whether it counts as a problem of the site: pages that the server does not have, and what robots.txt or
    /// the site's conditions leave out, do not.
    pub fn is_problem(&self) -> bool {
        is_problem(self.outcome, self.reason.as_ref())
    }
}

/// Totals of the whole state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct StateStats {
    /// Registered sites.
    pub sites: u64,
    /// Known servers.
    pub servers: u64,
    /// Known pages.
    pub pages: u64,
    /// Visits made.
    pub visits: u64,
    /// Versions kept.
    pub versions: u64,
    /// What a mirror of every visit would take.
    pub raw_bytes: u64,
    /// Bytes of the database on disk.
    pub file_bytes: u64,
}

/// What people look at: the log of visits, rounds, sums and curves.
pub trait Reports: Send + Sync {
    /// The log of visits, newest first.
    fn visits(&self, filter: VisitFilter) -> Result<Vec<VisitRow>, StateError>;

    /// The visits of a page from one time to another, oldest first. The first call makes an index;
    /// archives that never ask do without the space it takes.
    fn visits_of(
        &self,
        url: &CanonicalUrl,
        from_s: i64,
        to_s: i64,
    ) -> Result<Vec<VisitRow>, StateError>;

    /// The causes among the last problems of a site, most frequent first. At most `looked_at` of
    /// each of gone, refused and failed are read.
    fn problems(&self, site: SiteId, looked_at: usize) -> Result<Vec<ProblemGroup>, StateError>;

    /// The collection log, newest round first.
    fn rounds(&self, site: Option<SiteId>, limit: usize) -> Result<Vec<Round>, StateError>;

    /// The pages that a finished round left out, if it chose.
    fn skips(&self, round: RoundId) -> Result<Option<Skips>, StateError>;

    /// The hint that pulled a page forward, if one did since its last visit.
    fn pulled(&self, page: PageId) -> Result<Option<Hint>, StateError>;

    /// Servers whose pages' intervals are stretched, with the percentage.
    fn stretched(&self, limit: usize) -> Result<Vec<(ServerRecord, u32)>, StateError>;

    /// Sums per day, oldest first; days without a visit are left out.
    fn days(&self, query: DayQuery) -> Result<Vec<DayCounts>, StateError>;

    /// What each site has cost and how it grew since a day; sites never visited are left out.
    fn site_sums(&self, since_day: i64) -> Result<Vec<SiteSums>, StateError>;

    /// What versions of each kind took, of a site or of all; kinds without a version are left out.
    fn kind_sums(&self, site: Option<SiteId>) -> Result<Vec<KindSums>, StateError>;

    /// What the pages of each site are worth together and how often they change: sums that are
    /// kept with every commit. Sites without a visited page may be left out.
    fn site_worth(&self) -> Result<Vec<SiteWorth>, StateError>;

    /// How the importance of the pages of a site, or of all, is spread over the order in which they
    /// got their first versions.
    fn order_curve(&self, site: Option<SiteId>) -> Result<OrderCurve, StateError>;

    /// Numbers of pages, visits and versions in the whole state.
    fn stats(&self) -> Result<StateStats, StateError>;
}
