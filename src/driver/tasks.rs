//! Work that is done beside the loop, each in a task of its own.

use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, PoisonError};

use nenrin_archive::{Logins, Posts, ReadingThreads, links_of_stored, read_fetched, retried};
use nenrin_crawl::{
    Appetite, Event, FetchOrder, Fetched, Load, PlanWork, Purpose, Trouble, answer_load,
};
use nenrin_fetch::{Exchange, FetchFailure, FetchRequest, Fetcher, Share};
use nenrin_state::{PageLinks, State};
use nenrin_store::{Store, StoreError};
use tokio::sync::{mpsc::UnboundedSender, oneshot};

use super::{handle::Requests, happening::Happening};
use crate::clock;

/// A first version no longer than this is read where it was received: that takes less time than
/// waking another thread takes in all.
const READ_AT_ONCE_BYTES: u64 = 64 << 10;

/// Makes one request and reads its answer.
pub(super) async fn fetch(
    mut order: FetchOrder,
    fetcher: Fetcher,
    (store, threads, logins, posts): (Arc<Store>, ReadingThreads, Logins, Posts),
    under_way: Requests,
    sender: UnboundedSender<Happening>,
) {
    let ticket = order.ticket;
    let posted = posts.attach(&mut order, &store);
    let login = posted.and_then(|posted| Ok((logins.attach(&mut order, clock::now_s())?, posted)));
    let (login, posted) = match login {
        Ok((login, posted)) => (Ok(login), posted),
        Err(trouble) => (Err(trouble), None),
    };
    let own = order.headers.iter().map(|header| (header.name.clone(), header.value.clone()));
    let request = FetchRequest {
        validators: order.validators.clone(),
        addresses: order.addresses,
        limit: order.limit(),
        timeout: order.timeout(),
        headers: own.chain(login.iter().flatten().cloned()).collect(),
        road: order.road.clone(),
        ..FetchRequest::new(order.url.clone())
    };
    let request = match posted {
        Some((url, body)) => request.posting(url, body.content_type, body.bytes),
        None => request,
    };
    let began_ms = clock::now_ms();
    let mut result = match &login {
        Ok(_) => Ok(fetcher.fetch(&request).await),
        Err(trouble) => Err(trouble.clone()),
    };
    let mut cookies = None;
    if let Ok(Ok(exchange)) = &mut result {
        cookies = logins.strip(&order, exchange, clock::now_s());
    }
    let requests = || under_way.lock().unwrap_or_else(PoisonError::into_inner);
    requests().entry(ticket).and_modify(|request| request.phase = "reading");
    let (fetched, exchange, share) = match result {
        Ok(Ok(exchange)) => read(order, exchange, &fetcher, (store, threads)).await,
        // As when the store finds the disk full.
        Ok(Err(FetchFailure::Unkept { is_disk_full: true, .. })) => {
            let path = "a file for a body".into();
            let _ = sender.send(Happening::StoreFailed(StoreError::NoRoom { path }));
            return;
        }
        // It says nothing of the server, and the driver is about to end.
        Ok(Err(_)) if !fetcher.may_ask() => return,
        Ok(Err(failure)) => failed(clock::now_ms() - began_ms, Trouble::of(&failure)),
        Err(trouble) => failed(0, trouble),
    };
    let fetched = Box::new(fetched);
    let _ = sender.send(Happening::Fetched { ticket, fetched, exchange, share, cookies });
}

/// Reads the links of a stored version: it came from elsewhere, without its links.
pub(super) fn read_links(page: PageLinks, store: Arc<Store>, sender: UnboundedSender<Happening>) {
    tokio::task::spawn_blocking(move || {
        let (links, page) = (links_of_stored(&store, &page), page.page);
        let _ = sender.send(Happening::Event(Event::LinksRead { page, links }));
    });
}

/// Asks the state while its thread goes on: all that the answer needs is committed.
pub(super) fn load(load: Load, state: Arc<dyn State>, sender: UnboundedSender<Happening>) {
    tokio::task::spawn_blocking(move || {
        let answer = retried(|| answer_load(&*state, clock::now_s(), &load));
        let _ = sender.send(answer.map_or_else(Happening::StateFailed, Happening::Event));
    });
}

/// Works on a round's plan: on a large site this takes seconds, and other sites go on meanwhile.
pub(super) fn plan(work: PlanWork, sender: UnboundedSender<Happening>) {
    let round = work.round();
    tokio::spawn(async move {
        let done = tokio::task::spawn_blocking(move || work.carry_out()).await;
        let done = Box::new(done.unwrap_or_else(|_| PlanWork::failed(round)));
        let _ = sender.send(Happening::Event(Event::PlanDone(done)));
    });
}

/// What came, its content, and the memory for what was found in it.
type Came = (Fetched, Option<Arc<Exchange>>, Option<Share>);

fn failed(elapsed_ms: i64, trouble: Trouble) -> Came {
    (Fetched { elapsed_ms, result: Err(trouble) }, None, None)
}

/// Reads what came as soon as there is memory for it. The share is for what was found in it.
async fn read(
    order: FetchOrder,
    exchange: Exchange,
    fetcher: &Fetcher,
    (store, threads): (Arc<Store>, ReadingThreads),
) -> Came {
    let elapsed_ms = i64::try_from(exchange.elapsed.as_millis()).unwrap_or(i64::MAX);
    let is_compared = order.previous.is_some() && !exchange.body.is_empty();
    let at_once = !is_compared && exchange.body.len() <= READ_AT_ONCE_BYTES;
    let (order, exchange) = (Arc::new(order), Arc::new(exchange));
    for appetite in [Appetite::usual(&exchange), Appetite::full()] {
        let mut share = match fetcher.memory() {
            Some(memory) => memory.for_reading(appetite.memory_bytes()).await,
            None => None,
        };
        let (read_order, read, store) = (order.clone(), exchange.clone(), store.clone());
        let (done, answer) = oneshot::channel();
        let job = move || {
            if done.is_closed() {
                return;
            }
            let _ = done.send(read_fetched(&store, &read_order, &read, clock::now_s(), appetite));
        };
        match at_once && !appetite.is_large() {
            // If it fails, there is no answer, as on another thread.
            true => drop(panic::catch_unwind(AssertUnwindSafe(job))),
            false => threads.add(appetite.is_large(), job),
        }
        let answer = match answer.await {
            Ok(Ok(Some(answer))) => answer,
            Ok(Ok(None)) => continue,
            Ok(Err(error)) => return failed(elapsed_ms, Trouble::internal(error.to_string())),
            Err(gone) => return failed(elapsed_ms, Trouble::internal(gone.to_string())),
        };
        share.iter_mut().for_each(|share| share.shrink_to(answer.memory_bytes()));
        // Only the content of pages is ever stored.
        let content = (order.purpose == Purpose::Page).then_some(exchange);
        return (Fetched { elapsed_ms, result: Ok(answer) }, content, share);
    }
    failed(elapsed_ms, Trouble::internal("the body was not read".to_owned()))
}
