//! Decides which newly found page is collected first: incremental PageRank (paper 003), the orders
//! it is compared with, and our own order.
//!
//! Read in this order:
//! - [`CrawlOrder`]: the contract that the live frontier and the lab use, with [`NewPage`],
//!   [`PageIndex`] and [`ServerIndex`];
//! - [`Strategy`]: the orders by name, from breadth-first to omniscient;
//! - [`AutoOrder`]: ours, the default, with its snapshot.
//!
//! This crate stores no links and no URLs, reads no clock and no file, and does not decide when a
//! server may be visited: the frontier does.

mod auto;
mod contract;
mod dary;
mod error;
mod incremental;
mod opic;
mod page_rank;
mod queues;
mod simple;
mod snapshot;
mod strategy;

pub use auto::AutoOrder;
pub use contract::{CrawlOrder, HandOn, NewPage, PageIndex, ServerIndex};
pub use error::OrderError;
pub use strategy::Strategy;
