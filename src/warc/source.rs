//! The files of an import: one thread reads them, and hands every capture to the thread that stores
//! all captures of its URL.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    net::IpAddr,
    path::{Path, PathBuf},
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::Context as _;
use nenrin_store::{Deflated, MAX_HEAD_BYTES, MAX_WORD_BYTES, Packing};
use nenrin_urls::CanonicalUrl;
use nenrin_warc::{
    Entry, HttpResponse, Packed, Paired, Pairing, ReadOptions, Record, RecordReader, RecordType,
    Section, WarcError, ZipReader, digest_matches, request_method, split_message,
};

use crate::exit::usage;

/// Blocks that are longer are reported, not imported: storing needs a body whole.
const MAX_BLOCK_BYTES: u64 = 64 << 20;
/// Shorter blocks are compressed again: it takes no time, and what stands around them takes room.
const PACKED_FROM_BYTES: usize = 4 << 10;
/// Captures on their way from the reader to the store, in bytes.
const WAITING_BYTES: u64 = 48 << 20;

/// A WARC or ARC file, perhaps inside a package.
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    pub(crate) entry: Option<Entry>,
    pub(crate) bytes: u64,
}

impl Source {
    /// The files that a path stands for: itself, or the WARC files of a package.
    pub(crate) fn of(path: &Path) -> anyhow::Result<Vec<Self>> {
        let unreadable = || format!("cannot read {}", path.display());
        let mut file = File::open(path).with_context(unreadable).map_err(usage)?;
        let bytes = file.metadata().with_context(unreadable)?.len();
        let mut magic = [0; 4];
        let length = file.read(&mut magic).with_context(unreadable).map_err(usage)?;
        if &magic[..length] != b"PK\x03\x04" {
            return Ok(vec![Self { path: path.to_owned(), entry: None, bytes }]);
        }
        let package = ZipReader::open(file).with_context(unreadable).map_err(usage)?;
        let is_warc = |entry: &&Entry| {
            let endings = [".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz"];
            entry.name.starts_with("archive/") && endings.iter().any(|e| entry.name.ends_with(e))
        };
        let source = |entry: &Entry| -> anyhow::Result<Self> {
            anyhow::ensure!(
                entry.is_stored,
                usage(anyhow::anyhow!(
                    "{}: {} is compressed a second time; store it without",
                    path.display(),
                    entry.name
                ))
            );
            let (path, bytes) = (path.to_owned(), entry.length);
            Ok(Self { path, entry: Some(entry.clone()), bytes })
        };
        let sources: Vec<Self> =
            package.entries().iter().filter(is_warc).map(source).collect::<anyhow::Result<_>>()?;
        anyhow::ensure!(
            !sources.is_empty(),
            usage(anyhow::anyhow!("{} holds no WARC files below archive/", path.display()))
        );
        Ok(sources)
    }

    pub(crate) fn name(&self) -> String {
        match &self.entry {
            Some(entry) => format!("{}:{}", self.path.display(), entry.name),
            None => self.path.display().to_string(),
        }
    }

    fn damage(&self, offset: u64, reason: &str) -> String {
        format!("{}: the record at byte {offset}: {reason}", self.name())
    }

    pub(crate) fn reader(&self) -> anyhow::Result<RecordReader<Part>> {
        let file =
            File::open(&self.path).with_context(|| format!("cannot read {}", self.name()))?;
        let part = match &self.entry {
            Some(entry) => Part::Section(Section::new(file, entry)?),
            None => Part::File(file),
        };
        let options = ReadOptions {
            max_block_bytes: MAX_BLOCK_BYTES,
            packed_from_bytes: Some(PACKED_FROM_BYTES),
        };
        RecordReader::open(part, options).with_context(|| self.name())
    }
}

/// A file, or a part of one.
pub(crate) enum Part {
    File(File),
    Section(Section<File>),
}

impl Read for Part {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(buffer),
            Self::Section(section) => section.read(buffer),
        }
    }
}

impl Seek for Part {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            Self::File(file) => file.seek(to),
            Self::Section(section) => section.seek(to),
        }
    }
}

/// What was found in a file beside captures.
pub(crate) enum Found {
    /// A revisit record, read again once all captures are in.
    Revisit { source: usize, offset: u64 },
    /// A record of a kind that is not imported, and why in a word.
    Skipped(String),
    /// A record that could not be read.
    Damaged(String),
}

