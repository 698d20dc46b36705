//! The link graph of one server: pages with directory, family and depth, and their links.

use std::collections::BTreeMap;

use crate::error::StructureError;
use crate::paths::{directory_of, family_of, is_index};

/// The largest number of pages in one graph.
pub const MAX_PAGES: u32 = 1 << 30;
/// Links of one page beyond this number are dropped: no page made by people has more.
pub const MAX_LINKS_PER_PAGE: usize = 1 << 16;
/// The links that one update may follow to repair depths. Beyond it depths become stale and are
/// computed again when next needed, so that an update stays under a millisecond.
const REPAIR_EDGES: usize = 20_000;

/// A page of one [`SiteGraph`], in the order in which pages were added.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct PageIndex(pub u32);

impl PageIndex {
    pub(crate) fn at(self) -> usize {
        self.0 as usize
    }
}

/// The pages and links of one server.
///
/// It stores no paths: the caller knows which page has which index. Links are stored forwards only;
/// what is needed backwards is counted (for depths) or built when needed (for splits).
#[derive(Debug, Clone, Default)]
pub struct SiteGraph {
    directories: Names,
    families: Names,
    directory: Vec<u32>,
    family: Vec<u32>,
    index_page: Vec<bool>,
    alive: Vec<bool>,
    links: Vec<Box<[u32]>>,
    frames: BTreeMap<u32, Box<[u32]>>,
    top: Option<u32>,
    depth: Vec<u32>,
    /// Number of pages one step shallower that link here: without any, the depth grows.
    support: Vec<u32>,
    stale: bool,
    link_count: usize,
}

#[derive(Debug, Clone, Default)]
struct Names {
    by_name: BTreeMap<Box<str>, u32>,
}

impl Names {
    fn intern(&mut self, name: &str) -> u32 {
        if let Some(&known) = self.by_name.get(name) {
            return known;
        }
        let next = self.by_name.len() as u32;
        self.by_name.insert(name.into(), next);
        next
    }
}

impl SiteGraph {
    /// An empty graph.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the page at `path` (relative to the server, without a leading slash). Adding the same
    /// path twice makes two pages.
    ///
    /// # Errors
    /// When the graph is full.
    pub fn add_page(&mut self, path: &str) -> Result<PageIndex, StructureError> {
        let index = self.links.len() as u32;
        if index >= MAX_PAGES {
            return Err(StructureError::TooManyPages { limit: MAX_PAGES });
        }
        let directory = self.directories.intern(directory_of(path));
        let family = self.families.intern(&family_of(path));
        self.push_page(directory, family, is_index(path));
        Ok(PageIndex(index))
    }

    fn push_page(&mut self, directory: u32, family: u32, index_page: bool) {
        self.directory.push(directory);
        self.family.push(family);
        self.index_page.push(index_page);
        self.alive.push(true);
        self.links.push(Box::default());
        self.depth.push(0);
        self.support.push(0);
    }

    /// Names the server's top page, depth 1.
    ///
    /// # Errors
    /// When the page is not in this graph.
    pub fn set_top(&mut self, page: PageIndex) -> Result<(), StructureError> {
        self.known(page)?;
        self.top = Some(page.0);
        self.stale = true;
        Ok(())
    }

    /// Replaces the links of one page. Links to oneself and repeated links are dropped; frames
    /// (`frame`, `iframe`) are links too, and are named again in `frames`.
    ///
    /// # Errors
    /// When the page or a target is not in this graph.
    pub fn set_links(
        &mut self,
        page: PageIndex,
        targets: &[PageIndex],
        frames: &[PageIndex],
    ) -> Result<(), StructureError> {
        self.known(page)?;
        for &target in targets.iter().chain(frames) {
            self.known(target)?;
        }
        let new = sorted_targets(page, targets.iter().chain(frames));
        let frames = sorted_targets(page, frames.iter());
        if frames.is_empty() {
            self.frames.remove(&page.0);
        } else {
            self.frames.insert(page.0, frames);
        }
        let old = std::mem::replace(&mut self.links[page.at()], new);
        self.link_count = self.link_count + self.links[page.at()].len() - old.len();
        if !self.stale {
            self.repair_depths(page.0, &old);
        }
        Ok(())
    }

    /// Marks a page as gone: it has no links, and no plan visits it. It may come back.
    ///
    /// # Errors
    /// When the page is not in this graph.
    pub fn set_alive(&mut self, page: PageIndex, alive: bool) -> Result<(), StructureError> {
        self.known(page)?;
        if self.alive[page.at()] != alive {
            self.alive[page.at()] = alive;
            self.stale = true;
        }
        Ok(())
    }

    fn known(&self, page: PageIndex) -> Result<(), StructureError> {
        if page.at() < self.links.len() {
            return Ok(());
        }
        Err(StructureError::UnknownPage { page: page.0, pages: self.links.len() as u32 })
    }

