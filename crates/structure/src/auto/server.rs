//! One server in a round: its cells ordered by chance, re-sorted only when needed.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use crate::auto::beliefs::{
    Beliefs, Level, SERVER_WEIGHT_MAX, SHARED_SHIFTS_KEPT, SHIFTS_KEPT, SPREADS, SharedBeliefs,
    Spread,
};
use crate::auto::calibration::situation;
use crate::auto::cells::{Cells, GroupKind};
use crate::auto::evidence::Evidence;
use crate::auto::fragments::{FRAGMENT_STATES, SharedFragments};
use crate::auto::gaussian::{Gaussian, Lesson, Sum, normal_below};
use crate::auto::layout::{GUIDE_CHANGED, GUIDE_SAME, GUIDE_UNSEEN, OF_TOP_PAGE};
use crate::auto::options::AutoOptions;
use crate::auto::page_spread::PageSpread;
use crate::graph::{PageIndex, SiteGraph};

/// What a visit is taken to be worth at least when guides are judged. It does not depend on where a
/// round stops: so a round that stops later makes the same visits, and more.
pub(crate) const LEAST_PRICE: f64 = 0.06;
/// The worth of one changed page found, on the scale of scores.
const SCORE_PER_PAGE_FOUND: f64 = 3.0;
/// The most that knowledge from a guide can add to a score.
const GUIDANCE_MAX: f64 = 3.0;
/// Cells sampled to estimate the price of a visit.
const CELLS_SAMPLED: usize = 2000;
/// Cells under a guide that are sampled to estimate its worth.
const WARDS_SAMPLED: usize = 3;
/// Scores closer than this count as equal: a cell is scored again only when its inputs moved by
/// more.
const TOLERANCE: f64 = 0.05;
/// Large groups are re-sorted at larger steps, up to this many times [`TOLERANCE`]. Their beliefs
/// often move a little, and each time all their cells would have to be scored.
const LARGE_GROUP_STEPS: f64 = 6.0;
/// Groups up to this many cells are small.
const SMALL_GROUP_CELLS: f64 = 200.0;
/// When the whole server moved by this much, all its cells are sorted again.
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
    /// The believed variance between the pages of this server, and the prior under which their
    /// levels are stored.
    page_variance: f64,
    kept_page_variance: f64,
    /// What this round has shown about it.
    page_seen: PageSpread,
    cells: Cells,
    fragments: SharedFragments,
    cell_of: Vec<u32>,
    asked: Vec<bool>,
    /// This round's shift of the server, and of each group.
    shift: Gaussian,
    shifts: Vec<Gaussian>,
    touched: Vec<bool>,
    /// Outcome of each page in this round: whether it changed, if known.
    outcomes: Vec<Option<bool>>,
    /// The chance below which a visit is not worth its price; guides are judged by it.
    pub(crate) price: f64,
    /// Each group's mean when its cells were last sorted.
    ordered_mean: Vec<f32>,
    /// The server's own sum when all cells were last sorted.
    ordered_server: Sum,
    heap: BinaryHeap<Entry>,
    /// The score of each cell's current entry in the heap; its other entries are outdated.
    current: Vec<f64>,
    pub(crate) visits: usize,
    pub(crate) budget: usize,
    pub(crate) learnt: bool,
    /// Number of chances computed, for statistics.
    pub(crate) looked_at: u64,
}

