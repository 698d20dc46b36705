//! Reading: a number leads to a record, a record to a body, a body perhaps to what it refers to.

use std::sync::{Arc, PoisonError};

use nenrin_urls::CanonicalUrl;

use crate::bodies::{BodiesHead, BodyEntry, Coding, Reference};
use crate::chunk::{CHUNK_HEAD_BYTES, ChunkHead, ChunkKind};
use crate::compact::prefix;
use crate::cut::cut;
use crate::digest::BodyKey;
use crate::error::{StoreError, from_backend};
use crate::media::Class;
use crate::pack::{Place, damaged, pack_name, read_chunk};
use crate::recode::{self, Recoding};
use crate::rows::{self, Digests, Row};
use crate::store::Store;
use crate::wire::Malformed;
use crate::{Block, Digest, Version, VersionHead, VersionId, deflated, squeeze};

/// Chunks that may have to be read for one body. Writers stay far below; a loop in damaged or
/// hostile packs ends here.
pub(crate) const MAX_CHAIN: u8 = 32;
/// Enough for the directory of most chunks.
const DIRECTORY_GUESS_BYTES: usize = 16 << 10;
/// Versions taken from the index at a time when all are visited.
const SCAN_BATCH: usize = 1024;

/// A body in its chunk.
pub(crate) struct Stored {
    pub(crate) place: Place,
    pub(crate) group: u32,
    pub(crate) class: Class,
    pub(crate) depth: u8,
    pub(crate) entry: BodyEntry,
    pub(crate) bytes: Vec<u8>,
}

impl Store {
    /// Everything about a version but its body.
    pub fn head(&self, id: VersionId) -> Result<VersionHead, StoreError> {
        version_head(&*self.row(id)?)
    }

    /// A version exactly as it was received, checked by its digest.
    pub fn read(&self, id: VersionId) -> Result<Version, StoreError> {
        let row = self.row(id)?;
        let body = self.body(&row.digest)?;
        Ok(Version { head: version_head(&row)?, body })
    }

    /// The body of a version as blocks, for comparing versions: HTML cut at tags, anything else
    /// one block. A body that was stored gzipped comes without its gzip.
    pub fn blocks(&self, id: VersionId) -> Result<Vec<Block>, StoreError> {
        let digest = self.digest(id)?;
        let stored = self.stored(digest.key())?;
        let body = match stored.entry.recoding {
            code if code == Recoding::Gzip as u8 => {
                recode::gzip_plain(&stored.bytes).map(<[u8]>::to_vec)
            }
            _ => None,
        };
        let body = body.map_or_else(|| self.body(&digest), Ok)?;
        let block = |bytes: &[u8]| Block { digest: Digest::of(bytes), bytes: bytes.to_vec() };
        match stored.class {
            Class::Html => Ok(cut(&body).map(block).collect()),
            Class::Text | Class::Other => Ok(vec![block(&body)]),
        }
    }

    /// Visits every version in the order of its number. Damaged records are left out; `verify`
    /// names them.
    pub fn scan(
        &self,
        visit: &mut dyn FnMut(VersionHead) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.sync()?;
        let mut next = 0;
        loop {
            let batch = self.index().versions_from(next, SCAN_BATCH)?;
            let Some((last, _)) = batch.last() else { return Ok(()) };
            next = last + 1;
            for (id, place) in batch {
                // All records of a chunk will be wanted, so it is decoded once and kept.
                let row = self.rows_at(place).and_then(|_| self.row_at(place, VersionId(id)));
                match row.and_then(|row| version_head(&row)) {
                    Ok(head) => visit(head)?,
                    Err(StoreError::Damaged { .. } | StoreError::NotFound { .. }) => {}
                    Err(other) => return Err(other),
                }
            }
        }
    }

    pub(crate) fn row(&self, id: VersionId) -> Result<Arc<Row>, StoreError> {
        let pending = self.pending.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(row) = pending.rows.get(&id.0) {
            return Ok(row.clone());
        }
        drop(pending);
        let place = self.index().version(id.0)?.ok_or(StoreError::NotFound { id })?;
        self.row_at(place, id)
    }

    /// The digest of a version's body. Who asks for one mostly asks for its neighbours next, as
    /// their pages were visited one after the other.
    pub(crate) fn digest(&self, id: VersionId) -> Result<Digest, StoreError> {
        let pending = self.pending.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(row) = pending.rows.get(&id.0) {
            return Ok(row.digest);
        }
        drop(pending);
        let place = self.index().version(id.0)?.ok_or(StoreError::NotFound { id })?;
        let mut last = self.last_digests.lock().unwrap_or_else(PoisonError::into_inner);
        let digests = match last.take().filter(|(of, _)| *of == place) {
            Some((_, digests)) => digests,
            None => {
                let (_, payload) = read_chunk(&*self.backend, place, &[ChunkKind::Versions])?;
                Digests::decode(&payload).map_err(|why| damaged("versions chunk", place, why))?
            }
        };
        let (_, digests) = last.insert((place, digests));
        digests.get(id.0).ok_or_else(|| misled(place))
    }

