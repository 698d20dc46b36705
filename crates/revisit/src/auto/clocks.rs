//! What a visit says about a page's neighbours: change clocks and rates of directories, file
//! names and servers.

use std::collections::BTreeMap;

use super::clock::{Clock, DayPace, DaySums, OPEN_DAYS, Passed, PassedBuckets};
use super::grid::Spread;
use super::prior::Evidence;
use super::repeats::Repeats;
use super::rhythm::Rhythm;
use super::sketch::Sketch;
use crate::DAY_S;
use crate::page_groups::{PageGroups, hash};

/// Ancestors that are looked at; deeper directories belong to the deepest of these.
const MAX_DEPTH: usize = 16;
pub(super) const NONE: u32 = u32::MAX;
/// A clock runs no slower than this: quiet neighbours make a page wait longer, but not for ever.
const SLOWEST_CLOCK: f32 = 0.4;
/// Sets names apart from directories of the same text.
const NAME_SEED: u64 = 0x6e61_6d65;

/// Constants of the clocks, chosen by cross-validation over sources.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockTuning {
    /// Known pages from which on a directory has a clock of its own.
    pub group_pages: u32,
    /// Known pages from which on a directory's or a name's rates are kept.
    pub evidence_pages: u32,
    /// Changes that a server's clock is held to before it has evidence.
    pub server_hold: f32,
    /// The same for a group's clock, against the clock above it.
    pub group_hold: f32,
    /// The same for bulk edits.
    pub bulk_hold: f32,
    /// Bulk edits per page and day before there is evidence, and its weight in page-days.
    pub bulk_start: (f64, f64),
    /// Pages that the rates of a level above count for: directory, group, server.
    pub prior_pages: [f32; 3],
    /// Days after which the rates seen count half.
    pub forget_days: f32,
    /// Whether clocks follow every visit at once, and not at the day's end. That pays where every
    /// page is asked about every day, and not where pages are looked at when their planned times
    /// come.
    pub at_once: bool,
}

impl Default for ClockTuning {
    fn default() -> Self {
        Self {
            group_pages: 12,
            evidence_pages: 6,
            server_hold: 1.0,
            group_hold: 0.5,
            bulk_hold: 0.01,
            bulk_start: (0.01, 2e5),
            prior_pages: [10.0, 15.0, 20.0],
            forget_days: 60.0,
            at_once: true,
        }
    }
}

/// The clocks and rates of all groups of pages.
///
/// A group is a directory, a server, or the pages of a server whose file names differ in digits
/// only. Every visit shows its group, and those above it, on which days the page may have changed.
#[derive(Debug, Clone)]
pub struct ChangeClocks {
    pub(super) tuning: ClockTuning,
    /// The open day, as days since the epoch.
    pub(super) today: Option<i64>,
    pub(super) index: BTreeMap<u64, u32>,
    pub(super) nodes: Vec<Node>,
    pub(super) sketch: Sketch,
    /// Bulk edits credited and page-days exposed, over all pages.
    pub(super) bulk: (f64, f64),
    pub(super) all: Evidence,
    /// Days of evidence behind the rates, forgetting included.
    pub(super) evidence_days: f32,
    /// Grows as old evidence is forgotten, so that only new evidence needs to be touched.
    pub(super) scale: f32,
    /// Whether changes follow each other.
    pub(super) repeats: Repeats,
}

/// A server (without parent), a directory or a file name.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) key: u64,
    pub(super) parent: u32,
    pub(super) pages: u32,
    pub(super) clock: Option<Box<Clock>>,
    pub(super) evidence: Option<Box<Evidence>>,
}

/// What a visit closed: the gap, the rate believed before, and what was seen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClosedGap {
    pub(crate) from_s: i64,
    pub(crate) to_s: i64,
    pub(crate) rate: f32,
    pub(crate) changed: bool,
}

impl ChangeClocks {
    /// Clocks without evidence.
    pub fn new(tuning: ClockTuning) -> Self {
        Self {
            tuning,
            today: None,
            index: BTreeMap::new(),
            nodes: Vec::new(),
            sketch: Sketch::new(),
            bulk: (tuning.bulk_start.0 * tuning.bulk_start.1, tuning.bulk_start.1),
            all: Evidence::default(),
            evidence_days: 0.0,
            scale: 1.0,
            repeats: Repeats::default(),
        }
    }

