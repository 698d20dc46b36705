use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::ContentBackend;
use crate::error::BackendError;

/// Wraps a backend and writes what is appended in few large pieces: the system takes twice as long
/// for the same bytes in many small ones.
///
/// What waits here can be read, and is written before anything is made durable. If the disk is
/// full, a later append or `sync` may fail instead of the append itself.
pub struct GatheringBackend {
    inner: Arc<dyn ContentBackend>,
    limit_bytes: usize,
    gathered: Mutex<Gathered>,
}

/// The end of the object that was last appended to.
#[derive(Default)]
struct Gathered {
    name: String,
    /// So much of it was written.
    written_bytes: u64,
    bytes: Vec<u8>,
}

impl GatheringBackend {
    /// Gathers up to so many bytes in front of `inner`.
    pub fn new(inner: Arc<dyn ContentBackend>, limit_bytes: usize) -> Self {
        Self { inner, limit_bytes, gathered: Mutex::default() }
    }

    fn gathered(&self) -> MutexGuard<'_, Gathered> {
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what waits. After a failure it still waits: it can be written again.
    fn write_out(&self) -> Result<MutexGuard<'_, Gathered>, BackendError> {
        let mut gathered = self.gathered();
        gathered.write_out(&*self.inner)?;
        Ok(gathered)
    }
}

impl Gathered {
    fn write_out(&mut self, inner: &dyn ContentBackend) -> Result<(), BackendError> {
        if !self.bytes.is_empty() {
            inner.append(&self.name, self.written_bytes, &self.bytes)?;
            self.written_bytes += self.bytes.len() as u64;
            self.bytes.clear();
        }
        Ok(())
    }

    fn ends_at(&self) -> u64 {
        self.written_bytes + self.bytes.len() as u64
    }
}

impl ContentBackend for GatheringBackend {
    fn can_grow(&self) -> bool {
        self.inner.can_grow()
    }

    fn list(&self) -> Result<Vec<(String, u64)>, BackendError> {
        let _quiet = self.write_out()?;
        self.inner.list()
    }

    fn read(&self, name: &str, offset: u64, length: usize) -> Result<Vec<u8>, BackendError> {
        let mut gathered = self.gathered();
        let end = offset.saturating_add(length as u64);
        if gathered.name == name && end > gathered.written_bytes {
            gathered.write_out(&*self.inner)?;
        }
        drop(gathered);
        self.inner.read(name, offset, length)
    }

    fn append(&self, name: &str, offset: u64, bytes: &[u8]) -> Result<(), BackendError> {
        let mut gathered = self.gathered();
        let goes_on = gathered.name == name && gathered.ends_at() == offset;
        if !goes_on || gathered.bytes.len() + bytes.len() > self.limit_bytes {
            gathered.write_out(&*self.inner)?;
        }
        if goes_on && bytes.len() <= self.limit_bytes {
            gathered.bytes.extend_from_slice(bytes);
            return Ok(());
        }
        // Nothing is known of where it begins before something was written there.
        self.inner.append(name, offset, bytes)?;
        name.clone_into(&mut gathered.name);
        gathered.written_bytes = offset + bytes.len() as u64;
        Ok(())
    }

    fn overwrite(&self, name: &str, offset: u64, bytes: &[u8]) -> Result<(), BackendError> {
        let _quiet = self.write_out()?;
        self.inner.overwrite(name, offset, bytes)
    }

    fn sync(&self, name: &str) -> Result<(), BackendError> {
        let mut gathered = self.write_out()?;
        if !self.can_grow() {
            *gathered = Gathered::default();
        }
        // Others may append while the disk works.
        drop(gathered);
        self.inner.sync(name)
    }

    fn truncate(&self, name: &str, length: u64) -> Result<(), BackendError> {
        *self.write_out()? = Gathered::default();
        self.inner.truncate(name, length)
    }

    fn delete(&self, name: &str) -> Result<(), BackendError> {
        *self.write_out()? = Gathered::default();
        self.inner.delete(name)
    }
}
