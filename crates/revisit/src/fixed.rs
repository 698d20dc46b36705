//! The same interval for every page.

use crate::history::PageHistory;
use crate::policy::confidence_of;
use crate::{
    Limits, Next, Observation, PageGroups, PolicySpec, Reason, RevisitPolicy, Rule, SharedByPages,
};

/// Comes again after a fixed time, whatever was seen.
pub(crate) struct FixedPolicy {
    pub(crate) interval_s: i64,
    pub(crate) limits: Limits,
}

impl SharedByPages for FixedPolicy {}

impl RevisitPolicy for FixedPolicy {
    fn spec(&self) -> PolicySpec {
        PolicySpec::Every { interval_s: self.interval_s }
    }

    fn learn(&mut self, now_s: i64, history: &mut PageHistory, seen: &Observation) {
        history.observe(now_s, seen, false);
    }

    fn next_due(&self, now_s: i64, history: &PageHistory, _groups: PageGroups) -> Next {
        let interval_s = self.limits.rounded_s(self.limits.slots(self.interval_s as f64));
        let why = Reason {
            rule: Rule::Fixed,
            interval_s,
            rate_per_day: None,
            confidence: confidence_of(history.changes()),
            neighbours: None,
            busy_hours: None,
        };
        Next { due_s: self.limits.due_s(now_s, history.last_visit_s(), interval_s), why }
    }
}
