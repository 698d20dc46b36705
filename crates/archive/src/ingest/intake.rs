//! The one way in: a capture is judged as a visit is, stored, and becomes the visit to commit.

use std::io::Seek;

use nenrin_crawl::{
    Answer, Appetite, FetchOrder, MissingPages, Purpose, Ticket, content_mark, mime, page_update,
    read_exchange,
    verdict::{Verdict, verdict},
};
use nenrin_fetch::{AddressPolicy, http_date};
use nenrin_state::{
    ContentMark, Discovered, Nth, Origin, Outcome, PageId, PageRecord, PageUpdate, RoundId, SiteId,
    Validators, VersionQuery, VersionRow, VisitCommit,
};
use nenrin_store::{Digest, Effort, NewVersion, VersionHead};
use nenrin_urls::CanonicalUrl;

use super::{
    capture::Capture,
    exchange::exchange,
    lessons::{Lesson, Lessons},
    recent::{LastVisit, Recent, UrlMark, move_on},
};
use crate::{Archive, ArchiveError, Result, head};

/// Versions of one page in one second that a capture is compared with. No collector makes so many;
/// a file that does must not make each one cost more than the one before.
const SAME_SECOND_MAX: usize = 1000;
/// Validators that are longer are not kept.
const ETAG_MAX_BYTES: usize = 256;
const DATE_MAX_BYTES: usize = 64;
/// A page whose visits teach nothing is visited again this long after the last.
const UNTAUGHT_WAIT_S: i64 = 86_400;
/// Servers of a site of which it is known what they show for missing pages.
const SERVERS_MAX: usize = 10_000;

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
    pub(crate) round: Option<RoundId>,
    /// Whether the pages of the site have times of their own.
    pub(crate) is_continuous: bool,
    missing_pages: MissingPages,
    /// What the visits teach once they are committed.
    pub(crate) lessons: Lessons,
    recent: Recent,
}

