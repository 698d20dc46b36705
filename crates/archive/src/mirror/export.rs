//! A site as of a date, as a folder of files.

use std::{
    fs,
    io::{self, Write},
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use nenrin_fetch::http_date;
use nenrin_state::{Site, VersionId};

use super::paths::path_of;
use crate::{Archive, ArchiveError, Progress, Result, head};

/// Pages read from the state at once.
const PORTION: usize = 2_000;

/// What the export of a mirror wrote.
#[derive(Debug, Clone, Default)]
pub struct ExportedMirror {
    /// Files that were written.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// URLs that cannot be written as a file name.
    pub skipped: Vec<String>,
}

impl Archive {
    /// Writes sites as of a date as files below a folder; with `by_server`, each server's files go
    /// into a folder of their own. Progress is counted in pages.
    pub fn export_mirror(
        &self,
        sites: &[Site],
        at_s: i64,
        (output, by_server): (&Path, bool),
        progress: &mut Progress<'_>,
    ) -> Result<ExportedMirror> {
        fs::create_dir_all(output).map_err(ArchiveError::io("create", output))?;
        self.each_mirror_file(sites, at_s, by_server, progress, &mut |relative, version| {
            self.write_file(version, &output.join(relative))
        })
    }

    /// Hands every file of a mirror to `write`: its path and its version.
    pub(crate) fn each_mirror_file(
        &self,
        sites: &[Site],
        at_s: i64,
        by_server: bool,
        progress: &mut Progress<'_>,
        write: &mut dyn FnMut(&Path, VersionId) -> Result<()>,
    ) -> Result<ExportedMirror> {
        let all = sites.iter().map(|site| site.counts.pages).sum();
        let mut written = ExportedMirror::default();
        let mut done = 0;
        for site in sites {
            let base = site.conditions.tops.first();
            let mut after = None;
            loop {
                let portion = self.state().site_as_of(site.id, at_s, after, PORTION)?;
                let Some(last) = portion.last() else { break };
                after = Some(last.0);
                for (_, url, row) in &portion {
                    done += 1;
                    progress(done, all);
                    if !(200..300).contains(&row.status) {
                        continue;
                    }
                    let Some(relative) = path_of(url, base, by_server) else {
                        written.skipped.push(url.to_string());
                        continue;
                    };
                    write(relative.as_ref(), row.version)?;
                    written.files += 1;
                    written.bytes += row.bytes;
                }
            }
        }
        Ok(written)
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
