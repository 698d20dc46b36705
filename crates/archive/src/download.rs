//! What people download: a site or a page as one file.

use std::{
    fs::File,
    io::{BufWriter, Seek, Write},
    path::Path,
};

use nenrin_extract::{InlinedPage, PagePart, charset, inlined_page};
use nenrin_state::SiteId;
use nenrin_urls::CanonicalUrl;
use nenrin_warc::ZipWriter;

use crate::{Archive, ArchiveError, ExportOptions, Progress, Result, sites};

/// The largest page that is made one file.
const PAGE_MAX_BYTES: usize = 32 << 20;

/// One file to download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Download {
    /// A site's versions and visits from one time to another, as WARC (gzip).
    Warc {
        /// The site.
        site: SiteId,
        /// First and last second.
        range: (i64, i64),
    },
    /// The same as a WACZ package.
    Wacz {
        /// The site.
        site: SiteId,
        /// First and last second.
        range: (i64, i64),
    },
    /// A site as of a time, as files in a ZIP.
    Mirror {
        /// The site.
        site: SiteId,
        /// As of this second.
        at_s: i64,
    },
    /// A page as of a time, as one HTML file with everything in it.
    Page {
        /// The page.
        url: CanonicalUrl,
        /// As of this second.
        at_s: i64,
    },
}

impl Download {
    /// The ending of its file's name.
    pub fn extension(&self) -> &'static str {
        match self {
            Self::Warc { .. } => "warc.gz",
            Self::Wacz { .. } => "wacz",
            Self::Mirror { .. } => "zip",
            Self::Page { .. } => "html",
        }
    }

    /// Its media type.
    pub fn mime(&self) -> &'static str {
        match self {
            Self::Warc { .. } => "application/warc",
            Self::Wacz { .. } => "application/wacz+zip",
            Self::Mirror { .. } => "application/zip",
            Self::Page { .. } => "text/html; charset=utf-8",
        }
    }
}

impl Archive {
    /// Writes a download to a file, whose name ends with [`Download::extension`]. Progress is counted
    /// in pages.
    pub fn write_download(
        &self,
        what: &Download,
        path: &Path,
        options: ExportOptions,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        let of_site = |site: SiteId, (from_s, to_s): (i64, i64)| ExportOptions {
            site: Some(site),
            from_s,
            to_s,
            // One file.
            roll_bytes: u64::MAX,
            ..options.clone()
        };
        match what {
            Download::Warc { site, range } => {
                self.export_warc(path, &of_site(*site, *range), progress).map(drop)
            }
            Download::Wacz { site, range } => {
                self.export_wacz(path, &of_site(*site, *range), progress).map(drop)
            }
            Download::Mirror { site, at_s } => {
                let site = sites::find(&**self.state(), &site.0.to_string())?;
                let file = File::create(path).map_err(ArchiveError::writing(path))?;
                let out = BufWriter::with_capacity(1 << 20, file);
                self.export_mirror_zip(&site, *at_s, out, path, progress)
            }
            Download::Page { url, at_s } => {
                let page = self.page_as_file(url, *at_s)?.ok_or_else(|| {
                    ArchiveError::Input(format!("{url} has no version of that time or before"))
                })?;
                std::fs::write(path, page.html).map_err(ArchiveError::writing(path))
            }
        }
    }

    fn export_mirror_zip(
        &self,
        site: &nenrin_state::Site,
        at_s: i64,
        out: impl Write + Seek,
        path: &Path,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        let mut zip = ZipWriter::new(out);
        let sites = std::slice::from_ref(site);
        let (all, mut done) = (site.counts.pages, 0);
        self.each_mirror_file(sites, at_s, false, &mut |file| {
            done += 1;
            progress(done, all);
            zip.begin(&file.path.to_string_lossy()).map_err(ArchiveError::writing(path))?;
            self.store().read_to(file.version, &mut zip)?;
            Ok(())
        })?;
        let mut out = zip.finish().map_err(ArchiveError::writing(path))?;
        out.flush().map_err(ArchiveError::writing(path))
    }

    /// A page as of a time as one HTML file: styles, images and fonts are in it, scripts are not.
    /// `None` if it has no version of that time or before.
    pub fn page_as_file(&self, url: &CanonicalUrl, at_s: i64) -> Result<Option<InlinedPage>> {
        let Some(version) = self.as_of(url.as_str(), at_s)? else { return Ok(None) };
        let body = version.decoded_body()?;
        if body.len() > PAGE_MAX_BYTES {
            return Err(ArchiveError::Input(format!("{url} is larger than 32 MB")));
        }
        let content_type = version.header("content-type");
        let html = charset(content_type.as_deref(), &body).decode(&body).0.into_owned();
        let mut find = |wanted: &CanonicalUrl| {
            let (_, row) = self.state().version_as_of(&wanted.key(), at_s).ok()??;
            let part = self.version(&row).ok()?;
            (200..300).contains(&part.status()).then_some(())?;
            let body = part.decoded_body().ok()?;
            Some(PagePart { url: wanted.clone(), content_type: part.header("content-type"), body })
        };
        Ok(Some(inlined_page(&html, version.url(), &mut find)))
    }
}
