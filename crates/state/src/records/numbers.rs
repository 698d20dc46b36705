//! The numbers of sites, servers, pages and rounds, and the mark of a content.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The number of a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SiteId(pub u32);

/// The number of a server, given when its first page becomes known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ServerId(pub u32);

/// The number of a page: its server's number above [`PageId::HASH_BITS`] bits of the URL's hash, so
/// that pages of a server are next to each other in every table and queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PageId(pub i64);

impl PageId {
    /// Bits below the server's number.
    pub const HASH_BITS: u32 = 39;

    /// The server of this page.
    pub fn server(self) -> ServerId {
        ServerId((self.0 >> Self::HASH_BITS) as u32)
    }
}

/// A page's number in the order of discovery. These numbers count from 1 without gaps, so that a
/// vector is enough to hold something for every page in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nth(pub u32);

/// The number of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RoundId(pub i64);

impl fmt::Display for RoundId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The first half of a content's digest: enough to see whether it changed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ContentMark(pub [u8; 16]);

impl fmt::Debug for ContentMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
