//! `nenrin export warc|wacz|parquet|cdxj` and `nenrin import warc`.

use std::{
    io::{self, BufWriter, Write},
    path::Path,
};

use anyhow::Context as _;

use nenrin_archive::{
    Archive, ArchiveError, Download, ExportOptions, Exported, OpenOptions, WarcFiles,
    WarcImportOptions, counted, index_warc, readable_bytes, sites,
};
use nenrin_state::SiteId;
use nenrin_urls::CanonicalUrl;
use nenrin_warc::DigestAlgorithm;
use serde_json::json;

use super::{Context, progress::Bar};
use crate::{
    cli::{
        ExportCdxjArgs, ExportPageArgs, ExportWaczArgs, ExportWarcArgs, ImportWarcArgs,
        SelectionArgs,
    },
    clock,
    config::Config,
    exit::{Exit, usage},
    table::{print_json, say},
};

const PAGES_BAR: &str = "{bar:40} {pos} of {len} pages, {eta} left";
const VERSIONS_BAR: &str = "{bar:40} {pos} of {len} versions, {eta} left";
const BYTES_BAR: &str = "{bar:40} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";

/// `nenrin export warc`.
pub(super) fn export(context: &Context, args: &ExportWarcArgs) -> anyhow::Result<Exit> {
    let archive = context.open_to_read()?;
    let mut options = options(context, &archive, &args.selection)?;
    options.references = args.references;
    options.index = args.cdxj;
    let (began_ms, bar) = (clock::now_ms(), Bar::styled(context, PAGES_BAR));
    let exported = match (&args.go_on, &args.output) {
        (Some(folder), _) => archive.continue_warc(folder, &options, &mut bar.progress())?,
        (None, output) => {
            let output = output.as_deref().unwrap_or(Path::new(""));
            archive.export_warc(output, &options, &mut bar.progress())?
        }
    };
    bar.finish();
    report_export(context, &exported, clock::now_ms() - began_ms)
}

/// `nenrin export wacz`.
pub(super) fn package(context: &Context, args: &ExportWaczArgs) -> anyhow::Result<Exit> {
    let archive = context.open_to_read()?;
    let mut options = options(context, &archive, &args.selection)?;
    options.title.clone_from(&args.title);
    let (began_ms, bar) = (clock::now_ms(), Bar::styled(context, PAGES_BAR));
    let exported = archive.export_wacz(&args.output, &options, &mut bar.progress())?;
    bar.finish();
    report_export(context, &exported, clock::now_ms() - began_ms)
}

fn options(
    context: &Context,
    archive: &Archive,
    args: &SelectionArgs,
) -> anyhow::Result<ExportOptions> {
    let site =
        args.site.as_deref().map(|name| sites::find(&**archive.state(), name)).transpose()?;
    let prefix =
        args.prefix.as_deref().map(CanonicalUrl::parse_typed).transpose().map_err(usage)?;
    Ok(ExportOptions {
        site: site.map(|site| site.id),
        prefix,
        from_s: args.from.unwrap_or(i64::MIN),
        to_s: args.to.unwrap_or(i64::MAX),
        algorithm: if args.sha1 { DigestAlgorithm::Sha1 } else { DigestAlgorithm::Sha256 },
        roll_bytes: args.roll.0,
        user_agent: context.config.user_agent(),
        ..ExportOptions::new(clock::now_s())
    })
}

/// A download into a file, for the interface.
pub(super) fn download(
    archive: &Archive,
    config: &Config,
    what: &Download,
    to: &Path,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), ArchiveError> {
    let user_agent = config.user_agent();
    let options = ExportOptions { user_agent, ..ExportOptions::new(clock::now_s()) };
    archive.write_download(what, to, options, progress)
}

/// `nenrin export parquet`.
pub(super) fn tables(context: &Context, folder: &Path) -> anyhow::Result<Exit> {
    let archive = context.open_to_read()?;
    let bar = Bar::styled(context, VERSIONS_BAR);
    let written = archive.export_tables(folder, &mut bar.progress())?;
    bar.finish();
    if context.json {
        print_json(&serde_json::to_value(&written)?)?;
    } else {
        say(written.line())?;
    }
    Ok(Exit::Done)
}

