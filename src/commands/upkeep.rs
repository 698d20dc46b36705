use nenrin_archive::{OpenOptions, counted, readable_bytes};
use serde_json::json;

use super::{Context, progress::Bar};
use crate::{
    cli::VerifyArgs,
    clock,
    exit::Exit,
    table::{Table, print_json, print_table, say},
};

/// Damaged locations shown to people; the JSON answer has all of them.
const DAMAGE_SHOWN: usize = 20;

/// `nenrin stats`.
pub(super) fn stats(context: &Context) -> anyhow::Result<Exit> {
    let archive = context.open_to_read()?;
    let store = archive.store().stats()?;
    let state = archive.state().stats()?;
    let files = archive.file_bytes()?;
    let index = files.saturating_sub(store.html_bytes + store.other_bytes);
    let sites = archive.state().sites()?;
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
        // While the index takes more than the content, a share would only confuse.
        let share = if raw == 0 || index > html + other {
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
    print_table(&table)?;
    Ok(Exit::Done)
}

/// `nenrin verify`.
pub(super) fn verify(context: &Context, args: &VerifyArgs) -> anyhow::Result<Exit> {
    let repaired = if args.repair { repair(context)? } else { 0 };
    let archive = context.open(OpenOptions::checking())?;
    let bar = Bar::plain(context);
    let verified = archive.verify(args.deep, &mut bar.progress())?;
    bar.finish();
    let sound = verified.is_sound();
    let (report, state) = (&verified.store, &verified.state);
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
            "repaired": repaired,
        }))?;
        return Ok(exit);
    }
    say(format!(
        "{}, {}, {} checked{}",
        counted(report.packs, "pack"),
        readable_bytes(report.bytes),
        counted(report.versions, "version"),
        if args.deep { ", each restored and compared with its digest" } else { "" }
    ))?;
    for damage in report.damage.iter().take(DAMAGE_SHOWN) {
        let example = damage.versions.first().and_then(|id| verified.examples.get(id));
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

/// Restores damaged places by parity; returns how many.
fn repair(context: &Context) -> anyhow::Result<u64> {
    // An archive that is not there must not be created by opening it to write.
    drop(context.open_to_read()?);
    let archive = context.open_to_write()?;
    let bar = Bar::plain(context);
    let repaired = archive.repair(&mut bar.progress())?;
    bar.finish();
    if repaired > 0 && !context.json {
        let places = if repaired == 1 { "place" } else { "places" };
        say(format!("{repaired} damaged {places} restored by parity"))?;
    }
    Ok(repaired)
}

/// `nenrin reindex`.
pub(super) fn reindex(context: &Context) -> anyhow::Result<Exit> {
    let archive = context.open(OpenOptions::rebuilding())?;
    let bar = Bar::plain(context);
    let found = archive.reindex(context.config.crawl.depth, &mut bar.progress())?;
    bar.finish();
    if context.json {
        print_json(&json!({
            "versions": found.versions, "adopted": found.adopted, "new_sites": found.new_sites,
        }))?;
        return Ok(Exit::Done);
    }
    say(format!(
        "{} versions in the packs, {} of them were missing in the state",
        found.versions, found.adopted
    ))?;
    if found.new_sites > 0 {
        say(format!(
            "{} registered anew; `nenrin site set` restores the conditions",
            counted(found.new_sites, "site")
        ))?;
    }
    Ok(Exit::Done)
}

/// `nenrin compact`.
pub(crate) fn compact(context: &Context) -> anyhow::Result<Exit> {
    let archive = context.open_to_write()?;
    let before = archive.file_bytes()?;
    let bar = Bar::plain(context);
    let began_ms = clock::now_ms();
    archive.compact(&mut bar.progress())?;
    bar.finish();
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
