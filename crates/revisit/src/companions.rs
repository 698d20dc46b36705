//! Which pages tend to change together, learnt from visits: a signal for schedules.
//!
//! A page belongs to several circles: its family (similar file names of one directory), its
//! directory, its server, and the pages below those that link to it. Each circle knows when its
//! pages last changed, as if they had changed at one time. When a page is visited whose last visit
//! was before that time, its circle is in one of two states: stirred (some of its pages changed
//! since) or hot (at least half of those visited since changed). The circle learns how often pages
//! were found changed in each state, by classes of what their own past predicts (`group`). It is
//! not used until that is more than chance explains, and then only for classes that it has seen. A
//! page with a state from a closer circle does not teach a wider one, so that the few that change
//! together do not speak for all.

mod bytes;
mod group;
mod near;

use std::collections::BTreeMap;

pub use self::near::{NEAR_MAX, PagesByPath, pages_near};

use self::group::{Event, Group, Sign};
use crate::DAY_S;
use crate::page_groups::hash;

/// Groups that are remembered at once; those without a visit for longest are forgotten first.
const GROUPS_MAX: usize = 4_096;
/// Pages whose links are remembered at once.
const HUBS_MAX: usize = 32;
/// Links of one page that are remembered.
const TARGETS_MAX: usize = 64;
/// A page that links to fewer says little about them.
const TARGETS_MIN: usize = 2;
/// Visits of a site after which old ones count half.
const PRICE_VISITS: f32 = 1_024.0;

/// Gaps by their length: hours, doubled from one class to the next.
const LENGTHS: usize = 14;
/// Predicted changes after which old ones count half, and those that count as right from the start.
const PREDICTED_MAX: f32 = 256.0;
const PREDICTED_PRIOR: f32 = 4.0;

fn length_of(gap_s: i64) -> usize {
    let hours = u64::try_from(gap_s / 3_600).unwrap_or(0).max(1);
    (hours.ilog2() as usize).min(LENGTHS - 1)
}

/// Pages that a page may change together with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Circle {
    /// Pages of its directory whose file names differ in digits alone.
    Family,
    /// Pages of its directory.
    Directory,
    /// Pages of its server.
    Server,
    /// Pages that it links to.
    Below,
}

/// A visit to a page that was seen before, as far as its neighbours are concerned.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// Its server's number.
    pub server: u64,
    /// Path and query.
    pub path: &'a str,
    /// The visit before.
    pub from_s: i64,
    /// This visit.
    pub to_s: i64,
    /// The chance, by the page's own past, that it changed in between.
    pub chance: f64,
    /// Whether it did.
    pub changed: bool,
    /// Whether the schedule chose the time, and not a signal.
    pub planned: bool,
    /// Pages of its server that it links to, as [`Companions::key`] numbers them; none if its links
    /// are not known or were not read.
    pub links: &'a [u32],
}

/// What pages of a site tend to change together.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Companions {
    groups: BTreeMap<u64, Group>,
    /// Pages that changed last, with their links, by their keys.
    hubs: BTreeMap<u32, Hub>,
    /// Planned visits, and those that saw a change: what a visit usually brings.
    visits: f32,
    hits: f32,
    /// Days between them and the visits before.
    days: f32,
    /// Changes seen and predicted by pages' own pasts, by the length of the gap.
    calibration: [(f32, f32); LENGTHS],
}

/// A page that changed, and where it led then.
#[derive(Debug, Clone, PartialEq)]
struct Hub {
    group: u64,
    event: Event,
    /// The pages that it linked to, sorted.
    targets: Vec<u32>,
}

impl Companions {
    /// The number by which a page is known here.
    pub fn key(server: u64, path: &str) -> u32 {
        (hash(server, path.as_bytes()) >> 32) as u32
    }

