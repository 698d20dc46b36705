//! A folder of files as one visit of a site.

use std::{collections::BTreeSet, fs::File, io::Read, path::Path};

use nenrin_fetch::http_date;
use nenrin_state::{
    Change, Outcome, PageRecord, Round, RoundCounts, RoundEnd, Site, SiteConditions, State,
    VersionRow, VisitCommit,
};
use nenrin_store::{Digest, NewVersion};
use nenrin_urls::{CanonicalUrl, Scope};

use super::paths::{MirrorFile, files_below, mime_by_name};
use crate::{
    Archive, ArchiveError, Progress, Result,
    ingest::{Capture, Ingest},
    sites,
    spans::readable_date,
};

/// Pages read from the state at once.
const PORTION: usize = 2_000;
/// A larger file is not held in memory, but read from where it is.
const MEMORY_MAX_BYTES: u64 = 16 << 20;

/// Endings of names behind which servers have programs that make pages.
const PROGRAMS: [&str; 9] = ["php", "asp", "aspx", "jsp", "cgi", "pl", "cfm", "do", "exe"];

/// How a mirror is imported.
#[derive(Debug, Clone)]
pub struct MirrorImportOptions {
    /// The URL of the folder; also the top page of its site, which is registered where there is
    /// none.
    pub base: CanonicalUrl,
    /// When the mirror was made, in seconds since the epoch.
    pub at_s: i64,
    /// How many links deep a newly registered site is collected.
    pub depth: u32,
    /// When the import is made, in seconds since the epoch.
    pub now_s: i64,
}

impl MirrorImportOptions {
    /// Whether a mirror can be imported like this, before an archive is opened for it.
    pub fn check(&self) -> Result<()> {
        self.folder_url().map(drop)
    }

    fn folder_url(&self) -> Result<CanonicalUrl> {
        if self.at_s > self.now_s {
            return Err(ArchiveError::Input(format!(
                "{} is in the future; a mirror is imported with the date when it was made",
                readable_date(self.at_s)
            )));
        }
        folder_url(&self.base)
    }
}

/// What the import of a mirror brought.
#[derive(Debug, Clone, Default)]
pub struct ImportedMirror {
    /// Files that were read.
    pub files: u64,
    /// Of these, the ones that were imported before for the same date.
    pub known: u64,
    /// Files that could not be imported, and why.
    pub refused: Vec<String>,
    /// What the visits found.
    pub counts: RoundCounts,
}

impl Archive {
    /// Imports a folder as one visit of the site whose top page is the base: every file is a page,
    /// and pages that the folder does not have any more are gone. The date may be before that of
    /// other visits; a page that only this folder has counts as there until the next visit that is known
    /// to have found it or not. The same folder for the same date again changes nothing; other content
    /// for the same date is refused. Progress is counted in files.
    pub fn import_mirror(
        &self,
        folder: &Path,
        options: &MirrorImportOptions,
        progress: &mut Progress<'_>,
    ) -> Result<ImportedMirror> {
        let (base, at_s) = (options.folder_url()?, options.at_s);
        if let Some(parts) = self.parts() {
            // A mirror is of one server, which one of the parts has.
            register(&**self.state(), options, &base)?;
            let mut imported = ImportedMirror::default();
            parts.each(false, &mut |part| {
                let (partitioning, own) = part.state().partition();
                if partitioning.of(&base.server()) == own {
                    imported = part.import_mirror(folder, options, progress)?;
                }
                Ok(())
            })?;
            self.store().catch_up()?;
            return Ok(imported);
        }
        let (mut all, mut known) = (0, 0);
        let refused = files_below(folder, &base, &mut |file| {
            all += 1;
            let page = self.state().page(&file.url)?;
            known += u64::from(self.has_file(&file, page.as_ref(), at_s)?);
            Ok(())
        })?;
        if all == 0 {
            let why = refused.first().map(|why| format!(" ({why})")).unwrap_or_default();
            let what = format!("{} has no files to import{why}", folder.display());
            return Err(ArchiveError::Input(what));
        }
        let site = register(&**self.state(), options, &base)?;
        let begun = self.begun_round(&site, at_s)?;
        if known == all && begun.is_none() {
            return Ok(ImportedMirror { files: all, known, ..ImportedMirror::default() });
        }
        let mut importer = Importer::new(self, site, at_s)?;
        // Read a second time rather than remembered: a mirror may have more files than fit into
        // memory.
        let mut files = 0;
        let refused = files_below(folder, &base, &mut |file| {
            files += 1;
            progress(files, all);
            importer.file(&file)
        })?;
        let counts = importer.finish()?;
        Ok(ImportedMirror { files, known, refused, counts })
    }

