//! The one way in: a capture is judged as a visit is, stored, and becomes the visit to commit.

use nenrin_crawl::{Answer, content_mark, mime, verdict::verdict};
use nenrin_fetch::http_date;
use nenrin_revisit::PageRevisitScheduler;
use nenrin_state::{
    ContentMark, Discovered, Origin, Outcome, PageId, PageRecord, PageUpdate, SiteId, VersionQuery,
    VersionRow, VisitCommit,
};
use nenrin_store::{Digest, NewVersion, VersionId};
use nenrin_urls::CanonicalUrl;

use super::{
    capture::Capture,
    recent::{LastVisit, Recent, UrlMark, move_on},
};
use crate::{Archive, Result, head};

/// Versions of one page in one second that a capture is compared with. No collector makes so many;
/// a file that does must not make each one cost more than the one before.
const SAME_SECOND_MAX: usize = 1000;
/// Validators that are longer are not kept.
const ETAG_MAX_BYTES: usize = 256;
const DATE_MAX_BYTES: usize = 64;

/// Which captures become versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Those with other content than the one before, as in collecting.
    Changes,
    /// All of another archive, each once, errors and unchanged ones too.
    Everything,
}

/// What became of a capture.
pub(crate) enum Taken {
    /// A visit, to be committed once the store is durable.
    Visit(Box<VisitCommit>),
    /// The archive had it already.
    Known,
}

/// Takes captures of one site in. All of one URL go through the same one, so that each finds the
/// one before it.
pub(crate) struct Intake<'a> {
    archive: &'a Archive,
    site: SiteId,
    keep: Keep,
    /// The round that the visits belong to, if they are one.
    pub(crate) round: Option<i64>,
    /// Teaches a page's history, as in collecting.
    scheduler: PageRevisitScheduler,
    recent: Recent,
}

impl<'a> Intake<'a> {
    pub(crate) fn new(archive: &'a Archive, site: SiteId, keep: Keep) -> Result<Self> {
        let sites = archive.state().sites()?;
        let found = sites.iter().find(|known| known.id == site);
        // A site that is not collected by itself may be one day: by the usual policy.
        let settings = found.and_then(|site| site.conditions.schedule.continuous().cloned());
        let bucket_s = archive.state().bucket_s();
        let scheduler = PageRevisitScheduler::new(settings.unwrap_or_default(), bucket_s);
        Ok(Self { archive, site, keep, round: None, scheduler, recent: Recent::default() })
    }

    /// Judges a capture and stores it if it becomes a version. `page` is what the state knows.
    pub(crate) fn take(
        &mut self,
        capture: &Capture<'_>,
        page: Option<PageRecord>,
    ) -> Result<Taken> {
        let url = UrlMark::of(capture.url);
        let digest = capture.digest.unwrap_or_else(|| Digest::of(capture.body));
        let mark = (url, capture.at_s, capture.status, digest);
        let may_be_known =
            self.keep == Keep::Everything && (page.is_some() || self.recent.knows(url));
        if may_be_known
            && (self.recent.has(&mark) || self.is_stored(page.as_ref(), capture, digest)?)
        {
            return Ok(Taken::Known);
        }
        let mut page = page.unwrap_or_else(|| self.unvisited(capture));
        self.recent.bring_up(url, &mut page);
        let answer = answer_of(capture, digest);
        let is_older = page.visited_s.is_some_and(|last_s| capture.at_s < last_s);
        let is_conditional = capture.status == 304 && is_conditional(capture.request_head);
        let judged = match is_older {
            // What came before the last visit cannot be compared with what was known then.
            true => verdict(&self.unvisited(capture), is_conditional, &answer),
            false => verdict(&page, is_conditional, &answer),
        };
        let outcome = judged.outcome;
        let is_version = match self.keep {
            Keep::Changes => outcome == Outcome::Changed,
            Keep::Everything => outcome != Outcome::NotModified,
        };
        let put = is_version.then(|| self.put(capture, digest, &page)).transpose()?;
        let version = put.as_ref().map(|put| VersionRow {
            at_s: capture.at_s,
            version: put.id.0,
            status: capture.status,
            mime: answer.mime.clone(),
            bytes: answer.body_bytes,
            changed_permille: None,
        });
        let update = self.update(&page, capture.at_s, outcome, &answer, is_older);
        let newest = version.as_ref().map(|row| row.version).or(page.version);
        let last = (!is_older).then(|| LastVisit {
            at_s: capture.at_s,
            outcome,
            version: newest,
            update: update.clone(),
        });
        self.recent.remember(mark, last);
        Ok(Taken::Visit(Box::new(VisitCommit {
            status: capture.status,
            reason: judged.reason,
            received_bytes: answer.body_bytes,
            stored_bytes: put.map_or(0, |put| put.new_bytes),
            version,
            update,
            ..self.visit(capture.url.clone(), capture.at_s, outcome)
        })))
    }

    /// The page's record after an answer.
    fn update(
        &mut self,
        page: &PageRecord,
        at_s: i64,
        outcome: Outcome,
        answer: &Answer,
        is_older: bool,
    ) -> PageUpdate {
        let mut update = kept(page);
        if matches!(outcome, Outcome::Changed | Outcome::Same) {
            update.etag.clone_from(&answer.etag);
            update.last_modified.clone_from(&answer.last_modified);
            update.mark = answer.mark;
            update.bytes = answer.body_bytes;
        }
        if !is_older {
            self.teach(page, at_s, outcome, answer.last_modified_s, &mut update);
        }
        update
    }

