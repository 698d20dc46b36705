//! A site as of a date, as a folder of files.

use std::{
    fs,
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use nenrin_fetch::http_date;
use nenrin_state::Site;
use nenrin_store::VersionId;

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
                    let version = self.store().read(VersionId(row.version))?;
                    let target = output.join(relative);
                    let modified_s = last_modified(&version.head.response_head);
                    write_file(&target, &version.body, modified_s)
                        .map_err(ArchiveError::writing(&target))?;
                    written.files += 1;
                    written.bytes += version.body.len() as u64;
                }
            }
        }
        Ok(written)
    }
}

fn last_modified(response_head: &[u8]) -> Option<i64> {
    http_date::parse(&head::field(response_head, "last-modified")?)
}

fn write_file(target: &Path, body: &[u8], modified_s: Option<i64>) -> std::io::Result<()> {
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(target, body)?;
    if let Some(at_s) = modified_s.and_then(|at_s| u64::try_from(at_s).ok()) {
        let at: SystemTime = UNIX_EPOCH + Duration::from_secs(at_s);
        fs::File::options().write(true).open(target)?.set_modified(at)?;
    }
    Ok(())
}
