//! What happens when an archive is opened: the index learns what it does not know of the packs,
//! and the tail that a crash tore off the open pack is cut away.
//!
//! A pack that has ended is known by its directory; others are read chunk by chunk.

use std::collections::{BTreeMap, BTreeSet};

use crate::backend::ContentBackend;
use crate::chunk::ChunkKind;
use crate::digest::BodyKey;
use crate::directory::{Content, Listed};
use crate::error::{StoreError, from_backend};
use crate::index::{Index, PackRecord};
use crate::listing;
use crate::mend::Found;
use crate::open_pack::OpenPack;
use crate::pack::{Generation, Location, PackHead, damaged, pack_name, pack_number};
use crate::packfile::{Chunk, PackFile, read_bodies_head};
use crate::share::Share;
use crate::writer::Writer;
use crate::{forgotten, rows};

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
    let mut generations = Vec::new();
    let mut postponed = Vec::new();
    let listed = backend.list().map_err(from_backend)?;
    if !backend.can_grow() {
        find_replaced(backend, index, &known, &listed)?;
    }
    for (name, length) in listed {
        let Some(number) = pack_number(&name) else { continue };
        next_pack = next_pack.max(number + 1);
        if index.replaced.contains(&number) {
            // A process that only reads leaves it there.
            backend.delete(&name).map_err(from_backend)?;
            continue;
        }
        let record = known.get(&number).copied();
        let complete = record.is_some_and(|record| record.ended && record.bytes == length);
        if complete {
            continue;
        }
        let survey = Survey::of(&PackFile::new(backend, number, length), record)?;
        if survey.is_unfinished_output() && survey.is_all_elsewhere(backend, index)? {
            // Everything in it is still where compacting took it from.
            backend.delete(&name).map_err(from_backend)?;
            continue;
        }
        if !survey.bodiless(backend, index)?.is_empty() {
            // The bodies may be in a pack that the index does not know yet.
            postponed.push((number, length, record));
            continue;
        }
        generations.extend(survey.generation());
        open = survey.settle(backend, index)?.or(open);
    }
    for (number, length, record) in postponed {
        let survey = Survey::of(&PackFile::new(backend, number, length), record)?;
        open = survey.settle(backend, index)?.or(open);
    }
    index.change(|change| change.keep_forgotten())?;
    finish_generations(backend, index, &generations)?;
    Ok((Writer::new(open, index.next_version()?), next_pack))
}

/// Notes packs that are still there and that a generation replaced which the index knows: they must
/// not be taken in again. Where objects are never changed, they are deleted later and by others.
fn find_replaced(
    backend: &dyn ContentBackend,
    index: &mut Index,
    known: &BTreeMap<u64, PackRecord>,
    listed: &[(String, u64)],
) -> Result<(), StoreError> {
    let lengths = listed.iter().filter_map(|(name, length)| Some((pack_number(name)?, *length)));
    let lengths: BTreeMap<u64, u64> = lengths.collect();
    if lengths.keys().all(|number| known.contains_key(number)) {
        return Ok(());
    }
    let ended = |number: &u64| known.get(number).is_some_and(|record| record.ended);
    for (number, _) in known.iter().filter(|(_, record)| record.generation > 0 && record.ended) {
        let Some(length) = lengths.get(number).filter(|_| !index.looked_at.contains(number)) else {
            continue;
        };
        let pack = PackFile::new(backend, *number, *length);
        let generation = Survey::of(&pack, None)?.generation();
        let complete = generation.filter(|all| all.packs.iter().all(ended));
        index.replaced.extend(complete.into_iter().flat_map(|all| all.replaces));
        index.looked_at.insert(*number);
    }
    Ok(())
}

