//! A visit as records: response and request, or revisit.

use std::io::{self, Write};
use std::net::IpAddr;

use nenrin_urls::{CanonicalUrl, PostedUrl};

use crate::digest::{DigestAlgorithm, Digesting, record_id};
use crate::http::archived_head;
use crate::writer::{Give, RecordWriter, Written};
use crate::{Fields, iso_date};

const HTTP_RESPONSE: &str = "application/http; msgtype=response";
const HTTP_REQUEST: &str = "application/http; msgtype=request";
const WARC_FIELDS: &str = "application/warc-fields";

/// The kind of a revisit record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RevisitProfile {
    /// The same bytes came again.
    IdenticalPayload,
    /// The server said that nothing changed (304).
    NotModified,
}

impl RevisitProfile {
    /// Its URI in WARC 1.1.
    pub fn uri(self) -> &'static str {
        match self {
            Self::IdenticalPayload => {
                "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
            }
            Self::NotModified => "http://netpreserve.org/warc/1.1/revisit/server-not-modified",
        }
    }

    /// Reads the URIs of WARC 1.0 and 1.1.
    pub fn of(uri: &str) -> Option<Self> {
        if uri.ends_with("/identical-payload-digest") {
            Some(Self::IdenticalPayload)
        } else {
            uri.ends_with("/server-not-modified").then_some(Self::NotModified)
        }
    }
}

/// An exchange to be written as response and request.
#[derive(Debug, Clone, Copy)]
pub struct Capture<'a> {
    /// The page.
    pub url: &'a CanonicalUrl,
    /// When it was received, in seconds since the epoch.
    pub at_s: i64,
    /// Distinguishes captures of one page in one second.
    pub serial: u64,
    /// The address that answered.
    pub server_address: Option<IpAddr>,
    /// "http/1.1" or "h2"; anything else is not written.
    pub protocol: &'a str,
    /// "tls/1.3".
    pub tls: Option<&'a str>,
    /// The request as sent, with its body; empty if it is not known.
    pub request_head: &'a [u8],
    /// The body's digests, and its length without transfer coding.
    pub body: &'a BodyDigests,
    /// Why the body is not complete, if it is not.
    pub truncated: Option<&'a str>,
    /// A record without a protocol: its name and its type. Then only the body is written.
    pub resource: Option<(&'a str, &'a str)>,
}

/// What a capture's records say of its body.
#[derive(Debug, Clone)]
pub struct BodyDigests {
    head: Vec<u8>,
    payload: String,
    block: String,
    bytes: u64,
}

impl BodyDigests {
    /// Of a body that is read part by part, and of the head that comes with it. `bytes` is its whole
    /// length.
    ///
    /// # Errors
    /// What reading says.
    pub fn read<E>(
        algorithm: DigestAlgorithm,
        response_head: &[u8],
        bytes: u64,
        read: impl FnOnce(&mut dyn FnMut(&[u8])) -> Result<(), E>,
    ) -> Result<Self, E> {
        let length = usize::try_from(bytes).unwrap_or(usize::MAX);
        let head = archived_head(response_head, length).into_owned();
        let (mut payload, mut block) = (Digesting::new(algorithm), Digesting::new(algorithm));
        block.update(&head);
        read(&mut |part| {
            payload.update(part);
            block.update(part);
        })?;
        Ok(Self { head, payload: payload.finish(), block: block.finish(), bytes })
    }

    /// Of a body in memory.
    pub fn of(algorithm: DigestAlgorithm, response_head: &[u8], body: &[u8]) -> Self {
        let head = archived_head(response_head, body.len()).into_owned();
        let (payload, block) = (algorithm.of(&[body]), algorithm.of(&[&head, body]));
        Self { head, payload, block, bytes: body.len() as u64 }
    }
}

