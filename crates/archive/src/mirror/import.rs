//! A folder of files as one visit of a site.

use std::{collections::BTreeSet, fs, path::Path};

use nenrin_fetch::http_date;
use nenrin_state::{
    Change, Outcome, PageFilter, PageRecord, Round, RoundCounts, RoundEnd, Site, SiteConditions,
    State,
};
use nenrin_urls::CanonicalUrl;

use super::paths::{MirrorFile, files_below, mime_by_name};
use crate::{
    Archive, ArchiveError, Progress, Result,
    ingest::{Capture, Ingest},
    sites,
};

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
        let body = fs::read(&file.path).map_err(ArchiveError::reading(&file.path))?;
        let page = self.page(&file.url)?;
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {}\r\nContent-Length: {}\r\nLast-Modified: {}\r\n\r\n",
            mime_by_name(&file.path),
            body.len(),
            http_date::format(file.modified_s)
        );
        let capture = Capture {
            protocol: "file",
            ..Capture::new(&file.url, self.at_s, 200, head.as_bytes(), &body)
        };
        self.ingest.take_of(&capture, page)?;
        self.seen.insert(file.url.clone());
        Ok(())
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

    /// A mirror is the whole site: pages that it does not have any more are gone.
    fn finish(mut self) -> Result<RoundCounts> {
        self.ingest.commit()?;
        let mut after = None;
        loop {
            let filter = PageFilter { site: Some(self.site.id), after, limit: PORTION };
            let portion = self.archive.state().pages(filter)?;
            let Some(last) = portion.last() else { break };
            after = Some(last.id);
            for page in portion {
                let there = page.version.is_some() && page.outcome != Some(Outcome::Gone);
                if there && !self.seen.contains(&page.url) {
                    self.ingest.missing(&page, self.at_s)?;
                }
            }
        }
        let counts = self.ingest.finish()?;
        let end =
            RoundEnd { round: self.round.id, site: self.site.id, at_s: self.at_s, skips: None };
        self.archive.state().commit(&[Change::RoundEnd(end)])?;
        Ok(counts)
    }
}
