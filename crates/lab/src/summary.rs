//! Results of experiments as short tables for people; `results.json` has everything.

use nenrin_archive::readable_bytes;
use serde_json::Value;

use crate::{
    crawl::OrderOutcome,
    storage::{Results, SiteResults, Split},
};

fn percent(bytes: u64, of: u64) -> String {
    match of {
        0 => "–".to_owned(),
        of => format!("{:.2}%", 100.0 * bytes as f64 / of as f64),
    }
}

/// A table: what it shows, its headings and its rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summary {
    /// What it shows, where a result has more than one.
    pub title: Option<String>,
    /// One for each column.
    pub headings: Vec<&'static str>,
    /// As many cells each as there are headings.
    pub rows: Vec<Vec<String>>,
}

impl Summary {
    /// What each policy of `lab revisit` reached, one a row.
    pub fn policies(results: &Value) -> Self {
        let columns = [
            ("versions got", "coverage_total", 4),
            ("mean over pages", "coverage", 4),
            ("versions a visit", "efficiency_total", 4),
            ("visits", "visits", 0),
            ("delay, days", "delay_days", 2),
            ("bytes a page", "state_bytes_per_page", 1),
        ];
        Self::of("policy", &columns, &results["policies"])
    }

    /// What each allocation of `lab budget` reached, one a row.
    pub fn shares(results: &Value) -> Self {
        let columns = [
            ("coverage", "coverage", 4),
            ("versions a visit", "efficiency", 4),
            ("delay, days", "delay_days", 2),
            ("time current", "current", 4),
            ("visits", "visits", 0),
        ];
        Self::of("shares", &columns, &results["allocations"])
    }

    /// The gains over each rival in points, with the intervals that hold 90% of draws of the
    /// sources.
    pub fn compared(results: &Value) -> Self {
        let headings =
            vec!["rival", "visits", "how", "its versions", "ours", "gain", "mean gain", "lost"];
        let mut rows = Vec::new();
        for rival in results["compared"].as_array().into_iter().flatten() {
            for (field, how) in [
                ("together", "together"),
                ("alone", "each source alone"),
                ("per_day", "a budget a day"),
            ] {
                let held = &rival[field];
                rows.push(vec![
                    name(&rival["rival"]),
                    number(&held["ours"]["visits"], 0),
                    how.to_owned(),
                    number(&held["rival"]["coverage_total"], 4),
                    number(&held["ours"]["coverage_total"], 4),
                    points(held, "gain"),
                    points(held, "mean_gain"),
                    format!("{} of {}", held["lost"], held["sources"]),
                ]);
            }
        }
        Self { title: None, headings, rows }
    }

    /// What `--folds` found on sources that had no say in the constants.
    pub fn folds(results: &Value) -> Vec<Self> {
        let rows = |items: &Value, row: &dyn Fn(&Value) -> Vec<String>| {
            items.as_array().into_iter().flatten().map(row).collect::<Vec<_>>()
        };
        let against = Self {
            title: Some(
                "At each rival's visits, constants chosen on the other parts; in points".to_owned(),
            ),
            headings: vec!["policy", "rival", "visits", "gain together", "gain alone", "by part"],
            rows: rows(&results["compared"], &|item| {
                let part = |fold: &Value| {
                    let ours = fold["ours_alone"].as_f64().unwrap_or_default();
                    signed(ours - fold["rival"].as_f64().unwrap_or_default())
                };
                let parts = item["folds"].as_array().into_iter().flatten().map(part);
                vec![
                    name(&item["policy"]),
                    name(&item["rival"]),
                    number(&item["visits"], 0),
                    signed(item["gain"].as_f64().unwrap_or_default()),
                    signed(item["gain_alone"].as_f64().unwrap_or_default()),
                    parts.collect::<Vec<_>>().join(" "),
                ]
            }),
        };
        let pulled = Self {
            title: Some(
                "With what changes together, its threshold chosen on the other parts".to_owned(),
            ),
            headings: vec![
                "policy",
                "visits",
                "with it",
                "versions",
                "with it",
                "beyond its visits",
            ],
            rows: rows(&results["together"], &|item| {
                vec![
                    name(&item["policy"]),
                    number(&item["visits"][0], 0),
                    number(&item["visits"][1], 0),
                    number(&item["coverage_total"][0], 4),
                    number(&item["coverage_total"][1], 4),
                    signed(item["gain_beyond_its_visits"].as_f64().unwrap_or_default()),
                ]
            }),
        };
        [against, pulled].into_iter().filter(|table| !table.rows.is_empty()).collect()
    }

