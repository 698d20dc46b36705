//! The packs of the new generation. Each is complete, durable and indexed before the next begins;
//! what they replace stays until all of them are.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use crate::bodies::{BodiesHead, Coding, Reference};
use crate::chunk::{CHUNK_HEAD_BYTES, ChunkKind};
use crate::digest::BodyKey;
use crate::error::{StoreError, from_backend};
use crate::index::PackRecord;
use crate::mend::read_chunk;
use crate::open_pack::OpenPack;
use crate::pack::{Generation, Location, PackHead, damaged, pack_name};
use crate::rows::{self, Row};
use crate::share::Share;
use crate::store::Store;
use crate::wire::Malformed;
use crate::{forgotten, squeeze};

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

struct OpenOutput {
    pack: OpenPack,
    bodies: Vec<(BodyKey, Location)>,
    versions: Vec<(u64, Location)>,
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
            let pack = OpenPack::new(number);
            let (bodies, versions, shares) = (Vec::new(), Vec::new(), BTreeMap::new());
            self.open = Some(OpenOutput { pack, bodies, versions, shares });
            self.put(ChunkKind::PackHead, &head.encode())?;
            if self.store.backend.can_grow() {
                // As while collecting: a pack without a head was damaged, never torn.
                self.sync()?;
            }
        }
        Ok(self.open.as_ref().map_or(0, |open| open.pack.number))
    }

    fn sync(&self) -> Result<(), StoreError> {
        let Some(open) = &self.open else { return Ok(()) };
        self.store.backend.sync(&pack_name(open.pack.number)).map_err(from_backend)
    }

    /// Ends the pack if it holds enough. Returns whether what follows begins a new one.
    pub(super) fn make_room(&mut self) -> Result<bool, StoreError> {
        let is_full = self.open.as_ref().is_some_and(|open| {
            open.pack.length > MAX_PACK_BYTES
                || open.bodies.len() + open.versions.len() > MAX_PACK_ENTRIES
        });
        if is_full {
            self.end_pack()?;
        }
        Ok(is_full)
    }

    fn put(&mut self, kind: ChunkKind, payload: &[u8]) -> Result<Location, StoreError> {
        let Some(open) = &mut self.open else { unreachable!("a pack was begun") };
        open.pack.put(&*self.store.backend, kind, payload)
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
        let written = (payload.len() + CHUNK_HEAD_BYTES) as u64;
        self.share(head.group, &Share::of_bodies(head.class, head.body_bytes(), written));
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
        let sites = rows.iter().map(|row| row.group);
        for (group, share) in Share::of_rows(sites, payload.len() as u64) {
            self.share(group, &share);
        }
        if let Some(open) = &mut self.open {
            open.versions.extend(rows.iter().map(|row| (row.id, place)));
        }
        Ok(())
    }

    /// A single body without its neighbours. One that is alone already is copied as it is.
    pub(super) fn copy_body(&mut self, key: BodyKey) -> Result<(), StoreError> {
        if let Some(place) = self.store.find_body(key)? {
            let payload = read_chunk(&*self.store.backend, place, &[ChunkKind::Bodies])?;
            let (head, data) =
                BodiesHead::parse(&payload).map_err(|why| damaged("bodies chunk", place, why))?;
            if head.entries.len() == 1 && head.reference == Reference::Nothing {
                return self.put_bodies(&head, data);
            }
        }
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
        let backend = &*self.store.backend;
        let Some(open) = &mut self.open else { return Ok(()) };
        open.pack.cover(backend)?;
        if backend.can_grow() {
            self.sync()?;
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        if !open.pack.end(backend)? {
            let name = pack_name(open.pack.number);
            return Err(damaged("pack", name, Malformed("it was damaged while it was written")));
        }
        self.sync()?;
        let Some(mut open) = self.open.take() else { return Ok(()) };
        open.versions.sort_unstable();
        let record = PackRecord {
            number: open.pack.number,
            bytes: open.pack.length,
            ended: true,
            generation: self.generation,
        };
        let store = self.store;
        store.index().change(|change| {
            for (key, place) in &open.bodies {
                change.put_body(*key, *place, &|place, key| {
                    store.bodies_head(place).is_ok_and(|head| head.find(key).is_some())
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
        self.finished.push(record.number);
        Ok(())
    }

    /// Says again that these versions are forgotten.
    pub(super) fn put_forgotten(&mut self, batch: &[(u32, u64)]) -> Result<(), StoreError> {
        self.pack()?;
        self.put(ChunkKind::Forgotten, &forgotten::encode(batch)).map(|_| ())
    }

    /// Writes the last pack: once it has ended, the generation replaces these packs.
    pub(super) fn complete(&mut self, replaced: &[u64]) -> Result<(), StoreError> {
        let mut packs = self.finished.clone();
        packs.push(self.pack()?);
        let generation = Generation { packs, replaces: replaced.to_vec() };
        self.put(ChunkKind::Generation, &generation.encode())?;
        self.end_pack()
    }
}
