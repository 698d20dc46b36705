use std::collections::BTreeMap;

use nenrin_state::{PageFilter, PageRecord, State, StateError};
use nenrin_urls::{CanonicalUrl, Server};

use super::Findings;
use crate::crawl::web::{RobotsMood, Web};

/// How long a page may wait beyond its time: the longest rest of a server, and a day.
const PATIENCE_S: i64 = 2 * 86_400;
/// No policy lets a page rest for more than a year; on a server that cannot keep up it may be some more.
const LONGEST_S: i64 = 5 * 365 * 86_400;

/// The law: where pages have times of their own, every page has one, and none waits for ever. A page
/// waits rightly while its server's robots.txt cannot be had, or for its [turn](Turns) in a day's visits.
#[derive(Debug, Default)]
pub struct Starvation {
    /// What was broken.
    pub findings: Findings,
}

impl Starvation {
    /// Looks at every page of a partition at the end.
    pub fn check(
        &mut self,
        web: &Web,
        state: &dyn State,
        turns: &Turns,
        now_s: i64,
    ) -> Result<(), StateError> {
        for page in pages(state)? {
            let patience_s = PATIENCE_S + turns.wait_s(&page.url.server());
            match page.due_s {
                None => self.findings.note(|| format!("{} is never due again", page.url)),
                Some(due_s) if since_s(web, &page.url, due_s, now_s) + patience_s < now_s => self
                    .findings
                    .note(|| format!("{} has been due for {} s", page.url, now_s - due_s)),
                Some(due_s) if due_s - now_s > LONGEST_S => {
                    self.findings.note(|| format!("{} is due in {} s", page.url, due_s - now_s))
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}

/// The visits of a day for which pages have to wait.
#[derive(Debug, Clone, Copy)]
pub struct Shared {
    /// How many there are.
    pub visits: u64,
    /// Whether all servers share them; else each has as many.
    pub by_all: bool,
    /// Whether pages go by the worth of a visit.
    pub by_worth: bool,
}

/// How long pages may have to wait for their turn in a day's visits, by server.
///
/// Where pages go by the worth of a visit, a page may have to wait for as long as it takes to visit every
/// page once. From then on only those go before it that are due longer, each of them once: at most all
/// pages of its server. The servers take turns, and of a server's turns known pages or new ones may get
/// only four of five.
#[derive(Debug, Clone, Default)]
pub struct Turns(BTreeMap<Server, i64>);

impl Turns {
    /// Counts the pages of all partitions.
    pub fn of<'s>(
        states: impl Iterator<Item = &'s dyn State>,
        shared: Shared,
    ) -> Result<Self, StateError> {
        let mut counts: BTreeMap<Server, u64> = BTreeMap::new();
        let mut partitions = 0;
        for state in states {
            partitions += 1;
            for page in pages(state)? {
                *counts.entry(page.url.server()).or_default() += 1;
            }
        }
        Ok(Self::of_counts(&counts, partitions, shared))
    }

    /// For servers with so many pages.
    pub fn of_counts(counts: &BTreeMap<Server, u64>, partitions: usize, shared: Shared) -> Self {
        // Visits that were given to a partition and not used, because its servers were away, are lost.
        let percent = if partitions > 1 { 140 } else { 125 };
        let wait_s = |&pages: &u64| {
            let (all, servers) = match shared.by_all {
                true => (counts.values().sum(), counts.len() as u64),
                false => (pages, 1),
            };
            let once = if shared.by_worth { all } else { 0 };
            let visits = once + pages * servers * percent / 100;
            visits.div_ceil(shared.visits.max(1)) as i64 * 86_400
        };
        Self(counts.iter().map(|(server, pages)| (server.clone(), wait_s(pages))).collect())
    }

    fn wait_s(&self, server: &Server) -> i64 {
        self.0.get(server).copied().unwrap_or(0)
    }

    /// The longest, with what a page may wait in any case.
    pub fn longest_s(&self) -> i64 {
        PATIENCE_S + self.0.values().max().copied().unwrap_or(0)
    }
}

fn pages(state: &dyn State) -> Result<Vec<PageRecord>, StateError> {
    state.pages(PageFilter { site: None, after: None, limit: usize::MAX })
}

/// Since when a page that is due could have been asked for.
fn since_s(web: &Web, url: &CanonicalUrl, due_s: i64, now_s: i64) -> i64 {
    const STEP_S: i64 = 6 * 3_600;
    let Some(server) = Web::server_of(url) else { return due_s };
    let cannot_be_had = |at_s: &i64| {
        matches!(web.robots_mood(server, *at_s), RobotsMood::Broken | RobotsMood::Silent)
    };
    let times = std::iter::successors(Some(now_s), |at_s| Some(at_s - STEP_S));
    times.take_while(|at_s| *at_s > due_s).find(cannot_be_had).unwrap_or(due_s)
}
