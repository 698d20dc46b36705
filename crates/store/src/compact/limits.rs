//! Where a frame ends: large ones are small on disk, and slow to read.

use super::options::CompactOptions;
use crate::bodies::MAX_ENTRIES;
use crate::media::Class;

/// Pictures and the like do not help each other, and one is read without the others.
const OTHER_FRAME_BYTES: usize = 256 << 10;
/// Versions of one page may fill a frame so many times over: in two frames the page would be there
/// twice, which costs more than their readers gain. The same holds for the pages of one time.
const GROUP_TIMES: usize = 4;
/// A frame by time ends at so many times the bytes of one by page: what repeats there repeats from one
/// time to the next.
const TIMES_BY_TIME: usize = 2;
/// A prefix may be as long as the bodies are on average, but at most so many times what is usual.
const PREFIX_TIMES: usize = 4;
/// A frame of less than a quarter takes its neighbour in.
const SMALL_PART: u64 = 4;

/// What makes a group of bodies that frames keep together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrangement {
    /// The versions of a page.
    ByPage,
    /// The pages of one time.
    ByTime,
}

/// The bounds of the frames of a site and class.
pub(super) struct Limits {
    class: Class,
    /// Where a frame ends in front of a group, and where it ends in any case.
    soft_bytes: usize,
    hard_bytes: usize,
    reading_bytes: u64,
    prefix_bytes: usize,
    arrangement: Arrangement,
}

impl Limits {
    pub(super) fn new(options: &CompactOptions, class: Class, arrangement: Arrangement) -> Self {
        let soft_bytes = match arrangement {
            Arrangement::ByPage => options.frame_bytes,
            Arrangement::ByTime => TIMES_BY_TIME * options.frame_bytes,
        };
        let hard_bytes = GROUP_TIMES * options.frame_bytes;
        let (reading_bytes, prefix_bytes) = (options.frame_reading_bytes, options.prefix_bytes);
        Self { class, soft_bytes, hard_bytes, reading_bytes, prefix_bytes, arrangement }
    }

    /// The most that frames share, where they hold so many bodies of so many bytes. By time it is what
    /// stays from one time to the next, and decoding it takes no longer than decoding a body.
    pub(super) fn prefix_bytes(&self, bodies: usize, bytes: u64) -> usize {
        let mean_bytes = (bytes / bodies.max(1) as u64) as usize;
        match self.arrangement {
            Arrangement::ByPage => self.prefix_bytes,
            Arrangement::ByTime => {
                mean_bytes.clamp(self.prefix_bytes, PREFIX_TIMES * self.prefix_bytes)
            }
        }
    }

    /// About how long frames are.
    pub(super) fn frame_bytes(&self) -> u64 {
        self.soft_bytes as u64
    }

    /// Whether a frame of so many bytes and bodies ends in front of a body of `bytes` bytes, which may
    /// begin a group. Groups stay together, because in two frames what they share would be there twice.
    pub(super) fn is_full(
        &self,
        (filled, bodies): (usize, usize),
        bytes: usize,
        begins_group: bool,
    ) -> bool {
        if filled == 0 {
            return false;
        }
        let reading_bytes = self.reading_bytes(filled as u64, bodies);
        match self.class {
            _ if bodies >= MAX_ENTRIES => true,
            Class::Other => filled + bytes > OTHER_FRAME_BYTES,
            Class::Html | Class::Text if begins_group => {
                filled >= self.soft_bytes - self.soft_bytes / 4
                    || reading_bytes >= self.reading_bytes
            }
            // A group of very many bodies must end somewhere.
            Class::Html | Class::Text => {
                filled + bytes > self.hard_bytes
                    || reading_bytes >= GROUP_TIMES as u64 * self.reading_bytes
            }
        }
    }

    /// Whether a frame of this size is too small to be left alone.
    pub(super) fn is_small(&self, bytes: u64, bodies: usize) -> bool {
        bytes < self.soft_bytes as u64 / SMALL_PART
            && self.reading_bytes(bytes, bodies) < self.reading_bytes / SMALL_PART
    }

    /// What is decoded when each body of a frame is read, where that ends a frame: feeds and scripts
    /// repeat each other more than a prefix can hold.
    fn reading_bytes(&self, bytes: u64, bodies: usize) -> u64 {
        match self.class {
            Class::Html => bytes * bodies as u64,
            Class::Text | Class::Other => 0,
        }
    }
}
