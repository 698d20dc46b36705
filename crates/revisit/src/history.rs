//! What is kept of a page's visits.

use crate::auto::{Belief, Coded, Likelihood, Rough, read_spread, write_spread};
use crate::gaps::ChangedGaps;
use crate::missed::{changed_buckets, in_gap};
use crate::varint::{Reader, put};
use crate::{DAY_S, RevisitError};
use crate::{Observation, Outcome};

/// What a page's visits have taught, in a few bytes.
///
/// Every policy keeps the number of visits and changes and the time of the last visit. What else
/// is kept depends on the policy that learns; a policy that finds another's remains starts its own
/// part again.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PageHistory {
    pub(crate) visits: u32,
    pub(crate) changes: u32,
    pub(crate) last_visit_s: i64,
    pub(crate) learnt: Learnt,
}

/// The part that depends on the policy.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) enum Learnt {
    #[default]
    Nothing,
    Sums(Sums),
    Gaps(Sums, Box<ChangedGaps>),
    Belief(Belief),
    /// The sums, and √(λ·w): the page's claim on a budget; `None` while there is no rate.
    Share(Sums, Option<Coded>),
}

/// Sums of gaps between visits: all that MLE.min, .avg, .mix and the interval rules need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sums {
    /// T: all gaps.
    pub(crate) all_s: u64,
    /// U: gaps without a change.
    pub(crate) unchanged_s: u64,
    /// The shortest gap that saw a change; 0 while there is none.
    pub(crate) changed_min_s: u64,
    /// m: gaps that saw a change.
    pub(crate) changes: u32,
    /// The interval set last, in milliseconds so that factors of a second do not get lost.
    pub(crate) interval_ms: u64,
    /// Unchanged visits in a row, as far as the policy counts them.
    pub(crate) streak: u32,
}

/// A gap between two visits, as learnt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gap {
    /// Length of the part that ends with the change; the whole gap when nothing changed.
    pub(crate) before_s: u64,
    /// Length of the part known to be free of changes after the last one (Last-Modified).
    pub(crate) quiet_s: u64,
    pub(crate) changed: bool,
}

/// Visits that what is usual counts for.
const USUAL_VISITS: f64 = 2.0;

const TAG_NOTHING: u64 = 0;
const TAG_SUMS: u64 = 1;
const TAG_GAPS: u64 = 2;
/// A belief with likelihoods in even steps, as it was kept before.
const TAG_EVEN_BELIEF: u64 = 3;
const TAG_SHARE: u64 = 4;
const TAG_BELIEF: u64 = 5;
/// The same of a page whose last visit saw a change.
const TAG_BELIEF_CHANGED: u64 = 6;

impl PageHistory {
    /// Visits that taught something, the first included.
    pub fn visits(&self) -> u32 {
        self.visits
    }

    /// The visits alone, without what a policy made of them.
    pub(crate) fn without_learnt(&self) -> Self {
        Self { learnt: Learnt::Nothing, ..*self }
    }

    /// Changes seen after the first visit.
    pub fn changes(&self) -> u32 {
        self.changes
    }

    /// The last visit that taught something.
    pub fn last_visit_s(&self) -> Option<i64> {
        (self.visits > 0).then_some(self.last_visit_s)
    }

    /// The chance, by the page's own past, that it changes within a time; `None` before it was seen
    /// twice. Its rate leans on the usual one of its site, by as much as two visits show: pages
    /// that were just seen changed are mostly not as fast as that one gap suggests.
    pub(crate) fn chance_within(&self, gap_s: i64, usual_per_s: f64) -> Option<f64> {
        let gaps = self.visits.checked_sub(1).filter(|&gaps| gaps > 0)?;
        if let Learnt::Belief(belief) = &self.learnt {
            let days = gap_s as f64 / DAY_S as f64;
            return Some(1.0 - (-f64::from(belief.rate.value()) * days).exp());
        }
        let mean_s = self.sums().map(|sums| sums.all_s as f64 / f64::from(gaps));
        let mean_s = mean_s.filter(|mean_s| *mean_s > 0.0).unwrap_or(gap_s as f64);
        let usually_same = (-usual_per_s * mean_s).exp();
        let same = f64::from(gaps - self.changes.min(gaps)) + USUAL_VISITS * usually_same;
        let same = same / (f64::from(gaps) + USUAL_VISITS);
        Some(1.0 - same.powf(gap_s as f64 / mean_s.max(1.0)))
    }

