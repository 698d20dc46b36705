//! Which pages a site is known to know: most links on a page lead to known pages, and asking the
//! database for each of them would be most of a commit's work.

#![expect(clippy::disallowed_types, reason = "looked up by key alone, never iterated")]

use std::collections::HashMap;

use nenrin_urls::CanonicalUrl;

use crate::SiteId;

/// Entries kept; when there are more, all are forgotten and learnt anew.
const ENTRIES_MAX: usize = 1_000_000;

/// Pages known to a site at a depth or nearer. A cache: forgetting costs only time.
#[derive(Debug, Default)]
pub(super) struct Known(HashMap<[u8; 16], u32>);

impl Known {
    fn key(site: SiteId, url: &CanonicalUrl) -> [u8; 16] {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&site.0.to_le_bytes());
        hasher.update(url.as_str().as_bytes());
        let mut key = [0; 16];
        key.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        key
    }

    /// Whether the site knows the page at this depth or nearer.
    pub(super) fn contains(&self, site: SiteId, url: &CanonicalUrl, depth: u32) -> bool {
        self.0.get(&Self::key(site, url)).is_some_and(|&known| known <= depth)
    }

    /// Remembers what a commit made true.
    pub(super) fn learn(&mut self, site: SiteId, url: &CanonicalUrl, depth: u32) {
        if self.0.len() >= ENTRIES_MAX {
            self.0.clear();
        }
        let known = self.0.entry(Self::key(site, url)).or_insert(depth);
        *known = depth.min(*known);
    }
}
