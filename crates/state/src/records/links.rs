//! Pages in the order of discovery, and their links.

use nenrin_urls::CanonicalUrl;

use crate::{Nth, PageId, ServerId, VersionId};

/// A known page with its discovery number.
///
/// Discovery numbers count from 1 without gaps, so that a vector is enough to hold something for
/// every page in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundPage {
    /// Its discovery number.
    pub nth: Nth,
    /// Its server.
    pub server: ServerId,
    /// Whether it was visited, and what is known of its links.
    pub reading: Reading,
}

/// How far a page has been read for links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// It was never visited.
    New,
    /// It was visited and nothing was got.
    Tried,
    /// It has a version whose links were never read: it came from elsewhere, or an earlier build.
    Unread,
    /// Its links are kept.
    Read,
}

/// The links of a page, as far as they lead to known pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageLinks {
    /// The page's discovery number.
    pub nth: Nth,
    /// Discovery numbers of the pages that it links to, ascending; `None` if they were never read.
    pub targets: Option<Vec<Nth>>,
    /// How many of its links lead to pages of other partitions.
    pub far: usize,
    /// Its last version and URL, to read them from.
    pub page: PageId,
    /// The URL.
    pub url: CanonicalUrl,
    /// The version, if there is one.
    pub version: Option<VersionId>,
}

/// Links that a commit made known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Linked {
    /// The page's discovery number.
    pub nth: Nth,
    /// The pages that it links to now and did not before, ascending.
    pub targets: Vec<Nth>,
    /// How many pages it links to, with those of other partitions.
    pub links: usize,
    /// Whether its links were known before.
    pub again: bool,
}