    /// The groups of a page, by its server's number and its path.
    pub fn groups_of(&self, server: u64, path: &str) -> PageGroups {
        let path = stripped(path);
        let known = |key: u64| self.index.get(&key).copied();
        let directory =
            prefixes(path).map_while(|prefix| known(hash(server, prefix))).last().unwrap_or(NONE);
        let name = known(name_key(server, path)).unwrap_or(NONE);
        PageGroups { directory, name, page: hash(server, path.as_bytes()) as u32 }
    }

    /// Counts a new page into its directories and its name; to be called once per page.
    pub fn meet(&mut self, now_s: i64, server: u64, path: &str) -> PageGroups {
        self.roll(now_s);
        let short = stripped(path);
        let mut parent = NONE;
        for prefix in prefixes(short) {
            let Some(id) = self.count(hash(server, prefix), parent) else { break };
            parent = id;
        }
        let root = self.index.get(&hash(server, b"")).copied().unwrap_or(NONE);
        self.count(name_key(server, short), root);
        self.groups_of(server, path)
    }

    /// Counts a page into a node, which comes into being once it has enough pages; a server's at
    /// once.
    fn count(&mut self, key: u64, parent: u32) -> Option<u32> {
        let id = match self.index.get(&key) {
            Some(&id) => {
                self.nodes[id as usize].pages += 1;
                id
            }
            None => {
                let pages = if parent == NONE { 1 } else { self.sketch.add(key) };
                if parent != NONE && pages < self.tuning.evidence_pages {
                    return None;
                }
                let id = self.nodes.len() as u32;
                self.index.insert(key, id);
                self.nodes.push(Node { key, parent, pages, clock: None, evidence: None });
                id
            }
        };
        let node = &self.nodes[id as usize];
        let wants_clock = parent == NONE || node.pages >= self.tuning.group_pages;
        if wants_clock && node.clock.is_none() {
            let above = self.clock_of(self.clock_above(parent));
            let clock = Clock::starting_as(above, self.today.unwrap_or(0), self.mean_pace());
            self.nodes[id as usize].clock = Some(Box::new(clock));
        }
        Some(id)
    }

    /// Opens the day of `now_s`: the evidence of the days before moves the clocks.
    pub fn roll(&mut self, now_s: i64) {
        let today = now_s.div_euclid(DAY_S);
        let days = self.today.map_or(0, |last| today - last);
        if self.today.is_some() && days <= 0 {
            return;
        }
        self.today = Some(today);
        self.forget(days as f32);
        self.recompute(today, (-(days as f32) / self.tuning.forget_days).exp2());
    }

    /// Lets old evidence fade: new evidence weighs more by `scale` instead, until that is too large.
    fn forget(&mut self, days: f32) {
        let halvings = (days / self.tuning.forget_days).min(60.0);
        self.scale *= halvings.exp2();
        if self.scale > 1e6 {
            let shrink = 1.0 / self.scale;
            self.scale = 1.0;
            self.evidence_days *= shrink;
            self.all.scale(shrink);
            for node in &mut self.nodes {
                node.evidence.iter_mut().for_each(|evidence| evidence.scale(shrink));
            }
        }
        self.evidence_days += self.scale * days.min(self.tuning.forget_days);
    }

    /// Recomputes every clock; parents come before their children. Of what was seen of rhythms, a
    /// share is kept.
    pub(super) fn recompute(&mut self, today: i64, keep: f32) {
        let mean = self.mean_pace();
        let tuning = self.tuning;
        for at in 0..self.nodes.len() {
            let Some(mut clock) = self.nodes[at].clock.take() else { continue };
            clock.roll(today, mean);
            let above = self.clock_above(self.nodes[at].parent);
            let above = self.clock_of(above);
            clock.follow_rhythm(above.map(|above| &above.rhythm), keep);
            match above {
                None => clock.recompute(|_, sums, usual| server_pace(&tuning, mean, sums, usual)),
                Some(above) => {
                    let (paces, rhythm, first) =
                        (above.paces(), &above.rhythm, above.first_open_day());
                    clock.recompute(|day, sums, usual| {
                        let usual = usual / rhythm.of_day(first + day as i64);
                        group_pace(&tuning, paces[day], sums, usual)
                    });
                }
            }
            self.nodes[at].clock = Some(clock);
        }
    }

    /// Expected bulk edits per page and day, over all pages.
    pub(crate) fn mean_bulk(&self) -> f32 {
        (self.bulk.0 / self.bulk.1) as f32
    }

    fn mean_pace(&self) -> DayPace {
        DayPace { clock: 1.0, bulk: self.mean_bulk() }
    }