/// A crash may have come between completing a generation and deleting what it replaces.
fn finish_generations(
    backend: &dyn ContentBackend,
    index: &mut Index,
    generations: &[Generation],
) -> Result<(), StoreError> {
    for generation in generations {
        let packs = index.packs()?;
        let ended = |number: &u64| packs.iter().any(|pack| pack.number == *number && pack.ended);
        if !generation.packs.iter().all(ended) {
            continue;
        }
        let replaced = &generation.replaces;
        index.change(|change| replaced.iter().try_for_each(|pack| change.drop_pack(*pack)))?;
        if !backend.can_grow() {
            index.replaced.extend(replaced);
        }
        for pack in replaced {
            backend.delete(&pack_name(*pack)).map_err(from_backend)?;
        }
    }
    Ok(())
}

/// What a pack holds behind the part that the index knows.
struct Survey {
    number: u64,
    length: u64,
    record: Option<PackRecord>,
    head: Option<PackHead>,
    ended: bool,
    chunks: Vec<Listed>,
    /// Everything before this was durable once.
    protected_bytes: u64,
    /// Where bytes begin that are not a chunk.
    gaps: Vec<u64>,
    /// What parity restored, and where it belongs.
    mended: Vec<(u64, Vec<u8>)>,
}

impl Survey {
    fn of(pack: &PackFile<'_>, record: Option<PackRecord>) -> Result<Self, StoreError> {
        let from = record.map_or(0, |record| record.bytes);
        let mut survey = Self {
            number: pack.number,
            length: pack.length,
            record,
            head: None,
            ended: false,
            chunks: Vec::new(),
            protected_bytes: from,
            gaps: Vec::new(),
            mended: Vec::new(),
        };
        if let Some(chunks) = listing::read(pack)? {
            survey.ended = true;
            survey.chunks = chunks.into_iter().filter(|chunk| chunk.offset >= from).collect();
            if let Some(head) = pack.chunk_or_mended(0)? {
                survey.note(head)?;
            }
        } else {
            pack.walk(from, &mut |found| match found {
                Found::Chunk(chunk) => {
                    survey.list(&chunk)?;
                    survey.note(chunk)
                }
                Found::Mended { start, bytes } => {
                    survey.mended.push((start, bytes));
                    Ok(())
                }
                Found::Gap { start, .. } => {
                    survey.gaps.push(start);
                    Ok(())
                }
            })?;
        }
        Ok(survey)
    }

    fn list(&mut self, chunk: &Chunk) -> Result<(), StoreError> {
        let place = Location { pack: self.number, offset: chunk.offset };
        let listed = Listed::of(chunk).map_err(|why| damaged("chunk", place, why))?;
        self.chunks.push(listed);
        Ok(())
    }

    fn note(&mut self, chunk: Chunk) -> Result<(), StoreError> {
        let place = Location { pack: self.number, offset: chunk.offset };
        match chunk.kind {
            ChunkKind::PackHead => {
                self.head = Some(PackHead::parse(&chunk.payload, &pack_name(self.number))?);
            }
            ChunkKind::Versions => {
                let durable_bytes = rows::durable_bytes(&chunk.payload)
                    .map_err(|why| damaged("versions chunk", place, why))?;
                self.protected_bytes = self.protected_bytes.max(durable_bytes);
            }
            ChunkKind::PackEnd => self.ended = true,
            ChunkKind::Bodies
            | ChunkKind::Forgotten
            | ChunkKind::Prefix
            | ChunkKind::Generation
            | ChunkKind::Parity => {}
        }
        Ok(())
    }

    /// What it completes, if it is the last pack of a compaction.
    fn generation(&self) -> Option<Generation> {
        let found = self.chunks.iter().find_map(|chunk| match &chunk.content {
            Content::Generation(generation) => Some(generation.clone()),
            _ => None,
        });
        found.filter(|_| self.ended)
    }

    /// A pack that compacting had not ended when it was interrupted.
    fn is_unfinished_output(&self) -> bool {
        let compacted = self.head.as_ref().is_some_and(|head| head.generation > 0);
        compacted && !self.ended && self.record.is_none()
    }

