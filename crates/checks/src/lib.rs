//! What must hold for any bytes that come from outside.
//!
//! Read in this order:
//! - [`CHECKS`]: every check by its name; the fuzzer (`scripts/fuzz`) runs each, and so do the
//!   tests, over seeds and changed seeds;
//! - `web`: what servers send: addresses, heads, robots.txt, codings, pages, sitemaps, feeds;
//! - `replay`: archived bodies on their way to a browser;
//! - `files`: packs, and the files of other archives;
//! - `typed`: what people type and hand over: searches, selectors, lists of sites, cookies.
//!
//! A check panics if something does not hold. Nothing of the product may know this crate.
#![expect(clippy::expect_used, reason = "a check ends with a panic")]

mod files;
mod replay;
mod typed;
mod web;

/// A check of any bytes; it panics if something does not hold.
pub type Check = fn(&[u8]);

/// Every check by its name.
pub const CHECKS: [(&str, Check); 21] = [
    ("url", web::url),
    ("http_head", web::http_head),
    ("robots", web::robots),
    ("decoding", web::decoding),
    ("charset", web::charset),
    ("html", web::html),
    ("css", web::css),
    ("comparison", web::comparison),
    ("sitemap", web::sitemap),
    ("feed", web::feed),
    ("exchange", web::exchange),
    ("replay_html", replay::html),
    ("replay_part", replay::part),
    ("replay_path", replay::path),
    ("cut", files::cut),
    ("pack", files::pack),
    ("restore", files::restore),
    ("warc", files::warc),
    ("cdxj_zip", files::cdxj_and_zip),
    ("pdf", files::pdf),
    ("typed", typed::typed),
];

/// The check of this name.
pub fn named(name: &str) -> Option<Check> {
    CHECKS.iter().find(|(known, _)| *known == name).map(|(_, check)| *check)
}

/// The first byte, to choose by, and the rest.
fn chosen(bytes: &[u8]) -> (usize, &[u8]) {
    bytes.split_first().map_or((0, bytes), |(first, rest)| (usize::from(*first), rest))
}