    /// Learns from a visit. Returns the circles of a changed page in which others
    /// have probably changed too.
    pub fn seen(&mut self, seen: &Seen<'_>) -> Vec<Circle> {
        let chance = self.calibrated(seen.to_s - seen.from_s, seen.chance);
        if seen.planned {
            self.count_visit(seen);
        }
        let seen = &Seen { chance, ..*seen };
        let page = Self::key(seen.server, seen.path);
        let mut is_explained = false;
        for (_, key) in keys(seen.server, seen.path) {
            if let Some(group) = self.groups.get_mut(&key) {
                let sign = group.sign(seen.from_s);
                // A change that a closer circle explains teaches the wider one nothing.
                if !(is_explained && sign.is_change()) {
                    group.learn(sign, seen);
                }
                is_explained |= sign.is_change();
                group.remember(seen);
            } else if seen.changed {
                // A group in which nothing ever changed says nothing.
                let mut group = Group::default();
                group.remember(seen);
                self.groups.insert(key, group);
            }
        }
        self.learn_from_above(page, seen);
        self.forget();
        if !seen.changed {
            return Vec::new();
        }
        self.remember_links(page, seen);
        self.circles_to_visit(page, seen)
    }

    /// The chance that a page last visited at `last_s` changed, from what its circles showed since,
    /// given the chance by its own past; `None` while they say nothing. The closest circle in which
    /// something changed answers, unless it is too young.
    pub fn chance(
        &self,
        server: u64,
        path: &str,
        (last_s, now_s): (i64, i64),
        own: f64,
    ) -> Option<f64> {
        let page = Self::key(server, path);
        let own = self.calibrated(now_s - last_s, own);
        let above = self.hubs.iter().filter(|(hub, _)| **hub != page).filter_map(|(_, hub)| {
            hub.targets.binary_search(&page).ok()?;
            self.groups.get(&hub.group)?.chance(hub.event.sign(last_s), own)
        });
        let around = keys(server, path).find_map(|(_, key)| {
            let group = self.groups.get(&key).filter(|group| group.is_grown())?;
            let sign = group.sign(last_s);
            // A wider circle says nothing about pages that are known to change independently.
            let answers = sign.is_change() || !group.is_significant();
            answers.then(|| group.chance(sign, own))
        });
        let above = above.fold(None, |most: Option<f64>, chance| {
            Some(most.map_or(chance, |most| most.max(chance)))
        });
        above.into_iter().chain(around.flatten()).reduce(f64::max)
    }

    /// The share of planned visits that see a change: what a visit must promise to be worth it where
    /// the schedule names no price.
    pub fn usual_hit_share(&self) -> f64 {
        f64::from((self.hits + 1.0) / (self.visits + 2.0))
    }

    /// Changes per second of the site's pages, as far as planned visits show.
    pub(crate) fn usual_rate_per_s(&self) -> f64 {
        let same = 1.0 - self.usual_hit_share();
        let gap_s = f64::from(self.days.max(1.0) / self.visits.max(1.0)) * DAY_S as f64;
        -same.ln() / gap_s.max(1.0)
    }

    /// Groups whose pages are known to change together.
    pub fn learnt(&self) -> usize {
        self.groups.values().filter(|group| group.is_significant()).count()
    }

    /// Groups that are remembered.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// A chance by a page's own past, corrected by how right such predictions were for gaps of this
    /// length: a schedule that comes late to pages that it takes for slow finds more than they
    /// promise, and it is late pages of whose neighbours something was seen since.
    fn calibrated(&self, gap_s: i64, chance: f64) -> f64 {
        let (changes, predicted) = self.calibration[length_of(gap_s)];
        let right = (changes + PREDICTED_PRIOR) / (predicted + PREDICTED_PRIOR);
        (chance * f64::from(right)).min(0.99)
    }

    fn count_visit(&mut self, seen: &Seen<'_>) {
        self.visits += 1.0;
        self.hits += f32::from(u8::from(seen.changed));
        self.days += (seen.to_s - seen.from_s) as f32 / DAY_S as f32;
        let (changes, predicted) = &mut self.calibration[length_of(seen.to_s - seen.from_s)];
        *changes += f32::from(u8::from(seen.changed));
        *predicted += seen.chance as f32;
        if *predicted > PREDICTED_MAX {
            *changes *= 0.5;
            *predicted *= 0.5;
        }
        if self.visits > PRICE_VISITS {
            self.visits *= 0.5;
            self.hits *= 0.5;
            self.days *= 0.5;
        }
    }

    /// Learns from pages that link here, whether they changed or not.
    fn learn_from_above(&mut self, page: u32, seen: &Seen<'_>) {
        for (key, hub) in &self.hubs {
            if *key == page || hub.targets.binary_search(&page).is_err() {
                continue;
            }
            if let Some(group) = self.groups.get_mut(&hub.group) {
                group.learn(hub.event.sign(seen.from_s), seen);
            }
        }
    }

