//! A folder of files as one visit of a site.

use std::{collections::BTreeSet, fs, path::Path};

use nenrin_fetch::http_date;
use nenrin_state::{
    Change, ContentMark, Discovered, Outcome, PageFilter, PageRecord, PageUpdate, Round,
    RoundCounts, RoundEnd, Site, SiteConditions, State, VersionRow, VisitCommit,
};
use nenrin_store::{Digest, NewVersion, Put, VersionId};
use nenrin_urls::CanonicalUrl;

use super::paths::{MirrorFile, files_below, mime_by_name};
use crate::{Archive, ArchiveError, Progress, Result, sites};

/// Files put before they are made durable and committed.
const BATCH: usize = 500;
/// Pages read from the state at once.
const PORTION: usize = 2_000;

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

/// What the import of a mirror brought.
#[derive(Debug, Clone, Default)]
pub struct ImportedMirror {
    /// Files that were read.
    pub files: u64,
    /// Files that could not be imported, and why.
    pub refused: Vec<String>,
    /// What the visits found.
    pub counts: RoundCounts,
}

impl Archive {
    /// Imports a folder as one visit of the site whose top page is the base: every file is a page,
    /// and pages that the folder does not have any more are gone. Progress is counted in files.
    pub fn import_mirror(
        &self,
        folder: &Path,
        options: &MirrorImportOptions,
        progress: &mut Progress<'_>,
    ) -> Result<ImportedMirror> {
        let base = &options.base;
        let mut all = 0;
        files_below(folder, base, &mut |_| {
            all += 1;
            Ok(())
        })?;
        if all == 0 {
            let what = format!("{} has no files to import", folder.display());
            return Err(ArchiveError::Input(what));
        }
        let site = register(&**self.state(), options)?;
        let mut importer = Importer::new(self, site, options.at_s)?;
        // Read a second time rather than remembered: a mirror may have more files than fit into
        // memory.
        let mut files = 0;
        let refused = files_below(folder, base, &mut |file| {
            files += 1;
            progress(files, all);
            importer.file(&file)
        })?;
        let counts = importer.finish()?;
        Ok(ImportedMirror { files, refused, counts })
    }
}

/// The site whose top page is the base, or a new one that is not collected by itself.
fn register(state: &dyn State, options: &MirrorImportOptions) -> Result<Site> {
    let base = &options.base;
    if let Some(site) = state.sites()?.into_iter().find(|s| s.conditions.tops.contains(base)) {
        return Ok(site);
    }
    let depth = options.depth;
    let conditions = SiteConditions { depth, ..SiteConditions::new(vec![base.clone()]) };
    let name = sites::free_name(state, &conditions)?;
    Ok(state.add_site(&name, &conditions, options.now_s)?)
}

/// Takes the files of one visit in.
struct Importer<'a> {
    archive: &'a Archive,
    site: Site,
    round: Round,
    at_s: i64,
    seen: BTreeSet<CanonicalUrl>,
    pending: Vec<Pending>,
    counts: RoundCounts,
}

struct Pending {
    url: CanonicalUrl,
    /// `None` until the page is made known.
    page: Option<PageRecord>,
    outcome: Outcome,
    bytes: u64,
    mark: Option<ContentMark>,
    modified_s: i64,
    version: Option<(Put, String)>,
}

impl<'a> Importer<'a> {
    fn new(archive: &'a Archive, site: Site, at_s: i64) -> Result<Self> {
        let round = archive.state().begin_round(site.id, at_s)?;
        Ok(Self {
            archive,
            site,
            round,
            at_s,
            seen: BTreeSet::new(),
            pending: Vec::new(),
            counts: RoundCounts::default(),
        })
    }

