//! The thread that stores what was fetched, many versions to one sync.

use std::sync::{
    atomic::{AtomicUsize, Ordering},
    mpsc,
};

use nenrin_crawl::{Event, StoreOrder};
use nenrin_fetch::{Exchange, Protocol};
use nenrin_store::{NewVersion, Store, StoreError, VersionId};
use tokio::sync::mpsc::UnboundedSender;

use super::happening::Happening;

/// Versions put before one sync at most.
const STORE_BATCH: usize = 256;

pub(super) fn serve_store(
    store: &Store,
    jobs: &mpsc::Receiver<(StoreOrder, Box<Exchange>)>,
    sender: &UnboundedSender<Happening>,
    waiting: &AtomicUsize,
) {
    while let Ok(first) = jobs.recv() {
        let batch: Vec<_> =
            std::iter::once(first).chain(jobs.try_iter().take(STORE_BATCH - 1)).collect();
        match store_batch(store, &batch) {
            Ok(events) => {
                waiting.fetch_sub(batch.len(), Ordering::Relaxed);
                for event in events {
                    let _ = sender.send(Happening::Event(event));
                }
            }
            Err(error) => {
                let _ = sender.send(Happening::StoreFailed(error));
                return;
            }
        }
    }
}

fn store_batch(
    store: &Store,
    batch: &[(StoreOrder, Box<Exchange>)],
) -> Result<Vec<Event>, StoreError> {
    let mut events = Vec::with_capacity(batch.len());
    for (order, exchange) in batch {
        let put = store.put(&NewVersion {
            url: &order.url,
            group: order.site.0,
            visited_at_s: order.visited_at_s,
            status: exchange.status,
            protocol: match exchange.protocol {
                Protocol::Http10 => "http/1.0",
                Protocol::Http11 => "http/1.1",
                Protocol::Http2 => "h2",
            },
            tls: exchange.tls.as_deref().map(tls_word).as_deref(),
            server_address: Some(exchange.server_address),
            request_head: &exchange.request_head,
            response_head: &exchange.response_head,
            body: &exchange.body,
            truncated: None,
            previous: order.previous.map(VersionId),
        })?;
        events.push(Event::Stored {
            ticket: order.ticket,
            version: put.id.0,
            stored_bytes: put.new_bytes,
        });
    }
    store.sync()?;
    Ok(events)
}

/// "tls/1.3", as archives write it, for what rustls calls `TLSv1_3`.
fn tls_word(tls: &str) -> String {
    let version = tls.strip_prefix("TLSv").map(|version| version.replace('_', "."));
    version.map_or_else(|| tls.to_owned(), |version| format!("tls/{version}"))
}