    fn row_at(&self, place: Place, id: VersionId) -> Result<Arc<Row>, StoreError> {
        let row = match self.rows.get(place) {
            Some(rows) => rows.iter().find(|row| row.id == id.0).cloned(),
            None => {
                let (_, payload) = read_chunk(&*self.backend, place, &[ChunkKind::Versions])?;
                rows::decode_row(&payload, id.0)
                    .map_err(|why| damaged("versions chunk", place, why))?
            }
        };
        row.map(Arc::new).ok_or_else(|| misled(place))
    }

    pub(crate) fn rows_at(&self, place: Place) -> Result<Arc<Vec<Row>>, StoreError> {
        if let Some(rows) = self.rows.get(place) {
            return Ok(rows);
        }
        let (_, payload) = read_chunk(&*self.backend, place, &[ChunkKind::Versions])?;
        let rows = rows::decode(&payload).map_err(|why| damaged("versions chunk", place, why))?;
        let rows = Arc::new(rows);
        self.rows.put(place, rows.iter().map(Row::weight_bytes).sum(), rows.clone());
        Ok(rows)
    }

    /// Where the body lies, if it is stored at all.
    pub(crate) fn find_body(&self, key: BodyKey) -> Result<Option<Place>, StoreError> {
        for place in self.places_of(key)? {
            match self.directory(place) {
                Ok(head) if head.find(key).is_some() => return Ok(Some(place)),
                Ok(_) | Err(StoreError::Damaged { .. }) => {}
                Err(other) => return Err(other),
            }
        }
        Ok(None)
    }

    /// Where the body may lie; almost always that is one place, and it lies there.
    pub(crate) fn places_of(&self, key: BodyKey) -> Result<Vec<Place>, StoreError> {
        let pending = self.pending.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = pending.bodies.get(&key) {
            return Ok(vec![*place]);
        }
        drop(pending);
        self.index().candidates(key)
    }

    /// The directory of a bodies chunk, without reading its data and so without its checksum:
    /// enough to know whether a body is there, since every body is checked when it is read.
    pub(crate) fn directory(&self, place: Place) -> Result<BodiesHead, StoreError> {
        let name = pack_name(place.pack);
        let read = |offset: u64, length: usize| {
            self.backend.read(&name, offset, length).map_err(|error| match error {
                crate::BackendError::Io { .. } | crate::BackendError::NoRoom { .. } => {
                    from_backend(error)
                }
                _ => damaged("bodies chunk", place, Malformed("it is missing")),
            })
        };
        let head = read(place.offset, CHUNK_HEAD_BYTES)?;
        let head = ChunkHead::parse(&head).map_err(|why| damaged("bodies chunk", place, why))?;
        if head.kind != ChunkKind::Bodies {
            return Err(damaged("bodies chunk", place, Malformed("another kind lies there")));
        }
        let start = place.offset + CHUNK_HEAD_BYTES as u64;
        let payload = read(start, head.payload_bytes.min(DIRECTORY_GUESS_BYTES))?;
        if let Ok((head, _)) = BodiesHead::parse(&payload) {
            return Ok(head);
        }
        let payload = read(start, head.payload_bytes)?;
        let (head, _) =
            BodiesHead::parse(&payload).map_err(|why| damaged("bodies chunk", place, why))?;
        Ok(head)
    }

    /// The body with this digest, checked.
    pub(crate) fn body(&self, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        let stored = self.stored(digest.key())?;
        let body = match stored.entry.recoding {
            0 => stored.bytes,
            code => recode::restore(&stored.bytes, code)
                .map_err(|why| damaged("body", stored.place, why))?,
        };
        match Digest::of(&body) == *digest {
            true => Ok(body),
            false => Err(damaged("body", stored.place, Malformed("its digest differs"))),
        }
    }

    /// A body as it lies in its chunk, perhaps recoded.
    pub(crate) fn stored(&self, key: BodyKey) -> Result<Stored, StoreError> {
        match self.stored_through(key, MAX_CHAIN) {
            // Compacting may have moved it between looking up and reading.
            Err(StoreError::Damaged { .. }) => self.stored_through(key, MAX_CHAIN),
            other => other,
        }
    }

    fn stored_through(&self, key: BodyKey, chain: u8) -> Result<Stored, StoreError> {
        let mut missed = None;
        for place in self.places_of(key)? {
            match self.stored_at(place, key, chain) {
                Ok(Some(stored)) => return Ok(stored),
                Ok(None) => {}
                Err(error @ StoreError::Damaged { .. }) => missed = Some(error),
                Err(other) => return Err(other),
            }
        }
        Err(missed.unwrap_or_else(|| damaged("body", key, Malformed("no pack holds it"))))
    }

