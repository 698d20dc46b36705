//! A first look at a site before it is registered: what robots.txt, the top page and the sitemap
//! say, in sentences.

use nenrin_crawl::{Answer, Appetite, FetchOrder, Purpose, Ticket, read_exchange};
use nenrin_fetch::{AddressPolicy, Exchange, MAX_ROBOTS_BYTES, RobotsRules};
use nenrin_urls::{CanonicalUrl, Scope, UrlError};
use serde::Serialize;

/// Links shown.
const LINKS: usize = 20;

/// An answer, or in words why there is none.
pub type Looked = std::result::Result<Exchange, String>;

/// What a first look at a site found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SitePreview {
    /// The top page: its status and type, or why it did not answer.
    pub top: String,
    /// What robots.txt says about the top page.
    pub robots: String,
    /// What the sitemap says.
    pub sitemap: String,
    /// The first links of the top page that are within the site.
    pub links: Vec<String>,
    /// Estimated number of pages.
    pub estimated_pages: Option<u64>,
    /// Estimated size of these pages in bytes.
    pub estimated_bytes: Option<u64>,
}

/// What may be visited by the robots.txt that was fetched: nothing where it could not be.
pub fn rules_of(robots: &Looked) -> RobotsRules {
    match robots {
        Ok(exchange) if exchange.status == 200 => {
            let body = exchange.body.front(MAX_ROBOTS_BYTES).unwrap_or_default();
            RobotsRules::parse(&body, "nenrin")
        }
        Ok(exchange) if exchange.status < 500 => RobotsRules::allow_all(),
        _ => RobotsRules::disallow_all(),
    }
}

/// Where sitemaps are by custom.
const CUSTOM_SITEMAP: &str = "/sitemap.xml";

impl SitePreview {
    /// Looks at a site: robots.txt, then what it allows of the top page and the sitemap. At most three
    /// requests, one after another, each made by `ask`.
    ///
    /// # Errors
    /// [`UrlError`] where the server has no such addresses.
    pub async fn look<F: Future<Output = Looked>>(
        top: &CanonicalUrl,
        ask: impl Fn(CanonicalUrl) -> F,
        now_s: i64,
    ) -> std::result::Result<Self, UrlError> {
        let server = top.server();
        let robots_url = server.url("/robots.txt")?;
        let robots = ask(robots_url.clone()).await;
        let rules = rules_of(&robots);
        let named = rules.sitemaps(&robots_url);
        let sitemap_url = match named.first() {
            Some(url) => url.clone(),
            None => server.url(CUSTOM_SITEMAP)?,
        };
        let allows = |url: &CanonicalUrl| rules.allows(url.path_and_query()).allowed;
        let forbidden = || Err("not fetched: robots.txt forbids it".to_owned());
        let (page, sitemap) = match &robots {
            // Where robots.txt cannot be reached, the rest cannot either.
            Err(why) => (Err(format!("not reached: {why}")), Err(why.clone())),
            Ok(_) => (
                if allows(top) { ask(top.clone()).await } else { forbidden() },
                if allows(&sitemap_url) { ask(sitemap_url.clone()).await } else { forbidden() },
            ),
        };
        let sitemap = (&sitemap_url, named.len(), &sitemap);
        Ok(Self::of((&robots, allows(top)), (top, &page), sitemap, now_s))
    }

    /// From the answers for robots.txt, the top page and the sitemap, of which robots.txt names
    /// `named`.
    pub fn of(
        (robots, is_allowed): (&Looked, bool),
        (top, page): (&CanonicalUrl, &Looked),
        (sitemap_url, named, sitemap): (&CanonicalUrl, usize, &Looked),
        now_s: i64,
    ) -> Self {
        let read = |url: &CanonicalUrl, purpose, looked: &Looked| match looked {
            Ok(exchange) => Ok(read(url, purpose, exchange, now_s)),
            Err(why) => Err(why.clone()),
        };
        let page = read(top, Purpose::Page, page);
        let sitemap = read(sitemap_url, Purpose::Sitemap, sitemap);
        Self {
            robots: robots_text(robots, is_allowed),
            sitemap: sitemap_text(sitemap_url, named, &sitemap),
            ..estimates(top, page, sitemap.ok())
        }
    }
}

fn robots_text(robots: &Looked, is_allowed: bool) -> String {
    match robots {
        Err(why) => format!("could not be fetched ({why}); nothing would be collected"),
        Ok(exchange) if exchange.status >= 500 => {
            format!("answers with status {}; nothing would be collected", exchange.status)
        }
        Ok(exchange) if exchange.status != 200 => "none: everything may be collected".to_owned(),
        Ok(_) if is_allowed => "allows the top page".to_owned(),
        Ok(_) => "forbids the top page".to_owned(),
    }
}

fn sitemap_text(
    url: &CanonicalUrl,
    named: usize,
    sitemap: &std::result::Result<Answer, String>,
) -> String {
    let more = match named {
        0 | 1 => String::new(),
        n => format!("; robots.txt names {} more", n - 1),
    };
    match sitemap {
        _ if named == 0 && !sitemap.as_ref().is_ok_and(is_sitemap) => {
            "robots.txt names none, and there is none at /sitemap.xml".to_owned()
        }
        Err(why) => format!("{url}: {why}{more}"),
        Ok(answer) if !is_sitemap(answer) => {
            format!("{url}: status {}, not a sitemap{more}", answer.status)
        }
        Ok(answer) if answer.announced.is_empty() => {
            format!("{url}: an index of {} sitemaps{more}", answer.links.len())
        }
        Ok(answer) => format!("{url}: {} pages{more}", answer.announced.len()),
    }
}

fn is_sitemap(answer: &Answer) -> bool {
    answer.signal.is_some()
}

fn read(url: &CanonicalUrl, purpose: Purpose, exchange: &Exchange, now_s: i64) -> Answer {
    let plain = FetchOrder::plain(Ticket(0), purpose, url.clone(), AddressPolicy::Public);
    let order = FetchOrder { sitemap: purpose == Purpose::Sitemap, ..plain };
    let read = read_exchange(&order, exchange, now_s, Appetite::full(), || None);
    read.ok().flatten().unwrap_or_default()
}

/// The top page, its links, and how much there seems to be: at least what is linked or listed, and
/// pages about as large as the first.
fn estimates(
    top: &CanonicalUrl,
    page: std::result::Result<Answer, String>,
    sitemap: Option<Answer>,
) -> SitePreview {
    let listed = sitemap.map_or(0, |answer| answer.announced.len() as u64);
    let answer = match page {
        Err(why) => {
            return SitePreview {
                top: why,
                estimated_pages: (listed > 0).then_some(listed),
                ..SitePreview::default()
            };
        }
        Ok(answer) => answer,
    };
    let tops = [top.clone()];
    let mut links: Vec<String> = (answer.links.iter())
        .filter(|link| Scope::Host.contains(&tops, &link.url))
        .map(|link| link.url.to_string())
        .collect();
    links.dedup();
    let linked = if links.is_empty() { 0 } else { links.len() as u64 + 1 };
    links.truncate(LINKS);
    let pages = linked.max(listed);
    SitePreview {
        top: match answer.location {
            Some(to) => format!("status {}, leads to {to}", answer.status),
            None => {
                format!("status {}, {}, {} bytes", answer.status, answer.mime, answer.body_bytes)
            }
        },
        links,
        estimated_pages: (pages > 0).then_some(pages),
        estimated_bytes: (pages > 0).then(|| pages.saturating_mul(answer.body_bytes)),
        ..SitePreview::default()
    }
}
