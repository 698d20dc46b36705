//! Writing: versions wait in memory until a group of them is written, records first, or with the next
//! sync.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};

use crate::bodies::{MAX_BODY_BYTES, Reference};
use crate::chunk::{CHUNK_HEAD_BYTES, ChunkKind};
use crate::compress::Squeezed;
use crate::digest::BodyKey;
use crate::error::{BackendError, StoreError, from_backend};
use crate::heads::MAX_HEAD_BYTES;
use crate::index::PackRecord;
use crate::open_pack::OpenPack;
use crate::pack::{Location, PackHead, pack_name};
use crate::pieces::CUT_FROM_BYTES;
use crate::rows::{self, MAX_WORD_BYTES, Row};
use crate::share::Share;
use crate::store::Store;
use crate::writer::Writer;
use crate::{Digest, NewVersion, Packing, Put, VersionId};

/// Records that may wait in memory before a sync is made without a call, and their size in bytes.
const MAX_PENDING_ROWS: usize = 16 << 10;
const MAX_PENDING_BYTES: usize = 16 << 20;
/// Versions that wait to be written as a group, and what their bodies may take: larger chunks of
/// records take less space.
const MAX_GROUP_ROWS: usize = 128;
const MAX_GROUP_BYTES: usize = 1 << 20;

