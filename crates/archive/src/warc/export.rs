//! What is archived as captures and revisits, page by page in the order of their keys, which is
//! the order of the index and the order in which compacted packs hold them.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    io::Write,
    path::{Path, PathBuf},
    sync::mpsc,
};

use nenrin_extract::{content_kind, decode_content, visible_text};
use nenrin_state::{PageFilter, Site, SiteId, VersionQuery, VersionRow, VisitRow};
use nenrin_store::{Store, VersionHead, VersionId};
use nenrin_urls::{CanonicalUrl, PostedUrl, RenderedRecord, UrlKey};
use nenrin_warc::{
    BodyDigests, Capture, Compressed, DigestAlgorithm, PageLine, RevisitProfile, SortedLines,
    WarcError, cdx_key, iso_date,
};

use super::{
    output::{Output, Settings, beside},
    records::{FoundRevisit, ReadBody, ReadCapture, Required},
    since::Since,
    unchanged::revisits,
};
use crate::{
    Archive, ArchiveError, Progress, Result, counted, error::full_text, head, logins::redact,
    readable_bytes,
};

/// Pages read from the state at once.
const PORTION: usize = 2_000;
/// Captures that wait for the thread that compresses.
const WAITING: usize = 16;
/// A larger body is never in memory as a whole: it is read twice, first for its digests.
const STREAMED_FROM_BYTES: u64 = 16 << 20;
/// The most of a page's text that goes into the list of pages.
const TEXT_MAX_BYTES: usize = 64 << 10;
const TITLE_MAX_CHARS: usize = 200;
/// Sites that are named in the title of a collection.
const TITLE_SITES_MAX: usize = 20;
const DECODED_MAX_BYTES: usize = 64 << 20;

/// Which visits are exported, and how.
#[derive(Debug, Clone)]
pub struct ExportOptions {
    /// Only this site.
    pub site: Option<SiteId>,
    /// Only URLs that begin like this.
    pub prefix: Option<CanonicalUrl>,
    /// From this second on, since the epoch.
    pub from_s: i64,
    /// Up to and including this second.
    pub to_s: i64,
    /// How digests are made.
    pub algorithm: DigestAlgorithm,
    /// Content from before `from_s` is named in a file beside the export, not written again.
    pub references: bool,
    /// A CDXJ index is written beside the files.
    pub index: bool,
    /// A new file is begun when one has reached this size in bytes.
    pub roll_bytes: u64,
    /// The name of the collection; by default the names of its sites.
    pub title: Option<String>,
    /// The program that collected, as it introduced itself to servers.
    pub user_agent: String,
    /// When the export was made, in seconds since the epoch.
    pub now_s: i64,
}

impl ExportOptions {
    /// Everything, in files of about a gigabyte.
    pub fn new(now_s: i64) -> Self {
        Self {
            site: None,
            prefix: None,
            from_s: i64::MIN,
            to_s: i64::MAX,
            algorithm: DigestAlgorithm::Sha256,
            references: false,
            index: false,
            roll_bytes: 1 << 30,
            title: None,
            user_agent: format!("nenrin/{}", env!("CARGO_PKG_VERSION")),
            now_s,
        }
    }
}

/// What an export wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Exported {
    /// The files, in the order in which they were written.
    pub files: Vec<PathBuf>,
    /// Pages with at least one record.
    pub pages: u64,
    /// Records with content.
    pub responses: u64,
    /// Records of unchanged visits.
    pub revisits: u64,
    /// Bytes of bodies, before compressing.
    pub body_bytes: u64,
    /// Versions that could not be read from the packs.
    pub damaged: u64,
    /// The numbers of the versions, where an export is continued.
    #[serde(skip)]
    pub(super) versions: Vec<u64>,
}

impl Exported {
    /// For people: what was written into files of so many bytes, and their names.
    pub fn lines(&self, file_bytes: u64, elapsed_ms: i64) -> Vec<String> {
        let all = format!(
            "{} and {} of {}, {} of content, in {} ({}), in {:.1} s",
            counted(self.responses, "response"),
            counted(self.revisits, "revisit"),
            counted(self.pages, "page"),
            readable_bytes(self.body_bytes),
            readable_bytes(file_bytes),
            counted(self.files.len() as u64, "file"),
            elapsed_ms as f64 / 1000.0
        );
        let files = self.files.iter().map(|file| file.display().to_string());
        std::iter::once(all).chain(files).collect()
    }
}

