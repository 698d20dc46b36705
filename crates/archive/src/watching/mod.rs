//! Watches: parts of pages that people marked, evaluated on every new version of their page.
//!
//! The log of visits is followed as it grows: a watch is evaluated when its page was visited, and all
//! of them at the start, so that nothing is missed while no process ran. What is reported is stored in
//! the state before anyone gets a message.

mod value;

use std::{collections::BTreeSet, sync::Arc};

use nenrin_extract::{TextBlock, charset, decode_content, text_blocks};
use nenrin_state::{
    Outcome, State, StateError, VersionQuery, VersionRow, Watch, WatchFinding, WatchHit,
    WatchTrouble, WatchedPart,
};
use nenrin_store::Store;
use nenrin_urls::CanonicalUrl;

use crate::{head, noticing::Log, read::stored_url, visiting::read_small};

use value::{MAX_PAGE_BYTES, is_reported, watched_text};
pub use value::{check_watch, first_number};

/// Versions of one page evaluated in one look, the newest.
const MAX_VERSIONS: usize = 20;
/// Watches evaluated in one look; the others follow in the next.
const MAX_EVALUATED: usize = 100;

/// How far the log was followed, and which pages are still to be evaluated.
#[derive(Default)]
pub struct Watcher {
    log: Log,
    waiting: BTreeSet<CanonicalUrl>,
    /// Nothing was watched at the last look.
    is_idle: bool,
}

impl Watcher {
    /// Follows the logs of these partitions.
    pub fn over(partitions: Vec<Arc<dyn State>>) -> Self {
        Self { log: Log::of(partitions), ..Self::default() }
    }

    /// Evaluates the watches whose pages were visited since the last look, stores what they found
    /// and reported, and returns the reports, oldest first.
    ///
    /// # Errors
    /// [`StateError`] of the state. What the store cannot read is reported as a problem of a watch.
    pub fn look(&mut self, state: &dyn State, store: &Store) -> Result<Vec<WatchHit>, StateError> {
        let watches = state.watches()?;
        self.follow(state, &watches)?;
        let mut reported = Vec::new();
        let mut evaluated = 0;
        let mut left = BTreeSet::new();
        for watch in watches.iter().filter(|watch| !watch.paused) {
            let is_new = watch.last.is_none() && watch.trouble.is_none();
            if !is_new && !self.waiting.contains(&watch.url) {
                continue;
            }
            if evaluated == MAX_EVALUATED {
                left.insert(watch.url.clone());
                continue;
            }
            evaluated += 1;
            let mut watch = watch.clone();
            let before = watch.clone();
            reported.extend(evaluate(state, store, &mut watch)?);
            if watch != before {
                state.keep_watch(&watch)?;
            }
        }
        self.waiting = left;
        if !reported.is_empty() {
            state.keep_watch_hits(&reported)?;
        }
        Ok(reported)
    }

    /// The pages that were visited since the last look; at the first one, all that are watched.
    fn follow(&mut self, state: &dyn State, watches: &[Watch]) -> Result<(), StateError> {
        if watches.is_empty() && self.is_idle {
            // Who begins to watch now is evaluated as new.
            return Ok(());
        }
        self.is_idle = watches.is_empty();
        let fresh = self.log.fresh(state)?;
        let watched: BTreeSet<&CanonicalUrl> = watches.iter().map(|watch| &watch.url).collect();
        if fresh.is_first || fresh.is_cut {
            self.waiting.extend(watched.into_iter().cloned());
            return Ok(());
        }
        let tells = |outcome| matches!(outcome, Outcome::Changed | Outcome::Gone);
        let urls = fresh.visits.into_iter().filter(|visit| tells(visit.outcome));
        self.waiting.extend(urls.map(|visit| visit.url).filter(|url| watched.contains(url)));
        Ok(())
    }
}

/// Evaluates a watch on the versions since the last one it saw, and notes in it what was found.
fn evaluate(
    state: &dyn State,
    store: &Store,
    watch: &mut Watch,
) -> Result<Vec<WatchHit>, StateError> {
    let url = stored_url(state, watch.url.clone())?;
    let page = state.page(&url)?;
    let is_gone = page.is_some_and(|page| page.outcome == Some(Outcome::Gone));
    let since = watch.last.as_ref().map(|last| last.at_s);
    let query =
        VersionQuery { from_s: since.map_or(i64::MIN, |at_s| at_s + 1), ..VersionQuery::default() };
    let versions = state.versions(&url.key(), query)?;
    // A new watch begins with what is there now.
    let shown = if since.is_some() { MAX_VERSIONS } else { 1 };
    let skipped = versions.len().saturating_sub(shown);
    let mut hits = Vec::new();
    for (_, row) in &versions[skipped..] {
        hits.extend(evaluate_version(store, watch, &url, row));
    }
    if is_gone {
        hits.extend(in_trouble(watch, WatchTrouble::PageGone, since.unwrap_or(watch.created_s)));
    } else if watch.trouble == Some(WatchTrouble::PageGone) {
        watch.trouble = None;
    }
    Ok(hits)
}

