//! The crawl order, and how far it knows the pages and links of the state.
//!
//! What the order knows is kept now and then. After a restart it is compared with the state, page
//! by page in the order of discovery, and learns what it missed; if nothing was kept it learns
//! everything, in the background, while the crawl goes on with what it knows so far.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use nenrin_order::{CrawlOrder, NewPage, PageIndex, ServerIndex, Strategy};
use nenrin_state::{Change, FoundPage, Linked, Nth, PageLinks, Reading, Received, ServerId};
use nenrin_urls::CanonicalUrl;

use crate::events::{Command, Load};

use super::{received::ReceivedScores, weighing::Weighing};

/// Known pages compared with the state at once.
const SCAN_PAGES: usize = 20_000;
/// Pages whose links are loaded at once.
const LINKS_PAGES: usize = 256;
/// Hand-ons whose links are fetched ahead.
const HAND_ONS_AHEAD: usize = 64;
/// The order is kept after this many pages collected, and an eighth of all known ones.
const KEEP_PAGES: usize = 1_000;
/// It is also kept after so many pages handed score on to other partitions, and a 32nd of all known
/// ones: the shares leave with it.
const KEEP_HAND_ONS: usize = 16;

/// How far the crawl order knows the state, and what it holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OrderStats {
    /// Pages that it knows.
    pub pages: u64,
    /// Collected pages whose links are not yet scored.
    pub unscored: u64,
    /// Additions to scores so far: its cost.
    pub additions: u64,
    /// What it takes in memory for all known pages.
    pub memory_bytes: u64,
    /// Scores that it was given for pages of other partitions, in millionths.
    pub received_micros: u64,
    /// Whether it knows all pages of the state, and was given all that came from other partitions.
    pub is_current: bool,
}

/// How far the order knows which pages there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// What was kept has not been asked for.
    Nothing,
    /// What was kept is being loaded.
    Restoring,
    /// Pages after this one are being loaded.
    Scanning(Nth),
    /// It knows all pages.
    Current,
}

/// Links of a page that is to hand on.
#[derive(Debug, Default)]
struct Ahead {
    targets: Vec<Nth>,
    /// Links that lead to pages of other partitions.
    far: usize,
}

/// The crawl order and how far it knows the state.
pub(super) struct Order {
    strategy: Strategy,
    order: Box<dyn CrawlOrder + Send>,
    /// A bit for each page that the order knows as collected.
    collected: Vec<u64>,
    progress: Progress,
    /// Pages known to the state, as far as commits said.
    seen: Nth,
    /// Pages that were collected and that the order does not know as such.
    unscored: VecDeque<Nth>,
    /// Pages whose stored version is to be read for links.
    unread: VecDeque<PageLinks>,
    is_reading: bool,
    /// Unscored pages whose links are being loaded.
    asked: BTreeSet<Nth>,
    is_loading_links: bool,
    /// Links of pages that are to hand on.
    ahead: BTreeMap<Nth, Ahead>,
    /// What each link of a page got since the order was last kept, in millionths, where some of its
    /// links lead to other partitions.
    handed_on: BTreeMap<Nth, u64>,
    /// How often such pages handed on since then.
    hand_ons: usize,
    /// Pages collected since the order was last kept.
    unkept: usize,
    weighing: Weighing,
    received: ReceivedScores,
}

impl Order {
    pub(super) fn new(strategy: Strategy) -> Self {
        Self {
            strategy,
            order: strategy.build(0),
            collected: Vec::new(),
            progress: Progress::Nothing,
            seen: Nth(0),
            unscored: VecDeque::new(),
            unread: VecDeque::new(),
            is_reading: false,
            asked: BTreeSet::new(),
            is_loading_links: false,
            ahead: BTreeMap::new(),
            handed_on: BTreeMap::new(),
            hand_ons: 0,
            unkept: 0,
            weighing: Weighing::default(),
            received: ReceivedScores::default(),
        }
    }

    pub(super) fn stats(&self) -> OrderStats {
        let bookkeeping_bytes = self.collected.capacity() * size_of::<u64>()
            + self.unscored.capacity() * size_of::<Nth>()
            + self.unread.capacity() * size_of::<PageLinks>()
            + self.weighing.memory_bytes();
        OrderStats {
            pages: self.order.known() as u64,
            unscored: (self.unscored.len() + self.unread.len() + self.asked.len()) as u64,
            additions: self.order.additions(),
            memory_bytes: (self.order.memory_bytes() + bookkeeping_bytes) as u64,
            received_micros: self.received.given_micros(),
            is_current: self.is_current() && self.received.is_settled(),
        }
    }