/// What goes from the thread that reads to the thread that compresses.
enum Item {
    Capture(Box<ReadCapture>),
    Revisit(Box<FoundRevisit>),
    /// Content that a revisit needs and that is not written.
    Required(Required),
    /// All of a key was given.
    EndOfKey,
    Damaged(String),
}

impl Archive {
    /// Writes WARC files. The ending of the name chooses the format: `.warc`, `.warc.gz` or
    /// `.warc.zst`. The first file has this name, further ones a number in it.
    pub fn export_warc(
        &self,
        path: &Path,
        options: &ExportOptions,
        progress: &mut Progress<'_>,
    ) -> Result<Exported> {
        self.export_files(path, (options, None), progress)
    }

    /// As [`export_warc`](Self::export_warc), only what an earlier export does not have.
    pub(super) fn export_files(
        &self,
        path: &Path,
        (options, since): Selected<'_>,
        progress: &mut Progress<'_>,
    ) -> Result<Exported> {
        let name = path.to_string_lossy();
        let compressed = compressed(&name)?;
        let failed = || ArchiveError::warc(name.clone());
        let mut output = Output::files(path, self.settings(options, compressed)?);
        if options.index {
            output.with_index(&beside(path, "cdxj")).map_err(failed())?;
        }
        if options.references {
            output.with_requires(&beside(path, "requires.jsonl")).map_err(failed())?;
        }
        export(self, (options, since), (output, &name), progress)
    }

    /// Writes one WACZ package.
    pub fn export_wacz(
        &self,
        path: &Path,
        options: &ExportOptions,
        progress: &mut Progress<'_>,
    ) -> Result<Exported> {
        let name = path.to_string_lossy();
        let settings = self.settings(options, Compressed::Gzip)?;
        let output = Output::package(path, settings).map_err(ArchiveError::warc(name.clone()))?;
        export(self, (options, None), (output, &name), progress)
    }

    /// Writes one gzipped WARC file into a stream.
    pub fn export_warc_stream(
        &self,
        stream: Box<dyn Write + Send>,
        options: &ExportOptions,
    ) -> Result<Exported> {
        let output = Output::stream(stream, self.settings(options, Compressed::Gzip)?);
        export(self, (options, None), (output, "the WARC stream"), &mut |_, _| {})
    }

    fn settings(&self, options: &ExportOptions, compressed: Compressed) -> Result<Settings> {
        let title = match &options.title {
            Some(title) => title.clone(),
            None => {
                let is_meant = |site: &Site| options.site.is_none_or(|id| id == site.id);
                let sites = self.state().sites()?.into_iter().filter(is_meant);
                sites.take(TITLE_SITES_MAX).map(|site| site.name).collect::<Vec<_>>().join(", ")
            }
        };
        Ok(Settings {
            compressed,
            algorithm: options.algorithm,
            roll_bytes: options.roll_bytes,
            now_s: options.now_s,
            title,
            user_agent: options.user_agent.clone(),
        })
    }
}

/// The format that the ending of a name chooses.
fn compressed(name: &str) -> Result<Compressed> {
    match () {
        () if name.ends_with(".warc.gz") => Ok(Compressed::Gzip),
        () if name.ends_with(".warc.zst") => Ok(Compressed::Zstd),
        () if name.ends_with(".warc") => Ok(Compressed::Not),
        () => Err(ArchiveError::Input(format!(
            "{name}: unknown format; expected a name ending in .warc.gz, .warc.zst or .warc"
        ))),
    }
}

/// What is exported, and what an earlier export has of it.
type Selected<'a> = (&'a ExportOptions, Option<&'a Since>);

/// Writes what is selected to an output; progress is counted in pages.
fn export(
    archive: &Archive,
    (selection, since): Selected<'_>,
    (mut output, name): (Output, &str),
    progress: &mut Progress<'_>,
) -> Result<Exported> {
    let all_pages = match selection.site {
        Some(id) => {
            archive.state().sites()?.iter().find(|s| s.id == id).map_or(0, |s| s.counts.pages)
        }
        None => archive.state().stats()?.pages,
    };
    let mut tell = |done| progress(done, all_pages);
    let exported = copy(archive, (selection, since), (&mut output, name), &mut tell)?;
    let files = output.finish().map_err(ArchiveError::warc(name))?;
    Ok(Exported { files, ..exported })
}

