//! Every version in almost no space: paper 001's table 1 and figures 7 to 10 on any folder of
//! visits, our archive compared with other ways of storing the same bytes.
//!
//! Read in this order: [`StorageOptions`] and [`run`], [`Subject`] (our archive, as the binary
//! opens it), [`OtherWays`] (everything it is compared with), [`Results`].

mod archived;
mod clock;
mod corpus;
mod figures;
mod others;
mod overlap;
mod program;
mod subject;
mod tar;

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::LabError;
use crate::report::Report;
use corpus::CorpusSite;

pub use archived::ArchiveSubject;
pub use clock::Took;
pub use corpus::Split;
pub use others::{OtherWay, OtherWays, StepBytes};
pub use overlap::Collector;
pub use subject::{
    OurSite, Ours, Overlap, OverlapRun, OverlapSample, PageReads, SiteSizes, Sizes, Subject,
};

/// What to measure.
#[derive(Clone, Debug)]
pub struct StorageOptions {
    /// A folder of `SITE/VISIT/…`, visits numbered from 1.
    pub corpus: PathBuf,
    /// Only these sites; all when none is named.
    pub sites: Vec<String>,
    /// Genres of sites; a site without one is a genre of its own.
    pub genres: Vec<(String, String)>,
    /// Folder for packs, rebuilt visits and measurements of other ways. These measurements are
    /// reused by the next run, as long as the corpus is the same.
    pub work: PathBuf,
    /// Whether collecting is also measured while compressing.
    pub overlap: bool,
    /// Where `report.html` and `results.json` go, if anywhere.
    pub out: Option<PathBuf>,
}

/// One site as given, and its size in every way.
#[derive(Clone, Debug, Serialize)]
pub struct SiteResults {
    /// Its name.
    pub site: String,
    /// Its genre.
    pub genre: String,
    /// Files over all visits.
    pub files: usize,
    /// Bytes of full copies, by visit.
    pub raw: Vec<Split>,
    /// Our archive.
    pub ours: OurSite,
    /// Everything else.
    pub others: OtherWays,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    /// Bytes of full copies of every visit of every site.
    pub raw: Split,
    /// Our archive as a whole.
    pub ours: Ours,
    /// Site by site.
    pub sites: Vec<SiteResults>,
    /// Collecting with and without compressing at the same time.
    pub overlap: Option<Overlap>,
    /// What was left out, and why.
    pub left_out: Vec<String>,
}

impl Results {
    /// All sites together by every way of storing them, including ours, largest first: name, bytes,
    /// and content by kind if known.
    #[must_use]
    pub fn by_way(&self) -> Vec<(String, u64, Option<Split>)> {
        figures::lines(self).into_iter().map(|line| (line.0, line.1, line.2)).collect()
    }
}

/// The result of an experiment: the numbers, and the page that shows them.
#[derive(Debug)]
pub struct Outcome {
    /// All numbers.
    pub results: Results,
    /// The page.
    pub report: Report,
}

/// The first visit's date, and the time from one visit to the next: the corpus does not contain its
/// own.
const FIRST_VISIT_S: i64 = 1_640_995_200;
const BETWEEN_VISITS_S: i64 = 30 * 86_400;

/// The date of a visit, counted from 1.
pub(crate) fn visit_at_s(number: usize) -> i64 {
    FIRST_VISIT_S + BETWEEN_VISITS_S * (number as i64 - 1)
}

/// Measures our archive and every other way, and writes the report if a folder is given.
///
/// # Errors
/// When the corpus cannot be read, our archive fails, or files cannot be written.
pub fn run(
    options: &StorageOptions,
    subject: &mut dyn Subject,
    tell: &mut dyn FnMut(&str),
) -> Result<Outcome, LabError> {
    let sites = corpus::list(&options.corpus, &options.sites, &options.genres)?;
    fs::create_dir_all(&options.work).map_err(LabError::file("create", &options.work))?;
    let (ours, our_sites) = subject::measure(subject, &sites, &options.work, tell)?;
    let overlap = match options.overlap {
        true => {
            tell("collecting with and without compressing at the same time");
            let folders: Vec<(String, Vec<PathBuf>)> = sites
                .iter()
                .map(|site| {
                    let folders = site.visits.iter().map(|visit| visit.folder.clone());
                    (site.name.clone(), folders.collect())
                })
                .collect();
            Some(subject.overlap(&folders)?)
        }
        false => None,
    };
    let mut results = Results {
        raw: sites.iter().map(CorpusSite::raw).sum(),
        ours,
        sites: Vec::new(),
        overlap,
        left_out: Vec::new(),
    };
    for (site, ours) in sites.iter().zip(our_sites) {
        let others = other_ways(site, &options.work, tell)?;
        for left_out in &others.left_out {
            if !results.left_out.contains(left_out) {
                results.left_out.push(left_out.clone());
            }
        }
        results.sites.push(SiteResults {
            site: site.name.clone(),
            genre: site.genre.clone(),
            files: site.files(),
            raw: site.visits.iter().map(corpus::CorpusVisit::raw).collect(),
            ours,
            others,
        });
    }
    let report = figures::report(&results);
    if let Some(out) = &options.out {
        let values = serde_json::to_value(&results).map_err(|error| LabError::Input {
            what: format!("results cannot be written: {error}"),
        })?;
        report.write(out, &values)?;
    }
    Ok(Outcome { results, report })
}

/// Earlier measurements of a site, with the input they were made on.
#[derive(Serialize, Deserialize)]
struct Remembered {
    files: usize,
    raw: Split,
    others: OtherWays,
}

/// Other ways take minutes for every site and do not change: they are measured once.
fn other_ways(
    site: &CorpusSite,
    work: &Path,
    tell: &mut dyn FnMut(&str),
) -> Result<OtherWays, LabError> {
    let path = work.join(format!("other-ways-{}.json", site.name));
    let remembered = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    if let Some(Remembered { files, raw, others }) = remembered
        && (files, raw) == (site.files(), site.raw())
    {
        tell(&format!("{}: other ways as measured before", site.name));
        return Ok(others);
    }
    let others = others::measure(site, work, tell)?;
    let remembered = Remembered { files: site.files(), raw: site.raw(), others };
    let bytes = serde_json::to_vec(&remembered)
        .map_err(|error| LabError::Input { what: format!("results cannot be written: {error}") })?;
    fs::write(&path, bytes).map_err(LabError::file("write", &path))?;
    Ok(remembered.others)
}

/// A site and its genre, as `heise=news`.
///
/// # Errors
/// What to write instead.
pub fn genre(text: &str) -> Result<(String, String), String> {
    let (site, genre) = text.split_once('=').ok_or("write it like heise=news")?;
    Ok((site.to_owned(), genre.to_owned()))
}

#[cfg(test)]
mod tests;
