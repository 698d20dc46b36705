//! The event queue: carries out the machine's commands against the simulated web and a real state
//! in memory, and kills the crawler now and then.

use std::collections::BTreeMap;

use nenrin_crawl::{
    Answer, Command, Crawl, Event, FetchOrder, Load, Ticket, answer_load, commit_batch,
};
use nenrin_state::{Change, Outcome, PageId, Schedule, SiteConditions, SqliteState, State};
use nenrin_urls::CanonicalUrl;

use crate::LabError;

use super::{
    CrawlOptions, CrawlReport,
    checkers::{Durability, Judgement, Once, Politeness, Robots, Starvation},
    oddities::Truth,
    web::{Reply, Web},
};

/// The simulation begins on 1 January 2024.
const BEGIN_MS: i64 = 1_704_067_200_000;
/// What storing and committing take.
const STORE_MS: i64 = 5;
const COMMIT_MS: i64 = 3;
/// More events per fetch than this is a storm that never ends.
const EVENTS_PER_FETCH_MAX: u64 = 40;

/// A law broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    /// The machine waits a second less than it should.
    HurriedPolitely,
    /// Commits forget some of the pages that their visit discovered.
    ForgetfulCommit,
    /// Every content is called new.
    BlindToSameness,
    /// The machine never sees what a page looks like, nor who answered.
    BlindToLooks,
    /// Some pages are never loaded from the long-term queue.
    LeakyBuckets,
    /// The machine takes every robots.txt for one that allows everything.
    DeafToRobots,
}

struct Simulation {
    options: CrawlOptions,
    web: Web,
    state: Box<dyn State>,
    machine: Crawl,
    queue: BTreeMap<(i64, u64), Pending>,
    sequence: u64,
    now_ms: i64,
    under_way: BTreeMap<Ticket, (FetchOrder, Truth)>,
    trace: blake3::Hasher,
    politeness: Politeness,
    robots: Robots,
    durability: Durability,
    once: Once,
    judgement: Judgement,
    report: CrawlReport,
    next_version: u64,
    /// Pages in the order of their first versions.
    collected: Vec<CanonicalUrl>,
    /// When the machine wants to be called.
    wake_ms: Option<i64>,
    /// Grows with every crash, so that what was pending before is not delivered after.
    life: u64,
}

struct Pending {
    life: u64,
    what: Happening,
}

enum Happening {
    Event(Event),
    Answer(Ticket, Box<Reply>),
    Commit(Vec<(Option<Ticket>, Change)>),
    Wake(i64),
    Crash,
}

/// Runs one simulation.
pub fn run(options: &CrawlOptions) -> Result<CrawlReport, LabError> {
    run_collected(options).map(|(report, _)| report)
}

/// Runs one simulation and returns in which order pages were first collected.
pub(super) fn run_collected(
    options: &CrawlOptions,
) -> Result<(CrawlReport, Vec<CanonicalUrl>), LabError> {
    if options.servers == 0 || options.pages == 0 || options.time_s <= 0 || options.period_s <= 0 {
        let problem = "must all be above 0".to_owned();
        return Err(LabError::Setting { setting: "servers, pages, time and period", problem });
    }
    let mut simulation = Simulation::new(options)?;
    simulation.register_sites()?;
    simulation.start();
    simulation.plan_crashes();
    let end_ms = BEGIN_MS + options.time_s * 1000;
    while let Some(((at_ms, _), pending)) = simulation.queue.pop_first() {
        if at_ms > end_ms || simulation.is_storming() {
            break;
        }
        simulation.now_ms = at_ms;
        simulation.happen(pending)?;
    }
    let collected = std::mem::take(&mut simulation.collected);
    Ok((simulation.finish()?, collected))
}

