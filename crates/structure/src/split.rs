//! Splitting a server into sites: by directory (method A) and by links (method B).

use crate::graph::{PageIndex, SiteGraph};

/// How a server is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitOptions {
    /// Pages deeper than this are left out. The paper stopped after eleven links.
    pub depth_max: u32,
    /// Whether the frames of a frameset are tops beside it, at its depth, as in table 3 of the
    /// paper. Otherwise frames are links like others.
    pub frames_are_tops: bool,
}

impl Default for SplitOptions {
    fn default() -> Self {
        Self { depth_max: 12, frames_are_tops: false }
    }
}

/// The sites of one server. A page may be in several.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SiteSplit {
    tops: Ranges,
    members: Ranges,
    /// Depths as the split used them: 0 for pages left out.
    depths: Vec<u32>,
}

/// Lists of pages, one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Ranges {
    ends: Vec<u32>,
    pages: Vec<u32>,
}

impl Default for Ranges {
    fn default() -> Self {
        Self { ends: vec![0], pages: Vec::new() }
    }
}

impl Ranges {
    fn push(&mut self, pages: impl IntoIterator<Item = u32>) {
        self.pages.extend(pages);
        self.ends.push(self.pages.len() as u32);
    }

    fn get(&self, at: usize) -> &[u32] {
        &self.pages[self.ends[at] as usize..self.ends[at + 1] as usize]
    }
}

impl SiteSplit {
    /// Method A: one site per directory; its tops are all pages of least depth in it.
    #[must_use]
    pub fn by_directory(graph: &SiteGraph, options: SplitOptions) -> Self {
        let depths = graph.depths_within(options.depth_max, options.frames_are_tops);
        let mut pages: Vec<u32> = reached(&depths).collect();
        pages.sort_unstable_by_key(|&page| (graph.directories()[page as usize], page));
        let mut split = Self { depths, ..Self::default() };
        for site in pages
            .chunk_by(|&a, &b| graph.directories()[a as usize] == graph.directories()[b as usize])
        {
            let depth_of = |&page: &u32| split.depths[page as usize];
            let least = site.iter().map(depth_of).min().unwrap_or(0);
            let (tops, members): (Vec<u32>, Vec<u32>) =
                site.iter().partition(|page| depth_of(page) == least);
            split.tops.push(tops);
            split.members.push(members);
        }
        split
    }

    /// Method B: tops are pages that other directories link to; members are the pages below them
    /// that they link to in their own directory.
    #[must_use]
    pub fn by_links(graph: &SiteGraph, options: SplitOptions) -> Self {
        let depths = graph.depths_within(options.depth_max, options.frames_are_tops);
        let mut links = LinkSplit::new(graph, &depths);
        links.name_tops();
        links.gather_leftovers();
        let (tops, members) = links.sites(options.frames_are_tops);
        Self { tops, members, depths }
    }

    /// How many sites there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tops.ends.len() - 1
    }

    /// Whether there is no site.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The tops of a site, ascending.
    pub fn tops(&self, site: usize) -> impl Iterator<Item = PageIndex> + '_ {
        self.tops.get(site).iter().map(|&page| PageIndex(page))
    }

    /// The members of a site beside its tops, ascending.
    pub fn members(&self, site: usize) -> impl Iterator<Item = PageIndex> + '_ {
        self.members.get(site).iter().map(|&page| PageIndex(page))
    }

    /// Tops and members.
    pub(crate) fn pages(&self, site: usize) -> impl Iterator<Item = u32> + '_ {
        self.tops.get(site).iter().chain(self.members.get(site)).copied()
    }

    pub(crate) fn depths(&self) -> &[u32] {
        &self.depths
    }
}

fn reached(depths: &[u32]) -> impl Iterator<Item = u32> + '_ {
    (0u32..).zip(depths).filter(|&(_, &depth)| depth != 0).map(|(page, _)| page)
}

/// The work of method B.
struct LinkSplit<'a> {
    graph: &'a SiteGraph,
    depths: &'a [u32],
    parents: Ranges,
    is_top: Vec<bool>,
    in_site: Vec<bool>,
    /// Pages given to a top that is not their natural parent: (top, page).
    adopted: Vec<(u32, u32)>,
}

impl<'a> LinkSplit<'a> {
    fn new(graph: &'a SiteGraph, depths: &'a [u32]) -> Self {
        Self {
            graph,
            depths,
            parents: parents(graph, depths),
            is_top: vec![false; depths.len()],
            in_site: vec![false; depths.len()],
            adopted: Vec::new(),
        }
    }

