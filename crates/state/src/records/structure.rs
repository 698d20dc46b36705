//! What a round that chooses its pages needs of a site, and what it leaves behind.

use std::collections::BTreeMap;

use nenrin_structure::{LeftOut, MapPage, PageFragments, SiteMap};
use nenrin_urls::Server;
use serde::{Deserialize, Serialize};

use crate::{Outcome, PageId, RoundId, ServerId, SiteId};

/// A page of a site's map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedPage {
    /// Its number.
    pub id: PageId,
    /// Its path and query.
    pub path: String,
    /// When it was last tried.
    pub visited_s: Option<i64>,
    /// What the last visit found.
    pub outcome: Option<Outcome>,
    /// Visits made.
    pub visits: u32,
    /// Visits in a row that did not see it.
    pub failures: u32,
    /// The Last-Modified header of the last version.
    pub last_modified: Option<String>,
    /// The last round in which it was tried.
    pub round: Option<RoundId>,
    /// What [`Change::Blocks`](crate::Change::Blocks) left of it.
    pub blocks: PageFragments,
}

/// The pages and links of a site, and what earlier rounds left.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SitePages {
    /// The pages, in the order of their discovery.
    pub pages: Vec<MappedPage>,
    /// For a page, by its position in `pages`, the pages of the site that it links to.
    pub links: Vec<(u32, Vec<u32>)>,
    /// Positions of the top pages in `pages`.
    pub tops: Vec<u32>,
    /// The names of the pages' servers.
    pub servers: BTreeMap<ServerId, Server>,
    /// When the site's last rounds began, oldest first.
    pub rounds_s: Vec<i64>,
    /// What [`Change::Structure`](crate::Change::Structure) left of the site.
    pub kept: Vec<u8>,
    /// What it left of all sites.
    pub kept_of_all: Vec<u8>,
}

impl SitePages {
    /// The numbers of the pages' servers.
    pub fn server_ids(&self) -> Vec<ServerId> {
        self.servers.keys().copied().collect()
    }

    /// The map as plans need it. Paths of other servers than the first top page's begin with the
    /// server's name.
    pub fn map(&self, is_alive: impl Fn(&MappedPage) -> bool) -> SiteMap {
        let page_at = |at: &u32| self.pages.get(*at as usize);
        let home = self.tops.first().and_then(page_at).map(|top| top.id.server());
        let path = |page: &MappedPage| {
            let path = page.path.strip_prefix('/').unwrap_or(&page.path);
            let server = page.id.server();
            match self.servers.get(&server).filter(|_| home != Some(server)) {
                Some(name) => format!("{name}/{path}"),
                None => path.to_owned(),
            }
        };
        let pages = self.pages.iter().map(|page| MapPage {
            key: page.id.0,
            path: path(page),
            alive: is_alive(page),
            fragments: page.blocks.now.clone(),
        });
        SiteMap { pages: pages.collect(), links: self.links.clone(), tops: self.tops.clone() }
    }
}

/// What is learnt of the structure of a site, or of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptStructure {
    /// The site; none for what holds everywhere.
    pub site: Option<SiteId>,
    /// Opaque here.
    pub bytes: Vec<u8>,
}

/// The pages that a round left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skips {
    /// By reason.
    pub reasons: Vec<LeftOut>,
}

impl Skips {
    /// How many.
    pub fn pages(&self) -> u64 {
        self.reasons.iter().map(|left| left.pages).sum()
    }
}
