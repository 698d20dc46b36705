//! The crawler on a simulated web: the shipped machine and state, driven from an event queue.
//!
//! Read in this order:
//! - [`run`] and [`CrawlOptions`]: one simulation, from a seed to a [`CrawlReport`];
//! - [`web`]: the simulated servers, whose pages change and fail by the seed, and [`oddities`]: what
//!   is wrong with some of them;
//! - [`simulation`]: the event queue that carries out the machine's commands;
//! - [`checkers`]: one law each, watching from outside.

pub mod checkers;
pub mod oddities;
pub mod simulation;
pub mod web;

use serde::Serialize;

pub use simulation::{Sabotage, run};

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
    /// From the beginning of a round to the next.
    pub period_s: i64,
    /// Share of answers that are faults.
    pub faults: f64,
    /// Crashes of the crawler, at moments taken from the seed.
    pub crashes: u32,
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
            faults: 0.02,
            crashes: 20,
            sabotage: None,
        }
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
    /// Versions committed.
    pub versions: u64,
    /// Pages known at the end.
    pub pages: u64,
    /// Rounds finished.
    pub rounds: u64,
    /// Crashes lived through.
    pub crashes: u64,
    /// Digest of the whole trace: the same seed gives the same.
    pub trace: String,
    /// Laws broken; empty is right.
    pub violations: Vec<String>,
}
