use std::path::Path;

use nenrin_archive::{Archive, OpenOptions, counted, readable_bytes};
use nenrin_store::ObjectPlace;
use serde_json::json;

use super::{Context, progress::Bar};
use crate::{
    cli::{BackupArgs, MigrateArgs, VerifyArgs},
    clock,
    exit::{Exit, usage},
    table::{print_json, print_table, say},
};

/// `nenrin stats`.
pub(super) fn stats(context: &Context) -> anyhow::Result<Exit> {
    let archive = context.open_to_read()?;
    let sizes = archive.sizes()?;
    match context.json {
        true => print_json(&sizes.as_json())?,
        false => print_table(&sizes.table())?,
    }
    Ok(Exit::Done)
}

/// Work that is counted in bytes of packs.
const WORK_BAR: &str = "{bar:40} {bytes} of {total_bytes}, {eta} left";

/// `nenrin verify`.
pub(super) fn verify(context: &Context, args: &VerifyArgs) -> anyhow::Result<Exit> {
    let repaired = if args.repair || args.accept_loss { repair(context)? } else { 0 };
    let archive = match args.accept_loss {
        true => context.open_to_change()?,
        false => context.open(OpenOptions::checking())?,
    };
    let bar = Bar::styled(context, "{bar:40} {bytes} of {total_bytes}, restoring versions");
    let mut verified = archive.verify(args.deep, &mut bar.progress())?;
    let mut accepted = 0;
    if args.accept_loss && !verified.is_sound() {
        accepted = archive.accept_loss(&verified, clock::now_s())?;
        verified = archive.verify(args.deep, &mut bar.progress())?;
    }
    verified.search = nenrin_search::damage(archive.folder());
    bar.finish();
    let exit = if verified.is_sound() { Exit::Done } else { Exit::Damaged };
    if context.json {
        let mut found = verified.as_json(args.deep);
        (found["repaired"], found["accepted_versions"]) = (repaired.into(), accepted.into());
        print_json(&found)?;
        return Ok(exit);
    }
    if accepted > 0 {
        say(format!("{} lost and accepted", counted(accepted, "version")))?;
    }
    verified.text(args.deep).into_iter().try_for_each(say)?;
    Ok(exit)
}

/// Restores damaged locations by parity; returns how many.
fn repair(context: &Context) -> anyhow::Result<u64> {
    let archive = context.open_to_change()?;
    let bar = Bar::styled(context, WORK_BAR);
    let repaired = archive.repair(&mut bar.progress())?;
    bar.finish();
    if repaired > 0 && !context.json {
        say(format!("{} restored by parity", counted(repaired, "damaged location")))?;
    }
    Ok(repaired)
}

/// `nenrin reindex`.
pub(super) fn reindex(context: &Context) -> anyhow::Result<Exit> {
    let archive = context.open(OpenOptions::rebuilding())?;
    let bar = Bar::styled(context, WORK_BAR);
    let depth = context.config.crawl.depth;
    let found = archive.reindex(depth, clock::now_s(), &mut bar.progress())?;
    // It follows the log of visits, which does not name what was found in the packs.
    nenrin_search::delete_index(archive.folder())?;
    bar.finish();
    if context.json {
        print_json(&found.as_json())?;
    } else {
        found.text().into_iter().try_for_each(say)?;
    }
    Ok(match (found.has_lost(), &found.aside) {
        (true, _) => Exit::Damaged,
        (false, Some(_)) => Exit::Partly,
        (false, None) => Exit::Done,
    })
}

/// `nenrin backup`.
pub(super) fn backup(context: &Context, args: &BackupArgs) -> anyhow::Result<Exit> {
    let now_s = clock::now_s();
    let bar = Bar::styled(context, WORK_BAR);
    let done = if args.target.contains("://") {
        let place = ObjectPlace::open(&args.target).map_err(usage)?;
        match args.restore {
            true => Archive::restore_from(&place, &context.archive, &mut bar.progress())?,
            false => context.open_to_read()?.back_up_to(&place, now_s, &mut bar.progress())?,
        }
    } else {
        let target = Path::new(&args.target);
        match args.restore {
            true => Archive::restore(target, &context.archive, now_s, &mut bar.progress())?,
            false => context.open_to_read()?.back_up(target, now_s, &mut bar.progress())?,
        }
    };
    bar.finish();
    if context.json {
        print_json(&done)?;
    } else {
        let copied = readable_bytes(done.copied_bytes + done.state_bytes);
        let versions = counted(done.versions, "version");
        let known = readable_bytes(done.known_bytes);
        say(format!("{versions}; {copied} copied, {known} were there already"))?;
    }
    Ok(Exit::Done)
}

/// `nenrin migrate`.
pub(super) fn migrate(context: &Context, args: &MigrateArgs) -> anyhow::Result<Exit> {
    let shared = context.shared(args.from.is_some())?;
    let (bar, now_s) = (Bar::counting(context, "pages"), clock::now_s());
    let folders = (args.from.as_deref(), args.to.as_deref());
    let done = shared.migrate(folders, now_s, &mut bar.progress())?;
    bar.finish();
    if context.json {
        print_json(&done)?;
    } else {
        done.lines().into_iter().try_for_each(say)?;
    }
    Ok(Exit::Done)
}

/// `nenrin compact`.
pub(crate) fn compact(context: &Context) -> anyhow::Result<Exit> {
    let archive = context.open_to_change()?;
    let before = archive.file_bytes()?;
    let (needed, free) = archive.space_to_compact()?;
    if !context.json && needed > 0 {
        let free = free.map(|free| format!("; {} are free", readable_bytes(free)));
        let free = free.unwrap_or_default();
        say(format!("needs up to {} on the disk until it is done{free}", readable_bytes(needed)))?;
    }
    let bar = Bar::styled(context, "{bar:40} {percent}%, {eta} left");
    let began_ms = clock::now_ms();
    archive.compact(&mut bar.progress())?;
    bar.finish();
    let after = archive.file_bytes()?;
    let elapsed_ms = clock::now_ms() - began_ms;
    if context.json {
        print_json(&json!({
            "before_bytes": before, "after_bytes": after, "elapsed_ms": elapsed_ms,
            "needed_bytes": needed,
        }))?;
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