/// A visit that found the same content as an earlier capture.
#[derive(Debug, Clone, Copy)]
pub struct Revisit<'a> {
    /// The page.
    pub url: &'a CanonicalUrl,
    /// When it was visited, in seconds since the epoch.
    pub at_s: i64,
    /// Distinguishes visits in one second.
    pub serial: u64,
    /// How the content was found to be the same.
    pub profile: RevisitProfile,
    /// The page of the capture with the content.
    pub original_url: &'a CanonicalUrl,
    /// The date of that capture, in seconds since the epoch.
    pub original_at_s: i64,
    /// The labelled digest of its payload.
    pub payload_digest: &'a str,
    /// The request of the original where the URL alone does not say it, otherwise empty: it was not
    /// a GET.
    pub request_head: &'a [u8],
}

/// The fields of a capture's records, without bodies and without the output file: everything that
/// can be computed on another thread than the one that compresses.
#[derive(Debug, Clone)]
pub struct CaptureFields {
    response: Fields,
    request: Option<Fields>,
    body: BodyDigests,
}

impl Capture<'_> {
    /// Makes the fields.
    pub fn prepare(&self, algorithm: DigestAlgorithm) -> CaptureFields {
        let date = iso_date(self.at_s);
        let serial = self.serial.to_le_bytes();
        let id = |kind: &[u8]| {
            record_id(&[kind, self.url.as_str().as_bytes(), date.as_bytes(), &serial])
        };
        if let Some((_, mime)) = self.resource {
            let mut resource = self.fields("resource", &id(b"resource"), &date);
            resource.push("WARC-Payload-Digest", self.body.payload.clone());
            resource.push("WARC-Block-Digest", self.body.payload.clone());
            resource.push("Content-Type", mime);
            let body = BodyDigests { head: Vec::new(), ..self.body.clone() };
            return CaptureFields { response: resource, request: None, body };
        }
        let response_id = id(b"response");
        let mut response = self.fields("response", &response_id, &date);
        for protocol in [Some(self.protocol), self.tls].into_iter().flatten() {
            if is_protocol(protocol) {
                response.push("WARC-Protocol", protocol);
            }
        }
        response.push("WARC-Payload-Digest", self.body.payload.clone());
        response.push("WARC-Block-Digest", self.body.block.clone());
        if let Some(reason) = self.truncated {
            response.push("WARC-Truncated", reason);
        }
        response.push("Content-Type", HTTP_RESPONSE);
        let request = (!self.request_head.is_empty()).then(|| {
            let mut request = self.fields("request", &id(b"request"), &date);
            request.push("WARC-Concurrent-To", response_id);
            request.push("WARC-Block-Digest", algorithm.of(&[self.request_head]));
            request.push("Content-Type", HTTP_REQUEST);
            request
        });
        CaptureFields { response, request, body: self.body.clone() }
    }

    fn fields(&self, kind: &str, id: &str, date: &str) -> Fields {
        let mut fields = Fields::default();
        fields.push("WARC-Type", kind);
        fields.push("WARC-Record-ID", id);
        fields.push("WARC-Date", date);
        match self.resource {
            Some((name, _)) => fields.push("WARC-Target-URI", name),
            None => fields.push("WARC-Target-URI", target(self.url).as_str()),
        }
        if let Some(address) = self.server_address {
            fields.push("WARC-IP-Address", address.to_string());
        }
        fields
    }
}

impl CaptureFields {
    /// The payload's labelled digest.
    pub fn payload_digest(&self) -> &str {
        &self.body.payload
    }

    /// The length of the body.
    pub fn body_bytes(&self) -> u64 {
        self.body.bytes
    }

    /// Writes response and request; returns where the response is. `body` gives the bytes whose
    /// digests were made.
    pub fn write<W: Write>(
        &self,
        writer: &mut RecordWriter<W>,
        warcinfo_id: &str,
        request_head: &[u8],
        body: Give<'_>,
    ) -> io::Result<Written> {
        let with_file = |fields: &Fields| {
            let mut fields = fields.clone();
            fields.push("WARC-Warcinfo-ID", warcinfo_id);
            fields
        };
        let fields = with_file(&self.response);
        let written = writer.write_read(&fields, &self.body.head, (self.body.bytes, body))?;
        if let Some(request) = &self.request {
            writer.write(&with_file(request), &[request_head])?;
        }
        Ok(written)
    }
}

