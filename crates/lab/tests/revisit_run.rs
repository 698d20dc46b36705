//! `lab revisit` and `lab budget` on a small log, and what they promise to other programs.

#![expect(clippy::unwrap_used, reason = "a test fails where data is odd")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use nenrin_lab::budget::{self, BudgetOptions};
use nenrin_lab::revisit::{self, RevisitOptions};
use nenrin_lab::updates::{UpdateLog, Window};

const DAY_S: i64 = 86_400;

/// 120 pages in three directories of two sources; page n changes about every 3 + n % 40 days.
fn write_log(dir: &Path) -> PathBuf {
    let mut text = String::new();
    for page in 0..120i64 {
        let gap = 3 + page % 40;
        let updates: Vec<String> = (1..400)
            .filter(|day| day % gap == page % gap)
            .map(|day| (day * DAY_S + 60 * page).to_string())
            .collect();
        let (source, end) = (page % 2, 400 * DAY_S);
        let updates = updates.join(",");
        writeln!(text, "{page}\td{}/page{page}.html\t{source}\t0\t{end}\t{updates}", page % 3)
            .unwrap();
    }
    let path = dir.join("log.tsv");
    std::fs::write(&path, text).unwrap();
    path
}

fn read(log: &Path, resolution_s: i64) -> UpdateLog {
    UpdateLog::read(log, None, Window { resolution_s, ..Window::default() }).unwrap()
}

fn options(policies: &[&str]) -> RevisitOptions {
    RevisitOptions {
        policies: policies.iter().map(|name| name.parse().unwrap()).collect(),
        visits: None,
        slots: true,
        compare: false,
        folds: None,
        visits_of: None,
        out: None,
    }
}

#[test]
fn results_have_the_fields_that_other_programs_read() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options(&["mle.mix(0.1-10,2nd=7d)", "auto"]);
    options.visits = Some(3_000);
    options.out = Some(dir.path().join("out"));
    let results = revisit::run(&read(&write_log(dir.path()), 86_400), &options).unwrap();
    assert_eq!(results["pages"], 120);
    assert!(results["versions"].as_u64().unwrap() > 1_000);
    let policies = results["policies"].as_array().unwrap();
    assert_eq!(policies[0]["name"], "mle.mix(0.1-10,2nd=7d)");
    for policy in policies {
        for field in ["coverage", "efficiency", "coverage_total", "efficiency_total", "delay_days"]
        {
            assert!(policy[field].as_f64().unwrap() > 0.0, "{field}");
        }
        assert!(policy["by_interval"].as_array().unwrap().len() > 10);
        assert_eq!(policy["by_month"].as_array().unwrap().len(), 12);
    }
    let visits = policies[1]["visits"].as_u64().unwrap();
    assert!((2_700..=3_060).contains(&visits), "{visits} visits of a budget of 3,000");
    let report = std::fs::read_to_string(dir.path().join("out/report.html")).unwrap();
    for figure in 4..=9 {
        assert!(report.contains(&format!("(fig. {figure})")), "figure {figure}");
    }
}

#[test]
fn the_same_log_gives_the_same_results_with_hour_slots_too() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options(&["auto(fair=0.5)", "nutch(7d)"]);
    options.visits = Some(2_000);
    let log = read(&write_log(dir.path()), 3_600);
    let results = revisit::run(&log, &options).unwrap();
    assert_eq!(results, revisit::run(&log, &options).unwrap());
    assert!(results["policies"][0]["visits"].as_u64().unwrap() <= 2_040);
}

#[test]
fn cross_validation_tries_every_source_once_at_the_rivals_visits() {
    let dir = tempfile::tempdir().unwrap();
    let log = read(&write_log(dir.path()), 86_400);
    let mut options = options(&["auto", "nutch(7d)"]);
    options.folds = Some(2);
    let results = revisit::run(&log, &options).unwrap();
    let compared = results["compared"].as_array().unwrap();
    assert_eq!((compared.len(), &compared[0]["rival"]), (1, &"nutch(7d)".into()));
    let folds = compared[0]["folds"].as_array().unwrap();
    let pages: u64 = folds.iter().map(|fold| fold["pages"].as_u64().unwrap()).sum();
    assert_eq!((folds.len(), pages), (2, 120));
    for fold in folds {
        let (visits, budget) = (&fold["visits_alone"], &fold["rival_visits"]);
        assert!(visits.as_f64().unwrap() <= 1.02 * budget.as_f64().unwrap(), "{fold}");
    }
    options.slots = false;
    let results = revisit::run(&log, &options).unwrap();
    assert_eq!(results["together"][1]["folds"].as_array().unwrap().len(), 2);
}

