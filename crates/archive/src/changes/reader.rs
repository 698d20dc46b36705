//! Titles and lines of changes, read from the content of versions.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use nenrin_extract::{
    ContentKind, ExtractLimits, changed_line, content_kind, decode_content, page_links,
};
use nenrin_state::{PageChange, PageFilter, PageId, State, StateError, Summary};
use nenrin_store::Store;
use nenrin_urls::{CanonicalUrl, VersionId};

use super::list::{ChangeFilter, ListedChange, ListedChanges, Wanted, list};
use crate::{head, visiting::read_small};

/// The largest stored body that is read for its title.
const READ_MAX_BYTES: u64 = 4 << 20;
/// And how large it may become when its content coding is undone.
const DECODED_MAX_BYTES: usize = 4 << 20;
/// Titles are cut here, in characters.
const TITLE_MAX_CHARS: usize = 160;
/// Summaries that are kept in the state.
const KEPT_MAX: usize = 1_000_000;
/// Summaries that are kept in memory as well, for archives that cannot be written.
const IN_MEMORY_MAX: usize = 4_000;
/// Versions that may wait to be read.
const WAITING_MAX: usize = 2_000;
/// Versions read before checking again what people wait for.
const TOGETHER: usize = 4;
/// Recent changes that are read before a person looks at them.
const RECENT_MAX: usize = 2_000;
/// Pause between versions that nobody waits for.
const REST: Duration = Duration::from_millis(50);
/// Pause when there is nothing to read.
const LONG_REST: Duration = Duration::from_secs(20);
/// The longest part of a pause in which the archive is held open.
const MOMENT: Duration = Duration::from_millis(250);
/// Long rests between two passes over all pages: an hour.
const RESTS: u32 = 180;

/// What is stored of a version, exactly as it was received.
#[derive(Debug, Clone, Default)]
pub struct Content {
    /// The head of the response.
    pub response_head: Vec<u8>,
    /// The body, with its content coding.
    pub body: Vec<u8>,
}

/// Where the content of versions is read.
pub trait Contents: Send + Sync {
    /// A version whose body is no larger than this, if it can be read.
    fn content(&self, version: VersionId, max_bytes: u64) -> Option<Content>;
}

impl Contents for Store {
    fn content(&self, version: VersionId, max_bytes: u64) -> Option<Content> {
        let version = read_small(self, version, max_bytes)?;
        Some(Content { response_head: version.head.response_head, body: version.body })
    }
}

/// Reads titles and lines of versions, each once, and keeps them in the state. After [`start`](Self::start) one
/// thread of its own reads, so that nobody waits longer than they want; before, the caller's does.
pub struct ChangeReader {
    state: Arc<dyn State>,
    contents: Arc<dyn Contents>,
    waiting: Mutex<Waiting>,
    moved: Condvar,
    is_started: AtomicBool,
}

#[derive(Default)]
struct Waiting {
    wanted: VecDeque<Wanted>,
    /// Being read at this moment.
    under_way: BTreeSet<VersionId>,
    read: BTreeMap<VersionId, Summary>,
}

impl Waiting {
    /// All that wait.
    fn versions(&self) -> BTreeSet<VersionId> {
        self.wanted.iter().map(|one| one.version).chain(self.under_way.iter().copied()).collect()
    }

    fn has(&self, version: VersionId) -> bool {
        self.under_way.contains(&version) || self.wanted.iter().any(|one| one.version == version)
    }
}

impl ChangeReader {
    /// A reader over the state and the content of an archive.
    pub fn new(state: Arc<dyn State>, contents: Arc<dyn Contents>) -> Arc<Self> {
        Arc::new(Self {
            state,
            contents,
            waiting: Mutex::default(),
            moved: Condvar::new(),
            is_started: AtomicBool::new(false),
        })
    }

    /// Starts the thread. It makes the index of changes, and when nobody waits, it reads recent changes and then
    /// the titles of all pages, slowly. It ends with the reader.
    pub fn start(self: &Arc<Self>) {
        if !self.is_started.swap(true, Ordering::Relaxed) {
            let this = Arc::downgrade(self);
            std::thread::spawn(move || work(&this));
        }
    }

    /// Changes, with as many titles and lines as can be read in this time; the others follow.
    pub fn list(
        &self,
        filter: &ChangeFilter,
        patience: Duration,
    ) -> Result<ListedChanges, StateError> {
        let mut listed = list(&*self.state, filter)?;
        let missing: Vec<Wanted> = listed
            .items
            .iter()
            .filter(|one| one.summary.is_none())
            .filter_map(ListedChange::wanted)
            .collect();
        let mut read = self.summaries(&missing, patience)?.into_iter();
        for one in &mut listed.items {
            if one.summary.is_none() && one.wanted().is_some() {
                one.summary = read.next().flatten();
            }
        }
        Ok(listed)
    }

