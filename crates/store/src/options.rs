use std::path::PathBuf;

/// How a store works; what it wrote earlier stays readable whatever is chosen.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Where the index lies. None keeps it in memory: every opening reads all packs.
    pub index_path: Option<PathBuf>,
    /// zstd level while collecting. 3 is 8 times as fast as 19 and a few percent larger, and
    /// compacting comes later.
    pub level: i32,
    /// A pack is ended when it has grown beyond this, so that a damaged or lost file costs
    /// little and compacting has handy pieces.
    pub pack_bytes: u64,
    /// Decoded content kept in memory for readers.
    pub cache_bytes: usize,
    /// Only read, while another process may be writing: nothing is recovered or brought up to
    /// date, and what that process synced is seen.
    pub read_only: bool,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            index_path: None,
            level: 3,
            pack_bytes: 64 << 20,
            cache_bytes: 32 << 20,
            read_only: false,
        }
    }
}
