//! One server in a round: its cells in order of their chances, kept lazily.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use crate::auto::beliefs::{Beliefs, Level, SharedBeliefs};
use crate::auto::cells::{Cells, GroupKind};
use crate::auto::evidence::Evidence;
use crate::auto::gaussian::{Gaussian, Lesson, Sum};
use crate::auto::layout::{GUIDE_CHANGED, GUIDE_SAME};
use crate::auto::options::AutoOptions;
use crate::graph::{PageIndex, SiteGraph};

/// A page found is worth about this much on the scale of scores.
const SCORE_PER_PAGE_FOUND: f64 = 3.0;
/// What a guide can tell is worth at most this.
const GUIDANCE_MAX: f64 = 3.0;
/// Cells under a guide that are looked at to judge its worth.
const WARDS_SAMPLED: usize = 3;
/// Scores within this of each other count as equal: a cell is looked at again only when what it
/// stands on moved by more.
const TOLERANCE: f64 = 0.05;
/// Large groups are put in order at larger steps, up to this many times [`TOLERANCE`]: their
/// beliefs wander up and down by little, and all their cells would be looked at each time.
const LARGE_GROUP_STEPS: f64 = 6.0;
/// Groups up to this many cells are small.
const SMALL_GROUP_CELLS: f64 = 200.0;
/// When the whole server moved by this, its cells are put in order anew.
const REORDER: f64 = 0.5;

#[derive(Debug, Clone, Copy, PartialEq)]
struct Entry {
    score: f64,
    cell: u32,
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then(other.cell.cmp(&self.cell))
    }
}

#[derive(Debug, Clone)]
pub(crate) struct ServerRound {
    pub(crate) beliefs: Beliefs,
    cells: Cells,
    cell_of: Vec<u32>,
    asked: Vec<bool>,
    /// This round's shift of the server, and of each group.
    shift: Gaussian,
    shifts: Vec<Gaussian>,
    touched: Vec<bool>,
    /// What each page showed in this round.
    told: Vec<Option<bool>>,
    /// The chance below which a visit is thought too dear: guides are judged by it.
    pub(crate) price: f64,
    /// Each group's mean when its cells were last put in order.
    ordered_mean: Vec<f32>,
    /// The server's own sum when all cells were last put in order.
    ordered_server: Sum,
    heap: BinaryHeap<Entry>,
    /// The score under which each cell stands in the heap; other entries of it are outdated.
    standing: Vec<f64>,
    pub(crate) visits: usize,
    pub(crate) budget: usize,
    pub(crate) learnt: bool,
    /// Cells whose chance was computed, for those who count.
    pub(crate) looked_at: u64,
}

impl ServerRound {
    pub(crate) fn new(
        graph: &Arc<SiteGraph>,
        mut beliefs: Beliefs,
        pages: &[PageIndex],
        evidence: &[Evidence],
        options: &AutoOptions,
        shared: &SharedBeliefs,
    ) -> Self {
        beliefs.grow(graph.page_count(), graph.directory_count(), graph.family_count(), options);
        let cells = Cells::new(graph, &beliefs, pages, evidence);
        let shift = |level| Gaussian::new(0.0, beliefs.shift_variance(level, options));
        let (directory, family) = (shift(Level::Directory), shift(Level::Family));
        let template = shift(Level::Template);
        let shifts: Vec<Gaussian> = (0..cells.numbers.count())
            .map(|group| match cells.numbers.kind(group) {
                GroupKind::Directory(_) => directory,
                GroupKind::Family(_) => family,
                GroupKind::Template => template,
                GroupKind::Depth => Gaussian::new(0.0, options.round_depth_variance),
                GroupKind::History => Gaussian::new(0.0, options.round_history_variance),
            })
            .collect();
        let mut round = Self {
            shift: shift(Level::Server),
            cell_of: cells.by_page(graph.page_count()),
            asked: vec![false; graph.page_count()],
            told: vec![None; graph.page_count()],
            price: options.stop_below,
            touched: vec![false; shifts.len()],
            ordered_mean: vec![0.0; shifts.len()],
            ordered_server: Sum::NOTHING,
            heap: BinaryHeap::new(),
            standing: vec![f64::NAN; cells.cells.len()],
            visits: 0,
            budget: options.server_budget.unwrap_or(usize::MAX),
            learnt: false,
            looked_at: 0,
            beliefs,
            cells,
            shifts,
        };
        round.reorder(shared);
        round
    }

