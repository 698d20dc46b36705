//! Answers over HTTP: an archived answer prepared for a browser, and what surrounds it.

mod cache;
mod conditional;
mod encoding;
pub(crate) mod headers;
mod prepare;
mod range;

pub(crate) use cache::{PageCache, PageKey};
pub(crate) use conditional::is_unchanged;
pub(crate) use prepare::{Prepared, Preparing};
pub(crate) use range::serve_range;
