use std::time::Duration;

/// How to compact.
#[derive(Clone, Debug)]
pub struct CompactOptions {
    /// zstd level; 19 is where the gain per second ends.
    pub level: i32,
    /// Raw bytes in a frame: with larger frames the sum is smaller, and reading one page is slower.
    /// On average half of a frame is decoded for a page, but most of it is copied from a few
    /// positions. Versions of one page may together take four times that.
    pub frame_bytes: usize,
    /// Raw bytes of a frame of HTML times its bodies: what is decoded when each of them is read. Many
    /// small pages make a smaller frame than few large ones, for which its end costs as much
    /// and saves less. Versions of one page may be four times that together.
    pub frame_reading_bytes: u64,
    /// The most that the frames of a site share. It is decoded for every page that is read, and
    /// takes almost as long as the frame itself.
    pub prefix_bytes: usize,
    /// So many versions of a site are arranged together at most, in about 400 bytes of memory each;
    /// the pages of a larger site are taken in portions.
    pub portion_versions: usize,
    /// Whether JPEG, PNG and GIF are recoded.
    pub recode_images: bool,
    /// A picture that takes longer to restore stays as it is.
    pub recode_cap: Duration,
    /// Of so many versions of the archive, or fewer, one may become slow to read.
    pub versions_per_slow: u64,
    /// Rewrites every site, whether or not it brought something new.
    pub everything: bool,
    /// Bytes that are free for it. Nothing is begun that may need more. `None` means that it is not
    /// checked.
    pub room_bytes: Option<u64>,
}

impl Default for CompactOptions {
    fn default() -> Self {
        Self {
            level: 19,
            frame_bytes: 4 << 20,
            frame_reading_bytes: 96 << 20,
            prefix_bytes: 256 << 10,
            portion_versions: 1 << 16,
            recode_images: true,
            recode_cap: Duration::from_millis(100),
            versions_per_slow: 150,
            everything: false,
            room_bytes: None,
        }
    }
}

/// The result of compacting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactReport {
    /// All files of the store before.
    pub bytes_before: u64,
    /// And after.
    pub bytes_after: u64,
    /// Sites that were written again.
    pub sites: u64,
    /// Frames that were compressed.
    pub frames_written: u64,
    /// Frames that were copied as they were.
    pub frames_copied: u64,
    /// Raw bytes that were compressed.
    pub compressed_bytes: u64,
    /// Pictures and the like that were recoded.
    pub recoded: u64,
    /// Those among them that are slow to read.
    pub slow: u64,
    /// Packs that hold something unreadable and were therefore kept.
    pub packs_kept_damaged: Vec<String>,
}
