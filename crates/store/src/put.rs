//! Writing: bodies go into the open pack at once, records with the next sync.

use std::borrow::Cow;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use crate::bodies::{BodiesHead, BodyEntry, Coding, MAX_BODY_BYTES, Reference};
use crate::chunk::{CHUNK_HEAD_BYTES, ChunkKind, seal_chunk, seal_in_place};
use crate::digest::BodyKey;
use crate::error::{BackendError, StoreError, from_backend};
use crate::heads::MAX_HEAD_BYTES;
use crate::index::{PackRecord, Share};
use crate::media::Class;
use crate::pack::{PackEnd, PackHead, Place, pack_name};
use crate::read::MAX_CHAIN;
use crate::recode::{self, Extent, Recoding};
use crate::rows::{self, MAX_WORD_BYTES, Row};
use crate::store::{Store, Writer};
use crate::{Digest, NewVersion, Packing, Put, VersionId, similar, squeeze};

/// Records that may wait in memory before a sync is made without being asked for, and what they may
/// weigh.
const MAX_PENDING_ROWS: usize = 16 << 10;
const MAX_PENDING_BYTES: usize = 16 << 20;

/// From so many bytes on that are not durable yet, it pays to let the disk begin.
const SYNCED_AHEAD_FROM_BYTES: u64 = 4 << 20;

/// Below this a reference saves nothing, above it costs too much memory.
const MIN_DELTA_BYTES: usize = 64;
const MAX_DELTA_BYTES: usize = 16 << 20;

/// The pack that is being written.
#[derive(Debug)]
pub(crate) struct OpenPack {
    pub(crate) number: u64,
    pub(crate) length: u64,
    pub(crate) durable_bytes: u64,
}

impl Store {
    /// Stores a version. It can be read at once here; it is durable after the next
    /// [`sync`](Self::sync).
    ///
    /// Several threads may put at once: each compresses its own body, and they take turns only to
    /// write.
    pub fn put(&self, version: &NewVersion<'_>) -> Result<Put, StoreError> {
        self.put_packed(version, Digest::of(version.body), Packing::Unknown)
    }

    /// As [`put`](Self::put), for a body that was hashed before, and of which it may be known how
    /// it can be compressed. That is used only by a store that
    /// [`keeps`](crate::StoreOptions::keeps_packed) it.
    pub fn put_packed(
        &self,
        version: &NewVersion<'_>,
        digest: Digest,
        packing: Packing<'_>,
    ) -> Result<Put, StoreError> {
        debug_assert_eq!(digest, Digest::of(version.body), "the digest is the body's identity");
        check_limits(version)?;
        let looked_at = self.index().changes();
        let key = digest.key();
        let was_known = self.is_known(key)?;
        let squeezed = match was_known {
            true => None,
            false => Some(self.squeeze(version, key, packing)?),
        };
        let mut writer = self.writer();
        writer.check()?;
        // What was known may have been compacted away since, and what was not may have come.
        let is_as_it_was = self.index().changes() == looked_at;
        let known = match is_as_it_was {
            true => was_known || self.is_pending(key),
            false => self.is_known(key)?,
        };
        let body_bytes = match (known, squeezed) {
            (true, _) => writer.build_upon(key).map(|()| 0)?,
            (false, Some(squeezed)) if self.is_base_there(&squeezed)? => {
                self.put_body(&mut writer, key, squeezed)?
            }
            (false, _) => {
                let alone = self.squeeze_against(version, key, version.body.into(), None);
                self.put_body(&mut writer, key, alone)?
            }
        };
        let id = writer.next_version;
        writer.next_version += 1;
        let row = row(version, id, digest);
        let weight_bytes = row.weight_bytes();
        let full = {
            let mut pending = self.pending.write().unwrap_or_else(PoisonError::into_inner);
            pending.rows.insert(id, Arc::new(row));
            pending.weight_bytes += weight_bytes;
            pending.rows.len() >= MAX_PENDING_ROWS || pending.weight_bytes >= MAX_PENDING_BYTES
        };
        drop(writer);
        if full {
            self.sync()?;
        }
        let new_bytes = body_bytes + weight_bytes as u64 / 4;
        Ok(Put { id: VersionId(id), digest, new_bytes, whole_body_known: known })
    }

