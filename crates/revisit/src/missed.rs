//! How many versions came and went unseen between visits.
//!
//! A visit that sees a change gets one version, whatever happened before it. With x changes expected
//! in the gap, x/(1 − e^(−x)) of them happened on average given that there was one, and all but the
//! last were missed. Changes within one bucket count once, as everywhere in a schedule. A page that
//! changed and changed back looks unchanged: those are not counted.

use serde::Serialize;

/// Versions that were missed, and the range that holds the true number with 80% if changes come at
/// random times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Missed {
    /// The expected number.
    pub versions: f64,
    /// From the least to the most that is likely.
    pub range: (f64, f64),
}

/// Standard deviations around the mean that hold 80%.
const MOST: f64 = 1.28;
/// The least confidence in a rate that is believed, so that a range has an end.
const LEAST_CONFIDENCE: f64 = 0.25;

impl Missed {
    /// From the expected number and how sure the rate behind it is, from 0 to 1.
    pub fn new(versions: f64, confidence: f64) -> Self {
        let deviation = Self::variance(versions, confidence).sqrt();
        Self::within(versions, deviation)
    }

    /// The sum over pages, from the sums of their numbers and variances.
    pub fn of_pages(versions: f64, variance: f64) -> Self {
        Self::within(versions, variance.max(0.0).sqrt())
    }

    /// The variance of a page's number: that of a count, and that of a rate which is not well known.
    pub fn variance(versions: f64, confidence: f64) -> f64 {
        let spread = 1.0 / confidence.clamp(LEAST_CONFIDENCE, 1.0) - 1.0;
        versions + (spread * versions).powi(2)
    }

    fn within(versions: f64, deviation: f64) -> Self {
        let away = MOST * deviation;
        Self { versions, range: ((versions - away).max(0.0), versions + away) }
    }
}

impl std::fmt::Display for Missed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (low, high) = self.range;
        let (versions, low, high) = (self.versions.round(), low.round(), high.round());
        if high == 0.0 {
            return f.write_str("no version missed between visits");
        }
        write!(f, "about {versions} versions missed between visits ({low} to {high})")
    }
}

/// Versions missed on average in a gap that saw a change, where so many changes were expected, in so
/// many buckets.
pub(crate) fn in_gap(expected: f32, changed_buckets: f32) -> f32 {
    let chance = -(-expected.max(1e-4)).exp_m1();
    (changed_buckets.max(1e-4) / chance - 1.0).max(0.0)
}

/// Buckets with a change, of so many in which that many changes are expected, evenly spread.
pub(crate) fn changed_buckets(expected: f32, buckets: f32) -> f32 {
    let buckets = buckets.max(1.0);
    -buckets * (-expected / buckets).exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_misses_half_of_what_is_expected_if_that_is_little_and_all_but_one_if_it_is_much() {
        let even = |expected, buckets| in_gap(expected, changed_buckets(expected, buckets));
        let many = 1e6;
        assert!((even(0.02, many) - 0.01).abs() < 2e-3);
        assert!((even(30.0, many) - 29.0).abs() < 0.5);
        // At most one version for each bucket, of which the visit gets the last.
        assert_eq!(even(30.0, 1.0), 0.0);
        assert!((even(1e3, 7.0) - 6.0).abs() < 1e-3);
        assert!(even(0.0, 5.0) < 1e-3);
    }

    #[test]
    fn a_range_holds_the_number_and_narrows_with_confidence() {
        let (sure, unsure) = (Missed::new(10.0, 0.9), Missed::new(10.0, 0.4));
        assert!(unsure.range.0 < sure.range.0 && sure.range.1 < unsure.range.1);
        assert!(sure.range.0 < 10.0 && 10.0 < sure.range.1);
        assert_eq!(Missed::new(0.0, 0.0).range, (0.0, 0.0));
        assert_eq!(Missed::new(0.0, 0.9).to_string(), "no version missed between visits");
        let text = "about 10 versions missed between visits (6 to 14)";
        assert_eq!(sure.to_string(), text);
    }
}
