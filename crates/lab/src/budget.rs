//! How a fixed number of visits is best shared out: the experiment of paper 002 on update logs.
//!
//! Each page is visited daily for the learning days; the days with a change give its rate. The
//! rest of the window is visited at even intervals by each allocation, all with the same number of
//! visits per day. Logs do not say which pages carry Last-Modified: a fixed half does here, chosen
//! by the page's number, and their versions count as dated without delay.

mod figures;

use std::collections::BTreeMap;
use std::path::PathBuf;

use nenrin_revisit::{Claim, VisitBounds, Weights, allocate};
use serde_json::{Value, json};

use crate::LabError;
use crate::updates::{LoggedPage, UpdateLog};

/// What a page without a change in its learning days counts for, in changes.
const UNSEEN_CHANGES: f64 = 0.25;
/// Steps in which sharings are brought to the same number of visits; each leaves little to the next.
const EQUAL_STEPS: usize = 12;

/// What to share out.
#[derive(Debug, Clone)]
pub struct BudgetOptions {
    /// Days of daily visits that give the rates (the paper: 40).
    pub learn_days: u32,
    /// Visits per day for all pages together.
    pub visits_per_day: f64,
    /// The weights to try beside none.
    pub weights: Vec<Weights>,
    /// Where `report.html` and `results.json` go, if anywhere.
    pub out: Option<PathBuf>,
}

/// How visits are shared out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Sharing {
    /// The same number for every page.
    Even,
    /// In proportion to the rate.
    Proportional,
    /// k·√(λ·w).
    Root(Weights),
}

/// What an allocation reached after the learning days.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Reached {
    pub(crate) pages: u64,
    pub(crate) versions: u64,
    pub(crate) found: u64,
    pub(crate) visits: u64,
    pub(crate) delay_days: f64,
    /// Days of pages, and those on which the newest version was there.
    pub(crate) days: f64,
    pub(crate) current_days: f64,
}

impl Reached {
    pub(crate) fn efficiency(&self) -> f64 {
        self.found as f64 / self.visits.max(1) as f64
    }

    pub(crate) fn coverage(&self) -> f64 {
        self.found as f64 / self.versions.max(1) as f64
    }

    pub(crate) fn mean_delay_days(&self) -> f64 {
        self.delay_days / self.versions.max(1) as f64
    }

    /// The share of the time in which the newest version was there.
    pub(crate) fn current(&self) -> f64 {
        self.current_days / self.days.max(f64::MIN_POSITIVE)
    }

    fn add(&mut self, other: &Self) {
        self.pages += other.pages;
        self.versions += other.versions;
        self.found += other.found;
        self.visits += other.visits;
        self.delay_days += other.delay_days;
        self.days += other.days;
        self.current_days += other.current_days;
    }

    fn to_json(self) -> Value {
        json!({
            "pages": self.pages,
            "efficiency": self.efficiency(),
            "coverage": self.coverage(),
            "delay_days": self.mean_delay_days(),
            "current": self.current(),
            "visits": self.visits,
        })
    }
}

pub(crate) type ByCategory = BTreeMap<&'static str, Reached>;

/// The pages with their learnt rates.
pub(crate) struct Learnt<'a> {
    pages: Vec<(&'a LoggedPage, f64)>,
    categories: BTreeMap<u32, &'static str>,
    learn_slots: u32,
    slot_days: f64,
    visits_per_day: f64,
}

/// Shares out the visits in every way and returns the results as `results.json` holds them.
///
/// # Errors
/// [`LabError`] when an option makes no sense or the report cannot be written.
pub fn run(log: &UpdateLog, options: &BudgetOptions) -> Result<Value, LabError> {
    if !(options.visits_per_day > 0.0 && options.visits_per_day.is_finite()) {
        let problem = "has to be above 0".to_owned();
        return Err(LabError::Setting { setting: "--visits-per-day", problem });
    }
    log.check()?;
    let learnt = Learnt::new(log, options);
    let mut sharings =
        vec![Sharing::Even, Sharing::Proportional, Sharing::Root(Weights::default())];
    sharings.extend(options.weights.iter().copied().map(Sharing::Root));
    let allocations: Vec<Value> = sharings
        .iter()
        .map(|sharing| {
            let by_category = learnt.run(sharing);
            let mut value = total(&by_category).to_json();
            value["name"] = json!(sharing.name());
            value["by_category"] = by_category
                .iter()
                .map(|(name, reached)| {
                    let mut value = reached.to_json();
                    value["name"] = json!(name);
                    value
                })
                .collect();
            value
        })
        .collect();
    let results = json!({
        "pages": learnt.pages.len(),
        "learn_days": options.learn_days,
        "visits_per_day": options.visits_per_day,
        "allocations": allocations,
    });
    if let Some(out) = &options.out {
        figures::report(&learnt, &sharings).write(out, &results)?;
    }
    Ok(results)
}

impl Sharing {
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Even => "even".to_owned(),
            Self::Proportional => "proportional".to_owned(),
            Self::Root(weights) if *weights == Weights::default() => "root".to_owned(),
            Self::Root(w) => format!(
                "root(ext={},name={},no-lm={})",
                w.by_extension, w.by_name, w.without_last_modified
            ),
        }
    }
}

