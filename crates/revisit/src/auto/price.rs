//! The price of a visit, moved so that a budget is met without knowing the future.

use crate::{DAY_S, RevisitError};

/// Days over which the arrival of new pages is averaged.
const ARRIVAL_DAYS: f64 = 30.0;
/// Days that the expectation is trusted for before what was done counts.
const TRUST_DAYS: f64 = 0.5;
/// The share of a day's visits from which on the day is taken to have been full, and how much
/// more than the days before a full day is taken to have asked for.
const FULL: f64 = 0.95;
const PRESSURE: f64 = 1.2;
/// Days over which the price follows at most where no day may have more than its visits.
const PER_DAY_PACE: f64 = 7.0;
/// Full days in a row from which on pages are taken to wait.
const FULL_DAYS: f64 = 3.0;
/// Numbers that are kept of a price.
const NUMBERS: usize = 11;

/// How many visits there are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Budget {
    /// A number until a time.
    InAll {
        /// Visits that may be spent from now on, first visits of new pages included.
        visits: f64,
        /// When the period ends.
        end_s: i64,
    },
    /// A number for each day, for ever. The caller sees to it that no day has more; known pages are
    /// planned with what new ones leave, and with half of it at least.
    PerDay(f64),
}

/// Where a budget's end is kept: one per day has none.
const NO_END: f64 = -1.0;

impl Budget {
    /// Visits, and the end as a number.
    pub(crate) fn to_numbers(self) -> (f64, f64) {
        match self {
            Self::InAll { visits, end_s } => (visits, end_s as f64),
            Self::PerDay(visits) => (visits, NO_END),
        }
    }

    /// From what [`Budget::to_numbers`] gave.
    pub(crate) fn from_numbers(visits: f64, end_s: f64) -> Self {
        if end_s < 0.0 { Self::PerDay(visits) } else { Self::InAll { visits, end_s: end_s as i64 } }
    }
}

/// The price, as the expected changes at which a visit pays.
///
/// Visits per day fall with it about in proportion: `need` is their number at a price of 1, kept
/// up to date with every visit, and the days so far show by how much reality differs.
#[derive(Debug, Clone)]
pub(super) struct Price {
    threshold: f64,
    pub(super) need: f64,
    budget: Option<Budget>,
    /// Days over which the price follows.
    days: f64,
    /// By how much the first price is raised over what the need suggests.
    caution: f64,
    started: bool,
    spent: f64,
    rolled_s: Option<i64>,
    /// Revisits and new pages since the last roll.
    revisits: f64,
    new_pages: f64,
    /// Revisits done and expected, the past fading.
    done: f64,
    expected: f64,
    /// New pages per day, the past fading.
    arrivals: f64,
    /// Days in a row on which all visits were used; not kept.
    full_days: f64,
}

impl Price {
    pub(super) fn new(days: f64, caution: f64) -> Self {
        Self {
            threshold: 0.8,
            need: 0.0,
            budget: None,
            days,
            caution,
            started: false,
            spent: 0.0,
            rolled_s: None,
            revisits: 0.0,
            new_pages: 0.0,
            done: 0.0,
            expected: 0.0,
            arrivals: 0.0,
            full_days: 0.0,
        }
    }

    /// The price as bytes: one flag byte and eleven numbers.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let flags = u8::from(self.started)
            | u8::from(self.budget.is_some()) << 1
            | u8::from(self.rolled_s.is_some()) << 2;
        let mut bytes = vec![flags];
        for number in self.numbers() {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    fn numbers(&self) -> [f64; NUMBERS] {
        let (visits, end_s) = self.budget.map_or((0.0, 0.0), Budget::to_numbers);
        [
            self.threshold,
            self.need,
            visits,
            end_s,
            self.spent,
            self.rolled_s.unwrap_or(0) as f64,
            self.revisits,
            self.new_pages,
            self.done,
            self.expected,
            self.arrivals,
        ]
    }

    /// Reads what [`Price::to_bytes`] wrote, and returns the bytes after it.
    pub(super) fn read<'a>(&self, bytes: &'a [u8]) -> Result<(Self, &'a [u8]), RevisitError> {
        let damaged = || RevisitError::BadShared { what: "price of a visit" };
        let (head, rest) = bytes.split_at_checked(1 + 8 * NUMBERS).ok_or_else(damaged)?;
        let mut numbers = [0.0; NUMBERS];
        for (number, bytes) in numbers.iter_mut().zip(head[1..].as_chunks().0) {
            *number = f64::from_le_bytes(*bytes);
        }
        if numbers.iter().any(|number| !number.is_finite()) || head[0] > 7 {
            return Err(damaged());
        }
        let [threshold, need, visits, end_s, spent, rolled_s, ..] = numbers;
        let [.., revisits, new_pages, done, expected, arrivals] = numbers;
        let price = Self {
            threshold: threshold.clamp(0.01, 20.0),
            need,
            budget: (head[0] & 2 != 0).then(|| Budget::from_numbers(visits, end_s)),
            started: head[0] & 1 != 0,
            spent,
            rolled_s: (head[0] & 4 != 0).then_some(rolled_s as i64),
            revisits,
            new_pages,
            done,
            expected,
            arrivals,
            ..self.clone()
        };
        Ok((price, rest))
    }

