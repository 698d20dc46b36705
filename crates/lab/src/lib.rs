//! The lab: the same frontier, deciders, extractors and store as in production, driven by a
//! simulated clock and web, and the experiments of the papers on them.
//!
//! Read in this order:
//! - [`report`]: the page of plots and tables that every experiment writes, and its `results.json`;
//! - [`updates`]: true change times of pages, read from logs;
//! - [`revisit`]: which schedule sees the most versions (paper 004);
//! - [`budget`]: how a fixed number of visits is best shared out (paper 002);
//! - [`LabError`]: what can go wrong in an experiment.
//!
//! The lab prints nothing and reads no arguments: the binary's `lab` command does.

pub mod budget;
mod error;
pub mod report;
pub mod revisit;
pub mod updates;

pub use error::LabError;
