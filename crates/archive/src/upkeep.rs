//! Verifying, rebuilding the indexes from the packs, and compacting.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use nenrin_state::{Change, SiteConditions, SiteId, VersionQuery};
use nenrin_store::{CompactOptions, Digest, StoreError, VerifyReport, VersionHead, VersionId};
use nenrin_urls::CanonicalUrl;

use crate::{
    Archive, Progress, Result,
    ingest::{Contents, Intake, Keep},
    sites,
    spans::readable_date,
};

/// Versions that are committed together.
const BATCH: usize = 1000;
/// Damaged locations for which an example page is looked up.
const EXAMPLES_MAX: usize = 20;
/// Versions of one page in one second that another is compared with.
const SAME_SECOND_MAX: usize = 1000;

/// What a check of the whole archive found.
#[derive(Debug)]
pub struct Verified {
    /// What is damaged in the packs.
    pub store: VerifyReport,
    /// What is wrong with the state, in words.
    pub state: Vec<String>,
    /// For the first damaged locations, a page and date that each of them costs.
    pub examples: BTreeMap<VersionId, String>,
}

impl Verified {
    /// Whether nothing is damaged.
    pub fn is_sound(&self) -> bool {
        self.store.is_sound() && self.state.is_empty()
    }
}

/// What a rebuild of the indexes found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reindexed {
    /// Versions in the packs.
    pub versions: u64,
    /// Those of them that the state did not know.
    pub adopted: u64,
    /// Sites that were registered for them.
    pub new_sites: u64,
}

impl Archive {
    /// Checks every byte of the packs, and the state against them. With `deep`, every version is
    /// restored and compared with its digest. Progress is counted in bytes.
    pub fn verify(&self, deep: bool, progress: &mut Progress<'_>) -> Result<Verified> {
        let store = self.store().verify(deep, progress)?;
        let mut state = self.state().check()?;
        let first = store.damage.iter().take(EXAMPLES_MAX);
        let wanted = first.filter_map(|damage| damage.versions.first().copied()).collect();
        let listed = Listed::look_through(self, wanted)?;
        state.extend(listed.missing_text());
        Ok(Verified { store, state, examples: listed.pages })
    }

    /// Writes what parity restores in place of what is damaged in the packs, and returns how many
    /// places that were. Progress is counted in bytes.
    pub fn repair(&self, progress: &mut Progress<'_>) -> Result<u64> {
        Ok(self.store().repair(progress)?)
    }

    /// Rewrites the packs so that they take the least space. Progress is counted in bytes.
    pub fn compact(&self, progress: &mut Progress<'_>) -> Result<()> {
        self.store().compact(&CompactOptions::default(), progress)?;
        self.state().tidy_up()?;
        Ok(())
    }

    /// Rebuilds the index and the state's list of versions from the packs. Sites that are not
    /// known any more are registered with this depth and not collected by themselves. Progress is
    /// counted in versions.
    pub fn reindex(&self, depth: u32, progress: &mut Progress<'_>) -> Result<Reindexed> {
        self.store().rebuild_index()?;
        let sites = self.state().sites()?;
        let known = sites.iter().map(|site| (site.id.0, site.id)).collect();
        let mut rebuild = Rebuild {
            archive: self,
            known,
            depth,
            intakes: BTreeMap::new(),
            visits: Vec::new(),
            uncommitted: BTreeSet::new(),
            found: Reindexed::default(),
        };
        let mut failure = None;
        let scanned = self.store().scan(&mut |head| {
            rebuild.found.versions += 1;
            progress(rebuild.found.versions, rebuild.found.versions);
            rebuild.adopt(&head).map_err(|error| {
                let reason = error.to_string();
                failure = Some(error);
                StoreError::Stopped(reason)
            })
        });
        if let (Err(_), Some(failure)) = (&scanned, failure) {
            return Err(failure);
        }
        scanned?;
        rebuild.commit()?;
        let found = rebuild.found;
        rebuild.learn()?;
        Ok(found)
    }
}

/// The state's list of versions, compared with the store. Every version on it must be there. (The
/// other way round is not damage: a version whose visit was not committed before a crash is fetched
/// again.)
#[derive(Default)]
struct Listed {
    /// How many are not in the packs, and one of them.
    missing: u64,
    example: Option<String>,
    /// The pages of versions that were asked for.
    pages: BTreeMap<VersionId, String>,
}

impl Listed {
    fn look_through(archive: &Archive, wanted: BTreeSet<VersionId>) -> Result<Self> {
        let mut listed = Self::default();
        archive.state().each_version(&mut |url, row| {
            let id = VersionId(row.version);
            if wanted.contains(&id) {
                listed.pages.insert(id, format!("{url} of {}", readable_date(row.at_s)));
            }
            match archive.store().head(id) {
                Ok(head) if head.url == *url && head.visited_at_s == row.at_s => {}
                Ok(_) | Err(StoreError::NotFound { .. }) => {
                    listed.missing += 1;
                    listed.example.get_or_insert_with(|| format!("version {id} of {url}"));
                }
                // The store's own check reports damage.
                Err(_) => {}
            }
        })?;
        Ok(listed)
    }

