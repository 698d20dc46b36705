use crate::queues::{ServerQueues, by_queues};
use crate::{CrawlOrder, HandOn, NewPage, PageIndex};

/// On-line page importance computation (Abiteboul, Preda, Cobéna 2003), greedy by cash: a collected
/// page hands all its cash to its targets, one without links to all known pages.
#[derive(Debug, Default)]
pub(crate) struct Opic {
    /// The cash of each page, minus what all pages had been given when it was discovered.
    queues: ServerQueues<f64, f64>,
    /// Cash that pages without links have given to every known page. Adding it to all changes no
    /// order, so it is stored once.
    given_to_all: f64,
    additions: u64,
}

impl CrawlOrder for Opic {
    by_queues!();

    fn discover(&mut self, page: &NewPage) -> PageIndex {
        let cash = if self.queues.len() == 0 { 1.0 } else { -self.given_to_all };
        self.queues.insert(page.server, cash, cash)
    }

    fn collected(&mut self, page: PageIndex, targets: &[PageIndex], _links: usize) {
        self.queues.remove(page);
        let cash = self.score(page);
        *self.queues.data_mut(page) = -self.given_to_all;
        if targets.is_empty() {
            self.given_to_all += cash / self.queues.len() as f64;
            self.additions += self.queues.len() as u64;
        }
        for target in targets {
            self.queues.raise(*target, |value| {
                *value += cash / targets.len() as f64;
                *value
            });
        }
        self.additions += targets.len() as u64;
    }

    fn score(&self, page: PageIndex) -> f64 {
        self.queues.data(page) + self.given_to_all
    }

    fn additions(&self) -> u64 {
        self.additions
    }
}

impl HandOn for Opic {}
