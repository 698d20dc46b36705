//! The longest step of the machine while it collects a site of a million pages in rounds that choose
//! their pages, and the longest work that it hands out meanwhile.
//!
//! `cargo bench -p nenrin-crawl --bench longest_step`
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a bench is a command")]

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use nenrin_crawl::{
    Answer, Command, Crawl, CrawlOptions, Event, FetchOrder, Fetched, Load, Purpose,
};
use nenrin_state::{
    Change, Committed, ContentMark, DuePage, MappedPage, Nth, Outcome, PageId, PageRecord, Round,
    RoundCounts, RoundId, Schedule, ServerId, ServerRecord, Site, SiteConditions, SiteCounts,
    SiteId, SitePages, Validators, VersionId,
};
use nenrin_structure::{PageFragments, RoundsBy};
use nenrin_urls::CanonicalUrl;

const PAGES: u32 = 1_000_000;
const PAGES_PER_DIRECTORY: u32 = 50;
const LINKS_PER_PAGE: u32 = 10;
/// Visits of a round.
const VISITS: u64 = 2_000;
const SITE: SiteId = SiteId(1);
const SERVER: ServerId = ServerId(1);
const BEGIN_MS: i64 = 1_704_067_200_000;
const DAY_MS: i64 = 86_400_000;
const MARK: ContentMark = ContentMark([7; 16]);

/// How long some work took.
#[derive(Clone, Copy, Default)]
struct Took {
    /// As a caller waits for it.
    wall: Duration,
    /// On the processor: without the time in which other programs had it.
    cpu: Duration,
}

/// Times some work: the only function here that reads a clock.
fn timed<T>(work: impl FnOnce() -> T) -> (T, Took) {
    #[expect(clippy::disallowed_methods, reason = "a bench measures time")]
    let start = std::time::Instant::now();
    let before = on_cpu();
    let result = work();
    let cpu = on_cpu().saturating_sub(before);
    (result, Took { wall: start.elapsed(), cpu })
}

/// How long this thread has had a processor; 0 where the system does not say.
fn on_cpu() -> Duration {
    let read = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let first = read.and_then(|text| text.split_whitespace().next()?.parse().ok());
    Duration::from_nanos(first.unwrap_or(0))
}

fn mixed(page: u32, link: u32) -> u32 {
    let mixed = (u64::from(page) << 32 | u64::from(link)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 40) as u32
}

fn id(page: u32) -> PageId {
    PageId(i64::from(SERVER.0) << PageId::HASH_BITS | i64::from(page))
}

fn number(page: PageId) -> u32 {
    (page.0 & ((1 << PageId::HASH_BITS) - 1)) as u32
}

fn path(page: u32) -> String {
    let (directory, inside) = (page / PAGES_PER_DIRECTORY, page % PAGES_PER_DIRECTORY);
    match (page, inside) {
        (0, _) => "/".to_owned(),
        (_, 0) => format!("/d{directory}/"),
        _ => format!("/d{directory}/page-{inside}.html"),
    }
}

/// Every page links to its directory's index, to neighbours, and to a few pages anywhere.
fn links(page: u32) -> Vec<u32> {
    let home = page / PAGES_PER_DIRECTORY * PAGES_PER_DIRECTORY;
    let near = (0..6).map(|link| home + mixed(page, link) % PAGES_PER_DIRECTORY);
    let far = (6..LINKS_PER_PAGE - 2).map(|link| mixed(page, link) % PAGES);
    let tree = [home, (page * 4 + 1).min(PAGES - 1)];
    near.chain(far).chain(tree).map(|target| target % PAGES).collect()
}

/// The site, and what its last round left.
#[derive(Default)]
struct Kept {
    site: Vec<u8>,
    all: Vec<u8>,
    rounds_s: Vec<i64>,
}

