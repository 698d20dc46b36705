//! What happens when an archive is opened: the index learns what it does not know of the packs,
//! and the tail that a crash tore off the open pack is cut away.

use std::collections::BTreeMap;

use crate::Digest;
use crate::backend::ContentBackend;
use crate::bodies::BodiesHead;
use crate::chunk::{CHUNK_HEAD_BYTES, ChunkHead, ChunkKind};
use crate::error::{BackendError, StoreError, from_backend};
use crate::index::{Index, PackRecord, Share};
use crate::pack::{Found, PackEnd, PackHead, Place, damaged, pack_name, pack_number, walk};
use crate::put::{OpenPack, bodies_share, rows_shares};
use crate::store::Writer;
use crate::{forget, rows};

/// A pack head is smaller than this; a shorter file without one is a pack that was never begun.
const TORN_HEAD_BYTES: u64 = 64;

/// Brings the index up to the packs and says where writing goes on: in which pack, and with which
/// number the next one begins.
pub(crate) fn catch_up(
    backend: &dyn ContentBackend,
    index: &mut Index,
) -> Result<(Writer, u64), StoreError> {
    let known: BTreeMap<u64, PackRecord> =
        index.packs()?.into_iter().map(|record| (record.number, record)).collect();
    let mut next_pack = known.keys().next_back().map_or(1, |number| number + 1);
    let mut open = None;
    let mut forgotten = Vec::new();
    let mut ends = Vec::new();
    for (name, length) in backend.list().map_err(from_backend)? {
        let Some(number) = pack_number(&name) else { continue };
        next_pack = next_pack.max(number + 1);
        let record = known.get(&number).copied();
        let complete = record.is_some_and(|record| record.ended && record.bytes == length);
        if complete {
            continue;
        }
        let survey = Survey::of(backend, number, record, length)?;
        if survey.is_unfinished_output() && survey.is_all_elsewhere(backend, index)? {
            // Everything in it is still where compacting took it from.
            backend.delete(&name).map_err(from_backend)?;
            continue;
        }
        forgotten.extend_from_slice(&survey.forgotten);
        ends.extend(survey.end.clone());
        open = survey.settle(backend, index)?.or(open);
    }
    index.change(|change| {
        forgotten.iter().try_for_each(|(site, id)| change.forget_version(*site, *id))?;
        change.keep_forgotten()
    })?;
    finish_generations(backend, index, &ends)?;
    let writer = Writer {
        open,
        next_version: index.next_version()?,
        written: Vec::new(),
        shares: BTreeMap::new(),
        shares_to_note: Vec::new(),
        failed: false,
        references: None,
    };
    Ok((writer, next_pack))
}

/// A crash may have come between completing a generation and deleting what it replaces.
fn finish_generations(
    backend: &dyn ContentBackend,
    index: &mut Index,
    ends: &[PackEnd],
) -> Result<(), StoreError> {
    for end in ends {
        let packs = index.packs()?;
        let ended = |number: &u64| packs.iter().any(|pack| pack.number == *number && pack.ended);
        if end.generation.is_empty() || !end.generation.iter().all(ended) {
            continue;
        }
        index.change(|change| end.replaces.iter().try_for_each(|pack| change.drop_pack(*pack)))?;
        for pack in &end.replaces {
            backend.delete(&pack_name(*pack)).map_err(from_backend)?;
        }
    }
    Ok(())
}

/// What was found in a pack behind the part that the index knows.
struct Survey {
    number: u64,
    length: u64,
    record: Option<PackRecord>,
    head: Option<PackHead>,
    end: Option<PackEnd>,
    /// Everything before this was durable once.
    protected_bytes: u64,
    first_gap: Option<u64>,
    bodies: Vec<(Place, BodiesHead, u64)>,
    versions: Vec<(Place, Vec<u64>)>,
    shares: Vec<(u64, u32, Share)>,
    forgotten: Vec<(u32, u64)>,
    next_version: u64,
}

impl Survey {
    fn of(
        backend: &dyn ContentBackend,
        number: u64,
        record: Option<PackRecord>,
        length: u64,
    ) -> Result<Self, StoreError> {
        let from = record.map_or(0, |record| record.bytes);
        let mut survey = Self {
            number,
            length,
            record,
            head: None,
            end: None,
            protected_bytes: from,
            first_gap: None,
            bodies: Vec::new(),
            versions: Vec::new(),
            shares: Vec::new(),
            forgotten: Vec::new(),
            next_version: 0,
        };
        walk(backend, number, from, length, &mut |found| survey.note(found))?;
        Ok(survey)
    }

