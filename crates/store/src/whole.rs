use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::pack::Location;

/// Chunks that are remembered, in about 50 bytes each.
const MAX_CHUNKS: usize = 1 << 16;

/// Chunks that were found to fit their checksums, so that each is looked at once.
#[derive(Default)]
pub(crate) struct Whole(Mutex<BTreeSet<Location>>);

impl Whole {
    pub(crate) fn contains(&self, place: Location) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&place)
    }

    pub(crate) fn note(&self, place: Location) {
        let mut chunks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if chunks.len() >= MAX_CHUNKS {
            chunks.clear();
        }
        chunks.insert(place);
    }
}
