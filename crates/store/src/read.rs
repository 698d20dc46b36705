//! Reading: a number leads to a record, a record to a body, a body perhaps to what it refers to.

use std::sync::{Arc, PoisonError};

use nenrin_urls::CanonicalUrl;

use crate::bodies::{BodiesHead, Coding, Reference};
use crate::chunk::{CHUNK_HEAD_BYTES, ChunkHead, ChunkKind};
use crate::error::{StoreError, from_backend};
use crate::pack::{Place, damaged, pack_name, read_chunk};
use crate::rows::{self, Row};
use crate::store::Store;
use crate::wire::Malformed;
use crate::{Block, Digest, Version, VersionHead, VersionId, squeeze};

/// Chunks that may have to be read for one body. Writers stay far below; a loop in damaged or
/// hostile packs ends here.
const MAX_CHAIN: u8 = 32;
/// Enough for the directory of most chunks.
const DIRECTORY_GUESS_BYTES: usize = 4096;
/// Versions taken from the index at a time when all are visited.
const SCAN_BATCH: usize = 1024;

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

    /// The body of a version as blocks, for comparing versions.
    pub fn blocks(&self, id: VersionId) -> Result<Vec<Block>, StoreError> {
        let body = self.body(&self.row(id)?.digest)?;
        Ok(vec![Block { digest: Digest::of(&body), bytes: body }])
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
            for (id, _) in batch {
                match self.head(VersionId(id)) {
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
        let rows = self.rows_at(place)?;
        let row = rows.iter().find(|row| row.id == id.0);
        row.map(|row| Arc::new(row.clone())).ok_or_else(|| {
            damaged("index", place, Malformed("it names another chunk; run `reindex`"))
        })
    }

    pub(crate) fn rows_at(&self, place: Place) -> Result<Arc<Vec<Row>>, StoreError> {
        if let Some(rows) = self.rows.get(place) {
            return Ok(rows);
        }
        let (_, payload) = read_chunk(&*self.backend, place, &[ChunkKind::Versions])?;
        let rows =
            rows::decode(&payload).map_err(|why| damaged("versions chunk", place, why))?.rows;
        let rows = Arc::new(rows);
        self.rows.put(place, rows.iter().map(Row::weight_bytes).sum(), rows.clone());
        Ok(rows)
    }

    /// Where the body lies, if it is stored at all.
    pub(crate) fn find_body(&self, digest: &Digest) -> Result<Option<Place>, StoreError> {
        let pending = self.pending.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = pending.bodies.get(digest) {
            return Ok(Some(*place));
        }
        drop(pending);
        let candidates = self.index().candidates(digest)?;
        for place in candidates {
            match self.directory(place) {
                Ok(head) if head.find(digest).is_some() => return Ok(Some(place)),
                Ok(_) | Err(StoreError::Damaged { .. }) => {}
                Err(other) => return Err(other),
            }
        }
        Ok(None)
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
        match self.body_through(digest, MAX_CHAIN) {
            // Compacting may have moved it between looking up and reading.
            Err(StoreError::Damaged { .. }) => self.body_through(digest, MAX_CHAIN),
            other => other,
        }
    }

    fn body_through(&self, digest: &Digest, chain: u8) -> Result<Vec<u8>, StoreError> {
        let Some(place) = self.find_body(digest)? else {
            return Err(damaged("body", digest, Malformed("no pack holds it")));
        };
        let (head, raw) = self.bodies_at(place, chain)?;
        let wrong = |why| damaged("body", place, Malformed(why));
        let (start, entry) = head.find(digest).ok_or_else(|| wrong("it is not in its chunk"))?;
        let end = start + entry.stored_bytes;
        let body = raw
            .get(start as usize..end as usize)
            .ok_or_else(|| wrong("its chunk is too short"))?
            .to_vec();
        if Digest::of(&body) == *digest { Ok(body) } else { Err(wrong("its digest differs")) }
    }

    /// The directory and the raw bytes of a bodies chunk.
    fn bodies_at(&self, place: Place, chain: u8) -> Result<(BodiesHead, Arc<Vec<u8>>), StoreError> {
        if let Some(raw) = self.frames.get(place) {
            return Ok((self.directory(place)?, raw));
        }
        let (_, payload) = read_chunk(&*self.backend, place, &[ChunkKind::Bodies])?;
        let unreadable = |why| damaged("bodies chunk", place, why);
        let (head, data) = BodiesHead::parse(&payload).map_err(unreadable)?;
        let chain = chain
            .checked_sub(1)
            .ok_or_else(|| unreadable(Malformed("its references lead on without end")))?;
        let reference = self.reference(place, &head.reference, chain)?;
        let raw = match head.coding {
            Coding::Plain => data.to_vec(),
            Coding::Zstd => squeeze::decompress(data, head.raw_bytes() as usize, &reference)
                .map_err(unreadable)?,
        };
        let raw = Arc::new(raw);
        self.frames.put(place, raw.len(), raw.clone());
        Ok((head, raw))
    }

    fn reference(
        &self,
        place: Place,
        reference: &Reference,
        chain: u8,
    ) -> Result<Arc<Vec<u8>>, StoreError> {
        match reference {
            Reference::Nothing => Ok(Arc::default()),
            Reference::Body(digest) => Ok(Arc::new(self.body_through(digest, chain)?)),
            Reference::Chunk(offset) => {
                let place = Place { pack: place.pack, offset: *offset };
                Ok(self.bodies_at(place, chain)?.1)
            }
        }
    }
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
