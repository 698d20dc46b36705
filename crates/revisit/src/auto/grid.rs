//! A page's likelihood over a grid of Poisson rates, and the visits it is worth.

use super::clock::PassedBuckets;
use crate::missed::{changed_buckets, in_gap};
use crate::varint::Reader;

/// Rates in the grid.
pub(crate) const RATES: usize = 24;

/// A value for each rate.
pub(crate) type Spread = [f32; RATES];

/// Changes per day: one in 1,000 days, 3 a day after 16 steps, one a minute at the end. Slow rates
/// are closer to each other, since most pages are slow and few visits have to distinguish them.
const SLOWEST: f32 = 0.001;
const DAILY: (usize, f32) = (15, 3.0);
const FASTEST: f32 = 1_440.0;

/// More changes than this in a slot cannot be counted: a visit sees one at most.
const CHANGES_A_SLOT: f32 = 3.01;

/// Waits in the table, half a minute to about 2,000 days, each 1.16 times the one before.
const WAITS: usize = 105;
const SHORTEST_WAIT: f32 = 0.5 / 1_440.0;
/// The best wait is looked for in strides of this many, 2.4 times the one before, and then in
/// shorter steps around the best so far.
const STRIDE: usize = 6;
const STEPS_BETWEEN: [usize; 4] = [3, 2, 1, 1];

/// Rates that are less likely add nothing to what was missed.
const LEAST_WEIGHT: f32 = 1e-3;

/// The longest run of equal bytes that is left out.
const RUN_MAX: usize = 15;

/// A stored likelihood of b is b² times this below the best, in nats: near the best rates steps are
/// fine, and 255 reach far enough that the rest is nothing.
const SQUARE: f32 = 20.4 / (255.0 * 255.0);
/// Nats per step in histories that were kept before steps were finer near the best rates.
const EVEN_STEP: f32 = 0.08;

/// The rates per day and what follows from them, computed once per policy.
#[derive(Debug, Clone)]
pub(crate) struct RateGrid {
    pub(crate) rates: Spread,
    /// Rates that slots can distinguish; the faster ones get no weight.
    usable: usize,
    /// The first wait that is worth looking at: slots allow none much shorter.
    first_wait: usize,
    waits: [f32; WAITS],
    /// exp(−λ_k τ_j).
    quiet: Box<[Spread; WAITS]>,
    /// The likelihood that each stored byte means.
    likelihoods: Box<[f32; 256]>,
}

/// Log-likelihoods below the best rate's, in steps, one byte each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Likelihood(pub(crate) [u8; RATES]);

/// When a visit pays best.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Plan {
    /// The rate that would see as many changes until the visit, were it the only one.
    pub(crate) effective_rate: f32,
    /// Expected changes, by that rate, at which the visit pays best.
    pub(crate) threshold: f32,
}

impl RateGrid {
    /// The grid for slots of so many days.
    pub(crate) fn new(slot_days: f32) -> Self {
        let (daily, at_daily) = DAILY;
        let slow = (at_daily / SLOWEST).ln() / daily as f32;
        let fast = (FASTEST / at_daily).ln() / (RATES - 1 - daily) as f32;
        let rates: Spread = std::array::from_fn(|k| match k.checked_sub(daily) {
            Some(beyond) => at_daily * (fast * beyond as f32).exp(),
            None => SLOWEST * (slow * k as f32).exp(),
        });
        let waits: [f32; WAITS] = std::array::from_fn(|j| SHORTEST_WAIT * 1.16f32.powi(j as i32));
        let quiet = waits.map(|wait| rates.map(|rate| (-rate * wait).exp()));
        let usable = rates.iter().filter(|rate| *rate * slot_days <= CHANGES_A_SLOT).count();
        let first_wait = waits.iter().filter(|wait| **wait < 0.2 * slot_days).count();
        let first_wait = first_wait.min(WAITS - 1);
        let likelihoods = Box::new(std::array::from_fn(|steps| (-nats(steps as f32)).exp()));
        let (usable, quiet) = (usable.max(1), Box::new(quiet));
        Self { rates, usable, first_wait, waits, quiet, likelihoods }
    }

    /// The posterior of the rates, summing to 1.
    pub(crate) fn posterior(&self, likelihood: &Likelihood, prior: &Spread) -> Spread {
        let mut weights: Spread = [0.0; RATES];
        for k in 0..self.usable {
            weights[k] = prior[k] * self.likelihoods[usize::from(likelihood.0[k])];
        }
        if normalize(&mut weights) {
            return weights;
        }
        let mut prior = *prior;
        prior[self.usable..].fill(0.0);
        normalize(&mut prior);
        prior
    }

    pub(crate) fn mean(&self, weights: &Spread) -> f32 {
        dot(weights, &self.rates)
    }

