//! A response record becomes what the store wants: checked, taken apart, hashed.

use std::borrow::{Borrow, Cow};
use std::net::IpAddr;

use nenrin_store::{Deflated, Digest, MAX_HEAD_BYTES, MAX_WORD_BYTES, Packing};
use nenrin_urls::{CanonicalUrl, PostedUrl};
use nenrin_warc::{Block, HttpResponse, Packed, Record, RecordType, digest_matches, split_message};

use super::source::Source;
use crate::ingest::Capture;

/// The longest word of why a body is not whole that is kept.
const MAX_TRUNCATED_CHARS: usize = 60;

/// A record, and what it holds if that was looked at already.
pub(crate) struct Examined {
    pub(crate) record: Record,
    contents: Option<Result<Contents, String>>,
}

impl Borrow<Record> for Examined {
    fn borrow(&self) -> &Record {
        &self.record
    }
}

impl Examined {
    /// Looks at what may be a capture at once, while its bytes are near.
    pub(crate) fn now(mut record: Record, is_trusting: bool) -> Self {
        let may_be_capture = matches!(record.kind, RecordType::Response | RecordType::Resource)
            && !record.is_block_left_out;
        let contents = may_be_capture.then(|| Contents::of(&mut record, is_trusting));
        Self { record, contents }
    }

    /// Leaves it to the thread that opens the capture.
    pub(crate) fn later(record: Record) -> Self {
        Self { record, contents: None }
    }

    /// Bytes of memory that it takes.
    pub(crate) fn bytes(&self) -> u64 {
        let contents_bytes = match &self.contents {
            Some(Ok(contents)) => contents.bytes(),
            _ => 0,
        };
        (self.record.memory_bytes() + contents_bytes) as u64
    }
}

/// What a capture's block holds.
struct Contents {
    status: u16,
    response_head: Vec<u8>,
    /// The record's block, or the body alone where its chunks were undone.
    bytes: Block,
    body_start: usize,
    packed: Option<Packed>,
    digest: Digest,
}

impl Contents {
    fn of(record: &mut Record, is_trusting: bool) -> Result<Self, String> {
        if !is_trusting {
            check_digests(record)?;
        }
        let is_resource = record.kind == RecordType::Resource;
        let (status, response_head, without_chunks) = if is_resource {
            (200, resource_head(record), None)
        } else {
            let response = HttpResponse::parse(&record.block).ok_or("it holds no HTTP response")?;
            let without_chunks = match response.body {
                Cow::Owned(body) => Some(body),
                Cow::Borrowed(_) => None,
            };
            (response.status, response.head.into_owned(), without_chunks)
        };
        let body_start = match without_chunks.is_some() || is_resource {
            true => 0,
            false => split_message(&record.block).0.len(),
        };
        let packed = match (&without_chunks, record.packed.take()) {
            // Deflated bytes hold the block as it is in the file.
            (Some(_), Some(Packed::Deflated(_))) => None,
            (_, packed) => packed,
        };
        let bytes = match without_chunks {
            Some(body) => body.into(),
            None => std::mem::take(&mut record.block),
        };
        let digest = Digest::of(&bytes[body_start..]);
        Ok(Self { status, response_head, bytes, body_start, packed, digest })
    }

    fn bytes(&self) -> usize {
        let packed_bytes = self.packed.as_ref().map_or(0, Packed::memory_bytes);
        self.response_head.len() + self.bytes.memory_bytes() + packed_bytes
    }
}

/// A response as it was read, with its request.
pub(crate) struct RawCapture {
    pub(crate) url: CanonicalUrl,
    pub(crate) at_s: i64,
    /// The number of its file.
    pub(crate) source: usize,
    pub(crate) examined: Examined,
    pub(crate) request: Option<Block>,
}

impl RawCapture {
    /// Bytes of memory that it takes.
    pub(crate) fn bytes(&self) -> u64 {
        self.examined.bytes() + self.request.as_ref().map_or(0, Block::memory_bytes) as u64
    }

