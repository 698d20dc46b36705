//! The folders that are measured: `DIR/SITE/VISIT/…`, visits numbered from 1.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::LabError;

/// Folders inside folders; deeper trees are loops or mistakes.
const MAX_DEPTH: usize = 64;

/// Bytes of HTML and of everything else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// Bytes of HTML pages.
    pub html: u64,
    /// Pictures, styles, scripts and all the rest.
    pub other: u64,
}

impl Split {
    /// Both together.
    #[must_use]
    pub fn total(self) -> u64 {
        self.html + self.other
    }

    /// Adds bytes of one kind.
    pub fn count(&mut self, is_html: bool, bytes: u64) {
        if is_html { self.html += bytes } else { self.other += bytes }
    }
}

impl std::ops::AddAssign for Split {
    fn add_assign(&mut self, other: Self) {
        self.html += other.html;
        self.other += other.other;
    }
}

impl std::iter::Sum for Split {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), |mut sum, part| {
            sum += part;
            sum
        })
    }
}

/// One file of a visit.
#[derive(Clone, Debug)]
pub(crate) struct CorpusFile {
    pub(crate) path: PathBuf,
    /// Its path inside the visit, with `/`.
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) is_html: bool,
}

impl CorpusFile {
    pub(crate) fn read(&self) -> Result<Vec<u8>, LabError> {
        fs::read(&self.path).map_err(LabError::file("read", &self.path))
    }
}

/// One visit of a site.
#[derive(Clone, Debug)]
pub(crate) struct CorpusVisit {
    pub(crate) folder: PathBuf,
    /// In the order of their names.
    pub(crate) files: Vec<CorpusFile>,
}

impl CorpusVisit {
    pub(crate) fn raw(&self) -> Split {
        let mut raw = Split::default();
        self.files.iter().for_each(|file| raw.count(file.is_html, file.bytes));
        raw
    }
}

/// A site with its visits, oldest first.
#[derive(Clone, Debug)]
pub(crate) struct CorpusSite {
    pub(crate) name: String,
    pub(crate) genre: String,
    pub(crate) visits: Vec<CorpusVisit>,
}

impl CorpusSite {
    pub(crate) fn raw(&self) -> Split {
        self.visits.iter().map(CorpusVisit::raw).sum()
    }

    pub(crate) fn files(&self) -> usize {
        self.visits.iter().map(|visit| visit.files.len()).sum()
    }
}

/// Lists the sites of a corpus, or those of them that are wanted, by name.
pub(crate) fn list(
    folder: &Path,
    wanted: &[String],
    genres: &[(String, String)],
) -> Result<Vec<CorpusSite>, LabError> {
    let mut sites = Vec::new();
    for path in entries(folder)? {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let is_wanted = wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
        if !path.is_dir() || !is_wanted {
            continue;
        }
        let genre = genres.iter().find(|(site, _)| site == name).map(|(_, genre)| genre.clone());
        let visits = visits(&path)?;
        if !visits.is_empty() {
            sites.push(CorpusSite {
                genre: genre.unwrap_or_else(|| name.to_owned()),
                name: name.to_owned(),
                visits,
            });
        }
    }
    let missing = wanted.iter().find(|wanted| sites.iter().all(|site| site.name != **wanted));
    match (missing, sites.is_empty()) {
        (Some(missing), _) => Err(LabError::Input {
            what: format!("{} has no site `{missing}` with visits in it", folder.display()),
        }),
        (None, true) => Err(LabError::Input {
            what: format!(
                "{} has no sites; expected folders SITE/VISIT/… with visits numbered from 1",
                folder.display()
            ),
        }),
        (None, false) => Ok(sites),
    }
}

fn visits(site: &Path) -> Result<Vec<CorpusVisit>, LabError> {
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let mut folders: Vec<(u32, PathBuf)> = entries(site)?
        .into_iter()
        .filter(|path| path.is_dir())
        .filter_map(|path| Some((number(&path)?, path)))
        .collect();
    folders.sort();
    let mut visits = Vec::new();
    for (_, folder) in folders {
        let mut files = Vec::new();
        walk(&folder, &folder, 0, &mut files)?;
        files.sort_by(|a: &CorpusFile, b| a.name.cmp(&b.name));
        visits.push(CorpusVisit { folder, files });
    }
    Ok(visits)
}

fn walk(
    root: &Path,
    folder: &Path,
    depth: usize,
    files: &mut Vec<CorpusFile>,
) -> Result<(), LabError> {
    for path in entries(folder)? {
        let about = fs::symlink_metadata(&path).map_err(LabError::file("read", &path))?;
        if about.is_dir() && depth < MAX_DEPTH {
            walk(root, &path, depth + 1, files)?;
        } else if about.is_file() {
            let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            files.push(CorpusFile { is_html: is_html(&name), bytes: about.len(), name, path });
        }
    }
    Ok(())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, LabError> {
    let listed = fs::read_dir(folder).map_err(LabError::file("list", folder))?;
    let mut found = Vec::new();
    for entry in listed {
        found.push(entry.map_err(LabError::file("list", folder))?.path());
    }
    found.sort();
    Ok(found)
}

/// By its name, as servers and `import mirror` do.
fn is_html(name: &str) -> bool {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    ["html", "htm", "shtml", "xhtml", "xht"]
        .iter()
        .any(|known| extension.eq_ignore_ascii_case(known))
}