#[test]
fn a_source_makes_no_more_visits_a_day_than_it_may_and_uses_them_well() {
    let dir = tempfile::tempdir().unwrap();
    let log = read(&write_log(dir.path()), 86_400);
    let mut options = options(&["auto", "every(1d)"]);
    options.slots = false;
    options.visits_of = Some("every(10d)".parse().unwrap());
    let results = revisit::run(&log, &options).unwrap();
    let of = |at: usize, field: &str| results["policies"][at][field].as_f64().unwrap();
    let allowed = 120.0 * 365.0 / 10.0;
    for policy in [0, 1] {
        assert!(of(policy, "visits") <= 1.02 * allowed, "{results:#}");
    }
    // Rivals that want more than they may wait in turn, whatever the page.
    assert!(of(0, "visits") >= 0.8 * allowed, "{}", of(0, "visits"));
    assert!(of(0, "coverage_total") > of(1, "coverage_total") + 0.05, "{results:#}");
}

#[test]
fn as_crawled_a_total_is_kept_and_the_first_policy_is_held_against_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let log = read(&write_log(dir.path()), 86_400);
    let mut options = options(&["auto", "nutch(7d)"]);
    options.slots = false;
    options.visits = Some(2_000);
    let results = revisit::run(&log, &options).unwrap();
    let visits = results["policies"][0]["visits"].as_u64().unwrap();
    assert!((1_900..=2_010).contains(&visits), "{visits} visits of a budget of 2,000");
    options.visits = None;
    options.compare = true;
    let results = revisit::run(&log, &options).unwrap();
    let held = &results["compared"][0];
    for how in ["together", "alone", "per_day"] {
        let visits = |who: &str| held[how][who]["visits"].as_f64().unwrap();
        assert!(visits("ours") <= 1.02 * held["visits"].as_f64().unwrap(), "{held:#}");
        assert_eq!(held[how]["sources"], 2);
    }
}

#[test]
fn a_log_without_anything_to_measure_is_refused_with_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.tsv");
    let problem = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let log = UpdateLog::read(&path, None, Window::default());
        log.and_then(|log| log.check()).unwrap_err().to_string()
    };
    assert!(problem("").contains("is empty"));
    assert!(problem("1\ta\t1\t0\t864000000\t5,6\n").contains("no page with at least 2 updates"));
    assert!(problem("1\ta\t1\t0\t1704067200000\t5\n").contains("milliseconds"));
    let log = read(&write_log(dir.path()), 86_400);
    let options = RevisitOptions { folds: Some(1), ..options(&["auto"]) };
    assert!(revisit::run(&log, &options).unwrap_err().to_string().contains("at least 2 parts"));
}

#[test]
fn the_root_of_the_rate_delays_least_and_last_modified_weights_cut_the_delay() {
    let dir = tempfile::tempdir().unwrap();
    let options = BudgetOptions {
        learn_days: 40,
        visits_per_day: 8.0,
        weights: vec!["no-lm=8".parse().unwrap()],
        out: Some(dir.path().join("out")),
    };
    let results = budget::run(&read(&write_log(dir.path()), 86_400), &options).unwrap();
    let delay = |name: &str| {
        let allocations = results["allocations"].as_array().unwrap();
        let found = allocations.iter().find(|a| a["name"].as_str().unwrap().starts_with(name));
        found.unwrap()["delay_days"].as_f64().unwrap()
    };
    assert!(delay("root") < delay("proportional"));
    assert!(delay("root(ext=1,name=1,no-lm=8)") < delay("root"));
    let report = std::fs::read_to_string(dir.path().join("out/report.html")).unwrap();
    assert!((2..=4).all(|figure| report.contains(&format!("(fig. {figure})"))));
}
