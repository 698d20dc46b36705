//! Where a run of versions is, as the index keeps it: neighbours are in few chunks, so that a
//! version takes little more than a byte.

use crate::pack::Location;
use crate::wire::{Malformed, Reader, put_varint};

/// Versions whose numbers differ only below this are in one row of the index.
const NUMBERS: u64 = 256;
const BITMAP_BYTES: usize = NUMBERS as usize / 8;

/// The locations of up to 256 versions, in the order of their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Locations(Vec<(u8, Location)>);

/// The row of the index in which a version is found, and where in it.
pub(crate) fn row_of(id: u64) -> (i64, u8) {
    ((id / NUMBERS) as i64, (id % NUMBERS) as u8)
}

/// The number of a version in a row.
pub(crate) fn id_in(row: i64, at: u8) -> u64 {
    row as u64 * NUMBERS + u64::from(at)
}

impl Locations {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn get(&self, at: u8) -> Option<Location> {
        let found = self.0.binary_search_by_key(&at, |(at, _)| *at).ok()?;
        Some(self.0[found].1)
    }

    pub(crate) fn put(&mut self, at: u8, place: Location) {
        match self.0.binary_search_by_key(&at, |(at, _)| *at) {
            Ok(found) => self.0[found].1 = place,
            Err(free) => self.0.insert(free, (at, place)),
        }
    }

    pub(crate) fn remove(&mut self, at: u8) {
        self.0.retain(|(other, _)| *other != at);
    }

    /// From `at` on, in order.
    pub(crate) fn from(&self, at: u8) -> impl Iterator<Item = (u8, Location)> {
        self.0.iter().copied().filter(move |(other, _)| *other >= at)
    }

    /// The different locations in order, as differences; which versions there are, unless that is
    /// all of them; and for each the number of its location, unless there is only one.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut different: Vec<i64> = self.0.iter().map(|(_, place)| place.to_number()).collect();
        different.sort_unstable();
        different.dedup();
        let mut out = Vec::new();
        put_varint(&mut out, different.len() as u64);
        let mut last = 0;
        for place in &different {
            put_varint(&mut out, (place - last) as u64);
            last = *place;
        }
        put_varint(&mut out, self.0.len() as u64);
        if self.0.len() < NUMBERS as usize {
            let mut bitmap = [0u8; BITMAP_BYTES];
            self.0.iter().for_each(|(at, _)| bitmap[usize::from(at / 8)] |= 1 << (at % 8));
            out.extend_from_slice(&bitmap);
        }
        if different.len() > 1 {
            let number = |place: &Location| different.partition_point(|p| *p < place.to_number());
            out.extend(self.0.iter().map(|(_, place)| number(place) as u8));
        }
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let count = reader.count(NUMBERS as usize)?;
        let mut last = 0i64;
        let mut different = Vec::with_capacity(count);
        for _ in 0..count {
            last = last.wrapping_add(reader.varint()? as i64);
            different.push(Location::from_number(last));
        }
        let versions = reader.count(NUMBERS as usize)?;
        let bitmap = match versions == NUMBERS as usize {
            true => [0xff; BITMAP_BYTES],
            false => reader.array()?,
        };
        let is_there = |at: &u8| bitmap[usize::from(at / 8)] & (1 << (at % 8)) != 0;
        let mut places = Vec::with_capacity(versions);
        for at in (0..=u8::MAX).filter(is_there) {
            let number = if count > 1 { usize::from(reader.byte()?) } else { 0 };
            let place = different.get(number).ok_or(Malformed("a place is missing"))?;
            places.push((at, *place));
        }
        Ok(Self(places))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn places_come_back(
            places in proptest::collection::btree_map(any::<u8>(), (0..1u64 << 31, 0..9u64), 0..260),
            few in any::<bool>(),
        ) {
            let place = |(pack, offset): (u64, u64)| Location { pack: if few { 7 } else { pack }, offset };
            let places = Locations(places.into_iter().map(|(at, p)| (at, place(p))).collect());
            prop_assert_eq!(Locations::decode(&places.encode()), Ok(places));
        }

        #[test]
        fn junk_never_panics(junk: Vec<u8>) {
            let _ = Locations::decode(&junk);
        }
    }

    #[test]
    fn a_full_row_in_one_chunk_takes_a_few_bytes() {
        let mut places = Locations::default();
        (0..=u8::MAX).for_each(|at| places.put(at, Location { pack: 9, offset: 123_456 }));
        assert!(places.encode().len() < 12);
        assert_eq!(Locations::decode(&places.encode()), Ok(places));
        assert_eq!(row_of(513), (2, 1));
        assert_eq!(id_in(2, 1), 513);
    }
}
