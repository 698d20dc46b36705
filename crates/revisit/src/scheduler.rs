//! Paper 004's page revisit scheduler: from a visit to the time of the next.

use nenrin_calendar::write_duration;

use crate::policy::{confidence_of, often};
use crate::varint::{Reader, put};
use crate::{
    Budget, Circle, Companions, DAY_S, Explanation, Forecast, Limits, Missed, Observation, Outcome,
    PageGroups, PageHistory, PolicySpec, RevisitError, RevisitPolicy, RevisitSettings, Seen,
};

/// First wait for a page that is gone, refused or failed, and the longest; doubles each time.
const GONE_S: (i64, i64) = (DAY_S, i64::MAX / 4);
const REFUSED_S: (i64, i64) = (DAY_S, 30 * DAY_S);
/// The same for a page whose visits fail.
pub const FAILED_S: (i64, i64) = (3_600, 7 * DAY_S);
/// Fewer visits than this never make it worth writing what the pages share.
const KEEP_VISITS: u64 = 16;
/// Neighbours count if they lower the chance that a page did not change to this share.
pub const NEWS: f64 = 0.7;
/// Pages that are worth more count as if they had waited this long.
pub const WORTH_MAX_S: i64 = 1_000 * DAY_S;
/// Groups of pages that change together which are written for a visit: one takes some twenty bytes.
const GROUPS_A_VISIT: usize = 16;
/// Bytes that begin so hold the policy's memory and what changes together; others, of an earlier
/// version, the policy's alone.
const BOTH: [u8; 4] = *b"\xffNC1";

/// What is kept of a page between two visits.
#[derive(Debug, Clone, Copy)]
pub struct KnownPage<'a> {
    /// Its server's number.
    pub server: u64,
    /// Path and query.
    pub path: &'a str,
    /// The policy's memory, as [`Planned::history`] gave it.
    pub history: &'a [u8],
    /// What the last visit found, if there was one.
    pub found: Option<Outcome>,
    /// Visits in a row that did not see the page.
    pub failures: u32,
    /// Its importance in percent of the mean of all pages; 100 if none is known.
    pub importance_percent: u32,
}

/// What a visit leads to.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// When to visit it next.
    pub due_s: i64,
    /// The policy's memory of the page, for its record.
    pub history: Vec<u8>,
    /// Visits in a row that did not see the page.
    pub failures: u32,
    /// Changes per day and how sure that is, from 0 to 1, where the policy estimates them.
    pub rate: Option<(f64, f64)>,
    /// Versions that came and went unseen between visits, as far as that can be estimated.
    pub missed: Option<f64>,
}

/// Why a page is due when it is.
#[derive(Debug, Clone, PartialEq)]
pub enum Why {
    /// It was never visited. What an imported history says of it, where there is one.
    New(Option<Box<Explanation>>),
    /// The policy planned it; the explanation says how.
    Policy(Box<Explanation>),
    /// It is gone; each further visit waits longer.
    Gone {
        /// Visits in a row that did not find it.
        times: u32,
    },
    /// It may not be asked for.
    Refused,
    /// The last visits brought nothing.
    Failed {
        /// How many.
        times: u32,
    },
}

/// Sets the time of the next visit of one site's pages, by the site's policy and bounds.
pub struct PageRevisitScheduler {
    settings: RevisitSettings,
    resolution_s: i64,
    policy: Box<dyn RevisitPolicy>,
    companions: Companions,
    news: f64,
    budget: Option<Budget>,
    rolled_day: Option<i64>,
    /// Visits learnt from since the shared state was last kept.
    unkept: u64,
}

impl std::fmt::Debug for PageRevisitScheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PageRevisitScheduler").field("settings", &self.settings).finish()
    }
}

impl PageRevisitScheduler {
    /// A scheduler that has seen nothing yet, with buckets of `resolution_s`.
    pub fn new(settings: RevisitSettings, resolution_s: i64) -> Self {
        let ceilings = settings.paths.iter().filter_map(|rule| rule.max_s);
        let limits = Limits {
            resolution_s,
            floor_s: resolution_s,
            ceiling_s: ceilings.chain([settings.max_s, resolution_s]).max().unwrap_or(DAY_S),
        };
        let budget = settings.visits_per_day.map(|visits| Budget::PerDay(visits as f64));
        let mut policy = settings.policy.build(limits);
        policy.ask_when_planned();
        let companions = Companions::default();
        Self {
            settings,
            resolution_s,
            policy,
            companions,
            news: NEWS,
            budget,
            rolled_day: None,
            unkept: 0,
        }
    }