    /// Whether a file was imported for this very date before. Other content is refused. `page` is
    /// what the state knows of its page.
    fn has_file(&self, file: &MirrorFile, page: Option<&PageRecord>, at_s: i64) -> Result<bool> {
        if !self.was_visited(page, at_s)? {
            return Ok(false);
        }
        let Some(stored) = self.version_by(&file.url, at_s)? else { return Ok(false) };
        let reading = || ArchiveError::reading(&file.path);
        let mut opened = File::open(&file.path).map_err(reading())?;
        let (read, _) = Digest::of_read(&mut opened).map_err(reading())?;
        let stored = self.store().head(stored.version)?.digest;
        match stored == read {
            true => Ok(true),
            false => Err(ArchiveError::OtherContent {
                url: Box::new(file.url.clone()),
                at_s,
                stored: stored.to_string(),
                given: read.to_string(),
            }),
        }
    }

    /// Whether a page was visited in this very second.
    fn was_visited(&self, page: Option<&PageRecord>, at_s: i64) -> Result<bool> {
        let Some(page) = page else { return Ok(false) };
        Ok(match page.visited_s {
            Some(last_s) if last_s > at_s => {
                let then = self.state().visits_of(&page.url, at_s, at_s)?;
                then.iter().any(|visit| visit.outcome != Outcome::Gone)
            }
            last_s => last_s == Some(at_s),
        })
    }

    /// The round of this date that an import began and did not end. A round of another date is
    /// refused: it would be ended by this one.
    fn begun_round(&self, site: &Site, at_s: i64) -> Result<Option<Round>> {
        let newest = self.state().rounds(Some(site.id), 1)?.into_iter().next();
        match newest.filter(|round| round.ended_s.is_none()) {
            Some(round) if round.started_s != at_s => Err(ArchiveError::Input(format!(
                "the site `{}` has a round of {} that is not finished; finish it first, with \
                 `nenrin collect` or by importing the mirror of that date again",
                site.name,
                readable_date(round.started_s)
            ))),
            begun => Ok(begun),
        }
    }
}

/// The URL of a folder, whether it was given with its index file, with or without the `/` at its end.
fn folder_url(base: &CanonicalUrl) -> Result<CanonicalUrl> {
    let refuse = |what: &str| {
        let what = format!("{base}: the URL of a folder {what}; write it like {}/", base.server());
        Err(ArchiveError::Input(what))
    };
    if base.query().is_some() {
        return refuse("has no query");
    }
    let name = &base.path()[base.directory().len()..];
    let is_index = matches!(name.split_once('.'), Some(("index" | "default", _)));
    let text = match (name.is_empty(), is_index) {
        (true, _) => return Ok(base.clone()),
        (false, true) => format!("{}{}", base.server(), base.directory()),
        (false, false) if is_file(name) => return refuse("is not that of a page or file"),
        (false, false) => format!("{}{}/", base.server(), base.path()),
    };
    CanonicalUrl::parse(&text).or_else(|_| refuse("cannot be made of it"))
}

/// Whether a name without `/` behind it is that of a file: what a program made of it may have any type.
fn is_file(name: &str) -> bool {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
    PROGRAMS.contains(&ending.as_str())
        || mime_by_name(Path::new(name)) != "application/octet-stream"
}

/// The site whose top page is the base, or a new one that is not collected by itself.
fn register(state: &dyn State, options: &MirrorImportOptions, base: &CanonicalUrl) -> Result<Site> {
    let has = |site: &Site| {
        let tops = &site.conditions.tops;
        tops.contains(base) || tops.contains(&options.base)
    };
    if let Some(site) = state.sites()?.into_iter().find(has) {
        return Ok(site);
    }
    let scope = if base.path() == "/" { Scope::Host } else { Scope::Prefix };
    let depth = options.depth;
    let conditions = SiteConditions { depth, scope, ..SiteConditions::new(vec![base.clone()]) };
    let name = sites::free_name(state, &conditions)?;
    Ok(state.add_site(&name, &conditions, options.now_s)?)
}

/// Takes the files of one visit in.
struct Importer<'a> {
    archive: &'a Archive,
    site: Site,
    round: Round,
    at_s: i64,
    ingest: Ingest<'a>,
    seen: BTreeSet<CanonicalUrl>,
}

