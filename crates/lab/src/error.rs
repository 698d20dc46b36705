use std::path::PathBuf;

/// What can go wrong in an experiment.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A file of the experiment could not be read or written.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    File {
        /// What was tried, as a verb: `read`, `write`, `create`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What was given cannot be experimented on.
    #[error("{what}")]
    Input {
        /// What is wrong with it, and the way out.
        what: String,
    },
}

impl LabError {
    /// A function that wraps an I/O error with what was tried and where, for `map_err`.
    pub fn file(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }
}
