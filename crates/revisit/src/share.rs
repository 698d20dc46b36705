//! A fixed number of visits shared out by the root of rate and weight (paper 002).

use crate::auto::Coded;
use crate::history::{Learnt, PageHistory, Sums};
use crate::page_groups::hash;
use crate::policy::confidence_of;
use crate::{
    Budget, DAY_S, Limits, Next, Observation, PageGroups, PolicySpec, Reason, RevisitError,
    RevisitPolicy, Rule, SharedByPages, Weights,
};

/// Numbers that are kept of the sharing.
const NUMBERS: usize = 7;

/// Visits every page daily while it learns, then m = k·√(λ·w) times a day.
///
/// k is set so that the budget is spent: what pages that still learn and pages without a seen
/// change take comes first, the others share the rest. Without a budget k is 1.
#[derive(Debug, Clone)]
pub(crate) struct SharePolicy {
    learn_s: i64,
    least_s: i64,
    weights: Weights,
    limits: Limits,
    /// Pages that learn, pages without a seen change, and Σ√(λ·w) of the others.
    learning: f64,
    quiet: f64,
    roots: f64,
    budget: Option<Budget>,
    spent: f64,
    per_day: f64,
}

/// What a page takes of the budget.
enum Claim {
    Learns,
    Quiet,
    Root(f64),
}

impl SharePolicy {
    pub(crate) fn new(learn_s: i64, least_s: i64, weights: Weights, limits: Limits) -> Self {
        Self {
            learn_s,
            least_s,
            weights,
            limits,
            learning: 0.0,
            quiet: 0.0,
            roots: 0.0,
            budget: None,
            spent: 0.0,
            per_day: 0.0,
        }
    }

    fn claim(&self, sums: &Sums, root: Option<Coded>) -> Claim {
        match root {
            _ if sums.all_s < self.learn_s.unsigned_abs() => Claim::Learns,
            None => Claim::Quiet,
            Some(root) => Claim::Root(f64::from(root.value())),
        }
    }

    fn count(&mut self, claim: &Claim, sign: f64) {
        match claim {
            Claim::Learns => self.learning += sign,
            Claim::Quiet => self.quiet += sign,
            Claim::Root(root) => self.roots += sign * root,
        }
    }

    fn count_page(&mut self, history: &PageHistory, sign: f64) {
        if let Learnt::Share(sums, root) = &history.learnt {
            self.count(&self.claim(sums, *root), sign);
        }
    }

    /// Days from one visit of a page to the next.
    fn days(&self, claim: &Claim) -> f64 {
        let least_days = self.least_s as f64 / DAY_S as f64;
        let Some(per_day) = self.budget.map(|_| self.per_day.max(1e-3)) else {
            return match claim {
                Claim::Learns => 1.0,
                Claim::Quiet => least_days,
                Claim::Root(root) => (1.0 / root).min(least_days),
            };
        };
        let first = self.learning + self.quiet / least_days;
        match claim {
            Claim::Learns => (first / per_day).max(1.0),
            Claim::Quiet => least_days * (first / per_day).max(1.0),
            Claim::Root(root) => {
                let left = (per_day - first).max(per_day / 10.0);
                (self.roots.max(*root) / (left * root)).min(least_days * (first / per_day).max(1.0))
            }
        }
    }

    fn rate(sums: &Sums) -> f64 {
        f64::from(sums.changes) * DAY_S as f64 / (sums.all_s as f64).max(1.0)
    }
}

/// The weight of a path is stored where other policies store the number of its file name.
fn weight_of(groups: PageGroups) -> f64 {
    u16::try_from(groups.name).map_or(1.0, |code| f64::from(Coded(code).value()))
}

impl RevisitPolicy for SharePolicy {
    fn spec(&self) -> PolicySpec {
        let Self { learn_s, least_s, weights, .. } = *self;
        PolicySpec::Budget { learn_s, least_s, weights }
    }

    fn learn(&mut self, now_s: i64, history: &mut PageHistory, seen: &Observation) {
        if !seen.outcome.is_seen() {
            return;
        }
        self.count_page(history, -1.0);
        self.spent += 1.0;
        let gap = history.observe(now_s, seen, false);
        let mut sums = history.sums().copied().unwrap_or_default();
        if let Some(gap) = gap {
            sums.add(gap);
        }
        let without = match seen.last_modified_s {
            Some(_) => 1.0,
            None => self.weights.without_last_modified,
        };
        let weight =
            weight_of(seen.groups) * without * self.weights.importance(seen.importance_percent);
        let root = (Self::rate(&sums) * weight).sqrt();
        let root = (sums.changes > 0).then(|| Coded::new(root as f32)).filter(|root| root.0 > 0);
        history.learnt = Learnt::Share(sums, root);
        self.count_page(history, 1.0);
    }

    fn next_due(&self, now_s: i64, history: &PageHistory, _groups: PageGroups) -> Next {
        let (sums, root) = match &history.learnt {
            Learnt::Share(sums, root) => (*sums, *root),
            _ => (Sums::default(), None),
        };
        let claim = self.claim(&sums, root);
        let days = self.days(&claim);
        let interval_s = self.limits.rounded_s(self.limits.slots(days * DAY_S as f64));
        let why = Reason {
            rule: match claim {
                Claim::Learns => Rule::FirstInterval,
                Claim::Quiet => Rule::NeverChanged,
                Claim::Root(_) => Rule::Share,
            },
            interval_s,
            rate_per_day: Some(Self::rate(&sums)).filter(|_| sums.changes > 0),
            confidence: confidence_of(sums.changes),
            neighbours: None,
            busy_hours: None,
        };
        Next { due_s: self.limits.due_s(now_s, history.last_visit_s(), interval_s), why }
    }

