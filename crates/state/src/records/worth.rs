//! Importance and rates of change of pages, summed per site with every commit, so that no page need
//! be read to show them.

use serde::Serialize;

use crate::SiteId;

/// What a page's schedule believed of it after a visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Changes per day, in millionths.
    pub rate_micros: u32,
    /// How sure that is, in percent.
    pub confidence_percent: u8,
}

impl Estimate {
    /// From changes per day and a confidence between 0 and 1.
    pub fn new(rate_per_day: f64, confidence: f64) -> Self {
        // Casts saturate, and NaN becomes 0.
        Self {
            rate_micros: (rate_per_day * 1e6).round() as u32,
            confidence_percent: (confidence.clamp(0.0, 1.0) * 100.0).round() as u8,
        }
    }

    /// Changes per day.
    pub fn rate_per_day(self) -> f64 {
        f64::from(self.rate_micros) / 1e6
    }

    /// How sure that is, from 0 to 1.
    pub fn confidence(self) -> f64 {
        f64::from(self.confidence_percent) / 100.0
    }
}

/// Sums over the pages that a site keeps the schedules of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SiteWorth {
    /// The site.
    pub site: SiteId,
    /// Pages whose rate of change is estimated.
    pub estimated_pages: u64,
    /// Their rates, in millionths of a change per day.
    pub rate_micros: u64,
    /// How sure these are, in percent.
    pub confidence_percent: u64,
    /// Pages whose importance is known.
    pub weighed_pages: u64,
    /// Their importance, in percent of the mean of all known pages.
    pub importance_percent: u64,
    /// Versions whose change was one for readers.
    pub significant_versions: u64,
}

impl SiteWorth {
    /// The mean rate of its pages, in changes per day.
    pub fn mean_rate_per_day(&self) -> Option<f64> {
        mean(self.rate_micros, self.estimated_pages).map(|micros| micros / 1e6)
    }

    /// How sure the rates are on average, from 0 to 1.
    pub fn mean_confidence(&self) -> Option<f64> {
        mean(self.confidence_percent, self.estimated_pages).map(|percent| percent / 100.0)
    }

    /// The importance of all its pages together; the average known page has 1.
    pub fn importance(&self) -> f64 {
        self.importance_percent as f64 / 100.0
    }

    /// Its part of the importance of these sites' pages, from 0 to 1.
    pub fn share_of(&self, sites: &[SiteWorth]) -> Option<f64> {
        let all: u64 = sites.iter().map(|site| site.importance_percent).sum();
        (all > 0).then(|| self.importance_percent as f64 / all as f64)
    }
}

fn mean(sum: u64, number: u64) -> Option<f64> {
    (number > 0).then(|| sum as f64 / number as f64)
}

/// Pages that were collected one after another, or that are of about the same importance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorthGroup {
    /// How many.
    pub pages: u64,
    /// Their importance together, in percent of the mean page.
    pub importance_percent: u64,
}

/// How the importance of the collected pages is spread: over the order in which they were collected,
/// and over the best one. Groups grow by an eighth of a doubling, so they are few for any number of
/// pages and fine where it matters, at the beginning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OrderCurve {
    /// In the order of their first versions.
    pub collected: Vec<WorthGroup>,
    /// The same pages, most important first.
    pub best: Vec<WorthGroup>,
}

impl OrderCurve {
    /// Share of the pages and share of the importance after each group, from (0, 0) to (1, 1).
    pub fn points(groups: &[WorthGroup]) -> Vec<(f64, f64)> {
        let pages: u64 = groups.iter().map(|group| group.pages).sum();
        let importance: u64 = groups.iter().map(|group| group.importance_percent).sum();
        let (mut x, mut y) = (0, 0);
        let mut points = vec![(0.0, 0.0)];
        if pages > 0 && importance > 0 {
            points.extend(groups.iter().map(|group| {
                (x, y) = (x + group.pages, y + group.importance_percent);
                (x as f64 / pages as f64, y as f64 / importance as f64)
            }));
        }
        points
    }

    /// The share of importance in the first `share` of the pages, between two points on a line.
    pub fn share_at(points: &[(f64, f64)], share: f64) -> f64 {
        let after = points.partition_point(|point| point.0 < share);
        match (after.checked_sub(1).and_then(|i| points.get(i)), points.get(after)) {
            (Some(a), Some(b)) if b.0 > a.0 => a.1 + (b.1 - a.1) * (share - a.0) / (b.0 - a.0),
            (_, Some(b)) => b.1,
            (Some(a), None) => a.1,
            (None, None) => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_goes_from_nothing_to_all_and_is_read_between_its_points() {
        let group = |pages, importance_percent| WorthGroup { pages, importance_percent };
        let points = OrderCurve::points(&[group(1, 600), group(1, 200), group(8, 200)]);
        assert_eq!(points, [(0.0, 0.0), (0.1, 0.6), (0.2, 0.8), (1.0, 1.0)]);
        assert_eq!(OrderCurve::share_at(&points, 0.1), 0.6);
        assert!((OrderCurve::share_at(&points, 0.6) - 0.9).abs() < 1e-9);
        assert_eq!(OrderCurve::share_at(&points, 1.0), 1.0);
        assert_eq!(OrderCurve::points(&[]), [(0.0, 0.0)]);
        assert_eq!(OrderCurve::share_at(&OrderCurve::points(&[]), 0.5), 0.0);
    }

    #[test]
    fn an_estimate_is_never_out_of_bounds() {
        let of = |rate, confidence| {
            let estimate = Estimate::new(rate, confidence);
            (estimate.rate_micros, estimate.confidence_percent)
        };
        assert_eq!(of(0.25, 0.5), (250_000, 50));
        assert_eq!(of(f64::NAN, 7.0), (0, 100));
        assert_eq!(of(1e99, -1.0), (u32::MAX, 0));
    }
}
