//! What is kept: thinning out old versions by rule, and removing sites.
//!
//! The order of a prune makes it safe to be cut short: the state drops versions and lists them as
//! being pruned in one transaction, the store forgets them, the list is cleared. The next prune
//! begins with what is still listed. `compact` frees their space: it rewrites what other versions
//! refer to.

use nenrin_state::{KeptVersion, PageId, PruneRow, PruneRule, Removal, Site, SiteId};
use nenrin_store::VersionId;

use crate::{Archive, Result, logins};

/// Pages whose versions are looked at, or forgotten, at once.
const PORTION: usize = 1_000;

/// What was pruned, or would be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Versions of the site before.
    pub all: u64,
    /// Bytes of their bodies, as received.
    pub all_raw_bytes: u64,
    /// Versions that were pruned.
    pub versions: u64,
    /// Bytes of their bodies, as received.
    pub raw_bytes: u64,
}

impl Pruned {
    fn add(&mut self, other: Self) {
        self.all += other.all;
        self.all_raw_bytes += other.all_raw_bytes;
        self.versions += other.versions;
        self.raw_bytes += other.raw_bytes;
    }
}

impl Archive {
    /// What [`Archive::prune`] would do.
    pub fn would_prune(&self, site: &Site, rule: &PruneRule, now_s: i64) -> Result<Pruned> {
        self.going(site, rule, now_s, &mut |_| Ok(()))
    }

    /// Drops the versions of a site that a rule does not keep, after finishing a prune that was cut
    /// short before. [`Archive::compact`] frees their space.
    pub fn prune(&self, site: &Site, rule: &PruneRule, now_s: i64) -> Result<Pruned> {
        if let Some(parts) = self.parts() {
            let mut all = Pruned::default();
            parts.each(false, &mut |part| {
                all.add(part.prune(site, rule, now_s)?);
                Ok(())
            })?;
            return Ok(all);
        }
        self.forget_pruned()?;
        let rule_text = rule.to_string();
        self.going(site, rule, now_s, &mut |going| {
            if going.is_empty() {
                return Ok(());
            }
            let rule = rule_text.clone();
            let row = PruneRow { site: site.id, at_s: now_s, rule, versions: 0, raw_bytes: 0 };
            self.state().prune(&row, going)?;
            self.forget_pruned()
        })
    }

    /// Prunes every site that has a rule, and compacts if anything went.
    pub fn prune_by_rules(&self, now_s: i64) -> Result<()> {
        let mut versions = 0;
        for site in self.state().sites()? {
            let Some(rule) = &site.conditions.keeping.prune else { continue };
            let pruned = self.prune(&site, rule, now_s)?;
            if pruned.versions > 0 {
                tracing::info!(site = site.name, versions = pruned.versions, %rule, "pruned");
            }
            versions += pruned.versions;
        }
        match versions {
            0 => Ok(()),
            _ => self.compact(&mut |_, _| {}),
        }
    }

    /// Hides a site, denies access to it or deletes its content; returns how many versions were
    /// deleted. The state records it first, so that what is half deleted cannot be opened. A
    /// deletion that was cut short goes on when it is asked for again.
    pub fn remove_site(
        &self,
        site: SiteId,
        removal: Removal,
        reason: &str,
        now_s: i64,
    ) -> Result<u64> {
        self.state().remove_site(site, Some(removal), reason, now_s)?;
        if removal != Removal::Delete {
            return Ok(0);
        }
        logins::forget(self.folder(), site);
        self.delete_denied(site)
    }

    /// Deletes the versions of a site that nobody may open.
    fn delete_denied(&self, site: SiteId) -> Result<u64> {
        if let Some(parts) = self.parts() {
            let mut forgotten = 0;
            parts.each(false, &mut |part| {
                forgotten += part.delete_denied(site)?;
                Ok(())
            })?;
            return Ok(forgotten);
        }
        let (mut forgotten, mut after) = (0, None);
        loop {
            let versions = self.state().denied_versions(site, after, PORTION)?;
            let Some((last, _)) = versions.last() else { return Ok(forgotten) };
            after = Some(*last);
            let ids: Vec<VersionId> = versions.iter().map(|(_, id)| *id).collect();
            self.store().forget(&ids)?;
            let mut pages: Vec<_> = versions.into_iter().map(|(page, _)| page).collect();
            pages.dedup();
            forgotten += self.state().drop_versions(&pages)?;
        }
    }

