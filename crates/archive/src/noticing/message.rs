//! What is reported, as other programs and people read it.

use nenrin_lang::{IncidentDetail, Lang, Reason, serialize_incident_detail, serialize_reason};
use nenrin_state::{
    Incident, IncidentKind, ServerRecord, Site, SiteId, VisitRow, WatchHit, WatchId,
};
use nenrin_urls::CanonicalUrl;
use serde::{Deserialize, Serialize};

use crate::{
    quota::Reached,
    spans::{digits14, rfc3339},
};

/// Pages named in one message.
pub(super) const MAX_PAGES: usize = 100;

/// A kind of event that is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Happening {
    /// Pages have new versions.
    Changed,
    /// Visits of a site fail one after the other.
    Failing,
    /// A site refuses visits one after the other.
    Blocked,
    /// A quota is reached.
    Quota,
    /// A server is too slow for the visits that are due.
    Overflow,
    /// A sitemap or feed does not answer any more.
    SignalLost,
    /// A watch found what it waits for.
    Watch,
    /// A watch cannot be evaluated any more.
    WatchLost,
}

/// A message as it is sent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Message {
    /// What happened.
    pub event: Happening,
    /// The same for every try, so that a receiver can recognise a repetition.
    pub id: String,
    /// When it happened, as RFC 3339.
    pub at: String,
    /// When it happened, in seconds since the epoch.
    #[serde(skip)]
    pub at_s: i64,
    /// The site; number 0 is the archive as a whole.
    pub site: SiteId,
    /// The site's name.
    pub name: String,
    /// How many visits it is about; at most a hundred pages are named.
    pub count: usize,
    /// Pages that it is about.
    pub pages: Vec<NamedPage>,
    /// What it is about, where there are no pages to name.
    #[serde(
        flatten,
        serialize_with = "serialize_incident_detail",
        skip_serializing_if = "Option::is_none"
    )]
    pub detail: Option<IncidentDetail>,
    /// What a watch found, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watch: Option<WatchNote>,
}

/// What a watch found, with links to look at it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WatchNote {
    /// The watch.
    pub id: WatchId,
    /// Its title.
    pub title: String,
    /// The text before; none where the part was not there.
    pub before: Option<String>,
    /// The text now; none where the part is not there.
    pub after: Option<String>,
    /// Why the watch cannot be evaluated any more, in English, if it cannot.
    pub trouble: Option<&'static str>,
    /// Where to look at it: the comparison, or the archived page.
    pub link: String,
}

/// A page that a message names.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NamedPage {
    url: CanonicalUrl,
    at: String,
    status: u16,
    #[serde(flatten, serialize_with = "serialize_reason")]
    reason: Option<Reason>,
}

impl NamedPage {
    /// The page.
    pub fn url(&self) -> &CanonicalUrl {
        &self.url
    }
}

/// The message as an incident, unless it is a mere change.
pub(super) fn incident(message: &Message, cause: String) -> Option<Incident> {
    let event = match message.event {
        Happening::Changed | Happening::Watch | Happening::WatchLost => return None,
        Happening::Failing => IncidentKind::Failing,
        Happening::Blocked => IncidentKind::Blocked,
        Happening::Quota => IncidentKind::Quota,
        Happening::Overflow => IncidentKind::Overflow,
        Happening::SignalLost => IncidentKind::SignalLost,
    };
    let of_page = |page: &NamedPage| IncidentDetail::Visit {
        url: page.url.to_string(),
        status: page.status,
        reason: page.reason.clone(),
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
        detail,
        cause,
    })
}

/// A watch reported something.
pub fn about_watch(hit: &WatchHit, site: &Site, replay_origin: &str) -> Message {
    Message {
        event: if hit.trouble.is_some() { Happening::WatchLost } else { Happening::Watch },
        id: format!("watch-{}-{}", hit.watch.0, hit.at_s),
        at: rfc3339(hit.at_s),
        at_s: hit.at_s,
        site: site.id,
        name: site.name.clone(),
        count: 0,
        pages: Vec::new(),
        detail: None,
        watch: Some(WatchNote {
            id: hit.watch,
            title: hit.title.clone(),
            before: hit.before.clone(),
            after: hit.after.clone(),
            trouble: hit.trouble.map(|trouble| trouble.text(Lang::En)),
            link: watch_link(hit, replay_origin),
        }),
    }
}

/// Where a report of a watch can be looked at: the comparison of both versions, or the page.
pub fn watch_link(hit: &WatchHit, replay_origin: &str) -> String {
    let (at, url) = (digits14(hit.at_s), &hit.url);
    match hit.before_s {
        Some(before_s) => format!("{replay_origin}/diff/{}/{at}/{url}", digits14(before_s)),
        None => format!("{replay_origin}/web/{at}/{url}"),
    }
}

/// A quota is reached.
pub(super) fn quota(reached: &Reached, now_s: i64) -> Message {
    let (site, name) = reached.site.clone().unwrap_or((SiteId(0), String::new()));
    Message {
        event: Happening::Quota,
        id: format!("quota-{now_s}-{}", site.0),
        at: rfc3339(now_s),
        at_s: now_s,
        site,
        name,
        count: 0,
        pages: Vec::new(),
        detail: Some(reached.detail()),
        watch: None,
    }
}

/// A server is too slow for a site.
pub(super) fn overflow(site: &Site, server: &ServerRecord, percent: u32, at_s: i64) -> Message {
    let detail = IncidentDetail::Overflow { server: server.server.to_string(), percent };
    Message {
        event: Happening::Overflow,
        id: format!("overflow-{at_s}-{}-{}", server.id.0, site.id.0),
        at: rfc3339(at_s),
        at_s,
        site: site.id,
        name: site.name.clone(),
        count: 0,
        pages: Vec::new(),
        detail: Some(detail),
        watch: None,
    }
}

/// Visits that mean the same for a site, oldest first.
pub(super) fn about_visits(
    site: SiteId,
    event: Happening,
    visits: &[&VisitRow],
    sites: &[Site],
) -> Message {
    let last = visits.last();
    let named = |visit: &&VisitRow| NamedPage {
        url: visit.url.clone(),
        at: rfc3339(visit.at_s),
        status: visit.status,
        reason: visit.reason.clone(),
    };
    let at_s = last.map_or(0, |visit| visit.at_s);
    Message {
        event,
        id: format!("{}-{}", last.map_or(0, |visit| visit.id), site.0),
        at: rfc3339(at_s),
        at_s,
        site,
        name: sites.iter().find(|s| s.id == site).map_or(String::new(), |s| s.name.clone()),
        count: visits.len(),
        pages: visits.iter().take(MAX_PAGES).map(named).collect(),
        detail: None,
        watch: None,
    }
}
