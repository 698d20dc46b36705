//! Noticing what happens in the archive: changes, and what people should know of.
//!
//! The log of visits is followed as it grows, so that what is reported has been committed.

mod log;
mod message;
mod signature;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use nenrin_lang::{IncidentDetail, Reason};
use nenrin_state::{
    Incident, IncidentKind, Outcome, ServerId, ServerRecord, Site, SiteId, State, StateError,
    VisitRow,
};
use nenrin_urls::{CanonicalUrl, RenderedRecord};
use serde::{Deserialize, Serialize};

use crate::quota::Reached;

pub(crate) use log::Log;
use message::MAX_PAGES;
pub use message::{Happening, Message, NamedPage, WatchNote, about_watch, watch_link};
pub use signature::signature;

/// Visits in a row, over all pages of a site, that must fail before it is reported.
const TROUBLE: u32 = 3;
/// Servers change their pace slowly: once in so many looks is enough.
const LOOKS_PER_OVERFLOW: u64 = 15;
/// Servers of a site among which a slow one is looked for.
const SERVERS_LOOKED_AT: usize = 1_000;
/// Pages that were not seen, of which is looked up in one look whether they are sitemaps or feeds.
const MAX_LOOKUPS: usize = 200;
const MAX_SILENT: usize = 1_000;
/// Looks after which the space that sites take has certainly been measured.
const LOOKS_TO_MEASURE: u64 = 5;

/// How far the log was read, and which sites have problems.
#[derive(Default)]
pub struct Watch {
    /// The first look reports nothing.
    log: Log,
    /// Bad visits since the last good one, by site and kind.
    bad: BTreeMap<SiteId, (Happening, u32)>,
    /// Sites whose quota was reached when last looked; `None` is the archive.
    full: BTreeSet<Option<SiteId>>,
    /// Servers that could not keep up when last looked.
    slow: BTreeSet<ServerId>,
    /// Sitemaps and feeds that did not answer, and how often in a row.
    silent: BTreeMap<CanonicalUrl, u32>,
    looks: u64,
    /// In so many looks from now on, a quota counts as reached because it was before the start.
    unmeasured: u64,
    /// Incidents that are not over, and the messages that reported them.
    open: BTreeMap<Cause, Vec<String>>,
    /// Messages about what is over now.
    ended: Vec<String>,
}

/// What an incident is about, to know it again when it is over.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Cause {
    Visits(SiteId),
    Quota(Option<SiteId>),
    Server(ServerId),
    Source(CanonicalUrl),
}

impl Watch {
    /// Continues where an earlier process stopped: incidents that were not over then are not
    /// reported again, and their end is noticed.
    pub fn after(state: &dyn State) -> Result<Self, StateError> {
        let mut watch = Self { unmeasured: LOOKS_TO_MEASURE, ..Self::default() };
        for one in state.incidents()?.into_iter().filter(|one| one.over_s.is_none()) {
            let Ok(cause) = serde_json::from_str(&one.cause) else { continue };
            match &cause {
                Cause::Visits(site) => {
                    let kind = match one.event {
                        IncidentKind::Blocked => Happening::Blocked,
                        _ => Happening::Failing,
                    };
                    watch.bad.insert(*site, (kind, TROUBLE));
                }
                Cause::Quota(site) => {
                    watch.full.insert(*site);
                }
                Cause::Server(server) => {
                    watch.slow.insert(*server);
                }
                Cause::Source(url) => {
                    watch.silent.insert(url.clone(), TROUBLE);
                }
            }
            watch.open.entry(cause).or_default().push(one.id);
        }
        Ok(watch)
    }

    /// Follows the logs of these partitions.
    #[must_use]
    pub fn over(mut self, partitions: Vec<Arc<dyn State>>) -> Self {
        self.log = Log::of(partitions);
        self
    }

    /// What has happened since the last look. Incidents are stored in the state before anyone gets
    /// a message.
    pub fn look_and_keep(
        &mut self,
        state: &dyn State,
        reached: &[Reached],
        now_s: i64,
    ) -> Result<Vec<Message>, StateError> {
        let messages = self.look(state, reached, now_s)?;
        let incidents: Vec<Incident> = messages
            .iter()
            .filter_map(|message| message::incident(message, self.cause_of(&message.id)))
            .collect();
        if !incidents.is_empty() {
            state.keep_incidents(&incidents)?;
        }
        let ended = std::mem::take(&mut self.ended);
        if !ended.is_empty() {
            state.end_incidents(&ended, now_s)?;
        }
        Ok(messages)
    }

