//! Time of one decision, against its limit: `cargo bench -p nenrin-revisit`.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]
#![expect(clippy::disallowed_methods, reason = "a bench reads the clock")]

use std::hint::black_box;
use std::time::Instant;

use nenrin_revisit::{
    DAY_S, KnownPage, Limits, Observation, Outcome, PageGroups, PageHistory, PageRevisitScheduler,
    Planned, PolicySpec, RevisitPolicy, RevisitSettings,
};

const PAGES: usize = 20_000;
const DAYS: i64 = 60;

/// A page's observation on a day: each page has its own rhythm.
fn seen(page: usize, day: i64, groups: PageGroups) -> Observation {
    let changed = (day as usize + page).is_multiple_of(1 + page % 9);
    (if changed { Observation::changed() } else { Observation::same() }).at(groups)
}

fn path(page: usize) -> String {
    format!("/d{}/e{}/page{page}x.html", page / 400, page / 20)
}

/// Visits every page daily, the clocks' daily work included, and returns nanoseconds per visit.
fn nanoseconds_per_decision(policy: &mut dyn RevisitPolicy) -> f64 {
    let groups: Vec<PageGroups> = (0..PAGES).map(|page| policy.meet(0, 1, &path(page))).collect();
    let mut histories = vec![PageHistory::default(); PAGES];
    let start = Instant::now();
    for day in 1..=DAYS {
        policy.roll(day * DAY_S);
        for (page, history) in histories.iter_mut().enumerate() {
            let next = policy.next(day * DAY_S, history, seen(page, day, groups[page]));
            black_box(next.due_s);
        }
    }
    start.elapsed().as_nanos() as f64 / (PAGES as f64 * DAYS as f64)
}

/// The same as in the crawler: memories as bytes, every visit recorded for pages that change
/// together, and five neighbours checked for each page that changed. Returns nanoseconds per visit.
fn nanoseconds_per_scheduled_visit(policy: PolicySpec) -> f64 {
    let settings = RevisitSettings { policy, ..RevisitSettings::default() };
    let mut scheduler = PageRevisitScheduler::new(settings, DAY_S);
    let paths: Vec<String> = (0..PAGES).map(path).collect();
    let mut kept: Vec<Option<(Planned, Outcome)>> = vec![None; PAGES];
    let start = Instant::now();
    for day in 1..=DAYS {
        for page in 0..PAGES {
            let changed = seen(page, day, PageGroups::NONE).outcome == Outcome::Changed;
            let found = if changed { Outcome::Changed } else { Outcome::Same };
            let page_now = known(&paths[page], kept[page].as_ref());
            let circles = scheduler.learn_together(day * DAY_S, &page_now, found, true, &[]);
            if !circles.is_empty() {
                for other in (page + 1..PAGES).take(5) {
                    let other = known(&paths[other], kept[other].as_ref());
                    black_box(scheduler.chance_if_worth(day * DAY_S, &other));
                }
            }
            let planned = scheduler.visited(day * DAY_S, &page_now, found, None, 1.0);
            kept[page] = Some((planned, found));
        }
    }
    start.elapsed().as_nanos() as f64 / (PAGES as f64 * DAYS as f64)
}

fn known<'a>(path: &'a str, kept: Option<&'a (Planned, Outcome)>) -> KnownPage<'a> {
    KnownPage {
        server: 1,
        path,
        history: kept.map_or(&[], |(planned, _)| &planned.history),
        found: kept.map(|(_, found)| *found),
        failures: 0,
        importance_percent: 100,
    }
}

fn main() {
    let limits = Limits { resolution_s: DAY_S, floor_s: DAY_S, ..Limits::default() };
    for (name, limit_ns) in [
        ("mle.mix(0.1-10,2nd=7d)", 200.0),
        ("mle.avg(0.1-10,2nd=7d,lm)", 200.0),
        ("aimd(d=1d,r=0.5)", 200.0),
        ("auto", 5_000.0),
    ] {
        let Ok(spec) = name.parse::<PolicySpec>() else { continue };
        let ns = nanoseconds_per_decision(spec.build(limits).as_mut());
        println!("{name}: {ns:.0} ns per decision, {:.2} of its limit", ns / limit_ns);
    }
    for name in ["mle.mix(0.1-10,2nd=7d)", "auto"] {
        let Ok(spec) = name.parse::<PolicySpec>() else { continue };
        let ns = nanoseconds_per_scheduled_visit(spec);
        println!("{name} with what changes together, from bytes to bytes: {ns:.0} ns per visit");
    }
}