    /// The nearest node with a clock, from `at` upwards.
    pub(super) fn clock_above(&self, mut at: u32) -> Option<u32> {
        loop {
            let node = self.nodes.get(at as usize)?;
            if node.clock.is_some() {
                return Some(at);
            }
            at = node.parent;
        }
    }

    pub(super) fn clock_of(&self, node: Option<u32>) -> Option<&Clock> {
        self.nodes.get(node? as usize)?.clock.as_deref()
    }

    fn root(&self, mut at: u32) -> u32 {
        while let Some(node) = self.nodes.get(at as usize).filter(|node| node.parent != NONE) {
            at = node.parent;
        }
        at
    }

    /// The group whose clock a page follows: its directory's or one above, or its name's where
    /// that is the closer circle.
    fn group(&self, groups: PageGroups) -> Option<u32> {
        let directory = self.nodes.get(groups.directory as usize)?;
        let name = self.nodes.get(groups.name as usize).filter(|name| name.clock.is_some());
        if name.is_some_and(|name| name.pages < directory.pages) {
            return Some(groups.name);
        }
        self.clock_above(groups.directory)
    }

    fn clock(&self, groups: PageGroups) -> Option<&Clock> {
        self.clock_of(self.group(groups))
    }

    /// Known pages of the group whose clock a page of these groups follows.
    pub fn neighbours(&self, groups: PageGroups) -> u32 {
        self.group(groups).map_or(0, |group| self.nodes[group as usize].pages)
    }

    /// What passed for a page of these groups between two times; without neighbours, plain time.
    pub(crate) fn passed(&self, groups: PageGroups, from_s: i64, to_s: i64) -> Passed {
        match self.clock(groups) {
            Some(clock) => clock.passed(from_s, to_s),
            None => Passed { clock: (to_s - from_s).max(0) as f32 / DAY_S as f32, bulk: 0.0 },
        }
    }

    /// What passed for a page of these groups between two times, and over how many buckets of so many
    /// days.
    pub(crate) fn buckets(
        &self,
        groups: PageGroups,
        (from_s, to_s): (i64, i64),
        days: f32,
    ) -> PassedBuckets {
        match self.clock(groups) {
            Some(clock) => clock.buckets((from_s, to_s), days),
            None => {
                let passed = self.passed(groups, from_s, to_s);
                PassedBuckets { passed, buckets: (passed.clock / days).max(1.0), edits: 0.0 }
            }
        }
    }

    /// Credits a visit's gap to the days in it, for the page's group and all above it.
    pub(crate) fn learn(&mut self, groups: PageGroups, gap: &ClosedGap) {
        let Some(group) = self.group(groups) else { return };
        let Some(clock) = self.nodes[group as usize].clock.as_deref() else { return };
        let passed = clock.passed(gap.from_s, gap.to_s);
        let expected = gap.rate * passed.clock + passed.bulk;
        let credit = if gap.changed { 1.0 / -(-expected.max(1e-6)).exp_m1() } else { 0.0 };
        let mut days = [(0usize, DaySums::default()); OPEN_DAYS];
        let mut length = 0;
        clock.each_open_day(gap.from_s, gap.to_s, |pace, at, share| {
            let sums = DaySums {
                clock_changes: gap.rate * pace.clock * share * credit,
                clock_exposure: gap.rate * share,
                bulk_changes: pace.bulk * share * credit,
                bulk_exposure: share,
            };
            days[length] = (at, sums);
            length += 1;
        });
        self.credit(group, &days[..length]);
        if gap.to_s - gap.from_s <= 2 * DAY_S {
            let per_day = days[..length].last().map_or(0.0, |(at, _)| {
                let clock = self.nodes[group as usize].clock.as_deref();
                clock.map_or(0.0, |c| gap.rate * c.paces()[*at].clock + c.paces()[*at].bulk)
            });
            let mut at = group;
            while let Some(node) = self.nodes.get_mut(at as usize) {
                let clock = node.clock.iter_mut();
                clock
                    .for_each(|c| c.rhythm.saw_hours((gap.from_s, gap.to_s), per_day, gap.changed));
                at = node.parent;
            }
        }
        for (_, sums) in &days[..length] {
            self.bulk.0 += f64::from(sums.bulk_changes);
            self.bulk.1 += f64::from(sums.bulk_exposure);
        }
    }

    /// Follows only at the day's end from now on.
    pub(crate) fn follow_daily(&mut self) {
        self.tuning.at_once = false;
    }

