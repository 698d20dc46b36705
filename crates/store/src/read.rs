//! Reading: a number leads to a record, a record to a body, a body perhaps to what it refers to.

use std::sync::{Arc, PoisonError};

use nenrin_urls::CanonicalUrl;

use crate::bodies::{BodiesHead, Coding, LIST, Reference};
use crate::cache::Cache;
use crate::chunk::ChunkKind;
use crate::cut::cut;
use crate::decoded::{Decoded, Stored};
use crate::digest::BodyKey;
use crate::error::{INDEX, StoreError};
use crate::media::Class;
use crate::mend::read_chunk;
use crate::pack::{Location, damaged};
use crate::packfile::read_bodies_head;
use crate::recode::{self, Recoding};
use crate::rows::{self, Digests, Row};
use crate::store::Store;
use crate::wire::Malformed;
use crate::{Block, Digest, Version, VersionHead, VersionId, deflated, group, prefix, squeeze};

/// Chunks that may have to be read for one body. Writers stay far below; a loop in damaged or
/// hostile packs ends here.
pub(crate) const MAX_CHAIN: u8 = 32;
/// Versions taken from the index at a time when all are visited.
const SCAN_BATCH: usize = 1024;

impl Store {
    /// Whether the index leads to a version.
    pub fn has(&self, id: VersionId) -> Result<bool, StoreError> {
        Ok(self.index().version(id.0)?.is_some())
    }

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