/// A response as it was read, not looked at yet.
pub(crate) struct RawCapture {
    pub(crate) url: CanonicalUrl,
    at_s: i64,
    source: usize,
    record: Record,
    request: Option<Vec<u8>>,
}

impl RawCapture {
    /// Bytes that it holds.
    pub(crate) fn bytes(&self) -> u64 {
        self.record.block.len() as u64
    }

    /// Checks it and takes it apart; refuses it in words that name the file and the place.
    pub(crate) fn open(
        self,
        sources: &[Source],
        is_trusting: bool,
    ) -> Result<FoundCapture, String> {
        let (source, offset) = (self.source, self.record.offset);
        self.take_apart(is_trusting).map_err(|reason| sources[source].damage(offset, &reason))
    }

    fn take_apart(self, is_trusting: bool) -> Result<FoundCapture, String> {
        let Self { url, at_s, record, request, .. } = self;
        let mut protocol = String::new();
        let (mut tls, mut truncated) = (None, None);
        for name in record.fields.all("WARC-Protocol").filter(|n| n.len() <= MAX_WORD_BYTES) {
            match name.starts_with("tls/") || name.starts_with("ssl/") {
                true => tls = Some(name.to_owned()),
                false => protocol = name.to_owned(),
            }
        }
        if let Some(reason) = record.fields.get("WARC-Truncated") {
            truncated = Some(reason.chars().take(60).collect());
        }
        let address = record.fields.get("WARC-IP-Address").and_then(|text| text.parse().ok());
        if !is_trusting {
            check_digests(&record)?;
        }
        let (status, response_head, owned) = if record.kind == RecordType::Resource {
            "file".clone_into(&mut protocol);
            (200, resource_head(&record), None)
        } else {
            let response = HttpResponse::parse(&record.block).ok_or("it holds no HTTP response")?;
            let owned = match response.body {
                std::borrow::Cow::Owned(body) => Some(body),
                std::borrow::Cow::Borrowed(_) => None,
            };
            (response.status, response.head.into_owned(), owned)
        };
        let request_head =
            request.map(|block| split_message(&block).0.to_vec()).unwrap_or_default();
        if response_head.len() > MAX_HEAD_BYTES || request_head.len() > MAX_HEAD_BYTES {
            return Err("its HTTP head is too long".to_owned());
        }
        // Deflated bytes hold the block as it stands in the file.
        let packed = match (&owned, record.packed) {
            (Some(_), Some(Packed::Deflated(_))) => None,
            (_, packed) => packed,
        };
        let (bytes, body_start) = match owned {
            Some(body) => (body, 0),
            None if record.kind == RecordType::Resource => (record.block, 0),
            None => {
                let body_start = split_message(&record.block).0.len();
                (record.block, body_start)
            }
        };
        Ok(FoundCapture {
            url,
            at_s,
            status,
            protocol,
            tls,
            server_address: address,
            request_head,
            response_head,
            bytes,
            body_start,
            packed,
            truncated,
        })
    }
}

/// A response, as the store wants it.
pub(crate) struct FoundCapture {
    pub(crate) url: CanonicalUrl,
    pub(crate) at_s: i64,
    pub(crate) status: u16,
    pub(crate) protocol: String,
    pub(crate) tls: Option<String>,
    pub(crate) server_address: Option<IpAddr>,
    pub(crate) request_head: Vec<u8>,
    pub(crate) response_head: Vec<u8>,
    /// The record's block, or the body alone where its chunks were undone.
    bytes: Vec<u8>,
    body_start: usize,
    packed: Option<Packed>,
    pub(crate) truncated: Option<String>,
}

impl FoundCapture {
    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[self.body_start..]
    }

    /// What can be used again.
    pub(crate) fn into_buffers(self) -> impl Iterator<Item = Vec<u8>> {
        let deflated = match self.packed {
            Some(Packed::Deflated(deflated)) => Some(deflated.data),
            _ => None,
        };
        [Some(self.bytes), deflated].into_iter().flatten()
    }

    /// How the body lay in its file.
    pub(crate) fn packing(&self) -> Packing<'_> {
        match &self.packed {
            None => Packing::Unknown,
            Some(Packed::Dense) => Packing::Dense,
            Some(Packed::Deflated(deflated)) => Packing::Deflated(Deflated {
                data: &deflated.data,
                front_bytes: deflated.front_bytes + self.body_start,
                behind_bytes: deflated.behind_bytes,
            }),
        }
    }
}

