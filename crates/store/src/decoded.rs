use crate::bodies::{BodiesHead, BodyEntry};
use crate::media::Class;
use crate::pack::Location;

/// A body in its chunk.
pub(crate) struct Stored {
    pub(crate) place: Location,
    pub(crate) group: u32,
    pub(crate) class: Class,
    pub(crate) depth: u8,
    pub(crate) entry: BodyEntry,
    pub(crate) bytes: Vec<u8>,
}

/// A bodies chunk as it was decoded: all of it, or its front.
pub(crate) struct Decoded {
    pub(crate) head: BodiesHead,
    pub(crate) raw: Vec<u8>,
}

impl Decoded {
    pub(crate) fn weight_bytes(&self) -> usize {
        self.raw.capacity() + self.head.entries.len() * size_of::<BodyEntry>()
    }
}
