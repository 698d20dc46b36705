//! A history prepared for experiments: one graph for each visit, with the same page numbers
//! throughout.

use std::collections::BTreeMap;
use std::sync::Arc;

use nenrin_structure::{
    PageIndex, PageRef, Seen, SiteGraph, SiteSplit, SplitOptions, StructureError, UpperSites,
};

use crate::LabError;
use crate::structure::history::{RoundHistory, SiteHistory, SiteVisit};

/// One site with its structure at each visit.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) number: u32,
    pub(crate) name: String,
    pub(crate) kind: String,
    #[cfg(test)]
    pub(crate) paths: Vec<String>,
    pub(crate) visits: Vec<Structure>,
}

/// A site at one visit.
#[derive(Debug)]
pub(crate) struct Structure {
    pub(crate) at_s: i64,
    pub(crate) graph: Arc<SiteGraph>,
    /// The pages that links reach, at most 12 deep.
    pub(crate) reached: Vec<PageIndex>,
    pub(crate) content: Vec<Option<[u8; 32]>>,
    pub(crate) modified_s: Vec<Option<i64>>,
    pub(crate) blocks: Vec<Vec<u32>>,
    pub(crate) by_directory: Arc<SiteSplit>,
    pub(crate) by_links: Arc<SiteSplit>,
    pub(crate) upper: Arc<UpperSites>,
}

impl Site {
    /// What a visit at `to` shows about a page known from `from`.
    pub(crate) fn look(&self, from: usize, to: usize, page: PageIndex) -> Seen {
        let at = page.0 as usize;
        let content = |visit: usize| self.visits[visit].content[at];
        if content(from) == content(to) { Seen::Same } else { Seen::Changed }
    }

    /// The fragments that a page had at `from` and no longer has at `to`; `None` if one of them is
    /// unknown.
    pub(crate) fn lost_blocks(&self, from: usize, to: usize, page: PageIndex) -> Option<Vec<u32>> {
        let at = page.0 as usize;
        let blocks = |visit: usize| &self.visits[visit].blocks[at];
        let (had, has) = (blocks(from), blocks(to));
        let known = !had.is_empty() && !has.is_empty();
        known.then(|| had.iter().filter(|block| !has.contains(block)).copied().collect())
    }

    pub(crate) fn is_changed(&self, from: usize, to: usize, page: PageIndex) -> bool {
        self.look(from, to, page) == Seen::Changed
    }

    pub(crate) fn changed(&self, from: usize, to: usize) -> usize {
        let reached = &self.visits[from].reached;
        reached.iter().filter(|&&page| self.is_changed(from, to, page)).count()
    }

    pub(crate) fn pages(&self, visit: usize) -> impl Iterator<Item = PageRef> + '_ {
        let number = self.number;
        self.visits[visit].reached.iter().map(move |page| PageRef::new(number, page.0))
    }
}

/// Prepares every site of a history.
pub(crate) fn prepare(history: &RoundHistory) -> Result<Vec<Site>, LabError> {
    if !history.sites.iter().any(|site| site.visits.len() > 1) {
        let what = "no site has two visits: import or collect at least two rounds".to_owned();
        return Err(LabError::Input { what });
    }
    (0u32..)
        .zip(&history.sites)
        .map(|(number, site)| {
            prepare_site(number, site)
                .map_err(|error| LabError::Input { what: format!("{}: {error}", site.name) })
        })
        .collect()
}

fn prepare_site(number: u32, site: &SiteHistory) -> Result<Site, StructureError> {
    let mut graph = SiteGraph::new();
    let mut index: BTreeMap<&str, PageIndex> = BTreeMap::new();
    for path in site.visits.iter().flat_map(|visit| visit.pages.keys()) {
        if !index.contains_key(path.as_str()) {
            index.insert(path, graph.add_page(path)?);
        }
    }
    if let Some(&top) = index.get(site.top.as_str()) {
        graph.set_top(top)?;
    }
    let mut visits = Vec::with_capacity(site.visits.len());
    for visit in &site.visits {
        update(&mut graph, &index, visit)?;
        visits.push(structure(&graph, &index, visit));
    }
    let (name, kind) = (site.name.clone(), site.kind.clone());
    Ok(Site {
        number,
        name,
        kind,
        #[cfg(test)]
        paths: index_order(&index),
        visits,
    })
}

#[cfg(test)]
fn index_order(index: &BTreeMap<&str, PageIndex>) -> Vec<String> {
    let mut paths: Vec<(PageIndex, &str)> =
        index.iter().map(|(&path, &page)| (page, path)).collect();
    paths.sort_unstable();
    paths.into_iter().map(|(_, path)| path.to_owned()).collect()
}

fn update(
    graph: &mut SiteGraph,
    index: &BTreeMap<&str, PageIndex>,
    visit: &SiteVisit,
) -> Result<(), StructureError> {
    let targets = |paths: &[String]| -> Vec<PageIndex> {
        let there = paths.iter().filter(|path| visit.pages.contains_key(*path));
        there.filter_map(|path| index.get(path.as_str()).copied()).collect()
    };
    for (path, &page) in index {
        let found = visit.pages.get(*path);
        graph.set_alive(page, found.is_some())?;
        let (links, frames) =
            found.map_or_else(Default::default, |p| (targets(&p.links), targets(&p.frames)));
        graph.set_links(page, &links, &frames)?;
    }
    graph.refresh_depths();
    Ok(())
}

fn structure(graph: &SiteGraph, index: &BTreeMap<&str, PageIndex>, visit: &SiteVisit) -> Structure {
    let options = SplitOptions::default();
    let mut content = vec![None; graph.page_count()];
    let mut modified_s = vec![None; graph.page_count()];
    let mut blocks = vec![Vec::new(); graph.page_count()];
    for (path, page) in &visit.pages {
        let at = index[path.as_str()].0 as usize;
        content[at] = Some(page.digest);
        modified_s[at] = page.last_modified_s;
        blocks[at] = page.blocks.clone();
    }
    let reached = (0..graph.page_count() as u32)
        .map(PageIndex)
        .filter(|&page| graph.depth(page).is_some_and(|depth| depth <= options.depth_max))
        .collect();
    let by_links = SiteSplit::by_links(graph, options);
    Structure {
        at_s: visit.at_s,
        reached,
        content,
        modified_s,
        blocks,
        by_directory: Arc::new(SiteSplit::by_directory(graph, options)),
        upper: Arc::new(UpperSites::new(graph, &by_links)),
        by_links: Arc::new(by_links),
        graph: Arc::new(graph.clone()),
    }
}
