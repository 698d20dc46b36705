//! Where an export goes: files that roll over, a package, or a stream.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use nenrin_store::{Store, VersionId};
use nenrin_urls::{CanonicalUrl, PostedUrl, RenderedRecord};
use nenrin_warc::{
    CdxFields, CdxLine, CdxWriter, Compressed, DigestAlgorithm, PackageAbout, RecordWriter,
    Revisit, WaczWriter, WarcError, Written, cdx_key, date_digits, write_warcinfo,
};

use super::records::{FoundRevisit, ReadBody, ReadCapture, Required};

/// Errors have no file name here: an export adds that of its target.
type Result<T> = std::result::Result<T, WarcError>;

const BUFFER_BYTES: usize = 1 << 18;
/// A large body is read in parts of this size at most.
const PART_BYTES: usize = 4 << 20;

/// An export being written.
pub(super) struct Output {
    target: Target,
    settings: Settings,
    open: Option<OpenFile>,
    files: Vec<PathBuf>,
    index: Option<CdxWriter<BufWriter<File>, io::Sink>>,
    requires: Option<BufWriter<File>>,
    /// The lines of the key that is being written; only together they can be sorted.
    lines: Vec<String>,
    main_page: Option<(String, i64)>,
}

/// What every file of an export shares.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) compressed: Compressed,
    pub(super) algorithm: DigestAlgorithm,
    pub(super) roll_bytes: u64,
    pub(super) now_s: i64,
    /// The sites exported, for people.
    pub(super) title: String,
    pub(super) user_agent: String,
}

enum Target {
    Files(PathBuf),
    /// Taken while a WARC file in it is open.
    Package {
        path: PathBuf,
        writer: Option<Box<Package>>,
    },
    Stream(Option<Box<dyn Write + Send>>),
}

type Package = WaczWriter<BufWriter<File>>;

struct OpenFile {
    name: String,
    warcinfo_id: String,
    writer: RecordWriter<Stream>,
}

enum Stream {
    File { file: BufWriter<File>, part: PathBuf, path: PathBuf },
    Package(Box<Package>),
    Other(Box<dyn Write + Send>),
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File { file, .. } => file.write(bytes),
            Self::Package(package) => package.write(bytes),
            Self::Other(other) => other.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File { file, .. } => file.flush(),
            Self::Package(package) => package.flush(),
            Self::Other(other) => other.flush(),
        }
    }
}

impl Output {
    /// WARC files: the first has this name, the others a number in it.
    pub(super) fn files(path: &Path, settings: Settings) -> Self {
        Self::new(Target::Files(path.to_owned()), settings)
    }

    /// One WACZ package.
    pub(super) fn package(path: &Path, settings: Settings) -> Result<Self> {
        let file = create(&part_path(path))?;
        let writer = Some(Box::new(WaczWriter::new(file)?));
        Ok(Self::new(Target::Package { path: path.to_owned(), writer }, settings))
    }

    /// One WARC file, as a stream without an end that is known before.
    pub(super) fn stream(stream: Box<dyn Write + Send>, mut settings: Settings) -> Self {
        settings.roll_bytes = u64::MAX;
        Self::new(Target::Stream(Some(stream)), settings)
    }

    fn new(target: Target, settings: Settings) -> Self {
        Self {
            target,
            settings,
            open: None,
            files: Vec::new(),
            index: None,
            requires: None,
            lines: Vec::new(),
            main_page: None,
        }
    }

    /// Writes an index beside the files.
    pub(super) fn with_index(&mut self, path: &Path) -> Result<()> {
        self.index = Some(CdxWriter::plain(create(path)?));
        Ok(())
    }

    /// Lists what the export refers to without holding it.
    pub(super) fn with_requires(&mut self, path: &Path) -> Result<()> {
        self.requires = Some(create(path)?);
        Ok(())
    }

    /// Whether pages and their text are wanted.
    pub(super) fn lists_pages(&self) -> bool {
        matches!(self.target, Target::Package { .. })
    }

