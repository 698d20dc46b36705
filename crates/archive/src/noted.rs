//! Small files of JSON that note what was done, each there whole or not at all.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use serde::Serialize;

use crate::{ArchiveError, Result};

/// Writes a note into a folder, in place of the one that is there.
pub(crate) fn write(folder: &Path, name: &str, note: &impl Serialize) -> Result<()> {
    let (path, part) = (folder.join(name), folder.join(format!("{name}.part")));
    let write = || {
        let mut file = File::create(&part)?;
        file.write_all(&serde_json::to_vec_pretty(note)?)?;
        file.sync_all()?;
        fs::rename(&part, &path)?;
        File::open(folder)?.sync_all()
    };
    write().map_err(ArchiveError::writing(&path))
}
