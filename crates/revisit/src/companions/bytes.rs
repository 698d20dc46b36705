//! What was learnt as bytes. The last changes are not kept: a circle shows new ones soon.

use super::group::{CLASSES, Group, SignTally};
use super::{Companions, GROUPS_MAX, LENGTHS};
use crate::RevisitError;
use crate::varint::{Reader, put};

const FORMAT: u64 = 1;

impl Companions {
    /// What was learnt, as bytes; none if nothing was.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self.visits == 0.0 {
            return bytes;
        }
        put(&mut bytes, FORMAT);
        floats(&mut bytes, &[self.visits, self.hits, self.days]);
        self.calibration.iter().for_each(|both| floats(&mut bytes, &[both.0, both.1]));
        let telling = || self.groups.iter().filter(|(_, group)| group.was_taught());
        put(&mut bytes, telling().count() as u64);
        for (key, group) in telling() {
            bytes.extend_from_slice(&key.to_le_bytes());
            group.write(&mut bytes);
        }
        bytes
    }

    /// Reads what [`Companions::to_bytes`] wrote.
    ///
    /// # Errors
    /// [`RevisitError::BadShared`] when the bytes are damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RevisitError> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let mut reader = Reader::new(bytes);
        let read = Self::read(&mut reader).filter(|_| reader.is_at_end());
        read.ok_or(RevisitError::BadShared { what: "memory of what changes together" })
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        reader.varint().filter(|&format| format == FORMAT)?;
        let [visits, hits, days] = read_floats(reader)?;
        let mut calibration = [(0.0, 0.0); LENGTHS];
        for both in &mut calibration {
            *both =
                read_floats(reader).map(|[changes, predicted]: [f32; 2]| (changes, predicted))?;
        }
        let count = reader.varint().filter(|&count| count <= GROUPS_MAX as u64 + 8)?;
        let mut read = Self { visits, hits, days, calibration, ..Self::default() };
        for _ in 0..count {
            let key = u64::from_le_bytes(reader.array()?);
            read.groups.insert(key, Group::read(reader)?);
        }
        Some(read)
    }
}

impl Group {
    /// Whether visits after changes of the circle were counted; if not, the group is started over.
    fn was_taught(&self) -> bool {
        self.hot.visits() + self.stirred.visits() > 0.0
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        for tally in [&self.hot, &self.stirred] {
            tally.classes.iter().for_each(|(visits, changes)| floats(bytes, &[*visits, *changes]));
            floats(bytes, &[tally.expected, tally.variance]);
        }
        floats(bytes, &[self.bursts]);
        put(bytes, self.visited_s.max(0).unsigned_abs());
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let mut tally = || {
            let mut classes = [(0.0, 0.0); CLASSES];
            for class in &mut classes {
                *class =
                    read_floats(reader).map(|[visits, changes]: [f32; 2]| (visits, changes))?;
            }
            let [expected, variance] = read_floats(reader)?;
            Some(SignTally { classes, expected, variance })
        };
        let (hot, stirred) = (tally()?, tally()?);
        let [bursts] = read_floats(reader)?;
        let visited_s = reader.varint().filter(|&at_s| at_s < 1 << 40)? as i64;
        Some(Self { hot, stirred, bursts, visited_s, ..Self::default() })
    }
}

/// Numbers that are never negative, to the nearest 1/64: four digits are more than is known.
fn floats(bytes: &mut Vec<u8>, values: &[f32]) {
    values.iter().for_each(|value| put(bytes, (value.max(0.0) * 64.0).round() as u64));
}

fn read_floats<const N: usize>(reader: &mut Reader<'_>) -> Option<[f32; N]> {
    let mut values = [0.0; N];
    for value in &mut values {
        *value = reader.varint().filter(|&sixtyfourths| sixtyfourths < 1 << 40)? as f32 / 64.0;
    }
    Some(values)
}
