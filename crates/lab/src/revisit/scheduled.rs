//! A log under a policy as the crawler has it: every source is a site with its page revisit
//! scheduler, a page is looked at when its planned time comes, and what changes together may pull
//! pages forward.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;

use nenrin_revisit::{
    Budget, Circle, DAY_S, KnownPage, Missed, NEAR_MAX, Outcome, PageRevisitScheduler, PagesByPath,
    Planned, PolicySpec, RevisitSettings, pages_near,
};

use super::walk::{Tally, Walk, end_s};
use crate::updates::{LoggedPage, UpdateLog};

/// What pulling forward did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pulls {
    /// Visits to pages that were pulled forward.
    pub visits: u64,
    /// Those that saw a change.
    pub hits: u64,
    /// Pages looked at for it.
    pub candidates: u64,
    /// Circles with odds at the end.
    pub circles: u64,
}

/// One page on its way.
struct Traveller<'a> {
    page: &'a LoggedPage,
    walk: Walk<'a>,
    planned: Option<Planned>,
    found: Option<Outcome>,
    due_slot: u32,
    /// Since when it waits for its turn.
    since_slot: u32,
    visited_slot: Option<u32>,
}

/// A site's visits, at most so many a day.
#[derive(Debug, Clone, Copy)]
struct Allowance {
    per_day: f64,
    /// What is left of today's, and of a day before that had less than a whole visit.
    left: f64,
}

/// The pages of a site in the order of their paths, in all and by directory.
struct Listing<'a> {
    all: Vec<(usize, &'a str)>,
    directories: BTreeMap<&'a str, Vec<(usize, &'a str)>>,
}

