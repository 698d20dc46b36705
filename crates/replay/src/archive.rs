//! The interface to the code that holds the versions.

use bytes::Bytes;
use nenrin_urls::{CanonicalUrl, UrlKey, VersionId};

use crate::ArchiveError;

/// A version of a page, as the index lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// The exact URL.
    pub url: CanonicalUrl,
    /// When it was received, in seconds since the epoch.
    pub at_s: i64,
    /// Its number in the archive.
    pub version: VersionId,
    /// HTTP status.
    pub status: u16,
    /// Content type without parameters.
    pub mime: String,
    /// Size of the body as received, in bytes.
    pub body_bytes: u64,
}

/// The head of a version's answer, and the digest of its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentHead {
    /// Status line and header lines, raw.
    pub response_head: Vec<u8>,
    /// The body's digest with its algorithm: `blake3:…`.
    pub digest: String,
}

/// A version's answer as it was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// Its head and digest.
    pub head: ContentHead,
    /// The body, content coding still applied.
    pub body: Bytes,
}

/// A run of a body's bytes with a digest, for comparing versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentBlock {
    /// Equal blocks have equal digests.
    pub digest: [u8; 32],
    /// The bytes.
    pub bytes: Bytes,
}

/// Reads versions. The methods may block; the router calls them on threads where that is allowed.
pub trait Archive: Send + Sync {
    /// The newest version at or before a time, of all URLs with this key; if there is none, the
    /// oldest after it.
    fn as_of(&self, key: &UrlKey, at_s: i64) -> Result<Option<Capture>, ArchiveError>;

    /// The versions of all URLs with this key, received from `from_s` to `to_s`, oldest first, at
    /// most `limit`.
    fn versions(
        &self,
        key: &UrlKey,
        from_s: i64,
        to_s: i64,
        limit: usize,
    ) -> Result<Vec<Capture>, ArchiveError>;

    /// When exactly this URL was last seen, if it has a version: a version that did not change for
    /// years is still the page at this time.
    fn last_seen_s(&self, url: &CanonicalUrl) -> Result<Option<i64>, ArchiveError>;

    /// The times at which exactly this URL was seen to be gone, oldest first.
    fn gone_times_s(&self, url: &CanonicalUrl) -> Result<Vec<i64>, ArchiveError>;

    /// Whether a round of the URL's site began after `after_s` and at or before `until_s`, so that
    /// the URL was visited again.
    fn round_began(
        &self,
        url: &CanonicalUrl,
        after_s: i64,
        until_s: i64,
    ) -> Result<bool, ArchiveError>;

    /// Whether the URL has versions that nobody may read, because its site was removed so.
    fn is_closed(&self, url: &CanonicalUrl) -> Result<bool, ArchiveError>;

    /// URLs with versions whose keys are from `from` up to, but not including, `to`, in the order
    /// of their keys, at most `limit`.
    fn urls(&self, from: &str, to: &str, limit: usize) -> Result<Vec<CanonicalUrl>, ArchiveError>;

    /// A version's head alone.
    fn head(&self, version: VersionId) -> Result<ContentHead, ArchiveError>;

    /// A version's answer.
    fn read(&self, version: VersionId) -> Result<Content, ArchiveError>;

    /// A part of a version's body: at most `length` bytes from `from` on. It may be shorter, and is
    /// empty only at the body's end.
    fn read_part(
        &self,
        version: VersionId,
        from: u64,
        length: usize,
    ) -> Result<Bytes, ArchiveError>;

    /// A version's body as blocks.
    fn blocks(&self, version: VersionId) -> Result<Vec<ContentBlock>, ArchiveError>;
}
