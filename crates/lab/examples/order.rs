//! `nenrin lab order` while it has no command of its own:
//! `cargo run --release -p nenrin-lab --example order -- --graph F.edges.zst --start N`.

use std::path::PathBuf;

use clap::Parser;
use nenrin_lab::LabError;
use nenrin_lab::order::{
    Graph, GraphSource, OrderOptions, SyntheticWeb, WebKind, measure_speed, run, synthetic_web,
};
use nenrin_order::Strategy;

/// Which new page first: compares crawl orders on a link graph (paper 003).
#[derive(Debug, Parser)]
struct OrderArgs {
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
    #[arg(long, default_value_t = 0)]
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

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
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
            (None, pages) => GraphSource::Synthetic(SyntheticWeb {
                kind: self.kind.into(),
                pages: pages.unwrap_or(100_000),
                seed: self.seed,
            }),
        }
    }

    fn options(&self) -> OrderOptions {
        let strategies = if self.strategies.is_empty() {
            Strategy::ALL.to_vec()
        } else {
            self.strategies.clone()
        };
        OrderOptions {
            source: self.source(),
            start: self.start,
            strategies,
            interleave: self.interleave,
            out: self.out.clone(),
        }
    }
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "an example is a command")]
fn main() -> Result<(), LabError> {
    let args = OrderArgs::parse();
    if args.speed {
        return print_speed(&args);
    }
    let report = run(&args.options(), &mut |step| eprintln!("{step} …"))?;
    println!("{:#}", report.to_json());
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example is a command")]
fn print_speed(args: &OrderArgs) -> Result<(), LabError> {
    let (name, graph) = match args.source() {
        GraphSource::File { edges, urls } => {
            (edges.display().to_string(), Graph::read(&edges, urls.as_deref())?)
        }
        GraphSource::Synthetic(web) => ("synthetic".to_owned(), synthetic_web(&web)),
        GraphSource::Given(name, graph) => (name, graph),
    };
    println!("{name}: {} pages, {} links, {} hosts", graph.pages(), graph.links(), graph.hosts());
    println!("strategy     look-up   M pages/s   M links/s   M random accesses/s   share");
    for strategy in args.options().strategies {
        for with_look_up in [false, true] {
            let speed = measure_speed(&name, &graph, args.start, strategy, with_look_up);
            println!(
                "{strategy:12} {:7} {:11.3} {:11.1} {:21.1} {:7.2}",
                if with_look_up { "URL" } else { "–" },
                speed.pages_per_second / 1e6,
                speed.links_per_second / 1e6,
                speed.random_accesses_per_second / 1e6,
                speed.links_per_second / speed.random_accesses_per_second,
            );
        }
    }
    Ok(())
}