    /// Brings depths up to date if an update left them stale.
    pub fn refresh_depths(&mut self) {
        if !self.stale {
            return;
        }
        self.depth.fill(0);
        self.support.fill(0);
        self.stale = false;
        if let Some(top) = self.top.filter(|&top| self.alive[top as usize]) {
            self.depth[top as usize] = 1;
            self.lower_from(vec![top], usize::MAX);
        }
    }

    fn repair_depths(&mut self, page: u32, old: &[u32]) {
        let depth = self.depth[page as usize];
        if depth == 0 {
            return;
        }
        let new = std::mem::take(&mut self.links[page as usize]);
        let mut lowered = Vec::new();
        for &target in old.iter().filter(|target| new.binary_search(target).is_err()) {
            self.unsupport(target, depth);
        }
        for &target in new.iter().filter(|target| old.binary_search(target).is_err()) {
            if self.offer_depth(target, depth + 1) {
                lowered.push(target);
            }
        }
        self.links[page as usize] = new;
        if !self.stale {
            self.lower_from(lowered, REPAIR_EDGES);
        }
    }

    fn unsupport(&mut self, target: u32, depth: u32) {
        if self.depth[target as usize] != depth + 1 {
            return;
        }
        let support = &mut self.support[target as usize];
        *support -= 1;
        self.stale |= *support == 0;
    }

    /// Offers `target` a path of this depth; true if it became shallower.
    fn offer_depth(&mut self, target: u32, depth: u32) -> bool {
        let at = target as usize;
        if !self.alive[at] {
            return false;
        }
        let known = self.depth[at];
        if known == depth {
            self.support[at] += 1;
        }
        if known != 0 && known <= depth {
            return false;
        }
        self.depth[at] = depth;
        self.support[at] = 1;
        true
    }

    /// Propagates new, smaller depths, breadth first, along at most `edges` links.
    fn lower_from(&mut self, mut level: Vec<u32>, edges: usize) {
        let mut walked = 0usize;
        while !level.is_empty() {
            let mut next = Vec::new();
            for page in level {
                let links = std::mem::take(&mut self.links[page as usize]);
                walked += links.len();
                let depth = self.depth[page as usize];
                next.extend(links.iter().filter(|&&target| self.offer_depth(target, depth + 1)));
                self.links[page as usize] = links;
            }
            if walked > edges {
                self.stale = true;
                return;
            }
            level = next;
        }
    }

    /// Number of pages ever added.
    #[must_use]
    pub fn page_count(&self) -> usize {
        self.links.len()
    }

    /// Number of links.
    #[must_use]
    pub fn link_count(&self) -> usize {
        self.link_count
    }

    /// The server's top page.
    #[must_use]
    pub fn top(&self) -> Option<PageIndex> {
        self.top.map(PageIndex)
    }

    /// The number of links on the shortest path from the top, plus 1: the top has depth 1. `None`
    /// without a path, or when [`refresh_depths`](Self::refresh_depths) is due.
    #[must_use]
    pub fn depth(&self, page: PageIndex) -> Option<u32> {
        let depth = self.depth.get(page.at()).copied()?;
        (depth != 0 && !self.stale).then_some(depth)
    }

    /// Whether depths must be refreshed before they are read.
    #[must_use]
    pub fn depths_are_stale(&self) -> bool {
        self.stale
    }

    /// The number of the page's directory; pages of one directory share it.
    #[must_use]
    pub fn directory(&self, page: PageIndex) -> u32 {
        self.directory[page.at()]
    }

    /// The number of the page's family: its directory and file name with digits masked.
    #[must_use]
    pub fn family(&self, page: PageIndex) -> u32 {
        self.family[page.at()]
    }

    /// Directories seen so far.
    #[must_use]
    pub fn directory_count(&self) -> usize {
        self.directories.by_name.len()
    }

    /// Families seen so far.
    #[must_use]
    pub fn family_count(&self) -> usize {
        self.families.by_name.len()
    }

    /// Whether the page is the index of its directory.
    #[must_use]
    pub fn is_index(&self, page: PageIndex) -> bool {
        self.index_page[page.at()]
    }

    /// Whether the page still exists.
    #[must_use]
    pub fn is_alive(&self, page: PageIndex) -> bool {
        self.alive[page.at()]
    }

