//! Which new page first: the crawl order learns of every page that becomes known and of every
//! page's links, and names the best new pages of a server that can take more.

mod order;
mod received;
mod weighing;

use std::collections::{BTreeMap, BTreeSet};

use nenrin_order::{ServerIndex, Strategy};
use nenrin_state::{DuePage, FoundPage, Linked, Nth, PageLinks, Received, ServerId, SiteId};

use crate::{events::Command, options::CrawlOptions, servers::Servers};

use self::order::Order;
pub use self::order::OrderStats;
pub(crate) use self::weighing::LOOKS_MAX;

/// New pages of a server in its queue: few, since the best may change with every page collected.
const NEW_AHEAD: usize = 4;
/// New pages loaded at once.
const NEW_PAGES: usize = 2_000;
/// Pages of a server that are set aside because their site is closed. With more of them, new pages are
/// taken as they come, without the order.
const ASIDE_MAX: usize = 256;

/// The pages that were never visited, in the order in which they are collected.
pub(crate) struct NewPages {
    order: Order,
    /// New pages in the short-term queue.
    queued: BTreeMap<(Nth, SiteId), Queued>,
    /// Servers whose queue has capacity for new pages.
    hungry: BTreeSet<ServerId>,
    /// New pages being loaded.
    loading: BTreeMap<ServerId, usize>,
    /// New pages that may not be visited now.
    aside: BTreeMap<ServerId, Vec<Nth>>,
    /// Servers with so many of these that others were looked for, and none found.
    barren: BTreeSet<ServerId>,
}

#[derive(Debug, Clone, Copy)]
struct Queued {
    server: ServerId,
    priority: u64,
}

/// What a server with capacity for new pages gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Helping {
    /// At most this many of the best.
    Best(usize),
    /// Any, as they come: the best may not be visited now.
    Any,
}

/// Distinguishes the entries of one server: a page may be queued for two sites.
fn mark(nth: Nth, site: SiteId) -> u64 {
    u64::from(nth.0) << 32 | u64::from(site.0)
}

impl NewPages {
    pub(crate) fn new(strategy: Strategy) -> Self {
        Self {
            order: Order::new(strategy),
            queued: BTreeMap::new(),
            hungry: BTreeSet::new(),
            loading: BTreeMap::new(),
            aside: BTreeMap::new(),
            barren: BTreeSet::new(),
        }
    }

    pub(crate) fn stats(&self) -> OrderStats {
        self.order.stats()
    }

    /// Loads what the order knew, or looks for pages that it does not know.
    pub(crate) fn look_for_pages(&mut self, out: &mut Vec<Command>) {
        self.order.look_for_pages(out);
    }

    /// What the order knew came from the state.
    pub(crate) fn order_loaded(
        &mut self,
        bytes: &[u8],
        received: &[Received],
        out: &mut Vec<Command>,
    ) {
        self.order.restore(bytes, received, out);
    }

    /// Pages got shares of scores from other partitions: numbers, and all that each got so far.
    pub(crate) fn received(&mut self, received: &[(Nth, u64)]) {
        received.iter().for_each(|&(nth, micros)| self.order.received(nth, micros));
    }

    /// What a page that is being visited gives to all pages that it links to.
    pub(crate) fn gives_micros(&self, nth: Nth) -> Option<u64> {
        self.order.gives_micros(nth)
    }

    /// Known pages came from the state, in the order of discovery.
    pub(crate) fn found_loaded(
        &mut self,
        after: Nth,
        pages: &[FoundPage],
        servers: &mut Servers,
        out: &mut Vec<Command>,
    ) {
        if !self.order.awaits(after) {
            return;
        }
        for page in pages {
            let is_queued = self.sites_queued(page.nth).next().is_some();
            let Some(waits) = self.order.compare(page, is_queued) else { continue };
            if waits {
                self.hungry.insert(page.server);
            }
            self.reprioritise(&[page.nth], servers);
        }
        self.order.scanned(after, pages, out);
    }

    /// A page became known by a commit.
    pub(crate) fn found(&mut self, due: &DuePage, out: &mut Vec<Command>) {
        let server = due.page.id.server();
        let is_new = self.order.found(due.page.nth, server, &due.page.url, out);
        if is_new && due.page.due_s.is_some() {
            self.barren.remove(&server);
            self.hungry.insert(server);
        }
    }

    /// Links became known by a commit.
    pub(crate) fn linked(&mut self, linked: &Linked, servers: &mut Servers) {
        self.order.linked(linked);
        self.reprioritise(&linked.targets, servers);
    }

    /// Links of pages came from the state.
    pub(crate) fn links_loaded(&mut self, pages: Vec<PageLinks>, servers: &mut Servers) {
        for linked in self.order.links_loaded(pages) {
            self.linked(&linked, servers);
        }
    }

    /// The links of a stored version were read.
    pub(crate) fn links_read(&mut self) {
        self.order.links_read();
    }

    /// Goes on with what the order waits for.
    pub(crate) fn advance(&mut self, servers: &mut Servers, out: &mut Vec<Command>) {
        let raised = self.order.take_received();
        self.reprioritise(&raised, servers);
        while let Some(targets) = self.order.hand_on() {
            self.reprioritise(&targets, servers);
        }
        self.order.advance(out);
    }

    /// How important a page is that is being visited, in percent of the mean of all known pages.
    pub(crate) fn weigh(&mut self, nth: Nth) -> Option<u32> {
        self.order.weigh(nth)
    }

    /// Commits the importance of pages of which it changed, looking at no more than `looks_max`.
    pub(crate) fn weigh_all(&mut self, looks_max: usize, out: &mut Vec<Command>) {
        self.order.weigh_all(looks_max, out);
    }

