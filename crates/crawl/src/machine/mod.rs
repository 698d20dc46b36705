//! The crawler as a machine: each event goes to the components that own what it is about.
//!
//! - `queueing`: which pages are queued next, from rounds, the long-term queue and the crawl order;
//! - `preliminaries`: what a server is asked before its pages;
//! - `visiting`: one visit from the request to the commit;
//! - `rendering`: what follows from it in a browser.

mod preliminaries;
mod queueing;
mod rendering;
mod visiting;

use std::collections::BTreeMap;

use nenrin_frontier::FrontierStats;
use nenrin_state::{Change, Division, RoundId, ServerId, ServerRecord, Site, SiteId};
use nenrin_urls::CanonicalUrl;

use crate::{
    answer::Ticket,
    due_pages::DuePages,
    events::{Command, Event},
    learning::{Learning, ServerLearning},
    new_pages::{NewPages, OrderStats},
    options::CrawlOptions,
    renderings::Renderings,
    rounds::Rounds,
    schedules::Schedules,
    servers::Servers,
    sites::Sites,
    taken::TakenPages,
    under_way::UnderWay,
};

/// The crawler as a machine: [`Crawl::step`] takes what happened and says what to do.
///
/// Invariants:
/// - a server has at most one request under way, and none before its pace allows;
/// - a page under way or queued is neither queued nor fetched a second time, not even for another
///   site that has it too;
/// - a visit is committed only after its content is durable;
/// - whatever is lost with the process (queues, requests under way) is still due in the state.
pub struct Crawl {
    options: CrawlOptions,
    sites: Sites,
    /// When each page is to be visited again, and whether a site may be collected now.
    schedules: Schedules,
    rounds: Rounds,
    /// Pages of the long-term queue whose time has come.
    due_pages: DuePages,
    /// Pages that were never visited, by the crawl order.
    new_pages: NewPages,
    /// The short-term queue: one queue for each server, with its pace and rules.
    servers: Servers,
    /// What is learnt of servers.
    learning: Learning,
    /// Which pages are rendered in a browser.
    renderings: Renderings,
    taken: TakenPages,
    under_way: UnderWay,
    /// When the machine asked to be called.
    wake_ms: Option<i64>,
    is_stopping: bool,
    /// The disk is too full to go on.
    is_disk_full: bool,
}

impl Crawl {
    /// A machine that knows no site yet; the first event is [`Event::Sites`].
    pub fn new(options: CrawlOptions) -> Self {
        Self {
            sites: Sites::default(),
            schedules: Schedules::default(),
            rounds: Rounds::default(),
            due_pages: DuePages::default(),
            new_pages: NewPages::new(options.order),
            servers: Servers::new(options.politeness.clone()),
            learning: Learning::default(),
            renderings: Renderings::default(),
            taken: TakenPages::default(),
            under_way: UnderWay::default(),
            wake_ms: None,
            is_stopping: false,
            is_disk_full: false,
            options,
        }
    }

