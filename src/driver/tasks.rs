//! Work that is done beside the loop, each in a task of its own.

use std::sync::{Arc, PoisonError};

use nenrin_crawl::{
    Event, FetchOrder, Fetched, Load, PlanWork, PreviousBody, Purpose, Trouble, answer_load,
    read_exchange, stored_links,
};
use nenrin_fetch::{AddressPolicy, Exchange, FetchFailure, FetchRequest, Fetcher, Validators};
use nenrin_state::{PageLinks, State};
use nenrin_store::{Store, VersionId};
use tokio::sync::mpsc::UnboundedSender;

use super::{handle::Requests, happening::Happening, retry::retried};
use crate::clock;

/// Makes one request and reads its answer.
pub(super) fn fetch(
    order: FetchOrder,
    fetcher: Fetcher,
    store: Arc<Store>,
    under_way: Requests,
    sender: UnboundedSender<Happening>,
) {
    tokio::spawn(async move {
        let validators =
            Validators { etag: order.etag.clone(), last_modified: order.last_modified.clone() };
        let addresses = match order.allow_private {
            true => AddressPolicy::AllowPrivate,
            false => AddressPolicy::Public,
        };
        let request =
            FetchRequest { validators, addresses, ..FetchRequest::new(order.url.clone()) };
        let began_ms = clock::now_ms();
        let result = fetcher.fetch(&request).await;
        let ticket = order.ticket;
        let requests = || under_way.lock().unwrap_or_else(PoisonError::into_inner);
        requests().entry(ticket).and_modify(|request| request.phase = "reading");
        let read = tokio::task::spawn_blocking(move || read(&order, result, began_ms, &store));
        let (fetched, exchange) = read.await.unwrap_or_else(|panic| {
            let trouble = Trouble::internal(panic.to_string());
            (Fetched { elapsed_ms: 0, result: Err(trouble) }, None)
        });
        let _ = sender.send(Happening::Fetched { ticket, fetched: Box::new(fetched), exchange });
    });
}

/// Reads the links of a stored version: it came from elsewhere, without its links.
pub(super) fn read_links(page: PageLinks, store: Arc<Store>, sender: UnboundedSender<Happening>) {
    tokio::task::spawn_blocking(move || {
        // A version that cannot be read has no links; `verify` is for that.
        let stored = page.version.and_then(|version| store.read(VersionId(version)).ok());
        let links = stored
            .map(|version| stored_links(&page.url, &version.head.response_head, &version.body));
        let (page, links) = (page.page, links.unwrap_or_default());
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

fn read(
    order: &FetchOrder,
    result: Result<Exchange, FetchFailure>,
    began_ms: i64,
    store: &Store,
) -> (Fetched, Option<Box<Exchange>>) {
    match result {
        Ok(exchange) => {
            let elapsed_ms = i64::try_from(exchange.elapsed.as_millis()).unwrap_or(i64::MAX);
            // A version that cannot be read is not compared with; `verify` is for that.
            let previous = || {
                let version = store.read(VersionId(order.previous?)).ok()?;
                let response_head = version.head.response_head;
                Some(PreviousBody { response_head, body: version.body })
            };
            let answer = read_exchange(order, &exchange, clock::now_s(), previous);
            // Only the content of pages is ever stored.
            let content = (order.purpose == Purpose::Page).then(|| Box::new(exchange));
            (Fetched { elapsed_ms, result: Ok(answer) }, content)
        }
        Err(failure) => {
            let elapsed_ms = clock::now_ms() - began_ms;
            (Fetched { elapsed_ms, result: Err(Trouble::of(&failure)) }, None)
        }
    }
}