impl Simulation {
    fn new(options: &CrawlOptions) -> Result<Self, LabError> {
        Ok(Self {
            options: options.clone(),
            web: Web::new(options.seed, options.servers, options.pages, options.faults)
                .with_oddities(options.oddities)
                .with_moods(options.robots_changes)
                .with_favourites(options.favourites),
            state: Box::new(SqliteState::in_memory(3600)?),
            machine: machine(options, None),
            queue: BTreeMap::new(),
            sequence: 0,
            now_ms: BEGIN_MS,
            under_way: BTreeMap::new(),
            trace: blake3::Hasher::new(),
            politeness: Politeness::default(),
            robots: Robots::default(),
            durability: Durability::default(),
            once: Once::default(),
            judgement: Judgement::default(),
            report: CrawlReport {
                seed: options.seed,
                fetches: 0,
                events: 0,
                visits: 0,
                asked: 0,
                versions: 0,
                pages: 0,
                gone: 0,
                loads: 0,
                queued_max: 0,
                stretch_percent: 100,
                rounds: 0,
                skipped: 0,
                crashes: 0,
                trace: String::new(),
                violations: Vec::new(),
            },
            next_version: 0,
            collected: Vec::new(),
            wake_ms: None,
            life: 0,
        })
    }

    fn register_sites(&mut self) -> Result<(), LabError> {
        for top in self.web.tops() {
            let schedule = match &self.options.continuous {
                Some(settings) => Schedule::Continuous(settings.clone()),
                None => Schedule::Rounds { period_s: self.options.period_s },
            };
            let windows = self.options.window.iter().cloned().collect();
            let new = SiteConditions::new(vec![top.clone()]);
            let delay_ms = self.options.delay_ms;
            let rounds_by = self.options.rounds_by;
            let conditions = SiteConditions { schedule, windows, delay_ms, rounds_by, ..new };
            self.state.add_site(top.host(), &conditions, BEGIN_MS / 1000)?;
            self.durability.committed(std::iter::once(&top));
        }
        Ok(())
    }

    fn start(&mut self) {
        if let Ok(sites) = self.state.sites() {
            self.later(0, Happening::Event(Event::Sites(sites)));
        }
    }

    fn plan_crashes(&mut self) {
        for crash in 0..self.options.crashes {
            let moment = self.web.draw(&[8, u64::from(crash)]);
            let after_ms = (moment * self.options.time_s as f64 * 1000.0) as i64;
            self.later(after_ms, Happening::Crash);
        }
    }

    fn later(&mut self, after_ms: i64, what: Happening) {
        self.sequence += 1;
        let place = (self.now_ms + after_ms.max(0), self.sequence);
        self.queue.insert(place, Pending { life: self.life, what });
    }

    fn is_storming(&mut self) -> bool {
        let storm = self.report.events > 10_000 + EVENTS_PER_FETCH_MAX * (self.report.fetches + 1);
        if storm {
            let events = self.report.events;
            self.report.violations.push(format!("{events} events: more than the work explains"));
        }
        storm
    }

    fn happen(&mut self, pending: Pending) -> Result<(), LabError> {
        if matches!(pending.what, Happening::Crash) {
            self.crash();
            return Ok(());
        }
        if pending.life != self.life {
            return Ok(());
        }
        match pending.what {
            Happening::Event(event) => self.step(event),
            Happening::Answer(ticket, reply) => {
                self.answered(ticket, *reply);
                Ok(())
            }
            Happening::Commit(batch) => self.commit(batch),
            // One that was replaced is not delivered, or wakes would multiply.
            Happening::Wake(at_ms) if self.wake_ms == Some(at_ms) => {
                self.wake_ms = None;
                self.step(Event::Wake)
            }
            Happening::Wake(_) => Ok(()),
            Happening::Crash => Ok(()),
        }
    }

    /// The process dies: queues, requests and commits under way are gone; the state stays.
    fn crash(&mut self) {
        self.report.crashes += 1;
        self.note("crash", "");
        self.life += 1;
        self.wake_ms = None;
        self.under_way.clear();
        self.politeness.crashed(self.now_ms);
        self.robots.crashed();
        self.machine = machine(&self.options, Some(self.now_ms));
        self.start();
    }

    fn step(&mut self, event: Event) -> Result<(), LabError> {
        self.report.events += 1;
        let queued = self.machine.queued() as u64;
        self.report.queued_max = self.report.queued_max.max(queued);
        let commands = self.machine.step(self.now_ms, event);
        let mut batch = Vec::new();
        for command in commands {
            match command {
                Command::Commit { ticket, change } => batch.push((ticket, change)),
                command => self.carry_out(command)?,
            }
        }
        if !batch.is_empty() {
            self.later(COMMIT_MS, Happening::Commit(batch));
        }
        Ok(())
    }

