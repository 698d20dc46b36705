//! Our default: visit a page when the chance that it changed is worth the price of a visit.
//!
//! Per page a likelihood over 24 Poisson rates, one in 1,000 days to one a minute, (`grid`); the prior from the pages around it
//! (`prior`); time measured by a clock that its directory and server share (`clocks`); and one
//! price for all pages, moved so that the budget is met (`price`).

mod bytes;
mod clock;
mod clocks;
mod coded;
mod column;
mod forecast;
mod grid;
mod price;
mod prior;
mod repeats;
mod rhythm;
mod sketch;

pub use self::clocks::{ChangeClocks, ClockTuning};
pub use self::forecast::{Forecast, ForecastPoint};
pub use self::price::Budget;

use self::clock::Passed;
use self::clocks::ClosedGap;
pub(crate) use self::coded::{Coded, Rough};
use self::forecast::Spending;
pub(crate) use self::grid::{Likelihood, read_spread, write_spread};
use self::grid::{RATES, RateGrid, Spread};
use self::price::{EXPLORE_DAYS, Price};
use self::rhythm::Rhythm;
use crate::history::{Gap, Learnt, PageHistory};
use crate::page_groups::PageGroups;
use crate::policy::{Explanation, Neighbourhood};
use crate::{
    DAY_S, Limits, Next, Observation, PolicySpec, Reason, RevisitError, RevisitPolicy, Rule,
    SharedByPages,
};

/// Constants of the policy, chosen by cross-validation over sources.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AutoTuning {
    /// Constants of the shared clocks.
    pub clocks: ClockTuning,
    /// Days after which a page's own evidence counts half.
    pub memory_days: f32,
    /// Slots by which the clock is taken to run ahead, since a visit cannot wait for half a slot.
    pub lead_slots: f32,
    /// How much sooner a page with few visits is visited, to learn: 1 − this/(1 + visits).
    pub curiosity: f32,
    /// The least share of its interval after which a page comes again for the first time.
    pub stagger: f32,
    /// The rates expected before anything was seen.
    pub start: [f32; RATES],
    /// Days over which the price follows the need.
    pub price_days: f64,
    /// By how much the first price is raised, since pages met together are all due soon.
    pub caution: f64,
}

/// Rates of pages, averaged over the sources of the update logs.
const START: [f32; RATES] = [
    0.09, 0.09, 0.09, 0.09, 0.09, 0.10, 0.11, 0.11, 0.085, 0.05, 0.028, 0.012, 0.0095, 0.012,
    0.0095, 0.024, 0.006, 0.004, 0.003, 0.002, 0.0015, 0.001, 0.0007, 0.0005,
];

impl Default for AutoTuning {
    fn default() -> Self {
        Self {
            clocks: ClockTuning::default(),
            memory_days: 120.0,
            lead_slots: 0.4,
            curiosity: 1.0,
            stagger: 0.1,
            start: START,
            price_days: 20.0,
            caution: 1.5,
        }
    }
}

/// What `auto` keeps of a page beside the shared numbers: at most 31 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Belief {
    pub(crate) likelihood: Likelihood,
    /// Mean rate believed at the last visit.
    pub(crate) rate: Coded,
    /// The rate by which expected changes add up until the next visit.
    pub(crate) effective_rate: Coded,
    /// Expected changes at which the page is due, at a price of 1.
    pub(crate) threshold: Coded,
    /// Days within which it is seen again whatever its neighbours show; 0 for no such bound.
    pub(crate) again: Rough,
    /// Versions that came and went between visits, in hundredths, if changes come at even chances.
    pub(crate) missed_hundredths: u32,
    /// Whether the last visit saw a change.
    pub(crate) just_changed: bool,
}

impl Belief {
    /// What was counted by a rate that is now believed to be another counts by as much more or less.
    fn count_missed_anew(&mut self, old_rate: f32, salt: u32) {
        let factor = self.rate.value() / old_rate.max(f32::MIN_POSITIVE);
        self.missed_hundredths = dithered(factor * self.missed_hundredths as f32, salt);
    }
}

