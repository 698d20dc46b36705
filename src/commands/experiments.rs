//! The papers' experiments, on the shipped code: `nenrin lab order|revisit|budget|structure`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use nenrin_lab::{
    LabError,
    budget::{self, BudgetOptions},
    order::{self, Graph, GraphSource, OrderOptions, WebKind, measure_speed, synthetic_web},
    revisit::{self, RevisitOptions},
    structure::{self, MirrorSite, StructureOptions, load_mirrors},
    updates::Window,
};
use nenrin_order::Strategy;
use nenrin_revisit::{PolicySpec, Weights};
use serde_json::Value;

use super::Context;
use crate::{
    exit::{Exit, usage},
    spans::Span,
    table::{Table, print_json, say},
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
    /// Makes up a web of this many pages instead.
    #[arg(long, value_name = "PAGES", required_unless_present = "graph")]
    synthetic: Option<u32>,
    /// Kind of the made-up web.
    #[arg(long, value_enum, default_value_t = KindArg::Servers)]
    kind: KindArg,
    /// Seed of the made-up web.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The page to start at.
    #[arg(long, value_name = "N", default_value_t = 0)]
    start: u32,
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

#[derive(Clone, Copy, Debug, ValueEnum)]
enum KindArg {
    /// Many servers, power laws.
    Servers,
    /// One server, preferential attachment.
    PowerLaw,
    /// One server, long chains and hubs without links.
    Chains,
}

impl From<KindArg> for WebKind {
    fn from(kind: KindArg) -> Self {
        match kind {
            KindArg::Servers => Self::Servers,
            KindArg::PowerLaw => Self::PowerLaw,
            KindArg::Chains => Self::Chains,
        }
    }
}

impl OrderArgs {
    fn source(&self) -> GraphSource {
        match (&self.graph, self.synthetic) {
            (Some(edges), _) => GraphSource::File { edges: edges.clone(), urls: self.urls.clone() },
            (None, pages) => GraphSource::Synthetic(order::SyntheticWeb {
                kind: self.kind.into(),
                pages: pages.unwrap_or(100_000),
                seed: self.seed,
            }),
        }
    }

    fn strategies(&self) -> Vec<Strategy> {
        match self.strategies.as_slice() {
            [] => Strategy::ALL.to_vec(),
            named => named.to_vec(),
        }
    }
}

/// When to come again: coverage and efficiency of revisit policies on an update log (paper 004).
#[derive(Debug, Args)]
pub(crate) struct RevisitArgs {
    /// Log of changing pages (TSV, plain or zstd).
    #[arg(long, value_name = "F.tsv.zst")]
    log: PathBuf,
    /// Log of static pages.
    #[arg(long = "static", value_name = "F.tsv.zst")]
    statics: Option<PathBuf>,
    /// Width of a slot.
    #[arg(long, value_name = "D", default_value = "1d")]
    resolution: Span,
    /// Length of the window in days.
    #[arg(long, value_name = "N", default_value_t = 365)]
    days: i64,
    /// Policies, such as `mle.mix(0.1-10,2nd=7d)` or `auto`.
    #[arg(long = "policy", value_name = "P", required = true, num_args = 1..)]
    policies: Vec<PolicySpec>,
    /// Visits in all, for policies that take a budget.
    #[arg(long, value_name = "N")]
    visits: Option<u64>,
    /// Writes report.html and results.json there.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// How many visits each page gets: allocations of a fixed number of visits a day (paper 002).
#[derive(Debug, Args)]
pub(crate) struct BudgetArgs {
    /// Log of changing pages (TSV, plain or zstd).
    #[arg(long, value_name = "F.tsv.zst")]
    log: PathBuf,
    /// Log of static pages.
    #[arg(long = "static", value_name = "F.tsv.zst")]
    statics: Option<PathBuf>,
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

/// Which parts of a server changed: methods on mirrored folders or made-up servers (paper 000).
#[derive(Debug, Args)]
pub(crate) struct StructureArgs {
    /// A folder of `SITE/VISIT/…`, visits numbered from 1; without it, servers are made up.
    #[arg(long, value_name = "DIR")]
    mirrors: Option<PathBuf>,
    /// A host under which the pages of a site link to each other.
    #[arg(long = "host", value_name = "SITE=HOST")]
    hosts: Vec<String>,
    /// Made-up top pages do not announce changes.
    #[arg(long)]
    silent_tops: bool,
    /// Visits to learn from.
    #[arg(long, value_name = "N", default_value_t = 4)]
    learn: usize,
    /// Writes report.html and results.json there.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// `nenrin lab order`.
pub(crate) fn run_order(context: &Context, args: &OrderArgs) -> anyhow::Result<Exit> {
    if args.speed {
        return order_speed(args);
    }
    let options = OrderOptions {
        source: args.source(),
        start: args.start,
        strategies: args.strategies(),
        interleave: args.interleave,
        out: args.out.clone(),
    };
    let report = order::run(&options, &mut |step| tracing::info!("{step}")).map_err(wrong)?;
    tell(context, &report.to_json(), args.out.as_deref())
}

/// A file that is not there or not right is the user's to mend.
fn wrong(error: LabError) -> anyhow::Error {
    usage(error)
}

/// Programs get one line, people the same indented.
fn tell(context: &Context, results: &Value, out: Option<&Path>) -> anyhow::Result<Exit> {
    if context.json {
        print_json(results)?;
    } else {
        say(format!("{results:#}"))?;
        if let Some(out) = out {
            say(format!("written to {}", out.join("report.html").display()))?;
        }
    }
    Ok(Exit::Done)
}

fn order_speed(args: &OrderArgs) -> anyhow::Result<Exit> {
    let (name, graph) = match args.source() {
        GraphSource::File { edges, urls } => {
            (edges.display().to_string(), Graph::read(&edges, urls.as_deref()).map_err(wrong)?)
        }
        GraphSource::Synthetic(web) => ("synthetic".to_owned(), synthetic_web(&web)),
        GraphSource::Given(name, graph) => (name, graph),
    };
    say(format!(
        "{name}: {} pages, {} links, {} hosts",
        graph.pages(),
        graph.links(),
        graph.hosts()
    ))?;
    let mut table = Table::new(&[
        "strategy",
        "look-up",
        "M pages/s",
        "M links/s",
        "M random accesses/s",
        "share",
    ]);
    for strategy in args.strategies() {
        for with_look_up in [false, true] {
            let speed = measure_speed(&name, &graph, args.start, strategy, with_look_up);
            table.row(vec![
                strategy.to_string(),
                if with_look_up { "URL" } else { "none" }.to_owned(),
                format!("{:.3}", speed.pages_per_second / 1e6),
                format!("{:.1}", speed.links_per_second / 1e6),
                format!("{:.1}", speed.random_accesses_per_second / 1e6),
                format!("{:.2}", speed.links_per_second / speed.random_accesses_per_second),
            ]);
        }
    }
    table.print()?;
    Ok(Exit::Done)
}

/// `nenrin lab revisit`.
pub(crate) fn run_revisit(context: &Context, args: &RevisitArgs) -> anyhow::Result<Exit> {
    let window =
        Window { resolution_s: args.resolution.as_s(), days: args.days, ..Window::default() };
    let options = RevisitOptions {
        log: args.log.clone(),
        statics: args.statics.clone(),
        window,
        policies: args.policies.clone(),
        visits: args.visits,
        out: args.out.clone(),
    };
    tell(context, &revisit::run(&options).map_err(wrong)?, args.out.as_deref())
}

/// `nenrin lab budget`.
pub(crate) fn run_budget(context: &Context, args: &BudgetArgs) -> anyhow::Result<Exit> {
    let options = BudgetOptions {
        log: args.log.clone(),
        statics: args.statics.clone(),
        window: Window::default(),
        learn_days: u32::try_from(args.learn.as_s() / 86_400).unwrap_or(u32::MAX),
        visits_per_day: args.visits_per_day,
        weights: args.weights.clone(),
        out: args.out.clone(),
    };
    tell(context, &budget::run(&options).map_err(wrong)?, args.out.as_deref())
}

/// `nenrin lab structure`.
pub(crate) fn run_structure(context: &Context, args: &StructureArgs) -> anyhow::Result<Exit> {
    let history = match &args.mirrors {
        Some(folder) => {
            load_mirrors(&mirror_sites(folder, &args.hosts).map_err(usage)?).map_err(wrong)?
        }
        None => structure::SyntheticWeb {
            tops_announce: !args.silent_tops,
            ..structure::SyntheticWeb::default()
        }
        .history(),
    };
    let options = StructureOptions {
        learning_visits: args.learn,
        out: args.out.clone(),
        ..StructureOptions::default()
    };
    let outcome = structure::run(&history, &options).map_err(wrong)?;
    tell(context, &outcome.results, args.out.as_deref())
}

fn mirror_sites(folder: &Path, hosts: &[String]) -> std::io::Result<Vec<MirrorSite>> {
    let entries = std::fs::read_dir(folder)?.map(|entry| entry.map(|e| e.path()));
    let mut paths: Vec<PathBuf> = entries.collect::<Result<_, _>>()?;
    paths.sort();
    let site = |path: PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let folders = (1..).map(|visit: u32| path.join(visit.to_string()));
        let folders = folders.take_while(|folder| folder.is_dir()).collect();
        let hosts = hosts.iter().filter_map(|host| host.split_once('='));
        let hosts = hosts.filter(|(site, _)| *site == name).map(|(_, host)| host.to_owned());
        MirrorSite { hosts: hosts.collect(), kind: "mirror".to_owned(), name, folders }
    };
    Ok(paths.into_iter().map(site).collect())
}
