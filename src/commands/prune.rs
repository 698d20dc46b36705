//! Thinning out old versions by rule: `nenrin prune`, and by itself while nothing is collected.
//!
//! The order makes it safe to be cut short: the state drops versions and lists them as being pruned in
//! one transaction, the store forgets them, the list is cleared. Whoever comes next begins with what
//! is still listed. Bytes are given back by `compact`, which rewrites what others refer to.

use std::{sync::Arc, time::Duration};

use nenrin_state::{KeptVersion, PageId, PruneRow, PruneRule, Site, Upkeep};
use nenrin_store::{CompactOptions, VersionId};
use serde_json::json;

use super::{Context, sites};
use crate::{
    archive::{Access, Archive},
    cli::PruneArgs,
    clock,
    driver::DriverHandle,
    exit::{Exit, usage},
    spans::readable_bytes,
    table::{Table, print_json, say},
};

/// Pages whose versions are looked at at once.
const PORTION: usize = 1_000;

/// What went, or would go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Pruned {
    /// Versions of the site before.
    all: u64,
    versions: u64,
    raw_bytes: u64,
    all_raw_bytes: u64,
}

/// `nenrin prune`.
pub(super) fn prune(context: &Context, args: &PruneArgs) -> anyhow::Result<Exit> {
    let access = if args.dry_run { Access::Read } else { Access::Write };
    let archive = context.open(access)?;
    let given = match args.keep_all_for {
        None => None,
        Some(keep_all) => {
            let rule = PruneRule { keep_all_s: keep_all.as_s(), then: args.then.clone() };
            // Written and read again, so that a rule that makes no sense is refused here as well.
            let checked: Result<PruneRule, String> = rule.to_string().parse();
            Some(checked.map_err(|why| usage(anyhow::anyhow!(why)))?)
        }
    };
    let chosen = match &args.site {
        Some(name) => vec![sites::find(&*archive.state, name)?],
        None => archive.state.sites()?,
    };
    let ruled: Vec<(Site, PruneRule)> = chosen
        .into_iter()
        .filter_map(|site| {
            let rule = given.clone().or_else(|| site.conditions.keeping.prune.clone())?;
            Some((site, rule))
        })
        .collect();
    if ruled.is_empty() {
        return Err(usage(anyhow::anyhow!(
            "no site has a rule; name one with --keep-all-for 30d --then one-per-month, or give sites theirs with `nenrin site set SITE --prune 30d,month`"
        )));
    }
    let now_s = clock::now_s();
    let stored = archive.store.site_bytes()?;
    let mut table = Table::new(&["site", "rule", "versions", "go", "as received", "about, stored"]);
    let mut went = 0;
    for (site, rule) in &ruled {
        let pruned = match args.dry_run {
            true => look(&*archive.state, site, rule, now_s, &mut |_| Ok(()))?,
            false => carry_out(&archive, site, rule, now_s)?,
        };
        let stored = stored.iter().find(|bytes| bytes.group == site.id.0);
        let stored = stored.map_or(0, |bytes| bytes.stored_bytes());
        let share = pruned.raw_bytes as f64 / pruned.all_raw_bytes.max(1) as f64;
        let estimate = (stored as f64 * share) as u64;
        went += pruned.versions;
        if context.json {
            print_json(&json!({
                "site": site.id, "name": site.name, "rule": rule, "dry_run": args.dry_run,
                "versions_before": pruned.all, "versions_pruned": pruned.versions,
                "raw_bytes": pruned.raw_bytes, "stored_bytes_estimate": estimate,
            }))?;
        } else {
            table.row(vec![
                site.name.clone(),
                rule.to_string(),
                pruned.all.to_string(),
                pruned.versions.to_string(),
                readable_bytes(pruned.raw_bytes),
                readable_bytes(estimate),
            ]);
        }
    }
    if !context.json {
        table.print()?;
        match (args.dry_run, went) {
            (true, _) => say("nothing was changed")?,
            (false, 0) => {}
            (false, _) => say("`nenrin compact` gives the room back")?,
        }
    }
    Ok(Exit::Done)
}

