//! Pages that change together pull each other forward: the machine over a real state in memory.

use crate::world;

use nenrin_revisit::RevisitSettings;
use world::{BEGIN_MS, DAY_MS, HOUR_MS, World};

/// Twenty pages of a manual and twenty of people, below one that never changes.
fn forty_pages() -> World {
    let settings =
        RevisitSettings { policy: "every(10d)".parse().unwrap(), ..RevisitSettings::default() };
    let mut world = World::new(settings, |_| {});
    let paths = (0..20).flat_map(|n| [format!("/manual/{n}.html"), format!("/people/{n}.html")]);
    world.links.insert("/".to_owned(), paths.collect());
    world
}

/// The day of `n`'s first visit again: pages are spread over the ten days of the schedule.
fn spread(world: &mut World) {
    for n in 0..20 {
        world.pass(world.now_ms + DAY_MS / 2);
        for path in [format!("/manual/{n}.html"), format!("/people/{n}.html")] {
            let (page, to_s) = (world.page(&path).id, world.now_ms / 1000);
            let pull = nenrin_state::PullForward {
                page,
                to_s,
                odds_percent: 100,
                hint: nenrin_lang::Hint::AnnouncedBy("spread".to_owned()),
            };
            world.happen(nenrin_crawl::Event::Hint(pull));
        }
    }
    world.pass(world.now_ms + HOUR_MS);
}

fn change(world: &mut World, path: &str) {
    *world.revisions.entry(path.to_owned()).or_default() += 1;
}

/// Every 25 days the manual changes as a whole, and every half day one of the people.
fn live(world: &mut World, half_days: std::ops::Range<u32>) {
    for half_day in half_days {
        world.pass(world.now_ms + DAY_MS / 2);
        if half_day % 50 == 49 {
            (0..20).for_each(|n| change(world, &format!("/manual/{n}.html")));
        }
        let person = half_day.wrapping_mul(2_654_435_761) >> 16;
        change(world, &format!("/people/{}.html", person % 20));
    }
}

/// Days from the last change of the manual until all of its pages were seen again.
fn days_behind(world: &World, changed_ms: i64) -> f64 {
    let first_after = |n| {
        let visits = world.visits(&format!("/manual/{n}.html"));
        visits.into_iter().find(|at_ms| BEGIN_MS + at_ms > changed_ms).unwrap()
    };
    let last_ms = (0..20).map(first_after).max().unwrap();
    (BEGIN_MS + last_ms - changed_ms) as f64 / DAY_MS as f64
}

#[test]
fn what_changes_together_is_visited_together_once_that_is_learnt_also_after_a_restart() {
    let mut world = forty_pages();
    world.pass(BEGIN_MS + HOUR_MS);
    spread(&mut world);
    live(&mut world, 0..400);
    assert!(world.looked_near > 0, "nothing was learnt");
    world.restart(true);
    live(&mut world, 400..449);
    (0..20).for_each(|n| change(&mut world, &format!("/manual/{n}.html")));
    let changed_ms = world.now_ms;
    let people = |world: &World| -> usize {
        (0..20).map(|n| world.visits(&format!("/people/{n}.html")).len()).sum()
    };
    let before = people(&world);
    world.pass(changed_ms + 12 * DAY_MS);
    let days = days_behind(&world, changed_ms);
    assert!(days < 5.0, "the last page of the manual was seen {days} days late");
    let visits = people(&world) - before;
    assert!((18..=30).contains(&visits), "people were visited {visits} times in 12 days");
    assert_eq!(world.state.pulled(world.page("/manual/3.html").id).unwrap(), None);
}

#[test]
fn a_site_whose_pages_go_their_own_ways_is_never_looked_up() {
    let mut world = forty_pages();
    world.pass(BEGIN_MS + HOUR_MS);
    spread(&mut world);
    for half_day in 0..400u32 {
        world.pass(world.now_ms + DAY_MS / 2);
        let page = half_day.wrapping_mul(2_654_435_761) >> 16;
        change(&mut world, &format!("/people/{}.html", page % 20));
        change(&mut world, &format!("/manual/{}.html", (page >> 5) % 20));
    }
    assert_eq!(world.looked_near, 0);
}
