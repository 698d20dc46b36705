//! A page's likelihood over a grid of Poisson rates, and the visits it is worth.

/// Rates in the grid.
pub(crate) const RATES: usize = 16;

/// A value for each rate.
pub(crate) type Spread = [f32; RATES];

/// Waits in the table, 0.2 days to about 2,000, each 1.16 times the one before.
const WAITS: usize = 63;

/// Nats per step of a stored likelihood: 255 steps reach far enough that the rest is nothing.
const STEP: f32 = 0.08;

/// The rates per day and what follows from them, computed once per policy.
#[derive(Debug, Clone)]
pub(crate) struct RateGrid {
    pub(crate) rates: Spread,
    waits: [f32; WAITS],
    /// exp(−λ_k τ_j).
    quiet: Box<[Spread; WAITS]>,
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
    /// From one change in 1,000 days to 3 a day, evenly in the logarithm.
    pub(crate) fn new(slowest: f32, fastest: f32) -> Self {
        let step = (fastest / slowest).ln() / (RATES - 1) as f32;
        let rates: Spread = std::array::from_fn(|k| slowest * (step * k as f32).exp());
        let waits: [f32; WAITS] = std::array::from_fn(|j| 0.2 * 1.16f32.powi(j as i32));
        let quiet = waits.map(|wait| rates.map(|rate| (-rate * wait).exp()));
        Self { rates, waits, quiet: Box::new(quiet) }
    }

    /// The posterior of the rates, summing to 1.
    pub(crate) fn posterior(&self, likelihood: &Likelihood, prior: &Spread) -> Spread {
        let mut weights: Spread =
            std::array::from_fn(|k| prior[k] * (-STEP * f32::from(likelihood.0[k])).exp());
        let sum: f32 = weights.iter().sum();
        if sum > 0.0 {
            weights.iter_mut().for_each(|weight| *weight /= sum);
            return weights;
        }
        *prior
    }

    pub(crate) fn mean(&self, weights: &Spread) -> f32 {
        weights.iter().zip(&self.rates).map(|(weight, rate)| weight * rate).sum()
    }

    /// Standard deviation over mean: how little is known of the rate.
    pub(crate) fn relative_spread(&self, weights: &Spread) -> f32 {
        let mean = self.mean(weights);
        let square: f32 =
            weights.iter().zip(&self.rates).map(|(weight, rate)| weight * rate * rate).sum();
        ((square - mean * mean).max(0.0)).sqrt() / mean.max(f32::MIN_POSITIVE)
    }

    /// The rates between which the true one lies with 80%.
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
        let mut best = (f32::NEG_INFINITY, 1.0, self.waits[WAITS - 1]);
        for (wait, quiet) in self.waits.iter().zip(self.quiet.iter()) {
            let unchanged: f32 = weights.iter().zip(quiet).map(|(w, q)| w * q).sum();
            let gain = (1.0 - unchanged - price) / wait;
            if gain > best.0 {
                best = (gain, unchanged, *wait);
            }
        }
        let (_, unchanged, wait) = best;
        let threshold = -unchanged.max(1e-6).ln();
        Plan { effective_rate: threshold / wait, threshold }
    }
}

impl Likelihood {
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
        let mut logs: Spread = std::array::from_fn(|k| {
            let old = -STEP * f32::from(self.0[k]) * keep;
            let expected = grid.rates[k] * clock;
            if changed {
                old + (-(-expected - bulk).exp_m1()).max(1e-12).ln()
            } else {
                old - expected
            }
        });
        let best = logs.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        for (k, log) in logs.iter_mut().enumerate() {
            let mixed = (salt.wrapping_mul(0x9e37_79b9) ^ (k as u32).wrapping_mul(0x85eb_ca6b))
                .wrapping_mul(0xc2b2_ae35);
            let dither = (mixed >> 8) as f32 / (1 << 24) as f32;
            self.0[k] = ((best - *log) / STEP + dither) as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> RateGrid {
        RateGrid::new(0.001, 3.0)
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
    fn small_evidence_is_not_lost_in_rounding() {
        let (grid, mut likelihood) = (grid(), Likelihood::default());
        for visit in 0..100 {
            likelihood.observe(&grid, (0.1, 0.0), false, 1.0, visit);
        }
        // Ten quiet days tell against the fastest rate by 30 nats, beyond the 20.4 that are kept,
        // and against 0.08 a day by 0.8, though each visit moved it by a tenth of a step.
        assert_eq!(likelihood.0[RATES - 1], 255);
        let lost = STEP * f32::from(likelihood.0[8]);
        let true_loss = 10.0 * (grid.rates[8] - grid.rates[0]);
        assert!((lost / true_loss - 1.0).abs() < 0.35, "{lost} {true_loss}");
    }
}