    /// Checks it and takes it apart; an error names the file and the offset.
    pub(crate) fn open(
        self,
        sources: &[Source],
        is_trusting: bool,
    ) -> Result<FoundCapture, String> {
        let (source, offset) = (self.source, self.examined.record.offset);
        self.take_apart(is_trusting).map_err(|reason| sources[source].damage(offset, &reason))
    }

    fn take_apart(self, is_trusting: bool) -> Result<FoundCapture, String> {
        let Self { url, at_s, examined: Examined { mut record, contents }, request, .. } = self;
        let contents = contents.unwrap_or_else(|| Contents::of(&mut record, is_trusting))?;
        let mut protocol = String::new();
        let mut tls = None;
        for name in record.fields.all("WARC-Protocol").filter(|n| n.len() <= MAX_WORD_BYTES) {
            match name.starts_with("tls/") || name.starts_with("ssl/") {
                true => tls = Some(name.to_owned()),
                false => protocol = name.to_owned(),
            }
        }
        if record.kind == RecordType::Resource {
            "file".clone_into(&mut protocol);
        }
        let field = |name: &str| record.fields.get(name);
        let request_head = request.map(|block| request_of(&url, &block).to_vec());
        let request_head = request_head.unwrap_or_default();
        if contents.response_head.len() > MAX_HEAD_BYTES || request_head.len() > MAX_HEAD_BYTES {
            return Err("its HTTP head is too long".to_owned());
        }
        Ok(FoundCapture {
            url,
            at_s,
            protocol,
            tls,
            server_address: field("WARC-IP-Address").and_then(|text| text.parse().ok()),
            request_head,
            truncated: field("WARC-Truncated")
                .map(|reason| reason.chars().take(MAX_TRUNCATED_CHARS).collect()),
            contents,
        })
    }
}

/// What is stored of a request: its head, and the body that belongs to its address.
pub(super) fn request_of<'r>(url: &CanonicalUrl, request: &'r [u8]) -> &'r [u8] {
    match PostedUrl::is_one(url) && request.len() <= MAX_HEAD_BYTES {
        true => request,
        false => split_message(request).0,
    }
}

/// A response, as the store wants it.
pub(crate) struct FoundCapture {
    url: CanonicalUrl,
    at_s: i64,
    protocol: String,
    tls: Option<String>,
    server_address: Option<IpAddr>,
    request_head: Vec<u8>,
    truncated: Option<String>,
    contents: Contents,
}

impl FoundCapture {
    /// In the form that every way in hands over.
    pub(crate) fn as_capture(&self) -> Capture<'_> {
        let contents = &self.contents;
        Capture {
            protocol: &self.protocol,
            tls: self.tls.as_deref(),
            server_address: self.server_address,
            request_head: &self.request_head,
            truncated: self.truncated.as_deref(),
            digest: Some(contents.digest),
            packing: self.packing(),
            ..Capture::new(
                &self.url,
                self.at_s,
                contents.status,
                &contents.response_head,
                &contents.bytes[contents.body_start..],
            )
        }
    }

    /// What can be used again.
    pub(crate) fn into_buffers(self) -> impl Iterator<Item = Vec<u8>> {
        let deflated = match self.contents.packed {
            Some(Packed::Deflated(deflated)) => Some(deflated.data),
            _ => None,
        };
        [Some(self.contents.bytes.into_buffer()), deflated].into_iter().flatten()
    }

    /// How the body was compressed in its file.
    fn packing(&self) -> Packing<'_> {
        match &self.contents.packed {
            None => Packing::Unknown,
            Some(Packed::Dense) => Packing::Dense,
            Some(Packed::Deflated(deflated)) => Packing::Deflated(Deflated {
                data: &deflated.data,
                front_bytes: deflated.front_bytes + self.contents.body_start,
                behind_bytes: deflated.behind_bytes,
            }),
        }
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