    fn carry_out(&mut self, command: Command) -> Result<(), LabError> {
        match command {
            Command::Load(load) => self.load(load)?,
            Command::Plan(work) => {
                let done = Box::new(work.carry_out());
                self.later(0, Happening::Event(Event::PlanDone(done)));
            }
            Command::ReadLinks(page) => {
                let links = self.web.links_of(&page.url, self.now_ms / 1000);
                self.later(0, Happening::Event(Event::LinksRead { page: page.page, links }));
            }
            Command::Fetch(order) => self.fetch(*order),
            Command::Store(order) => {
                self.next_version += 1;
                let (ticket, version) = (order.ticket, self.next_version);
                let event = Event::Stored { ticket, version, stored_bytes: 1000 };
                self.later(STORE_MS, Happening::Event(event));
            }
            Command::WakeAt(at_ms) => {
                self.wake_ms = Some(at_ms);
                self.later(at_ms - self.now_ms, Happening::Wake(at_ms));
            }
            Command::RoundFinished(report) => {
                self.report.rounds += 1;
                self.report.skipped += report.counts.skipped;
                self.note("round", &format!("{} {:?}", report.round, report.counts));
            }
            Command::Commit { .. } | Command::Stopped | Command::Trapped { .. } => {}
        }
        Ok(())
    }

    fn load(&mut self, load: Load) -> Result<(), LabError> {
        let mut event = answer_load(&*self.state, self.now_ms / 1000, &load)?;
        if let Event::DueLoaded { load, .. } = &mut event {
            self.report.loads += 1;
            if self.options.sabotage == Some(Sabotage::LeakyBuckets) {
                load.pages.retain(|due| !due.page.url.path().ends_with('3'));
            }
        }
        self.later(0, Happening::Event(event));
        Ok(())
    }

    fn fetch(&mut self, order: FetchOrder) {
        self.report.fetches += 1;
        self.report.asked += u64::from(order.purpose == nenrin_crawl::Purpose::Page);
        let server = order.url.server();
        let crawl_delay_ms = self.robots.pause_ms(&server);
        // A crawl-delay binds once the robots.txt that asks for it has been read.
        let knows = order.purpose != nenrin_crawl::Purpose::Robots;
        let own_ms = self.options.delay_ms.map_or(1_000, |ms| ms as i64);
        let pause_ms = if knows { crawl_delay_ms.max(own_ms) } else { own_ms };
        let in_hours =
            self.options.window.as_ref().is_none_or(|window| window.is_open(self.now_ms / 1000));
        self.politeness.asked(self.now_ms, &server, pause_ms, in_hours || !knows);
        if knows {
            self.robots.asked(self.now_ms / 1000, &order.url);
        }
        self.note("fetch", order.url.as_str());
        let reply = self.web.answer(&order, self.now_ms, self.report.fetches);
        let (ticket, elapsed_ms) = (order.ticket, reply.fetched.elapsed_ms);
        self.under_way.insert(ticket, (order, reply.truth));
        self.later(elapsed_ms, Happening::Answer(ticket, Box::new(reply)));
    }

    fn answered(&mut self, ticket: Ticket, mut reply: Reply) {
        let Some((order, _)) = self.under_way.get(&ticket) else { return };
        if order.purpose == nenrin_crawl::Purpose::Robots {
            let (now_s, server) = (self.now_ms / 1000, order.url.server());
            self.robots.answered(now_s, &server, &reply.fetched.result);
            if self.options.sabotage == Some(Sabotage::DeafToRobots) {
                let answer = Answer { status: 404, ..Answer::default() };
                reply.fetched.result = Ok(answer);
            }
        }
        let answer = reply.fetched.result.as_mut().ok();
        let retry_after_s = answer.as_ref().and_then(|answer| answer.retry_after_s);
        self.politeness.answered(self.now_ms, &order.url.server(), retry_after_s);
        if let (Some(answer), Some(Sabotage::BlindToSameness)) = (answer, self.options.sabotage) {
            answer.etag = None;
            answer.mark = answer.mark.map(|mut mark| {
                mark.0[..8].copy_from_slice(&self.report.fetches.to_le_bytes());
                mark
            });
        }
        if let (Ok(answer), Some(Sabotage::BlindToLooks)) =
            (&mut reply.fetched.result, self.options.sabotage)
            && order.purpose == nenrin_crawl::Purpose::Page
        {
            answer.fingerprint = None;
            answer.challenge = None;
        }
        let event = Event::Fetched { ticket, fetched: Box::new(reply.fetched) };
        self.later(0, Happening::Event(event));
    }

