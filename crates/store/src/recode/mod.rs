//! Bodies that are compressed already, written in a form that compresses better.
//!
//! Every recoding is undone and compared when it is made; whatever is odd stays as it was. The
//! decoders are foreign code on hostile input: their panics are caught and mean "as it was".

mod deflate;
mod gif;
mod jpeg;
mod png;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

pub(crate) use self::deflate::gzip_plain;
use crate::wire::Malformed;

/// Smaller bodies gain too little.
const MIN_BYTES: usize = 128;
/// Larger ones take too much memory and time.
const MAX_BYTES: usize = 8 << 20;
/// What may come out of a body, so that a bomb stays a body.
const MAX_PLAIN_BYTES: usize = 32 << 20;

/// How a body was rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recoding {
    Jpeg = 1,
    Png = 2,
    Gif = 3,
    Gzip = 4,
}

impl Recoding {
    fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Jpeg,
            2 => Self::Png,
            3 => Self::Gif,
            4 => Self::Gzip,
            _ => return None,
        })
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

/// Rewrites a body, if it can be undone exactly and within `cap`.
pub(crate) fn recode(body: &[u8], recoding: Recoding, cap: Duration) -> Option<Vec<u8>> {
    let work = || {
        let recoded = match recoding {
            Recoding::Jpeg => jpeg::recode(body),
            Recoding::Png => png::recode(body),
            Recoding::Gif => gif::recode(body),
            Recoding::Gzip => deflate::recode_gzip(body),
        }?;
        #[expect(
            clippy::disallowed_methods,
            reason = "how long undoing takes is measured; it decides about space, never about content"
        )]
        let begin = Instant::now();
        let undone = undo(&recoded, recoding)?;
        (undone == body && begin.elapsed() <= cap).then_some(recoded)
    };
    catch_unwind(AssertUnwindSafe(work)).ok().flatten()
}

/// The body again. `code` is what the directory of the chunk says.
pub(crate) fn restore(stored: &[u8], code: u8) -> Result<Vec<u8>, Malformed> {
    let recoding = Recoding::from_byte(code).ok_or(Malformed("unknown recoding"))?;
    catch_unwind(AssertUnwindSafe(|| undo(stored, recoding)))
        .ok()
        .flatten()
        .ok_or(Malformed("recoding cannot be undone"))
}

fn undo(stored: &[u8], recoding: Recoding) -> Option<Vec<u8>> {
    match recoding {
        Recoding::Jpeg => jpeg::restore(stored),
        Recoding::Png => png::restore(stored),
        Recoding::Gif => gif::restore(stored),
        Recoding::Gzip => deflate::restore_gzip(stored),
    }
    .ok()
}
