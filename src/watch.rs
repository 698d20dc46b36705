//! What happens in the archive, besides what was asked for: changes, and what people should know of.
//!
//! The log of visits is followed as it grows, so that what is told has been committed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use nenrin_state::{
    Incident, IncidentKind, Outcome, ServerId, ServerRecord, Site, SiteId, State, StateError,
    VisitFilter, VisitRow,
};
use nenrin_urls::CanonicalUrl;
use serde::{Deserialize, Serialize};

use crate::{clock, config::Happening, driver::DriverHandle, quota::Reached, spans::rfc3339};

/// How often the log is looked at.
const PAUSE: Duration = Duration::from_secs(2);
/// Visits read at once, and how often in a row: what is beyond is not told.
const PORTION: usize = 250;
const MAX_PORTIONS: usize = 80;
/// Pages named in one message.
const MAX_PAGES: usize = 100;
/// Visits that fail in a row, over all pages of a site, until someone is told.
const TROUBLE: u32 = 3;
/// Servers change their pace slowly: once in so many looks is enough.
const LOOKS_PER_OVERFLOW: u64 = 15;
/// Servers of a site among which a slow one is looked for.
const SERVERS_LOOKED_AT: usize = 1_000;
/// Pages that were not seen, of which is looked up in one look whether they are sitemaps or feeds.
const MAX_LOOKUPS: usize = 200;
const MAX_SILENT: usize = 1_000;
/// Looks until the room that sites take has been measured for sure.
const LOOKS_TO_MEASURE: u64 = 5;

/// A message as it is sent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Message {
    pub(crate) event: Happening,
    /// The same for every try, so that a receiver can tell a repetition.
    pub(crate) id: String,
    pub(crate) at: String,
    #[serde(skip)]
    pub(crate) at_s: i64,
    pub(crate) site: SiteId,
    pub(crate) name: String,
    /// How many visits it is about; at most a hundred pages are named.
    pub(crate) count: usize,
    pub(crate) pages: Vec<Told>,
    /// In words, where there are no pages to name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Told {
    url: CanonicalUrl,
    at: String,
    status: u16,
    detail: Option<String>,
}

/// The message as an incident, unless it is a mere change.
fn incident(message: &Message, cause: String) -> Option<Incident> {
    let event = match message.event {
        Happening::Changed => return None,
        Happening::Failing => IncidentKind::Failing,
        Happening::Blocked => IncidentKind::Blocked,
        Happening::Quota => IncidentKind::Quota,
        Happening::Overflow => IncidentKind::Overflow,
        Happening::SignalLost => IncidentKind::SignalLost,
    };
    let of_page = |told: &Told| match (&told.detail, told.status) {
        (Some(detail), _) => format!("{}: {detail}", told.url),
        (None, 0) => told.url.to_string(),
        (None, status) => format!("{}: HTTP {status}", told.url),
    };
    let detail = message.detail.clone().or_else(|| message.pages.last().map(of_page));
    Some(Incident {
        id: message.id.clone(),
        event,
        at_s: message.at_s,
        over_s: None,
        // The archive as a whole has no number.
        site: Some(message.site).filter(|site| site.0 > 0),
        name: message.name.clone(),
        detail: detail.unwrap_or_default(),
        cause,
    })
}

/// Looks every two seconds what has happened, keeps incidents in the state, and hands all of it to
/// `tell`.
pub(crate) async fn follow(
    state: Arc<dyn State>,
    driver: DriverHandle,
    mut tell: impl FnMut(&Message) + Send,
) {
    let mut watch = Watch::after(&*state).unwrap_or_else(|error| {
        tracing::warn!("incidents before the start cannot be read: {error}");
        Watch::default()
    });
    loop {
        let shared = state.clone();
        let reached = driver.figures().reached;
        let looked = tokio::task::spawn_blocking(move || {
            let found = watch.look_and_keep(&*shared, &reached);
            (watch, found)
        });
        let Ok((seen, found)) = looked.await else { return };
        watch = seen;
        let messages = found.unwrap_or_else(|error| {
            tracing::warn!("the log cannot be followed: {error}");
            Vec::new()
        });
        messages.iter().for_each(&mut tell);
        tokio::time::sleep(PAUSE).await;
    }
}