    fn known(&self) -> u32 {
        self.order.known() as u32
    }

    /// The last page that it knows.
    fn last(&self) -> Nth {
        Nth(self.known())
    }

    fn is_current(&self) -> bool {
        self.progress == Progress::Current
    }

    /// The order's number of a page, if it knows it.
    fn index(&self, nth: Nth) -> Option<PageIndex> {
        let index = nth.0.checked_sub(1)?;
        (index < self.known()).then_some(PageIndex(index))
    }

    fn indices(&self, places: &[Nth]) -> Vec<PageIndex> {
        places.iter().filter_map(|&nth| self.index(nth)).collect()
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
        self.order.discover(&NewPage {
            server: queue_of(server),
            slashes: slashes.min(usize::from(u16::MAX)) as u16,
            url_bytes: text.len().min(usize::from(u16::MAX)) as u16,
            importance: 0.0,
        })
    }
}

/// New pages: which goes first.
impl Order {
    /// The priority of a new page among those of its server: smaller goes first.
    pub(super) fn priority(&self, nth: Nth, depth: u32) -> u64 {
        match self.index(nth) {
            Some(index) => descending(self.order.worth(index)).max(2),
            None => u64::MAX - 1_000 + u64::from(depth.min(1_000)),
        }
    }

    /// Takes the best new page of a server; returns its discovery number.
    pub(super) fn take_best(&mut self, server: ServerId) -> Option<Nth> {
        self.order.next(Some(queue_of(server))).map(nth_of)
    }

    /// A page is queued, by the order's choice or not.
    pub(super) fn take(&mut self, nth: Nth) {
        if let Some(index) = self.index(nth) {
            self.order.take(index);
        }
    }

    /// A page that was taken is not visited after all. Returns whether it is a new one still.
    pub(super) fn put_back(&mut self, nth: Nth) -> bool {
        let index = self.index(nth).filter(|index| !is_set(&self.collected, *index));
        if let Some(index) = index {
            self.order.put_back(index);
        }
        index.is_some()
    }

    /// New pages of a server that wait here.
    pub(super) fn waiting(&self, server: ServerId) -> usize {
        self.order.waiting(queue_of(server))
    }

    /// The server of a page, if the order knows it.
    pub(super) fn server_of(&self, nth: Nth) -> Option<ServerId> {
        self.index(nth).map(|index| ServerId(self.order.server(index).0))
    }
}

/// Which pages there are.
impl Order {
    /// Loads what the order knew, or looks for pages that it does not know.
    pub(super) fn look_for_pages(&mut self, out: &mut Vec<Command>) {
        match self.progress {
            Progress::Nothing => {
                self.progress = Progress::Restoring;
                out.push(Command::Load(Load::Order));
            }
            Progress::Current => self.scan(self.last(), out),
            Progress::Restoring | Progress::Scanning(_) => {}
        }
    }

    fn scan(&mut self, after: Nth, out: &mut Vec<Command>) {
        self.progress = Progress::Scanning(after);
        out.push(Command::Load(Load::Found { after, limit: SCAN_PAGES }));
    }

    /// What was kept came from the state.
    pub(super) fn restore(&mut self, bytes: &[u8], received: &[Received], out: &mut Vec<Command>) {
        if self.progress != Progress::Restoring {
            return;
        }
        // What is damaged, or was another order's, is built again.
        let restored = self.strategy.restore(bytes);
        self.received.load(received, restored.is_ok());
        if let Ok(order) = restored {
            self.order = order;
            for page in (0..self.known()).map(PageIndex) {
                if self.order.is_collected(page) {
                    self.mark_collected(page);
                }
            }
        }
        self.scan(Nth(0), out);
    }

    /// Whether pages after this one are what the scan waits for.
    pub(super) fn awaits(&self, after: Nth) -> bool {
        self.progress == Progress::Scanning(after)
    }

    /// Compares a page of the state with what the order knows of it. Returns whether it is a new page
    /// that waits here; `None` if the order cannot know it yet.
    pub(super) fn compare(&mut self, page: &FoundPage, is_queued: bool) -> Option<bool> {
        let index = match self.index(page.nth) {
            Some(index) => index,
            None if page.nth.0 == self.known() + 1 => self.discover(page.server, None),
            None => return None,
        };
        let waits = page.reading == Reading::New && !is_queued;
        if !waits {
            self.order.take(index);
        }
        let is_got = matches!(page.reading, Reading::Read | Reading::Unread);
        if is_got && !is_set(&self.collected, index) {
            self.unscored.push_back(page.nth);
        }
        Some(waits)
    }

