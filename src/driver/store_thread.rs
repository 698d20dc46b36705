//! The thread that stores what was fetched, many versions to one sync.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
    mpsc,
};

use nenrin_archive::put_exchange;
use nenrin_crawl::{Event, StoreOrder};
use nenrin_fetch::Exchange;
use nenrin_store::{Store, StoreError};
use tokio::sync::mpsc::UnboundedSender;

use super::happening::Happening;

/// Versions put before one sync at most.
const STORE_BATCH: usize = 256;

pub(super) fn serve_store(
    store: &Store,
    jobs: &mpsc::Receiver<(StoreOrder, Arc<Exchange>)>,
    sender: &UnboundedSender<Happening>,
    waiting: &AtomicUsize,
    is_stopping: &AtomicBool,
) {
    while let Ok(first) = jobs.recv() {
        let batch: Vec<_> =
            std::iter::once(first).chain(jobs.try_iter().take(STORE_BATCH - 1)).collect();
        let count = batch.len();
        match store_batch(store, batch, is_stopping) {
            Ok(events) => {
                waiting.fetch_sub(count, Ordering::Relaxed);
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

/// What a stop leaves out is due again.
fn store_batch(
    store: &Store,
    batch: Vec<(StoreOrder, Arc<Exchange>)>,
    is_stopping: &AtomicBool,
) -> Result<Vec<Event>, StoreError> {
    let mut events = Vec::with_capacity(batch.len());
    for (order, exchange) in batch {
        let put = match put_exchange(store, &order, &exchange, is_stopping) {
            Err(StoreError::Stopped(_)) if is_stopping.load(Ordering::Relaxed) => continue,
            put => put?,
        };
        events.push(Event::Stored {
            ticket: order.ticket,
            version: put.id.0,
            stored_bytes: put.new_bytes,
            is_known: put.whole_body_known,
        });
    }
    store.sync()?;
    Ok(events)
}
