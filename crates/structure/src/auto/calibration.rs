//! How well scores and outcomes agree, over all servers. Where the model is too sure or too unsure
//! about pages in one situation, this corrects it.

use crate::auto::gaussian::{Gaussian, Lesson, Sum};
use crate::auto::layout::{GUIDE_CHANGED, GUIDE_STATES};

/// Situations: what is known of the page above (or that there is none), and whether this page leads
/// to others.
pub(crate) const SITUATIONS: usize = 2 * (GUIDE_STATES + 1);
/// Larger scores are cut to this.
const SCORE_MAX: f64 = 4.0;

/// The situation of a page with this guide effect.
pub(crate) fn situation(guide_effect: Option<usize>, leads: bool) -> usize {
    let state = guide_effect.map_or(GUIDE_STATES, |effect| effect - GUIDE_CHANGED);
    state + if leads { GUIDE_STATES + 1 } else { 0 }
}

/// A line through the scores of one situation: slope and offset, learnt from outcomes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Calibration {
    pub(crate) slope: Gaussian,
    pub(crate) offset: Gaussian,
}

impl Calibration {
    /// Takes scores as they are until outcomes contradict them.
    pub(crate) fn new(variance: f64) -> Self {
        Self { slope: Gaussian::new(1.0, variance), offset: Gaussian::new(0.0, variance) }
    }

    fn sum(self, score: f64) -> Sum {
        let line = Sum::NOTHING.plus(self.offset);
        Sum {
            mean: line.mean + f64::from(self.slope.mean) * score,
            variance: line.variance + f64::from(self.slope.variance) * score * score,
        }
    }

    /// The corrected score.
    pub(crate) fn score(self, score: f64) -> f64 {
        self.sum(score).score()
    }

    /// Learns from the outcome of a visit to a page with this score.
    pub(crate) fn learn(&mut self, score: f64, changed: bool) {
        let score = score.clamp(-SCORE_MAX, SCORE_MAX);
        let lesson = self.sum(score).lesson(changed);
        self.offset.learn(lesson);
        self.slope
            .learn(Lesson { pull: lesson.pull * score, shrink: lesson.shrink * score * score });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auto::gaussian::normal_below;

    #[test]
    fn scores_that_are_too_sure_are_brought_back_and_honest_ones_are_left() {
        let (mut too_sure, mut honest) = (Calibration::new(0.1), Calibration::new(0.1));
        for n in 0..4000u32 {
            let score = f64::from(n % 5) - 2.0;
            // Draws spread evenly over the unit interval.
            let draw = f64::from(n.wrapping_mul(2_654_435_769) >> 8) / f64::from(1u32 << 24);
            too_sure.learn(score, draw < normal_below(0.4 * score));
            honest.learn(score, draw < normal_below(score));
        }
        assert!((too_sure.score(2.0) - 0.8).abs() < 0.15, "{too_sure:?}");
        assert!((honest.score(2.0) - 2.0).abs() < 0.2, "{honest:?}");
    }
}