impl ServerRound {
    pub(crate) fn new(
        graph: &Arc<SiteGraph>,
        mut beliefs: Beliefs,
        pages: &[PageIndex],
        evidence: &[Evidence],
        fragments: &[Vec<u32>],
        options: &AutoOptions,
        shared: &SharedBeliefs,
    ) -> Self {
        beliefs.grow(graph.page_count(), graph.directory_count(), graph.family_count(), options);
        let variance = |level| beliefs.shift_variance(level, shared, options);
        let page_variance = beliefs.page_variance(shared, options);
        let own = |page: PageIndex| {
            beliefs.pages[page.at()].level().under_prior(options.page_variance, page_variance)
        };
        let (fragments, shared_by) = SharedFragments::new(fragments);
        let cells = Cells::new(graph, &beliefs, pages, evidence, &shared_by, own);
        let begins = Level::ALL.map(|level| Gaussian::new(0.0, variance(level)));
        let shifts: Vec<Gaussian> = (0..cells.numbers.count())
            .map(|group| begins[cells.numbers.kind(group).level() as usize])
            .collect();
        let mut round = Self {
            shift: begins[Level::Server as usize],
            page_variance,
            kept_page_variance: options.page_variance,
            page_seen: PageSpread::default(),
            cell_of: cells.by_page(graph.page_count()),
            asked: vec![false; graph.page_count()],
            outcomes: vec![None; graph.page_count()],
            price: LEAST_PRICE,
            touched: vec![false; shifts.len()],
            ordered_mean: vec![0.0; shifts.len()],
            ordered_server: Sum::NOTHING,
            heap: BinaryHeap::new(),
            current: vec![f64::NAN; cells.cells.len()],
            visits: 0,
            budget: options.server_budget.unwrap_or(usize::MAX),
            learnt: false,
            looked_at: 0,
            beliefs,
            cells,
            fragments,
            shifts,
        };
        round.reorder(shared);
        round
    }

    fn server_sum(&self) -> Sum {
        Sum::NOTHING.plus(self.beliefs.bias).plus(self.shift)
    }

    /// The sum of effects on a cell, without those of its guide, the server and the page itself.
    fn unguided_sum(&self, cell: u32, shared: &SharedBeliefs) -> Sum {
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
        if let Some(effect) = self.fragment_effect(cell) {
            sum = sum.plus(self.beliefs.fragments[effect]).plus(shared.fragments[effect]);
        }
        sum
    }

    /// The sum of effects on a cell including its guide's, without those of the server and the page
    /// itself.
    fn cell_sum(&self, cell: u32, shared: &SharedBeliefs) -> Sum {
        let sum = self.unguided_sum(cell, shared);
        match self.guide_effect(cell) {
            Some(effect) => self.with_guide(sum, effect, shared),
            None => sum,
        }
    }

    /// The effect of the shared fragments on a cell, if any.
    fn fragment_effect(&self, cell: u32) -> Option<usize> {
        self.fragments.state(self.cells.cells[cell as usize].key.fragments).effect()
    }

    /// The effect of the page above on a cell, if there is one.
    fn guide_effect(&self, cell: u32) -> Option<usize> {
        let guide = self.cells.cells[cell as usize].key.guide;
        let state = match self.outcomes.get(guide as usize)? {
            Some(true) => GUIDE_CHANGED,
            Some(false) => GUIDE_SAME,
            None => GUIDE_UNSEEN,
        };
        Some(state + self.of_top_page(guide))
    }

    /// The server's top page has guide effects of its own.
    fn of_top_page(&self, guide: u32) -> usize {
        if self.cells.top == Some(guide) { OF_TOP_PAGE } else { 0 }
    }

    fn with_guide(&self, sum: Sum, effect: usize, shared: &SharedBeliefs) -> Sum {
        sum.plus(self.beliefs.features[effect]).plus(shared.effects[effect])
    }

