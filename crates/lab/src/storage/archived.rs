//! An archive under measurement, opened as the commands open it.

use std::path::{Path, PathBuf};

use nenrin_archive::{Archive, MirrorImportOptions, OpenOptions, folder_bytes, uncached_store};
use nenrin_state::{Site, SiteConditions};
use nenrin_urls::CanonicalUrl;

use super::{
    clock::thread_cpu_ms,
    corpus::Split,
    overlap::{self, Collector},
    subject::{Overlap, PageReads, SiteSizes, Sizes, Subject},
};
use crate::LabError;

/// Pages read one by one, at most.
const PAGES_READ: usize = 800;

/// An archive in a folder of its own.
pub struct ArchiveSubject<'a> {
    folder: PathBuf,
    collector: &'a dyn Collector,
    archive: Option<Archive>,
}

/// The URL of a site of the corpus.
fn base(site: &str) -> Result<CanonicalUrl, LabError> {
    CanonicalUrl::parse(&format!("https://{site}.example/"))
        .map_err(|error| LabError::Input { what: error.to_string() })
}

impl<'a> ArchiveSubject<'a> {
    /// An archive that is created in this folder on first use.
    pub fn new(folder: PathBuf, collector: &'a dyn Collector) -> Self {
        Self { folder, collector, archive: None }
    }

    fn archive(&mut self) -> Result<&Archive, LabError> {
        let archive = match self.archive.take() {
            Some(archive) => archive,
            None => Archive::open(&self.folder, &OpenOptions::writing())?,
        };
        Ok(self.archive.insert(archive))
    }

    /// The archive's site for a site of the corpus.
    fn site(&mut self, name: &str) -> Result<Site, LabError> {
        let base = base(name)?;
        let sites = self.archive()?.state().sites()?;
        let found = sites.into_iter().find(|site| site.conditions.tops.contains(&base));
        found.ok_or_else(|| LabError::Input { what: format!("{name} was not imported") })
    }
}

impl Subject for ArchiveSubject<'_> {
    fn take_in(&mut self, site: &str, folder: &Path, at_s: i64) -> Result<(), LabError> {
        let depth = SiteConditions::DEFAULT_DEPTH;
        let options = MirrorImportOptions { base: base(site)?, at_s, depth, now_s: at_s };
        let imported = self.archive()?.import_mirror(folder, &options, &mut |_, _| {})?;
        match imported.refused.first() {
            None => Ok(()),
            Some(refused) => Err(LabError::Input { what: format!("not imported: {refused}") }),
        }
    }

    fn sizes(&mut self) -> Result<Sizes, LabError> {
        // Journals of the databases are gone when they are closed, as at the end of every command.
        self.archive = None;
        let files = folder_bytes(&self.folder).map_err(LabError::file("read", &self.folder))?;
        let archive = self.archive()?;
        let store = archive.store().stats()?;
        let mut sizes = Sizes {
            files,
            store: store.stored_bytes,
            content: Split { html: store.html_bytes, other: store.other_bytes },
            ..Sizes::default()
        };
        for site in archive.state().sites()? {
            let bytes = store.sites.iter().find(|bytes| bytes.group == site.id.0);
            let (Some(bytes), Some(top)) = (bytes, site.conditions.tops.first()) else { continue };
            let host = top.server().as_str().trim_start_matches("https://").to_owned();
            let content = Split { html: bytes.html_bytes, other: bytes.other_bytes };
            let name = host.trim_end_matches(".example").to_owned();
            sizes.sites.insert(name, SiteSizes { content, records: bytes.record_bytes });
        }
        Ok(sizes)
    }

    fn compact(&mut self) -> Result<(), LabError> {
        Ok(self.archive()?.compact(&mut |_, _| {})?)
    }

    fn give_back(&mut self, site: &str, at_s: i64, folder: &Path) -> Result<(), LabError> {
        let site = self.site(site)?;
        let target = (folder, false);
        let written = self.archive()?.export_mirror(&[site], at_s, target, &mut |_, _| {})?;
        match written.mapped {
            0 => Ok(()),
            mapped => {
                let what = format!("{mapped} files have other names than their URLs");
                Err(LabError::Input { what })
            }
        }
    }

    fn read_pages(&mut self) -> Result<PageReads, LabError> {
        let mut ids = Vec::new();
        self.archive()?.state().each_version(&mut |_, row| ids.push(row.version))?;
        let store = uncached_store(&self.folder)?;
        let step = (ids.len() / PAGES_READ).max(1);
        let mut times_ms = Vec::new();
        for id in ids.into_iter().step_by(step) {
            let began_ms = thread_cpu_ms();
            std::hint::black_box(store.read(id)?);
            times_ms.push(thread_cpu_ms() - began_ms);
        }
        Ok(PageReads::of(times_ms))
    }

    fn overlap(&mut self, sites: &[(String, Vec<PathBuf>)]) -> Result<Overlap, LabError> {
        overlap::measure(&self.folder.with_file_name("overlap"), self.collector, sites)
    }
}
