//! The papers' experiments as commands: arguments in, results and tables out.

use std::path::PathBuf;

use clap::Args;
use nenrin_archive::{Archive, Span, counted, sites};
use nenrin_order::Strategy;
use nenrin_revisit::{PolicySpec, RevisitSettings, Weights};
use nenrin_structure::RoundsBy;
use serde_json::{Value, json};

use crate::{
    LabError,
    archive::ArchiveSource,
    budget::{self, BudgetOptions},
    crawl::CrawlOptions,
    order::{self, GraphSource, OrderOptions, WebKind},
    revisit::{self, RevisitOptions},
    structure::{self, MirrorSite, StructureOptions, load_mirrors},
    summary::Summary,
    updates::{UpdateLog, Window},
};

/// What an experiment found.
pub struct Findings {
    /// All of it, for programs.
    pub results: Value,
    /// The same in short, for people.
    pub tables: Vec<Summary>,
    /// The folder of its report, if one was written.
    pub out: Option<PathBuf>,
}

/// An experiment with its arguments.
pub trait Experiment {
    /// Whether it takes its pages from the archive.
    fn reads_archive(&self) -> bool;

    /// Carries it out. `note` is called with each step of a long one.
    ///
    /// # Errors
    /// When a file or setting cannot be used, or the archive cannot be read.
    fn run(
        &self,
        archive: Option<&Archive>,
        note: &mut dyn FnMut(&str),
    ) -> Result<Findings, LabError>;
}

/// Which new page first: compares crawl orders on a link graph (paper 003).
#[derive(Debug, Args)]
pub struct OrderArgs {
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
    fn source(&self, archive: Option<&Archive>) -> Result<GraphSource, LabError> {
        Ok(match (&self.graph, self.synthetic) {
            (Some(edges), _) => GraphSource::File { edges: edges.clone(), urls: self.urls.clone() },
            (None, Some(pages)) => GraphSource::Synthetic(order::SyntheticWeb {
                kind: self.kind,
                pages,
                seed: self.seed,
            }),
            (None, None) => {
                let name = archive.map(|archive| archive.folder().display().to_string());
                let graph = from_archive(archive, self.site.as_deref(), |source| source.graph())?;
                GraphSource::Given(name.unwrap_or_default(), graph)
            }
        })
    }
}

impl Experiment for OrderArgs {
    fn reads_archive(&self) -> bool {
        self.graph.is_none() && self.synthetic.is_none()
    }

    fn run(
        &self,
        archive: Option<&Archive>,
        note: &mut dyn FnMut(&str),
    ) -> Result<Findings, LabError> {
        let source = self.source(archive)?;
        let strategies = match self.strategies.as_slice() {
            [] => Strategy::ALL.to_vec(),
            named => named.to_vec(),
        };
        if self.speed {
            let (graph, speeds) = order::speeds(source, self.start, &strategies)?;
            let results = json!({"graph": graph, "speeds": speeds.rows});
            let tables = vec![Summary { title: Some(graph), ..speeds }];
            return Ok(Findings { results, tables, out: None });
        }
        let options = OrderOptions {
            source,
            start: self.start,
            strategies,
            interleave: self.interleave,
            out: self.out.clone(),
        };
        let results = order::run(&options, note)?.to_json();
        let tables = vec![Summary::graph_orders(&results)];
        Ok(Findings { results, tables, out: self.out.clone() })
    }
}

/// Where update times come from.
#[derive(Debug, Args)]
pub struct LogArgs {
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
    fn read(
        &self,
        archive: Option<&Archive>,
        window: Window,
        note: &mut dyn FnMut(&str),
    ) -> Result<UpdateLog, LabError> {
        let Some(path) = &self.log else {
            return from_archive(archive, self.site.as_deref(), |source| source.updates(window));
        };
        let log = UpdateLog::read(path, self.statics.as_deref(), window)?;
        if log.left_out > 0 {
            note(&format!(
                "{} left out: fewer than {} updates after the first visit; \
                 lines that are given with --static take part whatever their updates",
                counted(log.left_out as u64, "page"),
                window.min_updates,
            ));
        }
        Ok(log)
    }
}

