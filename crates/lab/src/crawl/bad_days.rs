//! Bad days of the computer that the crawler runs on: its clock is wrong, no name can be looked up, or
//! no descriptor is left. The web itself is as it always is.

use nenrin_crawl::Trouble;
use nenrin_fetch::FetchFailure;
use serde::Serialize;

use super::web::Web;

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 86_400_000;
/// How far the clock is ahead, or behind, on the days on which it is wrong.
const WRONG_BY_MS: [i64; 6] =
    [20 * 365 * DAY_MS, -2 * DAY_MS, 10 * MINUTE_MS, -10 * MINUTE_MS, 40 * DAY_MS, -90 * MINUTE_MS];
/// Bad days begin in this share of the time, so that what they leave behind can be seen after them.
const BEGIN_WITHIN: f64 = 0.6;
/// They last this long at most.
const LONGEST_MS: i64 = 5 * DAY_MS;

/// What is wrong on a bad day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Bad {
    /// The clock is so much ahead; behind if negative.
    Clock(i64),
    /// No name can be looked up.
    NoNames,
    /// No connection can be opened.
    NoDescriptors,
}

/// A time in which something is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct BadDay {
    /// When it begins.
    pub from_ms: i64,
    /// When it is over.
    pub to_ms: i64,
    /// What is wrong.
    pub bad: Bad,
}

/// The bad days of a world.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BadDays(Vec<BadDay>);

impl BadDays {
    /// So many of each kind in a time, by the web's seed.
    pub fn of(web: &Web, each: u32, begin_ms: i64, time_ms: i64) -> Self {
        let day = &|kind: u64, n: u32| {
            let draw = |what: u64| web.draw(&[50 + kind, u64::from(n), what]);
            let from_ms = begin_ms + (draw(0) * BEGIN_WITHIN * time_ms as f64) as i64;
            let longest_ms = LONGEST_MS.min(time_ms / 8);
            let to_ms = from_ms + MINUTE_MS + (draw(1) * longest_ms as f64) as i64;
            let bad = match kind {
                0 => Bad::Clock(WRONG_BY_MS[n as usize % WRONG_BY_MS.len()]),
                1 => Bad::NoNames,
                _ => Bad::NoDescriptors,
            };
            BadDay { from_ms, to_ms, bad }
        };
        Self((0..3).flat_map(|kind| (0..each).map(move |n| day(kind, n))).collect())
    }

    fn at(&self, now_ms: i64) -> impl Iterator<Item = Bad> {
        let is_now = move |day: &&BadDay| (day.from_ms..day.to_ms).contains(&now_ms);
        self.0.iter().filter(is_now).map(|day| day.bad)
    }

    /// How far the clock is ahead at a time.
    pub fn ahead_ms(&self, now_ms: i64) -> i64 {
        let ahead = |bad| if let Bad::Clock(ahead_ms) = bad { ahead_ms } else { 0 };
        self.at(now_ms).map(ahead).sum()
    }

    /// When the clock is turned.
    pub fn turns_ms(&self) -> Vec<i64> {
        let clocks = self.0.iter().filter(|day| matches!(day.bad, Bad::Clock(_)));
        clocks.flat_map(|day| [day.from_ms, day.to_ms]).collect()
    }

    /// What comes of any request at a time, if none can succeed.
    pub fn trouble(&self, now_ms: i64, host: &str) -> Option<Trouble> {
        let host = host.to_owned();
        let failure = self.at(now_ms).find_map(|bad| match bad {
            Bad::Clock(_) => None,
            Bad::NoNames => {
                let reason = "Temporary failure in name resolution".to_owned();
                Some(FetchFailure::Dns { host: host.clone(), reason })
            }
            Bad::NoDescriptors => {
                let reason = "Too many open files (os error 24)".to_owned();
                Some(FetchFailure::Connect { host: host.clone(), port: 80, reason })
            }
        });
        failure.as_ref().map(Trouble::of)
    }
}