    /// Adds to the days of a group and of all above it, and lets their paces follow at once: what
    /// the first visits of a day show holds for the pages that are still to be visited. Groups beside
    /// them follow with the day's end.
    fn credit(&mut self, group: u32, days: &[(usize, DaySums)]) -> [DayPace; OPEN_DAYS] {
        let mean = self.mean_pace();
        let Some(node) = self.nodes.get(group as usize) else { return [mean; OPEN_DAYS] };
        let is_server = node.parent == NONE;
        let above = if is_server { [mean; OPEN_DAYS] } else { self.credit(node.parent, days) };
        let parent = self.clock_of(self.clock_above(self.nodes[group as usize].parent));
        let week_above = parent.map_or(Rhythm::EVEN_WEEK, |parent| *parent.rhythm.week());
        let tuning = self.tuning;
        let Some(clock) = self.nodes[group as usize].clock.as_deref_mut() else { return above };
        let first = clock.first_open_day();
        for &(day, ref sums) in days {
            let date = first + day as i64;
            let usual = clock.rhythm.of_day(date) / Rhythm::in_week(&week_above, date);
            let pace = |sums: &DaySums| match is_server {
                true => server_pace(&tuning, mean, sums, usual),
                false => group_pace(&tuning, above[day], sums, usual),
            };
            clock.add(day, sums, tuning.at_once.then_some(pace));
        }
        *clock.paces()
    }

    /// Takes a page's rates, believed for `days`, into those of its neighbours.
    pub(crate) fn learn_rates(&mut self, groups: PageGroups, rates: &Spread, days: f32) {
        let weight = days * self.scale;
        self.all.add(rates, weight);
        let group = self.group(groups).unwrap_or(NONE);
        let mut levels = [groups.directory, group, self.root(groups.directory), groups.name];
        for level in 0..levels.len() {
            let id = std::mem::replace(&mut levels[level], NONE);
            if id == NONE || levels.contains(&id) {
                continue;
            }
            if let Some(node) = self.nodes.get_mut(id as usize) {
                node.evidence.get_or_insert_default().add(rates, weight);
            }
        }
    }

    /// The rates to expect of a page of these groups before anything is known of it.
    pub(crate) fn prior(&self, groups: PageGroups, start: &Spread) -> Spread {
        let [by_directory, by_group, by_server] = self.tuning.prior_pages;
        let days = self.evidence_days.max(self.scale);
        let below = |id: u32, above: Spread, pages: f32| -> Spread {
            let node = self.nodes.get(id as usize);
            let evidence = node.and_then(|node| node.evidence.as_deref());
            evidence.map_or(above, |evidence| evidence.mixed(&above, pages, days))
        };
        let root = self.root(groups.directory);
        let group = self.group(groups).unwrap_or(NONE);
        let server = below(root, self.all.mixed(start, by_server * 10.0, days), by_server);
        let mut prior = server;
        if group != root && group != groups.name {
            prior = below(group, prior, by_group);
        }
        if groups.directory != group && groups.directory != root {
            prior = below(groups.directory, prior, by_directory);
        }
        if groups.name != NONE {
            let named = below(groups.name, server, by_group);
            for ((prior, named), server) in prior.iter_mut().zip(&named).zip(&server) {
                *prior *= named / server.max(1e-9);
            }
            let sum: f32 = prior.iter().sum();
            prior.iter_mut().for_each(|weight| *weight /= sum.max(1e-12));
        }
        prior
    }

    /// When in the day and in the week pages of these groups change, if that is known.
    pub(crate) fn rhythm(&self, groups: PageGroups) -> Option<&Rhythm> {
        self.clock(groups).map(|clock| &clock.rhythm)
    }

    /// Groups with a clock of their own.
    pub fn group_count(&self) -> usize {
        self.nodes.iter().filter(|node| node.clock.is_some()).count()
    }
}

fn stripped(path: &str) -> &str {
    path.split(['?', '#']).next().unwrap_or_default().trim_start_matches('/')
}

/// The server's root and the directories of a path, from the top down.
fn prefixes(path: &str) -> impl Iterator<Item = &[u8]> {
    let folder = path.rfind('/').map_or(0, |at| at + 1);
    let ends = path[..folder].match_indices('/').map(|(at, _)| at + 1);
    std::iter::once(0).chain(ends).take(MAX_DEPTH + 1).map(|end| &path.as_bytes()[..end])
}

/// The file name with its digits masked, so that the issues of a series are one group.
fn name_key(server: u64, path: &str) -> u64 {
    let name = path.rsplit('/').next().unwrap_or_default();
    let masked: Vec<u8> =
        name.bytes().map(|byte| if byte.is_ascii_digit() { b'0' } else { byte }).collect();
    hash(server ^ NAME_SEED, &masked)
}

