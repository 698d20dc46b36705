//! What the driver's parts say to its loop.

use std::sync::Arc;

use nenrin_archive::{NewCookies, Quotas};
use nenrin_crawl::{CrawlOptions, Event, Fetched, Ticket};
use nenrin_fetch::{Exchange, Fetcher, Share};
use nenrin_state::StateError;
use nenrin_store::StoreError;

/// What the driver's loop waits for.
pub(super) enum Happening {
    Event(Event),
    SitesChanged,
    Reload(Box<Reload>),
    LookAround,
    Fetched {
        ticket: Ticket,
        fetched: Box<Fetched>,
        exchange: Option<Arc<Exchange>>,
        share: Option<Share>,
        cookies: Option<Box<NewCookies>>,
    },
    StoreFailed(StoreError),
    StateFailed(StateError),
}

/// What may change while running.
pub(super) struct Reload {
    pub(super) fetcher: Fetcher,
    pub(super) options: Box<CrawlOptions>,
    pub(super) min_free_bytes: u64,
    pub(super) quotas: Quotas,
}
