//! When pages come again: the machine over a real state in memory.

use crate::world;

use nenrin_crawl::{CrawlOptions, Event};
use nenrin_revisit::RevisitSettings;
use nenrin_state::{PullForward, SiteId};
use world::{BEGIN_MS, DAY_MS, HOUR_MS, World};

fn every(interval: &str) -> RevisitSettings {
    RevisitSettings {
        policy: format!("every({interval})").parse().unwrap(),
        ..RevisitSettings::default()
    }
}

#[test]
fn pages_come_again_in_the_bucket_of_their_time() {
    let mut world = World::new(every("12h"), |_| {});
    world.pass(BEGIN_MS + 3 * DAY_MS + HOUR_MS);
    for path in ["/", "/a"] {
        let visits = world.visits(path);
        assert_eq!(visits.len(), 7, "{path}: {visits:?}");
        assert!(visits.windows(2).all(|two| (two[1] - two[0] - 12 * HOUR_MS).abs() < 2 * HOUR_MS));
    }
}

#[test]
fn a_hint_brings_a_page_at_once_and_only_that_page() {
    let mut world = World::new(every("30d"), |_| {});
    world.pass(BEGIN_MS + 2 * DAY_MS);
    assert_eq!((world.visits("/").len(), world.visits("/a").len()), (1, 1));
    let page = world.page("/a").id;
    let to_s = world.now_ms / 1000;
    let hint = nenrin_lang::Hint::AnnouncedBy("a feed".to_owned());
    world.happen(Event::Hint(PullForward { page, to_s, odds_percent: 100, hint }));
    world.pass(BEGIN_MS + 3 * DAY_MS);
    assert_eq!((world.visits("/").len(), world.visits("/a").len()), (1, 2));
    assert_eq!(world.state.pulled(page).unwrap(), None);
    assert!(world.page("/a").due_s.unwrap() * 1000 > world.now_ms + 28 * DAY_MS);
}

#[test]
fn a_page_that_is_gone_is_looked_for_ever_more_rarely() {
    let mut world = World::new(every("1d"), |_| {});
    world.pass(BEGIN_MS + HOUR_MS);
    world.gone.push("/a".to_owned());
    world.pass(BEGIN_MS + 40 * DAY_MS + HOUR_MS);
    let while_gone = world.visits("/a").len();
    assert!((6..=8).contains(&while_gone), "{:?}", world.visits("/a"));
    assert_eq!(world.visits("/").len(), 41);
    world.gone.clear();
    world.pass(BEGIN_MS + 80 * DAY_MS);
    assert!(world.visits("/a").len() > while_gone + 10, "it came back to its own schedule");
}

#[test]
fn a_paused_site_rests_and_goes_on_when_resumed() {
    let mut world = World::new(every("1d"), |_| {});
    world.pass(BEGIN_MS + HOUR_MS);
    world.state.pause_site(SiteId(1), true).unwrap();
    world.tell_sites();
    world.pass(BEGIN_MS + 10 * DAY_MS);
    assert_eq!(world.visits("/").len(), 1);
    world.state.pause_site(SiteId(1), false).unwrap();
    world.tell_sites();
    world.pass(BEGIN_MS + 11 * DAY_MS);
    assert!(world.visits("/").len() >= 2 && world.visits("/a").len() >= 2);
}

#[test]
fn the_budget_of_the_archive_bounds_every_day() {
    let options = CrawlOptions { visits_per_day: Some(3), ..CrawlOptions::default() };
    let mut world = World::with(options, every("1h"), |_| {});
    world.pass(BEGIN_MS + 10 * DAY_MS - 1);
    let mut days = [0; 10];
    // The probe and the look for a sitemap do not count as visits.
    let visits = world.asked.iter().filter(|(_, path)| ["/", "/a"].contains(&path.as_str()));
    for (at_ms, _) in visits {
        days[((at_ms - BEGIN_MS) / DAY_MS) as usize] += 1;
    }
    assert!(days.iter().all(|&visits| visits <= 3), "{days:?}");
    assert!(world.visits("/").len() > 5 && world.visits("/a").len() > 5, "{days:?}");
}