    /// Takes one event and says what to do about it.
    ///
    /// The first requests for a site that was just registered:
    ///
    /// ```
    /// use std::collections::VecDeque;
    ///
    /// use nenrin_crawl::{Command, Crawl, CrawlOptions, Event, answer_load};
    /// use nenrin_state::{Registry as _, SiteConditions, SqliteState};
    /// use nenrin_urls::CanonicalUrl;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let now_s = 1_704_067_200;
    /// let state = SqliteState::in_memory(3_600)?;
    /// let top = CanonicalUrl::parse("https://example.com/")?;
    /// let site = state.add_site("example", &SiteConditions::new(vec![top]), now_s)?;
    ///
    /// let mut crawl = Crawl::new(CrawlOptions::default());
    /// let mut events = VecDeque::from([Event::Sites(state.sites()?), Event::CollectNow(site.id)]);
    /// let mut asked = Vec::new();
    /// while let Some(event) = events.pop_front() {
    ///     for command in crawl.step(now_s * 1000, event) {
    ///         match command {
    ///             Command::Load(load) => events.push_back(answer_load(&state, now_s, &load)?),
    ///             Command::Fetch(order) => asked.push(order.url.to_string()),
    ///             _ => {} // commits, and when to call again
    ///         }
    ///     }
    /// }
    /// // Its page is asked for once the answer to this is known.
    /// assert_eq!(asked, ["https://example.com/robots.txt"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn step(&mut self, now_ms: i64, event: Event) -> Vec<Command> {
        let mut out = Vec::new();
        self.take_event(now_ms, event, &mut out);
        self.go_on(now_ms, &mut out);
        out
    }

    /// How the visits of a day are divided among partitions, of a site or of the whole archive.
    fn divided(
        &mut self,
        now_ms: i64,
        site: Option<SiteId>,
        division: Option<Division>,
        out: &mut Vec<Command>,
    ) {
        let Some(division) = division else { return };
        let (now_s, sites) = (now_ms / 1000, &self.sites);
        match site {
            Some(site) => self.schedules.divided(now_s, site, division, sites, out),
            None => {
                self.schedules.archive_divided(now_s, division, sites, &self.options, out);
                self.schedules.share_budget(sites, &self.options);
            }
        }
    }

    fn take_event(&mut self, now_ms: i64, event: Event, out: &mut Vec<Command>) {
        match event {
            Event::Sites(sites) => self.sites_changed(sites, out),
            Event::SharedLoaded {
                site,
                bytes,
                visits_today,
                visits_yesterday,
                division,
                of_archive,
            } => {
                let visits = [visits_yesterday, visits_today];
                if self.schedules.loaded(now_ms / 1000, site, &bytes, visits) {
                    self.divided(now_ms, Some(site), division, out);
                    self.divided(now_ms, None, of_archive, out);
                    self.schedules.recall_yesterday(now_ms / 1000, site, &self.options);
                    self.look_again();
                    self.schedules.share_budget(&self.sites, &self.options);
                }
            }
            Event::DivisionLoaded { site, division } => {
                self.divided(now_ms, site, division, out);
            }
            Event::DueLoaded { query, load, servers } => {
                self.meet_servers(now_ms, servers);
                self.due_loaded(now_ms, &query, load, out);
            }
            Event::OrderLoaded { bytes, received } => {
                self.new_pages.order_loaded(&bytes, &received, out);
            }
            Event::FoundLoaded { after, pages } => {
                self.new_pages.found_loaded(after, &pages, &mut self.servers, out);
            }
            Event::NewLoaded { places, pages, servers } => {
                self.meet_servers(now_ms, servers);
                self.new_loaded(now_ms, &places, pages, out);
            }
            Event::LinksLoaded(pages) => self.new_pages.links_loaded(pages, &mut self.servers),
            Event::LinksRead { page, links } => {
                self.new_pages.links_read();
                out.push(Command::commit(Change::Links { page, links }));
            }
            Event::NearLoaded { query, pages } => self.near_loaded(now_ms, &query, &pages, out),
            Event::Hint(pull) => self.pull_forward(pull, out),
            Event::CollectNow(site) => self.rounds.want(site),
            Event::RoundBegun(round) => self.rounds.begun(round, &mut self.sites),
            Event::RoundHeld(site) => self.rounds.hold(site),
            Event::PagesLoaded { round, pages, servers } => {
                if self.rounds.loaded(round, &pages, &self.options) {
                    self.meet_servers(now_ms, servers);
                    self.queue_for_rounds(now_ms, pages);
                }
            }
            Event::MapLoaded { round, map, servers } => {
                self.meet_servers(now_ms, servers);
                self.rounds.map_loaded(round, map, &self.sites, &self.learning, out);
            }
            Event::PlanDone(done) => self.rounds.plan_done(now_ms, *done, &self.options, out),
            Event::ChosenLoaded { round, asked, pages, servers } => {
                self.meet_servers(now_ms, servers);
                self.chosen_loaded(now_ms, round, asked, pages, out);
            }
            Event::Fetched { ticket, fetched } => self.fetched(now_ms, ticket, *fetched, out),
            Event::Rendered { ticket, rendered } => {
                self.rendered(now_ms, ticket, *rendered, out);
            }
            Event::Stored { ticket, version, stored_bytes, is_known } => {
                self.stored(ticket, version, (stored_bytes, is_known), out);
            }
            Event::Committed { tickets, rounds_ended, committed, servers } => {
                self.meet_servers(now_ms, servers);
                self.pages_committed(now_ms, committed, out);
                self.visits_committed(&tickets, out);
                rounds_ended.into_iter().for_each(|round| self.round_ended(round, out));
            }
            Event::Wake => self.wake_ms = None,
            Event::Stop => self.stop(out),
            Event::DiskSpace(is_enough) => self.is_disk_full = !is_enough,
            Event::Full(sites) => {
                for site in self.sites.set_full(sites) {
                    self.schedules.reconsider(site);
                }
            }
            Event::Options(options) => self.take_options(*options),
        }
    }

    /// Does what can be done now: queues pages and asks servers that are ready.
    fn go_on(&mut self, now_ms: i64, out: &mut Vec<Command>) {
        if self.is_stopping {
            if self.under_way.is_empty() {
                out.push(Command::Stopped);
            }
            return;
        }
        if self.is_disk_full {
            return;
        }
        self.schedules.begin_day(now_ms / 1000, out);
        self.watch_sites(now_ms);
        self.forget_servers(now_ms, out);
        self.rounds.begin_due(now_ms, &self.sites, &self.schedules, out);
        self.load_rounds(now_ms, out);
        self.load_due(now_ms, out);
        self.new_pages.advance(&mut self.servers, out);
        self.queue_new(now_ms, BTreeMap::new(), out);
        self.ask_servers(now_ms, out);
        if self.rounds.end_over(now_ms / 1000, out) {
            // A process that waits for the round may end right after it.
            self.new_pages.weigh_all(crate::new_pages::LOOKS_MAX, out);
        }
        self.ask_to_wake(now_ms, out);
    }

    /// Asks to be called at the next moment when something can be done, once.
    fn ask_to_wake(&mut self, now_ms: i64, out: &mut Vec<Command>) {
        let has_place = self.under_way.fetching() < self.options.parallel;
        let next = [
            self.servers.next_ready_ms().filter(|_| has_place),
            self.rounds.next_ms(&self.sites, &self.schedules),
            self.visits_due_pages().then(|| self.options.next_bucket_ms(now_ms)),
            self.schedules.next_turn_ms(),
        ];
        let Some(next_ms) = next.into_iter().flatten().min() else { return };
        let next_ms = next_ms.max(now_ms + 1);
        if self.wake_ms.is_none_or(|asked_ms| next_ms < asked_ms) {
            self.wake_ms = Some(next_ms);
            out.push(Command::WakeAt(next_ms));
        }
    }
}