#[cfg(test)]
mod tests {
    use nenrin_revisit::RevisitSettings;

    use super::*;
    use crate::crawl::{CrawlOptions, Sabotage, run};

    fn world(seed: u64, policy: Option<&str>) -> CrawlOptions {
        let settings = |policy: &str| RevisitSettings {
            policy: policy.parse().unwrap(),
            ..RevisitSettings::default()
        };
        CrawlOptions {
            seed,
            servers: 6,
            pages: 20,
            time_s: 120 * 86_400,
            crashes: 4,
            oddities: false,
            continuous: policy.map(settings),
            bad_days: 6,
            ..CrawlOptions::default()
        }
    }

    #[test]
    fn no_law_is_broken_when_the_clock_jumps_and_names_and_descriptors_are_gone_for_days() {
        for seed in 1..=6 {
            let options = world(seed, None);
            let report = run(&options).unwrap();
            assert_eq!(report.violations, Vec::<String>::new(), "seed {seed}");
            assert!(report.pages >= 100, "seed {seed}: {report:?}");
            assert!(report.set_back > 0, "seed {seed}: {report:?}");
            let quiet = run(&CrawlOptions { bad_days: 0, ..options }).unwrap();
            // Days on which nothing can be had take visits and versions, but not many.
            assert!(report.visits * 10 > quiet.visits * 6, "{report:?}\n{quiet:?}");
            assert!(report.versions * 10 > quiet.versions * 6, "{report:?}\n{quiet:?}");
        }
    }

    #[test]
    fn days_without_an_answer_do_not_make_servers_look_overloaded() {
        for seed in 1..=3 {
            let options = world(seed, Some("every(2d)"));
            let report = run(&options).unwrap();
            assert_eq!(report.violations, Vec::<String>::new(), "seed {seed}");
            assert_eq!(report.stretch_percent, 100, "seed {seed}: {report:?}");
            let quiet = run(&CrawlOptions { bad_days: 0, ..options }).unwrap();
            assert!(report.visits * 10 > quiet.visits * 8, "{report:?}\n{quiet:?}");
        }
    }

    #[test]
    fn missing_pages_are_known_as_such_after_the_clock_was_set_back() {
        for seed in [10, 15] {
            let options = CrawlOptions { oddities: true, ..world(seed, Some("every(2d)")) };
            let report = run(&options).unwrap();
            assert_eq!(report.violations, Vec::<String>::new(), "seed {seed}");
            assert!(report.set_back > 0, "seed {seed}: {report:?}");
        }
    }

    /// What the program does about a clock that was ahead is what keeps pages from being forgotten.
    #[test]
    fn a_clock_that_was_ahead_and_is_believed_is_noticed() {
        let found = (1..=6).any(|seed| {
            let sabotage = Some(Sabotage::BelievesTheClock);
            let options = CrawlOptions { sabotage, ..world(seed, Some("every(2d)")) };
            let report = run(&options).unwrap();
            report.violations.iter().any(|found| found.contains("is due in"))
        });
        assert!(found);
    }

    #[test]
    fn bad_days_of_every_kind_begin_and_end_within_the_time() {
        let web = Web::new(7, 2, 2, 0.0);
        let days = BadDays::of(&web, 6, 1000, 100 * DAY_MS);
        assert_eq!(days.0.len(), 18);
        assert!(days.0.iter().all(|day| day.from_ms >= 1000 && day.from_ms < day.to_ms));
        assert!(days.0.iter().all(|day| day.to_ms < 1000 + 80 * DAY_MS));
        assert_eq!(days.turns_ms().len(), 12);
        assert_eq!(days.ahead_ms(1000 + 99 * DAY_MS), 0);
        let names = days.0.iter().find(|day| day.bad == Bad::NoNames).unwrap();
        assert!(days.trouble(names.from_ms, "a.example").is_some());
        assert!(days.trouble(1000 + 99 * DAY_MS, "a.example").is_none());
    }
}