    /// Versions that came and went unseen between its visits, by its estimated rate; `None` before
    /// it was seen twice.
    ///
    /// Where only sums are kept, all gaps with a change are taken to be as long as their mean.
    pub(crate) fn missed(&self, resolution_s: i64) -> Option<f64> {
        if self.visits < 2 {
            return None;
        }
        if let Learnt::Belief(belief) = &self.learnt {
            return Some(f64::from(belief.missed_hundredths) / 100.0);
        }
        let sums = self.sums()?;
        if sums.changes == 0 {
            return Some(0.0);
        }
        let gap_s = (sums.all_s - sums.unchanged_s) as f64 / f64::from(sums.changes);
        // Half a gap without a change beside those that were seen: no rate is beyond all bounds.
        let quiet_s = sums.unchanged_s as f64 + 0.5 * gap_s;
        let expected = ((sums.all_s as f64 + 0.5 * gap_s) / quiet_s.max(1.0)).ln();
        let buckets = gap_s / resolution_s.max(1) as f64;
        let changed = changed_buckets(expected as f32, buckets as f32);
        Some(f64::from(sums.changes) * f64::from(in_gap(expected as f32, changed)))
    }

    /// Takes a visit into what every policy keeps and returns the gap it closed.
    ///
    /// The first visit closes none. A visit that failed changes nothing. A clock that went back
    /// counts as no time passed.
    pub(crate) fn observe(&mut self, now_s: i64, seen: &Observation, use_lm: bool) -> Option<Gap> {
        if !seen.outcome.is_seen() {
            return None;
        }
        let last_s = self.last_visit_s;
        self.last_visit_s = if self.visits == 0 { now_s } else { now_s.max(last_s) };
        self.visits = self.visits.saturating_add(1);
        if self.visits == 1 {
            return None;
        }
        let changed = seen.outcome == Outcome::Changed;
        self.changes = self.changes.saturating_add(u32::from(changed));
        Some(split_gap(last_s, now_s.max(last_s), changed, seen.last_modified_s.filter(|_| use_lm)))
    }

    /// The sums, started over if a policy without sums kept the page until now.
    pub(crate) fn sums_mut(&mut self) -> &mut Sums {
        if !matches!(self.learnt, Learnt::Sums(_) | Learnt::Gaps(..) | Learnt::Share(..)) {
            self.learnt = Learnt::Sums(Sums::default());
        }
        match &mut self.learnt {
            Learnt::Sums(sums) | Learnt::Gaps(sums, _) | Learnt::Share(sums, _) => sums,
            _ => unreachable!("the sums were made above"),
        }
    }

    /// The sums, if some policy kept them.
    pub(crate) fn sums(&self) -> Option<&Sums> {
        match &self.learnt {
            Learnt::Sums(sums) | Learnt::Gaps(sums, _) | Learnt::Share(sums, _) => Some(sums),
            _ => None,
        }
    }

    /// Whether some policy has set an interval that the next one can grow from.
    pub(crate) fn has_interval(&self) -> bool {
        self.sums().is_some_and(|sums| sums.interval_ms > 0)
    }

    /// The changed gaps, if some policy kept them.
    pub(crate) fn changed_gaps(&self) -> Option<&ChangedGaps> {
        match &self.learnt {
            Learnt::Gaps(_, gaps) => Some(gaps),
            _ => None,
        }
    }

    /// The changed gaps beside the sums, kept from now on.
    pub(crate) fn gaps_mut(&mut self) -> &mut ChangedGaps {
        if !matches!(self.learnt, Learnt::Gaps(..)) {
            self.learnt = Learnt::Gaps(*self.sums_mut(), Box::default());
        }
        match &mut self.learnt {
            Learnt::Gaps(_, gaps) => gaps,
            _ => unreachable!("the gaps were made above"),
        }
    }

