//! Our own archive under measurement: the binary's import, compact and export, called one after the
//! other.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::clock::{Took, timed};
use super::corpus::{CorpusSite, CorpusVisit, Split};
use super::visit_at_s;
use crate::LabError;

/// An archive as the binary opens it.
pub trait Subject {
    /// Imports a folder as one visit of a site, as `nenrin import mirror` does.
    fn take_in(&mut self, site: &str, folder: &Path, at_s: i64) -> Result<(), LabError>;

    /// The sizes of the archive, after everything that wrote to it was closed.
    fn sizes(&mut self) -> Result<Sizes, LabError>;

    /// Compacts everything, as `nenrin compact` does.
    fn compact(&mut self) -> Result<(), LabError>;

    /// Rebuilds a site as of a date, as `nenrin export mirror` does.
    fn give_back(&mut self, site: &str, at_s: i64, folder: &Path) -> Result<(), LabError>;

    /// Reads single pages without our cache.
    fn read_pages(&mut self) -> Result<PageReads, LabError>;

    /// Collects the visits from servers, with and without compressing at the same time.
    fn overlap(&mut self, sites: &[(String, Vec<PathBuf>)]) -> Result<Overlap, LabError>;
}

/// Bytes of an archive.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Sizes {
    /// All files of the archive.
    pub files: u64,
    /// Of these, packs and their index.
    pub store: u64,
    /// Of these, content in the packs.
    pub content: Split,
    /// Site by site, in the packs.
    pub sites: BTreeMap<String, SiteSizes>,
}

/// What a site takes in the packs.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct SiteSizes {
    /// Bytes of content.
    pub content: Split,
    /// Records of its versions.
    pub records: u64,
}

impl SiteSizes {
    /// Content and records.
    #[must_use]
    pub fn total(self) -> u64 {
        self.content.total() + self.records
    }
}

/// How long single pages take, in milliseconds of the processor.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct PageReads {
    /// Pages read.
    pub pages: usize,
    /// Mean time.
    pub mean_ms: f64,
    /// Median time.
    pub p50_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
}

impl PageReads {
    /// From single times.
    #[must_use]
    pub fn of(mut times_ms: Vec<f64>) -> Self {
        times_ms.sort_by(f64::total_cmp);
        let at = |part: f64| {
            let place = times_ms.len().saturating_sub(1) as f64 * part;
            times_ms.get(place as usize).copied().unwrap_or(0.0)
        };
        let (pages, sum) = (times_ms.len(), times_ms.iter().sum::<f64>());
        Self { pages, mean_ms: sum / pages.max(1) as f64, p50_ms: at(0.5), p99_ms: at(0.99) }
    }
}

/// Collecting alone and while compressing.
#[derive(Clone, Debug, Serialize)]
pub struct Overlap {
    /// Visits that may wait for the store before nothing more is fetched.
    pub queue_max: usize,
    /// Run by run: alone, and with compressing.
    pub runs: Vec<OverlapRun>,
}

/// One collection of all visits.
#[derive(Clone, Debug, Serialize)]
pub struct OverlapRun {
    /// What ran at the same time.
    pub name: String,
    /// Answers collected.
    pub visits: u64,
    /// Seconds from the first request to the last commit.
    pub seconds: f64,
    /// Compressions finished meanwhile.
    pub compactions: u32,
    /// Seconds of compressing.
    pub compacting_seconds: f64,
    /// Samples over time.
    pub samples: Vec<OverlapSample>,
}

/// A moment of a collection.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct OverlapSample {
    /// Seconds since the beginning.
    pub at_s: f64,
    /// Visits done.
    pub visits: u64,
    /// Visits that wait for the store.
    pub queued: usize,
    /// Whether compressing is under way.
    pub compacting: bool,
}

/// Our archive as a whole.
#[derive(Clone, Debug, Serialize)]
pub struct Ours {
    /// Straight after collecting.
    pub collected: Sizes,
    /// After compressing.
    pub compacted: Sizes,
    /// Time of compressing.
    pub compact: Took,
    /// Single pages straight after collecting.
    pub pages_collected: PageReads,
    /// And after compressing.
    pub pages_compacted: PageReads,
    /// Whether every visit came back as it was given, byte by byte.
    pub is_identical: bool,
    /// The first few differences.
    pub differences: Vec<String>,
}