    /// The budget, if there is one.
    pub(super) fn budget(&self) -> Option<Budget> {
        self.budget
    }

    pub(super) fn threshold(&self) -> f64 {
        self.threshold
    }

    pub(super) fn set_threshold(&mut self, threshold: f64) {
        self.threshold = threshold.clamp(0.01, 20.0);
    }

    /// Starts a period; what was spent before does not count.
    pub(super) fn begin(&mut self, budget: Option<Budget>) {
        self.budget = budget;
        self.spent = 0.0;
    }

    /// Counts a visit.
    pub(super) fn visited(&mut self, first: bool) {
        self.spent += 1.0;
        if first { self.new_pages += 1.0 } else { self.revisits += 1.0 }
    }

    /// Whether nothing is left.
    pub(super) fn is_spent(&self) -> bool {
        matches!(self.budget, Some(Budget::InAll { visits, .. }) if self.spent >= visits)
    }

    /// Sets the price for the days to come.
    pub(super) fn roll(&mut self, now_s: i64) {
        let Some(last_s) = self.rolled_s.replace(now_s) else { return };
        let days = (now_s - last_s) as f64 / DAY_S as f64;
        if days <= 0.0 {
            return;
        }
        let keep = (-days / self.days).exp();
        let (revisits, new_pages) =
            (std::mem::take(&mut self.revisits), std::mem::take(&mut self.new_pages));
        let expected = self.need / self.threshold * days;
        let is_full = matches!(self.budget, Some(Budget::PerDay(visits))
            if revisits + new_pages >= FULL * visits * days);
        // A full day tells only that no less was asked for. Taken for what it was, it would make the
        // price fall, and ever more pages would wait for their turn. Pages that wait show as full
        // days in a row; a single one may be a day on which much changed.
        self.full_days = if is_full { self.full_days + days } else { 0.0 };
        let pressure = if self.full_days >= FULL_DAYS { PRESSURE } else { 1.0 };
        let least = expected * self.skew() * pressure;
        let asked = if is_full { revisits.max(least) } else { revisits };
        self.done = self.done * keep + asked;
        self.expected = self.expected * keep + expected;
        // The pages of the first day are a stock, not a flow.
        if self.started {
            let keep = (-days / ARRIVAL_DAYS).exp();
            self.arrivals = self.arrivals * keep + new_pages / days * (1.0 - keep);
        }
        self.follow_budget(now_s, days);
    }

    /// Visits that were asked for over those expected.
    fn skew(&self) -> f64 {
        let trust = TRUST_DAYS * self.need / self.threshold + 1e-9;
        (self.done + trust) / (self.expected + trust)
    }

