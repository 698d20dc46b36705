//! A WARC export that goes on: each time only what is new, in numbered files of one folder.
//!
//! The folder has the files, the index of each run (`….cdxj`), the index of all (`index.cdxj`) and
//! `export.json`, which says what was written. A file counts once it is named there: what a run that
//! was cut short left behind is deleted by the next.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, BufWriter, Read},
    path::Path,
};

use nenrin_state::VisitFilter;
use nenrin_urls::CanonicalUrl;
use nenrin_warc::{CdxWriter, DigestAlgorithm, SortedLines};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{
    export::{ExportOptions, Exported},
    since::Since,
};
use crate::{Archive, ArchiveError, Progress, Result, mark::Mark, noted, spans::rfc3339};

const STATE: &str = "export.json";
const INDEX: &str = "index.cdxj";
const FORMAT: u32 = 1;
/// Read at a time.
const READ_BYTES: usize = 1 << 18;

/// What was exported into a folder.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct State {
    nenrin_export: u32,
    /// What is exported; it stays the same.
    selection: Selection,
    /// Ranges of version numbers that are in the files.
    versions: Vec<(u64, u64)>,
    /// Of which archive they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    of: Option<Mark>,
    /// The last visit of the log that is in them.
    last_visit: i64,
    /// How many runs the index of all has.
    indexed_runs: usize,
    runs: Vec<Run>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Selection {
    site: Option<u32>,
    prefix: Option<String>,
    from: Option<i64>,
    to: Option<i64>,
    digests: String,
}

/// What one run wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Run {
    date: String,
    responses: u64,
    revisits: u64,
    index: String,
    files: Vec<WrittenFile>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct WrittenFile {
    name: String,
    bytes: u64,
    sha256: String,
}

impl State {
    fn files(&self) -> impl Iterator<Item = &WrittenFile> {
        self.runs.iter().flat_map(|run| &run.files)
    }
}

impl Archive {
    /// Writes what an earlier export into this folder does not have, as further WARC files with their
    /// index; the first time, everything. Returns what is new.
    pub fn continue_warc(
        &self,
        folder: &Path,
        options: &ExportOptions,
        progress: &mut Progress<'_>,
    ) -> Result<Exported> {
        fs::create_dir_all(folder).map_err(ArchiveError::io("create", folder))?;
        let selection = Selection {
            site: options.site.map(|site| site.0),
            prefix: options.prefix.as_ref().map(CanonicalUrl::to_string),
            from: (options.from_s != i64::MIN).then_some(options.from_s),
            to: (options.to_s != i64::MAX).then_some(options.to_s),
            digests: if options.algorithm == DigestAlgorithm::Sha1 { "sha1" } else { "sha256" }
                .into(),
        };
        let mut state = read_state(folder, &selection)?;
        self.check_mark(folder, state.of.as_ref())?;
        delete_unnamed(folder, &state)?;
        index_all(folder, &mut state)?;
        let newest = self.state().visits(VisitFilter { limit: 1, ..VisitFilter::default() })?;
        let until = newest.first().map_or(0, |visit| visit.id);
        if until < state.last_visit {
            // The log was made anew; its unchanged visits are not known any more.
            state.last_visit = 0;
        }
        let since = Since { versions: state.versions.clone(), visits: (state.last_visit, until) };
        let first = folder.join(format!("nenrin-{:06}.warc.gz", state.files().count() + 1));
        let options = ExportOptions { index: true, references: false, ..options.clone() };
        let exported = self.export_files(&first, (&options, Some(&since)), progress)?;
        self.end_run(folder, state, (exported, until), options.now_s)
    }

    /// Names what was written, unless it is nothing.
    fn end_run(
        &self,
        folder: &Path,
        mut state: State,
        (mut exported, until): (Exported, i64),
        now_s: i64,
    ) -> Result<Exported> {
        state.last_visit = until;
        if exported.responses + exported.revisits == 0 {
            exported.files.clear();
            delete_unnamed(folder, &state)?;
            noted::write(folder, STATE, &state)?;
            return Ok(exported);
        }
        let Some(first) = exported.files.first() else { return Ok(exported) };
        let files = exported.files.iter().map(|path| written(path)).collect::<Result<_>>()?;
        let index = format!("{}.cdxj", name(first));
        add_versions(&mut state.versions, std::mem::take(&mut exported.versions));
        if state.of.is_none() {
            state.of = self.mark(&state.versions);
        }
        let (responses, revisits) = (exported.responses, exported.revisits);
        state.runs.push(Run { date: rfc3339(now_s), responses, revisits, index, files });
        noted::write(folder, STATE, &state)?;
        index_all(folder, &mut state)?;
        Ok(exported)
    }
}