/// A whole number next to a fraction, up or down by chance, so that the mean is right.
fn dithered(number: f32, salt: u32) -> u32 {
    let dither = (salt.wrapping_mul(0x9e37_79b9) >> 8) as f32 / (1 << 24) as f32;
    (number + dither) as u32
}

/// Visits pages when the expected change is worth the price of a visit.
#[derive(Debug, Clone)]
pub struct AutoPolicy {
    tuning: AutoTuning,
    limits: Limits,
    /// 0 for the most versions in all, 0.5 for the best mean coverage of pages.
    fair: f64,
    last_modified: bool,
    grid: RateGrid,
    clocks: ChangeClocks,
    price: Price,
}

impl AutoPolicy {
    /// The policy without any evidence yet.
    pub fn new(fair: f64, last_modified: bool, limits: Limits, tuning: AutoTuning) -> Self {
        let most_a_page = DAY_S as f64 / limits.resolution_s.max(1) as f64;
        Self {
            tuning,
            limits,
            fair,
            last_modified,
            grid: RateGrid::new(limits.resolution_s as f32 / DAY_S as f32),
            clocks: ChangeClocks::new(tuning.clocks),
            price: Price::new(tuning.price_days, tuning.caution, most_a_page),
        }
    }

    /// The same policy with clocks that were kept from an earlier run.
    #[must_use]
    pub fn with_clocks(self, clocks: ChangeClocks) -> Self {
        Self { clocks, ..self }
    }

    /// The shared clocks, to be stored beside the pages.
    pub fn clocks(&self) -> &ChangeClocks {
        &self.clocks
    }

    /// The expected changes at which a page of known rate is due: the price of a visit.
    pub fn threshold(&self) -> f64 {
        self.price.threshold()
    }

    /// Sets the price; a budget moves it on.
    pub fn set_threshold(&mut self, threshold: f64) {
        self.price.set_threshold(threshold);
    }

    /// The page is no longer visited: its share of the budget is free.
    pub fn forget(&mut self, history: &PageHistory) {
        self.leave(history);
    }