    /// The cause of an open incident, as it is kept.
    fn cause_of(&self, id: &String) -> String {
        let open = self.open.iter().find(|(_, ids)| ids.contains(id));
        open.and_then(|(cause, _)| serde_json::to_string(cause).ok()).unwrap_or_default()
    }

    /// What has happened since the last look.
    fn look(
        &mut self,
        state: &dyn State,
        reached: &[Reached],
        now_s: i64,
    ) -> Result<Vec<Message>, StateError> {
        let mut messages = self.quotas(reached, now_s);
        self.unmeasured = self.unmeasured.saturating_sub(1);
        if self.looks.is_multiple_of(LOOKS_PER_OVERFLOW) {
            messages.extend(self.overflow(state, now_s)?);
        }
        self.looks += 1;
        messages.extend(self.visits(state)?);
        Ok(messages)
    }

    fn end(&mut self, cause: &Cause) {
        self.ended.extend(self.open.remove(cause).unwrap_or_default());
    }

    fn visits(&mut self, state: &dyn State) -> Result<Vec<Message>, StateError> {
        let fresh = self.log.fresh(state)?.visits;
        if fresh.is_empty() {
            return Ok(Vec::new());
        }
        let sites = state.sites()?;
        let mut messages = self.messages(&fresh, &sites);
        messages.extend(self.signals(state, &fresh, &sites)?);
        Ok(messages)
    }

    /// Servers that became overloaded, reported for every site that has pages there.
    fn overflow(&mut self, state: &dyn State, now_s: i64) -> Result<Vec<Message>, StateError> {
        let stretched = state.stretched(MAX_PAGES)?;
        let now: BTreeSet<ServerId> = stretched.iter().map(|(server, _)| server.id).collect();
        let before = std::mem::replace(&mut self.slow, now);
        for over in before.difference(&self.slow.clone()) {
            self.end(&Cause::Server(*over));
        }
        let mut reported = Vec::new();
        for (server, percent) in stretched.iter().filter(|(server, _)| !before.contains(&server.id))
        {
            for site in state.sites()?.into_iter().filter(|site| !site.paused) {
                let servers = state.site_servers(site.id, SERVERS_LOOKED_AT)?;
                if servers.iter().any(|own| own.id == server.id) {
                    let message = message::overflow(&site, server, *percent, now_s);
                    let open = self.open.entry(Cause::Server(server.id)).or_default();
                    open.push(message.id.clone());
                    reported.push(message);
                }
            }
        }
        Ok(reported)
    }

    /// Sitemaps and feeds that were read once and no longer answer: reported when one is gone, or
    /// did not answer three times, and again only after it did.
    fn signals(
        &mut self,
        state: &dyn State,
        visits: &[VisitRow],
        sites: &[Site],
    ) -> Result<Vec<Message>, StateError> {
        let mut lookups = 0;
        let mut reported = Vec::new();
        for visit in visits {
            if visit.outcome.is_seen() {
                if self.silent.remove(&visit.url).is_some() {
                    self.end(&Cause::Source(visit.url.clone()));
                }
                continue;
            }
            let is_counted = self.silent.contains_key(&visit.url);
            if !is_counted && (lookups == MAX_LOOKUPS || self.silent.len() == MAX_SILENT) {
                continue;
            }
            lookups += usize::from(!is_counted);
            if !is_counted && !is_source(state, &visit.url)? {
                continue;
            }
            let times = self.silent.entry(visit.url.clone()).or_default();
            let before = *times;
            *times = match visit.outcome {
                Outcome::Gone => TROUBLE.max(before + 1),
                _ => before.saturating_add(1),
            };
            if before < TROUBLE && *times >= TROUBLE {
                let detail = Some(IncidentDetail::SignalLost(visit.url.to_string()));
                let lost =
                    message::about_visits(visit.site, Happening::SignalLost, &[visit], sites);
                // The same visit may also be the one from which the whole site counts as failing.
                let id = format!("signal-{}", lost.id);
                self.open.entry(Cause::Source(visit.url.clone())).or_default().push(id.clone());
                reported.push(Message { id, detail, ..lost });
            }
        }
        Ok(reported)
    }

