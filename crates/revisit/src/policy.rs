//! The contract of all policies.

use std::fmt;

use crate::duration::about;
use crate::{
    Budget, DAY_S, Forecast, Missed, Observation, PageGroups, PageHistory, PolicySpec,
    RevisitError, Signal,
};

/// Decides when a page is visited again.
///
/// A caller may rely on this: the due time is after `now_s`, never sooner than the floor nor later
/// than the ceiling; the same history gives the same answer; a failed visit teaches nothing.
pub trait RevisitPolicy: SharedByPages + Send {
    /// The policy's name and parameters.
    fn spec(&self) -> PolicySpec;

    /// Takes a visit at `now_s` into the page's history, and into what the pages share.
    fn learn(&mut self, now_s: i64, history: &mut PageHistory, seen: &Observation);

    /// When the page is due, seen from `now_s`; changes nothing.
    fn next_due(&self, now_s: i64, history: &PageHistory, groups: PageGroups) -> Next;

    /// Whether a visit now is worth it. A policy whose pages share what they learn may answer yes
    /// before the due time it gave, and no at that time.
    fn is_due(&self, now_s: i64, history: &PageHistory, groups: PageGroups) -> bool {
        self.next_due(history.last_visit_s().unwrap_or(now_s), history, groups).due_s <= now_s
    }

    /// The decision in full, for a person.
    fn explain(&self, now_s: i64, history: &PageHistory, groups: PageGroups) -> Explanation {
        Explanation::of(&self.next_due(now_s, history, groups))
    }

    /// How many times the changes are hidden between visits that even chances would hide: more where
    /// changes follow each other closely, fewer where none follows soon.
    fn hidden(&self) -> f64 {
        1.0
    }

    /// The chance at which a visit is worth its price, if the policy has one.
    fn chance_worth(&self, _history: &PageHistory, _groups: PageGroups) -> Option<f64> {
        None
    }

    /// How many times its price a visit is worth at a time, if the policy has one: what is to go
    /// first where there are more due pages than visits.
    fn urgency(&self, _at_s: i64, _history: &PageHistory, _groups: PageGroups) -> Option<f64> {
        None
    }

    /// When to come after a hint from elsewhere, if that is sooner than planned.
    fn signalled(
        &self,
        now_s: i64,
        history: &PageHistory,
        groups: PageGroups,
        signal: &Signal,
    ) -> Option<Next> {
        signal.hasten(now_s, history, self.next_due(now_s, history, groups))
    }

    /// Counts a new page into its neighbourhood; once per page, before its first observation.
    fn meet(&mut self, _now_s: i64, _server: u64, _path: &str) -> PageGroups {
        PageGroups::NONE
    }

    /// The groups of a known page, by its server's number and its path.
    fn groups_of(&self, _server: u64, _path: &str) -> PageGroups {
        PageGroups::NONE
    }

    /// Opens the day of `now_s`: shared clocks and prices move. To be called at least daily.
    fn roll(&mut self, _now_s: i64) {}

    /// Pages are asked about when their planned times come, and not all of them every slot.
    fn ask_when_planned(&mut self) {}

    /// Learns from a visit and answers when to come again: what a crawler calls after each visit.
    fn next(&mut self, now_s: i64, history: &mut PageHistory, seen: Observation) -> Next {
        self.learn(now_s, history, &seen);
        self.next_due(now_s, history, seen.groups)
    }
}

/// What the pages of a site share under a policy: a budget, and what they learnt together.
///
/// A policy that looks at each page by itself shares nothing and keeps the defaults.
pub trait SharedByPages {
    /// Spends this many visits until then; policies without a price ignore it.
    fn set_budget(&mut self, _budget: Option<Budget>) {}

    /// The budget that is being spent.
    fn budget(&self) -> Option<Budget> {
        None
    }

    /// The page is gone: its share of the budget is free.
    fn leave(&mut self, _history: &PageHistory) {}

    /// The page is back: it takes its share again.
    fn rejoin(&mut self, _history: &PageHistory) {}

