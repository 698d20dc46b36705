//! Downloads: files that are written in the background, with progress, and then fetched.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use nenrin_archive::Download;
use tempfile::TempDir;

use crate::{Control, WebError};

/// Downloads that are kept; the oldest finished one goes first.
const KEPT: usize = 8;
/// Downloads that are written at once.
const AT_ONCE: usize = 2;
/// A finished file is deleted after a day.
const KEPT_S: i64 = 86_400;

/// How far a download has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Progress {
    Writing { done: u64, all: u64 },
    Ready { bytes: u64 },
    Failed { reason: String },
}

/// One download.
pub(crate) struct Job {
    pub(crate) id: u64,
    pub(crate) what: Download,
    /// The name of the file.
    pub(crate) name: String,
    pub(crate) began_s: i64,
    folder: TempDir,
    done: AtomicU64,
    all: AtomicU64,
    end: Mutex<Option<Result<u64, String>>>,
}

impl Job {
    pub(crate) fn progress(&self) -> Progress {
        match &*self.end.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(Ok(bytes)) => Progress::Ready { bytes: *bytes },
            Some(Err(reason)) => Progress::Failed { reason: reason.clone() },
            None => Progress::Writing {
                done: self.done.load(Ordering::Relaxed),
                all: self.all.load(Ordering::Relaxed),
            },
        }
    }

    /// Where the file is.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join(format!("file.{}", self.what.extension()))
    }

    fn is_writing(&self) -> bool {
        matches!(self.progress(), Progress::Writing { .. })
    }

    fn write(&self, control: &dyn Control) {
        let mut progress = |done, all| {
            self.done.store(done, Ordering::Relaxed);
            self.all.store(all, Ordering::Relaxed);
        };
        let path = self.path();
        let written = control.download(&self.what, &path, &mut progress);
        let end = written.map_err(|error| error.to_string()).and_then(|()| size(&path));
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
    }
}

fn size(path: &Path) -> Result<u64, String> {
    std::fs::metadata(path).map(|file| file.len()).map_err(|error| error.to_string())
}

/// The downloads of this process; their files go with it.
#[derive(Default)]
pub(crate) struct Downloads {
    jobs: Mutex<Vec<Arc<Job>>>,
    last: AtomicU64,
}

impl Downloads {
    /// Begins to write a file in the background.
    pub(crate) fn begin(
        &self,
        control: &Arc<dyn Control>,
        what: Download,
        name: String,
        now_s: i64,
    ) -> Result<u64, WebError> {
        let folder = tempfile::Builder::new().prefix("nenrin-download").tempdir();
        let folder = folder.map_err(|error| failed(&error))?;
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if jobs.iter().filter(|job| job.is_writing()).count() >= AT_ONCE {
            return Err(WebError::Busy);
        }
        let old = |job: &Arc<Job>| !job.is_writing() && job.began_s < now_s - KEPT_S;
        jobs.retain(|job| !old(job));
        if jobs.len() >= KEPT
            && let Some(oldest) = jobs.iter().position(|job| !job.is_writing())
        {
            jobs.remove(oldest);
        }
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let job = Arc::new(Job {
            id,
            what,
            name,
            began_s: now_s,
            folder,
            done: AtomicU64::new(0),
            all: AtomicU64::new(0),
            end: Mutex::new(None),
        });
        jobs.push(job.clone());
        let control = control.clone();
        // It may take hours, so it does not use the threads that answer pages.
        std::thread::Builder::new()
            .name("download".to_owned())
            .spawn(move || job.write(&*control))
            .map_err(|error| failed(&error))?;
        Ok(id)
    }

    /// All of them, newest first.
    pub(crate) fn all(&self) -> Vec<Arc<Job>> {
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.iter().rev().cloned().collect()
    }

    pub(crate) fn find(&self, id: &str) -> Result<Arc<Job>, WebError> {
        let found = self.all().into_iter().find(|job| job.id.to_string() == id);
        found.ok_or_else(|| WebError::not_found(format!("download {id}")))
    }
}

fn failed(error: &std::io::Error) -> WebError {
    crate::ControlError::Failed { reason: format!("the file cannot be written: {error}") }.into()
}
