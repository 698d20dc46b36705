//! Exit codes, and which error means which.

use std::fmt;

use nenrin_archive::{ArchiveError, Reached};
use nenrin_fetch::FetchError;
use nenrin_state::StateError;
use nenrin_store::StoreError;

/// How the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All done.
    Done = 0,
    /// Part of the work failed; the messages said which.
    Partly = 1,
    /// Bad usage, configuration or input.
    Usage = 2,
    /// No space on the disk or in the quota.
    NoRoom = 3,
    /// The archive is damaged.
    Damaged = 4,
    /// Interrupted; the state is saved.
    Interrupted = 130,
}

/// Marks an error that the user can correct.
#[derive(Debug)]
struct UsageError(anyhow::Error);

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl std::error::Error for UsageError {}

/// An error in the input: exit code 2.
pub(crate) fn usage(error: impl Into<anyhow::Error>) -> anyhow::Error {
    anyhow::Error::new(UsageError(error.into()))
}

/// The exit code of an error.
pub(crate) fn code_of(error: &anyhow::Error) -> Exit {
    for cause in error.chain() {
        if cause.is::<UsageError>() || cause.is::<FetchError>() {
            return Exit::Usage;
        }
        if let Some(error) = cause.downcast_ref::<ArchiveError>() {
            match error {
                ArchiveError::State(error) => return of_state(error),
                ArchiveError::Store(error) => return of_store(error),
                ArchiveError::QuotaReached(_) => return Exit::NoRoom,
                ArchiveError::NotAFolder { .. }
                | ArchiveError::NoArchive { .. }
                | ArchiveError::Locked { .. }
                | ArchiveError::Input(_)
                | ArchiveError::Url(_)
                | ArchiveError::OtherContent { .. } => return Exit::Usage,
                // Their cause says more.
                ArchiveError::Warc { .. }
                | ArchiveError::Io { .. }
                | ArchiveError::Cut { .. }
                | ArchiveError::Coding { .. } => {}
            }
        }
        if cause.is::<Reached>() {
            return Exit::NoRoom;
        }
        if let Some(error) = cause.downcast_ref::<StateError>() {
            return of_state(error);
        }
        if let Some(error) = cause.downcast_ref::<StoreError>() {
            return of_store(error);
        }
        if let Some(error) = cause.downcast_ref::<std::io::Error>()
            && error.kind() == std::io::ErrorKind::StorageFull
        {
            return Exit::NoRoom;
        }
    }
    Exit::Partly
}

fn of_state(error: &StateError) -> Exit {
    match error {
        StateError::NoRoom { .. } => Exit::NoRoom,
        StateError::Damaged { .. } => Exit::Damaged,
        StateError::SchemaTooNew { .. }
        | StateError::PreRelease { .. }
        | StateError::NoSuchSite { .. }
        | StateError::SiteExists { .. }
        | StateError::SiteDeleted { .. }
        | StateError::Refused { .. }
        | StateError::NoDatabase { .. } => Exit::Usage,
        StateError::Engine { .. }
        | StateError::Unopened { .. }
        | StateError::Superseded { .. }
        | StateError::OtherPartition { .. }
        | StateError::NotHeld => Exit::Partly,
    }
}

fn of_store(error: &StoreError) -> Exit {
    match error {
        StoreError::NoRoom { .. } | StoreError::NoRoomToCompact { .. } => Exit::NoRoom,
        StoreError::Damaged { .. } => Exit::Damaged,
        _ => Exit::Partly,
    }
}