fn copy(
    archive: &Archive,
    (selection, since): Selected<'_>,
    (output, name): (&mut Output, &str),
    tell: &mut dyn FnMut(u64),
) -> Result<Exported> {
    let with_pages = output.lists_pages();
    std::thread::scope(|scope| {
        let (sender, items) = mpsc::sync_channel(WAITING);
        let reader = scope.spawn(move || {
            let walk = Walk { archive, selection, since, with_pages, items: &sender };
            walk.all().map(|()| drop(sender))
        });
        let written = write_items(&items, output, (archive.store(), selection.algorithm), tell);
        // An output that failed must not leave the other side waiting to send.
        drop(items);
        let read = reader.join().unwrap_or_else(|_| Err(ArchiveError::Cut { what: "reading" }));
        let exported = written.map_err(ArchiveError::warc(name))?;
        read?;
        Ok(exported)
    })
}

fn write_items(
    items: &mpsc::Receiver<Item>,
    output: &mut Output,
    (store, algorithm): (&Store, DigestAlgorithm),
    tell: &mut dyn FnMut(u64),
) -> Result<Exported, WarcError> {
    let mut exported = Exported::default();
    for item in items {
        match item {
            Item::Capture(capture) => {
                exported.responses += 1;
                exported.versions.push(capture.head.id.0);
                exported.body_bytes += capture.fields.body_bytes();
                output.capture(&capture, store)?;
            }
            Item::Revisit(revisit) => {
                exported.revisits += 1;
                output.revisit(&revisit, algorithm)?;
            }
            Item::Required(required) => output.required(&required)?,
            Item::EndOfKey => {
                exported.pages += 1;
                output.end_key()?;
                tell(exported.pages);
            }
            Item::Damaged(what) => {
                exported.damaged += 1;
                tracing::warn!("not exported: {what}");
            }
        }
    }
    Ok(exported)
}

struct Walk<'a> {
    archive: &'a Archive,
    selection: &'a ExportOptions,
    since: Option<&'a Since>,
    with_pages: bool,
    items: &'a mpsc::SyncSender<Item>,
}

