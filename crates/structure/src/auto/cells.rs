//! The pages of a server, gathered into cells: all effects on two pages of one cell are the same,
//! except their own levels. A round looks at cells, and at one page of each.

use std::collections::BTreeMap;

use crate::auto::beliefs::{Beliefs, Level};
use crate::auto::evidence::Evidence;
use crate::auto::fragments::NOTHING_SHARED;
use crate::auto::gaussian::Gaussian;
use crate::auto::layout::{
    FEATURES_PER_PAGE, HISTORIES, SHARED_PER_PAGE, SiteLayout, depth_step, shared_effects,
};
use crate::graph::{PageIndex, SiteGraph};

/// The groups a page is in: directory, family, depth, last outcomes, template.
pub(crate) const GROUPS_PER_PAGE: usize = 5;
/// More depths than [`layout`](crate::auto::layout) distinguishes.
const DEPTH_GROUPS: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CellKey {
    /// Numbers of its groups, as given by [`GroupNumbers`].
    pub(crate) groups: [u32; GROUPS_PER_PAGE],
    pub(crate) features: [u16; FEATURES_PER_PAGE],
    pub(crate) shared: [u16; SHARED_PER_PAGE],
    /// The page above (its guide), or [`NO_GUIDE`].
    pub(crate) guide: u32,
    /// The set of fragments it shares, as numbered by
    /// [`SharedFragments`](super::fragments::SharedFragments).
    pub(crate) fragments: u32,
}

pub(crate) const NO_GUIDE: u32 = u32::MAX;

#[derive(Debug, Clone)]
pub(crate) struct Cell {
    pub(crate) key: CellKey,
    /// Its pages are `pages[next..end]` of [`Cells`]; those before `next` were already handed out.
    pub(crate) next: u32,
    pub(crate) end: u32,
}

/// Numbers the groups of all kinds in one sequence.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GroupNumbers {
    directories: u32,
    families: u32,
    templates: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GroupKind {
    Directory(usize),
    Family(usize),
    Depth,
    History,
    Template,
}

impl GroupKind {
    pub(crate) fn level(self) -> Level {
        match self {
            Self::Directory(_) => Level::Directory,
            Self::Family(_) => Level::Family,
            Self::Depth => Level::Depth,
            Self::History => Level::History,
            Self::Template => Level::Template,
        }
    }
}

impl GroupNumbers {
    fn groups(
        &self,
        directory: u32,
        family: u32,
        depth: usize,
        history: u8,
        template: u32,
    ) -> [u32; 5] {
        let depths = self.directories + self.families;
        let histories = depths + DEPTH_GROUPS as u32;
        let templates = histories + HISTORIES as u32;
        [
            directory,
            self.directories + family,
            depths + depth as u32,
            histories + u32::from(history),
            templates + template,
        ]
    }

    pub(crate) fn count(&self) -> usize {
        (self.directories + self.families + self.templates) as usize + DEPTH_GROUPS + HISTORIES
    }

    pub(crate) fn kind(&self, group: usize) -> GroupKind {
        let (directories, families) = (self.directories as usize, self.families as usize);
        let depths = directories + families;
        if group < directories {
            GroupKind::Directory(group)
        } else if group < depths {
            GroupKind::Family(group - directories)
        } else if group < depths + DEPTH_GROUPS {
            GroupKind::Depth
        } else if group < depths + DEPTH_GROUPS + HISTORIES {
            GroupKind::History
        } else {
            GroupKind::Template
        }
    }
}

/// The cells of a server in one round.
#[derive(Debug, Clone)]
pub(crate) struct Cells {
    pub(crate) cells: Vec<Cell>,
    /// Pages by cell, the likeliest to have changed first.
    pub(crate) pages: Vec<u32>,
    pub(crate) numbers: GroupNumbers,
    /// The cells of each group, one group after the other.
    group_ends: Vec<u32>,
    group_cells: Vec<u32>,
    /// The server's top page.
    pub(crate) top: Option<u32>,
    /// (guide, cell), ascending: the cells under each guide.
    wards: Vec<(u32, u32)>,
    /// (set of shared fragments, cell), ascending.
    sharers: Vec<(u32, u32)>,
}

