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

/// A table: its headings and its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
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
        Self { headings, rows }
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
        Self { headings, rows: outcomes.iter().map(row).collect() }
    }

    /// One row for each item: its name, then the fields with so many digits.
    fn of(first: &'static str, columns: &[(&'static str, &str, usize)], items: &Value) -> Self {
        let heads = columns.iter().map(|(heading, ..)| *heading);
        let row = |item: &Value| {
            let numbers = columns.iter().map(|(_, field, digits)| number(&item[*field], *digits));
            std::iter::once(name(&item["name"])).chain(numbers).collect()
        };
        Self {
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

fn points(held: &Value, field: &str) -> String {
    let of = |value: &Value| format!("{:+.1}", 100.0 * value.as_f64().unwrap_or_default());
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
        for summary in [policies, Summary::shares(&results), compared] {
            assert!(!summary.rows.is_empty());
            assert!(summary.rows.iter().all(|row| row.len() == summary.headings.len()));
        }
    }
}
