//! The page that shows the experiment: the paper's tables and figures by its numbers.

use crate::report::{Axis, Plot, Report, Series, Table};
use crate::structure::cross::CrossResults;
use crate::structure::experiment::{MethodRow, Results, RoundResults, SpanResult};

const MAIN_METHODS: [&str; 6] = ["everything", "A", "B", "C", "C then B", "auto"];

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

fn percent_axis(label: &str) -> Axis {
    Axis::linear(format!("{label} (%)")).from(0.0).to(100.0)
}

pub(crate) fn report(results: &Results) -> Report {
    let mut report = Report::new(
        "Which parts changed: link structure",
        "Paper 000 (DEWS2004 5-B-02) and our own plan, on every span of visits",
    );
    sites(&mut report, results);
    spans(&mut report, results);
    by_site(&mut report, results);
    for span in &results.spans {
        span_figures(&mut report, span);
    }
    update_counts(&mut report, &results.update_counts);
    if let Some(rounds) = &results.rounds {
        round_figures(&mut report, rounds);
    }
    if let Some(cross) = &results.cross_validation {
        cross_validation(&mut report, cross);
    }
    report
}

fn cross_validation(report: &mut Report, cross: &CrossResults) {
    let mut table = Table::new([
        "left out",
        "chosen on the others",
        "visits",
        "found",
        "as they are",
        "changed",
    ])
    .caption("auto at A's visits, with constants chosen without the site");
    for fold in &cross.folds {
        table.push([
            fold.sites.join(", "),
            fold.chosen.clone(),
            fold.held_out.visits.to_string(),
            fold.held_out.found.to_string(),
            fold.as_they_are.found.to_string(),
            fold.held_out.changed.to_string(),
        ]);
    }
    let mut tried = Table::new(["constants", "mean coverage at the visits of A, B and C"])
        .caption("What was tried, over all sites");
    for (name, coverage) in &cross.candidates {
        tried.push([name.clone(), percent(*coverage)]);
    }
    report.section("Cross-validation").table(&table).table(&tried);
}

fn sites(report: &mut Report, results: &Results) {
    let mut table =
        Table::new(["site", "kind", "visits", "pages", "unreached", "links", "changed a visit"])
            .caption("The sites (table 1)");
    for site in &results.sites {
        table.push([
            site.name.clone(),
            site.kind.clone(),
            site.visits.to_string(),
            site.pages.to_string(),
            site.unreached.to_string(),
            site.links.to_string(),
            percent(site.changed_share),
        ]);
    }
    report.section("Sites").table(&table);
}

fn spans(report: &mut Report, results: &Results) {
    report.section("Spans of visits");
    report.paragraph(
        "The structure of the earlier visit decides what is visited at the later one. A page has \
         changed when its content differs or it is gone. auto has learnt from the pairs of visits of \
         the same span that ended before, and stops by its own rule.",
    );
    let heads = results.spans.iter().map(|span| format!("{} ({:.0} d)", span.span, span.mean_days));
    let heads: Vec<String> = heads.collect();
    let mut changed = Table::new(std::iter::once("kind".to_owned()).chain(heads.clone()))
        .caption("Changed pages (table 2)");
    let kinds = results.spans.first().map(|span| span.changed_by_kind.keys().cloned().collect());
    let kinds: Vec<String> = kinds.unwrap_or_default();
    for kind in kinds {
        let shares = results.spans.iter().map(|span| {
            span.changed_by_kind.get(&kind).map_or_else(String::new, |&share| percent(share))
        });
        changed.push(std::iter::once(kind.clone()).chain(shares));
    }
    report.table(&changed).table(&tops_table(results, &heads));
    for (title, figure) in [("Update rate (fig. 5)", 5), ("Coverage (fig. 6)", 6)] {
        let mut plot = Plot::new(title).x(Axis::linear("visits between")).y(percent_axis(title));
        for name in MAIN_METHODS {
            let points = results.spans.iter().filter_map(|span| {
                let row = find(span, name)?;
                let value = if figure == 5 { row.update_rate } else { row.coverage };
                Some((span.span as f64, value * 100.0))
            });
            plot.push(Series::line(name, points));
        }
        report.plot(&plot);
    }
}

fn tops_table(results: &Results, heads: &[String]) -> Table {
    let mut table =
        Table::new(std::iter::once("servers by top page".to_owned()).chain(heads.to_vec()))
            .caption("Servers whose top page, or a frame of it, changed (table 3)");
    type Share = fn(&SpanResult) -> f64;
    let rows: [(&str, Share); 4] = [
        ("their changed pages / all changed pages", |s| {
            s.tops.changed_pages_of_servers_with_changed_top
        }),
        ("their changed pages / their pages", |s| s.tops.update_rate_in_servers_with_changed_top),
        ("all changed pages / all pages", |s| s.tops.update_rate_of_all),
        ("such servers / all servers", |s| s.tops.servers_with_changed_top),
    ];
    for (name, value) in rows {
        let cells = results.spans.iter().map(|span| percent(value(span)));
        table.push(std::iter::once(name.to_owned()).chain(cells));
    }
    table
}

fn find<'a>(span: &'a SpanResult, name: &str) -> Option<&'a MethodRow> {
    span.methods.iter().find(|row| row.name == name)
}

