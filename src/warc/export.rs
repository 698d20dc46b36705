//! What is archived as captures and revisits, page by page in the order of their keys, which is
//! the order of the index and the order in which compacted packs hold them.

use std::{collections::BTreeMap, sync::mpsc};

use anyhow::Context as _;
use nenrin_extract::{content_kind, decode_content, visible_text};
use nenrin_state::{PageFilter, SiteId, VersionQuery, VersionRow, VisitRow};
use nenrin_store::{VersionHead, VersionId};
use nenrin_urls::CanonicalUrl;
use nenrin_warc::{
    Capture, CaptureFields, DigestAlgorithm, PageLine, RevisitProfile, SortedLines, cdx_key,
    iso_date,
};

use super::{output::Output, unchanged::revisits};
use crate::archive::Archive;

/// Pages read from the state at once.
const PORTION: usize = 2_000;
/// Captures that wait for the thread that compresses.
const WAITING: usize = 16;
/// The most of a page's text that goes into the list of pages.
const TEXT_MAX_BYTES: usize = 64 << 10;
const TITLE_MAX_CHARS: usize = 200;
const DECODED_MAX_BYTES: usize = 64 << 20;

/// Which visits are exported.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    pub(crate) site: Option<SiteId>,
    pub(crate) prefix: Option<String>,
    pub(crate) from_s: i64,
    pub(crate) to_s: i64,
    pub(crate) algorithm: DigestAlgorithm,
    /// Content from before `from_s` is named, not written.
    pub(crate) references: bool,
}

/// What an export came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Exported {
    pub(crate) pages: u64,
    pub(crate) responses: u64,
    pub(crate) revisits: u64,
    /// Bytes of bodies, before compressing.
    pub(crate) body_bytes: u64,
    /// Versions that could not be read from the packs.
    pub(crate) damaged: u64,
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

/// A version, ready to be written.
pub(crate) struct ReadCapture {
    pub(crate) head: VersionHead,
    pub(crate) mime: Option<String>,
    pub(crate) body: Vec<u8>,
    pub(crate) fields: CaptureFields,
    pub(crate) page: Option<PageLine>,
}

/// An unchanged visit and what it found unchanged.
pub(crate) struct FoundRevisit {
    pub(crate) url: CanonicalUrl,
    pub(crate) visit: VisitRow,
    pub(crate) profile: RevisitProfile,
    pub(crate) original_at_s: i64,
    pub(crate) payload_digest: String,
}

/// A capture that an export refers to without holding it.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Required {
    pub(crate) url: String,
    pub(crate) date: String,
    pub(crate) digest: String,
}

/// Writes the selection to an output; `tell` hears of each page.
pub(crate) fn export(
    archive: &Archive,
    selection: &Selection,
    output: &mut Output,
    tell: &mut dyn FnMut(u64),
) -> anyhow::Result<Exported> {
    let with_pages = output.lists_pages();
    std::thread::scope(|scope| {
        let (sender, items) = mpsc::sync_channel(WAITING);
        let reader = scope.spawn(move || {
            Walk { archive, selection, with_pages, items: &sender }.all().map(|()| drop(sender))
        });
        let written = write_items(&items, output, selection.algorithm, tell);
        // An output that failed must not leave the other side waiting for room.
        drop(items);
        let read = reader.join().unwrap_or_else(|_| Err(anyhow::anyhow!("reading failed")));
        let exported = written?;
        read?;
        Ok(exported)
    })
}

