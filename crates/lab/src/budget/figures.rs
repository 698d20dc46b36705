//! Figures 2 to 4 of paper 002: what each kind of weight does to efficiency, coverage and delay.

use nenrin_revisit::Weights;

use super::{ByCategory, Learnt, Reached, Sharing, total};
use crate::report::{Axis, Plot, Report, Series, Table};

/// What a figure varies: its title, its axis, the weights tried and how they enter.
type Sweep = (&'static str, &'static str, [f64; 4], fn(f64) -> Weights);

/// What a figure shows: its title, its axis and the measure.
type Shown = (&'static str, &'static str, fn(&Reached) -> f64);

/// The page with all figures.
pub(super) fn report(learnt: &Learnt<'_>, sharings: &[Sharing]) -> Report {
    let subtitle = format!(
        "{} pages, rates learnt in {} slots of daily visits, {} visits per day afterwards.",
        learnt.pages.len(),
        learnt.learn_slots,
        learnt.visits_per_day
    );
    let mut report = Report::new("How many visits each page gets", subtitle);
    report.section("All allocations").table(&table(learnt, sharings));
    let sweeps: [Sweep; 3] = [
        ("By extension (fig. 2)", "weight of images and PDF", [0.25, 0.5, 0.75, 1.0], |weight| {
            Weights { by_extension: weight, ..Weights::default() }
        }),
        ("By file name (fig. 3)", "weight of main, top, index", [1.0, 2.0, 4.0, 8.0], |weight| {
            Weights { by_name: weight, ..Weights::default() }
        }),
        (
            "By Last-Modified (fig. 4)",
            "weight without Last-Modified",
            [1.0, 2.0, 4.0, 8.0],
            |weight| Weights { without_last_modified: weight, ..Weights::default() },
        ),
    ];
    for (title, axis, values, weights) in sweeps {
        let runs: Vec<(f64, ByCategory)> = values
            .iter()
            .map(|&value| (value, learnt.run(&Sharing::Root(weights(value)))))
            .collect();
        report.section(title);
        let shown: [Shown; 3] = [
            ("Efficiency", "changes found per visit", Reached::efficiency),
            ("Coverage", "versions got", Reached::coverage),
            ("Delay", "days", Reached::mean_delay_days),
        ];
        for (name, label, of) in shown {
            report.plot(&by_weight(name, axis, label, &runs, of));
        }
    }
    report
}

fn table(learnt: &Learnt<'_>, sharings: &[Sharing]) -> Table {
    let headings =
        ["allocation", "efficiency", "coverage", "delay (days)", "time current", "visits"];
    sharings.iter().fold(Table::new(headings), |table, sharing| {
        let reached = total(&learnt.run(sharing));
        table.row([
            sharing.name(),
            format!("{:.4}", reached.efficiency()),
            format!("{:.4}", reached.coverage()),
            format!("{:.3}", reached.mean_delay_days()),
            format!("{:.4}", reached.current()),
            reached.visits.to_string(),
        ])
    })
}

fn by_weight(
    title: &str,
    axis: &str,
    label: &str,
    runs: &[(f64, ByCategory)],
    of: fn(&Reached) -> f64,
) -> Plot {
    let mut plot = Plot::new(title).x(Axis::log(axis)).y(Axis::linear(label));
    let categories = runs.first().map(|(_, by_category)| by_category.keys().copied());
    for category in categories.into_iter().flatten() {
        let points = runs.iter().filter_map(|(weight, by_category)| {
            by_category.get(category).map(|reached| (*weight, of(reached)))
        });
        plot.push(Series::line(category, points));
    }
    plot
}
