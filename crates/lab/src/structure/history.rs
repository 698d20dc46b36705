//! The pages at each visit, whatever the source: folders, an archive, a generator.

use std::collections::BTreeMap;

/// Several sites, each visited several times.
#[derive(Debug, Clone, Default)]
pub struct RoundHistory {
    /// The sites. Each counts as one server.
    pub sites: Vec<SiteHistory>,
}

/// One site over time.
#[derive(Debug, Clone)]
pub struct SiteHistory {
    /// Its name.
    pub name: String,
    /// What sort of site it is (the paper's domains), for tables by kind.
    pub kind: String,
    /// The path of its top page.
    pub top: String,
    /// Its visits, in order of time.
    pub visits: Vec<SiteVisit>,
}

/// All pages of a site at one visit.
#[derive(Debug, Clone, Default)]
pub struct SiteVisit {
    /// When, in seconds since the epoch.
    pub at_s: i64,
    /// The pages by path, without leading slash.
    pub pages: BTreeMap<String, PageVisit>,
}

/// One page at one visit.
#[derive(Debug, Clone, Default)]
pub struct PageVisit {
    /// The digest of its content.
    pub digest: [u8; 32],
    /// Paths on the same site that it links to, frames among them.
    pub links: Vec<String>,
    /// Those of them that are frames.
    pub frames: Vec<String>,
    /// Its Last-Modified, in seconds since the epoch.
    pub last_modified_s: Option<i64>,
    /// Hashes of the fragments that it may share with others.
    pub blocks: Vec<u32>,
}
