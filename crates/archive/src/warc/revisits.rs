//! The second pass of an import: resolves revisit records.
//!
//! Their order in the files does not matter: they are processed page by page, each page's in the
//! order of time, so that what is known about a page is looked up once. One thread decides while
//! another commits.

use std::{
    collections::BTreeSet,
    sync::{OnceLock, mpsc},
};

use nenrin_state::{
    Nth, PageId, PageRecord, SiteId, VersionQuery, VersionRow, VisitCommit, VisitRow,
};
use nenrin_store::{VersionHead, VersionId};
use nenrin_urls::CanonicalUrl;
use nenrin_warc::{Record, RecordReader, digest_matches, parse_date, split_message, status};

use super::{
    commit::Importer,
    found::{Found, Revisit, Revisits, refers_to},
    limits::STORED_WAITING,
    originals::{NamedOriginals, payload_digest},
    source::{Part, Source},
    spawn,
    storer::{Stored, Storer},
    unchanged::revisits,
};
use crate::{
    Archive, ArchiveError, Result,
    ingest::{Capture, Taken, move_on},
};

/// Versions of a page that are looked at for the original of a revisit without a date.
const ORIGINALS_MAX: usize = 64;
/// Versions and visits of a page that are held while its revisits are looked at; where there are
/// more, they are looked up one by one.
const HELD_MAX: usize = 10_000;
/// Revisits that are read again and looked at together.
const AGAIN_TOGETHER: usize = 50_000;
/// Revisits whose original is looked for in the files by its id or digest.
const UNNAMED_MAX: usize = 100_000;
/// Decisions that go to the committing thread together.
const TOGETHER: usize = 128;

/// The second pass: every capture is in, so a revisit finds its original in whichever file it was.
pub(super) fn resolve_revisits(
    importer: &mut Importer<'_>,
    sources: &[Source],
    the_site: &OnceLock<SiteId>,
) -> Result<()> {
    let Revisits { at_hand, places, .. } = std::mem::take(&mut importer.revisits);
    let mut resolver = Resolver::new(importer.archive, sources, the_site);
    // Where no visit was logged before, all that are logged now have versions.
    resolver.may_be_known = importer.has_older_visits;
    resolve(importer, &mut resolver, at_hand)?;
    resolver.may_be_known = true;
    for places in places.chunks(AGAIN_TOGETHER) {
        let again = resolver.read_again(places)?;
        resolve(importer, &mut resolver, again)?;
    }
    let unnamed = std::mem::take(&mut resolver.unnamed);
    if !unnamed.is_empty() {
        resolver.find_named(&unnamed)?;
        resolve(importer, &mut resolver, unnamed)?;
    }
    importer.lessons.merge(resolver.storer.lessons());
    Ok(())
}

/// Decides on revisits and commits what comes of them.
fn resolve(
    importer: &mut Importer<'_>,
    resolver: &mut Resolver<'_>,
    revisits: Vec<Revisit>,
) -> Result<()> {
    std::thread::scope(|scope| {
        let (sender, stored) = mpsc::sync_channel(STORED_WAITING);
        spawn(scope, "warc revisit", move || resolver.all(revisits, &sender));
        importer.receive_all(stored, &mut |_| {})
    })
}

/// Resolves revisits.
struct Resolver<'a> {
    archive: &'a Archive,
    sources: &'a [Source],
    the_site: &'a OnceLock<SiteId>,
    /// Stores the versions that revisits refer to.
    storer: Storer<'a>,
    /// The file that was last read again.
    open: Option<(u32, RecordReader<Part>)>,
    /// Unchanged visits may have been taken in before.
    may_be_known: bool,
    /// Originals that are known by what the files say of them alone.
    named: NamedOriginals,
    /// Revisits whose original may be found by what the files say of it.
    unnamed: Vec<Revisit>,
}

impl<'a> Resolver<'a> {
    fn new(archive: &'a Archive, sources: &'a [Source], the_site: &'a OnceLock<SiteId>) -> Self {
        let storer = Storer::new(archive);
        let (named, unnamed) = (NamedOriginals::default(), Vec::new());
        Self { archive, sources, the_site, storer, open: None, may_be_known: true, named, unnamed }
    }

    fn read_again(&mut self, places: &[(u32, u64)]) -> Result<Vec<Revisit>> {
        let mut revisits = Vec::with_capacity(places.len());
        for &(source, offset) in places {
            // It was one when its offset was stored.
            let record = self.record(source, offset)?;
            revisits
                .extend(record.and_then(|record| Revisit::of(source as usize, &record, None).ok()));
        }
        Ok(revisits)
    }