/// From so many bytes on that are not durable yet, it pays to let the disk begin.
const SYNCED_AHEAD_FROM_BYTES: u64 = 4 << 20;

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
        if version.body.len() > CUT_FROM_BYTES {
            return self.put_cut(version, &mut &version.body[..]);
        }
        self.sync_if_full()?;
        let looked_at = self.index().changes();
        let key = digest.key();
        let was_known = self.is_known(key)?;
        let squeezed = match was_known {
            true => None,
            false => Some(self.squeeze(version, key, packing)?),
        };
        let mut writer = self.writer();
        writer.check()?;
        self.write_full_group(&mut writer)?;
        // What was known may have been compacted away since, and what was not may have come.
        let is_as_it_was = self.index().changes() == looked_at;
        let known = match is_as_it_was {
            true => was_known || self.is_pending(key),
            false => self.is_known(key)?,
        };
        let body_bytes = match (known, squeezed) {
            (true, _) => writer.build_upon(key).map(|()| 0)?,
            (false, Some(squeezed)) if self.is_base_there(&squeezed)? => {
                self.keep_body(&mut writer, key, squeezed)?
            }
            (false, _) => self.keep_body(&mut writer, key, self.squeeze_alone(version, key))?,
        };
        let row = row(version, version.body.len() as u64, digest);
        Ok(self.enter(writer, row, body_bytes, known))
    }

    /// Stores a version whose body has a stored form already, unless the body is known.
    pub(crate) fn put_squeezed(
        &self,
        version: &NewVersion<'_>,
        body_bytes: u64,
        digest: Digest,
        squeezed: &dyn Fn(BodyKey) -> Squeezed,
    ) -> Result<Put, StoreError> {
        check_limits(version)?;
        self.sync_if_full()?;
        let key = digest.key();
        let mut writer = self.writer();
        writer.check()?;
        self.write_full_group(&mut writer)?;
        let known = self.is_known(key)?;
        let written = match known {
            true => writer.build_upon(key).map(|()| 0)?,
            false => self.keep_body(&mut writer, key, squeezed(key))?,
        };
        Ok(self.enter(writer, row(version, body_bytes, digest), written, known))
    }

    /// Syncs if too many records wait. Puts call this first: if it fails, nothing was put.
    fn sync_if_full(&self) -> Result<(), StoreError> {
        let is_full = {
            let pending = self.pending.read().unwrap_or_else(PoisonError::into_inner);
            pending.rows.len() >= MAX_PENDING_ROWS || pending.weight_bytes >= MAX_PENDING_BYTES
        };
        if is_full { self.sync() } else { Ok(()) }
    }

    /// Writes the group that waits if it is full. Puts call this before they add to it: if it fails,
    /// the version is not in the store, and the caller may put it again.
    fn write_full_group(&self, writer: &mut Writer) -> Result<(), StoreError> {
        let bytes = {
            let pending = self.pending.read().unwrap_or_else(PoisonError::into_inner);
            pending.group.bytes()
        };
        let is_full = writer.group_rows >= MAX_GROUP_ROWS || bytes >= MAX_GROUP_BYTES;
        if is_full { self.write_group(writer) } else { Ok(()) }
    }

    /// Gives a record its number and lets it wait for the next sync; its body took `body_bytes`.
    fn enter(
        &self,
        mut writer: MutexGuard<'_, Writer>,
        mut row: Row,
        body_bytes: u64,
        known: bool,
    ) -> Put {
        let (id, digest) = (writer.next_version, row.digest);
        writer.next_version += 1;
        row.id = id;
        let weight_bytes = row.weight_bytes();
        writer.group_rows += 1;
        let mut pending = self.pending.write().unwrap_or_else(PoisonError::into_inner);
        pending.rows.insert(id, Arc::new(row));
        pending.weight_bytes += weight_bytes;
        let new_bytes = body_bytes + weight_bytes as u64 / 4;
        Put { id: VersionId(id), digest, new_bytes, whole_body_known: known }
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

    /// A body that is damaged does not count: the one that came now replaces it.
    fn is_known(&self, key: BodyKey) -> Result<bool, StoreError> {
        let is_stored = || Ok(self.pending_location(key).is_some() || self.is_whole(key)?);
        if self.options.steps.file { is_stored() } else { Ok(false) }
    }

    fn is_pending(&self, key: BodyKey) -> bool {
        self.options.steps.file && self.pending_location(key).is_some()
    }

    fn is_base_there(&self, squeezed: &Squeezed) -> Result<bool, StoreError> {
        match &squeezed.head.reference {
            Reference::Body(base) => Ok(self.find_body(*base)?.is_some()),
            _ => Ok(true),
        }
    }

    /// Keeps a body that is new until its group is written.
    pub(crate) fn keep_body(
        &self,
        writer: &mut Writer,
        key: BodyKey,
        Squeezed { head, payload }: Squeezed,
    ) -> Result<u64, StoreError> {
        if let Reference::Body(base) = &head.reference {
            writer.build_upon(*base)?;
        }
        let written = (CHUNK_HEAD_BYTES + payload.len()) as u64;
        writer.shares.entry(head.group).or_default().add(&Share::of_bodies(
            head.class,
            head.body_bytes(),
            written,
        ));
        let mut pending = self.pending.write().unwrap_or_else(PoisonError::into_inner);
        let place = pending.group.keep(key, payload);
        pending.bodies.insert(key, place);
        Ok(written)
    }

    /// Appends a chunk to the open pack, beginning one if there is none.
    pub(crate) fn append(
        &self,
        writer: &mut Writer,
        kind: ChunkKind,
        payload: &[u8],
    ) -> Result<Location, StoreError> {
        self.open_pack(writer)?.put(&*self.backend, kind, payload)
    }

    fn open_pack<'w>(&self, writer: &'w mut Writer) -> Result<&'w mut OpenPack, StoreError> {
        let open = match writer.open.take() {
            Some(open) => open,
            None => self.begin_pack(writer)?,
        };
        Ok(writer.open.insert(open))
    }

    fn begin_pack(&self, writer: &mut Writer) -> Result<OpenPack, StoreError> {
        let number = self.next_pack.fetch_add(1, Ordering::Relaxed);
        let head = PackHead { number, next_version: writer.next_version, generation: 0 };
        let mut open = OpenPack::new(number);
        open.put(&*self.backend, ChunkKind::PackHead, &head.encode())?;
        if self.backend.can_grow() {
            // The head is made durable on its own: a pack that begins with anything else was
            // damaged, and never merely torn.
            self.sync_pack(writer, number)?;
            open.durable_bytes = open.length;
        }
        Ok(open)
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

    /// Writes what waits and parity of what has none, and says which pack is not durable
    /// up to which length.
    fn write_rows(&self, writer: &mut Writer) -> Result<Option<(u64, u64)>, StoreError> {
        self.write_group(writer)?;
        writer.shares_to_note.extend(std::mem::take(&mut writer.shares));
        let Some(open) = &mut writer.open else { return Ok(None) };
        open.cover(&*self.backend)?;
        Ok((open.length > open.durable_bytes).then_some((open.number, open.length)))
    }

    /// Writes the versions that wait: first their records, then their bodies. After a failure it can
    /// be called again and goes on where it stopped.
    pub(crate) fn write_group(&self, writer: &mut Writer) -> Result<(), StoreError> {
        let first = writer.written.last().map_or(0, |(id, _)| id + 1);
        let rows: Vec<Arc<Row>> = {
            let pending = self.pending.read().unwrap_or_else(PoisonError::into_inner);
            pending.rows.range(first..).map(|(_, row)| row.clone()).collect()
        };
        for batch in batches(&rows) {
            let place = self.put_rows(writer, &batch)?;
            writer.written.extend(batch.iter().map(|row| (row.id, place)));
        }
        writer.group_rows = 0;
        loop {
            let next = {
                let pending = self.pending.read().unwrap_or_else(PoisonError::into_inner);
                pending.group.first()
            };
            let Some((key, payload)) = next else { return Ok(()) };
            let place = self.append(writer, ChunkKind::Bodies, &payload)?;
            let mut pending = self.pending.write().unwrap_or_else(PoisonError::into_inner);
            pending.group.remove_first();
            pending.bodies.insert(key, place);
        }
    }

    /// Writes the directory of the open pack, which ends it. Where objects grow, everything before it
    /// is durable by now: an end that survives a crash proves that nothing in front of it was torn.
    pub(crate) fn end_pack(&self, writer: &mut Writer) -> Result<(), StoreError> {
        let Some(open) = &mut writer.open else { return Ok(()) };
        if !open.end(&*self.backend)? {
            // A pack that was damaged meanwhile stays without an end, and another one is begun.
            writer.open = None;
            return Ok(());
        }
        let record =
            PackRecord { number: open.number, bytes: open.length, ended: true, generation: 0 };
        self.sync_pack(writer, record.number)?;
        self.note_synced(writer, &record)?;
        writer.open = None;
        Ok(())
    }

    fn put_rows(&self, writer: &mut Writer, rows: &[Row]) -> Result<Location, StoreError> {
        let durable_bytes = writer.open.as_ref().map_or(0, |open| open.durable_bytes);
        let payload = rows::encode(rows, durable_bytes, self.options.level);
        let place = self.append(writer, ChunkKind::Versions, &payload)?;
        let sites = rows.iter().map(|row| row.group);
        for (group, share) in Share::of_rows(sites, payload.len() as u64) {
            writer.shares.entry(group).or_default().add(&share);
        }
        Ok(place)
    }

    /// Enters into the index what has become durable of the open pack, then forgets it as pending.
    fn note_synced(&self, writer: &mut Writer, record: &PackRecord) -> Result<(), StoreError> {
        let is_durable =
            |place: &Location| place.pack == record.number && place.offset < record.bytes;
        let mut pending = self.pending.write().unwrap_or_else(PoisonError::into_inner);
        let durable = writer.written.partition_point(|(_, place)| is_durable(place));
        self.index().change(|change| {
            for (key, place) in pending.bodies.iter().filter(|(_, place)| is_durable(place)) {
                change.put_body(*key, *place, &|place, key| {
                    self.bodies_head(place).is_ok_and(|head| head.find(key).is_some())
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

/// The record of a version that has no number yet.
fn row(version: &NewVersion<'_>, body_bytes: u64, digest: Digest) -> Row {
    Row {
        id: 0,
        group: version.group,
        url: version.url.as_str().to_owned(),
        visited_at_s: version.visited_at_s,
        status: version.status,
        protocol: version.protocol.to_owned(),
        tls: version.tls.map(str::to_owned),
        server_address: version.server_address,
        request_head: version.request_head.to_vec(),
        response_head: version.response_head.to_vec(),
        body_bytes,
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
