//! What every policy promises.

use nenrin_revisit::{DAY_S, Limits, Observation, PageHistory, PolicySpec, RevisitPolicy};
use proptest::prelude::*;

const POLICIES: [&str; 19] = [
    "mle.mix(0.1-10,2nd=7d)",
    "mle.mix(0.5-2,2nd=7d,x0.5,lm)",
    "mle.min(0.1-10,2nd=7d)",
    "mle.avg(0.1-10,2nd=15d,lm)",
    "mle.exact(0.1-10,2nd=7d)",
    "aimd(d=1d,r=0.5)",
    "aimd(d=1/2d,r=0.5)",
    "aimd(d=3/5h,r=0.9)",
    "every(30d)",
    "every(1s)",
    "nutch(7d)",
    "nutch(1m)",
    "stormcrawler(7d,max=365d)",
    "stormcrawler(1h,max=2h)",
    "auto",
    "auto(fair=0.5)",
    "auto(lm)",
    "budget(learn=40d,least=90d)",
    "budget(learn=1d,least=30d,name=2,no-lm=4)",
];

fn build(name: &str, limits: Limits) -> Box<dyn RevisitPolicy> {
    name.parse::<PolicySpec>().expect("a policy's name").build(limits)
}

#[derive(Debug, Clone)]
struct Visit {
    wait_s: i64,
    outcome: u8,
    last_modified_ago_s: Option<i64>,
}

fn visits() -> impl Strategy<Value = Vec<Visit>> {
    let wait = prop_oneof![-5_000..5_000i64, 0..40 * DAY_S, 0..4_000 * DAY_S];
    let ago = proptest::option::of(-1_000..100 * DAY_S);
    let visit = (wait, 0..3u8, ago).prop_map(|(wait_s, outcome, last_modified_ago_s)| Visit {
        wait_s,
        outcome,
        last_modified_ago_s,
    });
    proptest::collection::vec(visit, 0..30)
}

fn limits() -> impl Strategy<Value = Limits> {
    (1..3 * DAY_S, 1..10 * DAY_S, 1..500 * DAY_S).prop_map(|(resolution_s, floor_s, more_s)| {
        Limits { resolution_s, floor_s, ceiling_s: floor_s + more_s }
    })
}

fn observation(visit: &Visit, now_s: i64) -> Observation {
    let seen = match visit.outcome {
        0 => Observation::changed(),
        1 => Observation::same(),
        _ => Observation::failed(),
    };
    seen.with_last_modified(visit.last_modified_ago_s.map(|ago_s| now_s - ago_s))
}

proptest! {
    #[test]
    fn the_due_time_lies_between_floor_and_ceiling_after_now(visits in visits(), limits in limits()) {
        for name in POLICIES {
            let mut policy = build(name, limits);
            let (mut history, mut now_s) = (PageHistory::default(), 1_700_000_000);
            for visit in &visits {
                now_s += visit.wait_s;
                let next = policy.next(now_s, &mut history, observation(visit, now_s));
                let wait_s = next.due_s - now_s;
                prop_assert!((limits.floor_s..=limits.ceiling_s).contains(&wait_s), "{name} {next:?}");
                prop_assert!((limits.floor_s..=limits.ceiling_s).contains(&next.why.interval_s));
                prop_assert!((0.0..=1.0).contains(&next.why.confidence));
                prop_assert!(next.why.rate_per_day.is_none_or(|rate| rate.is_finite() && rate >= 0.0));
            }
        }
    }

    #[test]
    fn the_same_history_gives_the_same_answer_also_through_its_bytes(visits in visits(), limits in limits()) {
        for name in POLICIES {
            let (mut once, mut again) = (build(name, limits), build(name, limits));
            let (mut a, mut b) = (PageHistory::default(), PageHistory::default());
            let mut now_s = 1_700_000_000;
            for visit in &visits {
                now_s += visit.wait_s;
                let seen = observation(visit, now_s);
                b = PageHistory::from_bytes(&b.to_bytes()).unwrap();
                let next = once.next(now_s, &mut a, seen);
                prop_assert_eq!(next, again.next(now_s, &mut b, seen), "{}", name);
                prop_assert_eq!(&a, &b);
                prop_assert_eq!(next, once.next_due(now_s, &a, seen.place));
            }
        }
    }

    #[test]
    fn a_failed_visit_teaches_nothing(visits in visits()) {
        for name in POLICIES {
            let mut policy = build(name, Limits::default());
            let (mut history, mut now_s) = (PageHistory::default(), 1_700_000_000);
            for visit in &visits {
                now_s += visit.wait_s;
                let before = history.clone();
                policy.next(now_s, &mut history, observation(visit, now_s));
                prop_assert_eq!(visit.outcome == 2, before == history, "{}", name);
            }
        }
    }

    /// Visits in equal steps, so that the number of changes is the observed rate.
    #[test]
    fn more_changes_never_lead_to_a_later_visit(
        step_s in DAY_S..30 * DAY_S,
        changed in proptest::collection::vec((any::<bool>(), any::<bool>()), 1..40),
    ) {
        // Fairness among pages is the exception: there a page whose changes are too many to be got
        // yields to pages that change less.
        for name in POLICIES.into_iter().filter(|name| !name.contains("fair")) {
            let limits = Limits { ceiling_s: 10_000 * DAY_S, ..Limits::default() };
            let due_after_s = |changes: &dyn Fn(&(bool, bool)) -> bool| {
                // A policy of its own, since the pages of one teach each other.
                let mut policy = build(name, limits);
                let mut history = PageHistory::default();
                let mut next = policy.next(0, &mut history, Observation::changed());
                let mut now_s = 0;
                for pair in &changed {
                    now_s += step_s;
                    let seen = if changes(pair) { Observation::changed() } else { Observation::same() };
                    next = policy.next(now_s, &mut history, seen);
                }
                (next.due_s - now_s, history.changes())
            };
            let (fewer_due_s, fewer) = due_after_s(&|pair| pair.0 && pair.1);
            let (more_due_s, more) = due_after_s(&|pair| pair.0);
            prop_assert!(fewer <= more);
            // `auto` keeps its likelihoods in bytes: rounding may shift a wait by some percent.
            let slack_s = if name.starts_with("auto") { fewer_due_s / 10 + 3_600 } else { 0 };
            prop_assert!(more_due_s <= fewer_due_s + slack_s, "{name}: {more_due_s} after {fewer_due_s}");
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused_but_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        if let Ok(mut history) = PageHistory::from_bytes(&bytes) {
            for name in POLICIES {
                let next = build(name, Limits::default()).next(0, &mut history, Observation::same());
                prop_assert!(next.due_s > 0);
            }
        }
    }

    #[test]
    fn any_text_is_a_policy_that_reads_back_or_an_error(text in "[a-z.]{0,12}\\(?[0-9a-z.,=/-]{0,20}\\)?") {
        if let Ok(spec) = text.parse::<PolicySpec>() {
            prop_assert_eq!(spec.to_string().parse::<PolicySpec>().unwrap(), spec);
        }
    }
}
