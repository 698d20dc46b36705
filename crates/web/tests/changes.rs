//! What changed: the list of changes, a site on two dates, pages and their history, the round that is under way. In a
//! real browser, in both languages and widths.
#![expect(clippy::unwrap_used, reason = "what cannot be set up must fail the test")]

use crate::support;

use std::sync::Arc;

use nenrin_browser::Browser;
use nenrin_state::{
    Change, Discovered, Outcome, RoundEnd, Schedule, SiteId, VersionRow, VisitCommit,
};
use nenrin_web::{ReplayBase, UnderWay, WebOptions};
use serde_json::{Value, json};
use support::{Bodies, NOW_S, World, conditions, url};

const DAY_S: i64 = 86_400;
/// The smallest picture: one transparent dot.
const GIF: &[u8] = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff!\xf9\x04\x01\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;";
const HOSTILE: &str = "&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x onerror=alert(2)&gt;";

fn page(title: &str, text: &str) -> (&'static str, Vec<u8>) {
    let body = format!(
        "<title>{title}</title><p>A paragraph that was always here.</p><p>{text}</p><p>As of {title}</p>"
    );
    ("text/html; charset=utf-8", body.into_bytes())
}

/// A site with a page that changed twice, one that is new, one that is gone, a picture, a style sheet, and hostile
/// titles; `at_s` is the time of the newest.
fn changed_at(at_s: i64) -> World {
    let bodies = Bodies(
        [
            (1, page("Opening hours", "The library is open on weekdays.")),
            (2, page("Opening hours", "The library is open on Sundays from April on.")),
            (3, page(HOSTILE, HOSTILE)),
            (4, ("image/gif", GIF.to_vec())),
            (5, ("text/css", b"a { color: red }".to_vec())),
            (6, page("Prices", "A card costs 12 euros a year.")),
            (7, page("New opening hours", "The library is open every day.")),
            (
                8,
                (
                    "image/svg+xml",
                    b"<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>".to_vec(),
                ),
            ),
        ]
        .into(),
    );
    let options = WebOptions::new([7; 32]);
    let world = World::reading(ReplayBase::Port(8081), options, false, Arc::new(bodies));
    let created_s = at_s - 20 * DAY_S;
    let site =
        world.state.add_site("library", &conditions("https://e.com/"), created_s).unwrap().id;
    for (version, path, mime, days, permille) in [
        (1, "", "text/html", 9, None),
        (6, "prices/card", "text/html", 9, None),
        (5, "style.css", "text/css", 2, None),
        (4, "img/door.gif", "image/gif", 2, None),
        (8, "img/plan.svg", "image/svg+xml", 2, None),
        (3, "news/%3Cb%3E?a='b'", "text/html", 1, None),
        (2, "", "text/html", 1, Some(240)),
        (7, "", "text/html", 0, Some(0)),
    ] {
        let row = VersionRow {
            mime: mime.into(),
            changed_permille: permille,
            ..support::version(version, at_s - days * DAY_S - 60)
        };
        let address = url("https://e.com/").join(path).unwrap();
        let visit = VisitCommit::in_packs(site, address, row);
        world.state.commit(&[Change::Visit(Box::new(visit))]).unwrap();
    }
    let gone = world.state.page(&url("https://e.com/prices/card")).unwrap().unwrap();
    let visit =
        VisitCommit { status: 404, ..VisitCommit::new(gone.id, site, at_s - DAY_S, Outcome::Gone) };
    world.state.commit(&[Change::Visit(Box::new(visit))]).unwrap();
    world
}

fn changed() -> World {
    changed_at(NOW_S)
}

const PHONE: (u32, u32) = (360, 740);
const DESK: (u32, u32) = (1200, 900);

async fn set_width(browser: &mut Browser, (width, height): (u32, u32)) {
    let size =
        json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500});
    browser.call("Emulation.setDeviceMetricsOverride", size).await;
}