    /// A visit that found the page as it was, without a body. Brings the record up to it.
    pub(crate) fn unchanged(
        &mut self,
        page: &mut PageRecord,
        (at_s, status, outcome): (i64, u16, Outcome),
        bytes: u64,
    ) -> VisitCommit {
        let mut update = PageUpdate { bytes, ..kept(page) };
        if page.visited_s.is_none_or(|last_s| at_s >= last_s) {
            self.teach(page, at_s, outcome, None, &mut update);
            move_on(page, (at_s, outcome), None, &update);
        }
        VisitCommit { status, update, ..self.visit(page.url.clone(), at_s, outcome) }
    }

    /// A visit that did not find the page any more.
    pub(crate) fn missing(&mut self, page: &PageRecord, at_s: i64) -> VisitCommit {
        let mut update = kept(page);
        (update.etag, update.last_modified, update.bytes) = (None, None, 0);
        self.teach(page, at_s, Outcome::Gone, None, &mut update);
        VisitCommit { status: 404, update, ..self.visit(page.url.clone(), at_s, Outcome::Gone) }
    }

    /// What a page's visits have taught, with one more. When it is due stays as it was: an import
    /// plans no visits.
    fn teach(
        &mut self,
        page: &PageRecord,
        at_s: i64,
        outcome: Outcome,
        last_modified_s: Option<i64>,
        update: &mut PageUpdate,
    ) {
        let found = outcome.found();
        let planned = self.scheduler.visited(at_s, &page.known(), found, last_modified_s, 1.0);
        update.history = planned.history;
        update.failures = planned.failures;
    }

    fn visit(&self, url: CanonicalUrl, at_s: i64, outcome: Outcome) -> VisitCommit {
        let found = Discovered { url, depth: 2, hops: 0, due_s: None };
        VisitCommit {
            round: self.round,
            origin: Origin::Imported,
            ..VisitCommit::new(found, self.site, at_s, outcome)
        }
    }

    fn unvisited(&self, capture: &Capture<'_>) -> PageRecord {
        PageRecord::unvisited((PageId(0), 0), capture.url.clone(), self.site, capture.at_s, None)
    }

    fn put(
        &self,
        capture: &Capture<'_>,
        digest: Digest,
        page: &PageRecord,
    ) -> Result<nenrin_store::Put> {
        let version = NewVersion {
            url: capture.url,
            group: self.site.0,
            visited_at_s: capture.at_s,
            status: capture.status,
            protocol: capture.protocol,
            tls: capture.tls,
            server_address: capture.server_address,
            request_head: capture.request_head,
            response_head: capture.response_head,
            body: capture.body,
            truncated: capture.truncated,
            previous: page.version.map(VersionId),
        };
        Ok(self.archive.store().put_packed(&version, digest, capture.packing)?)
    }

    /// Whether this very capture was stored and committed before.
    fn is_stored(
        &self,
        page: Option<&PageRecord>,
        capture: &Capture<'_>,
        digest: Digest,
    ) -> Result<bool> {
        let at_s = capture.at_s;
        // Nothing was stored after the last visit.
        let may_be_stored = |page: &PageRecord| {
            page.version.is_some() && page.visited_s.is_none_or(|last_s| at_s <= last_s)
        };
        if !page.is_some_and(may_be_stored) {
            return Ok(false);
        }
        let then = VersionQuery { from_s: at_s, to_s: at_s, limit: SAME_SECOND_MAX };
        for (found, row) in self.archive.state().versions(&capture.url.key(), then)? {
            let is_same = found == *capture.url
                && row.status == capture.status
                && self.archive.store().head(VersionId(row.version))?.digest == digest;
            if is_same {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The page's record as it is.
fn kept(page: &PageRecord) -> PageUpdate {
    PageUpdate {
        etag: page.etag.clone(),
        last_modified: page.last_modified.clone(),
        mark: page.mark,
        bytes: page.bytes,
        history: page.history.clone(),
        due_s: page.due_s,
        failures: 0,
    }
}

/// A capture as the machine reads an exchange, without what only its body tells.
fn answer_of(capture: &Capture<'_>, digest: Digest) -> Answer {
    let [location, etag, last_modified, content_type] =
        head::fields(capture.response_head, ["location", "etag", "last-modified", "content-type"]);
    let last_modified = last_modified.filter(|date| date.len() <= DATE_MAX_BYTES);
    let location = location.and_then(|to| capture.url.join(&to).ok());
    Answer {
        status: capture.status,
        etag: etag.filter(|tag| tag.len() <= ETAG_MAX_BYTES),
        last_modified_s: last_modified.as_deref().and_then(http_date::parse),
        last_modified,
        mark: Some(mark_of(capture, digest, location.as_ref())),
        location,
        mime: mime(content_type.as_deref()),
        body_bytes: capture.body.len() as u64,
        ..Answer::default()
    }
}

/// The content's mark, as a visit makes it: the digest at hand is its first half.
fn mark_of(capture: &Capture<'_>, digest: Digest, location: Option<&CanonicalUrl>) -> ContentMark {
    if (300..=399).contains(&capture.status) {
        return content_mark(capture.status, capture.body, location.map(CanonicalUrl::as_str));
    }
    let mut mark = [0; 16];
    mark.copy_from_slice(&digest.0[..16]);
    ContentMark(mark)
}

/// Whether a request asked for the page only if it changed.
fn is_conditional(request_head: &[u8]) -> bool {
    head::fields(request_head, ["if-none-match", "if-modified-since"]).iter().any(Option::is_some)
}
