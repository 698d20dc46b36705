//! The event queue: carries out the machine's commands against the simulated web and a real state
//! in memory, and kills the crawler now and then.

mod asking;
mod clock;
mod joint;
mod worker;

use std::collections::BTreeMap;

use nenrin_crawl::{
    Command, Event, Load, Ticket, answer_load, commit_batch, drop_taken_mail, take_mail,
};
use nenrin_state::{
    Change, Epoch, Mail, Outcome, PageId, PartitionId, Schedule, SiteConditions, State, StateError,
    VersionId,
};
use nenrin_urls::{CanonicalUrl, Scope, Server};

use crate::LabError;

use self::worker::Worker;
use super::{
    CrawlOptions, CrawlReport, Sabotage,
    bad_days::BadDays,
    checkers::{
        Budget, Durability, Once, Politeness, Robots, RoundsTogether, Shares, Starvation, Turns,
    },
    oddities::Oddity,
    web::{Reply, Web},
};

/// The simulation begins on 1 January 2024.
const BEGIN_MS: i64 = 1_704_067_200_000;
/// What storing and committing take.
const STORE_MS: i64 = 5;
const COMMIT_MS: i64 = 3;
/// How often mail of other partitions is looked for.
const MAIL_MS: i64 = 3_600_000;
/// More events per fetch than this is a storm that never ends.
const EVENTS_PER_FETCH_MAX: u64 = 40;

struct Simulation {
    options: CrawlOptions,
    web: Web,
    /// One for each partition.
    workers: Vec<Worker>,
    queue: BTreeMap<(i64, u64), Pending>,
    sequence: u64,
    now_ms: i64,
    bad_days: BadDays,
    /// How far the crawler's clock is ahead of the time.
    ahead_ms: i64,
    trace: blake3::Hasher,
    politeness: Politeness,
    robots: Robots,
    durability: Durability,
    once: Once,
    budget: Budget,
    rounds: RoundsTogether,
    shares: Shares,
    report: CrawlReport,
    next_version: u64,
    /// Pages in the order of their first versions.
    collected: Vec<CanonicalUrl>,
}

struct Pending {
    /// The number of the worker whom it concerns.
    worker: usize,
    life: u64,
    what: Happening,
}

