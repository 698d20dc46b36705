//! Figures 4 to 9 of paper 004, and the same by category of source.

use std::collections::BTreeMap;

use super::{Bin, Outcome};
use crate::report::{Axis, Plot, Report, Series, Table};
use crate::updates::UpdateLog;

/// The page with all figures.
pub(super) fn report(log: &UpdateLog, outcomes: &[Outcome]) -> Report {
    let subtitle = format!(
        "{} pages with {} versions after their first visit; slots of {} s over {} days.",
        log.pages.len(),
        log.versions(),
        log.window.resolution_s,
        log.window.days
    );
    let mut report = Report::new("When to come again", subtitle);
    report.section("All policies").table(&table(outcomes)).plot(&coverage_by_efficiency(outcomes));
    report.plot(&totals(outcomes));
    report.section("The log").plot(&intervals(log));
    report.section("By the pages' true mean interval");
    report.plot(&by_interval("Coverage (fig. 6)", "coverage", outcomes, |bin| bin.coverage));
    report.plot(&by_interval("Efficiency (fig. 7)", "efficiency", outcomes, |bin| bin.efficiency));
    report.plot(&missed(outcomes));
    report.section("Over time").plot(&by_month(outcomes));
    report.section("By category of source");
    report.table(&category_table(outcomes));
    report
}

fn table(outcomes: &[Outcome]) -> Table {
    let headings = [
        "policy",
        "coverage",
        "efficiency",
        "coverage, total",
        "efficiency, total",
        "visits",
        "delay (days)",
    ];
    outcomes.iter().fold(Table::new(headings), |table, outcome| {
        let m = &outcome.all;
        table.row([
            outcome.name.clone(),
            format!("{:.4}", m.coverage),
            format!("{:.4}", m.efficiency),
            format!("{:.4}", m.coverage_total),
            format!("{:.4}", m.efficiency_total),
            m.visits.to_string(),
            format!("{:.2}", m.delay_days),
        ])
    })
}

fn category_table(outcomes: &[Outcome]) -> Table {
    let headings = ["category", "policy", "pages", "coverage", "coverage, total", "visits"];
    let mut table = Table::new(headings);
    for outcome in outcomes {
        for (category, m) in &outcome.by_category {
            table.push([
                (*category).to_owned(),
                outcome.name.clone(),
                m.pages.to_string(),
                format!("{:.4}", m.coverage),
                format!("{:.4}", m.coverage_total),
                m.visits.to_string(),
            ]);
        }
    }
    table
}

/// Figure 4: how often versions follow each other after so many days, and pages' mean intervals.
fn intervals(log: &UpdateLog) -> Plot {
    let slot_days = log.window.resolution_s as f64 / 86_400.0;
    let day = |slots: f64| (slots * slot_days).round().max(1.0) as u64;
    let (mut versions, mut pages) = (BTreeMap::<u64, f64>::new(), BTreeMap::<u64, f64>::new());
    for page in &log.pages {
        for pair in page.updates.windows(2) {
            *versions.entry(day(f64::from(pair[1] - pair[0]))).or_default() += 1.0;
        }
        if let Some(mean) = page.mean_interval() {
            *pages.entry(day(mean)).or_default() += 1.0;
        }
    }
    let line = |name: &str, counts: BTreeMap<u64, f64>| {
        let whole: f64 = counts.values().sum();
        Series::line(name, counts.into_iter().map(|(days, count)| (days as f64, count / whole)))
    };
    Plot::new("Intervals between versions (fig. 4)")
        .x(Axis::log("interval (days)"))
        .y(Axis::log("share"))
        .series(line("each version", versions))
        .series(line("mean of each page", pages))
}

/// Figure 5.
fn coverage_by_efficiency(outcomes: &[Outcome]) -> Plot {
    let plot = Plot::new("Coverage and efficiency, mean over pages (fig. 5)")
        .x(Axis::linear("efficiency"))
        .y(Axis::linear("coverage").to(1.0));
    outcomes.iter().fold(plot, |plot, outcome| {
        let point = (outcome.all.efficiency, outcome.all.coverage);
        plot.series(Series::scatter(outcome.name.clone(), [point]))
    })
}

fn totals(outcomes: &[Outcome]) -> Plot {
    let plot = Plot::new("Share of all versions got, by visits")
        .x(Axis::log("visits"))
        .y(Axis::linear("coverage, total").to(1.0));
    outcomes.iter().fold(plot, |plot, outcome| {
        let point = (outcome.all.visits as f64, outcome.all.coverage_total);
        plot.series(Series::scatter(outcome.name.clone(), [point]))
    })
}

/// Figures 6 and 7.
fn by_interval(title: &str, label: &str, outcomes: &[Outcome], of: fn(&Bin) -> f64) -> Plot {
    let plot = Plot::new(title)
        .note(BINS)
        .x(Axis::log("mean interval (days)"))
        .y(Axis::linear(label).to(1.0));
    outcomes.iter().fold(plot, |plot, outcome| {
        plot.series(Series::step(with_visits(outcome), steps(outcome, of)))
    })
}

/// Figure 8.
fn missed(outcomes: &[Outcome]) -> Plot {
    let mut plot = Plot::new("Versions missed (fig. 8)")
        .note(BINS)
        .x(Axis::log("mean interval (days)"))
        .y(Axis::log("versions"));
    let points = |outcome: &Outcome, of: fn(&Bin) -> u64| -> Vec<(f64, f64)> {
        let shown = steps(outcome, |bin| of(bin) as f64).into_iter();
        shown.filter(|(_, count)| *count > 0.0).collect()
    };
    for outcome in outcomes {
        plot.push(Series::step(with_visits(outcome), points(outcome, |bin| bin.missed)));
    }
    if let Some(outcome) = outcomes.first() {
        let all = Series::step("all versions", points(outcome, |bin| bin.versions));
        plot.push(all.as_reference());
    }
    plot
}

/// Figure 9.
fn by_month(outcomes: &[Outcome]) -> Plot {
    let plot = Plot::new("Coverage month by month (fig. 9)")
        .note("Versions got among those that appeared in the month.")
        .x(Axis::linear("month"))
        .y(Axis::linear("coverage, total").to(1.0));
    outcomes.iter().fold(plot, |plot, outcome| {
        let months = outcome.all.by_month.iter().enumerate();
        let points = months.map(|(month, found)| (month as f64 + 1.0, found.coverage()));
        plot.series(Series::line(with_visits(outcome), points))
    })
}

/// Said below figures whose bins differ in width.
const BINS: &str = "Bins are a day wide up to 30 days, 10 days up to 100 and 30 days beyond.";
/// Where the first bin begins on a logarithmic axis.
const LEAST_DAYS: f64 = 0.5;

/// A policy's name with its visits: policies compare only at equal visits.
fn with_visits(outcome: &Outcome) -> String {
    format!("{}, {} visits", outcome.name, outcome.all.visits)
}

/// The bins as steps: each value holds from the beginning of its bin to the next.
fn steps(outcome: &Outcome, of: impl Fn(&Bin) -> f64) -> Vec<(f64, f64)> {
    let bins = &outcome.all.by_interval;
    let begins = bins.iter().map(|bin| (bin.days.0.max(LEAST_DAYS), of(bin)));
    let end = bins.last().map(|bin| (bin.days.1, of(bin)));
    begins.chain(end).collect()
}