    /// Hands the versions that a rule does not keep to `go`, in portions of whole pages.
    fn going(
        &self,
        site: &Site,
        rule: &PruneRule,
        now_s: i64,
        go: &mut dyn FnMut(&[KeptVersion]) -> Result<()>,
    ) -> Result<Pruned> {
        let mut pruned = Pruned::default();
        let mut after: Option<PageId> = None;
        loop {
            let versions = self.state().site_versions(site.id, after, PORTION)?;
            let Some(last) = versions.last() else { return Ok(pruned) };
            after = Some(last.page);
            let mut going = Vec::new();
            for page in versions.chunk_by(|a, b| a.page == b.page) {
                let received_s: Vec<i64> = page.iter().map(|version| version.at_s).collect();
                let goes = rule.goes(&received_s, now_s);
                let gone =
                    page.iter().zip(goes).filter(|(version, goes)| *goes && !version.is_current);
                going.extend(gone.map(|(version, _)| *version));
            }
            pruned.all += versions.len() as u64;
            pruned.all_raw_bytes += versions.iter().map(|version| version.bytes).sum::<u64>();
            pruned.versions += going.len() as u64;
            pruned.raw_bytes += going.iter().map(|version| version.bytes).sum::<u64>();
            go(&going)?;
        }
    }

