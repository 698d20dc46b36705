//! Whatever a server makes up as it is asked, the number of its pages stays bounded, and a person
//! can see why.

use crate::world;

use nenrin_crawl::{Answer, FetchOrder, FoundLink, LinkRole, ServerLearning, SignalKind};
use nenrin_revisit::RevisitSettings;
use nenrin_state::ContentMark;
use world::{DAY_MS, World, url};

fn world(makes: fn(&FetchOrder) -> Answer) -> World {
    let settings =
        RevisitSettings { policy: "every(10d)".parse().unwrap(), ..RevisitSettings::default() };
    let mut world = World::new(settings, |conditions| conditions.depth = 3);
    world.makes = Some(makes);
    world
}

/// A page with other content than any other, and these links.
fn page(order: &FetchOrder, role: LinkRole, paths: impl IntoIterator<Item = String>) -> Answer {
    let link = |path: String| FoundLink { url: url(&format!("http://e.com{path}")), role };
    let mut mark = [7_u8; 16];
    for (n, byte) in order.url.as_str().bytes().enumerate() {
        mark[n % 16] = mark[n % 16].wrapping_mul(31).wrapping_add(byte);
    }
    let links = paths.into_iter().map(link).collect();
    Answer { status: 200, mark: Some(ContentMark(mark)), links, ..Answer::default() }
}

fn number(order: &FetchOrder) -> u64 {
    let digits = order.url.as_str().rsplit(|c: char| !c.is_ascii_digit()).find(|s| !s.is_empty());
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// What is reported about links that were not followed.
fn reported(world: &mut World) -> Vec<&'static str> {
    world.happen(nenrin_crawl::Event::Stop);
    let servers = world.state.servers(&[world.page("/").id.server()]).unwrap();
    let learnt = ServerLearning::of(&servers[0].notes);
    learnt.traps.refused.keys().map(|trap| trap.text()).collect()
}

#[test]
fn frames_inside_frames_end() {
    let mut world =
        world(|order| page(order, LinkRole::Frame, [format!("/f{}", number(order) + 1)]));
    world.pass(world.now_ms + DAY_MS);
    let pages = world.asked.len();
    assert!((5..=8).contains(&pages), "{pages} pages were asked for");
    assert_eq!(reported(&mut world), ["frames or styles more than 6 deep"]);
}

#[test]
fn an_index_of_sitemaps_inside_another_is_not_followed() {
    let mut world = world(|order| match order.url.path() {
        "/" => page(order, LinkRole::Sitemap, ["/index-0".to_owned()]),
        _ => {
            let paths = (1..=5).map(|n| format!("/index-{}", number(order) * 5 + n));
            let answer = page(order, LinkRole::Sitemap, paths);
            Answer { signal: Some(SignalKind::Sitemap), ..answer }
        }
    });
    world.pass(world.now_ms + DAY_MS);
    let asked = world.asked.iter().filter(|(_, path)| path.starts_with("/index")).count();
    assert_eq!(asked, 1, "{:?}", world.asked);
    assert_eq!(reported(&mut world), ["a sitemap index inside another"]);
}

#[test]
fn a_list_cannot_pass_the_limit_on_pages() {
    let mut world = world(|order| match order.url.path() {
        "/" => page(order, LinkRole::Sitemap, ["/map".to_owned()]),
        "/map" => {
            let answer = page(order, LinkRole::Listed, (0..30_000).map(|n| format!("/p{n}")));
            Answer { signal: Some(SignalKind::Sitemap), ..answer }
        }
        _ => page(order, LinkRole::Page, []),
    });
    let mut sites = world.state.sites().unwrap();
    sites[0].conditions.max_pages = Some(100);
    world.state.set_site(sites[0].id, &sites[0].conditions, world.now_ms / 1000).unwrap();
    world.tell_sites();
    world.pass(world.now_ms + DAY_MS / 24);
    let pages = world.state.sites().unwrap()[0].counts.pages;
    assert!((50..=101).contains(&pages), "{pages} pages are known");
}

#[test]
fn pages_that_bring_nothing_new_end_and_a_site_that_does_goes_on() {
    for (is_known, is_endless) in [(true, false), (false, true)] {
        let mut world = world(|order| {
            let n = number(order);
            page(order, LinkRole::Listed, (1..=10).map(|more| format!("/?zz={}", n * 10 + more)))
        });
        world.is_known = is_known;
        world.pass(world.now_ms + DAY_MS / 16);
        let pages = world.asked.len();
        if is_endless {
            assert!(pages > 4_500, "{pages}");
        } else {
            assert!((300..4_500).contains(&pages), "{pages} pages were asked for");
            let reported = reported(&mut world);
            assert!(reported.iter().any(|text| text.contains("nothing new")), "{reported:?}");
        }
    }
}
