//! When in the day and in the week the pages of a group change.

use super::coded::Rough;
use super::column;
use crate::DAY_S;
use crate::varint::Reader;

const HOURS: usize = 24;
const HOUR_S: i64 = DAY_S / HOURS as i64;
pub(crate) const WEEKDAYS: usize = 7;
/// When the days of a week may be taken to differ.
struct Doubt {
    /// Changes that each part must be expected to have had: a weekday was then seen in several weeks.
    least: f32,
    /// How much they must differ, as a mean of χ²: by chance alone it is 1 at most.
    sure: f32,
}

/// Hours that hold most changes of a day, as guesses: so many hours in a row, which come again after so
/// many, one guess for each hour that they can begin with.
const SHAPES: [(usize, usize); 6] =
    [(1, HOURS), (4, HOURS), (1, HOURS / 2), (1, HOURS / 3), (1, HOURS / 4), (1, HOURS / 6)];
const GUESSES: usize = 78;
/// Guesses that were kept before hours could come again within a day: the first of them.
const GUESSES_ONCE_A_DAY: usize = 2 * HOURS;
/// The share of a day's changes that a guess puts into its hours; the rest is even.
const IN_HOURS: f32 = 0.85;
/// How likely it is, before anything was seen, that there are no such hours.
const NO_HOURS: f32 = 0.95;
/// How much better or worse than even hours a guess can have foretold, in nats, and what a gap that
/// shows anything leaves of older ones: so a rhythm that ends is forgotten.
const FORETOLD: (f32, f32) = (-10.0, 15.0);
const FORETOLD_KEEP: f32 = 0.99;
/// Gaps in which the guesses differ by less, in nats, show nothing.
const TELLS: f32 = 0.05;
/// Steps in a nat as it is kept.
const NAT_STEPS: f32 = 10.0;
/// Days differ for many reasons beside their weekday.
const WEEKDAYS_DIFFER: Doubt = Doubt { least: 12.0, sure: 6.0 };
/// Changes of one day that count at most: an edit of many pages at once is not a rhythm.
const DAY_MOST: f32 = 4.0;
/// Until a weekday has shown this many changes, it is held to the pace of the group above: without
/// a rhythm, chance alone moves it by a fifth at most.
const HOLD: f32 = 8.0;
/// Gaps of more days say next to nothing about hours.
const LONGEST_GAP_S: i64 = 2 * DAY_S;
/// An hour that runs so many times as fast as the mean is waited for to its end, and named.
const PEAK: f32 = 1.5;
/// Hours that are waited for at most, and hours that are worth naming.
const LONGEST_PEAK: usize = 6;
/// No hour and no weekday is taken to run slower than this.
const SLOWEST: f32 = 0.05;

/// Hours in which most changes come.
#[derive(Debug, Clone, Copy)]
struct Guess {
    first: usize,
    length: usize,
    every: usize,
}

impl Guess {
    fn all() -> impl Iterator<Item = Self> {
        SHAPES
            .into_iter()
            .flat_map(|(length, every)| (0..every).map(move |first| Self { first, length, every }))
    }

    fn hours(self) -> impl Iterator<Item = usize> {
        let starts = (self.first..HOURS).step_by(self.every);
        starts.flat_map(move |start| (start..start + self.length).map(|hour| hour % HOURS))
    }

    /// How many times as many hours a day has.
    fn rarity(self) -> f32 {
        self.every as f32 / self.length as f32
    }
}

/// Changes credited, and how many were expected if all hours (or days) were alike.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Part {
    changes: f32,
    expected: f32,
}

impl Part {
    fn add_day(&mut self, changes: f32, expected: f32) {
        let weight = (DAY_MOST / changes.max(expected).max(f32::MIN_POSITIVE)).min(1.0);
        self.changes += weight * changes;
        self.expected += weight * expected;
    }
}

/// The hours of the day, or the days of the week, of one group.
#[derive(Debug, Clone, PartialEq)]
struct Wheel<const N: usize> {
    parts: [Part; N],
    /// How fast each runs; the mean is 1.
    paces: [f32; N],
}

impl<const N: usize> Wheel<N> {
    const EVEN: Self = Self { parts: [Part { changes: 0.0, expected: 0.0 }; N], paces: [1.0; N] };

    fn fade(&mut self, keep: f32) {
        for part in &mut self.parts {
            part.changes *= keep;
            part.expected *= keep;
        }
    }

    /// How fast each runs by what was seen here and what is still open, held to the paces of the
    /// group above.
    fn shown(&self, above: &[f32; N], open: &[Part; N], hold: f32) -> [f32; N] {
        let mut paces = *above;
        for (pace, (part, open)) in paces.iter_mut().zip(self.parts.iter().zip(open)) {
            let (changes, expected) = (part.changes + open.changes, part.expected + open.expected);
            *pace = ((hold * *pace + changes) / (hold + expected)).max(SLOWEST);
        }
        let mean = paces.iter().sum::<f32>() / N as f32;
        paces.map(|pace| pace / mean)
    }

