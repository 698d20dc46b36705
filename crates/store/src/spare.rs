//! Buffers of frames that were read, to be filled again: the system takes as long to hand out
//! fresh memory as zstd takes to fill it.

use std::sync::{Arc, Mutex, PoisonError};

/// A frame and its prefix, for two readers at once.
const MAX_BUFFERS: usize = 4;
/// Larger ones are given back to the system.
const MAX_BUFFER_BYTES: usize = 10 << 20;

#[derive(Default)]
pub(crate) struct Spare(Mutex<Vec<Vec<u8>>>);

impl Spare {
    /// A buffer with anything or nothing in it.
    pub(crate) fn take(&self) -> Vec<u8> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.pop().unwrap_or_default()
    }

    /// Takes a buffer back, unless somebody still reads it.
    pub(crate) fn give(&self, buffer: Arc<Vec<u8>>) {
        if let Ok(buffer) = Arc::try_unwrap(buffer) {
            self.give_back(buffer);
        }
    }

    /// Takes a buffer back that nobody else has.
    pub(crate) fn give_back(&self, buffer: Vec<u8>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MAX_BUFFERS && buffer.capacity() <= MAX_BUFFER_BYTES {
            kept.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_reads_comes_back() {
        let spare = Spare::default();
        let read = Arc::new(vec![1; 10]);
        spare.give(read.clone());
        assert!(spare.take().is_empty());
        spare.give(read);
        assert_eq!(spare.take(), [1; 10]);
        spare.give(Arc::new(Vec::with_capacity(MAX_BUFFER_BYTES + 1)));
        (0..9).for_each(|_| spare.give(Arc::new(vec![2])));
        assert_eq!(spare.0.lock().unwrap().len(), MAX_BUFFERS);
    }
}
