//! Folders in and out: `nenrin import mirror` and `nenrin export mirror`.

use nenrin_archive::{
    ExportedMirror, ImportedMirror, MirrorImportOptions, readable_bytes, readable_date, sites,
};
use nenrin_urls::CanonicalUrl;
use serde_json::json;

use super::{Context, progress::Bar};
use crate::{
    cli::{ExportMirrorArgs, ImportMirrorArgs},
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
    let archive = context.open_to_write()?;
    let (began_ms, now_s) = (clock::now_ms(), clock::now_s());
    let options =
        MirrorImportOptions { base, at_s: args.at, depth: context.config.crawl.depth, now_s };
    let bar = Bar::plain(context);
    let imported = archive.import_mirror(&args.folder, &options, &mut bar.progress())?;
    bar.finish();
    let elapsed_ms = clock::now_ms() - began_ms;
    let ImportedMirror { files, refused, counts } = imported;
    for path in &refused {
        tracing::warn!("not imported: {path}");
    }
    if context.json {
        print_json(&json!({
            "files": files, "not_imported": refused, "counts": counts, "elapsed_ms": elapsed_ms,
        }))?;
    } else {
        say(format!(
            "{files} files as of {}: {} changed, {} same, {} gone; {} read, {} stored, in {:.1} s",
            readable_date(args.at),
            counts.changed,
            counts.same,
            counts.gone,
            readable_bytes(counts.received_bytes),
            readable_bytes(counts.stored_bytes),
            elapsed_ms as f64 / 1000.0
        ))?;
    }
    Ok(if refused.is_empty() { Exit::Done } else { Exit::Partly })
}

/// `nenrin export mirror`.
pub(crate) fn export(context: &Context, args: &ExportMirrorArgs) -> anyhow::Result<Exit> {
    let archive = context.open_to_read()?;
    let sites = match &args.site {
        Some(name) => vec![sites::find(&**archive.state(), name)?],
        None => archive.state().sites()?,
    };
    let by_server = args.site.is_none() && sites.len() > 1;
    let bar = Bar::plain(context);
    let target = (args.output.as_path(), by_server);
    let written = archive.export_mirror(&sites, args.at, target, &mut bar.progress())?;
    bar.finish();
    let ExportedMirror { files, bytes, skipped } = written;
    if context.json {
        print_json(&json!({"files": files, "bytes": bytes, "not_exported": skipped}))?;
    } else {
        say(format!(
            "{files} files, {}, as of {} in {}",
            readable_bytes(bytes),
            readable_date(args.at),
            args.output.display()
        ))?;
        for url in &skipped {
            say(format!("not exported, because its URL cannot be a file name: {url}"))?;
        }
    }
    Ok(if skipped.is_empty() { Exit::Done } else { Exit::Partly })
}
