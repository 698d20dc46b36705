//! The gaps that saw a change, for the exact estimate.

use crate::varint::{Reader, put};

/// Different lengths that are kept; beyond it the two nearest are merged into their mean.
const MAX_LENGTHS: usize = 64;

/// Lengths of gaps that saw a change, ascending, with how often each occurred.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ChangedGaps {
    lengths: Vec<(u64, u32)>,
}

impl ChangedGaps {
    pub(crate) fn add(&mut self, length_s: u64) {
        match self.lengths.binary_search_by_key(&length_s, |(length, _)| *length) {
            Ok(at) => self.lengths[at].1 = self.lengths[at].1.saturating_add(1),
            Err(at) => self.lengths.insert(at, (length_s, 1)),
        }
        if self.lengths.len() > MAX_LENGTHS {
            self.merge_nearest();
        }
    }

    /// Merges the two lengths whose ratio is smallest, since rates are judged by ratios.
    fn merge_nearest(&mut self) {
        let ratio = |pair: &[(u64, u32)]| pair[1].0.max(1) as f64 / pair[0].0.max(1) as f64;
        let nearest = self
            .lengths
            .windows(2)
            .enumerate()
            .min_by(|(_, a), (_, b)| ratio(a).total_cmp(&ratio(b)))
            .map(|(at, _)| at);
        if let Some(at) = nearest {
            let (long, long_count) = self.lengths.remove(at + 1);
            let (short, short_count) = &mut self.lengths[at];
            let (a, b) = (u128::from(*short_count), u128::from(long_count));
            *short = ((u128::from(*short) * a + u128::from(long) * b) / (a + b)) as u64;
            *short_count = short_count.saturating_add(long_count);
        }
    }

    /// The rate per second that solves Σ t_c/(exp(λ t_c) − 1) = U, by bisection.
    ///
    /// Without an unchanged gap the likelihood grows with the rate for ever, and without a changed
    /// one it falls: there is no estimate then.
    pub(crate) fn exact_rate_per_s(&self, unchanged_s: u64) -> Option<f64> {
        if unchanged_s == 0 || self.lengths.iter().all(|(length, _)| *length == 0) {
            return None;
        }
        let excess = |rate: f64| self.expected_s(rate) - unchanged_s as f64;
        let (mut low, mut high) = (1e-12f64, 10.0f64);
        if excess(low) <= 0.0 {
            return Some(low);
        }
        for _ in 0..100 {
            let middle = (low * high).sqrt();
            if excess(middle) > 0.0 {
                low = middle
            } else {
                high = middle
            }
            if high / low < 1.0 + 1e-12 {
                break;
            }
        }
        Some((low * high).sqrt())
    }

    /// Σ t_c/(exp(λ t_c) − 1), falling in λ.
    fn expected_s(&self, rate: f64) -> f64 {
        let term = |&(length, count): &(u64, u32)| {
            let length = length as f64;
            f64::from(count) * length / (rate * length).exp_m1().max(f64::MIN_POSITIVE)
        };
        self.lengths.iter().filter(|(length, _)| *length > 0).map(term).sum()
    }

    pub(crate) fn write(&self, bytes: &mut Vec<u8>) {
        put(bytes, self.lengths.len() as u64);
        for (length, count) in &self.lengths {
            put(bytes, *length);
            put(bytes, u64::from(*count));
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let count = reader.varint().filter(|&count| count <= MAX_LENGTHS as u64)?;
        let lengths = (0..count)
            .map(|_| Some((reader.varint()?, reader.varint()?.try_into().ok()?)))
            .collect::<Option<Vec<(u64, u32)>>>()?;
        let usable = lengths.windows(2).all(|pair| pair[0].0 < pair[1].0)
            && lengths.iter().all(|(_, count)| *count > 0);
        usable.then_some(Self { lengths })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_equal_gaps_the_exact_rate_is_the_closed_form() {
        let mut gaps = ChangedGaps::default();
        (0..3).for_each(|_| gaps.add(100));
        // Three of eight gaps of 100 s changed: λ = ln(T/U)/100 = ln(8/5)/100.
        let rate = gaps.exact_rate_per_s(500).unwrap();
        assert!((rate - (8f64 / 5.0).ln() / 100.0).abs() < 1e-9, "{rate}");
    }

    #[test]
    fn without_an_unchanged_gap_there_is_no_estimate() {
        let mut gaps = ChangedGaps::default();
        assert_eq!(gaps.exact_rate_per_s(100), None);
        gaps.add(100);
        assert_eq!(gaps.exact_rate_per_s(0), None);
    }

    #[test]
    fn the_number_of_lengths_stays_bounded_and_no_gap_is_lost() {
        let mut gaps = ChangedGaps::default();
        (1..1_000).for_each(|length| gaps.add(length * 7));
        assert_eq!(gaps.lengths.len(), MAX_LENGTHS);
        assert_eq!(gaps.lengths.iter().map(|(_, count)| count).sum::<u32>(), 999);
        assert!(gaps.lengths.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