    fn record(&mut self, source: u32, offset: u64) -> Result<Option<Record>> {
        if self.open.as_ref().is_none_or(|(number, _)| *number != source) {
            self.open = Some((source, self.sources[source as usize].reader()?));
        }
        let Some((_, reader)) = &mut self.open else { return Ok(None) };
        let record = reader.seek(offset).and_then(|()| reader.next_record());
        record.map_err(ArchiveError::warc(self.sources[source as usize].name()))
    }

    /// Looks through the files for the originals of these.
    fn find_named(&mut self, revisits: &[Revisit]) -> Result<()> {
        let mut wanted = NamedOriginals::default();
        for revisit in revisits {
            let record = self.record(revisit.source, revisit.offset)?;
            record.iter().for_each(|record| wanted.want(record));
        }
        self.sources.iter().try_for_each(|source| wanted.look_through(source))?;
        self.named = wanted;
        Ok(())
    }

    /// Decides on all; ends early when the receiver has ended.
    fn all(
        &mut self,
        mut revisits: Vec<Revisit>,
        receiver: &mpsc::SyncSender<Vec<Result<Stored>>>,
    ) {
        revisits
            .sort_unstable_by(|a, b| (&a.url, a.at_s, a.place()).cmp(&(&b.url, b.at_s, b.place())));
        let mut stored = Vec::new();
        let mut problems = Vec::new();
        for of_page in revisits.chunk_by(|a, b| a.url == b.url) {
            let outcome = self.page(of_page, &mut stored, &mut problems);
            let has_failed = outcome.is_err();
            stored.extend(outcome.err().map(Err));
            if stored.len() < TOGETHER && !has_failed {
                continue;
            }
            if receiver.send(std::mem::take(&mut stored)).is_err() || has_failed {
                return;
            }
        }
        problems.sort_unstable();
        let damaged = problems.into_iter().map(|(_, what)| Ok(Stored::Found(Found::Damaged(what))));
        stored.extend(damaged);
        // If the receiver is gone, it has an error to report.
        let _unheard = receiver.send(stored);
    }

    /// Decides on all revisits of one URL, oldest first.
    fn page(
        &mut self,
        revisits: &[Revisit],
        stored: &mut Vec<Result<Stored>>,
        problems: &mut Vec<((u32, u64), String)>,
    ) -> Result<()> {
        let mut page = self.look_up(CanonicalUrl::parse(&revisits[0].url)?)?;
        for revisit in revisits {
            match self.revisit(&mut page, revisit)? {
                Ok(decided) => stored.extend(decided.map(Ok)),
                Err(reason) => {
                    let name = self.sources[revisit.source as usize].name();
                    let what = format!("{name}: the revisit at byte {}: {reason}", revisit.offset);
                    problems.push((revisit.place(), what));
                }
            }
        }
        Ok(())
    }

    fn look_up(&self, url: CanonicalUrl) -> Result<Page> {
        let known = self.archive.state().page(&url)?;
        let all = VersionQuery { from_s: i64::MIN, to_s: i64::MAX, limit: HELD_MAX };
        let versions = self.archive.state().versions(&url.key(), all)?;
        let is_all = versions.len() < HELD_MAX
            && known.as_ref().is_none_or(|page| page.visits as usize <= HELD_MAX);
        let own = versions.into_iter().filter(|(found, _)| is_all && *found == url);
        let versions: Vec<VersionRow> = own.map(|(_, row)| row).collect();
        let unchanged = match self.may_be_known && is_all && known.is_some() {
            true => self.unchanged_in(&url, (i64::MIN, i64::MAX), &versions)?,
            false => BTreeSet::new(),
        };
        let record = known.unwrap_or_else(|| {
            PageRecord::unvisited((PageId(0), Nth(0)), url.clone(), SiteId(0), 0, None)
        });
        Ok(Page { url, record, versions, is_all, unchanged })
    }