    /// The settings it works by.
    pub fn settings(&self) -> &RevisitSettings {
        &self.settings
    }

    /// Takes what [`PageRevisitScheduler::keep`] gave an earlier process.
    pub fn restore(&mut self, shared: &[u8]) -> Result<(), RevisitError> {
        let Some(both) = shared.strip_prefix(&BOTH) else {
            return if shared.is_empty() { Ok(()) } else { self.policy.restore(shared) };
        };
        let damaged = || RevisitError::BadShared { what: "memory of a schedule" };
        let mut reader = Reader::new(both);
        let of_policy = reader.varint().and_then(|bytes| usize::try_from(bytes).ok());
        let (policy, companions) = of_policy
            .and_then(|bytes| both.get(reader.at..)?.split_at_checked(bytes))
            .ok_or_else(damaged)?;
        self.companions = Companions::from_bytes(companions)?;
        if policy.is_empty() { Ok(()) } else { self.policy.restore(policy) }
    }

    /// What the pages share, when enough was learnt since it was last kept: after as many visits
    /// as it has groups, so that a visit pays for about one group.
    pub fn keep(&mut self) -> Option<Vec<u8>> {
        let groups = self.policy.shared_groups() + self.companions.groups() / GROUPS_A_VISIT;
        let enough = KEEP_VISITS.max(groups as u64);
        if self.unkept < enough { None } else { self.keep_now() }
    }

    /// What the pages share, if anything was learnt since it was last kept.
    pub fn keep_now(&mut self) -> Option<Vec<u8>> {
        let learnt = std::mem::take(&mut self.unkept) > 0;
        let (policy, companions) = (self.policy.shared_state(), self.companions.to_bytes());
        if !learnt || policy.is_empty() && companions.is_empty() {
            return None;
        }
        let mut both = BOTH.to_vec();
        put(&mut both, policy.len() as u64);
        both.extend_from_slice(&policy);
        both.extend_from_slice(&companions);
        Some(both)
    }

    /// Lets neighbours count when the chance of no change falls to this share, instead of [`NEWS`].
    pub fn set_news(&mut self, news: f64) {
        self.news = news;
    }

    /// A share of a larger budget, for a site without its own.
    pub fn set_visits_per_day(&mut self, visits_per_day: Option<f64>) {
        self.set_budget(visits_per_day.map(Budget::PerDay));
    }

    /// Another budget than the settings', from the next day on.
    pub fn set_budget(&mut self, budget: Option<Budget>) {
        self.budget = budget;
    }

    /// Visits per day that the pages ask for; see [`RevisitPolicy::need_per_day`].
    pub fn need_per_day(&self) -> Option<f64> {
        self.policy.need_per_day()
    }

    /// Opens the day of `now_s`, once.
    pub fn roll(&mut self, now_s: i64) {
        let day = now_s.div_euclid(DAY_S);
        if self.rolled_day.replace(day) == Some(day) {
            return;
        }
        if self.policy.budget() != self.budget {
            self.policy.set_budget(self.budget);
        }
        self.policy.roll(now_s);
    }

