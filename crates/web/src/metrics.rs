//! Metrics for Prometheus, in its text format.

use std::fmt::Write;
use std::sync::Arc;

use nenrin_archive::{Labels, Metric, MetricKind, Outlook, outlook, shown_worth};
use nenrin_state::{ScheduleBy, ServerRecord, Site, SiteSums, SiteWorth};

use crate::guard::Shared;
use crate::{StoreSummary, WebError};

/// The most overloaded servers that are counted.
const STRETCHED_MAX: usize = 100_000;
/// A forecast reads many pages, so one serves all scrapes of an hour.
const FORECAST_GOOD_S: i64 = 3_600;

pub(crate) fn metrics(shared: &Shared) -> Result<String, WebError> {
    let app = &shared.app;
    let sites = app.state.sites()?;
    let mut all = server_figures(&app.state.stretched(STRETCHED_MAX)?);
    all.extend(site_figures(&sites, &app.state.site_sums(i64::MAX)?));
    all.extend(worth_figures(&sites, &shown_worth(&*app.state)?));
    all.extend(outlook_figures(&sites, |site| {
        let (state, of) = (app.state.clone(), site.clone());
        let compute = move || outlook(&*state, &of);
        shared.outlooks.last(site.id, app.now_s, FORECAST_GOOD_S, compute)
    }));
    all.push(store_bytes(&(app.store_stats)()));
    all.push(under_way(app.control.under_way().len()));
    all.extend(app.control.metrics());
    Ok(written(&all))
}

/// A page about all metrics; the caller has those of collecting.
pub fn metrics_document(of_collecting: Vec<Metric>) -> String {
    let mut all = server_figures(&[]);
    all.extend(site_figures(&[], &[]));
    all.extend(worth_figures(&[], &[]));
    all.extend(outlook_figures(&[], |_| None));
    all.extend([store_bytes(&StoreSummary::default()), under_way(0)]);
    all.extend(of_collecting);
    let head = "# Metrics\n\n`/metrics` has these, in the text format of Prometheus. Those of a site have the label \
        `site`, its number.\n\n| metric | kind | meaning |\n|---|---|---|\n";
    let row = |metric: &Metric| {
        format!("| `{}` | {} | {} |\n", metric.name, kind_name(metric.kind), metric.help)
    };
    std::iter::once(head.to_owned()).chain(all.iter().map(row)).collect()
}

fn server_figures(stretched: &[(ServerRecord, u32)]) -> Vec<Metric> {
    let most = stretched.iter().map(|(_, percent)| *percent).max().unwrap_or(100);
    vec![
        Metric::single(
            "nenrin_servers_stretched",
            "Servers with more pages due than politeness allows; the intervals of their pages are stretched",
            MetricKind::Gauge,
            stretched.len() as f64,
        ),
        Metric::single(
            "nenrin_server_stretch_max_ratio",
            "Largest factor by which a server's intervals are stretched",
            MetricKind::Gauge,
            f64::from(most) / 100.0,
        ),
    ]
}

fn site_figures(sites: &[Site], sums: &[SiteSums]) -> Vec<Metric> {
    let mut all = vec![Metric::single(
        "nenrin_sites",
        "Registered sites",
        MetricKind::Gauge,
        sites.len() as f64,
    )];
    for (name, help, kind, of) in SITE_FIGURES {
        let samples = sites.iter().map(|s| (site_label(s.id.0), of(s) as f64)).collect();
        all.push(Metric { name, help, kind, samples });
    }
    let stored = sums.iter().map(|s| (site_label(s.site.0), s.stored_bytes as f64)).collect();
    let received = sums.iter().map(|s| (site_label(s.site.0), s.received_bytes as f64)).collect();
    all.push(Metric {
        name: "nenrin_site_stored_bytes_total",
        help: "Bytes added to packs for a site",
        kind: MetricKind::Counter,
        samples: stored,
    });
    all.push(Metric {
        name: "nenrin_site_received_bytes_total",
        help: "Bytes of bodies received for a site",
        kind: MetricKind::Counter,
        samples: received,
    });
    all
}