    fn missing_text(&self) -> Option<String> {
        let example = self.example.as_ref()?;
        let missing = self.missing;
        Some(format!("{missing} listed versions are not in the packs, such as {example}"))
    }
}

/// Makes the state know the versions of the packs.
struct Rebuild<'a> {
    archive: &'a Archive,
    /// Sites by their number in the packs.
    known: BTreeMap<u32, SiteId>,
    depth: u32,
    /// The way into each site.
    intakes: BTreeMap<SiteId, Intake<'a>>,
    /// Versions to be committed together.
    visits: Vec<Change>,
    uncommitted: BTreeSet<(CanonicalUrl, i64, u16, Digest)>,
    found: Reindexed,
}

impl<'a> Rebuild<'a> {
    fn adopt(&mut self, head: &VersionHead) -> Result<()> {
        let capture = (head.url.clone(), head.visited_at_s, head.status, head.digest);
        if self.uncommitted.contains(&capture) || self.is_listed_under_another_number(head)? {
            return Ok(());
        }
        let site = match self.known.get(&head.group) {
            Some(&site) => site,
            None => self.register(head)?,
        };
        let page = self.archive.state().page(&head.url)?;
        let visit = self.intake(site)?.found_in_packs(head, page)?;
        self.visits.push(Change::Visit(Box::new(visit)));
        self.uncommitted.insert(capture);
        if self.visits.len() >= BATCH { self.commit() } else { Ok(()) }
    }

    fn intake(&mut self, site: SiteId) -> Result<&mut Intake<'a>> {
        Ok(match self.intakes.entry(site) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(Intake::new(self.archive, site, Keep::Everything)?),
        })
    }

    /// Pages that were lost with the state learn how often they changed from their versions.
    fn learn(self) -> Result<()> {
        for (site, intake) in self.intakes {
            let mut lessons = intake.lessons;
            lessons.fill_gaps();
            self.archive.learn(site, lessons, Contents::Unread)?;
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        let visits = std::mem::take(&mut self.visits);
        self.uncommitted.clear();
        self.found.adopted += self.archive.state().commit(&visits)?.adopted;
        Ok(())
    }

    fn register(&mut self, head: &VersionHead) -> Result<SiteId> {
        let state = &**self.archive.state();
        let tops = vec![likely_top(&head.url)?];
        let conditions = SiteConditions { depth: self.depth, ..SiteConditions::new(tops) };
        let name = sites::free_name(state, &conditions)?;
        let site = state.add_site(&name, &conditions, head.visited_at_s)?.id;
        self.found.new_sites += 1;
        self.known.insert(head.group, site);
        Ok(site)
    }

    /// Whether the very same version is listed already. A process that was killed between storing
    /// and committing has done both again since, and what it stored first must not become a second
    /// version.
    fn is_listed_under_another_number(&self, head: &VersionHead) -> Result<bool> {
        let at_s = head.visited_at_s;
        let then = VersionQuery { from_s: at_s, to_s: at_s, limit: SAME_SECOND_MAX };
        for (url, row) in self.archive.state().versions(&head.url.key(), then)? {
            let may_be_same = url == head.url
                && row.version != head.id.0
                && row.status == head.status
                && row.bytes == head.body_bytes;
            if !may_be_same {
                continue;
            }
            match self.archive.store().head(VersionId(row.version)) {
                Ok(listed) if listed.digest == head.digest => return Ok(true),
                // The listed version may be lost; then this one replaces it.
                Ok(_) | Err(StoreError::Damaged { .. } | StoreError::NotFound { .. }) => {}
                Err(other) => return Err(other.into()),
            }
        }
        Ok(false)
    }
}

/// The top page of a site of which only its pages are still known: the first one if it is a
/// folder's, or else that of its server. Exports are laid out from there.
fn likely_top(first: &CanonicalUrl) -> Result<CanonicalUrl> {
    match first.path().ends_with('/') {
        true => Ok(first.clone()),
        false => Ok(CanonicalUrl::parse(&format!("{}/", first.server()))?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_whose_conditions_are_lost_begins_at_a_folder() {
        for (first, top) in [
            ("https://e.com/docs/", "https://e.com/docs/"),
            ("https://e.com:8443/photos/.DS_Store", "https://e.com:8443/"),
            ("http://e.com/LICENSE", "http://e.com/"),
        ] {
            let first = CanonicalUrl::parse(first).unwrap();
            assert_eq!(likely_top(&first).unwrap().as_str(), top);
        }
    }
}
