//! Webhooks: what happened goes to other programs as a signed message by POST, tried again where it
//! fails. Every message passes the fetcher and its address guard like any other request.

use std::time::Duration;

use nenrin_archive::noticing::{Happening, Message, signature};
use nenrin_fetch::{AddressPolicy, BodyLimit, FetchRequest, Fetcher};
use nenrin_urls::{CanonicalUrl, UrlError};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

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
/// A receiver that takes longer did not get it: others of its messages wait.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// A program that gets messages about events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    /// Where the messages go.
    pub url: String,
    /// Both sides know it; every message is signed with it.
    pub secret: String,
    /// Which events are sent; all by default.
    #[serde(default)]
    pub events: Vec<Happening>,
    /// Whether it may be at a private or loopback address.
    #[serde(default)]
    pub allow_private: bool,
}

/// A receiver and the messages that wait for it.
pub(crate) struct Queue {
    events: Vec<Happening>,
    waiting: mpsc::Sender<Message>,
}

impl Queue {
    /// Starts to deliver to a receiver.
    pub(crate) fn start(webhook: &Webhook, fetcher: &Fetcher) -> Result<Self, UrlError> {
        let url = CanonicalUrl::parse(&webhook.url)?;
        let (sender, waiting) = mpsc::channel(QUEUE);
        tokio::spawn(deliver(webhook.clone(), url, fetcher.clone(), waiting));
        Ok(Self { events: webhook.events.clone(), waiting: sender })
    }

    pub(crate) fn pass(&self, message: &Message) {
        let is_wanted = self.events.is_empty() || self.events.contains(&message.event);
        if is_wanted && self.waiting.try_send(message.clone()).is_err() {
            tracing::warn!(id = message.id, "a webhook's queue is full: event dropped");
        }
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
        timeout: Some(ANSWER_TIMEOUT),
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