    /// One transaction, as the driver makes it: all or nothing.
    fn commit(&mut self, mut batch: Vec<(Option<Ticket>, Change)>) -> Result<(), LabError> {
        let mut linked: Vec<CanonicalUrl> = Vec::new();
        let mut with_robots = Vec::new();
        for (ticket, change) in &mut batch {
            self.judgement.committed(change);
            match change {
                Change::Visit(visit) => self.watch_visit(*ticket, visit, &mut linked),
                Change::Robots { server, .. } => with_robots.push(*server),
                _ => {}
            }
        }
        let event = commit_batch(&*self.state, &batch.into_iter().collect())?;
        for record in self.state.servers(&with_robots)? {
            self.robots.committed(&record.server);
        }
        if let Event::Committed { tickets, committed, .. } = &event {
            self.durability.committed(linked.iter());
            let new_pages = committed.new_pages.iter();
            self.durability.committed(new_pages.map(|new| &new.due.page.url));
            for ticket in tickets {
                self.under_way.remove(ticket);
            }
        }
        self.step(event)
    }

    fn watch_visit(
        &mut self,
        ticket: Option<Ticket>,
        visit: &mut nenrin_state::VisitCommit,
        linked: &mut Vec<CanonicalUrl>,
    ) {
        self.report.visits += 1;
        self.report.gone += u64::from(visit.outcome == Outcome::Gone);
        linked.extend(visit.discovered.iter().map(|found| found.url.clone()));
        if self.options.sabotage == Some(Sabotage::ForgetfulCommit) {
            visit.discovered.retain(|found| !found.url.path().ends_with('7'));
        }
        self.report.versions += u64::from(visit.version.is_some());
        if let Some((order, truth)) = ticket.and_then(|t| self.under_way.get(&t)) {
            if visit.version.is_some() {
                self.once.committed(&order.url, truth.revision);
                if order.previous.is_none() {
                    self.collected.push(order.url.clone());
                }
            }
            self.judgement.visited(&self.web, &order.url, visit, *truth);
        }
        let page = visit.page.number().unwrap_or(PageId(0));
        let found = format!("{page:?} {} {}", visit.outcome, visit.status);
        self.note("visit", &found);
    }

    fn note(&mut self, what: &str, detail: &str) {
        self.trace.update(&self.now_ms.to_le_bytes());
        self.trace.update(what.as_bytes());
        self.trace.update(detail.as_bytes());
        self.trace.update(b"\n");
    }

    fn finish(mut self) -> Result<CrawlReport, LabError> {
        self.durability.check(&*self.state)?;
        self.judgement.check(&self.web, &*self.state)?;
        let mut starvation = Starvation::default();
        if let Some(settings) = &self.options.continuous {
            let visits = settings.visits_per_day;
            starvation.check(&self.web, &*self.state, visits, self.now_ms / 1000)?;
        }
        self.report.pages = self.state.stats()?.pages;
        let stretched = self.state.stretched(1)?.first().map_or(100, |(_, percent)| *percent);
        self.report.stretch_percent = u64::from(stretched);
        self.report.trace = self.trace.finalize().to_hex()[..32].to_owned();
        let checked = [
            self.politeness.findings,
            self.robots.findings,
            self.durability.findings,
            self.once.findings,
            self.judgement.findings,
            starvation.findings,
        ];
        self.report.violations.extend(checked.into_iter().flat_map(|found| found.into_vec()));
        self.report.violations.extend(self.state.check()?);
        Ok(self.report)
    }
}