    fn server_sum(&self) -> Sum {
        Sum::NOTHING.plus(self.beliefs.bias).plus(self.shift)
    }

    /// The effects on a cell, without the server's and the page's own.
    fn cell_sum(&self, cell: u32, shared: &SharedBeliefs) -> Sum {
        let key = &self.cells.cells[cell as usize].key;
        let [directory, family, ..] = key.groups;
        let mut sum = Sum::NOTHING;
        for group in key.groups {
            sum = sum.plus(self.shifts[group as usize]);
        }
        for group in [directory, family] {
            sum = match self.cells.numbers.kind(group as usize) {
                GroupKind::Directory(at) => sum.plus(self.beliefs.directories[at]),
                GroupKind::Family(at) => sum.plus(self.beliefs.families[at]),
                _ => sum,
            };
        }
        for feature in key.features {
            sum = sum.plus(self.beliefs.features[usize::from(feature)]);
        }
        for effect in key.shared {
            sum = sum.plus(shared.effects[usize::from(effect)]);
        }
        match self.guide_effect(cell) {
            Some(effect) => self.with_guide(sum, effect, shared),
            None => sum,
        }
    }

    /// Which effect the page above has on a cell, once it has been seen.
    fn guide_effect(&self, cell: u32) -> Option<usize> {
        let guide = self.cells.cells[cell as usize].key.guide;
        let changed = (*self.told.get(guide as usize)?)?;
        Some(if changed { GUIDE_CHANGED } else { GUIDE_SAME })
    }

    fn with_guide(&self, sum: Sum, effect: usize, shared: &SharedBeliefs) -> Sum {
        sum.plus(self.beliefs.features[effect]).plus(shared.effects[effect])
    }

    /// What a visit to `page`, which changed with the given chance, is worth for what it tells of the
    /// pages under it: the changed pages that will be found more, less the visits' price, because
    /// one then knows whether to visit them.
    fn guidance(&self, page: u32, chance: f64, server: Sum, shared: &SharedBeliefs) -> f64 {
        let wards = self.cells.wards(page);
        let cells = wards.len();
        let worth = |sum: Sum| (sum.chance() - self.price).max(0.0);
        let mut gain = 0.0;
        for at in wards.take(WARDS_SAMPLED) {
            let cell = self.cells.ward_cell(at);
            let left = &self.cells.cells[cell as usize];
            let Some(&head) = self.cells.pages.get(left.next as usize) else { continue };
            if left.next >= left.end || self.asked[head as usize] {
                continue;
            }
            let own = self.beliefs.pages[head as usize].level();
            let sum = self.cell_sum(cell, shared).plus(own).and(server);
            let after = |effect| worth(self.with_guide(sum, effect, shared));
            let known = chance * after(GUIDE_CHANGED) + (1.0 - chance) * after(GUIDE_SAME);
            gain += (known - worth(sum)).max(0.0) * f64::from(left.end - left.next);
        }
        let sampled = cells.clamp(1, WARDS_SAMPLED);
        gain *= cells as f64 / sampled as f64;
        (SCORE_PER_PAGE_FOUND * gain).min(GUIDANCE_MAX)
    }

    /// The score of a page by its own chance and by what it tells.
    fn value(&self, page: u32, server: Sum, shared: &SharedBeliefs) -> Option<f64> {
        let sum = self.page_sum(page, server, shared)?;
        Some(sum.score() + self.guidance(page, sum.chance(), server, shared))
    }

    fn page_sum(&self, page: u32, server: Sum, shared: &SharedBeliefs) -> Option<Sum> {
        let cell = *self.cell_of.get(page as usize).filter(|&&cell| cell != u32::MAX)?;
        let own = self.beliefs.pages[page as usize].level();
        Some(self.cell_sum(cell, shared).plus(own).and(server))
    }

