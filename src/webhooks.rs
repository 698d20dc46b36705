//! Tells other programs what happened: a message by POST, signed, tried again where it fails.
//!
//! The log of visits is followed as it grows, so that what is told has been committed. Every message
//! passes the fetcher and its address guard like any other request.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use nenrin_fetch::{AddressPolicy, FetchRequest, Fetcher};
use nenrin_state::{Outcome, Site, SiteId, State, VisitFilter, VisitRow};
use nenrin_urls::CanonicalUrl;
use serde::Serialize;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

use crate::{
    clock,
    config::{Happening, Webhook},
    driver::DriverHandle,
    exit::usage,
    quota::Reached,
    spans::rfc3339,
};

/// How often the log is looked at.
const PAUSE: Duration = Duration::from_secs(2);
/// Visits read at once, and how often in a row: what is beyond is not told.
const PORTION: usize = 1000;
const MAX_PORTIONS: usize = 20;
/// Pages named in one message.
const MAX_PAGES: usize = 100;
/// Messages waiting for one receiver; when it is full, new ones are dropped and that is logged.
const QUEUE: usize = 256;
/// Pauses before a message is tried again.
const RETRIES: [Duration; 4] = [
    Duration::from_secs(2),
    Duration::from_secs(10),
    Duration::from_secs(60),
    Duration::from_secs(300),
];
/// Visits that fail in a row, over all pages of a site, until someone is told.
const TROUBLE: u32 = 3;
/// What a receiver may answer; nobody reads it.
const MAX_ANSWER_BYTES: u64 = 64 << 10;

/// A message as it is sent.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Message {
    event: Happening,
    /// The same for every try, so that a receiver can tell a repetition.
    id: String,
    at: String,
    site: SiteId,
    name: String,
    /// How many visits it is about; at most a hundred pages are named.
    count: usize,
    pages: Vec<Told>,
    /// In words, where there are no pages to name.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Told {
    url: CanonicalUrl,
    at: String,
    status: u16,
    detail: Option<String>,
}

/// Starts to follow the log and to deliver, where the configuration names receivers.
pub(crate) fn start(
    webhooks: &[Webhook],
    fetcher: &Fetcher,
    state: &Arc<dyn State>,
    driver: DriverHandle,
) -> anyhow::Result<()> {
    let mut queues = Vec::new();
    for webhook in webhooks {
        let url = CanonicalUrl::parse(&webhook.url).map_err(usage)?;
        let (queue, waiting) = mpsc::channel(QUEUE);
        tokio::spawn(deliver(webhook.clone(), url, fetcher.clone(), waiting));
        queues.push((webhook.events.clone(), queue));
    }
    if !queues.is_empty() {
        tokio::spawn(follow(state.clone(), driver, queues));
    }
    Ok(())
}

type Queue = (Vec<Happening>, mpsc::Sender<Message>);