    /// The history as bytes for a database column.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(32);
        let tag = match &self.learnt {
            Learnt::Nothing => TAG_NOTHING,
            Learnt::Sums(_) => TAG_SUMS,
            Learnt::Gaps(..) => TAG_GAPS,
            Learnt::Belief(belief) if belief.just_changed => TAG_BELIEF_CHANGED,
            Learnt::Belief(_) => TAG_BELIEF,
            Learnt::Share(..) => TAG_SHARE,
        };
        put(&mut bytes, tag);
        put(&mut bytes, u64::from(self.visits));
        put(&mut bytes, u64::from(self.changes));
        put(&mut bytes, zigzag(self.last_visit_s));
        match &self.learnt {
            Learnt::Nothing => {}
            Learnt::Sums(sums) => sums.write(&mut bytes),
            Learnt::Gaps(sums, gaps) => {
                sums.write(&mut bytes);
                gaps.write(&mut bytes);
            }
            Learnt::Belief(belief) => belief.write(&mut bytes),
            Learnt::Share(sums, claim) => {
                sums.write(&mut bytes);
                claim.unwrap_or(Coded(0)).write(&mut bytes);
            }
        }
        bytes
    }

    /// Reads what [`PageHistory::to_bytes`] wrote; no bytes are a page never visited.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RevisitError> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let mut reader = Reader::new(bytes);
        let history = Self::read(&mut reader).ok_or(RevisitError::BadHistory {
            at: reader.at,
            problem: "a field is cut off, unknown or out of range",
        })?;
        if !reader.is_at_end() {
            return Err(RevisitError::BadHistory { at: reader.at, problem: "more bytes follow" });
        }
        Ok(history)
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let tag = reader.varint()?;
        let visits = reader.varint()?.try_into().ok()?;
        let changes = reader.varint()?.try_into().ok()?;
        // Times beyond tens of thousands of years are damage, and would overflow sums.
        let last_visit_s =
            Some(unzigzag(reader.varint()?)).filter(|at_s| at_s.unsigned_abs() < 1 << 40)?;
        let learnt = match tag {
            TAG_NOTHING => Learnt::Nothing,
            TAG_SUMS => Learnt::Sums(Sums::read(reader)?),
            TAG_GAPS => Learnt::Gaps(Sums::read(reader)?, Box::new(ChangedGaps::read(reader)?)),
            TAG_BELIEF => Learnt::Belief(Belief::read(reader)?),
            TAG_BELIEF_CHANGED => {
                Learnt::Belief(Belief { just_changed: true, ..Belief::read(reader)? })
            }
            TAG_EVEN_BELIEF => {
                let even = Belief::read(reader)?;
                let likelihood = Likelihood::from_even_steps(even.likelihood.0);
                Learnt::Belief(Belief { likelihood, ..even })
            }
            TAG_SHARE => {
                let sums = Sums::read(reader)?;
                Learnt::Share(sums, Some(Coded::read(reader)?).filter(|claim| claim.0 > 0))
            }
            _ => return None,
        };
        Some(Self { visits, changes, last_visit_s, learnt })
    }
}

impl Sums {
    /// The interval set last, in whole seconds.
    pub(crate) fn interval_s(&self) -> i64 {
        i64::try_from(self.interval_ms / 1_000).unwrap_or(i64::MAX)
    }

    /// Adds a gap to T, U and the shortest changed gap.
    pub(crate) fn add(&mut self, gap: Gap) {
        self.all_s = self.all_s.saturating_add(gap.before_s).saturating_add(gap.quiet_s);
        self.unchanged_s = self.unchanged_s.saturating_add(gap.quiet_s);
        if !gap.changed {
            self.unchanged_s = self.unchanged_s.saturating_add(gap.before_s);
            self.streak = self.streak.saturating_add(1);
            return;
        }
        self.streak = 0;
        self.changes = self.changes.saturating_add(1);
        if self.changed_min_s == 0 || gap.before_s < self.changed_min_s {
            self.changed_min_s = gap.before_s;
        }
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        put(bytes, self.all_s);
        put(bytes, self.unchanged_s);
        put(bytes, self.changed_min_s);
        put(bytes, u64::from(self.changes));
        put(bytes, self.interval_ms);
        put(bytes, u64::from(self.streak));
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let all_s = reader.varint()?;
        let unchanged_s = reader.varint().filter(|&u| u <= all_s)?;
        let changed_min_s = reader.varint().filter(|&c| c <= all_s)?;
        let changes = reader.varint()?.try_into().ok()?;
        let interval_ms = reader.varint()?;
        let streak = reader.varint()?.try_into().ok()?;
        Some(Self { all_s, unchanged_s, changed_min_s, changes, interval_ms, streak })
    }
}

