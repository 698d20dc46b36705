//! What happened, and what is to be done about it.

use std::collections::BTreeSet;

use nenrin_lang::Reason;
use nenrin_state::{
    Change, Committed, Division, DueLoad, DuePage, DueQuery, FoundPage, Nth, PageId, PageLinks,
    PageRecord, PullForward, Received, Round, RoundCounts, RoundId, ServerId, ServerRecord, Site,
    SiteId, SitePages, VersionId,
};
use nenrin_urls::{CanonicalUrl, Server};

use crate::{
    answer::{FetchOrder, Fetched, Ticket},
    near::NearQuery,
    options::CrawlOptions,
    plans::{PlanDone, PlanWork},
    renderings::Rendered,
    traps::Trap,
};

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
        round: RoundId,
        /// The pages.
        pages: Vec<DuePage>,
        /// Their servers.
        servers: Vec<ServerRecord>,
    },
    /// The map of a site came, for a round that chooses its pages.
    MapLoaded {
        /// The round.
        round: RoundId,
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
        round: RoundId,
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
        /// The pages, and where the long-term queue goes on.
        load: DueLoad,
        /// Their servers.
        servers: Vec<ServerRecord>,
    },
    /// Sites whose quota is reached: none of their pages is asked for until they are not named any
    /// more.
    Full(BTreeSet<SiteId>),
    /// What a site's pages share, and how often they were visited today and the day before (UTC).
    SharedLoaded {
        /// The site.
        site: SiteId,
        /// The revisit policy's bytes; empty if there are none.
        bytes: Vec<u8>,
        /// Visits since midnight.
        visits_today: u64,
        /// Visits of the day before.
        visits_yesterday: u64,
        /// How its visits of today are divided; `None` if there is one partition only.
        division: Option<Division>,
        /// How the visits of today of the whole archive are divided.
        of_archive: Option<Division>,
    },
    /// How the visits of a day are divided.
    DivisionLoaded {
        /// The site; none means the whole archive.
        site: Option<SiteId>,
        /// The division.
        division: Option<Division>,
    },
    /// A round cannot begin yet, since other partitions have not ended the one before. It is asked for
    /// again after the next [`Event::Sites`].
    RoundHeld(SiteId),
    /// What the crawl order knew when it was last kept.
    OrderLoaded {
        /// Empty if nothing was kept.
        bytes: Vec<u8>,
        /// What pages got of scores from other partitions.
        received: Vec<Received>,
    },
    /// Pages in the order of discovery.
    FoundLoaded {
        /// After this discovery number.
        after: Nth,
        /// The pages.
        pages: Vec<FoundPage>,
    },
    /// New pages were loaded, as far as they have times of their own.
    NewLoaded {
        /// The requested pages, by discovery number.
        places: Vec<Nth>,
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
        /// The number that the fetch was ordered under.
        ticket: Ticket,
        /// The answer, or why there is none.
        fetched: Box<Fetched>,
    },
    /// A page was rendered, or could not be.
    Rendered {
        /// The number that the rendering was ordered under.
        ticket: Ticket,
        /// What came of it.
        rendered: Box<Rendered>,
    },
    /// The content of a fetch is durable.
    Stored {
        /// The number of the fetch that brought it.
        ticket: Ticket,
        /// The store's number of the version.
        version: VersionId,
        /// Bytes added to packs.
        stored_bytes: u64,
        /// Whether the same body was there already.
        is_known: bool,
    },
    /// Changes are committed.
    Committed {
        /// The visits among them.
        tickets: Vec<Ticket>,
        /// The rounds that ended.
        rounds_ended: Vec<RoundId>,
        /// Pages and links that became known.
        committed: Committed,
        /// The servers of those pages.
        servers: Vec<ServerRecord>,
    },
    /// The time asked for by `WakeAt` has come.
    Wake,
    /// No new request is to be made; what is under way may end.
    Stop,
    /// Whether the disk has enough free space: without it, no new request is made until it has
    /// again.
    DiskSpace(bool),
    /// The options changed; what is under way goes on as it began.
    Options(Box<CrawlOptions>),
}

