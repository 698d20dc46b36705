//! One group's change clock: on which days its pages changed together.

use std::collections::VecDeque;

use super::coded::Rough;
use super::column;
use super::rhythm::{KeptHours, Rhythm};
use crate::DAY_S;
use crate::missed::changed_buckets;
use crate::varint::{Reader, put};

/// Days whose estimate still moves with every visit; older days are frozen.
pub(crate) const OPEN_DAYS: usize = 30;
const WEEK: i64 = 7;
/// Frozen weeks that are kept; a page not visited for longer is taken to have had average weeks.
const MAX_WEEKS: usize = 48;
/// From this bit on, above the days of a week, a number says how hours of a rhythm are kept.
const KEPT_HOURS: u32 = 4;

/// Changes credited to a day and exposure to it, for the multiplicative clock and for bulk edits.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct DaySums {
    pub(crate) clock_changes: f32,
    pub(crate) clock_exposure: f32,
    pub(crate) bulk_changes: f32,
    pub(crate) bulk_exposure: f32,
}

impl DaySums {
    const PARTS: [fn(&mut Self) -> &mut f32; 4] = [
        |sums| &mut sums.clock_changes,
        |sums| &mut sums.clock_exposure,
        |sums| &mut sums.bulk_changes,
        |sums| &mut sums.bulk_exposure,
    ];

    pub(crate) fn add(&mut self, more: &Self) {
        self.clock_changes += more.clock_changes;
        self.clock_exposure += more.clock_exposure;
        self.bulk_changes += more.bulk_changes;
        self.bulk_exposure += more.bulk_exposure;
    }
}

/// How fast a day's clock ran (mean 1) and its hazard of a bulk edit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DayPace {
    pub(crate) clock: f32,
    pub(crate) bulk: f32,
}

/// What passed between two times by a group's clock.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Passed {
    /// Days by the multiplicative clock.
    pub(crate) clock: f32,
    /// Expected bulk edits.
    pub(crate) bulk: f32,
}

impl Passed {
    const PARTS: [fn(&mut Self) -> &mut f32; 2] =
        [|passed| &mut passed.clock, |passed| &mut passed.bulk];
}

/// What passed between two times, and in how many buckets changes can have been.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PassedBuckets {
    pub(crate) passed: Passed,
    /// Even buckets over which the clock's time is as good as spread.
    pub(crate) buckets: f32,
    /// Buckets in which a bulk edit is expected.
    pub(crate) edits: f32,
}

/// The days of one group.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Clock {
    /// The newest open day, as days since the epoch.
    today: i64,
    /// Open days, oldest first; the last is today.
    sums: [DaySums; OPEN_DAYS],
    paces: [DayPace; OPEN_DAYS],
    /// Frozen weeks, newest last, and the days frozen since the last whole one.
    weeks: VecDeque<Passed>,
    partial: Passed,
    partial_days: i64,
    /// When in the day and in the week its pages change.
    pub(crate) rhythm: Rhythm,
}

impl Clock {
    /// A clock without evidence that runs as its parent did.
    pub(crate) fn starting_as(parent: Option<&Clock>, today: i64, pace: DayPace) -> Self {
        let fresh = Self {
            today,
            sums: [DaySums::default(); OPEN_DAYS],
            paces: [pace; OPEN_DAYS],
            weeks: VecDeque::new(),
            partial: Passed::default(),
            partial_days: 0,
            rhythm: Rhythm::below(parent.map(|parent| &parent.rhythm)),
        };
        match parent {
            Some(parent) => Self { sums: fresh.sums, rhythm: fresh.rhythm, ..parent.clone() },
            None => fresh,
        }
    }

    /// Opens the days up to `today` and freezes the oldest ones.
    pub(crate) fn roll(&mut self, today: i64, pace: DayPace) {
        let days = (today - self.today).clamp(0, 10_000);
        for passed in 0..days {
            let (oldest, seen) = (self.paces[0], self.sums[0]);
            self.freeze(oldest);
            let day = self.first_open_day() + passed;
            self.rhythm.saw_day(day, seen.clock_changes, seen.clock_exposure);
            self.sums.copy_within(1.., 0);
            self.paces.copy_within(1.., 0);
            self.sums[OPEN_DAYS - 1] = DaySums::default();
            self.paces[OPEN_DAYS - 1] = pace;
        }
        self.today = self.today.max(today);
    }

    fn freeze(&mut self, day: DayPace) {
        self.partial.clock += day.clock;
        self.partial.bulk += day.bulk;
        self.partial_days += 1;
        if self.partial_days == WEEK {
            self.weeks.push_back(std::mem::take(&mut self.partial));
            self.partial_days = 0;
            if self.weeks.len() > MAX_WEEKS {
                self.weeks.pop_front();
            }
        }
    }

