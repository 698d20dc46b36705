//! What every way in hands over.

use std::{fs::File, net::IpAddr};

use nenrin_store::{Digest, Packing};
use nenrin_urls::CanonicalUrl;

/// What a page answered at a time, wherever it comes from: a mirror, a WARC file, a program.
pub struct Capture<'a> {
    /// The page.
    pub url: &'a CanonicalUrl,
    /// When it was received, in seconds since the epoch.
    pub at_s: i64,
    /// The HTTP status.
    pub status: u16,
    /// The head of the response, from its first line to the empty one.
    pub response_head: &'a [u8],
    /// The body, as it was received.
    pub body: &'a [u8],
    /// A body that does not fit into memory: a file with all of it, and its length. Then `body` is empty
    /// and the digest is known.
    pub spooled: Option<(&'a File, u64)>,
    /// "http/1.1", "h2", or "file".
    pub protocol: &'a str,
    /// "tls/1.3", where the connection was encrypted.
    pub tls: Option<&'a str>,
    /// The address of the server, where it is known.
    pub server_address: Option<IpAddr>,
    /// The head of the request, where it is known.
    pub request_head: &'a [u8],
    /// Why the body is not complete, if it is not.
    pub truncated: Option<&'a str>,
    /// The body's digest, where it was computed before.
    pub digest: Option<Digest>,
    /// How the body was compressed where it comes from.
    pub packing: Packing<'a>,
}

impl<'a> Capture<'a> {
    /// A response of which nothing else is known.
    pub fn new(
        url: &'a CanonicalUrl,
        at_s: i64,
        status: u16,
        response_head: &'a [u8],
        body: &'a [u8],
    ) -> Self {
        Self {
            url,
            at_s,
            status,
            response_head,
            body,
            spooled: None,
            protocol: "http/1.1",
            tls: None,
            server_address: None,
            request_head: b"",
            truncated: None,
            digest: None,
            packing: Packing::Unknown,
        }
    }

    /// Length of the body.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.spooled.map_or(self.body.len() as u64, |(_, bytes)| bytes)
    }
}
