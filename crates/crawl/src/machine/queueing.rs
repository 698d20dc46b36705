//! Which pages are queued next: those of rounds, those whose time has come, and new ones.

use std::collections::BTreeMap;

use nenrin_lang::Hint;
use nenrin_state::{
    Change, Committed, DueLoad, DuePage, DueQuery, NewPage, Nth, PageId, PageRecord, PullForward,
    RoundId, ServerId, SiteId,
};
use nenrin_urls::RenderedRecord;

use crate::{
    events::{Command, Load},
    near::NearQuery,
    new_pages::Helping,
    rounds::Surroundings,
    taken::Taker,
    under_way::Committing,
};

use super::Crawl;

/// Data that were visited at most this long ago count as those of the page now.
const TOGETHER_S: i64 = 60;

/// Pages of rounds.
impl Crawl {
    pub(super) fn load_rounds(&mut self, now_ms: i64, out: &mut Vec<Command>) {
        let around = Surroundings {
            options: &self.options,
            sites: &self.sites,
            schedules: &self.schedules,
            learning: &self.learning,
            servers: &self.servers,
        };
        self.rounds.load_more(now_ms, &self.taken, around, out);
    }

    pub(super) fn queue_for_rounds(&mut self, now_ms: i64, pages: Vec<DuePage>) {
        pages.into_iter().for_each(|due| self.queue_for_round(now_ms, due));
    }

    /// Queues a page for its round, unless it is already queued or the round is full.
    fn queue_for_round(&mut self, now_ms: i64, due: DuePage) {
        let around = Surroundings {
            options: &self.options,
            sites: &self.sites,
            schedules: &self.schedules,
            learning: &self.learning,
            servers: &self.servers,
        };
        // Records of renderings are pages of the site that nobody visits.
        let is_record = RenderedRecord::is_one(&due.page.url);
        if !is_record && self.rounds.admit(now_ms, &due, &mut self.taken, around) {
            self.set_delay(now_ms, &due);
            self.queue_page(now_ms, Box::new(due));
        }
    }
}

/// Pages that a round chose, and pages that it gets after another site.
impl Crawl {
    pub(super) fn chosen_loaded(
        &mut self,
        now_ms: i64,
        round: RoundId,
        asked: Vec<PageId>,
        pages: Vec<DuePage>,
        out: &mut Vec<Command>,
    ) {
        let Some(site) = self.rounds.site_of(round) else { return };
        let (again, asked): (Vec<PageId>, Vec<PageId>) =
            asked.into_iter().partition(|&page| self.taken.loaded_again(site, page));
        let (mut pages_again, pages): (Vec<DuePage>, Vec<DuePage>) =
            pages.into_iter().partition(|due| again.contains(&due.page.id));
        if self.rounds.chosen_loaded(round, &asked, &pages) {
            self.queue_for_rounds(now_ms, pages);
        }
        for page in again {
            match pages_again.iter().position(|due| due.page.id == page) {
                Some(n) => {
                    let due = pages_again.swap_remove(n);
                    self.set_delay(now_ms, &due);
                    self.queue_page(now_ms, Box::new(due));
                }
                None => {
                    self.release(site, page, out);
                    self.rounds.leave(site, page);
                }
            }
        }
    }

    /// A page is neither queued nor under way for a site any more. Another site that waits for it has
    /// it loaded again. Returns whether a round counted the page.
    pub(super) fn release(&mut self, site: SiteId, page: PageId, out: &mut Vec<Command>) -> bool {
        let (was_in_round, mut next) = self.taken.release(site, page);
        while let Some(Taker { site, in_round, new }) = next {
            let load = self.rounds.load_again(site, page).filter(|_| in_round);
            if let Some(load) = load {
                self.taken.load_again(page);
                out.push(Command::Load(load));
                break;
            }
            // It is still in its bucket, or among the new ones.
            new.into_iter().for_each(|nth| self.new_pages.put_back(nth, page.server()));
            next = self.taken.release(site, page).1;
            self.more_of(page.server());
        }
        was_in_round
    }
}

/// Pages whose time has come.
impl Crawl {
    /// Whether pages with a time of their own are visited.
    pub(super) fn visits_due_pages(&self) -> bool {
        self.options.due_pages && !self.schedules.is_empty()
    }

    pub(super) fn load_due(&mut self, now_ms: i64, out: &mut Vec<Command>) {
        if self.visits_due_pages() {
            let (under_way, schedules) = (self.under_way.len(), &self.schedules);
            let closed_sites = || schedules.closed_sites();
            let options = &self.options;
            self.due_pages.refresh(now_ms, &self.servers, under_way, closed_sites, options, out);
        }
    }

    pub(super) fn due_loaded(
        &mut self,
        now_ms: i64,
        query: &DueQuery,
        load: DueLoad,
        out: &mut Vec<Command>,
    ) {
        match query.server {
            Some(server) if query.new => self.new_pages.any_loaded(server, !load.pages.is_empty()),
            _ => self.due_pages.loaded(query, &load),
        }
        for due in load.pages {
            self.queue_due(now_ms, due, out);
        }
        for server in load.more.into_iter().filter(|_| !query.new) {
            self.more_of(server);
        }
    }

