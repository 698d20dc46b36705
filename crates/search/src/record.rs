//! What the index keeps of a page beside its words: versions, times, and when each block was there.

use std::collections::BTreeMap;

use crate::history::{BlockRuns, HASH_BITS, OPEN, STILL, Slot};

const HASH_BYTES: usize = HASH_BITS as usize / 8;
/// The first byte of a record.
const PLAIN: u8 = 0;
const COMPRESSED: u8 = 1;
/// Records of pages that changed little are shorter, and are read more quickly as they are.
const COMPRESSED_BYTES: usize = 256;
/// The longest record; more is damage.
const MAX_BYTES: usize = 1 << 28;

/// The times of a page and of its blocks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) slots: Vec<Slot>,
    pub(crate) blocks: BlockRuns,
}

impl Record {
    /// The record as bytes. A long one is compressed.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let plain = self.numbers();
        if plain.len() >= COMPRESSED_BYTES
            && let Ok(packed) = zstd::bulk::compress(&plain, 0)
        {
            let mut out = vec![COMPRESSED];
            put(&mut out, plain.len() as u64);
            out.extend(packed);
            return out;
        }
        [&[PLAIN], plain.as_slice()].concat()
    }

    /// Numbers of seven bits a byte, mostly differences.
    fn numbers(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, self.slots.len() as u64);
        let (mut time, mut version) = (0, 0_u64);
        for slot in &self.slots {
            put_signed(&mut out, slot.from_s.wrapping_sub(time));
            put_signed(&mut out, slot.version.wrapping_sub(version) as i64);
            // Mostly a slot ends where the next begins; that is found by a zero difference.
            let open = slot.until_s == STILL;
            let flags =
                u64::from(slot.is_noise) | u64::from(slot.is_readable) << 1 | u64::from(open) << 2;
            put(&mut out, flags);
            if !open {
                put_signed(&mut out, slot.until_s.wrapping_sub(slot.from_s));
            }
            (time, version) = (slot.from_s, slot.version);
        }
        put_alike(&mut out, &self.blocks.runs, |out, runs| {
            put(out, runs.len() as u64);
            for (from, until) in runs {
                put(out, u64::from(*from));
                put(out, if *until == OPEN { 0 } else { u64::from(*until) });
            }
        });
        // The blocks of the newest version are mostly numbered one after another.
        put(&mut out, self.blocks.current.len() as u64);
        let mut rest = self.blocks.current.as_slice();
        while let Some(&first) = rest.first() {
            let length = rest.iter().zip(first..).take_while(|(a, b)| **a == *b).count();
            put(&mut out, u64::from(first));
            put(&mut out, length as u64);
            rest = &rest[length..];
        }
        let mut vanished: Vec<(u32, u64)> =
            self.blocks.vanished.iter().map(|(hash, number)| (*number, *hash)).collect();
        vanished.sort_unstable();
        put(&mut out, vanished.len() as u64);
        let mut before = 0;
        for (number, hash) in vanished {
            put(&mut out, u64::from(number - before));
            out.extend(&hash.to_le_bytes()[..HASH_BYTES]);
            before = number;
        }
        out
    }

    /// Reads what [`Record::encode`] wrote; `None` if it is damaged.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (form, mut input) = bytes.split_first()?;
        match *form {
            PLAIN => Self::of_numbers(input),
            COMPRESSED => {
                let length = usize::try_from(get(&mut input)?).ok()?;
                let length = Some(length).filter(|length| *length <= MAX_BYTES)?;
                Self::of_numbers(&zstd::bulk::decompress(input, length).ok()?)
            }
            _ => None,
        }
    }

    fn of_numbers(bytes: &[u8]) -> Option<Self> {
        let mut input = bytes;
        let slots = decode_slots(&mut input)?;
        let runs = decode_alike(&mut input, |input| {
            let count = count(input, 1)?;
            let run = |input: &mut &[u8]| {
                let from = u32::try_from(get(input)?).ok()?;
                let until = u32::try_from(get(input)?).ok()?;
                Some((from, if until == 0 { OPEN } else { until }))
            };
            (0..count).map(|_| run(input)).collect()
        })?;
        let wanted = usize::try_from(get(&mut input)?).ok().filter(|n| *n <= runs.len())?;
        let mut current = Vec::new();
        while current.len() < wanted {
            let first = u32::try_from(get(&mut input)?).ok()?;
            let length = u32::try_from(get(&mut input)?).ok().filter(|n| *n > 0)?;
            if length as usize > wanted - current.len() {
                return None;
            }
            current.extend(first..first.checked_add(length)?);
        }
        let mut vanished = BTreeMap::new();
        let mut number = 0_u32;
        for _ in 0..count(&mut input, HASH_BYTES + 1)? {
            number = number.checked_add(u32::try_from(get(&mut input)?).ok()?)?;
            let (stored, rest) = input.split_first_chunk::<HASH_BYTES>()?;
            input = rest;
            let mut hash = [0; 8];
            hash[..HASH_BYTES].copy_from_slice(stored);
            vanished.insert(u64::from_le_bytes(hash), number);
        }
        let blocks = BlockRuns { runs, current, vanished };
        input.is_empty().then_some(Self { slots, blocks })
    }
}

