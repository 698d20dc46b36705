//! A first look at a site before it is registered.

use std::time::Duration;

use nenrin_archive::preview::{Looked, SitePreview};
use nenrin_fetch::{AddressPolicy, BodyLimit, FetchRequest, Fetcher};
use nenrin_urls::{CanonicalUrl, UrlError};

use crate::clock;

/// How long one request may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Looks at a site.
pub(super) async fn look(
    fetcher: &Fetcher,
    top: &CanonicalUrl,
    allow_private: bool,
) -> Result<SitePreview, UrlError> {
    let addresses = AddressPolicy::private_if(allow_private);
    SitePreview::look(top, |url| ask(fetcher, url, addresses), clock::now_s()).await
}

async fn ask(fetcher: &Fetcher, url: CanonicalUrl, addresses: AddressPolicy) -> Looked {
    // It is held in memory.
    let limit = Some(BodyLimit::Whole(16 << 20));
    let request = FetchRequest { addresses, limit, ..FetchRequest::new(url) };
    match tokio::time::timeout(PATIENCE, fetcher.fetch(&request)).await {
        Ok(result) => result.map_err(|failure| failure.to_string()),
        Err(_) => Err("no answer within 20 seconds".to_owned()),
    }
}