    pub(super) fn capture(&mut self, capture: &ReadCapture, store: &Store) -> Result<()> {
        let open = self.ready()?;
        let (head, fields) = (&capture.head, &capture.fields);
        let written =
            fields.write(&mut open.writer, &open.warcinfo_id, &head.request_head, &mut |take| {
                match &capture.body {
                    ReadBody::Memory(body) => take(body),
                    ReadBody::Stored(id) => read_into(store, *id, take),
                }
            })?;
        if let (Stream::Package(package), Some(page)) = (open.writer.get_mut(), &capture.page) {
            package.page(page)?;
            if self.main_page.as_ref().is_none_or(|(url, _)| page.url.len() < url.len()) {
                self.main_page = Some((page.url.clone(), head.visited_at_s));
            }
        }
        let mime = capture
            .mime
            .as_deref()
            .map(|mime| mime.split([';', ' ', '\t']).next().unwrap_or_default().trim().to_owned());
        let digest = capture.fields.payload_digest();
        let line = CdxFields {
            url: shown_url(&head.url),
            method: PostedUrl::parse(&head.url).map(|(method, _)| method.to_owned()),
            mime: mime.filter(|mime| !mime.is_empty()),
            status: Some(head.status.to_string()),
            digest: Some(digest.to_owned()),
            ..CdxFields::default()
        };
        self.line(&head.url, head.visited_at_s, line, written);
        Ok(())
    }

    pub(super) fn revisit(
        &mut self,
        found: &FoundRevisit,
        algorithm: DigestAlgorithm,
    ) -> Result<()> {
        let open = self.ready()?;
        let revisit = Revisit {
            url: &found.url,
            at_s: found.visit.at_s,
            serial: found.original_at_s.unsigned_abs(),
            profile: found.profile,
            original_url: &found.url,
            original_at_s: found.original_at_s,
            payload_digest: &found.payload_digest,
            request_head: &found.request_head,
        };
        let written = revisit.write(&mut open.writer, &open.warcinfo_id, algorithm)?;
        let line = CdxFields {
            url: shown_url(&found.url),
            method: PostedUrl::parse(&found.url).map(|(method, _)| method.to_owned()),
            mime: Some("warc/revisit".to_owned()),
            digest: Some(found.payload_digest.clone()),
            ..CdxFields::default()
        };
        self.line(&found.url, found.visit.at_s, line, written);
        Ok(())
    }

    fn line(&mut self, url: &CanonicalUrl, at_s: i64, fields: CdxFields, written: Written) {
        let is_indexed = self.index.is_some() || self.lists_pages();
        let Some(open) = self.open.as_ref().filter(|_| is_indexed) else { return };
        let fields = CdxFields {
            length: written.length.to_string(),
            offset: written.offset.to_string(),
            filename: open.name.clone(),
            ..fields
        };
        let line = CdxLine { key: cdx_key(url), timestamp: date_digits(at_s), fields };
        self.lines.push(line.to_string());
    }

    pub(super) fn required(&mut self, required: &Required) -> Result<()> {
        if let Some(requires) = &mut self.requires {
            serde_json::to_writer(&mut *requires, required).map_err(io::Error::from)?;
            requires.write_all(b"\n")?;
        }
        Ok(())
    }

    /// All of a key is written.
    pub(super) fn end_key(&mut self) -> Result<()> {
        self.lines.sort_unstable();
        for line in self.lines.drain(..) {
            if let Some(index) = &mut self.index {
                index.write(&line)?;
            }
            if let Some(OpenFile { writer, .. }) = &mut self.open
                && let Stream::Package(package) = writer.get_mut()
            {
                package.index_line(&line)?;
            }
        }
        Ok(())
    }

    /// The file to write to, after rolling over where the last one is full.
    fn ready(&mut self) -> Result<&mut OpenFile> {
        let is_full = |open: &OpenFile| open.writer.position() >= self.settings.roll_bytes;
        if self.open.as_ref().is_some_and(is_full) {
            self.close()?;
        }
        if self.open.is_none() {
            self.open = Some(self.begin()?);
        }
        self.open.as_mut().ok_or_else(closed)
    }

    fn begin(&mut self) -> Result<OpenFile> {
        let number = self.files.len();
        let (name, stream) = match &mut self.target {
            Target::Files(path) => {
                let path = numbered(path, number);
                let part = part_path(&path);
                let file = create(&part)?;
                self.files.push(path.clone());
                (file_name(&path), Stream::File { file, part, path })
            }
            Target::Package { path, writer } => {
                let extension = extension(self.settings.compressed);
                let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                let path = numbered(Path::new(&format!("{stem}.{extension}")), number);
                self.files.push(path.clone());
                let name = file_name(&path);
                let mut package = writer.take().ok_or_else(closed)?;
                package.begin_warc(&name)?;
                (name, Stream::Package(package))
            }
            Target::Stream(stream) => {
                let stream = stream.take().ok_or_else(closed)?;
                self.files.push(PathBuf::new());
                (format!("export.{}", extension(self.settings.compressed)), Stream::Other(stream))
            }
        };
        let mut writer = RecordWriter::new(stream, self.settings.compressed)?;
        let software = format!("nenrin/{}", env!("CARGO_PKG_VERSION"));
        let about = [
            ("software", software.as_str()),
            ("format", "WARC File Format 1.1"),
            (
                "conformsTo",
                "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
            ),
            ("isPartOf", &self.settings.title),
            ("http-header-user-agent", &self.settings.user_agent),
        ];
        let (now_s, algorithm) = (self.settings.now_s, self.settings.algorithm);
        let warcinfo_id = write_warcinfo(&mut writer, &name, now_s, &about, algorithm)?;
        Ok(OpenFile { name, warcinfo_id, writer })
    }