    /// Expected visits per day and coverage at half, the same and double the present spending.
    ///
    /// `visits_per_day` is what those pages may have, if it is not what is spent now.
    pub fn forecast<'a>(
        &self,
        pages: impl Iterator<Item = &'a PageHistory>,
        visits_per_day: Option<f64>,
    ) -> Forecast {
        let slot_days = self.limits.resolution_s as f32 / DAY_S as f32;
        let lead_days = self.tuning.lead_slots * slot_days;
        let beliefs = pages.filter_map(|page| match &page.learnt {
            Learnt::Belief(belief) => Some(belief),
            _ => None,
        });
        let spending = match visits_per_day {
            Some(visits) => Spending::PerDay(visits),
            None => Spending::Threshold(self.price.threshold()),
        };
        Forecast::of(beliefs, spending, self.clocks.mean_bulk(), lead_days, slot_days)
    }

    /// Expected changes since the last visit.
    fn expected(
        &self,
        now_s: i64,
        history: &PageHistory,
        belief: &Belief,
        groups: PageGroups,
    ) -> f32 {
        let passed = self.clocks.passed(groups, history.last_visit_s, now_s);
        self.expected_by(&passed, belief, self.lead_days_at(now_s, groups))
    }

    /// Expected changes while so much passed by the neighbours' clock, which runs ahead by so much.
    fn expected_by(&self, passed: &Passed, belief: &Belief, lead_days: f32) -> f32 {
        belief.effective_rate.value() * (passed.clock + lead_days) + passed.bulk
    }

    /// By how many days the neighbours' clock is taken to run ahead: fewer on a quiet weekday.
    fn lead_days_at(&self, now_s: i64, groups: PageGroups) -> f32 {
        let day = (now_s - 1).div_euclid(DAY_S);
        let pace = self.clocks.rhythm(groups).map_or(1.0, |rhythm| rhythm.of_day(day));
        self.lead_days() * pace.min(1.0)
    }

    fn lead_days(&self) -> f32 {
        self.tuning.lead_slots * self.limits.resolution_s as f32 / DAY_S as f32
    }

    /// Expected changes at which the page is due. Pages that were met together come again one
    /// after the other.
    fn needed(&self, history: &PageHistory, belief: &Belief, groups: PageGroups) -> f32 {
        let needed = belief.threshold.value() * self.price.threshold() as f32;
        if history.visits != 1 {
            return needed;
        }
        needed * self.turn(groups)
    }

    /// The share of its first wait after which a page comes: those met together come one by one.
    fn turn(&self, groups: PageGroups) -> f32 {
        let even = groups.page as f32 / u32::MAX as f32;
        self.tuning.stagger + (1.0 - self.tuning.stagger) * even
    }

    /// Days within which a page is seen again whatever its neighbours show: one that was seen once,
    /// and one whose first changes may be the first of many.
    fn explore_days(&self, history: &PageHistory, belief: &Belief, groups: PageGroups) -> f64 {
        match belief.again {
            _ if history.visits == 1 => self.price.explore_days() * f64::from(self.turn(groups)),
            Rough(0) => f64::INFINITY,
            again => f64::from(again.value()),
        }
    }

    /// Visits per day of a page at a price of 1, as far as slots allow. Second visits are planned
    /// whatever the price.
    fn need(&self, belief: &Belief, visits: u32) -> f64 {
        if visits < 2 {
            return 0.0;
        }
        let slots_per_day = DAY_S as f32 / self.limits.resolution_s.max(1) as f32;
        let wanted = belief.effective_rate.value() / belief.threshold.value();
        f64::from(wanted.min(0.8 * slots_per_day))
    }

    /// What the page's likelihood and its neighbours say of its rate.
    fn posterior(&self, likelihood: &Likelihood, groups: PageGroups) -> Spread {
        self.grid.posterior(likelihood, &self.clocks.prior(groups, &self.tuning.start))
    }

    /// When the next visit pays best, from the rates believed.
    fn believe(&self, belief: &mut Belief, weights: &Spread, visits: u32) {
        let rate = self.grid.mean(weights);
        let usual = self.price.threshold() as f32;
        let price = 1.0 - (-usual).exp() * (1.0 + usual);
        let fair = self.fair as f32;
        // A version of a slow page is worth more when every page's coverage counts alike.
        let fair_price = match fair {
            0.0 => price,
            _ => price * ((rate + 1.0 / 365.0) / FAIR_RATE).powf(fair),
        };
        let plan = self.grid.plan(weights, fair_price.clamp(1e-4, TOP_PRICE));
        let mut threshold = plan.threshold.max(-(1.0 - fair_price.min(TOP_PRICE)).ln());
        if fair_price > TOP_PRICE {
            threshold *= beyond_top_price(plan.effective_rate, price, usual, fair);
        }
        let learning = 1.0 - self.tuning.curiosity / (1.0 + visits as f32);
        belief.rate = Coded::new(rate);
        belief.effective_rate = Coded::new(plan.effective_rate);
        belief.threshold = Coded::new(threshold * learning / usual);
    }

    /// How many times as long as planned a page waited for its visit.
    fn lateness(
        &self,
        now_s: i64,
        history: &PageHistory,
        belief: &Belief,
        groups: PageGroups,
    ) -> f64 {
        let waited_s = (now_s - history.last_visit_s) as f64;
        let needed = self.needed(history, belief, groups);
        let share = f64::from(needed / self.expected(now_s, history, belief, groups).max(needed));
        let slot_s = self.limits.resolution_s as f64;
        let planned_s = ((waited_s * share / slot_s).ceil() * slot_s).max(slot_s);
        (waited_s / planned_s).clamp(1.0, LATEST)
    }

    /// The belief as its neighbours make it now: they may have shown since its last visit how rarely,
    /// or how often, pages of its kind change.
    fn renewed(
        &self,
        history: &PageHistory,
        belief: &Belief,
        groups: PageGroups,
    ) -> (Belief, Spread) {
        let mut renewed = *belief;
        let weights = self.posterior(&belief.likelihood, groups);
        self.believe(&mut renewed, &weights, history.visits);
        (renewed, weights)
    }

    /// Takes the gap that a visit closed into the page's likelihood and the neighbours' clocks.
    fn learn_gap(
        &mut self,
        belief: &mut Belief,
        closed: &ClosedGap,
        groups: PageGroups,
        visits: u32,
    ) {
        let passed = self.clocks.passed(groups, closed.from_s, closed.to_s);
        let days = (closed.to_s - closed.from_s) as f32 / DAY_S as f32;
        let keep = (-days * std::f32::consts::LN_2 / self.tuning.memory_days).exp();
        let both = (passed.clock, passed.bulk);
        let salt = visits ^ groups.page;
        belief.likelihood.observe(&self.grid, both, closed.changed, keep, salt);
        self.clocks.learn(groups, closed);
    }

    /// Takes in the parts of a gap.
    fn learn_gaps(
        &mut self,
        belief: &mut Belief,
        gap: Gap,
        from_s: i64,
        groups: PageGroups,
        visits: u32,
    ) {
        let rate = belief.rate.value();
        let to_s = from_s.saturating_add_unsigned(gap.before_s);
        let closed = ClosedGap { from_s, to_s, rate, changed: gap.changed };
        self.learn_gap(belief, &closed, groups, visits);
        if gap.quiet_s > 0 {
            let until_s = to_s.saturating_add_unsigned(gap.quiet_s);
            let quiet = ClosedGap { from_s: to_s, to_s: until_s, rate, changed: false };
            self.learn_gap(belief, &quiet, groups, visits);
        }
    }

    /// Adds the versions that a gap with a change hid, by the rates believed after it. Hundredths are
    /// dithered, so that little is not lost in rounding.
    fn count_missed(
        &self,
        belief: &mut Belief,
        groups: PageGroups,
        span: (i64, i64),
        weights: &Spread,
        salt: u32,
    ) {
        let days = self.limits.resolution_s as f32 / DAY_S as f32;
        let gap = self.clocks.buckets(groups, span, days);
        let hundredths = dithered(100.0 * self.grid.missed(weights, &gap), salt);
        belief.missed_hundredths = belief.missed_hundredths.saturating_add(hundredths);
    }

    /// Days from the last visit until the page is due, if the clocks run evenly from now on.
    fn days_until_due(
        &self,
        now_s: i64,
        history: &PageHistory,
        belief: &Belief,
        groups: PageGroups,
    ) -> f64 {
        let needed = self.needed(history, belief, groups);
        let missing = needed - self.expected(now_s, history, belief, groups);
        let (rate, bulk) = (belief.effective_rate.value(), self.clocks.mean_bulk());
        let days = |seconds: i64| seconds as f64 / DAY_S as f64;
        let waited = days(now_s - history.last_visit_s);
        let worth = match self.clocks.rhythm(groups) {
            None => waited + f64::from((missing / (rate + bulk)).max(0.0)),
            Some(rhythm) => {
                let reached_s = rhythm.reach(now_s, missing, (rate, bulk));
                // Some visits come in the middle of a peak, to learn where in it changes are.
                let is_probe = (history.visits ^ groups.page).is_multiple_of(PROBE_PEAKS);
                let after_s = if is_probe { reached_s } else { rhythm.after_peak(reached_s) };
                // A visit before the end of a peak would come too early: slots are rounded up.
                let up_s = if after_s > reached_s { self.limits.resolution_s / 2 } else { 0 };
                days(after_s.saturating_add(up_s) - history.last_visit_s)
            }
        };
        worth.min(self.explore_days(history, belief, groups))
    }

    /// After which share of a wait a page is looked at: where a day has only so many visits, sooner
    /// than it is due, so that days with visits to spare have pages to choose from.
    fn look_share(&self) -> f64 {
        match self.price.budget() {
            Some(Budget::PerDay(_)) => LOOK_EARLY,
            _ => 1.0,
        }
    }

    /// Share of the expected changes that the neighbours' clock added to, or took from, plain time.
    fn neighbours_share(
        &self,
        now_s: i64,
        history: &PageHistory,
        belief: &Belief,
        groups: PageGroups,
    ) -> f64 {
        let expected = self.expected(now_s, history, belief, groups);
        let waited = (now_s - history.last_visit_s).max(0) as f32 / DAY_S as f32;
        let plain = belief.effective_rate.value() * (waited + self.lead_days());
        f64::from(((expected - plain) / expected.max(1e-9)).clamp(-1.0, 1.0))
    }
}