/// What an experiment takes from the archive.
fn from_archive<T>(
    archive: Option<&Archive>,
    site: Option<&str>,
    take: impl FnOnce(&ArchiveSource<'_>) -> Result<T, LabError>,
) -> Result<T, LabError> {
    let archive = archive.ok_or_else(|| LabError::Input {
        what: "there is neither a file nor an archive to take pages from".to_owned(),
    })?;
    let sites = match site {
        Some(name) => vec![sites::find(&**archive.state(), name)?],
        None => archive.state().sites()?,
    };
    take(&ArchiveSource { state: &**archive.state(), store: archive.store(), sites: &sites })
}

/// When to visit again: coverage and efficiency of revisit policies on an update log (paper 004).
#[derive(Debug, Args)]
pub struct RevisitArgs {
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

impl Experiment for RevisitArgs {
    fn reads_archive(&self) -> bool {
        self.log.log.is_none()
    }

    fn run(
        &self,
        archive: Option<&Archive>,
        note: &mut dyn FnMut(&str),
    ) -> Result<Findings, LabError> {
        let window =
            Window { resolution_s: self.resolution.as_s(), days: self.days, ..Window::default() };
        let log = self.log.read(archive, window, note)?;
        let options = RevisitOptions {
            policies: self.policies.clone(),
            visits: self.visits,
            slots: self.slots,
            compare: self.compare,
            folds: self.folds,
            visits_of: self.visits_of,
            out: self.out.clone(),
        };
        let results = revisit::run(&log, &options)?;
        let tables = match self.folds {
            Some(_) => Summary::folds(&results),
            None if self.compare => vec![Summary::compared(&results)],
            None => vec![Summary::policies(&results)],
        };
        Ok(Findings { results, tables, out: self.out.clone() })
    }
}

/// How many visits each page gets: allocations of a fixed number of visits a day (paper 002).
#[derive(Debug, Args)]
pub struct BudgetArgs {
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

impl Experiment for BudgetArgs {
    fn reads_archive(&self) -> bool {
        self.log.log.is_none()
    }

    fn run(
        &self,
        archive: Option<&Archive>,
        note: &mut dyn FnMut(&str),
    ) -> Result<Findings, LabError> {
        let log = self.log.read(archive, Window::default(), note)?;
        let options = BudgetOptions {
            learn_days: u32::try_from(self.learn.as_s() / 86_400).unwrap_or(u32::MAX),
            visits_per_day: self.visits_per_day,
            weights: self.weights.clone(),
            out: self.out.clone(),
        };
        let results = budget::run(&log, &options)?;
        let tables = vec![Summary::shares(&results)];
        Ok(Findings { results, tables, out: self.out.clone() })
    }
}

/// Which parts of a server changed: methods on the archive's rounds (paper 000).
#[derive(Debug, Args)]
pub struct StructureArgs {
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

impl Experiment for StructureArgs {
    fn reads_archive(&self) -> bool {
        self.mirrors.is_none() && !self.synthetic
    }

    fn run(
        &self,
        archive: Option<&Archive>,
        _: &mut dyn FnMut(&str),
    ) -> Result<Findings, LabError> {
        let history = match &self.mirrors {
            Some(folder) => load_mirrors(
                &MirrorSite::all_in(folder, &self.hosts).map_err(LabError::file("read", folder))?,
            )?,
            None if self.synthetic => structure::SyntheticWeb {
                tops_announce: !self.silent_tops,
                ..structure::SyntheticWeb::default()
            }
            .history(),
            None => from_archive(archive, self.site.as_deref(), |source| source.rounds())?,
        };
        let options = StructureOptions {
            learning_visits: self.learn,
            cross_validate: self.cross_validate,
            out: self.out.clone(),
            ..StructureOptions::default()
        };
        let results = structure::run(&history, &options)?.results;
        let tables = Summary::structure(&results);
        Ok(Findings { results, tables, out: self.out.clone() })
    }
}

/// Our bytes next to those of other ways of keeping the same visits (paper 001).
#[derive(Debug, Args)]
pub struct StorageArgs {
    /// A folder of `SITE/VISIT/…`, visits numbered from 1.
    #[arg(long, value_name = "DIR")]
    pub corpus: PathBuf,
    /// Only these sites, separated by commas.
    #[arg(long, value_name = "S,…", value_delimiter = ',')]
    pub sites: Vec<String>,
    /// The genre of a site, for the figures by genre.
    #[arg(long = "genre", value_name = "SITE=GENRE", value_parser = crate::storage::genre)]
    pub genres: Vec<(String, String)>,
    /// Where the archive under measurement is made; what was measured of other ways is kept there for
    /// the next run. A temporary folder by default.
    #[arg(long, value_name = "DIR")]
    pub work: Option<PathBuf>,
    /// Also collect the visits from loopback servers, with and without compressing beside it.
    #[arg(long)]
    pub overlap: bool,
    /// Writes report.html and results.json there.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// The crawler on a simulated web, watched by checkers.
#[derive(Debug, Args)]
pub struct CrawlArgs {
    /// Web servers.
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub servers: u32,
    /// Pages on each.
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub pages: u32,
    /// Simulated time.
    #[arg(long, value_name = "D", default_value = "365d")]
    pub time: Span,
    /// Time from the beginning of one round to the next.
    #[arg(long, value_name = "D", default_value = "7d")]
    pub period: Span,
    /// Seed of the simulated web; the same seed gives the same trace.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Share of answers that are faults (time-outs, 5xx, 429, cut bodies).
    #[arg(long, value_name = "SHARE", default_value_t = 0.02)]
    pub faults: f64,
    /// Crashes of the crawler, at random moments.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub crashes: u32,
    /// Partitions of the archive, each with a worker of its own.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub partitions: u32,
    /// Hand-overs of partitions to other workers, at random moments.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub hand_overs: u32,
    /// Days on which the clock is wrong, no name can be looked up or no descriptor is left: N of each.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub bad_days: u32,
    /// Which pages a round visits: all, structure(A), structure(B), structure(C) or structure(auto).
    #[arg(long, value_name = "METHOD", default_value_t, conflicts_with = "continuous")]
    pub rounds_by: RoundsBy,
    /// Visit every page on its own schedule by this policy, instead of in rounds.
    #[arg(long, value_name = "POLICY", num_args = 0..=1, default_missing_value = "auto")]
    pub continuous: Option<PolicySpec>,
    /// With --continuous: most visits a day to each server's pages.
    #[arg(long, value_name = "N", requires = "continuous")]
    pub visits_per_day: Option<u64>,
    /// Runs this many seeds from --seed on and lists those that break a law.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seeds: u64,
    /// A small world for each seed (300 pages on ten servers, a month), collected in the way that
    /// the seed chooses.
    #[arg(long, conflicts_with_all = ["servers", "pages", "time", "period", "faults", "crashes", "hand_overs", "bad_days", "continuous"])]
    pub small: bool,
    /// With --small: a file of seeds that broke a law the last time; they are tried first, and the file
    /// is written again.
    #[arg(long, value_name = "FILE", requires = "small")]
    pub failing: Option<PathBuf>,
    /// Instead: compares crawl orders by how early they collect important pages.
    #[arg(long, value_name = "ORDER", num_args = 1.., requires = "continuous")]
    pub orders: Vec<Strategy>,
}

impl CrawlArgs {
    /// The simulation of one seed.
    pub fn options(&self, seed: u64) -> CrawlOptions {
        let continuous = self.continuous.map(|policy| RevisitSettings {
            policy,
            visits_per_day: self.visits_per_day,
            ..RevisitSettings::default()
        });
        CrawlOptions {
            seed,
            servers: self.servers,
            pages: self.pages,
            time_s: self.time.as_s(),
            period_s: self.period.as_s(),
            faults: self.faults,
            partitions: self.partitions,
            crashes: self.crashes,
            hand_overs: self.hand_overs,
            bad_days: self.bad_days,
            rounds_by: self.rounds_by,
            continuous,
            ..CrawlOptions::default()
        }
    }
}
