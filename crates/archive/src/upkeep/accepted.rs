use std::{
    fs,
    io::{ErrorKind, Read},
};

use serde::{Deserialize, Serialize};

use crate::{Archive, ArchiveError, Result};

/// In the archive's folder.
pub(super) const FILE: &str = "accepted-losses.jsonl";
/// No more of the file is read.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// A damaged location whose loss was accepted, as a line of the file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AcceptedLoss {
    /// What is damaged, and how.
    pub what: String,
    /// The file and the position in it, as `verify` names them.
    pub place: String,
    /// When it was accepted, in seconds since the epoch.
    pub at_s: i64,
    /// How many versions were lost by it.
    pub versions: u64,
}

impl Archive {
    /// The damaged locations whose loss was accepted.
    pub fn accepted_losses(&self) -> Result<Vec<AcceptedLoss>> {
        let path = self.folder().join(FILE);
        let mut text = Vec::new();
        match fs::File::open(&path) {
            Ok(file) => file.take(FILE_BYTES_MAX).read_to_end(&mut text),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => Err(error),
        }
        .map_err(ArchiveError::reading(&path))?;
        // A line that cannot be read accepts nothing.
        let lines = text.split(|byte| *byte == b'\n');
        Ok(lines.filter_map(|line| serde_json::from_slice(line).ok()).collect())
    }
}
