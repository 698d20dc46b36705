//! What rounds found, when they are over.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use nenrin_crawl::RoundReport;
use nenrin_lang::{Reason, Table};
use nenrin_state::{Outcome, RoundCounts, Site};
use nenrin_urls::CanonicalUrl;
use serde_json::{Value, json};

use super::lines::{ROUND_HEADER, name_of, round_cells};
use crate::counted;

/// Kinds of problems listed in the summary.
const PROBLEMS_SHOWN: usize = 10;

/// What rounds found.
#[derive(Debug, Default)]
pub struct Collected {
    /// A report of each round that ended.
    pub reports: Vec<RoundReport>,
    /// Whether they were stopped before they ended.
    pub interrupted: bool,
    /// How often each problem occurred, and a page that had it.
    problems: BTreeMap<String, (u64, CanonicalUrl)>,
}

impl Collected {
    /// A page was visited.
    pub fn visited(&mut self, url: &CanonicalUrl, outcome: Outcome, reason: Option<&Reason>) {
        if let (Outcome::Failed | Outcome::Refused, Some(reason)) = (outcome, reason) {
            let what = format!("{outcome}: {reason}");
            self.problems.entry(what).or_insert_with(|| (0, url.clone())).0 += 1;
        }
    }

    /// What all rounds found together.
    pub fn counts(&self) -> RoundCounts {
        let mut sum = RoundCounts::default();
        self.reports.iter().for_each(|report| sum.add(&report.counts));
        sum
    }

    /// Whether every round reached all of its pages, and at least one page answered.
    pub fn is_whole(&self) -> bool {
        self.reports.iter().all(|report| {
            let counts = &report.counts;
            let answered = counts.changed + counts.same + counts.not_modified + counts.gone;
            counts.failed == 0 && report.left.is_empty() && (answered > 0 || counts.visits() == 0)
        })
    }

    /// For programs.
    pub fn as_json(&self, sites: &[Site], elapsed_ms: i64) -> Value {
        let round = |report: &RoundReport| {
            json!({
                "site": report.site, "name": name_of(sites, report.site), "round": report.round,
                "visits": report.counts.visits(), "counts": report.counts,
                "left": left(report), "page_limit_reached": report.page_limit_reached,
            })
        };
        let problems = self.problems.iter();
        let problems = problems
            .map(|(what, (times, url))| json!({"what": what, "times": times, "example": url}));
        json!({
            "rounds": self.reports.iter().map(round).collect::<Vec<_>>(),
            "problems": problems.collect::<Vec<_>>(), "interrupted": self.interrupted,
            "elapsed_ms": elapsed_ms,
        })
    }

    /// The rounds, one a row.
    pub fn table(&self, sites: &[Site]) -> Table {
        let header = ["site"].into_iter().chain(ROUND_HEADER).chain(["found"]);
        let mut table = Table::new(&header.collect::<Vec<_>>());
        for report in &self.reports {
            let mut row = vec![name_of(sites, report.site)];
            row.extend(round_cells(&report.counts));
            row.push(report.counts.new_pages.to_string());
            table.row(row);
        }
        table
    }

    /// The most frequent problems, and what is left to do, a line each.
    pub fn lines(&self, sites: &[Site]) -> Vec<String> {
        let mut problems: Vec<_> = self.problems.iter().collect();
        problems.sort_by_key(|(_, (times, _))| Reverse(*times));
        let shown = problems.iter().take(PROBLEMS_SHOWN);
        let mut lines: Vec<String> = shown
            .map(|(what, (times, url))| format!("  {times} × {what}  (such as {url})"))
            .collect();
        if problems.len() > PROBLEMS_SHOWN {
            let more = problems.len() - PROBLEMS_SHOWN;
            lines.push(format!("  … and {more} more kinds; `nenrin log --visits` has all"));
        }
        for report in &self.reports {
            let (name, left) = (name_of(sites, report.site), left(report));
            if left > 0 {
                lines.push(format!(
                    "  {name}: {} left for the next round: not all servers could be asked",
                    counted(left, "page")
                ));
            }
            if report.page_limit_reached {
                lines.push(format!("  {name}: the limit on pages was reached"));
            }
        }
        if self.interrupted {
            lines.push("interrupted; the next `collect` continues where this one stopped".into());
        }
        lines
    }
}

/// Pages that a round could not reach.
fn left(report: &RoundReport) -> u64 {
    report.left.iter().map(|(_, pages)| pages).sum()
}
