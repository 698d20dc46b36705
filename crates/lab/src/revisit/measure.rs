//! Coverage, efficiency and delay, as paper 004 and the log's description define them.

use std::collections::BTreeMap;

use super::Tally;
use crate::updates::{LoggedPage, UpdateLog};

/// What a policy reached on a log.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Measures {
    /// Pages measured.
    pub pages: usize,
    /// Mean over pages of (1 + versions got)/(1 + versions).
    pub coverage: f64,
    /// Mean over pages of (1 + versions got)/visits.
    pub efficiency: f64,
    /// Versions got / versions.
    pub coverage_total: f64,
    /// Versions got / visits after the first.
    pub efficiency_total: f64,
    /// All visits.
    pub visits: u64,
    /// Mean days from an update to the first visit after it.
    pub delay_days: f64,
    /// By the pages' true mean interval.
    pub by_interval: Vec<Bin>,
    /// By the month in which versions appeared.
    pub by_month: Vec<Month>,
}

/// Pages whose mean interval is in a range.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bin {
    /// Least mean interval in days, and the end of the range.
    pub days: (f64, f64),
    /// Pages in it.
    pub pages: u64,
    /// Mean coverage of its pages.
    pub coverage: f64,
    /// Mean efficiency of its pages.
    pub efficiency: f64,
    /// Versions of its pages.
    pub versions: u64,
    /// Versions that no visit got.
    pub missed: u64,
}

/// A month of the window.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Month {
    /// Versions that appeared in it.
    pub versions: u64,
    /// Those that were got.
    pub found: u64,
}

impl Month {
    /// Versions got / versions.
    pub fn coverage(&self) -> f64 {
        ratio(self.found as f64, self.versions as f64)
    }
}

const MONTH_DAYS: f64 = 365.0 / 12.0;

impl Measures {
    /// Measures all pages of a log.
    pub fn of(log: &UpdateLog, tallies: &[Tally]) -> Self {
        Self::of_pages(log.window.resolution_s, log.pages.iter().zip(tallies))
    }

    /// Measures some pages.
    pub fn of_pages<'a>(
        resolution_s: i64,
        pages: impl Iterator<Item = (&'a LoggedPage, &'a Tally)>,
    ) -> Self {
        let slot_days = resolution_s as f64 / 86_400.0;
        let mut sums = Sums::default();
        for (page, tally) in pages {
            sums.add(page, tally, slot_days);
        }
        sums.measures(slot_days)
    }
}

#[derive(Default)]
struct Sums {
    pages: usize,
    coverage: f64,
    efficiency: f64,
    found: u64,
    versions: u64,
    visits: u64,
    delay_slots: u64,
    bins: BTreeMap<u32, Bin>,
    months: Vec<Month>,
}

impl Sums {
    fn add(&mut self, page: &LoggedPage, tally: &Tally, slot_days: f64) {
        let (versions, found) = (page.updates.len() as f64, tally.found.len() as f64);
        let coverage = (1.0 + found) / (1.0 + versions);
        let efficiency = (1.0 + found) / f64::from(tally.visits.max(1));
        self.pages += 1;
        self.coverage += coverage;
        self.efficiency += efficiency;
        self.found += tally.found.len() as u64;
        self.versions += page.updates.len() as u64;
        self.visits += u64::from(tally.visits);
        self.delay_slots += tally.delay_slots;
        if let Some(interval) = page.mean_interval() {
            let (from, to) = bin_of(interval * slot_days);
            let bin = self.bins.entry(from).or_default();
            bin.days = (f64::from(from), f64::from(to));
            bin.pages += 1;
            bin.coverage += coverage;
            bin.efficiency += efficiency;
            bin.versions += page.updates.len() as u64;
            bin.missed += (page.updates.len() - tally.found.len()) as u64;
        }
        self.add_months(page, tally, slot_days);
    }

    fn add_months(&mut self, page: &LoggedPage, tally: &Tally, slot_days: f64) {
        let month = |slot: u32| (f64::from(slot) * slot_days / MONTH_DAYS) as usize;
        let last = page.updates.last().map_or(0, |&slot| month(slot) + 1);
        if self.months.len() < last {
            self.months.resize(last, Month::default());
        }
        for &slot in &page.updates {
            self.months[month(slot)].versions += 1;
        }
        for &number in &tally.found {
            self.months[month(page.updates[number as usize])].found += 1;
        }
    }

    fn measures(self, slot_days: f64) -> Measures {
        let pages = self.pages as f64;
        let by_interval = self.bins.into_values().map(|bin| Bin {
            coverage: ratio(bin.coverage, bin.pages as f64),
            efficiency: ratio(bin.efficiency, bin.pages as f64),
            ..bin
        });
        Measures {
            pages: self.pages,
            coverage: ratio(self.coverage, pages),
            efficiency: ratio(self.efficiency, pages),
            coverage_total: ratio(self.found as f64, self.versions as f64),
            efficiency_total: ratio(self.found as f64, self.visits as f64 - pages),
            visits: self.visits,
            delay_days: ratio(self.delay_slots as f64 * slot_days, self.versions as f64),
            by_interval: by_interval.collect(),
            by_month: self.months,
        }
    }
}

/// The range of mean intervals in days that holds `days`: 1 day wide up to 30, 10 up to 100, 30
/// beyond (figures 6 to 8 of paper 004).
fn bin_of(days: f64) -> (u32, u32) {
    let whole = days.max(0.0) as u32;
    let width = match whole {
        0..30 => 1,
        30..100 => 10,
        _ => 30,
    };
    let base = if whole >= 100 { 100 } else { 0 };
    let from = base + (whole - base) / width * width;
    (from, from + width)
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(updates: &[u32]) -> LoggedPage {
        LoggedPage {
            id: 1,
            path: String::new(),
            source: 1,
            first_slot: 0,
            end_slot: 365,
            updates: updates.to_vec(),
        }
    }

    #[test]
    fn the_first_fetch_counts_as_a_version_and_as_a_visit_per_page_but_not_in_total() {
        let pages = [page(&[1, 2, 40]), page(&[5, 6])];
        let tallies = [
            Tally { visits: 4, found: vec![1, 2], delay_slots: 6, missed: 1 },
            Tally { visits: 2, found: vec![], delay_slots: 4, missed: 0 },
        ];
        let measures = Measures::of_pages(86_400, pages.iter().zip(&tallies));
        assert_eq!(measures.coverage, (3.0 / 4.0 + 1.0 / 3.0) / 2.0);
        assert_eq!(measures.efficiency, (3.0 / 4.0 + 1.0 / 2.0) / 2.0);
        assert_eq!(measures.coverage_total, 2.0 / 5.0);
        assert_eq!(measures.efficiency_total, 2.0 / 4.0);
        assert_eq!(measures.delay_days, 2.0);
        assert_eq!(measures.by_month[0], Month { versions: 4, found: 1 });
        assert_eq!(measures.by_month[1], Month { versions: 1, found: 1 });
    }

    #[test]
    fn bins_widen_as_in_the_paper() {
        assert_eq!(bin_of(1.0), (1, 2));
        assert_eq!(bin_of(29.9), (29, 30));
        assert_eq!(bin_of(30.0), (30, 40));
        assert_eq!(bin_of(99.0), (90, 100));
        assert_eq!(bin_of(129.0), (100, 130));
        assert_eq!(bin_of(130.0), (130, 160));
    }
}