impl Walk<'_> {
    fn all(&self) -> Result<()> {
        let mut group: Vec<CanonicalUrl> = Vec::new();
        let mut failure = None;
        self.sorted_urls()?
            .finish(&mut |line| {
                let url = line.split_once('\t').and_then(|(_, url)| CanonicalUrl::parse(url).ok());
                let Some(url) = url else { return Ok(()) };
                let is_next = group.first().is_some_and(|first| cdx_key(first) != cdx_key(&url));
                if is_next && let Err(error) = self.key(&std::mem::take(&mut group)) {
                    failure = Some(error);
                    return Err(std::io::Error::other("stopped"));
                }
                group.push(url);
                Ok(())
            })
            .map_err(|error| failure.take().unwrap_or_else(|| sorting(error)))?;
        self.key(&group)
    }

    /// The URLs with versions, by key. The state lists a site's pages in the order of their hashes.
    fn sorted_urls(&self) -> Result<SortedLines> {
        let mut lines = SortedLines::default();
        let mut after = None;
        loop {
            let filter = PageFilter { site: self.selection.site, after, limit: PORTION };
            let portion = self.archive.state().pages(filter)?;
            let Some(last) = portion.last() else { return Ok(lines) };
            after = Some(last.id);
            for page in portion.into_iter().filter(|page| page.version.is_some()) {
                let prefix = self.selection.prefix.as_ref().map_or("", CanonicalUrl::as_str);
                if page.url.as_str().starts_with(prefix) {
                    lines.push(format!("{}\t{}", cdx_key(&page.url), page.url)).map_err(sorting)?;
                }
            }
        }
    }

    /// All that was seen under a key, in the order of time.
    fn key(&self, urls: &[CanonicalUrl]) -> Result<()> {
        let to_s = self.selection.to_s;
        let mut versions: BTreeMap<&CanonicalUrl, Vec<VersionRow>> = BTreeMap::new();
        // The archive looks versions up by a key of its own.
        let keys: BTreeSet<UrlKey> = urls.iter().map(CanonicalUrl::key).collect();
        for key in keys {
            let query = VersionQuery { to_s, ..VersionQuery::default() };
            for (url, row) in self.archive.state().versions(&key, query)? {
                if let Some(url) = urls.iter().find(|known| **known == url) {
                    versions.entry(url).or_default().push(row);
                }
            }
        }
        let mut events: Vec<Event<'_>> = Vec::new();
        for (url, rows) in &versions {
            events.extend(self.events(url, rows)?);
        }
        events.sort_by_key(|event| (event.at_s(), event.rank()));
        if events.is_empty() {
            return Ok(());
        }
        let mut digests: BTreeMap<VersionId, String> = BTreeMap::new();
        for event in events {
            self.event(event, &mut digests)?;
        }
        self.send(Item::EndOfKey)
    }

    /// The versions of a page in the selected time, the unchanged visits between them, and the
    /// versions before it that those need.
    fn events<'u>(&self, url: &'u CanonicalUrl, rows: &[VersionRow]) -> Result<Vec<Event<'u>>> {
        let from_s = self.selection.from_s;
        let visits = self.archive.state().visits_of(url, from_s, self.selection.to_s)?;
        let mut events: Vec<Event<'u>> = Vec::new();
        let since = self.since;
        let has_version =
            |row: &VersionRow| since.is_some_and(|since| since.has_version(row.version));
        let mut needed: BTreeMap<VersionId, &VersionRow> = BTreeMap::new();
        for (visit, profile) in revisits(visits, rows) {
            if since.is_some_and(|since| since.has_visit(visit.id)) {
                continue;
            }
            let known = rows.partition_point(|row| row.at_s <= visit.at_s);
            let Some(row) = known.checked_sub(1).map(|at| &rows[at]) else { continue };
            if row.at_s < from_s || has_version(row) {
                needed.insert(row.version, row);
            }
            events.push(Event::Visit { url, visit, profile, original: row.clone() });
        }
        for row in needed.into_values() {
            let required = self.selection.references || has_version(row);
            events.push(Event::Version { url, row: row.clone(), required });
        }
        let inside = rows.iter().filter(|row| row.at_s >= from_s && !has_version(row));
        events.extend(inside.map(|row| Event::Version { url, row: row.clone(), required: false }));
        Ok(events)
    }

    fn event(&self, event: Event<'_>, digests: &mut BTreeMap<VersionId, String>) -> Result<()> {
        match event {
            Event::Version { url, row, required } => match self.read(&row) {
                Ok(capture) => {
                    let digest = capture.fields.payload_digest().to_owned();
                    digests.insert(row.version, digest.clone());
                    if required {
                        let (url, date) = (url.to_string(), iso_date(row.at_s));
                        return self.send(Item::Required(Required { url, date, digest }));
                    }
                    self.send(Item::Capture(Box::new(capture)))
                }
                Err(error) => self.send(Item::Damaged(format!("{url}: {}", full_text(&error)))),
            },
            // A rendering that brought the same again says nothing of a server.
            Event::Visit { url, .. } if RenderedRecord::is_one(url) => Ok(()),
            Event::Visit { url, visit, profile, original } => {
                // Without its original a revisit could not be replayed.
                let Some(digest) = digests.get(&original.version) else { return Ok(()) };
                let request_head = match PostedUrl::is_one(url) {
                    true => {
                        without_secrets(self.archive.store().head(original.version)?).request_head
                    }
                    false => Vec::new(),
                };
                self.send(Item::Revisit(Box::new(FoundRevisit {
                    url: url.clone(),
                    visit,
                    profile,
                    original_at_s: original.at_s,
                    payload_digest: digest.clone(),
                    request_head,
                })))
            }
        }
    }

    fn read(&self, row: &VersionRow) -> Result<ReadCapture> {
        let id = row.version;
        let (store, algorithm) = (self.archive.store(), self.selection.algorithm);
        let (head, body, digests) = if row.bytes > STREAMED_FROM_BYTES {
            let head = without_secrets(store.head(id)?);
            let read = |part: &mut dyn FnMut(&[u8])| store.read_to(id, &mut Each(part)).map(drop);
            let digests = BodyDigests::read(algorithm, &head.response_head, row.bytes, read)?;
            (head, ReadBody::Stored(id), digests)
        } else {
            let version = store.read(id)?;
            let head = without_secrets(version.head);
            let digests = BodyDigests::of(algorithm, &head.response_head, &version.body);
            (head, ReadBody::Memory(version.body), digests)
        };
        let tls = head.tls.as_deref().map(tls_word);
        let [mime, coding] =
            head::fields(&head.response_head, ["content-type", "content-encoding"]);
        let urn = RenderedRecord::urn(&head.url);
        let fields = Capture {
            url: &head.url,
            at_s: head.visited_at_s,
            serial: content_serial(&head),
            server_address: head.server_address,
            protocol: &head.protocol,
            tls: tls.as_deref(),
            request_head: &head.request_head,
            body: &digests,
            truncated: head.truncated.as_deref(),
            resource: urn.as_deref().zip(mime.as_deref()),
        }
        .prepare(algorithm);
        let page = match &body {
            ReadBody::Memory(body)
                if self.with_pages
                    && head.status == 200
                    && !RenderedRecord::is_one(&head.url)
                    && !PostedUrl::is_one(&head.url) =>
            {
                page_line(&head, mime.as_deref(), coding.as_deref(), body)
            }
            _ => None,
        };
        Ok(ReadCapture { head, mime, body, fields, page })
    }

    fn send(&self, item: Item) -> Result<()> {
        self.items.send(item).map_err(|_| ArchiveError::Cut { what: "writing" })
    }
}

