//! Space on the disk: collecting pauses before there is none, and goes on by itself.

use std::path::{Path, PathBuf};

/// Watches the free space on the disk of an archive.
#[derive(Debug, Clone)]
pub struct DiskGuard {
    folder: PathBuf,
    /// Bytes that must stay free.
    pub min_free_bytes: u64,
    paused: bool,
}

/// Collecting goes on when there is this much more than the least, so that it does not stop and go
/// with every file: a tenth.
const SPARE_PART: u64 = 10;

impl DiskGuard {
    /// A guard that leaves this much free; 0 never pauses.
    pub fn new(folder: &Path, min_free_bytes: u64) -> Self {
        Self { folder: folder.to_owned(), min_free_bytes, paused: false }
    }

    /// Whether there was too little space when last looked.
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// Bytes that are free for programs without special rights.
    pub fn free_bytes(&self) -> Option<u64> {
        let disk = rustix::fs::statvfs(&self.folder).ok()?;
        disk.f_bavail.checked_mul(disk.f_frsize)
    }

    /// Looks at the disk, and says in the log when collecting pauses or goes on. Returns the free
    /// bytes.
    pub fn look(&mut self) -> Option<u64> {
        let free_bytes = self.free_bytes();
        let min_free_bytes = self.min_free_bytes;
        match self.turn(free_bytes) {
            Some(true) => tracing::warn!(
                free_bytes,
                min_free_bytes,
                "there is space again, collecting resumes"
            ),
            Some(false) => tracing::warn!(
                free_bytes,
                min_free_bytes,
                "too little space on the disk, collecting is paused until there is more"
            ),
            None => {}
        }
        free_bytes
    }

    /// Whether there is space now, if that has changed since the last call.
    pub fn turn(&mut self, free_bytes: Option<u64>) -> Option<bool> {
        // A disk that does not report its free space does not stop anything.
        let free_bytes = free_bytes.unwrap_or(u64::MAX);
        let spare = if self.paused { self.min_free_bytes / SPARE_PART } else { 0 };
        let paused = free_bytes < self.min_free_bytes.saturating_add(spare);
        let turned = paused != self.paused;
        self.paused = paused;
        turned.then_some(!paused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collecting_pauses_and_goes_on_by_itself() {
        let mut guard = DiskGuard::new(Path::new("."), 1_000);
        assert_eq!(guard.turn(Some(1_000)), None);
        assert_eq!(guard.turn(Some(999)), Some(false));
        assert_eq!(guard.turn(Some(1_050)), None, "too little to spare");
        assert_eq!(guard.turn(Some(1_100)), Some(true));
        assert_eq!(guard.turn(None), None);
        let mut without = DiskGuard::new(Path::new("."), 0);
        assert_eq!(without.turn(Some(0)), None);
    }

    #[test]
    fn the_free_space_of_a_folder_is_known() {
        assert!(DiskGuard::new(Path::new("."), 0).free_bytes().is_some_and(|free| free > 0));
    }
}