    /// A visit was made: learns from it and sets the next. `stretch` lengthens the intervals of a
    /// server that cannot keep up.
    pub fn visited(
        &mut self,
        now_s: i64,
        page: &KnownPage<'_>,
        found: Outcome,
        last_modified_s: Option<i64>,
        stretch: f64,
    ) -> Planned {
        self.roll(now_s);
        let observation = match found {
            Outcome::Changed => Observation::changed(),
            Outcome::Same | Outcome::NotModified => Observation::same(),
            Outcome::Gone | Outcome::Refused | Outcome::Failed => {
                return self.not_seen(now_s, page, found);
            }
        };
        let mut history = read(page.history);
        if page.found == Some(Outcome::Gone) {
            self.policy.rejoin(&history);
        }
        let groups = match history.visits() {
            0 => self.policy.meet(now_s, page.server, page.path),
            _ => self.policy.groups_of(page.server, page.path),
        };
        let seen = observation.with_last_modified(last_modified_s).at(groups);
        let seen = seen.with_importance(page.importance_percent);
        let next = self.policy.next(now_s, &mut history, seen);
        self.unkept += 1;
        let due_s = self.bounded_s(now_s, next.due_s, page.path, stretch);
        let rate = next.why.rate_per_day.map(|rate| (rate, next.why.confidence));
        let missed = self.missed_by(&history);
        Planned { due_s, history: history.to_bytes(), failures: 0, rate, missed }
    }

    /// Learns from a visit which pages change together. Call it before [`Self::visited`].
    /// Returns the circles of a changed page in which other pages have probably changed too.
    ///
    /// `links` are the pages of its server that it links to, as [`Companions::key`] numbers them;
    /// `planned` is whether the schedule chose the time, and not a signal.
    pub fn learn_together(
        &mut self,
        now_s: i64,
        page: &KnownPage<'_>,
        found: Outcome,
        planned: bool,
        links: &[u32],
    ) -> Vec<Circle> {
        let history = read(page.history);
        let Some(from_s) = history.last_visit_s().filter(|&from_s| from_s < now_s) else {
            return Vec::new();
        };
        let changed = found == Outcome::Changed;
        let was_seen = page.found.is_some_and(Outcome::is_seen);
        let usual = self.companions.usual_rate_per_s();
        let own = history.chance_within(now_s - from_s, usual);
        let Some(chance) = own.filter(|_| was_seen) else {
            return Vec::new();
        };
        if !found.is_seen() {
            return Vec::new();
        }
        let KnownPage { server, path, .. } = *page;
        let to_s = now_s;
        self.companions.seen(&Seen { server, path, from_s, to_s, chance, changed, planned, links })
    }

    /// The chance that a page changed, if what its circles showed since its last visit makes a visit
    /// worth its price now.
    pub fn chance_if_worth(&self, now_s: i64, page: &KnownPage<'_>) -> Option<f64> {
        if !page.found.is_some_and(Outcome::is_seen) {
            return None;
        }
        let history = read(page.history);
        let last_s = history.last_visit_s()?;
        let (min_s, _) = self.settings.bounds_s(self.resolution_s, page.path);
        if now_s - last_s < min_s {
            return None;
        }
        let groups = self.policy.groups_of(page.server, page.path);
        let own = history.chance_within(now_s - last_s, self.companions.usual_rate_per_s())?;
        let price = self.policy.chance_worth(&history, groups);
        let price = price.unwrap_or_else(|| self.companions.usual_hit_share());
        let chance = self.companions.chance(page.server, page.path, (last_s, now_s), own)?;
        // A visit that is worth it by the page's own past alone is planned by the policy.
        let is_news = 1.0 - chance <= self.news * (1.0 - own);
        (is_news && price <= chance).then_some(chance)
    }

    /// What tends to change together.
    pub fn companions(&self) -> &Companions {
        &self.companions
    }

    /// The page was not seen: that teaches nothing, and the wait doubles.
    fn not_seen(&mut self, now_s: i64, page: &KnownPage<'_>, found: Outcome) -> Planned {
        if found == Outcome::Gone && page.found != Some(Outcome::Gone) {
            self.policy.leave(&read(page.history));
        }
        let failures = page.failures.saturating_add(1);
        let (first_s, longest_s) = match found {
            Outcome::Gone => GONE_S,
            Outcome::Refused => REFUSED_S,
            _ => FAILED_S,
        };
        let doubled_s = first_s.saturating_mul(1 << (failures - 1).min(30));
        let (min_s, max_s) = self.settings.bounds_s(self.resolution_s, page.path);
        let due_s = now_s + doubled_s.min(longest_s).clamp(min_s, max_s);
        Planned { due_s, history: page.history.to_vec(), failures, rate: None, missed: None }
    }