    /// The digest of a version's body. After one, mostly its neighbours are wanted, because
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
                let payload = read_chunk(&*self.backend, place, &[ChunkKind::Versions])?;
                Digests::decode(&payload).map_err(|why| damaged("versions chunk", place, why))?
            }
        };
        let (_, digests) = last.insert((place, digests));
        digests.get(id.0).ok_or_else(|| misled(place))
    }

    fn row_at(&self, place: Location, id: VersionId) -> Result<Arc<Row>, StoreError> {
        let row = match self.rows.get(place) {
            Some(rows) => rows.iter().find(|row| row.id == id.0).cloned(),
            None => {
                let payload = read_chunk(&*self.backend, place, &[ChunkKind::Versions])?;
                rows::decode_row(&payload, id.0)
                    .map_err(|why| damaged("versions chunk", place, why))?
            }
        };
        row.map(Arc::new).ok_or_else(|| misled(place))
    }

    pub(crate) fn rows_at(&self, place: Location) -> Result<Arc<Vec<Row>>, StoreError> {
        if let Some(rows) = self.rows.get(place) {
            return Ok(rows);
        }
        let payload = read_chunk(&*self.backend, place, &[ChunkKind::Versions])?;
        let rows = rows::decode(&payload).map_err(|why| damaged("versions chunk", place, why))?;
        let rows = Arc::new(rows);
        self.rows.put(place, rows.iter().map(Row::weight_bytes).sum(), rows.clone());
        Ok(rows)
    }

    /// Where the body is, if it is stored at all.
    pub(crate) fn find_body(&self, key: BodyKey) -> Result<Option<Location>, StoreError> {
        if let Some(place) = self.pending_location(key) {
            return Ok(Some(place));
        }
        let places = self.index().candidates(key)?;
        for place in places {
            if self.bodies_head(place).is_ok_and(|head| head.find(key).is_some()) {
                return Ok(Some(place));
            }
            // What seems not to be there may be damaged, and then parity may restore it.
            match self.checked_head(place) {
                Ok(head) if head.find(key).is_some() => return Ok(Some(place)),
                Ok(_) | Err(StoreError::Damaged { .. }) => {}
                Err(other) => return Err(other),
            }
        }
        Ok(None)
    }

    /// Whether the chunk with this body fits its checksum, and so do those that it was compressed
    /// against.
    pub(crate) fn is_whole(&self, key: BodyKey) -> Result<bool, StoreError> {
        let mut key = key;
        for _ in 0..MAX_CHAIN {
            let Some(place) = self.find_body(key)? else { return Ok(false) };
            if self.whole.contains(place) {
                return Ok(true);
            }
            let Some(head) = or_damaged(self.checked_head(place))? else { return Ok(false) };
            match head.reference {
                Reference::Nothing => {}
                Reference::Body(base) => {
                    key = base;
                    continue;
                }
                Reference::Chunk(offset) => {
                    let prefix = Location { pack: place.pack, offset };
                    if !self.whole.contains(prefix) && or_damaged(self.prefix_at(prefix))?.is_none()
                    {
                        return Ok(false);
                    }
                    self.whole.note(prefix);
                }
            }
            self.whole.note(place);
            return Ok(true);
        }
        Ok(false)
    }

    /// Where the body may be; almost always that is one location, and it is there.
    pub(crate) fn locations_of(&self, key: BodyKey) -> Result<Vec<Location>, StoreError> {
        match self.pending_location(key) {
            Some(place) => Ok(vec![place]),
            None => self.index().candidates(key),
        }
    }

    pub(crate) fn pending_location(&self, key: BodyKey) -> Option<Location> {
        let pending = self.pending.read().unwrap_or_else(PoisonError::into_inner);
        pending.bodies.get(&key).copied()
    }

    /// The head of a bodies chunk, not checked.
    pub(crate) fn bodies_head(&self, place: Location) -> Result<BodiesHead, StoreError> {
        match group::is_waiting(place) {
            true => self.checked_head(place),
            false => read_bodies_head(&*self.backend, place),
        }
    }

    /// The payload of a bodies chunk, wherever it is.
    fn bodies_payload(&self, place: Location) -> Result<Arc<Vec<u8>>, StoreError> {
        if !group::is_waiting(place) {
            return read_chunk(&*self.backend, place, &[ChunkKind::Bodies]).map(Arc::new);
        }
        let pending = self.pending.read().unwrap_or_else(PoisonError::into_inner);
        let waiting = pending.group.get(place);
        waiting.ok_or_else(|| damaged("bodies chunk", place, Malformed("it was written meanwhile")))
    }

    /// The body with this digest, checked.
    pub(crate) fn body(&self, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        let stored = self.stored(digest.key())?;
        if stored.entry.recoding == LIST {
            let mut body = Vec::new();
            self.visit_pieces(&stored, digest, &mut |piece| {
                body.extend_from_slice(piece);
                Ok(())
            })?;
            return Ok(body);
        }
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

    /// A body in its stored form, perhaps recoded.
    pub(crate) fn stored(&self, key: BodyKey) -> Result<Stored, StoreError> {
        match self.stored_through(key, MAX_CHAIN) {
            // Between looking up and reading, its group may have been written, or compacting moved it.
            Err(StoreError::Damaged { .. }) => self.stored_through(key, MAX_CHAIN),
            other => other,
        }
    }

    fn stored_through(&self, key: BodyKey, chain: u8) -> Result<Stored, StoreError> {
        let mut missed = None;
        for place in self.locations_of(key)? {
            match self.stored_at(place, key, chain) {
                Ok(Some(stored)) => return Ok(stored),
                Ok(None) => {}
                Err(error @ StoreError::Damaged { .. }) => missed = Some(error),
                Err(other) => return Err(other),
            }
        }
        Err(missed.unwrap_or_else(|| damaged("body", key, Malformed("no pack holds it"))))
    }

    /// The body from the chunk at this location, if it is there.
    fn stored_at(
        &self,
        place: Location,
        key: BodyKey,
        chain: u8,
    ) -> Result<Option<Stored>, StoreError> {
        let Some(decoded) = self.bodies_at(place, key, chain)? else { return Ok(None) };
        let Decoded { head, raw } = &*decoded;
        let Some((start, entry)) = head.find(key) else { return Ok(None) };
        let end = start + entry.stored_bytes;
        let bytes = raw
            .get(start as usize..end as usize)
            .ok_or_else(|| damaged("body", place, Malformed("its chunk is too short")))?
            .to_vec();
        let (group, class, depth) = (head.group, head.class, head.depth);
        let stored = Stored { place, group, class, depth, entry: entry.clone(), bytes };
        if let Some(decoded) = Arc::into_inner(decoded) {
            self.spare.give_back(decoded.raw);
        }
        Ok(Some(stored))
    }

    /// The raw bytes of a prefix chunk.
    pub(crate) fn prefix_at(&self, place: Location) -> Result<Arc<Vec<u8>>, StoreError> {
        if let Some(raw) = self.prefixes.get(place) {
            return Ok(raw);
        }
        let payload = read_chunk(&*self.backend, place, &[ChunkKind::Prefix])?;
        let raw = prefix::decode(self.spare.take(), &payload)
            .map_err(|why| damaged("prefix chunk", place, why))?;
        let raw = Arc::new(fitted(raw, &self.prefixes));
        self.prefixes.put(place, raw.capacity(), raw.clone());
        Ok(raw)
    }

    /// A bodies chunk, decoded at least up to this body; none if the body is not in it.
    fn bodies_at(
        &self,
        place: Location,
        key: BodyKey,
        chain: u8,
    ) -> Result<Option<Arc<Decoded>>, StoreError> {
        let cached = self.frames.get(place);
        if let Some(decoded) = &cached {
            let end = decoded.head.find(key).map_or(0, |(start, entry)| start + entry.stored_bytes);
            if end <= decoded.raw.len() as u64 {
                return Ok(cached);
            }
        }
        let payload = self.bodies_payload(place)?;
        let unreadable = |why| damaged("bodies chunk", place, why);
        let (head, data) = BodiesHead::parse(&payload).map_err(unreadable)?;
        if head.find(key).is_none() {
            return Ok(None);
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
                // If a second page of a frame is read, more of them will be.
                let until = match (cached, head.find(key)) {
                    (None, Some((start, entry))) => (start + entry.stored_bytes) as usize,
                    _ => raw_bytes,
                };
                squeeze::decompress_until(self.spare.take(), data, raw_bytes, until, &reference)
                    .map_err(unreadable)?
            }
        };
        self.spare.give(reference);
        let decoded = Arc::new(Decoded { head, raw: fitted(raw, &self.frames) });
        self.frames.put(place, decoded.weight_bytes(), decoded.clone());
        Ok(Some(decoded))
    }

    /// The head of a bodies chunk whose checksum fits.
    pub(crate) fn checked_head(&self, place: Location) -> Result<BodiesHead, StoreError> {
        let payload = self.bodies_payload(place)?;
        let unreadable = |why| damaged("bodies chunk", place, why);
        Ok(BodiesHead::parse(&payload).map_err(unreadable)?.0)
    }

    fn reference(
        &self,
        place: Location,
        reference: &Reference,
        chain: u8,
    ) -> Result<Arc<Vec<u8>>, StoreError> {
        match reference {
            Reference::Nothing => Ok(Arc::default()),
            Reference::Body(key) => Ok(Arc::new(self.stored_through(*key, chain)?.bytes)),
            Reference::Chunk(offset) => {
                self.prefix_at(Location { pack: place.pack, offset: *offset })
            }
        }
    }
}

/// Raw bytes that a cache will keep may have come into a buffer that is much larger than they are.
fn fitted<T>(mut raw: Vec<u8>, cache: &Cache<T>) -> Vec<u8> {
    if cache.takes(raw.len()) && raw.capacity() > raw.len() + raw.len() / 4 {
        raw.shrink_to_fit();
    }
    raw
}

fn or_damaged<T>(read: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(StoreError::Damaged { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}

/// The version that the index finds here is not here.
fn misled(place: Location) -> StoreError {
    damaged(INDEX, place, Malformed("it names another chunk; run `reindex`"))
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
