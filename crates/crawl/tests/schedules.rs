//! The machine over a real state in memory, with a server that answers at once.
#![expect(clippy::unwrap_used, reason = "a world that cannot be built must fail its test")]

use std::collections::VecDeque;

use nenrin_crawl::{
    Answer, Command, Crawl, CrawlOptions, Event, FetchOrder, Fetched, FoundLink, LinkRole, Purpose,
};
use nenrin_revisit::RevisitSettings;
use nenrin_state::{
    ContentMark, PageRecord, PullForward, Schedule, SiteConditions, SiteId, SqliteState, State,
};
use nenrin_urls::CanonicalUrl;

const BEGIN_MS: i64 = 1_704_067_200_000;
const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

struct World {
    state: SqliteState,
    machine: Crawl,
    now_ms: i64,
    wake_ms: Option<i64>,
    /// Pages asked for, with their times.
    asked: Vec<(i64, String)>,
    gone: Vec<String>,
}

fn url(text: &str) -> CanonicalUrl {
    CanonicalUrl::parse(text).unwrap()
}

impl World {
    fn new(settings: RevisitSettings, change: impl FnOnce(&mut SiteConditions)) -> Self {
        Self::with(CrawlOptions::default(), settings, change)
    }

    fn with(
        options: CrawlOptions,
        settings: RevisitSettings,
        change: impl FnOnce(&mut SiteConditions),
    ) -> Self {
        let state = SqliteState::in_memory(3600).unwrap();
        let mut conditions = SiteConditions::new(vec![url("http://e.com/")]);
        conditions.schedule = Schedule::Continuous(settings);
        change(&mut conditions);
        state.add_site("e", &conditions, BEGIN_MS / 1000).unwrap();
        let machine = Crawl::new(options);
        let (wake_ms, asked, gone) = (None, Vec::new(), Vec::new());
        let mut world = Self { state, machine, now_ms: BEGIN_MS, wake_ms, asked, gone };
        world.tell_sites();
        world
    }

    fn tell_sites(&mut self) {
        let sites = self.state.sites().unwrap();
        self.happen(Event::Sites(sites));
    }

    /// Gives an event and everything that follows from it at once.
    fn happen(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            for command in self.machine.step(self.now_ms, event) {
                events.extend(self.carry_out(command));
            }
        }
    }

    fn carry_out(&mut self, command: Command) -> Option<Event> {
        match command {
            Command::LoadShared(site) => {
                let bytes = self.state.shared(site).unwrap();
                Some(Event::SharedLoaded { site, bytes, visits_today: 0 })
            }
            Command::LoadDue(query) => {
                let load = self.state.load_due(&query).unwrap();
                let ids: Vec<_> = load.pages.iter().map(|due| due.page.id.server()).collect();
                let servers = self.state.servers(&ids).unwrap();
                Some(Event::DueLoaded { query, load, servers })
            }
            Command::Fetch(order) => {
                let result = Ok(self.answer(&order));
                let fetched = Box::new(Fetched { elapsed_ms: 10, result });
                Some(Event::Fetched { ticket: order.ticket, fetched })
            }
            Command::Store(order) => {
                Some(Event::Stored { ticket: order.ticket, version: 1, stored_bytes: 1 })
            }
            Command::Commit { ticket, change } => {
                let new_pages = self.state.commit(&[change]).unwrap();
                let ids: Vec<_> = new_pages.iter().map(|new| new.due.page.id.server()).collect();
                let servers = self.state.servers(&ids).unwrap();
                let tickets = ticket.into_iter().collect();
                Some(Event::Committed { tickets, rounds_ended: Vec::new(), new_pages, servers })
            }
            Command::WakeAt(at_ms) => {
                self.wake_ms = Some(at_ms);
                None
            }
            _ => None,
        }
    }

    fn answer(&mut self, order: &FetchOrder) -> Answer {
        if order.purpose == Purpose::Robots {
            return Answer { status: 404, ..Answer::default() };
        }
        let path = order.url.path().to_owned();
        self.asked.push((self.now_ms, path.clone()));
        if self.gone.contains(&path) {
            return Answer { status: 404, ..Answer::default() };
        }
        let link = |url| FoundLink { url, role: LinkRole::Page };
        let links = if path == "/" { vec![link(url("http://e.com/a"))] } else { Vec::new() };
        let mark = Some(ContentMark([path.len() as u8; 16]));
        Answer { status: 200, mark, links, ..Answer::default() }
    }

    /// Lets the time pass until `until_ms`, waking the machine whenever it asked for it.
    fn pass(&mut self, until_ms: i64) {
        while let Some(at_ms) = self.wake_ms.take().filter(|&at_ms| at_ms <= until_ms) {
            self.now_ms = self.now_ms.max(at_ms);
            self.happen(Event::Wake);
        }
        self.wake_ms = self.wake_ms.or(Some(until_ms));
        self.now_ms = until_ms;
        self.happen(Event::Wake);
    }

    fn page(&self, path: &str) -> PageRecord {
        self.state.page(&url(&format!("http://e.com{path}"))).unwrap().unwrap()
    }

    fn visits(&self, path: &str) -> Vec<i64> {
        let of = |(at_ms, asked): &(i64, String)| (asked == path).then_some(*at_ms - BEGIN_MS);
        self.asked.iter().filter_map(of).collect()
    }
}

