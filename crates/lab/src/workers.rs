//! Many workers on a shared archive, in simulated time: who holds which partition, and who asks which
//! server when. The times of leases and the rules of balance are the program's own; the database is its
//! rows of leases and epochs; workers are killed and stopped, and the database is away.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    time::Duration,
};

use nenrin_archive::{LEASE, LEASE_SAFE, LoadGauge, left_by, taken_by};
use nenrin_state::{IDLE_LOAD, PartitionId, Partitioning, Renewed, WorkerId};
use nenrin_urls::Server;
use serde::Serialize;

/// Between the end of a request to a server and the next one.
const DELAY_MS: u64 = 1_000;
/// A request takes at most so long.
const ANSWER_MS: u64 = 4_000;
/// Leases are renewed so often.
const TEND_MS: u64 = 5_000;
/// Visits are committed so often.
const COMMIT_MS: u64 = 2_000;
/// A partition looks for servers to ask so often, and asks at most so many at once.
const LOOK_MS: u64 = 1_000;
const ASKED_TOGETHER: usize = 64;
/// A question to the database takes at most so long.
const DATABASE_MS: u64 = 200;
const LEASE_MS: u64 = LEASE.as_millis() as u64;
const SAFE_MS: u64 = LEASE_SAFE.as_millis() as u64;

/// Many workers on a shared archive, in simulated time, with faults.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct WorkersArgs {
    /// Workers.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub workers: u32,
    /// Partitions of the archive.
    #[arg(long, value_name = "N", default_value_t = 1_024, value_parser = clap::value_parser!(u32).range(1..))]
    pub partitions: u32,
    /// Web servers, with one page each.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub servers: u32,
    /// Seconds from one visit to a page to the next.
    #[arg(long, value_name = "S", default_value_t = 900)]
    pub every_s: u64,
    /// Simulated seconds. Faults end when three quarters of them are over.
    #[arg(long, value_name = "S", default_value_t = 3_600)]
    pub time_s: u64,
    /// Workers that are killed, and as many that are stopped for up to a minute.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub faults: u32,
    /// How often the database is away for up to 40 seconds.
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub outages: u32,
    /// Seed of all draws; the same seed gives the same run.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Holders go on to ask when their lease has ended: to see that it is noticed.
    #[arg(long, hide = true)]
    pub careless: bool,
}

/// What was seen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct WorkersReport {
    /// Requests to servers.
    pub requests: u64,
    /// Requests sooner than allowed after the one before, by whichever worker.
    pub too_soon: u64,
    /// Visits that were committed.
    pub visits: u64,
    /// Visits that were not committed: their worker was killed or had lost the partition.
    pub lost: u64,
    /// Commits that were refused, as another worker had taken the partition.
    pub refused: u64,
    /// Commits that came from a worker that did not hold the partition any more and were not refused.
    pub late: u64,
    /// Servers that were not visited after the last fault.
    pub unvisited: u64,
    /// Partitions that a worker took over from one that did not hand them over.
    pub take_overs: u64,
    /// The longest time that nobody held a partition, without times at which the database was away, in
    /// milliseconds.
    pub longest_free_ms: u64,
    /// Partitions that changed hands in the last quarter of the time.
    pub late_moves: u64,
    /// The greatest and least number of visits of a worker in the last quarter of the time.
    pub most_visits: u64,
    /// The least.
    pub least_visits: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Tend {
        worker: usize,
        life: u32,
    },
    /// The answer of the database to what a worker asked when it began to tend.
    Tended {
        worker: usize,
        life: u32,
        asked_ms: u64,
    },
    Look {
        worker: usize,
        life: u32,
        partition: u32,
        epoch: u64,
    },
    Commit {
        worker: usize,
        life: u32,
        partition: u32,
        epoch: u64,
    },
    Kill,
    Start {
        worker: usize,
    },
    Stop,
    Continue {
        worker: usize,
    },
}

/// A row of leases, and the epoch of its partition.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    worker: Option<WorkerId>,
    until_ms: u64,
    epoch: u64,
    load: u64,
    free_since_ms: u64,
}

