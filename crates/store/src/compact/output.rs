//! The packs of the new generation. Each is complete, durable and indexed before the next begins;
//! what they replace stays until all of them are.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use crate::bodies::{BodiesHead, Coding, Reference};
use crate::chunk::{CHUNK_HEAD_BYTES, ChunkKind, seal_chunk};
use crate::digest::BodyKey;
use crate::error::{StoreError, from_backend};
use crate::index::{PackRecord, Share};
use crate::pack::{PackEnd, PackHead, Place, pack_name};
use crate::put::{bodies_share, rows_shares};
use crate::rows::{self, Row};
use crate::store::Store;
use crate::{forget, squeeze};

/// Beyond this a pack is ended as soon as possible.
const MAX_PACK_BYTES: u64 = 512 << 20;
/// The same for bodies and versions, which are held in memory until the pack is in the index: about
/// 50 bytes each.
const MAX_PACK_ENTRIES: usize = 1 << 18;
const CARRY_LEVEL: i32 = 12;

pub(super) struct Output<'s> {
    store: &'s Store,
    generation: u64,
    open: Option<OpenOutput>,
    finished: Vec<u64>,
}

#[derive(Default)]
struct OpenOutput {
    number: u64,
    length: u64,
    bodies: Vec<(BodyKey, Place)>,
    versions: Vec<(u64, Place)>,
    shares: BTreeMap<u32, Share>,
}

impl<'s> Output<'s> {
    pub(super) fn new(store: &'s Store, generation: u64) -> Self {
        Self { store, generation, open: None, finished: Vec::new() }
    }

    /// The pack that the next chunk goes into.
    pub(super) fn pack(&mut self) -> Result<u64, StoreError> {
        if self.open.is_none() {
            let number = self.store.next_pack.fetch_add(1, Ordering::Relaxed);
            let next_version = self.store.index().next_version()?;
            let head = PackHead { number, next_version, generation: self.generation };
            self.open = Some(OpenOutput { number, ..OpenOutput::default() });
            self.put(ChunkKind::PackHead, &head.encode())?;
            if self.store.backend.can_grow() {
                // As while collecting: a pack without a head was damaged, never torn.
                self.sync()?;
            }
        }
        Ok(self.open.as_ref().map_or(0, |open| open.number))
    }

    fn sync(&self) -> Result<(), StoreError> {
        let Some(open) = &self.open else { return Ok(()) };
        self.store.backend.sync(&pack_name(open.number)).map_err(from_backend)
    }

    /// Ends the pack if it holds enough. Returns whether what follows begins a new one.
    pub(super) fn make_room(&mut self) -> Result<bool, StoreError> {
        let is_full = self.open.as_ref().is_some_and(|open| {
            open.length > MAX_PACK_BYTES
                || open.bodies.len() + open.versions.len() > MAX_PACK_ENTRIES
        });
        if is_full {
            self.end_pack()?;
        }
        Ok(is_full)
    }

    fn put(&mut self, kind: ChunkKind, payload: &[u8]) -> Result<Place, StoreError> {
        let Some(open) = &mut self.open else { unreachable!("a pack was begun") };
        let place = Place { pack: open.number, offset: open.length };
        let chunk = seal_chunk(kind, place.pack, place.offset, payload);
        let name = pack_name(open.number);
        self.store.backend.append(&name, open.length, &chunk).map_err(from_backend)?;
        open.length += chunk.len() as u64;
        Ok(place)
    }

    pub(super) fn put_prefix(&mut self, site: u32, payload: &[u8]) -> Result<u64, StoreError> {
        self.pack()?;
        let place = self.put(ChunkKind::Prefix, payload)?;
        let share =
            Share { html_bytes: (payload.len() + CHUNK_HEAD_BYTES) as u64, ..Share::default() };
        self.share(site, &share);
        Ok(place.offset)
    }