    /// Sets the paces of the open days from the sums and the parent's paces.
    pub(crate) fn recompute(&mut self, pace_of: impl Fn(usize, &DaySums, f32) -> DayPace) {
        let first = self.first_open_day();
        for (day, (pace, sums)) in self.paces.iter_mut().zip(&self.sums).enumerate() {
            *pace = pace_of(day, sums, self.rhythm.of_day(first + day as i64));
        }
    }

    /// Sets the rhythm from what was seen and from the clock above, old evidence kept by a share.
    pub(crate) fn follow_rhythm(&mut self, above: Option<&Rhythm>, keep: f32) {
        let first = self.first_open_day();
        self.rhythm.fade(keep);
        let open = self.sums.iter().zip(first..);
        self.rhythm
            .follow(above, open.map(|(sums, day)| (day, sums.clock_changes, sums.clock_exposure)));
    }

    pub(crate) fn paces(&self) -> &[DayPace; OPEN_DAYS] {
        &self.paces
    }

    /// What passed from `from_s` to `to_s`.
    pub(crate) fn passed(&self, from_s: i64, to_s: i64) -> Passed {
        let mut passed = Passed::default();
        self.each_open_day(from_s, to_s, |pace, _, share| {
            passed.clock += pace.clock * share;
            passed.bulk += pace.bulk * share;
        });
        let open_from_s = self.first_open_day() * DAY_S;
        if from_s < open_from_s {
            let since = self.frozen((open_from_s - from_s) as f64 / DAY_S as f64);
            let after = self.frozen((open_from_s - to_s).max(0) as f64 / DAY_S as f64);
            passed.clock += since.clock - after.clock;
            passed.bulk += since.bulk - after.bulk;
        }
        passed
    }

    /// What passed between two times, and over how many buckets of so many days: a day on which all
    /// changed counts hardly more than once.
    pub(crate) fn buckets(&self, (from_s, to_s): (i64, i64), days: f32) -> PassedBuckets {
        let (mut clock, mut squares, mut bulk, mut edits) = (0.0, 0.0, 0.0, 0.0);
        self.each_open_day(from_s, to_s, |pace, _, share| {
            let of_day = pace.clock * share;
            clock += of_day;
            squares += of_day * of_day / (share / days).max(1.0);
            bulk += pace.bulk * share;
            edits -= (-pace.bulk * share).exp_m1();
        });
        let open_from_s = self.first_open_day() * DAY_S;
        let frozen_days = (to_s.min(open_from_s) - from_s) as f32 / DAY_S as f32;
        if frozen_days > 0.0 {
            let frozen = self.passed(from_s, to_s.min(open_from_s));
            clock += frozen.clock;
            squares += frozen.clock * frozen.clock / (frozen_days / days).max(1.0);
            bulk += frozen.bulk;
            // Which day of a week a bulk edit fell on is not kept: it is one, in any case.
            edits += changed_buckets(frozen.bulk, frozen_days / WEEK as f32);
        }
        let buckets = clock * clock / squares.max(f32::MIN_POSITIVE);
        PassedBuckets { passed: Passed { clock, bulk }, buckets, edits }
    }

    /// The last `days` before the open ones.
    fn frozen(&self, days: f64) -> Passed {
        let mut left = days as f32;
        let mut passed = Passed::default();
        let mut take = |span: &Passed, span_days: f32| {
            let share = (left / span_days).min(1.0);
            passed.clock += span.clock * share;
            passed.bulk += span.bulk * share;
            left -= span_days * share;
            left > 0.0
        };
        let more = self.partial_days == 0 || take(&self.partial, self.partial_days as f32);
        if more {
            let _all = self.weeks.iter().rev().all(|week| take(week, WEEK as f32));
        }
        passed.clock += left.max(0.0);
        passed
    }

    /// Visits the open days between two times with the share of each that is between them.
    pub(crate) fn each_open_day(
        &self,
        from_s: i64,
        to_s: i64,
        mut visit: impl FnMut(&DayPace, usize, f32),
    ) {
        let first_open = self.first_open_day();
        let from_day = from_s.div_euclid(DAY_S).max(first_open);
        let to_day = to_s.div_euclid(DAY_S).min(self.today);
        for day in from_day..=to_day {
            let (from, to) = (from_s - day * DAY_S, to_s - day * DAY_S);
            let before = if from > 0 { self.rhythm.share_before(from) } else { 0.0 };
            let until = if to < DAY_S { self.rhythm.share_before(to) } else { 1.0 };
            let share = until - before;
            if share > 0.0 {
                let at = (day - first_open) as usize;
                visit(&self.paces[at], at, share);
            }
        }
    }

    /// Adds to an open day; its pace follows if it is to.
    pub(crate) fn add(
        &mut self,
        day: usize,
        more: &DaySums,
        pace: Option<impl Fn(&DaySums) -> DayPace>,
    ) {
        self.sums[day].add(more);
        if let Some(pace) = pace {
            self.paces[day] = pace(&self.sums[day]);
        }
    }