    /// Makes the store forget what the state has dropped.
    fn forget_pruned(&self) -> Result<()> {
        loop {
            let versions = self.state().pruning(PORTION)?;
            if versions.is_empty() {
                return Ok(());
            }
            self.store().forget(&versions)?;
            self.state().pruned(&versions)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use nenrin_state::{Change, SiteConditions, VersionRow, VisitCommit};
    use nenrin_store::NewVersion;
    use nenrin_urls::CanonicalUrl;
    use proptest::prelude::*;

    use super::*;
    use crate::OpenOptions;

    const DAY_S: i64 = 86_400;
    const NOW_S: i64 = 20_000 * DAY_S;

    /// A page that shares most of itself with its other versions and with pages of its number.
    fn body(page: u32, content: u32) -> Vec<u8> {
        let mut text = format!("<h1>page {}</h1>", page % 3);
        for line in 0..40 {
            text.push_str(&format!("<p>line {line} of {}</p>", (line * (page % 3 + 1)) % 7));
        }
        text.push_str(&format!("<p>content {content}</p>"));
        text.into_bytes()
    }

    /// Stores one version as a visit would, and makes the state know it.
    fn add(archive: &Archive, site: &Site, page: u32, at_s: i64, content: u32) -> VersionId {
        let url = CanonicalUrl::parse(&format!("http://s{}.com/{page}", site.id.0)).unwrap();
        let body = body(page, content);
        let put = archive.store().put(&NewVersion {
            url: &url,
            group: site.id.0,
            visited_at_s: at_s,
            status: 200,
            protocol: "http/1.1",
            tls: None,
            server_address: None,
            request_head: b"",
            response_head: b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n",
            body: &body,
            truncated: None,
            previous: None,
        });
        let version = put.unwrap().id;
        archive.store().sync().unwrap();
        let (mime, bytes) = ("text/html".to_owned(), body.len() as u64);
        let row = VersionRow { at_s, version, status: 200, mime, bytes, changed_permille: None };
        let visit = VisitCommit::in_packs(site.id, url, row);
        let committed = archive.state().commit(&[Change::Visit(Box::new(visit))]).unwrap();
        assert_eq!(committed.adopted, 1);
        version
    }

    fn listed(archive: &Archive) -> BTreeMap<VersionId, (String, i64)> {
        let mut listed = BTreeMap::new();
        archive
            .state()
            .each_version(&mut |url, row| {
                listed.insert(row.version, (url.to_string(), row.at_s));
            })
            .unwrap();
        listed
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        /// Whatever is pruned, wherever it is cut short: what is kept comes back exactly.
        #[test]
        fn after_prune_compact_and_verify_every_kept_version_is_restored(
            versions in prop::collection::vec((0_u32..2, 0_u32..4, 0_i64..200, 0_u32..5), 1..60),
            rule in prop::sample::select(vec!["0d,month", "30d,day:90d,month", "7d,week", "3d,day"]),
            compacts_first in any::<bool>(),
            is_cut_short in any::<bool>(),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let archive = Archive::open(folder.path(), &OpenOptions::writing()).unwrap();
            let rule: PruneRule = rule.parse().unwrap();
            let sites: Vec<Site> = (0..2)
                .map(|n| {
                    let top = CanonicalUrl::parse(&format!("http://s{}.com/0", n + 1)).unwrap();
                    let conditions = SiteConditions::new(vec![top]);
                    archive.state().add_site(&format!("s{n}"), &conditions, NOW_S).unwrap()
                })
                .collect();
            let mut bodies = BTreeMap::new();
            let mut newest: BTreeMap<(u32, u32), (i64, VersionId)> = BTreeMap::new();
            let mut oldest: BTreeMap<(u32, u32), (i64, VersionId)> = BTreeMap::new();
            for (place, (site, page, day, content)) in versions.iter().enumerate() {
                let at_s = NOW_S - day * DAY_S + place as i64;
                let id = add(&archive, &sites[*site as usize], *page, at_s, *content);
                bodies.insert(id, body(*page, *content));
                let key = (*site, *page);
                let new = newest.entry(key).or_insert((at_s, id));
                *new = (*new).max((at_s, id));
                let old = oldest.entry(key).or_insert((at_s, id));
                *old = (*old).min((at_s, id));
            }
            if compacts_first {
                archive.compact(&mut |_, _| {}).unwrap();
            }
            let before = listed(&archive);
            if is_cut_short {
                // As after a crash between the state's transaction and the store's.
                archive.going(&sites[0], &rule, NOW_S, &mut |going| {
                    let rule = rule.to_string();
                    let (site, at_s) = (sites[0].id, NOW_S);
                    let row = PruneRow { site, at_s, rule, versions: 0, raw_bytes: 0 };
                    archive.state().prune(&row, going)?;
                    Ok(())
                })
                .unwrap();
                let report = archive.store().verify(true, &mut |_, _| {}).unwrap();
                prop_assert!(report.is_sound());
            }
            drop(archive);
            let archive = Archive::open(folder.path(), &OpenOptions::writing()).unwrap();
            let pruned = archive.prune(&sites[0], &rule, NOW_S).unwrap();
            let after = listed(&archive);
            if !is_cut_short {
                prop_assert_eq!(before.len() as u64, after.len() as u64 + pruned.versions);
            }
            archive.compact(&mut |_, _| {}).unwrap();
            let report = archive.store().verify(true, &mut |_, _| {}).unwrap();
            prop_assert!(report.is_sound(), "{:?}", report.damage);
            prop_assert_eq!(archive.state().check().unwrap(), Vec::<String>::new());
            prop_assert!(archive.state().pruning(1).unwrap().is_empty());
            for id in after.keys() {
                prop_assert_eq!(&archive.store().read(*id).unwrap().body, &bodies[id]);
            }
            for (_, id) in newest.values().chain(oldest.values()) {
                prop_assert!(after.contains_key(id), "first and newest stay");
            }
            for id in before.keys().filter(|id| !after.contains_key(id)) {
                prop_assert!(archive.store().read(*id).is_err(), "what went is gone");
            }
            let of_other = |listed: &BTreeMap<VersionId, (String, i64)>| {
                listed.values().filter(|(url, _)| url.starts_with("http://s2.")).count()
            };
            prop_assert_eq!(of_other(&before), of_other(&after), "other sites are left alone");
            let again = archive.prune(&sites[0], &rule, NOW_S).unwrap();
            prop_assert_eq!(again.versions, 0);
            let rebuilt = {
                archive.store().rebuild_index().unwrap();
                let mut count = 0;
                archive.store().scan(&mut |_| { count += 1; Ok(()) }).unwrap();
                count
            };
            prop_assert_eq!(rebuilt, after.len(), "the packs say the same");
        }
    }
}
