//! Webs of one server that are unlike real ones, to find where an order fails.

use super::Graph;
use super::synthetic::Random;

/// Pages of one chain.
const CHAIN_PAGES: u32 = 500;
/// Hubs that many pages link to.
const HUBS: u32 = 200;
/// Children of each page of the tree beside the chains.
const CHILDREN: u32 = 4;

/// Popularity by preferential attachment alone: no sites, no navigation, a fifth of the pages
/// without links.
pub(super) fn power_law_web(pages: u32, seed: u64) -> Graph {
    let mut random = Random(seed);
    let mut links = Vec::with_capacity(pages as usize);
    let mut linked: Vec<u32> = (0..20.min(pages)).collect();
    for page in 0..pages {
        let mut targets: Vec<u32> = if page == 0 { (1..60.min(pages)).collect() } else { vec![] };
        let degree = match random.fraction() < 0.2 {
            true => 0,
            false => random.power_law(4.0, 1.7).min(300.0) as u32,
        };
        for _ in 0..degree {
            let popular = linked[random.below(linked.len() as u32) as usize];
            let target = if random.fraction() < 0.6 { popular } else { random.below(pages) };
            targets.push(target);
            linked.push(target);
        }
        links.push(tidy(page, targets));
    }
    Graph::from_links(links)
}

/// A third of the pages are in long chains, like endless calendars; the others in a tree whose
/// pages link to hubs, half of which link to nothing. Depth limit 1 is weak here: the score of a
/// chain grows with every step, and what hubs receive late is not handed on.
pub(super) fn chain_web(pages: u32, seed: u64) -> Graph {
    let mut random = Random(seed);
    let chains = (pages * 3 / 10 / CHAIN_PAGES).max(1);
    let tree = chains * CHAIN_PAGES + 1;
    let hubs = HUBS.min(pages.saturating_sub(tree + 1)).max(1);
    let mut links = vec![vec![tree]];
    for page in 1..tree {
        let mut targets = if page % CHAIN_PAGES == 0 { vec![] } else { vec![page + 1] };
        if random.fraction() < 0.3 {
            targets.push(0);
        }
        links.push(tidy(page, targets));
    }
    for page in tree..pages.max(tree + 1) {
        let place = page - tree;
        let first = tree + place * CHILDREN + 1;
        let mut targets: Vec<u32> = (first..(first + CHILDREN).min(pages)).collect();
        if place == 0 {
            targets.extend((0..chains).map(|chain| chain * CHAIN_PAGES + 1));
        }
        if random.fraction() < 0.5 {
            let rank = random.fraction().powf(2.5) * f64::from(hubs);
            targets.push((tree + 1 + rank as u32).min(pages.max(tree + 1) - 1));
        }
        if random.fraction() < 0.4 {
            targets.push(tree + place.saturating_sub(1) / CHILDREN);
        }
        links.push(tidy(page, targets));
    }
    Graph::from_links(links)
}

/// Each target once, and not the page itself.
fn tidy(page: u32, targets: Vec<u32>) -> Vec<u32> {
    let mut kept: Vec<u32> = Vec::with_capacity(targets.len());
    for target in targets {
        if target != page && !kept.contains(&target) {
            kept.push(target);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_of_each_web_can_be_reached() {
        for graph in [power_law_web(5_000, 1), chain_web(5_000, 1)] {
            assert_eq!(graph.pages(), 5_000);
            assert!(graph.reachable(0).len() > 4_000, "{}", graph.reachable(0).len());
        }
    }

    #[test]
    fn tiny_webs_are_webs_too() {
        for pages in 1..40 {
            assert_eq!(power_law_web(pages, 1).pages() as u32, pages);
            assert!(chain_web(pages, 1).pages() as u32 >= pages);
        }
    }
}
