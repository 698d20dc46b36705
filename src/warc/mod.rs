//! Between the archive and WARC: which records an export has, and what becomes of those that come
//! in. The formats themselves are in the `nenrin-warc` crate.
//!
//! An import goes through [`source`] (files), [`stretches`] (their records, read by several threads),
//! [`capture`] (what a record holds), [`reading`] (what it is), [`storer`] and [`import`], which
//! commits, and then [`revisits`]; [`room`] bounds what waits in between.

mod capture;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod output;
mod reading;
mod revisits;
mod room;
pub(crate) mod source;
mod storer;
mod stretches;
pub(crate) mod unchanged;

/// Starts a thread under a name, by which tools tell apart what takes the time.
fn spawn<'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() + Send + 'scope,
) {
    let named = std::thread::Builder::new().name(name.to_owned());
    if let Err(error) = named.spawn_scoped(scope, work) {
        panic!("the system gives no thread: {error}");
    }
}
