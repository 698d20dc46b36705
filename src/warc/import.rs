//! Captures become versions with their dates, whatever the order in which they come.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
    sync::{OnceLock, atomic::Ordering, mpsc},
};

use nenrin_crawl::{content_mark, mime};
use nenrin_state::{
    ContentMark, Discovered, Outcome, PageId, PageRecord, PageUpdate, SiteId, VersionQuery,
    VersionRow, VisitCommit, VisitRow,
};
use nenrin_store::{Digest, NewVersion, Packing, Put, VersionId};
use nenrin_urls::CanonicalUrl;
use nenrin_warc::{Record, RevisitProfile, digest_matches, parse_date, split_message, status};

use super::{
    source::{Found, FoundCapture, RawCapture, Room, Source, Taking, read_all},
    unchanged::revisits,
};
use crate::archive::Archive;

/// Visits put before they are made durable and committed: pages have their records all over the
/// state, so that a commit of few writes as much as one of many. More than the store lets wait
/// would be of no use.
const BATCH: usize = 3500;
/// Bytes put before they are made durable and committed: what is done again after an interruption.
const BATCH_BYTES: u64 = 192 << 20;
/// Captures, or answers to them, that go to another thread together: waking it for each takes as
/// long as storing a small one.
const TOGETHER: usize = 8;
/// And what they may weigh.
const TOGETHER_BYTES: u64 = 256 << 10;
/// As many of those wait between two threads.
const WAITING: usize = 32;
/// Threads that check, compress and store captures.
const STORERS_MAX: usize = 8;
/// Visits that may be on their way to their commit: a batch that is filled, one that is being
/// committed, and what waits or is in the hands of a storer.
const UNCOMMITTED_MAX: usize = 2 * BATCH + (WAITING + STORERS_MAX) * TOGETHER;
/// Versions of a page that are looked at for the original of a revisit without a date.
const ORIGINALS_MAX: usize = 64;
/// Troubles that are kept for the answer; all are counted.
const TROUBLES_KEPT: usize = 10_000;

/// What an import came to.
#[derive(Debug, Default, serde::Serialize)]
pub(crate) struct Imported {
    /// Captures that became versions.
    pub(crate) versions: u64,
    /// Revisits that became visits.
    pub(crate) unchanged: u64,
    /// What the archive had already.
    pub(crate) known: u64,
    pub(crate) body_bytes: u64,
    pub(crate) stored_bytes: u64,
    /// Records of kinds that are not imported.
    pub(crate) skipped: BTreeMap<String, u64>,
    /// Records that could not be read or resolved.
    pub(crate) damaged: u64,
    pub(crate) troubles: Vec<String>,
}

/// Takes all files in. The site is asked for when the first capture comes; `tell` hears how many
/// bytes of the files were read.
///
/// One thread reads, some check, compress and store, and this one commits. All captures of a URL go
/// through the same thread, so that each finds the one before it.
pub(crate) fn import(
    archive: &Archive,
    sources: &[Source],
    is_trusting: bool,
    site: &mut (dyn FnMut(&CanonicalUrl) -> anyhow::Result<SiteId> + Send),
    tell: &mut dyn FnMut(u64),
) -> anyhow::Result<Imported> {
    let room = Room::new();
    let the_site = OnceLock::new();
    let mut importer = Importer::new(archive);
    std::thread::scope(|scope| {
        let (sender, told) = mpsc::sync_channel(WAITING);
        let (room, the_site) = (&room, &the_site);
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        let mut storers = Vec::new();
        for _ in 0..cores.min(STORERS_MAX) {
            let (captures, waiting) = mpsc::sync_channel::<Vec<RawCapture>>(WAITING);
            storers.push(Hand { captures, held: Vec::new(), held_bytes: 0 });
            let told = sender.clone();
            scope.spawn(move || {
                let mut storer = Storer::new(archive);
                for captures in waiting {
                    let Some(&site) = the_site.get() else { return };
                    let outcomes = storer.captures(site, captures, room, |capture| {
                        capture.open(sources, is_trusting)
                    });
                    if told.send(outcomes).is_err() {
                        return;
                    }
                }
            });
        }
        scope.spawn(move || {
            let mut dealing = Dealing { site, the_site, storers, told: sender };
            read_all(sources, room, &mut dealing);
        });
        let taken = importer.take_all(the_site, told, room, tell);
        room.close();
        taken
    })?;
    importer.revisits(sources)?;
    Ok(importer.imported)
}

