//! Follows what happens and hands it on.

use std::{sync::Arc, time::Duration};

use nenrin_archive::{
    Reached,
    noticing::{Message, Watch, about_watch},
    watching::Watcher,
};
use nenrin_fetch::Fetcher;
use nenrin_lang::Lang;
use nenrin_state::{Site, State};
use nenrin_store::Store;
use nenrin_urls::UrlError;

use crate::{Letter, MailError, MailSettings, Mailer, Webhook, receivers::Post, webhooks::Queue};

/// How often the log is looked at.
const LOOK_PAUSE: Duration = Duration::from_secs(2);
/// The same where every partition has a log of its own.
const SHARED_PAUSE: Duration = Duration::from_secs(10);

/// Where people reach the archive, for links in messages. Without a slash at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Links {
    /// The interface.
    pub interface: String,
    /// The address of replay.
    pub replay: String,
}

/// A test letter, to be sent by a button or a command.
#[derive(Debug)]
pub struct SendTest;

impl SendTest {
    /// Sends a test letter.
    ///
    /// # Errors
    /// [`MailError`]; also where no server is set.
    pub async fn send(
        settings: &MailSettings,
        password: Option<String>,
        now_s: i64,
    ) -> Result<(), MailError> {
        let Some(mailer) = Mailer::new(settings, password)? else {
            let reason = "is empty: no e-mail is sent".to_owned();
            return Err(MailError::Setting { name: "server", reason });
        };
        let lang = settings.lang()?;
        let subject = lang.t("Nenrin: a test letter", "Nenrin：テストメール");
        let text = match lang {
            Lang::En => "E-mail from this archive works.",
            Lang::Ja => "このアーカイブからのメール送信は正常です。",
        };
        let html = crate::letter::page(&format!("<p>{text}</p>"), lang);
        mailer.send(&Letter::new(subject, format!("{text}\n"), html), now_s).await
    }
}

/// What happens in an archive, and the receivers of messages about it.
pub struct Notifier {
    state: Arc<dyn State>,
    /// The partitions whose logs are followed, and how often, where there are several.
    partitions: Vec<Arc<dyn State>>,
    pause: Duration,
    store: Arc<Store>,
    links: Links,
    queues: Vec<Queue>,
    post: Option<Post>,
    now_s: fn() -> i64,
}

impl Notifier {
    /// Follows this archive; nobody gets messages yet.
    pub fn new(state: Arc<dyn State>, store: Arc<Store>, links: Links, now_s: fn() -> i64) -> Self {
        let (partitions, queues) = (Vec::new(), Vec::new());
        Self { state, partitions, pause: LOOK_PAUSE, store, links, queues, post: None, now_s }
    }

    /// Follows the logs of the partitions of a shared archive, each of which is asked for by itself.
    #[must_use]
    pub fn with_partitions(self, partitions: Vec<Arc<dyn State>>) -> Self {
        Self { partitions, pause: SHARED_PAUSE, ..self }
    }

    /// Programs get messages. Must be called inside a runtime.
    ///
    /// # Errors
    /// [`UrlError`] where an address cannot be used.
    pub fn with_webhooks(
        mut self,
        webhooks: &[Webhook],
        fetcher: &Fetcher,
    ) -> Result<Self, UrlError> {
        let queues = webhooks.iter().map(|webhook| Queue::start(webhook, fetcher));
        self.queues = queues.collect::<Result<_, _>>()?;
        Ok(self)
    }

    /// People get letters, if a mail server is set.
    ///
    /// # Errors
    /// [`MailError`] where a setting cannot be used.
    pub fn with_mail(
        mut self,
        settings: &MailSettings,
        password: Option<String>,
    ) -> Result<Self, MailError> {
        if let Some(mailer) = Mailer::new(settings, password)? {
            self.post = Some(Post::new(mailer, settings.clone(), self.links.clone())?);
        }
        Ok(self)
    }

    /// Looks every few seconds what has happened, stores incidents and what watches reported, and
    /// hands all of it on. Ends only with its task.
    pub async fn follow(mut self, reached: impl Fn() -> Vec<Reached> + Send) {
        let mut watch = Watch::after(&*self.state).unwrap_or_else(|error| {
            tracing::warn!("earlier incidents cannot be read: {error}");
            Watch::default()
        });
        watch = watch.over(self.partitions.clone());
        let mut watcher = Watcher::over(self.partitions.clone());
        loop {
            let (state, store) = (self.state.clone(), self.store.clone());
            let (reached, now_s, replay) = (reached(), (self.now_s)(), self.links.replay.clone());
            let looked = tokio::task::spawn_blocking(move || {
                let found = watch.look_and_keep(&*state, &reached, now_s);
                let messages = found.unwrap_or_else(|error| {
                    tracing::warn!("the log of visits cannot be read: {error}");
                    Vec::new()
                });
                let reports = reports(&mut watcher, &*state, &store, &replay);
                (watch, watcher, messages, reports)
            });
            let Ok((seen, watched, mut messages, reports)) = looked.await else { return };
            (watch, watcher) = (seen, watched);
            messages.extend(reports);
            for message in &messages {
                self.queues.iter().for_each(|queue| queue.pass(message));
                self.post.iter_mut().for_each(|post| post.pass(message));
            }
            if let Some(post) = &mut self.post {
                post.send_waiting(&self.state, &self.store, (self.now_s)()).await;
            }
            tokio::time::sleep(self.pause).await;
        }
    }
}

fn reports(watcher: &mut Watcher, state: &dyn State, store: &Store, replay: &str) -> Vec<Message> {
    let found = watcher.look(state, store).and_then(|hits| {
        let sites = if hits.is_empty() { Vec::new() } else { state.sites()? };
        let of_page = |site: &&Site| site.removed.is_none();
        let mut messages = Vec::new();
        for hit in hits {
            let page = state.page(&hit.url)?;
            let own = page.and_then(|page| sites.iter().find(|site| site.id == page.site));
            let Some(site) = own.or_else(|| sites.iter().find(of_page)) else { continue };
            messages.push(about_watch(&hit, site, replay));
        }
        Ok(messages)
    });
    found.unwrap_or_else(|error| {
        tracing::warn!("watches cannot be evaluated: {error}");
        Vec::new()
    })
}
