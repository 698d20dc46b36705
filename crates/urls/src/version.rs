//! What tells one version of a page from another: our number, and what its server says.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The number of a version: given out by the store in increasing order, never again, and kept for
/// ever, wherever its bytes move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VersionId(pub u64);

impl fmt::Display for VersionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a response said about its version. Sent back with the next request, so that the server can
/// answer "not modified".
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Validators {
    /// The `ETag`, sent as `If-None-Match`.
    pub etag: Option<String>,
    /// The `Last-Modified`, sent as `If-Modified-Since`, as the server wrote it.
    pub last_modified: Option<String>,
}

impl Validators {
    /// Whether there are none, so that the request is unconditional.
    pub fn is_empty(&self) -> bool {
        self.etag.is_none() && self.last_modified.is_none()
    }
}
