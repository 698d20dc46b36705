//! The experiment of paper 003: which newly found page first.
//!
//! Read in this order: [`OrderOptions`] and [`run`], which returns an [`OrderReport`]; [`Graph`]
//! and [`synthetic_web`], what is crawled; [`Importance`], the truth; [`Measures`], the criteria A,
//! B and C; [`measure_speed`].

mod figures;
mod graph;
mod importance;
mod measures;
mod numbering;
mod shapes;
mod simulate;
mod speed;
mod synthetic;

use std::path::PathBuf;

use nenrin_order::Strategy;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

pub use self::graph::Graph;
pub use self::importance::Importance;
pub use self::measures::{CurvePoint, Measures, POINTS, TOPS};
pub use self::speed::{Speed, measure_speed};
pub use self::synthetic::{SyntheticWeb, WebKind, synthetic_web};

use self::numbering::ByPageId;
use self::simulate::Crawl;
use crate::{LabError, summary::Summary};

/// What is crawled.
#[derive(Clone, Debug)]
pub enum GraphSource {
    /// A `WGRAPH1` file and, if there is one, the file of its URLs.
    File {
        /// The links.
        edges: PathBuf,
        /// The URLs.
        urls: Option<PathBuf>,
    },
    /// A web generated from a seed.
    Synthetic(SyntheticWeb),
    /// A graph in memory, such as that of an archive, and its name.
    Given(String, Graph),
}

/// What to try.
#[derive(Clone, Debug)]
pub struct OrderOptions {
    /// What is crawled.
    pub source: GraphSource,
    /// The page to start at.
    pub start: u32,
    /// The orders to compare.
    pub strategies: Vec<Strategy>,
    /// One page per server in turn instead of the best page of all.
    pub interleave: bool,
    /// Where to write `report.html` and `results.json`.
    pub out: Option<PathBuf>,
}

/// The results of one order.
#[derive(Clone, Debug)]
pub struct StrategyResult {
    /// The order.
    pub strategy: Strategy,
    /// Criteria A, B and C.
    pub measures: Measures,
    /// Scores changed by additions.
    pub additions: u64,
    /// Pages decided in a second, links and all in memory; the fastest of several runs.
    pub pages_per_second: f64,
    /// SHA-256 over the page ids in the order collected, each as u32 LE.
    pub order_sha256: String,
}

/// The results of all orders on one graph.
#[derive(Clone, Debug)]
pub struct OrderReport {
    /// The name of the graph.
    pub graph: String,
    /// Pages in the graph.
    pub pages: usize,
    /// Links in the graph.
    pub links: usize,
    /// Hosts in the graph.
    pub hosts: u32,
    /// Pages that can be reached from the start.
    pub reachable: usize,
    /// The page where the crawl started.
    pub start: u32,
    /// Whether servers took turns.
    pub interleave: bool,
    /// The orders, in the requested sequence.
    pub strategies: Vec<StrategyResult>,
}

