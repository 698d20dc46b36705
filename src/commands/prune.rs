//! `nenrin prune`, and the same by itself while nothing is collected.

use std::{sync::Arc, time::Duration};

use nenrin_archive::{Archive, readable_bytes, sites};
use nenrin_state::{PruneRule, Site};
use serde_json::json;

use super::Context;
use crate::{
    cli::PruneArgs,
    clock,
    driver::DriverHandle,
    exit::{Exit, usage},
    table::{Table, print_json, print_table, say},
};

/// `nenrin prune`.
pub(super) fn prune(context: &Context, args: &PruneArgs) -> anyhow::Result<Exit> {
    let archive = match args.dry_run {
        true => context.open_to_read()?,
        false => context.open_to_change()?,
    };
    let given = match args.keep_all_for {
        None => None,
        Some(keep_all) => {
            let rule = PruneRule { keep_all_s: keep_all.as_s(), then: args.then.clone() };
            // Written and read again, so that a rule that makes no sense is refused here as well.
            let checked: Result<PruneRule, String> = rule.to_string().parse();
            Some(checked.map_err(|why| usage(anyhow::anyhow!(why)))?)
        }
    };
    let chosen = match args.site.as_ref().or(args.named_site.as_ref()) {
        Some(name) => vec![sites::find(&**archive.state(), name)?],
        None => archive.state().sites()?,
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
    let stored = archive.store().site_bytes()?;
    let mut table = Table::new(&["site", "rule", "versions", "go", "as received", "about, stored"]);
    let mut went = 0;
    for (site, rule) in &ruled {
        let pruned = match args.dry_run {
            true => archive.would_prune(site, rule, now_s)?,
            false => archive.prune(site, rule, now_s)?,
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
        print_table(&table)?;
        match (args.dry_run, went) {
            (true, _) => say("nothing was changed")?,
            (false, 0) => {}
            (false, _) => say("`nenrin compact` frees their space")?,
        }
    }
    Ok(Exit::Done)
}

/// How often sites with rules are looked at, and how long a moment without requests is waited for.
const EVERY: Duration = Duration::from_secs(3600);
const PATIENCE: Duration = Duration::from_secs(1800);
const MOMENT: Duration = Duration::from_secs(5);

/// Prunes the sites that have rules and frees the space, hour by hour, at a moment when no request
/// is under way if there is one.
pub(super) async fn when_idle(archive: Arc<Archive>, driver: DriverHandle) {
    loop {
        tokio::time::sleep(EVERY).await;
        let mut waited = Duration::ZERO;
        while waited < PATIENCE && !driver.under_way().is_empty() {
            tokio::time::sleep(MOMENT).await;
            waited += MOMENT;
        }
        let shared = archive.clone();
        let done = tokio::task::spawn_blocking(move || shared.prune_by_rules(clock::now_s())).await;
        if let Ok(Err(error)) = done {
            tracing::warn!("old versions could not be pruned: {error}");
        }
    }
}
