use nenrin_urls::{CanonicalUrl, UrlKey};

use crate::{
    Change, Committed, DayCounts, DayQuery, Discovered, DuePage, FoundPage, Incident, KeptVersion,
    KindSums, LogQuery, OrderCurve, PageId, PageLinks, PageRecord, PathQuery, PruneRow, Removal,
    RemovalRow, Round, ServerId, ServerRecord, Site, SiteConditions, SiteId, SitePages, SiteServer,
    SiteSums, SiteWorth, Skips, StateError, StateStats, TreeEntry, TroubleGroup, VersionRow,
    VisitCommit, VisitRow,
};

/// Where a scan of the long-term queue stands: bucket and page taken last.
pub type DueCursor = (i64, PageId);

/// Which pages to load from the long-term queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DueQuery {
    /// Of every bucket that begins at or before this time.
    pub until_s: i64,
    /// Instead of pages whose time has come, pages found by a visit that were never visited: these
    /// stand in no bucket of time, since a crawl order chooses among them.
    pub new: bool,
    /// Go on after this place.
    pub after: Option<DueCursor>,
    /// Only pages of this server.
    pub server: Option<ServerId>,
    /// No pages of these sites.
    pub without: Vec<SiteId>,
    /// At most this many of one server, so that a large one does not hide the others.
    pub per_server: usize,
    /// At most this many in all.
    pub limit: usize,
}

/// What came from the long-term queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DueLoad {
    /// The pages, earliest bucket first.
    pub pages: Vec<DuePage>,
    /// Where to go on; `None` when every bucket was seen.
    pub next: Option<DueCursor>,
    /// Servers with more pages in the buckets seen.
    pub more: Vec<ServerId>,
}

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

/// Which visits to list, newest first.
#[derive(Debug, Clone, Copy, Default)]
pub struct VisitFilter {
    /// Only visits for this site.
    pub site: Option<SiteId>,
    /// Begin before this row.
    pub before: Option<i64>,
    /// At most this many.
    pub limit: usize,
}

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

/// The contract of the state. Every implementation runs the same suite (`suite`).
///
/// A caller may rely on this:
/// - `commit` is all or nothing and durable when it returns; what it returns was committed;
/// - a page that was ever returned as known stays known;
/// - versions in a commit are durable in the store before it is called (the caller's duty);
/// - reads see every commit that returned before they began.
///
/// An error leaves the state as it was. [`StateError::is_transient`] tells whether a retry makes
/// sense.
pub trait State: Send + Sync {
    /// Registers a site; its top pages become known.
    fn add_site(
        &self,
        name: &str,
        conditions: &SiteConditions,
        now_s: i64,
    ) -> Result<Site, StateError>;

    /// Changes a site's conditions.
    fn set_site(
        &self,
        site: SiteId,
        conditions: &SiteConditions,
        now_s: i64,
    ) -> Result<(), StateError>;

    /// Pauses or resumes a site.
    fn pause_site(&self, site: SiteId, paused: bool) -> Result<(), StateError>;

    /// Removes a site in one of three ways, or with `None` gives it back, and writes down why. It is
    /// paused; from [`Removal::Deny`] on, pages that no other site has are found no more, whoever
    /// visits them again. What was deleted cannot be given back.
    fn remove_site(
        &self,
        site: SiteId,
        removal: Option<Removal>,
        reason: &str,
        now_s: i64,
    ) -> Result<(), StateError>;

    /// What was removed and given back, newest first.
    fn removals(&self) -> Result<Vec<RemovalRow>, StateError>;

    /// The versions of some of a site's denied pages, in the order of pages; goes on after a page.
    fn denied_versions(
        &self,
        site: SiteId,
        after: Option<PageId>,
        pages: usize,
    ) -> Result<Vec<(PageId, u64)>, StateError>;

    /// Drops every version of these pages, after the store has forgotten them; returns how many.
    fn drop_versions(&self, pages: &[PageId]) -> Result<u64, StateError>;

    /// The versions of some of a site's own pages, in the order of pages and times; goes on after a
    /// page. Fewer pages than asked for if they have very many versions. A page that several sites have belongs to the one that found it first.
    fn site_versions(
        &self,
        site: SiteId,
        after: Option<PageId>,
        pages: usize,
    ) -> Result<Vec<KeptVersion>, StateError>;

    /// Drops versions and writes down by which rule; the counts of `row` are set here. They are found
    /// no more at once and listed by [`State::pruning`] until the store has forgotten them. The one
    /// that a page's next visit is compared with stays. Returns how many went.
    fn prune(&self, row: &PruneRow, versions: &[KeptVersion]) -> Result<u64, StateError>;

    /// Versions that were dropped and that the store may not have forgotten yet.
    fn pruning(&self, limit: usize) -> Result<Vec<u64>, StateError>;