    /// The body out of the chunk at this place, if it lies there.
    fn stored_at(
        &self,
        place: Place,
        key: BodyKey,
        chain: u8,
    ) -> Result<Option<Stored>, StoreError> {
        let (head, raw) = self.bodies_at(place, key, chain)?;
        let Some((start, entry)) = head.find(key) else { return Ok(None) };
        let end = start + entry.stored_bytes;
        let bytes = raw
            .get(start as usize..end as usize)
            .ok_or_else(|| damaged("body", place, Malformed("its chunk is too short")))?
            .to_vec();
        self.spare.give(raw);
        Ok(Some(Stored {
            place,
            group: head.group,
            class: head.class,
            depth: head.depth,
            entry: entry.clone(),
            bytes,
        }))
    }

    /// The raw bytes of a prefix chunk.
    pub(crate) fn prefix_at(&self, place: Place) -> Result<Arc<Vec<u8>>, StoreError> {
        if let Some(raw) = self.frames.get(place) {
            return Ok(raw);
        }
        let (_, payload) = read_chunk(&*self.backend, place, &[ChunkKind::Prefix])?;
        let raw = prefix::decode(self.spare.take(), &payload)
            .map_err(|why| damaged("prefix chunk", place, why))?;
        Ok(self.keep(place, raw))
    }

    /// Keeps raw bytes in the cache, if it is large enough. They may have come into a buffer that
    /// is much larger than they are.
    fn keep(&self, place: Place, mut raw: Vec<u8>) -> Arc<Vec<u8>> {
        if self.frames.takes(raw.len()) && raw.capacity() > raw.len() + raw.len() / 4 {
            raw.shrink_to_fit();
        }
        let raw = Arc::new(raw);
        self.frames.put(place, raw.capacity(), raw.clone());
        raw
    }

    /// The directory and the raw bytes of a bodies chunk, at least up to this body; no bytes if it
    /// is not there.
    fn bodies_at(
        &self,
        place: Place,
        key: BodyKey,
        chain: u8,
    ) -> Result<(BodiesHead, Arc<Vec<u8>>), StoreError> {
        let cached = self.frames.get(place);
        if let Some(raw) = &cached {
            let head = self.directory(place)?;
            let end = head.find(key).map_or(0, |(start, entry)| start + entry.stored_bytes);
            if end <= raw.len() as u64 {
                return Ok((head, raw.clone()));
            }
        }
        let (_, payload) = read_chunk(&*self.backend, place, &[ChunkKind::Bodies])?;
        let unreadable = |why| damaged("bodies chunk", place, why);
        let (head, data) = BodiesHead::parse(&payload).map_err(unreadable)?;
        if head.find(key).is_none() {
            return Ok((head, Arc::default()));
        }
        let chain = chain
            .checked_sub(1)
            .ok_or_else(|| unreadable(Malformed("its references lead on without end")))?;
        let reference = self.reference(place, &head.reference, chain)?;
        let raw = match head.coding {
            Coding::Plain => data.to_vec(),
            Coding::Deflate => {
                deflated::inflate(data, head.raw_bytes() as usize).map_err(unreadable)?
            }
            Coding::Zstd => {
                let raw_bytes = head.raw_bytes() as usize;
                // Who comes for a second page of a frame will come for more.
                let until = match (cached, head.find(key)) {
                    (None, Some((start, entry))) => (start + entry.stored_bytes) as usize,
                    _ => raw_bytes,
                };
                squeeze::decompress_until(self.spare.take(), data, raw_bytes, until, &reference)
                    .map_err(unreadable)?
            }
        };
        self.spare.give(reference);
        Ok((head, self.keep(place, raw)))
    }

    fn reference(
        &self,
        place: Place,
        reference: &Reference,
        chain: u8,
    ) -> Result<Arc<Vec<u8>>, StoreError> {
        match reference {
            Reference::Nothing => Ok(Arc::default()),
            Reference::Body(key) => Ok(Arc::new(self.stored_through(*key, chain)?.bytes)),
            Reference::Chunk(offset) => self.prefix_at(Place { pack: place.pack, offset: *offset }),
        }
    }
}

/// The version that the index finds here is not here.
fn misled(place: Place) -> StoreError {
    damaged("index", place, Malformed("it names another chunk; run `reindex`"))
}

pub(crate) fn version_head(row: &Row) -> Result<VersionHead, StoreError> {
    let url = CanonicalUrl::parse(&row.url)
        .map_err(|_| damaged("version", row.id, Malformed("its url is none")))?;
    Ok(VersionHead {
        id: VersionId(row.id),
        url,
        group: row.group,
        visited_at_s: row.visited_at_s,
        status: row.status,
        protocol: row.protocol.clone(),
        tls: row.tls.clone(),
        server_address: row.server_address,
        request_head: row.request_head.clone(),
        response_head: row.response_head.clone(),
        body_bytes: row.body_bytes,
        digest: row.digest,
        truncated: row.truncated.clone(),
    })
}