/// A visit counts at most as so many that were asked for.
const LATEST: f64 = 8.0;
/// The first changes of a page may be the first of many: it is seen again within so many times the
/// gap that each of them was found in, and then after ever longer times.
const FIRST_CHANGES: u32 = 2;
const GAPS_AGAIN: f32 = 2.0;
/// One visit in so many does not wait for the end of the hours of many changes.
const PROBE_PEAKS: u32 = 4;
/// Where a day has only so many visits, a page is looked at after this share of its wait.
const LOOK_EARLY: f64 = 0.5;

/// Within how many days a page is seen again after a gap, if it may have shown the first of many
/// changes.
fn again(gap: Gap, changes: u32, before: Rough) -> Rough {
    let days = (gap.before_s + gap.quiet_s) as f32 / DAY_S as f32;
    match gap.changed {
        _ if changes > FIRST_CHANGES => Rough(0),
        true => Rough::new(GAPS_AGAIN * days),
        false => Rough::new(GAPS_AGAIN * before.value()),
    }
}

/// Changes per day of a page whose versions weigh the same under every fairness.
const FAIR_RATE: f32 = 0.03;
/// Above this price a surer change is hardly worth the waiting, and the unsure rates of a page
/// would decide; a page that changes more would then even wait longer than one that changes less.
const TOP_PRICE: f32 = 0.78;
/// The threshold of a page of known rate at the top price.
const TOP_THRESHOLD: f32 = 2.85;

