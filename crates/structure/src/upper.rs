//! Which sites are above which (method C).

use crate::graph::{PageIndex, SiteGraph};
use crate::split::SiteSplit;

const NO_SITE: u32 = u32::MAX;

/// The relation of sites: a site is above another when one of its pages links to the other's top.
#[derive(Debug, Clone)]
pub struct UpperSites {
    /// The site that a page is a top of.
    site_of_top: Vec<u32>,
    has_upper: Vec<bool>,
    root: Option<u32>,
}

impl UpperSites {
    /// Finds which sites are above which, in one pass over the links.
    #[must_use]
    pub fn new(graph: &SiteGraph, split: &SiteSplit) -> Self {
        let mut site_of_top = vec![NO_SITE; graph.page_count()];
        // Sites a page is in: how many (up to 2), and which one if it is one.
        let mut in_sites = vec![(0u8, NO_SITE); graph.page_count()];
        for site in 0..split.len() {
            for top in split.tops(site) {
                site_of_top[top.at()] = site as u32;
            }
            for page in split.pages(site) {
                let (count, only) = &mut in_sites[page as usize];
                *count = (*count + 1).min(2);
                *only = site as u32;
            }
        }
        let mut has_upper = vec![false; split.len()];
        for (page, &(count, only)) in (0u32..).zip(&in_sites) {
            if count == 0 {
                continue;
            }
            for below in sites_linked_from(graph, &site_of_top, page) {
                has_upper[below as usize] |= count > 1 || only != below;
            }
        }
        let root = graph.top().map(|top| site_of_top[top.at()]).filter(|&site| site != NO_SITE);
        Self { site_of_top, has_upper, root }
    }

    /// Sites that are always checked: the one of the server's top, and those with none above.
    pub fn always_checked(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.has_upper.len())
            .filter(|&site| !self.has_upper[site] || Some(site as u32) == self.root)
    }

    /// The sites whose top `page` links to.
    pub fn sites_below(&self, graph: &SiteGraph, page: PageIndex) -> impl Iterator<Item = usize> {
        sites_linked_from(graph, &self.site_of_top, page.0).map(|site| site as usize)
    }

    /// For every site the sites above it, ascending: for people and tests. On large servers this is
    /// a long list, which no plan needs.
    #[must_use]
    pub fn list(&self, graph: &SiteGraph, split: &SiteSplit) -> Vec<Vec<usize>> {
        let mut above = vec![Vec::new(); split.len()];
        for site in 0..split.len() {
            for page in split.pages(site) {
                for below in self.sites_below(graph, PageIndex(page)).filter(|&b| b != site) {
                    above[below].push(site);
                }
            }
        }
        for list in &mut above {
            list.sort_unstable();
            list.dedup();
        }
        above
    }
}

fn sites_linked_from(
    graph: &SiteGraph,
    site_of_top: &[u32],
    page: u32,
) -> impl Iterator<Item = u32> {
    graph
        .raw_links(page)
        .iter()
        .map(|&target| site_of_top[target as usize])
        .filter(|&site| site != NO_SITE)
}
