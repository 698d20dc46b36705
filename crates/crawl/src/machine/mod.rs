//! The crawler as a machine. Its parts: `rounds` (what a round queues), `planned` (rounds that choose
//! their pages), `refresher` (what is due
//! and queued), `servers` (rules and pace), `fetches` (asking and judging), `learning` (what is
//! learnt of servers), `ordering` (which new page first), `visits` (what becomes true), `schedules` (when to come again, and whether
//! now is a time to collect), `near` (what changes together).

mod fetches;
mod learning;
mod near;
mod ordering;
mod planned;
mod refresher;
mod rounds;
mod schedules;
mod servers;
mod visits;
mod weighing;

use std::collections::{BTreeMap, BTreeSet};

use nenrin_frontier::{Frontier, FrontierStats};
use nenrin_revisit::Overflow;
use nenrin_state::{DuePage, PageId, ServerId, ServerRecord, Site, SiteId, VisitCommit};
use nenrin_structure::PageBlocks;
use nenrin_urls::CanonicalUrl;

use self::{
    learning::Look,
    ordering::Ordering,
    refresher::Refresher,
    rounds::next_round_ms,
    schedules::{Door, SiteSchedule},
};
use crate::{
    Command, CrawlOptions, Event, ServerLearning, Ticket, planning::Heard, robots::Rules,
    round::RoundState,
};

pub use self::ordering::OrderStats;

/// The crawler as a machine: [`Crawl::step`] takes what happened and says what to do.
///
/// Invariants:
/// - a server has at most one request under way, and none before its pace allows;
/// - a page under way or queued is neither queued nor fetched a second time;
/// - a visit is committed only after its content is durable;
/// - whatever is lost with the process (queues, requests under way) is still due in the state.
pub struct Crawl {
    options: CrawlOptions,
    sites: BTreeMap<SiteId, Site>,
    rounds: BTreeMap<SiteId, RoundState>,
    /// Sites that someone wants collected now.
    wanted: BTreeSet<SiteId>,
    /// Sites whose round has been asked for and has not begun yet.
    beginning: BTreeSet<SiteId>,
    /// Sites whose pages have times of their own.
    schedules: BTreeMap<SiteId, SiteSchedule>,
    doors: BTreeMap<SiteId, Door>,
    /// When the doors are to be looked at next.
    doors_until_ms: i64,
    /// The day, and the visits to pages with times of their own in it.
    today: (i64, u64),
    refresher: Refresher,
    ordering: Ordering,
    servers: BTreeMap<ServerId, ServerState>,
    /// The bucket in which servers at rest were last looked for.
    tidied_bucket: Option<i64>,
    frontier: Frontier<Task>,
    under_way: BTreeMap<Ticket, UnderWay>,
    /// Requests among `under_way`.
    fetching: usize,
    /// Pages queued or under way, and whether a round counts them.
    taken: BTreeMap<(SiteId, PageId), bool>,
    last_ticket: u64,
    wake_ms: Option<i64>,
    stopping: bool,
    /// The disk is too full to go on.
    no_room: bool,
    /// Sites that have reached their quota.
    full: BTreeSet<SiteId>,
    /// Servers of which something was learnt that is not written down yet.
    unkept: BTreeSet<ServerId>,
}

#[derive(Debug)]
struct ServerState {
    record: ServerRecord,
    rules: Rules,
    /// Until when the rules hold.
    rules_until_s: i64,
    learnt: ServerLearning,
    /// How far its pages' intervals are stretched.
    overflow: Overflow,
}

#[derive(Debug)]
enum Task {
    Page(Box<DuePage>),
    Robots { url: CanonicalUrl, hops: u32, allow_private: bool },
}

#[derive(Debug)]
enum UnderWay {
    Page { due: Box<DuePage>, asked_ms: i64, asked_conditionally: bool },
    Robots { server: ServerId, hops: u32, allow_private: bool },
    Look(Look),
    Storing { url: CanonicalUrl, visit: Box<VisitCommit>, blocks: Option<PageBlocks> },
    Committing { url: CanonicalUrl, site: SiteId, heard: Heard },
    Pulling { server: ServerId },
}

impl Crawl {
    /// A machine that knows no site yet; the first event is [`Event::Sites`].
    pub fn new(options: CrawlOptions) -> Self {
        let frontier = Frontier::new(options.politeness.clone());
        let ordering = Ordering::new(options.order);
        Self {
            options,
            sites: BTreeMap::new(),
            rounds: BTreeMap::new(),
            wanted: BTreeSet::new(),
            beginning: BTreeSet::new(),
            schedules: BTreeMap::new(),
            doors: BTreeMap::new(),
            doors_until_ms: i64::MIN,
            today: (0, 0),
            refresher: Refresher::default(),
            ordering,
            servers: BTreeMap::new(),
            tidied_bucket: None,
            frontier,
            under_way: BTreeMap::new(),
            fetching: 0,
            taken: BTreeMap::new(),
            last_ticket: 0,
            wake_ms: None,
            stopping: false,
            no_room: false,
            full: BTreeSet::new(),
            unkept: BTreeSet::new(),
        }
    }

