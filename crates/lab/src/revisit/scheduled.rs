//! A log under a policy as the crawler has it: every source is a site with its page revisit
//! scheduler, a page is looked at when its planned time comes, and what changes together may pull
//! pages forward.

use std::collections::{BTreeMap, VecDeque};

use nenrin_revisit::{
    Circle, DAY_S, Found, KnownPage, Outcome, PageRevisitScheduler, Planned, PolicySpec,
    RevisitSettings,
};

use super::walk::{Tally, Walk, end_s};
use crate::updates::{LoggedPage, UpdateLog};

/// Pages looked at for one that changed, as in the crawler.
const CANDIDATES_MAX: usize = 48;

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
    found: Option<Found>,
    due_slot: u32,
    visited_slot: Option<u32>,
}

/// A site's visits, at most so many a day.
#[derive(Debug, Clone, Copy)]
struct Allowance {
    per_day: f64,
    /// What is left of today's, and of a day before that had less than a whole visit.
    left: f64,
}

/// A source as a site.
struct Site<'a> {
    scheduler: PageRevisitScheduler,
    allowance: Option<Allowance>,
    pages: Vec<Traveller<'a>>,
    /// Members of circles in the order of their paths.
    members: BTreeMap<(Circle, &'a str), Vec<usize>>,
    resolution_s: i64,
    pulls: Pulls,
}

