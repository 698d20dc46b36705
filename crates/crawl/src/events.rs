use std::collections::BTreeSet;

use nenrin_extract::{Comparison, Fingerprint};
use nenrin_state::{
    Change, Committed, ContentMark, DueLoad, DuePage, DueQuery, FoundPage, PageId, PageLinks,
    PageRecord, PullForward, Round, RoundCounts, ServerId, ServerRecord, Site, SiteId, SitePages,
};
use nenrin_structure::PageBlocks;
use nenrin_urls::{CanonicalUrl, Server};
use serde::{Deserialize, Serialize};

use crate::{NearQuery, PlanDone, PlanWork, Trap};

/// The number of one fetch, and of the content it brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// What happened.
#[derive(Debug, Clone)]
pub enum Event {
    /// The sites as they are registered now; at the start and after every change.
    Sites(Vec<Site>),
    /// Someone wants a site collected now.
    CollectNow(SiteId),
    /// A round has begun, or goes on after a restart.
    RoundBegun(Round),
    /// Pages came from the state, with the records of their servers.
    PagesLoaded {
        /// The round they belong to.
        round: i64,
        /// The pages.
        pages: Vec<DuePage>,
        /// Their servers.
        servers: Vec<ServerRecord>,
    },
    /// The map of a site came, for a round that chooses its pages.
    MapLoaded {
        /// The round.
        round: i64,
        /// The site's pages and links.
        map: Box<SitePages>,
        /// The servers of the pages.
        servers: Vec<ServerRecord>,
    },
    /// Work on a round's plan was done.
    PlanDone(Box<PlanDone>),
    /// Pages that a round chose were loaded, as far as they were not tried in it yet.
    ChosenLoaded {
        /// The round.
        round: i64,
        /// The pages asked for.
        asked: Vec<PageId>,
        /// The pages.
        pages: Vec<DuePage>,
        /// Their servers.
        servers: Vec<ServerRecord>,
    },
    /// Pages whose time has come were loaded from the long-term queue.
    DueLoaded {
        /// What was asked.
        query: DueQuery,
        /// The pages.
        load: DueLoad,
        /// Their servers.
        servers: Vec<ServerRecord>,
    },
    /// Sites whose quota is reached: none of their pages is asked for until they are not named any
    /// more.
    Full(BTreeSet<SiteId>),
    /// What a site's pages share, and how often they were visited today (UTC).
    SharedLoaded {
        /// The site.
        site: SiteId,
        /// The revisit policy's bytes; empty if there are none.
        bytes: Vec<u8>,
        /// Visits since midnight.
        visits_today: u64,
    },
    /// What the crawl order knew when it was last kept; empty if nothing.
    OrderLoaded(Vec<u8>),
    /// Pages in the order of discovery.
    FoundLoaded {
        /// After this place.
        after: u32,
        /// The pages.
        pages: Vec<FoundPage>,
    },
    /// New pages were loaded, as far as they have times of their own.
    NewLoaded {
        /// What was asked, by places in the order of discovery.
        places: Vec<u32>,
        /// The pages.
        pages: Vec<DuePage>,
        /// Their servers.
        servers: Vec<ServerRecord>,
    },
    /// Links of pages were loaded.
    LinksLoaded(Vec<PageLinks>),
    /// The links of a stored version were read; none if it cannot be read.
    LinksRead {
        /// The page.
        page: PageId,
        /// Where they lead.
        links: Vec<CanonicalUrl>,
    },
    /// Pages near one that changed were loaded.
    NearLoaded {
        /// What was asked.
        query: Box<NearQuery>,
        /// The pages.
        pages: Vec<PageRecord>,
    },
    /// A hint says that a page changed, or will have changed by a time.
    Hint(PullForward),
    /// A fetch has ended.
    Fetched {
        /// Which.
        ticket: Ticket,
        /// How.
        fetched: Box<Fetched>,
    },
    /// The content of a fetch is durable.
    Stored {
        /// Which.
        ticket: Ticket,
        /// The store's number of the version.
        version: u64,
        /// Bytes added to packs.
        stored_bytes: u64,
    },
    /// Changes are committed.
    Committed {
        /// The visits among them.
        tickets: Vec<Ticket>,
        /// The rounds that ended.
        rounds_ended: Vec<i64>,
        /// Pages and links that became known.
        committed: Committed,
        /// The servers of those pages.
        servers: Vec<ServerRecord>,
    },
    /// The time asked for by `WakeAt` has come.
    Wake,
    /// No new request is to be made; what is under way may end.
    Stop,
    /// There is room on the disk, or not: without, no new request is made until there is again.
    Room(bool),
    /// The options changed; what is under way goes on as it began.
    Options(Box<crate::CrawlOptions>),
}