fn write_items(
    items: &mpsc::Receiver<Item>,
    output: &mut Output,
    algorithm: DigestAlgorithm,
    tell: &mut dyn FnMut(u64),
) -> anyhow::Result<Exported> {
    let mut exported = Exported::default();
    for item in items {
        match item {
            Item::Capture(capture) => {
                exported.responses += 1;
                exported.body_bytes += capture.body.len() as u64;
                output.capture(&capture)?;
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
    selection: &'a Selection,
    with_pages: bool,
    items: &'a mpsc::SyncSender<Item>,
}

impl Walk<'_> {
    fn all(&self) -> anyhow::Result<()> {
        let mut group: Vec<CanonicalUrl> = Vec::new();
        let mut failure = None;
        self.sorted_urls()?
            .finish(&mut |line| {
                let url = line.split_once('\t').and_then(|(_, url)| CanonicalUrl::parse(url).ok());
                let Some(url) = url else { return Ok(()) };
                let is_next = group.first().is_some_and(|first| first.key() != url.key());
                if is_next && let Err(error) = self.key(&std::mem::take(&mut group)) {
                    failure = Some(error);
                    return Err(std::io::Error::other("given up"));
                }
                group.push(url);
                Ok(())
            })
            .map_err(|error| failure.take().unwrap_or(error.into()))?;
        self.key(&group)
    }

    /// The URLs with versions, by key. A site's pages stand in the order of their hashes.
    fn sorted_urls(&self) -> anyhow::Result<SortedLines> {
        let mut lines = SortedLines::default();
        let mut after = None;
        loop {
            let filter = PageFilter { site: self.selection.site, after, limit: PORTION };
            let portion = self.archive.state.pages(filter)?;
            let Some(last) = portion.last() else { return Ok(lines) };
            after = Some(last.id);
            for page in portion.into_iter().filter(|page| page.version.is_some()) {
                let prefix = self.selection.prefix.as_deref().unwrap_or_default();
                if page.url.as_str().starts_with(prefix) {
                    lines.push(format!("{}\t{}", cdx_key(&page.url), page.url))?;
                }
            }
        }
    }

    /// All that was seen under a key, in the order of time.
    fn key(&self, urls: &[CanonicalUrl]) -> anyhow::Result<()> {
        let Some(first) = urls.first() else { return Ok(()) };
        let to_s = self.selection.to_s;
        let query = VersionQuery { to_s, ..VersionQuery::default() };
        let mut versions: BTreeMap<&CanonicalUrl, Vec<VersionRow>> = BTreeMap::new();
        for (url, row) in self.archive.state.versions(&first.key(), query)? {
            if let Some(url) = urls.iter().find(|known| **known == url) {
                versions.entry(url).or_default().push(row);
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
        let mut digests: BTreeMap<u64, String> = BTreeMap::new();
        for event in events {
            self.event(event, &mut digests)?;
        }
        self.send(Item::EndOfKey)
    }

    /// The versions of a page in the selected time, the unchanged visits between them, and the
    /// versions before it that those need.
    fn events<'u>(
        &self,
        url: &'u CanonicalUrl,
        rows: &[VersionRow],
    ) -> anyhow::Result<Vec<Event<'u>>> {
        let from_s = self.selection.from_s;
        let visits = self.archive.state.visits_of(url, from_s, self.selection.to_s)?;
        let mut events: Vec<Event<'u>> = Vec::new();
        let mut needed: Option<&VersionRow> = None;
        for (visit, profile) in revisits(visits, rows) {
            let known = rows.partition_point(|row| row.at_s <= visit.at_s);
            let Some(row) = known.checked_sub(1).map(|at| &rows[at]) else { continue };
            if row.at_s < from_s {
                needed = Some(row);
            }
            events.push(Event::Visit { url, visit, profile, original: row.clone() });
        }
        if let Some(row) = needed {
            let required = self.selection.references;
            events.push(Event::Version { url, row: row.clone(), required });
        }
        let inside = rows.iter().filter(|row| row.at_s >= from_s);
        events.extend(inside.map(|row| Event::Version { url, row: row.clone(), required: false }));
        Ok(events)
    }

    fn event(&self, event: Event<'_>, digests: &mut BTreeMap<u64, String>) -> anyhow::Result<()> {
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
                Err(error) => self.send(Item::Damaged(format!("{url}: {error:#}"))),
            },
            Event::Visit { url, visit, profile, original } => {
                // Without its original a revisit could not be replayed.
                let Some(digest) = digests.get(&original.version) else { return Ok(()) };
                self.send(Item::Revisit(Box::new(FoundRevisit {
                    url: url.clone(),
                    visit,
                    profile,
                    original_at_s: original.at_s,
                    payload_digest: digest.clone(),
                })))
            }
        }
    }

    fn read(&self, row: &VersionRow) -> anyhow::Result<ReadCapture> {
        let version = self.archive.store.read(VersionId(row.version))?;
        let (head, body) = (version.head, version.body);
        let tls = head.tls.as_deref().map(tls_word);
        let fields = Capture {
            url: &head.url,
            at_s: head.visited_at_s,
            serial: content_serial(&head),
            server_address: head.server_address,
            protocol: &head.protocol,
            tls: tls.as_deref(),
            request_head: &head.request_head,
            response_head: &head.response_head,
            body: &body,
            truncated: head.truncated.as_deref(),
        }
        .prepare(self.selection.algorithm);
        let header = |name: &str| {
            nenrin_fetch::header_fields(&head.response_head)
                .find(|(found, _)| found.eq_ignore_ascii_case(name.as_bytes()))
                .map(|(_, value)| String::from_utf8_lossy(&value).into_owned())
        };
        let mime = header("content-type");
        let page = match self.with_pages && head.status == 200 {
            true => page_line(&head, mime.as_deref(), header("content-encoding").as_deref(), &body),
            false => None,
        };
        Ok(ReadCapture { head, mime, body, fields, page })
    }

    fn send(&self, item: Item) -> anyhow::Result<()> {
        self.items.send(item).ok().context("the output was given up")
    }
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
            Self::Version { row, .. } => (0, row.version),
            Self::Visit { visit, .. } => (1, visit.id.unsigned_abs()),
        }
    }
}

/// Tells apart what one page sent within one second, the same in every archive.
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

/// A page for the list of pages; none for what is no page.
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
