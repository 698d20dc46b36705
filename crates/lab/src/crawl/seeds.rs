//! Many small worlds, one for each seed: those that broke a law are kept in a file and tried first
//! the next time.

use std::{collections::BTreeSet, fs, path::Path};

use nenrin_order::Strategy;
use nenrin_revisit::RevisitSettings;
use nenrin_structure::RoundsBy;
use serde::Serialize;

use super::{CrawlOptions, run};
use crate::{LabError, parallel};

/// Policies of the worlds whose pages have times of their own.
const POLICIES: [&str; 5] =
    ["auto", "mle.mix(0.1-10,2nd=7d)", "aimd(d=1d,r=0.5)", "every(3d)", "nutch(7d)"];

/// Orders in which new pages are collected.
const ORDERS: [Strategy; 3] = [Strategy::Auto, Strategy::BreadthFirst, Strategy::IprDl1];

const DAY_S: i64 = 86_400;

const NIGHTS: &str = "22:00-06:00 Asia/Tokyo";

/// What many seeds came to.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SeedsReport {
    /// Worlds simulated.
    pub worlds: u64,
    /// Requests made in them.
    pub fetches: u64,
    /// Visits committed in them.
    pub visits: u64,
    /// Crashes of workers.
    pub crashes: u64,
    /// Seeds that broke a law, with the laws.
    pub failing: Vec<(u64, Vec<String>)>,
}

impl SeedsReport {
    /// In one line, for people.
    pub fn summary(&self, elapsed_s: f64) -> String {
        format!(
            "{} worlds in {elapsed_s:.1} s: {} requests, {} visits, {} crashes; {} broke a law",
            self.worlds,
            self.fetches,
            self.visits,
            self.crashes,
            self.failing.len()
        )
    }

    /// The laws that were broken, a line each.
    pub fn broken(&self) -> Vec<String> {
        let failing = self.failing.iter();
        failing.flat_map(|(seed, violations)| super::broken(*seed, violations)).collect()
    }
}

/// A small world: 300 pages on ten servers, for a month or two, with faults, odd servers, changing
/// robots.txt files and crashes. The seed also chooses how it is collected.
pub fn small_world(seed: u64, partitions: u32) -> CrawlOptions {
    let policy = POLICIES[(seed / 2) as usize % POLICIES.len()];
    let usual = RevisitSettings::default();
    let continuous = seed.is_multiple_of(2).then(|| RevisitSettings {
        policy: policy.parse().unwrap_or(usual.policy),
        visits_per_day: (seed % 7 == 3).then_some(20),
        ..usual
    });
    // Where a day has few visits, a page may have to wait for weeks until it has its turn.
    let days = if matches!(seed % 7, 3 | 5) { 60 } else { 30 };
    CrawlOptions {
        seed,
        servers: 10,
        pages: 30,
        time_s: days * DAY_S,
        period_s: 3 * DAY_S,
        rounds_by: RoundsBy::ALL[(seed / 2) as usize % RoundsBy::ALL.len()],
        continuous,
        visits_per_day: (seed % 7 == 5).then_some(60),
        window: if seed % 13 == 4 { NIGHTS.parse().ok() } else { None },
        delay_ms: (seed % 11 == 5).then_some(30_000),
        faults: 0.02,
        partitions,
        crashes: 6,
        hand_overs: if partitions > 1 { 6 } else { 0 },
        oddities: true,
        robots_changes: true,
        servers_kept: Some((seed % 10) as usize),
        order: ORDERS[(seed / 3) as usize % ORDERS.len()],
        overlap: seed % 10 == 7,
        ..CrawlOptions::default()
    }
}

/// Simulates `count` small worlds from `first` on, and before them those that failed the last time.
/// `failing` names them, a number a line; it is rewritten with those that fail now.
pub fn run_seeds(
    first: u64,
    count: u64,
    partitions: u32,
    threads: usize,
    failing: Option<&Path>,
) -> Result<SeedsReport, LabError> {
    let kept = failing.map(read_kept).transpose()?.unwrap_or_default();
    let rest = (first..first.saturating_add(count)).filter(|seed| !kept.contains(seed));
    let seeds: Vec<u64> = kept.iter().copied().chain(rest).collect();
    let worlds = parallel::each(&seeds, threads, |&seed| run(&small_world(seed, partitions)));
    let mut report = SeedsReport::default();
    for (seed, world) in seeds.into_iter().zip(worlds) {
        let world = world?;
        report.worlds += 1;
        report.fetches += world.fetches;
        report.visits += world.visits;
        report.crashes += world.crashes;
        if !world.violations.is_empty() {
            report.failing.push((seed, world.violations));
        }
    }
    report.failing.sort_unstable();
    if let Some(path) = failing {
        write_kept(path, &report)?;
    }
    Ok(report)
}

