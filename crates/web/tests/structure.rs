//! A site's structure as a page.

use crate::support;

use axum::http::StatusCode;
use nenrin_state::{Change, RoundEnd, SiteId, Skips};
use nenrin_structure::{LeftOut, Why};
use support::{NOW_S, World};

#[tokio::test]
async fn the_structure_shows_tops_and_what_the_last_round_left_out() {
    let world = World::lived_in();
    let before = world.get("/sites/1/structure").await;
    assert_eq!(before.status, StatusCode::OK);
    assert!(before.body.contains("No round has chosen its pages yet"), "{}", before.body);
    let round = world.state.begin_round(SiteId(1), NOW_S).unwrap();
    let pages = world.state.site_pages(SiteId(1)).unwrap().pages;
    let left = LeftOut { why: Why::TopSame, pages: 1234, examples: vec![pages[1].id.0] };
    let skips = Some(Skips { reasons: vec![left] });
    let end = RoundEnd { round: round.id, site: round.site, at_s: NOW_S + 9, skips };
    world.state.commit(&[Change::RoundEnd(end)]).unwrap();
    let page = world.get("/sites/1/structure").await;
    let example = world.state.url_of(pages[1].id).unwrap().unwrap();
    for shown in [
        "no index page above them changed",
        "1,234",
        example.as_str(),
        "Index pages and the pages below them",
    ] {
        assert!(page.body.contains(shown), "{shown} in {}", page.body);
    }
}
