//! How much the pages of a server differ for good: several guesses compete by how well they
//! predict.

use crate::auto::gaussian::{Gaussian, Sum};

/// The variances between pages that are tried against each other.
pub(crate) const GUESSES: [f64; 6] = [0.02, 0.1, 0.3, 0.6, 1.0, 2.0];
/// Weight of older rounds after each new one, so that a server may change its habits.
const KEPT: f32 = 0.9;
/// Beyond this many server rounds older ones are forgotten.
const SERVER_ROUNDS_KEPT: f32 = 200.0;

/// How well each guess has predicted the outcomes of pages that were seen before. The first outcome
/// of a page says nothing about whether pages differ; the next one does.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct PageSpread {
    /// The log likelihood of each guess.
    pub(crate) logs: [f32; GUESSES.len()],
}

/// How many rounds of servers spoke for each guess, over all servers: where a new server starts.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct SharedPageSpread {
    pub(crate) rounds: [f32; GUESSES.len()],
}

impl PageSpread {
    /// Weighs the guesses by one more outcome of a page. `others` is the sum of all other effects,
    /// learnt under the page variance `variance`. For each guess it is scaled so that an unknown
    /// page keeps its chance, and only knowledge about pages counts.
    pub(crate) fn weigh(
        &mut self,
        others: Sum,
        variance: f64,
        changed: bool,
        own: impl Fn(f64) -> Gaussian,
    ) {
        let sign = if changed { 1.0 } else { -1.0 };
        for (log, guess) in self.logs.iter_mut().zip(GUESSES) {
            let stretch = ((others.variance + guess) / (others.variance + variance)).sqrt();
            let mut sum = Sum { mean: others.mean * stretch, ..others }.plus(own(guess));
            sum.mean *= sign;
            *log += sum.chance().max(1e-6).ln() as f32;
        }
    }

    /// The chance of each guess.
    fn chances(&self, shared: &SharedPageSpread, prior: f64) -> [f64; GUESSES.len()] {
        let best = self.logs.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let mut chances = [0.0; GUESSES.len()];
        for (at, chance) in chances.iter_mut().enumerate() {
            let log = f64::from(self.logs[at] - best);
            *chance = (prior + f64::from(shared.rounds[at])) * log.exp();
        }
        let sum: f64 = chances.iter().sum();
        chances.map(|chance| chance / sum)
    }

    /// The expected variance of pages' levels. `prior` is the weight of each guess before anything
    /// was seen, in rounds of servers.
    pub(crate) fn variance(&self, shared: &SharedPageSpread, prior: f64) -> f64 {
        self.chances(shared, prior).iter().zip(GUESSES).map(|(chance, guess)| chance * guess).sum()
    }

    /// Adds the results of a round, here and to what all servers share.
    pub(crate) fn end_round(
        &mut self,
        seen: &Self,
        known: &SharedPageSpread,
        shared: &mut SharedPageSpread,
        prior: f64,
    ) {
        for (log, seen) in self.logs.iter_mut().zip(seen.logs) {
            *log = KEPT * *log + seen;
        }
        let best = self.logs.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        self.logs.iter_mut().for_each(|log| *log -= best);
        for (rounds, chance) in shared.rounds.iter_mut().zip(self.chances(known, prior)) {
            *rounds += chance as f32;
        }
        let sum: f32 = shared.rounds.iter().sum();
        if sum > SERVER_ROUNDS_KEPT {
            shared.rounds.iter_mut().for_each(|rounds| *rounds *= SERVER_ROUNDS_KEPT / sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two outcomes for each of many pages, of which a share changes always or at random.
    fn after_two_rounds(alike: bool) -> f64 {
        let mut spread = PageSpread::default();
        let others = Sum::NOTHING.plus(Gaussian::new(-0.5, 0.0));
        for page in 0..200u32 {
            let first = page % 3 == 0;
            let second = if alike { page % 7 < 2 } else { first };
            let mut own = Gaussian::new(0.0, 1.0);
            own.learn(others.plus(own).lesson(first));
            spread.weigh(others, 1.0, second, |guess| own.under_prior(1.0, guess));
        }
        spread.variance(&SharedPageSpread::default(), 1.0)
    }

    #[test]
    fn lasting_differences_between_pages_are_recognised() {
        let (alike, apart) = (after_two_rounds(true), after_two_rounds(false));
        assert!(alike < 0.2, "alike: {alike}");
        assert!(apart > 0.8, "apart: {apart}");
    }

    #[test]
    fn a_new_server_begins_with_what_others_have_shown() {
        let mut shared = SharedPageSpread::default();
        let mut server = PageSpread::default();
        let mut seen = PageSpread::default();
        seen.logs[0] = 5.0;
        let before = PageSpread::default().variance(&shared, 1.0);
        for _ in 0..10 {
            let known = shared;
            server.end_round(&seen, &known, &mut shared, 1.0);
        }
        assert!(PageSpread::default().variance(&shared, 1.0) < before / 2.0);
    }
}