    /// The worth of a visit to `page` for what it says about the pages under it, given its chance
    /// of a change: the additional changed pages found, minus the price of the visits, because it
    /// is then known whether to visit them.
    fn guidance(&self, page: u32, guide: Sum, server: Sum, shared: &SharedBeliefs) -> f64 {
        let wards = self.cells.wards(page);
        let cells = wards.len();
        if cells == 0 {
            return 0.0;
        }
        let chance = normal_below(self.corrected(page, guide, shared));
        let offset = self.of_top_page(page);
        let (if_changed, if_same) = (guide.lesson(true), guide.lesson(false));
        let worth = |sum: Sum, effect: usize, leads: bool| {
            let line = shared.calibration[situation(Some(effect), leads)];
            (normal_below(line.score(sum.score())) - self.price).max(0.0)
        };
        let mut gain = 0.0;
        for at in wards.take(WARDS_SAMPLED) {
            let cell = self.cells.ward_cell(at);
            let left = &self.cells.cells[cell as usize];
            let Some(&head) = self.cells.pages.get(left.next as usize) else { continue };
            if left.next >= left.end || self.asked[head as usize] {
                continue;
            }
            let sum = self.unguided_sum(cell, shared).plus(self.own(head)).and(server);
            let common = self.common_variance(page, cell);
            let leads = self.leads(head);
            let after = |effect, lesson| {
                worth(self.with_guide(sum.after(common, lesson), effect, shared), effect, leads)
            };
            let known = chance * after(GUIDE_CHANGED + offset, if_changed)
                + (1.0 - chance) * after(GUIDE_SAME + offset, if_same);
            let unseen = GUIDE_UNSEEN + offset;
            let now = worth(self.with_guide(sum, unseen, shared), unseen, leads);
            gain += (known - now).max(0.0) * f64::from(left.end - left.next);
        }
        let sampled = cells.clamp(1, WARDS_SAMPLED);
        gain *= cells as f64 / sampled as f64;
        (SCORE_PER_PAGE_FOUND * gain).min(GUIDANCE_MAX)
    }

    /// The score of a page by its own chance and by what it says about others.
    fn value(&self, page: u32, server: Sum, shared: &SharedBeliefs) -> Option<f64> {
        let sum = self.page_sum(page, server, shared)?;
        Some(self.corrected(page, sum, shared) + self.guidance(page, sum, server, shared))
    }

    /// A page's score, corrected by how well such scores agreed with outcomes so far.
    fn corrected(&self, page: u32, sum: Sum, shared: &SharedBeliefs) -> f64 {
        shared.calibration[self.situation(page)].score(sum.score())
    }

    fn situation(&self, page: u32) -> usize {
        situation(self.guide_effect(self.cell_of[page as usize]), self.leads(page))
    }

    /// Whether this page is the guide of others.
    fn leads(&self, page: u32) -> bool {
        !self.cells.wards(page).is_empty()
    }

    fn page_chance(&self, page: u32, server: Sum, shared: &SharedBeliefs) -> Option<f64> {
        let sum = self.page_sum(page, server, shared)?;
        Some(normal_below(self.corrected(page, sum, shared)))
    }

    fn page_sum(&self, page: u32, server: Sum, shared: &SharedBeliefs) -> Option<Sum> {
        let cell = *self.cell_of.get(page as usize).filter(|&&cell| cell != u32::MAX)?;
        Some(self.cell_sum(cell, shared).plus(self.own(page)).and(server))
    }

    /// The page's own level, shrunk as far as the pages of this server are alike.
    fn own(&self, page: u32) -> Gaussian {
        let level = self.beliefs.pages[page as usize].level();
        level.under_prior(self.kept_page_variance, self.page_variance)
    }

    /// The variance of this round's shifts that a page and the pages of a cell have in common.
    fn common_variance(&self, page: u32, cell: u32) -> f64 {
        let groups_of = |cell: u32| self.cells.cells[cell as usize].key.groups;
        let both = groups_of(self.cell_of[page as usize]).into_iter().zip(groups_of(cell));
        let common = both.filter(|(a, b)| a == b);
        common.map(|(group, _)| f64::from(self.shifts[group as usize].variance)).sum()
    }

    pub(crate) fn is_candidate(&self, page: PageIndex) -> bool {
        self.cell_of.get(page.at()).is_some_and(|&cell| cell != u32::MAX)
    }

    pub(crate) fn was_asked(&self, page: PageIndex) -> bool {
        self.asked.get(page.at()).copied().unwrap_or(false)
    }