fn read_kept(path: &Path) -> Result<BTreeSet<u64>, LabError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text.split_whitespace().filter_map(|seed| seed.parse().ok()).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(LabError::file("read", path)(error)),
    }
}

fn write_kept(path: &Path, report: &SeedsReport) -> Result<(), LabError> {
    let text: String = report.failing.iter().map(|(seed, _)| format!("{seed}\n")).collect();
    fs::write(path, text).map_err(LabError::file("write", path))
}

#[cfg(test)]
mod tests {
    use nenrin_urls::CanonicalUrl;

    use super::*;
    use crate::crawl::checkers::Turns;

    const FAILED_ONCE: [(u64, u32); 25] = [
        (50046, 2),
        (50046, 8),
        // After a crash the archive's visits of the day were not all counted.
        (12, 1),
        (152, 1),
        (894, 1),
        // A sitemap was trusted for its silence about pages that another site had just visited.
        (67, 1),
        (297, 1),
        (787, 1),
        // Pages that change often took the visits of the other partitions.
        (80, 8),
        (220, 8),
        (528, 8),
        (584, 8),
        (962, 8),
        (990, 8),
        // Known pages whose visits are worth much took the turns of new ones that had waited longer.
        (530, 1),
        (780, 8),
        // The least of the known pages, by worth, and those that were not modified, got no turn.
        (250, 1),
        (460, 1),
        (670, 1),
        // A server with one or two turns a day gave them to known pages, never to new ones.
        (38, 8),
        (360, 8),
        (500, 8),
        (570, 8),
        // Pages of a shell that stayed as they were counted as pages that look otherwise.
        (727, 8),
        // The law held a server to its look before any real page was seen after it.
        (553, 1),
    ];

    /// `NENRIN_SEEDS` tries more.
    #[test]
    fn small_worlds_keep_every_law() {
        let seeds = std::env::var("NENRIN_SEEDS").map_or(10, |seeds| seeds.parse().unwrap());
        for partitions in [1, 8] {
            let report = run_seeds(1, seeds, partitions, 2, None).unwrap();
            assert_eq!(report.failing, Vec::new(), "{partitions} partitions");
            assert_eq!(report.worlds, seeds);
            assert!(report.visits > seeds * 300, "{report:?}");
        }
    }

    /// Seeds that broke a law once, with the number of partitions.
    #[test]
    fn worlds_that_broke_a_law_once_keep_every_law() {
        for (seed, partitions) in FAILED_ONCE {
            let report = run(&small_world(seed, partitions)).unwrap();
            assert_eq!(report.violations, Vec::<String>::new(), "{seed} in {partitions}");
        }
    }

    /// Otherwise the law that no page waits for ever could not be broken.
    #[test]
    fn worlds_last_longer_than_a_page_may_have_to_wait() {
        // Real pages, and links to pages that do not exist.
        let server = |n: u64| CanonicalUrl::parse(&format!("http://s{n}.example/")).unwrap();
        let counts = (0..10).map(|n| (server(n).server(), 36)).collect();
        for (seed, partitions) in (1..=70).flat_map(|seed| [(seed, 1), (seed, 8)]) {
            let world = small_world(seed, partitions);
            let Some(shared) = world.shared_visits() else { continue };
            let wait_s = Turns::of_counts(&counts, partitions as usize, shared).longest_s();
            assert!(wait_s + 7 * DAY_S < world.time_s, "seed {seed} in {partitions}: {wait_s} s");
        }
    }

    #[test]
    fn every_way_of_collecting_has_its_worlds() {
        let worlds: Vec<CrawlOptions> = (1..=100).map(|seed| small_world(seed, 1)).collect();
        assert!(worlds.iter().any(|world| world.window.is_some()));
        assert!(worlds.iter().any(|world| world.overlap));
        for by in RoundsBy::ALL {
            assert!(worlds.iter().any(|world| world.rounds_by == by && world.continuous.is_none()));
        }
        for order in ORDERS {
            assert!(worlds.iter().any(|world| world.order == order));
        }
    }

    #[test]
    fn seeds_that_failed_are_tried_again_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("failing");
        fs::write(&path, "3\n900\n").unwrap();
        let report = run_seeds(1, 3, 1, 1, Some(&path)).unwrap();
        assert_eq!((report.worlds, report.failing), (4, Vec::new()));
        assert_eq!(fs::read_to_string(&path).unwrap(), "");
    }
}