/// What is to be done. The driver answers each with the event named.
#[derive(Debug, Clone)]
pub enum Command {
    /// Ask the state ([`answer_load`](crate::answer_load)) → the event named with the [`Load`].
    Load(Load),
    /// Work on a round's plan ([`PlanWork::carry_out`]) → [`Event::PlanDone`]. This takes seconds on a
    /// large site: nothing else should have to wait for it.
    Plan(Box<PlanWork>),
    /// Read the links of a page's last version from the store → [`Event::LinksRead`].
    ReadLinks(Box<PageLinks>),
    /// Make one request → [`Event::Fetched`].
    Fetch(Box<FetchOrder>),
    /// Render a version of a page in a browser that gets everything from the archive →
    /// [`Event::Rendered`].
    Render(Box<RenderOrder>),
    /// What the rendering with this ticket brought is not wanted: another pass follows.
    ForgetRendering(Ticket),
    /// Store the content of a fetch → [`Event::Stored`] once it is durable. It comes from the step that
    /// took the fetch's [`Event::Fetched`], or never.
    Store(Box<StoreOrder>),
    /// Commit a change ([`commit_batch`](crate::commit_batch)) → [`Event::Committed`]. The driver
    /// may put several into one transaction, in their order.
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
    /// A site's log-in has ended: nothing is asked for with it any more, and the site pauses.
    LoggedOut {
        /// The site.
        site: SiteId,
        /// The page whose answer showed it.
        url: CanonicalUrl,
        /// How the answer showed it.
        reason: Reason,
    },
    /// A link was not followed, or not as it is written; the first of its kind on its server. It is
    /// meant for the log.
    Trapped {
        /// The server whose page has the link.
        server: Server,
        /// What kind of trap it looks like.
        trap: Trap,
        /// The link.
        url: CanonicalUrl,
    },
    /// After [`Event::Stop`]: nothing is under way any more.
    Stopped,
}

impl Command {
    /// A change that belongs to no visit.
    pub(crate) fn commit(change: Change) -> Self {
        Self::Commit { ticket: None, change }
    }
}

/// What the machine wants from the state.
#[derive(Debug, Clone)]
pub enum Load {
    /// All sites → [`Event::Sites`].
    Sites,
    /// Begin or resume a round of a site → [`Event::RoundBegun`], or [`Event::RoundHeld`].
    BeginRound(SiteId),
    /// Pages of a round → [`Event::PagesLoaded`].
    Round {
        /// The round.
        round: Round,
        /// Go on after this page.
        after: Option<PageId>,
        /// At most this many.
        limit: usize,
    },
    /// The map of a round's site → [`Event::MapLoaded`]. This takes seconds on a large site.
    Map(Round),
    /// Pages that a round chose → [`Event::ChosenLoaded`].
    Chosen {
        /// The round.
        round: Round,
        /// The pages.
        pages: Vec<PageId>,
    },
    /// Pages whose time has come → [`Event::DueLoaded`].
    Due(DueQuery),
    /// What a site's pages share → [`Event::SharedLoaded`].
    Shared(SiteId),
    /// How the visits of a day are divided → [`Event::DivisionLoaded`].
    Division {
        /// The site; none means the whole archive.
        site: Option<SiteId>,
        /// The day, in days since the epoch.
        day: i64,
    },
    /// What the crawl order knew → [`Event::OrderLoaded`].
    Order,
    /// Pages in the order of discovery → [`Event::FoundLoaded`].
    Found {
        /// After this discovery number.
        after: Nth,
        /// At most this many.
        limit: usize,
    },
    /// New pages by their discovery numbers → [`Event::NewLoaded`].
    New(Vec<Nth>),
    /// The links of pages by their discovery numbers → [`Event::LinksLoaded`].
    Links(Vec<Nth>),
    /// Pages near one that changed → [`Event::NearLoaded`].
    Near(Box<NearQuery>),
}

impl Load {
    /// Whether it can take seconds, so that nothing else should have to wait for it.
    pub fn takes_long(&self) -> bool {
        matches!(self, Self::Map(_))
    }

    /// Whether it may be answered before changes that wait to be committed: they are of pages under way,
    /// which are taken up by nobody else.
    pub fn may_overtake(&self) -> bool {
        matches!(self, Self::New(_) | Self::Near(_))
    }
}

/// One version to render.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderOrder {
    /// Its number.
    pub ticket: Ticket,
    /// The page's URL.
    pub url: CanonicalUrl,
    /// The version.
    pub version: VersionId,
    /// When it was asked for: the page's scripts see this time.
    pub at_s: i64,
    /// The site.
    pub site: SiteId,
    /// Not to render it, but to keep what the rendering with this ticket brought. It is answered with
    /// [`Rendered::is_kept`].
    pub keeps: Option<Ticket>,
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
    pub previous: Option<VersionId>,
}

/// A finished round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundReport {
    /// The round.
    pub round: RoundId,
    /// The site.
    pub site: SiteId,
    /// What was found since this process took it up.
    pub counts: RoundCounts,
    /// Pages left for the next round, by server, because the server could not be asked.
    pub left: Vec<(ServerId, u64)>,
    /// Whether the limit on pages ended it.
    pub page_limit_reached: bool,
}