    /// Whether its parts differ by more than chance explains.
    fn differ(&self, open: &[Part; N], doubt: &Doubt) -> bool {
        let whole = |take: fn(&Part) -> f32| self.parts.iter().chain(open).map(take).sum::<f32>();
        let share = whole(|part| part.changes) / whole(|part| part.expected).max(f32::MIN_POSITIVE);
        let mut surprise = 0.0;
        for (part, open) in self.parts.iter().zip(open) {
            let usual = share * (part.expected + open.expected);
            if usual < doubt.least {
                return false;
            }
            surprise += (part.changes + open.changes - usual).powi(2) / usual;
        }
        surprise > doubt.sure * N as f32
    }

    fn is_silent(&self) -> bool {
        self.parts.iter().all(|part| part.expected == 0.0)
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        for take in [|part: &Part| part.changes, |part: &Part| part.expected] {
            let numbers = self.parts.each_ref().map(|part| Rough::new(take(part)));
            column::write(bytes, &numbers, as_the_last);
        }
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let mut wheel = Self::EVEN;
        let changes = column::read(reader, N, as_the_last)?;
        let expected = column::read(reader, N, as_the_last)?;
        for (part, (changes, expected)) in wheel.parts.iter_mut().zip(changes.iter().zip(expected))
        {
            *part = Part { changes: changes.value(), expected: expected.value() };
        }
        Some(wheel)
    }
}

fn as_the_last(before: &[Rough]) -> Rough {
    before.last().copied().unwrap_or(Rough(0))
}

/// The hours of the day in which most changes come, as far as that is known.
#[derive(Debug, Clone, PartialEq)]
struct BusyHours {
    /// How much better than even hours each guess foretold whether gaps saw a change, in nats.
    foretold: [f32; GUESSES],
    /// How fast each hour runs; the mean is 1.
    paces: [f32; HOURS],
}

impl BusyHours {
    const EVEN: Self = Self { foretold: [0.0; GUESSES], paces: [1.0; HOURS] };

    /// Sets the paces from the guesses, each by how likely it is, and from the paces of the group
    /// above where none is.
    fn follow(&mut self, above: &[f32; HOURS]) {
        let prior = (1.0 - NO_HOURS) / GUESSES as f32;
        let weights = self.foretold.map(|nats| prior * nats.exp());
        let whole = NO_HOURS + weights.iter().sum::<f32>();
        self.paces = above.map(|pace| pace * NO_HOURS / whole);
        for (guess, weight) in Guess::all().zip(weights) {
            let share = weight / whole;
            self.paces.iter_mut().for_each(|pace| *pace += share * (1.0 - IN_HOURS));
            guess.hours().for_each(|hour| self.paces[hour] += share * IN_HOURS * guess.rarity());
        }
    }

    /// Notes how well the guesses foretold a gap, with so many changes expected in each hour of the
    /// day if all were alike.
    fn saw(&mut self, even: &[f32; HOURS], changed: bool) {
        let all: f32 = even.iter().sum();
        let usual = chance_log(all, changed);
        let mut told = [0.0; GUESSES];
        for (guess, told) in Guess::all().zip(&mut told) {
            let inside = guess.rarity() * guess.hours().map(|hour| even[hour]).sum::<f32>();
            *told = chance_log((1.0 - IN_HOURS) * all + IN_HOURS * inside, changed) - usual;
        }
        if told.iter().all(|told| told.abs() < TELLS) {
            return;
        }
        let (worst, best) = FORETOLD;
        let mut beyond: f32 = 0.0;
        for (foretold, told) in self.foretold.iter_mut().zip(told) {
            *foretold = *foretold * FORETOLD_KEEP + told;
            beyond = beyond.max(*foretold - best);
        }
        // The best guess stays at the bound, and the others below it by as much as before.
        self.foretold.iter_mut().for_each(|nats| *nats = (*nats - beyond).max(worst));
    }

    fn is_silent(&self) -> bool {
        self.foretold.iter().all(|nats| *nats == 0.0)
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        let code = |nats: &f32| Rough(((nats - FORETOLD.0) * NAT_STEPS).round() as u8);
        column::write(bytes, &self.foretold.each_ref().map(code), as_the_last);
    }

    fn read(reader: &mut Reader<'_>, guesses: usize) -> Option<Self> {
        let codes = column::read(reader, guesses, as_the_last)?;
        let mut hours = Self::EVEN;
        for (nats, code) in hours.foretold.iter_mut().zip(codes) {
            *nats = (f32::from(code.0) / NAT_STEPS + FORETOLD.0).min(FORETOLD.1);
        }
        Some(hours)
    }
}

