use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::ContentBackend;
use crate::error::BackendError;

/// Objects in memory: for tests and for the lab.
pub struct MemoryBackend {
    objects: Mutex<BTreeMap<String, Object>>,
    can_grow: bool,
}

#[derive(Clone, Default)]
struct Object {
    bytes: Vec<u8>,
    synced: bool,
}

impl Default for MemoryBackend {
    fn default() -> Self {
        Self { objects: Mutex::default(), can_grow: true }
    }
}

impl MemoryBackend {
    /// One that, like an object store, takes an object only as a whole.
    pub fn write_once() -> Self {
        Self { can_grow: false, ..Self::default() }
    }

    /// Changes an object behind everybody's back, as decay would.
    pub fn tamper(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        if let Some(object) = self.objects().get_mut(name) {
            change(&mut object.bytes);
        }
    }

    /// Puts an object there, as a person who copies files would.
    pub fn plant(&self, name: &str, bytes: Vec<u8>) {
        self.objects().insert(name.to_owned(), Object { bytes, synced: true });
    }

    fn objects(&self) -> MutexGuard<'_, BTreeMap<String, Object>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn not_found(name: &str) -> BackendError {
    BackendError::NotFound { name: name.to_owned() }
}

impl ContentBackend for MemoryBackend {
    fn can_grow(&self) -> bool {
        self.can_grow
    }

    fn list(&self) -> Result<Vec<(String, u64)>, BackendError> {
        let objects = self.objects();
        Ok(objects.iter().map(|(name, o)| (name.clone(), o.bytes.len() as u64)).collect())
    }

    fn read(&self, name: &str, offset: u64, length: usize) -> Result<Vec<u8>, BackendError> {
        let objects = self.objects();
        let bytes = &objects.get(name).ok_or_else(|| not_found(name))?.bytes;
        let end = offset.saturating_add(length as u64);
        usize::try_from(offset)
            .ok()
            .and_then(|start| bytes.get(start..start.checked_add(length)?))
            .map(<[u8]>::to_vec)
            .ok_or(BackendError::TooShort { name: name.to_owned(), end })
    }

    fn append(&self, name: &str, offset: u64, bytes: &[u8]) -> Result<(), BackendError> {
        let mut objects = self.objects();
        let object = objects.entry(name.to_owned()).or_default();
        let sealed = object.synced && !self.can_grow;
        if sealed || (object.bytes.len() as u64) < offset {
            let source = std::io::Error::other("an append must begin where the object ends");
            return Err(BackendError::Io { name: name.to_owned(), source });
        }
        object.bytes.truncate(offset as usize);
        object.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn overwrite(&self, name: &str, offset: u64, bytes: &[u8]) -> Result<(), BackendError> {
        let mut objects = self.objects();
        let object = objects.get_mut(name).ok_or_else(|| not_found(name))?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let place = object.bytes.get_mut(start..start.saturating_add(bytes.len()));
        match place.filter(|_| self.can_grow) {
            Some(place) => place.copy_from_slice(bytes),
            None => {
                let source = std::io::Error::other("only bytes that are there can be overwritten");
                return Err(BackendError::Io { name: name.to_owned(), source });
            }
        }
        Ok(())
    }

    fn sync(&self, name: &str) -> Result<(), BackendError> {
        self.objects().get_mut(name).ok_or_else(|| not_found(name))?.synced = true;
        Ok(())
    }

    fn truncate(&self, name: &str, length: u64) -> Result<(), BackendError> {
        let mut objects = self.objects();
        let object = objects.get_mut(name).ok_or_else(|| not_found(name))?;
        object.bytes.truncate(usize::try_from(length).unwrap_or(usize::MAX));
        Ok(())
    }

    fn delete(&self, name: &str) -> Result<(), BackendError> {
        self.objects().remove(name);
        Ok(())
    }
}