/// Crawls the graph by each order and measures. `progress` is called with the next step.
///
/// # Errors
/// [`LabError`] when the graph cannot be read, the start is not in it, or the report cannot be
/// written.
pub fn run(
    options: &OrderOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<OrderReport, LabError> {
    progress("reading the graph");
    let (name, graph) = load(&options.source)?;
    if options.start as usize >= graph.pages() {
        return Err(LabError::NoSuchPage { page: options.start, pages: graph.pages() });
    }
    progress("computing the true importance");
    let reachable = graph.reachable(options.start);
    let truth = Importance::of(&graph, &reachable);
    let mut strategies = Vec::new();
    for strategy in &options.strategies {
        progress(strategy.name());
        strategies.push(try_strategy(*strategy, &graph, &truth, options, reachable.len()));
    }
    let report = OrderReport {
        graph: name,
        pages: graph.pages(),
        links: graph.links(),
        hosts: graph.hosts(),
        reachable: reachable.len(),
        start: options.start,
        interleave: options.interleave,
        strategies,
    };
    if let Some(dir) = &options.out {
        progress("writing the report");
        figures::page(&report).write(dir, &report.to_json())?;
    }
    Ok(report)
}

/// How fast orders decide on a graph: a line about the graph, and a row for each strategy with and
/// without looking URLs up.
///
/// # Errors
/// Where the graph cannot be read.
pub fn speeds(
    source: GraphSource,
    start: u32,
    strategies: &[Strategy],
) -> Result<(String, Summary), LabError> {
    let (name, graph) = load(&source)?;
    let (pages, links, hosts) = (graph.pages(), graph.links(), graph.hosts());
    let mut rows = Vec::new();
    for &strategy in strategies {
        for with_look_up in [false, true] {
            let speed = measure_speed(&name, &graph, start, strategy, with_look_up);
            rows.push(vec![
                strategy.to_string(),
                if with_look_up { "URL" } else { "none" }.to_owned(),
                format!("{:.3}", speed.pages_per_second / 1e6),
                format!("{:.1}", speed.links_per_second / 1e6),
                format!("{:.1}", speed.random_accesses_per_second / 1e6),
                format!("{:.2}", speed.links_per_second / speed.random_accesses_per_second),
            ]);
        }
    }
    let headings =
        vec!["strategy", "look-up", "M pages/s", "M links/s", "M random accesses/s", "share"];
    Ok((
        format!("{name}: {pages} pages, {links} links, {hosts} hosts"),
        Summary { title: None, headings, rows },
    ))
}

fn load(source: &GraphSource) -> Result<(String, Graph), LabError> {
    Ok(match source {
        GraphSource::File { edges, urls } => {
            let file = edges.file_name().map(|name| name.to_string_lossy().into_owned());
            let name = file.unwrap_or_default().trim_end_matches(".edges.zst").to_owned();
            (name, Graph::read(edges, urls.as_deref())?)
        }
        GraphSource::Synthetic(web) => {
            (format!("synthetic web {:?}, seed {}", web.kind, web.seed), synthetic_web(web))
        }
        GraphSource::Given(name, graph) => (name.clone(), graph.clone()),
    })
}

fn try_strategy(
    strategy: Strategy,
    graph: &Graph,
    truth: &Importance,
    options: &OrderOptions,
    reachable: usize,
) -> StrategyResult {
    let ((collected, additions), time) = speed::fastest(|| {
        let mut order = strategy.build(reachable as u64);
        let numbering = ByPageId::new(graph.pages());
        let mut crawl = Crawl::new(graph, Some(truth), &mut *order, numbering);
        let collected = if options.interleave {
            crawl.run_interleaved(options.start)
        } else {
            crawl.run(options.start)
        };
        (collected, order.additions())
    });
    StrategyResult {
        strategy,
        measures: Measures::of(&collected, truth),
        additions,
        pages_per_second: collected.len() as f64 / time.as_secs_f64(),
        order_sha256: order_sha256(&collected),
    }
}

fn order_sha256(order: &[u32]) -> String {
    let mut hasher = Sha256::new();
    for page in order {
        hasher.update(page.to_le_bytes());
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl OrderReport {
    /// The JSON answer, by the contract of `nenrin lab order`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let strategies: Vec<Value> = self.strategies.iter().map(StrategyResult::to_json).collect();
        json!({
            "graph": self.graph,
            "pages": self.pages,
            "links": self.links,
            "hosts": self.hosts,
            "reachable": self.reachable,
            "start": self.start,
            "interleave": self.interleave,
            "points": POINTS,
            "strategies": strategies,
        })
    }
}

impl StrategyResult {
    fn to_json(&self) -> Value {
        let [top_thousandth, top_hundredth, top_tenth] = self.measures.a;
        json!({
            "name": self.strategy.name(),
            "a": {"0.1": top_thousandth, "1": top_hundredth, "10": top_tenth},
            "b": self.measures.b,
            "c": self.measures.c,
            "additions": self.additions,
            "pages_per_second": self.pages_per_second,
            "order_sha256": self.order_sha256,
        })
    }
}
