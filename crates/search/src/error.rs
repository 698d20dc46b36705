use nenrin_archive::ArchiveError;
use nenrin_state::StateError;
use nenrin_store::StoreError;

use crate::QueryError;

/// Why a search, or keeping the index, failed.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The query has a mistake.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// There is no index yet.
    #[error(
        "there is no search index yet; `nenrin run` builds it by itself, `nenrin reindex --search` now"
    )]
    NoIndex,
    /// Searching is switched off.
    #[error("searching is switched off by `search.index = false` in the configuration")]
    Off,
    /// Another process writes the index.
    #[error("another process keeps the search index; stop it first")]
    Elsewhere,
    /// The index is damaged.
    #[error("the search index is damaged: {0}")]
    Damaged(String),
    /// The index cannot take more pages.
    #[error("the search index is full; `nenrin reindex --search` builds it again")]
    Full,
    /// The index could not be read or written.
    #[error("the search index could not be read or written: {0}")]
    Io(#[from] std::io::Error),
    /// The records of the index could not be read or written.
    #[error("the search index could not be read or written: {0}")]
    Records(#[from] rusqlite::Error),
    /// The words of the index could not be read or written.
    #[error("the search index could not be read or written: {0}")]
    Words(#[from] tantivy::TantivyError),
    /// The archive could not be read.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The state could not be read.
    #[error(transparent)]
    State(#[from] StateError),
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SearchError {
    /// Whether only writing is impossible: the medium is read-only or full, or permission is missing.
    /// What is there can still be read.
    pub fn is_of_writing(&self) -> bool {
        // A full disk has no room for the memory that connections share: an I/O error.
        use rusqlite::ErrorCode::{
            CannotOpen, DiskFull, PermissionDenied, ReadOnly, SystemIoFailure,
        };
        use std::io::ErrorKind;
        use tantivy::{TantivyError as Words, directory::error as words};
        let is_kind = |error: &std::io::Error| {
            matches!(
                error.kind(),
                ErrorKind::PermissionDenied
                    | ErrorKind::ReadOnlyFilesystem
                    | ErrorKind::StorageFull
                    | ErrorKind::QuotaExceeded
            )
        };
        match self {
            Self::Io(error) => is_kind(error),
            Self::Records(error) => matches!(
                error.sqlite_error_code(),
                Some(CannotOpen | PermissionDenied | ReadOnly | DiskFull | SystemIoFailure)
            ),
            Self::Words(Words::IoError(error)) => is_kind(error),
            Self::Words(Words::LockFailure(words::LockError::IoError(error), _)) => is_kind(error),
            Self::Words(Words::OpenWriteError(words::OpenWriteError::IoError {
                io_error, ..
            })) => is_kind(io_error),
            _ => false,
        }
    }

    /// Whether the index has to be built again.
    pub(crate) fn is_damage(&self) -> bool {
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
        use tantivy::TantivyError as Words;
        match self {
            Self::Damaged(_) | Self::Full => true,
            Self::Records(rusqlite::Error::SqliteFailure(error, _)) => {
                matches!(error.code, DatabaseCorrupt | NotADatabase)
            }
            Self::Records(
                rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::FromSqlConversionFailure(..),
            ) => true,
            Self::Words(error) => matches!(
                error,
                Words::DataCorruption(_)
                    | Words::OpenReadError(_)
                    | Words::OpenDirectoryError(_)
                    | Words::IncompatibleIndex(_)
                    | Words::SchemaError(_)
                    | Words::FieldNotFound(_)
            ),
            _ => false,
        }
    }
}
