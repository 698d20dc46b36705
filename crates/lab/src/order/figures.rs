use nenrin_order::Strategy;

use super::{CurvePoint, OrderReport, StrategyResult};
use crate::report::{Axis, Plot, Report, Series, Table};

/// The page with the paper's figures 4 to 10 for this graph.
pub(super) fn page(report: &OrderReport) -> Report {
    let mut page = Report::new(
        format!("Which new page first: {}", report.graph),
        format!(
            "{} pages, {} links, {} hosts; {} pages can be reached from page {}. {}",
            report.pages,
            report.links,
            report.hosts,
            report.reachable,
            report.start,
            if report.interleave { "One page per server in turn." } else { "The best page first." }
        ),
    );
    page.section("In all").paragraph(
        "A: share of the most important 1% collected when 10% of the pages were. B: PageRank sum \
         of the first 30%. C: distance from the true ranking, 1 for the worst order; lower is \
         better. Additions: scores changed, the cost.",
    );
    page.table(&summary(report));
    page.section("Criterion A: the most important pages");
    let tops = ["0.1%", "1%", "10%"];
    for (top, (figure, share)) in (4..).zip(tops).enumerate() {
        page.plot(&curves(
            report,
            &format!("Figure {figure}: top {share} collected"),
            &format!("top {share} collected (%)"),
            |_| true,
            |point| point.tops[top] * 100.0,
        ));
    }
    page.section("Criterion B: importance collected");
    page.plot(&curves(
        report,
        "Figure 7: PageRank sum of the collected pages",
        "PageRank sum (%)",
        |_| true,
        |point| point.importance * 100.0,
    ));
    page.section("Criterion C: error of the order");
    page.plot(&error_bars(report, "Figure 8: error of the order", |_| true));
    page.plot(&curves(
        report,
        "Figure 8, as it grows: error of what was collected so far",
        "error, worst order = 1",
        |_| true,
        |point| point.error,
    ));
    page.section("How far scores are handed on");
    page.plot(&error_bars(report, "Figure 9: cut-offs of incremental PageRank", is_incremental));
    page.plot(&curves(
        report,
        "Figure 9: top 1% collected, by cut-off",
        "top 1% collected (%)",
        is_incremental,
        |point| point.tops[1] * 100.0,
    ));
    page.section("Cost");
    page.plot(&speed_bars(report));
    page.plot(&cost_against_error(report));
    page
}

fn is_incremental(strategy: Strategy) -> bool {
    use Strategy::{Auto, IprAr, IprDl1, IprPl, IprVr};
    matches!(strategy, IprDl1 | IprPl | IprVr | IprAr | Auto)
}

/// Our order first, so that it has the first colour, and the upper bound last.
fn ours_first(report: &OrderReport) -> impl Iterator<Item = &StrategyResult> {
    let mut results: Vec<&StrategyResult> = report.strategies.iter().collect();
    results.sort_by_key(|result| match result.strategy {
        Strategy::Auto => 0,
        Strategy::Omniscient => 2,
        _ => 1,
    });
    results.into_iter()
}

fn summary(report: &OrderReport) -> Table {
    let mut table =
        Table::new(["strategy", "A", "B", "C", "additions", "per link", "pages/s", "order_sha256"]);
    for result in &report.strategies {
        table.push([
            result.strategy.name().to_owned(),
            format!("{:.3}", result.measures.a[1][1]),
            format!("{:.3}", result.measures.b[3]),
            format!("{:.4}", result.measures.c),
            result.additions.to_string(),
            format!("{:.2}", result.additions as f64 / report.links.max(1) as f64),
            format!("{:.0}", result.pages_per_second),
            result.order_sha256.chars().take(12).collect(),
        ]);
        if result.strategy == Strategy::Auto {
            table.strong();
        }
    }
    table
}

fn curves(
    report: &OrderReport,
    title: &str,
    label: &str,
    shown: impl Fn(Strategy) -> bool,
    value: impl Fn(&CurvePoint) -> f64,
) -> Plot {
    let mut plot = Plot::new(title)
        .x(Axis::linear("pages collected (%)").to(100.0))
        .y(Axis::linear(label).from(0.0));
    for result in ours_first(report).filter(|result| shown(result.strategy)) {
        let points = result.measures.curve.iter().map(|p| (p.collected * 100.0, value(p)));
        let series = Series::line(result.strategy.name(), points);
        let is_bound = result.strategy == Strategy::Omniscient;
        plot.push(if is_bound { series.as_reference() } else { series });
    }
    plot
}

fn error_bars(report: &OrderReport, title: &str, shown: impl Fn(Strategy) -> bool) -> Plot {
    let results: Vec<&StrategyResult> =
        report.strategies.iter().filter(|result| shown(result.strategy)).collect();
    Plot::bars(title, results.iter().map(|result| result.strategy.name()))
        .note("Lower is better; c = 1000.")
        .y(Axis::linear("C"))
        .series(Series::bars("C", results.iter().map(|result| result.measures.c)))
}

fn speed_bars(report: &OrderReport) -> Plot {
    let names = report.strategies.iter().map(|result| result.strategy.name());
    let speeds = report.strategies.iter().map(|result| result.pages_per_second);
    Plot::bars("Figure 10: speed of deciding", names)
        .note("One thread, graph in memory, the fastest of several runs.")
        .y(Axis::log("pages/s"))
        .series(Series::bars("pages/s", speeds))
}

fn cost_against_error(report: &OrderReport) -> Plot {
    let mut plot = Plot::new("Cost against error")
        .note("Towards the lower left is better; orders without additions are left out.")
        .x(Axis::log("additions per link"))
        .y(Axis::linear("C"));
    for result in ours_first(report).filter(|result| result.additions > 0) {
        let per_link = result.additions as f64 / report.links.max(1) as f64;
        plot.push(Series::scatter(result.strategy.name(), [(per_link, result.measures.c)]));
    }
    plot
}