/// Shows the versions that go, in portions of whole pages.
fn look(
    state: &dyn Upkeep,
    site: &Site,
    rule: &PruneRule,
    now_s: i64,
    go: &mut dyn FnMut(&[KeptVersion]) -> anyhow::Result<()>,
) -> anyhow::Result<Pruned> {
    let mut pruned = Pruned::default();
    let mut after: Option<PageId> = None;
    loop {
        let versions = state.site_versions(site.id, after, PORTION)?;
        let Some(last) = versions.last() else { return Ok(pruned) };
        after = Some(last.page);
        let mut going = Vec::new();
        for page in versions.chunk_by(|a, b| a.page == b.page) {
            let received_s: Vec<i64> = page.iter().map(|version| version.at_s).collect();
            let goes = rule.goes(&received_s, now_s);
            let gone = page.iter().zip(goes).filter(|(version, goes)| *goes && !version.is_current);
            going.extend(gone.map(|(version, _)| *version));
        }
        pruned.all += versions.len() as u64;
        pruned.all_raw_bytes += versions.iter().map(|version| version.bytes).sum::<u64>();
        pruned.versions += going.len() as u64;
        pruned.raw_bytes += going.iter().map(|version| version.bytes).sum::<u64>();
        go(&going)?;
    }
}

/// Thins out a site, after what was cut short before.
fn carry_out(
    archive: &Archive,
    site: &Site,
    rule: &PruneRule,
    now_s: i64,
) -> anyhow::Result<Pruned> {
    finish(archive)?;
    let rule_text = rule.to_string();
    look(&*archive.state, site, rule, now_s, &mut |going| {
        if going.is_empty() {
            return Ok(());
        }
        let rule = rule_text.clone();
        let row = PruneRow { site: site.id, at_s: now_s, rule, versions: 0, raw_bytes: 0 };
        archive.state.prune(&row, going)?;
        finish(archive)
    })
}

/// Lets the store forget what the state has dropped.
fn finish(archive: &Archive) -> anyhow::Result<()> {
    loop {
        let versions = archive.state.pruning(PORTION)?;
        if versions.is_empty() {
            return Ok(());
        }
        let ids: Vec<VersionId> = versions.iter().map(|version| VersionId(*version)).collect();
        archive.store.forget(&ids)?;
        archive.state.pruned(&versions)?;
    }
}

/// How often sites with rules are looked at, and how long a moment without requests is waited for.
const EVERY: Duration = Duration::from_secs(3600);
const PATIENCE: Duration = Duration::from_secs(1800);
const MOMENT: Duration = Duration::from_secs(5);

/// Thins out the sites that have rules and gives the room back, hour by hour, at a moment when no
/// request is under way if there is one.
pub(super) async fn when_idle(archive: Arc<Archive>, driver: DriverHandle) {
    loop {
        tokio::time::sleep(EVERY).await;
        let mut waited = Duration::ZERO;
        while waited < PATIENCE && !driver.under_way().is_empty() {
            tokio::time::sleep(MOMENT).await;
            waited += MOMENT;
        }
        let shared = archive.clone();
        let done = tokio::task::spawn_blocking(move || prune_by_rules(&shared)).await;
        if let Ok(Err(error)) = done {
            tracing::warn!("old versions are not thinned out: {error:#}");
        }
    }
}

