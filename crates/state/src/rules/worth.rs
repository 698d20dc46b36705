//! Sums of what pages are worth and how often they change. A page's part in them is taken out and
//! put in again whenever its row changes, so they never have to be counted.

use std::collections::BTreeMap;

use crate::{Estimate, SiteId};

/// The number of all sites together; sites are numbered from 1.
pub(crate) const ALL_SITES: u32 = 0;
/// Groups are numbered from 1 to this.
const GROUP_MAX: u32 = 255;

/// The group of a number from 1 on: eight groups to a doubling.
fn group_of(number: u64) -> u32 {
    let eighths = (number.max(1) as f64).log2() * 8.0;
    (eighths as u32 + 1).min(GROUP_MAX)
}

/// A page's part in the sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// The site that keeps its schedule.
    pub(crate) site: SiteId,
    /// The importance that the crawl order estimates, in percent of the mean; 0 if unknown.
    pub(crate) importance_percent: u32,
    /// What its schedule believes of it.
    pub(crate) estimate: Option<Estimate>,
    /// When it got its first version: the group of its turn among the pages of its site (times 256)
    /// and of all; 0 if it has none, or was imported.
    pub(crate) turn: u32,
}

impl Part {
    /// Its groups in the curves of its site and of all.
    fn groups(&self) -> [Group; 4] {
        let best = GROUP_MAX + 1 - group_of(u64::from(self.importance_percent));
        let site = self.site.0;
        [
            (site, false, self.turn >> 8),
            (site, true, best),
            (ALL_SITES, false, self.turn & 0xff),
            (ALL_SITES, true, best),
        ]
    }
}

/// Site, whether of the best order, and number of a group.
pub(crate) type Group = (u32, bool, u32);

/// What changes in the sums by one commit.
#[derive(Debug, Default)]
pub(crate) struct WorthSums {
    /// By site; all together have the turns only.
    pub(crate) sites: BTreeMap<u32, WorthDelta>,
    /// Pages and importance by group.
    pub(crate) groups: BTreeMap<Group, (i64, i64)>,
}

/// What changes in the sums of a site.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct WorthDelta {
    /// Pages with a turn now, if any got one.
    pub(crate) turns: Option<u64>,
    pub(crate) estimated: i64,
    pub(crate) rate: i64,
    pub(crate) sure: i64,
    pub(crate) weighed: i64,
    pub(crate) importance: i64,
    pub(crate) significant: i64,
}

impl WorthSums {
    /// A page's part changed.
    pub(crate) fn replace(&mut self, before: &Part, after: &Part) {
        if before != after {
            self.add(before, -1);
            self.add(after, 1);
        }
    }

    fn add(&mut self, part: &Part, times: i64) {
        let site = self.sites.entry(part.site.0).or_default();
        if let Some(estimate) = part.estimate {
            site.estimated += times;
            site.rate += times * i64::from(estimate.rate_micros);
            site.sure += times * i64::from(estimate.confidence_percent);
        }
        if part.importance_percent == 0 {
            return;
        }
        let importance = times * i64::from(part.importance_percent);
        site.weighed += times;
        site.importance += importance;
        if part.turn > 0 {
            for group in part.groups() {
                let sum = self.groups.entry(group).or_default();
                *sum = (sum.0 + times, sum.1 + importance);
            }
        }
    }

    /// A version that is not mere noise was kept for a site.
    pub(crate) fn count_significant(&mut self, site: SiteId) {
        self.sites.entry(site.0).or_default().significant += 1;
    }

    /// Versions that counted as significant were found to be noise.
    pub(crate) fn count_noise(&mut self, site: SiteId, versions: i64) {
        self.sites.entry(site.0).or_default().significant -= versions;
    }

    /// Pages with a turn so far in this commit, if any got one.
    pub(crate) fn turns(&self, site: u32) -> Option<u64> {
        self.sites.get(&site).and_then(|delta| delta.turns)
    }

    /// The turn of a page of a site that gets its first version now, after so many of its site and
    /// of all.
    pub(crate) fn next_turn(&mut self, site: SiteId, of_site: u64, of_all: u64) -> u32 {
        let mut take = |site: u32, before: u64| {
            self.sites.entry(site).or_default().turns = Some(before + 1);
            group_of(before + 1)
        };
        take(site.0, of_site) << 8 | take(ALL_SITES, of_all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_grow_by_an_eighth_of_a_doubling_and_end() {
        assert_eq!([0, 1, 2, 3, 4, 1 << 20].map(group_of), [1, 1, 9, 13, 17, 161]);
        assert_eq!(group_of(u64::MAX), GROUP_MAX);
        assert!((1..10_000).map(group_of).is_sorted());
    }

    #[test]
    fn a_turn_counts_for_the_site_and_for_all() {
        let mut sums = WorthSums::default();
        assert_eq!(sums.turns(1), None);
        assert_eq!(sums.next_turn(SiteId(1), 1, 3), 9 << 8 | 17);
        assert_eq!((sums.turns(1), sums.turns(ALL_SITES)), (Some(2), Some(4)));
    }

    #[test]
    fn what_is_taken_out_and_put_in_again_leaves_no_trace() {
        let estimate = Some(Estimate { rate_micros: 3, confidence_percent: 9 });
        let old = Part { site: SiteId(1), importance_percent: 0, estimate: None, turn: 0 };
        let new = Part { importance_percent: 120, estimate, turn: 1 << 8 | 1, ..old };
        let mut sums = WorthSums::default();
        sums.replace(&old, &new);
        let site = &sums.sites[&1];
        assert_eq!((site.estimated, site.rate, site.weighed, site.importance), (1, 3, 1, 120));
        assert_eq!(sums.groups.len(), 4);
        sums.replace(&new, &old);
        assert_eq!(sums.sites[&1], WorthDelta::default());
        assert!(sums.groups.values().all(|sum| *sum == (0, 0)));
    }
}