    fn bounded_s(&self, now_s: i64, due_s: i64, path: &str, stretch: f64) -> i64 {
        let (min_s, max_s) = self.settings.bounds_s(self.resolution_s, path);
        let stretched = |interval_s: i64| (interval_s as f64 * stretch.max(1.0)) as i64;
        now_s + stretched(due_s - now_s).clamp(min_s, stretched(max_s))
    }

    /// A page whose planned time has come: `None` when a visit is worth it now, and otherwise when
    /// it will be. What its neighbours showed and the price since then may have put it off.
    pub fn put_off(&mut self, at_s: i64, page: &KnownPage<'_>, stretch: f64) -> Option<i64> {
        self.roll(at_s);
        let seen = page.found.is_some_and(Outcome::is_seen);
        if !seen || self.policy.need_per_day().is_none() {
            return None;
        }
        let history = read(page.history);
        let waited_s = at_s - history.last_visit_s()?;
        let (_, max_s) = self.settings.bounds_s(self.resolution_s, page.path);
        // Times are rounded to buckets, so the last bucket before the moment counts as it.
        let soon_s = at_s + self.resolution_s;
        let groups = self.policy.groups_of(page.server, page.path);
        if waited_s >= max_s || self.policy.is_due(soon_s, &history, groups) {
            return None;
        }
        let next = self.policy.next_due(at_s, &history, groups);
        let latest_s = at_s - waited_s + (max_s as f64 * stretch.max(1.0)) as i64;
        Some(self.bounded_s(at_s, next.due_s, page.path, stretch).min(latest_s.max(at_s + 1)))
    }

    /// Whether due pages take turns by the worth of a visit: a day has only so many, and the policy says
    /// what each is worth.
    pub fn goes_by_worth(&self) -> bool {
        matches!(self.policy.budget(), Some(Budget::PerDay(_)))
            && matches!(self.settings.policy, PolicySpec::Auto { .. })
    }

    /// Since when a due page counts as waiting, where a day has only so many visits: the more it is
    /// worth, the longer, so that it goes first. Elsewhere pages take turns as they became due.
    pub fn waits_since_s(&self, page: &KnownPage<'_>) -> Option<i64> {
        if !matches!(self.policy.budget(), Some(Budget::PerDay(_))) {
            return None;
        }
        let history = page.found.filter(|found| found.is_seen()).map(|_| read(page.history))?;
        let groups = self.policy.groups_of(page.server, page.path);
        let today_s = self.rolled_day? * DAY_S;
        let urgency = self.policy.urgency(today_s + DAY_S, &history, groups)?;
        Some(today_s - ((urgency.max(0.0) * DAY_S as f64) as i64).min(WORTH_MAX_S))
    }

    /// When a page that was seen is due by what its visits taught, as after the last of them.
    pub fn due_again(&self, page: &KnownPage<'_>) -> Option<i64> {
        let history = read(page.history);
        let last_s = history.last_visit_s()?;
        let was_seen = page.found.is_some_and(Outcome::is_seen);
        let groups = self.policy.groups_of(page.server, page.path);
        let next = was_seen.then(|| self.policy.next_due(last_s, &history, groups))?;
        Some(self.bounded_s(last_s, next.due_s, page.path, 1.0))
    }

    /// Why a page is due when it is, computed from its history.
    pub fn why(&self, page: &KnownPage<'_>) -> Why {
        let history = read(page.history);
        let explained = || {
            let groups = self.policy.groups_of(page.server, page.path);
            let at_s = history.last_visit_s().unwrap_or_default();
            let mut why = self.policy.explain(at_s, &history, groups);
            why.missed = self
                .missed_by(&history)
                .map(|versions| Missed::new(versions, why.next.why.confidence));
            Box::new(why)
        };
        match page.found {
            None => Why::New((history.visits() > 0).then(explained)),
            Some(Outcome::Gone) => Why::Gone { times: page.failures },
            Some(Outcome::Refused) => Why::Refused,
            Some(Outcome::Failed) => Why::Failed { times: page.failures },
            Some(Outcome::Changed | Outcome::Same | Outcome::NotModified) => {
                Why::Policy(explained())
            }
        }
    }