    fn follow_budget(&mut self, now_s: i64, days: f64) {
        let Some(budget) = self.budget else { return };
        let (per_day, days_left) = match budget {
            Budget::InAll { visits, end_s } => {
                let days_left = ((end_s - now_s) as f64 / DAY_S as f64).max(1.0);
                let left = visits - self.spent - self.arrivals * days_left;
                ((left / days_left).max(1.0), days_left)
            }
            Budget::PerDay(visits) => ((visits - self.arrivals).max(visits / 2.0), f64::INFINITY),
        };
        let trust = per_day * TRUST_DAYS;
        let skew = (self.done + trust) / (self.expected + trust);
        let wanted = (skew * self.need / per_day).clamp(0.01, 20.0);
        let first = !std::mem::replace(&mut self.started, true);
        // Towards the end there is less and less time to make up for a wrong price.
        let pace_days = if days_left.is_finite() { self.days } else { self.days.min(PER_DAY_PACE) };
        let slow = pace_days.min(days_left / 3.0).max(1.0);
        if first {
            // The pages met at the start are all due for the first time, most of them soon.
            self.threshold = (wanted * self.caution).clamp(0.01, 20.0);
            return;
        }
        self.threshold *= (wanted / self.threshold).powf((days / slow).min(1.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A world whose visits are twice what the need promises.
    fn spend(visits: f64) -> (f64, i64) {
        let mut price = Price::new(25.0, 2.0);
        price.need = 100.0;
        price.begin(Some(Budget::InAll { visits, end_s: 365 * DAY_S }));
        let (mut spent, mut last_day) = (0.0, 0);
        for day in 0..365 {
            price.roll(day * DAY_S);
            let today = 2.0 * price.need / price.threshold();
            for _ in 0..today as u32 {
                if !price.is_spent() {
                    price.visited(false);
                    spent += 1.0;
                    last_day = day;
                }
            }
        }
        (spent, last_day)
    }

    #[test]
    fn a_budget_is_spent_though_the_need_is_misjudged() {
        for visits in [20_000.0, 60_000.0, 200_000.0] {
            let (spent, last_day) = spend(visits);
            assert!(spent <= visits && spent > 0.97 * visits, "{spent} of {visits}");
            assert!(last_day > 355, "{visits} visits were spent by day {last_day}");
        }
    }

    /// Pages ask for five times what a day has; returns the price after so many days.
    fn price_under_pressure(days: i64) -> f64 {
        let mut price = Price::new(20.0, 1.0);
        price.need = 100.0;
        price.begin(Some(Budget::PerDay(50.0)));
        for day in 0..days {
            price.roll(day * DAY_S);
            let asked = 5.0 * price.need / price.threshold();
            (0..asked.min(50.0) as u32).for_each(|_| price.visited(false));
        }
        price.threshold()
    }

    #[test]
    fn a_price_rises_while_days_are_full_until_pages_ask_for_what_there_is() {
        let after = [20, 60, 400].map(price_under_pressure);
        assert!(after[0] > 2.0 && after[1] > after[0], "{after:?}");
        // At a price of 10 they ask for 50 visits a day.
        assert!((8.0..13.0).contains(&after[2]), "{after:?}");
    }

    #[test]
    fn first_visits_leave_at_least_half_of_a_day_to_known_pages() {
        let mut price = Price::new(20.0, 1.0);
        price.need = 100.0;
        price.begin(Some(Budget::PerDay(50.0)));
        for day in 0..400 {
            price.roll(day * DAY_S);
            (0..200).for_each(|_| price.visited(true));
            price.done = price.expected;
        }
        assert!(price.arrivals > 150.0, "{}", price.arrivals);
        assert!(!price.is_spent());
        assert!(price.threshold() < 4.5, "{}", price.threshold());
    }

    #[test]
    fn a_price_comes_back_from_its_bytes() {
        let mut price = Price::new(25.0, 2.0);
        price.need = 100.0;
        price.begin(Some(Budget::InAll { visits: 9_000.0, end_s: 90 * DAY_S }));
        (0..20).for_each(|day| price.roll(day * DAY_S));
        price.visited(true);
        let bytes = [price.to_bytes(), vec![1, 2]].concat();
        let (read, rest) = Price::new(25.0, 2.0).read(&bytes).unwrap();
        assert_eq!((read.to_bytes(), rest), (price.to_bytes(), &[1, 2][..]));
        assert_eq!(read.budget(), price.budget());
        price.begin(Some(Budget::PerDay(7.5)));
        let (read, _) = Price::new(25.0, 2.0).read(&price.to_bytes()).unwrap();
        assert_eq!(read.budget(), Some(Budget::PerDay(7.5)));
        assert!(price.read(&bytes[..40]).is_err());
    }

    #[test]
    fn without_a_budget_the_price_stays() {
        let mut price = Price::new(25.0, 2.0);
        price.need = 1e6;
        (0..100).for_each(|day| price.roll(day * DAY_S));
        assert_eq!(price.threshold(), 0.8);
    }
}