    /// Makes everything that was put before durable. Others go on writing while the disk works.
    pub fn sync(&self) -> Result<(), StoreError> {
        let _turn = self.syncing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut writer = self.writer();
        writer.check()?;
        if !self.backend.can_grow() {
            return self.sync_writer(&mut writer);
        }
        let Some((number, length)) = self.write_rows(&mut writer)? else { return Ok(()) };
        drop(writer);
        let synced = self.backend.sync(&pack_name(number));
        let mut writer = self.writer();
        writer.check()?;
        let open = writer.open.as_ref().filter(|open| open.number == number);
        let is_noted = open.is_none_or(|open| open.durable_bytes >= length);
        match synced {
            // It was ended and compacted away meanwhile.
            Err(BackendError::NotFound { .. }) if is_noted => return Ok(()),
            Err(error) => {
                writer.failed = true;
                return Err(from_backend(error));
            }
            Ok(()) if is_noted => return Ok(()),
            Ok(()) => {}
        }
        let record = PackRecord { number, bytes: length, ended: false, generation: 0 };
        self.note_synced(&mut writer, &record)?;
        let is_full = |open: &OpenPack| open.length >= self.options.pack_bytes;
        if writer.open.as_ref().is_some_and(is_full) {
            self.sync_writer(&mut writer)?;
        }
        Ok(())
    }

    /// Lets the disk begin with what was put, if it is much: the next [`sync`](Self::sync) has the
    /// less to wait for.
    pub fn sync_ahead(&self) -> Result<(), StoreError> {
        let much = {
            let writer = self.writer();
            writer.check()?;
            let is_much =
                |open: &&OpenPack| open.length - open.durable_bytes >= SYNCED_AHEAD_FROM_BYTES;
            writer.open.as_ref().filter(is_much).map(|open| open.number)
        };
        let Some(number) = much.filter(|_| self.backend.can_grow()) else { return Ok(()) };
        match self.backend.sync(&pack_name(number)) {
            // It may have been ended and compacted away since.
            Ok(()) | Err(BackendError::NotFound { .. }) => Ok(()),
            Err(error) => {
                self.writer().failed = true;
                Err(from_backend(error))
            }
        }
    }

    fn is_known(&self, key: BodyKey) -> Result<bool, StoreError> {
        Ok(self.options.steps.file && self.find_body(key)?.is_some())
    }

    fn is_pending(&self, key: BodyKey) -> bool {
        let pending = self.pending.read().unwrap_or_else(PoisonError::into_inner);
        self.options.steps.file && pending.bodies.contains_key(&key)
    }

    fn is_base_there(&self, squeezed: &Squeezed) -> Result<bool, StoreError> {
        match &squeezed.head.reference {
            Reference::Body(base) => Ok(self.find_body(*base)?.is_some()),
            _ => Ok(true),
        }
    }

    /// Compresses a body that is new.
    fn squeeze(
        &self,
        version: &NewVersion<'_>,
        key: BodyKey,
        packing: Packing<'_>,
    ) -> Result<Squeezed, StoreError> {
        let class = Class::judge(version.response_head, version.body);
        let body = self.prepare(version.body, class);
        let base = self.choose_base(version, class, &body.bytes, key)?;
        if self.options.keeps_packed
            && base.is_none()
            && body.recoding.is_none()
            && let Some(packed) = self.as_it_comes(version, class, key, packing)
        {
            return Ok(packed);
        }
        Ok(self.squeeze_against(version, key, body, base))
    }

    fn squeeze_against(
        &self,
        version: &NewVersion<'_>,
        key: BodyKey,
        Prepared { bytes: body, recoding }: Prepared<'_>,
        base: Option<Base>,
    ) -> Squeezed {
        let class = Class::judge(version.response_head, version.body);
        let (reference, depth, base) = match base {
            Some(base) => (Reference::Body(base.key), base.depth + 1, base.bytes),
            None => (Reference::Nothing, 0, Vec::new()),
        };
        let level = match version.previous {
            Some(_) => self.options.level,
            None => self.options.first_level,
        };
        let squeezed = squeeze::compress(&body, level, &base);
        let (coding, data, reference, depth) = match squeezed.len() < body.len() {
            true => (Coding::Zstd, &squeezed[..], reference, depth),
            false => (Coding::Plain, &body[..], Reference::Nothing, 0),
        };
        let entries = vec![BodyEntry {
            key,
            body_bytes: version.body.len() as u64,
            recoding: recoding.map_or(0, |recoding| recoding as u8),
            stored_bytes: body.len() as u64,
        }];
        let head = BodiesHead { group: version.group, class, coding, reference, depth, entries };
        Squeezed::new(self.spare.take(), head, &[data])
    }