pub(crate) fn total(by_category: &ByCategory) -> Reached {
    by_category.values().fold(Reached::default(), |mut sum, reached| {
        sum.add(reached);
        sum
    })
}

/// Whether the page is taken to carry Last-Modified.
fn has_last_modified(page: &LoggedPage) -> bool {
    page.id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63 == 0
}

impl<'a> Learnt<'a> {
    /// Counts the days with a change in each page's learning days: l/n is its rate.
    fn new(log: &'a UpdateLog, options: &BudgetOptions) -> Self {
        let slot_days = log.window.resolution_s as f64 / 86_400.0;
        let learn_slots = (f64::from(options.learn_days) / slot_days).round() as u32;
        let pages = log
            .pages
            .iter()
            .filter(|page| page.end_slot > page.first_slot + learn_slots + 1)
            .map(|page| {
                let until = page.first_slot + learn_slots;
                let day = |slot: u32| (f64::from(slot - page.first_slot) * slot_days) as u32;
                let mut days: Vec<u32> =
                    page.updates.iter().take_while(|&&u| u <= until).map(|&u| day(u)).collect();
                days.dedup();
                // No change in n days does not make a page static: its rate is below 1/n.
                let seen = (days.len() as f64).max(UNSEEN_CHANGES);
                (page, seen / f64::from(options.learn_days.max(1)))
            })
            .collect();
        let visits_per_day = options.visits_per_day;
        Self { pages, categories: log.categories(), learn_slots, slot_days, visits_per_day }
    }

    /// Visits all pages by a sharing after their learning days.
    pub(crate) fn run(&self, sharing: &Sharing) -> ByCategory {
        let mut by_category = ByCategory::new();
        for ((page, _), per_day) in self.pages.iter().zip(self.shares(sharing)) {
            let category = self.categories.get(&page.source).copied().unwrap_or("other");
            let reached = self.follow(page, per_day);
            by_category.entry(category).or_default().add(&reached);
        }
        by_category
    }

    fn shares(&self, sharing: &Sharing) -> Vec<f64> {
        let claim = |(page, rate): &(&LoggedPage, f64)| match sharing {
            Sharing::Even => Claim { rate_per_day: 1.0, weight: 1.0 },
            // The root of the square is the rate itself.
            Sharing::Proportional => Claim { rate_per_day: *rate, weight: *rate },
            Sharing::Root(weights) => {
                let weight = weights.of(&page.path, has_last_modified(page), 1.0);
                Claim { rate_per_day: *rate, weight }
            }
        };
        let claims: Vec<Claim> = self.pages.iter().map(claim).collect();
        let bounds = VisitBounds { least_per_day: 0.0, most_per_day: 1.0 / self.slot_days };
        // Pages that leave early take their visits with them: what the others get is raised until all
        // sharings make as many visits in all.
        let days: Vec<f64> = self.pages.iter().map(|(page, _)| self.days_of(page)).collect();
        let wanted = self.visits_per_day * days.iter().sum::<f64>() / days.len().max(1) as f64;
        let share = |per_day: f64| allocate(&claims, per_day, bounds).visits_per_day;
        let visits = |shares: &[f64]| shares.iter().zip(&days).map(|(s, d)| s * d).sum::<f64>();
        let mut per_day = self.visits_per_day;
        for _ in 0..EQUAL_STEPS {
            per_day *= (wanted / visits(&share(per_day)).max(f64::MIN_POSITIVE)).clamp(0.5, 2.0);
        }
        share(per_day)
    }

    /// Days after the learning days.
    fn days_of(&self, page: &LoggedPage) -> f64 {
        f64::from(page.end_slot - page.first_slot - self.learn_slots - 1) * self.slot_days
    }

    /// Visits one page at even intervals; the first comes at a phase of its own.
    fn follow(&self, page: &LoggedPage, per_day: f64) -> Reached {
        let start = page.first_slot + self.learn_slots;
        let mut updates = page.updates.iter().copied().filter(|&u| u > start).peekable();
        let days = self.days_of(page);
        let mut reached = Reached { pages: 1, days, current_days: days, ..Reached::default() };
        let interval = (1.0 / (per_day * self.slot_days).max(1e-9)).max(1.0);
        let phase =
            (page.id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64 / (1u64 << 24) as f64;
        // From the slot after the learning days on, so that every sharing makes as many visits.
        let mut at = f64::from(start) + 1.0 + interval * phase;
        loop {
            let slot = at.floor().min(f64::from(page.end_slot));
            let is_visit = slot < f64::from(page.end_slot);
            let before = reached.versions;
            while let Some(update) = updates.next_if(|&u| f64::from(u) <= slot) {
                let late_days = (slot - f64::from(update)) * self.slot_days;
                if reached.versions == before {
                    reached.current_days -= late_days;
                }
                reached.versions += 1;
                reached.delay_days += if has_last_modified(page) { 0.0 } else { late_days };
            }
            if !is_visit {
                break;
            }
            reached.visits += 1;
            reached.found += u64::from(reached.versions > before);
            at += interval;
        }
        reached
    }
}
