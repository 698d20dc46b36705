//! A first look at a site before it is registered: robots.txt, then what it allows of the top page
//! and the sitemap. At most three requests, one after another.

use std::time::Duration;

use nenrin_crawl::{Answer, FetchOrder, Purpose, Ticket, read_exchange};
use nenrin_fetch::{AddressPolicy, Exchange, FetchRequest, Fetcher, RobotsRules};
use nenrin_urls::{CanonicalUrl, Scope, UrlError};
use nenrin_web::Preview;

use crate::clock;

/// Links shown.
const LINKS: usize = 20;
/// How long one request may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// The usual path of sitemaps.
const CUSTOM_SITEMAP: &str = "/sitemap.xml";

/// Looks at a site.
pub(super) async fn look(
    fetcher: &Fetcher,
    top: &CanonicalUrl,
    allow_private: bool,
) -> Result<Preview, UrlError> {
    let addresses = if allow_private { AddressPolicy::AllowPrivate } else { AddressPolicy::Public };
    let server = top.server();
    let robots_url = server.url("/robots.txt")?;
    let robots = ask(fetcher, &robots_url, addresses).await;
    let rules = rules(&robots);
    let named = rules.sitemaps(&robots_url);
    // Without robots.txt nothing is allowed; why it could not be fetched says more.
    let page = match &robots {
        Err(why) => Err(format!("not reached: {why}")),
        Ok(_) => ask_if_allowed(fetcher, &rules, top, addresses).await,
    };
    let sitemap_url = match named.first() {
        Some(url) => url.clone(),
        None => server.url(CUSTOM_SITEMAP)?,
    };
    let sitemap = ask_if_allowed(fetcher, &rules, &sitemap_url, addresses).await;
    let page = page.map(|exchange| read(top, Purpose::Page, &exchange));
    let sitemap = sitemap.map(|exchange| read(&sitemap_url, Purpose::Sitemap, &exchange));
    Ok(Preview {
        robots: robots_text(&robots, rules.allows(top.path_and_query()).allowed),
        sitemap: sitemap_text(&sitemap_url, named.len(), &sitemap),
        ..estimates(top, page, sitemap.ok())
    })
}

async fn ask(
    fetcher: &Fetcher,
    url: &CanonicalUrl,
    addresses: AddressPolicy,
) -> Result<Exchange, String> {
    let request = FetchRequest { addresses, ..FetchRequest::new(url.clone()) };
    match tokio::time::timeout(PATIENCE, fetcher.fetch(&request)).await {
        Ok(result) => result.map_err(|failure| failure.to_string()),
        Err(_) => Err("no answer within 20 seconds".to_owned()),
    }
}

async fn ask_if_allowed(
    fetcher: &Fetcher,
    rules: &RobotsRules,
    url: &CanonicalUrl,
    addresses: AddressPolicy,
) -> Result<Exchange, String> {
    if !rules.allows(url.path_and_query()).allowed {
        return Err("not fetched: robots.txt forbids it".to_owned());
    }
    ask(fetcher, url, addresses).await
}

fn rules(robots: &Result<Exchange, String>) -> RobotsRules {
    match robots {
        Ok(exchange) if exchange.status == 200 => RobotsRules::parse(&exchange.body, "nenrin"),
        Ok(exchange) if exchange.status < 500 => RobotsRules::allow_all(),
        _ => RobotsRules::disallow_all(),
    }
}

fn robots_text(robots: &Result<Exchange, String>, is_allowed: bool) -> String {
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

fn sitemap_text(url: &CanonicalUrl, named: usize, sitemap: &Result<Answer, String>) -> String {
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

fn read(url: &CanonicalUrl, purpose: Purpose, exchange: &Exchange) -> Answer {
    let plain = FetchOrder::plain(Ticket(0), purpose, url.clone(), false);
    let order = FetchOrder { sitemap: purpose == Purpose::Sitemap, ..plain };
    read_exchange(&order, exchange, clock::now_s(), || None)
}

/// The top page, its links, and how much there seems to be: at least what is linked or listed, and
/// pages about as large as the first.
fn estimates(top: &CanonicalUrl, page: Result<Answer, String>, sitemap: Option<Answer>) -> Preview {
    let listed = sitemap.map_or(0, |answer| answer.announced.len() as u64);
    let answer = match page {
        Err(why) => {
            return Preview {
                top: why,
                estimated_pages: (listed > 0).then_some(listed),
                ..Preview::default()
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
    Preview {
        top: match answer.location {
            Some(to) => format!("status {}, leads to {to}", answer.status),
            None => {
                format!("status {}, {}, {} bytes", answer.status, answer.mime, answer.body_bytes)
            }
        },
        links,
        estimated_pages: (pages > 0).then_some(pages),
        estimated_bytes: (pages > 0).then(|| pages.saturating_mul(answer.body_bytes)),
        ..Preview::default()
    }
}
