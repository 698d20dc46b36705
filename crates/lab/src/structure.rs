//! Which parts of a server changed: the experiment of paper 000 on any history of visits, and our
//! own plan compared with its methods.
//!
//! Read in this order: [`RoundHistory`] (the pages at each visit), [`load_mirrors`] and
//! [`SyntheticWeb`] (sources of histories), [`StructureOptions`] and [`run`], [`Outcome`].

mod cross;
mod experiment;
mod figures;
mod history;
mod links;
mod methods;
mod mirror;
mod prepared;
mod rounds;
mod synthetic;

use std::path::PathBuf;

use serde_json::Value;

use crate::LabError;
use crate::report::Report;

pub use history::{PageVisit, RoundHistory, SiteHistory, SiteVisit};
pub use methods::{Method, Tally};
pub use mirror::{MirrorSite, load_mirrors};
pub use synthetic::SyntheticWeb;

pub(crate) use links::{SiteLink, site_links, site_path};
pub(crate) use mirror::name_indexes;

use nenrin_structure::AutoOptions;

/// What to try.
#[derive(Debug, Clone)]
pub struct StructureOptions {
    /// Visits from which `auto` and the past rate learn before they are measured.
    pub learning_visits: usize,
    /// The constants of `auto`.
    pub auto: AutoOptions,
    /// Thresholds at which `auto` is made to stop, for the curve.
    pub stop_thresholds: Vec<f64>,
    /// Seed for random orders and samples.
    pub seed: u64,
    /// Random orders are averaged over this many.
    pub random_runs: usize,
    /// Whether constants are also chosen on all sites but one, and measured on that one.
    pub cross_validate: bool,
    /// Where `report.html` and `results.json` go, if anywhere.
    pub out: Option<PathBuf>,
}

impl Default for StructureOptions {
    fn default() -> Self {
        Self {
            learning_visits: 4,
            auto: AutoOptions::default(),
            stop_thresholds: vec![
                0.5, 0.3, 0.2, 0.15, 0.1, 0.08, 0.06, 0.05, 0.04, 0.03, 0.02, 0.01,
            ],
            seed: 1,
            random_runs: 5,
            cross_validate: false,
            out: None,
        }
    }
}

/// The result of an experiment: the numbers, and the page that shows them.
#[derive(Debug)]
pub struct Outcome {
    /// All numbers, as they go to `results.json`.
    pub results: Value,
    /// The page.
    pub report: Report,
}

/// Runs the experiment, and writes its files if a folder is given.
///
/// # Errors
/// When the history has fewer than two visits of any site, or files cannot be written.
pub fn run(history: &RoundHistory, options: &StructureOptions) -> Result<Outcome, LabError> {
    let sites = prepared::prepare(history)?;
    let results = experiment::results(&sites, options);
    let report = figures::report(&results);
    let results = serde_json::to_value(&results)
        .map_err(|error| LabError::Input { what: format!("results cannot be written: {error}") })?;
    if let Some(out) = &options.out {
        report.write(out, &results)?;
    }
    Ok(Outcome { results, report })
}
