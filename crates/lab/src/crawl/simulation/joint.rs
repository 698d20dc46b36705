//! What is checked of sites over several partitions.

use nenrin_archive::joined_rounds;
use nenrin_crawl::Purpose;
use nenrin_state::State;

use super::Simulation;
use crate::{LabError, crawl::web::Web};

impl Simulation {
    /// The site of a page and its visits per day, if its pages have times of their own and it keeps a
    /// budget: one for each server, or one for all with partitions.
    pub(super) fn budget_of(&self, url: &nenrin_urls::CanonicalUrl) -> Option<(u32, u64)> {
        let visits = self.options.continuous.as_ref()?.visits_per_day?;
        // Another site that has the same pages visits them in rounds, which have no budget.
        let server = Web::server_of(url).filter(|_| !self.options.overlap)?;
        Some((if self.workers.len() > 1 { 0 } else { server }, visits))
    }

    /// A worker loses its partition: the next does not know what it had under way.
    pub(super) fn count_lost(&mut self, worker: usize) {
        let orders = self.workers[worker].under_way.values().map(|(order, _)| order);
        let pages = orders.filter(|order| order.purpose == Purpose::Page);
        let sites: Vec<u32> =
            pages.filter_map(|order| Some(self.budget_of(&order.url)?.0)).collect();
        for site in sites {
            self.budget.lost(self.now_ms / 1000, site, 1);
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
