//! Turns the pages and links that an archive knows into a graph whose page numbers stay the same.

use std::{collections::BTreeMap, sync::Arc};

use crate::auto::{AutoOptions, Beliefs};
use crate::error::StructureError;
use crate::graph::{PageIndex, SiteGraph};
use crate::site::memory::SiteMemory;

/// A page of the map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapPage {
    /// Its number in the archive.
    pub key: i64,
    /// Its path without a leading slash; where a site has several servers, the server's name comes
    /// first.
    pub path: String,
    /// Whether it may be visited: a page that is gone is not checked in every round.
    pub alive: bool,
    /// Hashes of the fragments it had when last seen; empty if not known.
    pub fragments: Vec<u32>,
}

/// The pages and links of a site.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SiteMap {
    /// The pages, in the order of their discovery.
    pub pages: Vec<MapPage>,
    /// For a page, by its position in `pages`, the pages that it links to.
    pub links: Vec<(u32, Vec<u32>)>,
    /// Positions of the top pages in `pages`. The first is the site's top; the others count as
    /// linked from it.
    pub tops: Vec<u32>,
}

/// A site's graph, with what is remembered about its pages.
#[derive(Debug, Clone)]
pub struct MappedSite {
    pub(crate) graph: Arc<SiteGraph>,
    pub(crate) paths: Vec<String>,
    pub(crate) fragments: Vec<Vec<u32>>,
    pub(crate) by_key: BTreeMap<i64, u32>,
    pub(crate) memory: SiteMemory,
    pub(crate) beliefs: Beliefs,
}

impl MappedSite {
    /// Builds the graph. `kept` is what the last round returned ([`SitePlan::finish`]); if it
    /// cannot be read or belongs to other pages, learning starts over.
    ///
    /// Pages that no link reaches, because only a sitemap names them or the page that linked to
    /// them is gone, are linked from the top page: otherwise no method would ever see them again.
    ///
    /// [`SitePlan::finish`]: crate::SitePlan::finish
    ///
    /// # Errors
    /// When there are more pages than a graph can hold, or a link leads out of the map.
    pub fn new(
        mut map: SiteMap,
        kept: &[u8],
        options: &AutoOptions,
    ) -> Result<Self, StructureError> {
        let position: BTreeMap<i64, u32> =
            (0u32..).zip(&map.pages).map(|(at, page)| (page.key, at)).collect();
        let (mut memory, beliefs) = SiteMemory::read(kept)
            .filter(|(memory, _)| memory.keys.iter().all(|key| position.contains_key(key)))
            .unwrap_or_else(|| (SiteMemory::default(), Beliefs::new(options)));
        let known: BTreeMap<i64, u32> = memory.keys.iter().copied().zip(0u32..).collect();
        let new = map.pages.iter().map(|page| page.key).filter(|key| !known.contains_key(key));
        memory.grow(new.collect());
        let by_key: BTreeMap<i64, u32> = memory.keys.iter().copied().zip(0u32..).collect();

        let mut graph = SiteGraph::new();
        let mut paths = Vec::with_capacity(map.pages.len());
        let mut fragments = Vec::with_capacity(map.pages.len());
        for key in &memory.keys {
            let page = &mut map.pages[position[key] as usize];
            fragments.push(std::mem::take(&mut page.fragments));
            let index = graph.add_page(&page.path)?;
            graph.set_alive(index, page.alive)?;
            paths.push(page.path.clone());
        }
        let unknown = |page| StructureError::UnknownPage { page, pages: map.pages.len() as u32 };
        let index = |at: u32| -> Result<PageIndex, StructureError> {
            let page = map.pages.get(at as usize).ok_or_else(|| unknown(at))?;
            Ok(PageIndex(by_key[&page.key]))
        };
        for (from, targets) in &map.links {
            let targets: Result<Vec<PageIndex>, StructureError> =
                targets.iter().map(|&to| index(to)).collect();
            graph.set_links(index(*from)?, &targets?, &[])?;
        }
        let tops: Result<Vec<PageIndex>, StructureError> =
            map.tops.iter().map(|&top| index(top)).collect();
        hang_below_top(&mut graph, &tops?)?;
        Ok(Self { graph: Arc::new(graph), paths, fragments, by_key, memory, beliefs })
    }