fn read_state(folder: &Path, selection: &Selection) -> Result<State> {
    let path = folder.join(STATE);
    let refuse = |what: &str| Err(ArchiveError::Input(format!("{}: {what}", path.display())));
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let mut entries = fs::read_dir(folder).map_err(ArchiveError::reading(folder))?;
            // Files of a first run that was cut short.
            let is_own = |name: &str| name.starts_with("nenrin-") || name == INDEX;
            let is_foreign = entries.any(|entry| {
                entry.is_ok_and(|entry| !is_own(&entry.file_name().to_string_lossy()))
            });
            if is_foreign {
                let what = "has files that are not an earlier export; name another folder";
                return Err(ArchiveError::Input(format!("{} {what}", folder.display())));
            }
            return Ok(State {
                nenrin_export: FORMAT,
                selection: selection.clone(),
                versions: Vec::new(),
                of: None,
                last_visit: 0,
                indexed_runs: 0,
                runs: Vec::new(),
            });
        }
        Err(error) => return Err(ArchiveError::reading(&path)(error)),
    };
    let Ok(state) = serde_json::from_slice::<State>(&text) else {
        return refuse("it is damaged; put back a copy of it, or export into another folder");
    };
    match state {
        State { nenrin_export, .. } if nenrin_export != FORMAT => {
            refuse("a newer program wrote it; export into another folder")
        }
        state if state.selection != *selection => refuse(
            "it is an export of other sites, URLs, dates or digests; continue it with the same \
             options, or export into another folder",
        ),
        state => Ok(state),
    }
}

/// Deletes what no run that ended has named.
fn delete_unnamed(folder: &Path, state: &State) -> Result<()> {
    for entry in fs::read_dir(folder).map_err(ArchiveError::reading(folder))? {
        let entry = entry.map_err(ArchiveError::reading(folder))?;
        let found = entry.file_name().to_string_lossy().into_owned();
        let is_named = state.files().any(|file| file.name == found)
            || state.runs.iter().any(|run| run.index == found);
        if found.starts_with("nenrin-") && !is_named {
            fs::remove_file(entry.path()).map_err(ArchiveError::writing(&entry.path()))?;
        }
    }
    Ok(())
}

/// Makes the index of all runs again, if it lacks some.
fn index_all(folder: &Path, state: &mut State) -> Result<()> {
    if state.indexed_runs == state.runs.len() {
        return Ok(());
    }
    let (path, part) = (folder.join(INDEX), folder.join(format!("{INDEX}.part")));
    let failed = || ArchiveError::writing(&path);
    let mut lines = SortedLines::default();
    for run in &state.runs {
        let of_run = folder.join(&run.index);
        let file = File::open(&of_run).map_err(ArchiveError::reading(&of_run))?;
        for line in BufReader::new(file).lines() {
            lines.push(line.map_err(ArchiveError::reading(&of_run))?).map_err(failed())?;
        }
    }
    let file = File::create(&part).map_err(ArchiveError::writing(&part))?;
    let mut index = CdxWriter::plain(BufWriter::new(file));
    lines.finish(&mut |line| index.write(line)).map_err(failed())?;
    index.finish().map_err(failed())?;
    fs::rename(&part, &path).map_err(failed())?;
    state.indexed_runs = state.runs.len();
    noted::write(folder, STATE, state)
}