    pub(crate) fn is_candidate(&self, page: PageIndex) -> bool {
        self.cell_of.get(page.at()).is_some_and(|&cell| cell != u32::MAX)
    }

    pub(crate) fn was_asked(&self, page: PageIndex) -> bool {
        self.asked.get(page.at()).copied().unwrap_or(false)
    }

    /// The chance that a page changed, as things stand.
    pub(crate) fn chance(&self, page: PageIndex, shared: &SharedBeliefs) -> Option<f64> {
        self.page_sum(page.0, self.server_sum(), shared).map(Sum::chance)
    }

    /// The first page of a cell that has not been asked for.
    fn head(&mut self, cell: u32) -> Option<u32> {
        let cell = &mut self.cells.cells[cell as usize];
        while cell.next < cell.end {
            let page = self.cells.pages[cell.next as usize];
            if !self.asked[page as usize] {
                return Some(page);
            }
            cell.next += 1;
        }
        None
    }

    /// Puts one cell where it belongs now.
    fn place(&mut self, cell: u32, shared: &SharedBeliefs) {
        let score = self.head(cell).and_then(|page| {
            self.looked_at += 1;
            self.value(page, self.ordered_server, shared)
        });
        self.standing[cell as usize] = score.unwrap_or(f64::NAN);
        if let Some(score) = score {
            self.heap.push(Entry { score, cell });
        }
        if self.heap.len() > 2 * self.standing.len() + 64 {
            self.drop_outdated();
        }
    }

    /// Keeps the heap at no more than two entries a cell.
    fn drop_outdated(&mut self) {
        let mut entries = std::mem::take(&mut self.heap).into_vec();
        entries.retain(|entry| self.standing[entry.cell as usize] == entry.score);
        entries.sort_unstable();
        entries.dedup();
        self.heap = BinaryHeap::from(entries);
    }

    fn reorder(&mut self, shared: &SharedBeliefs) {
        self.ordered_server = self.server_sum();
        self.heap.clear();
        for cell in 0..self.cells.cells.len() as u32 {
            self.place(cell, shared);
        }
        for group in 0..self.shifts.len() {
            self.ordered_mean[group] = self.shifts[group].mean;
        }
    }

    /// The likeliest page, and its score.
    pub(crate) fn best(&mut self, shared: &SharedBeliefs) -> Option<(f64, PageIndex)> {
        if self.visits >= self.budget {
            return None;
        }
        loop {
            let top = *self.heap.peek()?;
            let page = self.head(top.cell);
            let outdated = self.standing[top.cell as usize] != top.score;
            let Some(page) = page.filter(|_| !outdated) else {
                self.heap.pop();
                continue;
            };
            self.looked_at += 1;
            let now = self.value(page, self.ordered_server, shared)?;
            if now < top.score - TOLERANCE {
                self.heap.pop();
                self.place(top.cell, shared);
                continue;
            }
            let score = self.value(page, self.server_sum(), shared)?;
            return Some((score, PageIndex(page)));
        }
    }

    pub(crate) fn ask(&mut self, page: PageIndex, shared: &SharedBeliefs) {
        if std::mem::replace(&mut self.asked[page.at()], true) {
            return;
        }
        self.visits += 1;
        self.place(self.cell_of[page.at()], shared);
    }

    /// What a probe teaches, to all that bears on the page.
    pub(crate) fn learn(&mut self, page: PageIndex, changed: bool, shared: &mut SharedBeliefs) {
        let Some(sum) = self.page_sum(page.0, self.server_sum(), shared) else { return };
        let lesson = sum.lesson(changed);
        let key = self.cells.cells[self.cell_of[page.at()] as usize].key;
        self.learnt = true;
        self.beliefs.bias.learn(lesson);
        self.shift.learn(lesson);
        for feature in key.features {
            self.beliefs.features[usize::from(feature)].learn(lesson);
        }
        for effect in key.shared {
            shared.effects[usize::from(effect)].learn(lesson);
        }
        if let Some(effect) = self.guide_effect(self.cell_of[page.at()]) {
            self.beliefs.features[effect].learn(lesson);
            shared.effects[effect].learn(lesson);
        }
        let belief = &mut self.beliefs.pages[page.at()];
        let mut own = belief.level();
        own.learn(lesson);
        belief.set(own);
        belief.remember(changed);
        for group in key.groups {
            self.learn_group(group as usize, lesson, shared);
        }
        self.told[page.at()] = Some(changed);
        for at in self.cells.wards(page.0) {
            self.place(self.cells.ward_cell(at), shared);
        }
        self.follow_server(shared);
    }