/// Follows all pages, source by source; tallies are in the log's order. With `together`, pages that
/// change together pull each other forward, if the chance of no change falls to that share.
///
/// `visits` is the number of visits that each source may make in the window, spread evenly over its
/// days. The pages that are there at the beginning are known already; pages that come later are
/// visited when the log says so, and take their first visit from the day's.
pub fn walk_scheduled(
    log: &UpdateLog,
    spec: &PolicySpec,
    together: Option<f64>,
    visits: Option<&BTreeMap<u32, u64>>,
) -> (Vec<Tally>, Pulls) {
    let mut by_source = BTreeMap::<u32, Vec<usize>>::new();
    for (at, page) in log.pages.iter().enumerate() {
        by_source.entry(page.source).or_default().push(at);
    }
    let days = f64::from(log.slots()) * log.window.resolution_s as f64 / DAY_S as f64;
    let mut tallies = vec![Tally::default(); log.pages.len()];
    let mut pulls = Pulls::default();
    for (source, places) in by_source {
        let pages = places.iter().map(|&at| &log.pages[at]).collect();
        let per_day = visits.map(|of| of.get(&source).copied().unwrap_or(0) as f64 / days);
        let mut site = Site::new(spec, pages, log.window.resolution_s, per_day);
        together.into_iter().for_each(|news| site.scheduler.set_news(news));
        site.run(log.slots(), together.is_some());
        pulls.visits += site.pulls.visits;
        pulls.hits += site.pulls.hits;
        pulls.candidates += site.pulls.candidates;
        pulls.circles += site.scheduler.companions().learnt() as u64;
        for (&at, traveller) in places.iter().zip(site.pages) {
            tallies[at] = traveller.walk.finish();
        }
    }
    (tallies, pulls)
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

/// What the circles of a page are called here.
fn name(circle: Circle, path: &str) -> &str {
    match circle {
        Circle::Family | Circle::Directory => Circle::Directory.prefix(path),
        Circle::Server | Circle::Below => "",
    }
}

impl<'a> Site<'a> {
    fn new(
        spec: &PolicySpec,
        pages: Vec<&'a LoggedPage>,
        resolution_s: i64,
        per_day: Option<f64>,
    ) -> Self {
        let settings = RevisitSettings { policy: *spec, ..RevisitSettings::default() };
        let mut order: Vec<usize> = (0..pages.len()).collect();
        order.sort_by_key(|&at| &pages[at].path);
        let mut members = BTreeMap::<(Circle, &str), Vec<usize>>::new();
        for at in order {
            for circle in [Circle::Directory, Circle::Server] {
                members.entry((circle, name(circle, &pages[at].path))).or_default().push(at);
            }
        }
        let travellers = pages.into_iter().map(|page| Traveller {
            page,
            walk: Walk::new(page),
            planned: None,
            found: None,
            due_slot: page.first_slot,
            visited_slot: None,
        });
        let mut scheduler = PageRevisitScheduler::new(settings, resolution_s);
        scheduler.set_visits_per_day(per_day);
        Self {
            scheduler,
            allowance: per_day.map(|per_day| Allowance { per_day, left: 0.0 }),
            pages: travellers.collect(),
            members,
            resolution_s,
            pulls: Pulls::default(),
        }
    }

    fn run(&mut self, slots: u32, together: bool) {
        let mut buckets: Vec<Vec<usize>> = vec![Vec::new(); slots as usize + 1];
        for (at, traveller) in self.pages.iter().enumerate() {
            buckets[traveller.page.first_slot as usize].push(at);
        }
        for slot in 0..slots {
            let slot_days = self.resolution_s as f64 / DAY_S as f64;
            self.allowance.iter_mut().for_each(|allowance| allowance.renew(slot_days));
            let due = std::mem::take(&mut buckets[slot as usize]).into_iter();
            let mut queue: VecDeque<(usize, bool)> = due.map(|at| (at, false)).collect();
            while let Some((at, pulled)) = queue.pop_front() {
                let traveller = &self.pages[at];
                let is_stale = !pulled && traveller.due_slot != slot;
                if is_stale
                    || traveller.visited_slot == Some(slot)
                    || slot >= traveller.page.end_slot
                {
                    continue;
                }
                if !pulled && let Some(later) = self.put_off(at, slot) {
                    self.wait_until(at, later, &mut buckets);
                    continue;
                }
                if self.must_wait(at, slot) {
                    self.wait_until(at, slot + 1, &mut buckets);
                    continue;
                }
                let circles = self.visit(at, slot, pulled);
                let due_slot = self.pages[at].due_slot;
                self.wait_until(at, due_slot, &mut buckets);
                if together {
                    let told = self.told(at, slot, &circles);
                    queue.extend(told.into_iter().map(|page| (page, true)));
                }
            }
        }
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

    fn wait_until(&mut self, at: usize, slot: u32, buckets: &mut [Vec<usize>]) {
        self.pages[at].due_slot = slot;
        if let Some(bucket) = buckets.get_mut(slot as usize) {
            bucket.push(at);
        }
    }

    fn put_off(&mut self, at: usize, slot: u32) -> Option<u32> {
        let known = known(&self.pages[at]);
        let now_s = end_s(slot, self.resolution_s);
        let later_s = self.scheduler.put_off(now_s, &known, 1.0)?;
        Some(self.slot_of(later_s)).filter(|&later| later > slot)
    }

    /// The slot at whose end a time lies.
    fn slot_of(&self, at_s: i64) -> u32 {
        u32::try_from(at_s / self.resolution_s - 1).unwrap_or(u32::MAX)
    }

    fn visit(&mut self, at: usize, slot: u32, pulled: bool) -> Vec<Circle> {
        let now_s = end_s(slot, self.resolution_s);
        let seen = self.pages[at].walk.visit(slot, self.resolution_s);
        let changed = seen.outcome == Outcome::Changed;
        let found = if changed { Found::Changed } else { Found::Same };
        let known = known(&self.pages[at]);
        let circles = self.scheduler.tell(now_s, &known, found, !pulled, &[]);
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

    /// Pages that a changed one pulls forward: the next in the order of paths.
    fn told(&mut self, at: usize, slot: u32, circles: &[Circle]) -> Vec<usize> {
        let now_s = end_s(slot, self.resolution_s);
        let path = &self.pages[at].page.path;
        let mut candidates: Vec<usize> = Vec::new();
        for &circle in circles {
            let stored = if circle == Circle::Server { circle } else { Circle::Directory };
            let Some(members) = self.members.get(&(stored, name(stored, path))) else { continue };
            let from = members.partition_point(|&other| self.pages[other].page.path <= *path);
            let others = members[from..].iter().chain(&members[..from]);
            for &other in others {
                let traveller = &self.pages[other];
                let fits = other != at
                    && circle.joins(path, &traveller.page.path)
                    && traveller.planned.is_some()
                    && traveller.visited_slot != Some(slot)
                    && slot < traveller.page.end_slot;
                if candidates.len() < CANDIDATES_MAX && fits && !candidates.contains(&other) {
                    candidates.push(other);
                }
            }
        }
        self.pulls.candidates += candidates.len() as u64;
        let worth = |&at: &usize| self.scheduler.is_told(now_s, &known(&self.pages[at])).is_some();
        candidates.into_iter().filter(worth).collect()
    }
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
