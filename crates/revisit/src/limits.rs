//! The bounds within which every policy answers.

/// Seconds of a day.
pub const DAY_S: i64 = 86_400;

/// How finely and within which bounds intervals are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The width of a bucket of due pages; intervals are rounded to whole buckets.
    pub resolution_s: i64,
    /// No page is visited sooner than this after its last visit.
    pub floor_s: i64,
    /// No page waits longer than this.
    pub ceiling_s: i64,
}

impl Default for Limits {
    /// One-hour buckets, and at least one visit in a year: a page that is never looked at again
    /// is lost for the archive.
    fn default() -> Self {
        Self { resolution_s: 3_600, floor_s: 3_600, ceiling_s: 365 * DAY_S }
    }
}

impl Limits {
    /// The limits of the papers' experiments: one slot at least, and no cap that matters.
    pub fn experiment(resolution_s: i64) -> Self {
        Self { resolution_s, floor_s: resolution_s, ceiling_s: 1_000_000 * DAY_S }
    }

    /// An interval in buckets, as seconds, rounded half up to whole buckets within the bounds.
    pub(crate) fn rounded_s(&self, slots: f64) -> i64 {
        let resolution_s = self.resolution_s.max(1);
        // Saturating casts: NaN becomes 0 and the bounds catch the rest.
        let whole = ((slots + 0.5).floor() as i64).max(1);
        self.bounded_s(whole.saturating_mul(resolution_s))
    }

    /// An interval within the bounds; a ceiling below the floor wins.
    pub(crate) fn bounded_s(&self, interval_s: i64) -> i64 {
        interval_s.max(self.floor_s).max(1).min(self.ceiling_s.max(1))
    }

    /// When a page visited last at `last_s` is due after `interval_s`: at least the floor after
    /// `now_s`, however late the caller asks, and at most the ceiling.
    pub(crate) fn due_s(&self, now_s: i64, last_s: Option<i64>, interval_s: i64) -> i64 {
        let planned_s = last_s.unwrap_or(now_s).saturating_add(self.bounded_s(interval_s));
        let soonest_s = now_s.saturating_add(self.bounded_s(self.floor_s));
        planned_s.max(soonest_s).min(now_s.saturating_add(self.ceiling_s.max(1)))
    }

    /// A duration in buckets.
    pub(crate) fn slots(&self, seconds: f64) -> f64 {
        seconds / self.resolution_s.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_rounded_half_up_to_at_least_one_slot() {
        let limits = Limits::experiment(DAY_S);
        assert_eq!(limits.rounded_s(0.2), DAY_S);
        assert_eq!(limits.rounded_s(2.5), 3 * DAY_S);
        assert_eq!(limits.rounded_s(2.499), 2 * DAY_S);
        assert_eq!(limits.rounded_s(f64::NAN), DAY_S);
    }

    #[test]
    fn floor_and_ceiling_hold() {
        let limits = Limits { resolution_s: 60, floor_s: 600, ceiling_s: 1_000 };
        assert_eq!(limits.rounded_s(1.0), 600);
        assert_eq!(limits.rounded_s(f64::INFINITY), 1_000);
    }
}
