//! The price of a visit, moved so that a budget is met without knowing the future.

use crate::{DAY_S, RevisitError};

/// Days over which the arrival of new pages is averaged, and the share of the known pages that one
/// day adds to it at most: pages that come all at once are not a sign of more.
const ARRIVAL_DAYS: f64 = 30.0;
const ARRIVALS_AT_ONCE: f64 = 0.01;
/// Days that the expectation is trusted for before what was done counts.
const TRUST_DAYS: f64 = 0.5;
/// Second visits come within a week, if they take no more than this share of what is left.
pub(super) const EXPLORE_DAYS: f64 = 7.0;
const EXPLORE_SHARE: f64 = 0.5;
/// The share of all visits that pages seen twice have at least.
const KNOWN_SHARE: f64 = 0.5;
/// By how much more pages may ask for than a day has: those that are worth most are chosen of them,
/// and hardly a visit is left over.
const ASKED_SHARE: f64 = 1.3;
/// Days over which the usual need of a page is averaged: at most, and as a share of the days that pages
/// are known, since what is asked for falls while they are learnt.
const USUAL_DAYS: f64 = 60.0;
const USUAL_SHARE: f64 = 0.3;
/// How far a budget in all follows the usual need, and not that of the day: a power. And by how much
/// the two may differ at most.
const CALM: f64 = 0.7;
const CALM_MOST: f64 = 20.0;
/// Numbers that are kept of a price, and how many were before the usual need was known.
const NUMBERS: usize = 15;
const NUMBERS_BEFORE: usize = 13;
/// The flag of a price that is kept with all its numbers.
const HAS_USUAL: u8 = 4;
/// Least and most expected changes at which a visit pays.
const BOUNDS: (f64, f64) = (0.01, 20.0);

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
/// One rule for every budget: known pages share the visits per day that first and second visits
/// leave. `need` is what they ask for at a price of 1, kept up to date with every visit; visits fall
/// with the price about in proportion, and the days so far show by how much reality differs.
#[derive(Debug, Clone)]
pub(super) struct Price {
    /// The price without a budget, and until the first day has shown what there is.
    usual: f64,
    /// Visits per day at a price of 1, of pages that were seen twice.
    pub(super) need: f64,
    /// Pages that were seen once, and all.
    once: f64,
    pages: f64,
    budget: Option<Budget>,
    /// Visits per day that a page can have: one in every slot.
    most_a_page: f64,
    /// Days over which reality counts.
    days: f64,
    /// By how much more is expected to be asked for than the need says, before days have shown it.
    caution: f64,
    /// Visits per day that known pages may have; 0 before it is known.
    per_day: f64,
    spent: f64,
    rolled_s: Option<i64>,
    /// Visits to known pages and first visits since the last roll.
    revisits: f64,
    new_pages: f64,
    /// Visits to known pages that were done and expected, the past fading.
    done: f64,
    expected: f64,
    /// New pages per day, the past fading.
    arrivals: f64,
    /// What a page that was seen twice usually asks for, per day at a price of 1; 0 before it is known.
    usual_need: f64,
    /// Days that pages are known, on average.
    known_days: f64,
}

impl Price {
    pub(super) fn new(days: f64, caution: f64, most_a_page: f64) -> Self {
        Self {
            usual: 0.8,
            need: 0.0,
            once: 0.0,
            pages: 0.0,
            budget: None,
            most_a_page,
            days,
            caution,
            per_day: 0.0,
            spent: 0.0,
            rolled_s: None,
            revisits: 0.0,
            new_pages: 0.0,
            done: 0.0,
            expected: 0.0,
            arrivals: 0.0,
            usual_need: 0.0,
            known_days: 0.0,
        }
    }