/// A partition as its holder sees it.
#[derive(Debug, Default)]
struct Held {
    epoch: u64,
    until_ms: u64,
    /// What its servers are asked not before, and when they are due, in this order.
    due: BinaryHeap<Reverse<(u64, u32)>>,
    /// Visits that are not committed yet.
    waiting: Vec<u32>,
    visits: u64,
    gauge: LoadGauge,
    /// When a server was last asked.
    asked_ms: u64,
    is_leaving: bool,
}

#[derive(Debug, Default)]
struct Worker {
    id: i64,
    life: u32,
    is_alive: bool,
    stopped_until_ms: Option<u64>,
    /// What came while it was stopped.
    late: Vec<Event>,
    held: BTreeMap<u32, Held>,
    visits_at_end: u64,
}

/// SplitMix64.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }
}

struct World {
    options: WorkersArgs,
    now_ms: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    order: u64,
    draws: Draws,
    rows: Vec<Row>,
    /// When each worker was last heard.
    heard_ms: BTreeMap<WorkerId, u64>,
    next_id: i64,
    outages: Vec<(u64, u64)>,
    workers: Vec<Worker>,
    /// The servers of each partition.
    servers: Vec<Vec<u32>>,
    /// As the servers see it: when the last request ended, and when a visit was last committed.
    ended_ms: Vec<u64>,
    visited_ms: Vec<u64>,
    report: WorkersReport,
}

/// Runs it.
pub fn run(options: &WorkersArgs) -> WorkersReport {
    let mut world = World::new(options);
    let end_ms = options.time_s * 1_000;
    while let Some(Reverse((at_ms, _, event))) = world.events.pop() {
        if at_ms > end_ms {
            break;
        }
        world.now_ms = at_ms;
        world.happen(event);
    }
    world.judged()
}

impl WorkersReport {
    /// Whether every rule was kept.
    pub fn is_sound(&self) -> bool {
        self.too_soon + self.late + self.unvisited == 0 && self.longest_free_ms <= 2 * LEASE_MS
    }
}

impl World {
    fn new(options: &WorkersArgs) -> Self {
        let partitioning = Partitioning { count: options.partitions.max(1) };
        let mut servers = vec![Vec::new(); partitioning.count as usize];
        for number in 0..options.servers {
            // Every such name is one.
            let Ok(name) = Server::try_from(format!("http://s{number}.example")) else { continue };
            servers[partitioning.of(&name).0 as usize].push(number);
        }
        let mut world = Self {
            options: options.clone(),
            now_ms: 0,
            events: BinaryHeap::new(),
            order: 0,
            draws: Draws(options.seed),
            rows: vec![Row::default(); partitioning.count as usize],
            heard_ms: BTreeMap::new(),
            next_id: 1,
            outages: Vec::new(),
            workers: Vec::new(),
            servers,
            ended_ms: vec![0; options.servers as usize],
            visited_ms: vec![0; options.servers as usize],
            report: WorkersReport::default(),
        };
        world.workers.resize_with(options.workers as usize, Worker::default);
        let faults_ms = world.faults_end_ms();
        for worker in 0..world.workers.len() {
            let at_ms = world.draws.below(30_000);
            world.at(at_ms, Event::Start { worker });
        }
        for _ in 0..options.faults {
            let (kill_ms, stop_ms) = (world.draws.below(faults_ms), world.draws.below(faults_ms));
            world.at(kill_ms, Event::Kill);
            world.at(stop_ms, Event::Stop);
        }
        for _ in 0..options.outages {
            let (begin_ms, long_ms) = (world.draws.below(faults_ms), world.draws.below(40_000));
            world.outages.push((begin_ms, begin_ms + long_ms));
        }
        world
    }

    /// Faults begin before this time.
    fn faults_end_ms(&self) -> u64 {
        self.options.time_s * 750
    }

    fn at(&mut self, at_ms: u64, event: Event) {
        self.order += 1;
        self.events.push(Reverse((at_ms, self.order, event)));
    }

    fn is_away(&self, at_ms: u64) -> bool {
        self.outages.iter().any(|&(begin_ms, end_ms)| (begin_ms..end_ms).contains(&at_ms))
    }

