//! By what a folder that was written from an archive is recognised later: a version in it. Its number
//! and its content never change, also in a copy of the archive, or when the state is made again.

use nenrin_state::VersionId;
use nenrin_store::StoreError;
use serde::{Deserialize, Serialize};

use crate::{Archive, ArchiveError, Result};

/// A version of the archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    version: u64,
    digest: String,
}

impl Archive {
    /// A mark, if one of these versions can be read.
    pub(crate) fn mark(&self, versions: &[(u64, u64)]) -> Option<Mark> {
        let (version, _) = *versions.first()?;
        let digest = self.store().head(VersionId(version)).ok()?.digest.to_string();
        Some(Mark { version, digest })
    }

    /// Refuses a folder that was written from another archive. A version that is not there any more
    /// says nothing.
    pub(crate) fn check_mark(&self, folder: &std::path::Path, mark: Option<&Mark>) -> Result<()> {
        let Some(mark) = mark else { return Ok(()) };
        match self.store().head(VersionId(mark.version)) {
            Ok(head) if head.digest.to_string() != mark.digest => {
                Err(ArchiveError::Input(format!(
                    "{} was exported from another archive; name another folder",
                    folder.display()
                )))
            }
            Ok(_) | Err(StoreError::NotFound { .. } | StoreError::Damaged { .. }) => Ok(()),
            Err(other) => Err(other.into()),
        }
    }
}
