//! One program with all tests of this crate that need no access to its insides: it is linked once.

mod blocks;
mod endless;
mod near;
mod ordering;
mod real_sites;
mod schedules;
mod sharing;
mod structure;
mod world;