impl<'a> Listing<'a> {
    fn new(pages: &[&'a LoggedPage]) -> Self {
        let paths = pages.iter().map(|page| page.path.as_str());
        let mut all: Vec<(usize, &str)> = paths.enumerate().collect();
        all.sort_by_key(|&(at, path)| (path, at));
        let mut directories = BTreeMap::<&str, Vec<(usize, &str)>>::new();
        for &(at, path) in &all {
            directories.entry(Circle::Directory.prefix(path)).or_default().push((at, path));
        }
        Self { all, directories }
    }
}

impl<'a> PagesByPath for Listing<'a> {
    type Page = (usize, &'a str);
    type Error = Infallible;

    fn in_order(
        &self,
        circle: Circle,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Self::Page>, Infallible> {
        let listed = match circle {
            Circle::Directory => self.directories.get(prefix).map_or(&[][..], Vec::as_slice),
            _ => &self.all,
        };
        let from = listed.partition_point(|(_, path)| match after {
            Some(after) => *path <= after,
            None => *path < prefix,
        });
        let members = listed[from..].iter().take_while(|(_, path)| path.starts_with(prefix));
        Ok(members.take(limit).copied().collect())
    }

    /// The logs have no links.
    fn linked(&self, _limit: usize) -> Result<Vec<Self::Page>, Infallible> {
        Ok(Vec::new())
    }

    fn path(page: &Self::Page) -> &str {
        page.1
    }
}

/// A source as a site.
struct Site<'a> {
    scheduler: PageRevisitScheduler,
    allowance: Option<Allowance>,
    pages: Vec<Traveller<'a>>,
    listing: Listing<'a>,
    /// Pages by the slot they are due in.
    buckets: Vec<Vec<usize>>,
    /// The slot after the last of its pages.
    end_slot: u32,
    resolution_s: i64,
    together: bool,
    pulls: Pulls,
}

/// What the sites may spend.
#[derive(Debug, Clone, Copy, Default)]
pub enum Spending<'a> {
    /// As much as their policies ask for.
    #[default]
    Free,
    /// So many visits for all of them together, divided by need every day.
    Together(u64),
    /// So many visits for each source.
    Each(&'a BTreeMap<u32, u64>),
    /// So many visits for each source, evenly over its days: no day may have more. The pages that are
    /// there at the beginning are known already; pages that come later are visited when the log says
    /// so, and take their first visit from the day's.
    PerDay(&'a BTreeMap<u32, u64>),
}

/// What a run over a log gave.
#[derive(Debug, Clone, Default)]
pub struct Crawled {
    /// In the log's order.
    pub tallies: Vec<Tally>,
    /// Versions that each page is estimated to have missed, as of its last visit.
    pub missed: Vec<Option<Missed>>,
    /// What pulling pages forward did.
    pub pulls: Pulls,
    /// Bytes kept of all pages at the end, what they share included.
    pub bytes: usize,
}

/// Follows all pages, every source as a site; tallies are in the log's order. With `together`, pages
/// that change together pull each other forward, if the chance of no change falls to that share.
pub fn walk_scheduled(
    log: &UpdateLog,
    spec: &PolicySpec,
    together: Option<f64>,
    spending: Spending<'_>,
) -> Crawled {
    let mut by_source = BTreeMap::<u32, Vec<usize>>::new();
    for (at, page) in log.pages.iter().enumerate() {
        by_source.entry(page.source).or_default().push(at);
    }
    let mut sites: Vec<Site<'_>> = by_source
        .iter()
        .map(|(&source, places)| {
            let pages = places.iter().map(|&at| &log.pages[at]).collect();
            let mut site = Site::new(spec, pages, log.window.resolution_s);
            together.into_iter().for_each(|news| site.scheduler.set_news(news));
            site.together = together.is_some();
            site.may_spend(source, spending);
            site
        })
        .collect();
    let mut pot = match spending {
        Spending::Together(visits) => Some(visits as f64),
        _ => None,
    };
    for slot in 0..log.slots() {
        if let Some(left) = pot.filter(|_| begins_day(slot, log.window.resolution_s)) {
            divide(&mut sites, left, slot);
        }
        for site in &mut sites {
            let made = site.step(slot);
            pot.iter_mut().for_each(|left| *left -= made as f64);
        }
    }
    let pages = log.pages.len();
    let (tallies, missed) = (vec![Tally::default(); pages], vec![None; pages]);
    let mut crawled = Crawled { tallies, missed, ..Crawled::default() };
    for (places, mut site) in by_source.into_values().zip(sites) {
        crawled.bytes += site.bytes();
        crawled.pulls.visits += site.pulls.visits;
        crawled.pulls.hits += site.pulls.hits;
        crawled.pulls.candidates += site.pulls.candidates;
        crawled.pulls.circles += site.scheduler.companions().learnt() as u64;
        for (at, traveller) in places.into_iter().zip(site.pages) {
            crawled.missed[at] = traveller.planned.as_ref().and_then(estimated);
            crawled.tallies[at] = traveller.walk.finish();
        }
    }
    crawled
}

/// Divides what is left among the sites by what their pages ask for, as the crawler divides the
/// budget of an archive: so that a visit has the same price everywhere.
fn divide(sites: &mut [Site<'_>], left: f64, slot: u32) {
    let need = |site: &Site<'_>| {
        let known = site.scheduler.need_per_day().filter(|need| *need > 0.0);
        let slots_left = f64::from(site.end_slot.saturating_sub(slot));
        known.unwrap_or(site.pages.len() as f64) * slots_left
    };
    let needs: Vec<f64> = sites.iter().map(need).collect();
    let whole: f64 = needs.iter().sum();
    for (site, need) in sites.iter_mut().zip(needs) {
        let visits = (left * need / whole.max(f64::MIN_POSITIVE)).max(0.0);
        let end_s = end_s(site.end_slot, site.resolution_s);
        site.scheduler.set_budget(Some(Budget::InAll { visits, end_s }));
    }
}

/// Whether a day begins with a slot.
fn begins_day(slot: u32, resolution_s: i64) -> bool {
    let start_s = i64::from(slot) * resolution_s;
    start_s.div_euclid(DAY_S) != (start_s - resolution_s).div_euclid(DAY_S)
}

/// Visits by source, without those to the pages that were there at the beginning.
pub fn visits_by_source(log: &UpdateLog, tallies: &[Tally]) -> BTreeMap<u32, u64> {
    let mut visits = BTreeMap::new();
    for (page, tally) in log.pages.iter().zip(tallies) {
        let stock = u32::from(page.first_slot == 0);
        *visits.entry(page.source).or_default() += u64::from(tally.visits.saturating_sub(stock));
    }
    visits
}

impl Allowance {
    /// A new day: what a day leaves is lost, except the parts of a visit.
    fn renew(&mut self, days: f64) {
        self.left = self.left.clamp(-self.per_day, 1.0) + self.per_day * days;
    }

    fn is_spent(&self) -> bool {
        self.left < 1.0
    }
}

impl<'a> Site<'a> {
    fn new(spec: &PolicySpec, pages: Vec<&'a LoggedPage>, resolution_s: i64) -> Self {
        let settings = RevisitSettings { policy: *spec, ..RevisitSettings::default() };
        let listing = Listing::new(&pages);
        let end_slot = pages.iter().map(|page| page.end_slot).max().unwrap_or(0);
        let mut buckets: Vec<Vec<usize>> = vec![Vec::new(); end_slot as usize + 1];
        for (at, page) in pages.iter().enumerate() {
            buckets[page.first_slot as usize].push(at);
        }
        let travellers = pages.into_iter().map(|page| Traveller {
            page,
            walk: Walk::new(page),
            planned: None,
            found: None,
            due_slot: page.first_slot,
            since_slot: page.first_slot,
            visited_slot: None,
        });
        Self {
            scheduler: PageRevisitScheduler::new(settings, resolution_s),
            allowance: None,
            pages: travellers.collect(),
            listing,
            buckets,
            end_slot,
            resolution_s,
            together: false,
            pulls: Pulls::default(),
        }
    }

    /// Takes its own budget, if it has one.
    fn may_spend(&mut self, source: u32, spending: Spending<'_>) {
        match spending {
            Spending::Each(visits) => {
                let visits = visits.get(&source).copied().unwrap_or(0) as f64;
                let end_s = end_s(self.end_slot, self.resolution_s);
                self.scheduler.set_budget(Some(Budget::InAll { visits, end_s }));
            }
            Spending::PerDay(visits) => {
                let days = f64::from(self.end_slot) * self.resolution_s as f64 / DAY_S as f64;
                let per_day = visits.get(&source).copied().unwrap_or(0) as f64 / days;
                self.scheduler.set_budget(Some(Budget::PerDay(per_day)));
                self.allowance = Some(Allowance { per_day, left: 0.0 });
            }
            Spending::Free | Spending::Together(_) => {}
        }
    }

    /// Bytes that are kept of its pages.
    fn bytes(&mut self) -> usize {
        let own = self.pages.iter().filter_map(|page| page.planned.as_ref());
        let own: usize = own.map(|planned| planned.history.len()).sum();
        own + self.scheduler.keep_now().map_or(0, |shared| shared.len())
    }

    /// Visits the pages of a slot; returns how many.
    fn step(&mut self, slot: u32) -> u64 {
        if begins_day(slot, self.resolution_s) {
            let days = (self.resolution_s as f64 / DAY_S as f64).max(1.0);
            self.allowance.iter_mut().for_each(|allowance| allowance.renew(days));
        }
        let Some(bucket) = self.buckets.get_mut(slot as usize) else { return 0 };
        let mut due = std::mem::take(bucket);
        // The page that has waited longest goes first, as in the crawler: new pages, then by schedule.
        if self.allowance.is_some() {
            self.scheduler.roll(end_s(slot, self.resolution_s));
        }
        due.sort_by_cached_key(|&at| {
            let page = &self.pages[at];
            let due_s = end_s(page.since_slot, self.resolution_s);
            let since_s = self.scheduler.waits_since_s(&known(page)).unwrap_or(due_s);
            (self.allowance.is_some() && page.planned.is_some(), since_s)
        });
        let mut queue: VecDeque<(usize, bool)> = due.into_iter().map(|at| (at, false)).collect();
        let mut made = 0;
        while let Some((at, pulled)) = queue.pop_front() {
            let traveller = &self.pages[at];
            let is_stale = !pulled && traveller.due_slot != slot;
            let is_over = slot >= traveller.page.end_slot;
            if is_stale || is_over || traveller.visited_slot == Some(slot) {
                continue;
            }
            if !pulled && let Some(later) = self.put_off(at, slot) {
                self.wait_until(at, later, later);
                continue;
            }
            if self.must_wait(at, slot) {
                self.wait_until(at, slot + 1, self.pages[at].since_slot);
                continue;
            }
            let circles = self.visit(at, slot, pulled);
            made += 1;
            let due_slot = self.pages[at].due_slot;
            self.wait_until(at, due_slot, due_slot);
            if self.together {
                let pulled = self.pulled_by(at, slot, &circles);
                queue.extend(pulled.into_iter().map(|page| (page, true)));
            }
        }
        made
    }

    /// Whether the day's visits are used up; otherwise this one is counted.
    fn must_wait(&mut self, at: usize, slot: u32) -> bool {
        let is_first = self.pages[at].planned.is_none();
        let is_stock = is_first && slot == 0;
        let Some(allowance) = self.allowance.as_mut().filter(|_| !is_stock) else { return false };
        let waits = allowance.is_spent() && !is_first;
        allowance.left -= f64::from(u8::from(!waits));
        waits
    }

    fn wait_until(&mut self, at: usize, slot: u32, since_slot: u32) {
        self.pages[at].due_slot = slot;
        self.pages[at].since_slot = since_slot;
        if let Some(bucket) = self.buckets.get_mut(slot as usize) {
            bucket.push(at);
        }
    }

    fn put_off(&mut self, at: usize, slot: u32) -> Option<u32> {
        let known = known(&self.pages[at]);
        let now_s = end_s(slot, self.resolution_s);
        let later_s = self.scheduler.put_off(now_s, &known, 1.0)?;
        Some(self.slot_of(later_s)).filter(|&later| later > slot)
    }

    /// The slot that ends at a time.
    fn slot_of(&self, at_s: i64) -> u32 {
        u32::try_from(at_s / self.resolution_s - 1).unwrap_or(u32::MAX)
    }

    fn visit(&mut self, at: usize, slot: u32, pulled: bool) -> Vec<Circle> {
        let now_s = end_s(slot, self.resolution_s);
        let seen = self.pages[at].walk.visit(slot, self.resolution_s);
        let changed = seen.outcome == Outcome::Changed;
        let found = if changed { Outcome::Changed } else { Outcome::Same };
        let known = known(&self.pages[at]);
        let circles = self.scheduler.learn_together(now_s, &known, found, !pulled, &[]);
        let planned = self.scheduler.visited(now_s, &known, found, seen.last_modified_s, 1.0);
        self.pulls.visits += u64::from(pulled);
        self.pulls.hits += u64::from(pulled && changed);
        let due_slot = self.slot_of(planned.due_s).max(slot + 1);
        let traveller = &mut self.pages[at];
        traveller.due_slot = due_slot;
        traveller.visited_slot = Some(slot);
        traveller.planned = Some(planned);
        traveller.found = Some(found);
        circles
    }

    /// Pages that a changed one pulls forward.
    fn pulled_by(&mut self, at: usize, slot: u32, circles: &[Circle]) -> Vec<usize> {
        let now_s = end_s(slot, self.resolution_s);
        let path = &self.pages[at].page.path;
        let Ok(near) = pages_near(&self.listing, path, circles, NEAR_MAX);
        let is_open = |&(at, _): &(usize, &str)| {
            let other = &self.pages[at];
            let is_seen = other.planned.is_some() && other.visited_slot != Some(slot);
            is_seen && slot < other.page.end_slot
        };
        let candidates: Vec<usize> = near.into_iter().filter(is_open).map(|(at, _)| at).collect();
        self.pulls.candidates += candidates.len() as u64;
        let worth =
            |&at: &usize| self.scheduler.chance_if_worth(now_s, &known(&self.pages[at])).is_some();
        candidates.into_iter().filter(worth).collect()
    }
}

/// What a page is estimated to have missed.
fn estimated(planned: &Planned) -> Option<Missed> {
    let (_, confidence) = planned.rate.unwrap_or_default();
    planned.missed.map(|versions| Missed::new(versions, confidence))
}

fn known<'t>(traveller: &'t Traveller<'_>) -> KnownPage<'t> {
    KnownPage {
        server: u64::from(traveller.page.source),
        path: &traveller.page.path,
        history: traveller.planned.as_ref().map_or(&[], |planned| &planned.history),
        found: traveller.found,
        failures: 0,
        importance_percent: 100,
    }
}
