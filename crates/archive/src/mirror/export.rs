//! A site as of a date, as a folder of files.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use nenrin_fetch::http_date;
use nenrin_state::{DayQuery, Site, VersionId, VersionRow};
use nenrin_urls::{CanonicalUrl, RenderedRecord};

use super::{
    listing::{self, ListHead, ListWriter, ListedFile, path_hash},
    paths::{MirrorPath, path_beside, path_of},
};
use crate::{
    Archive, ArchiveError, Progress, Result, head,
    spans::{readable_date, rfc3339},
};

/// Pages read from the state at once.
const PORTION: usize = 2_000;

/// What the export of a mirror wrote.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct ExportedMirror {
    /// Files of the mirror.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Of these files, the ones that an earlier export had written already.
    pub unchanged: u64,
    /// Files of an earlier export that are not part of the mirror any more, and were deleted.
    pub deleted: u64,
    /// Files whose name is another than their URL's, because it is taken or cannot be a name.
    pub mapped: u64,
    /// The list of all files with their URLs.
    pub list: PathBuf,
}

impl Archive {
    /// Writes sites as of a date as files below a folder; with `by_server`, each server's files go
    /// into a folder of their own. The folder is new, empty, or an earlier export of these sites,
    /// which is brought up to date. Progress is counted in pages.
    pub fn export_mirror(
        &self,
        sites: &[Site],
        at_s: i64,
        (output, by_server): (&Path, bool),
        progress: &mut Progress<'_>,
    ) -> Result<ExportedMirror> {
        let list = listing::list_path(output)?;
        let part = listing::unfinished(&list);
        let list_head =
            ListHead::new(rfc3339(at_s), sites.iter().map(|site| site.name.clone()).collect());
        let before = check_target(output, &list, &list_head)?;
        let mut done = ExportedMirror { list: list.clone(), ..ExportedMirror::default() };
        let mut planned = BTreeSet::new();
        if let Some(parent) = list.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            fs::create_dir_all(parent).map_err(ArchiveError::io("create", parent))?;
        }
        let mut plan = ListWriter::create(&part, &list_head)?;
        self.each_mirror_file(sites, at_s, by_server, &mut |file| {
            done.files += 1;
            done.bytes += file.bytes;
            done.mapped += u64::from(file.mapped);
            planned.insert(path_hash(&file.path));
            plan.file(&file)
        })?;
        plan.finish()?;
        if done.files == 0 {
            let _ = fs::remove_file(&part);
            return Err(self.nothing_then(sites, at_s));
        }
        fs::create_dir_all(output).map_err(ArchiveError::io("create", output))?;
        listing::read(&list, &mut |file| {
            if !planned.contains(&path_hash(&file.path)) {
                done.deleted += u64::from(listing::delete(output, &file.path)?);
            }
            Ok(())
        })?;
        let (mut count, all) = (0, done.files);
        listing::read(&part, &mut |file| {
            count += 1;
            progress(count, all);
            let target = output.join(&file.path);
            let is_there = before.get(&path_hash(&file.path)) == Some(&file.version)
                && fs::metadata(&target).is_ok_and(|found| found.len() == file.bytes);
            match is_there {
                true => done.unchanged += 1,
                false => self.write_file(file.version, &target)?,
            }
            Ok(())
        })?;
        fs::rename(&part, &list).map_err(ArchiveError::writing(&list))?;
        Ok(done)
    }

    /// Hands every file of a mirror to `take`. No two have the same path, not even on systems that
    /// take small and capital letters for the same, and none has the path of a folder.
    pub(crate) fn each_mirror_file(
        &self,
        sites: &[Site],
        at_s: i64,
        by_server: bool,
        take: &mut dyn FnMut(ListedFile) -> Result<()>,
    ) -> Result<()> {
        let path =
            |site: &Site, url: &CanonicalUrl| path_of(url, site.conditions.tops.first(), by_server);
        let mut names = Names::default();
        self.each_page(sites, at_s, &mut |site, url, _| {
            names.add_folders(&path(site, url).path);
            Ok(())
        })?;
        self.each_page(sites, at_s, &mut |site, url, row| {
            let MirrorPath { path, is_mapped } = names.choose(path(site, url), url, &row.mime);
            let (url, version) = (url.to_string(), row.version);
            take(ListedFile { path, url, version, bytes: row.bytes, mapped: is_mapped })
        })
    }

    fn each_page(
        &self,
        sites: &[Site],
        at_s: i64,
        take: &mut dyn FnMut(&Site, &CanonicalUrl, &VersionRow) -> Result<()>,
    ) -> Result<()> {
        for site in sites {
            let mut after = None;
            loop {
                let portion = self.state().site_as_of(site.id, at_s, after, PORTION)?;
                let Some(last) = portion.last() else { break };
                after = Some(last.0);
                for (_, url, row) in &portion {
                    if (200..300).contains(&row.status) && !RenderedRecord::is_one(url) {
                        take(site, url, row)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Why a mirror has no files.
    fn nothing_then(&self, sites: &[Site], at_s: i64) -> ArchiveError {
        let first_day = |site: &Site| {
            let query = DayQuery { site: Some(site.id), from_day: -1_000_000, to_day: 10_000_000 };
            let days = self.state().days(query).unwrap_or_default();
            days.iter().filter(|day| day.versions > 0).map(|day| day.day).min()
        };
        let what = match sites.iter().filter_map(first_day).min() {
            Some(day) if day * 86_400 > at_s => format!(
                "nothing was collected by {}: the first visit was on {}",
                readable_date(at_s),
                &readable_date(day * 86_400)[..10]
            ),
            Some(_) => format!("no page was there as of {}", readable_date(at_s)),
            None => "nothing was collected yet".to_owned(),
        };
        ArchiveError::Input(what)
    }

    /// Writes a version's body to a file, a large one piece by piece. A file that could not be written
    /// to its end is deleted.
    fn write_file(&self, id: VersionId, target: &Path) -> Result<()> {
        let create = || {
            target.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::File::create(target)
        };
        let mut file =
            File { file: create().map_err(ArchiveError::writing(target))?, failed: None };
        let read = self.store().read_to(id, &mut file);
        if read.is_err() {
            let _ = fs::remove_file(target);
        }
        if let Some(error) = file.failed {
            return Err(ArchiveError::writing(target)(error));
        }
        let modified =
            last_modified(&read?.response_head).and_then(|at_s| u64::try_from(at_s).ok());
        if let Some(at_s) = modified {
            let at: SystemTime = UNIX_EPOCH + Duration::from_secs(at_s);
            file.file.set_modified(at).map_err(ArchiveError::writing(target))?;
        }
        Ok(())
    }
}

/// Which paths are taken. Only their hashes are kept: a mirror may have more than fit into memory.
#[derive(Default)]
struct Names {
    folders: BTreeSet<u64>,
    files: BTreeSet<u64>,
}

impl Names {
    fn add_folders(&mut self, path: &Path) {
        let folders = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
        self.folders.extend(folders.map(folded_hash));
    }

    fn choose(&mut self, found: MirrorPath, url: &CanonicalUrl, mime: &str) -> MirrorPath {
        let hash = folded_hash(&found.path);
        if !self.folders.contains(&hash) && self.files.insert(hash) {
            return found;
        }
        let path = path_beside(&found.path, url, mime);
        self.files.insert(folded_hash(&path));
        MirrorPath { path, is_mapped: true }
    }
}

fn folded_hash(path: &Path) -> u64 {
    path_hash(Path::new(&path.to_string_lossy().to_lowercase()))
}

type Before = std::collections::BTreeMap<u64, VersionId>;

/// Refuses a folder that is not an earlier export of these sites. Returns what it has. What an
/// export that was cut short may have written is deleted: it is written again.
fn check_target(output: &Path, list: &Path, wanted: &ListHead) -> Result<Before> {
    let part = listing::unfinished(list);
    let is_empty = match fs::read_dir(output) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) => return Err(ArchiveError::reading(output)(error)),
    };
    let (found, before) = listing::versions(list)?;
    let cut_short = listing::read(&part, &mut |_| Ok(()))?;
    let earlier = found.as_ref().or(cut_short.as_ref());
    let refuse = |what: &str| {
        let text = format!("{} {what}; name another folder with -o", output.display());
        Err(ArchiveError::Input(text))
    };
    match earlier {
        None if !is_empty => return refuse("has files that are not an earlier export of a mirror"),
        Some(earlier) if earlier.sites != wanted.sites && !is_empty => {
            return refuse(&format!("is an export of other sites ({})", earlier.sites.join(", ")));
        }
        _ => {}
    }
    listing::read(&part, &mut |file| listing::delete(output, &file.path).map(drop))?;
    Ok(before)
}

/// A file that remembers why it could not be written.
struct File {
    file: fs::File,
    failed: Option<io::Error>,
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).map_err(|error| {
            let said = io::Error::from(error.kind());
            self.failed = Some(error);
            said
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn last_modified(response_head: &[u8]) -> Option<i64> {
    http_date::parse(&head::field(response_head, "last-modified")?)
}
