use crate::backend::ContentBackend;
use crate::chunk::{CHUNK_HEAD_BYTES, ChunkKind, chunk_head};
use crate::directory;
use crate::error::{StoreError, from_backend};
use crate::pack::{Location, pack_name};
use crate::packfile::PackFile;
use crate::parity::{self, Parity};

/// A chunk no longer than this is written at once with its head; a longer one is not worth a copy.
const COPIED_BYTES: usize = 1 << 20;

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

    /// Appends a chunk, and parity if much has none.
    pub(crate) fn put(
        &mut self,
        backend: &dyn ContentBackend,
        kind: ChunkKind,
        payload: &[u8],
    ) -> Result<Location, StoreError> {
        let place = self.append(backend, kind, payload)?;
        if self.length - self.covered_bytes >= parity::RANGE_BYTES {
            self.cover(backend)?;
        }
        Ok(place)
    }

    /// Writes parity of everything that has none.
    pub(crate) fn cover(&mut self, backend: &dyn ContentBackend) -> Result<(), StoreError> {
        if self.length == self.covered_bytes {
            return Ok(());
        }
        let pack = PackFile::new(backend, self.number, self.length);
        let parity = Parity::of(&pack, self.covered_bytes..self.length)?;
        self.append(backend, ChunkKind::Parity, &parity.encode())?;
        self.covered_bytes = self.length;
        Ok(())
    }

    /// Writes the directory, which ends the pack. Returns false if a chunk cannot be found any more:
    /// then the pack stays as it is.
    pub(crate) fn end(&mut self, backend: &dyn ContentBackend) -> Result<bool, StoreError> {
        let pack = PackFile::new(backend, self.number, self.length);
        let Some(directory) = directory::build(&pack, self.length)? else { return Ok(false) };
        self.append(backend, ChunkKind::PackEnd, &directory)?;
        Ok(true)
    }

    fn append(
        &mut self,
        backend: &dyn ContentBackend,
        kind: ChunkKind,
        payload: &[u8],
    ) -> Result<Location, StoreError> {
        let place = Location { pack: self.number, offset: self.length };
        let head = chunk_head(kind, place.pack, place.offset, payload);
        let name = pack_name(self.number);
        let append = |at, bytes: &[u8]| backend.append(&name, at, bytes).map_err(from_backend);
        let payload_at = self.length + CHUNK_HEAD_BYTES as u64;
        match payload.len() <= COPIED_BYTES {
            true => append(self.length, &[&head, payload].concat())?,
            false => append(self.length, &head).and_then(|()| append(payload_at, payload))?,
        }
        self.length = payload_at + payload.len() as u64;
        Ok(place)
    }
}