    /// Queues a page whose time has come, unless it is taken up already.
    fn queue_due(&mut self, now_ms: i64, due: DuePage, out: &mut Vec<Command>) {
        let (server, page) = (due.page.id.server(), due.page.id);
        if self.taken.contains(due.site, page) || !self.schedules.is_open(due.site) {
            return;
        }
        let is_new = due.page.visited_s.is_none();
        let is_full = self.servers.queued() >= self.options.queue_max
            || (!is_new && self.servers.queued_for(server) >= 2 * self.options.server_queue_max);
        if is_full {
            self.new_pages.not_visited(&due);
            self.more_of(server);
            return;
        }
        if !is_new && self.put_off(now_ms, &due, out) {
            return;
        }
        let new = is_new.then_some(due.page.nth);
        if self.taken.take(page, Taker { site: due.site, in_round: false, new }) {
            self.set_delay(now_ms, &due);
            self.queue_page(now_ms, Box::new(due));
        }
    }

    /// Whether a page's visit is not worth it after all: then it gets another time.
    fn put_off(&mut self, now_ms: i64, due: &DuePage, out: &mut Vec<Command>) -> bool {
        let stretch = self.servers.stretch(due.page.id.server());
        let later_s = self.schedules.put_off(now_ms / 1000, due, stretch, self.options.bucket_s);
        let change = later_s.map(|due_s| Change::Due { page: due.page.id, due_s });
        out.extend(change.map(Command::commit));
        later_s.is_some()
    }

    /// Pages of this server are due and not queued: they are loaded when its queue runs low.
    pub(super) fn more_of(&mut self, server: ServerId) {
        let is_low = self.servers.is_low(server, &self.options);
        self.due_pages.more_of(server, is_low);
    }

    /// A page of this server was taken from its queue.
    pub(super) fn queue_shrank(&mut self, server: ServerId) {
        self.due_pages.queue_shrank(server, &self.servers, &self.options);
        self.new_pages.queue_shrank(server, &self.servers);
    }

    /// A hint brings a page's visit nearer.
    pub(super) fn pull_forward(&mut self, pull: PullForward, out: &mut Vec<Command>) {
        self.pull(pull.page.server(), Change::PullForward(pull), out);
    }

    /// Commits a change that brings pages of a server nearer.
    pub(super) fn pull(&mut self, server: ServerId, change: Change, out: &mut Vec<Command>) {
        let ticket = self.under_way.new_ticket();
        self.under_way.commit(ticket, Committing::Pull { server });
        out.push(Command::Commit { ticket: Some(ticket), change });
    }

    /// Pages near one that changed came from the state: those that are worth a visit now are pulled
    /// forward.
    pub(super) fn near_loaded(
        &mut self,
        now_ms: i64,
        query: &NearQuery,
        pages: &[PageRecord],
        out: &mut Vec<Command>,
    ) {
        if self.is_stopping {
            return;
        }
        let now_s = now_ms / 1000;
        for page in pages {
            let is_taken = self.taken.contains(query.site, page.id);
            let is_wanted = match query.is_data {
                true => page.visited_s.is_none_or(|at_s| at_s + TOGETHER_S <= now_s),
                false => self.schedules.is_worth(now_s, query.site, page),
            };
            if !is_taken && is_wanted {
                let of = query.url.to_string();
                let hint = if query.is_data { Hint::DataOf(of) } else { Hint::ChangesWith(of) };
                let pull = PullForward { page: page.id, to_s: now_s, odds_percent: 100, hint };
                self.pull_forward(pull, out);
            }
        }
    }
}

/// New pages.
impl Crawl {
    /// Puts the best new pages of servers with capacity into their queues; `fresh` pages are in
    /// memory, others are loaded.
    pub(super) fn queue_new(
        &mut self,
        now_ms: i64,
        mut fresh: BTreeMap<Nth, DuePage>,
        out: &mut Vec<Command>,
    ) {
        if !self.visits_due_pages() {
            return;
        }
        let mut places = Vec::new();
        while let Some(server) =
            self.new_pages.next_hungry(places.len(), &self.servers, &self.options)
        {
            match self.new_pages.helping(server, &self.servers) {
                Helping::Any => self.load_any_new(server, out),
                Helping::Best(room) => {
                    for _ in 0..room {
                        let Some(nth) = self.new_pages.take_best(server) else { break };
                        match fresh.remove(&nth) {
                            Some(due) => self.queue_best(now_ms, due, out),
                            None => {
                                places.push(nth);
                                self.new_pages.load(server);
                            }
                        }
                    }
                }
            }
            self.new_pages.count_resting(server, &mut self.servers);
        }
        if !places.is_empty() {
            out.push(Command::Load(Load::New(places)));
        }
    }