impl<'a> Intake<'a> {
    pub(crate) fn new(archive: &'a Archive, site: SiteId, keep: Keep) -> Result<Self> {
        let state = archive.state();
        // An import waits for nothing but the processor; `compact` makes it as small as anything else.
        archive.store().set_effort(Effort::Usual);
        let sites = state.sites()?;
        let found = sites.iter().find(|known| known.id == site);
        let known = state.site_servers(site, SERVERS_MAX)?;
        let servers = state.servers(&known.iter().map(|server| server.id).collect::<Vec<_>>())?;
        let missing_pages = found.map(|site| MissingPages::of(site, &servers)).unwrap_or_default();
        let is_continuous =
            found.is_some_and(|site| site.conditions.schedule.continuous().is_some());
        Ok(Self {
            archive,
            site,
            keep,
            round: None,
            is_continuous,
            missing_pages,
            lessons: Lessons::default(),
            recent: Recent::default(),
        })
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
            self.known(page.as_ref(), capture, digest);
            return Ok(Taken::Known);
        }
        let mut page = page.unwrap_or_else(|| self.unvisited(capture.url, capture.at_s));
        self.recent.bring_up(url, &mut page);
        let (answer, judged) = self.judge(capture, digest, &page)?;
        let is_older = is_older(&page, capture.at_s);
        let outcome = judged.outcome;
        let is_version = match self.keep {
            Keep::Changes => outcome == Outcome::Changed,
            Keep::Everything => outcome != Outcome::NotModified,
        };
        let put = is_version.then(|| self.put(capture, digest, &page)).transpose()?;
        let version = put.as_ref().map(|put| VersionRow {
            at_s: capture.at_s,
            version: put.id,
            status: capture.status,
            mime: answer.mime.clone(),
            bytes: answer.body_bytes,
            changed_permille: None,
        });
        let update = self.update(&page, capture.at_s, outcome, Some(&answer));
        let newest = version.as_ref().map(|row| row.version).or(page.version);
        self.lessons.add(&page, || Lesson {
            at_s: capture.at_s,
            outcome,
            mark: answer.mark,
            version: version.as_ref().map(|row| row.version),
            last_modified_s: answer.last_modified_s,
        });
        let last = (!is_older).then(|| LastVisit {
            at_s: capture.at_s,
            outcome,
            version: newest,
            update: update.clone(),
        });
        self.recent.remember(mark, last);
        Ok(Taken::Visit(Box::new(VisitCommit {
            is_first: page.version.is_none(),
            status: capture.status,
            reason: judged.reason,
            received_bytes: answer.body_bytes,
            stored_bytes: put.map_or(0, |put| put.new_bytes),
            version,
            update,
            ..self.visit(capture.url.clone(), capture.at_s, outcome)
        })))
    }

    /// The archive has a capture already. It teaches if those of its page have taught nothing: the
    /// import that brought it was cut short.
    fn known(&mut self, page: Option<&PageRecord>, capture: &Capture<'_>, digest: Digest) {
        let is_untaught = page.is_some_and(|page| page.history.is_empty());
        if is_untaught && (200..300).contains(&capture.status) {
            let unvisited = self.unvisited(capture.url, capture.at_s);
            let mark = Some(mark_of(capture, digest, None));
            let lesson = || Lesson { mark, ..Lesson::without_body(capture.at_s, Outcome::Changed) };
            self.lessons.add(&unvisited, lesson);
        }
    }

    /// What a capture means for its page: the same as an answer to a visit.
    fn judge(
        &mut self,
        capture: &Capture<'_>,
        digest: Digest,
        page: &PageRecord,
    ) -> Result<(Answer, Verdict)> {
        let mut answer = answer_of(capture, digest);
        if (200..300).contains(&capture.status) && self.missing_pages.wants_fingerprint(capture.url)
        {
            let url = capture.url.clone();
            let plain = FetchOrder::plain(Ticket(0), Purpose::Page, url, AddressPolicy::Public);
            let order = FetchOrder { fingerprint: true, ..plain };
            let exchange = exchange(capture.status, capture.response_head, capture.body.to_vec());
            let read = read_exchange(&order, &exchange, capture.at_s, Appetite::full(), || None);
            answer.fingerprint = read.ok().flatten().and_then(|answer| answer.fingerprint);
        }
        let is_conditional = capture.status == 304 && is_conditional(capture.request_head);
        let then = match is_older(page, capture.at_s) {
            true => Some(self.page_then(capture.url, capture.at_s)?),
            false => None,
        };
        let page = then.as_ref().unwrap_or(page);
        let found = verdict(page, is_conditional, &answer);
        let judged = self.missing_pages.correct(page, &answer, found);
        Ok((answer, judged))
    }

    /// The page as it was at a time before its last visit, as far as its versions say. Where every
    /// capture becomes a version, there is nothing to compare it with.
    fn page_then(&self, url: &CanonicalUrl, at_s: i64) -> Result<PageRecord> {
        let unvisited = self.unvisited(url, at_s);
        if self.keep == Keep::Everything {
            return Ok(unvisited);
        }
        let state = self.archive.state();
        let Some(row) = self.archive.version_by(url, at_s)? else { return Ok(unvisited) };
        let is_gone =
            state.gone_times(url)?.iter().any(|gone_s| (row.at_s..=at_s).contains(gone_s));
        let mut mark = [0; 16];
        mark.copy_from_slice(&self.archive.store().head(row.version)?.digest.0[..16]);
        Ok(PageRecord {
            version: Some(row.version),
            outcome: is_gone.then_some(Outcome::Gone),
            // A redirect's mark is not its digest: it counts as changed.
            mark: (200..300).contains(&row.status).then_some(ContentMark(mark)),
            ..unvisited
        })
    }

    /// A version that was found in the packs: judged as when it was received, and entered if the
    /// index does not have it.
    pub(crate) fn found_in_packs(
        &mut self,
        head: &VersionHead,
        page: Option<PageRecord>,
    ) -> Result<VisitCommit> {
        let url = UrlMark::of(&head.url);
        let at_s = head.visited_at_s;
        let mut page = page.unwrap_or_else(|| self.unvisited(&head.url, at_s));
        self.recent.bring_up(url, &mut page);
        let is_redirect = (300..400).contains(&head.status);
        let is_read = is_redirect || self.missing_pages.wants_fingerprint(&head.url);
        let body = match is_read {
            true => self.archive.store().read(head.id)?.body,
            false => Vec::new(),
        };
        let capture = Capture {
            request_head: &head.request_head,
            digest: Some(head.digest),
            ..Capture::new(&head.url, at_s, head.status, &head.response_head, &body)
        };
        let (answer, judged) = self.judge(&capture, head.digest, &page)?;
        let answer = Answer { body_bytes: head.body_bytes, ..answer };
        let row = VersionRow {
            at_s,
            version: head.id,
            status: head.status,
            mime: answer.mime.clone(),
            bytes: head.body_bytes,
            changed_permille: None,
        };
        let outcome = judged.outcome;
        let update = page_update(&page, outcome, Some(&answer));
        // Pages that the state knows by their visits have learnt from them.
        if page.history.is_empty() && page.visits <= 1 {
            self.lessons.add(&page, || Lesson {
                at_s,
                outcome,
                mark: answer.mark,
                version: Some(head.id),
                last_modified_s: answer.last_modified_s,
            });
        }
        if !is_older(&page, at_s) {
            let version = Some(head.id);
            let last = LastVisit { at_s, outcome, version, update: update.clone() };
            self.recent.remember((url, at_s, head.status, head.digest), Some(last));
        }
        Ok(VisitCommit {
            status: head.status,
            reason: judged.reason,
            outcome,
            update,
            ..VisitCommit::in_packs(self.site, head.url.clone(), row)
        })
    }

    /// The page's record after an answer. When it is due is set once its visits have taught; until
    /// then it has a time in a site whose pages have times.
    fn update(
        &self,
        page: &PageRecord,
        at_s: i64,
        outcome: Outcome,
        answer: Option<&Answer>,
    ) -> PageUpdate {
        let due_s = page.due_s.or(self.is_continuous.then_some(at_s + UNTAUGHT_WAIT_S));
        PageUpdate { due_s, ..page_update(page, outcome, answer) }
    }

    /// A visit that found the page as it was, without a body. Brings the record up to it.
    pub(crate) fn unchanged(
        &mut self,
        page: &mut PageRecord,
        (at_s, status, outcome): (i64, u16, Outcome),
        bytes: u64,
    ) -> VisitCommit {
        let update = PageUpdate { bytes, ..self.update(page, at_s, outcome, None) };
        self.lessons.add(page, || Lesson::without_body(at_s, outcome));
        move_on(page, (at_s, outcome), None, &update);
        VisitCommit { status, update, ..self.visit(page.url.clone(), at_s, outcome) }
    }

    /// A visit that did not find the page any more.
    pub(crate) fn missing(&mut self, page: &PageRecord, at_s: i64) -> VisitCommit {
        let outcome = Outcome::Gone;
        let update = self.update(page, at_s, outcome, None);
        self.lessons.add(page, || Lesson::without_body(at_s, outcome));
        VisitCommit { status: 404, update, ..self.visit(page.url.clone(), at_s, outcome) }
    }

    fn visit(&self, url: CanonicalUrl, at_s: i64, outcome: Outcome) -> VisitCommit {
        let found = Discovered { url, depth: 2, hops: 0, due_s: None };
        VisitCommit {
            round: self.round,
            origin: Origin::Imported,
            ..VisitCommit::new(found, self.site, at_s, outcome)
        }
    }

    fn unvisited(&self, url: &CanonicalUrl, at_s: i64) -> PageRecord {
        PageRecord::unvisited((PageId(0), Nth(0)), url.clone(), self.site, at_s, None)
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
            previous: page.version,
        };
        let store = self.archive.store();
        let Some((mut file, _)) = capture.spooled else {
            return Ok(store.put_packed(&version, digest, capture.packing)?);
        };
        file.rewind().map_err(ArchiveError::reading(self.archive.folder()))?;
        Ok(store.put_read(&version, &mut file)?)
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
                && self.archive.store().head(row.version)?.digest == digest;
            if is_same {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether a capture was made before the last visit.
fn is_older(page: &PageRecord, at_s: i64) -> bool {
    page.visited_s.is_some_and(|last_s| at_s < last_s)
}

/// A capture as the machine reads an exchange, without what has to be read from its body.
fn answer_of(capture: &Capture<'_>, digest: Digest) -> Answer {
    let [location, etag, last_modified, content_type] =
        head::fields(capture.response_head, ["location", "etag", "last-modified", "content-type"]);
    let last_modified = last_modified.filter(|date| date.len() <= DATE_MAX_BYTES);
    let location = location.and_then(|to| capture.url.join(&to).ok());
    Answer {
        status: capture.status,
        last_modified_s: last_modified.as_deref().and_then(http_date::parse),
        validators: Validators {
            etag: etag.filter(|tag| tag.len() <= ETAG_MAX_BYTES),
            last_modified,
        },
        mark: Some(mark_of(capture, digest, location.as_ref())),
        location,
        mime: mime(content_type.as_deref()),
        body_bytes: capture.body_bytes(),
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
