//! Which new page first: the crawl order is told of every page that becomes known and of every
//! page's links, and asked for the best new pages of a server that has turns to give.
//!
//! What the order knows is kept now and then. After a restart it is compared with the state, page
//! by page in the order of discovery, and told what it missed; if nothing was kept it is told
//! everything, in the background, while the crawl goes on with what it knows so far.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use nenrin_order::{CrawlOrder, NewPage as FoundNow, PageIndex, ServerIndex, Strategy};
use nenrin_state::{
    Change, DuePage, DueQuery, FoundPage, Linked, PageId, PageLinks, Reading, ServerId,
    ServerRecord, SiteId,
};
use nenrin_urls::CanonicalUrl;

use super::{Crawl, Task, weighing::Weighing};
use crate::Command;

/// Known pages compared with the state at once.
const SCAN_PAGES: usize = 20_000;
/// Pages whose links are loaded at once.
const LINKS_PAGES: usize = 256;
/// Hand-ons whose links are fetched ahead.
const HAND_ONS_AHEAD: usize = 64;
/// New pages of a server in its queue: few, since the best may change with every page collected.
const NEW_AHEAD: usize = 4;
/// New pages loaded at once.
const NEW_PAGES: usize = 2_000;
/// Pages of a server set aside because their site is shut, before the order is passed by.
const ASIDE_MAX: usize = 256;
/// The order is kept after this many pages collected, and an eighth of all known ones.
const KEEP_PAGES: usize = 1_000;

/// The crawl order and how far it has been told.
pub(super) struct Ordering {
    strategy: Strategy,
    pub(super) order: Box<dyn CrawlOrder + Send>,
    /// A bit for each page that the order was told of as collected.
    collected: Vec<u64>,
    telling: Telling,
    /// Pages known to the state, as far as commits told.
    seen: u32,
    /// Pages that were collected and that the order was not told of.
    untold: VecDeque<u32>,
    /// Pages whose stored version is to be read for links.
    unread: VecDeque<PageLinks>,
    is_reading: bool,
    /// Pages whose links are being loaded because they are untold.
    asked: BTreeSet<u32>,
    is_loading_links: bool,
    /// Links of pages that are to hand on.
    ahead: BTreeMap<u32, Vec<u32>>,
    /// New pages in the short-term queue.
    queued: BTreeMap<(u32, SiteId), Queued>,
    /// Servers whose queue has room for new pages.
    hungry: BTreeSet<ServerId>,
    /// New pages being loaded.
    loading: BTreeMap<ServerId, usize>,
    /// New pages that may not be visited now.
    aside: BTreeMap<ServerId, Vec<u32>>,
    /// Servers with so many of these that others were looked for, and none found.
    barren: BTreeSet<ServerId>,
    unkept: usize,
    pub(super) weighing: Weighing,
}

/// How far the crawl order has been told, and what it holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OrderStats {
    /// Pages that it knows.
    pub pages: u64,
    /// Collected pages whose links it has still to be told.
    pub untold: u64,
    /// Additions to scores so far: its cost.
    pub additions: u64,
    /// What it takes in memory for all known pages.
    pub memory_bytes: u64,
    /// Whether it knows all pages of the state.
    pub is_current: bool,
}

#[derive(Debug, Clone, Copy)]
struct Queued {
    server: ServerId,
    priority: u64,
}

/// How far the order has been told which pages there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Telling {
    /// What was kept has not been asked for.
    Nothing,
    /// What was kept is being loaded.
    Restoring,
    /// Pages after this one are being loaded.
    Scanning(u32),
    /// It knows all pages.
    Current,
}

impl Ordering {
    pub(super) fn new(strategy: Strategy) -> Self {
        Self {
            strategy,
            order: strategy.build(0),
            collected: Vec::new(),
            telling: Telling::Nothing,
            seen: 0,
            untold: VecDeque::new(),
            unread: VecDeque::new(),
            is_reading: false,
            asked: BTreeSet::new(),
            is_loading_links: false,
            ahead: BTreeMap::new(),
            queued: BTreeMap::new(),
            hungry: BTreeSet::new(),
            loading: BTreeMap::new(),
            aside: BTreeMap::new(),
            barren: BTreeSet::new(),
            unkept: 0,
            weighing: Weighing::default(),
        }
    }

    pub(super) fn known(&self) -> u32 {
        self.order.known() as u32
    }

    /// The order's number of a page, if it was told of it.
    pub(super) fn index(&self, nth: u32) -> Option<PageIndex> {
        let index = nth.checked_sub(1)?;
        (index < self.known()).then_some(PageIndex(index))
    }

