use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;

use indicatif::ProgressBar;
use nenrin_state::{Change, VersionQuery, VersionRow, VisitCommit};
use nenrin_store::{CompactOptions, StoreError, VersionHead, VersionId};
use nenrin_urls::CanonicalUrl;
use serde_json::json;

use super::{Context, sites};
use crate::{
    archive::{Access, Archive},
    cli::VerifyArgs,
    clock,
    exit::Exit,
    spans::{readable_bytes, readable_date},
    table::{Table, print_json, say},
};

/// Damaged places told to people; all of them stand in the JSON answer.
const DAMAGE_SHOWN: usize = 20;
/// Versions of one page in one second that another is compared with.
const SAME_SECOND_MAX: usize = 1000;

/// `nenrin stats`.
pub(super) fn stats(context: &Context) -> anyhow::Result<Exit> {
    let archive = context.open(Access::Read)?;
    let store = archive.store.stats()?;
    let state = archive.state.stats()?;
    let files = archive.file_bytes()?;
    let index = files.saturating_sub(store.html_bytes + store.other_bytes);
    let sites = archive.state.sites()?;
    let of_site = |id: u32| store.sites.iter().find(|s| s.group == id).copied().unwrap_or_default();
    if context.json {
        let sites: Vec<_> = sites
            .iter()
            .map(|site| {
                let bytes = of_site(site.id.0);
                json!({
                    "site": site.id, "name": site.name, "pages": site.counts.pages,
                    "visits": site.counts.visits, "versions": site.counts.versions,
                    "raw_bytes": site.counts.raw_bytes, "unique_bytes": bytes.unique_bytes,
                    "stored_bytes": bytes.stored_bytes(), "html_bytes": bytes.html_bytes,
                    "other_bytes": bytes.other_bytes, "index_bytes": bytes.record_bytes,
                })
            })
            .collect();
        print_json(&json!({
            "sites": sites, "servers": state.servers, "pages": state.pages, "visits": state.visits,
            "versions": state.versions, "raw_bytes": state.raw_bytes,
            "unique_bytes": store.unique_bytes, "stored_bytes": files,
            "html_bytes": store.html_bytes, "other_bytes": store.other_bytes, "index_bytes": index,
        }))?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&[
        "site", "pages", "visits", "versions", "raw", "unique", "stored", "of raw", "html",
        "other", "index",
    ]);
    let mut row = |name: String, pages: u64, visits: u64, versions: u64, sizes: [u64; 6]| {
        let [raw, unique, stored, html, other, index] = sizes;
        let share = if raw == 0 {
            String::new()
        } else {
            format!("{:.1}%", 100.0 * stored as f64 / raw as f64)
        };
        let mut cells = vec![name, pages.to_string(), visits.to_string(), versions.to_string()];
        cells.extend([raw, unique, stored].map(readable_bytes));
        cells.push(share);
        cells.extend([html, other, index].map(readable_bytes));
        table.row(cells);
    };
    for site in &sites {
        let (counts, bytes) = (site.counts, of_site(site.id.0));
        let sizes = [
            counts.raw_bytes,
            bytes.unique_bytes,
            bytes.stored_bytes(),
            bytes.html_bytes,
            bytes.other_bytes,
            bytes.record_bytes,
        ];
        row(site.name.clone(), counts.pages, counts.visits, counts.versions, sizes);
    }
    let sizes =
        [state.raw_bytes, store.unique_bytes, files, store.html_bytes, store.other_bytes, index];
    row("in all, with indexes".into(), state.pages, state.visits, state.versions, sizes);
    table.print()?;
    Ok(Exit::Done)
}

fn bar(context: &Context) -> ProgressBar {
    if context.json || !std::io::stderr().is_terminal() {
        ProgressBar::hidden()
    } else {
        ProgressBar::new(0)
    }
}

