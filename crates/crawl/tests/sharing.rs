//! Pages that belong to two sites: the machine over a real state in memory.

use crate::world;

use nenrin_revisit::RevisitSettings;
use nenrin_state::{Schedule, SiteConditions};
use world::{BEGIN_MS, DAY_MS, HOUR_MS, World, url};

const DAILY: Schedule = Schedule::Rounds { period_s: DAY_MS / 1000 };

/// A world with two sites that have the same pages.
fn shared(first: impl FnOnce(&mut SiteConditions)) -> World {
    let mut world = World::new(RevisitSettings::default(), first);
    let mut second = SiteConditions::new(vec![url("http://e.com/")]);
    second.schedule = DAILY;
    world.state.add_site("second", &second, BEGIN_MS / 1000).unwrap();
    world.tell_sites();
    world
}

fn rounds_ended(world: &World) -> usize {
    let sites = world.state.sites().unwrap();
    let rounds = sites.iter().flat_map(|site| world.state.rounds(Some(site.id), 99).unwrap());
    rounds.filter(|round| round.ended_s.is_some()).count()
}

#[test]
fn the_same_content_is_committed_once_however_many_sites_have_the_page() {
    let mut world = shared(|first| first.schedule = DAILY);
    world.pass(BEGIN_MS + HOUR_MS);
    for (path, visits) in [("/", 2), ("/a", 2)] {
        let page = world.page(path);
        assert_eq!((page.visits, page.changes), (visits, 1), "{path}");
    }
    assert_eq!(rounds_ended(&world), 2, "each site has its own round");
    world.revisions.insert("/a".to_owned(), 1);
    world.pass(BEGIN_MS + DAY_MS + HOUR_MS);
    assert_eq!((world.page("/").changes, world.page("/a").changes), (1, 2));
    assert_eq!(rounds_ended(&world), 4);
}

#[test]
fn a_page_with_its_own_time_and_one_of_a_round_do_not_get_into_each_others_way() {
    let mut world = shared(|_| {});
    world.pass(BEGIN_MS + HOUR_MS);
    for path in ["/", "/a"] {
        assert_eq!(world.page(path).changes, 1, "{path}");
        assert!(world.page(path).due_s.unwrap() * 1000 > world.now_ms, "{path}");
    }
    assert_eq!(rounds_ended(&world), 1);
    world.pass(BEGIN_MS + 3 * DAY_MS + HOUR_MS);
    assert_eq!(rounds_ended(&world), 4);
}