    fn note(&mut self, found: Found) -> Result<(), StoreError> {
        let (offset, kind, payload) = match found {
            Found::Chunk { offset, kind, payload } => (offset, kind, payload),
            Found::Gap { start, .. } => {
                self.first_gap =
                    self.first_gap.or((start >= self.protected_bytes).then_some(start));
                return Ok(());
            }
        };
        let place = Place { pack: self.number, offset };
        let name = pack_name(self.number);
        match kind {
            ChunkKind::PackHead => {
                let head = PackHead::parse(&payload, &name)?;
                self.next_version = self.next_version.max(head.next_version);
                self.head = Some(head);
            }
            ChunkKind::Bodies => {
                let (head, _) = BodiesHead::parse(&payload)
                    .map_err(|why| damaged("bodies chunk", place, why))?;
                let written = (CHUNK_HEAD_BYTES + payload.len()) as u64;
                self.shares.push((offset, head.group, bodies_share(&head, written)));
                self.bodies.push((place, head, written));
            }
            ChunkKind::Versions => {
                let rows =
                    rows::decode(&payload).map_err(|why| damaged("versions chunk", place, why))?;
                // Damage in front of this stays where it is: only what was never durable is cut.
                if rows.durable_bytes > self.protected_bytes {
                    self.protected_bytes = rows.durable_bytes;
                    self.first_gap = self.first_gap.filter(|gap| *gap >= rows.durable_bytes);
                }
                for (group, share) in rows_shares(&rows.rows, payload.len() as u64) {
                    self.shares.push((offset, group, share));
                }
                self.versions.push((place, rows.rows.iter().map(|row| row.id).collect()));
            }
            ChunkKind::Forgotten => {
                let ids = forget::decode(&payload)
                    .map_err(|why| damaged("forgotten chunk", place, why))?;
                self.forgotten.extend(ids);
            }
            ChunkKind::PackEnd => {
                let end =
                    PackEnd::parse(&payload).map_err(|why| damaged("pack end", place, why))?;
                self.end = Some(end);
            }
            ChunkKind::Prefix => {}
        }
        Ok(())
    }

    /// A pack that compacting had not ended when it was interrupted.
    fn is_unfinished_output(&self) -> bool {
        let compacted = self.head.as_ref().is_some_and(|head| head.generation > 0);
        compacted && self.end.is_none() && self.record.is_none()
    }

    /// Whether nothing would be lost with this pack.
    fn is_all_elsewhere(
        &self,
        backend: &dyn ContentBackend,
        index: &Index,
    ) -> Result<bool, StoreError> {
        for id in self.versions.iter().flat_map(|(_, ids)| ids) {
            if index.version(*id)?.is_none() {
                return Ok(false);
            }
        }
        for entry in self.bodies.iter().flat_map(|(_, head, _)| &head.entries) {
            let places = index.candidates(&entry.digest)?;
            if !places.iter().any(|place| holds(backend, *place, &entry.digest)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Cuts what was torn, tells the index the rest, and gives the pack back if writing can go on
    /// in it.
    fn settle(
        self,
        backend: &dyn ContentBackend,
        index: &mut Index,
    ) -> Result<Option<OpenPack>, StoreError> {
        let name = pack_name(self.number);
        if self.head.is_none() && self.record.is_none() {
            return self.settle_headless(backend, index, &name);
        }
        let torn = self.first_gap.filter(|_| self.end.is_none() && backend.can_grow());
        let length = torn.unwrap_or(self.length);
        if torn.is_some() {
            backend.truncate(&name, length).map_err(from_backend)?;
            backend.sync(&name).map_err(from_backend)?;
        }
        self.tell(backend, index, length)?;
        // A pack that lost bytes is left alone, so that nothing is written where the index
        // expects something else.
        let whole = self.record.is_none_or(|record| record.bytes <= length);
        let may_grow = whole && self.end.is_none() && backend.can_grow();
        Ok(may_grow.then_some(OpenPack { number: self.number, length, durable_bytes: length }))
    }

    /// A file without a head: a pack that was never begun, or something that is not ours to
    /// touch, such as a copy of another pack; `verify` names that.
    fn settle_headless(
        &self,
        backend: &dyn ContentBackend,
        index: &mut Index,
        name: &str,
    ) -> Result<Option<OpenPack>, StoreError> {
        if self.length < TORN_HEAD_BYTES && self.bodies.is_empty() && self.versions.is_empty() {
            backend.delete(name).map_err(from_backend)?;
        } else {
            self.tell(backend, index, self.length)?;
        }
        Ok(None)
    }

    fn tell(
        &self,
        backend: &dyn ContentBackend,
        index: &mut Index,
        length: u64,
    ) -> Result<(), StoreError> {
        let holds = |place: Place, digest: &Digest| holds(backend, place, digest);
        let generation = match (&self.head, self.record) {
            (Some(head), _) => head.generation,
            (None, Some(record)) => record.generation,
            (None, None) => 0,
        };
        let bytes = length.max(self.record.map_or(0, |record| record.bytes));
        let record =
            PackRecord { number: self.number, bytes, ended: self.end.is_some(), generation };
        index.change(|change| {
            let mut next_version = self.next_version;
            for (place, head, _) in self.bodies.iter().filter(|(p, ..)| p.offset < length) {
                for entry in &head.entries {
                    change.put_body(&entry.digest, *place, &holds)?;
                }
            }
            for (place, ids) in self.versions.iter().filter(|(p, _)| p.offset < length) {
                for id in ids {
                    change.put_version(*id, *place)?;
                    next_version = next_version.max(id + 1);
                }
            }
            for (_, group, share) in self.shares.iter().filter(|(at, ..)| *at < length) {
                change.add_share(self.number, *group, share)?;
            }
            change.put_pack(&record)?;
            change.raise_next_version(next_version)
        })
    }
}

/// Whether a sound bodies chunk with this digest lies there.
fn holds(backend: &dyn ContentBackend, place: Place, digest: &Digest) -> bool {
    let name = pack_name(place.pack);
    let look = || -> Result<bool, BackendError> {
        let head = backend.read(&name, place.offset, CHUNK_HEAD_BYTES)?;
        let Ok(head) = ChunkHead::parse(&head) else { return Ok(false) };
        let start = place.offset + CHUNK_HEAD_BYTES as u64;
        let payload = backend.read(&name, start, head.payload_bytes)?;
        Ok(BodiesHead::parse(&payload).is_ok_and(|(head, _)| head.find(digest).is_some()))
    };
    look().unwrap_or(false)
}