    pub(super) fn is_collected(&self, page: PageIndex) -> bool {
        let word = self.collected.get(page.0 as usize / 64);
        word.is_some_and(|word| word >> (page.0 % 64) & 1 == 1)
    }

    fn mark_collected(&mut self, page: PageIndex) {
        let word = page.0 as usize / 64;
        if self.collected.len() <= word {
            self.collected.resize(word + 1, 0);
        }
        self.collected[word] |= 1 << (page.0 % 64);
    }

    /// Makes the next page known.
    fn discover(&mut self, server: ServerId, url: Option<&CanonicalUrl>) -> PageIndex {
        let text = url.map_or("", |url| url.as_str());
        let slashes = text.bytes().filter(|byte| *byte == b'/').count();
        self.order.discover(&FoundNow {
            server: queue_of(server),
            slashes: slashes.min(usize::from(u16::MAX)) as u16,
            url_bytes: text.len().min(usize::from(u16::MAX)) as u16,
            importance: 0.0,
        })
    }

    fn take(&mut self, nth: u32) {
        if let Some(index) = self.index(nth) {
            self.order.take(index);
        }
    }

    fn put_back(&mut self, nth: u32, server: ServerId) {
        let Some(index) = self.index(nth) else { return };
        if !self.is_collected(index) {
            self.order.put_back(index);
            self.hungry.insert(server);
        }
    }

    /// The place of a new page among those of its server: smaller goes first.
    fn priority(&self, nth: u32, depth: u32) -> u64 {
        match self.index(nth) {
            Some(index) => descending(self.order.worth(index)).max(2),
            None => u64::MAX - 1_000 + u64::from(depth.min(1_000)),
        }
    }

    /// The indices of pages, without those that the order was not told of.
    fn indices(&self, places: &[u32]) -> Vec<PageIndex> {
        places.iter().filter_map(|&nth| self.index(nth)).collect()
    }

    /// What is kept beside the order, as far as it grows with the pages.
    fn bookkeeping_bytes(&self) -> usize {
        self.collected.capacity() * size_of::<u64>()
            + self.untold.capacity() * size_of::<u32>()
            + self.unread.capacity() * size_of::<PageLinks>()
            + self.weighing.memory_bytes()
    }

    fn is_current(&self) -> bool {
        self.telling == Telling::Current
    }

    /// Whether enough was learnt to keep it.
    fn is_worth_keeping(&self) -> bool {
        self.is_current() && self.unkept >= KEEP_PAGES.max(self.order.known() / 8)
    }
}

/// Servers beyond what an order tells apart share a queue that nobody asks for.
fn queue_of(server: ServerId) -> ServerIndex {
    if server.0 < ServerIndex::LIMIT { ServerIndex(server.0) } else { ServerIndex(0) }
}

/// A number that is smaller for larger worth.
fn descending(worth: f64) -> u64 {
    let bits = worth.to_bits();
    if bits >> 63 == 0 { !(bits | 1 << 63) } else { bits }
}

/// Tells the entries of one server apart: a page may be queued for two sites.
fn mark(nth: u32, site: SiteId) -> u64 {
    u64::from(nth) << 32 | u64::from(site.0)
}

impl Crawl {
    /// How far the crawl order has been told, and what it holds.
    pub fn order_stats(&self) -> OrderStats {
        let ordering = &self.ordering;
        OrderStats {
            pages: ordering.order.known() as u64,
            untold: (ordering.untold.len() + ordering.unread.len() + ordering.asked.len()) as u64,
            additions: ordering.order.additions(),
            memory_bytes: (ordering.order.memory_bytes() + ordering.bookkeeping_bytes()) as u64,
            is_current: ordering.is_current(),
        }
    }

    /// Loads what the order knew, or looks for pages that it was not told of.
    pub(super) fn tell_order_of_pages(&mut self, out: &mut Vec<Command>) {
        match self.ordering.telling {
            Telling::Nothing => {
                self.ordering.telling = Telling::Restoring;
                out.push(Command::LoadOrder);
            }
            Telling::Current => self.scan_found(self.ordering.known(), out),
            Telling::Restoring | Telling::Scanning(_) => {}
        }
    }

    fn scan_found(&mut self, after: u32, out: &mut Vec<Command>) {
        self.ordering.telling = Telling::Scanning(after);
        out.push(Command::LoadFound { after, limit: SCAN_PAGES });
    }

