//! Archives whose data is older than their registration, and words for what visits found.
#![expect(clippy::unwrap_used, reason = "what cannot be set up must fail the test")]

use crate::support;

use nenrin_browser::Browser;
use nenrin_state::{Change, Discovered, Outcome, Removal, SiteId};
use serde_json::json;
use support::{NOW_S, World};

/// 2018-09-09, five years before the archive was made.
const OLD_S: i64 = 1_536_500_000;

/// A mirror of 2018 and 2019, imported today: the directory's page has the name of its file.
fn imported() -> World {
    let world = World::new();
    let top = "https://e.com/index.html";
    let site = world.state.add_site("old", &support::conditions("https://e.com/"), NOW_S).unwrap();
    for (n, at_s) in [OLD_S, OLD_S + 200 * 86_400].into_iter().enumerate() {
        let row = support::version(n as u64 + 1, at_s);
        let visit = nenrin_state::VisitCommit::in_packs(site.id, support::url(top), row);
        world.state.commit(&[Change::Visit(Box::new(visit))]).unwrap();
    }
    world
}

#[tokio::test]
async fn an_imported_archive_can_be_browsed_by_date() {
    let world = imported();
    let Some(mut browser) = Browser::on(world.router.clone()).await else { return };
    browser.open("/sites/1").await;
    let field = "(f => [f.min, f.value, f.checkValidity()])(document.querySelector('#at'))";
    assert_eq!(browser.eval(field).await, json!(["2018-09-09", "2019-03-28", true]));
    browser.fill("#at", "2018-12-01").await;
    assert_eq!(browser.eval("document.querySelector('#at').checkValidity()").await, json!(true));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[tokio::test]
async fn calendars_and_charts_open_where_the_data_is_and_years_can_be_chosen() {
    let world = imported();
    let Some(mut browser) = Browser::on(world.router.clone()).await else { return };
    let days = "[...document.querySelectorAll('svg.calendar a')].map(a => a.ariaLabel)";
    for page in ["/sites/1", "/page?url=https%3A%2F%2Fe.com%2F"] {
        browser.open(page).await;
        assert_eq!(browser.eval(days).await, json!(["2019-03-28: 1 version"]), "{page}");
        browser.follow("nav.years a:last-child").await;
        browser.until("location.search.includes('year=2018')").await;
        assert_eq!(browser.eval(days).await, json!(["2018-09-09: 1 version"]), "{page}");
    }
    browser.open("/?year=2018").await;
    let bars = "document.querySelectorAll('figure.chart .c-versions rect, figure.chart rect.c-versions').length";
    assert!(browser.eval(bars).await.as_u64().unwrap() > 1, "a bar beside the one of the legend");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[tokio::test]
async fn the_top_page_of_a_mirror_is_found_by_its_directory() {
    let world = imported();
    let page = world.get("/page?url=https%3A%2F%2Fe.com%2F").await;
    assert!(page.body.contains("Open the newest version"), "{}", page.body);
    assert!(page.body.contains("https://e.com/index.html"));
}

#[tokio::test]
async fn a_first_version_is_new_and_a_page_that_is_not_there_is_missing() {
    let world = World::new();
    let site =
        world.state.add_site("paper", &support::conditions("https://e.com/"), NOW_S - 60).unwrap();
    let round = world.state.begin_round(site.id, NOW_S - 50).unwrap();
    let due = world.state.load_round(&round, None, 9).unwrap().remove(0);
    let mut first = support::visit(&due, NOW_S - 40, Outcome::Changed);
    first.version = Some(support::version(1, NOW_S - 40));
    first.discovered = vec![Discovered {
        url: support::url("https://e.com/never"),
        depth: 2,
        hops: 0,
        due_s: None,
    }];
    first.round = Some(round.id);
    let mut second = support::visit(&due, NOW_S - 20, Outcome::Changed);
    second.version = Some(support::version(2, NOW_S - 20));
    world.state.commit(&[Change::Visit(Box::new(first))]).unwrap();
    let missing = world.state.load_round(&round, None, 9).unwrap();
    let missing = missing.iter().find(|due| due.page.url.path() == "/never").unwrap();
    let mut never = support::visit(missing, NOW_S - 30, Outcome::Gone);
    never.status = 404;
    never.round = Some(round.id);
    let changes = [never, second].map(|visit| Change::Visit(Box::new(visit)));
    world.state.commit(&changes).unwrap();
    let log = world.get("/visits").await.body;
    let words: Vec<&str> = log
        .split("<tbody>")
        .nth(1)
        .unwrap()
        .split("class=\"outcome o-")
        .skip(1)
        .map(|part| part.split(['>', '<']).nth(1).unwrap())
        .collect();
    assert_eq!(words, ["changed", "missing (404)", "new"]);
    let site = world.get("/sites/1").await.body;
    let (others, missing) = site.split_once("Pages that the server does not have").unwrap();
    assert!(!others.contains("missing (404)") && !others.contains("id=\"problems\""), "{others}");
    assert!(missing.contains("missing (404)"), "{missing}");
    let overview = world.get("/").await.body;
    assert!(!overview.contains("class=\"bad\""), "a missing page is not a problem: {overview}");
}

#[tokio::test]
async fn failing_parts_of_others_are_listed_apart() {
    let world = World::lived_in();
    let tracker = support::url("https://tracker.example/t.js");
    let round = world.state.begin_round(SiteId(1), NOW_S - 50).unwrap();
    let due = world.state.load_round(&round, None, 9).unwrap().remove(0);
    let mut finds = support::visit(&due, NOW_S - 40, Outcome::Same);
    finds.round = Some(round.id);
    finds.discovered = vec![Discovered { url: tracker, depth: 2, hops: 1, due_s: None }];
    world.state.commit(&[Change::Visit(Box::new(finds))]).unwrap();
    let part = world.state.load_round(&round, None, 99).unwrap();
    let part = part.iter().find(|due| due.page.url.host() == "tracker.example").unwrap();
    let mut failed = support::visit(part, NOW_S - 30, Outcome::Failed);
    failed.status = 500;
    world.state.commit(&[Change::Visit(Box::new(failed))]).unwrap();
    let body = world.get("/sites/1").await.body;
    let (own, others) = body.split_once("from other servers").unwrap();
    assert!(own.contains("Problems by cause") && !own.contains("tracker.example"), "{own}");
    assert!(others.contains("tracker.example"), "{others}");
}

#[tokio::test]
async fn an_address_that_is_registered_leads_to_its_site_or_is_added_once_more() {
    let world = World::new();
    let add = |fields| world.submit("/sites/new", "/sites", fields);
    let fields = support::site_fields("e.com", "");
    add(&fields).await.location();
    let again = add(&fields).await;
    assert_eq!(again.status.as_u16(), 422);
    for part in ["href=\"/sites/1\"", "action=\"/sites/1/collect\"", "name=\"again\""] {
        assert!(again.body.contains(part), "{part} in {}", again.body);
    }
    assert!(again.body.contains("value=\"e.com (2)\""), "a name that is free");
    assert_eq!(world.state.sites().unwrap().len(), 1);
    let mut fields = support::site_fields("e.com", "e.com (2)");
    fields.push(("again", "1"));
    add(&fields).await.location();
    assert_eq!(world.state.sites().unwrap().len(), 2);
}

#[tokio::test]
async fn removing_the_only_site_is_confirmed() {
    let world = World::lived_in();
    world.state.remove_site(SiteId(1), Some(Removal::Hide), "asked to", NOW_S).unwrap();
    let body = world.get("/?note=removed").await.body;
    assert!(body.contains("Welcome to Nenrin") && body.contains("The removal was logged"));
}

#[tokio::test]
async fn a_round_that_is_under_way_is_running_and_one_is_not_many() {
    let world = World::new();
    let conditions = support::conditions("https://e.com/");
    world.state.add_site("paper", &conditions, NOW_S - 60).unwrap();
    let round = world.state.begin_round(SiteId(1), NOW_S - 50).unwrap();
    let due = world.state.load_round(&round, None, 9).unwrap().remove(0);
    let mut first = support::visit(&due, NOW_S - 40, Outcome::Changed);
    (first.round, first.version) = (Some(round.id), Some(support::version(1, NOW_S - 40)));
    world.state.commit(&[Change::Visit(Box::new(first))]).unwrap();
    let site = world.get("/sites/1").await.body;
    assert!(site.contains(">running<") && !site.contains("unfinished"), "{site}");
    for page in [site, world.get("/").await.body, world.get("/changes").await.body] {
        for many in ["1 visits", "1 versions", "1 pages", "1 new pages"] {
            assert!(
                !page.contains(&format!(" {many}")) && !page.contains(&format!(">{many}")),
                "{many}: {page}"
            );
        }
    }
}

#[tokio::test]
async fn a_polite_pause_is_said() {
    let world = World::lived_in();
    assert!(world.get("/now").await.body.contains("No requests at the moment"));
    world.control.queued.store(3, std::sync::atomic::Ordering::Relaxed);
    let body = world.get("/now").await.body;
    assert!(body.contains("pause between two requests; 3 pages wait for their turn"), "{body}");
}

#[tokio::test]
async fn japanese_errors_keep_addresses_as_they_are() {
    let world = World::new();
    let body = world.get_as("/page?url=http%3A%2F%2Fe.com%2Fx", "lang=ja").await.body;
    assert!(!body.contains("Http://"), "{body}");
}