fn map(kept: &Kept, server: &ServerRecord) -> SitePages {
    let page = |page: u32| MappedPage {
        id: id(page),
        path: path(page),
        visited_s: Some(BEGIN_MS / 1000 - 1),
        outcome: Some(Outcome::Same),
        visits: 3,
        failures: 0,
        last_modified: Some("Mon, 01 Jan 2024 00:00:00 GMT".to_owned()),
        round: None,
        // A menu and a footer of all, a block of its directory, and one of its own.
        blocks: PageFragments { now: vec![1, 2, 10 + page / 50, 1_000_000 + page], lost: None },
    };
    SitePages {
        pages: (0..PAGES).map(page).collect(),
        links: (0..PAGES).map(|page| (page, links(page))).collect(),
        tops: vec![0],
        servers: BTreeMap::from([(SERVER, server.server.clone())]),
        rounds_s: kept.rounds_s.clone(),
        kept: kept.site.clone(),
        kept_of_all: kept.all.clone(),
    }
}

fn due(page: PageId) -> DuePage {
    let url = CanonicalUrl::parse(&format!("http://e.com{}", path(number(page)))).unwrap();
    let record = PageRecord {
        id: page,
        nth: Nth(number(page)),
        url,
        site: SITE,
        discovered_s: 0,
        importance_percent: 0,
        estimate: None,
        visited_s: Some(BEGIN_MS / 1000 - 1),
        outcome: Some(Outcome::Same),
        due_s: None,
        visits: 3,
        changes: 0,
        significant: 0,
        failures: 0,
        validators: Validators::default(),
        mark: Some(MARK),
        bytes: 1_000,
        version: Some(VersionId(1)),
        history: Vec::new(),
    };
    DuePage { page: record, site: SITE, depth: 2, hops: 0, pulled: false }
}

/// A tenth of the directories change as a whole.
fn answer(order: &FetchOrder) -> Answer {
    if order.purpose != Purpose::Page {
        return Answer { status: 404, ..Answer::default() };
    }
    let directory = order.url.path().strip_prefix("/d").and_then(|path| path.split_once('/'));
    let directory = directory.and_then(|(number, _)| number.parse::<u32>().ok());
    let changed = directory.is_some_and(|number| number.is_multiple_of(10));
    let mark = if changed { ContentMark([9; 16]) } else { MARK };
    Answer { status: 200, mark: Some(mark), ..Answer::default() }
}

fn name_of(event: &Event) -> &'static str {
    match event {
        Event::MapLoaded { .. } => "step: the map came",
        Event::PlanDone(_) => "step: work on the plan was done",
        Event::ChosenLoaded { .. } => "step: chosen pages came",
        Event::Committed { .. } => "step: changes were committed",
        _ => "step: anything else",
    }
}

struct World {
    machine: Crawl,
    now_ms: i64,
    wake_ms: Option<i64>,
    server: ServerRecord,
    kept: Kept,
    rounds: i64,
    finished: i64,
    /// The longest step by the event that it took, and the longest work by name.
    longest: BTreeMap<String, Took>,
}

