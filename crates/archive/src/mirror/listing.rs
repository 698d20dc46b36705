//! The list beside an exported mirror: which file has which page.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    hash::{DefaultHasher, Hash, Hasher},
    io::{BufRead, BufReader, BufWriter, Write},
    path::{Component, Path, PathBuf},
};

use nenrin_state::VersionId;
use serde::{Deserialize, Serialize};

use crate::{ArchiveError, Result};

/// The longest line that is read: a path and a URL.
const LINE_MAX_BYTES: u64 = 64 << 10;
/// The number of this form of the list.
const FORMAT: u32 = 1;

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ListHead {
    nenrin_mirror: u32,
    /// As of when.
    pub(super) at: String,
    /// The sites of the mirror.
    pub(super) sites: Vec<String>,
}

impl ListHead {
    pub(super) fn new(at: String, sites: Vec<String>) -> Self {
        Self { nenrin_mirror: FORMAT, at, sites }
    }
}

/// A file of the mirror.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListedFile {
    /// The path below the folder.
    pub(crate) path: PathBuf,
    pub(super) url: String,
    pub(crate) version: VersionId,
    pub(super) bytes: u64,
    /// Whether the path is another than the URL's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) mapped: bool,
}

/// Where the list of an exported folder is: `DIR.mirror.jsonl`.
pub(super) fn list_path(folder: &Path) -> Result<PathBuf> {
    let name = folder.file_name().ok_or_else(|| {
        let what =
            "a mirror is exported into a folder with a name, beside which its list is written";
        ArchiveError::Input(format!("{}: {what}", folder.display()))
    })?;
    let mut name = name.to_owned();
    name.push(".mirror.jsonl");
    Ok(folder.with_file_name(name))
}

/// Where a list is while its files are written.
pub(super) fn unfinished(list: &Path) -> PathBuf {
    let mut path = list.as_os_str().to_owned();
    path.push(".part");
    path.into()
}

/// Writes a list.
pub(super) struct ListWriter {
    out: BufWriter<File>,
    path: PathBuf,
}

impl ListWriter {
    pub(super) fn create(path: &Path, head: &ListHead) -> Result<Self> {
        let file = File::create(path).map_err(ArchiveError::writing(path))?;
        let mut writer = Self { out: BufWriter::new(file), path: path.to_owned() };
        writer.line(head)?;
        Ok(writer)
    }

    pub(super) fn file(&mut self, file: &ListedFile) -> Result<()> {
        self.line(file)
    }

    fn line(&mut self, line: &impl Serialize) -> Result<()> {
        let written = serde_json::to_writer(&mut self.out, line)
            .map_err(std::io::Error::from)
            .and_then(|()| self.out.write_all(b"\n"));
        written.map_err(ArchiveError::writing(&self.path))
    }

    pub(super) fn finish(mut self) -> Result<()> {
        let written = self.out.flush().and_then(|()| self.out.get_ref().sync_all());
        written.map_err(ArchiveError::writing(&self.path))
    }
}

/// Reads a list: its head, then each file. Lines that cannot be read, and paths that would lead out
/// of the folder, are left out. `None` if it is not a list.
pub(super) fn read(
    path: &Path,
    each: &mut dyn FnMut(ListedFile) -> Result<()>,
) -> Result<Option<ListHead>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(ArchiveError::reading(path)(error)),
    };
    let mut lines = BufReader::new(file);
    let mut next = || -> Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        let read = std::io::Read::take(&mut lines, LINE_MAX_BYTES).read_until(b'\n', &mut line);
        Ok((read.map_err(ArchiveError::reading(path))? > 0).then_some(line))
    };
    let first = next()?.unwrap_or_default();
    let Some(head) = serde_json::from_slice::<ListHead>(&first).ok() else { return Ok(None) };
    if head.nenrin_mirror != FORMAT {
        return Ok(None);
    }
    while let Some(line) = next()? {
        let Ok(file) = serde_json::from_slice::<ListedFile>(&line) else { continue };
        let is_inside = |part: Component<'_>| matches!(part, Component::Normal(_));
        if file.path.components().all(is_inside) {
            each(file)?;
        }
    }
    Ok(Some(head))
}

/// The versions of the files of a list, by the hash of their path.
pub(super) fn versions(path: &Path) -> Result<(Option<ListHead>, BTreeMap<u64, VersionId>)> {
    let mut found = BTreeMap::new();
    let head = read(path, &mut |file| {
        found.insert(path_hash(&file.path), file.version);
        Ok(())
    })?;
    Ok((head, found))
}

/// A hash by which paths are distinguished.
pub(super) fn path_hash(path: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    hasher.finish()
}

/// Deletes a file and the folders that it leaves empty.
pub(super) fn delete(folder: &Path, relative: &Path) -> Result<bool> {
    let path = folder.join(relative);
    match fs::remove_file(&path) {
        Ok(()) => {}
        Err(error) if is_not_there(&error) => return Ok(false),
        Err(error) => return Err(ArchiveError::writing(&path)(error)),
    }
    for parent in relative.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty()) {
        // A folder that is not empty stays.
        if fs::remove_dir(folder.join(parent)).is_err() {
            break;
        }
    }
    Ok(true)
}

fn is_not_there(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}
