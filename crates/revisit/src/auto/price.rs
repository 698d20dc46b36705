//! The price of a visit, moved so that a budget is met without knowing the future.

use crate::{DAY_S, RevisitError};

/// Days over which the arrival of new pages is averaged.
const ARRIVAL_DAYS: f64 = 30.0;
/// Days that the expectation is trusted for before what was done counts.
const TRUST_DAYS: f64 = 0.5;
/// Numbers that are kept of a price.
const NUMBERS: usize = 11;

/// A number of visits to be spent until a time; a budget per day is one that is renewed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// Visits that may be spent from now on, first visits of new pages included.
    pub visits: f64,
    /// When the period ends.
    pub end_s: i64,
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
        let budget = self.budget.unwrap_or(Budget { visits: 0.0, end_s: 0 });
        [
            self.threshold,
            self.need,
            budget.visits,
            budget.end_s as f64,
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
            budget: (head[0] & 2 != 0).then_some(Budget { visits, end_s: end_s as i64 }),
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
        self.budget.is_some_and(|budget| self.spent >= budget.visits)
    }

    /// Sets the price for the days to come.
    pub(super) fn roll(&mut self, now_s: i64) {
        let Some(last_s) = self.rolled_s.replace(now_s) else { return };
        let days = (now_s - last_s) as f64 / DAY_S as f64;
        if days <= 0.0 {
            return;
        }
        let keep = (-days / self.days).exp();
        self.done = self.done * keep + std::mem::take(&mut self.revisits);
        self.expected = self.expected * keep + self.need / self.threshold * days;
        let new_pages = std::mem::take(&mut self.new_pages);
        // The pages of the first day are a stock, not a flow.
        if self.started {
            let keep = (-days / ARRIVAL_DAYS).exp();
            self.arrivals = self.arrivals * keep + new_pages / days * (1.0 - keep);
        }
        self.follow_budget(now_s, days);
    }

    fn follow_budget(&mut self, now_s: i64, days: f64) {
        let Some(budget) = self.budget else { return };
        let days_left = ((budget.end_s - now_s) as f64 / DAY_S as f64).max(1.0);
        let left = budget.visits - self.spent - self.arrivals * days_left;
        let per_day = (left / days_left).max(1.0);
        let trust = per_day * TRUST_DAYS;
        let skew = (self.done + trust) / (self.expected + trust);
        let wanted = (skew * self.need / per_day).clamp(0.01, 20.0);
        let first = !std::mem::replace(&mut self.started, true);
        // Towards the end there is less and less time to make up for a wrong price.
        let slow = self.days.min(days_left / 3.0).max(1.0);
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
        price.begin(Some(Budget { visits, end_s: 365 * DAY_S }));
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

    #[test]
    fn a_price_comes_back_from_its_bytes() {
        let mut price = Price::new(25.0, 2.0);
        price.need = 100.0;
        price.begin(Some(Budget { visits: 9_000.0, end_s: 90 * DAY_S }));
        (0..20).for_each(|day| price.roll(day * DAY_S));
        price.visited(true);
        let bytes = [price.to_bytes(), vec![1, 2]].concat();
        let (read, rest) = Price::new(25.0, 2.0).read(&bytes).unwrap();
        assert_eq!((read.to_bytes(), rest), (price.to_bytes(), &[1, 2][..]));
        assert_eq!(read.budget(), price.budget());
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