/// Where the log stands, and which sites are in trouble.
#[derive(Default)]
struct Watch {
    /// The last visit looked at; `None` before the first look, which tells nothing.
    last: Option<i64>,
    /// Bad visits since the last good one, by site and kind.
    bad: BTreeMap<SiteId, (Happening, u32)>,
    /// Sites whose quota was reached when last looked; `None` is the archive.
    full: BTreeSet<Option<SiteId>>,
    /// Servers that could not keep up when last looked.
    slow: BTreeSet<ServerId>,
    /// Sitemaps and feeds that did not answer, and how often in a row.
    silent: BTreeMap<CanonicalUrl, u32>,
    looks: u64,
    /// Looks to come in which a quota counts as reached because it was before the start.
    unmeasured: u64,
    /// What is not over yet, and the messages that told of it.
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
    /// Goes on where an earlier process stopped: what was not over then is not told again, and its
    /// end is noticed.
    fn after(state: &dyn State) -> Result<Self, StateError> {
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

    /// What has happened since the last look; the state knows of incidents before anyone is told.
    fn look_and_keep(
        &mut self,
        state: &dyn State,
        reached: &[Reached],
    ) -> Result<Vec<Message>, StateError> {
        let messages = self.look(state, reached)?;
        let incidents: Vec<Incident> = messages
            .iter()
            .filter_map(|message| incident(message, self.cause_of(&message.id)))
            .collect();
        if !incidents.is_empty() {
            state.keep_incidents(&incidents)?;
        }
        let ended = std::mem::take(&mut self.ended);
        if !ended.is_empty() {
            state.end_incidents(&ended, clock::now_s())?;
        }
        Ok(messages)
    }

    /// The cause of an open incident, as it is kept.
    fn cause_of(&self, id: &String) -> String {
        let open = self.open.iter().find(|(_, ids)| ids.contains(id));
        open.and_then(|(cause, _)| serde_json::to_string(cause).ok()).unwrap_or_default()
    }

    /// What has happened since the last look.
    fn look(&mut self, state: &dyn State, reached: &[Reached]) -> Result<Vec<Message>, StateError> {
        let mut messages = self.quotas(reached);
        self.unmeasured = self.unmeasured.saturating_sub(1);
        if self.looks.is_multiple_of(LOOKS_PER_OVERFLOW) {
            messages.extend(self.overflow(state)?);
        }
        self.looks += 1;
        messages.extend(self.visits(state)?);
        Ok(messages)
    }

    fn end(&mut self, cause: &Cause) {
        self.ended.extend(self.open.remove(cause).unwrap_or_default());
    }

    fn visits(&mut self, state: &dyn State) -> Result<Vec<Message>, StateError> {
        let Some(last) = self.last else {
            let newest = state.visits(VisitFilter { limit: 1, ..VisitFilter::default() })?;
            self.last = Some(newest.first().map_or(0, |visit| visit.id));
            return Ok(Vec::new());
        };
        let (mut fresh, mut before) = (Vec::new(), None);
        for _ in 0..MAX_PORTIONS {
            let portion =
                state.visits(VisitFilter { before, limit: PORTION, ..VisitFilter::default() })?;
            let is_last = portion.len() < PORTION || portion.iter().any(|visit| visit.id <= last);
            before = portion.last().map(|visit| visit.id);
            fresh.extend(portion.into_iter().filter(|visit| visit.id > last));
            if is_last {
                break;
            }
        }
        let Some(newest) = fresh.first() else { return Ok(Vec::new()) };
        self.last = Some(newest.id);
        fresh.reverse();
        let sites = state.sites()?;
        let mut messages = self.messages(&fresh, &sites);
        messages.extend(self.signals(state, &fresh, &sites)?);
        Ok(messages)
    }

    /// Servers that could keep up before and cannot now, told to every site that has pages there.
    fn overflow(&mut self, state: &dyn State) -> Result<Vec<Message>, StateError> {
        let stretched = state.stretched(MAX_PAGES)?;
        let now: BTreeSet<ServerId> = stretched.iter().map(|(server, _)| server.id).collect();
        let before = std::mem::replace(&mut self.slow, now);
        for over in before.difference(&self.slow.clone()) {
            self.end(&Cause::Server(*over));
        }
        let mut told = Vec::new();
        for (server, percent) in stretched.iter().filter(|(server, _)| !before.contains(&server.id))
        {
            for site in state.sites()?.into_iter().filter(|site| !site.paused) {
                let servers = state.site_servers(site.id, SERVERS_LOOKED_AT)?;
                if servers.iter().any(|own| own.id == server.id) {
                    let message = overflow(&site, server, *percent);
                    let open = self.open.entry(Cause::Server(server.id)).or_default();
                    open.push(message.id.clone());
                    told.push(message);
                }
            }
        }
        Ok(told)
    }

    /// Sitemaps and feeds that were read once and do not answer any more: told when one is gone, or
    /// did not answer three times, and again only after it did.
    fn signals(
        &mut self,
        state: &dyn State,
        visits: &[VisitRow],
        sites: &[Site],
    ) -> Result<Vec<Message>, StateError> {
        let mut lookups = 0;
        let mut told = Vec::new();
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
                let detail = Some(format!("{} does not answer any more", visit.url));
                let lost = message(visit.site, Happening::SignalLost, &[visit], sites);
                // The same visit may also be the one from which the whole site counts as failing.
                let id = format!("signal-{}", lost.id);
                self.open.entry(Cause::Source(visit.url.clone())).or_default().push(id.clone());
                told.push(Message { id, detail, ..lost });
            }
        }
        Ok(told)
    }

    /// Quotas that were not reached before.
    fn quotas(&mut self, reached: &[Reached]) -> Vec<Message> {
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
        let told: Vec<Message> = fresh
            .map(|reached| {
                let at_s = clock::now_s();
                let (site, name) = reached.site.clone().unwrap_or((SiteId(0), String::new()));
                Message {
                    event: Happening::Quota,
                    id: format!("quota-{at_s}-{}", site.0),
                    at: rfc3339(at_s),
                    at_s,
                    site,
                    name,
                    count: 0,
                    pages: Vec::new(),
                    detail: Some(reached.to_string()),
                }
            })
            .collect();
        for message in &told {
            let cause = Cause::Quota(Some(message.site).filter(|site| site.0 > 0));
            self.open.entry(cause).or_default().push(message.id.clone());
        }
        told
    }

    /// What visits mean, oldest first: changes together, troubles once until they are over.
    fn messages(&mut self, visits: &[VisitRow], sites: &[Site]) -> Vec<Message> {
        let mut told: BTreeMap<(SiteId, Happening), Vec<&VisitRow>> = BTreeMap::new();
        for visit in visits {
            match visit.outcome {
                Outcome::Changed => {
                    self.recover(visit.site);
                    told.entry((visit.site, Happening::Changed)).or_default().push(visit);
                }
                Outcome::Same | Outcome::NotModified => self.recover(visit.site),
                Outcome::Failed => {
                    let kind = match visit.status {
                        401 | 403 | 407 | 429 | 451 => Happening::Blocked,
                        _ => Happening::Failing,
                    };
                    let bad = self.bad.entry(visit.site).or_insert((kind, 0));
                    *bad = if bad.0 == kind { (kind, bad.1.saturating_add(1)) } else { (kind, 1) };
                    if bad.1 == TROUBLE {
                        told.entry((visit.site, kind)).or_default().push(visit);
                    }
                }
                Outcome::Gone | Outcome::Refused => {}
            }
        }
        let mut messages = Vec::new();
        for ((site, event), visits) in told {
            let message = message(site, event, &visits, sites);
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

    /// A good visit ends a site's trouble.
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

fn overflow(site: &Site, server: &ServerRecord, percent: u32) -> Message {
    let at_s = clock::now_s();
    let factor = f64::from(percent) / 100.0;
    Message {
        event: Happening::Overflow,
        id: format!("overflow-{at_s}-{}-{}", server.id.0, site.id.0),
        at: rfc3339(at_s),
        at_s,
        site: site.id,
        name: site.name.clone(),
        count: 0,
        pages: Vec::new(),
        detail: Some(format!("{} cannot keep up: intervals × {factor:.2}", server.server)),
    }
}

fn message(site: SiteId, event: Happening, visits: &[&VisitRow], sites: &[Site]) -> Message {
    let last = visits.last();
    let told = |visit: &&VisitRow| Told {
        url: visit.url.clone(),
        at: rfc3339(visit.at_s),
        status: visit.status,
        detail: visit.detail.clone(),
    };
    let at_s = last.map_or_else(clock::now_s, |visit| visit.at_s);
    Message {
        event,
        id: format!("{}-{}", last.map_or(0, |visit| visit.id), site.0),
        at: rfc3339(at_s),
        at_s,
        site,
        name: sites.iter().find(|s| s.id == site).map_or(String::new(), |s| s.name.clone()),
        count: visits.len(),
        pages: visits.iter().take(MAX_PAGES).map(told).collect(),
        detail: None,
    }
}

#[cfg(test)]
mod tests {
    use nenrin_state::{Change, ServerNote, ServerPace, SiteConditions, SqliteState};

    use super::*;

    fn visit(id: i64, outcome: Outcome, status: u16) -> VisitRow {
        VisitRow {
            id,
            at_s: 1_700_000_000 + id,
            url: CanonicalUrl::parse(&format!("http://e.com/{id}")).unwrap(),
            site: SiteId(1),
            outcome,
            status,
            detail: None,
            elapsed_ms: 1,
            received_bytes: 1,
        }
    }

    #[test]
    fn a_quota_is_told_once_until_there_is_room_again() {
        let mut watch = Watch::default();
        let of = |site: Option<u32>| Reached {
            site: site.map(|id| (SiteId(id), format!("s{id}"))),
            bytes: 2_000,
            quota_bytes: 1_000,
        };
        let told = watch.quotas(&[of(None), of(Some(3))]);
        assert_eq!(told.len(), 2);
        assert_eq!((told[1].event, told[1].name.as_str()), (Happening::Quota, "s3"));
        assert!(told[1].detail.as_deref().unwrap().contains("2.00 kB of 1.00 kB"));
        assert!(watch.quotas(&[of(None), of(Some(3))]).is_empty());
        assert!(watch.quotas(&[of(None)]).is_empty());
        assert_eq!(watch.quotas(&[of(None), of(Some(3))]).len(), 1);
    }

    #[test]
    fn changes_are_told_together_and_trouble_once_until_it_is_over() {
        let mut watch = Watch::default();
        let mut told = |visits: &[VisitRow]| -> Vec<(Happening, usize)> {
            watch.messages(visits, &[]).iter().map(|m| (m.event, m.count)).collect()
        };
        let changed = |id| visit(id, Outcome::Changed, 200);
        let failed = |id| visit(id, Outcome::Failed, 500);
        let forbidden = |id| visit(id, Outcome::Failed, 403);
        assert_eq!(told(&[changed(1), changed(2)]), [(Happening::Changed, 2)]);
        assert_eq!(told(&[failed(3), failed(4)]), []);
        assert_eq!(told(&[failed(5), failed(6)]), [(Happening::Failing, 1)]);
        assert_eq!(told(&[failed(7), failed(8)]), []);
        assert_eq!(told(&[visit(9, Outcome::Same, 200)]), []);
        assert_eq!(told(&[forbidden(10), forbidden(11), forbidden(12)]), [(Happening::Blocked, 1)]);
        assert_eq!(watch.ended, ["5-1"]);
        watch.messages(&[visit(13, Outcome::Same, 200)], &[]);
        assert_eq!(watch.ended, ["5-1", "12-1"]);
    }

    #[test]
    fn a_change_is_no_incident() {
        let mut watch = Watch::default();
        let failed = |id| visit(id, Outcome::Failed, 500);
        let told = watch
            .messages(&[visit(1, Outcome::Changed, 200), failed(2), failed(3), failed(4)], &[]);
        let all: Vec<Incident> =
            told.iter().filter_map(|message| incident(message, String::new())).collect();
        assert_eq!((told.len(), all.len()), (2, 1));
        assert_eq!((all[0].event, all[0].over_s), (IncidentKind::Failing, None));
        assert_eq!(all[0].detail, "http://e.com/4: HTTP 500");
    }

    /// A state with a site, its page and its sitemap, which was read.
    fn state_with_sitemap() -> (Box<dyn State>, CanonicalUrl) {
        let state: Box<dyn State> = Box::new(SqliteState::in_memory(3600).unwrap());
        let sitemap = CanonicalUrl::parse("http://e.com/sitemap.xml").unwrap();
        let conditions = SiteConditions::new(vec![sitemap.clone()]);
        let site = state.add_site("e", &conditions, 0).unwrap();
        state.begin_round(site.id, 0).unwrap();
        let server = state.site_servers(site.id, 1).unwrap()[0].id;
        let value = format!(r#"{{"sources": {{"{sitemap}": {{"read_s": 7}}}}}}"#);
        let note = ServerNote { server, name: "signals".into(), value };
        state.commit(&[Change::Note(note)]).unwrap();
        (state, sitemap)
    }

    #[test]
    fn a_lost_sitemap_is_told_once_until_it_answers_again() {
        let (state, sitemap) = state_with_sitemap();
        let mut watch = Watch::default();
        let mut told = |outcome, url: &CanonicalUrl| {
            let visits = [VisitRow { url: url.clone(), ..visit(1, outcome, 404) }];
            watch.signals(&*state, &visits, &[]).unwrap().len()
        };
        assert_eq!(told(Outcome::Gone, &CanonicalUrl::parse("http://e.com/x").unwrap()), 0);
        assert_eq!(told(Outcome::Gone, &sitemap), 1);
        assert_eq!(told(Outcome::Gone, &sitemap), 0);
        assert_eq!(told(Outcome::Same, &sitemap), 0);
        assert_eq!(told(Outcome::Failed, &sitemap), 0);
        assert_eq!(told(Outcome::Refused, &sitemap), 0);
        assert_eq!(told(Outcome::Failed, &sitemap), 1);
        assert_eq!(told(Outcome::Gone, &sitemap), 0);
        assert_eq!(told(Outcome::Same, &sitemap), 0);
        assert_eq!(watch.ended.len(), 2, "both times it is known that it is over");
    }

    #[test]
    fn an_overflow_is_told_once_until_it_is_over() {
        let (state, _) = state_with_sitemap();
        let server = state.site_servers(SiteId(1), 1).unwrap()[0].id;
        let mut watch = Watch::default();
        let mut told = |stretch_percent: u32| {
            let pace = ServerPace {
                server,
                asked_ms: 0,
                resting_until_ms: None,
                strikes: 0,
                stretch_percent,
            };
            state.commit(&[Change::Pace(pace)]).unwrap();
            watch.overflow(&*state).unwrap()
        };
        assert!(told(100).is_empty());
        let first = told(160);
        assert_eq!((first.len(), first[0].event), (1, Happening::Overflow));
        assert_eq!(
            first[0].detail.as_deref(),
            Some("http://e.com cannot keep up: intervals × 1.60")
        );
        assert!(told(200).is_empty());
        assert!(told(100).is_empty());
        assert_eq!(told(130).len(), 1);
        assert_eq!(watch.ended, [first[0].id.clone()]);
    }
    #[test]
    fn incidents_outlive_the_process_and_their_end_is_noticed() {
        let (state, sitemap) = state_with_sitemap();
        let mut watch = Watch::default();
        let failed: Vec<VisitRow> = (5..8).map(|id| visit(id, Outcome::Failed, 403)).collect();
        let lost = [VisitRow { url: sitemap.clone(), ..visit(9, Outcome::Gone, 404) }];
        let mut messages = watch.messages(&failed, &[]);
        messages.extend(watch.signals(&*state, &lost, &[]).unwrap());
        let kept: Vec<Incident> =
            messages.iter().filter_map(|one| incident(one, watch.cause_of(&one.id))).collect();
        state.keep_incidents(&kept).unwrap();
        drop(watch);

        let mut next = Watch::after(&*state).unwrap();
        assert_eq!(next.messages(&failed, &[]).len(), 0, "it was told before the restart");
        assert_eq!(next.signals(&*state, &lost, &[]).unwrap().len(), 0);
        next.messages(&[visit(20, Outcome::Same, 200)], &[]);
        let answers = [VisitRow { url: sitemap, ..visit(21, Outcome::Same, 200) }];
        next.signals(&*state, &answers, &[]).unwrap();
        next.look_and_keep(&*state, &[]).unwrap();
        let all = state.incidents().unwrap();
        assert_eq!((all.len(), all[1].event), (2, IncidentKind::Blocked));
        assert!(all.iter().all(|one| one.over_s.is_some()), "{all:?}");
        assert!(Watch::after(&*state).unwrap().open.is_empty());
    }
}
