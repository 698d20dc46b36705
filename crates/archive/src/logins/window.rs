//! A person logs in, in a window whose requests are made by our fetcher.

use std::sync::Arc;

use nenrin_fetch::{AddressPolicy, FetchRequest, Fetcher, Road, header_fields};
use nenrin_render::{Answer, Answers, Asked, RenderError, RenderOptions};
use nenrin_state::Site;
use tokio::runtime::Handle;

/// The largest file that the window gets.
const FILE_MAX_BYTES: usize = 64 << 20;

/// Header fields that are of the browser's connection to us.
const OF_CONNECTION: [&str; 9] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// Opens a window with a site's log-in page, or else its first top page, inside a tokio runtime.
/// Returns the cookies of when the window was closed, as a `cookies.txt`.
///
/// # Errors
/// What the browser says.
pub async fn log_in_window(
    site: &Site,
    fetcher: Fetcher,
    options: &RenderOptions,
) -> Result<String, RenderError> {
    let conditions = &site.conditions;
    let page = conditions.login_page.as_ref().or(conditions.tops.first());
    let page = page.ok_or_else(|| RenderError::Gone("the site has no top page".to_owned()))?;
    let live = Live { fetcher, site: site.clone(), runtime: Handle::current() };
    nenrin_render::log_in(options, page, Arc::new(live)).await
}

/// The live web, asked as for the site's own visits.
struct Live {
    fetcher: Fetcher,
    site: Site,
    runtime: Handle,
}

impl Answers for Live {
    fn answer(&self, asked: &Asked) -> Answer {
        let (Some(whole), "GET" | "HEAD" | "POST") = (&asked.whole, asked.method.as_str()) else {
            return Answer::Nothing;
        };
        let (conditions, url) = (&self.site.conditions, asked.url.clone());
        let is_own = |(name, _): &&(String, String)| !OF_CONNECTION.contains(&name.as_str());
        let request = FetchRequest {
            addresses: AddressPolicy::private_if(conditions.allows_private(&url)),
            headers: whole.headers.iter().filter(is_own).cloned().collect(),
            post: (asked.method == "POST").then(|| whole.body.clone()),
            road: Road {
                proxy: conditions.road.proxy.clone(),
                source: conditions.road.source,
                any_certificate: conditions.road.any_certificate.is_some()
                    && conditions.is_own(&url),
            },
            ..FetchRequest::new(url)
        };
        let Ok(exchange) = self.runtime.block_on(self.fetcher.fetch(&request)) else {
            return Answer::Nothing;
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let fields = header_fields(&exchange.response_head);
        Answer::Stored {
            status: exchange.status,
            headers: fields.map(|(name, value)| (text(name), value.into_owned())).collect(),
            body: exchange.body.front(FILE_MAX_BYTES).unwrap_or_default().into_owned().into(),
        }
    }
}