    pub(super) fn put_bodies(&mut self, head: &BodiesHead, data: &[u8]) -> Result<(), StoreError> {
        self.pack()?;
        let payload = head.encode(data);
        let place = self.put(ChunkKind::Bodies, &payload)?;
        self.share(head.group, &bodies_share(head, (payload.len() + CHUNK_HEAD_BYTES) as u64));
        if let Some(open) = &mut self.open {
            open.bodies.extend(head.entries.iter().map(|entry| (entry.key, place)));
        }
        Ok(())
    }

    pub(super) fn put_rows(&mut self, rows: &[Row], level: i32) -> Result<(), StoreError> {
        self.make_room()?;
        self.pack()?;
        let payload = rows::encode(rows, 0, level);
        let place = self.put(ChunkKind::Versions, &payload)?;
        for (group, share) in rows_shares(rows, payload.len() as u64) {
            self.share(group, &share);
        }
        if let Some(open) = &mut self.open {
            open.versions.extend(rows.iter().map(|row| (row.id, place)));
        }
        Ok(())
    }

    /// A single body without its neighbours.
    pub(super) fn copy_body(&mut self, key: BodyKey) -> Result<(), StoreError> {
        let stored = self.store.stored(key)?;
        let squeezed = squeeze::compress(&stored.bytes, CARRY_LEVEL, b"");
        let head = BodiesHead {
            group: stored.group,
            class: stored.class,
            coding: Coding::Zstd,
            reference: Reference::Nothing,
            depth: 0,
            entries: vec![stored.entry],
        };
        self.put_bodies(&head, &squeezed)
    }

    fn share(&mut self, site: u32, share: &Share) {
        if let Some(open) = &mut self.open {
            open.shares.entry(site).or_default().add(share);
        }
    }

    /// Ends the pack, makes it durable and leads the index to it.
    pub(super) fn end_pack(&mut self) -> Result<(), StoreError> {
        self.finish(&PackEnd::default())
    }

    fn finish(&mut self, end: &PackEnd) -> Result<(), StoreError> {
        if self.open.is_none() {
            return Ok(());
        }
        if self.store.backend.can_grow() {
            self.sync()?;
        }
        self.put(ChunkKind::PackEnd, &end.encode())?;
        self.sync()?;
        let Some(mut open) = self.open.take() else { return Ok(()) };
        open.versions.sort_unstable();
        let record = PackRecord {
            number: open.number,
            bytes: open.length,
            ended: true,
            generation: self.generation,
        };
        let store = self.store;
        store.index().change(|change| {
            for (key, place) in &open.bodies {
                change.put_body(*key, *place, &|place, key| {
                    store.directory(place).is_ok_and(|head| head.find(key).is_some())
                })?;
            }
            for (id, place) in &open.versions {
                change.move_version(*id, *place)?;
            }
            for (group, share) in &open.shares {
                change.add_share(record.number, *group, share)?;
            }
            change.put_pack(&record)
        })?;
        self.finished.push(open.number);
        Ok(())
    }

    /// Takes back the pack that could not be finished.
    pub(super) fn abandon(&mut self) -> Result<(), StoreError> {
        match self.open.take() {
            Some(open) => self.store.backend.delete(&pack_name(open.number)).map_err(from_backend),
            None => Ok(()),
        }
    }

    /// Says again that these versions are forgotten.
    pub(super) fn put_forgotten(&mut self, batch: &[(u32, u64)]) -> Result<(), StoreError> {
        self.pack()?;
        self.put(ChunkKind::Forgotten, &forget::encode(batch)).map(|_| ())
    }

    /// Writes the last pack: with it the generation stands for the packs that it replaces.
    pub(super) fn complete(&mut self, replaced: &[u64]) -> Result<(), StoreError> {
        let last = self.pack()?;
        let mut generation = self.finished.clone();
        generation.push(last);
        self.finish(&PackEnd { generation, replaces: replaced.to_vec() })
    }
}
