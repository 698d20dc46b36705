//! How much of an import is under way between its threads.

use crate::ingest::REMEMBERED;

/// Visits put before they are made durable and committed: pages have their records all over the
/// state, so that a commit of few writes as much as one of many.
pub(super) const BATCH: usize = 3500;
/// Toward the end of the files commits are smaller, so that little is left to do when all is read;
/// but not smaller than this.
pub(super) const BATCH_MIN: usize = 500;
/// Bytes put before they are made durable and committed: what is done again after an interruption.
pub(super) const BATCH_BYTES: u64 = 192 << 20;
/// Captures, or answers to them, that go to another thread together: waking it for each takes as
/// long as storing a small one.
pub(super) const TOGETHER: usize = 24;
/// And their size in bytes.
pub(super) const TOGETHER_BYTES: u64 = 1 << 20;
/// As many of those may wait for a storer, which waits now and then while others write.
pub(super) const WAITING: usize = 128;
/// And so many for the commit: storing goes on while one is made.
pub(super) const STORED_WAITING: usize = 256;
/// Threads that check, compress and store captures.
pub(super) const STORERS_MAX: usize = 8;
/// Visits that may be on their way to their commit: a batch that is filled, one that is being
/// committed, and what waits or is in the hands of a storer.
const UNCOMMITTED_MAX: usize = 2 * BATCH + (STORED_WAITING + STORERS_MAX) * TOGETHER;
// Each of them must be found by those that come after it.
const _: () = assert!(UNCOMMITTED_MAX <= REMEMBERED);
