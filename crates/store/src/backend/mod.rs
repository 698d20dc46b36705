//! Where packs are stored: a small contract, its implementations, and one suite that all of them run.

mod blocks;
#[cfg(test)]
mod contract;
mod faulty;
mod gathering;
mod local;
mod memory;
mod objects;
#[cfg(test)]
mod server;

pub use faulty::{FaultPlan, FaultyBackend};
pub use gathering::GatheringBackend;
pub use local::LocalFolder;
pub use memory::MemoryBackend;
pub use objects::{ObjectBackend, ObjectPlace};

use crate::error::BackendError;

/// Named objects that grow at their end until they are left alone for ever.
///
/// What a caller may rely on:
/// - an object is written by one writer, in order, by `append`; readers see what was appended at
///   once, in this process;
/// - nothing is durable before `sync` of that object has come back; afterwards its bytes and its
///   name survive a crash. Between two syncs a crash may keep any part of what was appended, also
///   a later part without an earlier one;
/// - `append` names the offset at which the object must end afterwards to begin: what an earlier,
///   failed append left beyond it is overwritten, so a failed append can simply be repeated;
/// - a backend that cannot extend an object once it was synced (an object store) says so by
///   [`can_grow`](Self::can_grow); the store then ends its pack at every sync;
/// - `delete` may be undone by a crash; deleting what is not there succeeds.
///
/// `NotFound`, `TooShort` and `NoRoom` are final; `Io` may be worth another try.
pub trait ContentBackend: Send + Sync {
    /// Whether an object may be appended to after it was synced.
    fn can_grow(&self) -> bool;
    /// All objects with their lengths, in the order of their names.
    fn list(&self) -> Result<Vec<(String, u64)>, BackendError>;
    /// Exactly `length` bytes from `offset`.
    fn read(&self, name: &str, offset: u64, length: usize) -> Result<Vec<u8>, BackendError>;
    /// Writes `bytes` at `offset`, cutting off what was beyond; offset 0 creates the object.
    fn append(&self, name: &str, offset: u64, bytes: &[u8]) -> Result<(), BackendError>;
    /// Makes all that was appended to the object durable, and its name.
    fn sync(&self, name: &str) -> Result<(), BackendError>;
    /// Writes `bytes` in place of those at `offset`, durably; the object stays as long as it is. Only
    /// where [`can_grow`](Self::can_grow).
    fn overwrite(&self, name: &str, offset: u64, bytes: &[u8]) -> Result<(), BackendError>;
    /// Cuts the object to `length` bytes. Only where [`can_grow`](Self::can_grow).
    fn truncate(&self, name: &str, length: u64) -> Result<(), BackendError>;
    /// Removes the object.
    fn delete(&self, name: &str) -> Result<(), BackendError>;
}
