//! Errors of this crate.

/// Errors that a caller can act on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StructureError {
    /// A page index that is not from this graph.
    #[error("page {page} is not in this graph of {pages} pages; add it first")]
    UnknownPage {
        /// The index given.
        page: u32,
        /// Number of pages in the graph.
        pages: u32,
    },
    /// The graph is full.
    #[error("a graph holds at most {limit} pages; split the server into several")]
    TooManyPages {
        /// The limit.
        limit: u32,
    },
    /// An unknown name of a way to choose pages.
    #[error(
        "rounds can't be made by {name}: all, structure(A), structure(B), structure(C) or \
         structure(auto)"
    )]
    UnknownRoundsBy {
        /// The name given.
        name: String,
    },
    /// Stored beliefs that are damaged or from another version.
    #[error(
        "stored beliefs about server {server} cannot be read ({what}); they will be learnt again"
    )]
    DamagedBeliefs {
        /// The server whose beliefs were read.
        server: String,
        /// What is wrong with them.
        what: &'static str,
    },
}
