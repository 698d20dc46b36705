use std::path::PathBuf;

use crate::VersionId;

/// What is damaged if the index is.
pub(crate) const INDEX: &str = "index";

/// What can go wrong between a caller and the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No version has this number, or it was forgotten.
    #[error("version {id} is not in the archive")]
    NotFound {
        /// The number asked for.
        id: VersionId,
    },
    /// Bytes in the archive are not what was written.
    #[error("{what} is damaged at {place}: {cost}; `verify --deep` lists all damage")]
    Damaged {
        /// The element, for example "bodies chunk".
        what: String,
        /// Where it is: pack and offset.
        place: String,
        /// What cannot be read because of it.
        cost: String,
    },
    /// The disk or bucket takes no more.
    #[error("no space left to write {}; free some space, nothing stored so far is harmed", path.display())]
    NoRoom {
        /// The object that was being written.
        path: PathBuf,
    },
    /// Compacting would need more space than there is.
    #[error(
        "compacting needs up to {} MB of free space while it works, and {} MB are free; free some space, nothing was changed",
        needed_bytes / 1_000_000 + 1, free_bytes / 1_000_000
    )]
    NoRoomToCompact {
        /// Bytes that it may need.
        needed_bytes: u64,
        /// Bytes that are free.
        free_bytes: u64,
    },
    /// The content backend failed in another way.
    #[error("the content backend failed")]
    Backend {
        /// What the backend said.
        #[from]
        source: BackendError,
    },
    /// The index file failed; it can be deleted, it is rebuilt from the packs.
    #[error("the index failed; `reindex` rebuilds it from the packs")]
    Index {
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// The index file is damaged or of another format, and may only be read.
    #[error("the index {} cannot be read by this program; `reindex` rebuilds it from the packs", path.display())]
    IndexUnusable {
        /// The index file.
        path: PathBuf,
    },
    /// A newer program wrote this.
    #[error("{place} has format {found}, this program reads up to {known}; use a newer nenrin")]
    FormatTooNew {
        /// The pack.
        place: String,
        /// Its format number.
        found: u16,
        /// The highest number known here.
        known: u16,
    },
    /// The version breaks a limit of the format.
    #[error("{what} has {found} bytes, the archive takes at most {limit}")]
    TooLarge {
        /// The part of the version.
        what: &'static str,
        /// Its size.
        found: u64,
        /// The limit.
        limit: u64,
    },
    /// Somebody else stopped the work, for example a progress callback of the caller.
    #[error("stopped by the caller: {0}")]
    Stopped(String),
}

impl StoreError {
    /// Whether the index is at fault, which can be made again.
    pub(crate) fn is_of_index(&self) -> bool {
        match self {
            Self::Index { source } => is_unusable(source),
            Self::Damaged { what, .. } => what == INDEX,
            _ => false,
        }
    }
}

/// What a content backend can answer instead of doing its work.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// There is no such object.
    #[error("there is no object {name}")]
    NotFound {
        /// Its name.
        name: String,
    },
    /// The object is shorter than the range asked for.
    #[error("object {name} ends before byte {end}")]
    TooShort {
        /// Its name.
        name: String,
        /// End of the range.
        end: u64,
    },
    /// The disk is full: final until space is freed.
    #[error("no space left for object {name}")]
    NoRoom {
        /// Its name.
        name: String,
    },
    /// Anything else, with the system's reason.
    #[error("object {name}")]
    Io {
        /// Its name.
        name: String,
        /// The system's reason.
        #[source]
        source: std::io::Error,
    },
}

impl BackendError {
    /// Sorts a system error into the variants that a caller acts on.
    pub fn from_io(name: &str, source: std::io::Error) -> Self {
        use std::io::ErrorKind;
        let name = name.to_owned();
        match source.kind() {
            ErrorKind::NotFound => Self::NotFound { name },
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::NoRoom { name },
            _ => Self::Io { name, source },
        }
    }
}

/// Turns the backend's "no space" into the store's, so that one variant is enough to act on.
pub(crate) fn from_backend(source: BackendError) -> StoreError {
    match source {
        BackendError::NoRoom { name } => StoreError::NoRoom { path: name.into() },
        other => StoreError::Backend { source: other },
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(source: rusqlite::Error) -> Self {
        let is_full = source.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull);
        // The shared memory that readers and writers of a WAL use is a file as well.
        let has_no_memory_file =
            source.sqlite_extended_error_code() == Some(rusqlite::ffi::SQLITE_IOERR_SHMSIZE);
        match is_full || has_no_memory_file {
            true => Self::NoRoom { path: "the index".into() },
            false => Self::Index { source },
        }
    }
}

/// Whether the index is not what this program wrote: damaged, or its tables or columns are others.
pub(crate) fn is_unusable(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase, Unknown};
    match error.sqlite_error_code() {
        // All statements are fixed: the engine refuses one only if the tables are others.
        Some(code) => matches!(code, DatabaseCorrupt | NotADatabase | Unknown),
        None => true,
    }
}
