//! The lab: the same frontier, deciders, extractors and store as in production, driven by a
//! simulated clock and web, and the experiments of the papers on them.
//!
//! Read in this order:
//! - [`report`]: the page of plots and tables that every experiment writes, and its `results.json`;
//! - [`crawl`]: the crawler on a simulated web, with faults and crashes, watched by checkers;
//! - [`order`]: which new page first (paper 003);
//! - [`updates`]: true change times of pages, read from logs;
//! - [`archive`]: rounds, link graph and change times of a real archive, for the experiments below;
//! - [`structure`]: which parts of a server changed, paper 000's tables and figures and `auto`;
//! - [`revisit`]: which schedule sees the most versions (paper 004);
//! - [`budget`]: how a fixed number of visits is best divided (paper 002);
//! - [`storage`]: the size of visits in our archive and in others (paper 001);
//! - [`demo`]: a small website that changes in fast motion;
//! - [`summary`]: results as short tables for people;
//! - [`experiment`]: the experiments as commands, with their arguments;
//! - [`LabError`]: errors of an experiment.
//!
//! The lab prints nothing: the binary's `lab` command does. Nothing in the product depends on the
//! lab except that command.

pub mod archive;
pub mod budget;
pub mod crawl;
pub mod demo;
mod error;
pub mod experiment;
pub mod order;
mod parallel;
pub mod report;
pub mod revisit;
pub mod storage;
pub mod structure;
pub mod summary;
pub mod updates;
pub mod workers;

pub use error::LabError;
