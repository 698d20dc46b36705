//! Whether the estimated numbers of missed versions are right: bins of pages by their estimate.

use nenrin_revisit::Missed;
use serde_json::{Value, json};

use super::Tally;

/// Bins end before these estimates; the last has no end.
const ENDS: [f64; 8] = [0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0];

/// Pages of about the same estimate.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct MissedBin {
    /// Estimates from here on.
    pub from: f64,
    /// The number of pages with such estimates.
    pub pages: u64,
    /// Versions that they are estimated to have missed, all together.
    pub estimated: f64,
    /// Versions that they missed.
    pub missed: u64,
    /// Pages whose number is within their range.
    pub within: u64,
}

/// Sorts pages into bins by what was estimated at their last visits.
pub fn calibration(tallies: &[Tally], estimates: &[Option<Missed>]) -> Vec<MissedBin> {
    let mut bins = vec![MissedBin::default(); ENDS.len() + 1];
    bins.iter_mut().skip(1).zip(ENDS).for_each(|(bin, end)| bin.from = end);
    for (tally, estimate) in tallies.iter().zip(estimates) {
        let Some(estimate) = estimate else { continue };
        let bin = &mut bins[ENDS.iter().filter(|end| estimate.versions >= **end).count()];
        bin.pages += 1;
        bin.estimated += estimate.versions;
        bin.missed += u64::from(tally.missed);
        let (low, high) = estimate.range;
        // Whole numbers: half a version to both sides is the same number.
        let missed = f64::from(tally.missed);
        bin.within += u64::from(low - 0.5 <= missed && missed <= high + 0.5);
    }
    bins
}

pub(super) fn to_json(bins: &[MissedBin]) -> Value {
    let bins = bins.iter().filter(|bin| bin.pages > 0).map(|bin| {
        json!({
            "from": bin.from,
            "pages": bin.pages,
            "mean_estimate": bin.estimated / bin.pages as f64,
            "mean_missed": bin.missed as f64 / bin.pages as f64,
            "within_range": bin.within as f64 / bin.pages as f64,
        })
    });
    bins.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_counted_in_the_bin_of_their_estimate() {
        let tally = |missed| Tally { missed, ..Tally::default() };
        let estimate = |versions| Some(Missed::new(versions, 0.9));
        let bins = calibration(
            &[tally(0), tally(3), tally(90), tally(7)],
            &[estimate(0.05), estimate(3.0), estimate(3.5), None],
        );
        let some: Vec<&MissedBin> = bins.iter().filter(|bin| bin.pages > 0).collect();
        assert_eq!(
            some.iter().map(|bin| (bin.from, bin.pages)).collect::<Vec<_>>(),
            [(0.0, 1), (2.0, 2)]
        );
        assert_eq!((some[1].estimated, some[1].missed, some[1].within), (6.5, 93, 1));
    }
}
