//! The groups of pages that a page belongs to.

/// A page's directory and file name on its server, as numbered by [`crate::ChangeClocks`].
///
/// The default is "nowhere": the page then has no neighbours, and only its own history counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageGroups {
    /// The node of its directory.
    pub(crate) directory: u32,
    /// The node of the pages with a like file name on the server.
    pub(crate) name: u32,
    /// Distinguishes pages of the same groups, so that they are not all due at once.
    pub(crate) page: u32,
}

impl PageGroups {
    /// A page without known neighbours.
    pub const NONE: Self = Self { directory: u32::MAX, name: u32::MAX, page: 0 };
}

impl Default for PageGroups {
    fn default() -> Self {
        Self::NONE
    }
}

/// FNV-1a: the same in every process, so that a replayed crawl decides the same.
pub(crate) fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let folded = bytes
        .iter()
        .fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    // FNV's high bits mix badly on short inputs; one multiply-shift round mends that.
    (folded ^ (folded >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ (folded >> 32)
}
