//! Which new page first: the machine with its crawl order over a real state in memory.

use crate::world;

use nenrin_crawl::{Crawl, CrawlOptions, Event};
use nenrin_revisit::RevisitSettings;
use nenrin_state::{
    Change, FoundPage, FoundPages, Nth, Origin, Outcome, PageUpdate, Reading, Schedule, ServerId,
    SiteId, VersionId, VersionRow, VisitCommit,
};
use world::{BEGIN_MS, DAY_MS, HOUR_MS, World, url};

fn settings() -> RevisitSettings {
    RevisitSettings { policy: "every(300d)".parse().unwrap(), ..RevisitSettings::default() }
}

fn paths(numbers: impl Iterator<Item = usize>) -> Vec<String> {
    numbers.map(|n| format!("/p{n}")).collect()
}

/// A top page that links to 40 pages, of which the fourth and others after it link to the last.
fn world(rounds: bool) -> World {
    let mut world = World::new(settings(), |conditions| {
        if rounds {
            conditions.schedule = Schedule::Rounds { period_s: 300 * 86_400 };
        }
    });
    world.links.insert("/".to_owned(), paths(0..40));
    for n in 3..9 {
        world.links.insert(format!("/p{n}"), paths([39, 38].into_iter()));
    }
    for n in 9..39 {
        world.links.insert(format!("/p{n}"), paths((n % 7 * 5..n % 7 * 5 + 4).filter(|p| *p != n)));
    }
    world
}

fn asked(world: &World) -> Vec<&str> {
    world.asked.iter().map(|(_, path)| path.as_str()).collect()
}

fn place(world: &World, path: &str) -> usize {
    asked(world).iter().position(|asked| *asked == path).unwrap()
}

#[test]
fn the_page_with_the_best_links_goes_before_those_found_earlier() {
    for rounds in [false, true] {
        let mut world = world(rounds);
        world.pass(BEGIN_MS + HOUR_MS);
        assert_eq!(world.asked.len(), 41, "{:?}", asked(&world));
        // The fourth page is the fifth asked for; the next few may have been chosen by then.
        let place = place(&world, "/p39");
        assert!((5..=9).contains(&place), "rounds {rounds}: {place} in {:?}", asked(&world));
    }
}

#[test]
fn after_a_stop_the_order_goes_on_where_it_was() {
    let mut whole = world(false);
    whole.pass(BEGIN_MS + HOUR_MS);
    let mut stopped = world(false);
    stopped.pass(BEGIN_MS + 15_000);
    let before = stopped.asked.len();
    assert!((5..30).contains(&before), "{before}");
    stopped.restart(true);
    assert!(!stopped.state.order().unwrap().is_empty());
    stopped.pass(BEGIN_MS + HOUR_MS);
    assert_eq!(stopped.asked.len(), whole.asked.len());
    // The few pages that were in the queue are chosen again.
    for path in asked(&whole) {
        let moved = place(&whole, path).abs_diff(place(&stopped, path));
        assert!(moved <= 4, "{path}: {:?} {:?}", asked(&whole), asked(&stopped));
    }
}

#[test]
fn a_lost_or_damaged_snapshot_is_built_anew_from_the_links() {
    for damaged in [false, true] {
        let mut world = world(false);
        world.pass(BEGIN_MS + 15_000);
        if damaged {
            world
                .state
                .commit(&[Change::Order {
                    bytes: vec![7; 100],
                    received: Vec::new(),
                    handed_on: Vec::new(),
                }])
                .unwrap();
        }
        world.restart(false);
        let stats = world.machine.order_stats();
        assert_eq!((stats.pages, stats.unscored, stats.is_current), (41, 0, true));
        assert!(stats.additions >= 40, "{stats:?}");
        world.pass(BEGIN_MS + HOUR_MS);
        let mut all = asked(&world);
        all.sort_unstable();
        all.dedup();
        assert_eq!((all.len(), world.asked.len()), (41, 41), "{:?}", asked(&world));
        assert_eq!(world.links_read, 0);
    }
}

#[test]
fn pages_that_came_from_elsewhere_are_read_for_links() {
    let mut world = world(false);
    world.pass(BEGIN_MS + 3_000);
    let page = world.page("/p20").id;
    let imported = VisitCommit {
        origin: Origin::Imported,
        status: 200,
        received_bytes: 1,
        stored_bytes: 1,
        version: Some(VersionRow {
            at_s: BEGIN_MS / 1000,
            version: VersionId(5),
            status: 200,
            mime: "text/html".to_owned(),
            bytes: 1,
            changed_permille: None,
        }),
        update: PageUpdate {
            bytes: 1,
            due_s: Some(BEGIN_MS / 1000 + 300 * 86_400),
            ..PageUpdate::default()
        },
        ..VisitCommit::new(page, SiteId(1), BEGIN_MS / 1000, Outcome::Changed)
    };
    world.state.commit(&[Change::Visit(Box::new(imported))]).unwrap();
    let nth = world.page("/p20").nth;
    assert_eq!(world.state.found(Nth(nth.0 - 1), 1).unwrap()[0].reading, Reading::Unread);
    world.restart(false);
    assert_eq!(world.links_read, 1);
    assert_eq!(world.state.links(&[nth]).unwrap()[0].targets.as_ref().map(Vec::len), Some(4));
    world.pass(BEGIN_MS + HOUR_MS);
    assert_eq!((world.asked.len(), world.visits("/p20").len()), (40, 0));
}