    /// Visits per day that the pages ask for at a price that is the same for all sites, if the
    /// policy knows it; a budget for several sites is shared out by it.
    fn need_per_day(&self) -> Option<f64> {
        None
    }

    /// The forecast at half, the same and twice the visits, where the policy knows better than from
    /// its intervals alone.
    ///
    /// `visits_per_day` is what those pages may have; without it, the current number of visits
    /// counts.
    fn forecast(
        &self,
        _pages: &mut dyn Iterator<Item = &PageHistory>,
        _visits_per_day: Option<f64>,
    ) -> Option<Forecast> {
        None
    }

    /// What the pages share, as bytes to be kept beside them; empty if nothing.
    fn shared_state(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Groups of pages whose share of the state is kept: what writing it costs.
    fn shared_groups(&self) -> usize {
        0
    }

    /// Takes what [`RevisitPolicy::shared_state`] gave; on an error everything starts over.
    fn restore(&mut self, _shared: &[u8]) -> Result<(), RevisitError> {
        Ok(())
    }
}

/// When to come again, and why.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Next {
    /// The time of the next visit.
    pub due_s: i64,
    /// Why then.
    pub why: Reason,
}

/// Why a page is due when it is, for people.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reason {
    /// The rule that set the interval.
    pub rule: Rule,
    /// From the last visit to the next.
    pub interval_s: i64,
    /// Estimated changes per day, if the rule estimates them.
    pub rate_per_day: Option<f64>,
    /// How well the rate is known: 0 not at all, 1 beyond doubt.
    pub confidence: f64,
    /// Share of the expected change that the neighbours' clock contributed, if one was used.
    pub neighbours: Option<f64>,
    /// Hours of the day (UTC), from the first to the end of the last, in which most changes come.
    pub busy_hours: Option<(u8, u8)>,
}

impl Reason {
    /// A reason without an estimate.
    pub(crate) fn unknown(rule: Rule, interval_s: i64) -> Self {
        Self {
            rule,
            interval_s,
            rate_per_day: None,
            confidence: 0.0,
            neighbours: None,
            busy_hours: None,
        }
    }
}

/// A decision in full.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// When to come again, and why.
    pub next: Next,
    /// Rates per day between which the true one is with 80% probability, if estimated.
    pub rate_range: Option<(f64, f64)>,
    /// Chance that the page has changed since the last visit.
    pub chance_changed: Option<f64>,
    /// The chance at which a visit is worth its price.
    pub chance_worth: Option<f64>,
    /// What the neighbours' clock showed since the last visit.
    pub neighbourhood: Option<Neighbourhood>,
    /// The interval at multiples of the present budget.
    pub at_budgets: Vec<(f64, i64)>,
    /// Versions that came and went between visits.
    pub missed: Option<Missed>,
}

/// What the pages around a page showed since its last visit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbourhood {
    /// Known pages of the group.
    pub pages: u32,
    /// Days that passed by the group's clock.
    pub clock_days: f64,
    /// Bulk edits expected to have hit the page.
    pub bulk_edits: f64,
}

impl Explanation {
    /// The explanation from a decision alone.
    pub(crate) fn of(next: &Next) -> Self {
        Self {
            next: *next,
            rate_range: None,
            chance_changed: None,
            chance_worth: None,
            neighbourhood: None,
            at_budgets: Vec::new(),
            missed: None,
        }
    }

    /// The explanation in short sentences, one per line of a list.
    pub fn pieces(&self) -> Vec<String> {
        let mut pieces = vec![self.next.why.to_string()];
        if let Some((low, high)) = self.rate_range {
            pieces.push(format!("between {low:.3} and {high:.3} changes per day"));
        }
        if let (Some(changed), Some(worth)) = (self.chance_changed, self.chance_worth) {
            let (changed, worth) = (changed * 100.0, worth * 100.0);
            pieces
                .push(format!("changed by now with {changed:.0}%; worth a visit from {worth:.0}%"));
        }
        if let Some(near) = self.neighbourhood.filter(|near| near.pages > 0) {
            pieces.push(format!(
                "{} neighbours: {:.1} days by their clock, {:.2} bulk edits expected",
                near.pages, near.clock_days, near.bulk_edits
            ));
        }
        for (factor, interval_s) in &self.at_budgets {
            pieces.push(format!("at {factor}× the budget every {}", about(*interval_s)));
        }
        if let Some(missed) = &self.missed {
            pieces.push(missed.to_string());
        }
        pieces
    }
}

