//! What can go wrong when a server's structure is described.

/// A refusal that the caller can act on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StructureError {
    /// A page index that this graph never gave out.
    #[error("page {page} is not in this graph of {pages} pages: add it first")]
    UnknownPage {
        /// The index asked for.
        page: u32,
        /// How many pages the graph has.
        pages: u32,
    },
    /// The graph is full.
    #[error("a graph holds at most {limit} pages: split the server into several")]
    TooManyPages {
        /// The limit.
        limit: u32,
    },
    /// A name that no way of choosing pages has.
    #[error(
        "rounds can't be made by {name}: all, structure(A), structure(B), structure(C) or \
         structure(auto)"
    )]
    UnknownRoundsBy {
        /// What was asked for.
        name: String,
    },
    /// Kept beliefs that are damaged or from another version.
    #[error("kept beliefs of server {server} cannot be read ({what}): forget them and learn anew")]
    DamagedBeliefs {
        /// The server whose beliefs were read.
        server: String,
        /// What is wrong with them.
        what: &'static str,
    },
}
