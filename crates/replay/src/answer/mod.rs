//! Answers over HTTP: an archived answer prepared for a browser, and what surrounds it.

mod cache;
mod conditional;
mod encoding;
pub(crate) mod headers;
mod prepare;
mod range;
mod streamed;

pub(crate) use cache::{PageCache, PageKey};
pub(crate) use conditional::is_unchanged;
pub(crate) use prepare::{FRONT_BYTES, Prepared, Preparing, STREAMED_FROM_BYTES};
pub(crate) use range::serve_range;
pub(crate) use streamed::Streamed;
