//! What is checked of sites over several partitions.

use nenrin_archive::{joined_days, joined_rounds, joined_sites};
use nenrin_crawl::Purpose;
use nenrin_state::{DayQuery, State};

use super::Simulation;
use crate::{LabError, crawl::web::Web};

/// The number of the whole archive's budget.
const ARCHIVE: u32 = u32::MAX;

/// Visits, and the versions among them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counted {
    visits: u64,
    versions: u64,
}

impl Counted {
    fn add(&mut self, visits: u64, versions: u64) {
        self.visits += visits;
        self.versions += versions;
    }

    /// The law: what partitions count together is what was committed.
    fn differs(self, sums: &str, found: Self) -> Option<String> {
        (self != found).then(|| format!("{sums} count {found:?}, {self:?} were committed"))
    }
}

impl Simulation {
    /// The budgets that a visit to a page counts for, by number, with their visits per day: that of its
    /// site, one for each server or one for all with partitions, and that of the archive. Only pages
    /// with times of their own have any.
    pub(super) fn budgets_of(&self, url: &nenrin_urls::CanonicalUrl) -> Vec<(u32, u64)> {
        // Another site that has the same pages visits them in rounds, which have no budget.
        let server = Web::server_of(url).filter(|_| !self.options.overlap);
        let (Some(settings), Some(server)) = (&self.options.continuous, server) else {
            return Vec::new();
        };
        let site = if self.workers.len() > 1 { 0 } else { server };
        let of_site = settings.visits_per_day.map(|visits| (site, visits));
        let of_archive = self.options.visits_per_day.map(|visits| (ARCHIVE, visits));
        of_site.into_iter().chain(of_archive).collect()
    }

    /// A worker loses its partition: the next does not know what it had under way.
    pub(super) fn count_lost(&mut self, worker: usize) {
        let orders = self.workers[worker].under_way.values().map(|(order, _)| order);
        let pages = orders.filter(|order| order.purpose == Purpose::Page);
        let budgets: Vec<(u32, u64)> =
            pages.flat_map(|order| self.budgets_of(&order.url)).collect();
        for (budget, _) in budgets {
            self.budget.lost(self.clock_ms() / 1000, budget, 1);
        }
    }

    /// The orders that know all pages, at the end.
    pub(super) fn check_orders(&mut self) -> Result<(), LabError> {
        for worker in &self.workers {
            let stats = worker.machine.order_stats();
            if stats.is_current {
                self.shares.check_order(&*worker.state, stats.received_micros)?;
            }
        }
        Ok(())
    }

    /// The sums of the sites and of the days, put together from all partitions.
    pub(super) fn check_sums(&mut self) -> Result<(), LabError> {
        let states: Vec<&dyn State> = self.workers.iter().map(|worker| &*worker.state).collect();
        let (mut by_site, mut by_day) = (Counted::default(), Counted::default());
        for site in joined_sites(&states)? {
            by_site.add(site.counts.visits, site.counts.versions);
        }
        let all = DayQuery { site: None, from_day: i64::MIN, to_day: i64::MAX };
        for day in joined_days(&states, all)? {
            by_day.add(day.visits, day.versions);
        }
        let committed = Counted { visits: self.report.visits, versions: self.report.versions };
        for (sums, found) in [("sites", by_site), ("days", by_day)] {
            self.report.violations.extend(committed.differs(sums, found));
        }
        Ok(())
    }

    /// The rounds of the sites, put together from all partitions.
    pub(super) fn check_rounds(&mut self) -> Result<(), LabError> {
        let states: Vec<&dyn State> = self.workers.iter().map(|worker| &*worker.state).collect();
        for site in states[0].sites()? {
            let joined = joined_rounds(&states, site.id)?;
            self.rounds.check(states.len(), site.id, &joined);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_visit_that_no_sum_has_is_noticed() {
        let committed = Counted { visits: 3, versions: 1 };
        assert_eq!(committed.differs("sites", committed), None);
        let found = committed.differs("days", Counted { visits: 2, versions: 1 });
        assert!(found.is_some_and(|found| found.contains("days count")));
    }
}
