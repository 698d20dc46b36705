//! One request and its result, as the machine sees it.

use std::time::Duration;

use nenrin_extract::{Comparison, Fingerprint, MAX_SITEMAP_BYTES};
use nenrin_fetch::{AddressPolicy, BodyLimit, Road};
use nenrin_lang::{Reason, Undecoded};
use nenrin_state::{ContentMark, Outcome, PageRecord, SiteHeader, SiteId, Validators, VersionId};
use nenrin_structure::PageFragments;
use nenrin_urls::CanonicalUrl;
use serde::{Deserialize, Serialize};

/// What is received of a robots.txt. Twice what is read of it, so that a coded one is not cut within
/// that.
const ROBOTS_RECEIVED_BYTES: u64 = 1 << 20;
/// A page that does not exist is short.
const PROBE_MAX_BYTES: u64 = 16 << 20;
/// A robots.txt or a page that does not exist comes within this time: a slow connection brings a
/// megabyte in it.
const ASIDE_TIMEOUT: Duration = Duration::from_secs(2 * 60);

/// The number of one fetch, and of the content it brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A page.
    Page,
    /// A server's robots.txt.
    Robots,
    /// A page that does not exist, to see what the server shows for it.
    Probe,
    /// A sitemap at its usual path.
    Sitemap,
    /// What a site's log-in page looks like to a visitor who is not logged in.
    LoginPage,
}

/// One request to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchOrder {
    /// Its number.
    pub ticket: Ticket,
    /// Its purpose.
    pub purpose: Purpose,
    /// The URL.
    pub url: CanonicalUrl,
    /// Make the request conditional, if there are any.
    pub validators: Validators,
    /// Which addresses may be asked.
    pub addresses: AddressPolicy,
    /// Mark of the content last seen: the same content need not be read for links.
    pub known_mark: Option<ContentMark>,
    /// The page's last version, to compare with.
    pub previous: Option<VersionId>,
    /// Whether the answer's fingerprint is wanted.
    pub fingerprint: bool,
    /// Whether the page is known to be a sitemap, so that a text of URLs counts as one.
    pub sitemap: bool,
    /// Whether the blocks that it may share with other pages are wanted, should it have changed.
    pub blocks: bool,
    /// More request headers.
    pub headers: Vec<SiteHeader>,
    /// Parts of the page whose changes are noise: selector, and which of its elements (0 for all).
    pub ignored: Vec<(String, u32)>,
    /// How the request leaves this machine.
    pub road: Road,
    /// The site whose log-in it is made with, if it has one.
    pub site: Option<SiteId>,
    /// Whether it is made with a log-in; set where log-ins are known.
    pub with_login: bool,
    /// Whether strings in scripts that only look like URLs count as links.
    pub likely_urls: bool,
}

impl FetchOrder {
    /// A request for a file as it is, compared with nothing.
    pub fn plain(
        ticket: Ticket,
        purpose: Purpose,
        url: CanonicalUrl,
        addresses: AddressPolicy,
    ) -> Self {
        Self {
            ticket,
            purpose,
            url,
            validators: Validators::default(),
            addresses,
            known_mark: None,
            previous: None,
            fingerprint: false,
            sitemap: false,
            blocks: false,
            headers: Vec::new(),
            ignored: Vec::new(),
            road: Road::default(),
            site: None,
            with_login: false,
            likely_urls: false,
        }
    }

    /// A request for a page: what changed since its last version.
    pub(crate) fn of_page(
        ticket: Ticket,
        page: &PageRecord,
        wanted: &Wanted,
        addresses: AddressPolicy,
    ) -> Self {
        // A page that was gone is asked for whole: coming back is a version.
        let has_version = page.version.is_some() && page.outcome != Some(Outcome::Gone);
        let is_conditional = has_version && !wanted.whole;
        Self {
            validators: if is_conditional {
                page.validators.clone()
            } else {
                Validators::default()
            },
            known_mark: page.mark.filter(|_| has_version),
            previous: page.version,
            fingerprint: wanted.fingerprint,
            sitemap: wanted.sitemap,
            ..Self::plain(ticket, Purpose::Page, page.url.clone(), addresses)
        }
    }

    /// How much of the body is received, where that does not depend on the site.
    pub fn limit(&self) -> Option<BodyLimit> {
        match self.purpose {
            Purpose::Page => None,
            Purpose::Robots => Some(BodyLimit::Front(ROBOTS_RECEIVED_BYTES)),
            Purpose::Probe | Purpose::LoginPage => Some(BodyLimit::Whole(PROBE_MAX_BYTES)),
            Purpose::Sitemap => Some(BodyLimit::Whole(MAX_SITEMAP_BYTES as u64)),
        }
    }