/// What the committing thread hears.
enum Told {
    Visit(Box<Pending>),
    /// The archive had it already.
    Known,
    Found(Found),
}

/// Deals captures out among the storers, by URL.
struct Dealing<'a> {
    site: &'a mut (dyn FnMut(&CanonicalUrl) -> anyhow::Result<SiteId> + Send),
    the_site: &'a OnceLock<SiteId>,
    storers: Vec<Hand>,
    told: mpsc::SyncSender<Vec<anyhow::Result<Told>>>,
}

/// What goes to one storer.
struct Hand {
    captures: mpsc::SyncSender<Vec<RawCapture>>,
    held: Vec<RawCapture>,
    held_bytes: u64,
}

impl Hand {
    fn add(&mut self, capture: RawCapture) -> Option<()> {
        self.held_bytes += capture.bytes();
        self.held.push(capture);
        match self.held.len() >= TOGETHER || self.held_bytes >= TOGETHER_BYTES {
            true => self.deal(),
            false => Some(()),
        }
    }

    fn deal(&mut self) -> Option<()> {
        self.held_bytes = 0;
        let held = std::mem::take(&mut self.held);
        if held.is_empty() { Some(()) } else { self.captures.send(held).ok() }
    }
}

impl Taking for Dealing<'_> {
    fn capture(&mut self, capture: RawCapture) -> Option<()> {
        if self.the_site.get().is_none() {
            match (self.site)(&capture.url) {
                Ok(site) => drop(self.the_site.set(site)),
                Err(error) => {
                    // Nothing can be taken in: the error is the last word.
                    let _unheard = self.told.send(vec![Err(error)]);
                    return None;
                }
            }
        }
        let mut hasher = DefaultHasher::new();
        capture.url.as_str().hash(&mut hasher);
        let storer = hasher.finish() as usize % self.storers.len();
        self.storers[storer].add(capture)
    }

    fn other(&mut self, found: Found) -> Option<()> {
        self.told.send(vec![Ok(Told::Found(found))]).ok()
    }

    fn hold_nothing(&mut self) -> Option<()> {
        self.storers.iter_mut().try_for_each(Hand::deal)
    }
}

/// A URL, hashed: comparing and keeping millions of them would take longer.
type UrlMark = [u8; 16];

fn url_mark(url: &CanonicalUrl) -> UrlMark {
    mark_of(&Digest::of(url.as_str().as_bytes())).0
}

/// A capture: URL, time, status and content.
type CaptureMark = (UrlMark, i64, u16, Digest);

/// What was stored and may not be committed yet.
#[derive(Default)]
struct Recent {
    order: VecDeque<CaptureMark>,
    captures: BTreeSet<CaptureMark>,
    /// The last version of each page.
    last: BTreeMap<UrlMark, VersionId>,
}

impl Recent {
    fn remember(&mut self, capture: CaptureMark, version: VersionId) {
        self.last.insert(capture.0, version);
        self.order.push_back(capture);
        self.captures.insert(capture);
        if self.order.len() > UNCOMMITTED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.captures.remove(&oldest);
            if !self.has(oldest.0) {
                self.last.remove(&oldest.0);
            }
        }
    }

    fn has(&self, url: UrlMark) -> bool {
        let first = (url, i64::MIN, 0, Digest([0; 32]));
        self.captures.range(first..).next().is_some_and(|capture| capture.0 == url)
    }
}

struct Pending {
    url: CanonicalUrl,
    at_s: i64,
    status: u16,
    outcome: Outcome,
    body_bytes: u64,
    update: PageUpdate,
    version: Option<(Put, String)>,
}

/// Checks captures against what the archive has, and stores those that are new.
struct Storer<'a> {
    archive: &'a Archive,
    recent: Recent,
}

impl<'a> Storer<'a> {
    fn new(archive: &'a Archive) -> Self {
        Self { archive, recent: Recent::default() }
    }

