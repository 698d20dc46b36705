//! The estimated number of missed versions, where changes come at random times.
#![expect(clippy::unwrap_used, reason = "a policy that cannot be parsed must fail its test")]

use nenrin_revisit::{
    DAY_S, KnownPage, Outcome, PageRevisitScheduler, Planned, PolicySpec, RevisitSettings,
};

const DAYS: i64 = 400;

/// SplitMix64 as a number from 0 to 1: the same in every run.
fn draw(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// Versions that a policy missed of pages with such a chance to change on a day, and the estimate.
fn missed(policy: &str, chance: f64) -> (f64, f64) {
    let policy: PolicySpec = policy.parse().unwrap();
    let settings = RevisitSettings { policy, ..RevisitSettings::default() };
    let mut scheduler = PageRevisitScheduler::new(settings, DAY_S);
    let (mut missed, mut estimated, mut random) = (0.0, 0.0, 7);
    for number in 0..120 {
        let path = format!("/d{}/page{number}x.html", number % 5);
        let (mut planned, mut found): (Option<Planned>, _) = (None, None);
        let (mut unseen, mut own_missed) = (0u32, 0u32);
        for day in 0..DAYS {
            unseen += u32::from(day > 0 && draw(&mut random) < chance);
            let now_s = (day + 1) * DAY_S;
            if planned.as_ref().is_some_and(|planned| planned.due_s > now_s) {
                continue;
            }
            let history = planned.as_ref().map_or(&[][..], |planned| &planned.history);
            let importance_percent = 100;
            let known = KnownPage {
                server: 1,
                path: &path,
                history,
                found,
                failures: 0,
                importance_percent,
            };
            let seen =
                if unseen > 0 || planned.is_none() { Outcome::Changed } else { Outcome::Same };
            own_missed += unseen.saturating_sub(1);
            unseen = 0;
            planned = Some(scheduler.visited(now_s, &known, seen, None, 1.0));
            found = Some(seen);
        }
        missed += f64::from(own_missed);
        estimated += planned.and_then(|planned| planned.missed).unwrap_or(0.0);
    }
    (missed, estimated)
}

#[test]
fn the_estimate_is_right_to_a_quarter_where_changes_come_at_random() {
    for policy in ["auto", "mle.mix(0.1-10,2nd=7d)", "nutch(7d)"] {
        for chance in [0.05, 0.2, 0.5] {
            let (missed, estimated) = missed(policy, chance);
            let ratio = (estimated + 50.0) / (missed + 50.0);
            assert!((0.75..1.33).contains(&ratio), "{policy} {chance}: {estimated} of {missed}");
        }
    }
}
