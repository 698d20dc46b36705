//! Bodies that are compressed already, written in a form that compresses better.
//!
//! Every recoding is undone and compared when it is made; whatever is odd stays as it was. The
//! decoders are foreign code on hostile input: their panics are caught and mean "as it was".

mod deflate;
mod foreign;
mod gif;
mod jpeg;
mod lzma;
mod png;
mod rows;

use std::time::Duration;

pub(crate) use self::deflate::gzip_plain;
use self::foreign::guarded;
pub use self::foreign::panic_is_expected;
use crate::wire::Malformed;

/// Smaller bodies gain too little.
const MIN_BYTES: usize = 128;
/// Larger ones take too much memory and time.
const MAX_BYTES: usize = 8 << 20;
/// What may come out of a body, so that a bomb stays a body.
const MAX_PLAIN_BYTES: usize = 32 << 20;
/// A picture that will take longer to give back is slow. Bytes say how long, not the clock, so
/// that an archive comes out the same on a busy machine.
const QUICK: Duration = Duration::from_micros(4800);
/// What a kilobyte takes to give back, as seen on a busy machine (docs/benchmarks.md).
const JPEG_US_PER_KB: u64 = 100;
/// It takes twice this, but a GIF is recoded while collecting, when nothing can be chosen yet, and
/// few are large: this lets those up to 120 KiB pass.
const GIF_US_PER_KB: u64 = 40;
/// A PNG takes its time by what comes in, and by its rows, which are filtered and deflated again.
const PNG_US_PER_KB: u64 = 0;
const PNG_ROWS_US_PER_KB: u64 = 6;

/// How a body was rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recoding {
    Jpeg = 1,
    /// Only read: the rows stood plain, for zstd to compress.
    PngRows = 2,
    /// Only read: the pixels stood plain.
    GifPixels = 3,
    Gzip = 4,
    Png = 5,
    /// Only read: pixels by LZMA, the table cleared in one of three ways.
    GifWays = 6,
    Gif = 7,
}

impl Recoding {
    fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Jpeg,
            2 => Self::PngRows,
            3 => Self::GifPixels,
            4 => Self::Gzip,
            5 => Self::Png,
            6 => Self::GifWays,
            7 => Self::Gif,
            _ => return None,
        })
    }

    /// Whether giving it back will be slow for the one who reads it.
    pub(crate) fn is_slow(self, body: &[u8]) -> bool {
        self.expected(body).is_none_or(|time| time > QUICK)
    }

    /// About how long giving it back takes; unknown for a PNG whose rows are interlaced.
    pub(crate) fn expected(self, body: &[u8]) -> Option<Duration> {
        let kb = |bytes: usize, us: u64| Duration::from_micros(bytes as u64 * us / 1024);
        Some(match self {
            Self::Jpeg => kb(body.len(), JPEG_US_PER_KB),
            Self::Png | Self::PngRows => {
                kb(body.len(), PNG_US_PER_KB) + kb(rows::pixel_bytes(body)?, PNG_ROWS_US_PER_KB)
            }
            Self::Gif | Self::GifPixels | Self::GifWays => kb(body.len(), GIF_US_PER_KB),
            Self::Gzip => Duration::ZERO,
        })
    }

    /// About what it will save, to choose between bodies that are slow to give back.
    pub(crate) fn expected_saving(self, body: &[u8]) -> usize {
        match self {
            Self::Jpeg => body.len() / 5,
            Self::Png | Self::PngRows => body.len() / 2,
            Self::Gif | Self::GifPixels | Self::GifWays => body.len() / 3,
            Self::Gzip => 0,
        }
    }

    /// By the first bytes: the content type does not matter for exactness, and often lies.
    pub(crate) fn for_body(body: &[u8]) -> Option<Self> {
        if !(MIN_BYTES..=MAX_BYTES).contains(&body.len()) {
            return None;
        }
        match body {
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Some(Self::Png),
            [b'G', b'I', b'F', b'8', ..] => Some(Self::Gif),
            [0x1f, 0x8b, 8, ..] => Some(Self::Gzip),
            _ => None,
        }
    }
}

/// Whether a picture became so much smaller that its readers may wait for it.
pub(crate) fn is_worth_it(body: &[u8], recoded: &[u8]) -> bool {
    body.len().checked_sub(recoded.len()).is_some_and(|saved| saved >= body.len() / 32)
}

/// Rewrites a body, if it can be undone exactly and within `cap`.
pub(crate) fn recode(body: &[u8], recoding: Recoding, cap: Duration) -> Option<Vec<u8>> {
    let work = || {
        let bytes = match recoding {
            Recoding::Jpeg => jpeg::recode(body),
            Recoding::Png => png::recode(body),
            Recoding::Gif => gif::recode(body),
            Recoding::Gzip => deflate::recode_gzip(body),
            Recoding::PngRows | Recoding::GifPixels | Recoding::GifWays => None,
        }?;
        let begin = spent();
        let undone = undo(&bytes, recoding)?;
        let mut undo_took = spent().saturating_sub(begin);
        if undo_took > cap / 2 {
            // What was slow once may have been disturbed: the second time is nearer to the truth.
            let begin = spent();
            undo(&bytes, recoding)?;
            undo_took = undo_took.min(spent().saturating_sub(begin));
        }
        (undone == body && undo_took <= cap).then_some(bytes)
    };
    guarded(work)
}

/// The time that this thread has worked. It decides about space, never about content.
#[cfg(target_os = "linux")]
fn spent() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
}

/// The time that has passed, where the thread's own is not to be had.
#[cfg(not(target_os = "linux"))]
#[expect(clippy::disallowed_methods, reason = "it decides about space, never about content")]
fn spent() -> Duration {
    static BEGIN: std::sync::LazyLock<std::time::Instant> =
        std::sync::LazyLock::new(std::time::Instant::now);
    BEGIN.elapsed()
}

/// The body again. `code` is what the directory of the chunk says.
pub(crate) fn restore(stored: &[u8], code: u8) -> Result<Vec<u8>, Malformed> {
    let recoding = Recoding::from_byte(code).ok_or(Malformed("unknown recoding"))?;
    guarded(|| undo(stored, recoding)).ok_or(Malformed("recoding cannot be undone"))
}

fn undo(stored: &[u8], recoding: Recoding) -> Option<Vec<u8>> {
    match recoding {
        Recoding::Jpeg => jpeg::restore(stored),
        Recoding::PngRows => png::restore(stored, png::Form::Filtered),
        Recoding::GifPixels => gif::restore(stored, gif::Form::PlainWays),
        Recoding::GifWays => gif::restore(stored, gif::Form::Ways),
        Recoding::Png => png::restore(stored, png::Form::Pixels),
        Recoding::Gif => gif::restore(stored, gif::Form::Clears),
        Recoding::Gzip => deflate::restore_gzip(stored),
    }
    .ok()
}