    fn learn_group(&mut self, group: usize, lesson: Lesson, shared: &SharedBeliefs) {
        match self.cells.numbers.kind(group) {
            GroupKind::Directory(at) => self.beliefs.directories[at].learn(lesson),
            GroupKind::Family(at) => self.beliefs.families[at].learn(lesson),
            GroupKind::Depth | GroupKind::History | GroupKind::Template => {}
        }
        self.shifts[group].learn(lesson);
        self.touched[group] = true;
        self.raise_group(group, shared);
    }

    /// Cells that sank are found out when their turn comes; cells that rose must be put higher
    /// now.
    fn raise_group(&mut self, group: usize, shared: &SharedBeliefs) {
        let mean = self.shifts[group].mean;
        let cells = self.cells.of_group(group);
        let size_steps = (cells.len() as f64 / SMALL_GROUP_CELLS).sqrt();
        let step = TOLERANCE * size_steps.clamp(1.0, LARGE_GROUP_STEPS);
        if f64::from(mean - self.ordered_mean[group]) > step {
            for at in cells {
                self.place(self.cells.group_cell(at), shared);
            }
            self.ordered_mean[group] = mean;
        } else if mean < self.ordered_mean[group] {
            self.ordered_mean[group] = mean;
        }
    }

    fn follow_server(&mut self, shared: &SharedBeliefs) {
        let now = self.server_sum();
        let before = self.ordered_server;
        let spread = (now.variance / before.variance).sqrt();
        if (now.mean - before.mean).abs() > REORDER || !(0.7..1.4).contains(&spread) {
            self.reorder(shared);
        }
    }

    /// A block that pages of this template share is known to have changed.
    pub(crate) fn template_changed(&mut self, template: u32, shared: &SharedBeliefs) {
        let Some(&number) = self.cells.templates.get(&Some(template)) else { return };
        let group = self.shifts.len() - self.cells.templates.len() + number as usize;
        // As certain as a page that changed with its template many times before.
        self.shifts[group] = Gaussian::new(3.0, 0.5);
        self.touched[group] = true;
        self.raise_group(group, shared);
    }

    /// The chances of all pages not asked for, summed.
    pub(crate) fn expected_left(&self, shared: &SharedBeliefs) -> f64 {
        let server = self.server_sum();
        let left = self.cells.pages.iter().filter(|&&page| !self.asked[page as usize]);
        left.filter_map(|&page| self.page_sum(page, server, shared)).map(Sum::chance).sum()
    }

    /// Ends the round: shifts are forgotten, but how far they went is learnt.
    pub(crate) fn finish(mut self, options: &AutoOptions) -> Beliefs {
        let levels = [Level::Server, Level::Directory, Level::Family, Level::Template];
        let priors = levels.map(|level| self.beliefs.shift_variance(level, options));
        if self.learnt {
            let prior = priors[Level::Server as usize];
            self.beliefs.spreads[Level::Server as usize].learn(self.shift, prior);
        }
        for group in (0..self.shifts.len()).filter(|&group| self.touched[group]) {
            let level = match self.cells.numbers.kind(group) {
                GroupKind::Directory(_) => Level::Directory,
                GroupKind::Family(_) => Level::Family,
                GroupKind::Template => Level::Template,
                GroupKind::Depth | GroupKind::History => continue,
            };
            let prior = priors[level as usize];
            self.beliefs.spreads[level as usize].learn(self.shifts[group], prior);
        }
        self.beliefs.drift(options);
        self.beliefs
    }
}
