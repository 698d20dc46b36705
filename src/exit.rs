//! Exit codes, and which error means which.

use std::fmt;

use nenrin_fetch::FetchError;
use nenrin_state::StateError;
use nenrin_store::StoreError;

/// How the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All done.
    Done = 0,
    /// Some of the work failed; what, has been said.
    Partly = 1,
    /// Bad usage, configuration or input.
    Usage = 2,
    /// No room on the disk or in the quota.
    NoRoom = 3,
    /// The archive is damaged.
    Damaged = 4,
    /// Interrupted; the state is saved.
    Interrupted = 130,
}

/// Marks an error as the user's to mend.
#[derive(Debug)]
struct UsageError(anyhow::Error);

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl std::error::Error for UsageError {}

/// An error in what was given: exit code 2.
pub(crate) fn usage(error: impl Into<anyhow::Error>) -> anyhow::Error {
    anyhow::Error::new(UsageError(error.into()))
}

/// The exit code that an error stands for.
pub(crate) fn code_of(error: &anyhow::Error) -> Exit {
    for cause in error.chain() {
        if cause.is::<crate::quota::Reached>() {
            return Exit::NoRoom;
        }
        if cause.is::<UsageError>() || cause.is::<FetchError>() {
            return Exit::Usage;
        }
        if let Some(error) = cause.downcast_ref::<StateError>() {
            return match error {
                StateError::NoRoom { .. } => Exit::NoRoom,
                StateError::Damaged { .. } => Exit::Damaged,
                StateError::SchemaTooNew { .. }
                | StateError::PreRelease { .. }
                | StateError::NoSuchSite { .. }
                | StateError::SiteExists { .. }
                | StateError::SiteDeleted { .. } => Exit::Usage,
                StateError::Engine { .. }
                | StateError::Superseded { .. }
                | StateError::OtherPartition { .. } => Exit::Partly,
            };
        }
        if let Some(error) = cause.downcast_ref::<StoreError>() {
            return match error {
                StoreError::NoRoom { .. } => Exit::NoRoom,
                StoreError::Damaged { .. } => Exit::Damaged,
                _ => Exit::Partly,
            };
        }
        if let Some(error) = cause.downcast_ref::<std::io::Error>()
            && error.kind() == std::io::ErrorKind::StorageFull
        {
            return Exit::NoRoom;
        }
    }
    Exit::Partly
}
