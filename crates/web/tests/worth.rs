//! Importance and rates of change: on the pages, in the API and for Prometheus.
#![expect(clippy::unwrap_used, reason = "what cannot be set up must fail the test")]

use crate::support;

use nenrin_browser::Browser;
use nenrin_revisit::{PageRevisitScheduler, RevisitSettings};
use nenrin_state::{
    Change, Discovered, Estimate, NewPage, Outcome, Schedule, SiteConditions, SiteId,
};
use serde_json::{Value, json};
use support::{NOW_S, World, conditions, version, visit};

/// A site of twenty pages, each on its own schedule; the third that was collected matters most.
fn world() -> World {
    let world = World::new();
    let schedule = Schedule::Continuous(Default::default());
    let conditions = SiteConditions { schedule, ..conditions("https://e.com/") };
    let site = world.state.add_site("paper", &conditions, NOW_S - 9_000).unwrap().id;
    let round = world.state.begin_round(site, NOW_S - 9_000).unwrap();
    let top = world.state.load_round(&round, None, 1).unwrap().remove(0);
    let found = |n| Discovered {
        url: top.page.url.join(&format!("p{n}")).unwrap(),
        depth: 2,
        hops: 0,
        due_s: Some(NOW_S),
    };
    let found = (1..20).map(found).collect();
    let mut pages = vec![NewPage { due: top.clone() }];
    let mut scheduler = PageRevisitScheduler::new(RevisitSettings::default(), 3_600);
    for n in 0..20_usize {
        let at_s = NOW_S - 8_000 + n as i64;
        let mut seen = visit(&pages[n].due, at_s, Outcome::Changed);
        seen.version = Some(version(1 + n as u64, at_s));
        seen.importance_percent = Some(if n == 2 { 2_100 } else { 100 });
        seen.estimate = Some(Estimate::new(0.25, 0.5));
        seen.update.due_s = Some(NOW_S + 86_400);
        let known = pages[n].due.page.known();
        seen.update.history = scheduler.visited(at_s, &known, Outcome::Changed, None, 1.0).history;
        if n == 0 {
            seen.discovered = Vec::clone(&found);
        }
        let new = world.state.commit(&[Change::Visit(Box::new(seen))]).unwrap();
        pages.extend(new.new_pages);
    }
    world
}

#[tokio::test]
async fn importance_and_rates_are_shown_with_pages_and_sites() {
    let world = world();
    world.live("second", "https://f.com/");
    let overview = world.get("/?sort=importance&down=1").await.body;
    assert!(overview.contains("100.0%"), "{overview}");
    assert!(overview.contains("Important pages first"));
    let site = world.get("/sites/1").await.body;
    for shown in ["as much as 40 average pages", "Important pages first", "of all 20 pages"] {
        assert!(site.contains(shown), "{shown} in {site}");
    }
    assert!(!world.get("/sites/2").await.body.contains("Important pages first"));
    let list = world.get("/sites/1/pages?list=1").await.body;
    assert!(list.contains(">21<") && list.contains("50% sure"), "{list}");
    let page = world.get("/page?url=https%3A%2F%2Fe.com%2Fp2").await.body;
    for shown in ["times the average page", "Why", "Next visit"] {
        assert!(page.contains(shown), "{shown} in {page}");
    }
    let schedule = world.get("/sites/1/schedule").await.body;
    assert!(schedule.contains("0.25 times a day on average (50% sure"), "{schedule}");
    assert!(schedule.contains("Versions found, by number of visits"), "{schedule}");
}