    /// The newest change that a filter lets through, whenever it was.
    pub fn newest(&self, filter: ChangeFilter) -> Result<Option<PageChange>, StateError> {
        let any = ChangeFilter { from_s: 0, before: None, limit: 1, ..filter };
        Ok(list(&*self.state, &any)?.items.pop().map(|one| one.change))
    }

    /// What these versions say, as far as it can be read in this time; the others follow.
    pub fn summaries(
        &self,
        wanted: &[Wanted],
        patience: Duration,
    ) -> Result<Vec<Option<Summary>>, StateError> {
        let mut found = self.known(wanted)?;
        let missing: Vec<&Wanted> = wanted
            .iter()
            .zip(&found)
            .filter(|(_, known)| known.is_none())
            .map(|(w, _)| w)
            .collect();
        if missing.is_empty() {
            return Ok(found);
        }
        if !self.is_started.load(Ordering::Relaxed) {
            self.read(&missing.into_iter().cloned().collect::<Vec<_>>());
            return self.known(wanted);
        }
        let mut waiting = self.lock();
        let known = waiting.versions();
        for one in missing.iter().rev().filter(|one| !known.contains(&one.version)) {
            waiting.wanted.push_front((*one).clone());
        }
        waiting.wanted.truncate(WAITING_MAX);
        self.moved.notify_all();
        // They are read in this order, but for those that someone else waits for.
        let is_missing = |waiting: &mut Waiting| missing.iter().any(|one| waiting.has(one.version));
        let waited = self.moved.wait_timeout_while(waiting, patience, is_missing);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        found = self.known(wanted)?;
        Ok(found)
    }

