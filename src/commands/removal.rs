//! Removing sites: hiding, denying, deleting, each with its reason in the log.

use nenrin_archive::{counted, readable_date, rfc3339, sites};
use nenrin_state::{Removal, Site, SiteId};
use serde_json::json;

use super::{Context, sites::show};
use crate::{
    cli::{SiteRemoveArgs, SiteRestoreArgs},
    clock,
    exit::{Exit, usage},
    table::{Table, print_json, print_table, say},
};

/// `nenrin site remove`.
pub(super) fn remove(context: &Context, args: &SiteRemoveArgs) -> anyhow::Result<Exit> {
    let archive = context.open_to_change()?;
    let site = sites::find(&**archive.state(), &args.site)?;
    let reason = reason(&args.reason)?;
    if args.how == Removal::Delete && args.confirm.as_deref() != Some(&site.name) {
        return Err(usage(anyhow::anyhow!(
            "deleting cannot be undone; add --confirm {:?} to delete what `{}` stored",
            site.name,
            site.name
        )));
    }
    let forgotten = archive.remove_site(site.id, args.how, reason, clock::now_s())?;
    if args.how == Removal::Delete {
        archive.compact(&mut |_, _| {})?;
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
        Removal::Delete => format!("versions of {} that were deleted: {forgotten}", site.name),
    })?;
    Ok(Exit::Done)
}

/// `nenrin site restore`.
pub(super) fn restore(context: &Context, args: &SiteRestoreArgs) -> anyhow::Result<Exit> {
    let archive = context.open_to_change()?;
    let site = sites::find(&**archive.state(), &args.site)?;
    archive.state().remove_site(site.id, None, reason(&args.reason)?, clock::now_s())?;
    show(context, &**archive.state(), &Site { removed: None, ..site })
}

/// `nenrin site removals`.
pub(super) fn list(context: &Context) -> anyhow::Result<Exit> {
    let archive = context.open_to_read()?;
    let all = archive.state().sites()?;
    let name = |id: SiteId| all.iter().find(|s| s.id == id).map_or("", |s| &s.name);
    let mut rows = Vec::new();
    for row in archive.state().removals()? {
        let what = row.removal.map_or("restored", Removal::as_str).to_owned();
        rows.push((row.at_s, row.site, what, row.reason, json!({ "removal": row.removal })));
    }
    for row in archive.state().prunes()? {
        let what = format!("{} pruned", counted(row.versions, "version"));
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
        print_table(&table)?;
    }
    Ok(Exit::Done)
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
            "site `{}` was removed ({}); `nenrin site removals` says why, `nenrin site restore` restores it",
            site.name,
            removal.as_str()
        ))),
    }
}

fn reason(text: &str) -> anyhow::Result<&str> {
    match text.trim() {
        "" => Err(usage(anyhow::anyhow!("a removal needs a reason; it is kept in the log"))),
        reason => Ok(reason),
    }
}
