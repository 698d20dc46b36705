//! A first look at a site before it is registered: robots.txt, then what it allows of the top page
//! and the sitemap. At most three requests, one after another.

use std::time::Duration;

use nenrin_archive::preview::{Looked, SitePreview, rules_of};
use nenrin_fetch::{AddressPolicy, BodyLimit, FetchRequest, Fetcher, RobotsRules};
use nenrin_urls::{CanonicalUrl, UrlError};

use crate::clock;

/// How long one request may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// Where sitemaps are by custom.
const CUSTOM_SITEMAP: &str = "/sitemap.xml";

/// Looks at a site.
pub(super) async fn look(
    fetcher: &Fetcher,
    top: &CanonicalUrl,
    allow_private: bool,
) -> Result<SitePreview, UrlError> {
    let addresses = AddressPolicy::private_if(allow_private);
    let server = top.server();
    let robots_url = server.url("/robots.txt")?;
    let robots = ask(fetcher, &robots_url, addresses).await;
    let rules = rules_of(&robots);
    let named = rules.sitemaps(&robots_url);
    let sitemap_url = match named.first() {
        Some(url) => url.clone(),
        None => server.url(CUSTOM_SITEMAP)?,
    };
    let (page, sitemap) = match &robots {
        // Where robots.txt cannot be reached, the rest cannot either.
        Err(why) => (Err(format!("not reached: {why}")), Err(why.clone())),
        Ok(_) => (
            ask_if_allowed(fetcher, &rules, top, addresses).await,
            ask_if_allowed(fetcher, &rules, &sitemap_url, addresses).await,
        ),
    };
    let is_allowed = rules.allows(top.path_and_query()).allowed;
    let sitemap = (&sitemap_url, named.len(), &sitemap);
    Ok(SitePreview::of((&robots, is_allowed), (top, &page), sitemap, clock::now_s()))
}

async fn ask(fetcher: &Fetcher, url: &CanonicalUrl, addresses: AddressPolicy) -> Looked {
    // It is held in memory.
    let limit = Some(BodyLimit::Whole(16 << 20));
    let request = FetchRequest { addresses, limit, ..FetchRequest::new(url.clone()) };
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
) -> Looked {
    if !rules.allows(url.path_and_query()).allowed {
        return Err("not fetched: robots.txt forbids it".to_owned());
    }
    ask(fetcher, url, addresses).await
}