    /// Opens and stores captures that came together.
    fn captures(
        &mut self,
        site: SiteId,
        captures: Vec<RawCapture>,
        room: &Room,
        open: impl Fn(RawCapture) -> Result<FoundCapture, String>,
    ) -> Vec<anyhow::Result<Told>> {
        let urls: Vec<&CanonicalUrl> = captures.iter().map(|capture| &capture.url).collect();
        let pages = match self.archive.state.pages_of(&urls) {
            Ok(pages) => pages,
            Err(error) => return vec![Err(error.into())],
        };
        let mut buffers = Vec::with_capacity(2 * captures.len());
        let mut outcomes = Vec::with_capacity(captures.len());
        for (capture, page) in captures.into_iter().zip(pages) {
            let bytes = capture.bytes();
            outcomes.push(match open(capture) {
                Ok(capture) => {
                    let outcome = self.capture(site, &capture, page);
                    buffers.extend(capture.into_buffers());
                    outcome
                }
                Err(damage) => Ok(Told::Found(Found::Damaged(damage))),
            });
            room.give_back(bytes);
        }
        room.give_buffers(buffers);
        outcomes
    }

    fn capture(
        &mut self,
        site: SiteId,
        capture: &FoundCapture,
        page: Option<PageRecord>,
    ) -> anyhow::Result<Told> {
        let body = capture.body();
        // Only what may be known is worth hashing twice.
        let may_be_known = page.is_some() || self.recent.last.contains_key(&url_mark(&capture.url));
        if may_be_known
            && self.is_known(
                page.as_ref(),
                &capture.url,
                capture.at_s,
                capture.status,
                Digest::of(body),
            )?
        {
            return Ok(Told::Known);
        }
        let previous = self.previous(&capture.url, page.as_ref());
        let version = NewVersion {
            url: &capture.url,
            group: site.0,
            visited_at_s: capture.at_s,
            status: capture.status,
            protocol: &capture.protocol,
            tls: capture.tls.as_deref(),
            server_address: capture.server_address,
            request_head: &capture.request_head,
            response_head: &capture.response_head,
            body,
            truncated: capture.truncated.as_deref(),
            previous,
        };
        Ok(Told::Visit(Box::new(self.put(&version, capture.packing(), page)?)))
    }

    fn previous(&self, url: &CanonicalUrl, page: Option<&PageRecord>) -> Option<VersionId> {
        let known = || page.and_then(|page| page.version).map(VersionId);
        self.recent.last.get(&url_mark(url)).copied().or_else(known)
    }