#[test]
fn a_server_is_asked_at_a_slower_pace_after_a_day_that_used_up_its_visits() {
    let settings = RevisitSettings { visits_per_day: Some(6), ..every("1h") };
    let mut world = World::new(settings, |_| {});
    world.links.insert("/".to_owned(), (1..20).map(|n| format!("/p{n}")).collect());
    world.pass(BEGIN_MS + 3 * DAY_MS - 1);
    let visits = world.asked.iter().filter(|(_, path)| path.len() < 5);
    let times: Vec<i64> = visits.map(|(at_ms, _)| at_ms - BEGIN_MS).collect();
    let of_day = |day: i64| times.iter().filter(move |&&at_ms| at_ms / DAY_MS == day);
    assert_eq!([0, 1, 2].map(|day| of_day(day).count()), [6; 3], "{times:?}");
    assert!(of_day(0).all(|&at_ms| at_ms < HOUR_MS), "as soon as may be: {times:?}");
    let second: Vec<i64> = of_day(1).copied().collect();
    assert!(second.windows(2).all(|two| two[1] - two[0] >= 2 * HOUR_MS), "{second:?}");
}

#[test]
fn the_slower_pace_is_kept_after_a_restart() {
    let settings = RevisitSettings { visits_per_day: Some(6), ..every("1h") };
    let mut world = World::new(settings, |_| {});
    world.links.insert("/".to_owned(), (1..20).map(|n| format!("/p{n}")).collect());
    world.pass(BEGIN_MS + DAY_MS - HOUR_MS);
    world.now_ms = BEGIN_MS + DAY_MS + HOUR_MS;
    world.restart(false);
    world.pass(BEGIN_MS + 2 * DAY_MS - 1);
    let visits = world.asked.iter().filter(|(_, path)| path.len() < 5);
    let times: Vec<i64> = visits.map(|(at_ms, _)| at_ms - BEGIN_MS).collect();
    let second: Vec<i64> = times.iter().copied().filter(|at_ms| at_ms / DAY_MS == 1).collect();
    assert_eq!(second.len(), 6, "{times:?}");
    assert!(second.windows(2).all(|two| two[1] - two[0] >= 2 * HOUR_MS), "{second:?}");
}

/// Thirty pages take ten days. A page that has waited so long goes before all that have not, and of those
/// that have each goes before it once at most.
#[test]
fn every_page_gets_its_turn_where_a_day_has_few_visits() {
    let settings = RevisitSettings { visits_per_day: Some(3), ..RevisitSettings::default() };
    let mut world = World::new(settings, |_| {});
    let paths: Vec<String> = (1..30).map(|n| format!("/p{n}")).collect();
    world.links.insert("/".to_owned(), paths.clone());
    for day in 1..=100 {
        for path in &paths[..15] {
            world.revisions.insert(path.clone(), day);
        }
        world.pass(BEGIN_MS + i64::from(day) * DAY_MS - 1);
        for path in &paths {
            let waits_ms = world.now_ms - world.page(path).due_s.unwrap() * 1000;
            assert!(waits_ms <= 23 * DAY_MS, "{path} on day {day}: {:?}", world.visits(path));
        }
    }
    let visits = |paths: &[String]| -> usize { paths.iter().map(|p| world.visits(p).len()).sum() };
    assert!(visits(&paths[..15]) > visits(&paths[15..]), "what changes is worth more visits");
}

#[test]
fn a_site_is_asked_in_its_hours_alone() {
    // 1 January 2024 was a Monday.
    let mut world = World::new(every("6h"), |conditions| {
        conditions.windows = vec!["tue,thu 02:00-04:00 UTC".parse().unwrap()];
    });
    world.pass(BEGIN_MS + 14 * DAY_MS);
    let visits = world.visits("/");
    assert_eq!(visits.len(), 4, "{visits:?}");
    for at_ms in visits {
        let (day, hour) = (at_ms / DAY_MS % 7, at_ms % DAY_MS / HOUR_MS);
        assert!((day == 1 || day == 3) && (2..4).contains(&hour), "day {day}, hour {hour}");
    }
}

#[test]
fn a_site_at_its_quota_rests_and_goes_on_by_itself_when_there_is_room() {
    let mut world = World::new(every("6h"), |_| {});
    world.pass(BEGIN_MS + 2 * DAY_MS);
    let before = world.asked.len();
    assert!(before > 4);
    world.happen(Event::Full([SiteId(1)].into()));
    // Not even a requested round begins.
    world.happen(Event::CollectNow(SiteId(1)));
    world.pass(BEGIN_MS + 4 * DAY_MS);
    assert_eq!(world.asked.len(), before);
    world.happen(Event::Full([SiteId(7)].into()));
    world.pass(BEGIN_MS + 6 * DAY_MS);
    assert!(world.asked.len() >= before + 4, "{:?}", world.asked);
}
