//! `nenrin lab storage`: the experiment of paper 001 on the shipped import, compact and export.

use std::path::{Path, PathBuf};

use clap::Args;
use nenrin_archive::{
    Archive, MirrorImportOptions, OpenOptions, folder_bytes, readable_bytes, uncached_store,
};
use nenrin_lab::{
    LabError,
    storage::{
        self, Overlap, PageReads, Results, SiteSizes, Sizes, Split, StorageOptions, Subject,
    },
};
use nenrin_state::Site;
use nenrin_store::VersionId;
use nenrin_urls::CanonicalUrl;
use rustix::time::{ClockId, clock_gettime};

use super::{Context, overlap};
use crate::{
    clock,
    config::Config,
    exit::{Exit, usage},
    table::{Table, print_json, say},
};

/// Our bytes next to those of other ways of keeping the same visits (paper 001).
#[derive(Debug, Args)]
pub(crate) struct StorageArgs {
    /// A folder of `SITE/VISIT/…`, visits numbered from 1.
    #[arg(long, value_name = "DIR")]
    corpus: PathBuf,
    /// Only these sites, separated by commas.
    #[arg(long, value_name = "S,…", value_delimiter = ',')]
    sites: Vec<String>,
    /// The genre of a site, for the figures by genre.
    #[arg(long = "genre", value_name = "SITE=GENRE", value_parser = genre)]
    genres: Vec<(String, String)>,
    /// Where the archive under measurement is made; what was measured of other ways is kept there for
    /// the next run. A temporary folder by default.
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
    /// Also collect the visits from loopback servers, with and without compressing beside it.
    #[arg(long)]
    overlap: bool,
    /// Writes report.html and results.json there.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

fn genre(text: &str) -> Result<(String, String), String> {
    let (site, genre) = text.split_once('=').ok_or("write it like heise=news")?;
    Ok((site.to_owned(), genre.to_owned()))
}

/// `nenrin lab storage`.
pub(super) fn run(context: &Context, args: &StorageArgs) -> anyhow::Result<Exit> {
    let temporary = tempfile::tempdir()?;
    let work = args.work.clone().unwrap_or_else(|| temporary.path().to_owned());
    let folder = work.join("archive");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    let options = StorageOptions {
        corpus: args.corpus.clone(),
        sites: args.sites.clone(),
        genres: args.genres.clone(),
        work,
        overlap: args.overlap,
        out: args.out.clone(),
    };
    let mut shelf = ArchiveSubject { folder, config: context.config.clone(), archive: None };
    let outcome = storage::run(&options, &mut shelf, &mut |step| tracing::info!("{step}"));
    let results = outcome.map_err(usage)?.results;
    for left_out in &results.left_out {
        tracing::warn!("left out: {left_out}");
    }
    if context.json {
        print_json(&results)?;
    } else {
        tell(&results, args.out.as_deref())?;
    }
    Ok(if results.ours.is_identical { Exit::Done } else { Exit::Damaged })
}

fn tell(results: &Results, out: Option<&Path>) -> anyhow::Result<()> {
    let percent = |bytes: u64, of: u64| match of {
        0 => "–".to_owned(),
        of => format!("{:.2}%", 100.0 * bytes as f64 / of as f64),
    };
    let mut table = Table::new(&["site", "raw", "collected", "of raw", "compacted", "of raw"]);
    let mut row = |name: &str, raw: u64, collected: u64, compacted: u64| {
        table.row(vec![
            name.to_owned(),
            readable_bytes(raw),
            readable_bytes(collected),
            percent(collected, raw),
            readable_bytes(compacted),
            percent(compacted, raw),
        ]);
    };
    for site in &results.sites {
        let raw: Split = site.raw.iter().copied().sum();
        row(&site.site, raw.total(), site.ours.collected.total(), site.ours.compacted.total());
    }
    let (ours, raw) = (&results.ours, results.raw);
    row("all, with indexes", raw.total(), ours.collected.files, ours.compacted.files);
    table.print()?;
    say("")?;
    let mut table = Table::new(&["way", "bytes", "of raw", "HTML", "other"]);
    for (name, bytes, split) in results.by_way() {
        table.row(vec![
            name,
            readable_bytes(bytes),
            percent(bytes, raw.total()),
            split.map_or("–".to_owned(), |split| percent(split.html, raw.html)),
            split.map_or("–".to_owned(), |split| percent(split.other, raw.other)),
        ]);
    }
    table.print()?;
    for left_out in &results.left_out {
        say(format!("left out: {left_out}"))?;
    }
    say(match ours.is_identical {
        true => "every visit came back byte for byte".to_owned(),
        false => format!("NOT every visit came back as it was: {:?}", ours.differences),
    })?;
    if let Some(out) = out {
        say(format!("written to {}", out.join("report.html").display()))?;
    }
    Ok(())
}

/// Pages read one by one, at most.
const PAGES_READ: usize = 800;

/// An archive of our own, as the commands open it.
struct ArchiveSubject {
    folder: PathBuf,
    config: Config,
    archive: Option<Archive>,
}

fn failed(error: anyhow::Error) -> LabError {
    LabError::Input { what: format!("{error:#}") }
}

/// The URL that a site of the corpus stands for.
fn base(site: &str) -> anyhow::Result<CanonicalUrl> {
    CanonicalUrl::parse(&format!("https://{site}.example/")).map_err(usage)
}

impl ArchiveSubject {
    fn archive(&mut self) -> anyhow::Result<&Archive> {
        if self.archive.is_none() {
            self.archive = Some(Archive::open(&self.folder, &OpenOptions::writing())?);
        }
        self.archive.as_ref().ok_or_else(|| anyhow::anyhow!("the archive is not open"))
    }