    /// How long the request may take, where that does not depend on the site. Its server gets no
    /// other request meanwhile.
    pub fn timeout(&self) -> Option<Duration> {
        match self.purpose {
            Purpose::Page | Purpose::Sitemap => None,
            Purpose::Robots | Purpose::Probe | Purpose::LoginPage => Some(ASIDE_TIMEOUT),
        }
    }

    /// Whether a 304 may come.
    pub fn asks_conditionally(&self) -> bool {
        !self.validators.is_empty()
    }
}

/// What is wanted of an answer beyond its content.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// The whole page, changed or not.
    pub(crate) whole: bool,
    pub(crate) fingerprint: bool,
    pub(crate) sitemap: bool,
}

/// How a fetch ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Fetched {
    /// From the request to the last byte.
    pub elapsed_ms: i64,
    /// What came, or why nothing did.
    pub result: Result<Answer, Trouble>,
}

/// All that the machine learns of an exchange.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Whether it was asked for with a log-in.
    pub with_login: bool,
    /// The headers to send back next time.
    pub validators: Validators,
    /// The Last-Modified header as a time.
    pub last_modified_s: Option<i64>,
    /// Where a redirect leads, made absolute.
    pub location: Option<CanonicalUrl>,
    /// Seconds, from Retry-After.
    pub retry_after_s: Option<i64>,
    /// Content type without parameters.
    pub mime: String,
    /// Mark of the content.
    pub mark: Option<ContentMark>,
    /// Size of the body as received.
    pub body_bytes: u64,
    /// Links found.
    pub links: Vec<FoundLink>,
    /// What kind of scripts the page has, if it has any.
    pub scripts: Option<u64>,
    /// The body, for robots.txt alone.
    pub robots_body: Vec<u8>,
    /// Why the content could not be read for links, if it could not.
    pub unreadable: Option<Undecoded>,
    /// The bot guard's name, if it answered with a challenge instead of the page.
    pub challenge: Option<String>,
    /// What the page says, if it was wanted and is a page for people.
    pub fingerprint: Option<Fingerprint>,
    /// How it differs from the version before, if both can be compared.
    pub comparison: Option<Box<Comparison>>,
    /// The blocks that it may share with other pages, if they were wanted.
    pub blocks: Option<PageFragments>,
    /// Whether it is a sitemap or a feed.
    pub signal: Option<SignalKind>,
    /// The pages that it names then.
    pub announced: Vec<Announcement>,
}

/// A source of hints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SignalKind {
    /// A sitemap.
    Sitemap,
    /// RSS, Atom or JSON Feed.
    Feed,
}

/// A page that a sitemap or feed names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// The page.
    pub url: CanonicalUrl,
    /// When it changed, as is claimed.
    pub modified_s: Option<i64>,
}

/// A link on a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundLink {
    /// Where it leads.
    pub url: CanonicalUrl,
    /// How it is used.
    pub role: LinkRole,
}

/// How a page uses what it links to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkRole {
    /// Another page: one link deeper.
    Page,
    /// A frame: as deep as the page itself.
    Frame,
    /// An image, style, script and so on: part of the page.
    Embed,
    /// A page that a sitemap names.
    Listed,
    /// Another sitemap, in an index of sitemaps.
    Sitemap,
}

/// Why a fetch brought nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// What happened.
    pub reason: Reason,
    /// Whether the server, not the page, is to blame.
    pub of_server: bool,
    /// Whether we refused to ask (address guard).
    pub refused: bool,
}

#[cfg(test)]
mod tests {
    use nenrin_fetch::FetchOptions;

    use super::*;

    #[test]
    fn what_is_asked_for_aside_has_less_time_than_a_page_and_enough_for_a_slow_connection() {
        let url = CanonicalUrl::parse("http://a.example/robots.txt").unwrap();
        let timeout = |purpose| {
            let addresses = AddressPolicy::default();
            FetchOrder::plain(Ticket(1), purpose, url.clone(), addresses).timeout()
        };
        for purpose in [Purpose::Robots, Purpose::Probe] {
            let most = timeout(purpose).unwrap();
            assert!(most < FetchOptions::default().total_timeout / 4, "{purpose:?}: {most:?}");
            assert!(most >= Duration::from_secs(60), "{purpose:?}: {most:?}");
        }
        assert_eq!([Purpose::Page, Purpose::Sitemap].map(timeout), [None, None]);
    }
}
