//! One program with all tests of this crate that need no access to its insides: it is linked once.

mod common;
mod compact;
mod crash;
mod damage;
mod directory;
mod fixtures;
mod keep;
mod large;
