use std::path::PathBuf;
use std::time::Duration;

/// How a store works; what it wrote earlier stays readable whatever is chosen.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Where the index is. None keeps it in memory: every opening makes it again.
    pub index_path: Option<PathBuf>,
    /// zstd level of a page's later versions while collecting: most of them is found in the
    /// version before, so a higher level takes time and gains little; compacting comes later.
    pub level: i32,
    /// zstd level of first versions, which have little to be compared with and come only once.
    pub first_level: i32,
    /// A pack is ended when it has grown beyond this, so that a damaged or lost file costs
    /// little and compacting has handy pieces.
    pub pack_bytes: u64,
    /// How many bodies may have to be rebuilt to rebuild one: more is smaller and slower.
    pub max_chain: u8,
    /// How many of these a new page may be a difference to: the others are for its own versions, which
    /// are nearer to each other than to any other page.
    pub max_chain_in_space: u8,
    /// Which similarities are looked for.
    pub steps: Steps,
    /// Whether GIFs are coded again while collecting. Other pictures wait for `compact`, since
    /// they take more time.
    pub recode_gifs: bool,
    /// A gzipped page or a GIF that takes longer to restore is kept as it is.
    pub recode_cap: Duration,
    /// Bodies that come compressed are stored as they come, where nothing better is known for
    /// them: quick, and `compact` makes them small.
    pub keeps_packed: bool,
    /// Decoded content kept in memory for readers.
    pub cache_bytes: usize,
    /// Versions and packs have at least these numbers. Holders of several partitions of an archive
    /// begin at different ones, so that all numbers are the archive's.
    pub first_numbers: FirstNumbers,
    /// Only read, while another process may be writing: nothing is recovered or brought up to
    /// date, and what that process synced is seen.
    pub read_only: bool,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            index_path: None,
            level: 5,
            first_level: 10,
            pack_bytes: 64 << 20,
            max_chain: 8,
            max_chain_in_space: 2,
            steps: Steps::default(),
            recode_gifs: true,
            recode_cap: Duration::from_millis(50),
            keeps_packed: false,
            cache_bytes: 32 << 20,
            first_numbers: FirstNumbers::default(),
            read_only: false,
        }
    }
}

/// The least numbers of versions and packs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FirstNumbers {
    /// Of versions.
    pub version: u64,
    /// Of packs.
    pub pack: u64,
}

impl FirstNumbers {
    /// Packs of a partition.
    const PACKS: u32 = 22;
    /// Versions of a partition.
    const VERSIONS: u32 = 40;
    /// The most partitions of an archive.
    pub const PARTITIONS_MAX: u32 = 1 << (31 - Self::PACKS);

    /// Those of a partition.
    pub fn of_partition(partition: u32) -> Self {
        let partition = u64::from(partition);
        Self { version: (partition << Self::VERSIONS) + 1, pack: (partition << Self::PACKS) + 1 }
    }
}

/// The steps of paper 001, to be measured one by one; all are on unless they are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// The same file at another time or under another URL is stored once.
    pub file: bool,
    /// Blocks of the page's last version are not stored again.
    pub block_in_time: bool,
    /// Blocks of a similar page of the site are not stored again.
    pub block_in_space: bool,
}

impl Default for Steps {
    fn default() -> Self {
        Self { file: true, block_in_time: true, block_in_space: true }
    }
}