/// What is known of the crawl from outside.
impl Crawl {
    /// How full the short-term queue is.
    pub fn frontier_stats(&self, now_ms: i64) -> FrontierStats {
        self.servers.stats(now_ms)
    }

    /// How far the crawl order knows the state, and what it holds.
    pub fn order_stats(&self) -> OrderStats {
        self.new_pages.stats()
    }

    /// Pages in the short-term queue.
    pub fn queued(&self) -> usize {
        self.servers.queued()
    }

    /// Servers in memory.
    pub fn servers_known(&self) -> usize {
        self.servers.len()
    }

    /// Requests under way.
    pub fn fetching(&self) -> usize {
        self.under_way.fetching()
    }

    /// The page whose visit is being committed under this ticket.
    pub fn committing(&self, ticket: Ticket) -> Option<&CanonicalUrl> {
        self.under_way.committing(ticket)
    }

    /// Pages visited so far in the round of a site, and pages waiting.
    pub fn round_progress(&self, site: SiteId) -> Option<(u64, u64)> {
        self.rounds.progress(site)
    }

    /// What was learnt of the servers in memory.
    pub fn learnt(&self) -> impl Iterator<Item = &ServerLearning> {
        self.learning.iter()
    }
}

/// Sites, servers and settings.
impl Crawl {
    fn sites_changed(&mut self, sites: Vec<Site>, out: &mut Vec<Command>) {
        self.sites.replace(sites);
        self.rounds.sites_changed();
        self.schedules.follow(&self.sites, self.options.bucket_s, out);
        self.look_again();
        self.new_pages.look_for_pages(out);
    }

    /// Pages that rest may be visited now: they are looked for again.
    fn look_again(&mut self) {
        self.due_pages.look_again();
        self.new_pages.look_again();
    }

    /// Looks which sites are open, where that may have changed.
    fn watch_sites(&mut self, now_ms: i64) {
        if self.schedules.watch(now_ms, &self.sites, &self.options) {
            self.look_again();
            self.schedules.share_budget(&self.sites, &self.options);
        }
    }

    fn meet_servers(&mut self, now_ms: i64, records: Vec<ServerRecord>) {
        for record in records {
            if !self.servers.knows(record.id) {
                self.learning.meet(&record);
                self.servers.meet(now_ms, record, &self.options);
            }
        }
    }

    /// Leaves servers at rest to the state, if there are many.
    fn forget_servers(&mut self, now_ms: i64, out: &mut Vec<Command>) {
        let due_pages = &self.due_pages;
        let may_forget = |server: ServerId| !due_pages.awaits(server);
        for server in self.servers.forget_resting(now_ms, &self.options, may_forget) {
            self.learning.forget(server, out);
        }
    }

    fn round_ended(&mut self, round: RoundId, out: &mut Vec<Command>) {
        if let Some(report) = self.rounds.ended(round, &mut self.sites) {
            self.learning.keep(out);
            out.push(Command::RoundFinished(report));
        }
    }

    /// Makes no more requests, and keeps what was learnt.
    fn stop(&mut self, out: &mut Vec<Command>) {
        self.is_stopping = true;
        self.schedules.keep_all(out);
        self.learning.keep(out);
        self.new_pages.weigh_all(usize::MAX, out);
        self.new_pages.keep(out);
        self.next_rendering(out);
    }

    fn take_options(&mut self, options: CrawlOptions) {
        self.servers.set_politeness(options.politeness.clone());
        let asked_before_ms = self.options.asked_before_ms;
        let order = self.options.order;
        self.options = CrawlOptions { asked_before_ms, order, ..options };
    }
}