/// A group's rhythm, in UTC.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rhythm {
    hours: BusyHours,
    week: Wheel<WEEKDAYS>,
    /// Share of a day's changes before each hour.
    before: [f32; HOURS + 1],
    /// Whether hours differ enough to plan by them.
    has_peak: bool,
}

impl Rhythm {
    pub(crate) const EVEN: Self = Self {
        hours: BusyHours::EVEN,
        week: Wheel::EVEN,
        before: [0.0; HOURS + 1],
        has_peak: false,
    };

    pub(crate) const EVEN_WEEK: [f32; WEEKDAYS] = [1.0; WEEKDAYS];

    /// The rhythm of a group that showed none itself, below another.
    pub(crate) fn below(above: Option<&Self>) -> Self {
        let mut rhythm = Self::EVEN;
        rhythm.follow(above, std::iter::empty());
        rhythm
    }

    /// Sets all paces from what was seen, from the days that are still open (the day, its changes,
    /// and those expected of it), and from the group above.
    pub(crate) fn follow(
        &mut self,
        above: Option<&Self>,
        open: impl Iterator<Item = (i64, f32, f32)>,
    ) {
        let mut days = [Part::default(); WEEKDAYS];
        open.for_each(|(day, changes, expected)| days[weekday(day)].add_day(changes, expected));
        self.hours.follow(&above.map_or([1.0; HOURS], |above| above.hours.paces));
        let week_above = above.map_or([1.0; WEEKDAYS], |above| above.week.paces);
        self.week.paces = match self.week.differ(&days, &WEEKDAYS_DIFFER) {
            true => self.week.shown(&week_above, &days, HOLD),
            false => week_above,
        };
        let mut sum = 0.0;
        for (hour, pace) in self.hours.paces.iter().enumerate() {
            self.before[hour] = sum / HOURS as f32;
            sum += pace;
        }
        self.before[HOURS] = 1.0;
        self.has_peak = self.hours.paces.iter().any(|pace| *pace >= PEAK);
    }

    /// Lets what was seen fade.
    pub(crate) fn fade(&mut self, keep: f32) {
        self.week.fade(keep);
    }

    /// Share of a day's changes before a second of the day.
    pub(crate) fn share_before(&self, second: i64) -> f32 {
        if !self.has_peak {
            return second as f32 / DAY_S as f32;
        }
        let hour = (second / HOUR_S) as usize;
        let part = (second % HOUR_S) as f32 / HOUR_S as f32;
        match hour {
            HOURS.. => 1.0,
            _ => self.before[hour] + part * (self.before[hour + 1] - self.before[hour]),
        }
    }

    /// How fast a day runs by its weekday.
    pub(crate) fn of_day(&self, day: i64) -> f32 {
        Self::in_week(&self.week.paces, day)
    }

    /// How fast a day runs in a week of such paces.
    pub(crate) fn in_week(week: &[f32; WEEKDAYS], day: i64) -> f32 {
        week[weekday(day)]
    }

    pub(crate) fn week(&self) -> &[f32; WEEKDAYS] {
        &self.week.paces
    }

    /// Takes a day's changes, and those expected of it if all weekdays were alike.
    pub(crate) fn saw_day(&mut self, day: i64, changes: f32, expected: f32) {
        self.week.parts[weekday(day)].add_day(changes, expected);
    }

    /// Notes what a gap showed of its hours. `per_day` is the expected number of changes a day.
    pub(crate) fn saw_hours(&mut self, (from_s, to_s): (i64, i64), per_day: f32, changed: bool) {
        let is_whole = (to_s - from_s) % DAY_S == 0;
        if is_whole || to_s - from_s > LONGEST_GAP_S {
            return;
        }
        let mut even = [0.0; HOURS];
        let mut at_s = from_s;
        while at_s < to_s {
            let end_s = ((at_s.div_euclid(HOUR_S) + 1) * HOUR_S).min(to_s);
            even[hour_of(at_s)] += per_day * (end_s - at_s) as f32 / DAY_S as f32;
            at_s = end_s;
        }
        self.hours.saw(&even, changed);
    }

    /// The end of the hours of many changes that a time is in; the time itself in other hours.
    pub(crate) fn after_peak(&self, at_s: i64) -> i64 {
        if !self.has_peak {
            return at_s;
        }
        let is_peak = |at_s: i64| self.hours.paces[hour_of(at_s)] >= PEAK;
        let mut end_s = at_s;
        for _ in 0..LONGEST_PEAK {
            // A visit at the very end of an hour sees all of it.
            if !is_peak(end_s - 1) || end_s.rem_euclid(HOUR_S) == 0 && !is_peak(end_s) {
                break;
            }
            end_s = (end_s.div_euclid(HOUR_S) + 1) * HOUR_S;
        }
        end_s
    }

