//! The lab: the same frontier, deciders, extractors and store as in production, driven by a
//! simulated clock and web, and the experiments of the papers on them.
