//! `lab revisit` and `lab budget` without the program around them:
//! `cargo run --release -p nenrin-lab --example revisit -- revisit --log F.tsv.zst --policy auto`.

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::path::PathBuf;

use clap::Parser;
use nenrin_lab::LabError;
use nenrin_lab::budget::{self, BudgetOptions};
use nenrin_lab::revisit::{self, RevisitOptions};
use nenrin_lab::updates::Window;
use nenrin_revisit::{PolicySpec, Weights, parse_duration};

#[derive(Parser)]
enum Command {
    Revisit(RevisitArgs),
    Budget(BudgetArgs),
}

/// When to come again: coverage and efficiency of revisit policies on an update log.
#[derive(clap::Args)]
struct RevisitArgs {
    /// Log of changing pages (TSV, plain or zstd).
    #[arg(long)]
    log: PathBuf,
    /// Log of static pages.
    #[arg(long = "static")]
    statics: Option<PathBuf>,
    /// Width of a slot.
    #[arg(long, default_value = "1d", value_parser = parse_duration)]
    resolution: i64,
    /// Length of the window in days.
    #[arg(long, default_value_t = 365)]
    days: i64,
    /// Policies, such as `mle.mix(0.1-10,2nd=7d)` or `auto`.
    #[arg(long = "policy", required = true, num_args = 1..)]
    policies: Vec<PolicySpec>,
    /// Visits in all, for policies that take a budget.
    #[arg(long)]
    visits: Option<u64>,
    /// Folder for `report.html` and `results.json`.
    #[arg(long)]
    out: Option<PathBuf>,
}

/// How many visits each page gets: allocations of a fixed number of visits per day.
#[derive(clap::Args)]
struct BudgetArgs {
    /// Log of changing pages (TSV, plain or zstd).
    #[arg(long)]
    log: PathBuf,
    /// Log of static pages.
    #[arg(long = "static")]
    statics: Option<PathBuf>,
    /// Time of daily visits that give the rates.
    #[arg(long, default_value = "40d", value_parser = parse_duration)]
    learn: i64,
    /// Visits per day for all pages together.
    #[arg(long)]
    visits_per_day: f64,
    /// Weights, such as `ext=0.25`, `name=2,no-lm=4`.
    #[arg(long, num_args = 1..)]
    weights: Vec<Weights>,
    /// Folder for `report.html` and `results.json`.
    #[arg(long)]
    out: Option<PathBuf>,
}

impl From<RevisitArgs> for RevisitOptions {
    fn from(args: RevisitArgs) -> Self {
        let window = Window { resolution_s: args.resolution, days: args.days, ..Window::default() };
        let RevisitArgs { log, statics, policies, visits, out, .. } = args;
        Self { log, statics, window, policies, visits, out }
    }
}

impl From<BudgetArgs> for BudgetOptions {
    fn from(args: BudgetArgs) -> Self {
        let learn_days = u32::try_from(args.learn / 86_400).unwrap_or(u32::MAX);
        let BudgetArgs { log, statics, visits_per_day, weights, out, .. } = args;
        Self { log, statics, window: Window::default(), learn_days, visits_per_day, weights, out }
    }
}

fn main() -> Result<(), LabError> {
    let results = match Command::parse() {
        Command::Revisit(args) => revisit::run(&args.into())?,
        Command::Budget(args) => budget::run(&args.into())?,
    };
    println!("{results:#}");
    Ok(())
}
