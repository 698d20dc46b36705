//! `nenrin export warc|wacz|cdxj` and `nenrin import warc`.

use std::{
    fs::File,
    io::{self, BufWriter, IsTerminal, Write},
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use nenrin_state::{Schedule, Site, SiteId, State};
use nenrin_urls::CanonicalUrl;
use nenrin_warc::{
    CdxLine, CdxWriter, Compressed, DigestAlgorithm, ReadOptions, RecordReader, SortedLines,
    WarcError,
};
use serde_json::json;

use super::{Context, sites};
use crate::{
    archive::{Access, Archive},
    cli::{ExportCdxjArgs, ExportWaczArgs, ExportWarcArgs, ImportWarcArgs, SelectionArgs},
    clock,
    config::Config,
    exit::{Exit, usage},
    spans::readable_bytes,
    table::{print_json, say},
    warc::{
        export::{self, Exported, Selection},
        import,
        output::{Output, Settings},
        source::Source,
    },
};

/// `nenrin export warc`.
pub(super) fn export(context: &Context, args: &ExportWarcArgs) -> anyhow::Result<Exit> {
    let name = args.output.to_string_lossy();
    let compressed = match () {
        () if name.ends_with(".warc.gz") => Compressed::Gzip,
        () if name.ends_with(".warc.zst") => Compressed::Zstd,
        () if name.ends_with(".warc") => Compressed::Not,
        () => {
            return Err(usage(anyhow::anyhow!(
                "{name} says no format; name it .warc.gz, .warc.zst or .warc"
            )));
        }
    };
    let archive = context.open(Access::Read)?;
    let mut selection = selection(&archive, &args.selection)?;
    selection.references = args.references;
    let settings = settings(context, &archive, &args.selection, compressed)?;
    let mut output = Output::files(&args.output, settings);
    if args.cdxj {
        output.with_index(&beside(&args.output, "cdxj"))?;
    }
    if args.references {
        output.with_requires(&beside(&args.output, "requires.jsonl"))?;
    }
    write(context, &archive, &selection, output)
}

/// `nenrin export wacz`.
pub(super) fn package(context: &Context, args: &ExportWaczArgs) -> anyhow::Result<Exit> {
    let archive = context.open(Access::Read)?;
    let selection = selection(&archive, &args.selection)?;
    let mut settings = settings(context, &archive, &args.selection, Compressed::Gzip)?;
    if let Some(title) = &args.title {
        settings.title.clone_from(title);
    }
    let output = Output::package(&args.output, settings)?;
    write(context, &archive, &selection, output)
}

fn selection(archive: &Archive, args: &SelectionArgs) -> anyhow::Result<Selection> {
    let site = args.site.as_deref().map(|name| sites::find(&*archive.state, name)).transpose()?;
    let prefix =
        args.prefix.as_deref().map(CanonicalUrl::parse_typed).transpose().map_err(usage)?;
    Ok(Selection {
        site: site.map(|site| site.id),
        prefix: prefix.map(|url| url.to_string()),
        from_s: args.from.unwrap_or(i64::MIN),
        to_s: args.to.unwrap_or(i64::MAX),
        algorithm: if args.sha1 { DigestAlgorithm::Sha1 } else { DigestAlgorithm::Sha256 },
        references: false,
    })
}

fn settings(
    context: &Context,
    archive: &Archive,
    args: &SelectionArgs,
    compressed: Compressed,
) -> anyhow::Result<Settings> {
    let title = match &args.site {
        Some(name) => sites::find(&*archive.state, name)?.name,
        None => {
            let names: Vec<String> =
                archive.state.sites()?.into_iter().take(20).map(|site| site.name).collect();
            names.join(", ")
        }
    };
    Ok(Settings {
        compressed,
        algorithm: if args.sha1 { DigestAlgorithm::Sha1 } else { DigestAlgorithm::Sha256 },
        roll_bytes: args.roll.0,
        now_s: clock::now_s(),
        title,
        user_agent: context.config.user_agent(),
    })
}

/// A site as one WARC file into a stream, for the interface.
pub(super) fn stream(
    archive: &Archive,
    config: &Config,
    site: SiteId,
    (from_s, to_s): (i64, i64),
    out: Box<dyn Write + Send>,
) -> anyhow::Result<()> {
    let algorithm = DigestAlgorithm::Sha256;
    let sites = archive.state.sites()?;
    let title = sites.into_iter().find(|s| s.id == site).map(|s| s.name).unwrap_or_default();
    let site = Some(site);
    let selection = Selection { site, prefix: None, from_s, to_s, algorithm, references: false };
    let settings = Settings {
        compressed: Compressed::Gzip,
        algorithm,
        roll_bytes: u64::MAX,
        now_s: clock::now_s(),
        title,
        user_agent: config.user_agent(),
    };
    let mut output = Output::stream(out, settings);
    let exported = export::export(archive, &selection, &mut output, &mut |_| {})?;
    output.finish()?;
    anyhow::ensure!(exported.damaged == 0, "{} versions could not be read", exported.damaged);
    Ok(())
}

fn write(
    context: &Context,
    archive: &Archive,
    selection: &Selection,
    mut output: Output,
) -> anyhow::Result<Exit> {
    let began_ms = clock::now_ms();
    let pages = match selection.site {
        Some(id) => {
            archive.state.sites()?.iter().find(|s| s.id == id).map_or(0, |s| s.counts.pages)
        }
        None => archive.state.stats()?.pages,
    };
    let bar = bar(context, pages, "{bar:40} {pos}/{len} pages {eta}");
    let exported =
        export::export(archive, selection, &mut output, &mut |done| bar.set_position(done))?;
    let files = output.finish()?;
    bar.finish_and_clear();
    tell_export(context, &exported, &files, clock::now_ms() - began_ms)?;
    Ok(if exported.damaged == 0 { Exit::Done } else { Exit::Damaged })
}

fn tell_export(
    context: &Context,
    exported: &Exported,
    files: &[PathBuf],
    elapsed_ms: i64,
) -> anyhow::Result<()> {
    let mut bytes = 0;
    for file in files {
        bytes += std::fs::metadata(file).map_or(0, |found| found.len());
    }
    if context.json {
        let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        return print_json(&json!({
            "files": names, "bytes": bytes, "pages": exported.pages,
            "responses": exported.responses, "revisits": exported.revisits,
            "body_bytes": exported.body_bytes, "damaged": exported.damaged,
            "elapsed_ms": elapsed_ms,
        }));
    }
    say(format!(
        "{} responses and {} revisits of {} pages, {} of content, in {} ({} files), in {:.1} s",
        exported.responses,
        exported.revisits,
        exported.pages,
        readable_bytes(exported.body_bytes),
        readable_bytes(bytes),
        files.len(),
        elapsed_ms as f64 / 1000.0
    ))?;
    for file in files {
        say(format!("{}", file.display()))?;
    }
    Ok(())
}

/// `nenrin export cdxj`.
pub(super) fn index(context: &Context, args: &ExportCdxjArgs) -> anyhow::Result<Exit> {
    let mut lines = SortedLines::default();
    let mut damaged = 0_u64;
    for path in &args.files {
        let file = File::open(path)
            .with_context(|| format!("cannot read {}", path.display()))
            .map_err(usage)?;
        let mut reader = RecordReader::open(file, ReadOptions::default())
            .with_context(|| path.display().to_string())
            .map_err(usage)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        loop {
            match reader.next_record() {
                Ok(Some(record)) => {
                    if let Some(line) = CdxLine::of(&record, &name) {
                        lines.push(line.to_string())?;
                    }
                }
                Ok(None) => break,
                Err(error @ WarcError::Damaged { .. }) => {
                    damaged += 1;
                    tracing::warn!("not indexed: {}: {error}", path.display());
                }
                Err(other) => return Err(other.into()),
            }
        }
    }
    let count = match &args.output {
        None => {
            let mut writer = CdxWriter::plain(BufWriter::new(io::stdout().lock()));
            lines.finish(&mut |line| writer.write(line))?;
            writer.finish()?;
            None
        }
        Some(path) => Some(write_index(path, lines)?),
    };
    if let (Some(count), true) = (count, context.json) {
        print_json(&json!({"lines": count, "damaged": damaged}))?;
    } else if let Some(count) = count {
        say(format!("{count} captures indexed, {damaged} records could not be read"))?;
    }
    Ok(if damaged == 0 { Exit::Done } else { Exit::Partly })
}

fn write_index(path: &Path, lines: SortedLines) -> anyhow::Result<u64> {
    let create = |path: &Path| -> anyhow::Result<BufWriter<File>> {
        let file =
            File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(BufWriter::new(file))
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if !name.ends_with(".gz") {
        return write_lines(CdxWriter::plain(create(path)?), lines);
    }
    let stem = name.trim_end_matches(".gz").trim_end_matches(".cdxj").trim_end_matches(".cdx");
    let members = create(&path.with_file_name(format!("{stem}.idx")))?;
    write_lines(CdxWriter::compressed(create(path)?, members, &name)?, lines)
}

fn write_lines<W: Write, I: Write>(
    mut writer: CdxWriter<W, I>,
    lines: SortedLines,
) -> anyhow::Result<u64> {
    lines.finish(&mut |line| writer.write(line))?;
    let count = writer.count();
    writer.finish()?;
    Ok(count)
}

/// `nenrin import warc`.
pub(super) fn import(context: &Context, args: &ImportWarcArgs) -> anyhow::Result<Exit> {
    let mut sources = Vec::new();
    for path in &args.files {
        sources.extend(Source::of(path)?);
    }
    let bytes = sources.iter().map(|source| source.bytes).sum();
    let archive =
        context.open(if import::is_much(&sources) { Access::WriteMuch } else { Access::Write })?;
    let began_ms = clock::now_ms();
    let bar = bar(context, bytes, "{bar:40} {bytes}/{total_bytes} {bytes_per_sec} {eta}");
    let name = args.site.clone().unwrap_or_else(|| site_name(&args.files[0]));
    let mut site = |first: &CanonicalUrl| register(context, &*archive.state, &name, first);
    if args.site.is_some() {
        // A name that was typed must be right before hours of work.
        sites::find(&*archive.state, &name)?;
    }
    let imported = import::import(&archive, &sources, args.trust, &mut site, &mut |read_bytes| {
        bar.set_position(read_bytes);
    })?;
    bar.finish_and_clear();
    let elapsed_ms = clock::now_ms() - began_ms;
    if context.json {
        let mut answer = serde_json::to_value(&imported)?;
        answer["files"] = json!(sources.len());
        answer["read_bytes"] = json!(bytes);
        answer["elapsed_ms"] = json!(elapsed_ms);
        print_json(&answer)?;
    } else {
        say(format!(
            "{} versions and {} unchanged visits, {} known already; {} of content, {} stored, in {:.1} s",
            imported.versions,
            imported.unchanged,
            imported.known,
            readable_bytes(imported.body_bytes),
            readable_bytes(imported.stored_bytes),
            elapsed_ms as f64 / 1000.0
        ))?;
        if import::is_much(&sources) {
            say("`nenrin compact` makes it smaller")?;
        }
        for (what, count) in &imported.skipped {
            say(format!("not imported: {count} of kind {what}"))?;
        }
        if imported.damaged > 0 {
            say(format!("not imported: {} damaged records, named above", imported.damaged))?;
        }
    }
    Ok(if imported.damaged == 0 { Exit::Done } else { Exit::Partly })
}

/// The site of that name, or a new one that is not collected by itself.
fn register(
    context: &Context,
    state: &dyn State,
    name: &str,
    first: &CanonicalUrl,
) -> anyhow::Result<SiteId> {
    if let Ok(Site { id, .. }) = sites::find(state, name) {
        return Ok(id);
    }
    let mut conditions = sites::default_conditions(vec![first.clone()], &context.config);
    conditions.schedule = Schedule::Manual;
    Ok(state.add_site(name, &conditions, clock::now_s())?.id)
}

/// `crawl-2024` for `crawl-2024.warc.gz`.
fn site_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.split(".warc").next().unwrap_or_default();
    let stem = stem.trim_end_matches(".gz").trim_end_matches(".arc").trim_end_matches(".wacz");
    let stem: String = stem.chars().take(100).collect();
    if stem.is_empty() { "imported".to_owned() } else { stem }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

fn bar(context: &Context, length: u64, template: &str) -> ProgressBar {
    if context.json || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(length);
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_are_named_after_files() {
        for (file, name) in [
            ("/x/crawl-2024.warc.gz", "crawl-2024"),
            ("a.arc.gz", "a"),
            ("b.wacz", "b"),
            (".warc", "imported"),
        ] {
            assert_eq!(site_name(Path::new(file)), name);
        }
    }
}