    /// A body in the form in which it came, if that is worth keeping.
    fn as_it_comes(
        &self,
        version: &NewVersion<'_>,
        class: Class,
        key: BodyKey,
        packing: Packing<'_>,
    ) -> Option<Squeezed> {
        let body_bytes = version.body.len();
        let (coding, around) = match &packing {
            Packing::Unknown => return None,
            Packing::Dense => (Coding::Plain, Vec::new()),
            Packing::Deflated(deflated) if deflated.is_worth_keeping(body_bytes) => {
                (Coding::Deflate, deflated.around())
            }
            Packing::Deflated(_) => return None,
        };
        let data = match packing {
            Packing::Deflated(deflated) => deflated.data,
            _ => version.body,
        };
        let stored_bytes = body_bytes as u64;
        let entries = vec![BodyEntry { key, body_bytes: stored_bytes, recoding: 0, stored_bytes }];
        let (reference, depth) = (Reference::Nothing, 0);
        let head = BodiesHead { group: version.group, class, coding, reference, depth, entries };
        Some(Squeezed::new(self.spare.take(), head, &[&around, data]))
    }

    /// Appends a body that is new.
    fn put_body(
        &self,
        writer: &mut Writer,
        key: BodyKey,
        Squeezed { head, mut chunk }: Squeezed,
    ) -> Result<u64, StoreError> {
        if let Reference::Body(base) = &head.reference {
            writer.build_upon(*base)?;
        }
        let place = self.append_chunk(writer, ChunkKind::Bodies, &mut chunk)?;
        self.spare.give_back(chunk);
        let written = writer.open.as_ref().map_or(0, |open| open.length - place.offset);
        writer.shares.entry(head.group).or_default().add(&bodies_share(&head, written));
        let mut pending = self.pending.write().unwrap_or_else(PoisonError::into_inner);
        pending.bodies.insert(key, place);
        Ok(written)
    }

