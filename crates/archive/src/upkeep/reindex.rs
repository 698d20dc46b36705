use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};
use std::path::PathBuf;

use nenrin_state::{Change, SiteConditions, SiteId, State, VersionQuery};
use nenrin_store::{Digest, LostVersions, StoreError, VersionHead};
use nenrin_urls::CanonicalUrl;
use serde_json::{Value, json};

use super::listed::Listed;
use crate::{
    Archive, Progress, Result,
    archive::StateAside,
    counted,
    ingest::{Contents, Intake, Keep},
    sites,
};

/// Versions that are committed together.
const BATCH: usize = 1000;
/// Versions of one page in one second that another is compared with.
const SAME_SECOND_MAX: usize = 1000;
/// How the state's log of what went calls rows that were wrong.
const DIFFERED: &str = "differed from the packs";
/// Why a site is removed that was so in a damaged state.
const TAKEN_OVER: &str = "it was removed before the state was rebuilt";

/// What a rebuild of the indexes found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reindexed {
    /// Versions in the packs.
    pub versions: u64,
    /// Those of them that the state did not know.
    pub adopted: u64,
    /// Sites that were registered for them.
    pub new_sites: u64,
    /// Versions on the state's list that are in no pack, and one of them.
    pub lost: u64,
    /// One of them, in words.
    pub lost_example: Option<String>,
    /// Versions that the old index knew and that are in no pack.
    pub lost_of_index: LostVersions,
    /// Where a state is that was damaged, and how many sites were taken over from it.
    pub aside: Option<(PathBuf, u64)>,
}

impl Reindexed {
    /// Whether versions were lost.
    pub fn has_lost(&self) -> bool {
        self.lost > 0 || self.lost_of_index.count > 0
    }

    fn add(&mut self, other: Self) {
        self.versions += other.versions;
        self.adopted += other.adopted;
        self.new_sites += other.new_sites;
        self.lost += other.lost;
        self.lost_example = self.lost_example.take().or(other.lost_example);
        self.lost_of_index.count += other.lost_of_index.count;
        self.lost_of_index.versions.extend(other.lost_of_index.versions);
    }

    /// For programs.
    pub fn as_json(&self) -> Value {
        json!({
            "versions": self.versions, "adopted": self.adopted, "new_sites": self.new_sites,
            "lost": self.lost, "lost_of_index": self.lost_of_index.count,
            "state_began_anew": self.aside.is_some(),
        })
    }

    /// What was found and what is lost, in words.
    pub fn text(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "{} in the packs, {} of them were missing in the state",
            counted(self.versions, "version"),
            self.adopted
        )];
        if let Some((path, sites)) = &self.aside {
            lines.push(format!(
                "the state was damaged or missing and starts over: the log of visits and the schedule are \
                 lost; {} with their conditions were taken over; the old file is {}",
                counted(*sites, "site"),
                path.display()
            ));
        }
        if self.new_sites > 0 {
            lines.push(format!(
                "{} registered again; `nenrin site set` restores the conditions",
                counted(self.new_sites, "site")
            ));
        }
        if let Some(example) = &self.lost_example {
            lines.push(format!(
                "lost: {} that the state lists are in no pack, such as {example}",
                counted(self.lost, "version")
            ));
        }
        if let Some(first) = self.lost_of_index.versions.first() {
            lines.push(format!(
                "lost: {} that the old index had are in no pack, such as version {first}",
                counted(self.lost_of_index.count, "version")
            ));
        }
        if self.has_lost() {
            lines.push(
                "put back a copy of the packs if there is one and run `nenrin reindex` again, or accept \
                 the loss by `nenrin verify --accept-loss`"
                    .to_owned(),
            );
        }
        lines
    }
}

impl Archive {
    /// Rebuilds the index and the state's list of versions from the packs, whatever the index looks
    /// like. Sites that are not known any more are registered with this depth and not collected by
    /// themselves. Progress is counted in versions.
    pub fn reindex(
        &self,
        depth: u32,
        now_s: i64,
        progress: &mut Progress<'_>,
    ) -> Result<Reindexed> {
        if let Some(parts) = self.parts() {
            let mut all = Reindexed::default();
            parts.each(false, &mut |part| {
                let before = all.versions;
                all.add(part.reindex_in(&**self.state(), depth, now_s, &mut |done, _| {
                    progress(before + done, before + done);
                })?);
                Ok(())
            })?;
            self.store().catch_up()?;
            return Ok(all);
        }
        self.reindex_in(&**self.state(), depth, now_s, progress)
    }

    /// The same for one part of an archive, whose sites are registered in `whole`.
    fn reindex_in(
        &self,
        whole: &dyn State,
        depth: u32,
        now_s: i64,
        progress: &mut Progress<'_>,
    ) -> Result<Reindexed> {
        let lost_of_index = self.store().rebuild_index()?;
        let mut found = Reindexed { lost_of_index, ..Reindexed::default() };
        let mut known = BTreeMap::new();
        if let Some(aside) = self.aside() {
            found.aside = Some((aside.path.clone(), aside.sites.len() as u64));
            take_over_sites(self, aside, &mut known)?;
        } else {
            let sites = self.state().sites()?;
            known.extend(sites.iter().map(|site| (site.id.0, site.id)));
        }
        let listed = Listed::look_through(self, &BTreeSet::new())?;
        (found.lost, found.lost_example) = (listed.missing.count, listed.missing.example);
        if !listed.different.versions.is_empty() {
            self.state().drop_lost(&listed.different.versions, DIFFERED, now_s)?;
        }
        let mut rebuild = Rebuild {
            archive: self,
            whole,
            known,
            depth,
            intakes: BTreeMap::new(),
            visits: Vec::new(),
            uncommitted: BTreeSet::new(),
            found,
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
        for old in self.aside().iter().flat_map(|aside| &aside.sites) {
            if let (Some(removal), Some(site)) = (old.removed, rebuild.known.get(&old.id.0)) {
                self.state().remove_site(*site, Some(removal), TAKEN_OVER, now_s)?;
            }
        }
        let found = std::mem::take(&mut rebuild.found);
        rebuild.learn()?;
        Ok(found)
    }
}

/// Registers the sites of a damaged state in the new one; the packs know them by their old numbers.
fn take_over_sites(
    archive: &Archive,
    aside: &StateAside,
    known: &mut BTreeMap<u32, SiteId>,
) -> Result<()> {
    let state = archive.state();
    let here = state.sites()?;
    for old in &aside.sites {
        let site = match here.iter().find(|site| site.name == old.name) {
            Some(site) => site.id,
            None => state.add_site(&old.name, &old.conditions, old.created_s)?.id,
        };
        if old.paused {
            state.pause_site(site, true)?;
        }
        known.insert(old.id.0, site);
    }
    Ok(())
}

/// Makes the state know the versions of the packs.
struct Rebuild<'a> {
    archive: &'a Archive,
    /// Where sites are registered.
    whole: &'a dyn State,
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
        self.found.adopted += self.archive.commit(&visits)?.adopted;
        Ok(())
    }

    fn register(&mut self, head: &VersionHead) -> Result<SiteId> {
        let state = self.whole;
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
                && row.version != head.id
                && row.status == head.status
                && row.bytes == head.body_bytes;
            if !may_be_same {
                continue;
            }
            match self.archive.store().head(row.version) {
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
