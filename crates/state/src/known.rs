//! Which pages a site is known to know: most links on a page lead to known pages, and asking the
//! database for each of them would be most of a commit's work.

#![expect(clippy::disallowed_types, reason = "looked up by key alone, never iterated")]

use std::{collections::HashMap, num::NonZeroU32};

use nenrin_urls::CanonicalUrl;

use crate::SiteId;

/// Entries kept; when there are more, all are forgotten and learnt again.
const ENTRIES_MAX: usize = 1_000_000;

/// Site and URL, hashed.
pub(crate) type KnownKey = [u8; 16];

/// A page's discovery number; `None` for a page of another partition, which got mail about it.
pub(crate) type KnownPlace = Option<NonZeroU32>;

/// What a commit added: site and URL, depth and discovery number.
pub(crate) type Fresh = (KnownKey, u32, KnownPlace);

/// Pages known to a site at a depth or nearer, and their discovery numbers. A cache: forgetting
/// costs only time.
#[derive(Debug, Default)]
pub(crate) struct Known(HashMap<KnownKey, (u32, KnownPlace)>);

impl Known {
    pub(crate) fn key(site: SiteId, url: &CanonicalUrl) -> KnownKey {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&site.0.to_le_bytes());
        hasher.update(url.as_str().as_bytes());
        let mut key = [0; 16];
        key.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        key
    }

    /// Depth and discovery number of a page that the site knows.
    pub(crate) fn get(&self, key: &KnownKey) -> Option<(u32, KnownPlace)> {
        self.0.get(key).copied()
    }

    /// Remembers what a commit made true.
    pub(crate) fn learn(&mut self, key: KnownKey, depth: u32, place: KnownPlace) {
        if self.0.len() >= ENTRIES_MAX {
            self.0.clear();
        }
        let known = self.0.entry(key).or_insert((depth, place));
        known.0 = depth.min(known.0);
    }
}
