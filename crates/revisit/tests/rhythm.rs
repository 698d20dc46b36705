//! Pages that change at some hours are visited after them, and pages that rest on some weekdays are
//! hardly visited then.

use nenrin_revisit::{
    DAY_S, KnownPage, Outcome, PageRevisitScheduler, Planned, RevisitSettings, Why,
};

const HOUR_S: i64 = 3_600;
/// A Monday.
const BEGIN_S: i64 = 1_704_067_200;

struct Page {
    path: String,
    /// Ascending.
    changes_s: Vec<i64>,
    planned: Option<Planned>,
    found: Option<Outcome>,
    due_s: i64,
    last_s: i64,
}

impl Page {
    fn known(&self) -> KnownPage<'_> {
        KnownPage {
            server: 1,
            path: &self.path,
            history: self.planned.as_ref().map_or(&[], |planned| &planned.history),
            found: self.found,
            failures: 0,
            importance_percent: 100,
        }
    }

    fn changed_between(&self, from_s: i64, to_s: i64) -> bool {
        let from = self.changes_s.partition_point(|&at_s| at_s <= from_s);
        self.changes_s.get(from).is_some_and(|&at_s| at_s <= to_s)
    }
}

/// A site collected for a year.
struct Year {
    scheduler: PageRevisitScheduler,
    pages: Vec<Page>,
    /// When each visit was, and whether it saw a change.
    visits: Vec<(i64, bool)>,
}

fn collect(changes: Vec<Vec<i64>>, resolution_s: i64) -> Year {
    let scheduler = PageRevisitScheduler::new(RevisitSettings::default(), resolution_s);
    let pages = changes.into_iter().enumerate().map(|(number, changes_s)| Page {
        path: format!("/news/{number}.html"),
        changes_s,
        planned: None,
        found: None,
        due_s: BEGIN_S,
        last_s: BEGIN_S,
    });
    let mut year = Year { scheduler, pages: pages.collect(), visits: Vec::new() };
    for slot in 0..365 * DAY_S / resolution_s {
        let now_s = BEGIN_S + (slot + 1) * resolution_s;
        for at in 0..year.pages.len() {
            year.look(at, now_s, resolution_s);
        }
    }
    year
}

impl Year {
    fn look(&mut self, at: usize, now_s: i64, resolution_s: i64) {
        let page = &self.pages[at];
        if page.due_s > now_s {
            return;
        }
        if let Some(later_s) = self.scheduler.put_off(now_s, &page.known(), 1.0)
            && later_s >= now_s + resolution_s
        {
            self.pages[at].due_s = later_s;
            return;
        }
        let changed = page.planned.is_none() || page.changed_between(page.last_s, now_s);
        let found = if changed { Outcome::Changed } else { Outcome::Same };
        let planned = self.scheduler.visited(now_s, &page.known(), found, None, 1.0);
        let page = &mut self.pages[at];
        page.due_s = planned.due_s.max(now_s + resolution_s);
        (page.planned, page.found, page.last_s) = (Some(planned), Some(found), now_s);
        self.visits.push((now_s, changed));
    }

    fn why(&self) -> Why {
        self.scheduler.why(&self.pages[0].known())
    }

    /// Visits from a day of the year on.
    fn since(&self, day: i64) -> impl Iterator<Item = (i64, bool)> {
        self.visits.iter().copied().filter(move |(at_s, _)| *at_s >= BEGIN_S + day * DAY_S)
    }
}

/// Numbers that look like chance, the same in every run.
fn draws(seed: u64) -> impl FnMut(u64) -> i64 {
    let mut state = seed;
    move |below| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % below) as i64
    }
}

#[test]
fn pages_that_rest_on_weekends_are_hardly_visited_then() {
    let mut draw = draws(2);
    let changes = (0..6).map(|_| {
        let workdays = (0..365).filter(|day| day % 7 < 5);
        workdays.map(|day| BEGIN_S + day * DAY_S + draw(DAY_S as u64)).collect()
    });
    let year = collect(changes.collect(), HOUR_S);
    let mut by_weekday = [0; 7];
    for (at_s, _) in year.since(120) {
        by_weekday[((at_s - 1 - BEGIN_S) / DAY_S % 7) as usize] += 1;
    }
    let (work, rest): (i32, i32) = (by_weekday[..5].iter().sum(), by_weekday[5..].iter().sum());
    assert!(f64::from(rest) / 2.0 < 0.5 * f64::from(work) / 5.0, "{by_weekday:?}");
}

#[test]
fn where_hours_are_alike_none_is_named() {
    let mut draw = draws(3);
    let changes = (0..30).map(|_| {
        let mut changes: Vec<i64> = (0..365).map(|_| BEGIN_S + draw(365 * DAY_S as u64)).collect();
        changes.sort_unstable();
        changes
    });
    let year = collect(changes.collect(), HOUR_S);
    let why = year.why().to_string();
    assert!(!why.contains("changes mostly"), "{why}");
}

/// Pages that change on most days at an hour of the day, some of them rarely.
fn daily_at(hour: i64, pages: i64, seed: u64) -> Vec<Vec<i64>> {
    let mut draw = draws(seed);
    let mut page = |number: i64| {
        let chance = 40 + 10 * (number % 6);
        let days = (0..365).filter(|_| draw(100) < chance).collect::<Vec<_>>();
        days.iter().map(|day| BEGIN_S + day * DAY_S + hour * HOUR_S + draw(1_200)).collect()
    };
    (0..pages).map(&mut page).collect()
}

#[test]
fn pages_that_change_at_nine_are_visited_after_nine() {
    for (hour, pages, seed) in [(9, 6, 1), (9, 40, 2), (22, 6, 3)] {
        let year = collect(daily_at(hour, pages, seed), HOUR_S);
        let after = |at_s: i64| (at_s - BEGIN_S - hour * HOUR_S).rem_euclid(DAY_S) <= 3 * HOUR_S;
        let (mut soon, mut all) = (0, 0);
        for (at_s, _) in year.since(90) {
            soon += u32::from(after(at_s));
            all += 1;
        }
        assert!(f64::from(soon) > 0.75 * f64::from(all), "{hour}:00: {soon} of {all}");
        let hours = format!("between {hour}:00 and {}:00 UTC", hour + 1);
        let why = year.why().to_string();
        assert!(why.contains(&hours), "{why}");
    }
}
