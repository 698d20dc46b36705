//! Small worlds, one for each seed: `seeds FIRST COUNT [FILE [PARTITIONS]]`, as `nenrin lab crawl --small` does;
//! or `seeds year` and `seeds year continuous`, as `nenrin lab crawl` does.
#![expect(clippy::print_stdout, reason = "this is a report for a person")]
#![expect(clippy::unwrap_used, reason = "an experiment may stop at an error")]
#![expect(clippy::disallowed_methods, reason = "it measures time")]

use std::{path::PathBuf, time::Instant};

use nenrin_lab::crawl::{CrawlOptions, run, seeds::run_seeds};
use nenrin_revisit::RevisitSettings;

fn main() {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let begin = Instant::now();
    if given.first().is_some_and(|word| word == "year") {
        let continuous = given.get(1).map(|_| RevisitSettings::default());
        let report = run(&CrawlOptions { continuous, ..CrawlOptions::default() }).unwrap();
        println!("{report:#?}\n{:.1} s", begin.elapsed().as_secs_f64());
        return;
    }
    let number = |at: usize| given[at].parse::<u64>().unwrap();
    let failing = given.get(2).map(PathBuf::from);
    let partitions = given.get(3).map_or(1, |text| text.parse().unwrap());
    let report = run_seeds(number(0), number(1), partitions, 2, failing.as_deref()).unwrap();
    for (seed, violations) in &report.failing {
        println!("seed {seed}: {}", violations[0]);
    }
    println!(
        "{} worlds in {:.1} s: {} requests, {} visits, {} crashes; {} broke a law",
        report.worlds,
        begin.elapsed().as_secs_f64(),
        report.fetches,
        report.visits,
        report.crashes,
        report.failing.len()
    );
}