/// Calls a function with what is written.
struct Each<'a>(&'a mut dyn FnMut(&[u8]));

impl Write for Each<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        (self.0)(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Lines are sorted in temporary files.
fn sorting(error: std::io::Error) -> ArchiveError {
    ArchiveError::io("sort lines in", &std::env::temp_dir())(error)
}

enum Event<'u> {
    Version { url: &'u CanonicalUrl, row: VersionRow, required: bool },
    Visit { url: &'u CanonicalUrl, visit: VisitRow, profile: RevisitProfile, original: VersionRow },
}

impl Event<'_> {
    fn at_s(&self) -> i64 {
        match self {
            Self::Version { row, .. } => row.at_s,
            Self::Visit { visit, .. } => visit.at_s,
        }
    }

    fn rank(&self) -> (u8, u64) {
        match self {
            Self::Version { row, .. } => (0, row.version.0),
            Self::Visit { visit, .. } => (1, visit.id.unsigned_abs()),
        }
    }
}

/// Distinguishes what one page sent within one second, the same in every archive.
fn content_serial(head: &VersionHead) -> u64 {
    let mut serial = [0; 8];
    serial.copy_from_slice(&head.digest.0[..8]);
    u64::from_le_bytes(serial) ^ u64::from(head.status)
}

/// "tls/1.3", also for versions recorded with the name that rustls gives it.
fn tls_word(tls: &str) -> String {
    tls.strip_prefix("TLSv")
        .map_or_else(|| tls.to_owned(), |v| format!("tls/{}", v.replace('_', ".")))
}

/// A line for the list of pages; `None` for content that is not a page.
fn page_line(
    head: &VersionHead,
    content_type: Option<&str>,
    content_encoding: Option<&str>,
    body: &[u8],
) -> Option<PageLine> {
    let body = decode_content(content_encoding, body, DECODED_MAX_BYTES).ok()?;
    let kind = content_kind(content_type, &head.url, &body);
    if !kind.is_page() {
        return None;
    }
    let text = visible_text(kind, content_type, &body, TEXT_MAX_BYTES);
    let has_title = body.windows(6).take(64 << 10).any(|w| w.eq_ignore_ascii_case(b"<title"));
    let title = text.lines().next().filter(|_| has_title).unwrap_or_default();
    Some(PageLine {
        id: format!("{:016x}-{}", content_serial(head), head.visited_at_s),
        url: head.url.to_string(),
        ts: iso_date(head.visited_at_s),
        title: title.chars().take(TITLE_MAX_CHARS).collect(),
        text,
        size: head.body_bytes,
    })
}

/// Cookies and passwords that were sent leave the archive with no export. What servers set for a log-in
/// is not recorded in the first place.
fn without_secrets(mut head: VersionHead) -> VersionHead {
    if let Cow::Owned(clean) = redact(&head.request_head) {
        head.request_head = clean;
    }
    head
}