    /// The graph.
    #[must_use]
    pub fn graph(&self) -> &Arc<SiteGraph> {
        &self.graph
    }

    /// A page's index in the graph.
    #[must_use]
    pub fn index(&self, key: i64) -> Option<PageIndex> {
        self.by_key.get(&key).copied().map(PageIndex)
    }
}

/// Sets the top and links it to the other tops and to all pages not reached otherwise.
fn hang_below_top(graph: &mut SiteGraph, tops: &[PageIndex]) -> Result<(), StructureError> {
    let first = PageIndex(0);
    let Some(top) = tops.first().copied().or((graph.page_count() > 0).then_some(first)) else {
        return Ok(());
    };
    // A top that is gone for now is still the top of its site.
    graph.set_alive(top, true)?;
    graph.set_top(top)?;
    let mut below: Vec<PageIndex> = graph.links(top).chain(tops.iter().copied()).collect();
    graph.set_links(top, &below, &[])?;
    graph.refresh_depths();
    let pages = (0..graph.page_count() as u32).map(PageIndex);
    let lost: Vec<PageIndex> =
        pages.filter(|&page| graph.is_alive(page) && graph.depth(page).is_none()).collect();
    if !lost.is_empty() {
        below.extend(lost);
        graph.set_links(top, &below, &[])?;
        graph.refresh_depths();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(paths: &[&str], links: &[(u32, &[u32])]) -> SiteMap {
        SiteMap {
            pages: (100..)
                .zip(paths)
                .map(|(key, path)| MapPage {
                    key,
                    path: (*path).to_owned(),
                    alive: true,
                    fragments: Vec::new(),
                })
                .collect(),
            links: links.iter().map(|(from, to)| (*from, to.to_vec())).collect(),
            tops: vec![0],
        }
    }

    #[test]
    fn pages_that_no_link_reaches_hang_below_the_top() {
        let map = map(&["", "a/", "a/1.html", "lost/x.html"], &[(0, &[1]), (1, &[2])]);
        let site = MappedSite::new(map, &[], &AutoOptions::default()).unwrap();
        let depth = |key| site.graph.depth(site.index(key).unwrap());
        assert_eq!([depth(100), depth(101), depth(102), depth(103)], [1, 2, 3, 2].map(Some));
    }

    #[test]
    fn other_tops_are_below_the_first() {
        let mut map = map(&["one/", "two/", "two/a.html"], &[(1, &[2])]);
        map.tops = vec![0, 1];
        let site = MappedSite::new(map, &[], &AutoOptions::default()).unwrap();
        assert_eq!(site.graph.depth(site.index(102).unwrap()), Some(3));
    }

    #[test]
    fn a_page_that_joins_the_site_late_changes_no_other_index() {
        let options = AutoOptions::default();
        let before = MappedSite::new(map(&["", "a.html"], &[]), &[], &options).unwrap();
        let kept = before.memory.written(&before.beliefs);
        let mut grown = map(&["", "a.html"], &[]);
        let old = MapPage { key: 7, path: "old.html".to_owned(), ..grown.pages[0].clone() };
        grown.pages.insert(0, old);
        grown.tops = vec![1];
        let after = MappedSite::new(grown, &kept, &options).unwrap();
        for key in [100, 101] {
            assert_eq!(after.index(key), before.index(key));
        }
        assert_eq!(after.index(7), Some(PageIndex(2)));
    }

    #[test]
    fn a_link_out_of_the_map_is_refused() {
        let refusal = MappedSite::new(map(&[""], &[(0, &[5])]), &[], &AutoOptions::default());
        assert_eq!(refusal.unwrap_err(), StructureError::UnknownPage { page: 5, pages: 1 });
    }
}