fn under_way(requests: usize) -> Metric {
    let help = "Requests under way";
    Metric::single("nenrin_fetches_under_way", help, MetricKind::Gauge, requests as f64)
}

type SiteFigure = (&'static str, &'static str, MetricKind, fn(&Site) -> u64);

const SITE_FIGURES: [SiteFigure; 6] = [
    ("nenrin_site_pages", "Known pages of a site", MetricKind::Gauge, |s| s.counts.pages),
    ("nenrin_site_visits_total", "Visits made for a site", MetricKind::Counter, |s| {
        s.counts.visits
    }),
    ("nenrin_site_versions_total", "Versions stored for a site", MetricKind::Counter, |s| {
        s.counts.versions
    }),
    (
        "nenrin_site_problems_total",
        "Visits that failed or were refused",
        MetricKind::Counter,
        |s| s.counts.problems,
    ),
    (
        "nenrin_site_raw_bytes_total",
        "Bytes that full copies of every visit would take",
        MetricKind::Counter,
        |s| s.counts.raw_bytes,
    ),
    ("nenrin_site_paused", "Whether collecting is paused", MetricKind::Gauge, |s| {
        u64::from(s.paused)
    }),
];

type WorthFigure =
    (&'static str, &'static str, MetricKind, fn(&SiteWorth, &[SiteWorth]) -> Option<f64>);

const WORTH_FIGURES: [WorthFigure; 6] = [
    (
        "nenrin_site_estimated_pages",
        "Pages of a site with an estimated rate of change",
        MetricKind::Gauge,
        |w, _| Some(w.estimated_pages as f64),
    ),
    (
        "nenrin_site_page_change_rate_per_day",
        "Mean estimated changes per day of a site's pages",
        MetricKind::Gauge,
        |w, _| w.mean_rate_per_day(),
    ),
    (
        "nenrin_site_page_change_confidence_ratio",
        "Mean confidence of the estimated rates of a site's pages, from 0 to 1",
        MetricKind::Gauge,
        |w, _| w.mean_confidence(),
    ),
    (
        "nenrin_site_significant_versions_total",
        "Versions of a site with a significant change (more than dates, counters and other noise)",
        MetricKind::Counter,
        |w, _| Some(w.significant_versions as f64),
    ),
    (
        "nenrin_site_importance",
        "Sum of the importance of a site's pages; the average known page has 1",
        MetricKind::Gauge,
        |w, _| Some(w.importance()),
    ),
    (
        "nenrin_site_importance_ratio",
        "A site's share of the importance of all pages",
        MetricKind::Gauge,
        SiteWorth::share_of,
    ),
];

/// Rates and importance: from sums per site, never from single pages.
fn worth_figures(sites: &[Site], worth: &[SiteWorth]) -> Vec<Metric> {
    let figure = |(name, help, kind, of): WorthFigure| {
        let sample = |w: &SiteWorth| of(w, worth).map(|value| (site_label(w.site.0), value));
        Metric { name, help, kind, samples: worth.iter().filter_map(sample).collect() }
    };
    let mut all: Vec<Metric> = WORTH_FIGURES.into_iter().map(figure).collect();
    all.push(Metric {
        name: "nenrin_site_schedule_info",
        help: "A site's revisit policy, and the changes that it counts",
        kind: MetricKind::Gauge,
        samples: sites.iter().filter_map(schedule_info).collect(),
    });
    all
}