    fn happen(&mut self, event: Event) {
        let of = match event {
            Event::Tend { worker, life }
            | Event::Tended { worker, life, .. }
            | Event::Look { worker, life, .. }
            | Event::Commit { worker, life, .. } => Some((worker, life)),
            _ => None,
        };
        if let Some((worker, life)) = of {
            let here = &mut self.workers[worker];
            if !here.is_alive || here.life != life {
                return;
            }
            if here.stopped_until_ms.is_some() {
                here.late.push(event);
                return;
            }
        }
        match event {
            Event::Tend { worker, life } => {
                let took_ms = 1 + self.draws.below(DATABASE_MS);
                let asked_ms = self.now_ms;
                self.at(asked_ms + took_ms, Event::Tended { worker, life, asked_ms });
            }
            Event::Tended { worker, life, asked_ms } => self.tend(worker, life, asked_ms),
            Event::Look { worker, life, partition, epoch } => {
                self.look(worker, life, partition, epoch);
            }
            Event::Commit { worker, life, partition, epoch } => {
                self.commit(worker, life, partition, epoch);
            }
            Event::Start { worker } => self.start(worker),
            Event::Kill => {
                let worker = self.draws.below(self.workers.len() as u64) as usize;
                let back_ms = self.now_ms + 1_000 + self.draws.below(60_000);
                let here = &mut self.workers[worker];
                if here.is_alive {
                    let held = std::mem::take(&mut here.held);
                    self.report.lost +=
                        held.values().map(|held| held.waiting.len() as u64).sum::<u64>();
                    (here.is_alive, here.stopped_until_ms) = (false, None);
                    here.late.clear();
                    self.at(back_ms, Event::Start { worker });
                }
            }
            Event::Stop => {
                let worker = self.draws.below(self.workers.len() as u64) as usize;
                let until_ms = self.now_ms + self.draws.below(3 * LEASE_MS);
                let here = &mut self.workers[worker];
                if here.is_alive && here.stopped_until_ms.is_none() {
                    here.stopped_until_ms = Some(until_ms);
                    self.at(until_ms, Event::Continue { worker });
                }
            }
            Event::Continue { worker } => {
                let here = &mut self.workers[worker];
                if here.stopped_until_ms == Some(self.now_ms) {
                    here.stopped_until_ms = None;
                    for event in std::mem::take(&mut here.late) {
                        self.at(self.now_ms, event);
                    }
                }
            }
        }
    }

    fn start(&mut self, worker: usize) {
        if self.is_away(self.now_ms) {
            self.at(self.now_ms + 5_000, Event::Start { worker });
            return;
        }
        let (id, now_ms) = (self.next_id, self.now_ms);
        self.next_id += 1;
        let here = &mut self.workers[worker];
        (here.id, here.is_alive, here.life) = (id, true, here.life + 1);
        let life = here.life;
        self.heard_ms.insert(WorkerId(id), now_ms);
        self.at(now_ms, Event::Tend { worker, life });
    }