fn evaluate_version(
    store: &Store,
    watch: &mut Watch,
    url: &CanonicalUrl,
    row: &VersionRow,
) -> Option<WatchHit> {
    let before = watch.last.clone();
    let before_text = before.as_ref().and_then(|last| last.text.as_deref());
    let now = found(store, watch, url, row);
    let is_hit = now.as_ref().map_err(|trouble| *trouble).and_then(|now| {
        let reported = is_reported(watch, before_text, now.as_deref())?;
        Ok(reported && before.is_some())
    });
    let text = match &now {
        Ok(text) => text.clone(),
        Err(_) => before_text.map(str::to_owned),
    };
    watch.last = Some(WatchFinding { at_s: row.at_s, text: text.clone() });
    match is_hit {
        Err(trouble) => in_trouble(watch, trouble, row.at_s),
        Ok(is_hit) => {
            watch.trouble = None;
            is_hit.then(|| WatchHit {
                before_s: before.as_ref().map(|last| last.at_s),
                before: before.and_then(|last| last.text),
                after: text,
                ..report(watch, row.at_s)
            })
        }
    }
}

/// Notes that a watch cannot be evaluated; reported once.
fn in_trouble(watch: &mut Watch, trouble: WatchTrouble, at_s: i64) -> Option<WatchHit> {
    if watch.trouble.replace(trouble) == Some(trouble) {
        return None;
    }
    let before = watch.last.as_ref().and_then(|last| last.text.clone());
    Some(WatchHit { before, trouble: Some(trouble), ..report(watch, at_s) })
}

fn report(watch: &Watch, at_s: i64) -> WatchHit {
    WatchHit {
        id: 0,
        watch: watch.id,
        title: watch.title(),
        url: watch.url.clone(),
        at_s,
        before_s: None,
        before: None,
        after: None,
        trouble: None,
        mailed: false,
    }
}

/// The text of the watched part, `None` where it is not there, or why the page cannot be searched.
pub type Found = Result<Option<String>, WatchTrouble>;

/// What a watch finds in a version.
fn found(store: &Store, watch: &Watch, url: &CanonicalUrl, row: &VersionRow) -> Found {
    let (content_type, body) = decoded(store, row)?;
    watched_text(watch, url, content_type.as_deref(), &body)
}

fn decoded(store: &Store, row: &VersionRow) -> Result<(Option<String>, Vec<u8>), WatchTrouble> {
    if row.bytes > MAX_PAGE_BYTES as u64 {
        return Err(WatchTrouble::TooLarge);
    }
    let version =
        read_small(store, row.version, MAX_PAGE_BYTES as u64).ok_or(WatchTrouble::Unreadable)?;
    let field = |name| head::field(&version.head.response_head, name);
    let body = decode_content(field("content-encoding").as_deref(), &version.body, MAX_PAGE_BYTES)
        .map_err(|_| WatchTrouble::TooLarge)?
        .into_owned();
    Ok((field("content-type"), body))
}

/// What a watch would find in the newest version of its page, to try it: when that version was
/// received and the text. `None` where the page has no version.
///
/// # Errors
/// [`StateError`] of the state.
pub fn try_watch(
    state: &dyn State,
    store: &Store,
    watch: &Watch,
) -> Result<Option<(i64, Found)>, StateError> {
    let url = stored_url(state, watch.url.clone())?;
    let newest = state.version_as_of(&url.key(), i64::MAX)?;
    Ok(newest.map(|(_, row)| (row.at_s, found(store, watch, &url, &row))))
}

/// The blocks of the newest version of a page that people can point at; `None` where it has no
/// version or is not a page.
///
/// # Errors
/// [`StateError`] of the state.
pub fn page_blocks(
    state: &dyn State,
    store: &Store,
    url: &CanonicalUrl,
) -> Result<Option<Vec<TextBlock>>, StateError> {
    let url = stored_url(state, url.clone())?;
    let Some((_, row)) = state.version_as_of(&url.key(), i64::MAX)? else { return Ok(None) };
    let Ok((content_type, body)) = decoded(store, &row) else { return Ok(None) };
    let html = charset(content_type.as_deref(), &body).decode(&body).0;
    Ok(Some(text_blocks(&html)))
}

/// The watched part that has this text, where the text was chosen on a page: the block that is it, or
/// the smallest one that contains it; otherwise the words.
pub fn part_with_text(blocks: &[TextBlock], text: &str) -> WatchedPart {
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted = plain(text);
    let holds = blocks.iter().filter(|block| plain(&block.text).contains(&wanted));
    match holds.min_by_key(|block| block.text.len()) {
        Some(block) => WatchedPart::Selector { selector: block.selector.clone(), nth: block.nth },
        None => WatchedPart::Words(wanted.chars().take(Watch::TEXT_CHARS_MAX).collect()),
    }
}

#[cfg(test)]
mod tests;
