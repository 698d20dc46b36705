//! Requests with a body: what is sent, and to where.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use nenrin_crawl::{FetchOrder, Trouble};
use nenrin_lang::Reason;
use nenrin_render::SentBody;
use nenrin_store::Store;
use nenrin_urls::{CanonicalUrl, PostedUrl, Validators};
use nenrin_warc::split_message;

use crate::head;

/// The most that waits to be sent.
const MAX_BYTES: usize = 32 << 20;

/// What the `User-Agent` of this program has, unless a site has its own.
const OWN_AGENT: &str = "nenrin/";

/// The bodies that renderings asked for. Clones share them.
///
/// A body is sent only if a page asked for it while it was rendered: now, or when its answer was first
/// received. No link and no imported capture leads to a request with a body.
#[derive(Debug, Clone, Default)]
pub struct Posts(Arc<Mutex<VecDeque<(CanonicalUrl, SentBody)>>>);

impl Posts {
    pub(crate) fn remember(&self, url: &CanonicalUrl, body: &SentBody) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(known, _)| known != url);
        known.push_back((url.clone(), body.clone()));
        while known.iter().map(|(_, body)| body.bytes.len()).sum::<usize>() > MAX_BYTES {
            known.pop_front();
        }
    }

    /// Where a request with a body goes and what it sends; `None` for a GET.
    ///
    /// # Errors
    /// Why it must not be made.
    pub fn attach(
        &self,
        order: &mut FetchOrder,
        store: &Store,
    ) -> Result<Option<(CanonicalUrl, SentBody)>, Trouble> {
        if !PostedUrl::is_one(&order.url) {
            return Ok(None);
        }
        // The answer to such a request has no validators of its own.
        order.validators = Validators::default();
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = known.iter().find(|(url, _)| *url == order.url).map(|(_, body)| body.clone());
        drop(known);
        let sent = PostedUrl::parse(&order.url).filter(|(method, _)| *method == "POST");
        match (sent, asked.or_else(|| sent_before(order, store))) {
            (Some((_, to)), Some(body)) => Ok(Some((to, body))),
            _ => Err(Trouble { reason: Reason::NothingToSend, of_server: false, refused: true }),
        }
    }
}

/// What was sent when the last version was received, if this program sent it.
fn sent_before(order: &FetchOrder, store: &Store) -> Option<SentBody> {
    let request = store.head(order.previous?).ok()?.request_head;
    let (request_head, body) = split_message(&request);
    let agent = head::field(request_head, "user-agent")?;
    let own = order.headers.iter().find(|header| header.name.eq_ignore_ascii_case("user-agent"));
    if !agent.contains(OWN_AGENT) && own.is_none_or(|own| own.value != agent) {
        return None;
    }
    let content_type = head::field(request_head, "content-type").unwrap_or_default();
    Some(SentBody { content_type, bytes: body.to_vec().into() })
}