/// `nenrin verify`.
pub(super) fn verify(context: &Context, args: &VerifyArgs) -> anyhow::Result<Exit> {
    let archive = context.open(Access::Check)?;
    let bar = bar(context);
    let report = archive.store.verify(args.deep, &mut |done, all| {
        bar.set_length(all);
        bar.set_position(done);
    })?;
    bar.finish_and_clear();
    let mut state = archive.state.check()?;
    let shown = report.damage.iter().take(DAMAGE_SHOWN);
    let examples = shown.filter_map(|damage| damage.versions.first().copied()).collect();
    let listed = Listed::look_through(&archive, examples)?;
    state.extend(listed.told());
    let sound = report.is_sound() && state.is_empty();
    let exit = if sound { Exit::Done } else { Exit::Damaged };
    if context.json {
        let damage: Vec<_> = report
            .damage
            .iter()
            .map(|damage| {
                let versions: Vec<u64> = damage.versions.iter().map(|id| id.0).collect();
                json!({
                    "what": damage.what, "place": damage.place,
                    "versions_lost": damage.versions_lost, "versions": versions,
                })
            })
            .collect();
        print_json(&json!({
            "sound": sound, "packs": report.packs, "bytes": report.bytes,
            "versions": report.versions, "deep": args.deep, "damage": damage, "state": state,
        }))?;
        return Ok(exit);
    }
    say(format!(
        "{} packs, {}, {} versions checked{}",
        report.packs,
        readable_bytes(report.bytes),
        report.versions,
        if args.deep { ", each restored and compared with its digest" } else { "" }
    ))?;
    for damage in report.damage.iter().take(DAMAGE_SHOWN) {
        let example = damage.versions.first().and_then(|id| listed.pages.get(id));
        say(format!(
            "damaged: {}: {}; it costs {} version{}{}",
            damage.place,
            damage.what,
            damage.versions_lost,
            if damage.versions_lost == 1 { "" } else { "s" },
            example.map(|page| format!(", such as {page}")).unwrap_or_default()
        ))?;
    }
    if let Some(further) = report.damage.len().checked_sub(DAMAGE_SHOWN).filter(|n| *n > 0) {
        say(format!("and {further} further places; `nenrin verify --json` names them all"))?;
    }
    let lost: u64 = report.damage.iter().map(|damage| damage.versions_lost).sum();
    if lost > 0 {
        say(format!("{lost} of {} versions cannot be read; all others can", report.versions))?;
    }
    for wrong in state.iter().take(DAMAGE_SHOWN) {
        say(format!("state: {wrong}"))?;
    }
    say(if sound {
        "sound"
    } else {
        "not sound; put back a copy of what is damaged if there is one, then `nenrin reindex` rebuilds the \
         indexes from what is readable"
    })?;
    Ok(exit)
}

/// The state's list of versions, held against the store. Every version on it must be there. (The
/// other way round is no damage: a version whose visit was not committed before a crash is fetched
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
    fn look_through(archive: &Archive, wanted: BTreeSet<VersionId>) -> anyhow::Result<Self> {
        let mut listed = Self::default();
        archive.state.each_version(&mut |url, row| {
            let id = VersionId(row.version);
            if wanted.contains(&id) {
                listed.pages.insert(id, format!("{url} of {}", readable_date(row.at_s)));
            }
            match archive.store.head(id) {
                Ok(head) if head.url == *url && head.visited_at_s == row.at_s => {}
                Ok(_) | Err(StoreError::NotFound { .. }) => {
                    listed.missing += 1;
                    listed.example.get_or_insert_with(|| format!("version {id} of {url}"));
                }
                // Damage is told by the store's own check.
                Err(_) => {}
            }
        })?;
        Ok(listed)
    }

    fn told(&self) -> Option<String> {
        let example = self.example.as_ref()?;
        let missing = self.missing;
        Some(format!("{missing} listed versions are not in the packs, such as {example}"))
    }
}

/// Whether the very same version is listed already. A process that was killed between storing and
/// committing has done both again since, and what it stored first must not become a second version.
fn is_listed_under_another_number(archive: &Archive, head: &VersionHead) -> anyhow::Result<bool> {
    let at_s = head.visited_at_s;
    let then = VersionQuery { from_s: at_s, to_s: at_s, limit: SAME_SECOND_MAX };
    for (url, row) in archive.state.versions(&head.url.key(), then)? {
        let may_be_same = url == head.url
            && row.version != head.id.0
            && row.status == head.status
            && row.bytes == head.body_bytes;
        if !may_be_same {
            continue;
        }
        match archive.store.head(VersionId(row.version)) {
            Ok(listed) if listed.digest == head.digest => return Ok(true),
            // What is listed may be lost; then this one takes its place.
            Ok(_) | Err(StoreError::Damaged { .. } | StoreError::NotFound { .. }) => {}
            Err(other) => return Err(other.into()),
        }
    }
    Ok(false)
}