    /// Writes the clock: its days as they differ from the day before, and its weeks as they differ
    /// from those of the clock above it.
    pub(crate) fn write(&self, bytes: &mut Vec<u8>, above: Option<&Clock>) {
        for part in DaySums::PARTS {
            let days = self.sums.map(|sums| Rough::new(*part(&mut { sums })));
            column::write(bytes, &days, as_the_day_before);
        }
        let has_rhythm = !self.rhythm.is_silent();
        let kept = if has_rhythm { KeptHours::Guesses } else { KeptHours::Sums };
        let flags = u64::from(has_rhythm) | (kept as u64) << KEPT_HOURS;
        put(bytes, self.partial_days.unsigned_abs() << 1 | flags);
        if has_rhythm {
            self.rhythm.write(bytes);
        }
        put(bytes, self.weeks.len() as u64);
        for part in Passed::PARTS {
            let expected = above.map(|above| above.spans(part)).unwrap_or_default();
            column::write(bytes, &self.spans(part), |newer| as_above(&expected, newer));
        }
    }

    /// Reads a clock as of `today`; its open days are to be computed from its sums.
    pub(crate) fn read(reader: &mut Reader<'_>, today: i64, above: Option<&Clock>) -> Option<Self> {
        let mut clock = Self::starting_as(None, today, DayPace { clock: 1.0, bulk: 0.0 });
        for part in DaySums::PARTS {
            let days = column::read(reader, OPEN_DAYS, as_the_day_before)?;
            for (sums, day) in clock.sums.iter_mut().zip(days) {
                *part(sums) = day.value();
            }
        }
        let flags = reader.varint()?;
        let kept = KeptHours::from_number(flags >> KEPT_HOURS)?;
        let days = (flags & ((1 << KEPT_HOURS) - 1)) >> 1;
        clock.partial_days = i64::try_from(days).ok().filter(|&days| days < WEEK)?;
        if flags & 1 == 1 {
            clock.rhythm = Rhythm::read(reader, kept)?;
        }
        let weeks = reader.varint().filter(|&weeks| weeks <= MAX_WEEKS as u64)? as usize;
        clock.weeks.resize(weeks, Passed::default());
        for part in Passed::PARTS {
            let expected = above.map(|above| above.spans(part)).unwrap_or_default();
            let spans = column::read(reader, weeks + 1, |newer| as_above(&expected, newer))?;
            let (partial, weeks) = (&mut clock.partial, clock.weeks.iter_mut().rev());
            for (passed, span) in std::iter::once(partial).chain(weeks).zip(spans) {
                *part(passed) = span.value();
            }
        }
        Some(clock)
    }

    /// One part of the days frozen since the last whole week and of the weeks, newest first.
    fn spans(&self, part: fn(&mut Passed) -> &mut f32) -> Vec<Rough> {
        let spans = std::iter::once(&self.partial).chain(self.weeks.iter().rev());
        spans.map(|passed| Rough::new(*part(&mut { *passed }))).collect()
    }

    pub(crate) fn first_open_day(&self) -> i64 {
        self.today - (OPEN_DAYS as i64 - 1)
    }
}

fn as_the_day_before(before: &[Rough]) -> Rough {
    before.last().copied().unwrap_or(Rough(0))
}

fn as_above(above: &[Rough], newer: &[Rough]) -> Rough {
    above.get(newer.len()).copied().unwrap_or(Rough(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVEN: DayPace = DayPace { clock: 1.0, bulk: 0.01 };

    #[test]
    fn an_even_clock_passes_as_time_does_however_long_ago() {
        let mut clock = Clock::starting_as(None, 1_000, EVEN);
        (1_001..1_400).for_each(|day| clock.roll(day, EVEN));
        for (from_day, to_day) in [(1_390, 1_395), (1_300, 1_399), (1_001, 1_399), (100, 1_398)] {
            let passed = clock.passed(from_day * DAY_S, to_day * DAY_S);
            let days = (to_day - from_day) as f32;
            assert!((passed.clock - days).abs() < days * 1e-4, "{passed:?} {days}");
        }
        let half = clock.passed(1_398 * DAY_S + DAY_S / 4, 1_398 * DAY_S + DAY_S * 3 / 4);
        assert!((half.clock - 0.5).abs() < 1e-6);
    }

    #[test]
    fn a_fast_day_stays_fast_after_it_was_frozen() {
        let mut clock = Clock::starting_as(None, 1_000, EVEN);
        clock.recompute(|day, _, _| DayPace {
            clock: if day == OPEN_DAYS - 1 { 31.0 } else { 1.0 },
            bulk: 0.0,
        });
        for day in 1_001..1_200 {
            clock.roll(day, EVEN);
            let passed = clock.passed(980 * DAY_S, 1_001 * DAY_S).clock;
            let later = clock.passed(980 * DAY_S, (day + 1) * DAY_S).clock;
            assert!(passed > 21.0, "{day} {passed}");
            assert!((later - passed - (day - 1_000) as f32).abs() < 31.0, "{day} {later}");
        }
    }
}