#[tokio::test]
async fn programs_get_the_same_figures() {
    let world = world();
    let get =
        async |path: &str| -> Value { serde_json::from_str(&world.get(path).await.body).unwrap() };
    let site = get("/api/v1/sites/1").await;
    assert_eq!((&site["importance"], &site["importance_share"]), (&json!(40.0), &json!(1.0)));
    assert_eq!((&site["rate_per_day"], &site["confidence"]), (&json!(0.25), &json!(0.5)));
    let pages = get("/api/v1/sites/1/pages").await;
    let important = |page: &&Value| page["importance"] == json!(21.0);
    let pages = pages["items"].as_array().unwrap();
    assert_eq!(pages.iter().filter(important).count(), 1);
    let order = get("/api/v1/sites/1/order").await;
    assert_eq!(order["pages"], 20);
    assert_eq!(order["collected"][3], json!([0.15, 0.575]));
    assert_eq!(order["best"][1], json!([0.05, 0.525]));
    assert_eq!(order, get("/api/v1/order").await);
    let metrics = world.get("/metrics").await.body;
    for line in [
        "nenrin_site_estimated_pages{site=\"1\"} 20",
        "nenrin_site_page_change_rate_per_day{site=\"1\"} 0.25",
        "nenrin_site_page_change_confidence_ratio{site=\"1\"} 0.5",
        "nenrin_site_significant_versions_total{site=\"1\"} 20",
        "nenrin_site_importance{site=\"1\"} 40",
        "nenrin_site_importance_ratio{site=\"1\"} 1",
        "nenrin_site_schedule_info{site=\"1\",policy=\"auto\",changes=\"any\"} 1",
    ] {
        assert!(metrics.lines().any(|one| one == line), "{line} in {metrics}");
    }
    // Forecasts are computed beside the first scrape; the next one has them.
    let mut forecast = String::new();
    while !forecast.contains("nenrin_site_forecast_coverage_ratio{site=\"1\",budget=\"x2\"}") {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        forecast = world.get("/metrics").await.body;
    }
    for name in ["forecast_visits_per_day", "forecast_coverage_ratio"] {
        for budget in ["x0.5", "x1", "x2"] {
            let sample = format!("nenrin_site_{name}{{site=\"1\",budget=\"{budget}\"}} ");
            assert!(forecast.contains(&sample), "{sample} in {forecast}");
        }
    }
    let removed = Some(nenrin_state::Removal::Hide);
    world.state.remove_site(SiteId(1), removed, "no more", NOW_S).unwrap();
    let metrics = world.get("/metrics").await.body;
    assert!(!metrics.contains("nenrin_site_importance{site=\"1\"}"));
}

#[tokio::test]
async fn the_chart_of_the_order_and_its_numbers_are_seen_in_a_browser() {
    let world = world();
    let Some(mut browser) = Browser::on(world.router.clone()).await else { return };
    for path in ["/", "/sites/1"] {
        browser.open(path).await;
        let chart = "[...document.querySelectorAll('figure.chart')].find(f => f.textContent.includes('Important pages first'))";
        let lines = format!("{chart}.querySelectorAll('polyline').length");
        assert_eq!(browser.eval(&lines).await, json!(3), "{path}");
        let colours = format!(
            "new Set([...{chart}.querySelectorAll('polyline')].map(l => getComputedStyle(l).stroke)).size"
        );
        assert_eq!(browser.eval(&colours).await, json!(3), "{path}");
        browser.eval(&format!("{chart}.querySelector('details').open = true")).await;
        let row = format!(
            "[...{chart}.querySelectorAll('tbody tr')].find(r => r.cells[0].textContent === '20%').textContent"
        );
        assert_eq!(browser.eval(&row).await, json!("20%60%60%20%"), "{path}");
    }
    browser.open("/sites/1/schedule").await;
    let dots = "[...document.querySelectorAll('figure.chart circle title')].map(t => t.textContent.split('\\n').length)";
    assert_eq!(browser.eval(dots).await, json!([3, 3, 3, 3]), "what a dot means is said");
    browser.open("/page?url=https%3A%2F%2Fe.com%2Fp2").await;
    assert!(browser.text().await.contains("21"));
    browser.resize(390, 800, true).await;
    for path in ["/", "/sites/1", "/sites/1/pages?list=1", "/sites/1/schedule"] {
        browser.open(path).await;
        let wide = "document.documentElement.scrollWidth <= innerWidth";
        assert_eq!(browser.eval(wide).await, json!(true), "{path}");
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
