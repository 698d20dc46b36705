//! Captures that do not fit into memory: their bodies go into a file, and from there into the store, one
//! after the other.

use std::{
    fs::File,
    io::{self, BufReader, BufWriter, Seek, Write},
    path::Path,
    sync::OnceLock,
};

use nenrin_state::SiteId;
use nenrin_store::{Digest, MAX_HEAD_BYTES};
use nenrin_warc::{
    DigestCheck, Record, RecordType, copy_without_chunks, is_chunked, received_head, split_message,
    status,
};

use super::{
    capture::request_of,
    commit::Importer,
    found::LargeCapture,
    source::Source,
    storer::{Stored, Storer},
};
use crate::{Archive, ArchiveError, Result, ingest::Capture};

/// What was wrong with a record, or why the import ends.
type Judged<T> = Result<T, Refused>;

enum Refused {
    Record(String),
    Import(ArchiveError),
}

impl From<ArchiveError> for Refused {
    fn from(error: ArchiveError) -> Self {
        Self::Import(error)
    }
}

impl From<String> for Refused {
    fn from(reason: String) -> Self {
        Self::Record(reason)
    }
}

/// Stores the captures that were too large for memory. All others are in.
pub(super) fn store_large(
    importer: &mut Importer<'_>,
    sources: &[Source],
    the_site: &OnceLock<SiteId>,
    is_trusting: bool,
) -> Result<()> {
    let large = std::mem::take(&mut importer.large);
    let Some(&site) = the_site.get().filter(|_| !large.is_empty()) else { return Ok(()) };
    let mut storer = Storer::new(importer.archive);
    for capture in large {
        let source = &sources[capture.source];
        match store(importer.archive, &mut storer, site, (&capture, source), is_trusting) {
            Ok(stored) => importer.receive(stored)?,
            Err(Refused::Record(reason)) => {
                importer.trouble(source.damage(capture.offset, &reason));
            }
            Err(Refused::Import(error)) => return Err(error),
        }
        // It is much to do again after an interruption.
        importer.commit()?;
    }
    importer.lessons.merge(storer.lessons());
    Ok(())
}

fn store(
    archive: &Archive,
    storer: &mut Storer<'_>,
    site: SiteId,
    (capture, source): (&LargeCapture, &Source),
    is_trusting: bool,
) -> Judged<Stored> {
    let spool = Spool::of(archive.folder(), capture, source, is_trusting)?;
    let Spool { record, head, status, body } = &spool;
    let mut body_file = body;
    body_file.rewind().map_err(spooling)?;
    let (digest, bytes) = Digest::of_read(&mut body_file).map_err(spooling)?;
    let words = |is_tls: bool| {
        let names = record.fields.all("WARC-Protocol");
        names.filter(|name| name.starts_with("tls/") == is_tls).last()
    };
    let protocol = match record.kind {
        RecordType::Resource => "file",
        _ => words(false).unwrap_or_default(),
    };
    let page = archive.state().page(&capture.url).map_err(ArchiveError::from)?;
    let found = Capture {
        spooled: Some((body, bytes)),
        protocol,
        tls: words(true),
        server_address: record.fields.get("WARC-IP-Address").and_then(|text| text.parse().ok()),
        request_head: request_of(&capture.url, &capture.request),
        truncated: record.fields.get("WARC-Truncated").filter(|reason| reason.len() < 60),
        digest: Some(digest),
        ..Capture::new(&capture.url, capture.at_s, *status, head, b"")
    };
    Ok(storer.intake(site)?.take(&found, page)?.into())
}

/// A capture whose body is in a file.
struct Spool {
    record: Record,
    head: Vec<u8>,
    status: u16,
    body: File,
}

impl Spool {
    fn of(
        folder: &Path,
        capture: &LargeCapture,
        source: &Source,
        is_trusting: bool,
    ) -> Judged<Self> {
        let mut heads = source.heads()?;
        let found = heads.seek(capture.offset).and_then(|()| heads.next_record());
        let record = found.map_err(|error| error.to_string())?;
        let record = record.ok_or_else(|| "it cannot be read again".to_owned())?;
        let check = |name: &str| record.fields.get(name).filter(|_| !is_trusting);
        let mut block_check = check("WARC-Block-Digest").and_then(DigestCheck::new);
        let is_payload_checked = block_check.is_none() && check("WARC-Payload-Digest").is_some();
        let mut parting = Parting { head: Vec::new(), body: None, folder, failed: None };
        if record.kind == RecordType::Resource {
            parting.begin_body()?;
        }
        let mut reader = source.reader()?;
        let read = reader.read_in_parts(capture.offset, &mut |part| {
            block_check.iter_mut().for_each(|check| check.update(part));
            parting.take(part)
        });
        if let Some(error) = parting.failed {
            return Err(error);
        }
        read.map_err(|error| error.to_string())?;
        if block_check.is_some_and(|check| !check.holds()) {
            return Err("its block is not what its digest says".to_owned().into());
        }
        let body = parting.body.ok_or_else(|| "it holds no HTTP response".to_owned())?;
        let body = body.into_inner().map_err(|error| spooling(error.into_error()))?;
        Self::judged(folder, (record, parting.head, body), is_payload_checked)
    }

