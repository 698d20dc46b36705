//! Room on the disk: collecting pauses before there is none, and goes on by itself.

use std::path::{Path, PathBuf};

/// Watches the room on the disk that an archive lies on.
#[derive(Debug, Clone)]
pub(crate) struct RoomGuard {
    folder: PathBuf,
    pub(crate) min_free_bytes: u64,
    paused: bool,
}

/// Collecting goes on when there is this much more than the least, so that it does not stop and go
/// with every file: a tenth.
const SPARE_PART: u64 = 10;

impl RoomGuard {
    /// A guard that leaves this much free; 0 never pauses.
    pub(crate) fn new(folder: &Path, min_free_bytes: u64) -> Self {
        Self { folder: folder.to_owned(), min_free_bytes, paused: false }
    }

    /// Whether there was too little room when last looked.
    pub(crate) fn is_paused(&self) -> bool {
        self.paused
    }

    /// Room for programs without special rights, on the disk of the archive's folder.
    pub(crate) fn free_bytes(&self) -> Option<u64> {
        let disk = rustix::fs::statvfs(&self.folder).ok()?;
        disk.f_bavail.checked_mul(disk.f_frsize)
    }

    /// Whether there is room now, if that is otherwise than before.
    pub(crate) fn turn(&mut self, free_bytes: Option<u64>) -> Option<bool> {
        // A disk that does not tell its room is no reason to stop.
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
        let mut guard = RoomGuard::new(Path::new("."), 1_000);
        assert_eq!(guard.turn(Some(1_000)), None);
        assert_eq!(guard.turn(Some(999)), Some(false));
        assert_eq!(guard.turn(Some(1_050)), None, "too little to spare");
        assert_eq!(guard.turn(Some(1_100)), Some(true));
        assert_eq!(guard.turn(None), None);
        let mut without = RoomGuard::new(Path::new("."), 0);
        assert_eq!(without.turn(Some(0)), None);
    }

    #[test]
    fn the_room_of_a_folder_is_known() {
        assert!(RoomGuard::new(Path::new("."), 0).free_bytes().is_some_and(|free| free > 0));
    }
}