    /// Versions of a page that came and went unseen between its visits.
    fn missed_by(&self, history: &PageHistory) -> Option<f64> {
        Some(history.missed(self.resolution_s)? * self.policy.hidden())
    }

    /// Versions that came and went unseen between the visits to these pages, from their memories, as
    /// many pages as there are in all being like them.
    pub fn missed(&self, histories: &[Vec<u8>], pages_in_all: u64) -> Missed {
        let (mut versions, mut variance) = (0.0, 0.0);
        for history in histories.iter().map(|bytes| read(bytes)) {
            let missed = self.missed_by(&history).unwrap_or(0.0);
            versions += missed;
            variance += Missed::variance(missed, confidence_of(history.changes()));
        }
        let alike = (pages_in_all as f64 / histories.len().max(1) as f64).max(1.0);
        Missed::of_pages(versions * alike, variance * alike * alike)
    }

    /// What to expect at half, the same and double the budget, or the present spending where there
    /// is none, from the memories of some of the site's pages.
    pub fn forecast(&self, histories: &[Vec<u8>], pages_in_all: u64) -> Forecast {
        let per_day = self.settings.visits_per_day.map(|visits| visits as f64);
        let per_day = per_day.or(match self.policy.budget() {
            Some(Budget::PerDay(visits)) => Some(visits),
            _ => None,
        });
        let share = histories.len() as f64 / pages_in_all.max(1) as f64;
        let per_day = per_day.map(|visits| visits * share.min(1.0));
        let pages: Vec<PageHistory> = histories.iter().map(|bytes| read(bytes)).collect();
        let visited = || pages.iter().filter(|page| page.visits() > 0);
        self.policy.forecast(&mut visited(), per_day).unwrap_or_else(|| {
            Forecast::of_intervals(visited().map(|page| {
                let at_s = page.last_visit_s().unwrap_or_default();
                let why = self.policy.next_due(at_s, page, PageGroups::NONE).why;
                (why.interval_s as f64 / DAY_S as f64, why.rate_per_day.unwrap_or(0.0))
            }))
        })
    }
}

/// A memory that cannot be read is one of a page never visited.
fn read(history: &[u8]) -> PageHistory {
    PageHistory::from_bytes(history).unwrap_or_default()
}

impl Why {
    /// Versions that came and went between visits, where that can be estimated.
    pub fn missed(&self) -> Option<Missed> {
        match self {
            Self::Policy(explanation) => explanation.missed,
            _ => None,
        }
    }