    /// The chance that a page changed, by what is known now.
    pub(crate) fn chance(&self, page: PageIndex, shared: &SharedBeliefs) -> Option<f64> {
        self.page_chance(page.0, self.server_sum(), shared)
    }

    /// The chances of the pages left if the server as a whole is as usual: (chance, pages), from a
    /// sample of cells.
    pub(crate) fn usual_chances(&self, shared: &SharedBeliefs) -> Vec<(f64, f64)> {
        let usual = Sum::NOTHING.plus(self.beliefs.bias);
        let mut server = self.server_sum();
        server.variance = server.variance.min(usual.variance);
        let step = self.cells.cells.len() / CELLS_SAMPLED + 1;
        let cells = (0..self.cells.cells.len()).step_by(step);
        cells
            .filter_map(|at| {
                let cell = &self.cells.cells[at];
                let page = *self.cells.pages[..cell.end as usize].get(cell.next as usize)?;
                let chance = self.page_chance(page, server, shared)?;
                Some((chance, step as f64 * f64::from(cell.end - cell.next)))
            })
            .collect()
    }

    /// The first page of a cell that was not handed out yet.
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

    /// Gives one cell a heap entry with its current score.
    fn push(&mut self, cell: u32, shared: &SharedBeliefs) {
        let score = self.head(cell).and_then(|page| {
            self.looked_at += 1;
            self.value(page, self.ordered_server, shared)
        });
        self.current[cell as usize] = score.unwrap_or(f64::NAN);
        if let Some(score) = score {
            self.heap.push(Entry { score, cell });
        }
        if self.heap.len() > 2 * self.current.len() + 64 {
            self.drop_outdated();
        }
    }

    /// Keeps the heap at no more than two entries per cell.
    fn drop_outdated(&mut self) {
        let mut entries = std::mem::take(&mut self.heap).into_vec();
        entries.retain(|entry| self.current[entry.cell as usize] == entry.score);
        entries.sort_unstable();
        entries.dedup();
        self.heap = BinaryHeap::from(entries);
    }