    fn file(&mut self, file: &MirrorFile) -> Result<()> {
        let body = fs::read(&file.path).map_err(ArchiveError::reading(&file.path))?;
        let page = self.page(&file.url)?;
        let digest = Digest::of(&body);
        let mut mark = [0; 16];
        mark.copy_from_slice(&digest.0[..16]);
        let mark = ContentMark(mark);
        let last = page.as_ref().filter(|page| page.outcome != Some(Outcome::Gone));
        let same = last.is_some_and(|page| page.version.is_some() && page.mark == Some(mark));
        let version = if same {
            None
        } else {
            let mime = mime_by_name(&file.path);
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\nContent-Length: {}\r\nLast-Modified: {}\r\n\r\n",
                body.len(),
                http_date::format(file.modified_s)
            );
            let put = self.archive.store().put(&NewVersion {
                url: &file.url,
                group: self.site.id.0,
                visited_at_s: self.at_s,
                status: 200,
                protocol: "file",
                tls: None,
                server_address: None,
                request_head: b"",
                response_head: head.as_bytes(),
                body: &body,
                truncated: None,
                previous: page.as_ref().and_then(|page| page.version).map(VersionId),
            })?;
            Some((put, mime.to_owned()))
        };
        self.pending.push(Pending {
            outcome: if same { Outcome::Same } else { Outcome::Changed },
            url: file.url.clone(),
            page,
            bytes: body.len() as u64,
            mark: Some(mark),
            modified_s: file.modified_s,
            version,
        });
        if self.pending.len() >= BATCH { self.commit() } else { Ok(()) }
    }

    /// The page of a URL, if it is known and this visit is not older than its last.
    fn page(&self, url: &CanonicalUrl) -> Result<Option<PageRecord>> {
        let page = self.archive.state().page(url)?;
        let visited_s = page.as_ref().and_then(|page| page.visited_s);
        match visited_s.is_some_and(|last_s| last_s > self.at_s) {
            true => Err(ArchiveError::OutOfOrder { url: url.clone(), at_s: self.at_s }),
            false => Ok(page),
        }
    }

    fn commit(&mut self) -> Result<()> {
        self.archive.store().sync()?;
        let pending = std::mem::take(&mut self.pending);
        self.seen.extend(pending.iter().map(|file| file.url.clone()));
        let changes: Vec<Change> = pending.into_iter().map(|file| self.visit(file)).collect();
        self.archive.state().commit(&changes)?;
        Ok(())
    }

    fn visit(&mut self, pending: Pending) -> Change {
        let found = Discovered { url: pending.url, depth: 2, hops: 0, due_s: None };
        let stored_bytes = pending.version.as_ref().map_or(0, |(put, _)| put.new_bytes);
        self.counts.count(pending.outcome);
        self.counts.received_bytes += pending.bytes;
        self.counts.stored_bytes += stored_bytes;
        let gone = pending.outcome == Outcome::Gone;
        Change::Visit(Box::new(VisitCommit {
            round: Some(self.round.id),
            status: if gone { 404 } else { 200 },
            received_bytes: pending.bytes,
            stored_bytes,
            version: pending.version.map(|(put, mime)| VersionRow {
                at_s: self.at_s,
                version: put.id.0,
                status: 200,
                mime,
                bytes: pending.bytes,
                changed_permille: None,
            }),
            update: PageUpdate {
                last_modified: (!gone).then(|| http_date::format(pending.modified_s)),
                mark: pending.mark,
                bytes: pending.bytes,
                due_s: pending.page.as_ref().and_then(|page| page.due_s),
                history: pending.page.map(|page| page.history).unwrap_or_default(),
                ..PageUpdate::default()
            },
            ..VisitCommit::new(found, self.site.id, self.at_s, pending.outcome)
        }))
    }

    /// A mirror is the whole site: pages that it does not have any more are gone.
    fn finish(mut self) -> Result<RoundCounts> {
        self.commit()?;
        let mut after = None;
        loop {
            let filter = PageFilter { site: Some(self.site.id), after, limit: PORTION };
            let portion = self.archive.state().pages(filter)?;
            let Some(last) = portion.last() else { break };
            after = Some(last.id);
            for page in portion {
                let there = page.version.is_some() && page.outcome != Some(Outcome::Gone);
                if there && !self.seen.contains(&page.url) {
                    let mark = page.mark;
                    self.pending.push(Pending {
                        url: page.url.clone(),
                        page: Some(page),
                        outcome: Outcome::Gone,
                        bytes: 0,
                        mark,
                        modified_s: 0,
                        version: None,
                    });
                }
            }
            self.commit()?;
        }
        let end =
            RoundEnd { round: self.round.id, site: self.site.id, at_s: self.at_s, skips: None };
        self.archive.state().commit(&[Change::RoundEnd(end)])?;
        Ok(self.counts)
    }
}