    /// Versions missed on average in a gap that saw a change, by the rates believed after it.
    pub(crate) fn missed(&self, weights: &Spread, gap: &PassedBuckets) -> f32 {
        let of_rate = |rate: f32| {
            let expected = rate * gap.passed.clock;
            let changed = changed_buckets(expected, gap.buckets);
            // A bulk edit in a bucket that changed anyway adds none.
            let edits = gap.edits * (1.0 - changed / gap.buckets.max(1.0));
            in_gap(expected + gap.passed.bulk, changed + edits)
        };
        let rates = weights.iter().zip(&self.rates).filter(|(weight, _)| **weight > LEAST_WEIGHT);
        rates.map(|(weight, rate)| weight * of_rate(*rate)).sum()
    }

    /// Standard deviation over mean: how little is known of the rate.
    pub(crate) fn relative_spread(&self, weights: &Spread) -> f32 {
        let mean = self.mean(weights);
        let square: f32 =
            weights.iter().zip(&self.rates).map(|(weight, rate)| weight * rate * rate).sum();
        ((square - mean * mean).max(0.0)).sqrt() / mean.max(f32::MIN_POSITIVE)
    }

    /// The range that contains the true rate with 80% probability.
    pub(crate) fn range(&self, weights: &Spread) -> (f64, f64) {
        let quantile = |share: f32| {
            let mut sum = 0.0;
            let reached = weights.iter().position(|weight| {
                sum += weight;
                sum >= share
            });
            f64::from(self.rates[reached.unwrap_or(RATES - 1)])
        };
        (quantile(0.1), quantile(0.9))
    }

    /// The wait that gains most per day at a price: argmax (1 − Σ w e^(−λτ) − price)/τ.
    pub(crate) fn plan(&self, weights: &Spread, price: f32) -> Plan {
        let mut best = (f32::NEG_INFINITY, 1.0, WAITS - 1);
        let try_at = |at: usize, best: &mut (f32, f32, usize)| {
            let unchanged = dot_of(weights, &self.quiet[at], self.usable);
            let gain = (1.0 - unchanged - price) / self.waits[at];
            if gain > best.0 {
                *best = (gain, unchanged, at);
            }
        };
        (self.first_wait..WAITS).step_by(STRIDE).for_each(|at| try_at(at, &mut best));
        for step in STEPS_BETWEEN {
            let (.., middle) = best;
            let (before, after) = (middle.checked_sub(step), middle + step);
            let before = before.filter(|at| *at >= self.first_wait);
            before
                .into_iter()
                .chain((after < WAITS).then_some(after))
                .for_each(|at| try_at(at, &mut best));
        }
        let (_, unchanged, at) = best;
        let threshold = -unchanged.max(1e-6).ln();
        Plan { effective_rate: threshold / self.waits[at], threshold }
    }
}

