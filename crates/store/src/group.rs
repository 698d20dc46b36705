//! Bodies that wait in memory, so that the records of their versions are written in front of them: if
//! the pack is cut short, the records of everything in front of the cut are there.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::digest::BodyKey;
use crate::pack::Location;

/// No pack has this number.
const WAITING: u64 = u64::MAX;

#[derive(Default)]
pub(crate) struct Group {
    bodies: BTreeMap<u64, (BodyKey, Arc<Vec<u8>>)>,
    bytes: usize,
    next: u64,
}

impl Group {
    /// Keeps the payload of a bodies chunk, and says by which location it is read meanwhile.
    pub(crate) fn keep(&mut self, key: BodyKey, payload: Vec<u8>) -> Location {
        let offset = self.next;
        self.next += 1;
        self.bytes += payload.len();
        self.bodies.insert(offset, (key, Arc::new(payload)));
        Location { pack: WAITING, offset }
    }

    /// What all of them take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The one that is written next.
    pub(crate) fn first(&self) -> Option<(BodyKey, Arc<Vec<u8>>)> {
        self.bodies.first_key_value().map(|(_, body)| body.clone())
    }

    /// The first one was written.
    pub(crate) fn remove_first(&mut self) {
        if let Some((_, (_, payload))) = self.bodies.pop_first() {
            self.bytes -= payload.len();
        }
    }

    pub(crate) fn get(&self, place: Location) -> Option<Arc<Vec<u8>>> {
        let (_, payload) = self.bodies.get(&place.offset).filter(|_| is_waiting(place))?;
        Some(payload.clone())
    }
}

/// Whether this is the location of a body that was not yet written when it was asked for.
pub(crate) fn is_waiting(place: Location) -> bool {
    place.pack == WAITING
}