impl Belief {
    fn write(&self, bytes: &mut Vec<u8>) {
        write_spread(&self.likelihood.0, bytes);
        for coded in [self.rate, self.effective_rate, self.threshold] {
            coded.write(bytes);
        }
        bytes.push(self.again.0);
        put(bytes, u64::from(self.missed_hundredths));
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let likelihood = Likelihood(read_spread(reader)?);
        let rate = Coded::read(reader)?;
        let effective_rate = Coded::read(reader)?;
        let threshold = Coded::read(reader)?;
        let again = Rough::read(reader)?;
        let missed_hundredths = reader.varint()?.try_into().ok()?;
        let just_changed = false;
        Some(Self {
            likelihood,
            rate,
            effective_rate,
            threshold,
            again,
            missed_hundredths,
            just_changed,
        })
    }
}

/// Splits a gap at Last-Modified: the page surely did not change after that.
fn split_gap(last_s: i64, now_s: i64, changed: bool, last_modified_s: Option<i64>) -> Gap {
    let whole_s = now_s.abs_diff(last_s);
    let believed = last_modified_s.filter(|&at_s| changed && last_s < at_s && at_s <= now_s);
    let before_s = believed.map_or(whole_s, |at_s| at_s.abs_diff(last_s));
    Gap { before_s, quiet_s: whole_s - before_s, changed }
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_visit_closes_no_gap_and_a_failure_teaches_nothing() {
        let mut history = PageHistory::default();
        assert_eq!(history.observe(50, &Observation::failed(), false), None);
        assert_eq!(history.last_visit_s(), None);
        assert_eq!(history.observe(100, &Observation::changed(), false), None);
        assert_eq!((history.visits(), history.changes()), (1, 0));
        let gap = history.observe(160, &Observation::same(), false);
        assert_eq!(gap, Some(Gap { before_s: 60, quiet_s: 0, changed: false }));
    }

    #[test]
    fn last_modified_splits_a_changed_gap_only_within_it() {
        let gap = |lm| split_gap(100, 200, true, Some(lm));
        assert_eq!((gap(150).before_s, gap(150).quiet_s), (50, 50));
        assert_eq!(gap(200).before_s, 100);
        for outside in [0, 100, 201] {
            assert_eq!((gap(outside).before_s, gap(outside).quiet_s), (100, 0));
        }
        assert_eq!(split_gap(100, 200, false, Some(150)).before_s, 100);
    }

    #[test]
    fn a_clock_that_went_back_gives_an_empty_gap() {
        let mut history = PageHistory::default();
        history.observe(100, &Observation::changed(), false);
        let gap = history.observe(40, &Observation::same(), false);
        assert_eq!(gap, Some(Gap { before_s: 0, quiet_s: 0, changed: false }));
        assert_eq!(history.last_visit_s(), Some(100));
    }

    #[test]
    fn damaged_bytes_are_an_error_that_names_the_place() {
        let mut history = PageHistory::default();
        history.observe(1_700_000_000, &Observation::changed(), false);
        history.sums_mut().add(Gap { before_s: 5, quiet_s: 2, changed: true });
        let bytes = history.to_bytes();
        assert_eq!(PageHistory::from_bytes(&bytes), Ok(history));
        for cut in 1..bytes.len() {
            assert!(PageHistory::from_bytes(&bytes[..cut]).is_err());
        }
        let longer = [bytes.as_slice(), &[0]].concat();
        let error = PageHistory::from_bytes(&longer).unwrap_err();
        assert_eq!(
            error.to_string(),
            "stored page history is damaged at byte 14: more bytes follow; the page starts over"
        );
    }
}