fn machine(options: &CrawlOptions, asked_before_ms: Option<i64>) -> Crawl {
    let mut machine =
        nenrin_crawl::CrawlOptions { asked_before_ms, order: options.order, ..Default::default() };
    if let Some(servers) = options.servers_kept {
        machine.servers_kept = servers;
    }
    if options.sabotage == Some(Sabotage::HurriedPolitely) {
        machine.politeness.delay_ms -= 1_000;
    }
    Crawl::new(machine)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nenrin_revisit::RevisitSettings;
    use nenrin_structure::RoundsBy;

    fn small() -> CrawlOptions {
        CrawlOptions {
            servers: 10,
            pages: 20,
            time_s: 60 * 86_400,
            crashes: 10,
            ..CrawlOptions::default()
        }
    }

    fn continuous(policy: &str) -> CrawlOptions {
        let policy = policy.parse().unwrap();
        let settings = RevisitSettings { policy, ..RevisitSettings::default() };
        let time_s = 45 * 86_400;
        let small = CrawlOptions { servers: 4, crashes: 6, time_s, oddities: false, ..small() };
        CrawlOptions { continuous: Some(settings), ..small }
    }

    #[test]
    fn the_same_seed_gives_the_same_trace() {
        let rounds = CrawlOptions { continuous: None, ..continuous("auto") };
        for options in [rounds, continuous("auto")] {
            let first = run(&options).unwrap();
            assert_eq!(first, run(&options).unwrap());
            assert_ne!(first.trace, run(&CrawlOptions { seed: 2, ..options }).unwrap().trace);
        }
    }

    #[test]
    fn no_law_is_broken_through_faults_and_crashes() {
        for seed in 1..=6 {
            let report = run(&CrawlOptions { seed, ..small() }).unwrap();
            assert_eq!(report.violations, Vec::<String>::new(), "seed {seed}");
            assert!(report.pages >= 200, "seed {seed}: {report:?}");
            assert!(report.rounds >= 10 * 8, "seed {seed}: {report:?}");
            assert!(report.versions > 200, "seed {seed}: {report:?}");
            assert_eq!(report.crashes, 10);
        }
    }

    #[test]
    fn no_law_is_broken_when_rounds_choose_their_pages() {
        for (seed, rounds_by) in (1..).zip(RoundsBy::ALL) {
            let options = CrawlOptions { seed, rounds_by, ..small() };
            let report = run(&options).unwrap();
            assert_eq!(report.violations, Vec::<String>::new(), "{rounds_by}");
            assert_eq!(report, run(&options).unwrap(), "{rounds_by}");
            assert!(report.pages >= 200 && report.rounds >= 10 * 8, "{rounds_by}: {report:?}");
            assert_eq!(report.skipped > 0, rounds_by.chooses(), "{rounds_by}: {report:?}");
        }
    }

    #[test]
    fn no_law_is_broken_when_every_page_has_its_own_schedule() {
        let policies =
            ["auto", "mle.mix(0.1-10,2nd=7d)", "every(2d)", "aimd(d=1d,r=0.5)", "budget"];
        let mut gone = 0;
        for (seed, policy) in (1..=10).zip(policies.into_iter().cycle()) {
            let report = run(&CrawlOptions { seed, ..continuous(policy) }).unwrap();
            assert_eq!(report.violations, Vec::<String>::new(), "seed {seed}, {policy}");
            assert!(report.pages >= 80, "seed {seed}, {policy}: {report:?}");
            assert!(report.visits > 200, "seed {seed}, {policy}: {report:?}");
            assert!(report.loads > 45 * 24, "seed {seed}, {policy}: {report:?}");
            gone += report.gone;
        }
        assert!(gone > 0, "some page went away in some world");
    }

    #[test]
    fn pages_that_vanish_in_the_course_of_a_year_are_gone_on_odd_servers_too() {
        let year = CrawlOptions { servers: 10, pages: 100, ..CrawlOptions::default() };
        let continuous = continuous("every(30d)").continuous;
        let year = CrawlOptions { continuous, ..year };
        let report = run(&year).unwrap();
        assert_eq!(report.violations, Vec::<String>::new());
        assert!(report.gone > 300, "{report:?}");
    }

    #[test]
    fn a_budget_bounds_the_visits_of_every_day() {
        let mut options = continuous("auto");
        options.continuous.as_mut().unwrap().visits_per_day = Some(5);
        let report = run(&options).unwrap();
        assert_eq!(report.violations, Vec::<String>::new());
        // A crash forgets the request under way on each server. Pages that robots.txt refuses are
        // not asked for, and take nothing of the budget.
        let most = 4 * 5 * 45 + 4 * report.crashes;
        assert!(report.asked <= most && report.asked > most / 3, "{report:?}");
    }

    #[test]
    fn a_budget_that_is_too_small_is_no_fault_of_the_server() {
        let mut options = continuous("every(1d)");
        options.continuous.as_mut().unwrap().visits_per_day = Some(5);
        options.robots_changes = false;
        let report = run(&CrawlOptions { servers: 2, faults: 0.0, ..options }).unwrap();
        assert!(report.stretch_percent <= 150, "{report:?}");
    }

    #[test]
    fn a_server_that_cannot_keep_up_is_stretched_and_no_page_starves() {
        let overloaded = CrawlOptions {
            servers: 1,
            pages: 150,
            delay_ms: Some(60_000),
            time_s: 12 * 86_400,
            crashes: 2,
            faults: 0.0,
            robots_changes: false,
            ..continuous("every(1h)")
        };
        let report = run(&overloaded).unwrap();
        assert_eq!(report.violations, Vec::<String>::new());
        // 140 pages an hour are wanted and 60 possible; up to a bucket late is on time.
        assert!((130..=700).contains(&report.stretch_percent), "{report:?}");
        assert!(report.visits > 11 * 24 * 40, "the server was not idle: {report:?}");
        let idle = CrawlOptions { delay_ms: Some(10_000), ..overloaded };
        assert_eq!(run(&idle).unwrap().stretch_percent, 100);
    }

    #[test]
    fn a_window_bounds_the_hours_of_both_modes() {
        let rounds = CrawlOptions { continuous: None, ..continuous("auto") };
        for options in [rounds, continuous("every(1d)")] {
            let window = "mon-fri 01:00-04:00 UTC".parse().unwrap();
            let report = run(&CrawlOptions { window: Some(window), ..options }).unwrap();
            assert_eq!(report.violations, Vec::<String>::new());
            assert!(report.visits > 300, "{report:?}");
        }
    }

    #[test]
    fn each_checker_can_fail() {
        for (sabotage, expected) in [
            (Sabotage::HurriedPolitely, "ms are due"),
            (Sabotage::ForgetfulCommit, "is lost"),
            (Sabotage::BlindToSameness, "same content"),
            (Sabotage::LeakyBuckets, "has been due"),
            (Sabotage::DeafToRobots, "the robots.txt in force forbids it"),
        ] {
            let rounds = CrawlOptions { continuous: None, ..continuous("auto") };
            for options in [rounds, continuous("auto")] {
                if options.continuous.is_none() && sabotage == Sabotage::LeakyBuckets {
                    continue;
                }
                let report = run(&CrawlOptions { sabotage: Some(sabotage), ..options }).unwrap();
                let found = report.violations.iter().any(|violation| violation.contains(expected));
                assert!(found, "{sabotage:?}: {:?}", report.violations);
            }
        }
    }

    #[test]
    fn the_judge_can_fail() {
        let sabotage = Some(Sabotage::BlindToLooks);
        let time_s = 20 * 86_400;
        let blind = CrawlOptions { servers: 40, pages: 12, time_s, sabotage, ..small() };
        let report = run(&blind).unwrap();
        for expected in ["does not exist and was taken", "a challenge was taken"] {
            let found = report.violations.iter().any(|violation| violation.contains(expected));
            assert!(found, "{expected}: {:?}", report.violations);
        }
        let seeing = run(&CrawlOptions { sabotage: None, ..blind }).unwrap();
        assert_eq!(seeing.violations, Vec::<String>::new());
    }

    #[test]
    fn options_without_sense_are_refused() {
        assert!(run(&CrawlOptions { servers: 0, ..small() }).is_err());
    }
}