/// `nenrin export page`.
pub(super) fn page(context: &Context, args: &ExportPageArgs) -> anyhow::Result<Exit> {
    let archive = context.open_to_read()?;
    let url = CanonicalUrl::parse_typed(&args.url).map_err(usage)?;
    let Some(page) = archive.page_as_file(&url, args.at.unwrap_or(i64::MAX))? else {
        return Err(usage(anyhow::anyhow!(
            "{url} has no version of that time or before; `nenrin versions {url}` lists them"
        )));
    };
    std::fs::write(&args.output, &page.html)
        .with_context(|| format!("cannot write {}", args.output.display()))?;
    let (parts, missing) = (page.parts, page.missing);
    if context.json {
        print_json(&json!({"bytes": page.html.len(), "parts": parts, "missing": missing}))?;
    } else {
        let bytes = readable_bytes(page.html.len() as u64);
        say(format!(
            "{bytes}, {} in it, {missing} missing, in {}",
            counted(parts as u64, "part"),
            args.output.display()
        ))?;
    }
    Ok(Exit::Done)
}

/// A site as one WARC file into a stream, for the interface.
pub(super) fn stream(
    archive: &Archive,
    config: &Config,
    site: SiteId,
    (from_s, to_s): (i64, i64),
    out: Box<dyn Write + Send>,
) -> anyhow::Result<()> {
    let user_agent = config.user_agent();
    let site = Some(site);
    let options =
        ExportOptions { site, from_s, to_s, user_agent, ..ExportOptions::new(clock::now_s()) };
    let exported = archive.export_warc_stream(out, &options)?;
    anyhow::ensure!(exported.damaged == 0, "{} versions could not be read", exported.damaged);
    Ok(())
}

fn report_export(context: &Context, exported: &Exported, elapsed_ms: i64) -> anyhow::Result<Exit> {
    let file_bytes = |file| std::fs::metadata(file).map_or(0, |found| found.len());
    let bytes: u64 = exported.files.iter().map(file_bytes).sum();
    if context.json {
        let mut answer = serde_json::to_value(exported)?;
        answer["bytes"] = json!(bytes);
        answer["elapsed_ms"] = json!(elapsed_ms);
        print_json(&answer)?;
    } else {
        exported.lines(bytes, elapsed_ms).into_iter().try_for_each(say)?;
    }
    Ok(if exported.damaged == 0 { Exit::Done } else { Exit::Damaged })
}

/// `nenrin export cdxj`.
pub(super) fn index(context: &Context, args: &ExportCdxjArgs) -> anyhow::Result<Exit> {
    let index = index_warc(&args.files).map_err(usage)?;
    let damaged = index.damaged;
    match &args.output {
        None => drop(index.write(BufWriter::new(io::stdout().lock()))?),
        Some(path) => {
            let count = index.write_file(path)?;
            if context.json {
                print_json(&json!({"lines": count, "damaged": damaged}))?;
            } else {
                say(format!("{count} captures indexed, {damaged} records could not be read"))?;
            }
        }
    }
    Ok(if damaged == 0 { Exit::Done } else { Exit::Partly })
}

/// `nenrin import warc`.
pub(super) fn import(context: &Context, args: &ImportWarcArgs) -> anyhow::Result<Exit> {
    let files = WarcFiles::open(&args.files).map_err(usage)?;
    let archive = match files.is_much() {
        true => context.open(OpenOptions::writing_much())?,
        false => context.open_to_write()?,
    };
    let (began_ms, now_s) = (clock::now_ms(), clock::now_s());
    let name = match &args.site {
        // A name that was typed must be right before hours of work.
        Some(name) => sites::find(&**archive.state(), name)?.name,
        None => files.name().to_owned(),
    };
    let depth = context.config.crawl.depth;
    let options = WarcImportOptions { site: name, is_trusting: args.trust, depth, now_s };
    let bar = Bar::styled(context, BYTES_BAR);
    let imported = archive.import_warc(&files, &options, &mut bar.progress())?;
    bar.finish();
    let elapsed_ms = clock::now_ms() - began_ms;
    if context.json {
        let mut answer = serde_json::to_value(&imported)?;
        answer["files"] = json!(files.count());
        answer["read_bytes"] = json!(files.bytes());
        answer["elapsed_ms"] = json!(elapsed_ms);
        print_json(&answer)?;
    } else {
        imported.lines(files.is_much(), elapsed_ms).into_iter().try_for_each(say)?;
    }
    Ok(if imported.damaged == 0 { Exit::Done } else { Exit::Partly })
}
