//! Dates and digests alone, without contents: what another archive, an update log or a sitemap says
//! of when pages changed. They become no versions and no visits; they teach how often each page
//! changes, before it is visited for the first time.

mod reading;

use std::{collections::BTreeMap, path::Path};

use nenrin_state::{Change, Discovered, FoundPages, Site};
use nenrin_urls::CanonicalUrl;

use crate::{
    Archive, ArchiveError, Result,
    ingest::{Contents, Intake, Keep, Lesson},
};

/// Pages that are looked up or made known together.
const TOGETHER: usize = 500;
/// What was wrong with lines that could not be read, as far as it is kept.
const PROBLEMS_KEPT: usize = 100;

/// How a history is imported.
#[derive(Debug, Clone)]
pub struct HistoryImportOptions {
    /// The site whose pages it is about.
    pub site: Site,
    /// The URL that the paths of an update log begin at; the site's first top page where there is
    /// none.
    pub base: Option<CanonicalUrl>,
    /// When the import is made, in seconds since the epoch.
    pub now_s: i64,
}

/// What the import of a history brought.
#[derive(Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ImportedHistory {
    /// What the file was taken for: `cdxj`, `updates` or `sitemap`.
    pub format: &'static str,
    /// Pages of the site that it is about.
    pub pages: u64,
    /// Of these, the ones that the archive did not know.
    pub new_pages: u64,
    /// Dates of those pages.
    pub dates: u64,
    /// Entries of pages that are not in the site.
    pub outside: u64,
    /// Entries that could not be read.
    pub damaged: u64,
    /// What was wrong with them, as far as it is kept.
    pub problems: Vec<String>,
}

/// What a file says.
#[derive(Default)]
struct Dates {
    format: &'static str,
    /// Only changes are dated: in between a page stayed as it was.
    only_changes: bool,
    pages: BTreeMap<CanonicalUrl, Vec<Lesson>>,
    outside: u64,
    damaged: u64,
    problems: Vec<String>,
}

impl Dates {
    fn trouble(&mut self, what: impl FnOnce() -> String) {
        self.damaged += 1;
        if self.problems.len() < PROBLEMS_KEPT {
            self.problems.push(what());
        }
    }
}

impl Archive {
    /// Learns how often the pages of a site change from a file of dates: the CDX or CDXJ index of
    /// another archive, an update log (`page path source start end updates`, separated by tabs) or a
    /// sitemap; plain, gzip or zstd. Pages in the site's scope become known. Dates before a page's
    /// last visit teach nothing.
    pub fn import_history(
        &self,
        file: &Path,
        options: &HistoryImportOptions,
    ) -> Result<ImportedHistory> {
        let site = &options.site;
        let base = options.base.as_ref().or(site.conditions.tops.first());
        let base =
            base.ok_or_else(|| ArchiveError::Input(format!("{} has no top page", site.name)))?;
        if let Some(parts) = self.parts() {
            // Each part takes the pages of its own servers.
            let mut all = ImportedHistory::default();
            parts.each(false, &mut |part| {
                let ImportedHistory { pages, new_pages, dates, .. } = all;
                let one = part.import_history(file, options)?;
                all = ImportedHistory {
                    pages: pages + one.pages,
                    new_pages: new_pages + one.new_pages,
                    dates: dates + one.dates,
                    ..one
                };
                Ok(())
            })?;
            return Ok(all);
        }
        let mut dates = reading::read(file, site, base, options.now_s)?;
        let (partitioning, own) = self.state().partition();
        dates.pages.retain(|url, _| partitioning.of(&url.server()) == own);
        let mut imported = ImportedHistory {
            format: dates.format,
            pages: dates.pages.len() as u64,
            new_pages: 0,
            dates: dates.pages.values().map(|visits| visits.len() as u64).sum(),
            outside: dates.outside,
            damaged: dates.damaged,
            problems: dates.problems,
        };
        let mut intake = Intake::new(self, site.id, Keep::Changes)?;
        let mut rest = dates.pages.into_iter();
        loop {
            let portion: Vec<(CanonicalUrl, Vec<Lesson>)> = rest.by_ref().take(TOGETHER).collect();
            if portion.is_empty() {
                break;
            }
            imported.new_pages += self.make_known(site, &portion, options.now_s)?;
            let urls: Vec<&CanonicalUrl> = portion.iter().map(|(url, _)| url).collect();
            let known = self.state().pages_of(&urls)?;
            for ((_, visits), page) in portion.iter().zip(known) {
                let Some(page) = page else { continue };
                visits.iter().for_each(|visit| intake.lessons.add(&page, || *visit));
            }
        }
        let mut lessons = intake.lessons;
        if dates.only_changes {
            lessons.fill_gaps();
        }
        self.learn(site.id, lessons, Contents::Unread)?;
        Ok(imported)
    }

    /// Makes pages known to a site; returns how many were not.
    fn make_known(
        &self,
        site: &Site,
        pages: &[(CanonicalUrl, Vec<Lesson>)],
        now_s: i64,
    ) -> Result<u64> {
        let found = |(url, _): &(CanonicalUrl, _)| Discovered {
            url: url.clone(),
            depth: 2,
            hops: 0,
            due_s: None,
        };
        let pages = pages.iter().map(found).collect();
        let found = FoundPages { site: site.id, at_s: now_s, pages };
        Ok(self.commit(&[Change::Found(found)])?.new_pages.len() as u64)
    }
}