/// Σ a·b, in four sums side by side: processors add those at once.
fn dot(one: &Spread, other: &Spread) -> f32 {
    let mut sums = [0.0f32; 4];
    for (one, other) in one.as_chunks::<4>().0.iter().zip(other.as_chunks::<4>().0) {
        for lane in 0..4 {
            sums[lane] += one[lane] * other[lane];
        }
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}

/// [`dot`] of the first so many, the others of one being 0.
fn dot_of(one: &Spread, other: &Spread, usable: usize) -> f32 {
    let lanes = usable.next_multiple_of(4).min(RATES);
    let (one, other) = (one[..lanes].as_chunks::<4>().0, other[..lanes].as_chunks::<4>().0);
    let mut sums = [0.0f32; 4];
    for (one, other) in one.iter().zip(other) {
        for lane in 0..4 {
            sums[lane] += one[lane] * other[lane];
        }
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}

/// Makes weights sum to 1, if any is above 0.
fn normalize(weights: &mut Spread) -> bool {
    let sum: f32 = weights.iter().sum();
    if sum > 0.0 {
        weights.iter_mut().for_each(|weight| *weight /= sum);
    }
    sum > 0.0
}

/// Writes a byte for each rate. Both ends mostly hold the same byte many times, since rates far from
/// the true one are equally out of the question: a first byte says how often, from 0 to 15 each.
pub(crate) fn write_spread(spread: &[u8; RATES], out: &mut Vec<u8>) {
    let first = spread.windows(2).take_while(|pair| pair[0] == pair[1]).count().min(RUN_MAX);
    let rest = &spread[first..];
    let last = rest.windows(2).rev().take_while(|pair| pair[0] == pair[1]).count().min(RUN_MAX);
    out.push((first << 4 | last) as u8);
    out.extend_from_slice(&rest[..rest.len() - last]);
}

/// Reads what [`write_spread`] wrote.
pub(crate) fn read_spread(reader: &mut Reader<'_>) -> Option<[u8; RATES]> {
    let [runs] = reader.array()?;
    let (first, last) = (usize::from(runs >> 4), usize::from(runs & 15));
    let mut spread = [0; RATES];
    let kept = first..RATES.checked_sub(last).filter(|end| *end > first)?;
    for at in kept.clone() {
        [spread[at]] = reader.array()?;
    }
    let (head, tail) = (spread[first], spread[kept.end - 1]);
    spread[..first].fill(head);
    spread[kept.end..].fill(tail);
    Some(spread)
}

/// The meaning of a stored likelihood, in nats below the best.
fn nats(steps: f32) -> f32 {
    SQUARE * steps * steps
}

/// The steps that so many nats are stored as; between two of them chance decides, from 0 to 1, so
/// that the mean is right.
fn steps_of(below: f32, chance: f32) -> u8 {
    let floor = (below / SQUARE).sqrt().floor();
    let part = (below - nats(floor)) / (SQUARE * (2.0 * floor + 1.0));
    (floor + (part + chance).floor()) as u8
}

impl Likelihood {
    /// From the even steps that were kept before.
    pub(crate) fn from_even_steps(steps: [u8; RATES]) -> Self {
        Self(steps.map(|steps| steps_of(EVEN_STEP * f32::from(steps), 0.5)))
    }

    /// Takes a gap in: `clock` is the time passed by the neighbours' clock, `bulk` the expected
    /// changes common to them, `keep` the share of old evidence that still counts.
    ///
    /// Rounding is dithered by `salt`, since a page visited daily moves less than a step each day.
    pub(crate) fn observe(
        &mut self,
        grid: &RateGrid,
        (clock, bulk): (f32, f32),
        changed: bool,
        keep: f32,
        salt: u32,
    ) {
        let mut logs: Spread = [0.0; RATES];
        for (k, log) in logs[..grid.usable].iter_mut().enumerate() {
            let old = -nats(f32::from(self.0[k])) * keep;
            let expected = grid.rates[k] * clock;
            *log = match changed {
                true => old + (-(-expected - bulk).exp_m1()).max(1e-12).ln(),
                false => old - expected,
            };
        }
        let logs = &logs[..grid.usable];
        let best = logs.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        for (k, log) in logs.iter().enumerate() {
            let mixed = (salt.wrapping_mul(0x9e37_79b9) ^ (k as u32).wrapping_mul(0x85eb_ca6b))
                .wrapping_mul(0xc2b2_ae35);
            let dither = (mixed >> 8) as f32 / (1 << 24) as f32;
            self.0[k] = steps_of((best - *log).max(0.0), dither);
        }
        // Faster rates than slots can distinguish are as likely as the fastest that they can.
        let fastest = self.0[grid.usable - 1];
        self.0[grid.usable..].fill(fastest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> RateGrid {
        RateGrid::new(1.0)
    }

    #[test]
    fn a_page_that_changes_every_tenth_day_is_estimated_so() {
        let (grid, mut likelihood) = (grid(), Likelihood::default());
        for visit in 0..200 {
            likelihood.observe(&grid, (5.0, 0.0), visit % 5 < 2, 1.0, visit);
        }
        // Two of five gaps of 5 days changed: λ = −ln(0.6)/5.
        let weights = grid.posterior(&likelihood, &[1.0 / RATES as f32; RATES]);
        let mean = grid.mean(&weights);
        assert!((mean - 0.102).abs() < 0.02, "{mean}");
        assert!(grid.relative_spread(&weights) < 0.3);
    }

    #[test]
    fn with_one_certain_rate_the_best_threshold_solves_the_poisson_optimum() {
        let grid = grid();
        for (k, rate) in grid.rates.iter().enumerate().take(13).skip(3) {
            let mut weights = [0.0; RATES];
            weights[k] = 1.0;
            let price = 0.3;
            let plan = grid.plan(&weights, price);
            assert!((plan.effective_rate / rate - 1.0).abs() < 0.02);
            // e^(−x)(1 + x) = 1 − price
            let x = plan.threshold;
            assert!(((-x).exp() * (1.0 + x) - 0.7).abs() < 0.03, "{x}");
        }
    }

    #[test]
    fn spreads_read_back_and_take_few_bytes_where_ends_are_alike() {
        let mut known = [255; RATES];
        known[5..9].copy_from_slice(&[40, 0, 3, 90]);
        let slopes: [u8; RATES] = std::array::from_fn(|k| k as u8);
        for (spread, bytes) in [([0; RATES], 2), ([255; RATES], 2), (known, 7), (slopes, 25)] {
            let mut written = Vec::new();
            write_spread(&spread, &mut written);
            assert_eq!(written.len(), bytes);
            assert_eq!(read_spread(&mut Reader::new(&written)), Some(spread));
            assert_eq!(read_spread(&mut Reader::new(&written[..bytes - 1])), None);
        }
    }

    #[test]
    fn small_evidence_is_not_lost_in_rounding() {
        let (grid, mut likelihood) = (grid(), Likelihood::default());
        for visit in 0..100 {
            likelihood.observe(&grid, (0.1, 0.0), false, 1.0, visit);
        }
        // Ten quiet days speak against the fastest rate by 30 nats, beyond the 20.4 that are kept,
        // and against 0.08 a day by 0.8, though each visit moved it by a tenth of a step.
        assert_eq!(likelihood.0[15], 255);
        let lost = nats(f32::from(likelihood.0[8]));
        let true_loss = 10.0 * (grid.rates[8] - grid.rates[0]);
        assert!((lost / true_loss - 1.0).abs() < 0.35, "{lost} {true_loss}");
    }
}
