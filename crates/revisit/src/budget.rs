//! How many visits each page gets from a fixed number (paper 002): m = k·√(λ·w).

use std::str::FromStr;

use crate::RevisitError;

/// A page's claim on the budget.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Claim {
    /// λ: changes per day.
    pub rate_per_day: f64,
    /// w: how much a delay of this page hurts.
    pub weight: f64,
}

/// Least and most visits per day that a page may get.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VisitBounds {
    /// The floor, so that a page without a seen change is still visited.
    pub least_per_day: f64,
    /// The most, such as one per bucket.
    pub most_per_day: f64,
}

/// Visits per day of each page, and the k that gave them.
#[derive(Debug, Clone, PartialEq)]
pub struct Allocation {
    /// k in m = k·√(λ·w).
    pub scale: f64,
    /// Visits per day, in the order of the claims.
    pub visits_per_day: Vec<f64>,
}

/// Shares out `visits_per_day` so that the weighted delay Σ λ·w/(2m) is least within the bounds.
///
/// A floor that alone exceeds the budget is lowered for all pages alike.
pub fn allocate(claims: &[Claim], visits_per_day: f64, bounds: VisitBounds) -> Allocation {
    let most = bounds.most_per_day.max(0.0);
    let even = visits_per_day.max(0.0) / claims.len().max(1) as f64;
    let least = bounds.least_per_day.clamp(0.0, most).min(even);
    let roots: Vec<f64> =
        claims.iter().map(|claim| (claim.rate_per_day * claim.weight).max(0.0).sqrt()).collect();
    let spent =
        |scale: f64| roots.iter().map(|root| (scale * root).clamp(least, most)).sum::<f64>();
    let (mut low, mut high) = (0.0, 1.0);
    let mut doublings = 0;
    while spent(high) < visits_per_day && doublings < 64 {
        high *= 2.0;
        doublings += 1;
    }
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if spent(middle) < visits_per_day { low = middle } else { high = middle }
    }
    let visits = roots.iter().map(|root| (low * root).clamp(least, most)).collect();
    Allocation { scale: low, visits_per_day: visits }
}

/// The weights that paper 002 tried, and importance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights {
    /// Of images and PDF files (the paper: 0.25 to 1).
    pub by_extension: f64,
    /// Of pages named main, top or index (the paper: above 1).
    pub by_name: f64,
    /// Of pages without Last-Modified, whose versions only a timely visit can date.
    pub without_last_modified: f64,
    /// The power of its importance that a page weighs by; 0 leaves importance out.
    pub by_importance: f64,
}

impl Default for Weights {
    /// All pages alike.
    fn default() -> Self {
        Self { by_extension: 1.0, by_name: 1.0, without_last_modified: 1.0, by_importance: 0.0 }
    }
}

impl FromStr for Weights {
    type Err = RevisitError;

    /// Reads `ext=0.25,name=2,no-lm=4,importance=1`; what is not named changes nothing.
    fn from_str(text: &str) -> Result<Self, RevisitError> {
        let bad = || RevisitError::BadWeights { text: text.to_owned() };
        let mut weights = Self::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').ok_or_else(bad)?;
            let value: f64 = value.parse().map_err(|_| bad())?;
            if !(value > 0.0 && value.is_finite()) {
                return Err(bad());
            }
            match name {
                "ext" => weights.by_extension = value,
                "name" => weights.by_name = value,
                "no-lm" => weights.without_last_modified = value,
                "importance" => weights.by_importance = value,
                _ => return Err(bad()),
            }
        }
        Ok(weights)
    }
}

impl Weights {
    /// The weight of a page's importance, in percent of the mean.
    pub fn importance(&self, percent: u32) -> f64 {
        (f64::from(percent.max(1)) / 100.0).powf(self.by_importance)
    }

    /// The weight of a page; `importance` is 1 for the average page.
    pub fn of(&self, path: &str, has_last_modified: bool, importance: f64) -> f64 {
        let name = path.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        let mut weight = importance;
        if matches!(extension, "jpeg" | "jpg" | "png" | "pdf" | "gif") {
            weight *= self.by_extension;
        }
        if name.is_empty() || ["main", "top", "index"].iter().any(|word| name.contains(word)) {
            weight *= self.by_name;
        }
        if !has_last_modified {
            weight *= self.without_last_modified;
        }
        weight
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FREE: VisitBounds = VisitBounds { least_per_day: 0.0, most_per_day: f64::MAX };

    fn claim(rate_per_day: f64, weight: f64) -> Claim {
        Claim { rate_per_day, weight }
    }

    #[test]
    fn visits_go_with_the_root_of_rate_and_weight() {
        let allocation = allocate(&[claim(4.0, 1.0), claim(1.0, 1.0), claim(1.0, 9.0)], 12.0, FREE);
        for (got, wanted) in allocation.visits_per_day.iter().zip([4.0, 2.0, 6.0]) {
            assert!((got - wanted).abs() < 1e-9, "{allocation:?}");
        }
    }

    #[test]
    fn a_page_without_a_seen_change_gets_the_floor() {
        let bounds = VisitBounds { least_per_day: 0.1, most_per_day: 1.0 };
        let allocation =
            allocate(&[claim(0.0, 1.0), claim(1.0, 1.0), claim(9.0, 1.0)], 1.3, bounds);
        assert_eq!(allocation.visits_per_day[0], 0.1);
        assert!((allocation.visits_per_day.iter().sum::<f64>() - 1.3).abs() < 1e-6);
    }

    #[test]
    fn weights_multiply() {
        let weights = Weights {
            by_extension: 0.25,
            by_name: 2.0,
            without_last_modified: 4.0,
            by_importance: 0.5,
        };
        assert_eq!((weights.importance(400), Weights::default().importance(400)), (2.0, 1.0));
        assert_eq!(weights.of("a/b/photo.JPG", true, 1.0), 0.25);
        assert_eq!(weights.of("a/index.html", false, 1.0), 8.0);
        assert_eq!(weights.of("a/", true, 3.0), 6.0);
        assert_eq!(weights.of("a/text.html", true, 1.0), 1.0);
    }

    #[test]
    fn weights_are_read_by_name() {
        let weights: Weights = "ext=0.25, no-lm=4".parse().unwrap();
        assert_eq!(
            weights,
            Weights { by_extension: 0.25, without_last_modified: 4.0, ..Weights::default() }
        );
        for text in ["ext", "ext=0", "ext=x", "size=2"] {
            assert!(text.parse::<Weights>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_budget_is_spent_and_no_other_sharing_delays_less(
            rates in proptest::collection::vec((0.001..5.0f64, 0.1..5.0f64), 2..20),
            visits in 0.1..50.0f64,
            moved in 0.01..0.5f64,
        ) {
            let claims: Vec<Claim> = rates.iter().map(|&(rate, weight)| claim(rate, weight)).collect();
            let shares = allocate(&claims, visits, FREE).visits_per_day;
            prop_assert!((shares.iter().sum::<f64>() - visits).abs() < visits * 1e-6);
            let delay = |shares: &[f64]| -> f64 {
                let each = claims.iter().zip(shares);
                each.map(|(c, m)| c.rate_per_day * c.weight / (2.0 * m)).sum()
            };
            let mut other = shares.clone();
            let step = other[0] * moved;
            other[0] -= step;
            other[1] += step;
            prop_assert!(delay(&shares) <= delay(&other) * (1.0 + 1e-9));
        }
    }
}