    /// What becomes of a revisit; none if its original is looked for in the files first. The inner
    /// error says why it cannot be taken in.
    fn revisit(
        &mut self,
        page: &mut Page,
        revisit: &Revisit,
    ) -> Result<Result<Option<Stored>, String>> {
        let current = self.as_of(page, revisit.at_s)?;
        if let Some(current) = &current
            && let Some(&site) = self.the_site.get()
            && page.only_version_at(revisit.original_s) == Some(current.version)
        {
            return self.unchanged(site, page, revisit, current.bytes).map(|done| Ok(Some(done)));
        }
        let Some(record) = self.record(revisit.source, revisit.offset)? else {
            return Ok(Err("it cannot be read again".to_owned()));
        };
        let Some(original) = self.original(&record, &page.url, revisit.at_s)? else {
            if self.named.may_have(&record) && self.unnamed.len() < UNNAMED_MAX {
                self.unnamed.push(revisit.clone());
                return Ok(Ok(None));
            }
            return Ok(Err(format!(
                "the original of the revisit of {} is neither in the files nor in the archive",
                page.url
            )));
        };
        let site = *self.the_site.get_or_init(|| SiteId(original.group));
        let Some(current) = current else {
            let repeated = self.repeated(site, page, (&record, revisit.at_s), original)?;
            return Ok(Ok(Some(repeated)));
        };
        let digest = self.archive.store().head(current.version)?.digest;
        if digest != original.digest {
            let repeated = self.repeated(site, page, (&record, revisit.at_s), original)?;
            return Ok(Ok(Some(repeated)));
        }
        // It became a version when it was taken in before, or a response of this second says the
        // same.
        if current.at_s == revisit.at_s && current.version != original.id {
            return Ok(Ok(Some(Stored::Known)));
        }
        self.unchanged(site, page, revisit, current.bytes).map(|done| Ok(Some(done)))
    }

    /// The page had this content just before.
    fn unchanged(
        &mut self,
        site: SiteId,
        page: &mut Page,
        revisit: &Revisit,
        bytes: u64,
    ) -> Result<Stored> {
        let at_s = revisit.at_s;
        let is_known =
            !page.unchanged.insert(at_s) || (!page.is_all && self.is_unchanged_at(page, at_s)?);
        if is_known {
            return Ok(Stored::Known);
        }
        let found = (at_s, revisit.status, revisit.outcome);
        let visit = self.storer.intake(site)?.unchanged(&mut page.record, found, bytes);
        Ok(Stored::Visit(Box::new(visit)))
    }

    /// A revisit whose page had other content just before, or none: a version of its own with the
    /// content of the original, which is stored already.
    fn repeated(
        &mut self,
        site: SiteId,
        page: &mut Page,
        (record, at_s): (&Record, i64),
        original: VersionHead,
    ) -> Result<Stored> {
        let own_status = status(&record.block).filter(|status| *status != 304);
        let body = self.archive.store().read(original.id)?.body;
        let head = match own_status {
            Some(_) => split_message(&record.block).0,
            None => &original.response_head,
        };
        let capture = Capture {
            protocol: &original.protocol,
            tls: original.tls.as_deref(),
            server_address: record.fields.get("WARC-IP-Address").and_then(|a| a.parse().ok()),
            truncated: original.truncated.as_deref(),
            digest: Some(original.digest),
            ..Capture::new(&page.url, at_s, own_status.unwrap_or(original.status), head, &body)
        };
        let taken = self.storer.intake(site)?.take(&capture, Some(page.record.clone()))?;
        if let Taken::Visit(visit) = &taken {
            page.add(visit);
        }
        Ok(taken.into())
    }

    /// The version that a revisit refers to: by URL and date; else the newest before it of that URL that
    /// has the digest; else one of a URL with the same key (http or https, `www.` or not) of that date
    /// or with the digest; else one after it with the digest; else the one that was found in the files
    /// for it.
    fn original(
        &self,
        record: &Record,
        url: &CanonicalUrl,
        at_s: i64,
    ) -> Result<Option<VersionHead>> {
        let target = refers_to(record).unwrap_or_else(|| url.clone());
        let digest = payload_digest(record);
        let mut then = Vec::new();
        if let Some(date_s) = record.fields.get("WARC-Refers-To-Date").and_then(parse_date) {
            then = self.versions_at(&target, date_s)?;
            let own: Vec<_> = then.iter().filter(|(found, _)| *found == target).collect();
            if let [(_, row)] = own[..] {
                return Ok(Some(self.archive.store().head(row.version)?));
            }
        }
        let before = (at_s.saturating_add(1), VersionId(0));
        let earlier = self.archive.state().newest_versions(&target.key(), before, ORIGINALS_MAX)?;
        let is_own = |(found, _): &&(CanonicalUrl, VersionRow)| *found == target;
        for (_, row) in then.iter().filter(is_own).chain(earlier.iter().filter(is_own)) {
            if self.has_digest(row, digest)?.unwrap_or(true) {
                return Ok(Some(self.archive.store().head(row.version)?));
            }
        }
        if let [(_, row)] = &then[..]
            && self.has_digest(row, digest)?.unwrap_or(true)
        {
            return Ok(Some(self.archive.store().head(row.version)?));
        }
        for (_, row) in then.iter().chain(&earlier) {
            if self.has_digest(row, digest)? == Some(true) {
                return Ok(Some(self.archive.store().head(row.version)?));
            }
        }
        // A clock that was set back, or files in which a site was collected by two at once.
        let later = VersionQuery { from_s: before.0, to_s: i64::MAX, limit: ORIGINALS_MAX };
        for (_, row) in self.archive.state().versions(&target.key(), later)? {
            if self.has_digest(&row, digest)? == Some(true) {
                return Ok(Some(self.archive.store().head(row.version)?));
            }
        }
        if let Some(named) = self.named.of(record)
            && let Some(row) = self.version_named(named)?
        {
            return Ok(Some(self.archive.store().head(row.version)?));
        }
        for named in self.named.undigested(record) {
            if let Some(row) = self.version_named(named)?
                && self.has_digest(&row, digest)? == Some(true)
            {
                return Ok(Some(self.archive.store().head(row.version)?));
            }
        }
        Ok(None)
    }