    fn same_directory(&self, a: u32, b: u32) -> bool {
        self.graph.directories()[a as usize] == self.graph.directories()[b as usize]
    }

    /// Pages of the same directory, one link below.
    fn children(&self, page: u32) -> impl Iterator<Item = u32> + '_ {
        let depth = self.depths[page as usize];
        self.graph.raw_links(page).iter().copied().filter(move |&target| {
            self.depths[target as usize] > depth && self.same_directory(page, target)
        })
    }

    fn name_tops(&mut self) {
        let server_top = self.graph.top().map(|top| top.0);
        for page in reached(self.depths) {
            let is_server_top = Some(page) == server_top;
            let linked_from_elsewhere =
                self.parents.get(page as usize).iter().any(|&p| !self.same_directory(p, page));
            if !is_server_top && !linked_from_elsewhere {
                continue;
            }
            if is_server_top || self.children(page).next().is_some() {
                self.make_top(page);
            } else {
                self.promote_parents(page);
            }
        }
    }

    fn make_top(&mut self, page: u32) {
        if std::mem::replace(&mut self.is_top[page as usize], true) {
            return;
        }
        self.in_site[page as usize] = true;
        let children: Vec<u32> = self.children(page).collect();
        for child in children {
            self.in_site[child as usize] = true;
        }
    }

    /// A page that cannot be a top goes to the pages that link to it: those of its own directory if
    /// there are any, and of these the shallower ones if there are any.
    fn promote_parents(&mut self, page: u32) {
        let all = self.parents.get(page as usize);
        let own: Vec<u32> = all.iter().copied().filter(|&p| self.same_directory(p, page)).collect();
        let mut chosen = if own.is_empty() { all.to_vec() } else { own };
        let depth = self.depths[page as usize];
        let shallower = |&p: &u32| self.depths[p as usize] < depth;
        if chosen.iter().any(shallower) {
            chosen.retain(shallower);
        }
        for parent in chosen {
            self.make_top(parent);
            self.adopted.push((parent, page));
            self.in_site[page as usize] = true;
        }
    }

    /// Pages in no site yet, one level of depth at once.
    fn gather_leftovers(&mut self) {
        let mut left: Vec<u32> =
            reached(self.depths).filter(|&page| !self.in_site[page as usize]).collect();
        left.sort_by_key(|&page| self.depths[page as usize]);
        for level in left.chunk_by(|&a, &b| self.depths[a as usize] == self.depths[b as usize]) {
            let still: Vec<u32> =
                level.iter().copied().filter(|&page| !self.in_site[page as usize]).collect();
            for page in still {
                self.promote_parents(page);
            }
        }
    }

    fn sites(mut self, frames_are_tops: bool) -> (Ranges, Ranges) {
        self.adopted.sort_unstable();
        let (mut tops, mut members) = (Ranges::default(), Ranges::default());
        let mut adopted = self.adopted.iter().peekable();
        for top in (0..self.is_top.len() as u32).filter(|&page| self.is_top[page as usize]) {
            let mut own_tops = vec![top];
            if frames_are_tops {
                let frames = self.graph.frames(PageIndex(top)).map(|frame| frame.0);
                own_tops.extend(frames.filter(|&frame| self.depths[frame as usize] != 0));
            }
            let mut own: Vec<u32> = own_tops.iter().flat_map(|&top| self.children(top)).collect();
            while let Some((_, page)) = adopted.next_if(|adoption| adoption.0 == top) {
                own.push(*page);
            }
            own.sort_unstable();
            own.dedup();
            own.retain(|page| !own_tops.contains(page));
            tops.push(own_tops);
            members.push(own);
        }
        (tops, members)
    }
}

/// For every page the pages that link to it, among those reached.
fn parents(graph: &SiteGraph, depths: &[u32]) -> Ranges {
    let mut ends = vec![0u32; depths.len() + 1];
    let edges = |page: u32| {
        graph.raw_links(page).iter().copied().filter(|&target| depths[target as usize] != 0)
    };
    for target in reached(depths).flat_map(edges) {
        ends[target as usize + 1] += 1;
    }
    for at in 1..ends.len() {
        ends[at] += ends[at - 1];
    }
    let mut pages = vec![0u32; ends[depths.len()] as usize];
    let mut next = ends.clone();
    for page in reached(depths) {
        for target in edges(page) {
            let slot = &mut next[target as usize];
            pages[*slot as usize] = page;
            *slot += 1;
        }
    }
    Ranges { ends, pages }
}
