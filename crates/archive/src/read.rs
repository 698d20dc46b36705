//! Reading: a page as of a date, and all its versions.

use nenrin_extract::decode_content;
use nenrin_state::{State, StateError, VersionQuery, VersionRow};
use nenrin_store::Version;
use nenrin_urls::{CanonicalUrl, VersionId};
use serde_json::{Value, json};

use crate::{Archive, ArchiveError, Result, head, spans::rfc3339};

/// The most that a body may grow to when its content coding is undone.
const DECODED_MAX_BYTES: usize = 1 << 30;

/// Versions read from the state at once.
const PORTION: usize = 64;

/// A version of a page with its content, exactly as it was received.
#[derive(Debug)]
pub struct PageVersion {
    stored: Version,
}

impl PageVersion {
    /// The URL under which it was received.
    pub fn url(&self) -> &CanonicalUrl {
        &self.stored.head.url
    }

    /// When it was received, in seconds since the epoch.
    pub fn at_s(&self) -> i64 {
        self.stored.head.visited_at_s
    }

    /// The HTTP status.
    pub fn status(&self) -> u16 {
        self.stored.head.status
    }

    /// The first value of a header field of the response.
    pub fn header(&self, name: &str) -> Option<String> {
        head::field(&self.stored.head.response_head, name)
    }

    /// The body as it was received.
    pub fn body(&self) -> &[u8] {
        &self.stored.body
    }

    /// The body without its content coding (gzip, brotli and the like).
    pub fn decoded_body(&self) -> Result<Vec<u8>> {
        let coding = self.header("content-encoding");
        let decoded = decode_content(coding.as_deref(), self.body(), DECODED_MAX_BYTES);
        let decoded = decoded.map(std::borrow::Cow::into_owned);
        decoded.map_err(|error| ArchiveError::Coding {
            url: self.url().clone(),
            reason: error.to_string(),
        })
    }

    /// For programs: all that is stored of it, as text.
    pub fn as_json(&self) -> Value {
        let head = &self.stored.head;
        json!({
            "url": head.url, "at": rfc3339(head.visited_at_s), "status": head.status,
            "protocol": head.protocol, "tls": head.tls,
            "server_address": head.server_address.map(|address| address.to_string()),
            "request_head": String::from_utf8_lossy(&head.request_head),
            "response_head": String::from_utf8_lossy(&head.response_head),
            "body_bytes": head.body_bytes, "digest": format!("blake3:{}", head.digest),
            "body": String::from_utf8_lossy(self.body()),
        })
    }

    /// All that is stored of it.
    pub fn stored(&self) -> &Version {
        &self.stored
    }
}

/// The URL under which a page's versions are stored: the one that was asked for, or the index file
/// of a directory, which is all that a mirror has of it.
pub fn stored_url(state: &dyn State, url: CanonicalUrl) -> Result<CanonicalUrl, StateError> {
    let has_versions =
        |url: &CanonicalUrl| state.version_as_of(&url.key(), i64::MAX).map(|found| found.is_some());
    match url.index_file() {
        Some(file) if !has_versions(&url)? && has_versions(&file)? => Ok(file),
        _ => Ok(url),
    }
}

impl Archive {
    /// The page that someone typed the address of, as it is stored ([`stored_url`]).
    pub fn typed_page(&self, url: &str) -> Result<CanonicalUrl> {
        Ok(stored_url(&**self.state(), CanonicalUrl::parse_typed(url)?)?)
    }

    /// When the version before that for a time was received; that one's own time if it is the first, and
    /// the time asked for if there is none.
    pub fn before(&self, url: &CanonicalUrl, at_s: i64) -> Result<i64> {
        let Some((_, newest)) = self.state().version_as_of(&url.key(), at_s)? else {
            return Ok(at_s);
        };
        let before = self.state().newest_versions(&url.key(), (newest.at_s, newest.version), 1)?;
        Ok(before.first().map_or(newest.at_s, |(_, row)| row.at_s))
    }

    /// The page as it was at a time (seconds since the epoch): its newest version that is not newer.
    /// None if it has no version of that time or before.
    ///
    /// The URL may be written as people type it.
    pub fn as_of(&self, url: &str, at_s: i64) -> Result<Option<PageVersion>> {
        let url = self.typed_page(url)?;
        match self.state().version_as_of(&url.key(), at_s)? {
            Some((_, row)) if row.at_s <= at_s => Ok(Some(self.version(&row)?)),
            _ => Ok(None),
        }
    }

    /// The newest version of exactly this URL that is not newer than a time.
    pub(crate) fn version_by(&self, url: &CanonicalUrl, at_s: i64) -> Result<Option<VersionRow>> {
        let mut before = (at_s, VersionId(u64::MAX));
        loop {
            let found = self.state().newest_versions(&url.key(), before, PORTION)?;
            let Some((_, last)) = found.last() else { return Ok(None) };
            before = (last.at_s, last.version);
            if let Some((_, row)) = found.into_iter().find(|(of, _)| of == url) {
                return Ok(Some(row));
            }
        }
    }

    /// All versions of a page, oldest first, without their content.
    pub fn versions(&self, url: &str) -> Result<Vec<VersionRow>> {
        let url = self.typed_page(url)?;
        let versions = self.state().versions(&url.key(), VersionQuery::default())?;
        Ok(versions.into_iter().map(|(_, row)| row).collect())
    }

    /// A version with its content.
    pub fn version(&self, row: &VersionRow) -> Result<PageVersion> {
        Ok(PageVersion { stored: self.store().read(row.version)? })
    }
}