/// Budgets and forecasts as last computed: no scrape waits for a forecast.
fn outlook_figures(
    sites: &[Site],
    last: impl Fn(&Site) -> Option<Arc<Option<Outlook>>>,
) -> [Metric; 4] {
    let budget = |site: &Site| {
        let visits = site.conditions.schedule.continuous()?.visits_per_day?;
        Some((site_label(site.id.0), visits as f64))
    };
    let (mut visits, mut coverage, mut missed) = (Vec::new(), Vec::new(), Vec::new());
    let own = sites.iter().filter(|site| site.conditions.schedule.continuous().is_some());
    for site in own {
        let last = last(site);
        let last: Option<&Outlook> = last.as_deref().and_then(Option::as_ref);
        missed.extend(last.map(|outlook| (site_label(site.id.0), outlook.missed.versions)));
        for point in last.iter().flat_map(|outlook| &outlook.forecast.points) {
            let mut labels = site_label(site.id.0);
            labels.push(("budget", format!("x{}", point.factor)));
            visits.push((labels.clone(), point.visits_per_day));
            coverage.push((labels, point.coverage));
        }
    }
    let gauge = |name, help, samples| Metric { name, help, kind: MetricKind::Gauge, samples };
    [
        gauge(
            "nenrin_site_budget_visits_per_day",
            "A site's budget of visits per day; absent without a budget of its own",
            sites.iter().filter_map(budget).collect(),
        ),
        gauge(
            "nenrin_site_forecast_visits_per_day",
            "Expected visits per day at half, the same and twice the budget, or the current visits where there is no budget",
            visits,
        ),
        gauge(
            "nenrin_site_forecast_coverage_ratio",
            "Expected share of all versions at half, the same and twice the budget",
            coverage,
        ),
        gauge(
            "nenrin_site_missed_versions",
            "Estimated versions that came and went between visits so far",
            missed,
        ),
    ]
}

fn schedule_info(site: &Site) -> Option<(Labels, f64)> {
    let settings = site.conditions.schedule.continuous()?;
    let by = match site.conditions.hints.schedule_by {
        ScheduleBy::Any => "any",
        ScheduleBy::Significant => "significant",
    };
    let mut labels = site_label(site.id.0);
    labels.extend([("policy", settings.policy.to_string()), ("changes", by.to_owned())]);
    Some((labels, 1.0))
}

fn site_label(site: u32) -> Labels {
    vec![("site", site.to_string())]
}

fn store_bytes(store: &StoreSummary) -> Metric {
    let samples = [
        ("raw", "all", store.raw_bytes),
        ("unique", "all", store.unique_bytes),
        ("stored", "html", store.html_bytes),
        ("stored", "other", store.other_bytes),
        ("stored", "index", store.index_bytes),
    ]
    .map(|(form, kind, bytes)| {
        (vec![("kind", kind.to_owned()), ("form", form.to_owned())], bytes as f64)
    })
    .to_vec();
    Metric {
        name: "nenrin_store_bytes",
        help: "Size of the archive, by kind of content",
        kind: MetricKind::Gauge,
        samples,
    }
}

/// The text format: help, type, samples.
fn written(metrics: &[Metric]) -> String {
    let mut out = String::new();
    for metric in metrics {
        let kind = kind_name(metric.kind);
        // Writing to a string cannot fail.
        let _ = writeln!(out, "# HELP {} {}", metric.name, metric.help.replace('\n', " "));
        let _ = writeln!(out, "# TYPE {} {kind}", metric.name);
        for (labels, value) in &metric.samples {
            let labels: Vec<String> = labels
                .iter()
                .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
                .collect();
            let braces =
                if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            let _ = writeln!(out, "{}{braces} {value}", metric.name);
        }
    }
    out
}

fn kind_name(kind: MetricKind) -> &'static str {
    match kind {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_as_prometheus_reads_them() {
        let metric = Metric {
            name: "nenrin_x_bytes_total",
            help: "two\nlines",
            kind: MetricKind::Counter,
            samples: vec![(vec![("site", "a\"b\\c\nd".into())], 3.0), (Vec::new(), 0.5)],
        };
        assert_eq!(
            written(&[metric]),
            "# HELP nenrin_x_bytes_total two lines\n# TYPE nenrin_x_bytes_total counter\n\
             nenrin_x_bytes_total{site=\"a\\\"b\\\\c\\nd\"} 3\nnenrin_x_bytes_total 0.5\n"
        );
    }
}
