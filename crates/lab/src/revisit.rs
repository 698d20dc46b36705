//! Which schedule sees the most versions: the experiment of paper 004 on update logs.
//!
//! Read in this order: [`RevisitOptions`] and [`run`], [`walk_scheduled`] (a log as the crawler would
//! collect it), [`Walk`] (one page's year), [`Measures`].

mod calibration;
mod compare;
mod figures;
mod folds;
mod measure;
mod scheduled;
mod together;
mod walk;

use std::collections::BTreeMap;
use std::path::PathBuf;

use nenrin_revisit::{Budget, Limits, NEWS, PolicySpec, RevisitPolicy};
use serde_json::{Value, json};

pub use self::calibration::{MissedBin, calibration};
pub use self::measure::{Bin, Measures, Month};
pub use self::scheduled::{Crawled, Pulls, Spending, visits_by_source, walk_scheduled};
pub use self::together::walk_together;
pub use self::walk::{Tally, Walk};

use crate::LabError;
use crate::updates::UpdateLog;

/// What to try.
#[derive(Debug, Clone)]
pub struct RevisitOptions {
    /// The policies to try.
    pub policies: Vec<PolicySpec>,
    /// Visits in all for policies that take a budget.
    pub visits: Option<u64>,
    /// Whether all pages are looked at in every slot, as in the papers' experiments, and not when
    /// their planned times come, as in the crawler.
    pub slots: bool,
    /// Whether the first policy is held against each of the others at its visits.
    pub compare: bool,
    /// Into how many parts the sources are dealt for cross-validation, if that is wanted: with
    /// `slots`, `auto` against every other policy at its visits; otherwise every policy with what
    /// changes together against itself without.
    pub folds: Option<usize>,
    /// Each source may make as many visits per day as this policy made on it.
    pub visits_of: Option<PolicySpec>,
    /// Where `report.html` and `results.json` go, if anywhere.
    pub out: Option<PathBuf>,
}

/// A policy's year.
pub(crate) struct Outcome {
    pub(crate) name: String,
    pub(crate) all: Measures,
    pub(crate) by_category: BTreeMap<&'static str, Measures>,
    /// Bytes kept per page, shared clocks included.
    pub(crate) state_bytes: Option<f64>,
    /// What pulling pages forward did, if it was tried.
    pub(crate) pulls: Option<Pulls>,
    /// Estimated and true numbers of missed versions, as the crawler would show them.
    pub(crate) missed: Vec<MissedBin>,
}

/// Runs every policy over the log and returns the results as `results.json` holds them.
///
/// # Errors
/// [`LabError`] when an option or the log makes no sense, or the report cannot be written.
pub fn run(log: &UpdateLog, options: &RevisitOptions) -> Result<Value, LabError> {
    check(log, options)?;
    if let Some(folds) = options.folds {
        return Ok(match options.slots {
            false => folds::cross_validate_pulls(log, &options.policies, folds),
            true => folds::cross_validate(log, &options.policies, folds),
        });
    }
    if options.compare {
        return Ok(compare::against_each(log, &options.policies));
    }
    let categories = log.categories();
    let allowed = options.visits_of.map(|spec| visits_by_source(log, &walk(log, &spec, None).0));
    let spending = match (&allowed, options.visits) {
        (Some(visits), _) => Spending::PerDay(visits),
        (None, Some(visits)) => Spending::Together(visits),
        (None, None) => Spending::Free,
    };
    let tried = options.policies.iter().map(|spec| match options.slots {
        true => {
            let (tallies, state_bytes) = walk(log, spec, options.visits);
            let outcome = measure(log, &categories, spec.to_string(), &tallies);
            Outcome { state_bytes, ..outcome }
        }
        false => as_crawled(log, &categories, spec, spending),
    });
    let outcomes: Vec<Outcome> = tried.collect();
    let results = json!({
        "pages": log.pages.len(),
        "left_out": log.left_out,
        "versions": log.versions(),
        "resolution_s": log.window.resolution_s,
        "days": log.window.days,
        "as_crawled": !options.slots,
        "visits_budget": options.visits,
        "policies": outcomes.iter().map(Outcome::to_json).collect::<Vec<_>>(),
    });
    if let Some(out) = &options.out {
        figures::report(log, &outcomes).write(out, &results)?;
    }
    Ok(results)
}

/// Refuses what would give a table of nothing.
fn check(log: &UpdateLog, options: &RevisitOptions) -> Result<(), LabError> {
    log.check()?;
    let bad = |setting, problem: &str| LabError::Setting { setting, problem: problem.to_owned() };
    if options.folds.is_some_and(|folds| folds < 2) {
        return Err(bad(
            "--folds",
            "at least 2 parts are needed: one to try, the others to choose",
        ));
    }
    if options.compare && options.policies.len() < 2 {
        return Err(bad("--compare", "name the policy and at least one to hold it against"));
    }
    Ok(())
}