impl Revisit<'_> {
    /// Writes a revisit without a block: the heads of an unchanged visit are not stored.
    pub fn write<W: Write>(
        &self,
        writer: &mut RecordWriter<W>,
        warcinfo_id: &str,
        algorithm: DigestAlgorithm,
    ) -> io::Result<Written> {
        let date = iso_date(self.at_s);
        let serial = self.serial.to_le_bytes();
        let mut fields = Fields::default();
        fields.push("WARC-Type", "revisit");
        let parts = [b"revisit", self.url.as_str().as_bytes(), date.as_bytes(), &serial];
        let id = record_id(&parts);
        fields.push("WARC-Record-ID", id.as_str());
        fields.push("WARC-Date", date.as_str());
        fields.push("WARC-Target-URI", target(self.url).as_str());
        fields.push("WARC-Profile", self.profile.uri());
        fields.push("WARC-Refers-To-Target-URI", target(self.original_url).as_str());
        fields.push("WARC-Refers-To-Date", iso_date(self.original_at_s));
        fields.push("WARC-Payload-Digest", self.payload_digest);
        fields.push("WARC-Block-Digest", algorithm.of(&[]));
        fields.push("Content-Type", HTTP_RESPONSE);
        fields.push("WARC-Warcinfo-ID", warcinfo_id);
        let written = writer.write(&fields, &[])?;
        if !self.request_head.is_empty() {
            let parts = [b"request", self.url.as_str().as_bytes(), date.as_bytes(), &serial];
            let mut request = Fields::default();
            request.push("WARC-Type", "request");
            request.push("WARC-Record-ID", record_id(&parts));
            request.push("WARC-Date", date.as_str());
            request.push("WARC-Target-URI", target(self.url).as_str());
            request.push("WARC-Concurrent-To", id);
            request.push("WARC-Block-Digest", algorithm.of(&[self.request_head]));
            request.push("Content-Type", HTTP_REQUEST);
            request.push("WARC-Warcinfo-ID", warcinfo_id);
            writer.write(&request, &[self.request_head])?;
        }
        Ok(written)
    }
}

/// Where a request was sent.
fn target(url: &CanonicalUrl) -> CanonicalUrl {
    PostedUrl::parse(url).map_or_else(|| url.clone(), |(_, sent)| sent)
}

/// Writes the first record of a file; returns its record id.
pub fn write_warcinfo<W: Write>(
    writer: &mut RecordWriter<W>,
    file_name: &str,
    at_s: i64,
    about: &[(&str, &str)],
    algorithm: DigestAlgorithm,
) -> io::Result<String> {
    let date = iso_date(at_s);
    let mut block = String::new();
    for (name, value) in about {
        block.push_str(&format!("{name}: {}\r\n", value.replace(['\r', '\n'], " ")));
    }
    let id = record_id(&[b"warcinfo", file_name.as_bytes(), date.as_bytes(), block.as_bytes()]);
    let mut fields = Fields::default();
    fields.push("WARC-Type", "warcinfo");
    fields.push("WARC-Record-ID", id.as_str());
    fields.push("WARC-Date", date);
    fields.push("WARC-Filename", file_name);
    fields.push("WARC-Block-Digest", algorithm.of(&[block.as_bytes()]));
    fields.push("Content-Type", WARC_FIELDS);
    writer.write(&fields, &[block.as_bytes()])?;
    Ok(id)
}

/// Whether this is a protocol of the WARC-Protocol proposal.
fn is_protocol(name: &str) -> bool {
    ["http/", "h2", "h3", "tls/", "ssl/", "spdy/"].iter().any(|known| name.starts_with(known))
}
