//! Whether a change comes soon after another: what that says about changes that nobody saw.
//!
//! A gap with a change hides others only if changes follow each other closely. Where all pages of a
//! site are published anew a few times a year, none follows soon; where an author writes for an
//! evening, many do. The first visit after one that saw a change shows which: how often it sees
//! another, compared with what the page's rate promises.

use crate::varint::Reader;

/// Visits that the rate alone is trusted for before what was seen counts.
const TRUST: f64 = 20.0;
/// How strongly the number of hidden changes follows: a power.
const POWER: f64 = 0.7;
/// From so many expected changes on, older ones count half, since a site may change its ways.
const ENOUGH: f64 = 10_000.0;

/// Visits of a site's pages that came right after a visit which saw a change.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Repeats {
    /// Those that saw a change again.
    seen: f64,
    /// How many of them should have, by the rates of their pages.
    expected: f64,
}

impl Repeats {
    /// A visit after one that saw a change: whether it saw another, and how likely that was.
    pub(super) fn visited(&mut self, changed: bool, chance: f64) {
        self.seen += f64::from(u8::from(changed));
        self.expected += chance.clamp(0.0, 1.0);
        if self.expected > ENOUGH {
            (self.seen, self.expected) = (self.seen / 2.0, self.expected / 2.0);
        }
    }

    /// How many times the changes that even chances would hide are hidden.
    pub(super) fn factor(&self) -> f64 {
        ((self.seen + TRUST) / (self.expected + TRUST)).powf(POWER)
    }

    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.seen.to_le_bytes());
        bytes.extend_from_slice(&self.expected.to_le_bytes());
    }

    /// Reads what [`Repeats::write`] wrote.
    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let seen = f64::from_le_bytes(reader.array()?);
        let expected = f64::from_le_bytes(reader.array()?);
        let is_count = |number: f64| number >= 0.0 && number.is_finite();
        (is_count(seen) && is_count(expected)).then_some(Self { seen, expected })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_are_hidden_where_none_follows_and_more_where_many_do() {
        let after = |changed: &dyn Fn(u32) -> bool| {
            let mut repeats = Repeats::default();
            (0..200).for_each(|visit| repeats.visited(changed(visit), 0.5));
            repeats.factor()
        };
        assert_eq!(Repeats::default().factor(), 1.0);
        assert!(after(&|_| false) < 0.35, "{}", after(&|_| false));
        assert!((after(&|visit| visit % 2 == 0) - 1.0).abs() < 1e-9);
        assert!(after(&|_| true) > 1.4);
    }

    #[test]
    fn they_come_back_from_bytes_and_damage_is_refused() {
        let written = |repeats: Repeats| {
            let mut bytes = Vec::new();
            repeats.write(&mut bytes);
            bytes
        };
        let repeats = Repeats { seen: 3.0, expected: 7.5 };
        let bytes = written(repeats);
        assert_eq!(Repeats::read(&mut Reader::new(&bytes)), Some(repeats));
        assert_eq!(Repeats::read(&mut Reader::new(&bytes[..15])), None);
        let damaged = written(Repeats { seen: f64::NAN, ..repeats });
        assert_eq!(Repeats::read(&mut Reader::new(&damaged)), None);
    }
}