/// By how much the threshold grows beyond the top price. Under fairness it grows a little slower
/// than the rate, so that the wait still falls with the rate.
fn beyond_top_price(rate: f32, price: f32, usual: f32, fair: f32) -> f32 {
    if fair <= 0.0 {
        return (usual / TOP_THRESHOLD).max(1.0);
    }
    let top_rate = FAIR_RATE * (TOP_PRICE / price).powf(1.0 / fair) - 1.0 / 365.0;
    (rate / top_rate.max(1e-4)).max(1.0).powf(0.9)
}

impl RevisitPolicy for AutoPolicy {
    fn spec(&self) -> PolicySpec {
        PolicySpec::Auto { fair: self.fair, last_modified: self.last_modified }
    }

    fn learn(&mut self, now_s: i64, history: &mut PageHistory, seen: &Observation) {
        if !seen.outcome.is_seen() {
            return;
        }
        self.clocks.roll(now_s);
        let groups = seen.groups;
        let from_s = history.last_visit_s;
        let asked = history.without_learnt();
        let gap = history.observe(now_s, seen, self.last_modified);
        let known = match &history.learnt {
            Learnt::Belief(belief) => Some(*belief),
            _ => None,
        };
        let before = if known.is_some() { history.visits - 1 } else { 0 };
        let late = known.map_or(1.0, |belief| self.lateness(now_s, &asked, &belief, groups));
        self.price.visited(before, late);
        let mut belief = known.unwrap_or_default();
        let closed = gap.filter(|_| known.is_some());
        if let Some(gap) = closed {
            if belief.just_changed {
                let days = (gap.before_s + gap.quiet_s) as f64 / DAY_S as f64;
                let chance = -(-f64::from(belief.rate.value()) * days).exp_m1();
                self.clocks.repeats.visited(gap.changed, chance);
            }
            self.learn_gaps(&mut belief, gap, from_s, groups, history.visits);
        }
        belief.just_changed = gap.is_some_and(|gap| gap.changed);
        belief.again = gap.map_or(Rough(0), |gap| again(gap, history.changes, belief.again));
        let weights = self.posterior(&belief.likelihood, groups);
        if let Some(gap) = gap {
            let days = (gap.before_s + gap.quiet_s) as f32 / DAY_S as f32;
            self.clocks.learn_rates(groups, &weights, days);
        }
        let old_need = known.map_or(0.0, |belief| self.need(&belief, before));
        let old_rate = belief.rate.value();
        self.believe(&mut belief, &weights, history.visits);
        if known.is_some() {
            belief.count_missed_anew(old_rate, history.visits ^ groups.page);
        }
        if let Some(gap) = closed.filter(|gap| gap.changed) {
            let span = (from_s, from_s.saturating_add_unsigned(gap.before_s));
            self.count_missed(&mut belief, groups, span, &weights, history.visits ^ groups.page);
        }
        self.price.need += self.need(&belief, before + 1) - old_need;
        history.learnt = Learnt::Belief(belief);
    }

