//! The laws hold, and each checker can fail.

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
    let policies = ["auto", "mle.mix(0.1-10,2nd=7d)", "every(2d)", "aimd(d=1d,r=0.5)", "budget"];
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

fn divided(options: CrawlOptions) -> CrawlOptions {
    CrawlOptions { partitions: 4, hand_overs: 6, ..options }
}

#[test]
fn scores_rounds_and_budgets_are_shared_by_the_partitions() {
    let mut continuous = continuous("auto");
    continuous.continuous.as_mut().unwrap().visits_per_day = Some(10);
    let rounds = CrawlOptions { continuous: None, ..continuous.clone() };
    for (seed, options) in (1..=4).zip([&continuous, &rounds].into_iter().cycle()) {
        let report = run(&divided(CrawlOptions { seed, ..options.clone() })).unwrap();
        assert_eq!(report.violations, Vec::<String>::new(), "seed {seed}");
        assert!(report.shares > 1.0, "seed {seed}: {report:?}");
        let later = 0.0..report.shares;
        assert!(report.later_shares > 0.0 && later.contains(&report.later_shares), "{report:?}");
        if options.continuous.is_some() {
            // The site's visits of 45 days are spent, wherever its pages are.
            assert!((200..=450 + 12 * 4).contains(&report.asked), "seed {seed}: {report:?}");
        } else {
            assert!(report.rounds >= 4 * 6, "seed {seed}: {report:?}");
        }
    }
}

#[test]
fn the_budget_of_the_archive_is_shared_by_the_partitions() {
    let options = CrawlOptions { visits_per_day: Some(10), ..continuous("every(1d)") };
    for seed in 1..=3 {
        let options = divided(CrawlOptions { seed, ..options.clone() });
        let report = run(&options).unwrap();
        assert_eq!(report.violations, Vec::<String>::new(), "seed {seed}");
        assert!((300..=450 + 12 * 4).contains(&report.asked), "seed {seed}: {report:?}");
        let sabotage = Some(Sabotage::UndividedBudget);
        let undivided = run(&CrawlOptions { sabotage, ..options }).unwrap();
        let is_noticed = |found: &String| found.contains("visits on day");
        assert!(undivided.violations.iter().any(is_noticed), "seed {seed}: {undivided:?}");
    }
}

#[test]
fn mail_that_gets_lost_is_noticed() {
    let options = CrawlOptions { sabotage: Some(Sabotage::LosesMail), ..continuous("auto") };
    let report = run(&divided(options)).unwrap();
    assert!(report.violations.iter().any(|found| found.contains("was sent")), "{report:?}");
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
fn pages_that_wait_too_long_for_their_turn_in_a_days_visits_are_noticed() {
    let mut of_site = continuous("auto");
    of_site.continuous.as_mut().unwrap().visits_per_day = Some(5);
    let of_archive = CrawlOptions { visits_per_day: Some(20), ..continuous("auto") };
    for options in [of_site, of_archive] {
        assert_eq!(run(&options).unwrap().violations, Vec::<String>::new());
        let sabotage = Some(Sabotage::LeakyBuckets);
        let report = run(&CrawlOptions { sabotage, ..options }).unwrap();
        let is_noticed = |found: &String| found.contains("has been due");
        assert!(report.violations.iter().any(is_noticed), "{report:?}");
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

#[test]
fn no_law_is_broken_with_partitions_that_crash_and_are_handed_over() {
    let rounds = CrawlOptions { continuous: None, servers: 12, ..continuous("auto") };
    for options in [rounds, CrawlOptions { servers: 12, ..continuous("every(2d)") }] {
        let options = CrawlOptions { partitions: 8, hand_overs: 8, ..options };
        let report = run(&options).unwrap();
        assert_eq!(report.violations, Vec::<String>::new());
        assert_eq!(report, run(&options).unwrap(), "the same seed, the same trace");
        assert_eq!((report.crashes, report.hand_overs), (6, 8));
        assert!(report.mail > 5, "{report:?}");
        // Every server is reached, though only the first has a site.
        assert!(report.pages >= 12 * 20, "{report:?}");
    }
}

#[test]
fn one_partition_more_or_less_loses_no_page() {
    let whole = CrawlOptions { oddities: false, ..continuous("every(2d)") };
    let reach = |partitions| run(&CrawlOptions { partitions, ..whole.clone() }).unwrap().pages;
    assert_eq!(reach(2), reach(5));
}
