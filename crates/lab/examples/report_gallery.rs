//! Every kind of plot and table on one page, to look at after a change of the report writer:
//! `cargo run -p nenrin-lab --example report_gallery -- DIR`.

use std::path::PathBuf;

use nenrin_lab::LabError;
use nenrin_lab::report::{Axis, Plot, Report, Series, Table};
use serde_json::json;

fn main() -> Result<(), LabError> {
    let dir = std::env::args().nth(1).map_or_else(|| PathBuf::from("gallery"), PathBuf::from);
    let mut report = Report::new("Gallery", "Every kind of plot and table that a report can hold.");
    lines(&mut report);
    bars(&mut report);
    tables(&mut report);
    report.write(&dir, &json!({"plots": 6}))
}

fn curve(power: f64) -> impl Iterator<Item = (f64, f64)> {
    (0..=200)
        .map(move |step| (f64::from(step) / 2.0, (f64::from(step) / 200.0).powf(power) * 100.0))
}

fn lines(report: &mut Report) {
    report.section("Lines").paragraph("Eight colours, then dashes; references are grey.");
    let mut many = Plot::new("Share of the top pages collected")
        .note("Higher is better.")
        .x(Axis::linear("pages collected (%)").to(100.0))
        .y(Axis::linear("top 1% collected (%)").to(100.0));
    for index in 0..10 {
        many.push(Series::line(format!("strategy {index}"), curve(0.2 + 0.1 * f64::from(index))));
    }
    many.push(Series::line("omniscient", curve(0.12)).as_reference());
    report.plot(&many);
    let points = |factor: f64| {
        (0..12).map(move |i| (10.0_f64.powf(f64::from(i) / 2.0), factor * 0.9_f64.powi(i)))
    };
    report.plot(
        &Plot::new("Logarithmic axes, few points")
            .x(Axis::log("interval (days)"))
            .y(Axis::log("efficiency"))
            .series(Series::line("mle.mix", points(1.0)))
            .series(Series::line("aimd", points(0.5))),
    );
    let scatter = |shift: u32| {
        (0..40_u32).map(move |i| (f64::from(i * 37 % 41), f64::from((i * i + shift) % 53)))
    };
    report.plot(
        &Plot::new("Scatter")
            .x(Axis::linear("visits"))
            .y(Axis::linear("changes"))
            .series(Series::scatter("html", scatter(0)))
            .series(Series::scatter("other", scatter(20))),
    );
    report.plot(
        &Plot::new("Steps").x(Axis::linear("month")).y(Axis::linear("coverage")).series(
            Series::step("x", (0..12).map(|i| (f64::from(i), 0.5 + f64::from(i % 4) / 10.0))),
        ),
    );
}

fn bars(report: &mut Report) {
    report.section("Bars");
    report.plot(
        &Plot::bars("Speed", ["bf", "blc", "pr", "ipr-dl1", "ipr-pl", "ipr-vr", "ipr-ar", "opic"])
            .y(Axis::linear("pages/s"))
            .series(Series::bars("pages/s", [9e6, 6e6, 1e6, 5e6, 2e5, 4.8e6, 4.7e6, 1e5])),
    );
    report.plot(
        &Plot::bars(
            "Several series, long names",
            ["breadth-first order", "random order", "method A", "method B", "ours"],
        )
        .y(Axis::linear("coverage"))
        .series(Series::bars("week 2", [0.2, 0.3, 0.4, 0.5, 0.6]))
        .series(Series::bars("week 4", [0.3, 0.4, 0.5, 0.6, 0.7])),
    );
}

fn tables(report: &mut Report) {
    report
        .section("Tables")
        .preformatted("nenrin lab order --graph F.edges.zst --start 0 --strategy bf");
    let mut table = Table::new(["strategy", "A", "B", "C", "additions"])
        .caption("Lower C is better.")
        .row(["bf", "0.225", "0.392", "0.698", "0"])
        .row(["ipr-dl1", "0.318", "0.503", "0.397", "3,128,710"]);
    table.strong();
    report.table(&table);
}