    pub(super) fn order_loaded(&mut self, bytes: &[u8], out: &mut Vec<Command>) {
        if self.ordering.telling != Telling::Restoring {
            return;
        }
        // What is damaged, or was another order's, is built anew.
        if let Ok(order) = self.ordering.strategy.restore(bytes) {
            self.ordering.order = order;
            for page in (0..self.ordering.known()).map(PageIndex) {
                if self.ordering.order.is_collected(page) {
                    self.ordering.mark_collected(page);
                }
            }
        }
        self.scan_found(0, out);
    }

    pub(super) fn found_loaded(&mut self, after: u32, pages: &[FoundPage], out: &mut Vec<Command>) {
        if self.ordering.telling != Telling::Scanning(after) {
            return;
        }
        for page in pages {
            self.found_page(page);
        }
        let last = pages.last().map_or(after, |page| page.nth);
        if pages.len() == SCAN_PAGES || last < self.ordering.seen {
            return self.scan_found(last, out);
        }
        if last < self.ordering.known() {
            // It was kept by another state: none of its pages can be trusted.
            self.ordering.order = self.ordering.strategy.build(0);
            self.ordering.collected.clear();
            return self.scan_found(0, out);
        }
        self.ordering.telling = Telling::Current;
    }

    /// Compares a page of the state with what the order knows of it.
    fn found_page(&mut self, page: &FoundPage) {
        let ordering = &mut self.ordering;
        let index = match ordering.index(page.nth) {
            Some(index) => index,
            None if page.nth - 1 == ordering.known() => ordering.discover(page.server, None),
            None => return,
        };
        let is_queued = ordering.queued.range((page.nth, SiteId(0))..).next();
        let is_queued = is_queued.is_some_and(|(place, _)| place.0 == page.nth);
        if page.reading != Reading::New || is_queued {
            ordering.order.take(index);
        } else {
            ordering.hungry.insert(page.server);
        }
        let is_got = matches!(page.reading, Reading::Read | Reading::Unread);
        if is_got && !ordering.is_collected(index) {
            ordering.untold.push_back(page.nth);
        }
        self.reprioritise(&[page.nth]);
    }

    /// A page became known by a commit.
    pub(super) fn order_page(&mut self, due: &DuePage, out: &mut Vec<Command>) {
        let ordering = &mut self.ordering;
        ordering.seen = ordering.seen.max(due.page.nth);
        if !ordering.is_current() || ordering.index(due.page.nth).is_some() {
            return;
        }
        if due.page.nth - 1 > ordering.known() {
            // Somebody else made pages known in between.
            return self.scan_found(self.ordering.known(), out);
        }
        let server = due.page.id.server();
        ordering.discover(server, Some(&due.page.url));
        if due.page.due_s.is_some() {
            ordering.barren.remove(&server);
            ordering.hungry.insert(server);
        }
    }

    /// Links became known by a commit.
    pub(super) fn order_links(&mut self, linked: &Linked) {
        let ordering = &mut self.ordering;
        ordering.weighing.collected();
        let page = ordering.index(linked.nth).filter(|_| ordering.is_current());
        let targets = ordering.indices(&linked.targets);
        match page {
            Some(page) if ordering.is_collected(page) => {
                if linked.again {
                    ordering.order.collected_again(page, &targets, linked.links);
                }
            }
            Some(page) if !linked.again => {
                ordering.mark_collected(page);
                ordering.unkept += 1;
                ordering.order.collected(page, &targets);
            }
            _ => ordering.untold.push_back(linked.nth),
        }
        self.reprioritise(&linked.targets);
    }

    /// Gives queued pages the places that their scores ask for now.
    fn reprioritise(&mut self, places: &[u32]) {
        for &nth in places {
            let all = (nth, SiteId(0))..=(nth, SiteId(u32::MAX));
            let found: Vec<(SiteId, Queued)> =
                self.ordering.queued.range(all).map(|(place, queued)| (place.1, *queued)).collect();
            for (site, queued) in found {
                let priority = self.ordering.priority(nth, 0);
                if queued.priority < 2 || priority == queued.priority {
                    continue;
                }
                let mark = mark(nth, site);
                let Queued { server, priority: before } = queued;
                self.frontier.reprioritise_new(server.0, mark, before, priority);
                self.ordering.queued.insert((nth, site), Queued { server, priority });
            }
        }
    }