    fn is_due(&self, now_s: i64, history: &PageHistory, groups: PageGroups) -> bool {
        let Some(last_s) = history.last_visit_s() else { return true };
        self.next_due(last_s, history, groups).due_s <= now_s
    }

    fn meet(&mut self, _now_s: i64, server: u64, path: &str) -> PageGroups {
        self.groups_of(server, path)
    }

    fn groups_of(&self, server: u64, path: &str) -> PageGroups {
        let path = path.split(['?', '#']).next().unwrap_or_default();
        let weight = self.weights.of(path, true, 1.0);
        let name = u32::from(Coded::new(weight as f32).0);
        PageGroups { name, page: hash(server, path.as_bytes()) as u32, ..PageGroups::NONE }
    }

    fn roll(&mut self, now_s: i64) {
        match self.budget {
            Some(Budget::InAll { visits, end_s }) => {
                let days_left = ((end_s - now_s) as f64 / DAY_S as f64).max(1.0);
                self.per_day = (visits - self.spent).max(0.0) / days_left;
            }
            Some(Budget::PerDay(visits)) => self.per_day = visits,
            None => {}
        }
    }
}

impl SharedByPages for SharePolicy {
    fn set_budget(&mut self, budget: Option<Budget>) {
        self.budget = budget;
        self.spent = 0.0;
    }

    fn budget(&self) -> Option<Budget> {
        self.budget
    }

    fn leave(&mut self, history: &PageHistory) {
        self.count_page(history, -1.0);
    }

    fn rejoin(&mut self, history: &PageHistory) {
        self.count_page(history, 1.0);
    }

    fn shared_state(&self) -> Vec<u8> {
        let (visits, end_s) = self.budget.map_or((0.0, 0.0), Budget::to_numbers);
        let numbers: [f64; NUMBERS] =
            [self.learning, self.quiet, self.roots, visits, end_s, self.spent, self.per_day];
        let mut bytes = vec![u8::from(self.budget.is_some())];
        numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
        bytes
    }

    fn shared_groups(&self) -> usize {
        1
    }

    fn restore(&mut self, shared: &[u8]) -> Result<(), RevisitError> {
        let damaged = || RevisitError::BadShared { what: "sharing of a budget" };
        let (flag, rest) = shared.split_first().ok_or_else(damaged)?;
        let (chunks, []) = rest.as_chunks::<8>() else { return Err(damaged()) };
        let numbers: Vec<f64> = chunks.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
        let [learning, quiet, roots, visits, end_s, spent, per_day] = numbers[..] else {
            return Err(damaged());
        };
        if numbers.iter().any(|number| !number.is_finite()) {
            return Err(damaged());
        }
        let budget = (*flag == 1).then(|| Budget::from_numbers(visits, end_s));
        *self = Self { learning, quiet, roots, budget, spent, per_day, ..self.clone() };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> SharePolicy {
        SharePolicy::new(10 * DAY_S, 90 * DAY_S, Weights::default(), Limits::experiment(DAY_S))
    }

    /// A page visited daily for twenty days that changed every `every` days.
    fn taught(policy: &mut SharePolicy, every: i64) -> PageHistory {
        let mut history = PageHistory::default();
        for day in 0..20 {
            let changed = day % every == 0;
            let seen = if changed { Observation::changed() } else { Observation::same() };
            policy.learn(day * DAY_S, &mut history, &seen);
        }
        history
    }

    #[test]
    fn visits_go_with_the_root_of_the_rate_and_the_budget_is_met() {
        let mut policy = policy();
        let fast: Vec<_> = (0..20).map(|_| taught(&mut policy, 1)).collect();
        let slow: Vec<_> = (0..20).map(|_| taught(&mut policy, 4)).collect();
        policy.set_budget(Some(Budget::InAll { visits: 900.0, end_s: 110 * DAY_S }));
        policy.roll(20 * DAY_S);
        let days = |history: &PageHistory| {
            let next = policy.next_due(20 * DAY_S, history, PageGroups::NONE);
            next.why.interval_s as f64 / DAY_S as f64
        };
        assert_eq!((days(&fast[0]), days(&slow[0])), (3.0, 6.0));
        let per_day: f64 = fast.iter().chain(&slow).map(|page| 1.0 / days(page)).sum();
        assert!((per_day - 10.0).abs() < 1.0, "{per_day}");
    }

    #[test]
    fn a_page_learns_daily_and_one_without_a_change_gets_the_floor() {
        let mut policy = policy();
        let mut history = PageHistory::default();
        let first = policy.next(0, &mut history, Observation::changed());
        assert_eq!(first.due_s, DAY_S);
        for day in 1..=10 {
            policy.learn(day * DAY_S, &mut history, &Observation::same());
        }
        let next = policy.next_due(10 * DAY_S, &history, PageGroups::NONE);
        assert_eq!((next.why.rule, next.why.interval_s), (Rule::NeverChanged, 90 * DAY_S));
        policy.leave(&history);
        assert_eq!((policy.learning, policy.quiet), (0.0, 0.0));
    }

    #[test]
    fn the_sharing_comes_back_from_its_bytes() {
        let mut policy = policy();
        taught(&mut policy, 2);
        policy.set_budget(Some(Budget::InAll { visits: 100.0, end_s: 30 * DAY_S }));
        policy.roll(20 * DAY_S);
        let mut other = self::policy();
        other.restore(&policy.shared_state()).unwrap();
        assert_eq!(other.shared_state(), policy.shared_state());
        assert!(other.restore(&[1, 2, 3]).is_err());
    }
}