fn every(interval: &str) -> RevisitSettings {
    RevisitSettings {
        policy: format!("every({interval})").parse().unwrap(),
        ..RevisitSettings::default()
    }
}

#[test]
fn pages_come_again_in_the_bucket_of_their_time() {
    let mut world = World::new(every("12h"), |_| {});
    world.pass(BEGIN_MS + 3 * DAY_MS + HOUR_MS);
    for path in ["/", "/a"] {
        let visits = world.visits(path);
        assert_eq!(visits.len(), 7, "{path}: {visits:?}");
        assert!(visits.windows(2).all(|two| (two[1] - two[0] - 12 * HOUR_MS).abs() < 2 * HOUR_MS));
    }
}

#[test]
fn a_hint_brings_a_page_at_once_and_only_that_page() {
    let mut world = World::new(every("30d"), |_| {});
    world.pass(BEGIN_MS + 2 * DAY_MS);
    assert_eq!((world.visits("/").len(), world.visits("/a").len()), (1, 1));
    let page = world.page("/a").id;
    let to_s = world.now_ms / 1000;
    let why = "a feed".to_owned();
    world.happen(Event::Hint(PullForward { page, to_s, odds_percent: 100, why }));
    world.pass(BEGIN_MS + 3 * DAY_MS);
    assert_eq!((world.visits("/").len(), world.visits("/a").len()), (1, 2));
    assert_eq!(world.state.pulled(page).unwrap(), None);
    assert!(world.page("/a").due_s.unwrap() * 1000 > world.now_ms + 28 * DAY_MS);
}

#[test]
fn a_page_that_is_gone_is_looked_for_ever_more_rarely() {
    let mut world = World::new(every("1d"), |_| {});
    world.pass(BEGIN_MS + HOUR_MS);
    world.gone.push("/a".to_owned());
    world.pass(BEGIN_MS + 40 * DAY_MS + HOUR_MS);
    let while_gone = world.visits("/a").len();
    assert!((6..=8).contains(&while_gone), "{:?}", world.visits("/a"));
    assert_eq!(world.visits("/").len(), 41);
    world.gone.clear();
    world.pass(BEGIN_MS + 80 * DAY_MS);
    assert!(world.visits("/a").len() > while_gone + 10, "it came back to its own schedule");
}

#[test]
fn a_paused_site_rests_and_goes_on_when_resumed() {
    let mut world = World::new(every("1d"), |_| {});
    world.pass(BEGIN_MS + HOUR_MS);
    world.state.pause_site(SiteId(1), true).unwrap();
    world.tell_sites();
    world.pass(BEGIN_MS + 10 * DAY_MS);
    assert_eq!(world.visits("/").len(), 1);
    world.state.pause_site(SiteId(1), false).unwrap();
    world.tell_sites();
    world.pass(BEGIN_MS + 11 * DAY_MS);
    assert!(world.visits("/").len() >= 2 && world.visits("/a").len() >= 2);
}

#[test]
fn the_budget_of_the_archive_bounds_every_day() {
    let options = CrawlOptions { visits_per_day: Some(3), ..CrawlOptions::default() };
    let mut world = World::with(options, every("1h"), |_| {});
    world.pass(BEGIN_MS + 10 * DAY_MS - 1);
    let mut days = [0; 10];
    // The probe and the look for a sitemap are no visits.
    let visits = world.asked.iter().filter(|(_, path)| ["/", "/a"].contains(&path.as_str()));
    for (at_ms, _) in visits {
        days[((at_ms - BEGIN_MS) / DAY_MS) as usize] += 1;
    }
    assert!(days.iter().all(|&visits| visits <= 3), "{days:?}");
    assert!(world.visits("/").len() > 5 && world.visits("/a").len() > 5, "{days:?}");
}

#[test]
fn a_site_is_asked_in_its_hours_alone() {
    // 1 January 2024 was a Monday.
    let mut world = World::new(every("6h"), |conditions| {
        conditions.windows = vec!["tue,thu 02:00-04:00 UTC".parse().unwrap()];
    });
    world.pass(BEGIN_MS + 14 * DAY_MS);
    let visits = world.visits("/");
    assert_eq!(visits.len(), 4, "{visits:?}");
    for at_ms in visits {
        let (day, hour) = (at_ms / DAY_MS % 7, at_ms % DAY_MS / HOUR_MS);
        assert!((day == 1 || day == 3) && (2..4).contains(&hour), "day {day}, hour {hour}");
    }
}

#[test]
fn a_site_at_its_quota_rests_and_goes_on_by_itself_when_there_is_room() {
    let mut world = World::new(every("6h"), |_| {});
    world.pass(BEGIN_MS + 2 * DAY_MS);
    let before = world.asked.len();
    assert!(before > 4);
    world.happen(Event::Full([SiteId(1)].into()));
    // Not even who asks for a round gets one.
    world.happen(Event::CollectNow(SiteId(1)));
    world.pass(BEGIN_MS + 4 * DAY_MS);
    assert_eq!(world.asked.len(), before);
    world.happen(Event::Full([SiteId(7)].into()));
    world.pass(BEGIN_MS + 6 * DAY_MS);
    assert!(world.asked.len() >= before + 4, "{:?}", world.asked);
}
