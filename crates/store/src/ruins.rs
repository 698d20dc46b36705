//! Stretches of packs that cannot be read, and which bodies they take with them.

use std::collections::{BTreeMap, BTreeSet};

use crate::bodies::Reference;
use crate::digest::BodyKey;
use crate::error::StoreError;
use crate::pack::{Location, pack_name};
use crate::read::MAX_CHAIN;
use crate::store::Store;

/// Gaps that are kept in memory, about 30 bytes each.
const MAX_GAPS: usize = 50_000;

/// What checking the chunks of all packs found.
#[derive(Default)]
pub(crate) struct Ruins {
    /// Packs that are not there.
    missing: BTreeSet<u64>,
    /// Packs that have lost their end, and up to where they can be read.
    cut_short: BTreeMap<u64, u64>,
    /// Where bytes begin that are not a chunk, and where they end.
    gaps: BTreeMap<Location, u64>,
}

/// What is wrong, and where.
pub(crate) struct Ruin {
    pub(crate) what: String,
    pub(crate) place: String,
}

impl Ruins {
    pub(crate) fn is_empty(&self) -> bool {
        self.missing.is_empty() && self.cut_short.is_empty() && self.gaps.is_empty()
    }

    pub(crate) fn add_missing(&mut self, pack: u64) -> Ruin {
        self.missing.insert(pack);
        missing(pack)
    }

    pub(crate) fn add_cut_short(&mut self, pack: u64, readable_bytes: u64) -> Ruin {
        self.cut_short.insert(pack, readable_bytes);
        cut_short(pack)
    }

    /// Of more than so many gaps the later ones are reported but not kept.
    pub(crate) fn add_gap(&mut self, start: Location, end: u64) -> Ruin {
        if self.gaps.len() < MAX_GAPS {
            self.gaps.insert(start, end);
        }
        gap(start, end)
    }

    /// Why what should be here cannot be read, as far as that is known.
    pub(crate) fn at(&self, place: Location) -> Option<Ruin> {
        if self.missing.contains(&place.pack) {
            return Some(missing(place.pack));
        }
        if self.cut_short.get(&place.pack).is_some_and(|readable| place.offset >= *readable) {
            return Some(cut_short(place.pack));
        }
        let (start, end) = self.gaps.range(..=place).next_back()?;
        (start.pack == place.pack && place.offset < *end).then(|| gap(*start, *end))
    }
}

fn missing(pack: u64) -> Ruin {
    Ruin { what: "pack is missing".to_owned(), place: pack_name(pack) }
}

fn cut_short(pack: u64) -> Ruin {
    Ruin { what: "pack is cut short".to_owned(), place: pack_name(pack) }
}

fn gap(start: Location, end: u64) -> Ruin {
    let what = format!("{} bytes are damaged", end - start.offset);
    Ruin { what, place: start.to_string() }
}

impl Store {
    /// What keeps a body from being read: a ruin where it is, or where that is which it was
    /// compressed against.
    pub(crate) fn ruin_under(
        &self,
        ruins: &Ruins,
        key: BodyKey,
    ) -> Result<Option<Ruin>, StoreError> {
        if ruins.is_empty() {
            return Ok(None);
        }
        let mut wanted = key;
        for _ in 0..MAX_CHAIN {
            let mut ruin = None;
            let mut base = None;
            for place in self.locations_of(wanted)? {
                if let Some(found) = ruins.at(place) {
                    ruin.get_or_insert(found);
                    continue;
                }
                let head = match self.bodies_head(place) {
                    Ok(head) if head.find(wanted).is_some() => head,
                    Ok(_) | Err(StoreError::Damaged { .. }) => continue,
                    Err(other) => return Err(other),
                };
                match head.reference {
                    Reference::Nothing => return Ok(None),
                    Reference::Body(key) => base = Some(key),
                    Reference::Chunk(offset) => {
                        return Ok(ruins.at(Location { pack: place.pack, offset }));
                    }
                }
            }
            match base {
                Some(base) => wanted = base,
                None => return Ok(ruin),
            }
        }
        Ok(None)
    }
}