    /// Takes one event and says what to do about it.
    pub fn step(&mut self, now_ms: i64, event: Event) -> Vec<Command> {
        let mut out = Vec::new();
        match event {
            Event::Sites(sites) => {
                self.sites_told(sites, &mut out);
                self.tell_order_of_pages(&mut out);
            }
            Event::SharedLoaded { site, bytes, visits_today } => {
                self.shared_loaded(now_ms, site, &bytes, visits_today);
            }
            Event::DueLoaded { query, load, servers } => {
                self.due_loaded(now_ms, &query, load, servers, &mut out);
            }
            Event::OrderLoaded(bytes) => self.order_loaded(&bytes, &mut out),
            Event::FoundLoaded { after, pages } => self.found_loaded(after, &pages, &mut out),
            Event::NewLoaded { places, pages, servers } => {
                self.new_loaded(now_ms, &places, pages, servers, &mut out);
            }
            Event::LinksLoaded(pages) => self.links_loaded(pages),
            Event::LinksRead { page, links } => self.links_read(page, links, &mut out),
            Event::NearLoaded { query, pages } => {
                self.near_loaded(now_ms, &query, pages, &mut out);
            }
            Event::Hint(pull) => self.pull_forward(pull, &mut out),
            Event::CollectNow(site) => {
                self.wanted.insert(site);
            }
            Event::RoundBegun(round) => self.round_begun(round),
            Event::PagesLoaded { round, pages, servers } => {
                self.pages_loaded(now_ms, round, pages, servers);
            }
            Event::MapLoaded { round, map, servers } => {
                self.map_loaded(now_ms, round, map, servers, &mut out);
            }
            Event::PlanDone(done) => self.plan_done(now_ms, *done, &mut out),
            Event::ChosenLoaded { round, asked, pages, servers } => {
                self.chosen_loaded(now_ms, round, &asked, pages, servers);
            }
            Event::Fetched { ticket, fetched } => self.fetched(now_ms, ticket, *fetched, &mut out),
            Event::Stored { ticket, version, stored_bytes } => {
                self.stored(ticket, version, stored_bytes, &mut out);
            }
            Event::Committed { tickets, rounds_ended, committed, servers } => {
                self.committed(now_ms, &tickets, &rounds_ended, committed, servers, &mut out);
            }
            Event::Wake => self.wake_ms = None,
            Event::Stop => {
                self.stopping = true;
                self.keep_all(&mut out);
                self.keep_learnt(&mut out);
                self.weigh_all(usize::MAX, &mut out);
                self.keep_order(&mut out);
            }
            Event::Room(room) => self.no_room = !room,
            Event::Full(sites) => self.sites_full(sites),
            Event::Options(options) => self.take_options(*options),
        }
        self.pump(now_ms, &mut out);
        out
    }

    /// How full the short-term queue is.
    pub fn frontier_stats(&self, now_ms: i64) -> FrontierStats {
        self.frontier.stats(now_ms)
    }

    /// Pages in the short-term queue.
    pub fn queued(&self) -> usize {
        self.frontier.queued()
    }

    /// Servers in memory.
    pub fn servers_known(&self) -> usize {
        self.servers.len()
    }

    /// Requests under way.
    pub fn fetching(&self) -> usize {
        self.fetching
    }

    /// The page whose visit is being committed under this ticket.
    pub fn committing(&self, ticket: Ticket) -> Option<&CanonicalUrl> {
        match self.under_way.get(&ticket) {
            Some(UnderWay::Committing { url, .. }) => Some(url),
            _ => None,
        }
    }

    /// Pages visited so far in the rounds under way, and pages waiting.
    pub fn round_progress(&self, site: SiteId) -> Option<(u64, u64)> {
        let round = self.rounds.get(&site)?;
        Some((round.round.counts.visits() + round.counts.visits(), round.open as u64))
    }

    fn pump(&mut self, now_ms: i64, out: &mut Vec<Command>) {
        if self.stopping {
            if self.under_way.is_empty() {
                out.push(Command::Stopped);
            }
            return;
        }
        if self.no_room {
            return;
        }
        self.watch_doors(now_ms);
        self.forget_servers(now_ms);
        self.begin_due_rounds(now_ms, out);
        self.load_more(now_ms, out);
        self.refresh(now_ms, out);
        self.advance_order(out);
        self.feed_new(now_ms, BTreeMap::new(), out);
        while self.fetching < self.options.parallel
            && self.under_way.len() < self.options.parallel + self.options.unstored_max
        {
            let Some((server, task)) = self.frontier.take(now_ms) else { break };
            self.start(now_ms, ServerId(server), task, out);
            self.queue_shrank(ServerId(server));
        }
        self.end_rounds(now_ms, out);
        self.ask_to_wake(now_ms, out);
    }

    /// What was learnt of the servers met so far.
    pub fn learnt(&self) -> impl Iterator<Item = &ServerLearning> {
        self.servers.values().map(|state| &state.learnt)
    }

    fn take_options(&mut self, options: CrawlOptions) {
        self.frontier.set_politeness(options.politeness.clone());
        let asked_before_ms = self.options.asked_before_ms;
        let order = self.options.order;
        self.options = CrawlOptions { asked_before_ms, order, ..options };
    }

    fn new_ticket(&mut self) -> Ticket {
        self.last_ticket += 1;
        Ticket(self.last_ticket)
    }

    /// Asks to be called at the next moment when something can be done, once.
    fn ask_to_wake(&mut self, now_ms: i64, out: &mut Vec<Command>) {
        let has_place = self.fetching < self.options.parallel;
        let ready_ms = self.frontier.next_ready_ms().filter(|_| has_place);
        let round_ms = self
            .sites
            .values()
            .filter(|site| {
                let under_way =
                    self.rounds.contains_key(&site.id) || self.beginning.contains(&site.id);
                !under_way && self.is_open(site.id)
            })
            .filter_map(next_round_ms)
            .min();
        let next = [ready_ms, round_ms, self.next_bucket_ms(now_ms), self.next_door_ms()];
        let Some(next_ms) = next.into_iter().flatten().min() else { return };
        let next_ms = next_ms.max(now_ms + 1);
        if self.wake_ms.is_none_or(|asked_ms| next_ms < asked_ms) {
            self.wake_ms = Some(next_ms);
            out.push(Command::WakeAt(next_ms));
        }
    }
}