/// What is to be done. The driver answers each with the event named.
#[derive(Debug, Clone)]
pub enum Command {
    /// Begin or resume a round of a site → [`Event::RoundBegun`].
    BeginRound(SiteId),
    /// Load pages of a round → [`Event::PagesLoaded`].
    LoadRound {
        /// The round.
        round: Round,
        /// Go on after this page.
        after: Option<PageId>,
        /// At most this many.
        limit: usize,
    },
    /// Load the map of a round's site → [`Event::MapLoaded`].
    LoadMap(Round),
    /// Work on a round's plan ([`PlanWork::carry_out`]) → [`Event::PlanDone`]. This takes seconds on a
    /// large site: nothing else should have to wait for it.
    Plan(Box<PlanWork>),
    /// Load pages that a round chose → [`Event::ChosenLoaded`].
    LoadPages {
        /// The round.
        round: Round,
        /// The pages.
        pages: Vec<PageId>,
    },
    /// Load pages whose time has come → [`Event::DueLoaded`].
    LoadDue(DueQuery),
    /// Load what a site's pages share → [`Event::SharedLoaded`].
    LoadShared(SiteId),
    /// Load what the crawl order knew → [`Event::OrderLoaded`].
    LoadOrder,
    /// Load pages in the order of discovery → [`Event::FoundLoaded`].
    LoadFound {
        /// After this place.
        after: u32,
        /// At most this many.
        limit: usize,
    },
    /// Load new pages by their places in the order of discovery → [`Event::NewLoaded`].
    LoadNew(Vec<u32>),
    /// Load the links of pages by their places → [`Event::LinksLoaded`].
    LoadLinks(Vec<u32>),
    /// Load pages near one that changed ([`load_near`](crate::load_near)) → [`Event::NearLoaded`].
    LoadNear(Box<NearQuery>),
    /// Read the links of a page's last version from the store → [`Event::LinksRead`].
    ReadLinks(Box<PageLinks>),
    /// Make one request → [`Event::Fetched`].
    Fetch(Box<FetchOrder>),
    /// Store the content of a fetch → [`Event::Stored`] once it is durable.
    Store(Box<StoreOrder>),
    /// Commit a change → [`Event::Committed`]. The driver may put several into one transaction,
    /// in their order.
    Commit {
        /// The visit that the change belongs to, if it is one.
        ticket: Option<Ticket>,
        /// The change.
        change: Change,
    },
    /// Call again at this time → [`Event::Wake`]. A later one replaces it.
    WakeAt(i64),
    /// A round has been finished and committed.
    RoundFinished(RoundReport),
    /// A link was not followed as it stands, the first of its kind on its server: for a person.
    Trapped {
        /// The server whose page has the link.
        server: Server,
        /// Why.
        trap: Trap,
        /// The link.
        url: CanonicalUrl,
    },
    /// After [`Event::Stop`]: nothing is under way any more.
    Stopped,
}

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A page.
    Page,
    /// A server's robots.txt.
    Robots,
    /// A page that does not exist, to see what the server shows for it.
    Probe,
    /// A sitemap where sitemaps lie by custom.
    Sitemap,
}

