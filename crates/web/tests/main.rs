//! One program with all tests of this crate that need no access to its insides: it is linked once.

mod access;
mod api;
mod browser;
mod browser_forms;
mod browser_second;
mod changes;
mod dates;
mod japanese;
mod pages;
mod scale;
mod structure;
#[path = "support/base.rs"]
mod support;
mod worth;