    /// Whether this very capture was stored before.
    fn is_known(
        &self,
        page: Option<&PageRecord>,
        url: &CanonicalUrl,
        at_s: i64,
        status: u16,
        digest: Digest,
    ) -> anyhow::Result<bool> {
        if self.recent.captures.contains(&(url_mark(url), at_s, status, digest)) {
            return Ok(true);
        }
        if page.is_none_or(|page| page.version.is_none()) {
            return Ok(false);
        }
        let then = VersionQuery { from_s: at_s, to_s: at_s, limit: usize::MAX };
        for (found, row) in self.archive.state.versions(&url.key(), then)? {
            let is_same = found == *url
                && row.status == status
                && self.archive.store.head(VersionId(row.version))?.digest == digest;
            if is_same {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Stores a version.
    fn put(
        &mut self,
        version: &NewVersion<'_>,
        packing: Packing<'_>,
        page: Option<PageRecord>,
    ) -> anyhow::Result<Pending> {
        let put = self.archive.store.put_packed(version, packing)?;
        let header = |name: &str| {
            nenrin_fetch::header_fields(version.response_head)
                .find(|(found, _)| found.eq_ignore_ascii_case(name.as_bytes()))
                .map(|(_, value)| String::from_utf8_lossy(&value).into_owned())
        };
        let location = header("location").and_then(|to| version.url.join(&to).ok());
        let location = location.as_ref().map(|url| url.as_str());
        let mark = match version.status {
            300..=399 => content_mark(version.status, version.body, location),
            _ => mark_of(&put.digest),
        };
        let is_same = page.as_ref().is_some_and(|page| {
            page.mark == Some(mark)
                && page.visited_s.is_some_and(|last| last <= version.visited_at_s)
        });
        let outcome = match version.status {
            404 | 410 => Outcome::Gone,
            200..=399 if is_same => Outcome::Same,
            200..=399 => Outcome::Changed,
            _ => Outcome::Failed,
        };
        let body_bytes = version.body.len() as u64;
        let update = match outcome {
            Outcome::Changed | Outcome::Same => PageUpdate {
                etag: header("etag").filter(|tag| tag.len() <= 256),
                last_modified: header("last-modified").filter(|date| date.len() <= 64),
                bytes: body_bytes,
                ..kept(page.as_ref(), Some(mark))
            },
            _ => kept(page.as_ref(), None),
        };
        let key = (url_mark(version.url), version.visited_at_s, version.status, put.digest);
        self.recent.remember(key, put.id);
        Ok(Pending {
            url: version.url.clone(),
            at_s: version.visited_at_s,
            status: version.status,
            outcome,
            body_bytes,
            update,
            version: Some((put, mime(header("content-type").as_deref()))),
        })
    }
}

struct Importer<'a> {
    archive: &'a Archive,
    site: Option<SiteId>,
    imported: Imported,
    /// File and offset of every revisit record.
    revisits: Vec<(u32, u64)>,
    /// Stores the versions that revisits stand for.
    storer: Storer<'a>,
    visits: Vec<Pending>,
    visits_bytes: u64,
    /// Unchanged visits that are not committed yet.
    unchanged: BTreeSet<(CanonicalUrl, i64)>,
}

impl<'a> Importer<'a> {
    fn new(archive: &'a Archive) -> Self {
        Self {
            archive,
            site: None,
            imported: Imported::default(),
            revisits: Vec::new(),
            storer: Storer::new(archive),
            visits: Vec::new(),
            visits_bytes: 0,
            unchanged: BTreeSet::new(),
        }
    }

    fn take_all(
        &mut self,
        the_site: &OnceLock<SiteId>,
        told: mpsc::Receiver<Vec<anyhow::Result<Told>>>,
        room: &Room,
        tell: &mut dyn FnMut(u64),
    ) -> anyhow::Result<()> {
        for told in told {
            self.site = the_site.get().copied();
            told.into_iter().try_for_each(|told| self.hear(told?))?;
            tell(room.read_bytes.load(Ordering::Relaxed));
        }
        self.commit()
    }

    fn hear(&mut self, told: Told) -> anyhow::Result<()> {
        match told {
            Told::Visit(pending) => return self.remember(*pending),
            Told::Known => self.imported.known += 1,
            Told::Found(Found::Revisit { source, offset }) => {
                self.revisits.push((source as u32, offset));
            }
            Told::Found(Found::Skipped(why)) => {
                *self.imported.skipped.entry(why).or_default() += 1;
            }
            Told::Found(Found::Damaged(what)) => self.trouble(what),
        }
        Ok(())
    }

    fn trouble(&mut self, what: String) {
        tracing::warn!("not imported: {what}");
        self.imported.damaged += 1;
        if self.imported.troubles.len() < TROUBLES_KEPT {
            self.imported.troubles.push(what);
        }
    }

    fn remember(&mut self, pending: Pending) -> anyhow::Result<()> {
        if let Some((put, _)) = &pending.version {
            self.imported.versions += 1;
            self.imported.body_bytes += pending.body_bytes;
            self.imported.stored_bytes += put.new_bytes;
        }
        self.visits_bytes += pending.body_bytes;
        self.visits.push(pending);
        match self.visits.len() >= BATCH || self.visits_bytes >= BATCH_BYTES {
            true => self.commit(),
            false => Ok(()),
        }
    }

    fn commit(&mut self) -> anyhow::Result<()> {
        let visits = std::mem::take(&mut self.visits);
        self.visits_bytes = 0;
        self.unchanged.clear();
        let Some(site) = self.site.filter(|_| !visits.is_empty()) else { return Ok(()) };
        self.archive.store.sync()?;
        let first_s = visits.iter().map(|p| p.at_s).min().unwrap_or_default();
        let taken = visits.into_iter().map(|pending| {
            let url = pending.url.clone();
            (Discovered { url, depth: 2, hops: 0, due_s: None }, visit(pending, site))
        });
        self.archive.state.take_in(taken.collect(), first_s)?;
        Ok(())
    }

    /// The second pass: every capture is in, so a revisit finds its original wherever it lay.
    fn revisits(&mut self, sources: &[Source]) -> anyhow::Result<()> {
        let revisits = std::mem::take(&mut self.revisits);
        let mut open: Option<(u32, _)> = None;
        for (source, offset) in revisits {
            if open.as_ref().is_none_or(|(number, _)| *number != source) {
                open = Some((source, sources[source as usize].reader()?));
            }
            let Some((_, reader)) = &mut open else { continue };
            reader.seek(offset)?;
            let Some(record) = reader.next_record()? else { continue };
            if let Err(reason) = self.revisit(&record)? {
                let name = sources[source as usize].name();
                self.trouble(format!("{name}: the revisit at byte {offset}: {reason}"));
            }
        }
        self.commit()
    }

    fn revisit(&mut self, record: &Record) -> anyhow::Result<Result<(), String>> {
        let url = record.target_uri().and_then(|uri| CanonicalUrl::parse(uri).ok());
        let (Some(url), Some(at_s)) = (url, record.date_s()) else {
            return Ok(Err("it has no URL or date that can be read".to_owned()));
        };
        let profile = record.fields.get("WARC-Profile").and_then(RevisitProfile::of);
        let Some(original) = self.original(record, &url, at_s)? else {
            return Ok(Err(format!(
                "what {url} is said to repeat is neither in the files nor in the archive"
            )));
        };
        if self.site.is_none() {
            self.site = Some(SiteId(original.group));
        }
        let page = self.archive.state.page(&url)?;
        let (outcome, usual) = match profile {
            Some(RevisitProfile::NotModified) => (Outcome::NotModified, 304),
            _ => (Outcome::Same, 200),
        };
        let current = self.as_of(&url, at_s)?;
        let is_unchanged = match &current {
            Some(row) => self.archive.store.head(VersionId(row.version))?.digest == original.digest,
            None => false,
        };
        if let Some(unchanged) = current.filter(|_| is_unchanged) {
            let is_known = self.unchanged.contains(&(url.clone(), at_s))
                || !self.unchanged_at(&url, at_s)?.is_empty();
            if is_known {
                self.imported.known += 1;
                return Ok(Ok(()));
            }
            self.imported.unchanged += 1;
            self.unchanged.insert((url.clone(), at_s));
            let mark = page.as_ref().and_then(|page| page.mark);
            let pending = Pending {
                at_s,
                status: status(&record.block).unwrap_or(usual),
                outcome,
                body_bytes: 0,
                update: PageUpdate { bytes: unchanged.bytes, ..kept(page.as_ref(), mark) },
                version: None,
                url,
            };
            return self.remember(pending).map(Ok);
        }
        self.repeated(record, &url, at_s, page, original).map(Ok)
    }

    /// A revisit whose page had other content just before, or none: a version of its own with the
    /// content of the original, which is stored already.
    fn repeated(
        &mut self,
        record: &Record,
        url: &CanonicalUrl,
        at_s: i64,
        page: Option<PageRecord>,
        original: nenrin_store::VersionHead,
    ) -> anyhow::Result<()> {
        let digest = original.digest;
        let own_status = status(&record.block).filter(|status| *status != 304);
        let code = own_status.unwrap_or(original.status);
        if self.storer.is_known(page.as_ref(), url, at_s, code, digest)? {
            self.imported.known += 1;
            return Ok(());
        }
        let body = self.archive.store.read(original.id)?.body;
        let head = match own_status {
            Some(_) => split_message(&record.block).0,
            None => &original.response_head,
        };
        let previous = self.storer.previous(url, page.as_ref());
        let group = self.site.map_or(original.group, |site| site.0);
        let version = NewVersion {
            url,
            group,
            visited_at_s: at_s,
            status: code,
            protocol: &original.protocol,
            tls: original.tls.as_deref(),
            server_address: record.fields.get("WARC-IP-Address").and_then(|a| a.parse().ok()),
            request_head: b"",
            response_head: head,
            body: &body,
            truncated: original.truncated.as_deref(),
            previous,
        };
        let pending = self.storer.put(&version, Packing::Unknown, page)?;
        self.remember(pending)
    }

    /// The version that a revisit refers to: by URL and date, else the newest before it that has
    /// the digest.
    fn original(
        &self,
        record: &Record,
        url: &CanonicalUrl,
        at_s: i64,
    ) -> anyhow::Result<Option<nenrin_store::VersionHead>> {
        let field = |name: &str| record.fields.get(name);
        let target = field("WARC-Refers-To-Target-URI")
            .and_then(|uri| CanonicalUrl::parse(uri.trim_matches(['<', '>'])).ok())
            .unwrap_or_else(|| url.clone());
        let digest = field("WARC-Payload-Digest");
        let mut rows = Vec::new();
        if let Some(date_s) = field("WARC-Refers-To-Date").and_then(parse_date) {
            let then = VersionQuery { from_s: date_s, to_s: date_s, limit: ORIGINALS_MAX };
            rows = self.archive.state.versions(&target.key(), then)?;
            rows.retain(|(found, _)| *found == target);
            if let [(_, row)] = &rows[..] {
                return Ok(Some(self.archive.store.head(VersionId(row.version))?));
            }
        }
        if rows.is_empty() {
            let before = (at_s.saturating_add(1), 0);
            rows = self.archive.state.newest_versions(&target.key(), before, ORIGINALS_MAX)?;
            rows.retain(|(found, _)| *found == target);
        }
        for (_, row) in rows {
            let id = VersionId(row.version);
            let is_it = match digest {
                None => true,
                Some(digest) => {
                    let body = self.archive.store.read(id)?.body;
                    digest_matches(digest, &body).unwrap_or(true)
                }
            };
            if is_it {
                return Ok(Some(self.archive.store.head(id)?));
            }
        }
        Ok(None)
    }

    /// The visits of exactly this second that found nothing new.
    fn unchanged_at(
        &self,
        url: &CanonicalUrl,
        at_s: i64,
    ) -> anyhow::Result<Vec<(VisitRow, RevisitProfile)>> {
        let then = VersionQuery { from_s: at_s, to_s: at_s, limit: usize::MAX };
        let versions = self.archive.state.versions(&url.key(), then)?;
        let own = versions.into_iter().filter(|(found, _)| found == url);
        let versions: Vec<VersionRow> = own.map(|(_, row)| row).collect();
        Ok(revisits(self.archive.state.visits_of(url, at_s, at_s)?, &versions))
    }

    /// The newest version of exactly this URL at or before a time.
    fn as_of(&self, url: &CanonicalUrl, at_s: i64) -> anyhow::Result<Option<VersionRow>> {
        let before = (at_s.saturating_add(1), 0);
        let rows = self.archive.state.newest_versions(&url.key(), before, ORIGINALS_MAX)?;
        Ok(rows.into_iter().find(|(found, _)| found == url).map(|(_, row)| row))
    }
}

/// The page's record as it was, with another mark if there is one.
fn kept(page: Option<&PageRecord>, mark: Option<ContentMark>) -> PageUpdate {
    PageUpdate {
        etag: page.and_then(|page| page.etag.clone()),
        last_modified: page.and_then(|page| page.last_modified.clone()),
        mark: mark.or_else(|| page.and_then(|page| page.mark)),
        bytes: page.map_or(0, |page| page.bytes),
        history: page.map(|page| page.history.clone()).unwrap_or_default(),
        due_s: page.and_then(|page| page.due_s),
        failures: 0,
    }
}

/// The mark of content that is no redirect: the first half of its digest, as a visit makes it.
fn mark_of(digest: &Digest) -> ContentMark {
    let mut mark = [0; 16];
    mark.copy_from_slice(&digest.0[..16]);
    ContentMark(mark)
}

fn visit(pending: Pending, site: SiteId) -> VisitCommit {
    let stored_bytes = pending.version.as_ref().map_or(0, |(put, _)| put.new_bytes);
    VisitCommit {
        // The state knows it better.
        page: PageId(0),
        site,
        round: None,
        at_s: pending.at_s,
        outcome: pending.outcome,
        status: pending.status,
        detail: None,
        elapsed_ms: 0,
        received_bytes: pending.body_bytes,
        stored_bytes,
        version: pending.version.map(|(put, mime)| VersionRow {
            at_s: pending.at_s,
            version: put.id.0,
            status: pending.status,
            mime,
            bytes: pending.body_bytes,
            changed_permille: None,
        }),
        update: pending.update,
        discovered: Vec::new(),
        new_tops: Vec::new(),
        trapped: 0,
        links: None,
        importance_percent: None,
        estimate: None,
    }
}
