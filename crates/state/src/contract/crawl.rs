use crate::{
    Change, Committed, DuePage, FoundPage, Nth, PageId, PageIndex, PageLinks, Round, ServerId,
    ServerRecord, SiteId, SitePages, StateError,
};

/// Where a scan of the long-term queue goes on: bucket and page taken last.
pub type DueCursor = (i64, PageId);

/// Which pages to load from the long-term queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DueQuery {
    /// Of every bucket that begins at or before this time.
    pub until_s: i64,
    /// Instead of pages whose time has come, pages found by a visit that were never visited. They
    /// are in no bucket of time, since a crawl order chooses among them.
    pub new: bool,
    /// Continue after this position.
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

/// What the crawl machine needs: loads in batches, and the one way to change anything.
pub trait CrawlState: PageIndex {
    /// Makes changes true, all at once, and returns what became known by them.
    fn commit(&self, changes: &[Change]) -> Result<Committed, StateError>;

    /// Begins a round of a site, or returns the one that is not finished yet.
    fn begin_round(&self, site: SiteId, now_s: i64) -> Result<Round, StateError>;

    /// Pages of a site not tried in this round yet, in the order of their numbers.
    fn load_round(
        &self,
        round: &Round,
        after: Option<PageId>,
        limit: usize,
    ) -> Result<Vec<DuePage>, StateError>;

    /// Pages of a site by their numbers, as far as they were not tried in this round yet.
    fn load_pages(&self, round: &Round, pages: &[PageId]) -> Result<Vec<DuePage>, StateError>;

    /// Pages whose own time has come: whole buckets, since no order is kept inside one.
    fn load_due(&self, query: &DueQuery) -> Result<DueLoad, StateError>;

    /// Pages with due times by their discovery numbers, ready to be visited; others are left out.
    fn load_found(&self, places: &[Nth]) -> Result<Vec<DuePage>, StateError>;

    /// Pages in the order of discovery, after a discovery number.
    fn found(&self, after: Nth, limit: usize) -> Result<Vec<FoundPage>, StateError>;

    /// The links of some pages, by their discovery numbers.
    fn links(&self, places: &[Nth]) -> Result<Vec<PageLinks>, StateError>;

    /// What the crawl order knew, as [`Change::Order`] left it; empty if nothing.
    fn order(&self) -> Result<Vec<u8>, StateError>;

    /// What a site's pages share, as [`Change::Shared`] left it; empty if nothing.
    fn shared(&self, site: SiteId) -> Result<Vec<u8>, StateError>;

    /// How many visits were made for a site on a day, in days since the epoch.
    fn visits_on(&self, site: SiteId, day: i64) -> Result<u64, StateError>;

    /// The pages and links of a site, for a round that chooses. Pages that were removed are left
    /// out.
    fn site_pages(&self, site: SiteId) -> Result<SitePages, StateError>;

    /// The records of some servers.
    fn servers(&self, ids: &[ServerId]) -> Result<Vec<ServerRecord>, StateError>;

    /// The resolution of the long-term queue, in seconds.
    fn bucket_s(&self) -> i64;
}
