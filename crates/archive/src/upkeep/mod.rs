//! Verifying, accepting losses, rebuilding the indexes from the packs, and compacting.

mod accepted;
mod listed;
mod losses;
mod reindex;
mod verify;

use nenrin_store::CompactOptions;

pub use self::accepted::AcceptedLoss;
pub use self::reindex::Reindexed;
pub use self::verify::Verified;
use crate::{Archive, DiskGuard, Progress, Result};

impl Archive {
    /// Writes what parity restores in place of what is damaged in the packs, and returns how many
    /// locations that were. Progress is counted in bytes.
    pub fn repair(&self, progress: &mut Progress<'_>) -> Result<u64> {
        Ok(self.store().repair(progress)?)
    }

    /// Bytes that [`compact`](Self::compact) may need on the disk until it is done, and how many are
    /// free, where the system says so.
    pub fn space_to_compact(&self) -> Result<(u64, Option<u64>)> {
        let needed_bytes = self.store().space_to_compact(&CompactOptions::default())?;
        Ok((needed_bytes, DiskGuard::new(self.folder(), 0).free_bytes()))
    }

    /// Rewrites the packs so that they take the least space; refuses if the disk may be too full for
    /// that. Progress is counted in steps.
    pub fn compact(&self, progress: &mut Progress<'_>) -> Result<()> {
        if let Some(parts) = self.parts() {
            let (count, mut done) = (parts.count(), 0);
            parts.each(true, &mut |part| {
                part.compact(&mut |_, _| {})?;
                done += 1;
                progress(done, count);
                Ok(())
            })?;
            return Ok(self.store().catch_up()?);
        }
        let room_bytes = DiskGuard::new(self.folder(), 0).free_bytes();
        self.store()
            .compact(&CompactOptions { room_bytes, ..CompactOptions::default() }, progress)?;
        self.state().tidy_up()?;
        Ok(())
    }
}