/// The top page of a site of which only its pages are known any more: the first one if it stands
/// for a folder, or else that of its server. Exports are laid out from there.
fn likely_top(first: &CanonicalUrl) -> anyhow::Result<CanonicalUrl> {
    match first.path().ends_with('/') {
        true => Ok(first.clone()),
        false => Ok(CanonicalUrl::parse(&format!("{}/", first.server()))?),
    }
}

/// `nenrin reindex`.
pub(super) fn reindex(context: &Context) -> anyhow::Result<Exit> {
    let archive = context.open(Access::Rebuild)?;
    archive.store.rebuild_index()?;
    let bar = bar(context);
    let (mut versions, mut adopted, mut new_sites) = (0_u64, 0_u64, 0_u64);
    let mut known: BTreeMap<u32, nenrin_state::SiteId> =
        archive.state.sites()?.iter().map(|site| (site.id.0, site.id)).collect();
    let mut trouble = None;
    archive
        .store
        .scan(&mut |head| {
            versions += 1;
            bar.inc(1);
            let mut adopt = || -> anyhow::Result<bool> {
                if is_listed_under_another_number(&archive, &head)? {
                    return Ok(false);
                }
                let site = match known.get(&head.group) {
                    Some(&site) => site,
                    None => {
                        let mut conditions = sites::default_conditions(
                            vec![likely_top(&head.url)?],
                            &context.config,
                        );
                        conditions.schedule = nenrin_state::Schedule::Manual;
                        let name = sites::free_name(&*archive.state, &conditions)?;
                        let site = archive.state.add_site(&name, &conditions, head.visited_at_s)?;
                        new_sites += 1;
                        known.insert(head.group, site.id);
                        site.id
                    }
                };
                let row = VersionRow {
                    at_s: head.visited_at_s,
                    version: head.id.0,
                    status: head.status,
                    mime: mime(&head.response_head),
                    bytes: head.body_bytes,
                    changed_permille: None,
                };
                let visit = VisitCommit::in_packs(site, head.url.clone(), row);
                Ok(archive.state.commit(&[Change::Visit(Box::new(visit))])?.adopted > 0)
            };
            match adopt() {
                Ok(new) => {
                    adopted += u64::from(new);
                    Ok(())
                }
                Err(error) => {
                    let told = error.to_string();
                    trouble = Some(error);
                    Err(StoreError::Stopped(told))
                }
            }
        })
        .or_else(|error| trouble.take().map_or(Err(error.into()), Err))?;
    bar.finish_and_clear();
    if context.json {
        print_json(&json!({"versions": versions, "adopted": adopted, "new_sites": new_sites}))?;
    } else {
        say(format!(
            "{versions} versions in the packs, {adopted} of them were missing in the state"
        ))?;
        if new_sites > 0 {
            say(format!(
                "{new_sites} sites were registered anew; `nenrin site set` restores their conditions"
            ))?;
        }
    }
    Ok(Exit::Done)
}

/// `nenrin compact`.
pub(crate) fn compact(context: &Context) -> anyhow::Result<Exit> {
    let archive = context.open(Access::Write)?;
    let before = archive.file_bytes()?;
    let bar = bar(context);
    let began_ms = clock::now_ms();
    archive.store.compact(&CompactOptions::default(), &mut |done, all| {
        bar.set_length(all);
        bar.set_position(done);
    })?;
    archive.state.tidy_up()?;
    bar.finish_and_clear();
    let after = archive.file_bytes()?;
    let elapsed_ms = clock::now_ms() - began_ms;
    if context.json {
        print_json(
            &json!({"before_bytes": before, "after_bytes": after, "elapsed_ms": elapsed_ms}),
        )?;
    } else {
        say(format!(
            "{} before, {} now, in {:.1} s",
            readable_bytes(before),
            readable_bytes(after),
            elapsed_ms as f64 / 1000.0
        ))?;
    }
    Ok(Exit::Done)
}

fn mime(response_head: &[u8]) -> String {
    let value = nenrin_fetch::header_fields(response_head)
        .find(|(name, _)| name.eq_ignore_ascii_case(b"content-type"))
        .map(|(_, value)| String::from_utf8_lossy(&value).into_owned());
    nenrin_crawl::mime(value.as_deref())
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
