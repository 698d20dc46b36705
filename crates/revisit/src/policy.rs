//! The contract of all policies.

use std::fmt;

use crate::{Observation, PageHistory, Place, PolicySpec, format_duration};

/// Decides when a page is visited again.
///
/// A caller may rely on: the due time lies after `now_s`, never sooner than the floor nor later
/// than the ceiling; the same history gives the same answer; a failed visit teaches nothing.
pub trait RevisitPolicy: Send {
    /// The policy's name and parameters.
    fn spec(&self) -> PolicySpec;

    /// Takes a visit at `now_s` into the page's history, and into what the pages share.
    fn learn(&mut self, now_s: i64, history: &mut PageHistory, seen: &Observation);

    /// When the page is due, seen from `now_s`; changes nothing.
    fn next_due(&self, now_s: i64, history: &PageHistory, place: Place) -> Next;

    /// Learns from a visit and answers when to come again: what a crawler calls after each visit.
    fn next(&mut self, now_s: i64, history: &mut PageHistory, seen: Observation) -> Next {
        self.learn(now_s, history, &seen);
        self.next_due(now_s, history, seen.place)
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

/// Why a page is due when it is: kept for the person who asks.
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
            Self::Estimate => "estimated change interval",
            Self::UpperBound => "changes are rare",
            Self::Shortened => "changed at the last visit",
            Self::Lengthened => "unchanged at the last visit",
            Self::Kept => "unchanged, interval kept",
            Self::Share => "share of the budget",
            Self::Worth => "expected change worth a visit",
            Self::Signal => "signalled change",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: every {}", self.rule.text(), format_duration(self.interval_s))?;
        if let Some(rate) = self.rate_per_day {
            write!(f, ", {rate:.3} changes/day ({:.0}% sure)", self.confidence * 100.0)?;
        }
        if let Some(neighbours) = self.neighbours {
            write!(f, ", {:.0}% of it from neighbours", neighbours * 100.0)?;
        }
        Ok(())
    }
}

/// How well `changes` seen changes fix a rate: the relative error of a Poisson count is 1/√n.
pub(crate) fn confidence_of(changes: u32) -> f64 {
    1.0 - 1.0 / (1.0 + f64::from(changes)).sqrt()
}
