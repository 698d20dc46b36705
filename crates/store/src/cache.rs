use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::pack::Location;

/// Recently decoded chunks, by location, up to a number of bytes.
pub(crate) struct Cache<T> {
    limit_bytes: usize,
    kept: Mutex<Kept<T>>,
}

struct Kept<T> {
    clock: u64,
    bytes: usize,
    by_place: BTreeMap<Location, (u64, usize, Arc<T>)>,
    by_age: BTreeMap<u64, Location>,
}

impl<T> Cache<T> {
    pub(crate) fn new(limit_bytes: usize) -> Self {
        let kept = Kept { clock: 0, bytes: 0, by_place: BTreeMap::new(), by_age: BTreeMap::new() };
        Self { limit_bytes, kept: Mutex::new(kept) }
    }

    pub(crate) fn get(&self, place: Location) -> Option<Arc<T>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clock += 1;
        let now = kept.clock;
        let (age, _, value) = kept.by_place.get_mut(&place)?;
        let (before, value) = (std::mem::replace(age, now), value.clone());
        kept.by_age.remove(&before);
        kept.by_age.insert(now, place);
        Some(value)
    }

    /// Whether something of this size would be kept.
    pub(crate) fn takes(&self, bytes: usize) -> bool {
        bytes <= self.limit_bytes
    }

    pub(crate) fn put(&self, place: Location, bytes: usize, value: Arc<T>) {
        if !self.takes(bytes) {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clock += 1;
        let now = kept.clock;
        kept.remove(place);
        kept.by_place.insert(place, (now, bytes, value));
        kept.by_age.insert(now, place);
        kept.bytes += bytes;
        while kept.bytes > self.limit_bytes {
            let Some((_, oldest)) = kept.by_age.first_key_value() else { break };
            let oldest = *oldest;
            kept.remove(oldest);
        }
    }
}

impl<T> Kept<T> {
    fn remove(&mut self, place: Location) {
        if let Some((age, bytes, _)) = self.by_place.remove(&place) {
            self.by_age.remove(&age);
            self.bytes -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_goes_first_and_the_limit_holds() {
        let cache = Cache::new(10);
        let place = |offset| Location { pack: 1, offset };
        for offset in 0..3 {
            cache.put(place(offset), 4, Arc::new(offset));
            assert!(cache.get(place(0)).is_some());
        }
        assert!(cache.get(place(1)).is_none());
        assert!(cache.get(place(2)).is_some());
        assert!(cache.takes(10) && !cache.takes(11));
        cache.put(place(9), 11, Arc::new(9));
        assert!(cache.get(place(9)).is_none());
    }
}
