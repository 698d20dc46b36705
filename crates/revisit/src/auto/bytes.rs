//! The clocks as bytes, for a table beside the pages.

use super::clock::Clock;
use super::clocks::{ChangeClocks, ClockTuning, Node};
use super::prior::Evidence;
use super::repeats::Repeats;
use super::sketch::Sketch;
use crate::RevisitError;
use crate::varint::{Reader, put};

const FORMAT: u64 = 5;
/// The format before it was known whether changes follow each other.
const WITHOUT_REPEATS: u64 = 4;
const HAS_CLOCK: u64 = 1;
const HAS_EVIDENCE: u64 = 2;
const MAX_NODES: u64 = 1 << 28;

impl ChangeClocks {
    /// The clocks as bytes. A day's sums are rounded to 4%, finer than what a day can show.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put(&mut bytes, FORMAT);
        put(&mut bytes, self.today.map_or(0, |day| day.max(0).unsigned_abs() + 1));
        bytes.extend_from_slice(&self.bulk.0.to_le_bytes());
        bytes.extend_from_slice(&self.bulk.1.to_le_bytes());
        bytes.extend_from_slice(&self.evidence_days.to_le_bytes());
        bytes.extend_from_slice(&self.scale.to_le_bytes());
        self.repeats.write(&mut bytes);
        self.all.write(&mut bytes);
        put(&mut bytes, self.nodes.len() as u64);
        for node in &self.nodes {
            node.write(&mut bytes, self.clock_of(self.clock_above(node.parent)));
        }
        bytes
    }

    /// Reads what [`ChangeClocks::to_bytes`] wrote. Groups too small for a node are counted again.
    pub fn from_bytes(bytes: &[u8], tuning: ClockTuning) -> Result<Self, RevisitError> {
        let mut reader = Reader::new(bytes);
        let clocks = Self::read(&mut reader, tuning).ok_or(RevisitError::BadClocks {
            at: reader.at,
            problem: "a field is cut off, unknown or out of range",
        })?;
        if !reader.is_at_end() {
            return Err(RevisitError::BadClocks { at: reader.at, problem: "more bytes follow" });
        }
        Ok(clocks)
    }

    fn read(reader: &mut Reader<'_>, tuning: ClockTuning) -> Option<Self> {
        let format =
            reader.varint().filter(|&format| (WITHOUT_REPEATS..=FORMAT).contains(&format))?;
        let today = reader.varint().filter(|&day| day < 1 << 32)?.checked_sub(1).map(|d| d as i64);
        let bulk = (f64::from_le_bytes(reader.array()?), f64::from_le_bytes(reader.array()?));
        let evidence_days = f32::from_le_bytes(reader.array()?);
        let scale = f32::from_le_bytes(reader.array()?);
        let repeats = match format {
            WITHOUT_REPEATS => Repeats::default(),
            _ => Repeats::read(reader)?,
        };
        let positive = |value: f64| value > 0.0 && value.is_finite();
        let rates_known = evidence_days >= 0.0 && evidence_days.is_finite();
        if !(positive(bulk.0) && positive(bulk.1) && positive(scale.into()) && rates_known) {
            return None;
        }
        let all = Evidence::read(reader)?;
        let count = reader.varint().filter(|&count| count <= MAX_NODES)?;
        let mut clocks = Self::new(tuning);
        for id in 0..count as u32 {
            let node = Node::read(reader, id, today.unwrap_or(0), &clocks)?;
            clocks.index.insert(node.key, id);
            clocks.nodes.push(node);
        }
        clocks = Self {
            today,
            bulk,
            evidence_days,
            scale,
            all,
            repeats,
            sketch: Sketch::new(),
            ..clocks
        };
        if let Some(today) = today {
            clocks.recompute(today, 1.0);
        }
        Some(clocks)
    }
}

impl Node {
    fn write(&self, bytes: &mut Vec<u8>, above: Option<&Clock>) {
        bytes.extend_from_slice(&self.key.to_le_bytes());
        put(bytes, u64::from(self.parent.wrapping_add(1)));
        put(bytes, u64::from(self.pages));
        let clock = if self.clock.is_some() { HAS_CLOCK } else { 0 };
        let evidence = if self.evidence.is_some() { HAS_EVIDENCE } else { 0 };
        put(bytes, clock | evidence);
        self.clock.iter().for_each(|clock| clock.write(bytes, above));
        self.evidence.iter().for_each(|evidence| evidence.write(bytes));
    }