/// The rule that set an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// The page was visited only once: the policy's first interval.
    FirstInterval,
    /// A fixed interval.
    Fixed,
    /// No change was ever seen: the last interval, lengthened.
    NeverChanged,
    /// The estimate is shorter than the lower bound allows.
    LowerBound,
    /// The estimated change interval.
    Estimate,
    /// The estimate is longer than the upper bound allows.
    UpperBound,
    /// The last visit saw a change: the interval was shortened.
    Shortened,
    /// The last visit saw no change: the interval was lengthened.
    Lengthened,
    /// Unchanged, but not yet often enough in a row to lengthen the interval.
    Kept,
    /// The page's share of the budget.
    Share,
    /// The expected gain of a visit is worth its price.
    Worth,
    /// A feed, a sitemap or a push said that the page changed.
    Signal,
}

impl Rule {
    /// The rule in words, for lists and logs.
    pub fn text(self) -> &'static str {
        match self {
            Self::FirstInterval => "first interval",
            Self::Fixed => "fixed interval",
            Self::NeverChanged => "no change seen yet",
            Self::LowerBound => "changes at nearly every visit",
            Self::Estimate => "estimated rate of change",
            Self::UpperBound => "changes are rare",
            Self::Shortened => "changed at the last visit",
            Self::Lengthened => "unchanged at the last visit",
            Self::Kept => "unchanged, interval not lengthened yet",
            Self::Share => "share of the budget",
            Self::Worth => "a change is likely enough",
            Self::Signal => "announced change",
        }
    }
}

impl Reason {
    /// The rate, if enough was seen to name it to a person: less than one change says nothing.
    pub fn rate_if_known(&self) -> Option<f64> {
        self.rate_per_day.filter(|_| self.confidence >= confidence_of(1))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let interval = about(self.interval_s);
        let goes_by_rate = matches!(self.rule, Rule::Worth | Rule::Estimate);
        match self.rate_if_known().map(|rate| often(rate, self.confidence)) {
            Some(changes) if goes_by_rate => {
                write!(f, "{changes}, so it is visited every {interval}")?;
            }
            Some(changes) => write!(f, "{}: every {interval}; {changes}", self.rule.text())?,
            None if goes_by_rate => write!(
                f,
                "too little was seen yet to know how often it changes; it is visited every {interval}"
            )?,
            None => write!(f, "{}: every {interval}", self.rule.text())?,
        }
        let percent = (self.neighbours.unwrap_or(0.0) * 100.0).round();
        match percent {
            1.0.. => write!(f, ", sooner because pages near it changed ({percent}%)")?,
            ..=-1.0 => write!(f, ", later because pages near it did not change ({}%)", -percent)?,
            _ => {}
        }
        match self.busy_hours {
            Some((from, to)) => {
                write!(f, "; changes mostly between {from}:00 and {to}:00 UTC")
            }
            None => Ok(()),
        }
    }
}

/// How often a page changes, in words.
pub(crate) fn often(rate_per_day: f64, confidence: f64) -> String {
    let percent = confidence * 100.0;
    if rate_per_day >= 1.0 {
        format!("changes about {rate_per_day:.1} times a day ({percent:.0}% sure)")
    } else {
        // The cast saturates: a page that never changes has the longest interval.
        let interval_s = (DAY_S as f64 / rate_per_day) as i64;
        format!("changes about every {} ({percent:.0}% sure)", about(interval_s))
    }
}

/// How well `changes` seen changes fix a rate: the relative error of a Poisson count is 1/√n.
pub(crate) fn confidence_of(changes: u32) -> f64 {
    1.0 - 1.0 / (1.0 + f64::from(changes)).sqrt()
}