    fn judged(
        folder: &Path,
        (record, head, mut body): (Record, Vec<u8>, File),
        is_payload_checked: bool,
    ) -> Judged<Self> {
        let mut is_right = !is_payload_checked || holds(&record, &mut body)?;
        if is_chunked(&head) {
            let mut plain = BufWriter::new(unnamed_file(folder)?);
            body.rewind().map_err(spooling)?;
            if copy_without_chunks(&mut BufReader::new(&body), &mut plain).map_err(spooling)? {
                body = plain.into_inner().map_err(|error| spooling(error.into_error()))?;
                is_right = is_right || holds(&record, &mut body)?;
            }
        }
        if !is_right {
            return Err("its payload is not what its digest says".to_owned().into());
        }
        let bytes = body.metadata().map_err(spooling)?.len();
        if record.kind == RecordType::Resource {
            let mime = record.fields.get("Content-Type").unwrap_or("application/octet-stream");
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\nContent-Length: {bytes}\r\n\r\n"
            );
            return Ok(Self { record, head: head.into(), status: 200, body });
        }
        let status = status(&head).ok_or_else(|| "it holds no HTTP response".to_owned())?;
        let head = received_head(&head, bytes as usize).into_owned();
        Ok(Self { record, head, status, body })
    }
}

/// Whether a body is what the payload's digest says.
fn holds(record: &Record, body: &mut File) -> Judged<bool> {
    let digest = record.fields.get("WARC-Payload-Digest");
    let Some(mut check) = digest.and_then(DigestCheck::new) else { return Ok(true) };
    body.rewind().map_err(spooling)?;
    struct Checked<'a>(&'a mut DigestCheck);
    impl Write for Checked<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.update(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    io::copy(body, &mut Checked(&mut check)).map_err(spooling)?;
    Ok(check.holds())
}

/// Takes a block apart: the head into memory, what follows into a file.
struct Parting<'a> {
    head: Vec<u8>,
    body: Option<BufWriter<File>>,
    folder: &'a Path,
    failed: Option<Refused>,
}

impl Parting<'_> {
    fn begin_body(&mut self) -> Judged<()> {
        self.body = Some(BufWriter::with_capacity(1 << 20, unnamed_file(self.folder)?));
        Ok(())
    }

    fn take(&mut self, part: &[u8]) -> io::Result<()> {
        if let Some(body) = &mut self.body {
            return body.write_all(part);
        }
        self.head.extend_from_slice(part);
        // The empty line may begin in the part before.
        let (head, rest) = split_message(&self.head);
        if rest.is_empty() && !ends_with_empty_line(head) {
            return match self.head.len() > MAX_HEAD_BYTES {
                true => self.fail("its HTTP head is too long".to_owned().into()),
                false => Ok(()),
            };
        }
        let (head_bytes, rest) = (head.len(), rest.to_vec());
        self.head.truncate(head_bytes);
        match self.begin_body() {
            Ok(()) => self.body.as_mut().map_or(Ok(()), |body| body.write_all(&rest)),
            Err(error) => self.fail(error),
        }
    }

    fn fail(&mut self, why: Refused) -> io::Result<()> {
        self.failed = Some(why);
        Err(stop())
    }
}

fn ends_with_empty_line(head: &[u8]) -> bool {
    let mut lines = head.split(|byte| *byte == b'\n').rev();
    lines.next() == Some(b"") && lines.next().is_some_and(|line| line.iter().all(|b| *b == b'\r'))
}

fn stop() -> io::Error {
    io::Error::other("stopped")
}

/// A file in the archive's folder that has no name any more, so that nothing is left of it.
fn unnamed_file(folder: &Path) -> Result<File> {
    let path = folder.join("importing.part");
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(true);
    let file = options.open(&path).map_err(ArchiveError::writing(&path))?;
    std::fs::remove_file(&path).map_err(ArchiveError::writing(&path))?;
    Ok(file)
}

fn spooling(source: io::Error) -> Refused {
    Refused::Import(ArchiveError::Io { action: "write", path: "importing.part".into(), source })
}