impl Cells {
    pub(crate) fn new(
        graph: &SiteGraph,
        beliefs: &Beliefs,
        pages: &[PageIndex],
        evidence: &[Evidence],
        fragments: &[u32],
        own: impl Fn(PageIndex) -> Gaussian,
    ) -> Self {
        let evidence_of = |at: usize| evidence.get(at).copied().unwrap_or_default();
        let mut templates = BTreeMap::new();
        for at in 0..pages.len() {
            let next = templates.len() as u32;
            templates.entry(evidence_of(at).template).or_insert(next);
        }
        let numbers = GroupNumbers {
            directories: graph.directory_count() as u32,
            families: graph.family_count() as u32,
            templates: templates.len() as u32,
        };
        let layout = SiteLayout::of(graph);
        let mut keyed: Vec<(CellKey, PageIndex)> = pages
            .iter()
            .enumerate()
            .map(|(at, &page)| {
                let evidence = evidence_of(at);
                let features = layout.features(graph, page);
                let history = beliefs.pages[page.at()].history;
                let groups = numbers.groups(
                    graph.directory(page),
                    graph.family(page),
                    depth_step(features),
                    history,
                    templates[&evidence.template],
                );
                let shared = shared_effects(features, history, &evidence);
                let guide = layout.guide(page).map_or(NO_GUIDE, |guide| guide.0);
                let fragments = fragments.get(at).copied().unwrap_or(NOTHING_SHARED);
                (CellKey { groups, features, shared, guide, fragments }, page)
            })
            .collect();
        let liking = |page: PageIndex| {
            let level = own(page);
            f64::from(level.mean) / f64::from(1.0 + level.variance).sqrt()
        };
        keyed.sort_by(|a, b| {
            a.0.cmp(&b.0).then(liking(b.1).total_cmp(&liking(a.1))).then(a.1.cmp(&b.1))
        });
        let mut cells: Vec<Cell> = Vec::new();
        for (at, (key, _)) in (0u32..).zip(&keyed) {
            match cells.last_mut().filter(|cell| cell.key == *key) {
                Some(cell) => cell.end = at + 1,
                None => cells.push(Cell { key: *key, next: at, end: at + 1 }),
            }
        }
        let (group_ends, group_cells) = cells_by_group(&cells, numbers.count());
        let pages = keyed.into_iter().map(|(_, page)| page.0).collect();
        let guided = (0u32..).zip(&cells).filter(|(_, cell)| cell.key.guide != NO_GUIDE);
        let mut wards: Vec<(u32, u32)> = guided.map(|(at, cell)| (cell.key.guide, at)).collect();
        wards.sort_unstable();
        let sharing = (0u32..).zip(&cells).filter(|(_, cell)| cell.key.fragments != NOTHING_SHARED);
        let mut sharers: Vec<(u32, u32)> =
            sharing.map(|(at, cell)| (cell.key.fragments, at)).collect();
        sharers.sort_unstable();
        let top = graph.top().map(|top| top.0);
        Self { top, cells, pages, numbers, group_ends, group_cells, wards, sharers }
    }

    /// The cells whose pages share this set of fragments.
    pub(crate) fn sharers(&self, fragments: u32) -> std::ops::Range<usize> {
        let from = self.sharers.partition_point(|&(shared, _)| shared < fragments);
        let to = self.sharers.partition_point(|&(shared, _)| shared <= fragments);
        from..to
    }

    pub(crate) fn sharer_cell(&self, at: usize) -> u32 {
        self.sharers[at].1
    }

    /// The cells under a page.
    pub(crate) fn wards(&self, guide: u32) -> std::ops::Range<usize> {
        let from = self.wards.partition_point(|&(page, _)| page < guide);
        let to = self.wards.partition_point(|&(page, _)| page <= guide);
        from..to
    }

    pub(crate) fn ward_cell(&self, at: usize) -> u32 {
        self.wards[at].1
    }

    pub(crate) fn of_group(&self, group: usize) -> std::ops::Range<usize> {
        let from = if group == 0 { 0 } else { self.group_ends[group - 1] as usize };
        from..self.group_ends[group] as usize
    }

    pub(crate) fn group_cell(&self, at: usize) -> u32 {
        self.group_cells[at]
    }

    /// The cell of each page, for servers of `pages` pages.
    pub(crate) fn by_page(&self, pages: usize) -> Vec<u32> {
        let mut cell_of = vec![u32::MAX; pages];
        for (number, cell) in (0u32..).zip(&self.cells) {
            for &page in &self.pages[cell.next as usize..cell.end as usize] {
                cell_of[page as usize] = number;
            }
        }
        cell_of
    }
}

fn cells_by_group(cells: &[Cell], groups: usize) -> (Vec<u32>, Vec<u32>) {
    let mut ends = vec![0u32; groups];
    for group in cells.iter().flat_map(|cell| cell.key.groups) {
        ends[group as usize] += 1;
    }
    let mut starts = Vec::with_capacity(groups);
    let mut sum = 0;
    for end in &mut ends {
        starts.push(sum);
        sum += *end;
        *end = sum;
    }
    let mut by_group = vec![0u32; sum as usize];
    for (number, cell) in (0u32..).zip(cells) {
        for group in cell.key.groups {
            let slot = &mut starts[group as usize];
            by_group[*slot as usize] = number;
            *slot += 1;
        }
    }
    (ends, by_group)
}
