//! One program with all tests of this crate that need no access to its insides: it is linked once.
#![expect(clippy::unwrap_used, reason = "what cannot be set up must fail the test")]

mod common;
mod compact;
mod crash;
mod damage;
mod directory;
mod fixtures;
mod keep;
mod large;
