//! Rules that move one interval up and down: AIMD (paper 004), Nutch's and StormCrawler's.

use crate::history::{PageHistory, Sums};
use crate::policy::confidence_of;
use crate::{
    DAY_S, Limits, Next, Observation, PageGroups, PolicySpec, Reason, RevisitPolicy, Rule,
    SharedByPages,
};

/// How an unchanged visit lengthens the interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Growth {
    /// Adds this after each `runs` unchanged visits in a row.
    Add { seconds: f64, runs: u32 },
    /// Multiplies by this.
    Times(f64),
}

/// How a changed visit shortens the interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Shrink {
    /// Multiplies by this.
    Times(f64),
    /// Goes this share of the way to the shortest interval.
    Towards(f64),
}

/// An interval that shrinks on a change and grows without one.
pub(crate) struct SteppedPolicy {
    pub(crate) spec: PolicySpec,
    pub(crate) start_s: i64,
    pub(crate) growth: Growth,
    pub(crate) shrink: Shrink,
    pub(crate) min_s: i64,
    pub(crate) max_s: i64,
    pub(crate) limits: Limits,
}

impl SteppedPolicy {
    /// The interval after a visit, in milliseconds; the part below a slot is kept, so that small
    /// steps add up.
    fn stepped_ms(&self, sums: &Sums, changed: bool) -> u64 {
        let last_ms = sums.interval_ms as f64;
        let (min_ms, max_ms) = (self.min_s as f64 * 1e3, self.max_s as f64 * 1e3);
        let shrunk_ms = match self.shrink {
            Shrink::Times(factor) => last_ms * factor,
            Shrink::Towards(share) => (1.0 - share) * last_ms + share * min_ms,
        };
        let next_ms = match self.growth {
            _ if changed => shrunk_ms,
            Growth::Times(factor) => last_ms * factor,
            Growth::Add { runs, .. } if !sums.streak.is_multiple_of(runs.max(1)) => last_ms,
            Growth::Add { seconds, .. } => last_ms + seconds * 1e3,
        };
        next_ms.max(min_ms).min(max_ms.max(min_ms)).round() as u64
    }

    fn rule(&self, sums: &Sums) -> Rule {
        match self.growth {
            _ if sums.all_s == 0 => Rule::FirstInterval,
            _ if sums.streak == 0 => Rule::Shortened,
            Growth::Add { runs, .. } if !sums.streak.is_multiple_of(runs.max(1)) => Rule::Kept,
            _ => Rule::Lengthened,
        }
    }
}

impl SharedByPages for SteppedPolicy {}

impl RevisitPolicy for SteppedPolicy {
    fn spec(&self) -> PolicySpec {
        self.spec
    }

    fn learn(&mut self, now_s: i64, history: &mut PageHistory, seen: &Observation) {
        if !seen.outcome.is_seen() {
            return;
        }
        let gap = history.observe(now_s, seen, false);
        let Some(gap) = gap.filter(|_| history.has_interval()) else {
            history.sums_mut().interval_ms = self.start_s.unsigned_abs().saturating_mul(1_000);
            return;
        };
        let sums = history.sums_mut();
        sums.add(gap);
        sums.interval_ms = self.stepped_ms(sums, gap.changed);
    }

    fn next_due(&self, now_s: i64, history: &PageHistory, _groups: PageGroups) -> Next {
        let sums = history.sums().copied().unwrap_or_default();
        let interval_ms = if history.has_interval() {
            sums.interval_ms as f64
        } else {
            self.start_s as f64 * 1e3
        };
        let interval_s = self.limits.rounded_s(self.limits.slots(interval_ms / 1e3));
        let rate = f64::from(sums.changes) * DAY_S as f64 / sums.all_s as f64;
        let why = Reason {
            rule: self.rule(&sums),
            interval_s,
            rate_per_day: Some(rate).filter(|_| sums.all_s > 0),
            confidence: confidence_of(sums.changes),
            neighbours: None,
            busy_hours: None,
        };
        Next { due_s: self.limits.due_s(now_s, history.last_visit_s(), interval_s), why }
    }
}