    /// A gzipped page is taken apart, so that it can be compared with other pages, and a GIF is
    /// coded anew, which is quick; other pictures wait for `compact`, and gzipped pages too where
    /// what comes compressed is kept so.
    fn prepare<'b>(&self, body: &'b [u8], class: Class) -> Prepared<'b> {
        let recoded = Recoding::for_body(body).and_then(|recoding| {
            let wanted = match recoding {
                Recoding::Gzip => class != Class::Other && !self.options.keeps_packed,
                Recoding::Gif => self.options.recode_gifs && recode::is_gif_to_put(body.len()),
                _ => false,
            };
            let cap = self.options.recode_cap;
            let recoded = wanted.then(|| recode::recode(body, recoding, Extent::Whole, cap))??;
            let smaller = recoding == Recoding::Gzip || recoded.is_worth_it(body);
            smaller.then_some(Prepared { bytes: recoded.bytes.into(), recoding: Some(recoding) })
        });
        recoded.unwrap_or_else(|| body.into())
    }

    /// What the new body is compressed against: the page's last version, or else the page of the
    /// site that resembles it most.
    fn choose_base(
        &self,
        version: &NewVersion<'_>,
        class: Class,
        body: &[u8],
        key: BodyKey,
    ) -> Result<Option<Base>, StoreError> {
        let steps = self.options.steps;
        if class == Class::Other || !(MIN_DELTA_BYTES..=MAX_DELTA_BYTES).contains(&body.len()) {
            return Ok(None);
        }
        let mut base = None;
        if steps.block_in_time
            && let Some(previous) = version.previous
            && let Some(digest) = readable(self.digest(previous))?
        {
            base = self.base(digest.key(), self.options.max_chain)?;
        }
        if steps.block_in_space {
            let sketch = similar::sketch(body);
            let found = {
                let mut similar = self.similar.lock().unwrap_or_else(PoisonError::into_inner);
                let wanted = base.is_none();
                let found = wanted.then(|| similar.find(version.group, &sketch)).flatten();
                similar.remember(version.group, &sketch, key);
                found
            };
            if let Some(found) = found {
                base = self.base(found, self.options.max_chain_in_space)?;
            }
        }
        Ok(base)
    }

    /// A stored body as a reference. If that would make the chain too long, the body that its chain
    /// began with: that is less alike, but far more than nothing.
    fn base(&self, key: BodyKey, max_depth: u8) -> Result<Option<Base>, StoreError> {
        // Its directory says so at once; decoding a long chain in vain costs more than the look.
        let depth_of = |key| -> Result<Option<u8>, StoreError> {
            let Some(place) = self.find_body(key)? else { return Ok(None) };
            Ok(readable(self.directory(place))?.map(|head| head.depth))
        };
        let is_free = |depth: Option<u8>| depth.is_some_and(|depth| depth < max_depth);
        let key = if is_free(depth_of(key)?) { key } else { self.chain_begin(key)? };
        let Some(stored) = readable(self.stored(key))? else { return Ok(None) };
        let usable = stored.depth < max_depth
            && stored.class != Class::Other
            && stored.bytes.len() <= MAX_DELTA_BYTES;
        let (depth, bytes) = (stored.depth, stored.bytes);
        Ok(usable.then_some(Base { key, depth, bytes }))
    }

    /// The body that was compressed against no other, at the beginning of those that lead to this one.
    fn chain_begin(&self, key: BodyKey) -> Result<BodyKey, StoreError> {
        let mut first = key;
        for _ in 0..MAX_CHAIN {
            let Some(place) = self.find_body(first)? else { break };
            match readable(self.directory(place))?.map(|head| head.reference) {
                Some(Reference::Body(base)) => first = base,
                _ => break,
            }
        }
        Ok(first)
    }

    /// Appends a chunk to the open pack, beginning one if there is none.
    pub(crate) fn append(
        &self,
        writer: &mut Writer,
        kind: ChunkKind,
        payload: &[u8],
    ) -> Result<Place, StoreError> {
        self.append_chunk(writer, kind, &mut [&[0; CHUNK_HEAD_BYTES], payload].concat())
    }

    /// As [`append`](Self::append), for a payload with room for the chunk's head in front of it.
    fn append_chunk(
        &self,
        writer: &mut Writer,
        kind: ChunkKind,
        chunk: &mut [u8],
    ) -> Result<Place, StoreError> {
        if writer.open.is_none() {
            writer.open = Some(self.begin_pack(writer)?);
        }
        let Some(open) = &mut writer.open else { unreachable!("a pack was just begun") };
        let place = Place { pack: open.number, offset: open.length };
        seal_in_place(kind, place.pack, place.offset, chunk);
        self.backend.append(&pack_name(open.number), open.length, chunk).map_err(from_backend)?;
        open.length += chunk.len() as u64;
        Ok(place)
    }

    fn begin_pack(&self, writer: &mut Writer) -> Result<OpenPack, StoreError> {
        let number = self.next_pack.fetch_add(1, Ordering::Relaxed);
        let head = PackHead { number, next_version: writer.next_version, generation: 0 };
        let chunk = seal_chunk(ChunkKind::PackHead, number, 0, &head.encode());
        let name = pack_name(number);
        self.backend.append(&name, 0, &chunk).map_err(from_backend)?;
        let length = chunk.len() as u64;
        let mut durable_bytes = 0;
        if self.backend.can_grow() {
            // The head is made durable on its own: a pack that begins with anything else was
            // damaged, and never merely torn.
            self.sync_pack(writer, number)?;
            durable_bytes = length;
        }
        Ok(OpenPack { number, length, durable_bytes })
    }

    /// fsync, after whose failure nothing unsynced can be trusted.
    fn sync_pack(&self, writer: &mut Writer, number: u64) -> Result<(), StoreError> {
        self.backend.sync(&pack_name(number)).map_err(|error| {
            writer.failed = true;
            from_backend(error)
        })
    }

    /// As [`sync`](Self::sync), while nobody else writes.
    pub(crate) fn sync_writer(&self, writer: &mut Writer) -> Result<(), StoreError> {
        let unsynced = self.write_rows(writer)?;
        if !self.backend.can_grow() {
            return if writer.open.is_some() { self.end_pack(writer) } else { Ok(()) };
        }
        if let Some((number, length)) = unsynced {
            self.sync_pack(writer, number)?;
            let record = PackRecord { number, bytes: length, ended: false, generation: 0 };
            self.note_synced(writer, &record)?;
        }
        let is_full = |open: &OpenPack| open.length >= self.options.pack_bytes;
        if writer.open.as_ref().is_some_and(is_full) { self.end_pack(writer) } else { Ok(()) }
    }

    /// Writes the records that wait, and tells which pack is not durable up to which length.
    fn write_rows(&self, writer: &mut Writer) -> Result<Option<(u64, u64)>, StoreError> {
        let first = writer.written.last().map_or(0, |(id, _)| id + 1);
        let rows: Vec<Arc<Row>> = {
            let pending = self.pending.read().unwrap_or_else(PoisonError::into_inner);
            pending.rows.range(first..).map(|(_, row)| row.clone()).collect()
        };
        for batch in batches(&rows) {
            let place = self.put_rows(writer, &batch)?;
            writer.written.extend(batch.iter().map(|row| (row.id, place)));
        }
        writer.shares_to_note.extend(std::mem::take(&mut writer.shares));
        let unsynced = |open: &&OpenPack| open.length > open.durable_bytes;
        Ok(writer.open.as_ref().filter(unsynced).map(|open| (open.number, open.length)))
    }

    /// Writes the end of the open pack. Where objects grow, everything before it is durable by
    /// now: an end that survives a crash proves that nothing in front of it was torn.
    pub(crate) fn end_pack(&self, writer: &mut Writer) -> Result<(), StoreError> {
        self.append(writer, ChunkKind::PackEnd, &PackEnd::default().encode())?;
        let Some(open) = &writer.open else { return Ok(()) };
        let record =
            PackRecord { number: open.number, bytes: open.length, ended: true, generation: 0 };
        self.sync_pack(writer, record.number)?;
        self.note_synced(writer, &record)?;
        writer.open = None;
        Ok(())
    }

    fn put_rows(&self, writer: &mut Writer, rows: &[Row]) -> Result<Place, StoreError> {
        let durable_bytes = writer.open.as_ref().map_or(0, |open| open.durable_bytes);
        let payload = rows::encode(rows, durable_bytes, self.options.level);
        let place = self.append(writer, ChunkKind::Versions, &payload)?;
        for (group, share) in rows_shares(rows, payload.len() as u64) {
            writer.shares.entry(group).or_default().add(&share);
        }
        Ok(place)
    }

    /// Tells the index what has become durable of the open pack, then forgets it as pending.
    fn note_synced(&self, writer: &mut Writer, record: &PackRecord) -> Result<(), StoreError> {
        let is_durable = |place: &Place| place.offset < record.bytes;
        let mut pending = self.pending.write().unwrap_or_else(PoisonError::into_inner);
        let durable = writer.written.partition_point(|(_, place)| is_durable(place));
        self.index().change(|change| {
            for (key, place) in pending.bodies.iter().filter(|(_, place)| is_durable(place)) {
                change.put_body(*key, *place, &|place, key| {
                    self.directory(place).is_ok_and(|head| head.find(key).is_some())
                })?;
            }
            for (id, place) in &writer.written[..durable] {
                change.put_version(*id, *place)?;
            }
            for (group, share) in &writer.shares_to_note {
                change.add_share(record.number, *group, share)?;
            }
            change.put_pack(record)?;
            change.raise_next_version(writer.next_version)
        })?;
        writer.shares_to_note.clear();
        pending.bodies.retain(|_, place| !is_durable(place));
        for (id, _) in writer.written.drain(..durable) {
            let noted_bytes = pending.rows.remove(&id).map_or(0, |row| row.weight_bytes());
            pending.weight_bytes = pending.weight_bytes.saturating_sub(noted_bytes);
        }
        writer.open.iter_mut().for_each(|open| open.durable_bytes = record.bytes);
        Ok(())
    }
}