    /// All pages of one load were compared: the scan goes on or ends.
    pub(super) fn scanned(&mut self, after: Nth, pages: &[FoundPage], out: &mut Vec<Command>) {
        let last = pages.last().map_or(after, |page| page.nth);
        if pages.len() == SCAN_PAGES || last < self.seen {
            return self.scan(last, out);
        }
        if last < self.last() {
            // It was kept by another state: none of its pages can be trusted.
            self.order = self.strategy.build(0);
            self.collected.clear();
            self.received.start_over();
            return self.scan(Nth(0), out);
        }
        self.progress = Progress::Current;
    }

    /// A page became known by a commit. Returns whether it is new to the order.
    pub(super) fn found(
        &mut self,
        nth: Nth,
        server: ServerId,
        url: &CanonicalUrl,
        out: &mut Vec<Command>,
    ) -> bool {
        self.seen = self.seen.max(nth);
        if !self.is_current() || self.index(nth).is_some() {
            return false;
        }
        if nth.0 > self.known() + 1 {
            // Somebody else made pages known in between.
            self.scan(self.last(), out);
            return false;
        }
        self.discover(server, Some(url));
        true
    }
}

/// What becomes known about links.
impl Order {
    /// Links became known by a commit.
    pub(super) fn linked(&mut self, linked: &Linked) {
        self.weighing.collected();
        let page = self.index(linked.nth).filter(|_| self.is_current());
        let targets = self.indices(&linked.targets);
        match page {
            Some(page) if is_set(&self.collected, page) => {
                if linked.again {
                    self.order.collected_again(page, &targets, linked.links);
                }
            }
            Some(page) if !linked.again => {
                self.mark_collected(page);
                self.weighing.unweighed(page);
                self.unkept += 1;
                let far = linked.links.saturating_sub(linked.targets.len());
                self.order.collected(page, &targets, targets.len() + far);
            }
            _ => self.unscored.push_back(linked.nth),
        }
    }

    /// Links of pages came from the state. Returns those of pages that were not scored yet.
    pub(super) fn links_loaded(&mut self, pages: Vec<PageLinks>) -> Vec<Linked> {
        self.is_loading_links = false;
        let mut unscored = Vec::new();
        for mut page in pages {
            let targets = page.targets.take();
            match (targets, self.asked.remove(&page.nth)) {
                (Some(targets), true) => {
                    let links = targets.len() + page.far;
                    unscored.push(Linked { nth: page.nth, targets, links, again: false });
                }
                (None, true) if page.version.is_some() => self.unread.push_back(page),
                (None, true) => {}
                (targets, false) => {
                    let (targets, far) = (targets.unwrap_or_default(), page.far);
                    self.ahead.insert(page.nth, Ahead { targets, far });
                }
            }
        }
        self.asked.clear();
        unscored
    }

    /// The links of a stored version were read.
    pub(super) fn links_read(&mut self) {
        self.is_reading = false;
    }

    /// Lets the next page hand its score on to the pages that it links to; returns their discovery
    /// numbers.
    pub(super) fn hand_on(&mut self) -> Option<Vec<Nth>> {
        if !self.is_current() {
            return None;
        }
        let Some(page) = self.order.next_hand_on() else {
            // Links that were loaded for pages which hand nothing on any more are dropped.
            if self.ahead.len() > 4 * HAND_ONS_AHEAD {
                self.ahead.clear();
            }
            return None;
        };
        let Ahead { targets, far } = self.ahead.remove(&nth_of(page))?;
        let indices = self.indices(&targets);
        let share = self.order.hand_on(page, &indices, indices.len() + far);
        let micros = (share * 1e6) as u64;
        if far > 0 && micros > 0 {
            *self.handed_on.entry(nth_of(page)).or_default() += micros;
            self.hand_ons += 1;
        }
        Some(targets)
    }

