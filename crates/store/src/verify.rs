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
/// Versions that are named one by one for all damage together.
const MAX_NAMED_IN_ALL: usize = 1_000_000;
/// Damaged places that are told apart; what is beyond counts as one.
const MAX_PLACES: usize = 50_000;

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
    named: usize,
}

impl Findings {
    fn note(&mut self, what: impl Into<String>, place: impl ToString, version: Option<u64>) {
        let mut key = (what.into(), place.to_string());
        if self.lost.len() >= MAX_PLACES && !self.lost.contains_key(&key) {
            key = ("further damage".to_owned(), "too many places to name".to_owned());
        }
        let (count, named) = self.lost.entry(key).or_default();
        if let Some(id) = version {
            *count += 1;
            if named.len() < MAX_NAMED && self.named < MAX_NAMED_IN_ALL {
                named.push(VersionId(id));
                self.named += 1;
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
        let mut sound = 0;
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
            sound +=
                self.verify_pack(number, length, deep, next_version, &mut report, &mut found)?;
            report.packs += 1;
            report.bytes += length;
            progress(report.bytes, total);
        }
        for number in known.keys().filter(|number| !present.contains(number)) {
            found.note("pack is missing", pack_name(*number), None);
        }
        report.versions = self.index().count_versions_before(next_version)?;
        if report.versions != sound {
            self.verify_index(next_version, &mut found)?;
        }
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

    /// Checks one pack; returns how many versions before `end` the index finds in sound chunks of
    /// it.
    fn verify_pack(
        &self,
        number: u64,
        length: u64,
        deep: bool,
        end: u64,
        report: &mut VerifyReport,
        found: &mut Findings,
    ) -> Result<u64, StoreError> {
        let mut sound = 0;
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
                        let mut counted = BTreeSet::new();
                        for row in rows {
                            let is_here = self.index().version(row.id)? == Some(place);
                            if is_here {
                                self.verify_row(&row, deep, found)?;
                            }
                            sound += u64::from(is_here && row.id < end && counted.insert(row.id));
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
        Ok(sound)
    }

    /// That the version's body can be found, or with `deep`, read.
    fn verify_row(
        &self,
        row: &rows::Row,
        deep: bool,
        found: &mut Findings,
    ) -> Result<(), StoreError> {
        let outcome = match deep {
            true => self.body(&row.digest).map(|_| ()),
            false => match self.find_body(row.digest.key())? {
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

    /// Names the versions of the index before `end` that are in no sound chunk.
    fn verify_index(&self, end: u64, found: &mut Findings) -> Result<(), StoreError> {
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
                    found.note(what, place, Some(id));
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
