//! WACZ 1.1.1: WARC files, their index, the list of pages and the package description, in one zip.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use serde::Serialize;
use serde_json::json;

use crate::cdxj::CdxWriter;
use crate::digest::base16;
use crate::iso_date;
use crate::zip::ZipWriter;

use sha2::{Digest as _, Sha256};

const WACZ_VERSION: &str = "1.1.1";

/// The description of a package.
#[derive(Debug, Clone, Default)]
pub struct PackageAbout {
    /// Its title for people.
    pub title: String,
    /// Its content in words.
    pub description: String,
    /// The program that wrote it.
    pub software: String,
    /// When it was written, in seconds since the epoch.
    pub created_s: i64,
    /// The page where a reader should begin, and its date.
    pub main_page: Option<(String, i64)>,
}

/// A page in the list of pages.
#[derive(Debug, Clone, Serialize)]
pub struct PageLine {
    /// Distinguishes the entries.
    pub id: String,
    /// The page.
    pub url: String,
    /// Its date as in RFC 3339.
    pub ts: String,
    /// Its title.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// Its visible text, for search.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Bytes of its body.
    pub size: u64,
}

/// Writes a package. WARC files go straight into it; pages and index wait in temporary files.
pub struct WaczWriter<W: Write + Seek> {
    zip: ZipWriter<W>,
    pages: io::BufWriter<File>,
    index: CdxWriter<io::BufWriter<File>, io::BufWriter<File>>,
    index_files: (File, File),
}

impl<W: Write + Seek> WaczWriter<W> {
    /// Writes to `out` from its beginning.
    pub fn new(out: W) -> io::Result<Self> {
        let mut pages = io::BufWriter::new(tempfile::tempfile()?);
        let first = json!({"format": "json-pages-1.0", "id": "pages", "title": "All Pages"});
        writeln!(pages, "{first}")?;
        let index_files = (tempfile::tempfile()?, tempfile::tempfile()?);
        let buffered = |file: &File| file.try_clone().map(io::BufWriter::new);
        let (data, members) = (buffered(&index_files.0)?, buffered(&index_files.1)?);
        let index = CdxWriter::compressed(data, members, "index.cdx.gz")?;
        Ok(Self { zip: ZipWriter::new(out), pages, index, index_files })
    }

    /// Begins a WARC file; what is written from now on belongs to it.
    pub fn begin_warc(&mut self, name: &str) -> io::Result<()> {
        self.zip.begin(&format!("archive/{name}"))
    }

    /// Adds a line to the index; lines must be sorted.
    pub fn index_line(&mut self, line: &str) -> io::Result<()> {
        self.index.write(line)
    }

    /// Adds a page to the list.
    pub fn page(&mut self, page: &PageLine) -> io::Result<()> {
        serde_json::to_writer(&mut self.pages, page).map_err(io::Error::from)?;
        self.pages.write_all(b"\n")
    }

    /// Writes index, pages and package description.
    pub fn finish(mut self, about: &PackageAbout) -> io::Result<W> {
        self.index.finish()?;
        let pages = self.pages.into_inner().map_err(io::IntoInnerError::into_error)?;
        let (data, members) = self.index_files;
        for (name, mut file) in [
            ("indexes/index.cdx.gz", data),
            ("indexes/index.idx", members),
            ("pages/pages.jsonl", pages),
        ] {
            self.zip.begin(name)?;
            file.seek(SeekFrom::Start(0))?;
            copy(&mut file, &mut self.zip)?;
        }
        self.zip.end()?;
        let package = package(about, &self.zip);
        self.zip.begin("datapackage.json")?;
        self.zip.write_all(&package)?;
        self.zip.begin("datapackage-digest.json")?;
        let hash = format!("sha256:{}", base16(&Sha256::digest(&package)));
        let digest = json!({"path": "datapackage.json", "hash": hash});
        self.zip.write_all(format!("{digest:#}").as_bytes())?;
        self.zip.finish()
    }
}

impl<W: Write + Seek> Write for WaczWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.zip.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.zip.flush()
    }
}

fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<u64> {
    io::copy(&mut io::BufReader::with_capacity(1 << 16, from), to)
}

fn package<W: Write + Seek>(about: &PackageAbout, zip: &ZipWriter<W>) -> Vec<u8> {
    let resource = |part: &crate::zip::ZipPart| {
        let name = part.name.rsplit('/').next().unwrap_or_default();
        json!({"name": name, "path": part.name, "hash": part.sha256, "bytes": part.length})
    };
    let mut package = json!({
        "profile": "data-package",
        "wacz_version": WACZ_VERSION,
        "title": about.title,
        "description": about.description,
        "software": about.software,
        "created": iso_date(about.created_s),
        "resources": zip.parts().iter().map(resource).collect::<Vec<_>>(),
    });
    if let Some((url, at_s)) = &about.main_page {
        package["mainPageUrl"] = json!(url);
        package["mainPageDate"] = json!(iso_date(*at_s));
    }
    format!("{package:#}").into_bytes()
}
