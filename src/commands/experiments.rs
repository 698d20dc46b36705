//! The papers' experiments, on the shipped code: `nenrin lab order|revisit|budget|structure`.

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use clap::Args;
use nenrin_archive::{Span, sites};
use nenrin_lab::{
    LabError,
    archive::ArchiveSource,
    budget::{self, BudgetOptions},
    order::{self, GraphSource, OrderOptions, WebKind},
    revisit::{self, RevisitOptions},
    structure::{self, MirrorSite, StructureOptions, load_mirrors},
    summary::Summary,
    updates::{UpdateLog, Window},
};
use nenrin_order::Strategy;
use nenrin_revisit::{PolicySpec, Weights};
use serde_json::Value;

use super::Context;
use crate::{
    exit::{Exit, usage},
    table::{Table, print_json, print_table, say},
};

/// Which new page first: compares crawl orders on a link graph (paper 003).
#[derive(Debug, Args)]
pub(crate) struct OrderArgs {
    /// Links of the graph, a WGRAPH1 file.
    #[arg(long, value_name = "F.edges.zst", conflicts_with = "synthetic")]
    graph: Option<PathBuf>,
    /// URLs of the graph's pages.
    #[arg(long, value_name = "F.urls.zst", requires = "graph")]
    urls: Option<PathBuf>,
    /// Makes up a web of this many pages instead; without either, the archive's pages are taken.
    #[arg(long, value_name = "PAGES")]
    synthetic: Option<u32>,
    /// Kind of the made-up web.
    #[arg(long, value_name = "servers|power-law|chains", default_value = "servers")]
    kind: WebKind,
    /// Seed of the made-up web.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The page to start at; page 0 of an archive links to its top pages.
    #[arg(long, value_name = "N", default_value_t = 0)]
    start: u32,
    /// Only this site of the archive.
    #[arg(long, value_name = "S", conflicts_with_all = ["graph", "synthetic"])]
    site: Option<String>,
    /// Orders to compare; all when none is named.
    #[arg(long = "strategy", value_name = "S", num_args = 1..)]
    strategies: Vec<Strategy>,
    /// One page per server in turn, as politeness does.
    #[arg(long)]
    interleave: bool,
    /// Measures speed only: with and without URL look-up, and what memory allows.
    #[arg(long)]
    speed: bool,
    /// Writes report.html and results.json there.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl OrderArgs {
    fn source(&self, context: &Context) -> anyhow::Result<GraphSource> {
        Ok(match (&self.graph, self.synthetic) {
            (Some(edges), _) => GraphSource::File { edges: edges.clone(), urls: self.urls.clone() },
            (None, Some(pages)) => GraphSource::Synthetic(order::SyntheticWeb {
                kind: self.kind,
                pages,
                seed: self.seed,
            }),
            (None, None) => {
                let graph = from_archive(context, self.site.as_deref(), |archive| archive.graph())?;
                GraphSource::Given(context.archive.display().to_string(), graph)
            }
        })
    }

    fn strategies(&self) -> Vec<Strategy> {
        match self.strategies.as_slice() {
            [] => Strategy::ALL.to_vec(),
            named => named.to_vec(),
        }
    }
}

/// Where update times come from.
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// Log of changing pages (TSV, plain or zstd); without it, the archive's versions are taken.
    #[arg(long, value_name = "F.tsv.zst")]
    log: Option<PathBuf>,
    /// Log of static pages.
    #[arg(long = "static", value_name = "F.tsv.zst", requires = "log")]
    statics: Option<PathBuf>,
    /// Only this site of the archive.
    #[arg(long, value_name = "S", conflicts_with = "log")]
    site: Option<String>,
}

impl LogArgs {
    fn read(&self, context: &Context, window: Window) -> anyhow::Result<UpdateLog> {
        match &self.log {
            Some(log) => UpdateLog::read(log, self.statics.as_deref(), window).map_err(wrong),
            None => from_archive(context, self.site.as_deref(), |archive| archive.updates(window)),
        }
    }
}

