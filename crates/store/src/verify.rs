//! Checking: every chunk of every pack, and that every version leads to its body.

use std::collections::{BTreeMap, BTreeSet};

use crate::bodies::BodiesHead;
use crate::chunk::ChunkKind;
use crate::error::{StoreError, from_backend};
use crate::pack::{Found, PackHead, Place, pack_name, pack_number, walk};
use crate::store::Store;
use crate::{VersionId, rows};

/// Versions that are named one by one for each damage; beyond, they are counted.
const MAX_NAMED: usize = 1000;

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
    /// What is wrong; empty is sound.
    pub damage: Vec<Damage>,
}

/// One damaged place and what it costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// What is damaged, and how.
    pub what: String,
    /// Where.
    pub place: String,
    /// How many versions cannot be read because of it.
    pub versions_lost: u64,
    /// The first of them.
    pub versions: Vec<VersionId>,
}

impl VerifyReport {
    /// Nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty()
    }
}

/// Damage by what and place, so that a thousand versions lost by one frame are one entry.
#[derive(Default)]
struct Findings {
    lost: BTreeMap<(String, String), (u64, Vec<VersionId>)>,
}

impl Findings {
    fn note(&mut self, what: impl Into<String>, place: impl ToString, version: Option<u64>) {
        let (count, named) = self.lost.entry((what.into(), place.to_string())).or_default();
        if let Some(id) = version {
            *count += 1;
            if named.len() < MAX_NAMED {
                named.push(VersionId(id));
            }
        }
    }
}

impl Store {
    /// Reads every pack. Always: all checksums, and that the index leads every version to a body.
    /// With `deep`: every body is rebuilt and compared with its digest. `progress` is told bytes
    /// done and bytes in all.
    pub fn verify(
        &self,
        deep: bool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<VerifyReport, StoreError> {
        if !self.options.read_only {
            self.sync()?;
        }
        let next_version = self.index().next_version()?;
        let known: BTreeMap<u64, u64> =
            self.index().packs()?.iter().map(|pack| (pack.number, pack.bytes)).collect();
        let mut packs: Vec<(String, u64)> = self.backend.list().map_err(from_backend)?;
        if self.options.read_only {
            leave_to_the_writer(&mut packs, &known);
        }
        // What a failed append left behind the open pack will be overwritten.
        if let Some(open) = &self.writer().open {
            let open_name = pack_name(open.number);
            let of_open = packs.iter_mut().filter(|(name, _)| *name == open_name);
            of_open.for_each(|(_, length)| *length = open.length.min(*length));
        }
        let total = packs.iter().map(|(_, length)| length).sum();
        let mut report = VerifyReport::default();
        let mut found = Findings::default();
        let mut record_chunks = BTreeSet::new();
        let mut present = BTreeSet::new();
        for (name, length) in packs {
            let Some(number) = pack_number(&name) else {
                found.note("a file that is no pack lies among the packs", &name, None);
                continue;
            };
            present.insert(number);
            if known.get(&number).is_some_and(|bytes| *bytes > length) {
                found.note("pack is cut short", &name, None);
            }
            let chunks = self.verify_pack(number, length, deep, &mut report, &mut found)?;
            record_chunks.extend(chunks);
            report.packs += 1;
            report.bytes += length;
            progress(report.bytes, total);
        }
        for number in known.keys().filter(|number| !present.contains(number)) {
            found.note("pack is missing", pack_name(*number), None);
        }
        self.verify_index(next_version, &record_chunks, &mut report, &mut found)?;
        report.damage = found
            .lost
            .into_iter()
            .map(|((what, place), (versions_lost, versions))| Damage {
                what,
                place,
                versions_lost,
                versions,
            })
            .collect();
        Ok(report)
    }

    /// Checks one pack; returns where its sound versions chunks lie.
    fn verify_pack(
        &self,
        number: u64,
        length: u64,
        deep: bool,
        report: &mut VerifyReport,
        found: &mut Findings,
    ) -> Result<Vec<Place>, StoreError> {
        let mut record_chunks = Vec::new();
        walk(&*self.backend, number, 0, length, &mut |item| {
            let (offset, kind, payload) = match item {
                Found::Chunk { offset, kind, payload } => (offset, kind, payload),
                Found::Gap { start, end } => {
                    let what = format!("{} bytes are no chunk", end - start);
                    found.note(what, Place { pack: number, offset: start }, None);
                    return Ok(());
                }
            };
            let place = Place { pack: number, offset };
            match kind {
                ChunkKind::Bodies => match BodiesHead::parse(&payload) {
                    Ok((head, _)) => report.bodies += head.entries.len() as u64,
                    Err(why) => found.note(why.0, place, None),
                },
                ChunkKind::Versions => match rows::decode(&payload) {
                    Ok(rows) => {
                        record_chunks.push(place);
                        for row in rows.rows {
                            self.verify_row(&row, place, deep, found)?;
                        }
                    }
                    Err(why) => found.note(why.0, place, None),
                },
                ChunkKind::PackHead => {
                    let head = PackHead::parse(&payload, &pack_name(number))?;
                    if head.number != number {
                        found.note("pack carries another number", pack_name(number), None);
                    }
                }
                ChunkKind::Forgotten | ChunkKind::Prefix | ChunkKind::PackEnd => {}
            }
            Ok(())
        })?;
        Ok(record_chunks)
    }

    /// That the version's body can be found, or with `deep`, read.
    fn verify_row(
        &self,
        row: &rows::Row,
        place: Place,
        deep: bool,
        found: &mut Findings,
    ) -> Result<(), StoreError> {
        if self.index().version(row.id)? != Some(place) {
            return Ok(());
        }
        let outcome = match deep {
            true => self.body(&row.digest).map(|_| ()),
            false => match self.find_body(&row.digest)? {
                Some(_) => Ok(()),
                None => {
                    found.note("body is in no pack", row.digest, Some(row.id));
                    Ok(())
                }
            },
        };
        match outcome {
            Err(StoreError::Damaged { what, place, cost }) => {
                found.note(format!("{what}: {cost}"), place, Some(row.id));
                Ok(())
            }
            other => other,
        }
    }

    /// That every version of the index before `end` is in a sound chunk.
    fn verify_index(
        &self,
        end: u64,
        record_chunks: &BTreeSet<Place>,
        report: &mut VerifyReport,
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
                report.versions += 1;
                if !record_chunks.contains(&place) {
                    found.note("versions chunk is unreadable", place, Some(id));
                }
            }
        }
    }
}

/// Another process may be writing: bytes that the index does not know yet are not ours to judge.
fn leave_to_the_writer(packs: &mut Vec<(String, u64)>, known: &BTreeMap<u64, u64>) {
    packs.retain_mut(|(name, length)| {
        let Some(number) = pack_number(name) else { return true };
        let indexed = known.get(&number).copied();
        *length = indexed.map_or(0, |bytes| bytes.min(*length));
        indexed.is_some()
    });
}