    /// What the database answers is of now; the worker counts from when it asked.
    fn tend(&mut self, worker: usize, life: u32, asked_ms: u64) {
        self.at(self.now_ms + TEND_MS, Event::Tend { worker, life });
        if self.is_away(self.now_ms) || self.is_away(asked_ms) {
            return;
        }
        let (now_ms, id) = (self.now_ms, WorkerId(self.workers[worker].id));
        self.heard_ms.insert(id, now_ms);
        self.heard_ms.retain(|_, heard_ms| *heard_ms + LEASE_MS / 2 >= now_ms);
        let workers = self.heard_ms.keys().map(|id| (*id, 0)).collect();
        let mut now = Renewed { workers, ..Renewed::default() };
        for (number, row) in self.rows.iter_mut().enumerate() {
            let partition = PartitionId(number as u32);
            let is_held = row.worker.is_some() && row.until_ms >= now_ms;
            if is_held && row.worker == Some(id) {
                row.until_ms = now_ms + LEASE_MS;
                if let Some(held) = self.workers[worker].held.get_mut(&partition.0) {
                    row.load = held.gauge.load(held.visits, Duration::from_millis(TEND_MS));
                }
                now.held.insert(partition, row.load);
            }
            match row.worker.filter(|_| is_held) {
                Some(holder) => {
                    let of_holder = now.workers.get_mut(&holder);
                    of_holder.into_iter().for_each(|load| *load += row.load.max(IDLE_LOAD));
                }
                None => now.free.push((partition, row.load.max(IDLE_LOAD))),
            }
        }
        let here = &mut self.workers[worker];
        // What was lost ends; what is left is handed over when its last visits are committed.
        let lost: Vec<u32> = here.held.keys().copied().collect();
        let lost: Vec<u32> =
            lost.into_iter().filter(|at| !now.held.contains_key(&PartitionId(*at))).collect();
        for at in lost {
            let held = here.held.remove(&at);
            self.report.lost += held.map_or(0, |held| held.waiting.len() as u64);
        }
        for held in here.held.values_mut() {
            held.until_ms = asked_ms + SAFE_MS;
        }
        now.held.retain(|at, _| here.held.get(&at.0).is_some_and(|held| !held.is_leaving));
        for at in left_by(id, &now) {
            here.held.entry(at.0).or_default().is_leaving = true;
        }
        for at in taken_by(id, &now) {
            self.take(worker, life, at.0, asked_ms);
        }
    }

    fn take(&mut self, worker: usize, life: u32, partition: u32, asked_ms: u64) {
        let now_ms = self.now_ms;
        let free_ms = self.free_ms(partition);
        let row = &mut self.rows[partition as usize];
        self.report.take_overs += u64::from(row.worker.is_some());
        row.worker = Some(WorkerId(self.workers[worker].id));
        row.until_ms = now_ms + LEASE_MS;
        row.epoch += 1;
        let epoch = row.epoch;
        if now_ms > 2 * LEASE_MS {
            self.report.longest_free_ms = self.report.longest_free_ms.max(free_ms);
        }
        if now_ms > self.faults_end_ms() + 4 * LEASE_MS {
            self.report.late_moves += 1;
        }
        // Every server counts as just asked; when it is due is read from what was committed.
        let every_ms = self.options.every_s * 1_000;
        let due = self.servers[partition as usize].iter().map(|&server| {
            let visited_ms = self.visited_ms[server as usize];
            let due_ms = if visited_ms == 0 { 0 } else { visited_ms + every_ms };
            Reverse((due_ms.max(now_ms + DELAY_MS), server))
        });
        let held =
            Held { epoch, until_ms: asked_ms + SAFE_MS, due: due.collect(), ..Held::default() };
        self.workers[worker].held.insert(partition, held);
        self.at(now_ms, Event::Look { worker, life, partition, epoch });
        self.at(now_ms + COMMIT_MS, Event::Commit { worker, life, partition, epoch });
    }

    /// How long nobody held a partition while the database was there.
    fn free_ms(&self, partition: u32) -> u64 {
        let row = &self.rows[partition as usize];
        let since_ms = match row.worker {
            // From the end of the lease, or since the last renewal where it ended by itself.
            Some(_) => row.until_ms.saturating_sub(LEASE_MS),
            None => row.free_since_ms,
        };
        let away: u64 = self
            .outages
            .iter()
            .map(|&(begin_ms, end_ms)| {
                end_ms.min(self.now_ms).saturating_sub(begin_ms.max(since_ms))
            })
            .sum();
        self.now_ms.saturating_sub(since_ms + away)
    }