    fn remember_links(&mut self, page: u32, seen: &Seen<'_>) {
        if seen.links.len() < TARGETS_MIN {
            return;
        }
        let mut targets: Vec<u32> = seen.links.iter().copied().filter(|&to| to != page).collect();
        targets.sort_unstable();
        targets.dedup();
        targets.truncate(TARGETS_MAX);
        let group = hash(u64::from(page), b"below");
        self.groups.entry(group).or_default().visited_s = seen.to_s;
        let event = Event { from_s: seen.from_s, to_s: seen.to_s, changed: 1, same: 0 };
        self.hubs.insert(page, Hub { group, event, targets });
        if self.hubs.len() > HUBS_MAX {
            let oldest =
                self.hubs.iter().min_by_key(|(_, hub)| hub.event.to_s).map(|(key, _)| *key);
            oldest.and_then(|key| self.hubs.remove(&key));
        }
    }

    /// Circles of a page just seen changed that say something about pages not visited since.
    fn circles_to_visit(&mut self, page: u32, seen: &Seen<'_>) -> Vec<Circle> {
        let mut circles = Vec::new();
        for (circle, key) in keys(seen.server, seen.path) {
            let Some(group) = self.groups.get_mut(&key) else { continue };
            let sign = group.event.map_or(Sign::Quiet, |event| event.sign(event.from_s));
            if group.has_evidence(sign) && group.asks(seen) {
                circles.push(circle);
            }
        }
        let below = self.hubs.get(&page).and_then(|hub| self.groups.get(&hub.group));
        circles.extend(below.filter(|group| group.has_evidence(Sign::Hot)).map(|_| Circle::Below));
        circles
    }

    /// Forgets old groups now and then, so that a visit pays little for it.
    fn forget(&mut self) {
        if self.groups.len() <= GROUPS_MAX {
            return;
        }
        let mut visits: Vec<i64> = self.groups.values().map(|group| group.visited_s).collect();
        let half = visits.len() / 2;
        let (_, &mut median_s, _) = visits.select_nth_unstable(half);
        self.groups.retain(|_, group| group.visited_s > median_s || group.is_significant());
        if self.groups.len() > GROUPS_MAX {
            self.groups.retain(|_, group| group.visited_s > median_s);
        }
    }
}

/// The circles around a page, from the closest.
fn keys(server: u64, path: &str) -> impl Iterator<Item = (Circle, u64)> {
    let directory = directory_of(path);
    let masked: Vec<u8> = family_of(path).collect();
    [
        (Circle::Family, hash(server ^ 1, &masked)),
        (Circle::Directory, hash(server ^ 2, directory.as_bytes())),
        (Circle::Server, hash(server ^ 3, b"")),
    ]
    .into_iter()
}

/// A path up to its last slash.
pub(crate) fn directory_of(path: &str) -> &str {
    let plain = path.split(['?', '#']).next().unwrap_or_default();
    &plain[..plain.rfind('/').map_or(0, |at| at + 1)]
}

/// A path with every run of digits of its file name as one `0`.
fn family_of(path: &str) -> impl Iterator<Item = u8> {
    let name_at = directory_of(path).len();
    let bytes = path.as_bytes();
    (0..bytes.len()).filter_map(move |at| match bytes[at] {
        digit if at < name_at || !digit.is_ascii_digit() => Some(digit),
        _ if at > name_at && bytes[at - 1].is_ascii_digit() => None,
        _ => Some(b'0'),
    })
}

impl Circle {
    /// Whether two pages of a server belong to one circle; links are not known here.
    pub fn joins(self, one: &str, other: &str) -> bool {
        match self {
            Self::Family => family_of(one).eq(family_of(other)),
            Self::Directory => directory_of(one) == directory_of(other),
            Self::Server => true,
            Self::Below => false,
        }
    }

    /// What the paths of the pages in a page's circle begin with.
    pub fn prefix(self, path: &str) -> &str {
        match self {
            Self::Family => {
                let name_at = directory_of(path).len();
                let digit = path[name_at..].find(|c: char| c.is_ascii_digit());
                &path[..digit.map_or(path.len(), |at| name_at + at)]
            }
            Self::Directory => directory_of(path),
            Self::Server | Self::Below => "",
        }
    }
}