    /// The body of a version without its content coding, if it is no larger than this and can be read.
    pub fn body(&self, version: VersionId, max_bytes: u64) -> Option<Vec<u8>> {
        let content = self.contents.content(version, max_bytes)?;
        let coding = head::field(&content.response_head, "content-encoding");
        let most = usize::try_from(max_bytes).unwrap_or(usize::MAX);
        Some(decode_content(coding.as_deref(), &content.body, most).ok()?.into_owned())
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known without reading.
    fn known(&self, wanted: &[Wanted]) -> Result<Vec<Option<Summary>>, StateError> {
        let versions: Vec<VersionId> = wanted.iter().map(|one| one.version).collect();
        let kept = self.state.summaries(&versions)?;
        let waiting = self.lock();
        let known = |(kept, one): (Option<Summary>, &Wanted)| {
            kept.filter(|summary| one.is_met_by(summary)).or_else(|| {
                waiting.read.get(&one.version).filter(|read| one.is_met_by(read)).cloned()
            })
        };
        Ok(kept.into_iter().zip(wanted).map(known).collect())
    }

    /// Reads versions now and keeps what they say.
    fn read(&self, wanted: &[Wanted]) {
        let read: Vec<_> = wanted
            .iter()
            .map(|one| (one.page, one.version, summary(&*self.contents, one)))
            .collect();
        // An archive that cannot be written is read all the same.
        if let Err(error) = self.state.keep_summaries(&read, KEPT_MAX) {
            tracing::debug!("titles are kept in memory alone: {error}");
        }
        let mut waiting = self.lock();
        if waiting.read.len() + read.len() > IN_MEMORY_MAX {
            waiting.read.clear();
        }
        waiting.read.extend(read.into_iter().map(|(_, version, summary)| (version, summary)));
    }

    /// Reads what people wait for; returns whether there was anything.
    fn serve(&self) -> bool {
        let together: Vec<Wanted> = {
            let mut waiting = self.lock();
            let count = waiting.wanted.len().min(TOGETHER);
            let together: Vec<Wanted> = waiting.wanted.drain(..count).collect();
            waiting.under_way.extend(together.iter().map(|one| one.version));
            together
        };
        if together.is_empty() {
            return false;
        }
        self.read(&together);
        self.lock().under_way.clear();
        self.moved.notify_all();
        true
    }

    /// Waits until something is wanted; says whether something is.
    fn rest(&self, pause: Duration) -> bool {
        let waiting = self.lock();
        let is_idle = |waiting: &mut Waiting| waiting.wanted.is_empty();
        let rested = self.moved.wait_timeout_while(waiting, pause, is_idle);
        !rested.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

/// Rests until something is wanted. The reader is held for moments only, so that the archive can be closed
/// meanwhile.
fn rest(this: &Weak<ChangeReader>, pause: Duration) {
    let mut left = pause;
    while !left.is_zero() && this.upgrade().is_some_and(|reader| !reader.rest(left.min(MOMENT))) {
        left = left.saturating_sub(MOMENT);
    }
}

fn work(this: &Weak<ChangeReader>) {
    let mut ahead = ReadAhead::default();
    if let Some(reader) = this.upgrade()
        && let Err(error) = reader.state.index_changes()
    {
        tracing::debug!("changes are listed without an index: {error}");
    }
    while let Some(reader) = this.upgrade() {
        if reader.serve() {
            continue;
        }
        let is_more = ahead.step(&reader).unwrap_or(false);
        drop(reader);
        rest(this, if is_more { REST } else { LONG_REST });
    }
}

/// What is read before a person looks at it: recent changes, newest first, then titles of pages.
#[derive(Default)]
struct ReadAhead {
    todo: VecDeque<Wanted>,
    recent: Option<ListedChanges>,
    recent_seen: usize,
    pages_after: Option<PageId>,
    /// Long rests until the titles of all pages are looked at again.
    rests: u32,
}

impl ReadAhead {
    /// Reads a few; returns whether there is more to read now.
    fn step(&mut self, reader: &ChangeReader) -> Result<bool, StateError> {
        if self.todo.is_empty() && !self.load(&*reader.state)? {
            return Ok(false);
        }
        let count = self.todo.len().min(TOGETHER);
        let together: Vec<Wanted> = self.todo.drain(..count).collect();
        if !together.is_empty() {
            reader.read(&together);
        }
        Ok(true)
    }

    /// Loads what is not read yet; returns whether there is anything left to look at now.
    fn load(&mut self, state: &dyn State) -> Result<bool, StateError> {
        let is_over = self.recent.as_ref().is_some_and(|last| last.next.is_none());
        if !is_over && self.recent_seen < RECENT_MAX {
            let before = self.recent.as_ref().and_then(|last| last.next);
            let filter = ChangeFilter {
                from_s: i64::MIN,
                to_s: i64::MAX,
                before,
                limit: 100,
                ..ChangeFilter::default()
            };
            let listed = list(state, &filter)?;
            self.recent_seen += listed.items.len().max(1);
            let unread = listed.items.iter().filter(|one| one.summary.is_none());
            self.todo.extend(unread.filter_map(ListedChange::wanted));
            if self.todo.is_empty() {
                // Older ones were read before.
                self.recent_seen = RECENT_MAX;
            }
            self.recent = Some(ListedChanges { items: Vec::new(), next: listed.next });
            return Ok(true);
        }
        if self.rests > 0 {
            *self = Self { rests: self.rests - 1, ..Self::default() };
            return Ok(false);
        }
        let filter = PageFilter { site: None, after: self.pages_after, limit: 500 };
        let pages = state.pages(filter)?;
        let Some(last) = pages.last() else {
            *self = Self { rests: RESTS, ..Self::default() };
            return Ok(false);
        };
        self.pages_after = Some(last.id);
        let versions: Vec<VersionId> = pages.iter().filter_map(|page| page.version).collect();
        let known = state.summaries(&versions)?;
        let unread = pages.into_iter().filter(|page| page.version.is_some()).zip(known);
        self.todo.extend(unread.filter(|(_, known)| known.is_none()).filter_map(|(page, _)| {
            let version = page.version?;
            let title_only = true;
            Some(Wanted { page: page.id, url: page.url, version, previous: None, title_only })
        }));
        Ok(true)
    }
}

/// Reads what a version says. One that cannot be read says nothing.
fn summary(contents: &dyn Contents, wanted: &Wanted) -> Summary {
    let nothing = Summary { previous: wanted.previous, ..Summary::default() };
    let Some(new) = Decoded::of(contents, &wanted.url, wanted.version) else { return nothing };
    let content_type = new.content_type.as_deref();
    let title = match new.kind {
        kind if kind.is_page() => {
            let limits = ExtractLimits::default();
            page_links(&wanted.url, kind, content_type, &new.body, &limits).title
        }
        _ => None,
    };
    let old = wanted.previous.and_then(|version| Decoded::of(contents, &wanted.url, version));
    let line = match (&old, wanted.previous) {
        // What cannot be compared is not new either.
        (None, Some(_)) => None,
        (old, _) => {
            let before = old.as_ref().map(|old| old.body.as_slice());
            changed_line(new.kind, content_type, before, &new.body)
        }
    };
    Summary {
        title: title.unwrap_or_default().chars().take(TITLE_MAX_CHARS).collect(),
        removed: line.as_ref().is_some_and(|line| line.removed),
        line: line.map(|line| line.text).unwrap_or_default(),
        previous: wanted.previous,
    }
}

struct Decoded {
    kind: ContentKind,
    content_type: Option<String>,
    body: Vec<u8>,
}

impl Decoded {
    fn of(contents: &dyn Contents, url: &CanonicalUrl, version: VersionId) -> Option<Self> {
        let content = contents.content(version, READ_MAX_BYTES)?;
        let [coding, content_type] =
            head::fields(&content.response_head, ["content-encoding", "content-type"]);
        let body = decode_content(coding.as_deref(), &content.body, DECODED_MAX_BYTES).ok()?;
        let kind = content_kind(content_type.as_deref(), url, &body);
        Some(Self { kind, content_type, body: body.into_owned() })
    }
}