    /// Keeps what the order knows, if it learnt anything.
    pub(crate) fn keep(&mut self, out: &mut Vec<Command>) {
        self.order.keep(out);
    }
}

/// New pages in the queues of their servers.
impl NewPages {
    fn sites_queued(&self, nth: Nth) -> impl Iterator<Item = (SiteId, Queued)> {
        let all = (nth, SiteId(0))..=(nth, SiteId(u32::MAX));
        self.queued.range(all).map(|(place, queued)| (place.1, *queued))
    }

    /// Moves queued pages to the positions of their current scores.
    fn reprioritise(&mut self, places: &[Nth], servers: &mut Servers) {
        for &nth in places {
            let found: Vec<(SiteId, Queued)> = self.sites_queued(nth).collect();
            for (site, queued) in found {
                let priority = self.order.priority(nth, 0);
                if queued.priority < 2 || priority == queued.priority {
                    continue;
                }
                let Queued { server, priority: before } = queued;
                servers.reprioritise_new(server, mark(nth, site), before, priority);
                self.queued.insert((nth, site), Queued { server, priority });
            }
        }
    }

    /// Queues a page that was never visited among the new ones of its server. Sitemaps and feeds go
    /// first, then top pages.
    pub(crate) fn queue(&mut self, due: Box<DuePage>, is_first: bool, servers: &mut Servers) {
        let (nth, server) = (due.page.nth, due.page.id.server());
        let priority = match (is_first, due.depth) {
            (true, _) => 0,
            (false, ..=1) => 1,
            (false, depth) => self.order.priority(nth, depth),
        };
        self.order.take(nth);
        self.queued.insert((nth, due.site), Queued { server, priority });
        let mark = mark(nth, due.site);
        servers.queue_new(due, priority, mark);
    }

    /// A page was taken from its queue.
    pub(crate) fn unqueued(&mut self, due: &DuePage) {
        self.queued.remove(&(due.page.nth, due.site));
    }

    /// A page that was taken from its queue is not visited after all.
    pub(crate) fn not_visited(&mut self, due: &DuePage) {
        self.unqueued(due);
        if due.page.visited_s.is_none() {
            self.put_back(due.page.nth, due.page.id.server());
        }
    }

    /// A page that was taken up is not visited after all, if it is a new one still.
    pub(crate) fn put_back(&mut self, nth: Nth, server: ServerId) {
        if self.order.put_back(nth) {
            self.hungry.insert(server);
        }
    }

    /// A server may have capacity for new pages.
    pub(crate) fn queue_shrank(&mut self, server: ServerId, servers: &Servers) {
        if servers.queued_new_for(server) <= NEW_AHEAD / 2 {
            self.hungry.insert(server);
        }
    }

    /// Pages that could not be visited may be visited now.
    pub(crate) fn look_again(&mut self) {
        self.barren.clear();
        for (server, places) in std::mem::take(&mut self.aside) {
            for nth in places {
                self.put_back(nth, server);
            }
        }
    }

    /// A new page may not be visited now.
    pub(crate) fn set_aside(&mut self, nth: Nth, server: ServerId, servers: &Servers) {
        self.aside.entry(server).or_default().push(nth);
        self.queue_shrank(server, servers);
    }
}

/// From the order into the queues.
impl NewPages {
    /// The next server with capacity for new pages, while `chosen` pages are to be loaded already.
    pub(crate) fn next_hungry(
        &mut self,
        chosen: usize,
        servers: &Servers,
        options: &CrawlOptions,
    ) -> Option<ServerId> {
        let has_room = chosen < NEW_PAGES
            && self.loading.len() < NEW_PAGES
            && servers.queued() + chosen < options.queue_max;
        if has_room { self.hungry.pop_first() } else { None }
    }

    /// What a server with capacity gets.
    pub(crate) fn helping(&self, server: ServerId, servers: &Servers) -> Helping {
        let loading = self.loading.get(&server).copied().unwrap_or(0);
        let queued = servers.queued_new_for(server);
        let aside = self.aside.get(&server).map_or(0, Vec::len);
        if aside < ASIDE_MAX && server.0 < ServerIndex::LIMIT {
            return Helping::Best(NEW_AHEAD.saturating_sub(loading + queued));
        }
        let looks_for_any = queued == 0 && !self.barren.contains(&server);
        if looks_for_any { Helping::Any } else { Helping::Best(0) }
    }

    /// Takes the best new page of a server; returns its discovery number.
    pub(crate) fn take_best(&mut self, server: ServerId) -> Option<Nth> {
        self.order.take_best(server)
    }

    /// A page of a server is being loaded.
    pub(crate) fn load(&mut self, server: ServerId) {
        *self.loading.entry(server).or_default() += 1;
    }

    /// Says to a server's queue how many new pages wait here.
    pub(crate) fn count_resting(&self, server: ServerId, servers: &mut Servers) {
        servers.set_resting_new(server, self.order.waiting(server));
    }

    /// New pages came from the state, or were found to have no times of their own.
    pub(crate) fn loaded(&mut self, places: &[Nth], pages: &[DuePage], servers: &Servers) {
        let loaded: BTreeSet<Nth> = pages.iter().map(|due| due.page.nth).collect();
        for &nth in places {
            let Some(server) = self.order.server_of(nth) else { continue };
            if let Some(loading) = self.loading.get_mut(&server) {
                *loading = loading.saturating_sub(1);
            }
            // A page without a time of its own is collected in rounds alone.
            if !loaded.contains(&nth) {
                self.set_aside(nth, server, servers);
            }
        }
        self.loading.retain(|_, loading| *loading > 0);
    }

    /// A load of any new pages of a server was answered.
    pub(crate) fn any_loaded(&mut self, server: ServerId, found_any: bool) {
        if !found_any {
            self.barren.insert(server);
        }
    }
}