    fn next_due(&self, now_s: i64, history: &PageHistory, groups: PageGroups) -> Next {
        let Learnt::Belief(belief) = &history.learnt else {
            let interval_s = self.limits.rounded_s(self.limits.slots(DAY_S as f64));
            let due_s = self.limits.due_s(now_s, history.last_visit_s(), interval_s);
            return Next { due_s, why: Reason::unknown(Rule::FirstInterval, interval_s) };
        };
        let (belief, weights) = self.renewed(history, belief, groups);
        let days = self.days_until_due(now_s, history, &belief, groups);
        let interval_s = self.limits.rounded_s(self.limits.slots(days * DAY_S as f64));
        let why = Reason {
            rule: Rule::Worth,
            interval_s,
            rate_per_day: Some(f64::from(self.grid.mean(&weights))),
            confidence: f64::from(1.0 / (1.0 + self.grid.relative_spread(&weights))),
            neighbours: Some(self.neighbours_share(now_s, history, &belief, groups)),
            busy_hours: self.clocks.rhythm(groups).and_then(Rhythm::busy_hours),
        };
        let waited = (now_s - history.last_visit_s) as f64 / DAY_S as f64;
        let mut look = waited + (days - waited).max(0.0) * self.look_share();
        if history.visits == 1 {
            // A plan made when visits were short is looked at again: there may be more by then.
            look = look.min(waited + EXPLORE_DAYS * f64::from(self.turn(groups)));
        }
        let look_s = self.limits.rounded_s(self.limits.slots(look * DAY_S as f64));
        Next { due_s: self.limits.due_s(now_s, history.last_visit_s(), look_s), why }
    }

    fn is_due(&self, now_s: i64, history: &PageHistory, groups: PageGroups) -> bool {
        let Learnt::Belief(belief) = &history.learnt else { return true };
        let waited_s = now_s - history.last_visit_s;
        if waited_s >= self.limits.ceiling_s {
            return true;
        }
        if waited_s < self.limits.floor_s || self.price.is_spent() {
            return false;
        }
        if waited_s as f64 >= self.explore_days(history, belief, groups) * DAY_S as f64 {
            return true;
        }
        let passed = self.clocks.passed(groups, history.last_visit_s, now_s);
        let lead_days = self.lead_days_at(now_s, groups);
        let is_worth = |belief: &Belief| {
            self.expected_by(&passed, belief, lead_days) >= self.needed(history, belief, groups)
        };
        is_worth(belief) && is_worth(&self.renewed(history, belief, groups).0)
    }

    fn chance_worth(&self, history: &PageHistory, groups: PageGroups) -> Option<f64> {
        let Learnt::Belief(belief) = &history.learnt else { return None };
        if self.price.is_spent() {
            return Some(1.0);
        }
        Some(1.0 - f64::from(-self.needed(history, belief, groups)).exp())
    }

