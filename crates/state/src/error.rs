use std::path::PathBuf;

/// Why the state could not answer.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The database was written by a newer program.
    #[error(
        "the state in {path} has format {found}, this program knows up to {known}; use a newer nenrin"
    )]
    FormatTooNew {
        /// The database file.
        path: PathBuf,
        /// The format found.
        found: i64,
        /// The newest format this program knows.
        known: i64,
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
    /// What was deleted cannot be given back.
    #[error("the content of site {name} was deleted; register it anew to collect it again")]
    SiteDeleted {
        /// The site's number.
        name: String,
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