/// A body that was compressed and is not written yet.
struct Squeezed {
    head: BodiesHead,
    /// Head and data, with room in front for the chunk's own head.
    chunk: Vec<u8>,
}

impl Squeezed {
    /// In a buffer that may have been used before.
    fn new(mut chunk: Vec<u8>, head: BodiesHead, data: &[&[u8]]) -> Self {
        let data_bytes = data.iter().map(|part| part.len()).sum::<usize>();
        chunk.clear();
        chunk.reserve(CHUNK_HEAD_BYTES + head.max_bytes() + data_bytes);
        chunk.extend_from_slice(&[0; CHUNK_HEAD_BYTES]);
        head.put(&mut chunk);
        data.iter().for_each(|part| chunk.extend_from_slice(part));
        Self { head, chunk }
    }
}

/// A body as it goes into its chunk.
struct Prepared<'b> {
    bytes: Cow<'b, [u8]>,
    recoding: Option<Recoding>,
}

impl<'b> From<&'b [u8]> for Prepared<'b> {
    fn from(body: &'b [u8]) -> Self {
        Self { bytes: body.into(), recoding: None }
    }
}

/// A body to compress against.
struct Base {
    key: BodyKey,
    depth: u8,
    bytes: Vec<u8>,
}

/// Damage in an old version must not stop a new one.
fn readable<T>(outcome: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(StoreError::Damaged { .. } | StoreError::NotFound { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}

impl Writer {
    /// Notes that something written now needs this body.
    fn build_upon(&self, key: BodyKey) -> Result<(), StoreError> {
        self.built_upon.as_ref().map_or(Ok(()), |built_upon| built_upon.note(key))
    }

    pub(crate) fn check(&self) -> Result<(), StoreError> {
        if !self.failed {
            return Ok(());
        }
        let source = std::io::Error::other("an earlier sync failed; open the archive again");
        Err(BackendError::Io { name: "the open pack".to_owned(), source }.into())
    }
}

fn check_limits(version: &NewVersion<'_>) -> Result<(), StoreError> {
    let words = [Some(version.protocol), version.tls, version.truncated];
    let word = words.into_iter().flatten().map(str::len).max().unwrap_or(0);
    let parts = [
        ("the body", version.body.len(), MAX_BODY_BYTES),
        ("the request head", version.request_head.len(), MAX_HEAD_BYTES as u64),
        ("the response head", version.response_head.len(), MAX_HEAD_BYTES as u64),
        ("a protocol, TLS or truncation word", word, MAX_WORD_BYTES as u64),
    ];
    for (what, found, limit) in parts {
        let found = found as u64;
        if found > limit {
            return Err(StoreError::TooLarge { what, found, limit });
        }
    }
    Ok(())
}

fn row(version: &NewVersion<'_>, id: u64, digest: Digest) -> Row {
    Row {
        id,
        group: version.group,
        url: version.url.as_str().to_owned(),
        visited_at_s: version.visited_at_s,
        status: version.status,
        protocol: version.protocol.to_owned(),
        tls: version.tls.map(str::to_owned),
        server_address: version.server_address,
        request_head: version.request_head.to_vec(),
        response_head: version.response_head.to_vec(),
        body_bytes: version.body.len() as u64,
        digest,
        truncated: version.truncated.map(str::to_owned),
    }
}

/// Cuts the waiting records into chunks of bounded count and weight.
fn batches(rows: &[Arc<Row>]) -> Vec<Vec<Row>> {
    let mut batches: Vec<Vec<Row>> = Vec::new();
    let mut weight_bytes = usize::MAX;
    for row in rows {
        let full = batches.last().is_none_or(|batch| batch.len() >= 512);
        if full || weight_bytes > 1 << 20 {
            batches.push(Vec::new());
            weight_bytes = 0;
        }
        weight_bytes += row.weight_bytes();
        if let Some(batch) = batches.last_mut() {
            batch.push(Row::clone(row));
        }
    }
    batches
}

/// What a bodies chunk of `written` bytes adds to its site.
pub(crate) fn bodies_share(head: &BodiesHead, written: u64) -> Share {
    let mut share = Share { unique_bytes: head.body_bytes(), ..Share::default() };
    match head.class {
        Class::Html => share.html_bytes = written,
        Class::Text => share.text_bytes = written,
        Class::Other => share.other_bytes = written,
    }
    share
}

/// A versions chunk is shared out among its sites by number of rows.
pub(crate) fn rows_shares(rows: &[Row], payload_bytes: u64) -> Vec<(u32, Share)> {
    let mut counts = std::collections::BTreeMap::<u32, u64>::new();
    rows.iter().for_each(|row| *counts.entry(row.group).or_default() += 1);
    let share = |versions: u64| {
        let record_bytes = payload_bytes * versions / rows.len() as u64;
        Share { record_bytes, versions, ..Share::default() }
    };
    counts.into_iter().map(|(group, versions)| (group, share(versions))).collect()
}
