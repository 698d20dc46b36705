//! The machine over a real state in memory, with servers that answer at once.

use std::collections::{BTreeMap, VecDeque};

use nenrin_crawl::{
    Answer, Batch, Command, Crawl, CrawlOptions, Event, FetchOrder, Fetched, FoundLink, LinkRole,
    Load, PlanWork, Purpose, answer_load, commit_batch,
};
use nenrin_extract::page_fragments;
use nenrin_revisit::RevisitSettings;
use nenrin_state::{
    ContentMark, Epoch, PageRecord, Schedule, SiteConditions, SqliteState, State, VersionId,
};
use nenrin_structure::PageFragments;
use nenrin_urls::CanonicalUrl;

pub(crate) const BEGIN_MS: i64 = 1_704_067_200_000;
pub(crate) const HOUR_MS: i64 = 3_600_000;
pub(crate) const DAY_MS: i64 = 24 * HOUR_MS;

pub(crate) struct World {
    pub(crate) state: Box<dyn State>,
    epoch: Epoch,
    pub(crate) machine: Crawl,
    pub(crate) now_ms: i64,
    wake_ms: Option<i64>,
    /// Pages asked for, with their times.
    pub(crate) asked: Vec<(i64, String)>,
    pub(crate) gone: Vec<String>,
    /// Where the pages of each path link to.
    pub(crate) links: BTreeMap<String, Vec<String>>,
    /// How often the pages of each path changed.
    pub(crate) revisions: BTreeMap<String, u8>,
    /// What the pages of each path say, where that matters, and what they said when last asked.
    pub(crate) bodies: BTreeMap<String, String>,
    pub(crate) bodies_seen: BTreeMap<String, String>,
    /// Whether it gets the fragments that pages have and lost.
    pub(crate) tell_blocks: bool,
    /// Stored versions read for links.
    pub(crate) links_read: usize,
    /// How often pages near a changed one were asked for.
    pub(crate) looked_near: usize,
    /// Whether work on plans waits in `plans_held`.
    pub(crate) hold_plans: bool,
    pub(crate) plans_held: Vec<PlanWork>,
    /// Answers that are made up as they are asked for.
    pub(crate) makes: Option<fn(&FetchOrder) -> Answer>,
    /// What every version takes in the store, and whether its body is known.
    pub(crate) stored_bytes: u64,
    pub(crate) is_known: bool,
}

pub(crate) fn url(text: &str) -> CanonicalUrl {
    CanonicalUrl::parse(text).unwrap()
}

fn hash(body: &str) -> u64 {
    body.bytes().fold(7, |hash: u64, byte| hash.wrapping_mul(0x0100_0000_01b3) ^ u64::from(byte))
}

fn blocks_of(before: Option<&str>, body: &str) -> PageFragments {
    let now = page_fragments(body.as_bytes());
    let lost = |old: &str| {
        page_fragments(old.as_bytes()).into_iter().filter(|block| !now.contains(block)).collect()
    };
    let lost = before.map(lost);
    PageFragments { now, lost }
}

#[allow(dead_code, reason = "each test file needs its own part of the world")]
impl World {
    pub(crate) fn new(settings: RevisitSettings, change: impl FnOnce(&mut SiteConditions)) -> Self {
        Self::with(CrawlOptions::default(), settings, change)
    }

    pub(crate) fn with(
        options: CrawlOptions,
        settings: RevisitSettings,
        change: impl FnOnce(&mut SiteConditions),
    ) -> Self {
        let state: Box<dyn State> = Box::new(SqliteState::in_memory(3600).unwrap());
        let mut conditions = SiteConditions::new(vec![url("http://e.com/")]);
        conditions.schedule = Schedule::Continuous(settings);
        change(&mut conditions);
        state.add_site("e", &conditions, BEGIN_MS / 1000).unwrap();
        let machine = Crawl::new(options);
        let links = BTreeMap::from([("/".to_owned(), vec!["/a".to_owned()])]);
        let mut world = Self {
            epoch: state.take_over().unwrap(),
            state,
            machine,
            now_ms: BEGIN_MS,
            wake_ms: None,
            asked: Vec::new(),
            gone: Vec::new(),
            links,
            revisions: BTreeMap::new(),
            bodies: BTreeMap::new(),
            bodies_seen: BTreeMap::new(),
            tell_blocks: true,
            links_read: 0,
            looked_near: 0,
            hold_plans: false,
            plans_held: Vec::new(),
            makes: None,
            stored_bytes: 1000,
            is_known: false,
        };
        world.tell_sites();
        world
    }