    /// The archive's site for a site of the corpus.
    fn site(&mut self, name: &str) -> anyhow::Result<Site> {
        let base = base(name)?;
        let sites = self.archive()?.state().sites()?;
        let found = sites.into_iter().find(|site| site.conditions.tops.contains(&base));
        found.ok_or_else(|| anyhow::anyhow!("{name} was not taken in"))
    }

    fn measure(&mut self) -> anyhow::Result<Sizes> {
        // Journals of the databases are gone when they are closed, as at the end of every command.
        self.archive = None;
        let files = folder_bytes(&self.folder)?;
        let archive = self.archive()?;
        let store = archive.store().stats()?;
        let mut sizes = Sizes {
            files,
            store: store.stored_bytes,
            content: Split { html: store.html_bytes, other: store.other_bytes },
            ..Sizes::default()
        };
        for site in archive.state().sites()? {
            let bytes = store.sites.iter().find(|bytes| bytes.group == site.id.0);
            let (Some(bytes), Some(top)) = (bytes, site.conditions.tops.first()) else { continue };
            let host = top.server().as_str().trim_start_matches("https://").to_owned();
            let content = Split { html: bytes.html_bytes, other: bytes.other_bytes };
            let name = host.trim_end_matches(".example").to_owned();
            sizes.sites.insert(name, SiteSizes { content, records: bytes.record_bytes });
        }
        Ok(sizes)
    }

    fn read(&mut self) -> anyhow::Result<PageReads> {
        let mut ids = Vec::new();
        self.archive()?.state().each_version(&mut |_, row| ids.push(VersionId(row.version)))?;
        let store = uncached_store(&self.folder)?;
        let step = (ids.len() / PAGES_READ).max(1);
        let mut times_ms = Vec::new();
        for id in ids.into_iter().step_by(step) {
            let began_ms = cpu_ms();
            std::hint::black_box(store.read(id)?);
            times_ms.push(cpu_ms() - began_ms);
        }
        Ok(PageReads::of(times_ms))
    }
}

/// Time of the processor in this thread.
fn cpu_ms() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e3 + now.tv_nsec as f64 / 1e6
}

impl Subject for ArchiveSubject {
    fn take_in(&mut self, site: &str, folder: &Path, at_s: i64) -> Result<(), LabError> {
        let base = base(site).map_err(failed)?;
        let depth = self.config.crawl.depth;
        let archive = self.archive().map_err(failed)?;
        let options = MirrorImportOptions { base, at_s, depth, now_s: clock::now_s() };
        let imported = archive.import_mirror(folder, &options, &mut |_, _| {});
        match imported.map_err(|error| failed(error.into()))?.refused.first() {
            None => Ok(()),
            Some(refused) => Err(LabError::Input { what: format!("not imported: {refused}") }),
        }
    }

    fn sizes(&mut self) -> Result<Sizes, LabError> {
        self.measure().map_err(failed)
    }

    fn compact(&mut self) -> Result<(), LabError> {
        let archive = self.archive().map_err(failed)?;
        archive.compact(&mut |_, _| {}).map_err(|error| failed(error.into()))
    }

    fn give_back(&mut self, site: &str, at_s: i64, folder: &Path) -> Result<(), LabError> {
        let site = self.site(site).map_err(failed)?;
        let archive = self.archive().map_err(failed)?;
        let written = archive.export_mirror(&[site], at_s, (folder, false), &mut |_, _| {});
        match written.map_err(|error| failed(error.into()))?.skipped.first() {
            None => Ok(()),
            Some(url) => Err(LabError::Input { what: format!("{url} cannot be a file name") }),
        }
    }

    fn read_pages(&mut self) -> Result<PageReads, LabError> {
        self.read().map_err(failed)
    }

    fn overlap(&mut self, sites: &[(String, Vec<PathBuf>)]) -> Result<Overlap, LabError> {
        overlap::measure(&self.folder.with_file_name("overlap"), &self.config, sites)
            .map_err(failed)
    }
}
