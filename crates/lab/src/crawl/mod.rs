//! The crawler on a simulated web: the shipped machine and state, driven from an event queue.
//!
//! Read in this order:
//! - [`run`] and [`CrawlOptions`]: one simulation, from a seed to a [`CrawlReport`];
//! - [`web`]: the simulated servers, whose pages change and fail by the seed, and [`oddities`]: what
//!   is wrong with some of them;
//! - [`bad_days`]: what goes wrong with the crawler's own computer;
//! - [`simulation`]: the event queue that carries out the machine's commands;
//! - [`checkers`]: one law each, watching from outside;
//! - [`seeds`]: thousands of small worlds, one after the other.
//! - [`compare_orders`]: which share of the importance was collected early, by crawl order.

pub mod bad_days;
pub mod checkers;
pub mod oddities;
pub mod ordering;
mod sabotage;
pub mod seeds;
pub mod simulation;
pub mod web;

use nenrin_order::Strategy;
use nenrin_revisit::{CollectingWindow, PolicySpec, RevisitSettings};
use nenrin_structure::RoundsBy;
use serde::Serialize;

use self::checkers::Shared;
pub use ordering::{OrderOutcome, compare_orders};
pub use sabotage::Sabotage;
pub use simulation::run;

/// One simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct CrawlOptions {
    /// Where everything random begins.
    pub seed: u64,
    /// Web servers.
    pub servers: u32,
    /// Pages on each.
    pub pages: u32,
    /// Simulated time.
    pub time_s: i64,
    /// From the beginning of a round to the next, for sites that are collected in rounds.
    pub period_s: i64,
    /// Which pages a round visits.
    pub rounds_by: RoundsBy,
    /// How pages are revisited where each has its own schedule; `None` collects in rounds.
    pub continuous: Option<RevisitSettings>,
    /// Visits a day to all pages with a schedule of their own together.
    pub visits_per_day: Option<u64>,
    /// When the sites may be asked.
    pub window: Option<CollectingWindow>,
    /// The sites' own pause between two requests to a server.
    pub delay_ms: Option<u64>,
    /// Share of answers that are faults.
    pub faults: f64,
    /// Partitions, each with a worker of its own.
    pub partitions: u32,
    /// Crashes of workers, at moments taken from the seed.
    pub crashes: u32,
    /// Hand-overs of partitions to other workers, at moments taken from the seed.
    pub hand_overs: u32,
    /// Days on which the clock is wrong, on which no name can be looked up, and on which no descriptor
    /// is left: so many of each, at moments taken from the seed.
    pub bad_days: u32,
    /// Whether some servers show missing pages, challenge, have traps or wrong dates.
    pub oddities: bool,
    /// Whether rules appear and vanish in robots.txt files, or the files cannot be had.
    pub robots_changes: bool,
    /// Servers that the crawler may keep in memory at rest, if not its own default.
    pub servers_kept: Option<usize>,
    /// Which new page goes first.
    pub order: Strategy,
    /// Whether some pages are linked to much more often than others, in whatever directory.
    pub favourites: bool,
    /// Whether one more site, collected in rounds, has the pages of all others.
    pub overlap: bool,
    /// A law to be broken on purpose, to see its checker fail.
    pub sabotage: Option<Sabotage>,
}

impl Default for CrawlOptions {
    fn default() -> Self {
        Self {
            seed: 1,
            servers: 200,
            pages: 50,
            time_s: 365 * 86_400,
            period_s: 7 * 86_400,
            rounds_by: RoundsBy::All,
            continuous: None,
            visits_per_day: None,
            window: None,
            delay_ms: None,
            faults: 0.02,
            partitions: 1,
            crashes: 20,
            hand_overs: 0,
            bad_days: 0,
            oddities: true,
            robots_changes: true,
            servers_kept: None,
            order: Strategy::Auto,
            favourites: false,
            overlap: false,
            sabotage: None,
        }
    }
}

impl CrawlOptions {
    /// The visits of a day that pages with times of their own share, where there is a budget.
    pub fn shared_visits(&self) -> Option<Shared> {
        let settings = self.continuous.as_ref()?;
        let of_site = settings.visits_per_day;
        let visits = of_site.or(self.visits_per_day)?;
        // Each server is a site, but with partitions one site has them all.
        let by_all = of_site.is_none() || self.partitions > 1;
        let by_worth = matches!(settings.policy, PolicySpec::Auto { .. });
        Some(Shared { visits, by_all, by_worth })
    }
}

/// What a simulation came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CrawlReport {
    /// The seed it grew from.
    pub seed: u64,
    /// Requests made, robots.txt included.
    pub fetches: u64,
    /// Events given to the machine.
    pub events: u64,
    /// Visits committed.
    pub visits: u64,
    /// Requests for pages.
    pub asked: u64,
    /// Versions committed.
    pub versions: u64,
    /// Pages known at the end.
    pub pages: u64,
    /// Visits to pages that were gone.
    pub gone: u64,
    /// Loads from the long-term queue.
    pub loads: u64,
    /// The most pages in the short-term queue at once.
    pub queued_max: u64,
    /// How far the intervals of the most stretched server are stretched at the end.
    pub stretch_percent: u64,
    /// Rounds finished.
    pub rounds: u64,
    /// Pages that they left out.
    pub skipped: u64,
    /// Batches of mail taken in from other partitions.
    pub mail: u64,
    /// Score that pages gave to pages of other partitions.
    pub shares: f64,
    /// The part of it that they got themselves after their own visits, and handed on.
    pub later_shares: f64,
    /// Crashes of workers.
    pub crashes: u64,
    /// Partitions handed over.
    pub hand_overs: u64,
    /// Pages that were visited while the clock was ahead, and were made due again.
    pub set_back: u64,
    /// Digest of the whole trace: the same seed gives the same.
    pub trace: String,
    /// Laws broken; empty is right.
    pub violations: Vec<String>,
}

impl CrawlReport {
    /// For people: what happened, and which laws were broken.
    pub fn lines(&self) -> Vec<String> {
        let counts = [
            ("requests", self.fetches),
            ("events", self.events),
            ("visits", self.visits),
            ("versions", self.versions),
            ("pages", self.pages),
            ("gone", self.gone),
            ("rounds", self.rounds),
            ("skipped", self.skipped),
            ("loads", self.loads),
            ("queued", self.queued_max),
            ("crashes", self.crashes),
        ];
        let mut lines: Vec<String> =
            counts.iter().map(|(name, value)| format!("  {name:<9}{value:>12}")).collect();
        lines.push(format!("  trace    {}", self.trace));
        if self.violations.is_empty() {
            let kept = "no server asked sooner than allowed, no page lost, no change seen twice";
            lines.push(kept.to_owned());
        }
        lines.extend(broken(self.seed, &self.violations));
        lines
    }
}

/// Broken laws, a line each.
fn broken(seed: u64, violations: &[String]) -> impl Iterator<Item = String> {
    violations.iter().map(move |violation| format!("broken: {violation} (seed {seed})"))
}
