//! WARC, WACZ, ARC and CDXJ: which records an export has, and what becomes of those that come in.
//! The formats themselves are in the `nenrin-warc` crate.
//!
//! An import goes through [`source`] (files), [`stretches`] (their records, read by several threads),
//! [`capture`] (what a record holds), [`reading`] (what it is), [`storer`] and [`commit`], then
//! [`large`] (captures that do not fit into memory) and [`revisits`] with [`originals`]; [`import`] starts the threads, [`memory`] and [`limits`] bound what waits between
//! them.

mod capture;
mod commit;
mod continued;
mod export;
mod found;
mod import;
mod index;
mod large;
mod limits;
mod memory;
mod originals;
mod output;
mod reading;
mod records;
mod revisits;
mod since;
mod source;
mod storer;
mod stretches;
mod unchanged;

pub use commit::Imported;
pub use export::{ExportOptions, Exported};
pub use import::{WarcFiles, WarcImportOptions};
pub use index::{CdxjIndex, index_warc};

/// Starts a named thread, so that profilers show where the time goes.
fn spawn<'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() + Send + 'scope,
) {
    let named = std::thread::Builder::new().name(name.to_owned());
    if let Err(error) = named.spawn_scoped(scope, work) {
        panic!("the system starts no more threads: {error}");
    }
}