    /// Changes per day and how sure that is, where they are estimated.
    pub fn rate(&self) -> Option<(f64, f64)> {
        match self {
            Self::Policy(explanation) | Self::New(Some(explanation)) => {
                let why = &explanation.next.why;
                why.rate_per_day.map(|rate| (rate, why.confidence))
            }
            _ => None,
        }
    }
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::New(_) => {
                f.write_str("never visited yet")?;
                match self.rate() {
                    Some((rate, sure)) => {
                        write!(f, "; by an imported history it {}", often(rate, sure))
                    }
                    None => Ok(()),
                }
            }
            Self::Policy(explanation) => explanation.next.why.fmt(f),
            Self::Gone { times } => {
                write!(f, "not there ({times}×), checked less and less often")
            }
            Self::Refused => f.write_str("refused; tried less and less often"),
            Self::Failed { times } => {
                let (first, longest) = (write_duration(FAILED_S.0), write_duration(FAILED_S.1));
                write!(f, "failed {times}× in a row; tried again after {first} to {longest}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_S: i64 = 3_600;

    fn scheduler(policy: &str) -> PageRevisitScheduler {
        let settings = RevisitSettings {
            policy: policy.parse().unwrap(),
            paths: vec!["/news/ min=2h max=1d".parse().unwrap()],
            ..RevisitSettings::default()
        };
        PageRevisitScheduler::new(settings, HOUR_S)
    }

    fn page<'a>(path: &'a str, planned: Option<&'a Planned>, found: Outcome) -> KnownPage<'a> {
        KnownPage {
            server: 1,
            path,
            history: planned.map_or(&[], |planned| &planned.history),
            found: planned.map(|_| found),
            failures: planned.map_or(0, |planned| planned.failures),
            importance_percent: 100,
        }
    }

    #[test]
    fn path_rules_bound_the_policy() {
        let mut scheduler = scheduler("every(30d)");
        let due_s = |s: &mut PageRevisitScheduler, path, stretch| {
            s.visited(0, &page(path, None, Outcome::Same), Outcome::Changed, None, stretch).due_s
        };
        assert_eq!(due_s(&mut scheduler, "/news/a", 1.0), DAY_S);
        assert_eq!(due_s(&mut scheduler, "/other", 1.0), 30 * DAY_S);
        assert_eq!(due_s(&mut scheduler, "/other", 2.0), 60 * DAY_S);
        assert_eq!(due_s(&mut scheduler, "/news/a", 2.0), 2 * DAY_S);
    }

    #[test]
    fn a_page_that_is_gone_is_looked_for_ever_more_rarely_and_can_come_back() {
        let mut scheduler = scheduler("auto");
        let first =
            scheduler.visited(0, &page("/a", None, Outcome::Same), Outcome::Changed, None, 1.0);
        let need = scheduler.need_per_day().unwrap();
        let (mut planned, mut now_s, mut waits) = (first, DAY_S, Vec::new());
        let mut found = Outcome::Changed;
        for _ in 0..12 {
            let known = page("/a", Some(&planned), found);
            planned = scheduler.visited(now_s, &known, Outcome::Gone, None, 1.0);
            waits.push((planned.due_s - now_s) / DAY_S);
            (now_s, found) = (planned.due_s, Outcome::Gone);
        }
        assert_eq!(waits[..5], [1, 2, 4, 8, 16]);
        assert_eq!(waits[11], 365);
        assert_eq!(scheduler.need_per_day(), Some(0.0));
        let known = page("/a", Some(&planned), Outcome::Gone);
        let back = scheduler.visited(now_s, &known, Outcome::Changed, None, 1.0);
        assert_eq!(back.failures, 0);
        assert!(scheduler.need_per_day().unwrap() > 0.0 && need > 0.0);
        assert!(back.due_s < now_s + 365 * DAY_S);
    }

    #[test]
    fn pages_met_when_visits_were_short_are_seen_again_soon_once_there_are_more() {
        let mut scheduler = scheduler("auto");
        let budget = |visits| Some(Budget::InAll { visits, end_s: 365 * DAY_S });
        scheduler.set_budget(budget(2.0));
        let paths: Vec<String> = (0..50).map(|n| format!("/d/p{n}")).collect();
        let meet = |path: &String| {
            scheduler.visited(0, &page(path, None, Outcome::Same), Outcome::Changed, None, 1.0)
        };
        let planned: Vec<Planned> = paths.iter().map(meet).collect();
        scheduler.set_budget(budget(50_000.0));
        for (path, planned) in paths.iter().zip(&planned) {
            let known = page(path, Some(planned), Outcome::Changed);
            let mut at_s = planned.due_s;
            while let Some(later_s) = scheduler.put_off(at_s, &known, 1.0) {
                at_s = later_s;
            }
            assert!(at_s <= 15 * DAY_S, "{path}: day {}", at_s / DAY_S);
        }
    }

    #[test]
    fn what_pages_share_survives_a_restart() {
        let mut first = scheduler("auto");
        let mut planned: Vec<Planned> = Vec::new();
        for n in 0..40 {
            let path = format!("/d/p{n}");
            planned.push(first.visited(
                n,
                &page(&path, None, Outcome::Same),
                Outcome::Changed,
                None,
                1.0,
            ));
        }
        let kept = first.keep_now().unwrap();
        assert_eq!(first.keep_now(), None);
        let mut second = scheduler("auto");
        second.restore(&kept).unwrap();
        for (n, planned) in planned.iter().enumerate() {
            let path = format!("/d/p{n}");
            let known = page(&path, Some(planned), Outcome::Changed);
            let visit =
                |s: &mut PageRevisitScheduler| s.visited(DAY_S, &known, Outcome::Same, None, 1.0);
            assert_eq!(visit(&mut first).due_s, visit(&mut second).due_s, "{n}");
        }
        assert!(second.restore(&kept[..50]).is_err());
    }

    #[test]
    fn a_budget_puts_pages_off_and_reasons_are_told() {
        let mut scheduler = scheduler("auto");
        scheduler.set_visits_per_day(Some(2.0));
        let mut pages: Vec<(String, Option<Planned>, i64)> =
            (0..100).map(|n| (format!("/p{n}"), None, 0)).collect();
        let mut visits = 0;
        for day in 0..300 {
            let (now_s, mut today) = (day * DAY_S, 0);
            for (path, planned, due_s) in &mut pages {
                let known = page(path, planned.as_ref(), Outcome::Same);
                // The crawler closes a site whose visits of the day are used up.
                if *due_s > now_s || today == 2 && planned.is_some() {
                    continue;
                }
                if let Some(later_s) = scheduler.put_off(now_s, &known, 1.0) {
                    *due_s = later_s;
                    continue;
                }
                visits += i32::from(day >= 60);
                today += 1;
                let found = if (day / 3) % 2 == 0 { Outcome::Changed } else { Outcome::Same };
                let next = scheduler.visited(now_s, &known, found, None, 1.0);
                *due_s = next.due_s;
                *planned = Some(next);
            }
        }
        assert!((300..=600).contains(&visits), "{visits} visits in 240 days at 2 a day");
        let known = page("/p0", pages[0].1.as_ref(), Outcome::Same);
        let why = scheduler.why(&known);
        assert!(why.rate().is_some_and(|(rate, sure)| rate > 0.0 && sure > 0.0), "{why}");
        assert_eq!(scheduler.why(&page("/new", None, Outcome::Same)), Why::New(None));
        let histories: Vec<_> = pages.iter().filter_map(|p| Some(p.1.clone()?.history)).collect();
        let [half, same, double] = scheduler.forecast(&histories, 100).points;
        assert!((same.visits_per_day - 2.0).abs() < 0.1, "the budget, not the spending: {same:?}");
        // Half of the pages have half of the budget.
        let some = scheduler.forecast(&histories, 200).points[1];
        assert!((some.visits_per_day - 1.0).abs() < 0.05, "{some:?}");
        assert!(half.coverage <= same.coverage && same.coverage <= double.coverage);
    }

    #[test]
    fn where_a_day_has_few_visits_the_page_that_is_worth_most_goes_first() {
        let mut scheduler = scheduler("auto");
        let mut pages = [("/hot", Outcome::Changed, None), ("/quiet", Outcome::Same, None)];
        for day in 0..12 {
            for (path, found, planned) in &mut pages {
                let known = page(path, planned.as_ref(), *found);
                *planned = Some(scheduler.visited(day * DAY_S, &known, *found, None, 1.0));
            }
        }
        let since_s = |scheduler: &PageRevisitScheduler| {
            pages.each_ref().map(|(path, found, planned)| {
                scheduler.waits_since_s(&page(path, planned.as_ref(), *found))
            })
        };
        assert_eq!(since_s(&scheduler), [None, None]);
        scheduler.set_visits_per_day(Some(1.0));
        scheduler.roll(12 * DAY_S);
        let [hot, quiet] = since_s(&scheduler);
        assert!(hot.is_some() && hot < quiet, "{hot:?} {quiet:?}");
    }

    #[test]
    fn a_forecast_of_plain_intervals_follows_the_poisson_law() {
        let mut scheduler = scheduler("every(2d)");
        let mut histories = Vec::new();
        for n in 0..10 {
            let path = format!("/p{n}");
            let mut planned: Option<Planned> = None;
            for visit in 0..10 {
                let found = if visit % 2 == 0 { Outcome::Changed } else { Outcome::Same };
                let known = page(&path, planned.as_ref(), Outcome::Same);
                planned = Some(scheduler.visited(visit * 2 * DAY_S, &known, found, None, 1.0));
            }
            histories.push(planned.unwrap().history);
        }
        let forecast = scheduler.forecast(&histories, 10);
        assert_eq!(forecast.pages, 10);
        assert!((forecast.points[1].visits_per_day - 5.0).abs() < 1e-9);
        assert!((forecast.points[0].visits_per_day - 2.5).abs() < 1e-9);
    }
}