    /// The time at which so many changes are expected from a time on, if a day has `rate` by the
    /// clock and `bulk` beside it.
    pub(crate) fn reach(&self, from_s: i64, missing: f32, (rate, bulk): (f32, f32)) -> i64 {
        let plain_s = |missing: f32| (f64::from(missing / (rate + bulk)) * DAY_S as f64) as i64;
        let (mut left, mut day) = (missing.max(0.0), from_s.div_euclid(DAY_S));
        let mut before = self.share_before(from_s.rem_euclid(DAY_S));
        for _ in 0..2 * WEEKDAYS {
            let of_day = rate * self.of_day(day) + bulk;
            let rest = of_day * (1.0 - before);
            if rest >= left {
                return day * DAY_S + self.second_of(before + left / of_day.max(f32::MIN_POSITIVE));
            }
            (left, day, before) = (left - rest, day + 1, 0.0);
        }
        (day * DAY_S).saturating_add(plain_s(left))
    }

    /// The second of a day before which this share of its changes is.
    fn second_of(&self, share: f32) -> i64 {
        if !self.has_peak {
            return (share * DAY_S as f32) as i64;
        }
        let hour = self.before.partition_point(|before| *before <= share).clamp(1, HOURS) - 1;
        let span = self.before[hour + 1] - self.before[hour];
        let part = ((share - self.before[hour]) / span.max(f32::MIN_POSITIVE)).clamp(0.0, 1.0);
        hour as i64 * HOUR_S + (part * HOUR_S as f32) as i64
    }

    /// The hours in which most changes come, from the first to the end of the last, if they are few.
    pub(crate) fn busy_hours(&self) -> Option<(u8, u8)> {
        let paces = &self.hours.paces;
        let is_peak = |hour: usize| paces[hour % HOURS] >= PEAK;
        let first = (0..HOURS).max_by(|a, b| paces[*a].total_cmp(&paces[*b]))?;
        if !is_peak(first) {
            return None;
        }
        let before = (1..HOURS).take_while(|&back| is_peak(first + HOURS - back)).count();
        let after = (1..HOURS).take_while(|&on| is_peak(first + on)).count();
        let length = before + 1 + after;
        let start = (first + HOURS - before) % HOURS;
        let share = (0..length).map(|on| paces[(start + on) % HOURS]).sum::<f32>() / HOURS as f32;
        let end = (start + length - 1) % HOURS + 1;
        (length <= LONGEST_PEAK && share > 0.5).then_some((start as u8, end as u8))
    }

    pub(crate) fn is_silent(&self) -> bool {
        self.hours.is_silent() && self.week.is_silent()
    }

    pub(crate) fn write(&self, bytes: &mut Vec<u8>) {
        self.hours.write(bytes);
        self.week.write(bytes);
    }

    /// Reads what was seen; the paces are to be set from it. Before hours were guessed, changes and
    /// expected ones were kept for each of them, which are left out.
    pub(crate) fn read(reader: &mut Reader<'_>, kept: KeptHours) -> Option<Self> {
        let hours = match kept {
            KeptHours::Sums => Wheel::<HOURS>::read(reader).map(|_| BusyHours::EVEN)?,
            KeptHours::OnceADay => BusyHours::read(reader, GUESSES_ONCE_A_DAY)?,
            KeptHours::Guesses => BusyHours::read(reader, GUESSES)?,
        };
        Some(Self { hours, week: Wheel::read(reader)?, ..Self::EVEN })
    }
}

/// How the hours of a rhythm were kept, by the number that says so: once as sums, then as guesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeptHours {
    Sums = 0,
    OnceADay = 1,
    Guesses = 2,
}

impl KeptHours {
    pub(crate) fn from_number(number: u64) -> Option<Self> {
        [Self::Sums, Self::OnceADay, Self::Guesses].into_iter().find(|kept| *kept as u64 == number)
    }
}

/// The logarithm of the chance that a gap with so many expected changes showed what it did.
fn chance_log(expected: f32, changed: bool) -> f32 {
    if changed { (-(-expected.max(1e-6)).exp_m1()).ln() } else { -expected }
}

fn hour_of(at_s: i64) -> usize {
    (at_s.rem_euclid(DAY_S) / HOUR_S) as usize
}

fn weekday(day: i64) -> usize {
    day.rem_euclid(WEEKDAYS as i64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses_cover_every_shape_and_weigh_a_whole_day() {
        assert_eq!(Guess::all().count(), GUESSES);
        for guess in Guess::all() {
            let hours: Vec<usize> = guess.hours().collect();
            assert!(hours.iter().all(|hour| *hour < HOURS), "{guess:?}");
            assert_eq!(hours.len() as f32 * guess.rarity(), HOURS as f32, "{guess:?}");
        }
    }
}
