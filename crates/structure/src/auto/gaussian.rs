//! Beliefs about single effects, and what a visit teaches about a sum of them.

use std::f64::consts::{PI, SQRT_2};

/// A belief about an effect on the probit scale.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Gaussian {
    pub(crate) mean: f32,
    pub(crate) variance: f32,
}

impl Gaussian {
    pub(crate) fn new(mean: f64, variance: f64) -> Self {
        Self { mean: mean as f32, variance: variance as f32 }
    }

    /// The same evidence under another prior variance: what a belief with prior mean 0 has learnt
    /// stays, only the amount of shrinking changes.
    pub(crate) fn under_prior(self, was: f64, now: f64) -> Self {
        let variance = f64::from(self.variance);
        let precision_learnt = (1.0 / variance - 1.0 / was).max(0.0);
        let after = 1.0 / (1.0 / now + precision_learnt);
        Self::new(f64::from(self.mean) / variance * after, after)
    }

    pub(crate) fn learn(&mut self, lesson: Lesson) {
        let variance = f64::from(self.variance);
        self.mean = (f64::from(self.mean) + variance * lesson.pull) as f32;
        let shrunk = variance * (1.0 - variance * lesson.shrink).max(VARIANCE_KEPT_MIN);
        self.variance = shrunk as f32;
    }
}

/// The lowest variance that one visit can leave: numbers stay finite.
const VARIANCE_KEPT_MIN: f64 = 1e-3;

/// The sum of the effects on one page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sum {
    pub(crate) mean: f64,
    /// Includes the 1 of the probit's own noise.
    pub(crate) variance: f64,
}

impl Sum {
    pub(crate) const NOTHING: Self = Self { mean: 0.0, variance: 1.0 };

    pub(crate) fn plus(mut self, effect: Gaussian) -> Self {
        self.mean += f64::from(effect.mean);
        self.variance += f64::from(effect.variance);
        self
    }

    pub(crate) fn and(mut self, other: Sum) -> Self {
        self.mean += other.mean;
        self.variance += other.variance - 1.0;
        self
    }

    /// The sum after a visit to another page that shares effects of this variance with it.
    pub(crate) fn after(self, common: f64, lesson: Lesson) -> Self {
        Self {
            mean: self.mean + common * lesson.pull,
            variance: (self.variance - common * common * lesson.shrink).max(1.0),
        }
    }

    /// The chance of a change is Φ of this.
    pub(crate) fn score(self) -> f64 {
        self.mean / self.variance.sqrt()
    }

    pub(crate) fn chance(self) -> f64 {
        normal_below(self.score())
    }

    /// What a visit with this outcome teaches each of the effects in the sum.
    pub(crate) fn lesson(self, changed: bool) -> Lesson {
        let sign = if changed { 1.0 } else { -1.0 };
        let deviation = self.variance.sqrt();
        let surprise = sign * self.mean / deviation;
        // For large surprises the ratio of density to mass equals the surprise.
        let ratio =
            if surprise < -6.0 { -surprise } else { density(surprise) / normal_below(surprise) };
        Lesson {
            pull: sign * ratio / deviation,
            shrink: ratio * (ratio + surprise) / self.variance,
        }
    }
}

/// One step of assumed-density filtering: mean += variance · pull, variance ·= 1 − variance · shrink.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lesson {
    pub(crate) pull: f64,
    pub(crate) shrink: f64,
}

fn density(x: f64) -> f64 {
    (-0.5 * x * x).exp() / (2.0 * PI).sqrt()
}

/// Φ: the probability that a standard normal variable is below `x`.
pub(crate) fn normal_below(x: f64) -> f64 {
    0.5 * erfc(-x / SQRT_2)
}

/// The complementary error function by a Chebyshev fit (Numerical Recipes, 6.2), with a relative
/// error below 1.2e-7 everywhere.
fn erfc(x: f64) -> f64 {
    const FIT: [f64; 10] = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let size = x.abs();
    let t = 1.0 / (1.0 + 0.5 * size);
    let series = FIT.iter().rev().fold(0.0, |sum, &term| sum * t + term);
    let tail = t * (series - size * size).exp();
    if x >= 0.0 { tail } else { 2.0 - tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_normal_mass_is_that_of_the_tables() {
        for (x, mass) in
            [(0.0, 0.5), (1.0, 0.841_344_746), (-1.96, 0.024_997_895), (3.0, 0.998_650_102)]
        {
            assert!((normal_below(x) - mass).abs() < 1e-6, "{x}");
        }
    }

    #[test]
    fn a_surprise_teaches_more_than_what_was_expected() {
        let sum = Sum::NOTHING.plus(Gaussian::new(1.0, 2.0));
        let (expected, surprising) = (sum.lesson(true), sum.lesson(false));
        assert!(surprising.pull.abs() > expected.pull.abs());
        assert!(expected.pull > 0.0 && surprising.pull < 0.0);
        let mut effect = Gaussian::new(1.0, 2.0);
        effect.learn(surprising);
        assert!(effect.mean < 1.0 && effect.variance < 2.0 && effect.variance > 0.0);
    }

    #[test]
    fn even_an_absurd_surprise_stays_finite() {
        let mut effect = Gaussian::new(500.0, 4.0);
        effect.learn(Sum::NOTHING.plus(effect).lesson(false));
        assert!(effect.mean.is_finite() && effect.variance > 0.0);
    }
}
