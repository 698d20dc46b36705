use std::collections::BTreeMap;

use nenrin_state::{PageFilter, PageRecord, SiteId, State, StateError};
use nenrin_urls::{CanonicalUrl, Server};

use super::Findings;
use crate::crawl::web::{RobotsMood, Web};

/// How long a page may wait beyond its time: the longest rest of a server, and a day.
const PATIENCE_S: i64 = 2 * 86_400;
/// No policy lets a page rest for more than a year; on a server that cannot keep up it may be some more.
const LONGEST_S: i64 = 5 * 365 * 86_400;

/// The law: where pages have times of their own, every page has one, and none waits for ever. A page
/// waits rightly while its server's robots.txt cannot be had, or for its turn in a day's visits: the
/// servers of a site take turns, and of a server's turns new pages get at most four of five.
#[derive(Debug, Default)]
pub struct Starvation {
    /// What was broken.
    pub findings: Findings,
}

impl Starvation {
    /// Looks at every page of a partition at the end. `days` is how long one may have to wait for its
    /// turn in a day's visits.
    pub fn check(
        &mut self,
        web: &Web,
        state: &dyn State,
        days: u64,
        now_s: i64,
    ) -> Result<(), StateError> {
        let patience_s = PATIENCE_S + days as i64 * 86_400;
        let mut after = None;
        loop {
            let pages = state.pages(PageFilter { site: None, after, limit: 10_000 })?;
            let Some(last) = pages.last() else { return Ok(()) };
            after = Some(last.id);
            for page in &pages {
                match page.due_s {
                    None => self.findings.note(|| format!("{} is never due again", page.url)),
                    Some(due_s) if since_s(web, &page.url, due_s, now_s) + patience_s < now_s => {
                        self.findings
                            .note(|| format!("{} has been due for {} s", page.url, now_s - due_s))
                    }
                    Some(due_s) if due_s - now_s > LONGEST_S => {
                        self.findings.note(|| format!("{} is due in {} s", page.url, due_s - now_s))
                    }
                    Some(_) => {}
                }
            }
        }
    }
}

/// How many days a page may have to wait for its turn where a site, or all sites together, have this
/// many visits a day: all pages of a server may have to wait for one another, and the servers that
/// share the visits as well, in whatever partition. `shared_by` says which site's visits a page uses.
pub fn days_to_wait<'s>(
    states: impl Iterator<Item = &'s dyn State>,
    visits: u64,
    shared_by: impl Fn(&PageRecord) -> SiteId,
) -> Result<u64, StateError> {
    let mut sites: BTreeMap<SiteId, BTreeMap<Server, u64>> = BTreeMap::new();
    let mut partitions = 0;
    for state in states {
        partitions += 1;
        for page in state.pages(PageFilter { site: None, after: None, limit: 1_000_000 })? {
            let servers = sites.entry(shared_by(&page)).or_default();
            *servers.entry(page.url.server()).or_default() += 1;
        }
    }
    // Visits that were given to a partition and not used, because its servers were away, are lost.
    let percent = if partitions > 1 { 140 } else { 125 };
    let turns = sites.values().map(|servers| {
        let most = servers.values().max().copied().unwrap_or(0);
        most * servers.len() as u64 * percent / 100
    });
    Ok(turns.max().unwrap_or(0).div_ceil(visits.max(1)))
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