    /// Another process takes over, after a graceful stop or not.
    pub(crate) fn restart(&mut self, graceful: bool) {
        if graceful {
            self.happen(Event::Stop);
        }
        self.machine = Crawl::new(CrawlOptions::default());
        self.tell_sites();
    }

    pub(crate) fn tell_sites(&mut self) {
        let sites = self.state.sites().unwrap();
        self.happen(Event::Sites(sites));
    }

    /// Gives an event and everything that follows from it at once.
    pub(crate) fn happen(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let fetched = match &event {
                Event::Fetched { ticket, .. } => Some(*ticket),
                _ => None,
            };
            for command in self.machine.step(self.now_ms, event) {
                if let Command::Store(order) = &command {
                    assert_eq!(Some(order.ticket), fetched, "other content is dropped by then");
                }
                events.extend(self.carry_out(command));
            }
        }
    }

    fn carry_out(&mut self, command: Command) -> Option<Event> {
        match command {
            Command::Load(load) => {
                self.looked_near += usize::from(matches!(load, Load::Near(_)));
                Some(answer_load(&*self.state, self.now_ms / 1000, &load).unwrap())
            }
            Command::Plan(work) if self.hold_plans => {
                self.plans_held.push(*work);
                None
            }
            Command::Plan(work) => Some(Event::PlanDone(Box::new(work.carry_out()))),
            Command::ReadLinks(page) => {
                self.links_read += 1;
                let links = self.links(page.url.path());
                Some(Event::LinksRead { page: page.page, links })
            }
            Command::Fetch(order) => {
                let result = Ok(self.answer(&order));
                let fetched = Box::new(Fetched { elapsed_ms: 10, result });
                Some(Event::Fetched { ticket: order.ticket, fetched })
            }
            Command::Store(order) => {
                let (ticket, stored_bytes, is_known) =
                    (order.ticket, self.stored_bytes, self.is_known);
                Some(Event::Stored { ticket, version: VersionId(1), stored_bytes, is_known })
            }
            Command::Commit { ticket, change } => {
                let batch = Batch::from_iter([(ticket, change)]);
                Some(commit_batch(&*self.state, self.epoch, &batch).unwrap())
            }
            Command::WakeAt(at_ms) => {
                self.wake_ms = Some(at_ms);
                None
            }
            _ => None,
        }
    }

    fn links(&self, path: &str) -> Vec<CanonicalUrl> {
        let paths = self.links.get(path).into_iter().flatten();
        paths.map(|path| url(&format!("http://e.com{path}"))).collect()
    }

    fn answer(&mut self, order: &FetchOrder) -> Answer {
        if order.purpose == Purpose::Robots {
            return Answer { status: 404, ..Answer::default() };
        }
        let path = order.url.path().to_owned();
        if order.purpose == Purpose::Page {
            self.asked.push((self.now_ms, path.clone()));
        }
        if let Some(make) = self.makes.filter(|_| order.purpose == Purpose::Page) {
            return make(order);
        }
        if self.gone.contains(&path) {
            return Answer { status: 404, ..Answer::default() };
        }
        let link = |url| FoundLink { url, role: LinkRole::Page };
        let links = self.links(&path).into_iter().map(link).collect();
        let mut mark = [path.len() as u8; 16];
        mark[0] = self.revisions.get(&path).copied().unwrap_or(0);
        let mut blocks = None;
        if let Some(body) = self.bodies.get(&path) {
            mark[1..9].copy_from_slice(&hash(body).to_le_bytes());
            let before = self.bodies_seen.insert(path, body.clone());
            let wanted = order.blocks && self.tell_blocks;
            blocks = wanted.then(|| blocks_of(before.as_deref(), body));
        }
        let mark = Some(ContentMark(mark));
        Answer { status: 200, mark, links, blocks, ..Answer::default() }
    }

    /// Lets the time pass until `until_ms`, waking the machine whenever it asked for it.
    pub(crate) fn pass(&mut self, until_ms: i64) {
        while let Some(at_ms) = self.wake_ms.take().filter(|&at_ms| at_ms <= until_ms) {
            self.now_ms = self.now_ms.max(at_ms);
            self.happen(Event::Wake);
        }
        self.wake_ms = self.wake_ms.or(Some(until_ms));
        self.now_ms = until_ms;
        self.happen(Event::Wake);
    }

    pub(crate) fn page(&self, path: &str) -> PageRecord {
        self.state.page(&url(&format!("http://e.com{path}"))).unwrap().unwrap()
    }

    pub(crate) fn visits(&self, path: &str) -> Vec<i64> {
        let of = |(at_ms, asked): &(i64, String)| (asked == path).then_some(*at_ms - BEGIN_MS);
        self.asked.iter().filter_map(of).collect()
    }
}
