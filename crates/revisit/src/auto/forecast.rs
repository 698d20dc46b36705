//! What to expect at other budgets.

use serde::Serialize;

use super::Belief;

/// Visits and coverage to expect at one level of spending.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ForecastPoint {
    /// Visits per day relative to the present.
    pub factor: f64,
    /// Expected visits per day.
    pub visits_per_day: f64,
    /// Expected share of versions that are got.
    pub coverage: f64,
    /// The price that leads there; 0 for policies without one.
    pub threshold: f64,
}

/// What to expect at half, the same and double the present spending.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Forecast {
    /// Pages it is made from.
    pub pages: usize,
    /// By rising factor.
    pub points: [ForecastPoint; 3],
}

/// A page's rate, effective rate and threshold.
struct Need {
    rate: f32,
    effective_rate: f32,
    threshold: f32,
}

/// What is spent now: so many visits a day, or what a price leads to.
pub(super) enum Spending {
    PerDay(f64),
    Threshold(f64),
}

struct Population {
    needs: Vec<Need>,
    bulk: f32,
    lead_days: f32,
    slot_days: f32,
}

impl Forecast {
    /// From intervals in days and changes per day, for policies without a price: all intervals
    /// grow and shrink alike.
    pub(crate) fn of_intervals(pages: impl Iterator<Item = (f64, f64)>) -> Self {
        let pages: Vec<(f64, f64)> = pages.collect();
        let points = [0.5, 1.0, 2.0].map(|factor| {
            let (mut visits_per_day, mut versions, mut found) = (0.0, 0.0, 0.0);
            for (interval_days, rate) in &pages {
                let days = (interval_days / factor).max(1e-6);
                visits_per_day += 1.0 / days;
                versions += rate;
                found += -(-rate * days).exp_m1() / days;
            }
            let coverage = if versions > 0.0 { found / versions } else { 0.0 };
            ForecastPoint { factor, visits_per_day, coverage, threshold: 0.0 }
        });
        Self { pages: pages.len(), points }
    }

    pub(super) fn of<'a>(
        beliefs: impl Iterator<Item = &'a Belief>,
        spending: Spending,
        bulk: f32,
        lead_days: f32,
        slot_days: f32,
    ) -> Self {
        let needs = beliefs
            .map(|belief| Need {
                rate: belief.rate.value(),
                effective_rate: belief.effective_rate.value(),
                threshold: belief.threshold.value(),
            })
            .collect();
        let population = Population { needs, bulk, lead_days, slot_days };
        let now = match spending {
            Spending::PerDay(visits) => visits,
            Spending::Threshold(threshold) => population.at(threshold).0,
        };
        let points = [0.5, 1.0, 2.0].map(|factor| {
            let threshold = population.threshold_for(now * factor);
            let (visits_per_day, coverage) = population.at(threshold);
            ForecastPoint { factor, visits_per_day, coverage, threshold }
        });
        Self { pages: population.needs.len(), points }
    }
}

impl Population {
    /// Visits per day and coverage at a price.
    fn at(&self, threshold: f64) -> (f64, f64) {
        let (mut visits, mut versions, mut found) = (0.0f64, 0.0f64, 0.0f64);
        for need in &self.needs {
            let needed = need.threshold * threshold as f32 - need.effective_rate * self.lead_days;
            let days = (needed / (need.effective_rate + self.bulk)).max(self.slot_days);
            let rate = need.rate + self.bulk;
            // Updates in one slot count once.
            let seen_per_slot = -(-rate * self.slot_days).exp_m1() / self.slot_days;
            visits += f64::from(1.0 / days);
            versions += f64::from(seen_per_slot);
            found += f64::from((-(-rate * days).exp_m1() / days).min(seen_per_slot));
        }
        (visits, if versions > 0.0 { found / versions } else { 0.0 })
    }

    fn threshold_for(&self, visits_per_day: f64) -> f64 {
        let (mut low, mut high) = (1e-3f64, 50.0f64);
        for _ in 0..50 {
            let middle = (low * high).sqrt();
            if self.at(middle).0 > visits_per_day { low = middle } else { high = middle }
        }
        (low * high).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auto::Coded;

    #[test]
    fn more_visits_give_more_coverage() {
        let belief = |rate: f32| Belief {
            rate: Coded::new(rate),
            effective_rate: Coded::new(rate),
            threshold: Coded::new(1.0),
            ..Belief::default()
        };
        let beliefs: Vec<Belief> = (1..50).map(|n| belief(n as f32 / 500.0)).collect();
        let forecast = Forecast::of(beliefs.iter(), Spending::Threshold(0.8), 0.001, 0.4, 1.0);
        let [half, same, double] = forecast.points;
        assert!((half.visits_per_day * 2.0 / same.visits_per_day - 1.0).abs() < 0.01);
        assert!((same.visits_per_day * 2.0 / double.visits_per_day - 1.0).abs() < 0.01);
        assert!((same.threshold - 0.8).abs() < 0.01);
        assert!(half.coverage < same.coverage && same.coverage < double.coverage);
        assert!(double.coverage < 1.0);
    }
}
