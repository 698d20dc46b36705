//! The lab: the same frontier, deciders, extractors and store as in production, driven by a
//! simulated clock and web, and the experiments of the papers on them.
//!
//! Read in this order:
//! - [`crawl`]: the crawler on a simulated web, with faults and crashes, watched by checkers.
//!
//! Nothing in the product depends on the lab except the `lab` command.

pub mod crawl;
