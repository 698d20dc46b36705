//! E-mail that waits to be sent: what watches reported is in the state until it was sent, incidents
//! are in memory.

use std::sync::Arc;

use nenrin_archive::noticing::{Happening, Message};
use nenrin_lang::Lang;
use nenrin_state::{State, StateError, WatchHit};
use nenrin_store::Store;

use crate::{
    Letter, Links, MailError, MailSettings, Mailer, about_hits, about_incidents, digest,
    mail::DigestTime,
};

/// Reports in one letter.
const HITS_MAX: usize = 50;
/// Incidents that wait; newer ones are dropped.
const INCIDENTS_MAX: usize = 200;
/// Older reports are not sent any more: nobody wants last month's news when e-mail is set up.
const STALE_S: i64 = 2 * 86_400;
/// Pauses in seconds after letters that were not taken.
const RETRIES_S: [i64; 5] = [10, 60, 300, 900, 3_600];
const DAY_S: i64 = 86_400;

/// Letters to people.
pub(crate) struct Post {
    mailer: Mailer,
    settings: MailSettings,
    lang: Lang,
    links: Links,
    digest: Option<DigestTime>,
    /// Whether the digest's window was open when last looked; at the start it counts as open, so
    /// that a restart sends nothing twice.
    was_digest_time: bool,
    incidents: Vec<Message>,
    has_hits: bool,
    failures: usize,
    next_try_s: i64,
}

impl Post {
    pub(crate) fn new(
        mailer: Mailer,
        settings: MailSettings,
        links: Links,
    ) -> Result<Self, MailError> {
        let (lang, digest) = (settings.lang()?, settings.digest_time()?);
        Ok(Self {
            mailer,
            settings,
            lang,
            links,
            digest,
            was_digest_time: true,
            incidents: Vec::new(),
            has_hits: true,
            failures: 0,
            next_try_s: i64::MIN,
        })
    }

    pub(crate) fn pass(&mut self, message: &Message) {
        match message.event {
            Happening::Watch | Happening::WatchLost => self.has_hits = true,
            event if self.settings.wants(event) && self.incidents.len() < INCIDENTS_MAX => {
                self.incidents.push(message.clone());
            }
            _ => {}
        }
    }

    /// Sends what waits, unless it is a time of rest or the server refused a moment ago.
    pub(crate) async fn send_waiting(
        &mut self,
        state: &Arc<dyn State>,
        store: &Arc<Store>,
        now_s: i64,
    ) {
        if self.settings.is_quiet(now_s) || now_s < self.next_try_s {
            return;
        }
        let result = self.try_send(state, store, now_s).await;
        match result {
            Ok(()) => self.failures = 0,
            Err(error) => {
                let pause_s = RETRIES_S[self.failures.min(RETRIES_S.len() - 1)];
                self.failures += 1;
                self.next_try_s = now_s + pause_s;
                tracing::warn!("e-mail: {error}; again in {pause_s} seconds");
            }
        }
    }

    async fn try_send(
        &mut self,
        state: &Arc<dyn State>,
        store: &Arc<Store>,
        now_s: i64,
    ) -> Result<(), String> {
        if self.has_hits {
            self.send_hits(&**state, now_s).await?;
        }
        if !self.incidents.is_empty() {
            let letter = about_incidents(&self.incidents, &self.links, self.lang);
            self.deliver(&letter, now_s).await?;
            self.incidents.clear();
        }
        let is_time = self.digest.as_ref().is_some_and(|time| time.window.is_open(now_s));
        if is_time && !self.was_digest_time {
            let days = self.digest.as_ref().map_or(1, |time| time.days);
            let range = (now_s - days * DAY_S, now_s);
            let (state, store) = (state.clone(), store.clone());
            let (links, lang) = (self.links.clone(), self.lang);
            let write = move || digest(&state, &store, range, &links, lang);
            let written =
                tokio::task::spawn_blocking(write).await.map_err(|error| error.to_string())?;
            if let Some(letter) = written.map_err(|error| error.to_string())? {
                self.deliver(&letter, now_s).await?;
            }
        }
        self.was_digest_time = is_time;
        Ok(())
    }

    async fn send_hits(&mut self, state: &dyn State, now_s: i64) -> Result<(), String> {
        let text = |error: StateError| error.to_string();
        let mut waiting: Vec<WatchHit> =
            state.watch_hits().map_err(text)?.into_iter().filter(|hit| !hit.mailed).collect();
        waiting.reverse();
        let is_sent = |hit: &WatchHit| {
            let event = if hit.trouble.is_some() { Happening::WatchLost } else { Happening::Watch };
            hit.at_s >= now_s - STALE_S && self.settings.wants(event)
        };
        let (letters, others): (Vec<WatchHit>, Vec<WatchHit>) =
            waiting.into_iter().partition(is_sent);
        let done = |hits: &[WatchHit]| -> Vec<WatchHit> {
            hits.iter().map(|hit| WatchHit { mailed: true, ..hit.clone() }).collect()
        };
        if !others.is_empty() {
            state.keep_watch_hits(&done(&others)).map_err(text)?;
        }
        for some in letters.chunks(HITS_MAX) {
            self.deliver(&about_hits(some, &self.links, self.lang), now_s).await?;
            state.keep_watch_hits(&done(some)).map_err(text)?;
        }
        self.has_hits = false;
        Ok(())
    }

    async fn deliver(&self, letter: &Letter, now_s: i64) -> Result<(), String> {
        self.mailer.send(letter, now_s).await.map_err(|error| error.to_string())
    }
}
