//! Shared blocks as evidence: a menu that was replaced on one page brings the pages that have it
//! forward, in the same round.

use crate::world;

use nenrin_crawl::{Crawl, CrawlOptions};
use nenrin_revisit::RevisitSettings;
use nenrin_state::{Schedule, SiteId};
use nenrin_structure::RoundsBy;
use world::{BEGIN_MS, DAY_MS, HOUR_MS, World};

const DIRECTORIES: [&str; 12] = [
    "ash", "beech", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine", "rowan", "yew",
];
const OTHERS: [&str; 5] = ["bark", "leaf", "ring", "root", "seed"];
/// Pages of the template that are scattered over the directories, one in each.
fn scattered() -> Vec<String> {
    let names = ["map", "tour", "shop", "news", "team", "jobs"];
    let page = |(n, directory): (usize, &&str)| format!("/d-{directory}/{}.html", names[n % 6]);
    DIRECTORIES.iter().enumerate().map(page).collect()
}

fn others() -> Vec<String> {
    let of = |directory| OTHERS.map(|name| format!("/d-{directory}/{name}.html"));
    DIRECTORIES.into_iter().flat_map(of).collect()
}

fn body(menu: &str, path: &str, text: u32) -> String {
    let entry = |n: u32| format!("<li><a href='/{menu}/{n}'>{menu} entry {n}</a>");
    let entries: String = (0..30).map(entry).collect();
    let paragraph = |n: u32| format!("<p>{path} says {n} for the {text}th time");
    let text: String = (0..8).map(paragraph).collect();
    format!("<html><head><title>{path}</title><body><ul class={menu}>{entries}</ul>{text}")
}

/// Twelve directories of six pages; one page of each directory has a menu of its own kind, which
/// the top page has too. Links do not show it.
fn world(tell_blocks: bool) -> World {
    let options = CrawlOptions { round_ahead: 1, ..CrawlOptions::default() };
    let mut world = World::with(options, RevisitSettings::default(), |conditions| {
        conditions.schedule = Schedule::Rounds { period_s: DAY_MS / 1000 };
        conditions.hints.signals = false;
        conditions.rounds_by = RoundsBy::Auto;
    });
    world.tell_blocks = tell_blocks;
    let mut all = [scattered(), others()].concat();
    all.sort();
    world.links.insert("/".to_owned(), all);
    show(&mut world, "shop", 0);
    for path in others() {
        world.bodies.insert(path.clone(), body("plain", &path, 0));
    }
    world
}

fn show(world: &mut World, menu: &str, text: u32) {
    for path in scattered().into_iter().chain(["/".to_owned()]) {
        let body = body(menu, &path, text);
        world.bodies.insert(path, body);
    }
}

/// Rounds in which a page or two change by themselves.
fn quiet_rounds(world: &mut World, rounds: std::ops::Range<usize>) {
    for round in rounds {
        if round > 0 {
            for path in [&others()[(round * 17) % 60], &scattered()[(round * 5) % 12]] {
                let menu = if scattered().contains(path) { "shop" } else { "plain" };
                let text = u32::try_from(round).unwrap();
                world.bodies.insert(path.clone(), body(menu, path, text));
            }
        }
        world.pass(begin_ms(round) + 12 * HOUR_MS);
    }
}

fn begin_ms(round: usize) -> i64 {
    BEGIN_MS + i64::try_from(round).unwrap() * DAY_MS
}

fn asked(world: &World, from: usize) -> Vec<String> {
    let known = |path: &&(i64, String)| path.1 == "/" || path.1.starts_with("/d-");
    world.asked[from..].iter().filter(known).map(|(_, path)| path.clone()).collect()
}

/// How many of the scattered pages are among the first `count` asked for.
fn found_within(asked: &[String], count: usize) -> usize {
    let scattered = scattered();
    asked.iter().take(count).filter(|path| scattered.contains(path)).count()
}

const QUIET_ROUNDS: usize = 4;

#[test]
fn pages_that_share_a_menu_come_first_once_one_has_shown_that_it_was_replaced() {
    let found = [true, false].map(|tell_blocks| {
        let mut world = world(tell_blocks);
        quiet_rounds(&mut world, 0..QUIET_ROUNDS);
        show(&mut world, "store", 99);
        let from = world.asked.len();
        world.pass(begin_ms(QUIET_ROUNDS) + 12 * HOUR_MS);
        let asked = asked(&world, from);
        found_within(&asked, 18)
    });
    assert!(found[0] >= 11 && found[1] <= 7, "with and without: {found:?} of 12");
}

#[test]
fn a_process_that_takes_over_knows_which_menu_was_replaced() {
    let mut world = world(true);
    quiet_rounds(&mut world, 0..2);
    restart(&mut world);
    quiet_rounds(&mut world, 2..QUIET_ROUNDS);
    show(&mut world, "store", 99);
    let from = world.asked.len();
    let mut until_ms = begin_ms(QUIET_ROUNDS);
    while found_within(&asked(&world, from), usize::MAX) + 1 < 3 {
        until_ms += 1000;
        world.pass(until_ms);
    }
    let before = asked(&world, from).len();
    assert!(before < 20, "the round has only begun");
    restart(&mut world);
    world.pass(begin_ms(QUIET_ROUNDS) + 12 * HOUR_MS);
    let rest = asked(&world, from)[before..].to_vec();
    let left = 12 - found_within(&asked(&world, from), before);
    assert!(left >= 8, "{left}");
    assert!(found_within(&rest, left + 3) >= left - 1, "{rest:?}");
    assert!(world.state.rounds(Some(SiteId(1)), 1).unwrap()[0].ended_s.is_some());
}

fn restart(world: &mut World) {
    world.machine = Crawl::new(CrawlOptions { round_ahead: 1, ..CrawlOptions::default() });
    world.tell_sites();
}

#[test]
fn a_menu_with_another_token_at_each_visit_makes_no_other_page_due() {
    let visits = [true, false].map(|tell_blocks| {
        let mut world = world(tell_blocks);
        let mut of_others = Vec::new();
        for round in 0..8 {
            for (n, path) in scattered().into_iter().enumerate() {
                let token = format!("shop token='{}'", round * 100 + n);
                world.bodies.insert(path.clone(), body(&token, &path, 0));
            }
            let from = world.asked.len();
            world.pass(begin_ms(round) + 12 * HOUR_MS);
            let asked = asked(&world, from);
            of_others.push(asked.iter().filter(|path| others().contains(path)).count());
        }
        of_others
    });
    let sum = |visits: &[usize]| visits[2..].iter().sum::<usize>();
    assert!(sum(&visits[0]) <= sum(&visits[1]) + 6, "with and without: {visits:?}");
}