    /// The pages that `page` links to, ascending, frames among them.
    pub fn links(&self, page: PageIndex) -> impl ExactSizeIterator<Item = PageIndex> + '_ {
        self.links[page.at()].iter().map(|&target| PageIndex(target))
    }

    /// The frames of `page`, ascending.
    pub fn frames(&self, page: PageIndex) -> impl Iterator<Item = PageIndex> + '_ {
        self.frames.get(&page.0).into_iter().flatten().map(|&frame| PageIndex(frame))
    }

    pub(crate) fn raw_links(&self, page: u32) -> &[u32] {
        &self.links[page as usize]
    }

    pub(crate) fn directories(&self) -> &[u32] {
        &self.directory
    }

    /// Depths of all pages, 0 where there is none or it is over the limit. With `lift_frames`,
    /// frames get the depth of the page that frames them.
    pub(crate) fn depths_within(&self, limit: u32, lift_frames: bool) -> Vec<u32> {
        debug_assert!(!self.stale, "depths are refreshed before a split");
        let mut depths = if lift_frames && !self.frames.is_empty() {
            self.depths_with_frames_lifted()
        } else {
            self.depth.clone()
        };
        for depth in &mut depths {
            if *depth > limit {
                *depth = 0;
            }
        }
        depths
    }

    fn depths_with_frames_lifted(&self) -> Vec<u32> {
        let mut depths = vec![0; self.page_count()];
        let mut level: Vec<u32> = self.top.into_iter().collect();
        let mut depth = 1;
        while !level.is_empty() {
            let mut here = Vec::new();
            while let Some(page) = level.pop() {
                if depths[page as usize] != 0 || !self.alive[page as usize] {
                    continue;
                }
                depths[page as usize] = depth;
                here.push(page);
                level.extend(self.frames.get(&page).into_iter().flatten());
            }
            level = here.iter().flat_map(|&page| self.raw_links(page)).copied().collect();
            depth += 1;
        }
        depths
    }
}

fn sorted_targets<'a>(page: PageIndex, targets: impl Iterator<Item = &'a PageIndex>) -> Box<[u32]> {
    let mut sorted: Vec<u32> =
        targets.map(|target| target.0).filter(|&target| target != page.0).collect();
    sorted.sort_unstable();
    sorted.dedup();
    sorted.truncate(MAX_LINKS_PER_PAGE);
    sorted.into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pages(count: u32) -> SiteGraph {
        let mut graph = SiteGraph::new();
        for page in 0..count {
            graph.add_page(&format!("p{page}.html")).unwrap();
        }
        graph.set_top(PageIndex(0)).unwrap();
        graph.refresh_depths();
        graph
    }

    fn set(graph: &mut SiteGraph, page: u32, targets: &[u32]) {
        let targets: Vec<_> = targets.iter().map(|&target| PageIndex(target)).collect();
        graph.set_links(PageIndex(page), &targets, &[]).unwrap();
    }

    #[test]
    fn depth_is_the_shortest_way_from_the_top() {
        let mut graph = pages(5);
        set(&mut graph, 0, &[1]);
        set(&mut graph, 1, &[2]);
        set(&mut graph, 2, &[3]);
        assert_eq!(graph.depth(PageIndex(3)), Some(4));
        set(&mut graph, 0, &[1, 3]);
        assert_eq!(graph.depth(PageIndex(3)), Some(2));
        assert_eq!(graph.depth(PageIndex(4)), None);
    }

    #[test]
    fn links_to_oneself_and_repeated_links_count_once() {
        let mut graph = pages(3);
        set(&mut graph, 0, &[0, 1, 1, 2]);
        assert_eq!(graph.links(PageIndex(0)).collect::<Vec<_>>(), [PageIndex(1), PageIndex(2)]);
        assert_eq!(graph.link_count(), 2);
    }

    #[test]
    fn an_unknown_page_is_refused_by_name() {
        let refusal = pages(2).set_links(PageIndex(0), &[PageIndex(9)], &[]).unwrap_err();
        assert_eq!(refusal, StructureError::UnknownPage { page: 9, pages: 2 });
    }

    #[test]
    fn frames_have_the_depth_of_their_frameset() {
        let mut graph = pages(4);
        graph.set_links(PageIndex(0), &[], &[PageIndex(1), PageIndex(2)]).unwrap();
        set(&mut graph, 1, &[3]);
        graph.refresh_depths();
        assert_eq!(graph.depths_within(12, false), [1, 2, 2, 3]);
        assert_eq!(graph.depths_within(12, true), [1, 1, 1, 2]);
    }

    proptest! {
        #[test]
        fn depths_repaired_link_by_link_are_those_computed_at_once(
            updates in prop::collection::vec((0u32..12, prop::collection::vec(0u32..12, 0..5)), 1..60)
        ) {
            let mut repaired = pages(12);
            for (page, targets) in &updates {
                set(&mut repaired, *page, targets);
                let mut again = repaired.clone();
                again.stale = true;
                again.refresh_depths();
                repaired.refresh_depths();
                prop_assert_eq!(&repaired.depth, &again.depth);
                prop_assert_eq!(&repaired.support[1..], &again.support[1..]);
            }
        }
    }
}