fn decode_slots(input: &mut &[u8]) -> Option<Vec<Slot>> {
    let mut slots = Vec::new();
    let (mut time, mut number) = (0_i64, 0_u64);
    for _ in 0..count(input, 3)? {
        time = time.wrapping_add(get_signed(input)?);
        number = number.wrapping_add(get_signed(input)? as u64);
        let flags = get(input)?;
        let until_s = match flags & 4 {
            0 => time.wrapping_add(get_signed(input)?),
            _ => STILL,
        };
        slots.push(Slot {
            from_s: time,
            until_s,
            version: number,
            is_noise: flags & 1 != 0,
            is_readable: flags & 2 != 0,
        });
    }
    Some(slots)
}

/// Writes a list whose neighbours are often alike.
fn put_alike<T: PartialEq>(out: &mut Vec<u8>, list: &[T], put_one: impl Fn(&mut Vec<u8>, &T)) {
    put(out, list.len() as u64);
    let mut rest = list;
    while let Some(first) = rest.first() {
        let length = rest.iter().take_while(|one| *one == first).count();
        put(out, length as u64);
        put_one(out, first);
        rest = &rest[length..];
    }
}

/// The most blocks of a page over all its versions; more is damage.
const MAX_BLOCKS: usize = 50_000_000;

fn decode_alike<T: Clone>(
    input: &mut &[u8],
    one: impl Fn(&mut &[u8]) -> Option<T>,
) -> Option<Vec<T>> {
    let wanted = usize::try_from(get(input)?).ok().filter(|n| *n <= MAX_BLOCKS)?;
    let mut list = Vec::new();
    while list.len() < wanted {
        let length = usize::try_from(get(input)?).ok()?;
        if length == 0 || length > wanted - list.len() {
            return None;
        }
        let value = one(input)?;
        list.resize(list.len() + length, value);
    }
    Some(list)
}

/// A number of things that take at least so many bytes each.
fn count(input: &mut &[u8], bytes_each: usize) -> Option<usize> {
    let count = usize::try_from(get(input)?).ok()?;
    (count.checked_mul(bytes_each)? <= input.len()).then_some(count)
}

pub(crate) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub(crate) fn put_signed(out: &mut Vec<u8>, number: i64) {
    put(out, ((number << 1) ^ (number >> 63)) as u64);
}

pub(crate) fn get(input: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = input.split_first()?;
        *input = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

pub(crate) fn get_signed(input: &mut &[u8]) -> Option<i64> {
    let number = get(input)?;
    Some((number >> 1) as i64 ^ -((number & 1) as i64))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn slot() -> impl Strategy<Value = Slot> {
        (any::<i32>(), any::<Option<u16>>(), any::<u64>(), any::<bool>(), any::<bool>()).prop_map(
            |(from, lasts, version, is_noise, is_readable)| Slot {
                from_s: i64::from(from),
                until_s: lasts.map_or(STILL, |lasts| i64::from(from) + i64::from(lasts)),
                version,
                is_noise,
                is_readable,
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            slots in prop::collection::vec(slot(), 0..9),
            runs in prop::collection::vec(prop::collection::vec((0_u32..4, prop_oneof![Just(OPEN), 1_u32..9]), 1..3), 0..20),
            vanished in prop::collection::btree_map(0_u64..1 << HASH_BITS, any::<u32>(), 0..9),
        ) {
            let current: Vec<u32> = (1..=runs.len() as u32).filter(|n| n % 3 != 1).collect();
            let record = Record { slots, blocks: BlockRuns { runs, current, vanished } };
            prop_assert_eq!(Record::decode(&record.encode()), Some(record));
        }

        #[test]
        fn any_bytes_are_a_record_or_damage(bytes: Vec<u8>) {
            let _ = Record::decode(&bytes);
        }
    }

    #[test]
    fn a_page_with_one_version_takes_few_bytes() {
        let blocks = BlockRuns {
            runs: vec![vec![(0, OPEN)]; 500],
            current: (1..=500).collect(),
            vanished: BTreeMap::new(),
        };
        let slot = Slot {
            from_s: 1_700_000_000,
            until_s: STILL,
            version: 9,
            is_noise: false,
            is_readable: true,
        };
        assert!(Record { slots: vec![slot], blocks }.encode().len() < 25);
    }
}