/// Opens a page in both languages and widths: it is text, fits the width, and the browser complains of nothing.
async fn everywhere(browser: &mut Browser, path: &str, en: &str, ja: &str) {
    for (lang, words) in [("en", en), ("ja", ja)] {
        let back = url::form_urlencoded::byte_serialize(path.as_bytes()).collect::<String>();
        for size in [DESK, PHONE] {
            set_width(browser, size).await;
            browser.open(&format!("/lang?to={lang}&back={back}")).await;
            let text = browser.text().await;
            assert!(text.contains(words), "{path} {lang}: {text}");
            let width = browser.eval("document.documentElement.scrollWidth").await;
            assert_eq!(width, json!(size.0), "{path} {lang}");
            assert_eq!(
                browser.eval("document.querySelectorAll('main script').length").await,
                json!(0)
            );
            assert_eq!(browser.complaints(), Vec::<String>::new(), "{path} {lang}");
        }
    }
    set_width(browser, DESK).await;
    browser.open("/lang?to=en&back=%2Fchanges").await;
}

/// The texts of all elements that a selector finds.
async fn texts(browser: &mut Browser, selector: &str) -> Vec<String> {
    let found = browser
        .eval(&format!("[...document.querySelectorAll({selector:?})].map(e => e.innerText)"))
        .await;
    found.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn changes_are_shown_by_day_with_titles_and_telling_lines() {
    let world = changed();
    let Some(mut browser) = Browser::on(world.router.clone()).await else { return };
    browser.open("/").await;
    browser.follow("header nav a[href='/changes']").await;
    let text = browser.text().await;
    assert_eq!(texts(&mut browser, ".day h2").await.len(), 3, "{text}");
    assert!(text.contains("The library is open on Sundays from April on."), "{text}");
    assert!(text.contains("Only dates, counters") || text.contains("every day"), "{text}");
    assert!(!text.contains("style.css"), "styles are not shown by themselves: {text}");
    let kinds = texts(&mut browser, ".changes .badge").await;
    assert_eq!(kinds.iter().filter(|kind| *kind == "gone").count(), 1, "{kinds:?}");
    assert!(text.contains("Prices"), "the title of what is gone: {text}");
    // A picture is shown as itself, a drawing that may contain scripts is not.
    assert_eq!(browser.eval("document.images.length").await, json!(1));
    browser.until("document.images[0].naturalWidth === 1").await;
    let compare = browser.eval("[...document.querySelectorAll('.changes a')].map(a => a.href).find(h => h.includes('/diff/'))").await;
    assert!(compare.as_str().unwrap().starts_with("http://127.0.0.1:8081/diff/"), "{compare}");
    everywhere(&mut browser, "/changes", "open on Sundays from April on", "前へ").await;
}

#[tokio::test]
async fn changes_are_filtered_by_site_kind_significance_and_text() {
    let world = changed();
    let titles = async |query: &str| {
        let body = world.get(&format!("/changes?{query}")).await.body;
        let entries = body.split("<p class=\"title\">").skip(1);
        entries
            .map(|one| one.split("<bdi>").nth(1).unwrap().split('<').next().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(titles("").await.len(), 6);
    assert_eq!(titles("parts=1").await.len(), 7, "with the style sheet");
    assert_eq!(titles("kind=gone").await, ["Prices"]);
    assert_eq!(titles("kind=changed").await, ["New opening hours", "Opening hours"]);
    assert_eq!(titles("kind=changed&significant=1").await, ["Opening hours"], "without the noise");
    assert_eq!(titles("q=SUNDAYS").await, ["Opening hours"]);
    assert_eq!(titles("q=door.gif").await.len(), 1);
    assert_eq!(titles("q=nothing+like+this").await, Vec::<String>::new());
    assert_eq!(titles("site=7").await, Vec::<String>::new());
    let mut old = titles(&format!("from={}&to={}", "2023-11-05", "2023-11-06")).await;
    old.sort();
    assert_eq!(old, ["Opening hours", "Prices"], "other days");
    for bad in [
        "before=x",
        "from=x&to=y",
        "site=x",
        "kind=x",
        "from=9999-12-31&to=0001-01-01",
        "before=1.2.3",
    ] {
        assert!(world.get(&format!("/changes?{bad}")).await.status.is_success(), "{bad}");
    }
}

#[tokio::test]
async fn an_old_archive_opens_on_its_newest_week() {
    let world = changed_at(NOW_S - 900 * DAY_S);
    let body = world.get("/changes").await.body;
    assert!(body.contains("Nothing has changed since then."), "{body}");
    assert!(body.contains("on Sundays from April on"), "{body}");
}

#[tokio::test]
async fn titles_lines_and_addresses_of_attackers_are_text_in_every_list_and_in_the_feed() {
    let world = changed();
    for path in [
        "/changes",
        "/changes?lang=ja",
        "/feed.atom",
        "/sites/1/between?from=2023-11-01&to=2023-11-14",
        "/sites/1/pages?find=1",
        "/sites/1/pages?q=%3Cscript%3E",
        "/page?url=https%3A%2F%2Fe.com%2Fnews%2F%253Cb%253E%3Fa%3D%27b%27",
        "/changes?q=%3Cscript%3Ealert(1)%3C%2Fscript%3E",
        "/sites/1/pages?folder=%3Cscript%3E&sort=%3Cscript%3E",
    ] {
        let answer = world.get(path).await;
        assert!(answer.status.is_success(), "{path}: {}", answer.body);
        assert!(!answer.body.contains("<script>"), "{path}: {}", answer.body);
        assert!(!answer.body.contains("<img src=x"), "{path}: {}", answer.body);
    }
    let feed = world.get("/feed.atom").await.body;
    assert!(feed.contains("&lt;script&gt;alert(1)"), "{feed}");
    assert!(
        feed.contains("<category term=\"gone\"/>") && feed.contains("<category term=\"new\"/>")
    );
    assert!(feed.contains("+ The library is open on Sundays from April on."), "{feed}");
    let wanted = world.get("/feed.atom?kind=gone").await.body;
    assert!(wanted.contains("Prices") && !wanted.contains("Sundays"), "{wanted}");
}

#[tokio::test]
async fn pictures_are_only_those_that_cannot_contain_scripts() {
    let world = changed();
    let address = "/picture?at=1700000000&url=https%3A%2F%2Fe.com%2F";
    for bad in [
        format!("{address}img%2Fplan.svg"),
        format!("{address}style.css"),
        address.into(),
        "/picture".into(),
    ] {
        assert_eq!(world.get(&bad).await.status, 404, "{bad}");
    }
    let request = axum::http::Request::get(format!("{address}img%2Fdoor.gif"))
        .header("host", "localhost:8080")
        .body(axum::body::Body::empty())
        .unwrap();
    let answer = tower::ServiceExt::oneshot(world.router.clone(), request).await.unwrap();
    assert_eq!(answer.headers()["content-type"], "image/gif");
    assert!(answer.headers()["content-security-policy"].to_str().unwrap().contains("sandbox"));
    assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
}

#[tokio::test]
async fn a_site_is_compared_on_two_dates() {
    let world = changed();
    let Some(mut browser) = Browser::on(world.router.clone()).await else { return };
    browser.open("/sites/1").await;
    browser.follow("nav.tabs a[href='/sites/1/between']").await;
    let field = |id: &str| format!("document.querySelector('#{id}').value");
    assert_eq!(browser.eval(&field("to")).await, json!("2023-11-14"), "the newest day");
    for (field, date) in [("from", "2023-11-10"), ("to", "2023-11-14")] {
        browser.eval(&format!("document.querySelector('#{field}').value = '{date}'")).await;
    }
    browser.follow(".browse button").await;
    let tiles = texts(&mut browser, ".tile dd:nth-child(2)").await;
    assert_eq!(tiles, ["3", "1", "1", "5"], "new, changed, gone, compared");
    let text = browser.text().await;
    assert!(text.contains("/news/") && text.contains("/img/"), "by folder: {text}");
    browser.follow("table a[href*='folder=%2Fimg%2F']").await;
    assert_eq!(texts(&mut browser, ".changes li").await.len(), 2);
    browser.open("/sites/1/between?from=2023-11-14&to=2023-11-10&kind=changed").await;
    let titles = texts(&mut browser, ".changes .title a").await;
    assert_eq!(titles, ["New opening hours"], "in either order of dates");
    everywhere(
        &mut browser,
        "/sites/1/between?from=2023-11-10&to=2023-11-14",
        "By folder",
        "フォルダーごと",
    )
    .await;
}

#[tokio::test]
async fn pages_are_found_by_any_part_and_sorted_by_every_column() {
    let world = changed();
    // What was read for the list of changes is searched, too.
    world.get("/changes?from=2023-11-01&to=2023-11-14").await;
    let Some(mut browser) = Browser::on(world.router.clone()).await else { return };
    browser.open("/sites/1/pages").await;
    browser.fill("#q", "opening HOURS").await;
    browser.follow("form.filter button").await;
    assert_eq!(texts(&mut browser, "table.cards td.path").await, ["New opening hours\n/"]);
    browser.open("/sites/1/pages?q=ices%2Fc").await;
    assert_eq!(texts(&mut browser, "table.cards td.path").await, ["Prices\n/prices/card"]);
    browser.open("/sites/1/pages?type=image").await;
    assert_eq!(texts(&mut browser, "table.cards td.path").await.len(), 2);
    browser.open("/sites/1/pages?result=gone").await;
    assert_eq!(texts(&mut browser, "table.cards td.path").await, ["Prices\n/prices/card"]);
    browser.open("/sites/1/pages?due=none").await;
    assert_eq!(texts(&mut browser, "table.cards td.path").await.len(), 6);
    browser.open("/sites/1/pages?find=1").await;
    assert!(
        texts(&mut browser, ".folders a").await.iter().any(|folder| folder.starts_with("/img/ "))
    );
    let columns = texts(&mut browser, "thead th").await.len();
    for column in 1..=columns {
        browser.open("/sites/1/pages?find=1").await;
        browser.follow(&format!("thead th:nth-child({column}) a")).await;
        let sorted = format!("document.querySelector('thead th:nth-child({column})').ariaSort");
        assert!(matches!(browser.eval(&sorted).await, Value::String(_)), "column {column}");
        assert_eq!(texts(&mut browser, "table.cards td.path").await.len(), 6, "column {column}");
    }
    let path = "/sites/1/pages?sort=address&down=1";
    browser.open(path).await;
    assert_eq!(texts(&mut browser, "table.cards td.path").await[0], "/style.css", "the last first");
    browser.open("/sites/1/pages?sort=title&down=1").await;
    let titles = texts(&mut browser, "table.cards td.path").await;
    assert_eq!(titles[0], "Prices\n/prices/card", "what has no title comes last: {titles:?}");
    everywhere(&mut browser, path, "all results", "すべての結果").await;
}

#[tokio::test]
async fn a_page_has_a_strip_of_versions_titles_sizes_and_visits() {
    let world = changed();
    let Some(mut browser) = Browser::on(world.router.clone()).await else { return };
    let path = "/page?url=https%3A%2F%2Fe.com%2F";
    browser.open(path).await;
    let cards = texts(&mut browser, ".strip li").await;
    assert_eq!(cards.len(), 3, "{cards:?}");
    assert!(
        cards[1].contains("on Sundays from April on") && cards[1].contains("24.0%"),
        "{cards:?}"
    );
    assert!(cards[2].contains("first version"), "{cards:?}");
    let text = browser.text().await;
    assert!(text.contains("since") && text.contains("New opening hours"), "titles: {text}");
    assert!(text.contains("Size over time"), "{text}");
    browser.open("/page?url=https%3A%2F%2Fe.com%2Fprices%2Fcard").await;
    let visits = texts(&mut browser, "#visits tbody tr").await;
    assert!(visits.len() == 1 && visits[0].contains("missing (404)"), "{visits:?}");
    everywhere(&mut browser, path, "The page over time", "ページの移り変わり").await;
}

/// A site with five pages whose first round is under way: two are visited.
fn collecting(schedule: Schedule) -> World {
    let world = World::new();
    let conditions = nenrin_state::SiteConditions { schedule, ..conditions("https://e.com/") };
    world.state.add_site("fresh", &conditions, NOW_S - 60).unwrap();
    let round = world.state.begin_round(SiteId(1), NOW_S - 50).unwrap();
    let due = world.state.load_round(&round, None, 9).unwrap().remove(0);
    let mut first = support::visit(&due, NOW_S - 40, Outcome::Changed);
    first.round = Some(round.id);
    first.version = Some(support::version(1, NOW_S - 40));
    first.discovered = (1..5)
        .map(|n| Discovered {
            url: url(&format!("https://e.com/{n}")),
            depth: 2,
            hops: 0,
            due_s: None,
        })
        .collect();
    world.state.commit(&[Change::Visit(Box::new(first))]).unwrap();
    world.control.under_way.lock().unwrap().push(UnderWay {
        url: "https://e.com/1?<script>".into(),
        server: "https://e.com".into(),
        since_s: NOW_S - 1,
        phase: "receiving",
    });
    world
}

fn visit_next(world: &World, n: u64) {
    let round = world.state.rounds(Some(SiteId(1)), 1).unwrap().remove(0);
    let due = world.state.load_round(&round, None, 9).unwrap().remove(0);
    let mut next = support::visit(&due, NOW_S - 30 + n as i64, Outcome::Changed);
    next.round = Some(round.id);
    next.version = Some(support::version(100 + n, NOW_S - 30 + n as i64));
    world.state.commit(&[Change::Visit(Box::new(next))]).unwrap();
}

#[tokio::test]
async fn the_first_round_is_shown_while_it_runs_and_the_page_fills_itself() {
    let world = collecting(Schedule::Rounds { period_s: DAY_S });
    let Some(mut browser) = Browser::on(world.router.clone()).await else { return };
    browser.open("/").await;
    assert!(texts(&mut browser, ".sites .badge").await.contains(&"collecting".to_owned()));
    browser.open("/sites/1").await;
    let progress = "document.querySelector('.collecting').innerText";
    browser.until(&format!("{progress}.includes('1 of 5 known pages visited')")).await;
    let text = browser.eval(progress).await;
    assert!(text.as_str().unwrap().contains("now: https://e.com/1?"), "{text}");
    assert_eq!(texts(&mut browser, "h1 .badge").await, ["collecting"]);
    for n in 0..3 {
        visit_next(&world, n);
    }
    // Nobody reloads: the bar, the tiles, the calendar and the rounds follow.
    browser.until(&format!("{progress}.includes('4 of 5 known pages visited')")).await;
    browser.until(&format!("{progress}.includes('a minute') && {progress}.includes('left')")).await;
    browser
        .until("document.querySelector('svg.calendar a').ariaLabel.endsWith(': 4 versions')")
        .await;
    browser.until("[...document.querySelectorAll('[data-part=rounds] td')].some(td => td.innerText === '4')").await;
    visit_next(&world, 3);
    let round = world.state.rounds(Some(SiteId(1)), 1).unwrap().remove(0);
    let end = RoundEnd { round: round.id, site: SiteId(1), at_s: NOW_S - 10, skips: None };
    world.state.commit(&[Change::RoundEnd(end)]).unwrap();
    browser.until("document.querySelector('.collecting') === null && document.querySelector('h1 .badge') === null").await;
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[tokio::test]
async fn the_first_round_is_shown_without_scripts_in_both_languages() {
    let world = collecting(Schedule::Rounds { period_s: DAY_S });
    let Some(mut browser) = Browser::on(world.router.clone()).await else { return };
    everywhere(&mut browser, "/sites/1", "of 5 known pages visited", "最初の収集").await;
    browser.call("Emulation.setScriptExecutionDisabled", json!({"value": true})).await;
    browser.open("/sites/1").await;
    assert!(browser.text().await.contains("1 of 5 known pages visited"));
    visit_next(&world, 0);
    // The page loads itself again.
    browser.until("document.body.innerText.includes('2 of 5 known pages visited')").await;
}

#[tokio::test]
async fn on_a_phone_rows_are_cards_and_days_can_be_hit_with_a_finger() {
    let world = World::lived_in();
    let Some(mut browser) = Browser::on(world.router.clone()).await else { return };
    set_width(&mut browser, PHONE).await;
    for path in ["/visits", "/sites/1/pages?find=1"] {
        browser.open(path).await;
        let row = "getComputedStyle(document.querySelector('table.cards tbody tr')).display";
        assert_eq!(browser.eval(row).await, json!("flex"), "{path}");
        let inside = "[...document.querySelectorAll('table.cards td')].every(td => td.getBoundingClientRect().right <= innerWidth)";
        assert_eq!(browser.eval(inside).await, json!(true), "{path}");
    }
    browser.open("/sites/1").await;
    let size = "(r => Math.min(r.width, r.height))(document.querySelector('svg.calendar a rect').getBoundingClientRect())";
    let cell = browser.eval(size).await.as_f64().unwrap();
    assert!(cell >= 24.0, "{cell}");
    // Values beside a chart end before its lines begin.
    let apart = "[...document.querySelectorAll('figure.chart svg')].filter(s => s.querySelector('.axis.end')).map(s => { \
        const line = s.querySelector('line.grid'); if (!line) return true; const left = line.getBoundingClientRect().left; \
        return [...s.querySelectorAll('.axis.end')].every(t => t.getBoundingClientRect().right <= left + 1 && t.getBoundingClientRect().left >= 0); })";
    let apart = browser.eval(apart).await;
    assert!(apart.as_array().unwrap().iter().all(|one| *one == json!(true)), "{apart}");
}