fn by_site(report: &mut Report, results: &Results) {
    if results.by_site.len() > 30 {
        return;
    }
    let names: Vec<&str> = results.by_site.iter().map(|site| site.site.as_str()).collect();
    for (title, of) in [
        ("Update rate by site (fig. 7)", (|row| row.update_rate) as fn(&MethodRow) -> f64),
        ("Coverage by site (fig. 8)", |row| row.coverage),
    ] {
        let mut plot = Plot::bars(title, names.clone()).y(percent_axis(title));
        for method in ["everything", "A", "B", "C"] {
            let values = results.by_site.iter().map(|site| {
                site.methods.iter().find(|row| row.name == method).map_or(0.0, of) * 100.0
            });
            plot.push(Series::bars(method, values));
        }
        report.plot(&plot);
    }
}

/// Figures 9 and 12 to 18: pages visited against changed pages covered.
fn span_figures(report: &mut Report, span: &SpanResult) {
    let title = |what: &str| format!("{what}, {} visits between", span.span);
    let with = |prefix: &str, suffix: &str| -> Vec<(f64, f64)> {
        let rows = span.methods.iter();
        rows.filter(|row| row.name.starts_with(prefix) && row.name.ends_with(suffix))
            .map(|row| (row.coverage * 100.0, row.visited_share * 100.0))
            .collect()
    };
    let frame = |title: String| {
        Plot::new(title)
            .x(percent_axis("changed pages covered"))
            .y(percent_axis("pages visited"))
            .note("lower right is better")
            .series(Series::line("random", [(0.0, 0.0), (100.0, 100.0)]).as_reference())
    };
    let mut methods = frame(title("Breadth-first and the methods (fig. 9)"))
        .series(Series::line("breadth-first", with("breadth-first", "")));
    for name in ["A", "B", "C", "C then B", "auto"] {
        methods.push(Series::scatter(name, with(name, "").into_iter().take(1)));
    }
    let mut cho = frame(title("Cho's sampling and the methods in it (figs 12 to 18)"))
        .series(Series::line("Cho", with("Cho(", "%)")));
    for name in ["A", "B", "C"] {
        cho.push(Series::line(format!("Cho + {name}"), with("Cho(", &format!("+{name}"))));
    }
    report.plot(&methods).plot(&cho);
}

fn update_counts(report: &mut Report, counts: &[usize]) {
    let all: usize = counts.iter().sum();
    let changed: usize = counts.iter().skip(1).sum();
    let share = |count: usize, of: usize| 100.0 * count as f64 / of.max(1) as f64;
    let labels = |from: usize| (from..counts.len()).map(|changes| changes.to_string());
    let note = "pages that were there at every visit, by the number of visits that saw a change";
    let of_all = Plot::bars("Update counts, all pages (fig. 10)", labels(0))
        .note(note)
        .y(percent_axis("pages"))
        .series(Series::bars("pages", counts.iter().map(|&count| share(count, all))));
    let of_changed = Plot::bars("Update counts, changed pages (fig. 11)", labels(1))
        .note(note)
        .y(percent_axis("changed pages"))
        .series(Series::bars("pages", counts.iter().skip(1).map(|&c| share(c, changed))));
    report.section("How often pages change").plot(&of_all).plot(&of_changed);
}

fn round_figures(report: &mut Report, rounds: &RoundResults) {
    report.section("Rounds under one budget");
    report.paragraph(format!(
        "auto and the past rate have learnt from {} visits; {} rounds are measured. auto learns from \
         what it visits itself in them; the past rate is given all that happened before.",
        rounds.learning_visits, rounds.measured_rounds
    ));
    let mut shared = Table::new([
        "at the visits of",
        "visits",
        "changed",
        "its own coverage",
        "auto",
        "past rate",
        "Cho (3)",
        "random",
        "perfect",
    ])
    .caption("One budget a round over all sites");
    for row in &rounds.shared_budget {
        let rival = |name: &str| percent(row.rivals.get(name).copied().unwrap_or(0.0));
        shared.push([
            row.method.clone(),
            row.visits.to_string(),
            row.changed.to_string(),
            percent(row.own),
            percent(row.auto),
            rival("past_rate"),
            rival("cho"),
            rival("random"),
            percent(row.perfect),
        ]);
    }
    report.table(&shared);
    stopping(report, rounds);
    site_budgets(report, rounds);
    let mut plot = Plot::new("Coverage against visits, one budget over all sites")
        .x(percent_axis("pages visited"))
        .y(percent_axis("changed pages covered"));
    for (name, points) in &rounds.curves {
        let points = points.iter().map(|&(x, y)| (x * 100.0, y * 100.0));
        let series = Series::line(name.clone(), points);
        plot.push(if name == "perfect" { series.as_reference() } else { series });
    }
    report.plot(&plot);
}

fn stopping(report: &mut Report, rounds: &RoundResults) {
    let mut table = Table::new([
        "stops below",
        "visits",
        "coverage",
        "update rate",
        "visits / A's",
        "found / A's",
    ])
    .caption("auto with its stopping rule (the last line is the default)");
    for row in rounds.stopping.iter().chain([&rounds.default_stop]) {
        table.push([
            percent(row.stop_below),
            row.visits.to_string(),
            percent(row.coverage),
            percent(row.update_rate),
            percent(row.share_of_a_visits),
            percent(row.share_of_a_coverage),
        ]);
    }
    report.table(&table);
}

fn site_budgets(report: &mut Report, rounds: &RoundResults) {
    let mut table =
        Table::new(["site", "at the visits of", "visits", "changed", "it found", "auto found"])
            .caption("Each site with its own budget");
    for row in rounds.site_budget.iter().take(90) {
        table.push([
            row.site.clone(),
            row.method.clone(),
            row.visits.to_string(),
            row.changed.to_string(),
            row.own_found.to_string(),
            row.auto_found.to_string(),
        ]);
    }
    report.table(&table);
}