    /// Ends the file that is open; only now it gets its name.
    fn close(&mut self) -> Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        match (open.writer.finish()?, &mut self.target) {
            (Stream::File { file, part, path }, _) => {
                let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
                file.sync_all()?;
                std::fs::rename(&part, &path)?;
            }
            (Stream::Package(package), Target::Package { writer, .. }) => *writer = Some(package),
            (Stream::Other(stream), Target::Stream(place)) => *place = Some(stream),
            _ => {}
        }
        Ok(())
    }

    /// Writes what is left, and returns the files that were written.
    pub(super) fn finish(mut self) -> Result<Vec<PathBuf>> {
        // An export of nothing is a file that says so.
        self.ready()?;
        self.close()?;
        if let Some(index) = self.index.take() {
            index.finish()?;
        }
        if let Some(mut requires) = self.requires.take() {
            requires.flush()?;
        }
        match self.target {
            Target::Package { path, writer } => {
                let about = PackageAbout {
                    title: self.settings.title.clone(),
                    description: format!("Pages and their versions from {}", self.settings.title),
                    software: format!("nenrin/{}", env!("CARGO_PKG_VERSION")),
                    created_s: self.settings.now_s,
                    main_page: self.main_page,
                };
                let writer = writer.ok_or_else(closed)?;
                let file = writer.finish(&about)?;
                let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
                file.sync_all()?;
                std::fs::rename(part_path(&path), &path)?;
                Ok(vec![path])
            }
            Target::Files(_) => Ok(self.files),
            Target::Stream(stream) => {
                if let Some(mut stream) = stream {
                    stream.flush()?;
                }
                Ok(Vec::new())
            }
        }
    }
}

/// The URL that a line of the index shows.
fn shown_url(url: &CanonicalUrl) -> String {
    let sent = PostedUrl::parse(url).map(|(_, sent)| sent.to_string());
    RenderedRecord::urn(url).or(sent).unwrap_or_else(|| url.to_string())
}

/// Gives a stored body part by part.
fn read_into(
    store: &Store,
    id: VersionId,
    take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut from = 0;
    loop {
        let part = store.read_part(id, from, PART_BYTES).map_err(io::Error::other)?;
        if part.is_empty() {
            return Ok(());
        }
        from += part.len() as u64;
        take(&part)?;
    }
}

fn create(path: &Path) -> io::Result<BufWriter<File>> {
    let file = File::create(path)?;
    Ok(BufWriter::with_capacity(BUFFER_BYTES, file))
}

/// The name of a file until it is complete.
fn part_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

/// What is written to was closed before.
fn closed() -> WarcError {
    io::Error::other("the output is closed").into()
}

/// A file beside another, named after it.
pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn extension(compressed: Compressed) -> &'static str {
    match compressed {
        Compressed::Not => "warc",
        Compressed::Gzip => "warc.gz",
        Compressed::Zstd => "warc.zst",
    }
}

/// `a.warc.gz`, `a-00002.warc.gz`, …
fn numbered(path: &Path, number: usize) -> PathBuf {
    if number == 0 {
        return path.to_owned();
    }
    let name = file_name(path);
    let (stem, rest) = match name.find(".warc") {
        Some(at) => name.split_at(at),
        None => (name.as_str(), ""),
    };
    path.with_file_name(format!("{stem}-{:05}{rest}", number + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_after_the_first_have_a_number() {
        let name = |path: &str, number| numbered(Path::new(path), number).display().to_string();
        assert_eq!(name("/x/a.warc.gz", 0), "/x/a.warc.gz");
        assert_eq!(name("/x/a.warc.gz", 1), "/x/a-00002.warc.gz");
        assert_eq!(name("a.b", 9), "a.b-00010");
    }
}