    fn hidden(&self) -> f64 {
        self.clocks.repeats.factor()
    }

    fn urgency(&self, at_s: i64, history: &PageHistory, groups: PageGroups) -> Option<f64> {
        let Learnt::Belief(belief) = &history.learnt else { return None };
        let needed = self.needed(history, belief, groups);
        let worth = f64::from(self.expected(at_s, history, belief, groups) / needed);
        let waited = (at_s - history.last_visit_s) as f64 / DAY_S as f64;
        Some(worth.max(waited / self.explore_days(history, belief, groups)))
    }

    fn explain(&self, now_s: i64, history: &PageHistory, groups: PageGroups) -> Explanation {
        let next = self.next_due(now_s, history, groups);
        let mut explanation = Explanation::of(&next);
        let Learnt::Belief(belief) = &history.learnt else { return explanation };
        let weights = self.posterior(&belief.likelihood, groups);
        let passed = self.clocks.passed(groups, history.last_visit_s, now_s);
        explanation.rate_range = Some(self.grid.range(&weights));
        explanation.chance_changed =
            Some(1.0 - f64::from(-self.expected(now_s, history, belief, groups)).exp());
        explanation.chance_worth = self.chance_worth(history, groups);
        explanation.neighbourhood = Some(Neighbourhood {
            pages: self.clocks.neighbours(groups),
            clock_days: f64::from(passed.clock),
            bulk_edits: f64::from(passed.bulk),
        });
        let days = next.why.interval_s as f64;
        // Visits are nearly in proportion to the price, so half the budget doubles the wait.
        explanation.at_budgets = [0.5, 1.0, 2.0]
            .map(|factor| (factor, self.limits.bounded_s((days / factor).round() as i64)))
            .to_vec();
        explanation
    }

    fn meet(&mut self, now_s: i64, server: u64, path: &str) -> PageGroups {
        self.clocks.meet(now_s, server, path)
    }

    fn groups_of(&self, server: u64, path: &str) -> PageGroups {
        self.clocks.groups_of(server, path)
    }

    fn roll(&mut self, now_s: i64) {
        self.clocks.roll(now_s);
        self.price.roll(now_s);
    }

    fn ask_when_planned(&mut self) {
        self.tuning.clocks.at_once = false;
        self.clocks.follow_daily();
    }
}

impl SharedByPages for AutoPolicy {
    fn set_budget(&mut self, budget: Option<Budget>) {
        self.price.begin(budget);
    }

    fn budget(&self) -> Option<Budget> {
        self.price.budget()
    }

    fn leave(&mut self, history: &PageHistory) {
        if let Learnt::Belief(belief) = &history.learnt {
            self.price.leave(self.need(belief, history.visits), history.visits);
        }
    }

    fn rejoin(&mut self, history: &PageHistory) {
        if let Learnt::Belief(belief) = &history.learnt {
            self.price.rejoin(self.need(belief, history.visits), history.visits);
        }
    }

    fn need_per_day(&self) -> Option<f64> {
        Some(self.price.need_per_day())
    }

    fn forecast(
        &self,
        pages: &mut dyn Iterator<Item = &PageHistory>,
        visits_per_day: Option<f64>,
    ) -> Option<Forecast> {
        Some(Self::forecast(self, pages, visits_per_day))
    }

    fn shared_state(&self) -> Vec<u8> {
        let mut bytes = self.price.to_bytes();
        bytes.extend_from_slice(&self.clocks.to_bytes());
        bytes
    }

    fn shared_groups(&self) -> usize {
        self.clocks.group_count()
    }

    fn restore(&mut self, shared: &[u8]) -> Result<(), RevisitError> {
        let (price, clocks) = self.price.read(shared)?;
        self.clocks = ChangeClocks::from_bytes(clocks, self.tuning.clocks)?;
        self.price = price;
        Ok(())
    }
}