    /// Whether nothing would be lost with this pack.
    fn is_all_elsewhere(
        &self,
        backend: &dyn ContentBackend,
        index: &Index,
    ) -> Result<bool, StoreError> {
        for chunk in &self.chunks {
            match &chunk.content {
                Content::Versions(rows) => {
                    for row in rows {
                        if index.version(row.id)?.is_none() {
                            return Ok(false);
                        }
                    }
                }
                Content::Bodies { bodies, .. } => {
                    for (key, _) in bodies {
                        let places = index.candidates(*key)?;
                        if !places.iter().any(|place| holds(backend, *place, *key)) {
                            return Ok(false);
                        }
                    }
                }
                Content::Forgotten(_) | Content::Generation(_) | Content::Nothing => {}
            }
        }
        Ok(true)
    }

    /// Cuts what was torn, writes what was mended, adds the rest to the index, and returns the pack if
    /// writing can go on in it.
    fn settle(
        mut self,
        backend: &dyn ContentBackend,
        index: &mut Index,
    ) -> Result<Option<OpenPack>, StoreError> {
        let name = pack_name(self.number);
        if self.head.is_none() && self.record.is_none() {
            return self.settle_headless(backend, index, &name);
        }
        let length = self.kept_bytes(backend);
        if length < self.length {
            backend.truncate(&name, length).map_err(from_backend)?;
            backend.sync(&name).map_err(from_backend)?;
        }
        let kept = self.mended.iter().filter(|(start, _)| *start < length && backend.can_grow());
        for (start, bytes) in kept {
            backend.overwrite(&name, *start, bytes).map_err(from_backend)?;
        }
        let covered_bytes = self.covered_bytes(length);
        let mut open =
            OpenPack { number: self.number, length, durable_bytes: length, covered_bytes };
        let bodiless = self.bodiless(backend, index)?;
        if !bodiless.is_empty() {
            self.forget(&bodiless, backend, &mut open)?;
        }
        self.add_to_index(backend, index, open.length)?;
        // One that is damaged cannot have a directory.
        let may_grow = self.may_append(backend) && self.gaps.iter().all(|gap| *gap >= length);
        Ok(may_grow.then_some(open))
    }

    /// Up to where the pack is kept: behind that is what a crash tore.
    fn kept_bytes(&self, backend: &dyn ContentBackend) -> u64 {
        // Damage in the protected part stays where it is: only what was never durable is cut.
        let torn = self.gaps.iter().copied().find(|gap| *gap >= self.protected_bytes);
        torn.filter(|_| !self.ended && backend.can_grow()).unwrap_or(self.length)
    }

    /// A pack that lost bytes is left alone, so that nothing is written where the index expects
    /// something else.
    fn may_append(&self, backend: &dyn ContentBackend) -> bool {
        let kept_bytes = self.kept_bytes(backend);
        let lost_nothing = self.record.is_none_or(|record| record.bytes <= kept_bytes);
        lost_nothing && !self.ended && backend.can_grow()
    }

    /// Records are written in front of their bodies, so a crash may have left the one without the
    /// other. These are the sites and numbers of such versions: they were never reported as stored.
    fn bodiless(
        &self,
        backend: &dyn ContentBackend,
        index: &Index,
    ) -> Result<Vec<(u32, u64)>, StoreError> {
        let mut bodiless = Vec::new();
        if !self.may_append(backend) || self.generation_number() != 0 {
            return Ok(bodiless);
        }
        let kept_bytes = self.kept_bytes(backend);
        let mut stored = BTreeSet::new();
        for chunk in self.chunks.iter().filter(|chunk| chunk.offset < kept_bytes) {
            if let Content::Bodies { bodies, .. } = &chunk.content {
                stored.extend(bodies.iter().map(|(key, _)| *key));
            }
        }
        let unprotected = self.protected_bytes..kept_bytes;
        for chunk in self.chunks.iter().filter(|chunk| unprotected.contains(&chunk.offset)) {
            let Content::Versions(rows) = &chunk.content else { continue };
            for row in rows.iter().filter(|row| !stored.contains(&row.key)) {
                let places = index.candidates(row.key)?;
                if !places.iter().any(|place| holds(backend, *place, row.key)) {
                    bodiless.push((row.group, row.id));
                }
            }
        }
        bodiless.sort_unstable_by_key(|(_, id)| *id);
        Ok(bodiless)
    }

