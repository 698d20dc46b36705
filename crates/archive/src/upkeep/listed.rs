use std::collections::{BTreeMap, BTreeSet};

use nenrin_store::{StoreError, VersionId};

use crate::{Archive, Result, counted, spans::readable_date};

/// Versions that are kept by number; beyond, they are only counted.
const NUMBERS_MAX: usize = 1_000_000;

/// The state's list of versions, compared with the records in the packs. Every version on it must be
/// there. The other way round is not damage: a version whose visit was not committed before a crash
/// is fetched again.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// Versions on the list that are in no pack.
    pub(super) missing: Found,
    /// Versions on the list whose records say something else.
    pub(super) different: Found,
    /// Versions on the list that are as their records say.
    pub(super) right: u64,
    /// The pages of versions that were asked for.
    pub(super) pages: BTreeMap<VersionId, String>,
}

/// Versions with something in common.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) count: u64,
    /// The first of them.
    pub(super) versions: Vec<VersionId>,
    /// One of them in words.
    pub(super) example: Option<String>,
}

impl Found {
    fn add(&mut self, id: VersionId, url: &nenrin_urls::CanonicalUrl) {
        self.count += 1;
        self.example.get_or_insert_with(|| format!("version {id} of {url}"));
        if self.versions.len() < NUMBERS_MAX {
            self.versions.push(id);
        }
    }

    pub(super) fn text(&self, what: &str) -> Option<String> {
        let example = self.example.as_ref()?;
        Some(format!("{} {what}, such as {example}", counted(self.count, "listed version")))
    }
}

impl Listed {
    pub(super) fn look_through(archive: &Archive, wanted: &BTreeSet<VersionId>) -> Result<Self> {
        let mut listed = Self::default();
        archive.state().each_version(&mut |url, row| {
            let id = row.version;
            if wanted.contains(&id) {
                listed.pages.insert(id, format!("{url} of {}", readable_date(row.at_s)));
            }
            match archive.store().head(id) {
                Ok(head)
                    if head.url == *url
                        && head.visited_at_s == row.at_s
                        && head.status == row.status
                        && head.body_bytes == row.bytes =>
                {
                    listed.right += 1;
                }
                Ok(_) => listed.different.add(id, url),
                Err(StoreError::NotFound { .. }) => listed.missing.add(id, url),
                // The store's own check reports damage.
                Err(_) => {}
            }
        })?;
        Ok(listed)
    }
}
