//! Checking: every chunk of every pack, and that every version leads to its body.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::chunk::{CHUNK_HEAD_BYTES, ChunkKind};
use crate::directory::{self, Content, Listed};
use crate::error::{INDEX, StoreError, from_backend};
use crate::mend::Found;
use crate::pack::{Location, PackHead, pack_name, pack_number};
use crate::packfile::PackFile;
use crate::pieces::CUT_FROM_BYTES;
use crate::ruins::{Ruin, Ruins};
use crate::store::Store;
use crate::{VersionId, rows, underway};

/// Versions that are named one by one for all damage together; beyond, they are counted.
const MAX_NAMED: usize = 1_000_000;
const MENDABLE: &str = "parity restores them, `verify --repair` writes them back";
/// Damaged locations that are listed; further ones count as one.
const MAX_PLACES: usize = 50_000;
/// No pack head is longer.
const MAX_PACK_HEAD_BYTES: usize = 64;
/// Without it, which versions a damage costs is not known.
const INDEX_DAMAGED: &str = "the index is damaged; `nenrin reindex` makes it again from the packs";
/// Where bodies are looked for that no index entry leads to.
const EVERYWHERE: &str = "all packs";

/// What checking found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Packs looked at.
    pub packs: u64,
    /// Bytes of packs read.
    pub bytes: u64,
    /// Versions looked at.
    pub versions: u64,
    /// Bodies in the packs.
    pub bodies: u64,
    /// What is wrong, what costs most first; empty is sound.
    pub damage: Vec<Damage>,
}

/// One damaged location and what it costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// What is damaged, and how.
    pub what: String,
    /// The file and the position in it.
    pub place: String,
    /// Whether nothing is lost by it: parity restores it, or it is made again.
    pub is_mendable: bool,
    /// How many versions cannot be read because of it.
    pub versions_lost: u64,
    /// The first of them.
    pub versions: Vec<VersionId>,
}

impl Damage {
    /// Whether it is the index that is damaged, which is made again from the packs.
    pub fn is_of_index(&self) -> bool {
        self.place == INDEX
    }
}

impl VerifyReport {
    /// Nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty()
    }
}

/// Damage by kind and location, so that a thousand versions lost by one frame are one entry.
#[derive(Default)]
struct Findings {
    lost: BTreeMap<(String, String), (u64, Vec<VersionId>)>,
    named: usize,
}

impl Findings {
    fn note(&mut self, Ruin { what, place }: Ruin, version: Option<u64>) {
        let mut key = (what, place);
        if self.lost.len() >= MAX_PLACES && !self.lost.contains_key(&key) {
            key = ("further damage".to_owned(), "too many places to name".to_owned());
        }
        let (count, named) = self.lost.entry(key).or_default();
        if let Some(id) = version {
            *count += 1;
            if self.named < MAX_NAMED {
                named.push(VersionId(id));
                self.named += 1;
            }
        }
    }

    /// What costs most comes first.
    fn into_damage(self) -> Vec<Damage> {
        let entry = |((what, place), (versions_lost, versions)): ((String, String), _)| {
            let is_mendable = what.contains(MENDABLE) || place == INDEX;
            Damage { what, place, is_mendable, versions_lost, versions }
        };
        let mut damage: Vec<Damage> = self.lost.into_iter().map(entry).collect();
        damage.sort_by_key(|damage| Reverse(damage.versions_lost));
        damage
    }
}

