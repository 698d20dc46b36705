use nenrin_lab::{crawl::seeds, experiment::CrawlArgs, summary::Summary, workers::WorkersArgs};
use nenrin_order::Strategy;

use super::{Context, experiments, storage};
use crate::{
    cli::LabCommand,
    clock,
    exit::{Exit, usage},
    table::{print_json, say},
};

/// `nenrin lab …`.
pub(super) fn lab(context: &Context, command: &LabCommand) -> anyhow::Result<Exit> {
    match command {
        LabCommand::Crawl(args) => crawl(context, args),
        LabCommand::Order(args) => experiments::run(context, args),
        LabCommand::Revisit(args) => experiments::run(context, args),
        LabCommand::Budget(args) => experiments::run(context, args),
        LabCommand::Storage(args) => storage::run(context, args),
        LabCommand::Structure(args) => experiments::run(context, args),
        LabCommand::Workers(args) => workers(args),
    }
}

fn workers(args: &WorkersArgs) -> anyhow::Result<Exit> {
    let report = nenrin_lab::workers::run(args);
    print_json(&report)?;
    Ok(if report.is_sound() { Exit::Done } else { Exit::Partly })
}

/// Small worlds on every core; only those that break a law are listed.
fn small_worlds(context: &Context, args: &CrawlArgs) -> anyhow::Result<Exit> {
    let began_ms = clock::now_ms();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (count, failing) = (args.seeds.max(1), args.failing.as_deref());
    let report =
        seeds::run_seeds(args.seed, count, args.partitions, threads, failing).map_err(usage)?;
    let elapsed_s = (clock::now_ms() - began_ms) as f64 / 1000.0;
    let exit = if report.failing.is_empty() { Exit::Done } else { Exit::Partly };
    if context.json {
        print_json(&report)?;
        return Ok(exit);
    }
    report.broken().into_iter().try_for_each(say)?;
    say(report.summary(elapsed_s))?;
    Ok(exit)
}

fn crawl(context: &Context, args: &CrawlArgs) -> anyhow::Result<Exit> {
    if args.small {
        return small_worlds(context, args);
    }
    let mut exit = Exit::Done;
    for seed in args.seed..args.seed.saturating_add(args.seeds.max(1)) {
        let quiet = args.seeds > 1;
        if crawl_once(context, args, seed, quiet)? == Exit::Partly {
            exit = Exit::Partly;
        }
    }
    Ok(exit)
}

/// The same simulation by each crawl order.
fn compare_orders(
    context: &Context,
    options: &nenrin_lab::crawl::CrawlOptions,
    orders: &[Strategy],
) -> anyhow::Result<Exit> {
    let bad = orders.iter().find(|order| !order.can_collect());
    if let Some(order) = bad {
        return Err(usage(anyhow::anyhow!("a crawler cannot use the order {order}")));
    }
    let outcomes = nenrin_lab::crawl::compare_orders(options, orders).map_err(usage)?;
    let broken = outcomes.iter().any(|outcome| !outcome.violations.is_empty());
    if context.json {
        print_json(&outcomes)?;
    } else {
        experiments::print_summary(Summary::orders(&outcomes))?;
    }
    Ok(if broken { Exit::Partly } else { Exit::Done })
}

/// One simulation; a quiet one only lists broken laws.
fn crawl_once(context: &Context, args: &CrawlArgs, seed: u64, quiet: bool) -> anyhow::Result<Exit> {
    let options = args.options(seed);
    if !args.orders.is_empty() {
        return compare_orders(context, &options, &args.orders);
    }
    let began_ms = clock::now_ms();
    let report = nenrin_lab::crawl::run(&options).map_err(usage)?;
    let elapsed_s = (clock::now_ms() - began_ms) as f64 / 1000.0;
    let exit = if report.violations.is_empty() { Exit::Done } else { Exit::Partly };
    if context.json {
        print_json(&report)?;
        return Ok(exit);
    }
    if quiet && report.violations.is_empty() {
        return Ok(exit);
    }
    say(format!(
        "{} of {} servers × {} pages, seed {}: simulated in {elapsed_s:.1} s",
        args.time, args.servers, args.pages, seed
    ))?;
    report.lines().into_iter().try_for_each(say)?;
    Ok(exit)
}