fn written(path: &Path) -> Result<WrittenFile> {
    let read = || {
        let mut file = File::open(path)?;
        let (mut hasher, mut bytes) = (Sha256::new(), 0);
        let mut part = vec![0; READ_BYTES];
        loop {
            match file.read(&mut part)? {
                0 => return Ok((bytes, hasher.finalize())),
                count => {
                    hasher.update(&part[..count]);
                    bytes += count as u64;
                }
            }
        }
    };
    let (bytes, digest) = read().map_err(ArchiveError::reading(path))?;
    let sha256 = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(WrittenFile { name: name(path), bytes, sha256 })
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Adds numbers to ranges.
fn add_versions(ranges: &mut Vec<(u64, u64)>, numbers: Vec<u64>) {
    let mut all: Vec<(u64, u64)> = std::mem::take(ranges);
    all.extend(numbers.into_iter().map(|number| (number, number)));
    all.sort_unstable();
    for (first, last) in all {
        match ranges.last_mut() {
            Some(range) if first <= range.1.saturating_add(1) => range.1 = range.1.max(last),
            _ => ranges.push((first, last)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, path::PathBuf};

    use nenrin_state::{SiteConditions, VersionId};

    use super::*;
    use crate::{Capture, OpenOptions, WarcFiles, WarcImportOptions};

    #[test]
    fn ranges_take_numbers_in_any_order() {
        let mut ranges = vec![(1, 3), (7, 7)];
        add_versions(&mut ranges, vec![9, 4, 6, 2, 20]);
        assert_eq!(ranges, [(1, 4), (6, 7), (9, 9), (20, 20)]);
        let since = Since { versions: ranges, visits: (5, 9) };
        let has: Vec<u64> = (0..22).filter(|n| since.has_version(VersionId(*n))).collect();
        assert_eq!(has, [1, 2, 3, 4, 6, 7, 9, 20]);
        assert_eq!([5, 6, 9, 10].map(|visit| since.has_visit(visit)), [true, false, false, true]);
    }

    struct World {
        folder: tempfile::TempDir,
        archive: Archive,
    }

    impl World {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let archive = Archive::open(&folder.path().join("a"), &OpenOptions::writing()).unwrap();
            let top = CanonicalUrl::parse("http://e.com/").unwrap();
            archive.state().add_site("e", &SiteConditions::new(vec![top]), 0).unwrap();
            Self { folder, archive }
        }

        fn visit(&self, at_s: i64, pages: &[(&str, &str)]) {
            let mut ingest = self.archive.ingest(nenrin_state::SiteId(1)).unwrap();
            for (path, body) in pages {
                let url = CanonicalUrl::parse(&format!("http://e.com{path}")).unwrap();
                let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
                ingest.take(&Capture::new(&url, at_s, 200, head, body.as_bytes())).unwrap();
            }
            ingest.finish().unwrap();
        }

        fn go_on(&self) -> Exported {
            let options = ExportOptions::new(1_000_000);
            self.archive.continue_warc(&self.out(), &options, &mut |_, _| {}).unwrap()
        }

        fn out(&self) -> PathBuf {
            self.folder.path().join("out")
        }

        /// All that the files have, imported into an archive of its own: versions and unchanged
        /// visits by URL and date.
        fn imported(&self) -> (u64, u64, BTreeMap<(String, i64), String>) {
            let folder = tempfile::tempdir().unwrap();
            let archive = Archive::open(folder.path(), &OpenOptions::writing()).unwrap();
            let mut files: Vec<PathBuf> = fs::read_dir(self.out())
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .filter(|path| path.to_string_lossy().ends_with(".warc.gz"))
                .collect();
            files.sort();
            let files = WarcFiles::open(&files).unwrap();
            let options = WarcImportOptions::new("x", 2_000_000);
            let imported = archive.import_warc(&files, &options, &mut |_, _| {}).unwrap();
            assert_eq!(imported.damaged, 0, "{:?}", imported.problems);
            assert_eq!(imported.known, 0, "nothing is written twice");
            let mut found = BTreeMap::new();
            archive
                .state()
                .each_version(&mut |url, row| {
                    let body = archive.store().read(row.version).unwrap().body;
                    found.insert((url.to_string(), row.at_s), String::from_utf8(body).unwrap());
                })
                .unwrap();
            (imported.versions, imported.unchanged, found)
        }
    }

    #[test]
    fn each_run_writes_what_is_new_and_all_files_together_have_everything() {
        let world = World::new();
        world.visit(100, &[("/", "one"), ("/a", "a")]);
        let first = world.go_on();
        assert_eq!((first.responses, first.revisits, first.files.len()), (2, 0, 1));
        assert_eq!(world.go_on().files, Vec::<PathBuf>::new(), "nothing is new");
        world.visit(200, &[("/", "two"), ("/a", "a"), ("/b", "b")]);
        // An older date comes later, as an import brings it.
        world.visit(50, &[("/old", "old")]);
        let second = world.go_on();
        assert_eq!((second.responses, second.revisits), (3, 1));
        world.visit(300, &[("/", "two"), ("/a", "a")]);
        let third = world.go_on();
        assert_eq!((third.responses, third.revisits), (0, 2));
        let (versions, unchanged, found) = world.imported();
        assert_eq!((versions, unchanged, found.len()), (5, 3, 5));
        assert_eq!(found[&("http://e.com/".to_owned(), 200)], "two");
        let index = fs::read_to_string(world.out().join(INDEX)).unwrap();
        let lines: Vec<&str> = index.lines().collect();
        assert_eq!(lines.len(), 8);
        assert!(lines.is_sorted());
        let state = read_state(&world.out(), &read_selection(&world.out())).unwrap();
        assert_eq!(state.runs.len(), 3);
        for file in state.files() {
            assert_eq!(*file, written(&world.out().join(&file.name)).unwrap());
        }
    }

    fn read_selection(folder: &Path) -> Selection {
        let text = fs::read(folder.join(STATE)).unwrap();
        serde_json::from_slice::<State>(&text).unwrap().selection
    }

    #[test]
    fn what_a_run_that_was_cut_short_left_is_written_again() {
        let world = World::new();
        world.visit(100, &[("/", "one"), ("/a", "a")]);
        world.go_on();
        let before = fs::read(world.out().join(STATE)).unwrap();
        world.visit(200, &[("/", "two"), ("/b", "b")]);
        world.go_on();
        // As if it had ended before it said what it wrote, and another while it was writing.
        fs::write(world.out().join(STATE), &before).unwrap();
        fs::write(world.out().join("nenrin-000007.warc.gz.part"), "half").unwrap();
        let again = world.go_on();
        assert_eq!((again.responses, again.revisits), (2, 0));
        let (versions, unchanged, _) = world.imported();
        assert_eq!((versions, unchanged), (4, 0));
        assert!(!world.out().join("nenrin-000007.warc.gz.part").exists());
        // The index of all is made again if it lacks a run.
        fs::remove_file(world.out().join(INDEX)).unwrap();
        let mut state = read_state(&world.out(), &read_selection(&world.out())).unwrap();
        state.indexed_runs = 0;
        noted::write(&world.out(), STATE, &state).unwrap();
        world.go_on();
        assert_eq!(fs::read_to_string(world.out().join(INDEX)).unwrap().lines().count(), 4);
    }

    #[test]
    fn a_folder_of_another_archive_is_refused() {
        let (world, other) = (World::new(), World::new());
        world.visit(100, &[("/", "one")]);
        other.visit(100, &[("/", "two")]);
        world.go_on();
        let options = ExportOptions::new(1_000_000);
        let refused = other.archive.continue_warc(&world.out(), &options, &mut |_, _| {});
        let said = refused.unwrap_err().to_string();
        assert!(said.ends_with("was exported from another archive; name another folder"), "{said}");
        let tables = world.folder.path().join("tables");
        world.archive.export_tables(&tables, &mut |_, _| {}).unwrap();
        world.archive.export_tables(&tables, &mut |_, _| {}).unwrap();
        assert!(other.archive.export_tables(&tables, &mut |_, _| {}).is_err());
        // A copy of the archive goes on.
        let copy = world.folder.path().join("copy");
        world.archive.back_up(&copy, 200, &mut |_, _| {}).unwrap();
        let copy = Archive::open(&copy, &OpenOptions::writing()).unwrap();
        copy.export_tables(&tables, &mut |_, _| {}).unwrap();
        copy.continue_warc(&world.out(), &options, &mut |_, _| {}).unwrap();
    }

    #[test]
    fn a_folder_of_something_else_is_refused() {
        let world = World::new();
        world.visit(100, &[("/", "one")]);
        world.go_on();
        let other = ExportOptions { site: Some(nenrin_state::SiteId(1)), ..ExportOptions::new(0) };
        let refused = world.archive.continue_warc(&world.out(), &other, &mut |_, _| {});
        assert!(refused.unwrap_err().to_string().contains("other sites"));
        let foreign = world.folder.path().join("foreign");
        fs::create_dir(&foreign).unwrap();
        fs::write(foreign.join("x"), "x").unwrap();
        let refused = world.archive.continue_warc(&foreign, &ExportOptions::new(0), &mut |_, _| {});
        assert!(refused.unwrap_err().to_string().contains("not an earlier export"));
    }
}
