//! Webhooks: what happened goes to other programs as a signed message by POST, tried again where it
//! fails. Every message passes the fetcher and its address guard like any other request.

use std::{sync::Arc, time::Duration};

use nenrin_archive::noticing::{Happening, Message, Watch, signature};
use nenrin_fetch::{AddressPolicy, BodyLimit, FetchRequest, Fetcher};
use nenrin_state::State;
use nenrin_urls::CanonicalUrl;
use tokio::sync::mpsc;

use crate::{clock, config::Webhook, driver::DriverHandle, exit::usage};

/// How often the log is looked at.
const LOOK_PAUSE: Duration = Duration::from_secs(2);
/// Messages waiting for one receiver; when it is full, new ones are dropped and that is logged.
const QUEUE: usize = 256;
/// Pauses before a message is tried again.
const RETRIES: [Duration; 4] = [
    Duration::from_secs(2),
    Duration::from_secs(10),
    Duration::from_secs(60),
    Duration::from_secs(300),
];
/// What a receiver may answer; nobody reads it.
const MAX_ANSWER_BYTES: u64 = 64 << 10;

/// Starts to follow what happens and to send it to the receivers that the configuration names.
pub(crate) fn start(
    webhooks: &[Webhook],
    fetcher: &Fetcher,
    state: &Arc<dyn State>,
    driver: DriverHandle,
) -> anyhow::Result<()> {
    let mut queues = Vec::new();
    for webhook in webhooks {
        let url = CanonicalUrl::parse(&webhook.url).map_err(usage)?;
        let (queue, waiting) = mpsc::channel(QUEUE);
        tokio::spawn(deliver(webhook.clone(), url, fetcher.clone(), waiting));
        queues.push((webhook.events.clone(), queue));
    }
    let send = move |message: &Message| queues.iter().for_each(|queue| pass(queue, message));
    tokio::spawn(follow(state.clone(), driver, send));
    Ok(())
}

/// Looks every two seconds what has happened, keeps incidents in the state, and hands all of it to
/// `send`.
async fn follow(
    state: Arc<dyn State>,
    driver: DriverHandle,
    mut send: impl FnMut(&Message) + Send,
) {
    let mut watch = Watch::after(&*state).unwrap_or_else(|error| {
        tracing::warn!("earlier incidents cannot be read: {error}");
        Watch::default()
    });
    loop {
        let shared = state.clone();
        let reached = driver.figures().reached;
        let looked = tokio::task::spawn_blocking(move || {
            let found = watch.look_and_keep(&*shared, &reached, clock::now_s());
            (watch, found)
        });
        let Ok((seen, found)) = looked.await else { return };
        watch = seen;
        let messages = found.unwrap_or_else(|error| {
            tracing::warn!("the log of visits cannot be read: {error}");
            Vec::new()
        });
        messages.iter().for_each(&mut send);
        tokio::time::sleep(LOOK_PAUSE).await;
    }
}

type Queue = (Vec<Happening>, mpsc::Sender<Message>);

fn pass((events, queue): &Queue, message: &Message) {
    let is_wanted = events.is_empty() || events.contains(&message.event);
    if is_wanted && queue.try_send(message.clone()).is_err() {
        tracing::warn!(id = message.id, "a webhook's queue is full: event dropped");
    }
}

async fn deliver(
    webhook: Webhook,
    url: CanonicalUrl,
    fetcher: Fetcher,
    mut waiting: mpsc::Receiver<Message>,
) {
    while let Some(message) = waiting.recv().await {
        let (mut retries, id) = (RETRIES.iter(), &message.id);
        while let Err(why) = send(&webhook, &url, &fetcher, &message).await {
            let Some(pause) = retries.next() else {
                let tries = RETRIES.len() + 1;
                tracing::warn!(
                    "webhook {url}: event {id} not delivered, dropped after {tries} tries ({why})"
                );
                break;
            };
            tracing::info!("webhook {url}: event {id} not delivered ({why}); again in {pause:?}");
            tokio::time::sleep(*pause).await;
        }
    }
}

async fn send(
    webhook: &Webhook,
    url: &CanonicalUrl,
    fetcher: &Fetcher,
    message: &Message,
) -> Result<(), String> {
    let body = serde_json::to_vec(message).map_err(|error| error.to_string())?;
    let signature = format!("sha256={}", signature(webhook.secret.as_bytes(), &body));
    let addresses = AddressPolicy::private_if(webhook.allow_private);
    let request = FetchRequest {
        addresses,
        limit: Some(BodyLimit::Whole(MAX_ANSWER_BYTES)),
        headers: vec![
            ("Content-Type".to_owned(), "application/json".to_owned()),
            ("X-Nenrin-Delivery".to_owned(), message.id.clone()),
            ("X-Nenrin-Signature".to_owned(), signature),
        ],
        post: Some(body.into()),
        ..FetchRequest::new(url.clone())
    };
    match fetcher.fetch(&request).await {
        Ok(answer) if (200..300).contains(&answer.status) => Ok(()),
        Ok(answer) => Err(format!("status {}", answer.status)),
        Err(failure) => Err(failure.to_string()),
    }
}
