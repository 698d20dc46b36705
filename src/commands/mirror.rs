//! Folders in and out, and dates in: `nenrin import mirror|history` and `nenrin export mirror`.

use nenrin_archive::{
    ExportedMirror, HistoryImportOptions, ImportedMirror, MirrorImportOptions, counted,
    readable_bytes, readable_date, sites,
};
use nenrin_urls::CanonicalUrl;
use serde_json::json;

use super::{Context, progress::Bar};
use crate::{
    cli::{ExportMirrorArgs, ImportHistoryArgs, ImportMirrorArgs},
    clock,
    exit::{Exit, usage},
    table::{print_json, say},
};

/// `nenrin import mirror`.
pub(crate) fn import(context: &Context, args: &ImportMirrorArgs) -> anyhow::Result<Exit> {
    let base = CanonicalUrl::parse_typed(&args.url).map_err(usage)?;
    anyhow::ensure!(
        args.folder.is_dir(),
        usage(anyhow::anyhow!("{} is not a folder", args.folder.display()))
    );
    let (began_ms, now_s) = (clock::now_ms(), clock::now_s());
    let options =
        MirrorImportOptions { base, at_s: args.at, depth: context.config.crawl.depth, now_s };
    options.check()?;
    let archive = context.open_to_write()?;
    let bar = Bar::counting(context, "files");
    let imported = archive.import_mirror(&args.folder, &options, &mut bar.progress())?;
    bar.finish();
    let elapsed_ms = clock::now_ms() - began_ms;
    let ImportedMirror { files, known, refused, counts } = imported;
    for path in &refused {
        tracing::warn!("not imported: {path}");
    }
    if context.json {
        print_json(&json!({
            "files": files, "known": known, "not_imported": refused, "counts": counts, "elapsed_ms": elapsed_ms,
        }))?;
    } else {
        say(format!(
            "{files} files as of {}: {} new, {} changed, {} same, {} gone, {known} known already; {} read, {} stored, in {:.1} s",
            readable_date(args.at),
            counts.first,
            counts.changed_again(),
            counts.same,
            counts.gone,
            readable_bytes(counts.received_bytes),
            readable_bytes(counts.stored_bytes),
            elapsed_ms as f64 / 1000.0
        ))?;
    }
    Ok(if refused.is_empty() { Exit::Done } else { Exit::Partly })
}

/// `nenrin import history`.
pub(crate) fn history(context: &Context, args: &ImportHistoryArgs) -> anyhow::Result<Exit> {
    let base = args.url.as_deref().map(CanonicalUrl::parse_typed).transpose().map_err(usage)?;
    let archive = context.open_to_change()?;
    let site = sites::named_or_only(&**archive.state(), args.site.as_deref())?;
    let options = HistoryImportOptions { site, base, now_s: clock::now_s() };
    let imported = archive.import_history(&args.file, &options).map_err(usage)?;
    imported.problems.iter().for_each(|what| tracing::warn!("not imported: {what}"));
    if context.json {
        print_json(&imported)?;
    } else {
        let (dates, pages) = (counted(imported.dates, "date"), counted(imported.pages, "page"));
        let (new, outside) = (imported.new_pages, imported.outside);
        say(format!("{dates} of {pages}, {new} of them new; {outside} outside the site left out"))?;
    }
    Ok(if imported.damaged == 0 { Exit::Done } else { Exit::Partly })
}

/// `nenrin export mirror`.
pub(crate) fn export(context: &Context, args: &ExportMirrorArgs) -> anyhow::Result<Exit> {
    let archive = context.open_to_read()?;
    let sites = match &args.site {
        Some(name) => vec![sites::find(&**archive.state(), name)?],
        None => archive.state().sites()?,
    };
    let by_server = args.site.is_none() && sites.len() > 1;
    let bar = Bar::counting(context, "pages");
    let target = (args.output.as_path(), by_server);
    let written = archive.export_mirror(&sites, args.at, target, &mut bar.progress())?;
    bar.finish();
    if context.json {
        print_json(&written)?;
        return Ok(Exit::Done);
    }
    let ExportedMirror { files, bytes, unchanged, deleted, mapped, list } = written;
    say(format!(
        "{files} files, {}, as of {} in {}",
        readable_bytes(bytes),
        readable_date(args.at),
        args.output.display()
    ))?;
    if unchanged + deleted > 0 {
        say(format!("{unchanged} of them were there already; {deleted} others were deleted"))?;
    }
    if mapped > 0 {
        say(format!("{mapped} have other names than their URLs; {} lists them", list.display()))?;
    }
    Ok(Exit::Done)
}
