//! Which share of the importance the live machine collects early, by crawl order: paper 003's
//! criteria, read from the trace of the shipped crawler with its queues, politeness and restarts.

use nenrin_order::Strategy;
use serde::Serialize;

use super::{CrawlOptions, simulation::run_collected, web::Web};
use crate::{
    LabError,
    order::{Graph, Importance, Measures},
};

/// Where criteria A and B are read, among [`crate::order::TOPS`] and [`crate::order::POINTS`].
const TOP_PERCENT: usize = 1;
const TENTH: usize = 1;
const THREE_TENTHS: usize = 3;

/// What one order came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OrderOutcome {
    /// The order's name.
    pub order: &'static str,
    /// Share of the most important hundredth of the pages among the first tenth collected.
    pub a: f64,
    /// PageRank sum of the first three tenths.
    pub b: f64,
    /// Distance from the true ranking.
    pub c: f64,
    /// Pages collected, of all that may be.
    pub collected: usize,
    /// All that may be.
    pub pages: usize,
    /// Laws broken; empty is right.
    pub violations: Vec<String>,
}

/// Runs the same simulation with each order and measures what was collected when.
pub fn compare_orders(
    options: &CrawlOptions,
    orders: &[Strategy],
) -> Result<Vec<OrderOutcome>, LabError> {
    let options = CrawlOptions { favourites: true, oddities: false, ..options.clone() };
    let web = Web::new(options.seed, options.servers, options.pages, options.faults)
        .with_oddities(false)
        .with_favourites(true);
    let (graph, reachable) = links(&web, options.servers * options.pages);
    let truth = Importance::of(&graph, &reachable);
    let mut outcomes = Vec::with_capacity(orders.len());
    for &order in orders {
        let (report, urls) = run_collected(&CrawlOptions { order, ..options.clone() })?;
        let mut is_collected = vec![false; graph.pages()];
        let mut pages: Vec<u32> = Vec::with_capacity(reachable.len());
        for number in urls.iter().filter_map(|url| web.number(url)) {
            if !std::mem::replace(&mut is_collected[number as usize], true) {
                pages.push(number);
            }
        }
        let collected = pages.len();
        // What was never collected came last.
        pages.extend(reachable.iter().filter(|page| !is_collected[**page as usize]));
        let measures = Measures::of(&pages, &truth);
        outcomes.push(OrderOutcome {
            order: order.name(),
            a: measures.a[TOP_PERCENT][TENTH],
            b: measures.b[THREE_TENTHS],
            c: measures.c,
            collected,
            pages: reachable.len(),
            violations: report.violations,
        });
    }
    Ok(outcomes)
}

/// The web's links, by page numbers, and the pages that may be collected.
fn links(web: &Web, pages: u32) -> (Graph, Vec<u32>) {
    let mut targets: Vec<Vec<u32>> = vec![Vec::new(); pages as usize];
    let mut reachable = Vec::new();
    for server in 0..web.tops().len() as u32 {
        for url in web.pages_of(server) {
            let Some(number) = web.number(&url) else { continue };
            let linked = web.links_of(&url, 0);
            let linked = linked.iter().filter_map(|to| web.number(to)).filter(|to| *to != number);
            let mut linked: Vec<u32> = linked.collect();
            linked.sort_unstable();
            linked.dedup();
            targets[number as usize] = linked;
            reachable.push(number);
        }
    }
    reachable.sort_unstable();
    (Graph::from_links(targets), reachable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nenrin_revisit::RevisitSettings;

    fn options() -> CrawlOptions {
        let policy = "every(300d)".parse().unwrap();
        CrawlOptions {
            servers: 4,
            pages: 150,
            time_s: 86_400,
            faults: 0.0,
            crashes: 0,
            continuous: Some(RevisitSettings { policy, ..RevisitSettings::default() }),
            ..CrawlOptions::default()
        }
    }

    #[test]
    fn the_live_machine_finds_important_pages_earlier_by_auto_than_by_discovery() {
        for crashes in [0, 2] {
            let options = CrawlOptions { crashes, time_s: 3_600, ..options() };
            let orders = [Strategy::BreadthFirst, Strategy::Auto];
            let outcomes = compare_orders(&options, &orders).unwrap();
            let [bf, auto] = &outcomes[..] else { panic!("two orders") };
            for outcome in &outcomes {
                assert_eq!(outcome.violations, Vec::<String>::new());
                // One page in a hundred is away in these days.
                assert!(outcome.collected * 10 > outcome.pages * 9, "{outcome:?}");
            }
            assert!(auto.b > bf.b && auto.c < bf.c, "{outcomes:?}");
        }
    }
}
