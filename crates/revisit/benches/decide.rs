//! Time of one decision, against its limit: `cargo bench -p nenrin-revisit`.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]
#![expect(clippy::disallowed_methods, reason = "a bench reads the clock")]

use std::hint::black_box;
use std::time::Instant;

use nenrin_revisit::{DAY_S, Limits, Observation, PageHistory, Place, PolicySpec, RevisitPolicy};

const PAGES: usize = 20_000;
const DAYS: i64 = 60;

/// A page's observation on a day: each page has its own rhythm.
fn seen(page: usize, day: i64, place: Place) -> Observation {
    let changed = (day as usize + page).is_multiple_of(1 + page % 9);
    (if changed { Observation::changed() } else { Observation::same() }).at(place)
}

/// Visits every page daily, the clocks' daily work included, and returns nanoseconds per visit.
fn nanoseconds_per_decision(policy: &mut dyn RevisitPolicy) -> f64 {
    let path = |page: usize| format!("/d{}/e{}/page{page}x.html", page / 400, page / 20);
    let places: Vec<Place> = (0..PAGES).map(|page| policy.meet(0, 1, &path(page))).collect();
    let mut histories = vec![PageHistory::default(); PAGES];
    let start = Instant::now();
    for day in 1..=DAYS {
        policy.roll(day * DAY_S);
        for (page, history) in histories.iter_mut().enumerate() {
            let next = policy.next(day * DAY_S, history, seen(page, day, places[page]));
            black_box(next.due_s);
        }
    }
    start.elapsed().as_nanos() as f64 / (PAGES as f64 * DAYS as f64)
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
}