    /// Goes on with what the order waits for: links of pages it was not told of, and of pages that
    /// are to hand on.
    pub(super) fn advance_order(&mut self, out: &mut Vec<Command>) {
        if !self.ordering.is_current() {
            return;
        }
        self.hand_on();
        let ordering = &mut self.ordering;
        if !ordering.is_loading_links {
            let number = ordering.untold.len().min(LINKS_PAGES);
            let mut places: Vec<u32> = ordering.untold.drain(..number).collect();
            ordering.asked.extend(&places);
            if ordering.order.next_hand_on().is_some() {
                let next = ordering.order.hand_ons_ahead(HAND_ONS_AHEAD);
                let next = next.iter().map(|page| page.0 + 1);
                places.extend(next.filter(|nth| !ordering.ahead.contains_key(nth)));
            }
            if !places.is_empty() {
                ordering.is_loading_links = true;
                out.push(Command::LoadLinks(places));
            }
        }
        if !ordering.is_reading
            && let Some(page) = ordering.unread.pop_front()
        {
            ordering.is_reading = true;
            out.push(Command::ReadLinks(Box::new(page)));
        }
        let is_worth_keeping = ordering.is_worth_keeping();
        self.weigh_again(out);
        if is_worth_keeping {
            self.keep_order(out);
        }
    }

    /// Keeps what the order knows, if it learnt anything.
    pub(super) fn keep_order(&mut self, out: &mut Vec<Command>) {
        let ordering = &mut self.ordering;
        if std::mem::take(&mut ordering.unkept) == 0 {
            return;
        }
        if let Some(bytes) = ordering.order.snapshot() {
            out.push(Command::Commit { ticket: None, change: Change::Order(bytes) });
        }
    }

    fn hand_on(&mut self) {
        while let Some(page) = self.ordering.order.next_hand_on() {
            let Some(targets) = self.ordering.ahead.remove(&(page.0 + 1)) else { return };
            let indices = self.ordering.indices(&targets);
            self.ordering.order.hand_on(page, &indices);
            self.reprioritise(&targets);
        }
        // An order that changed its mind would let these pile up.
        if self.ordering.ahead.len() > 4 * HAND_ONS_AHEAD {
            self.ordering.ahead.clear();
        }
    }

    pub(super) fn links_loaded(&mut self, pages: Vec<PageLinks>) {
        self.ordering.is_loading_links = false;
        for page in pages {
            let is_untold = self.ordering.asked.remove(&page.nth);
            match (page.targets.clone(), is_untold) {
                (Some(targets), true) => {
                    let links = targets.len();
                    self.order_links(&Linked { nth: page.nth, targets, links, again: false });
                }
                (None, true) if page.version.is_some() => self.ordering.unread.push_back(page),
                (None, true) => {}
                (targets, false) => {
                    self.ordering.ahead.insert(page.nth, targets.unwrap_or_default());
                }
            }
        }
        self.ordering.asked.clear();
    }

    /// The links of a stored version were read.
    pub(super) fn links_read(
        &mut self,
        page: PageId,
        links: Vec<CanonicalUrl>,
        out: &mut Vec<Command>,
    ) {
        self.ordering.is_reading = false;
        out.push(Command::Commit { ticket: None, change: Change::Links { page, links } });
    }

    /// Queues a page that was never visited among the new ones of its server.
    pub(super) fn push_new(&mut self, due: DuePage) {
        let (nth, server) = (due.page.nth, due.page.id.server());
        let priority = match (self.is_source(&due), due.depth) {
            (true, _) => 0,
            (false, ..=1) => 1,
            (false, depth) => self.ordering.priority(nth, depth),
        };
        self.ordering.take(nth);
        self.ordering.queued.insert((nth, due.site), Queued { server, priority });
        let mark = mark(nth, due.site);
        self.frontier.push_new(server.0, priority, mark, Task::Page(Box::new(due)));
    }

    /// A page was taken from its queue.
    pub(super) fn unqueued(&mut self, due: &DuePage) {
        self.ordering.queued.remove(&(due.page.nth, due.site));
    }

    /// A page that was taken from its queue is not visited after all.
    pub(super) fn not_visited(&mut self, due: &DuePage) {
        self.unqueued(due);
        if due.page.visited_s.is_none() {
            self.ordering.put_back(due.page.nth, due.page.id.server());
        }
    }

    /// A server has turns to give to new pages.
    pub(super) fn new_pages_shrank(&mut self, server: ServerId) {
        if self.frontier.queued_new_for(server.0) <= NEW_AHEAD / 2 {
            self.ordering.hungry.insert(server);
        }
    }