async fn follow(state: Arc<dyn State>, driver: DriverHandle, queues: Vec<Queue>) {
    let mut watch = Watch::default();
    loop {
        let shared = state.clone();
        let looked = tokio::task::spawn_blocking(move || {
            let found = watch.look(&*shared);
            (watch, found)
        });
        let Ok((seen, found)) = looked.await else { return };
        watch = seen;
        let mut messages = found.unwrap_or_else(|error| {
            tracing::warn!("the log cannot be followed: {error}");
            Vec::new()
        });
        messages.extend(watch.quotas(&driver.figures().reached));
        for message in messages {
            for (events, queue) in &queues {
                let is_wanted = events.is_empty() || events.contains(&message.event);
                if is_wanted && queue.try_send(message.clone()).is_err() {
                    tracing::warn!(id = message.id, "a webhook's queue is full: not told");
                }
            }
        }
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
}

impl Watch {
    fn look(&mut self, state: &dyn State) -> Result<Vec<Message>, nenrin_state::StateError> {
        let Some(last) = self.last else {
            let newest = state.visits(VisitFilter { limit: 1, ..VisitFilter::default() })?;
            self.last = Some(newest.first().map_or(0, |visit| visit.id));
            return Ok(Vec::new());
        };
        let (mut fresh, mut before) = (Vec::new(), None);
        for _ in 0..MAX_PORTIONS {
            let portion = state.visits(VisitFilter { site: None, before, limit: PORTION })?;
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
        Ok(self.messages(&fresh, &state.sites()?))
    }

    /// Quotas that were not reached before.
    fn quotas(&mut self, reached: &[Reached]) -> Vec<Message> {
        let site = |reached: &Reached| reached.site.as_ref().map(|(id, _)| *id);
        let now: BTreeSet<_> = reached.iter().map(site).collect();
        let before = std::mem::replace(&mut self.full, now);
        let fresh = reached.iter().filter(|reached| !before.contains(&site(reached)));
        fresh
            .map(|reached| {
                let at_s = clock::now_s();
                let (site, name) = reached.site.clone().unwrap_or((SiteId(0), String::new()));
                Message {
                    event: Happening::Quota,
                    id: format!("quota-{at_s}-{}", site.0),
                    at: rfc3339(at_s),
                    site,
                    name,
                    count: 0,
                    pages: Vec::new(),
                    detail: Some(reached.to_string()),
                }
            })
            .collect()
    }

    /// What visits mean, oldest first: changes together, troubles once until they are over.
    fn messages(&mut self, visits: &[VisitRow], sites: &[Site]) -> Vec<Message> {
        let mut told: BTreeMap<(SiteId, Happening), Vec<&VisitRow>> = BTreeMap::new();
        for visit in visits {
            match visit.outcome {
                Outcome::Changed => {
                    self.bad.remove(&visit.site);
                    told.entry((visit.site, Happening::Changed)).or_default().push(visit);
                }
                Outcome::Same | Outcome::NotModified => drop(self.bad.remove(&visit.site)),
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
        told.into_iter()
            .map(|((site, event), visits)| message(site, event, &visits, sites))
            .collect()
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
    Message {
        event,
        id: format!("{}-{}", last.map_or(0, |visit| visit.id), site.0),
        at: rfc3339(last.map_or_else(clock::now_s, |visit| visit.at_s)),
        site,
        name: sites.iter().find(|s| s.id == site).map_or(String::new(), |s| s.name.clone()),
        count: visits.len(),
        pages: visits.iter().take(MAX_PAGES).map(told).collect(),
        detail: None,
    }
}

async fn deliver(
    webhook: Webhook,
    url: CanonicalUrl,
    fetcher: Fetcher,
    mut waiting: mpsc::Receiver<Message>,
) {
    while let Some(message) = waiting.recv().await {
        let mut retries = RETRIES.iter();
        while let Err(why) = send(&webhook, &url, &fetcher, &message).await {
            let Some(pause) = retries.next() else {
                tracing::warn!("{url} was not told of {} ({why}); given up", message.id);
                break;
            };
            tracing::info!("{url} was not told of {} ({why}); again in {pause:?}", message.id);
            tokio::time::sleep(*pause).await;
        }
    }
}

async fn send(
    webhook: &Webhook,
    url: &CanonicalUrl,
    fetcher: &Fetcher,
    message: &Message,
) -> Result<(), String> {
    let body = serde_json::to_vec(message).map_err(|error| error.to_string())?;
    let signature = format!("sha256={}", hmac_sha256(webhook.secret.as_bytes(), &body));
    let addresses =
        if webhook.allow_private { AddressPolicy::AllowPrivate } else { AddressPolicy::Public };
    let request = FetchRequest {
        addresses,
        max_body_bytes: Some(MAX_ANSWER_BYTES),
        headers: vec![
            ("Content-Type".to_owned(), "application/json".to_owned()),
            ("X-Nenrin-Delivery".to_owned(), message.id.clone()),
            ("X-Nenrin-Signature".to_owned(), signature),
        ],
        post: Some(body.into()),
        ..FetchRequest::new(url.clone())
    };
    match fetcher.fetch(&request).await {
        Ok(answer) if (200..300).contains(&answer.status) => Ok(()),
        Ok(answer) => Err(format!("status {}", answer.status)),
        Err(failure) => Err(failure.to_string()),
    }
}

/// RFC 2104 with SHA-256, in hexadecimal.
fn hmac_sha256(key: &[u8], message: &[u8]) -> String {
    const BLOCK: usize = 64;
    let mut padded = [0_u8; BLOCK];
    if key.len() > BLOCK {
        padded[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        padded[..key.len()].copy_from_slice(key);
    }
    let keyed = |pad: u8| padded.map(|byte| byte ^ pad);
    let inner = Sha256::new().chain_update(keyed(0x36)).chain_update(message).finalize();
    let outer = Sha256::new().chain_update(keyed(0x5c)).chain_update(inner).finalize();
    outer.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
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
    fn the_signature_is_that_of_the_standard() {
        // RFC 4231, cases 2 and 6.
        assert_eq!(
            hmac_sha256(b"Jefe", b"what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        assert_eq!(
            hmac_sha256(&[0xaa; 131], b"Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
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
    }
}