    /// The store has forgotten these, durably.
    fn pruned(&self, versions: &[u64]) -> Result<(), StateError>;

    /// What was pruned, newest first.
    fn prunes(&self) -> Result<Vec<PruneRow>, StateError>;

    /// Every site, by number, also those that were removed.
    fn sites(&self) -> Result<Vec<Site>, StateError>;

    /// Begins a round of a site, or returns the one that is not finished yet.
    fn begin_round(&self, site: SiteId, now_s: i64) -> Result<Round, StateError>;

    /// Pages of a site not tried in this round yet, in the order of their numbers.
    fn load_round(
        &self,
        round: &Round,
        after: Option<PageId>,
        limit: usize,
    ) -> Result<Vec<DuePage>, StateError>;

    /// Pages whose own time has come: whole buckets, since no order is kept inside one.
    fn load_due(&self, query: &DueQuery) -> Result<DueLoad, StateError>;

    /// Pages by their places in the order of discovery, after a place.
    fn found(&self, after: u32, limit: usize) -> Result<Vec<FoundPage>, StateError>;

    /// Pages with times of their own by their places in the order of discovery, ready to be
    /// visited; others are left out.
    fn load_found(&self, places: &[u32]) -> Result<Vec<DuePage>, StateError>;

    /// The links of some pages, by their places in the order of discovery.
    fn links(&self, places: &[u32]) -> Result<Vec<PageLinks>, StateError>;

    /// Keeps incidents, oldest first. The newest [`Incident::KEPT`] stay.
    fn keep_incidents(&self, incidents: &[Incident]) -> Result<(), StateError>;

    /// Some incidents are over.
    fn end_incidents(&self, ids: &[String], now_s: i64) -> Result<(), StateError>;

    /// What people should know of, newest first.
    fn incidents(&self) -> Result<Vec<Incident>, StateError>;

    /// What the pages of each site are worth together and how often they change: sums that are
    /// kept with every commit. Sites without a visited page may be left out.
    fn site_worth(&self) -> Result<Vec<SiteWorth>, StateError>;

    /// How the importance of the pages of a site, or of all, is spread over the order in which they
    /// got their first versions.
    fn order_curve(&self, site: Option<SiteId>) -> Result<OrderCurve, StateError>;

    /// What the crawl order knew, as [`Change::Order`] left it; empty if nothing.
    fn order(&self) -> Result<Vec<u8>, StateError>;

    /// The pages and links of a site, for a round that chooses. Those that were removed are left out.
    fn site_pages(&self, site: SiteId) -> Result<SitePages, StateError>;

    /// Pages of a site by their numbers, as far as they were not tried in this round yet.
    fn load_pages(&self, round: &Round, pages: &[PageId]) -> Result<Vec<DuePage>, StateError>;

    /// The pages that a finished round left out, if it chose.
    fn skips(&self, round: i64) -> Result<Option<Skips>, StateError>;

    /// The URL of a page by its number.
    fn url_of(&self, page: PageId) -> Result<Option<CanonicalUrl>, StateError>;

    /// The resolution of the long-term queue.
    fn bucket_s(&self) -> i64;

    /// What a site's pages share, as [`Change::Shared`] left it; empty if nothing.
    fn shared(&self, site: SiteId) -> Result<Vec<u8>, StateError>;

    /// The hint that pulled a page forward, if one did since its last visit.
    fn pulled(&self, page: PageId) -> Result<Option<String>, StateError>;

    /// Servers whose pages' intervals are stretched, with the percentage.
    fn stretched(&self, limit: usize) -> Result<Vec<(ServerRecord, u32)>, StateError>;

    /// The records of some servers.
    fn servers(&self, ids: &[ServerId]) -> Result<Vec<ServerRecord>, StateError>;

    /// Makes changes true, all at once, and returns the pages and links that became known.
    fn commit(&self, changes: &[Change]) -> Result<Committed, StateError>;

    /// Makes pages known to a site outside a visit, and returns their numbers in order.
    fn make_known(
        &self,
        site: SiteId,
        pages: &[Discovered],
        now_s: i64,
    ) -> Result<Vec<PageId>, StateError>;

    /// Takes in visits of another collection, each with its page, which becomes known to the site
    /// of the visit where it was not: all at once. Which page a visit names does not matter. Else
    /// it is as with [`make_known`](Self::make_known) and [`Change::Imported`].
    fn take_in(&self, visits: Vec<(Discovered, VisitCommit)>, now_s: i64)
    -> Result<(), StateError>;

    /// What is known of a URL.
    fn page(&self, url: &CanonicalUrl) -> Result<Option<PageRecord>, StateError>;

    /// As [`page`](Self::page), of several URLs at one moment, in their order.
    fn pages_of(&self, urls: &[&CanonicalUrl]) -> Result<Vec<Option<PageRecord>>, StateError>;