    /// Writes down, durably, that these versions are forgotten.
    fn forget(
        &mut self,
        bodiless: &[(u32, u64)],
        backend: &dyn ContentBackend,
        open: &mut OpenPack,
    ) -> Result<(), StoreError> {
        for batch in bodiless.chunks(forgotten::MAX_FORGOTTEN) {
            let payload = forgotten::encode(batch);
            let Location { offset, .. } = open.put(backend, ChunkKind::Forgotten, &payload)?;
            self.list(&Chunk { offset, kind: ChunkKind::Forgotten, payload })?;
        }
        open.cover(backend)?;
        backend.sync(&pack_name(self.number)).map_err(from_backend)?;
        open.durable_bytes = open.length;
        Ok(())
    }

    /// Which compaction wrote the pack; 0 while collecting.
    fn generation_number(&self) -> u64 {
        match (&self.head, self.record) {
            (Some(head), _) => head.generation,
            (None, Some(record)) => record.generation,
            (None, None) => 0,
        }
    }

    /// Up to where everything in front of `length` has its parity.
    fn covered_bytes(&self, length: u64) -> u64 {
        let ends = self.chunks.iter().filter(|chunk| chunk.kind == ChunkKind::Parity);
        let ends = ends.map(|chunk| chunk.offset + chunk.total_bytes);
        let last = ends.rev().find(|end| *end <= length);
        last.unwrap_or_else(|| self.record.map_or(0, |record| record.bytes))
    }

    /// A file without a head: a pack that was never begun, or something that is not ours to
    /// touch, such as a copy of another pack; `verify` names that.
    fn settle_headless(
        &self,
        backend: &dyn ContentBackend,
        index: &mut Index,
        name: &str,
    ) -> Result<Option<OpenPack>, StoreError> {
        if self.length < TORN_HEAD_BYTES && self.chunks.is_empty() {
            backend.delete(name).map_err(from_backend)?;
        } else {
            self.add_to_index(backend, index, self.length)?;
        }
        Ok(None)
    }

    /// Adds to the index what is in front of `length`.
    fn add_to_index(
        &self,
        backend: &dyn ContentBackend,
        index: &mut Index,
        length: u64,
    ) -> Result<(), StoreError> {
        let holds = |place, key| holds(backend, place, key);
        let generation = self.generation_number();
        let bytes = length.max(self.record.map_or(0, |record| record.bytes));
        let record = PackRecord { number: self.number, bytes, ended: self.ended, generation };
        index.change(|change| {
            let mut next_version = self.head.as_ref().map_or(0, |head| head.next_version);
            for chunk in self.chunks.iter().filter(|chunk| chunk.offset < length) {
                let place = Location { pack: self.number, offset: chunk.offset };
                match &chunk.content {
                    Content::Bodies { site, class, bodies } => {
                        for (key, _) in bodies {
                            change.put_body(*key, place, &holds)?;
                        }
                        let body_bytes = bodies.iter().map(|(_, bytes)| bytes).sum();
                        let share = Share::of_bodies(*class, body_bytes, chunk.total_bytes);
                        change.add_share(self.number, *site, &share)?;
                    }
                    Content::Versions(rows) => {
                        for row in rows {
                            change.put_version(row.id, place)?;
                            next_version = next_version.max(row.id + 1);
                        }
                        let sites = rows.iter().map(|row| row.group);
                        for (site, share) in Share::of_rows(sites, chunk.payload_bytes()) {
                            change.add_share(self.number, site, &share)?;
                        }
                    }
                    Content::Forgotten(forgotten) => {
                        for (site, id) in forgotten {
                            change.forget_version(*site, *id)?;
                        }
                    }
                    Content::Generation(_) | Content::Nothing => {}
                }
            }
            change.put_pack(&record)?;
            change.raise_next_version(next_version)
        })
    }
}

/// Whether a bodies chunk with this body is there.
fn holds(backend: &dyn ContentBackend, place: Location, key: BodyKey) -> bool {
    read_bodies_head(backend, place).is_ok_and(|head| head.find(key).is_some())
}
