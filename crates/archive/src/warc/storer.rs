//! Checks captures against what the archive has, and stores those that are new.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use nenrin_crawl::{content_mark, mime};
use nenrin_state::{ContentMark, Outcome, PageRecord, PageUpdate, SiteId, VersionQuery};
use nenrin_store::{Digest, NewVersion, Packing, Put, VersionId};
use nenrin_urls::CanonicalUrl;

use super::{
    capture::{FoundCapture, RawCapture},
    found::Found,
    limits::UNCOMMITTED_MAX,
    memory::MemoryBudget,
};
use crate::{Archive, Result, head};

/// Versions of one page in one second that a capture is compared with; nobody who collects makes so
/// many, and whoever does must not make each cost more than the one before.
const SAME_SECOND_MAX: usize = 1000;

/// What the committing thread hears.
pub(crate) enum Told {
    Visit(Box<Pending>),
    /// The archive had it already.
    Known,
    Found(Found),
}

/// A visit that is stored and waits for its commit.
pub(crate) struct Pending {
    pub(crate) url: CanonicalUrl,
    pub(crate) at_s: i64,
    pub(crate) status: u16,
    pub(crate) outcome: Outcome,
    pub(crate) body_bytes: u64,
    pub(crate) update: PageUpdate,
    pub(crate) version: Option<(Put, String)>,
}

/// Stores captures. All of one URL go to the same one, so that each finds the one before it.
pub(crate) struct Storer<'a> {
    archive: &'a Archive,
    recent: Recent,
}

impl<'a> Storer<'a> {
    pub(crate) fn new(archive: &'a Archive) -> Self {
        Self { archive, recent: Recent::default() }
    }

    /// Opens and stores captures that came together.
    pub(crate) fn captures(
        &mut self,
        site: SiteId,
        captures: Vec<RawCapture>,
        memory: &MemoryBudget,
        open: impl Fn(RawCapture) -> Result<FoundCapture, String>,
    ) -> Vec<Result<Told>> {
        let urls: Vec<&CanonicalUrl> = captures.iter().map(|capture| &capture.url).collect();
        let pages = match self.archive.state().pages_of(&urls) {
            Ok(pages) => pages,
            Err(error) => return vec![Err(error.into())],
        };
        let mut buffers = Vec::with_capacity(2 * captures.len());
        let mut outcomes = Vec::with_capacity(captures.len());
        let bytes = captures.iter().map(RawCapture::bytes).sum();
        for (capture, page) in captures.into_iter().zip(pages) {
            outcomes.push(match open(capture) {
                Ok(capture) => {
                    let outcome = self.capture(site, &capture, page);
                    buffers.extend(capture.into_buffers());
                    outcome
                }
                Err(damage) => Ok(Told::Found(Found::Damaged(damage))),
            });
        }
        memory.give_back(bytes);
        memory.give_buffers(buffers);
        outcomes
    }

    fn capture(
        &mut self,
        site: SiteId,
        capture: &FoundCapture,
        page: Option<PageRecord>,
    ) -> Result<Told> {
        let may_be_known = page.is_some() || self.recent.last.contains_key(&url_mark(&capture.url));
        if may_be_known
            && self.is_known(
                page.as_ref(),
                &capture.url,
                capture.at_s,
                capture.status(),
                capture.digest(),
            )?
        {
            return Ok(Told::Known);
        }
        let previous = self.previous(&capture.url, page.as_ref());
        let version = NewVersion {
            url: &capture.url,
            group: site.0,
            visited_at_s: capture.at_s,
            status: capture.status(),
            protocol: &capture.protocol,
            tls: capture.tls.as_deref(),
            server_address: capture.server_address,
            request_head: &capture.request_head,
            response_head: capture.response_head(),
            body: capture.body(),
            truncated: capture.truncated.as_deref(),
            previous,
        };
        Ok(Told::Visit(Box::new(self.put(&version, capture.digest(), capture.packing(), page)?)))
    }

    pub(crate) fn previous(
        &self,
        url: &CanonicalUrl,
        page: Option<&PageRecord>,
    ) -> Option<VersionId> {
        let known = || page.and_then(|page| page.version).map(VersionId);
        self.recent.last.get(&url_mark(url)).copied().or_else(known)
    }

    /// Whether this very capture was stored before.
    pub(crate) fn is_known(
        &self,
        page: Option<&PageRecord>,
        url: &CanonicalUrl,
        at_s: i64,
        status: u16,
        digest: Digest,
    ) -> Result<bool> {
        if self.recent.captures.contains(&(url_mark(url), at_s, status, digest)) {
            return Ok(true);
        }
        // Nothing was stored after the last visit.
        let may_be_stored = |page: &PageRecord| {
            page.version.is_some() && page.visited_s.is_none_or(|last_s| at_s <= last_s)
        };
        if !page.is_some_and(may_be_stored) {
            return Ok(false);
        }
        let then = VersionQuery { from_s: at_s, to_s: at_s, limit: SAME_SECOND_MAX };
        for (found, row) in self.archive.state().versions(&url.key(), then)? {
            let is_same = found == *url
                && row.status == status
                && self.archive.store().head(VersionId(row.version))?.digest == digest;
            if is_same {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Stores a version.
    pub(crate) fn put(
        &mut self,
        version: &NewVersion<'_>,
        digest: Digest,
        packing: Packing<'_>,
        page: Option<PageRecord>,
    ) -> Result<Pending> {
        let put = self.archive.store().put_packed(version, digest, packing)?;
        let [location, etag, last_modified, content_type] = head::fields(
            version.response_head,
            ["location", "etag", "last-modified", "content-type"],
        );
        let location = location.and_then(|to| version.url.join(&to).ok());
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
                etag: etag.filter(|tag| tag.len() <= 256),
                last_modified: last_modified.filter(|date| date.len() <= 64),
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
            version: Some((put, mime(content_type.as_deref()))),
        })
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

/// The page's record as it was, with another mark if there is one.
pub(crate) fn kept(page: Option<&PageRecord>, mark: Option<ContentMark>) -> PageUpdate {
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
