//! The archive's lock file: held while a process writes. It also says how the last one ended.

use std::{
    fs::{File, OpenOptions},
    io::{ErrorKind, Read, Seek, SeekFrom, Write},
    path::Path,
    time::Duration,
};

use crate::{ArchiveError, Result};

const LOCK: &str = "nenrin.lock";
const RUNNING: &str = "running";
const CLOSED: &str = "closed";
const INTERRUPTED: &str = "interrupted";

/// A reader holds the lock only briefly, while it repairs what a crash left.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(20);

/// A lock that this process holds.
pub(crate) struct Lock {
    file: File,
    /// The last holder was killed.
    pub(crate) was_running: bool,
    /// The last holder may have made requests that no commit mentions.
    pub(crate) has_unrecorded_requests: bool,
}

/// The result of an attempt to take the lock.
pub(crate) enum Taken {
    Free(Lock),
    Held {
        by: String,
    },
    /// Nothing can be written here, so nobody writes.
    Unwritable(std::io::Error),
}

impl Lock {
    /// Takes the lock to write.
    pub(crate) fn hold(folder: &Path) -> Result<Self> {
        let mut waited = Duration::ZERO;
        loop {
            match Self::take(folder)? {
                Taken::Free(mut lock) => {
                    lock.note_running().map_err(cannot_lock(folder))?;
                    return Ok(lock);
                }
                Taken::Held { .. } if waited < PATIENCE => {
                    std::thread::sleep(PAUSE);
                    waited += PAUSE;
                }
                Taken::Held { by } => {
                    return Err(ArchiveError::Locked { folder: folder.to_owned(), by });
                }
                Taken::Unwritable(source) => return Err(cannot_lock(folder)(source)),
            }
        }
    }

    /// Takes the lock if it is free, and leaves its note as it is.
    pub(crate) fn take(folder: &Path) -> Result<Taken> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = match options.open(folder.join(LOCK)) {
            Err(error) if is_refusal(error.kind()) => return Ok(Taken::Unwritable(error)),
            other => other.map_err(cannot_lock(folder))?,
        };
        let held = match file.try_lock() {
            Ok(()) => false,
            Err(std::fs::TryLockError::WouldBlock) => true,
            Err(std::fs::TryLockError::Error(error)) => return Err(cannot_lock(folder)(error)),
        };
        let mut note = String::new();
        // The note is for people; a damaged one says nothing.
        let _ = Read::by_ref(&mut file).take(100).read_to_string(&mut note);
        if held {
            let by =
                note.split_once(' ').map_or(String::new(), |(_, pid)| format!(" (process {pid})"));
            return Ok(Taken::Held { by });
        }
        let was_running = note.starts_with(RUNNING);
        let has_unrecorded_requests = was_running || note == INTERRUPTED;
        Ok(Taken::Free(Self { file, was_running, has_unrecorded_requests }))
    }

    /// Notes that a process writes.
    pub(crate) fn note_running(&mut self) -> std::io::Result<()> {
        self.write(&format!("{RUNNING} {}", std::process::id()))
    }

    /// Notes that it ended, and whether requests may be missing from the state.
    pub(crate) fn note_end(&mut self, has_unrecorded_requests: bool) -> std::io::Result<()> {
        self.write(if has_unrecorded_requests { INTERRUPTED } else { CLOSED })
    }

    /// Overwrites the note, which needs no space on a full disk, and only then cuts the rest.
    fn write(&mut self, note: &str) -> std::io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(note.as_bytes())?;
        self.file.set_len(note.len() as u64)
    }
}

fn is_refusal(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem | ErrorKind::StorageFull
    )
}

fn cannot_lock(folder: &Path) -> impl FnOnce(std::io::Error) -> ArchiveError {
    ArchiveError::io("lock the archive", folder)
}