    /// The version of a URL and date.
    fn version_named(&self, (url, at_s): &(CanonicalUrl, i64)) -> Result<Option<VersionRow>> {
        let found = self.versions_at(url, *at_s)?.into_iter().find(|(found, _)| found == url);
        Ok(found.map(|(_, row)| row))
    }

    fn versions_at(
        &self,
        url: &CanonicalUrl,
        at_s: i64,
    ) -> Result<Vec<(CanonicalUrl, VersionRow)>> {
        let then = VersionQuery { from_s: at_s, to_s: at_s, limit: ORIGINALS_MAX };
        Ok(self.archive.state().versions(&url.key(), then)?)
    }

    /// Whether a version has this digest; none if that cannot be said.
    fn has_digest(&self, row: &VersionRow, digest: Option<&str>) -> Result<Option<bool>> {
        let Some(digest) = digest else { return Ok(None) };
        let body = self.archive.store().read(row.version)?.body;
        Ok(digest_matches(digest, &body))
    }

    /// Whether a visit of exactly this second found nothing new.
    fn is_unchanged_at(&self, page: &Page, at_s: i64) -> Result<bool> {
        let then = VersionQuery { from_s: at_s, to_s: at_s, limit: usize::MAX };
        let versions = self.archive.state().versions(&page.url.key(), then)?;
        let own = versions.into_iter().filter(|(found, _)| *found == page.url);
        let versions: Vec<VersionRow> = own.map(|(_, row)| row).collect();
        Ok(!self.unchanged_in(&page.url, (at_s, at_s), &versions)?.is_empty())
    }

    /// The seconds of the visits that found nothing new.
    fn unchanged_in(
        &self,
        url: &CanonicalUrl,
        (from_s, to_s): (i64, i64),
        versions: &[VersionRow],
    ) -> Result<BTreeSet<i64>> {
        let visits: Vec<VisitRow> = self.archive.state().visits_of(url, from_s, to_s)?;
        Ok(revisits(visits, versions).into_iter().map(|(visit, _)| visit.at_s).collect())
    }

    /// The newest version of exactly this URL at or before a time.
    fn as_of(&self, page: &Page, at_s: i64) -> Result<Option<VersionRow>> {
        let held = page.versions[..page.versions.partition_point(|row| row.at_s <= at_s)].last();
        if page.is_all {
            return Ok(held.cloned());
        }
        let before = (at_s.saturating_add(1), VersionId(0));
        let rows = self.archive.state().newest_versions(&page.url.key(), before, ORIGINALS_MAX)?;
        let found = rows.into_iter().find(|(found, _)| *found == page.url).map(|(_, row)| row);
        Ok(found.into_iter().chain(held.cloned()).max_by_key(|row| (row.at_s, row.version)))
    }
}

/// What is known of a page while its revisits are looked at.
struct Page {
    url: CanonicalUrl,
    /// Its record, as it is after what was decided.
    record: PageRecord,
    /// Its versions, oldest first; where they are too many, only those that were decided on.
    versions: Vec<VersionRow>,
    is_all: bool,
    /// When it is known to have been unchanged.
    unchanged: BTreeSet<i64>,
}

impl Page {
    /// The version of a second, if there is just one.
    fn only_version_at(&self, at_s: Option<i64>) -> Option<VersionId> {
        let at_s = at_s.filter(|_| self.is_all)?;
        let first = self.versions.partition_point(|row| row.at_s < at_s);
        let mut then = self.versions[first..].iter().take_while(|row| row.at_s == at_s);
        then.next().filter(|_| then.next().is_none()).map(|row| row.version)
    }

    /// A revisit became a version.
    fn add(&mut self, visit: &VisitCommit) {
        let Some(row) = &visit.version else { return };
        let place = self.versions.partition_point(|other| other.at_s <= row.at_s);
        let version = Some(row.version);
        move_on(&mut self.record, (visit.at_s, visit.outcome), version, &visit.update);
        self.versions.insert(place, row.clone());
    }
}
