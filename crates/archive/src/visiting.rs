//! Between a fetcher, the store and the crawl machine: reading what came, and storing it.

use std::io::{self, Read};
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use nenrin_crawl::{
    Answer, Appetite, COMPARED_MAX_BYTES, FetchOrder, PreviousBody, StoreOrder, read_exchange,
    stored_links,
};
use nenrin_fetch::{Exchange, Protocol};
use nenrin_state::PageLinks;
use nenrin_store::{NewVersion, Put, Store, StoreError, Version, VersionId};
use nenrin_urls::CanonicalUrl;

/// The largest stored body that is read for its links.
pub(crate) const LINKS_FROM_MAX_BYTES: u64 = 16 << 20;

/// Storing a smaller body takes too little time to be stopped.
const STOPPABLE_BYTES: u64 = 1 << 20;

/// Reads an exchange as [`read_exchange`] does, compared with the version before in the store.
///
/// # Errors
/// What reading the body's file says.
pub fn read_fetched(
    store: &Store,
    order: &FetchOrder,
    exchange: &Exchange,
    now_s: i64,
    appetite: Appetite,
) -> io::Result<Option<Answer>> {
    // A version that cannot be read is not compared with; `verify` is for that.
    read_exchange(order, exchange, now_s, appetite, || {
        let version = read_small(store, order.previous?, COMPARED_MAX_BYTES as u64)?;
        Some(PreviousBody { response_head: version.head.response_head, body: version.body })
    })
}

/// Work on large bodies, one after the other on a thread of its own. What such work leaves with the
/// system's allocator stays with its thread: on many threads that would be many times as much.
#[derive(Debug, Clone)]
pub struct LargeWork(mpsc::Sender<Job>);

type Job = Box<dyn FnOnce() + Send>;

impl LargeWork {
    /// Starts the thread; it ends with the last clone.
    pub fn start() -> Self {
        let (sender, jobs) = mpsc::channel::<Job>();
        thread::spawn(move || {
            for job in jobs {
                // The caller that waits for it sees that it failed; the next job goes on.
                drop(panic::catch_unwind(AssertUnwindSafe(job)));
            }
        });
        Self(sender)
    }

    /// Does this when it is its turn.
    pub fn add(&self, job: impl FnOnce() + Send + 'static) {
        // The thread is there as long as this is.
        let _ = self.0.send(Box::new(job));
    }
}

/// The links of a stored version that came without them. One that cannot be read has none.
pub fn links_of_stored(store: &Store, page: &PageLinks) -> Vec<CanonicalUrl> {
    let version = page.version.and_then(|id| read_small(store, id, LINKS_FROM_MAX_BYTES));
    let links =
        version.map(|version| stored_links(&page.url, &version.head.response_head, &version.body));
    links.unwrap_or_default()
}

/// A version whose body is no larger than this, if it can be read.
pub(crate) fn read_small(store: &Store, id: VersionId, max_bytes: u64) -> Option<Version> {
    store.head(id).ok().filter(|head| head.body_bytes <= max_bytes)?;
    store.read(id).ok()
}

/// Stores what a fetch brought. A large body ends with [`StoreError::Stopped`] when `is_stopping`
/// becomes true.
///
/// # Errors
/// [`StoreError`] of the store.
pub fn put_exchange(
    store: &Store,
    order: &StoreOrder,
    exchange: &Exchange,
    is_stopping: &AtomicBool,
) -> Result<Put, StoreError> {
    let tls = exchange.tls.as_deref().map(tls_word);
    let version = NewVersion {
        url: &order.url,
        group: order.site.0,
        visited_at_s: order.visited_at_s,
        status: exchange.status,
        protocol: match exchange.protocol {
            Protocol::Http10 => "http/1.0",
            Protocol::Http11 => "http/1.1",
            Protocol::Http2 => "h2",
        },
        tls: tls.as_deref(),
        server_address: exchange.server_address,
        request_head: &exchange.request_head,
        response_head: &exchange.response_head,
        body: b"",
        truncated: None,
        previous: order.previous,
    };
    if exchange.body.is_spooled() || exchange.body.len() > STOPPABLE_BYTES {
        return store
            .put_read(&version, &mut Stoppable { body: exchange.body.reader(), is_stopping });
    }
    let body = exchange.body.front(usize::MAX).map_err(|e| StoreError::Stopped(e.to_string()))?;
    store.put(&NewVersion { body: &body, ..version })
}

/// A body whose reading ends when the program does.
struct Stoppable<'a, R> {
    body: R,
    is_stopping: &'a AtomicBool,
}

impl<R: Read> Read for Stoppable<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_stopping.load(Ordering::Relaxed) {
            return Err(io::Error::other("collecting stops"));
        }
        self.body.read(buffer)
    }
}

/// "tls/1.3", as archives write it, for what rustls calls `TLSv1_3`.
fn tls_word(tls: &str) -> String {
    let version = tls.strip_prefix("TLSv").map(|version| version.replace('_', "."));
    version.map_or_else(|| tls.to_owned(), |version| format!("tls/{version}"))
}