    /// Quotas that were not reached before.
    fn quotas(&mut self, reached: &[Reached], now_s: i64) -> Vec<Message> {
        let site = |reached: &Reached| reached.site.as_ref().map(|(id, _)| *id);
        let mut now: BTreeSet<_> = reached.iter().map(site).collect();
        if self.unmeasured > 0 {
            now.extend(&self.full);
        }
        let before = std::mem::replace(&mut self.full, now);
        for over in before.difference(&self.full.clone()) {
            self.end(&Cause::Quota(*over));
        }
        let fresh = reached.iter().filter(|reached| !before.contains(&site(reached)));
        let reported: Vec<Message> = fresh.map(|reached| message::quota(reached, now_s)).collect();
        for message in &reported {
            let cause = Cause::Quota(Some(message.site).filter(|site| site.0 > 0));
            self.open.entry(cause).or_default().push(message.id.clone());
        }
        reported
    }

    /// What visits mean, oldest first: changes together, problems once until they are over.
    fn messages(&mut self, visits: &[VisitRow], sites: &[Site]) -> Vec<Message> {
        let mut reported: BTreeMap<(SiteId, Happening), Vec<&VisitRow>> = BTreeMap::new();
        for visit in visits.iter().filter(|visit| !RenderedRecord::is_one(&visit.url)) {
            // A failing tracker on another's server is not a problem of the site.
            let site = sites.iter().find(|site| site.id == visit.site);
            let is_own = site.is_none_or(|site| site.conditions.is_own(&visit.url));
            match visit.outcome {
                Outcome::Changed => {
                    if is_own {
                        self.recover(visit.site);
                    }
                    reported.entry((visit.site, Happening::Changed)).or_default().push(visit);
                }
                Outcome::Same | Outcome::NotModified if is_own => self.recover(visit.site),
                Outcome::Failed if is_own => {
                    let kind = match visit.status {
                        401 | 403 | 407 | 429 | 451 => Happening::Blocked,
                        _ => Happening::Failing,
                    };
                    let bad = self.bad.entry(visit.site).or_insert((kind, 0));
                    *bad = if bad.0 == kind { (kind, bad.1.saturating_add(1)) } else { (kind, 1) };
                    if bad.1 == TROUBLE {
                        reported.entry((visit.site, kind)).or_default().push(visit);
                    }
                }
                Outcome::Refused
                    if is_own && visit.reason.as_ref().is_some_and(Reason::is_of_login) =>
                {
                    // The site is paused: there will be no second visit.
                    let before = self.bad.insert(visit.site, (Happening::Blocked, TROUBLE));
                    if before.is_none_or(|(_, times)| times < TROUBLE) {
                        reported.entry((visit.site, Happening::Blocked)).or_default().push(visit);
                    }
                }
                _ => {}
            }
        }
        let mut messages = Vec::new();
        for ((site, event), visits) in reported {
            let message = message::about_visits(site, event, &visits, sites);
            if event != Happening::Changed {
                // It may be over already, by a later visit of the same look.
                let is_open = self.bad.get(&site).is_some_and(|bad| bad.1 >= TROUBLE);
                let list = if is_open {
                    self.open.entry(Cause::Visits(site)).or_default()
                } else {
                    &mut self.ended
                };
                list.push(message.id.clone());
            }
            messages.push(message);
        }
        messages
    }

    /// A good visit ends a site's problem.
    fn recover(&mut self, site: SiteId) {
        if self.bad.remove(&site).is_some() {
            self.end(&Cause::Visits(site));
        }
    }
}

/// Whether a URL is a sitemap or feed that was read.
fn is_source(state: &dyn State, url: &CanonicalUrl) -> Result<bool, StateError> {
    let Some(page) = state.page(url)? else { return Ok(false) };
    let is_named = |server: &ServerRecord| {
        let note: serde_json::Value = serde_json::from_str(server.notes.get("signals")?).ok()?;
        note["sources"][url.as_str()]["read_s"].as_i64().filter(|read_s| *read_s > 0)
    };
    Ok(state.servers(&[page.id.server()])?.iter().any(|server| is_named(server).is_some()))
}

#[cfg(test)]
mod tests;
