//! One program with all tests of this crate that need no access to its insides: it is linked once.

mod apart;
mod browser;
mod cases;
mod fences;
mod language;
mod marking;
mod origins;
mod programs;
mod safety;
mod support;
mod web;