    fn reorder(&mut self, shared: &SharedBeliefs) {
        self.ordered_server = self.server_sum();
        self.heap.clear();
        for cell in 0..self.cells.cells.len() as u32 {
            self.push(cell, shared);
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
            let outdated = self.current[top.cell as usize] != top.score;
            let Some(page) = page.filter(|_| !outdated) else {
                self.heap.pop();
                continue;
            };
            self.looked_at += 1;
            let now = self.value(page, self.ordered_server, shared)?;
            if now < top.score - TOLERANCE {
                self.heap.pop();
                self.push(top.cell, shared);
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
        self.push(self.cell_of[page.at()], shared);
    }

    /// Teaches the outcome of a visit to all effects on the page.
    pub(crate) fn learn(
        &mut self,
        page: PageIndex,
        changed: bool,
        lost: Option<&[u32]>,
        shared: &mut SharedBeliefs,
    ) {
        let Some(sum) = self.page_sum(page.0, self.server_sum(), shared) else { return };
        shared.calibration[self.situation(page.0)].learn(sum.score(), changed);
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
        if let Some(effect) = self.fragment_effect(self.cell_of[page.at()]) {
            self.beliefs.fragments[effect].learn(lesson);
            shared.fragments[effect].learn(lesson);
        }
        self.weigh_spreads(page, changed, shared);
        let mut own = self.own(page.0);
        own.learn(lesson);
        let belief = &mut self.beliefs.pages[page.at()];
        belief.set(own.under_prior(self.page_variance, self.kept_page_variance));
        belief.remember(changed);
        for group in key.groups {
            self.learn_group(group as usize, lesson, shared);
        }
        self.outcomes[page.at()] = Some(changed);
        if let Some(lost) = lost {
            self.saw_fragments(key.fragments, changed, lost, shared);
        }
        for at in self.cells.wards(page.0) {
            self.push(self.cells.ward_cell(at), shared);
        }
        self.follow_server(shared);
    }

    /// Records that a page was seen and has lost these fragments, and updates the pages that share
    /// them.
    fn saw_fragments(&mut self, set: u32, changed: bool, lost: &[u32], shared: &SharedBeliefs) {
        let worth = |effect: Option<usize>| {
            effect.map_or(0.0, |at| self.beliefs.fragments[at].mean + shared.fragments[at].mean)
        };
        let worths: Vec<f32> =
            [None].into_iter().chain((0..FRAGMENT_STATES).map(Some)).map(worth).collect();
        for (set, before) in self.fragments.saw(set, changed, lost) {
            if worths[self.fragments.state(set) as usize] <= worths[before as usize] {
                continue;
            }
            for at in self.cells.sharers(set) {
                self.push(self.cells.sharer_cell(at), shared);
            }
        }
    }

    /// An outcome of a page that was seen before shows how much pages differ.
    fn weigh_spreads(&mut self, page: PageIndex, changed: bool, shared: &SharedBeliefs) {
        let belief = self.beliefs.pages[page.at()];
        if !belief.was_seen() {
            return;
        }
        let others = self.cell_sum(self.cell_of[page.at()], shared).and(self.server_sum());
        let kept = self.kept_page_variance;
        let own = |guess| belief.level().under_prior(kept, guess);
        self.page_seen.weigh(others, self.page_variance, changed, own);
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

    /// Cells that sank are noticed when their turn comes; cells that rose must get a higher entry
    /// now.
    fn raise_group(&mut self, group: usize, shared: &SharedBeliefs) {
        let mean = self.shifts[group].mean;
        let cells = self.cells.of_group(group);
        let size_steps = (cells.len() as f64 / SMALL_GROUP_CELLS).sqrt();
        let step = TOLERANCE * size_steps.clamp(1.0, LARGE_GROUP_STEPS);
        if f64::from(mean - self.ordered_mean[group]) > step {
            for at in cells {
                self.push(self.cells.group_cell(at), shared);
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

    /// The sum of the chances of all pages not handed out.
    pub(crate) fn expected_left(&self, shared: &SharedBeliefs) -> f64 {
        let server = self.server_sum();
        let left = self.cells.pages.iter().filter(|&&page| !self.asked[page as usize]);
        left.filter_map(|&page| self.page_chance(page, server, shared)).sum()
    }

    /// Ends the round: shifts are forgotten, but their size is learnt. `known` is what all servers
    /// shared in the round, `shared` what they will share after it.
    pub(crate) fn finish(
        mut self,
        options: &AutoOptions,
        known: &SharedBeliefs,
        shared: &mut SharedBeliefs,
    ) -> Beliefs {
        let priors = Level::ALL.map(|level| self.beliefs.shift_variance(level, known, options));
        let mut seen = [Spread::default(); SPREADS];
        if self.learnt {
            seen[Level::Server as usize].learn(self.shift, priors[Level::Server as usize]);
        }
        for group in (0..self.shifts.len()).filter(|&group| self.touched[group]) {
            let level = self.cells.numbers.kind(group).level();
            seen[level as usize].learn(self.shifts[group], priors[level as usize]);
        }
        if self.learnt {
            let prior = options.page_spread_prior;
            let everywhere = (&known.page_spread, &mut shared.page_spread);
            self.beliefs.page_spread.end_round(&self.page_seen, everywhere.0, everywhere.1, prior);
            for (level, seen) in seen.into_iter().enumerate() {
                self.beliefs.spreads[level].add(seen, f32::INFINITY, SHIFTS_KEPT);
                shared.spreads[level].add(seen, SERVER_WEIGHT_MAX, SHARED_SHIFTS_KEPT);
            }
        }
        self.beliefs.drift(options);
        self.beliefs
    }
}
