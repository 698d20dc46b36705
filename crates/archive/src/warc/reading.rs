//! Sorts the records of all files: captures, which go to the storing threads, and other things.

use nenrin_state::{PartitionId, Partitioning};
use nenrin_urls::{CanonicalUrl, PostedUrl, RenderedRecord};
use nenrin_warc::{Paired, Pairing, RecordType, WarcError, request_method, split_message};

use super::{
    capture::{Examined, RawCapture},
    found::{Found, LargeCapture, Revisit},
    memory::MemoryBudget,
    source::Source,
    stretches::{Read, Reading, STRETCH_BYTES},
};
use crate::{error::full_text, head};

/// How much of a URL's scheme is shown in a message.
const MAX_SCHEME_CHARS: usize = 20;

/// Takes what is found; returns `None` once no more is wanted.
pub(crate) trait Taking {
    fn capture(&mut self, capture: RawCapture) -> Option<()>;
    fn other(&mut self, found: Found) -> Option<()>;
    /// Hands on what it may have held back.
    fn hold_nothing(&mut self) -> Option<()>;
}

/// Reads every file and hands on what it finds. Ends early when no more is wanted.
pub(crate) fn read_all(
    sources: &[Source],
    memory: &MemoryBudget,
    (threads, is_trusting): (usize, bool),
    own: (Partitioning, PartitionId),
    taking: &mut dyn Taking,
) {
    let mut done_bytes = 0;
    for (number, source) in sources.iter().enumerate() {
        let mut judging = Judging { source, number, memory, own, taking, done_bytes };
        let sent = match source.reader() {
            Ok(reader) => {
                let mut pairing = Pairing::default();
                Reading { source, memory, threads, stretch_bytes: STRETCH_BYTES, is_trusting }
                    .all(reader, &mut |read| judging.read(&mut pairing, read))
                    .and_then(|()| pairing.finish().map_or(Some(()), |last| judging.paired(last)))
            }
            Err(error) => judging.taking.other(Found::Damaged(full_text(&error))),
        };
        if sent.and_then(|()| taking.hold_nothing()).is_none() {
            return;
        }
        done_bytes += source.bytes;
        memory.tell_read(done_bytes);
    }
}

enum Judged {
    Capture(Box<RawCapture>),
    Other(Found),
    Nothing,
}

/// Says what the records of one file are.
struct Judging<'a> {
    source: &'a Source,
    number: usize,
    memory: &'a MemoryBudget,
    /// The partition whose servers are wanted.
    own: (Partitioning, PartitionId),
    taking: &'a mut dyn Taking,
    /// Length of the files before.
    done_bytes: u64,
}

impl Judging<'_> {
    fn damaged(&mut self, offset: u64, reason: &str) -> Option<()> {
        self.taking.other(Found::Damaged(self.source.damage(offset, reason)))
    }

    /// None once no more is wanted.
    fn read(&mut self, pairing: &mut Pairing<Examined>, read: Read) -> Option<()> {
        match read {
            Ok(examined) => {
                self.memory.tell_read(self.done_bytes + examined.record.offset);
                pairing.next(examined).into_iter().try_for_each(|paired| self.paired(paired))
            }
            Err(WarcError::Damaged { offset, reason }) => self.damaged(offset, &reason),
            Err(other) => {
                self.taking.other(Found::Damaged(format!("{}: {other}", self.source.name())))
            }
        }
    }

    fn paired(&mut self, paired: Paired<Examined>) -> Option<()> {
        let offset = paired.record.record.offset;
        match self.judge(paired) {
            Ok(Judged::Capture(capture)) => {
                let bytes = capture.bytes();
                if !self.memory.try_take(bytes)? {
                    // What waits for memory must not wait for itself.
                    self.taking.hold_nothing()?;
                    self.memory.take(bytes)?;
                }
                self.taking.capture(*capture)
            }
            Ok(Judged::Other(found)) => self.taking.other(found),
            Ok(Judged::Nothing) => Some(()),
            Err(reason) => self.damaged(offset, &reason),
        }
    }

    fn judge(&self, paired: Paired<Examined>) -> Result<Judged, String> {
        let record = &paired.record.record;
        let skipped = |why: &str| Ok(Judged::Other(Found::Skipped(why.to_owned())));
        match record.kind {
            RecordType::Warcinfo => return Ok(Judged::Nothing),
            RecordType::Response | RecordType::Revisit | RecordType::Resource => {}
            other => return skipped(&format!("{other} record")),
        }
        let uri = record.target_uri().ok_or("it has no WARC-Target-URI")?;
        let scheme: String =
            uri.chars().take(MAX_SCHEME_CHARS).take_while(|letter| *letter != ':').collect();
        let scheme = scheme.to_ascii_lowercase();
        let of_rendering =
            RenderedRecord::of_urn(uri).filter(|_| record.kind == RecordType::Resource);
        if scheme != "http" && scheme != "https" && of_rendering.is_none() {
            return skipped(&format!("{scheme}: capture"));
        }
        let (partitioning, own) = self.own;
        if partitioning.count > 1
            && CanonicalUrl::parse(uri).is_ok_and(|url| partitioning.of(&url.server()) != own)
        {
            return Ok(Judged::Nothing);
        }
        let request = paired.request.as_ref().map(|request| &request.record.block[..]);
        let method = request.map_or("GET", request_method);
        let is_posted = method != "GET" && record.kind != RecordType::Resource;
        let posted = request.filter(|_| is_posted).and_then(|request| posted(uri, request));
        if is_posted && posted.is_none() {
            return skipped(&format!("{method} request"));
        }
        if record.kind == RecordType::Revisit {
            let found = match Revisit::of(self.number, record, posted) {
                Ok(revisit) => Found::Revisit(Box::new(revisit)),
                Err(reason) => Found::Damaged(self.source.damage(record.offset, &reason)),
            };
            return Ok(Judged::Other(found));
        }
        if record.fields.get("WARC-Segment-Number").is_some() {
            return Err("it is cut into segments".to_owned());
        }
        let url = match of_rendering.or(posted) {
            Some(url) => url,
            None => CanonicalUrl::parse(uri).map_err(|error| error.to_string())?,
        };
        let at_s = record.date_s().ok_or("it has no date that can be read")?;
        if record.is_block_left_out {
            let (source, offset) = (self.number, record.offset);
            let request = request.map(<[u8]>::to_vec).unwrap_or_default();
            let large = LargeCapture { source, offset, url, at_s, request };
            return Ok(Judged::Other(Found::Large(Box::new(large))));
        }
        let request = paired.request.map(|request| request.record.block);
        let (source, examined) = (self.number, paired.record);
        Ok(Judged::Capture(Box::new(RawCapture { url, at_s, source, examined, request })))
    }
}

/// The address of a request other than GET, if requests with its method have one.
pub(super) fn posted(uri: &str, request: &[u8]) -> Option<CanonicalUrl> {
    let (request_head, body) = split_message(request);
    let content_type = head::field(request_head, "content-type").unwrap_or_default();
    let sent = CanonicalUrl::parse(uri).ok()?;
    PostedUrl::of(&sent, request_method(request_head), &content_type, body)
}