impl World {
    fn happen(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let name = name_of(&event).to_owned();
            let (commands, took) = timed(|| self.machine.step(self.now_ms, event));
            self.note(name, took);
            for command in commands {
                events.extend(self.carry_out(command));
            }
        }
    }

    fn note(&mut self, name: String, took: Took) {
        let longest = self.longest.entry(name).or_default();
        longest.wall = took.wall.max(longest.wall);
        longest.cpu = took.cpu.max(longest.cpu);
    }

    fn carry_out(&mut self, command: Command) -> Option<Event> {
        let servers = vec![self.server.clone()];
        match command {
            Command::Load(Load::BeginRound(site)) => {
                self.rounds += 1;
                let started_s = self.now_ms / 1000;
                self.kept.rounds_s.push(started_s);
                let counts = RoundCounts::default();
                let round =
                    Round { id: RoundId(self.rounds), site, started_s, ended_s: None, counts };
                Some(Event::RoundBegun(round))
            }
            Command::Load(Load::Map(round)) => {
                let map = Box::new(map(&self.kept, &self.server));
                Some(Event::MapLoaded { round: round.id, map, servers })
            }
            Command::Plan(work) => {
                let (done, took) = timed(|| work.carry_out());
                self.note("work handed out".to_owned(), took);
                Some(Event::PlanDone(Box::new(done)))
            }
            Command::Load(Load::Chosen { round, pages: asked }) => {
                let pages = asked.iter().map(|&page| due(page)).collect();
                Some(Event::ChosenLoaded { round: round.id, asked, pages, servers })
            }
            Command::Load(Load::Order) => {
                Some(Event::OrderLoaded { bytes: Vec::new(), received: Vec::new() })
            }
            Command::Load(Load::Found { after, .. }) => {
                Some(Event::FoundLoaded { after, pages: Vec::new() })
            }
            Command::Fetch(order) => {
                let fetched = Box::new(Fetched { elapsed_ms: 10, result: Ok(answer(&order)) });
                Some(Event::Fetched { ticket: order.ticket, fetched })
            }
            Command::Store(order) => {
                let ticket = order.ticket;
                Some(Event::Stored {
                    ticket,
                    version: VersionId(1),
                    stored_bytes: 1000,
                    is_known: false,
                })
            }
            Command::Commit { ticket, change } => {
                let mut rounds_ended = Vec::new();
                match change {
                    Change::RoundEnd(end) => rounds_ended.push(end.round),
                    Change::Structure(kept) if kept.site.is_some() => self.kept.site = kept.bytes,
                    Change::Structure(kept) => self.kept.all = kept.bytes,
                    _ => {}
                }
                let (tickets, committed) = (ticket.into_iter().collect(), Committed::default());
                Some(Event::Committed { tickets, rounds_ended, committed, servers })
            }
            Command::WakeAt(at_ms) => {
                self.wake_ms = Some(at_ms);
                None
            }
            Command::RoundFinished(report) => {
                self.finished += 1;
                println!("round {} finished: {:?}", report.round, report.counts);
                None
            }
            _ => None,
        }
    }
}

fn main() {
    let mut conditions = SiteConditions::new(vec![CanonicalUrl::parse("http://e.com/").unwrap()]);
    conditions.schedule = Schedule::Rounds { period_s: DAY_MS / 1000 };
    conditions.hints.signals = false;
    conditions.rounds_by = RoundsBy::Auto;
    conditions.max_pages = Some(VISITS);
    let server = ServerRecord {
        id: SERVER,
        server: conditions.tops[0].server(),
        robots: None,
        robots_tried_s: None,
        asked_ms: None,
        resting_until_ms: None,
        strikes: 0,
        notes: BTreeMap::new(),
        stretch_percent: 100,
    };
    let site = Site {
        id: SITE,
        name: "e".to_owned(),
        conditions,
        created_s: 0,
        collected_s: Some(BEGIN_MS / 1000 - DAY_MS / 1000),
        round_open: false,
        paused: false,
        removed: None,
        counts: SiteCounts::default(),
    };
    let mut world = World {
        machine: Crawl::new(CrawlOptions::default()),
        now_ms: BEGIN_MS,
        wake_ms: None,
        server,
        kept: Kept::default(),
        rounds: 0,
        finished: 0,
        longest: BTreeMap::new(),
    };
    world.happen(Event::Sites(vec![site]));
    while world.finished < 2 {
        world.now_ms = world.wake_ms.take().unwrap_or(world.now_ms + 1_000).max(world.now_ms);
        world.happen(Event::Wake);
    }
    println!("{PAGES} pages, {} links", PAGES * LINKS_PER_PAGE);
    println!("{:<34} {:>10}    {:>10}", "", "longest", "on a processor");
    for (name, took) in &world.longest {
        let [wall, cpu] = [took.wall, took.cpu].map(|took| took.as_secs_f64() * 1e3);
        println!("{name:<34} {wall:>10.3} ms {cpu:>10.3} ms");
    }
}