    /// What each order of `lab order` reached, one a row.
    pub fn graph_orders(results: &Value) -> Self {
        let points = results["points"].as_array();
        let place = |share: f64| {
            let at = |value: &Value| value.as_f64().is_some_and(|p| (p - share).abs() < 1e-9);
            points.and_then(|points| points.iter().position(at)).unwrap_or(0)
        };
        let columns = [("1", 0.05), ("1", 0.1), ("1", 0.2), ("10", 0.1)];
        let row = |item: &Value| {
            let mut cells = vec![name(&item["name"])];
            cells.extend(columns.iter().map(|&(top, at)| number(&item["a"][top][place(at)], 3)));
            cells.extend([0.05, 0.1, 0.3].map(|at| number(&item["b"][place(at)], 3)));
            cells.extend([number(&item["c"], 4), number(&item["additions"], 0)]);
            cells
        };
        let headings = vec![
            "order",
            "A1% at 5%",
            "at 10%",
            "at 20%",
            "A10% at 10%",
            "B at 5%",
            "at 10%",
            "at 30%",
            "C",
            "additions",
        ];
        let items = results["strategies"].as_array().into_iter().flatten();
        Self { title: None, headings, rows: items.map(row).collect() }
    }

    /// What `lab structure` found: methods from one visit to the next, and rounds under a budget.
    pub fn structure(results: &Value) -> Vec<Self> {
        let shown = ["everything", "A", "B", "C", "C+B", "auto"];
        let of =
            |title: &str, (first, key), columns: &[(&'static str, &str, usize)], items: &Value| {
                Self { title: Some(title.to_owned()), ..Self::by(first, key, columns, items) }
            };
        let mut methods = of(
            "From one visit to the next",
            ("method", "name"),
            &[
                ("visits", "visits", 0),
                ("changed pages found", "found", 0),
                ("of", "changed", 0),
                ("share found", "coverage", 3),
                ("found a visit", "update_rate", 3),
            ],
            &results["spans"][0]["methods"],
        );
        methods.rows.retain(|row| shown.contains(&row[0].as_str()));
        let rounds = &results["rounds"];
        let budgets = of(
            "Share found in later rounds, at the visits of each method over all sites",
            ("method", "method"),
            &[("visits", "visits", 0), ("its own", "own", 3), ("auto", "auto", 3)],
            &rounds["shared_budget"],
        );
        let stops = of(
            "Where auto stops by itself",
            ("stop below", "stop_below"),
            &[
                ("visits", "visits", 0),
                ("share found", "coverage", 3),
                ("of A's visits", "share_of_a_visits", 3),
                ("of A's share", "share_of_a_coverage", 3),
            ],
            &rounds["stopping"],
        );
        [methods, budgets, stops].into_iter().filter(|table| !table.rows.is_empty()).collect()
    }

    /// What `lab storage` measured: our bytes by site, and those of every way of keeping the visits.
    pub fn storage(results: &Results) -> (Self, Self) {
        let row = |name: &str, raw: u64, collected: u64, compacted: u64| {
            let mut cells = vec![name.to_owned(), readable_bytes(raw)];
            for bytes in [collected, compacted] {
                cells.extend([readable_bytes(bytes), percent(bytes, raw)]);
            }
            cells
        };
        let site = |site: &SiteResults| {
            let raw: Split = site.raw.iter().copied().sum();
            row(&site.site, raw.total(), site.ours.collected.total(), site.ours.compacted.total())
        };
        let (ours, raw) = (&results.ours, results.raw);
        let all = row("all, with indexes", raw.total(), ours.collected.files, ours.compacted.files);
        let by_site = Self {
            title: None,
            headings: vec!["site", "raw", "collected", "of raw", "compacted", "of raw"],
            rows: results.sites.iter().map(site).chain([all]).collect(),
        };
        let way = |(name, bytes, split): (String, u64, Option<Split>)| {
            let part = |of: fn(&Split) -> u64| {
                split.map_or("–".to_owned(), |split| percent(of(&split), of(&raw)))
            };
            let whole = percent(bytes, raw.total());
            vec![name, readable_bytes(bytes), whole, part(|s| s.html), part(|s| s.other)]
        };
        let by_way = Self {
            title: None,
            headings: vec!["way", "bytes", "of raw", "HTML", "other"],
            rows: results.by_way().into_iter().map(way).collect(),
        };
        (by_site, by_way)
    }

    /// How well each order of `lab crawl --orders` did, one a row.
    pub fn orders(outcomes: &[OrderOutcome]) -> Self {
        let row = |outcome: &OrderOutcome| {
            vec![
                outcome.order.to_owned(),
                format!("{:.3}", outcome.a),
                format!("{:.3}", outcome.b),
                format!("{:.4}", outcome.c),
                format!("{} of {}", outcome.collected, outcome.pages),
                outcome.violations.len().to_string(),
            ]
        };
        let headings =
            vec!["order", "A: top 1% at 10%", "B: sum at 30%", "C", "collected", "laws broken"];
        Self { title: None, headings, rows: outcomes.iter().map(row).collect() }
    }

    /// One row for each item: its name, then the fields with so many digits.
    fn of(first: &'static str, columns: &[(&'static str, &str, usize)], items: &Value) -> Self {
        Self::by(first, "name", columns, items)
    }

    /// The same with another field in the first column.
    fn by(
        first: &'static str,
        key: &str,
        columns: &[(&'static str, &str, usize)],
        items: &Value,
    ) -> Self {
        let heads = columns.iter().map(|(heading, ..)| *heading);
        let row = |item: &Value| {
            let numbers = columns.iter().map(|(_, field, digits)| number(&item[*field], *digits));
            let key = match &item[key] {
                Value::String(name) => name.clone(),
                value => number(value, 2),
            };
            std::iter::once(key).chain(numbers).collect()
        };
        Self {
            title: None,
            headings: std::iter::once(first).chain(heads).collect(),
            rows: items.as_array().into_iter().flatten().map(row).collect(),
        }
    }
}

fn name(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A number as people read it; `-` where there is none.
fn number(value: &Value, digits: usize) -> String {
    match (value.as_u64(), value.as_f64()) {
        (Some(whole), _) => whole.to_string(),
        (None, Some(number)) => format!("{number:.digits$}"),
        (None, None) => "-".to_owned(),
    }
}

/// A difference in points.
fn signed(gain: f64) -> String {
    format!("{:+.1}", 100.0 * gain)
}

fn points(held: &Value, field: &str) -> String {
    let of = |value: &Value| signed(value.as_f64().unwrap_or_default());
    let interval = &held[format!("{field}_interval")];
    format!("{} ({} to {})", of(&held[field]), of(&interval[0]), of(&interval[1]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_row_has_a_cell_for_each_heading() {
        let results = json!({
            "policies": [{"name": "auto", "coverage_total": 0.5, "visits": 7}],
            "allocations": [{"name": "even", "coverage": 0.25, "visits": 9}],
            "compared": [{"rival": "nutch", "together": {"gain": 0.05, "gain_interval": [0.0, 0.1]}}],
        });
        let policies = Summary::policies(&results);
        assert_eq!(policies.rows, [["auto", "0.5000", "-", "-", "7", "-", "-"]]);
        let compared = Summary::compared(&results);
        assert_eq!(compared.rows[0][5], "+5.0 (+0.0 to +10.0)");
        let rounds = json!({
            "shared_budget": [{"method": "A", "visits": 9, "own": 0.5, "auto": 0.75}],
            "stopping": [{"stop_below": 0.06, "visits": 8, "coverage": 0.7}],
        });
        let structure = Summary::structure(&json!({
            "spans": [{"methods": [{"name": "A", "visits": 9}, {"name": "Cho(>=90%)", "visits": 4}]}],
            "rounds": rounds,
        }));
        let firsts: Vec<&str> = structure.iter().map(|table| table.rows[0][0].as_str()).collect();
        assert_eq!(firsts, ["A", "A", "0.06"]);
        assert_eq!(structure[0].rows.len(), 1, "cuts of Cho's method are in the report");
        let orders = Summary::graph_orders(&json!({
            "points": [0.05, 0.1, 0.2, 0.3, 0.5],
            "strategies": [{"name": "auto", "a": {"1": [0.1, 0.2, 0.3], "10": [0.4, 0.5]}, "c": 0.25}],
        }));
        assert_eq!(orders.rows[0][..5], ["auto", "0.100", "0.200", "0.300", "0.500"]);
        let folds = Summary::folds(&json!({
            "compared": [{"policy": "auto", "rival": "nutch(7d)", "visits": 7, "gain": 0.05,
                "gain_alone": 0.01, "folds": [{"rival": 0.5, "ours_alone": 0.6}]}],
        }));
        assert_eq!(folds.len(), 1);
        assert_eq!(folds[0].rows[0][3..], ["+5.0", "+1.0", "+10.0"]);
        let tables = structure.into_iter().chain(folds);
        for summary in tables.chain([orders, policies, Summary::shares(&results), compared]) {
            assert!(!summary.rows.is_empty());
            assert!(summary.rows.iter().all(|row| row.len() == summary.headings.len()));
        }
    }
}
