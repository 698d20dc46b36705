//! Templates guessed from links, for sites where nothing else shows which pages share one.

use std::collections::BTreeMap;

use crate::graph::{PageIndex, SiteGraph};
use crate::random::mix;

/// A page that at least this share of all pages link to is part of a template's frame.
const HUB_SHARE: f64 = 0.2;
/// With fewer pages than this nothing is guessed.
const PAGES_MIN: usize = 10;

/// The number of each page's template: pages that link to the same hubs (a menu, a footer) were
/// made from the same one. Directories play no part.
#[must_use]
pub fn templates_from_links(graph: &SiteGraph) -> Vec<u32> {
    let pages = || (0..graph.page_count() as u32).map(PageIndex);
    let mut links_in = vec![0u32; graph.page_count()];
    for target in pages().flat_map(|page| graph.links(page)) {
        links_in[target.at()] += 1;
    }
    let alive = pages().filter(|&page| graph.is_alive(page)).count();
    let hub_links = (alive as f64 * HUB_SHARE).max(2.0);
    let is_hub = |page: PageIndex| f64::from(links_in[page.at()]) >= hub_links;
    let mut numbers = BTreeMap::new();
    pages()
        .map(|page| {
            let hubs = graph.links(page).filter(|&target| alive >= PAGES_MIN && is_hub(target));
            let signature = hubs.fold(0u64, |sign, hub| sign ^ mix(u64::from(hub.0) + 1));
            let next = numbers.len() as u32;
            *numbers.entry(signature).or_insert(next)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_with_the_same_menu_share_a_template() {
        let mut graph = SiteGraph::new();
        let pages: Vec<_> =
            (0..40).map(|page| graph.add_page(&format!("{page}/x.html")).unwrap()).collect();
        for &page in &pages[10..30] {
            graph.set_links(page, &[pages[0], pages[1], pages[30]], &[]).unwrap();
        }
        for &page in &pages[30..] {
            graph.set_links(page, &[pages[2]], &[]).unwrap();
        }
        let templates = templates_from_links(&graph);
        assert_eq!(templates[11], templates[20]);
        assert_eq!(templates[31], templates[35]);
        assert_ne!(templates[11], templates[35]);
    }
}