    /// The price as bytes: one flag byte and the numbers.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let flags = u8::from(self.budget.is_some()) | u8::from(self.rolled_s.is_some()) << 1;
        let mut bytes = vec![flags | HAS_USUAL];
        for number in self.numbers() {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    fn numbers(&self) -> [f64; NUMBERS] {
        let (visits, end_s) = self.budget.map_or((0.0, 0.0), Budget::to_numbers);
        [
            self.need,
            self.once,
            self.pages,
            visits,
            end_s,
            self.per_day,
            self.spent,
            self.rolled_s.unwrap_or(0) as f64,
            self.revisits,
            self.new_pages,
            self.done,
            self.expected,
            self.arrivals,
            self.usual_need,
            self.known_days,
        ]
    }

    /// Reads what [`Price::to_bytes`] wrote, and returns the bytes after it.
    pub(super) fn read<'a>(&self, bytes: &'a [u8]) -> Result<(Self, &'a [u8]), RevisitError> {
        let damaged = || RevisitError::BadShared { what: "price of a visit" };
        let (&flags, bytes) = bytes.split_first().ok_or_else(damaged)?;
        let kept = if flags & HAS_USUAL != 0 { NUMBERS } else { NUMBERS_BEFORE };
        let (head, rest) = bytes.split_at_checked(8 * kept).ok_or_else(damaged)?;
        let mut numbers = [0.0; NUMBERS];
        for (number, bytes) in numbers.iter_mut().zip(head.as_chunks().0) {
            *number = f64::from_le_bytes(*bytes);
        }
        if numbers.iter().any(|number| !number.is_finite()) || flags > 7 {
            return Err(damaged());
        }
        let [need, once, pages, visits, end_s, per_day, spent, rolled_s, ..] = numbers;
        let [.., revisits, new_pages, done, expected, arrivals, usual_need, known_days] = numbers;
        let price = Self {
            need,
            once,
            pages,
            budget: (flags & 1 != 0).then(|| Budget::from_numbers(visits, end_s)),
            per_day,
            spent,
            rolled_s: (flags & 2 != 0).then_some(rolled_s as i64),
            revisits,
            new_pages,
            done,
            expected,
            arrivals,
            usual_need,
            known_days,
            ..self.clone()
        };
        Ok((price, rest))
    }

    /// The budget, if there is one.
    pub(super) fn budget(&self) -> Option<Budget> {
        self.budget
    }

    pub(super) fn threshold(&self) -> f64 {
        if self.budget.is_none() || self.per_day <= 0.0 {
            return self.usual;
        }
        (self.skew() * self.need_to_meet() / self.per_day).clamp(BOUNDS.0, BOUNDS.1)
    }

    /// The need that the budget is to meet. A budget in all can give a busy time more visits than a
    /// quiet one, so its price follows what pages usually ask for more than what they ask for now.
    fn need_to_meet(&self) -> f64 {
        let usual = self.usual_need * self.seen_twice();
        if usual <= 0.0 || !matches!(self.budget, Some(Budget::InAll { .. })) {
            return self.need;
        }
        let ratio = usual / self.need.max(f64::MIN_POSITIVE);
        self.need * ratio.clamp(1.0 / CALM_MOST, CALM_MOST).powf(CALM)
    }

    fn seen_twice(&self) -> f64 {
        (self.pages - self.once).max(0.0)
    }

    pub(super) fn set_threshold(&mut self, threshold: f64) {
        self.usual = threshold.clamp(BOUNDS.0, BOUNDS.1);
    }

    /// Starts a period; what was spent before does not count.
    pub(super) fn begin(&mut self, budget: Option<Budget>) {
        self.budget = budget;
        self.spent = 0.0;
    }

    /// Counts a visit to a page that was visited so often before. One that came `late` times as late
    /// as planned shows that so many times as many visits are asked for.
    pub(super) fn visited(&mut self, before: u32, late: f64) {
        self.spent += 1.0;
        match before {
            0 => {
                self.new_pages += 1.0;
                self.pages += 1.0;
                self.once += 1.0;
            }
            1 => self.once = (self.once - 1.0).max(0.0),
            _ if matches!(self.budget, Some(Budget::PerDay(_))) => self.revisits += late,
            _ => self.revisits += 1.0,
        }
    }

    /// A page that asked for `need` is gone.
    pub(super) fn leave(&mut self, need: f64, visits: u32) {
        self.need = (self.need - need).max(0.0);
        self.once -= f64::from(u8::from(visits == 1));
        self.pages -= 1.0;
    }

    /// It is back.
    pub(super) fn rejoin(&mut self, need: f64, visits: u32) {
        self.need += need;
        self.once += f64::from(u8::from(visits == 1));
        self.pages += 1.0;
    }

    /// Whether nothing is left.
    pub(super) fn is_spent(&self) -> bool {
        matches!(self.budget, Some(Budget::InAll { visits, .. }) if self.spent >= visits)
    }