impl Store {
    /// Reads every pack. Always: all checksums, that the index leads every version to a body, and
    /// which versions each damage costs. With `deep`: every body is rebuilt and compared with its
    /// digest. `progress` is called with bytes done and bytes in all.
    pub fn verify(
        &self,
        deep: bool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<VerifyReport, StoreError> {
        if !self.options.read_only {
            self.sync()?;
        }
        let mut found = Findings::default();
        let index_damage = self.index().check()?;
        let (next_version, known) = match &index_damage {
            None => {
                let next_version = self.index().next_version()?;
                (next_version, Some(self.known_lengths()?))
            }
            Some(why) => {
                let what = format!("{INDEX_DAMAGED} ({why})");
                found.note(Ruin { what, place: INDEX.to_owned() }, None);
                (0, None)
            }
        };
        let packs = self.packs_to_verify(known.as_ref(), &mut found)?;
        // Chunks first, then records: only then is known what each damage costs.
        let total = 2 * packs.values().sum::<u64>();
        let mut done = 0;
        let mut report = VerifyReport::default();
        let mut ruins = Ruins::default();
        let mut rows_at = Vec::new();
        for (number, length) in &packs {
            let was = known.as_ref().and_then(|known| known.get(number)).copied().unwrap_or(0);
            let pack = PackFile::new(&*self.backend, *number, *length);
            rows_at.push(self.verify_pack(&pack, was, &mut ruins, &mut report, &mut found)?);
            report.packs += 1;
            report.bytes += length;
            done += length;
            progress(done, total);
        }
        let Some(known) = known else {
            report.damage = found.into_damage();
            return Ok(report);
        };
        // Compacting may have replaced a pack since.
        let known_still = self.known_lengths()?;
        for number in known.keys().filter(|number| known_still.contains_key(number)) {
            if !packs.contains_key(number) {
                found.note(ruins.add_missing(*number), None);
            }
        }
        let mut sound = 0;
        for ((number, length), offsets) in packs.iter().zip(rows_at) {
            for offset in offsets {
                let place = Location { pack: *number, offset };
                sound += self.verify_rows(place, deep, next_version, &ruins, &mut found)?;
            }
            done += length;
            progress(done, total);
        }
        report.versions = self.index().count_versions_before(next_version)?;
        if report.versions != sound {
            self.verify_index(next_version, &ruins, &mut found)?;
        }
        report.damage = found.into_damage();
        Ok(report)
    }

    fn known_lengths(&self) -> Result<BTreeMap<u64, u64>, StoreError> {
        Ok(self.index().packs()?.iter().map(|pack| (pack.number, pack.bytes)).collect())
    }

    /// The packs that are there, and how much of each is to be looked at.
    fn packs_to_verify(
        &self,
        known: Option<&BTreeMap<u64, u64>>,
        found: &mut Findings,
    ) -> Result<BTreeMap<u64, u64>, StoreError> {
        let mut packs = BTreeMap::new();
        for (name, length) in self.backend.list().map_err(from_backend)? {
            match pack_number(&name) {
                Some(number) => {
                    packs.insert(number, length);
                }
                None if name == underway::NOTE => {}
                None => {
                    let what = "this file among the packs is not a pack".to_owned();
                    found.note(Ruin { what, place: name }, None);
                }
            }
        }
        if let (true, Some(known)) = (self.options.read_only, known) {
            leave_to_the_writer(&mut packs, known);
        }
        // What a failed append left behind the open pack will be overwritten.
        if let Some(open) = &self.writer().open
            && let Some(length) = packs.get_mut(&open.number)
        {
            *length = open.length.min(*length);
        }
        Ok(packs)
    }

    /// Checks the chunks of one pack, of which the index knows `known_bytes`. Returns where records
    /// are.
    fn verify_pack(
        &self,
        pack: &PackFile<'_>,
        known_bytes: u64,
        ruins: &mut Ruins,
        report: &mut VerifyReport,
        found: &mut Findings,
    ) -> Result<Vec<u64>, StoreError> {
        let (number, length) = (pack.number, pack.length);
        let mut readable_bytes = length;
        let mut rows_at = Vec::new();
        let mut listed = Vec::new();
        pack.walk(0, &mut |item| {
            let chunk = match item {
                Found::Chunk(chunk) => chunk,
                Found::Mended { start, bytes } => {
                    let what = format!("{} bytes are damaged; {MENDABLE}", bytes.len());
                    let place = Location { pack: number, offset: start }.to_string();
                    found.note(Ruin { what, place }, None);
                    return Ok(());
                }
                // What was cut through belongs to what was cut off.
                Found::Gap { start, end } if end == length && known_bytes > length => {
                    readable_bytes = start;
                    return Ok(());
                }
                Found::Gap { start, end } => {
                    let gap = ruins.add_gap(Location { pack: number, offset: start }, end);
                    let copied = if start == 0 { copied_from(pack)? } else { None };
                    let ruin = copied.map(|original| Ruin {
                        what: format!("it is a copy of {}", pack_name(original)),
                        place: pack_name(number),
                    });
                    found.note(ruin.unwrap_or(gap), None);
                    return Ok(());
                }
            };
            let mut note = |why: &str, place: String| {
                found.note(Ruin { what: why.to_owned(), place }, None);
            };
            let place = Location { pack: number, offset: chunk.offset };
            let content = match Listed::of(&chunk) {
                Ok(content) => content,
                Err(why) => {
                    note(why.0, place.to_string());
                    return Ok(());
                }
            };
            match chunk.kind {
                ChunkKind::PackHead => {
                    let head = PackHead::parse(&chunk.payload, &pack_name(number))?;
                    if head.number != number {
                        note("pack carries another number", pack_name(number));
                    }
                }
                ChunkKind::PackEnd => {
                    let says = directory::unpack(&chunk.payload);
                    if says != Ok(directory::columns(&listed)) {
                        note("the directory names other chunks", place.to_string());
                    }
                }
                ChunkKind::Versions => rows_at.push(chunk.offset),
                _ => {}
            }
            if let Content::Bodies { bodies, .. } = &content.content {
                report.bodies += bodies.len() as u64;
            }
            listed.push(content);
            Ok(())
        })?;
        if known_bytes > length {
            found.note(ruins.add_cut_short(number, readable_bytes), None);
        }
        Ok(rows_at)
    }

    /// Checks the records of a chunk; returns how many versions before `end` the index finds there.
    fn verify_rows(
        &self,
        place: Location,
        deep: bool,
        end: u64,
        ruins: &Ruins,
        found: &mut Findings,
    ) -> Result<u64, StoreError> {
        let rows = match self.rows_at(place) {
            Ok(rows) => rows,
            // Compacting may have replaced the pack since.
            Err(StoreError::Damaged { .. }) if !self.known_lengths()?.contains_key(&place.pack) => {
                return Ok(0);
            }
            Err(StoreError::Damaged { what, place, cost }) => {
                found.note(Ruin { what: format!("{what}: {cost}"), place }, None);
                return Ok(0);
            }
            Err(other) => return Err(other),
        };
        let mut counted = BTreeSet::new();
        for row in rows.iter() {
            if self.index().version(row.id)? == Some(place) {
                self.verify_row(row, deep, ruins, found)?;
                counted.insert(row.id);
            }
        }
        Ok(counted.range(..end).count() as u64)
    }

    /// That the version's body can be found, or with `deep`, read.
    fn verify_row(
        &self,
        row: &rows::Row,
        deep: bool,
        ruins: &Ruins,
        found: &mut Findings,
    ) -> Result<(), StoreError> {
        let key = row.digest.key();
        if let Some(ruin) = self.ruin_under(ruins, key)? {
            found.note(ruin, Some(row.id));
            return Ok(());
        }
        let pieces = match row.body_bytes > CUT_FROM_BYTES as u64 {
            true => self.keys_under(key),
            false => Ok(Vec::new()),
        };
        for piece in pieces.iter().flatten() {
            if let Some(ruin) = self.ruin_under(ruins, *piece)? {
                found.note(ruin, Some(row.id));
                return Ok(());
            }
        }
        let is_there = |key| self.find_body(key).map(|place| place.is_some());
        let outcome = match deep {
            true => self.visit_body(row, &mut |_| Ok(())).map(|()| true),
            false => pieces.and_then(|pieces| {
                pieces
                    .into_iter()
                    .try_fold(is_there(key)?, |all, piece| Ok(all && is_there(piece)?))
            }),
        };
        let ruin = match outcome {
            Ok(true) => return Ok(()),
            Err(StoreError::Damaged { what, place, cost })
                if !self.locations_of(key)?.is_empty() =>
            {
                Ruin { what: format!("{what}: {cost}"), place }
            }
            Ok(false) | Err(StoreError::Damaged { .. }) => {
                Ruin { what: "body is in none of them".to_owned(), place: EVERYWHERE.to_owned() }
            }
            Err(other) => return Err(other),
        };
        found.note(ruin, Some(row.id));
        Ok(())
    }

    /// Names the versions of the index before `end` that are in no sound chunk.
    fn verify_index(
        &self,
        end: u64,
        ruins: &Ruins,
        found: &mut Findings,
    ) -> Result<(), StoreError> {
        let mut next = 0;
        loop {
            let batch = self.index().versions_from(next, 4096)?;
            let Some((last, _)) = batch.last() else { return Ok(()) };
            next = last + 1;
            for (id, place) in batch {
                if id >= end {
                    return Ok(());
                }
                let what = match self.rows_at(place) {
                    Ok(rows) if rows.iter().any(|row| row.id == id) => continue,
                    Ok(_) => "the index names another chunk; run `reindex`",
                    Err(StoreError::Damaged { .. }) => "versions chunk is unreadable",
                    Err(other) => return Err(other),
                };
                // Unless it was moved or forgotten in between.
                if self.index().version(id)? == Some(place) {
                    let unknown = || Ruin { what: what.to_owned(), place: place.to_string() };
                    found.note(ruins.at(place).unwrap_or_else(unknown), Some(id));
                }
            }
        }
    }
}

/// Which pack the file with this number was before somebody gave it another name.
fn copied_from(pack: &PackFile<'_>) -> Result<Option<u64>, StoreError> {
    let Some(head) = pack.chunk_head(0)? else { return Ok(None) };
    if head.kind != ChunkKind::PackHead || head.payload_bytes > MAX_PACK_HEAD_BYTES {
        return Ok(None);
    }
    let payload = pack.read(CHUNK_HEAD_BYTES as u64, head.payload_bytes)?.unwrap_or_default();
    let original = PackHead::parse(&payload, &pack_name(pack.number)).ok();
    Ok(original.map(|head| head.number).filter(|original| head.fits(*original, 0, &payload)))
}

/// Another process may be writing: bytes that the index does not know yet are not ours to judge.
fn leave_to_the_writer(packs: &mut BTreeMap<u64, u64>, known: &BTreeMap<u64, u64>) {
    packs.retain(|number, length| {
        let indexed = known.get(number).copied();
        *length = indexed.map_or(0, |bytes| bytes.min(*length));
        indexed.is_some()
    });
}
