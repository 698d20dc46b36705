//! Bounds on the memory that waits between the threads of an import.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// Captures on their way from the reader to the store, in bytes, and what may be read ahead of its
/// turn: where storing is as quick as reading, both must not stop for each other.
const WAITING_BYTES: u64 = 48 << 20;
const AHEAD_BYTES: u64 = 64 << 20;
/// And where storing takes longer anyway.
const LITTLE_WAITING_BYTES: u64 = 8 << 20;
const LITTLE_AHEAD_BYTES: u64 = 16 << 20;
/// Buffers that are kept to be filled again, and how many go to one reader at a time.
const SPARE_MAX: usize = 32;
const SPARE_TOGETHER: usize = 16;

/// Bounds the bytes that wait between threads.
pub(crate) struct MemoryBudget {
    waiting_bytes: u64,
    /// What all readers together may hold of stretches whose turn has not come.
    pub(super) ahead_bytes: u64,
    /// Bytes in use; none once it is closed.
    used: Mutex<Option<u64>>,
    freed: Condvar,
    /// Buffers of captures that were stored.
    spare: Mutex<Vec<Vec<u8>>>,
    /// How far all files together were read.
    read_bytes: AtomicU64,
}

impl MemoryBudget {
    /// For a store that takes in what comes quickly, or for one that compares it first.
    pub(crate) fn new(is_quick: bool) -> Self {
        let (waiting_bytes, ahead_bytes) = match is_quick {
            true => (WAITING_BYTES, AHEAD_BYTES),
            false => (LITTLE_WAITING_BYTES, LITTLE_AHEAD_BYTES),
        };
        Self {
            waiting_bytes,
            ahead_bytes,
            used: Mutex::new(Some(0)),
            freed: Condvar::new(),
            spare: Mutex::default(),
            read_bytes: AtomicU64::new(0),
        }
    }

    fn used(&self) -> MutexGuard<'_, Option<u64>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes memory if it is free; none once it is closed.
    pub(crate) fn try_take(&self, bytes: u64) -> Option<bool> {
        let mut used = self.used();
        let used = used.as_mut()?;
        let is_free = !is_full(*used, bytes, self.waiting_bytes);
        if is_free {
            *used += bytes;
        }
        Some(is_free)
    }

    /// Waits until memory is free; none once it is closed.
    pub(crate) fn take(&self, bytes: u64) -> Option<()> {
        let is_full = |used: &mut Option<u64>| {
            used.is_some_and(|used| is_full(used, bytes, self.waiting_bytes))
        };
        let waited = self.freed.wait_while(self.used(), is_full);
        let mut used = waited.unwrap_or_else(PoisonError::into_inner);
        *used.as_mut()? += bytes;
        Some(())
    }

    /// Captures of so many bytes were stored.
    pub(crate) fn give_back(&self, bytes: u64) {
        if let Some(used) = self.used().as_mut() {
            *used = used.saturating_sub(bytes);
        }
        self.freed.notify_all();
    }

    fn spare(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Buffers that readers may fill again.
    pub(crate) fn give_buffers(&self, buffers: Vec<Vec<u8>>) {
        let mut spare = self.spare();
        let left = SPARE_MAX.saturating_sub(spare.len());
        spare.extend(buffers.into_iter().take(left));
    }

    pub(crate) fn take_buffers(&self) -> Vec<Vec<u8>> {
        let mut spare = self.spare();
        let kept = spare.len().saturating_sub(SPARE_TOGETHER);
        spare.split_off(kept)
    }

    /// The files were read so far.
    pub(crate) fn tell_read(&self, bytes: u64) {
        self.read_bytes.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn read_bytes(&self) -> u64 {
        self.read_bytes.load(Ordering::Relaxed)
    }

    /// Nothing more is wanted: no thread must wait for ever.
    pub(crate) fn close(&self) {
        *self.used() = None;
        self.freed.notify_all();
    }
}

/// Whether no more fits in; what is larger than the limit goes alone.
fn is_full(used: u64, bytes: u64, limit: u64) -> bool {
    used > 0 && used + bytes > limit
}

/// A queue between two threads that is bounded in bytes. It ends when either side is dropped.
pub(crate) fn lane<T>(limit_bytes: u64) -> (LaneIn<T>, LaneOut<T>) {
    let lane = Arc::new(Lane {
        queue: Mutex::new(Queue { waiting: VecDeque::new(), bytes: 0, has_ended: false }),
        changed: Condvar::new(),
        limit_bytes,
    });
    (LaneIn(lane.clone()), LaneOut(lane))
}

/// Where things go into a lane.
pub(crate) struct LaneIn<T>(Arc<Lane<T>>);

/// Where they come out.
pub(crate) struct LaneOut<T>(Arc<Lane<T>>);

struct Lane<T> {
    queue: Mutex<Queue<T>>,
    changed: Condvar,
    limit_bytes: u64,
}

struct Queue<T> {
    waiting: VecDeque<(T, u64)>,
    bytes: u64,
    has_ended: bool,
}

impl<T> Lane<T> {
    fn wait_while(&self, is_not_yet: impl Fn(&Queue<T>) -> bool) -> MutexGuard<'_, Queue<T>> {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_while(queue, |queue| !queue.has_ended && is_not_yet(queue));
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).has_ended = true;
        self.changed.notify_all();
    }
}

impl<T> LaneIn<T> {
    /// Waits until it fits in; none once nobody takes anything out.
    pub(crate) fn push(&self, thing: T, bytes: u64) -> Option<()> {
        let mut queue = self.0.wait_while(|queue| is_full(queue.bytes, bytes, self.0.limit_bytes));
        if queue.has_ended {
            return None;
        }
        queue.bytes += bytes;
        queue.waiting.push_back((thing, bytes));
        self.0.changed.notify_all();
        Some(())
    }
}

impl<T> LaneOut<T> {
    /// Waits for the next thing; none when nothing more comes.
    pub(crate) fn pop(&self) -> Option<T> {
        let mut queue = self.0.wait_while(|queue| queue.waiting.is_empty());
        let (thing, bytes) = queue.waiting.pop_front()?;
        queue.bytes -= bytes;
        self.0.changed.notify_all();
        Some(thing)
    }
}

impl<T> Drop for LaneIn<T> {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl<T> Drop for LaneOut<T> {
    fn drop(&mut self) {
        self.0.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_keeps_the_order_and_its_bound_and_ends_with_either_side() {
        let (into, out) = lane(10);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for number in 0..100_u64 {
                    // One that is larger than the lane goes alone.
                    let bytes = if number == 50 { 1000 } else { 6 };
                    assert_eq!(into.push(number, bytes), Some(()));
                    let queue = into.0.queue.lock().unwrap();
                    assert!(queue.bytes <= 10 || queue.waiting.len() == 1);
                }
            });
            let all: Vec<u64> = std::iter::from_fn(|| out.pop()).collect();
            assert_eq!(all, (0..100).collect::<Vec<_>>());
        });
        let (into, out) = lane(10);
        into.push((), 10);
        drop(out);
        assert_eq!(into.push((), 10), None);
    }
}
