//! Intervals from the maximum likelihood of a Poisson rate (paper 004).

use crate::history::{PageHistory, Sums};
use crate::policy::confidence_of;
use crate::{
    DAY_S, Limits, Next, Observation, PageGroups, PolicySpec, Reason, RevisitPolicy, Rule,
    SharedByPages,
};

/// How the mean of the gaps that saw a change is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MleKind {
    /// The shortest such gap.
    Min,
    /// Their mean.
    Avg,
    /// The geometric mean of both: the paper's choice.
    Mix,
    /// No approximation: the likelihood equation is solved. A yardstick, it keeps all gaps.
    Exact,
}

/// Parameters of the maximum-likelihood policies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MleSpec {
    /// How the mean changed gap is taken.
    pub kind: MleKind,
    /// μ_l: the least multiple of the mean changed gap.
    pub low: f64,
    /// μ_h: the greatest multiple, and the growth while no change was seen.
    pub high: f64,
    /// τ_2: from the first to the second visit.
    pub second_s: i64,
    /// α: the share of the estimated interval after which to come.
    pub alpha: f64,
    /// Whether Last-Modified splits a changed gap.
    pub last_modified: bool,
}

/// MLE.min, MLE.avg, MLE.mix and the exact estimate, within bounds on the multiplier.
pub(crate) struct MlePolicy {
    pub(crate) spec: MleSpec,
    pub(crate) limits: Limits,
}

/// What the sums of a page say about its changes.
struct Estimate {
    /// The next interval in slots.
    slots: f64,
    rule: Rule,
    /// Changes per day by the policy's own approximation, once a change was seen.
    rate_per_day: Option<f64>,
}

impl MlePolicy {
    /// The next interval of a page visited at least twice.
    fn estimate(&self, history: &PageHistory, sums: &Sums) -> Estimate {
        if sums.changes == 0 || sums.unchanged_s >= sums.all_s {
            let last_slots = self.limits.slots(sums.interval_ms as f64 / 1e3);
            let slots = self.spec.high * last_slots;
            return Estimate { slots, rule: Rule::NeverChanged, rate_per_day: None };
        }
        let mean = self.mean_changed_gap(sums);
        let multiplier = self.multiplier(history, sums, mean);
        let rule = match multiplier {
            m if m < self.spec.low => Rule::LowerBound,
            m if m > self.spec.high => Rule::UpperBound,
            _ => Rule::Estimate,
        };
        let bounded = multiplier.clamp(self.spec.low, self.spec.high);
        let slots_per_day = DAY_S as f64 / self.limits.resolution_s.max(1) as f64;
        let rate = slots_per_day / (multiplier.max(self.spec.low) * mean);
        let rate_per_day = Some(rate).filter(|rate| rate.is_finite());
        Estimate { slots: self.spec.alpha * bounded * mean, rule, rate_per_day }
    }

    /// t̄_c in slots.
    fn mean_changed_gap(&self, sums: &Sums) -> f64 {
        let changed = self.limits.slots((sums.all_s - sums.unchanged_s) as f64);
        let avg = changed / f64::from(sums.changes);
        let min = self.limits.slots(sums.changed_min_s as f64);
        match self.spec.kind {
            MleKind::Min => min,
            MleKind::Mix => (min * avg).sqrt(),
            MleKind::Avg | MleKind::Exact => avg,
        }
    }

    /// μ, the estimated change interval as a multiple of the mean changed gap.
    fn multiplier(&self, history: &PageHistory, sums: &Sums, mean_slots: f64) -> f64 {
        if sums.unchanged_s == 0 {
            return 0.0;
        }
        if self.spec.kind != MleKind::Exact {
            return 1.0 / (sums.all_s as f64 / sums.unchanged_s as f64).ln();
        }
        let rate = history.changed_gaps().and_then(|g| g.exact_rate_per_s(sums.unchanged_s));
        rate.map_or(0.0, |rate| self.limits.slots(1.0 / rate) / mean_slots)
    }
}

impl SharedByPages for MlePolicy {}

impl RevisitPolicy for MlePolicy {
    fn spec(&self) -> PolicySpec {
        PolicySpec::Mle(self.spec)
    }

    fn learn(&mut self, now_s: i64, history: &mut PageHistory, seen: &Observation) {
        if !seen.outcome.is_seen() {
            return;
        }
        let gap = history.observe(now_s, seen, self.spec.last_modified);
        if self.spec.kind == MleKind::Exact {
            history.gaps_mut();
        }
        let Some(gap) = gap.filter(|_| history.has_interval()) else {
            let slots = self.limits.slots(self.spec.second_s as f64);
            history.sums_mut().interval_ms = ms(self.limits.rounded_s(slots));
            return;
        };
        history.sums_mut().add(gap);
        if self.spec.kind == MleKind::Exact && gap.changed {
            history.gaps_mut().add(gap.before_s);
        }
        let sums = *history.sums_mut();
        let slots = self.estimate(history, &sums).slots;
        history.sums_mut().interval_ms = ms(self.limits.rounded_s(slots));
    }

    fn next_due(&self, now_s: i64, history: &PageHistory, _groups: PageGroups) -> Next {
        let sums = history.sums().copied().unwrap_or_default();
        let has_interval = history.has_interval();
        let interval_s = if has_interval { sums.interval_s() } else { self.spec.second_s };
        let (rule, rate_per_day) = match has_interval && sums.all_s > 0 {
            false => (Rule::FirstInterval, None),
            true => {
                let estimate = self.estimate(history, &sums);
                (estimate.rule, estimate.rate_per_day)
            }
        };
        let why = Reason {
            rule,
            interval_s: self.limits.bounded_s(interval_s),
            rate_per_day,
            confidence: confidence_of(sums.changes),
            neighbours: None,
            busy_hours: None,
        };
        Next { due_s: self.limits.due_s(now_s, history.last_visit_s(), interval_s), why }
    }
}

fn ms(seconds: i64) -> u64 {
    seconds.max(0).unsigned_abs().saturating_mul(1_000)
}