    /// Visits per day that all pages ask for at a price of 1, as far as the days so far show.
    pub(super) fn need_per_day(&self) -> f64 {
        self.skew() * self.need + self.once / EXPLORE_DAYS
    }

    /// Days within which a page that was seen once is seen again.
    pub(super) fn explore_days(&self) -> f64 {
        let affordable = match self.budget {
            None => return EXPLORE_DAYS,
            Some(Budget::InAll { visits, .. }) => EXPLORE_SHARE * (visits - self.spent),
            Some(Budget::PerDay(visits)) => EXPLORE_SHARE * visits * EXPLORE_DAYS,
        };
        EXPLORE_DAYS * (self.once / affordable.max(1e-9)).max(1.0)
    }

    /// Sets the price for the days to come.
    pub(super) fn roll(&mut self, now_s: i64) {
        let Some(last_s) = self.rolled_s.replace(now_s) else { return };
        let days = (now_s - last_s) as f64 / DAY_S as f64;
        if days <= 0.0 {
            return;
        }
        let is_first = self.per_day <= 0.0;
        let (revisits, new_pages) =
            (std::mem::take(&mut self.revisits), std::mem::take(&mut self.new_pages));
        if !is_first {
            let keep = (-days / self.days).exp();
            // Below a price of 1, pages ask for more than their slots allow.
            let most = self.seen_twice() * self.most_a_page;
            let expected = (self.need / self.threshold()).min(most) * days;
            self.done = self.done * keep + revisits;
            self.expected = self.expected * keep + expected;
            let most = (3.0 * self.arrivals + ARRIVALS_AT_ONCE * self.pages) * days;
            let keep = (-days / ARRIVAL_DAYS).exp();
            self.arrivals = self.arrivals * keep + new_pages.min(most) / days * (1.0 - keep);
        }
        self.follow_usual(new_pages, days);
        self.per_day = self.allowed_per_day(now_s);
    }

    /// Takes the days since the last roll, and the pages that they brought, into the usual need.
    fn follow_usual(&mut self, new_pages: f64, days: f64) {
        let old = 1.0 - (new_pages / self.pages.max(1.0)).min(1.0);
        self.known_days = (self.known_days + days) * old;
        let seen_twice = self.seen_twice();
        if seen_twice < 1.0 {
            return;
        }
        let over = (USUAL_SHARE * self.known_days).clamp(1.0, USUAL_DAYS);
        let keep = if self.usual_need > 0.0 { (-days / over).exp() } else { 0.0 };
        self.usual_need = self.usual_need * keep + self.need / seen_twice * (1.0 - keep);
    }

    /// Visits per day that first and second visits leave to known pages.
    fn allowed_per_day(&self, now_s: i64) -> f64 {
        let (all, others) = match self.budget {
            None => return 0.0,
            Some(Budget::InAll { visits, end_s }) => {
                let days_left = ((end_s - now_s) as f64 / DAY_S as f64).max(1.0);
                let left = (visits - self.spent).max(0.0);
                let once = self.once.min(EXPLORE_SHARE * left);
                (left / days_left, self.arrivals + once / days_left)
            }
            Some(Budget::PerDay(visits)) => {
                let once = (self.once / EXPLORE_DAYS).min(EXPLORE_SHARE * visits);
                (visits * ASKED_SHARE, self.arrivals + once)
            }
        };
        (all - others).max(KNOWN_SHARE * all).max(1e-9)
    }