/// Our archive, one site of it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct OurSite {
    /// Growth of the packs at each visit, in bytes.
    pub by_visit: Vec<u64>,
    /// Its size straight after collecting.
    pub collected: SiteSizes,
    /// And after compressing.
    pub compacted: SiteSizes,
    /// Time of importing each visit.
    pub collect: Vec<Took>,
    /// Time of rebuilding each visit after compressing.
    pub restore: Vec<Took>,
}

const DIFFERENCES_MAX: usize = 10;

/// Visit by visit over all sites, as a crawler sees them; then compressing; then reading everything
/// back.
pub(crate) fn measure(
    subject: &mut dyn Subject,
    sites: &[CorpusSite],
    work: &Path,
    tell: &mut dyn FnMut(&str),
) -> Result<(Ours, Vec<OurSite>), LabError> {
    let mut our_sites = vec![OurSite::default(); sites.len()];
    let visits = sites.iter().map(|site| site.visits.len()).max().unwrap_or(0);
    for place in 0..visits {
        tell(&format!("our archive: visit {}", place + 1));
        for (site, ours) in sites.iter().zip(&mut our_sites) {
            let Some(visit) = site.visits.get(place) else { continue };
            let at_s = visit_at_s(place + 1);
            let (taken, took) = timed(|| subject.take_in(&site.name, &visit.folder, at_s));
            taken?;
            let now = subject.sizes()?.sites.get(&site.name).copied().unwrap_or_default();
            ours.by_visit.push(now.total().saturating_sub(ours.collected.total()));
            ours.collected = now;
            ours.collect.push(took);
        }
    }
    let collected = subject.sizes()?;
    let pages_collected = subject.read_pages()?;
    tell("our archive: compact");
    let (done, compact) = timed(|| subject.compact());
    done?;
    let compacted = subject.sizes()?;
    let pages_compacted = subject.read_pages()?;
    let mut differences = Vec::new();
    for (site, ours) in sites.iter().zip(&mut our_sites) {
        tell(&format!("our archive: every visit of {} back", site.name));
        ours.compacted = compacted.sites.get(&site.name).copied().unwrap_or_default();
        for (place, visit) in site.visits.iter().enumerate() {
            let folder = work.join("rebuilt");
            let _ = fs::remove_dir_all(&folder);
            let at_s = visit_at_s(place + 1);
            let (given, took) = timed(|| subject.give_back(&site.name, at_s, &folder));
            given?;
            ours.restore.push(took);
            compare(visit, &folder, &mut differences)?;
            fs::remove_dir_all(&folder).map_err(LabError::file("remove", &folder))?;
        }
    }
    let is_identical = differences.is_empty();
    differences.truncate(DIFFERENCES_MAX);
    let ours = Ours {
        collected,
        compacted,
        compact,
        pages_collected,
        pages_compacted,
        is_identical,
        differences,
    };
    Ok((ours, our_sites))
}

/// Records every file that did not come back unchanged, and every additional one.
fn compare(
    visit: &CorpusVisit,
    rebuilt: &Path,
    differences: &mut Vec<String>,
) -> Result<(), LabError> {
    for file in &visit.files {
        let came_back = fs::read(rebuilt.join(&file.name)).ok();
        if came_back.as_deref() != Some(&file.read()?) {
            differences.push(file.path.display().to_string());
        }
    }
    let count = count_files(rebuilt)?;
    if count != visit.files.len() {
        differences.push(format!(
            "{}: {count} files came back instead of {}",
            visit.folder.display(),
            visit.files.len()
        ));
    }
    Ok(())
}

fn count_files(folder: &Path) -> Result<usize, LabError> {
    let mut count = 0;
    for entry in fs::read_dir(folder).map_err(LabError::file("list", folder))? {
        let path = entry.map_err(LabError::file("list", folder))?.path();
        count += if path.is_dir() { count_files(&path)? } else { 1 };
    }
    Ok(count)
}
