//! Writing back what parity restores.

use crate::error::{StoreError, from_backend};
use crate::mend::Found;
use crate::pack::pack_name;
use crate::packfile::PackFile;
use crate::store::Store;

impl Store {
    /// Reads every pack and writes what parity restores in place of what is damaged. Returns how
    /// many locations were damaged and are not any more. `progress` is called with bytes done and
    /// bytes in all.
    pub fn repair(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<u64, StoreError> {
        // Compacting must not replace a pack meanwhile.
        let _quiet = self.compacting.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.sync()?;
        let packs = self.pack_lengths()?;
        let total = packs.values().sum();
        let (mut done, mut mended) = (0, 0);
        for (number, length) in packs {
            PackFile::new(&*self.backend, number, length).walk(0, &mut |found| {
                if let Found::Mended { start, bytes } = found {
                    self.write_mended(number, start, &bytes)?;
                    mended += 1;
                }
                Ok(())
            })?;
            done += length;
            progress(done, total);
        }
        Ok(mended)
    }

    pub(crate) fn write_mended(
        &self,
        pack: u64,
        start: u64,
        bytes: &[u8],
    ) -> Result<(), StoreError> {
        self.backend.overwrite(&pack_name(pack), start, bytes).map_err(from_backend)
    }
}