    /// Pages that could not be visited may be visited now.
    pub(super) fn new_pages_look_again(&mut self) {
        self.ordering.barren.clear();
        for (server, places) in std::mem::take(&mut self.ordering.aside) {
            for nth in places {
                self.ordering.put_back(nth, server);
            }
        }
    }

    /// Takes the best new pages of servers that have room into their queues; `fresh` are those at
    /// hand, others are loaded.
    pub(super) fn feed_new(
        &mut self,
        now_ms: i64,
        mut fresh: BTreeMap<u32, DuePage>,
        out: &mut Vec<Command>,
    ) {
        if !self.options.due_pages || self.schedules.is_empty() {
            return;
        }
        let mut places = Vec::new();
        while places.len() < NEW_PAGES
            && self.ordering.loading.len() < NEW_PAGES
            && self.frontier.queued() + places.len() < self.options.queue_max
            && let Some(server) = self.ordering.hungry.pop_first()
        {
            self.best_new(now_ms, server, &mut fresh, &mut places, out);
            let resting = self.ordering.order.waiting(queue_of(server));
            self.frontier.set_resting_new(server.0, resting);
        }
        if !places.is_empty() {
            out.push(Command::LoadNew(places));
        }
    }

    fn best_new(
        &mut self,
        now_ms: i64,
        server: ServerId,
        fresh: &mut BTreeMap<u32, DuePage>,
        places: &mut Vec<u32>,
        out: &mut Vec<Command>,
    ) {
        let loading = self.ordering.loading.get(&server).copied().unwrap_or(0);
        let queued = self.frontier.queued_new_for(server.0);
        let aside = self.ordering.aside.get(&server).map_or(0, Vec::len);
        if aside >= ASIDE_MAX || server.0 >= ServerIndex::LIMIT {
            if queued == 0 && !self.ordering.barren.contains(&server) {
                self.load_any_new(server, out);
            }
            return;
        }
        let mut room = NEW_AHEAD.saturating_sub(loading + queued);
        while room > 0
            && let Some(page) = self.ordering.order.next(Some(queue_of(server)))
        {
            room -= 1;
            match fresh.remove(&(page.0 + 1)) {
                Some(due) => self.enqueue_new(now_ms, due, out),
                None => {
                    places.push(page.0 + 1);
                    *self.ordering.loading.entry(server).or_default() += 1;
                }
            }
        }
    }

    /// The best pages of a server may not be visited now: others are taken as they come.
    fn load_any_new(&mut self, server: ServerId, out: &mut Vec<Command>) {
        let limit = self.options.server_queue_max;
        out.push(Command::LoadDue(DueQuery {
            until_s: 0,
            new: true,
            after: None,
            server: Some(server),
            without: self.closed_sites(),
            per_server: limit,
            limit,
        }));
    }

    pub(super) fn new_loaded(
        &mut self,
        now_ms: i64,
        places: &[u32],
        pages: Vec<DuePage>,
        servers: Vec<ServerRecord>,
        out: &mut Vec<Command>,
    ) {
        self.meet_servers(now_ms, servers);
        let loaded: BTreeSet<u32> = pages.iter().map(|due| due.page.nth).collect();
        for &nth in places {
            let Some(index) = self.ordering.index(nth) else { continue };
            let server = ServerId(self.ordering.order.server(index).0);
            if let Some(loading) = self.ordering.loading.get_mut(&server) {
                *loading = loading.saturating_sub(1);
            }
            // A page without a time of its own is collected in rounds alone.
            if !loaded.contains(&nth) {
                self.set_aside(nth, server);
            }
        }
        self.ordering.loading.retain(|_, loading| *loading > 0);
        for due in pages {
            let server = due.page.id.server();
            if due.page.visited_s.is_none() {
                self.enqueue_new(now_ms, due, out);
            }
            self.new_pages_shrank(server);
        }
    }

    /// Whatever new pages a server has were looked for.
    pub(super) fn any_new_loaded(&mut self, server: ServerId, found_any: bool) {
        if !found_any {
            self.ordering.barren.insert(server);
        }
    }

    fn set_aside(&mut self, nth: u32, server: ServerId) {
        self.ordering.aside.entry(server).or_default().push(nth);
        self.new_pages_shrank(server);
    }

    /// Queues the best new page of a server, unless it may not be visited now.
    fn enqueue_new(&mut self, now_ms: i64, due: DuePage, out: &mut Vec<Command>) {
        if !self.is_open(due.site) {
            let server = due.page.id.server();
            return self.set_aside(due.page.nth, server);
        }
        self.enqueue_due(now_ms, due, out);
    }
}
