//! The rates of the pages around a page, as what to expect of it.

use super::coded::Coded;
use super::grid::{RATES, Spread, read_spread, write_spread};
use crate::varint::Reader;

/// Rates believed of a group's pages, weighted by the days they were believed.
///
/// Weighting by days gives each page the same say, however often it is visited.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Evidence {
    sums: Spread,
    weight: f32,
}

impl Evidence {
    pub(crate) fn add(&mut self, rates: &Spread, weight: f32) {
        self.sums.iter_mut().zip(rates).for_each(|(sum, rate)| *sum += rate * weight);
        self.weight += weight;
    }

    pub(crate) fn scale(&mut self, factor: f32) {
        self.sums.iter_mut().for_each(|sum| *sum *= factor);
        self.weight *= factor;
    }

    /// The mean of the group and of the group above it, which counts as `pages` pages.
    pub(crate) fn mixed(&self, above: &Spread, pages: f32, days: f32) -> Spread {
        let hold = pages * days;
        let whole = self.weight + hold;
        std::array::from_fn::<f32, RATES, _>(|k| (self.sums[k] + hold * above[k]) / whole)
    }

    pub(crate) fn write(&self, bytes: &mut Vec<u8>) {
        Coded::new(self.weight).write(bytes);
        let shares = self.sums.map(|sum| sum / self.weight.max(f32::MIN_POSITIVE));
        // A byte per rate: the root spends its steps where shares are small.
        let roots = shares.map(|share| (share.max(0.0).sqrt() * 255.0).round() as u8);
        write_spread(&roots, bytes);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let weight = Coded::read(reader)?.value();
        let roots = read_spread(reader)?;
        let shares = roots.map(|root| (f32::from(root) / 255.0).powi(2));
        let whole: f32 = shares.iter().sum();
        let sums = shares.map(|share| share * weight / whole.max(f32::MIN_POSITIVE));
        Some(Self { sums, weight: if whole > 0.0 { weight } else { 0.0 } })
    }
}