    /// Visits that were asked for over those that the need promised.
    fn skew(&self) -> f64 {
        let trust = TRUST_DAYS * self.per_day + 1e-9;
        (self.done + self.caution * trust) / (self.expected + trust)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A world whose visits are twice what the need promises.
    fn spend(visits: f64) -> (f64, i64) {
        let mut price = Price::new(25.0, 2.0, 24.0);
        (price.need, price.pages) = (100.0, 50.0);
        price.begin(Some(Budget::InAll { visits, end_s: 365 * DAY_S }));
        let (mut spent, mut last_day) = (0.0, 0);
        for day in 0..365 {
            price.roll(day * DAY_S);
            let today = 2.0 * price.need / price.threshold();
            for _ in 0..today as u32 {
                if !price.is_spent() {
                    price.visited(9, 1.0);
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
        let mut price = Price::new(20.0, 1.0, 24.0);
        (price.need, price.pages) = (100.0, 50.0);
        price.begin(Some(Budget::PerDay(50.0)));
        for day in 0..days {
            price.roll(day * DAY_S);
            let asked = 5.0 * price.need / price.threshold();
            (0..asked.min(50.0) as u32).for_each(|_| price.visited(9, asked / 50.0));
        }
        price.threshold()
    }

    #[test]
    fn a_price_rises_while_days_are_full_until_pages_ask_for_what_there_is() {
        let after = [20, 60, 400].map(price_under_pressure);
        assert!(after[0] > 2.0 && after[1] > after[0], "{after:?}");
        // At a price of 7.7 they ask for 65 visits a day, of which the best 50 are made.
        assert!((6.2..10.0).contains(&after[2]), "{after:?}");
    }

    #[test]
    fn first_visits_leave_at_least_half_of_a_day_to_known_pages() {
        let mut price = Price::new(20.0, 1.0, 24.0);
        (price.need, price.pages) = (100.0, 50.0);
        price.begin(Some(Budget::PerDay(50.0)));
        for day in 0..400 {
            price.roll(day * DAY_S);
            (0..200).for_each(|_| price.visited(0, 1.0));
            price.done = price.expected;
        }
        assert!(price.arrivals > 150.0, "{}", price.arrivals);
        assert!(!price.is_spent());
        assert!(price.threshold() < 4.5, "{}", price.threshold());
    }

    #[test]
    fn a_busy_time_gets_more_of_a_budget_in_all_than_a_quiet_one() {
        let mut price = Price::new(20.0, 1.0, 24.0);
        (price.need, price.pages) = (100.0, 50.0);
        price.begin(Some(Budget::InAll { visits: 36_500.0, end_s: 365 * DAY_S }));
        let mut made = Vec::new();
        for day in 0..300 {
            price.need = if (200..210).contains(&day) { 400.0 } else { 100.0 };
            price.roll(day * DAY_S);
            let today = price.need / price.threshold();
            (0..today as u32).for_each(|_| price.visited(9, 1.0));
            made.push(today);
        }
        let (quiet, busy) = (made[195], made[200..205].iter().sum::<f64>() / 5.0);
        assert!(busy > 1.8 * quiet, "{quiet} {busy}");
        assert!(made[299] > 0.7 * quiet, "{quiet} {}", made[299]);
    }

    #[test]
    fn a_price_that_was_kept_without_its_usual_need_is_read() {
        let mut price = Price::new(25.0, 2.0, 24.0);
        (price.need, price.pages, price.arrivals) = (100.0, 7.0, 3.0);
        let mut old = price.to_bytes();
        old[0] &= !HAS_USUAL;
        old.truncate(1 + 8 * NUMBERS_BEFORE);
        old.push(9);
        let (read, rest) = price.read(&old).unwrap();
        assert_eq!((read.to_bytes(), rest), (price.to_bytes(), &[9][..]));
    }

    #[test]
    fn a_price_comes_back_from_its_bytes() {
        let mut price = Price::new(25.0, 2.0, 24.0);
        (price.need, price.pages) = (100.0, 50.0);
        price.begin(Some(Budget::InAll { visits: 9_000.0, end_s: 90 * DAY_S }));
        (0..20).for_each(|day| price.roll(day * DAY_S));
        price.visited(0, 1.0);
        let bytes = [price.to_bytes(), vec![1, 2]].concat();
        let (read, rest) = Price::new(25.0, 2.0, 24.0).read(&bytes).unwrap();
        assert_eq!((read.to_bytes(), rest), (price.to_bytes(), &[1, 2][..]));
        assert_eq!(read.budget(), price.budget());
        price.begin(Some(Budget::PerDay(7.5)));
        let (read, _) = Price::new(25.0, 2.0, 24.0).read(&price.to_bytes()).unwrap();
        assert_eq!(read.budget(), Some(Budget::PerDay(7.5)));
        assert!(price.read(&bytes[..40]).is_err());
    }

    #[test]
    fn without_a_budget_the_price_stays() {
        let mut price = Price::new(25.0, 2.0, 24.0);
        price.need = 1e6;
        (0..100).for_each(|day| price.roll(day * DAY_S));
        assert_eq!(price.threshold(), 0.8);
    }
}