/// What an experiment takes from the archive.
fn from_archive<T>(
    context: &Context,
    site: Option<&str>,
    take: impl FnOnce(&ArchiveSource<'_>) -> Result<T, LabError>,
) -> anyhow::Result<T> {
    let archive = context.open_to_read()?;
    let sites = match site {
        Some(name) => vec![sites::find(&**archive.state(), name)?],
        None => archive.state().sites()?,
    };
    take(&ArchiveSource { state: &**archive.state(), store: archive.store(), sites: &sites })
        .map_err(wrong)
}

/// When to visit again: coverage and efficiency of revisit policies on an update log (paper 004).
#[derive(Debug, Args)]
pub(crate) struct RevisitArgs {
    #[command(flatten)]
    log: LogArgs,
    /// Width of a slot.
    #[arg(long, value_name = "D", default_value = "1d")]
    resolution: Span,
    /// Length of the window in days.
    #[arg(long, value_name = "N", default_value_t = 365)]
    days: i64,
    /// Policies, such as `mle.mix(0.1-10,2nd=7d)` or `auto`.
    #[arg(long = "policy", value_name = "P", required = true, num_args = 1..)]
    policies: Vec<PolicySpec>,
    /// Visits in all over all sources, for policies that take a budget.
    #[arg(long, value_name = "N")]
    visits: Option<u64>,
    /// Looks at pages when their planned times come, as the crawler does: the default.
    #[arg(long, conflicts_with = "slots")]
    as_crawled: bool,
    /// Looks at all pages in every slot, as the papers' experiments do.
    #[arg(long)]
    slots: bool,
    /// Holds the first policy against each of the others at its visits: together, each source alone,
    /// and under the same budget per day.
    #[arg(long, conflicts_with_all = ["slots", "visits", "visits_of", "folds", "out"])]
    compare: bool,
    /// Each source may make as many visits per day as this policy made on it.
    #[arg(long, value_name = "P", conflicts_with_all = ["slots", "visits"])]
    visits_of: Option<PolicySpec>,
    /// Cross-validates over sources, dealt into N parts: constants are chosen on the other parts.
    /// With --slots, `auto` is held against every other policy at its visits; without, every policy
    /// with what changes together against itself without.
    #[arg(long, value_name = "N", conflicts_with_all = ["visits", "visits_of", "out"])]
    folds: Option<usize>,
    /// Writes report.html and results.json there.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// How many visits each page gets: allocations of a fixed number of visits a day (paper 002).
#[derive(Debug, Args)]
pub(crate) struct BudgetArgs {
    #[command(flatten)]
    log: LogArgs,
    /// Time of daily visits that give the rates.
    #[arg(long, value_name = "D", default_value = "40d")]
    learn: Span,
    /// Visits a day for all pages together.
    #[arg(long, value_name = "N")]
    visits_per_day: f64,
    /// Weights, such as `ext=0.25`, `name=2,no-lm=4`.
    #[arg(long, value_name = "W", num_args = 1..)]
    weights: Vec<Weights>,
    /// Writes report.html and results.json there.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Which parts of a server changed: methods on the archive's rounds (paper 000).
#[derive(Debug, Args)]
pub(crate) struct StructureArgs {
    /// Only this site of the archive.
    #[arg(long, value_name = "S", conflicts_with_all = ["mirrors", "synthetic"])]
    site: Option<String>,
    /// Instead of the archive, a folder of `SITE/VISIT/…`, visits numbered from 1.
    #[arg(long, value_name = "DIR", conflicts_with = "synthetic")]
    mirrors: Option<PathBuf>,
    /// A host under which the pages of a mirrored site link to each other.
    #[arg(long = "host", value_name = "SITE=HOST", requires = "mirrors")]
    hosts: Vec<String>,
    /// Instead of the archive, made-up servers with personal pages.
    #[arg(long)]
    synthetic: bool,
    /// Made-up top pages do not announce changes.
    #[arg(long, requires = "synthetic")]
    silent_tops: bool,
    /// Visits to learn from.
    #[arg(long, value_name = "N", default_value_t = 4)]
    learn: usize,
    /// Also chooses auto's constants on all sites but one, and measures them on that one.
    #[arg(long)]
    cross_validate: bool,
    /// Writes report.html and results.json there.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// `nenrin lab order`.
pub(crate) fn run_order(context: &Context, args: &OrderArgs) -> anyhow::Result<Exit> {
    let source = args.source(context)?;
    if args.speed {
        let (graph, speeds) =
            order::speeds(source, args.start, &args.strategies()).map_err(wrong)?;
        say(graph)?;
        print_summary(speeds)?;
        return Ok(Exit::Done);
    }
    let options = OrderOptions {
        source,
        start: args.start,
        strategies: args.strategies(),
        interleave: args.interleave,
        out: args.out.clone(),
    };
    let report = order::run(&options, &mut |step| tracing::info!("{step}")).map_err(wrong)?;
    let results = report.to_json();
    tell(context, &results, [Summary::graph_orders(&results)], args.out.as_deref())
}

/// A file that is not there or not right is the user's to mend.
fn wrong(error: LabError) -> anyhow::Error {
    usage(error)
}

/// Programs get all results in one line, people the tables.
fn tell(
    context: &Context,
    results: &Value,
    tables: impl IntoIterator<Item = Summary>,
    out: Option<&Path>,
) -> anyhow::Result<Exit> {
    if context.json {
        print_json(results)?;
        return Ok(Exit::Done);
    }
    for (number, summary) in tables.into_iter().enumerate() {
        if number > 0 {
            say("")?;
        }
        if let Some(title) = summary.title {
            say(title)?;
        }
        print_summary(summary)?;
    }
    written(out)
}

/// Says where the report is: not among the results, which may be piped to a program.
pub(super) fn written(out: Option<&Path>) -> anyhow::Result<Exit> {
    if let Some(out) = out {
        writeln!(io::stderr(), "written to {}", out.join("report.html").display())?;
    }
    Ok(Exit::Done)
}

/// `nenrin lab revisit`.
pub(crate) fn run_revisit(context: &Context, args: &RevisitArgs) -> anyhow::Result<Exit> {
    let window =
        Window { resolution_s: args.resolution.as_s(), days: args.days, ..Window::default() };
    let log = args.log.read(context, window)?;
    let options = RevisitOptions {
        policies: args.policies.clone(),
        visits: args.visits,
        slots: args.slots,
        compare: args.compare,
        folds: args.folds,
        visits_of: args.visits_of,
        out: args.out.clone(),
    };
    let results = revisit::run(&log, &options).map_err(wrong)?;
    let tables = match args.folds {
        Some(_) => Summary::folds(&results),
        None if args.compare => vec![Summary::compared(&results)],
        None => vec![Summary::policies(&results)],
    };
    tell(context, &results, tables, args.out.as_deref())
}

pub(super) fn print_summary(summary: Summary) -> io::Result<()> {
    let mut table = Table::new(&summary.headings);
    summary.rows.into_iter().for_each(|row| table.row(row));
    print_table(&table)
}

/// `nenrin lab budget`.
pub(crate) fn run_budget(context: &Context, args: &BudgetArgs) -> anyhow::Result<Exit> {
    let log = args.log.read(context, Window::default())?;
    let options = BudgetOptions {
        learn_days: u32::try_from(args.learn.as_s() / 86_400).unwrap_or(u32::MAX),
        visits_per_day: args.visits_per_day,
        weights: args.weights.clone(),
        out: args.out.clone(),
    };
    let results = budget::run(&log, &options).map_err(wrong)?;
    tell(context, &results, [Summary::shares(&results)], args.out.as_deref())
}

/// `nenrin lab structure`.
pub(crate) fn run_structure(context: &Context, args: &StructureArgs) -> anyhow::Result<Exit> {
    let history = match &args.mirrors {
        Some(folder) => {
            load_mirrors(&MirrorSite::all_in(folder, &args.hosts).map_err(usage)?).map_err(wrong)?
        }
        None if args.synthetic => structure::SyntheticWeb {
            tops_announce: !args.silent_tops,
            ..structure::SyntheticWeb::default()
        }
        .history(),
        None => from_archive(context, args.site.as_deref(), |archive| archive.rounds())?,
    };
    let options = StructureOptions {
        learning_visits: args.learn,
        cross_validate: args.cross_validate,
        out: args.out.clone(),
        ..StructureOptions::default()
    };
    let outcome = structure::run(&history, &options).map_err(wrong)?;
    let tables = Summary::structure(&outcome.results);
    tell(context, &outcome.results, tables, args.out.as_deref())
}
