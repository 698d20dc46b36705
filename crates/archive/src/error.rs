use std::{
    io,
    path::{Path, PathBuf},
};

use nenrin_state::StateError;
use nenrin_store::StoreError;
use nenrin_urls::{CanonicalUrl, UrlError};
use nenrin_warc::WarcError;

use crate::{quota::Reached, spans::readable_date};

/// What most functions of this crate return.
pub type Result<T, E = ArchiveError> = std::result::Result<T, E>;

/// Why the archive could not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The path is a file.
    #[error("{} is not a folder", path.display())]
    NotAFolder {
        /// The path.
        path: PathBuf,
    },
    /// Nothing was archived in this folder yet.
    #[error("there is no archive in {}", folder.display())]
    NoArchive {
        /// The folder.
        folder: PathBuf,
    },
    /// Another process writes to the archive.
    #[error("another process{by} is writing to the archive {}", folder.display())]
    Locked {
        /// The archive.
        folder: PathBuf,
        /// " (process 123)", where it is known.
        by: String,
    },
    /// What was given cannot be used; the text says what and why.
    #[error("{0}")]
    Input(String),
    /// A stored body does not hold what its content coding promises.
    #[error("{url}: {reason}")]
    Coding {
        /// Its page.
        url: CanonicalUrl,
        /// What is wrong with it.
        reason: String,
    },
    /// The text is not a web address.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// A mirror has other content for a date than what was imported for it before.
    #[error(
        "{url} has other content as of {}: {stored} is stored, the file has {given}; one date has one \
         content, so import the folder with the date when it was made",
        readable_date(*at_s)
    )]
    OtherContent {
        /// The page.
        url: Box<CanonicalUrl>,
        /// The date of the mirror, in seconds since the epoch.
        at_s: i64,
        /// The digest of what is stored.
        stored: String,
        /// The digest of the file.
        given: String,
    },
    /// A quota is used up.
    #[error(transparent)]
    QuotaReached(#[from] Reached),
    /// The state failed.
    #[error(transparent)]
    State(#[from] StateError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A WARC, WACZ or CDXJ file could not be read or written.
    #[error("{name}: {reason}")]
    Warc {
        /// The file.
        name: String,
        /// What is wrong with it.
        reason: String,
        /// The system's reason, if it is one.
        source: Option<io::Error>,
    },
    /// A file or folder could not be read, written, created or locked.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// "read", "write", "create", "lock the archive".
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A thread of an import or export ended before its work was done.
    #[error("{what} ended before its work was done")]
    Cut {
        /// Which part of the work.
        what: &'static str,
    },
}

impl ArchiveError {
    /// For `map_err`: the file could not be read.
    pub(crate) fn reading(path: &Path) -> impl FnOnce(io::Error) -> Self {
        Self::io("read", path)
    }

    /// For `map_err`: the file could not be written.
    pub(crate) fn writing(path: &Path) -> impl FnOnce(io::Error) -> Self {
        Self::io("write", path)
    }

    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }

    /// For `map_err`: the WARC file could not be read or written.
    pub(crate) fn warc(name: impl Into<String>) -> impl FnOnce(WarcError) -> Self {
        let name = name.into();
        move |error| match error {
            WarcError::Io(source) => {
                let reason = "it cannot be read or written".to_owned();
                Self::Warc { name, reason, source: Some(source) }
            }
            other => Self::Warc { name, reason: other.to_string(), source: None },
        }
    }
}

/// What a person can do about an error of the system, from an error and its causes.
pub fn advice<'a>(
    mut causes: impl Iterator<Item = &'a (dyn std::error::Error + 'static)>,
) -> Option<&'static str> {
    use rustix::io::Errno;
    let of_system = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<io::Error>().and_then(Errno::from_io_error)
    };
    match causes.find_map(of_system)? {
        Errno::MFILE | Errno::NFILE => {
            Some("this process may not open more files; raise the limit (`ulimit -n`)")
        }
        Errno::ACCESS | Errno::PERM => Some("use an account that may, or change the permissions"),
        Errno::ROFS => Some("the disk is read-only; commands that only read work on it"),
        _ => None,
    }
}

/// An error with its causes, for a line of the log.
pub(crate) fn full_text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_file_is_said_once_and_with_the_reason_of_the_system() {
        let wrong = || ArchiveError::warc("a.warc.gz");
        let reason = "it is not a WARC or ARC file".to_owned();
        let error = wrong()(WarcError::NotReadable { reason });
        assert_eq!(full_text(&error), "a.warc.gz: it is not a WARC or ARC file");
        let error = wrong()(WarcError::Io(io::Error::from(io::ErrorKind::StorageFull)));
        assert_eq!(full_text(&error), "a.warc.gz: it cannot be read or written: no storage space");
    }
}