#[test]
fn new_pages_of_a_paused_site_wait_until_it_goes_on() {
    let mut world = world(false);
    world.pass(BEGIN_MS + 3_000);
    world.state.pause_site(SiteId(1), true).unwrap();
    world.tell_sites();
    world.pass(BEGIN_MS + DAY_MS);
    let before = world.asked.len();
    assert!(before < 10, "{before}");
    world.state.pause_site(SiteId(1), false).unwrap();
    world.tell_sites();
    world.pass(BEGIN_MS + 2 * DAY_MS);
    assert_eq!(world.asked.len(), 41);
}

#[test]
fn pages_made_known_by_others_meanwhile_are_told_to_the_order() {
    let mut world = world(false);
    world.pass(BEGIN_MS + 3_000);
    let found = |path: &str| nenrin_state::Discovered {
        url: url(&format!("http://e.com{path}")),
        depth: 2,
        hops: 0,
        due_s: Some(BEGIN_MS / 1000),
    };
    // No event reports this: another thread of the program added pages.
    let pages = vec![found("/x"), found("/y")];
    let found = FoundPages { site: SiteId(1), at_s: BEGIN_MS / 1000, pages };
    world.state.commit(&[Change::Found(found)]).unwrap();
    world.links.insert("/p2".to_owned(), vec!["/z".to_owned()]);
    world.links.insert("/p5".to_owned(), vec!["/z".to_owned(), "/x".to_owned()]);
    world.pass(BEGIN_MS + HOUR_MS);
    assert_eq!(world.asked.len(), 44);
    let stats = world.machine.order_stats();
    assert_eq!((stats.pages, stats.unscored), (44, 0));
}

#[test]
fn a_known_page_takes_at_most_24_bytes_in_the_live_crawler() {
    const PAGES: u32 = 300_000;
    let mut machine = Crawl::new(CrawlOptions::default());
    machine.step(BEGIN_MS, Event::Sites(Vec::new()));
    machine.step(BEGIN_MS, Event::OrderLoaded { bytes: Vec::new(), received: Vec::new() });
    let mut after = 0;
    while after < PAGES {
        let page =
            |nth| FoundPage { nth: Nth(nth), server: ServerId(nth % 5_000), reading: Reading::New };
        let pages: Vec<FoundPage> = (after + 1..=(after + 20_000).min(PAGES)).map(page).collect();
        machine.step(BEGIN_MS, Event::FoundLoaded { after: Nth(after), pages });
        after += 20_000;
    }
    machine.step(BEGIN_MS, Event::FoundLoaded { after: Nth(PAGES), pages: Vec::new() });
    let stats = machine.order_stats();
    assert_eq!((stats.pages, stats.is_current), (u64::from(PAGES), true));
    let bytes = stats.memory_bytes as f64 / f64::from(PAGES);
    eprintln!("{bytes:.2} bytes for each known page");
    assert!((12.0..=24.0).contains(&bytes), "{bytes} bytes");
}

#[test]
fn what_a_page_turns_out_to_be_worth_reaches_the_state_without_a_visit() {
    let mut world = world(false);
    world.pass(BEGIN_MS + HOUR_MS);
    let visits_before = world.asked.len();
    let (top, last) = (world.page("/"), world.page("/p39"));
    assert_eq!(top.importance_percent, 100, "it was the only known page");
    world.restart(true);
    assert_eq!(world.asked.len(), visits_before);
    let now = world.page("/p39").importance_percent;
    assert!(now * 10 > last.importance_percent * 13, "{last:?} {now}");
    let top = world.page("/");
    assert!(top.importance_percent < 75, "nothing links to it: {}", top.importance_percent);
    let worth = world.state.site_worth().unwrap()[0];
    assert_eq!((worth.weighed_pages, worth.mean_rate_per_day()), (41, None));
    assert!((25.0..60.0).contains(&worth.importance()), "{worth:?}");
    let curve = world.state.order_curve(Some(SiteId(1))).unwrap();
    let pages: u64 = curve.collected.iter().map(|group| group.pages).sum();
    assert_eq!(pages, 41);
    assert_eq!(curve.collected[0].importance_percent, u64::from(top.importance_percent));
    assert_eq!(world.state.check().unwrap(), Vec::<String>::new());
}

#[test]
fn at_the_end_of_a_round_the_state_knows_what_pages_turned_out_to_be_worth() {
    let mut world = world(true);
    world.pass(BEGIN_MS + HOUR_MS);
    assert!(world.state.rounds(None, 1).unwrap()[0].ended_s.is_some());
    let top = world.page("/");
    assert!(top.importance_percent < 75, "nothing links to it: {}", top.importance_percent);
}

#[test]
fn rates_are_told_by_policies_that_estimate_them() {
    let mut world = World::new(RevisitSettings::default(), |_| {});
    world.links.insert("/".to_owned(), paths(0..4));
    world.pass(BEGIN_MS + HOUR_MS);
    let worth = world.state.site_worth().unwrap()[0];
    assert_eq!(worth.estimated_pages, 5);
    assert!(worth.mean_rate_per_day().is_some_and(|rate| rate > 0.0), "{worth:?}");
    assert!(worth.mean_confidence().is_some_and(|sure| sure < 1.0), "{worth:?}");
}
