//! One program with all tests of this crate that need no access to its insides: it is linked once.

mod equal;
mod hostile;
mod killed;
mod sites;
mod support;
