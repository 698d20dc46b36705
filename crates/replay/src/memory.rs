//! An archive in memory, for tests and demonstrations.

use std::collections::BTreeMap;

use bytes::Bytes;
use nenrin_urls::{CanonicalUrl, UrlKey, VersionId};

use crate::{Archive, ArchiveError, Capture, Content, ContentBlock, ContentHead};

/// Versions held in memory. It fulfils the contract of [`Archive`] and nothing more.
#[derive(Debug, Default)]
pub struct MemoryArchive {
    captures: BTreeMap<UrlKey, Vec<Capture>>,
    contents: Vec<Content>,
    seen_s: BTreeMap<CanonicalUrl, i64>,
    gone_s: BTreeMap<CanonicalUrl, Vec<i64>>,
    rounds_s: Vec<i64>,
}

impl MemoryArchive {
    /// An empty archive.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a version: its status, header lines (without the status line) and body.
    pub fn put(
        &mut self,
        url: &CanonicalUrl,
        at_s: i64,
        status: u16,
        headers: &str,
        body: impl Into<Bytes>,
    ) -> VersionId {
        let version = VersionId(self.contents.len() as u64);
        let body = body.into();
        let head = format!("HTTP/1.1 {status} X\r\n{headers}\r\n\r\n");
        let mime = headers
            .lines()
            .find_map(|l| l.to_ascii_lowercase().strip_prefix("content-type:").map(str::to_owned))
            .map(|v| v.split(';').next().unwrap_or_default().trim().to_owned())
            .unwrap_or_default();
        let captures = self.captures.entry(url.key()).or_default();
        let body_bytes = body.len() as u64;
        captures.push(Capture { url: url.clone(), at_s, version, status, mime, body_bytes });
        captures.sort_by_key(|c| (c.at_s, c.version));
        self.seen(url, at_s);
        let digest: String = digest(&body).iter().map(|b| format!("{b:02x}")).collect();
        let head =
            ContentHead { response_head: head.into_bytes(), digest: format!("fnv:{digest}") };
        self.contents.push(Content { head, body });
        version
    }

    /// Records that a URL was seen unchanged.
    pub fn seen(&mut self, url: &CanonicalUrl, at_s: i64) {
        let last = self.seen_s.entry(url.clone()).or_insert(at_s);
        *last = at_s.max(*last);
    }

    /// Records that a URL was seen to be gone, later than all that was recorded of it.
    pub fn gone(&mut self, url: &CanonicalUrl, at_s: i64) {
        self.gone_s.entry(url.clone()).or_default().push(at_s);
    }

    /// Records that a round began, in which every URL is visited.
    pub fn begin_round(&mut self, at_s: i64) {
        self.rounds_s.push(at_s);
    }

    fn content(&self, version: VersionId) -> Result<&Content, ArchiveError> {
        usize::try_from(version.0)
            .ok()
            .and_then(|i| self.contents.get(i))
            .ok_or_else(|| ArchiveError::new("read a version", format!("no version {version}")))
    }
}

/// A digest that is good enough where nobody forges: a hash of the bytes, repeated over 32 bytes.
fn digest(bytes: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    for (lane, chunk) in out.chunks_mut(8).enumerate() {
        let start = 0xcbf2_9ce4_8422_2325_u64 ^ lane as u64;
        let hash =
            bytes.iter().fold(start, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3));
        chunk.copy_from_slice(&hash.to_be_bytes());
    }
    out
}

impl Archive for MemoryArchive {
    fn as_of(&self, key: &UrlKey, at_s: i64) -> Result<Option<Capture>, ArchiveError> {
        let captures = self.captures.get(key).map_or(&[][..], Vec::as_slice);
        let newest = captures.iter().rev().find(|c| c.at_s <= at_s);
        Ok(newest.or(captures.first()).cloned())
    }

    fn versions(
        &self,
        key: &UrlKey,
        from_s: i64,
        to_s: i64,
        limit: usize,
    ) -> Result<Vec<Capture>, ArchiveError> {
        let captures = self.captures.get(key).map_or(&[][..], Vec::as_slice);
        let wanted = captures.iter().filter(|c| (from_s..=to_s).contains(&c.at_s));
        Ok(wanted.take(limit).cloned().collect())
    }

    fn last_seen_s(&self, url: &CanonicalUrl) -> Result<Option<i64>, ArchiveError> {
        Ok(self.seen_s.get(url).copied())
    }

    fn gone_times_s(&self, url: &CanonicalUrl) -> Result<Vec<i64>, ArchiveError> {
        Ok(self.gone_s.get(url).cloned().unwrap_or_default())
    }

    fn round_began(
        &self,
        _: &CanonicalUrl,
        after_s: i64,
        until_s: i64,
    ) -> Result<bool, ArchiveError> {
        Ok(self.rounds_s.iter().any(|at_s| (after_s + 1..=until_s).contains(at_s)))
    }

    fn is_closed(&self, _: &CanonicalUrl) -> Result<bool, ArchiveError> {
        Ok(false)
    }

    fn urls(&self, from: &str, to: &str, limit: usize) -> Result<Vec<CanonicalUrl>, ArchiveError> {
        let mut urls = Vec::new();
        let keys = self.captures.iter().filter(|(k, _)| (from..to).contains(&k.as_str()));
        for (_, captures) in keys {
            for capture in captures {
                if !urls.contains(&capture.url) {
                    urls.push(capture.url.clone());
                }
            }
            if urls.len() >= limit {
                break;
            }
        }
        urls.truncate(limit);
        Ok(urls)
    }

    fn head(&self, version: VersionId) -> Result<ContentHead, ArchiveError> {
        Ok(self.content(version)?.head.clone())
    }

    fn read(&self, version: VersionId) -> Result<Content, ArchiveError> {
        self.content(version).cloned()
    }

    fn read_part(
        &self,
        version: VersionId,
        from: u64,
        length: usize,
    ) -> Result<Bytes, ArchiveError> {
        let body = &self.content(version)?.body;
        let from = usize::try_from(from).unwrap_or(usize::MAX).min(body.len());
        Ok(body.slice(from..from.saturating_add(length).min(body.len())))
    }

    /// Cuts before each tag that begins a line: good enough to see what changed.
    fn blocks(&self, version: VersionId) -> Result<Vec<ContentBlock>, ArchiveError> {
        let body = &self.content(version)?.body;
        let mut cuts: Vec<usize> = memchr::memmem::find_iter(body, b"\n<").map(|i| i + 1).collect();
        cuts.push(body.len());
        let mut start = 0;
        let mut blocks = Vec::new();
        for cut in cuts {
            if cut > start {
                let bytes = body.slice(start..cut);
                blocks.push(ContentBlock { digest: digest(&bytes), bytes });
            }
            start = cut;
        }
        Ok(blocks)
    }
}