/// Bounds the bytes that wait between threads.
pub(crate) struct Room {
    /// Bytes in use; none once the room is closed.
    used: Mutex<Option<u64>>,
    freed: Condvar,
    /// Buffers of captures that were stored.
    spare: Mutex<Vec<Vec<u8>>>,
    /// How far all files together were read.
    pub(crate) read_bytes: AtomicU64,
}

impl Room {
    pub(crate) fn new() -> Self {
        Self {
            used: Mutex::new(Some(0)),
            freed: Condvar::new(),
            spare: Mutex::default(),
            read_bytes: AtomicU64::new(0),
        }
    }

    fn used(&self) -> MutexGuard<'_, Option<u64>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes room if there is any; none once the room is closed.
    fn try_take(&self, bytes: u64) -> Option<bool> {
        let mut used = self.used();
        let used = used.as_mut()?;
        let has_room = !is_full(*used, bytes);
        if has_room {
            *used += bytes;
        }
        Some(has_room)
    }

    /// Waits for room; none once the room is closed.
    fn take(&self, bytes: u64) -> Option<()> {
        let is_full = |used: &mut Option<u64>| used.is_some_and(|used| is_full(used, bytes));
        let waited = self.freed.wait_while(self.used(), is_full);
        let mut used = waited.unwrap_or_else(PoisonError::into_inner);
        *used.as_mut()? += bytes;
        Some(())
    }

    /// A capture of so many bytes was stored.
    pub(crate) fn give_back(&self, bytes: u64) {
        if let Some(used) = self.used().as_mut() {
            *used = used.saturating_sub(bytes);
        }
        self.freed.notify_all();
    }

    /// Buffers that the reader may fill again.
    pub(crate) fn give_buffers(&self, buffers: Vec<Vec<u8>>) {
        *self.spare.lock().unwrap_or_else(PoisonError::into_inner) = buffers;
    }

    fn take_buffers(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut *self.spare.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Nothing more is wanted: whoever waits must not wait for ever.
    pub(crate) fn close(&self) {
        *self.used() = None;
        self.freed.notify_all();
    }
}

/// Whether there is no room for more; a capture that is larger than the room goes alone.
fn is_full(used: u64, bytes: u64) -> bool {
    used > 0 && used + bytes > WAITING_BYTES
}

/// Who takes what is found; None once nobody wants any more.
pub(crate) trait Taking {
    fn capture(&mut self, capture: RawCapture) -> Option<()>;
    fn other(&mut self, found: Found) -> Option<()>;
    /// Hands on what it may have held back.
    fn hold_nothing(&mut self) -> Option<()>;
}

/// Reads every file and hands on what it finds. Ends early when nobody wants it any more.
pub(crate) fn read_all(sources: &[Source], room: &Room, taking: &mut dyn Taking) {
    let mut done_bytes = 0;
    for (number, source) in sources.iter().enumerate() {
        let mut reading = Reading { source, number, room, taking, done_bytes };
        let sent = match source.reader() {
            Ok(reader) => reading.all(reader),
            Err(error) => reading.taking.other(Found::Damaged(format!("{error:#}"))),
        };
        if sent.and_then(|()| taking.hold_nothing()).is_none() {
            return;
        }
        done_bytes += source.bytes;
        room.read_bytes.store(done_bytes, Ordering::Relaxed);
    }
}

enum Judged {
    Capture(Box<RawCapture>),
    Other(Found),
    Nothing,
}

struct Reading<'a> {
    source: &'a Source,
    number: usize,
    room: &'a Room,
    taking: &'a mut dyn Taking,
    done_bytes: u64,
}

