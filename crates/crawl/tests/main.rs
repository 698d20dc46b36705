//! One program with all tests of this crate that need no access to its insides: it is linked once.
#![expect(clippy::unwrap_used, reason = "what cannot be set up must fail the test")]

mod blocks;
mod endless;
mod near;
mod ordering;
mod real_sites;
mod schedules;
mod sharing;
mod structure;
mod world;