    /// A page of the list of pages, with the depth in the site where one is asked for.
    fn pages(&self, filter: PageFilter) -> Result<Vec<PageRecord>, StateError>;

    /// The URLs with versions that share a key, and their versions, oldest first.
    fn versions(
        &self,
        key: &UrlKey,
        query: VersionQuery,
    ) -> Result<Vec<(CanonicalUrl, VersionRow)>, StateError>;

    /// The newest version at or before a time of the URLs that share a key, and if there is none,
    /// the oldest after it.
    fn version_as_of(
        &self,
        key: &UrlKey,
        at_s: i64,
    ) -> Result<Option<(CanonicalUrl, VersionRow)>, StateError>;

    /// The URLs with versions whose keys lie from `from` to before `to`, in the order of their
    /// keys, at most `limit`.
    fn urls(&self, from: &str, to: &str, limit: usize) -> Result<Vec<CanonicalUrl>, StateError>;

    /// A site as of a time, in the order of pages: each page's newest version at or before it,
    /// without the pages that were gone by then. Goes on after a page, with its number.
    fn site_as_of(
        &self,
        site: SiteId,
        at_s: i64,
        after: Option<PageId>,
        limit: usize,
    ) -> Result<Vec<(PageId, CanonicalUrl, VersionRow)>, StateError>;

    /// The collection log, newest round first.
    fn rounds(&self, site: Option<SiteId>, limit: usize) -> Result<Vec<Round>, StateError>;

    /// Whether a round of the site began after one time and at or before another.
    fn round_began(&self, site: SiteId, after_s: i64, until_s: i64) -> Result<bool, StateError>;

    /// The log of visits, newest first.
    fn visits(&self, filter: VisitFilter) -> Result<Vec<VisitRow>, StateError>;

    /// The visits of a page from one time to another, oldest first. Where it is asked for the first
    /// time, an index is made; archives that never ask do without its room.
    fn visits_of(
        &self,
        url: &CanonicalUrl,
        from_s: i64,
        to_s: i64,
    ) -> Result<Vec<VisitRow>, StateError>;

    /// Shows every version to `look`, in the order of pages and times.
    fn each_version(
        &self,
        look: &mut dyn FnMut(&CanonicalUrl, &VersionRow),
    ) -> Result<(), StateError>;

    /// Totals.
    fn stats(&self) -> Result<StateStats, StateError>;

    /// Checks what can be checked from inside; a sentence for each thing that is wrong.
    fn check(&self) -> Result<Vec<String>, StateError>;

    /// Gives room back that deletions and updates left behind.
    fn tidy_up(&self) -> Result<(), StateError>;

    /// Enters a version found in the packs that the index does not have; returns whether it was
    /// missing.
    fn adopt_version(
        &self,
        site: SiteId,
        url: &CanonicalUrl,
        row: &VersionRow,
    ) -> Result<bool, StateError>;

    /// Sums per day, oldest first; days without a visit are left out.
    fn days(&self, query: DayQuery) -> Result<Vec<DayCounts>, StateError>;

    /// What each site has cost and how it grew since a day; sites never visited are left out.
    fn site_sums(&self, since_day: i64) -> Result<Vec<SiteSums>, StateError>;

    /// What versions of each kind took, of a site or of all; kinds without a version are left out.
    fn kind_sums(&self, site: Option<SiteId>) -> Result<Vec<KindSums>, StateError>;

    /// The log of visits by site and outcome, newest first.
    fn visit_log(&self, query: LogQuery) -> Result<Vec<VisitRow>, StateError>;

    /// The causes among the last troubles of a site, most frequent first. At most `looked_at` of
    /// each of gone, refused and failed are read.
    fn troubles(&self, site: SiteId, looked_at: usize) -> Result<Vec<TroubleGroup>, StateError>;

    /// Versions of the URLs that share a key, newest first, before a time and version number.
    fn newest_versions(
        &self,
        key: &UrlKey,
        before: (i64, u64),
        limit: usize,
    ) -> Result<Vec<(CanonicalUrl, VersionRow)>, StateError>;

    /// How many versions of the URLs that share a key were received on each day.
    fn version_days(
        &self,
        key: &UrlKey,
        from_day: i64,
        to_day: i64,
    ) -> Result<Vec<(i64, u64)>, StateError>;

    /// The servers with pages of a site, by number.
    fn site_servers(&self, site: SiteId, limit: usize) -> Result<Vec<SiteServer>, StateError>;

    /// Pages of a site on one server, in the order of their paths.
    fn pages_by_path(&self, query: &PathQuery) -> Result<Vec<PageRecord>, StateError>;

    /// What lies directly in the directory `query.prefix`, which ends in `/`: pages and
    /// directories, in the order of their paths.
    fn directory(&self, query: &PathQuery) -> Result<Vec<TreeEntry>, StateError>;
}
