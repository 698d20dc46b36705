//! What links say of the importance of pages, once they are known.

use std::collections::VecDeque;

use nenrin_crawl::{Batch, Command, Crawl, CrawlOptions, Event, answer_load, commit_batch};

use crate::{Archive, Result};

impl Archive {
    /// Lets the crawl order take in the pages and links that became known, and commits its estimate
    /// of them: the machine runs without a site, so that it visits nothing. Links that were not
    /// read are left to the next process that collects.
    pub(crate) fn settle_order(&self) -> Result<()> {
        let epoch = self.take_over()?;
        let mut machine = Crawl::new(CrawlOptions::default());
        for first in [Event::Sites(Vec::new()), Event::Stop] {
            let mut events = VecDeque::from([first]);
            while let Some(event) = events.pop_front() {
                let mut batch = Batch::default();
                for command in machine.step(0, event) {
                    match command {
                        Command::Load(load) => {
                            events.push_back(answer_load(&**self.state(), 0, &load)?);
                        }
                        Command::Commit { ticket, change } => batch.push(ticket, change),
                        _ => {}
                    }
                }
                if !batch.is_empty() {
                    events.push_back(commit_batch(&**self.state(), epoch, &batch)?);
                }
            }
        }
        Ok(())
    }
}