    fn look(&mut self, worker: usize, life: u32, partition: u32, epoch: u64) {
        let (now_ms, careless) = (self.now_ms, self.options.careless);
        let Some(held) = self.workers[worker].held.get_mut(&partition) else { return };
        if held.epoch != epoch {
            return;
        }
        let mut asked = Vec::new();
        let may_ask = (now_ms < held.until_ms || careless) && !held.is_leaving;
        while may_ask && asked.len() < ASKED_TOGETHER {
            match held.due.peek() {
                Some(Reverse((due_ms, _))) if *due_ms <= now_ms => {
                    asked.extend(held.due.pop().map(|Reverse((_, server))| server));
                }
                _ => break,
            }
        }
        let every_ms = self.options.every_s * 1_000;
        for &server in &asked {
            held.due.push(Reverse((now_ms + every_ms.max(ANSWER_MS + DELAY_MS), server)));
            held.waiting.push(server);
            held.asked_ms = now_ms;
            held.visits += 1;
        }
        let late = now_ms > self.faults_end_ms();
        self.workers[worker].visits_at_end += if late { asked.len() as u64 } else { 0 };
        for server in asked {
            self.report.requests += 1;
            let ended_ms = self.ended_ms[server as usize];
            if ended_ms > 0 && now_ms < ended_ms + DELAY_MS {
                self.report.too_soon += 1;
            }
            self.ended_ms[server as usize] = now_ms + 1 + self.draws.below(ANSWER_MS);
        }
        self.at(now_ms + LOOK_MS, Event::Look { worker, life, partition, epoch });
    }

    fn commit(&mut self, worker: usize, life: u32, partition: u32, epoch: u64) {
        let (now_ms, id) = (self.now_ms, WorkerId(self.workers[worker].id));
        let is_away = self.is_away(now_ms);
        let Some(held) = self.workers[worker].held.get_mut(&partition) else { return };
        if held.epoch != epoch {
            return;
        }
        let again = Event::Commit { worker, life, partition, epoch };
        if is_away {
            self.at(now_ms + COMMIT_MS, again);
            return;
        }
        let row = &mut self.rows[partition as usize];
        if row.epoch != epoch {
            self.report.refused += 1;
            self.report.lost += held.waiting.len() as u64;
            self.workers[worker].held.remove(&partition);
            return;
        }
        let is_holder = row.worker == Some(id);
        for server in std::mem::take(&mut held.waiting) {
            self.visited_ms[server as usize] = now_ms;
            self.report.visits += 1;
            self.report.late += u64::from(!is_holder);
        }
        // It is handed over when no request is under way any more.
        if held.is_leaving && is_holder && now_ms >= held.asked_ms + ANSWER_MS {
            (row.worker, row.until_ms, row.free_since_ms) = (None, 0, now_ms);
            self.workers[worker].held.remove(&partition);
            return;
        }
        self.at(now_ms + COMMIT_MS, again);
    }

    fn judged(mut self) -> WorkersReport {
        let after_ms = self.faults_end_ms();
        self.report.unvisited =
            self.visited_ms.iter().filter(|visited_ms| **visited_ms < after_ms).count() as u64;
        let visits = || self.workers.iter().map(|worker| worker.visits_at_end);
        self.report.most_visits = visits().max().unwrap_or(0);
        self.report.least_visits = visits().min().unwrap_or(0);
        self.report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(seed: u64) -> WorkersArgs {
        WorkersArgs {
            workers: 8,
            partitions: 32,
            servers: 2_000,
            every_s: 120,
            time_s: 1_200,
            faults: 20,
            outages: 2,
            seed,
            careless: false,
        }
    }

    #[test]
    fn whatever_stops_no_server_is_asked_too_soon_and_all_are_visited() {
        let mut lost = 0;
        for seed in 1..6 {
            let seen = run(&small(seed));
            lost += seen.lost;
            assert_eq!((seen.too_soon, seen.late, seen.unvisited), (0, 0, 0), "{seed}: {seen:?}");
            assert!(seen.take_overs > 10, "{seed}: {seen:?}");
            // Several workers may fail at the same time.
            assert!(seen.longest_free_ms <= 3 * LEASE_MS, "{seed}: {seen:?}");
        }
        assert!(lost > 0, "no visit was under way when its worker failed");
    }

    #[test]
    fn a_holder_that_asks_on_after_its_lease_is_noticed() {
        let careless = |seed| WorkersArgs { careless: true, ..small(seed) };
        let too_soon: u64 = (1..6).map(|seed| run(&careless(seed)).too_soon).sum();
        assert!(too_soon > 0);
    }
}
