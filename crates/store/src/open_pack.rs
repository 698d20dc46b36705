use crate::backend::ContentBackend;
use crate::chunk::{CHUNK_HEAD_BYTES, ChunkKind, seal_in_place};
use crate::directory;
use crate::error::{StoreError, from_backend};
use crate::pack::{Place, pack_name};
use crate::packfile::PackFile;
use crate::parity::{self, Parity};

/// The pack that is being written.
#[derive(Debug)]
pub(crate) struct OpenPack {
    pub(crate) number: u64,
    pub(crate) length: u64,
    pub(crate) durable_bytes: u64,
    /// Everything in front of this has its parity.
    pub(crate) covered_bytes: u64,
}

impl OpenPack {
    pub(crate) fn new(number: u64) -> Self {
        Self { number, length: 0, durable_bytes: 0, covered_bytes: 0 }
    }

    /// Appends a chunk whose payload has space for its head in front of it, and parity if much has
    /// none.
    pub(crate) fn put(
        &mut self,
        backend: &dyn ContentBackend,
        kind: ChunkKind,
        chunk: &mut [u8],
    ) -> Result<Place, StoreError> {
        let place = self.append(backend, kind, chunk)?;
        if self.length - self.covered_bytes >= parity::RANGE_BYTES {
            self.cover(backend)?;
        }
        Ok(place)
    }

    pub(crate) fn put_payload(
        &mut self,
        backend: &dyn ContentBackend,
        kind: ChunkKind,
        payload: &[u8],
    ) -> Result<Place, StoreError> {
        self.put(backend, kind, &mut with_space(payload))
    }

    /// Writes parity of everything that has none.
    pub(crate) fn cover(&mut self, backend: &dyn ContentBackend) -> Result<(), StoreError> {
        if self.length == self.covered_bytes {
            return Ok(());
        }
        let pack = PackFile::new(backend, self.number, self.length);
        let parity = Parity::of(&pack, self.covered_bytes..self.length)?;
        self.append(backend, ChunkKind::Parity, &mut with_space(&parity.encode()))?;
        self.covered_bytes = self.length;
        Ok(())
    }

    /// Writes the directory, which ends the pack. Returns false if a chunk cannot be found any more:
    /// then the pack stays as it is.
    pub(crate) fn end(&mut self, backend: &dyn ContentBackend) -> Result<bool, StoreError> {
        let pack = PackFile::new(backend, self.number, self.length);
        let Some(directory) = directory::build(&pack, self.length)? else { return Ok(false) };
        self.append(backend, ChunkKind::PackEnd, &mut with_space(&directory))?;
        Ok(true)
    }

    fn append(
        &mut self,
        backend: &dyn ContentBackend,
        kind: ChunkKind,
        chunk: &mut [u8],
    ) -> Result<Place, StoreError> {
        let place = Place { pack: self.number, offset: self.length };
        seal_in_place(kind, place.pack, place.offset, chunk);
        backend.append(&pack_name(self.number), self.length, chunk).map_err(from_backend)?;
        self.length += chunk.len() as u64;
        Ok(place)
    }
}

/// The payload behind space for the head of its chunk.
fn with_space(payload: &[u8]) -> Vec<u8> {
    [&[0; CHUNK_HEAD_BYTES], payload].concat()
}
