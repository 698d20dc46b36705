//! Between the archive and WARC: which records an export has, and what becomes of those that come
//! in. The formats themselves are in the `nenrin-warc` crate.

pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod output;
pub(crate) mod source;
pub(crate) mod unchanged;