/// One request to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchOrder {
    /// Its number.
    pub ticket: Ticket,
    /// Its purpose.
    pub purpose: Purpose,
    /// The URL.
    pub url: CanonicalUrl,
    /// Sent as If-None-Match.
    pub etag: Option<String>,
    /// Sent as If-Modified-Since.
    pub last_modified: Option<String>,
    /// Whether private addresses may be asked.
    pub allow_private: bool,
    /// Mark of the content last seen: the same content need not be read for links.
    pub known_mark: Option<ContentMark>,
    /// The page's last version, to compare with.
    pub previous: Option<u64>,
    /// Whether the answer's fingerprint is wanted.
    pub fingerprint: bool,
    /// Whether the page is known to be a sitemap, so that a text of URLs counts as one.
    pub sitemap: bool,
    /// Whether the blocks that it may share with other pages are wanted, should it have changed.
    pub blocks: bool,
}

/// One version to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreOrder {
    /// The fetch that brought it.
    pub ticket: Ticket,
    /// The page's URL.
    pub url: CanonicalUrl,
    /// The site, near whose other content it is stored.
    pub site: SiteId,
    /// When it was asked for.
    pub visited_at_s: i64,
    /// The page's version before this one.
    pub previous: Option<u64>,
}

/// How a fetch ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Fetched {
    /// From the request to the last byte.
    pub elapsed_ms: i64,
    /// What came, or why nothing did.
    pub result: Result<Answer, Trouble>,
}

/// All that the machine learns of an exchange.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// The ETag header.
    pub etag: Option<String>,
    /// The Last-Modified header.
    pub last_modified: Option<String>,
    /// The same as a time.
    pub last_modified_s: Option<i64>,
    /// Where a redirect leads, made absolute.
    pub location: Option<CanonicalUrl>,
    /// Seconds, from Retry-After.
    pub retry_after_s: Option<i64>,
    /// Content type without parameters.
    pub mime: String,
    /// Mark of the content.
    pub mark: Option<ContentMark>,
    /// Size of the body as received.
    pub body_bytes: u64,
    /// Links found.
    pub links: Vec<FoundLink>,
    /// The body, for robots.txt alone.
    pub robots_body: Vec<u8>,
    /// Why the content could not be read for links, if it could not.
    pub unreadable: Option<String>,
    /// Whose challenge it is, if a guard answered in the page's place.
    pub challenge: Option<String>,
    /// What the page says, if it was wanted and is a page for people.
    pub fingerprint: Option<Fingerprint>,
    /// How it differs from the version before, if both can be compared.
    pub comparison: Option<Box<Comparison>>,
    /// The blocks that it may share with other pages, if they were wanted.
    pub blocks: Option<PageBlocks>,
    /// Whether it is a sitemap or a feed.
    pub signal: Option<SignalKind>,
    /// The pages that it names then.
    pub announced: Vec<Announcement>,
}

/// A source of hints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SignalKind {
    /// A sitemap.
    Sitemap,
    /// RSS, Atom or JSON Feed.
    Feed,
}

/// A page that a sitemap or feed names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// The page.
    pub url: CanonicalUrl,
    /// When it changed, as is claimed.
    pub modified_s: Option<i64>,
}

/// A link on a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundLink {
    /// Where it leads.
    pub url: CanonicalUrl,
    /// How it is used.
    pub role: LinkRole,
}

/// How a page uses what it links to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkRole {
    /// Another page: one link deeper.
    Page,
    /// A frame: as deep as the page itself.
    Frame,
    /// An image, style, script and so on: part of the page.
    Embed,
    /// A page that a sitemap names.
    Listed,
    /// Another sitemap, in an index of sitemaps.
    Sitemap,
}

/// Why a fetch brought nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// A short, stable name (`dns`, `connect`, `timeout`, `too-large`…).
    pub kind: String,
    /// In words.
    pub detail: String,
    /// Whether the server, not the page, is to blame.
    pub of_server: bool,
    /// Whether we refused to ask (address guard).
    pub refused: bool,
}

/// A finished round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundReport {
    /// The round.
    pub round: i64,
    /// The site.
    pub site: SiteId,
    /// What was found since this process took it up.
    pub counts: RoundCounts,
    /// Pages left for the next round, by server, because the server could not be asked.
    pub left: Vec<(ServerId, u64)>,
    /// Whether the limit on pages ended it.
    pub page_limit_reached: bool,
}