impl<'a> Importer<'a> {
    fn new(archive: &'a Archive, site: Site, at_s: i64) -> Result<Self> {
        let round = archive.state().begin_round(site.id, at_s)?;
        let ingest = archive.ingest(site.id)?.in_round(round.id);
        Ok(Self { archive, site, round, at_s, ingest, seen: BTreeSet::new() })
    }

    fn file(&mut self, file: &MirrorFile) -> Result<()> {
        self.seen.insert(file.url.clone());
        let page = self.archive.state().page(&file.url)?;
        if self.archive.has_file(file, page.as_ref(), self.at_s)? {
            return Ok(());
        }
        let reading = || ArchiveError::reading(&file.path);
        let mut opened = File::open(&file.path).map_err(reading())?;
        let is_large = opened.metadata().map_err(reading())?.len() > MEMORY_MAX_BYTES;
        let mut body = Vec::new();
        let (digest, bytes) = if is_large {
            let (digest, bytes) = Digest::of_read(&mut opened).map_err(reading())?;
            (Some(digest), bytes)
        } else {
            opened.read_to_end(&mut body).map_err(reading())?;
            (None, body.len() as u64)
        };
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {}\r\nContent-Length: {}\r\nLast-Modified: {}\r\n\r\n",
            mime_by_name(&file.path),
            bytes,
            http_date::format(file.modified_s)
        );
        let capture = Capture {
            protocol: "file",
            digest,
            spooled: is_large.then_some((&opened, bytes)),
            ..Capture::new(&file.url, self.at_s, 200, head.as_bytes(), &body)
        };
        let later = page.as_ref().map(|page| self.unchanged_later(page)).transpose()?.flatten();
        if self.ingest.take_of(&capture, page)? == Outcome::Changed {
            self.state_again(&file.url, later)?;
        }
        Ok(())
    }

    /// The next visit after this one that is already known, if it found the page unchanged, and the
    /// version that it found.
    fn unchanged_later(&self, page: &PageRecord) -> Result<Option<(i64, VersionRow)>> {
        if page.visited_s.is_none_or(|last_s| last_s <= self.at_s) {
            return Ok(None);
        }
        let url = &page.url;
        let visits = self.archive.state().visits_of(url, self.at_s + 1, i64::MAX)?;
        let telling = visits
            .into_iter()
            .find(|visit| !matches!(visit.outcome, Outcome::Failed | Outcome::Refused));
        let Some(next) = telling else { return Ok(None) };
        if !matches!(next.outcome, Outcome::Same | Outcome::NotModified) {
            return Ok(None);
        }
        Ok(self.archive.version_by(url, next.at_s)?.map(|row| (next.at_s, row)))
    }

    /// What a later visit found unchanged is another content than that of this visit now: it becomes
    /// a version of its own, so that the page is right as of each date.
    fn state_again(&mut self, url: &CanonicalUrl, later: Option<(i64, VersionRow)>) -> Result<()> {
        let Some((at_s, row)) = later else { return Ok(()) };
        let version = self.archive.store().read(row.version)?;
        let again = NewVersion {
            url,
            group: self.site.id.0,
            visited_at_s: at_s,
            status: version.head.status,
            protocol: &version.head.protocol,
            tls: version.head.tls.as_deref(),
            server_address: version.head.server_address,
            request_head: &version.head.request_head,
            response_head: &version.head.response_head,
            body: &version.body,
            truncated: version.head.truncated.as_deref(),
            previous: Some(row.version),
        };
        let put = self.archive.store().put(&again)?;
        let row = VersionRow { at_s, version: put.id, ..row };
        self.ingest.add_found(VisitCommit::in_packs(self.site.id, url.clone(), row))
    }

    /// A mirror is the whole site: pages that it does not have any more are gone.
    fn finish(mut self) -> Result<RoundCounts> {
        self.ingest.commit()?;
        let mut after = None;
        loop {
            let state = self.archive.state();
            let portion = state.site_as_of(self.site.id, self.at_s, after, PORTION)?;
            let Some((last, ..)) = portion.last() else { break };
            after = Some(*last);
            for (_, url, _) in portion {
                if self.seen.contains(&url) {
                    continue;
                }
                let Some(page) = self.archive.state().page(&url)? else { continue };
                let later = self.unchanged_later(&page)?;
                self.ingest.missing(&page, self.at_s)?;
                self.state_again(&url, later)?;
            }
        }
        let counts = self.ingest.finish()?;
        let end =
            RoundEnd { round: self.round.id, site: self.site.id, at_s: self.at_s, skips: None };
        self.archive.commit(&[Change::RoundEnd(end)])?;
        Ok(counts)
    }
}
