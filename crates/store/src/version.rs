use std::net::IpAddr;

use nenrin_urls::{CanonicalUrl, VersionId};

use crate::Digest;

/// A version to be stored.
#[derive(Clone, Copy, Debug)]
pub struct NewVersion<'a> {
    /// The page.
    pub url: &'a CanonicalUrl,
    /// The site's number: what belongs together is stored together.
    pub group: u32,
    /// When it was received.
    pub visited_at_s: i64,
    /// HTTP status.
    pub status: u16,
    /// "http/1.1", "h2".
    pub protocol: &'a str,
    /// "tls/1.3", if the connection was encrypted.
    pub tls: Option<&'a str>,
    /// The address of the server that answered.
    pub server_address: Option<IpAddr>,
    /// The request's head, exactly as sent.
    pub request_head: &'a [u8],
    /// The response's head, exactly as received.
    pub response_head: &'a [u8],
    /// The body after transfer-decoding; a content-coding is kept.
    pub body: &'a [u8],
    /// Why the body is not complete, if it is not.
    pub truncated: Option<&'a str>,
    /// The page's last version: what this one most likely resembles.
    pub previous: Option<VersionId>,
}

/// The result of storing a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Put {
    /// Its number from now on.
    pub id: VersionId,
    /// The body's identity.
    pub digest: Digest,
    /// About how much the packs grew by it.
    pub new_bytes: u64,
    /// The same body was there already.
    pub whole_body_known: bool,
}

/// Everything about a version but its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionHead {
    /// Its number.
    pub id: VersionId,
    /// The page.
    pub url: CanonicalUrl,
    /// The site's number.
    pub group: u32,
    /// When it was received.
    pub visited_at_s: i64,
    /// HTTP status.
    pub status: u16,
    /// "http/1.1", "h2".
    pub protocol: String,
    /// "tls/1.3", if the connection was encrypted.
    pub tls: Option<String>,
    /// The address of the server that answered.
    pub server_address: Option<IpAddr>,
    /// The request's head, exactly as sent.
    pub request_head: Vec<u8>,
    /// The response's head, exactly as received.
    pub response_head: Vec<u8>,
    /// Length of the body.
    pub body_bytes: u64,
    /// The body's identity.
    pub digest: Digest,
    /// Why the body is not complete, if it is not.
    pub truncated: Option<String>,
}

/// A version as it was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Everything but the body.
    pub head: VersionHead,
    /// The body, exactly.
    pub body: Vec<u8>,
}

/// A run of bytes between two cut points; the blocks of a body, joined, are the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its identity: equal blocks of two versions did not change.
    pub digest: Digest,
    /// Its bytes.
    pub bytes: Vec<u8>,
}