    /// Goes on with what the order waits for: links of pages that are not scored, and of pages that
    /// are to hand on.
    pub(super) fn advance(&mut self, out: &mut Vec<Command>) {
        if !self.is_current() {
            return;
        }
        if !self.is_loading_links {
            let number = self.unscored.len().min(LINKS_PAGES);
            let mut places: Vec<Nth> = self.unscored.drain(..number).collect();
            self.asked.extend(&places);
            if self.order.next_hand_on().is_some() {
                let next = self.order.hand_ons_ahead(HAND_ONS_AHEAD);
                let next = next.iter().map(|&page| nth_of(page));
                places.extend(next.filter(|nth| !self.ahead.contains_key(nth)));
            }
            if !places.is_empty() {
                self.is_loading_links = true;
                out.push(Command::Load(Load::Links(places)));
            }
        }
        if !self.is_reading
            && let Some(page) = self.unread.pop_front()
        {
            self.is_reading = true;
            out.push(Command::ReadLinks(Box::new(page)));
        }
        let (order, collected) = (&*self.order, &self.collected);
        let changed = self.weighing.look_again(order.known() as u32, |page| {
            is_set(collected, page).then(|| importance_percent(order, page)).flatten()
        });
        out.extend(changed.map(Command::commit));
        let known = self.order.known();
        let is_much = self.unkept >= KEEP_PAGES.max(known / 8);
        if is_much || self.hand_ons >= KEEP_HAND_ONS.max(known / 32) {
            self.keep(out);
        }
    }

    /// Keeps what the order knows, if it learnt anything.
    pub(super) fn keep(&mut self, out: &mut Vec<Command>) {
        if std::mem::take(&mut self.unkept) + std::mem::take(&mut self.hand_ons) == 0 {
            return;
        }
        let handed_on = std::mem::take(&mut self.handed_on).into_iter().collect();
        let kept = self.order.snapshot();
        if let Some(bytes) = kept {
            let received = self.received.keep();
            out.push(Command::commit(Change::Order { bytes, received, handed_on }));
        }
    }
}

/// Scores from and for other partitions.
impl Order {
    /// The state has this much of a page's score from other partitions.
    pub(super) fn received(&mut self, nth: Nth, micros: u64) {
        self.received.set(nth, micros);
    }

    /// Takes up what came from other partitions; returns the pages that got something.
    pub(super) fn take_received(&mut self) -> Vec<Nth> {
        if !self.is_current() || self.received.is_settled() {
            return Vec::new();
        }
        let known = self.last();
        let taken = self.received.take(|nth| nth <= known);
        for &(nth, share) in &taken {
            if let Some(page) = self.index(nth) {
                self.order.receive(page, share);
            }
        }
        self.unkept += taken.len();
        taken.into_iter().map(|(nth, _)| nth).collect()
    }

    /// What a page that is being visited gives to all pages that it links to, in millionths.
    pub(super) fn gives_micros(&self, nth: Nth) -> Option<u64> {
        // A page that the order does not know yet gives nothing now, and may hand on later.
        let Some(page) = self.index(nth) else { return Some(0) };
        let amount = self.order.amount(page, is_set(&self.collected, page))?;
        Some((amount * 1e6) as u64)
    }
}

/// How important pages are.
impl Order {
    /// How important a page is that is being visited, in percent of the mean of all known pages.
    pub(super) fn weigh(&mut self, nth: Nth) -> Option<u32> {
        let page = self.index(nth)?;
        let percent = importance_percent(&*self.order, page)?;
        self.weighing.weighed(page, percent);
        Some(percent)
    }

    /// Before an end: commits the importance of pages of which it changed.
    pub(super) fn weigh_all(&mut self, looks_max: usize, out: &mut Vec<Command>) {
        let (order, collected) = (&*self.order, &self.collected);
        let changed = self.weighing.look_at_all(looks_max, order.known() as u32, |page| {
            is_set(collected, page).then(|| importance_percent(order, page)).flatten()
        });
        out.extend(changed.map(Command::commit));
    }
}

/// The discovery number of a page that the order knows.
fn nth_of(page: PageIndex) -> Nth {
    Nth(page.0 + 1)
}

fn importance_percent(order: &(dyn CrawlOrder + Send), page: PageIndex) -> Option<u32> {
    let importance = order.importance(page)?;
    Some((importance * 100.0).round().clamp(1.0, 1e9) as u32)
}

fn is_set(bits: &[u64], page: PageIndex) -> bool {
    bits.get(page.0 as usize / 64).is_some_and(|word| word >> (page.0 % 64) & 1 == 1)
}

/// Servers with larger numbers than an order knows share a queue from which nothing is taken.
fn queue_of(server: ServerId) -> ServerIndex {
    if server.0 < ServerIndex::LIMIT { ServerIndex(server.0) } else { ServerIndex(0) }
}

/// A number that is smaller for larger worth.
fn descending(worth: f64) -> u64 {
    let bits = worth.to_bits();
    if bits >> 63 == 0 { !(bits | 1 << 63) } else { bits }
}
