//! The lab: the same frontier, deciders, extractors and store as in production, driven by a
//! simulated clock and web, and the experiments of the papers on them.
//!
//! Read in this order:
//! - [`report`]: the page of plots and tables that every experiment writes, and its `results.json`;
//! - [`structure`]: which parts of a server changed, paper 000's tables and figures and `auto`;
//! - [`LabError`]: what can go wrong in an experiment.
//!
//! The lab prints nothing and reads no arguments: the binary's `lab` command does.

mod error;
pub mod report;
pub mod structure;

pub use error::LabError;