impl Reading<'_> {
    fn damaged(&mut self, offset: u64, reason: &str) -> Option<()> {
        self.taking.other(Found::Damaged(self.source.damage(offset, reason)))
    }

    /// None once nobody wants more.
    fn all(&mut self, mut reader: RecordReader<Part>) -> Option<()> {
        let mut pairing = Pairing::default();
        loop {
            match reader.next_record() {
                Ok(Some(record)) => {
                    for paired in pairing.next(record) {
                        self.paired(paired)?;
                    }
                }
                Ok(None) => break,
                Err(WarcError::Damaged { offset, reason }) => self.damaged(offset, &reason)?,
                Err(other) => {
                    self.taking
                        .other(Found::Damaged(format!("{}: {other}", self.source.name())))?;
                    break;
                }
            }
            reader.reuse(self.room.take_buffers());
            let read_bytes = self.done_bytes + reader.position();
            self.room.read_bytes.store(read_bytes, Ordering::Relaxed);
        }
        pairing.finish().map_or(Some(()), |paired| self.paired(paired))
    }

    fn paired(&mut self, paired: Paired) -> Option<()> {
        let offset = paired.record.offset;
        match self.judge(paired) {
            Ok(Judged::Capture(capture)) => {
                if !self.room.try_take(capture.bytes())? {
                    // What waits for room must not wait for itself.
                    self.taking.hold_nothing()?;
                    self.room.take(capture.bytes())?;
                }
                self.taking.capture(*capture)
            }
            Ok(Judged::Other(found)) => self.taking.other(found),
            Ok(Judged::Nothing) => Some(()),
            Err(reason) => self.damaged(offset, &reason),
        }
    }

    fn judge(&self, paired: Paired) -> Result<Judged, String> {
        let record = paired.record;
        let skipped = |why: &str| Ok(Judged::Other(Found::Skipped(why.to_owned())));
        match record.kind {
            RecordType::Warcinfo => return Ok(Judged::Nothing),
            RecordType::Response | RecordType::Revisit | RecordType::Resource => {}
            other => return skipped(&format!("{other} record")),
        }
        let uri = record.target_uri().ok_or("it has no WARC-Target-URI")?;
        let scheme = uri.split(':').next().unwrap_or_default().to_ascii_lowercase();
        if scheme != "http" && scheme != "https" {
            return skipped(&format!("{scheme}: capture"));
        }
        let method = paired.request.as_deref().map_or(&b"GET"[..], request_method);
        if method != b"GET" && record.kind != RecordType::Resource {
            return skipped(&format!("{} request", String::from_utf8_lossy(method)));
        }
        if record.kind == RecordType::Revisit {
            let (source, offset) = (self.number, record.offset);
            return Ok(Judged::Other(Found::Revisit { source, offset }));
        }
        if record.fields.get("WARC-Segment-Number").is_some() {
            return Err("it is cut into segments".to_owned());
        }
        if record.is_block_left_out {
            return Err(format!("its block is longer than {} MiB", MAX_BLOCK_BYTES >> 20));
        }
        let url = CanonicalUrl::parse(uri).map_err(|error| error.to_string())?;
        let at_s = record.date_s().ok_or("it has no date that can be read")?;
        let (source, request) = (self.number, paired.request);
        Ok(Judged::Capture(Box::new(RawCapture { url, at_s, source, record, request })))
    }
}

/// A resource was saved without the protocol that brought it: it gets the head of a file.
fn resource_head(record: &Record) -> Vec<u8> {
    let mime = record.fields.get("Content-Type").unwrap_or("application/octet-stream");
    let length = record.block.len();
    format!("HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\nContent-Length: {length}\r\n\r\n").into()
}

/// A block that is not what its digest says is damaged. Where only the payload has a digest, it may
/// be over the bytes with or without their chunks: collectors do both.
fn check_digests(record: &Record) -> Result<(), String> {
    let digest = |name: &str| record.fields.get(name);
    if let Some(block) = digest("WARC-Block-Digest") {
        return match digest_matches(block, &record.block) {
            Some(false) => Err("its block is not what its digest says".to_owned()),
            _ => Ok(()),
        };
    }
    let Some(payload) = digest("WARC-Payload-Digest") else { return Ok(()) };
    let (_, raw) = split_message(&record.block);
    let is_wrong = |bytes: &[u8]| digest_matches(payload, bytes) == Some(false);
    let plain = HttpResponse::parse(&record.block);
    match is_wrong(raw) && plain.is_none_or(|response| is_wrong(&response.body)) {
        true => Err("its payload is not what its digest says".to_owned()),
        false => Ok(()),
    }
}