enum Happening {
    Event(Event),
    Answer(Ticket, Box<Reply>),
    Commit {
        epoch: Epoch,
        batch: Vec<(Option<Ticket>, Change)>,
    },
    Wake(i64),
    /// Mail of the other partitions is looked for.
    Mail,
    Crash,
    HandOver,
    ClockTurned,
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
    (0..simulation.workers.len()).for_each(|worker| simulation.start(worker));
    simulation.plan_accidents();
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
        let web = Web::new(options.seed, options.servers, options.pages, options.faults)
            .with_oddities(options.oddities)
            .with_moods(options.robots_changes)
            .with_favourites(options.favourites);
        Ok(Self {
            options: options.clone(),
            bad_days: BadDays::of(&web, options.bad_days, BEGIN_MS, options.time_s * 1000),
            ahead_ms: 0,
            web,
            workers: Worker::all(options)?,
            queue: BTreeMap::new(),
            sequence: 0,
            now_ms: BEGIN_MS,
            trace: blake3::Hasher::new(),
            politeness: Politeness::default(),
            robots: Robots::default(),
            durability: Durability::default(),
            once: Once::default(),
            budget: Budget::default(),
            rounds: RoundsTogether::default(),
            shares: Shares::default(),
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
                mail: 0,
                shares: 0.0,
                later_shares: 0.0,
                crashes: 0,
                hand_overs: 0,
                set_back: 0,
                trace: String::new(),
                violations: Vec::new(),
            },
            next_version: 0,
            collected: Vec::new(),
        })
    }

    fn register_sites(&mut self) -> Result<(), LabError> {
        let rounds = Schedule::Rounds { period_s: self.options.period_s };
        for tops in self.sites() {
            let schedule = self.options.continuous.clone().map(Schedule::Continuous);
            let new = SiteConditions::new(tops.clone());
            let scope = if self.workers.len() > 1 { Scope::Any } else { new.scope };
            let schedule = schedule.unwrap_or(rounds.clone());
            let conditions = SiteConditions { schedule, scope, ..new };
            self.register_site(tops[0].host(), conditions)?;
        }
        if self.options.overlap {
            let new = SiteConditions::new(self.web.tops());
            let conditions = SiteConditions { schedule: rounds, scope: Scope::Any, ..new };
            self.register_site("all", conditions)?;
        }
        Ok(())
    }

    fn register_site(&mut self, name: &str, site: SiteConditions) -> Result<(), LabError> {
        let CrawlOptions { window, delay_ms, rounds_by, .. } = &self.options;
        let windows = window.iter().cloned().collect();
        let (delay_ms, rounds_by) = (*delay_ms, *rounds_by);
        let site = SiteConditions { windows, delay_ms, rounds_by, ..site };
        for worker in &self.workers {
            worker.state.add_site(name, &site, BEGIN_MS / 1000)?;
        }
        self.durability.committed(site.tops.iter());
        Ok(())
    }

    /// The top pages of each site: one for each server. With partitions, one site goes wherever links
    /// lead, so that most servers are found from other partitions; only the top page of a shell must
    /// be known as one, or nothing says that its pages look like missing ones.
    fn sites(&self) -> Vec<Vec<CanonicalUrl>> {
        let tops = self.web.tops();
        if self.workers.len() == 1 {
            return tops.into_iter().map(|top| vec![top]).collect();
        }
        let is_shell = |top: &CanonicalUrl| {
            Web::server_of(top).is_some_and(|server| self.web.oddity(server) == Oddity::Shell)
        };
        let first = tops.first().cloned();
        vec![tops.into_iter().filter(|top| first.as_ref() == Some(top) || is_shell(top)).collect()]
    }

    fn start(&mut self, worker: usize) {
        if let Ok(sites) = self.workers[worker].state.sites() {
            self.later(worker, 0, Happening::Event(Event::Sites(sites)));
        }
        if self.workers.len() > 1 {
            self.later(worker, MAIL_MS, Happening::Mail);
        }
    }

    /// Crashes and hand-overs, at moments taken from the seed.
    fn plan_accidents(&mut self) {
        let workers = self.workers.len() as u32;
        for n in 0..self.options.crashes {
            let worker = self.web.pick(&[14, u64::from(n)], workers);
            let moment = self.web.draw(&[8, u64::from(n)]);
            self.later(worker as usize, self.moment_ms(moment), Happening::Crash);
        }
        for n in 0..self.options.hand_overs {
            let worker = self.web.pick(&[16, u64::from(n)], workers);
            let moment = self.web.draw(&[15, u64::from(n)]);
            self.later(worker as usize, self.moment_ms(moment), Happening::HandOver);
        }
        for turn_ms in self.bad_days.turns_ms() {
            self.later(0, turn_ms - BEGIN_MS, Happening::ClockTurned);
        }
    }

    fn moment_ms(&self, share: f64) -> i64 {
        (share * self.options.time_s as f64 * 1000.0) as i64
    }

    fn later(&mut self, worker: usize, after_ms: i64, what: Happening) {
        self.sequence += 1;
        let place = (self.now_ms + after_ms.max(0), self.sequence);
        let life = self.workers[worker].life;
        self.queue.insert(place, Pending { worker, life, what });
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
        let Pending { worker, life, what } = pending;
        let is_alive = life == self.workers[worker].life;
        match what {
            Happening::Crash => self.crash(worker),
            Happening::HandOver => self.hand_over(worker),
            Happening::ClockTurned => self.turn_clock(),
            // A worker that lost its partition does not know yet.
            Happening::Commit { epoch, batch } if !is_alive => {
                self.commit_late(worker, epoch, batch)
            }
            _ if !is_alive => Ok(()),
            Happening::Event(event) => self.step(worker, event),
            Happening::Answer(ticket, reply) => {
                self.answered(worker, ticket, *reply);
                Ok(())
            }
            Happening::Commit { epoch, batch } => self.commit(worker, epoch, batch),
            // One that was replaced is not delivered, or wakes would multiply.
            Happening::Wake(at_ms) if self.workers[worker].wake_ms == Some(at_ms) => {
                self.workers[worker].wake_ms = None;
                self.step(worker, Event::Wake)
            }
            Happening::Wake(_) => Ok(()),
            Happening::Mail => {
                self.later(worker, MAIL_MS, Happening::Mail);
                self.take_mail(worker)
            }
        }
    }

    /// The process dies: queues, requests and commits under way are gone; the state stays.
    fn crash(&mut self, worker: usize) -> Result<(), LabError> {
        self.report.crashes += 1;
        self.note("crash", "");
        self.queue.retain(|_, pending| {
            let is_commit = matches!(pending.what, Happening::Commit { .. });
            pending.worker != worker || !is_commit
        });
        self.replace(worker)
    }

    /// Another process takes the partition over. The commits of the first are still on their way.
    fn hand_over(&mut self, worker: usize) -> Result<(), LabError> {
        self.report.hand_overs += 1;
        self.note("hand-over", "");
        self.replace(worker)
    }

    fn replace(&mut self, worker: usize) -> Result<(), LabError> {
        let partitioning = self.workers[worker].partitioning;
        let is_lost = |server: &Server| partitioning.of(server).0 as usize == worker;
        self.count_lost(worker);
        self.politeness.crashed(self.now_ms, is_lost);
        self.robots.crashed(is_lost);
        let clock_ms = self.clock_ms();
        self.workers[worker].replace(&self.options, clock_ms)?;
        self.start(worker);
        Ok(())
    }

    fn step(&mut self, worker: usize, event: Event) -> Result<(), LabError> {
        self.report.events += 1;
        let clock_ms = self.clock_ms();
        let machine = &mut self.workers[worker].machine;
        self.report.queued_max = self.report.queued_max.max(machine.queued() as u64);
        let commands = machine.step(clock_ms, event);
        let mut batch = Vec::new();
        for command in commands {
            match command {
                Command::Commit { ticket, change } => batch.push((ticket, change)),
                command => self.carry_out(worker, command)?,
            }
        }
        if !batch.is_empty() {
            let epoch = self.workers[worker].epoch;
            self.later(worker, COMMIT_MS, Happening::Commit { epoch, batch });
        }
        Ok(())
    }

    fn carry_out(&mut self, worker: usize, command: Command) -> Result<(), LabError> {
        match command {
            Command::Load(load) => self.load(worker, load)?,
            Command::Plan(work) => {
                let done = Box::new(work.carry_out());
                self.later(worker, 0, Happening::Event(Event::PlanDone(done)));
            }
            Command::ReadLinks(page) => {
                let links = self.web.links_of(&page.url, self.now_ms / 1000);
                let event = Event::LinksRead { page: page.page, links };
                self.later(worker, 0, Happening::Event(event));
            }
            Command::Fetch(order) => self.fetch(worker, *order),
            Command::Store(order) => {
                self.next_version += 1;
                let (ticket, version) = (order.ticket, VersionId(self.next_version));
                let event = Event::Stored { ticket, version, stored_bytes: 1000, is_known: false };
                self.later(worker, STORE_MS, Happening::Event(event));
            }
            // The simulated web has no scripts.
            Command::Render(order) => {
                let rendered = Box::default();
                let event = Event::Rendered { ticket: order.ticket, rendered };
                self.later(worker, 0, Happening::Event(event));
            }
            Command::WakeAt(at_ms) => {
                self.workers[worker].wake_ms = Some(at_ms);
                self.later(worker, at_ms - self.clock_ms(), Happening::Wake(at_ms));
            }
            Command::RoundFinished(report) => {
                self.report.rounds += 1;
                self.report.skipped += report.counts.skipped;
                self.note("round", &format!("{} {:?}", report.round, report.counts));
            }
            Command::Commit { .. }
            | Command::Stopped
            | Command::LoggedOut { .. }
            | Command::ForgetRendering(_)
            | Command::Trapped { .. } => {}
        }
        Ok(())
    }

    fn load(&mut self, worker: usize, load: Load) -> Result<(), LabError> {
        let mut event = answer_load(&*self.workers[worker].state, self.clock_ms() / 1000, &load)?;
        if let Event::RoundBegun(round) = &event {
            self.rounds.begun(self.workers.len(), worker, round);
        }
        if self.options.sabotage == Some(Sabotage::UndividedBudget) {
            match &mut event {
                Event::SharedLoaded { of_archive, .. } => *of_archive = None,
                Event::DivisionLoaded { site: None, division } => *division = None,
                _ => {}
            }
        }
        if let Event::DueLoaded { load, .. } = &mut event {
            self.report.loads += 1;
            if self.options.sabotage == Some(Sabotage::LeakyBuckets) {
                load.pages.retain(|due| !due.page.url.path().ends_with('3'));
            }
        }
        self.later(worker, 0, Happening::Event(event));
        Ok(())
    }

    /// One transaction, as the driver makes it: all or nothing.
    fn commit(
        &mut self,
        worker: usize,
        epoch: Epoch,
        mut batch: Vec<(Option<Ticket>, Change)>,
    ) -> Result<(), LabError> {
        let mut linked: Vec<CanonicalUrl> = Vec::new();
        let mut with_robots = Vec::new();
        let now_s = self.now_ms / 1000;
        for (ticket, change) in &mut batch {
            self.workers[worker].judgement.committed(now_s, change);
            match change {
                Change::Visit(visit) => self.watch_visit(worker, *ticket, visit, &mut linked),
                Change::Robots { server, .. } => with_robots.push(*server),
                Change::RoundEnd(end) => self.rounds.ended(worker, end.site, end.round),
                _ => {}
            }
        }
        let state = &self.workers[worker].state;
        let event = commit_batch(&**state, epoch, &batch.into_iter().collect())?;
        for record in state.servers(&with_robots)? {
            self.robots.committed(&record.server);
        }
        self.shares.committed(&**state)?;
        if let Event::Committed { tickets, committed, .. } = &event {
            self.durability.committed(linked.iter());
            let new_pages = committed.new_pages.iter();
            self.durability.committed(new_pages.map(|new| &new.due.page.url));
            for ticket in tickets {
                self.workers[worker].under_way.remove(ticket);
            }
        }
        self.step(worker, event)
    }

    /// A worker that lost its partition commits: it must be refused.
    fn commit_late(
        &mut self,
        worker: usize,
        epoch: Epoch,
        batch: Vec<(Option<Ticket>, Change)>,
    ) -> Result<(), LabError> {
        let batch = batch.into_iter().collect();
        match commit_batch(&*self.workers[worker].state, epoch, &batch) {
            Err(StateError::Superseded { .. }) => Ok(()),
            Err(error) => Err(error.into()),
            Ok(_) => {
                let broken = format!("partition {worker}: a commit under {epoch:?} came too late");
                self.report.violations.push(broken);
                Ok(())
            }
        }
    }

    /// Takes in what other partitions have for this one, and drops what they have taken in.
    fn take_mail(&mut self, worker: usize) -> Result<(), LabError> {
        for other in (0..self.workers.len()).filter(|&other| other != worker) {
            let (own, other) = (&self.workers[worker], &self.workers[other]);
            if self.options.sabotage == Some(Sabotage::LosesMail) {
                drop_mail(&*other.state, other.epoch, worker)?;
            }
            let events = take_mail(&*own.state, own.epoch, &*other.state)?;
            drop_taken_mail(&*own.state, own.epoch, &*other.state)?;
            for event in events {
                self.report.mail += u64::from(matches!(event, Event::Committed { .. }));
                if let Event::Committed { committed, .. } = &event {
                    let new_pages = committed.new_pages.iter();
                    self.durability.committed(new_pages.map(|new| &new.due.page.url));
                }
                self.step(worker, event)?;
            }
        }
        Ok(())
    }

    fn watch_visit(
        &mut self,
        worker: usize,
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
        let Worker { under_way, judgement, .. } = &mut self.workers[worker];
        if let Some((order, truth)) = ticket.and_then(|ticket| under_way.get(&ticket)) {
            if visit.version.is_some() {
                self.once.committed(&order.url, truth.revision);
                if order.previous.is_none() {
                    self.collected.push(order.url.clone());
                }
            }
            judgement.visited(&self.web, &order.url, visit, *truth);
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
        // What is still on its way is delivered before the partitions are compared.
        for worker in 0..self.workers.len() {
            self.take_mail(worker)?;
        }
        self.check_orders()?;
        self.check_rounds()?;
        self.check_sums()?;
        let mut starvation = Starvation::default();
        let states = self.workers.iter().map(|worker| &*worker.state);
        let shared = self.options.shared_visits();
        let turns = shared.map(|shared| Turns::of(states, shared)).transpose()?.unwrap_or_default();
        for worker in &mut self.workers {
            let (state, partitioning) = (&*worker.state, worker.partitioning);
            let is_own = |url: &CanonicalUrl| partitioning.of(&url.server()) == state.partition().1;
            self.durability.check(state, is_own)?;
            worker.judgement.check(&self.web, state)?;
            let judged = std::mem::take(&mut worker.judgement.findings);
            self.report.violations.extend(judged.into_vec());
            if self.options.continuous.is_some() {
                starvation.check(&self.web, state, &turns, self.now_ms / 1000)?;
            }
            self.shares.check(state)?;
            self.report.pages += state.stats()?.pages;
            let stretched = state.stretched(1)?.first().map_or(100, |(_, percent)| *percent);
            self.report.stretch_percent = self.report.stretch_percent.max(u64::from(stretched));
            self.report.violations.extend(state.check()?);
        }
        self.report.shares = self.shares.sent_micros() as f64 / 1e6;
        self.report.later_shares = self.shares.later_micros as f64 / 1e6;
        self.report.trace = self.trace.finalize().to_hex()[..32].to_owned();
        let checked = [
            self.politeness.findings,
            self.robots.findings,
            self.durability.findings,
            self.once.findings,
            self.budget.findings,
            self.rounds.findings,
            self.shares.findings,
            starvation.findings,
        ];
        self.report.violations.extend(checked.into_iter().flat_map(|found| found.into_vec()));
        Ok(self.report)
    }
}

/// Drops the shares of scores in a partition's mail to another, as if it had been taken in.
fn drop_mail(from: &dyn State, epoch: Epoch, to: usize) -> Result<(), LabError> {
    let to = PartitionId(to as u32);
    let mail = from.outbox(to, 0, usize::MAX)?;
    let is_share = |mail: &Mail| matches!(mail, Mail::Share { .. } | Mail::MoreShare { .. });
    if mail.iter().any(|one| is_share(&one.mail)) {
        let upto = mail.last().map_or(0, |last| last.number);
        from.commit_under(epoch, &[Change::MailDelivered { to, upto }])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
