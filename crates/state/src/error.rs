use std::path::PathBuf;

impl StateError {
    /// Whether only writing failed: the disk is full or can only be read.
    pub(crate) fn is_of_writing(&self) -> bool {
        match self {
            Self::NoRoom { .. } => true,
            Self::Engine { source, .. } => {
                let engine = source.downcast_ref::<rusqlite::Error>();
                let code = engine.and_then(rusqlite::Error::sqlite_error_code);
                code == Some(rusqlite::ErrorCode::ReadOnly)
            }
            _ => false,
        }
    }
}

/// Why the state could not answer.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The database was written by a newer program.
    #[error(
        "the state in {path} has schema {found}, this program knows up to {known}; use a newer nenrin"
    )]
    SchemaTooNew {
        /// The database file.
        path: PathBuf,
        /// The number found.
        found: i64,
        /// The newest number this program knows.
        known: i64,
    },
    /// The database was written before the first release.
    #[error("the state in {path} was made by a pre-release version of nenrin; make a new archive")]
    PreRelease {
        /// The database file.
        path: PathBuf,
    },
    /// The database file is not a database, or is damaged.
    #[error(
        "the state in {path} is damaged: {reason}; `nenrin reindex` rebuilds it from the packs"
    )]
    Damaged {
        /// The database file.
        path: PathBuf,
        /// What the engine says.
        reason: String,
    },
    /// The disk is full.
    #[error(
        "no space to write the state in {path}; free some space and start again, nothing committed is lost"
    )]
    NoRoom {
        /// The database file.
        path: PathBuf,
    },
    /// The database server does not let us.
    #[error("cannot use the state in {place}: {why}")]
    Refused {
        /// The database, without the password.
        place: String,
        /// Why, and the way out.
        why: &'static str,
    },
    /// The connection string of a database is wrong, or a file that it names.
    #[error("cannot use the database: {why}")]
    NoDatabase {
        /// Why, and the way out.
        why: String,
    },
    /// No such site.
    #[error("there is no site `{name}`; `nenrin site list` shows all")]
    NoSuchSite {
        /// The name or number asked for.
        name: String,
    },
    /// A site of that name is registered already.
    #[error("a site named `{name}` is registered already; `nenrin site set` changes it")]
    SiteExists {
        /// The name.
        name: String,
    },
    /// What was deleted cannot be restored.
    #[error("the content of site {name} was deleted; register it again to collect it again")]
    SiteDeleted {
        /// The site's number.
        name: String,
    },
    /// Someone else holds the partition now.
    #[error("the partition was taken over by another worker (epoch {current}, not {held})")]
    Superseded {
        /// The epoch under which it was to be changed.
        held: u64,
        /// The epoch under which it is held now.
        current: u64,
    },
    /// Only the holder of a partition may do this.
    #[error("this belongs to the worker that holds the partition")]
    NotHeld,
    /// A visit was committed to a partition that does not have its page.
    #[error("{url} belongs to another partition")]
    OtherPartition {
        /// The page.
        url: String,
    },
    /// The database file cannot be opened.
    #[error("cannot open {path}")]
    Unopened {
        /// The database file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The engine failed.
    #[error("the state in {path} could not be {action}")]
    Engine {
        /// The database file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What the engine says.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl StateError {
    /// Whether the same call may succeed later without anyone's help.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::NoRoom { .. } | Self::Engine { .. })
    }
}
