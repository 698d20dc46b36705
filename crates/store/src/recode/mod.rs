//! Bodies that are compressed already, written in a form that compresses better.
//!
//! Every recoding is undone and compared when it is made; whatever is odd stays as it was. The
//! decoders are foreign code on hostile input: their panics are caught and mean "as it was".

mod blocks;
mod deflate;
mod foreign;
mod gif;
mod jpeg;
mod lepton;
mod lzma;
mod pixels;
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
/// A picture that will take longer to restore is slow. What is done says how long, not the
/// clock, so that an archive comes out the same on a busy machine.
const QUICK: Duration = Duration::from_micros(3300);

/// How a body was rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recoding {
    Gzip = 1,
    Gif = 2,
    Jpeg = 3,
    /// The front of a JPEG, the rest as it was.
    JpegFront = 4,
    Png = 5,
    /// The front of a PNG, the rest as it was.
    PngFront = 6,
}

impl Recoding {
    fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Gzip,
            2 => Self::Gif,
            3 => Self::Jpeg,
            4 => Self::JpegFront,
            5 => Self::Png,
            6 => Self::PngFront,
            _ => return None,
        })
    }

    /// Whether restoring it as a whole will be slow.
    pub(crate) fn is_slow(self, body: &[u8]) -> bool {
        self.expected(body).is_none_or(|time| time > QUICK)
    }

    /// About how long restoring it as a whole takes, as far as its head and length show.
    pub(crate) fn expected(self, body: &[u8]) -> Option<Duration> {
        match self {
            Self::Jpeg | Self::JpegFront => jpeg::expected(body),
            Self::Png | Self::PngFront => png::expected(body),
            Self::Gif => Some(gif::expected(body.len())),
            Self::Gzip => Some(Duration::ZERO),
        }
    }

    /// About what recoding it as a whole will save, to choose between bodies that are slow to
    /// restore. As much of most as can be restored quickly is recoded in any case.
    pub(crate) fn expected_saving(self, body: &[u8]) -> usize {
        let whole = match self {
            Self::Jpeg | Self::JpegFront => body.len() / 6,
            Self::Png | Self::PngFront => body.len() / 2,
            Self::Gif => body.len() / 3,
            Self::Gzip => 0,
        };
        self.expected(body).map_or(whole, |time| beyond_quick(whole, time))
    }

    /// By the first bytes: the content type does not matter for exactness, and is often wrong.
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

/// What is beyond the part that is quick to restore.
fn beyond_quick(bytes: usize, time: Duration) -> usize {
    let quick = QUICK.as_micros() as usize;
    bytes.saturating_sub(bytes * quick / (time.as_micros() as usize).max(1))
}

/// So many microseconds for each KiB.
fn per_kib(bytes: usize, us: f64) -> f64 {
    bytes as f64 / 1024.0 * us
}

fn microseconds(us: f64) -> Duration {
    Duration::from_micros(us as u64)
}

/// Whether a GIF of this length is recoded while collecting, when nothing can be chosen yet. It may
/// be slow: few are, and these take the slots of other pictures when compacting.
pub(crate) fn is_gif_to_put(bytes: usize) -> bool {
    gif::expected(bytes) <= 2 * QUICK
}

/// Whether a GIF that was recoded while collecting is slow to restore.
pub(crate) fn is_slow_gif(code: u8, bytes: usize) -> bool {
    code == Recoding::Gif as u8 && gif::expected(bytes) > QUICK
}

/// How much of a body is recoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All of it, however long its readers wait.
    Whole,
    /// As much as can be restored quickly: all of it, its front, or nothing.
    Quick,
}

impl Extent {
    fn limit(self) -> Option<Duration> {
        match self {
            Self::Whole => None,
            Self::Quick => Some(QUICK),
        }
    }
}

/// A body in a smaller form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Recoded {
    pub(crate) recoding: Recoding,
    pub(crate) bytes: Vec<u8>,
    /// How much of the body is not as it was.
    taken_bytes: usize,
    /// About how long it takes to restore.
    expected: Duration,
}

impl Recoded {
    pub(crate) fn is_slow(&self) -> bool {
        self.expected > QUICK
    }

    /// Whether a picture became so much smaller that its readers may wait for it.
    pub(crate) fn is_worth_it(&self, body: &[u8]) -> bool {
        let saved = body.len().checked_sub(self.bytes.len());
        saved.is_some_and(|saved| saved >= self.taken_bytes / 32)
    }
}

/// Rewrites a body, if it can be undone exactly and within `cap`.
pub(crate) fn recode(
    body: &[u8],
    recoding: Recoding,
    extent: Extent,
    cap: Duration,
) -> Option<Recoded> {
    let work = || {
        let recoded = match recoding {
            Recoding::Jpeg => jpeg::recode(body, extent.limit()),
            Recoding::Png => png::recode(body, extent.limit()),
            Recoding::Gif => gif::recode(body, extent.limit()),
            Recoding::Gzip => deflate::recode_gzip(body),
            Recoding::JpegFront | Recoding::PngFront => None,
        }?;
        let undo = || undo(&recoded.bytes, recoded.recoding);
        let begin = spent();
        let undone = undo()?;
        let mut undo_took = spent().saturating_sub(begin);
        if undo_took > cap / 2 {
            // What was slow once may have been disturbed: the second time is nearer to the truth.
            let begin = spent();
            undo()?;
            undo_took = undo_took.min(spent().saturating_sub(begin));
        }
        (undone == body && undo_took <= cap).then_some(recoded)
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
        Recoding::Png => png::restore(stored, png::Form::Pixels),
        Recoding::Gif => gif::restore(stored),
        Recoding::Gzip => deflate::restore_gzip(stored),
        Recoding::JpegFront => jpeg::restore_front(stored),
        Recoding::PngFront => png::restore(stored, png::Form::Front),
    }
    .ok()
}
