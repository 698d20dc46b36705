use std::path::PathBuf;

/// What can go wrong in an experiment.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A file of the experiment could not be read or written.
    #[error("cannot {action} {path}", path = path.display())]
    File {
        /// What was attempted, as a verb: `read`, `write`, `create`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A line of an update log that is not in its format.
    #[error(
        "{path} line {line}: {problem}; expected page_id, path, source_id, start, end, updates \
         separated by tabs",
        path = path.display()
    )]
    Log {
        /// The log.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// A setting of an experiment that cannot be used.
    #[error("{setting}: {problem}")]
    Setting {
        /// The setting, as its option is called.
        setting: &'static str,
        /// What is wrong with it, and what to write instead.
        problem: String,
    },
    /// The state of an archive or of a simulated crawler failed.
    #[error(transparent)]
    State(#[from] nenrin_state::StateError),
    /// The content of an archive cannot be read.
    #[error(transparent)]
    Store(#[from] nenrin_store::StoreError),
    /// An archive could not be made or read.
    #[error(transparent)]
    Archive(#[from] nenrin_archive::ArchiveError),
    /// A graph file is not what it should be.
    #[error("{path} is not a usable graph: {reason}", path = path.display())]
    BadGraph {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The start page is not in the graph.
    #[error("there is no page {page}; the graph has pages 0 to {last}", last = pages.saturating_sub(1))]
    NoSuchPage {
        /// The page.
        page: u32,
        /// Number of pages in the graph.
        pages: usize,
    },
    /// The input cannot be used for the experiment.
    #[error("{what}")]
    Input {
        /// What is wrong with it, and what to do.
        what: String,
    },
}

impl LabError {
    /// Wraps an I/O error with what was attempted and where, for `map_err`.
    pub fn file(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }
}