    /// The best pages of a server may not be visited now: others are taken as they come.
    fn load_any_new(&self, server: ServerId, out: &mut Vec<Command>) {
        let limit = self.options.server_queue_max;
        out.push(Command::Load(Load::Due(DueQuery {
            until_s: 0,
            new: true,
            after: None,
            server: Some(server),
            without: self.schedules.closed_sites(),
            per_server: limit,
            limit,
        })));
    }

    pub(super) fn new_loaded(
        &mut self,
        now_ms: i64,
        places: &[Nth],
        pages: Vec<DuePage>,
        out: &mut Vec<Command>,
    ) {
        self.new_pages.loaded(places, &pages, &self.servers);
        for due in pages {
            let server = due.page.id.server();
            if due.page.visited_s.is_none() {
                self.queue_best(now_ms, due, out);
            }
            self.new_pages.queue_shrank(server, &self.servers);
        }
    }

    /// Queues the best new page of a server, unless it may not be visited now.
    fn queue_best(&mut self, now_ms: i64, due: DuePage, out: &mut Vec<Command>) {
        if self.schedules.is_open(due.site) {
            self.queue_due(now_ms, due, out);
        } else {
            self.new_pages.set_aside(due.page.nth, due.page.id.server(), &self.servers);
        }
    }

    /// Pages and links became known by a commit.
    pub(super) fn pages_committed(
        &mut self,
        now_ms: i64,
        committed: Committed,
        out: &mut Vec<Command>,
    ) {
        let mut fresh = BTreeMap::new();
        for NewPage { due } in committed.new_pages {
            self.new_pages.found(&due, out);
            self.sites.count_page(due.site);
            self.learning.count_new(now_ms / 1000, &due, out);
            if self.rounds.count_new_page(due.site) {
                self.queue_for_round(now_ms, due);
            } else if self.options.due_pages
                && due.page.due_s.is_some_and(|due_s| due_s <= now_ms / 1000)
            {
                if due.depth > 1 && due.page.visited_s.is_none() {
                    fresh.insert(due.page.nth, due);
                } else {
                    self.queue_due(now_ms, due, out);
                }
            }
        }
        for linked in &committed.linked {
            self.new_pages.linked(linked, &mut self.servers);
        }
        self.new_pages.received(&committed.received);
        self.queue_new(now_ms, fresh, out);
    }
}

/// Into a queue and out of it.
impl Crawl {
    /// A page's server is asked at its site's own pace.
    fn set_delay(&mut self, now_ms: i64, due: &DuePage) {
        if let Some(conditions) = self.sites.conditions(due.site) {
            let delay_ms = conditions.delay_ms.map(|ms| ms as i64);
            let delay_ms = delay_ms.max(self.schedules.pause_ms(now_ms, due.site, &self.options));
            self.servers.set_delay(due.page.id.server(), delay_ms);
        }
    }

    /// Puts a page into its server's queue. A page that was never visited is one of the new ones, by
    /// the crawl order; but a round begins with its top pages, sitemaps and feeds.
    pub(super) fn queue_page(&mut self, now_ms: i64, due: Box<DuePage>) {
        let in_round = self.taken.is_in_round(due.site, due.page.id);
        let is_new = due.page.visited_s.is_none();
        let is_source = (in_round || is_new) && self.learning.is_source(&due);
        let begins_round = in_round && (due.depth <= 1 || is_source);
        if is_new && !begins_round {
            // Few pages that wait for parts are remembered: behind a site's pages, the parts would come
            // too late for most.
            let is_first = is_source || self.renderings.awaits(&due.page.url);
            return self.new_pages.queue(due, is_first, &mut self.servers);
        }
        let started_s = self.rounds.started_s(due.site).filter(|_| in_round);
        // The page that has waited longest goes first, by its schedule; within a round, pages nearer
        // to a top page.
        let (first_s, since_s) = match started_s {
            // Sitemaps and feeds go first: what they say decides how other pages are treated.
            Some(started_s) if is_source => (started_s, started_s),
            Some(started_s) => {
                let at_s = started_s + i64::from(due.depth);
                (at_s, at_s)
            }
            None => {
                let due_s = due.page.due_s.unwrap_or(0);
                let (now_s, sites) = (now_ms / 1000, &self.sites);
                (self.schedules.waits_since_s(now_s, &due, sites, &self.options), due_s)
            }
        };
        let [priority, since] = [first_s, since_s].map(|at_s| at_s.max(1).unsigned_abs());
        self.servers.queue_known(due, priority, since);
    }

    /// A page whose site has closed goes back to rest: it stays due in the state.
    pub(super) fn put_to_rest(&mut self, due: &DuePage, out: &mut Vec<Command>) {
        self.new_pages.not_visited(due);
        if self.release(due.site, due.page.id, out) {
            self.rounds.rest(due.site, due.page.id);
        }
    }

    /// Leaves a server's queued pages for the next round.
    pub(super) fn leave_server(&mut self, server: ServerId, out: &mut Vec<Command>) {
        for due in self.servers.drain(server) {
            self.new_pages.not_visited(&due);
            if self.release(due.site, due.page.id, out) {
                self.rounds.leave(due.site, due.page.id);
            } else {
                self.look_again();
            }
        }
    }
}