/// A server's pace of a day; `usual` is how fast its weekday runs.
fn server_pace(tuning: &ClockTuning, mean: DayPace, sums: &DaySums, usual: f32) -> DayPace {
    let (hold, bulk_hold) = (tuning.server_hold, tuning.bulk_hold);
    DayPace {
        clock: ((hold * usual + sums.clock_changes) / (hold + sums.clock_exposure))
            .max(SLOWEST_CLOCK * usual.min(1.0)),
        bulk: (bulk_hold + sums.bulk_changes) / (bulk_hold / mean.bulk + sums.bulk_exposure),
    }
}

/// A group's pace of a day; `usual` is how fast its weekday runs, beside that of the clock above.
fn group_pace(tuning: &ClockTuning, above: DayPace, sums: &DaySums, usual: f32) -> DayPace {
    let (hold, bulk_hold) = (tuning.group_hold, tuning.bulk_hold);
    DayPace {
        clock: ((hold * usual + sums.clock_changes) / (hold / above.clock + sums.clock_exposure))
            .max(SLOWEST_CLOCK * usual.min(1.0)),
        bulk: (bulk_hold + sums.bulk_changes) / (bulk_hold / above.bulk + sums.bulk_exposure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auto::grid::RATES;

    fn day(number: i64) -> i64 {
        number * DAY_S
    }

    fn clocks_with(pages: usize) -> ChangeClocks {
        let mut clocks = ChangeClocks::new(ClockTuning::default());
        for n in 0..pages {
            clocks.meet(day(100), 1, &format!("/news/item{n}x.html"));
        }
        clocks
    }

    #[test]
    fn a_directory_becomes_a_group_once_it_has_enough_pages() {
        let mut clocks = clocks_with(11);
        let groups = clocks.groups_of(1, "news/other.html");
        let root = clocks.groups_of(1, "other.html");
        assert_eq!(clocks.group(groups), clocks.group(root));
        clocks.meet(day(100), 1, "/news/twelfth.html");
        assert_ne!(clocks.group(clocks.groups_of(1, "news/other.html")), clocks.group(root));
        assert_eq!(clocks.groups_of(2, "news/other.html").directory, NONE);
    }

    #[test]
    fn names_that_differ_in_digits_are_one_group() {
        let mut clocks = clocks_with(0);
        for n in 0..20 {
            clocks.meet(day(100), 1, &format!("/{n}/issue{n:02}.html"));
        }
        let groups = clocks.groups_of(1, "77/issue99.html");
        assert_ne!(groups.name, NONE);
        assert_eq!(clocks.groups_of(1, "77/cover.html").name, NONE);
    }

    #[test]
    fn changes_seen_by_neighbours_make_the_day_fast_for_a_page_not_visited() {
        let mut clocks = clocks_with(40);
        let groups = clocks.groups_of(1, "news/quiet.html");
        clocks.roll(day(102));
        let before = clocks.passed(groups, day(100), day(102));
        for n in 0..20 {
            let neighbour = clocks.groups_of(1, &format!("news/item{n}x.html"));
            let gap = ClosedGap { from_s: day(101), to_s: day(102), rate: 0.02, changed: true };
            clocks.learn(neighbour, &gap);
        }
        let expected = |passed: Passed| 0.02 * passed.clock + passed.bulk;
        let at_once = clocks.passed(groups, day(100), day(102));
        clocks.roll(day(103));
        let after = clocks.passed(groups, day(100), day(102));
        // Visits of the same day already know.
        assert!(expected(at_once) > 5.0 * expected(before), "{before:?} {at_once:?}");
        assert!(expected(after) > 5.0 * expected(before), "{before:?} {after:?}");
        let elsewhere = clocks.groups_of(2, "news/quiet.html");
        assert_eq!(clocks.passed(elsewhere, day(100), day(102)).clock, 2.0);
    }

    #[test]
    fn rates_seen_in_a_directory_are_expected_of_its_new_pages() {
        let mut clocks = clocks_with(40);
        let start = [1.0 / RATES as f32; RATES];
        let mut fast = [0.0; RATES];
        fast[14] = 1.0;
        for n in 0..40 {
            let neighbour = clocks.groups_of(1, &format!("news/item{n}x.html"));
            clocks.learn_rates(neighbour, &fast, 5.0);
        }
        let prior = clocks.prior(clocks.groups_of(1, "news/new.html"), &start);
        assert!(prior[14] > 0.3, "{prior:?}");
        assert!((prior.iter().sum::<f32>() - 1.0).abs() < 1e-3);
    }
}
