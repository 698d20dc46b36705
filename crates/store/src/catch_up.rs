//! What happens when an archive is opened: the index learns what it does not know of the packs,
//! and the tail that a crash tore off the open pack is cut away.

use std::collections::BTreeMap;

use crate::backend::ContentBackend;
use crate::bodies::BodiesHead;
use crate::chunk::{CHUNK_HEAD_BYTES, ChunkHead, ChunkKind};
use crate::digest::BodyKey;
use crate::error::{BackendError, StoreError, from_backend};
use crate::forget;
use crate::index::{Index, PackRecord};
use crate::pack::{
    Found, PackEnd, PackHead, Place, damaged, is_of_present_format, pack_name, pack_number, walk,
};
use crate::put::{OpenPack, bodies_share, rows_shares};
use crate::rows::{self, Row};
use crate::store::Writer;

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
        ends.extend(survey.end.clone());
        open = survey.settle(backend, index)?.or(open);
    }
    index.change(|change| change.keep_forgotten())?;
    finish_generations(backend, index, &ends)?;
    let writer = Writer {
        open,
        next_version: index.next_version()?,
        written: Vec::new(),
        shares: BTreeMap::new(),
        shares_to_note: Vec::new(),
        failed: false,
        built_upon: None,
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

/// What kind of pack it is, behind the part that the index knows. What it holds is read a second
/// time when the index is told, since it may be more than fits into memory.
struct Survey {
    number: u64,
    length: u64,
    record: Option<PackRecord>,
    head: Option<PackHead>,
    end: Option<PackEnd>,
    /// Everything before this was durable once.
    protected_bytes: u64,
    first_gap: Option<u64>,
    holds_something: bool,
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
            holds_something: false,
        };
        walk(backend, number, from, length, &mut |found| survey.note(found))?;
        Ok(survey)
    }

    /// Where the part begins that the index does not know.
    fn from(&self) -> u64 {
        self.record.map_or(0, |record| record.bytes)
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
        match kind {
            ChunkKind::PackHead => {
                self.head = Some(PackHead::parse(&payload, &pack_name(self.number))?);
            }
            ChunkKind::Versions => {
                let durable_bytes = rows::durable_bytes(&payload)
                    .map_err(|why| damaged("versions chunk", place, why))?;
                // Damage in front of this stays where it is: only what was never durable is cut.
                if durable_bytes > self.protected_bytes {
                    self.protected_bytes = durable_bytes;
                    self.first_gap = self.first_gap.filter(|gap| *gap >= durable_bytes);
                }
                self.holds_something = true;
            }
            ChunkKind::PackEnd => {
                let end =
                    PackEnd::parse(&payload).map_err(|why| damaged("pack end", place, why))?;
                self.end = Some(end);
            }
            ChunkKind::Bodies => self.holds_something = true,
            ChunkKind::Forgotten | ChunkKind::Prefix => {}
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
        let mut all = true;
        self.contents(backend, self.length, &mut |content| {
            match content {
                Content::Versions(_, rows, _) => {
                    for row in rows {
                        all = all && index.version(row.id)?.is_some();
                    }
                }
                Content::Bodies(_, head, _) => {
                    for entry in head.entries {
                        let places = index.candidates(entry.key)?;
                        all = all && places.iter().any(|p| holds(backend, *p, entry.key));
                    }
                }
                Content::Forgotten(_) => {}
            }
            Ok(())
        })?;
        Ok(all)
    }

    /// Visits what the pack holds up to `length`.
    fn contents(
        &self,
        backend: &dyn ContentBackend,
        length: u64,
        visit: &mut dyn FnMut(Content) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        walk(backend, self.number, self.from(), length, &mut |found| {
            let Found::Chunk { offset, kind, payload } = found else { return Ok(()) };
            let place = Place { pack: self.number, offset };
            visit(match kind {
                ChunkKind::Bodies => {
                    let (head, _) = BodiesHead::parse(&payload)
                        .map_err(|why| damaged("bodies chunk", place, why))?;
                    Content::Bodies(place, head, (CHUNK_HEAD_BYTES + payload.len()) as u64)
                }
                ChunkKind::Versions => {
                    let rows = rows::decode(&payload)
                        .map_err(|why| damaged("versions chunk", place, why))?;
                    Content::Versions(place, rows, payload.len() as u64)
                }
                ChunkKind::Forgotten => {
                    let forgotten = forget::decode(&payload)
                        .map_err(|why| damaged("forgotten chunk", place, why))?;
                    Content::Forgotten(forgotten)
                }
                ChunkKind::PackHead | ChunkKind::Prefix | ChunkKind::PackEnd => return Ok(()),
            })
        })
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
        let may_grow = whole
            && self.end.is_none()
            && backend.can_grow()
            && is_of_present_format(backend, self.number)?;
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
        if self.length < TORN_HEAD_BYTES && !self.holds_something {
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
        let holds = |place: Place, key: BodyKey| holds(backend, place, key);
        let generation = match (&self.head, self.record) {
            (Some(head), _) => head.generation,
            (None, Some(record)) => record.generation,
            (None, None) => 0,
        };
        let bytes = length.max(self.record.map_or(0, |record| record.bytes));
        let record =
            PackRecord { number: self.number, bytes, ended: self.end.is_some(), generation };
        index.change(|change| {
            let mut next_version = self.head.as_ref().map_or(0, |head| head.next_version);
            self.contents(backend, length, &mut |content| match content {
                Content::Bodies(place, head, written) => {
                    for entry in &head.entries {
                        change.put_body(entry.key, place, &holds)?;
                    }
                    change.add_share(self.number, head.group, &bodies_share(&head, written))
                }
                Content::Versions(place, rows, payload_bytes) => {
                    for row in &rows {
                        change.put_version(row.id, place)?;
                        next_version = next_version.max(row.id + 1);
                    }
                    for (group, share) in rows_shares(&rows, payload_bytes) {
                        change.add_share(self.number, group, &share)?;
                    }
                    Ok(())
                }
                Content::Forgotten(forgotten) => {
                    forgotten.iter().try_for_each(|(site, id)| change.forget_version(*site, *id))
                }
            })?;
            change.put_pack(&record)?;
            change.raise_next_version(next_version)
        })
    }
}

/// What a chunk holds that the index must know: with its place, and what it takes.
enum Content {
    Bodies(Place, BodiesHead, u64),
    Versions(Place, Vec<Row>, u64),
    Forgotten(Vec<(u32, u64)>),
}

/// Whether a sound bodies chunk with this digest lies there.
fn holds(backend: &dyn ContentBackend, place: Place, key: BodyKey) -> bool {
    let name = pack_name(place.pack);
    let look = || -> Result<bool, BackendError> {
        let head = backend.read(&name, place.offset, CHUNK_HEAD_BYTES)?;
        let Ok(head) = ChunkHead::parse(&head) else { return Ok(false) };
        let start = place.offset + CHUNK_HEAD_BYTES as u64;
        let payload = backend.read(&name, start, head.payload_bytes)?;
        Ok(BodiesHead::parse(&payload).is_ok_and(|(head, _)| head.find(key).is_some()))
    };
    look().unwrap_or(false)
}
