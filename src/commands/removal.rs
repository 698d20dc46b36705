//! Removing sites: hiding, denying, deleting, each with its reason in the log.

use nenrin_state::{Removal, Site, SiteId};
use nenrin_store::{CompactOptions, VersionId};
use serde_json::json;

use super::{Context, sites};
use crate::{
    archive::{Access, Archive},
    cli::{SiteRemoveArgs, SiteRestoreArgs},
    clock,
    exit::{Exit, usage},
    spans::{readable_date, rfc3339},
    table::{Table, print_json, say},
};

/// Pages whose versions are forgotten at once.
const PORTION: usize = 1000;

/// `nenrin site remove`.
pub(super) fn remove(context: &Context, args: &SiteRemoveArgs) -> anyhow::Result<Exit> {
    let archive = context.open(Access::Write)?;
    let site = sites::find(&*archive.state, &args.site)?;
    let reason = reason(&args.reason)?;
    if args.how == Removal::Delete && args.confirm.as_deref() != Some(&site.name) {
        return Err(usage(anyhow::anyhow!(
            "deleting cannot be undone; say --confirm {:?} to delete what `{}` stored",
            site.name,
            site.name
        )));
    }
    let forgotten = carry_out(&archive, site.id, args.how, reason)?;
    if args.how == Removal::Delete {
        archive.store.compact(&CompactOptions::default(), &mut |_, _| {})?;
    }
    if context.json {
        print_json(&json!({
            "site": site.id, "name": site.name, "removal": args.how, "versions_deleted": forgotten,
        }))?;
        return Ok(Exit::Done);
    }
    say(match args.how {
        Removal::Hide => format!(
            "{} is hidden and no longer collected; its versions can still be opened",
            site.name
        ),
        Removal::Deny => format!("nobody can open {} any more; it is still stored", site.name),
        Removal::Delete => format!("{forgotten} versions of {} were deleted", site.name),
    })?;
    Ok(Exit::Done)
}

/// `nenrin site restore`.
pub(super) fn restore(context: &Context, args: &SiteRestoreArgs) -> anyhow::Result<Exit> {
    let archive = context.open(Access::Write)?;
    let site = sites::find(&*archive.state, &args.site)?;
    archive.state.remove_site(site.id, None, reason(&args.reason)?, clock::now_s())?;
    sites::show(context, &*archive.state, &Site { removed: None, ..site })
}

/// `nenrin site removals`.
pub(super) fn list(context: &Context) -> anyhow::Result<Exit> {
    let archive = context.open(Access::Read)?;
    let all = archive.state.sites()?;
    let name = |id: SiteId| all.iter().find(|s| s.id == id).map_or("", |s| &s.name);
    let mut rows = Vec::new();
    for row in archive.state.removals()? {
        let what = row.removal.map_or("given back", Removal::as_str).to_owned();
        rows.push((row.at_s, row.site, what, row.reason, json!({ "removal": row.removal })));
    }
    for row in archive.state.prunes()? {
        let what = format!("{} versions pruned", row.versions);
        let about = json!({ "versions_pruned": row.versions, "raw_bytes": row.raw_bytes });
        rows.push((row.at_s, row.site, what, format!("rule {}", row.rule), about));
    }
    // Stable: what was done in one second stays in the order of its log, newest first.
    rows.sort_by_key(|row| std::cmp::Reverse(row.0));
    let mut table = Table::new(&["when (UTC)", "site", "what", "why"]);
    for (at_s, site, what, reason, mut about) in rows {
        if context.json {
            about["at"] = json!(rfc3339(at_s));
            about["site"] = json!(site);
            about["name"] = json!(name(site));
            about["reason"] = json!(reason);
            print_json(&about)?;
        } else {
            table.row(vec![readable_date(at_s), name(site).to_owned(), what, reason]);
        }
    }
    if !context.json {
        table.print()?;
    }
    Ok(Exit::Done)
}

/// Removes a site and returns how many versions were deleted. The state says so first, so that
/// nobody can open what is half deleted; a deletion that was cut short goes on when it is asked for
/// again.
pub(super) fn carry_out(
    archive: &Archive,
    site: SiteId,
    removal: Removal,
    reason: &str,
) -> anyhow::Result<u64> {
    archive.state.remove_site(site, Some(removal), reason, clock::now_s())?;
    if removal != Removal::Delete {
        return Ok(0);
    }
    let (mut forgotten, mut after) = (0, None);
    loop {
        let versions = archive.state.denied_versions(site, after, PORTION)?;
        let Some((last, _)) = versions.last() else { return Ok(forgotten) };
        after = Some(*last);
        let ids: Vec<VersionId> = versions.iter().map(|(_, id)| VersionId(*id)).collect();
        archive.store.forget(&ids)?;
        let mut pages: Vec<_> = versions.into_iter().map(|(page, _)| page).collect();
        pages.dedup();
        forgotten += archive.state.drop_versions(&pages)?;
    }
}

/// What was removed is not collected by accident.
pub(super) fn refuse_removed(site: &Site) -> anyhow::Result<()> {
    match site.removed {
        None => Ok(()),
        Some(Removal::Delete) => Err(usage(anyhow::anyhow!(
            "the content of site `{}` was deleted; `nenrin site removals` says why",
            site.name
        ))),
        Some(removal) => Err(usage(anyhow::anyhow!(
            "site `{}` was removed ({}); `nenrin site removals` says why, `nenrin site restore` gives it back",
            site.name,
            removal.as_str()
        ))),
    }
}

fn reason(text: &str) -> anyhow::Result<&str> {
    match text.trim() {
        "" => Err(usage(anyhow::anyhow!("a removal needs a reason; it is kept"))),
        reason => Ok(reason),
    }
}