    /// Reads the node with that number; its parent must come before it, in `clocks`.
    fn read(reader: &mut Reader<'_>, id: u32, today: i64, clocks: &ChangeClocks) -> Option<Self> {
        let key = u64::from_le_bytes(reader.array()?);
        let parent = reader.varint().filter(|&parent| parent <= u64::from(id))? as u32;
        let parent = parent.wrapping_sub(1);
        let pages = reader.varint()?.try_into().ok()?;
        let parts = reader.varint().filter(|&parts| parts <= HAS_CLOCK | HAS_EVIDENCE)?;
        let above = || clocks.clock_of(clocks.clock_above(parent));
        let clock = match parts & HAS_CLOCK {
            0 => None,
            _ => Some(Box::new(Clock::read(reader, today, above())?)),
        };
        let evidence = match parts & HAS_EVIDENCE {
            0 => None,
            _ => Some(Box::new(Evidence::read(reader)?)),
        };
        Some(Self { key, parent, pages, clock, evidence })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DAY_S;
    use crate::auto::clocks::ClosedGap;
    use crate::auto::grid::RATES;

    fn sample() -> ChangeClocks {
        let mut clocks = ChangeClocks::new(ClockTuning::default());
        for n in 0..60 {
            clocks.meet(100 * DAY_S, 1, &format!("/news/item{n}x.html"));
        }
        for day in 101..220 {
            clocks.roll(day * DAY_S);
            for n in 0..10 {
                let groups = clocks.groups_of(1, &format!("/news/item{n}x.html"));
                let (from_s, to_s) = ((day - 1) * DAY_S, day * DAY_S);
                clocks.learn(
                    groups,
                    &ClosedGap { from_s, to_s, rate: 0.1, changed: (day + n) % 7 == 0 },
                );
                clocks.learn_rates(groups, &[1.0 / RATES as f32; RATES], 1.0);
            }
        }
        clocks
    }

    #[test]
    fn clocks_run_on_from_their_bytes_as_before() {
        let clocks = sample();
        let bytes = clocks.to_bytes();
        let again = ChangeClocks::from_bytes(&bytes, ClockTuning::default()).unwrap();
        let groups = clocks.groups_of(1, "/news/other.html");
        assert_eq!(again.groups_of(1, "/news/other.html"), groups);
        for from_day in [110, 180, 215] {
            let (from_s, to_s) = (from_day * DAY_S, 219 * DAY_S);
            let (a, b) = (clocks.passed(groups, from_s, to_s), again.passed(groups, from_s, to_s));
            assert!((a.clock / b.clock - 1.0).abs() < 0.06, "{a:?} {b:?}");
            assert!((a.bulk / b.bulk - 1.0).abs() < 0.06, "{a:?} {b:?}");
        }
        assert_eq!(again.to_bytes(), bytes);
    }

    #[test]
    fn clocks_that_were_kept_without_repeats_are_read() {
        let clocks = sample();
        let bytes = clocks.to_bytes();
        // Behind the format, the day in two bytes and four numbers come the repeats, 16 bytes.
        let before = [&[4], &bytes[1..27], &bytes[43..]].concat();
        let read = ChangeClocks::from_bytes(&before, ClockTuning::default()).unwrap();
        assert_eq!(read.to_bytes(), bytes);
    }

    #[test]
    fn damaged_clocks_are_refused_and_never_panic() {
        let bytes = sample().to_bytes();
        for cut in (0..bytes.len()).step_by(37) {
            assert!(ChangeClocks::from_bytes(&bytes[..cut], ClockTuning::default()).is_err());
        }
        for at in (0..bytes.len()).step_by(11) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x41;
            if let Ok(clocks) = ChangeClocks::from_bytes(&damaged, ClockTuning::default()) {
                let groups = clocks.groups_of(1, "/news/other.html");
                assert!(clocks.passed(groups, 0, 219 * DAY_S).clock >= 0.0);
            }
        }
    }
}