fn prune_by_rules(archive: &Archive) -> anyhow::Result<()> {
    let mut went = 0;
    for site in archive.state.sites()? {
        let Some(rule) = &site.conditions.keeping.prune else { continue };
        let pruned = carry_out(archive, &site, rule, clock::now_s())?;
        if pruned.versions > 0 {
            tracing::info!(site = site.name, versions = pruned.versions, %rule, "pruned");
        }
        went += pruned.versions;
    }
    if went > 0 {
        archive.store.compact(&CompactOptions::default(), &mut |_, _| {})?;
        archive.state.tidy_up()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use nenrin_state::{Change, SiteConditions, VersionRow, VisitCommit};
    use nenrin_store::NewVersion;
    use nenrin_urls::CanonicalUrl;
    use proptest::prelude::*;

    use super::*;
    use crate::config::Config;

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
    fn add(archive: &Archive, site: &Site, page: u32, at_s: i64, content: u32) -> u64 {
        let url = CanonicalUrl::parse(&format!("http://s{}.com/{page}", site.id.0)).unwrap();
        let body = body(page, content);
        let put = archive.store.put(&NewVersion {
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
        let version = put.unwrap().id.0;
        archive.store.sync().unwrap();
        let (mime, bytes) = ("text/html".to_owned(), body.len() as u64);
        let row = VersionRow { at_s, version, status: 200, mime, bytes, changed_permille: None };
        let visit = VisitCommit::in_packs(site.id, url, row);
        let committed = archive.state.commit(&[Change::Visit(Box::new(visit))]).unwrap();
        assert_eq!(committed.adopted, 1);
        version
    }

    fn listed(archive: &Archive) -> BTreeMap<u64, (String, i64)> {
        let mut listed = BTreeMap::new();
        archive
            .state
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
            let config = Config::default();
            let archive = Archive::open(folder.path(), &config, Access::Write).unwrap();
            let rule: PruneRule = rule.parse().unwrap();
            let sites: Vec<Site> = (0..2)
                .map(|n| {
                    let top = CanonicalUrl::parse(&format!("http://s{}.com/0", n + 1)).unwrap();
                    let conditions = SiteConditions::new(vec![top]);
                    archive.state.add_site(&format!("s{n}"), &conditions, NOW_S).unwrap()
                })
                .collect();
            let mut bodies = BTreeMap::new();
            let mut newest: BTreeMap<(u32, u32), (i64, u64)> = BTreeMap::new();
            let mut oldest: BTreeMap<(u32, u32), (i64, u64)> = BTreeMap::new();
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
                archive.store.compact(&CompactOptions::default(), &mut |_, _| {}).unwrap();
            }
            let before = listed(&archive);
            if is_cut_short {
                // As after a crash between the state's transaction and the store's.
                look(&*archive.state, &sites[0], &rule, NOW_S, &mut |going| {
                    let rule = rule.to_string();
                    let (site, at_s) = (sites[0].id, NOW_S);
                    let row = PruneRow { site, at_s, rule, versions: 0, raw_bytes: 0 };
                    archive.state.prune(&row, going)?;
                    Ok(())
                })
                .unwrap();
                let report = archive.store.verify(true, &mut |_, _| {}).unwrap();
                prop_assert!(report.is_sound());
            }
            drop(archive);
            let archive = Archive::open(folder.path(), &config, Access::Write).unwrap();
            let pruned = carry_out(&archive, &sites[0], &rule, NOW_S).unwrap();
            let after = listed(&archive);
            if !is_cut_short {
                prop_assert_eq!(before.len() as u64, after.len() as u64 + pruned.versions);
            }
            archive.store.compact(&CompactOptions::default(), &mut |_, _| {}).unwrap();
            let report = archive.store.verify(true, &mut |_, _| {}).unwrap();
            prop_assert!(report.is_sound(), "{:?}", report.damage);
            prop_assert_eq!(archive.state.check().unwrap(), Vec::<String>::new());
            prop_assert!(archive.state.pruning(1).unwrap().is_empty());
            for id in after.keys() {
                prop_assert_eq!(&archive.store.read(VersionId(*id)).unwrap().body, &bodies[id]);
            }
            for (_, id) in newest.values().chain(oldest.values()) {
                prop_assert!(after.contains_key(id), "first and newest stay");
            }
            for id in before.keys().filter(|id| !after.contains_key(id)) {
                prop_assert!(archive.store.read(VersionId(*id)).is_err(), "what went is gone");
            }
            let of_other = |listed: &BTreeMap<u64, (String, i64)>| {
                listed.values().filter(|(url, _)| url.starts_with("http://s2.")).count()
            };
            prop_assert_eq!(of_other(&before), of_other(&after), "other sites are left alone");
            let again = carry_out(&archive, &sites[0], &rule, NOW_S).unwrap();
            prop_assert_eq!(again.versions, 0);
            let rebuilt = {
                archive.store.rebuild_index().unwrap();
                let mut count = 0;
                archive.store.scan(&mut |_| { count += 1; Ok(()) }).unwrap();
                count
            };
            prop_assert_eq!(rebuilt, after.len(), "the packs say the same");
        }
    }
}