/// Whether a policy is ours: those are tried with all that the crawler adds; the rules of the papers
/// and of other crawlers are tried as they were published.
fn is_ours(spec: &PolicySpec) -> bool {
    matches!(spec, PolicySpec::Auto { .. } | PolicySpec::Budget { .. })
}

/// A policy as the crawler has it.
fn as_crawled(
    log: &UpdateLog,
    categories: &BTreeMap<u32, &'static str>,
    spec: &PolicySpec,
    spending: Spending<'_>,
) -> Outcome {
    let ours = is_ours(spec);
    let crawled = walk_scheduled(log, spec, ours.then_some(NEWS), spending);
    let outcome = measure(log, categories, spec.to_string(), &crawled.tallies);
    let bytes = crawled.bytes as f64 / log.pages.len().max(1) as f64;
    Outcome {
        state_bytes: ours.then_some(bytes),
        pulls: ours.then_some(crawled.pulls),
        missed: calibration(&crawled.tallies, &crawled.missed),
        ..outcome
    }
}

/// Runs a policy over every page of the log and returns each page's tally; for `auto` also the
/// bytes per page that it keeps, shared clocks included.
pub fn walk(log: &UpdateLog, spec: &PolicySpec, visits: Option<u64>) -> (Vec<Tally>, Option<f64>) {
    let resolution_s = log.window.resolution_s;
    let limits = Limits::experiment(resolution_s);
    let mut policy = spec.build(limits);
    if !is_ours(spec) {
        let alone = |page| walk::alone(page, policy.as_mut(), resolution_s);
        return (log.pages.iter().map(alone).collect(), None);
    }
    let (tallies, bytes) = walk_with(log, policy.as_mut(), visits);
    (tallies, Some(bytes))
}

/// Runs a policy that takes a budget over all pages together.
fn walk_with(
    log: &UpdateLog,
    policy: &mut dyn RevisitPolicy,
    visits: Option<u64>,
) -> (Vec<Tally>, f64) {
    let end_s = (i64::from(log.slots()) + 1) * log.window.resolution_s;
    policy.set_budget(visits.map(|visits| Budget::InAll { visits: visits as f64, end_s }));
    walk_together(log, policy)
}

fn measure(
    log: &UpdateLog,
    categories: &BTreeMap<u32, &'static str>,
    name: String,
    tallies: &[Tally],
) -> Outcome {
    let mut names: Vec<&'static str> = categories.values().copied().collect();
    names.sort_unstable();
    names.dedup();
    let of_category = |category: &'static str| {
        let pages = log.pages.iter().zip(tallies);
        let inside = pages.filter(|(page, _)| categories.get(&page.source) == Some(&category));
        (category, Measures::of_pages(log.window.resolution_s, inside))
    };
    let by_category = names.into_iter().map(of_category).collect();
    let all = Measures::of(log, tallies);
    Outcome { name, all, by_category, state_bytes: None, pulls: None, missed: Vec::new() }
}

impl Outcome {
    fn to_json(&self) -> Value {
        let mut value = measures_json(&self.all);
        value["name"] = json!(self.name);
        if let Some(bytes) = self.state_bytes {
            value["state_bytes_per_page"] = json!(bytes);
        }
        if let Some(pulls) = self.pulls {
            value["pulled"] = json!({
                "visits": pulls.visits,
                "hits": pulls.hits,
                "candidates": pulls.candidates,
                "circles": pulls.circles,
            });
        }
        value["missed"] = calibration::to_json(&self.missed);
        value["by_interval"] = self.all.by_interval.iter().map(bin_json).collect();
        value["by_month"] = self.all.by_month.iter().map(month_json).collect();
        value["by_category"] = self
            .by_category
            .iter()
            .map(|(name, measures)| {
                let mut value = measures_json(measures);
                value["name"] = json!(name);
                value["pages"] = json!(measures.pages);
                value
            })
            .collect();
        value
    }
}

fn measures_json(measures: &Measures) -> Value {
    json!({
        "coverage": measures.coverage,
        "efficiency": measures.efficiency,
        "coverage_total": measures.coverage_total,
        "efficiency_total": measures.efficiency_total,
        "visits": measures.visits,
        "delay_days": measures.delay_days,
    })
}

fn bin_json(bin: &Bin) -> Value {
    json!({
        "from_days": bin.days.0,
        "to_days": bin.days.1,
        "pages": bin.pages,
        "coverage": bin.coverage,
        "efficiency": bin.efficiency,
        "versions": bin.versions,
        "missed": bin.missed,
    })
}

fn month_json(month: &Month) -> Value {
    json!({ "coverage": month.coverage(), "versions": month.versions, "found": month.found })
}
