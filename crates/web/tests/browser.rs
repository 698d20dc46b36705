//! The interface in a real browser: what a person does, in Chromium.
#![expect(clippy::unwrap_used, reason = "what cannot be set up must fail the test")]

use crate::support;

use nenrin_browser::Browser;
use nenrin_lang::{IncidentDetail, Reason};
use nenrin_state::{
    Change, Discovered, Incident, IncidentKind, Outcome, Removal, ServerNote, SiteId,
};
use nenrin_web::{UnderWay, WebOptions, hash_password};
use serde_json::json;
use support::{NOW_S, World};

const PAGES: [&str; 15] = [
    "/",
    "/sites/new",
    "/sites/1",
    "/sites/1/edit",
    "/sites/1/remove",
    "/sites/1/pages",
    "/sites/1/schedule",
    "/sites/1/pages?list=1",
    "/visits",
    "/sites/1/structure",
    "/removals",
    "/page?url=htp:%2F%2F%3Cscript%3E",
    "/page?url=https%3A%2F%2Fe.com%2F",
    "/lab",
    "/nothing-here",
];

#[tokio::test]
async fn a_newcomer_gets_from_an_empty_archive_to_a_registered_site() {
    let world = World::new();
    let Some(mut browser) = Browser::on(world.router.clone()).await else { return };
    browser.open("/").await;
    assert!(browser.text().await.contains("Welcome to Nenrin"));
    // The field gets the focus when the page is first drawn: typing and Enter is all.
    browser.until("document.activeElement.tagName === 'INPUT'").await;
    browser.call("Input.insertText", json!({"text": "example.org"})).await;
    browser.press("Enter", 13, "\r").await;
    browser.until("location.pathname === '/sites/new' && document.readyState === 'complete'").await;
    assert_eq!(browser.eval("document.querySelector('#url').value").await, json!("example.org"));
    browser.follow("form.sheet button.primary").await;
    browser.until("location.pathname === '/sites/1' && document.readyState === 'complete'").await;
    assert!(browser.text().await.contains("collecting has begun"));
    assert_eq!(world.state.sites().unwrap()[0].name, "example.org");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[tokio::test]
async fn a_site_on_this_computer_is_added_with_the_keyboard_alone() {
    let world = World::new();
    let Some(mut browser) = Browser::on(world.router.clone()).await else { return };
    browser.open("/").await;
    browser.until("document.activeElement.tagName === 'INPUT'").await;
    browser.call("Input.insertText", json!({"text": "localhost:8765"})).await;
    browser.press("Enter", 13, "\r").await;
    browser.until("location.pathname === '/sites/new' && document.readyState === 'complete'").await;
    // The page puts the focus there when it is first drawn.
    browser.until("document.activeElement.id === 'url'").await;
    browser.press("Tab", 9, "").await;
    // The permission is requested right below the address.
    browser.until("document.activeElement.id === 'allow_private'").await;
    browser.press(" ", 32, " ").await;
    browser.press("Enter", 13, "\r").await;
    browser.until("location.pathname === '/sites/1' && document.readyState === 'complete'").await;
    let conditions = world.state.sites().unwrap().remove(0).conditions;
    assert_eq!(conditions.tops[0].as_str(), "http://localhost:8765/");
    assert!(conditions.allow_private);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[tokio::test]
async fn a_new_sites_page_fills_itself() {
    let world = World::new();
    world.state.add_site("paper", &support::conditions("https://e.com/"), NOW_S - 60).unwrap();
    let Some(mut browser) = Browser::on(world.router.clone()).await else { return };
    browser.open("/sites/1").await;
    assert!(browser.text().await.contains("There are no versions yet"));
    let round = world.state.begin_round(SiteId(1), NOW_S - 30).unwrap();
    let due = world.state.load_round(&round, None, 9).unwrap().remove(0);
    let mut first = support::visit(&due, NOW_S - 20, Outcome::Changed);
    first.version = Some(support::version(1, NOW_S - 20));
    let url = support::url("https://e.com/a");
    first.discovered = vec![Discovered { url, depth: 2, hops: 0, due_s: None }];
    world.state.commit(&[Change::Visit(Box::new(first))]).unwrap();
    browser.until("document.querySelector('#at') !== null").await;
    browser.until("document.querySelector('.tile dd').textContent !== '1'").await;
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[tokio::test]
async fn the_demo_is_one_click_away() {
    let world = World::new();
    let Some(mut browser) = Browser::on(world.router.clone()).await else { return };
    browser.open("/").await;
    world.live("demo", "http://127.0.0.1:1/");
    browser.follow("form[action='/demo'] button").await;
    browser.until("location.pathname === '/sites/1' && document.readyState === 'complete'").await;
    assert!(browser.text().await.contains("demo site is running"));
}

#[tokio::test]
async fn mistakes_are_shown_beside_their_fields_and_nothing_typed_is_lost() {
    let world = World::new();
    let Some(mut browser) = Browser::on(world.router.clone()).await else { return };
    browser.open("/sites/new").await;
    assert_eq!(browser.eval("document.querySelector('details.fold').open").await, json!(false));
    assert_eq!(
        browser.eval("document.querySelector('#other_period').closest('[hidden]') !== null").await,
        json!(true)
    );
    browser.eval("document.querySelector('details.fold').open = true").await;
    browser.fill("#url", "example").await;
    browser.fill("#name", "名前 <b>").await;
    browser.fill("#depth", "deep").await;
    browser.follow("form.sheet button.primary").await;
    for (field, typed) in [("url", "example"), ("name", "名前 <b>"), ("depth", "deep")] {
        let value = browser.eval(&format!("document.querySelector('#{field}').value")).await;
        assert_eq!(value, json!(typed));
    }
    for field in ["url", "depth"] {
        let beside = browser
            .eval(&format!("document.querySelector('#{field}').parentElement.querySelector('.error').checkVisibility()"))
            .await;
        assert_eq!(beside, json!(true), "{field}");
    }
    browser.fill("#url", "example.org").await;
    browser.fill("#depth", "4").await;
    browser.follow("form.sheet button.primary").await;
    browser.until("location.pathname === '/sites/1' && document.readyState === 'complete'").await;
    assert_eq!(world.state.sites().unwrap()[0].name, "名前 <b>");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[tokio::test]
async fn a_first_look_and_a_change_of_conditions() {
    let world = World::lived_in();
    let Some(mut browser) = Browser::on(world.router.clone()).await else { return };
    browser.open("/sites/1/edit").await;
    browser.follow("button[formaction]").await;
    assert!(browser.text().await.contains("A first look"));
    browser.eval("(s => { s.value = 'ignore'; s.dispatchEvent(new Event('change', {bubbles: true})); })(document.querySelector('#robots'))").await;
    browser.until("document.querySelector('#robots_reason').checkVisibility()").await;
    browser.fill("#robots_reason", "our own site").await;
    browser.follow("form.sheet button.primary").await;
    browser.until("location.pathname === '/sites/1' && document.readyState === 'complete'").await;
    assert!(browser.text().await.contains("our own site"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[tokio::test]
async fn buttons_pause_and_resume() {
    let world = World::lived_in();
    let Some(mut browser) = Browser::on(world.router.clone()).await else { return };
    browser.open("/sites/1").await;
    browser.follow("form[action$='/pause'] button").await;
    assert!(browser.text().await.contains("Collecting is paused"));
    assert!(world.state.sites().unwrap()[0].paused);
    browser.follow("form[action$='/resume'] button").await;
    assert!(!world.state.sites().unwrap()[0].paused);
    browser.follow("form[action$='/collect'] button").await;
    assert!(browser.text().await.contains("Collecting has begun"));
}

/// Scripts in everything that a site can bring into the state: causes, robots.txt, sitemaps, feeds,
/// links that were traps, reasons.
fn say_hostile_things(world: &World) {
    let script = "<script>alert(5)</script><img src=x onerror=alert(6)>";
    let server = world.state.site_servers(SiteId(1), 1).unwrap()[0].id;
    let note = |name: &str, value: serde_json::Value| {
        Change::Note(ServerNote { server, name: name.to_owned(), value: value.to_string() })
    };
    let source = format!("https://e.com/{script}.xml");
    let signals = json!({"sources": {source: {"entries": 7, "trust": {"odds": 3.0}}}});
    let traps = json!({"refused": {script: {"links": 1, "example": script, "last_s": 0}}});
    world.state.commit(&[note("signals", signals), note("traps", traps)]).unwrap();
    let incident = |event: IncidentKind| Incident {
        id: event.as_str().to_owned(),
        event,
        at_s: NOW_S,
        over_s: None,
        site: Some(SiteId(1)),
        name: script.to_owned(),
        detail: Some(IncidentDetail::Visit {
            url: "https://e.com/".to_owned(),
            status: 0,
            reason: Some(Reason::Robots { line: Some((3, format!("Disallow: /{script}"))) }),
        }),
        cause: String::new(),
    };
    world.state.keep_incidents(&IncidentKind::ALL.map(incident)).unwrap();
    world.state.remove_site(SiteId(1), Some(Removal::Hide), script, NOW_S).unwrap();
    world.state.remove_site(SiteId(1), None, script, NOW_S).unwrap();
}

#[tokio::test]
async fn a_hostile_site_runs_nothing() {
    let world = World::new();
    let top = "https://e.com/\"'><script>alert('top')</script>?<svg/onload=alert(3)>";
    world.live("\"><script>alert('name')</script><img src=x onerror=alert(2)>", top);
    world.control.under_way.lock().unwrap().push(UnderWay {
        url: "https://e.com/<img src=x onerror=alert(4)>".into(),
        server: "https://e.com".into(),
        since_s: NOW_S,
        phase: "receiving",
    });
    say_hostile_things(&world);
    let Some(mut browser) = Browser::on(world.router.clone()).await else { return };
    for page in PAGES.into_iter().chain(["/sites/1/restore", "/visits?site=1&outcome=gone"]) {
        browser.open(page).await;
        let found = browser.eval("[document.scripts.length, document.images.length, document.querySelectorAll('[onerror],[onload],[style]').length]").await;
        assert_eq!(found, json!([1, 0, 0]), "{page}");
    }
    browser.open("/").await;
    browser.until("document.querySelector('[data-live]').dataset.every === '2'").await;
    tokio::time::sleep(std::time::Duration::from_millis(2500)).await;
    assert_eq!(browser.eval("document.images.length").await, json!(0));
    // The feed is text in both languages, however its reader parses it.
    for language in ["en", "ja"] {
        browser.open(&format!("/lang?to={language}&back=%2Ffeed.atom")).await;
        let feed = browser.eval("fetch('/feed.atom').then(a => a.text())").await;
        let feed = feed.as_str().unwrap();
        assert!(feed.contains("&lt;script&gt;") && !feed.contains("<script"), "{feed}");
        let parsed = "fetch('/feed.atom').then(a => a.text()).then(t => new DOMParser()\
            .parseFromString(t, 'application/xml').querySelectorAll('script,img,parsererror').length)";
        assert_eq!(browser.eval(parsed).await, json!(0));
    }
    let complaints: Vec<_> =
        browser.complaints().into_iter().filter(|c| !c.contains("status of 404")).collect();
    assert_eq!(complaints, Vec::<String>::new());
}

#[tokio::test]
async fn lab_reports_are_opened_and_run_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("order-1");
    std::fs::create_dir(&report).unwrap();
    let page = "<title>r</title><style>p{color:rgb(1,2,3)}</style><main><p>The report</p></main>\
        <script>document.title='ran'</script><img src=http://127.0.0.1:9/x>";
    std::fs::write(report.join("report.html"), page).unwrap();
    std::fs::write(report.join("results.json"), "{\"pages\": 7}").unwrap();
    let options =
        WebOptions { reports: Some(folder.path().to_owned()), ..WebOptions::new([7; 32]) };
    let world = World::with(options, true);
    let Some(mut browser) = Browser::on(world.router.clone()).await else { return };
    browser.open("/lab").await;
    browser.follow("tbody a").await;
    assert_eq!(browser.path().await, "/lab/order-1");
    assert!(browser.text().await.contains("The report"));
    assert_eq!(browser.eval("document.title").await, json!("r"), "no script ran");
    let colour = browser.eval("getComputedStyle(document.querySelector('p')).color").await;
    assert_eq!(colour, json!("rgb(1, 2, 3)"), "its own style holds");
    browser.follow("a[href='/lab']").await;
    assert_eq!(browser.path().await, "/lab", "and the way back");
    browser.open("/lab/order-1/results").await;
    assert!(browser.text().await.contains("7"));
    browser.open("/lab/..%2forder-1").await;
    assert!(browser.text().await.contains("no such report"));
}

#[tokio::test]
async fn what_is_fetched_now_is_shown_live() {
    let world = World::lived_in();
    let Some(mut browser) = Browser::on(world.router.clone()).await else { return };
    browser.open("/").await;
    assert!(browser.text().await.contains("No requests at the moment"));
    world.control.under_way.lock().unwrap().push(UnderWay {
        url: "https://e.com/just-now".into(),
        server: "https://e.com".into(),
        since_s: NOW_S,
        phase: "receiving",
    });
    browser.until("document.body.innerText.includes('https://e.com/just-now')").await;
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[tokio::test]
async fn on_a_phone_no_page_is_wider_than_the_screen() {
    let world = World::lived_in();
    let Some(mut browser) = Browser::on(world.router.clone()).await else { return };
    let phone = json!({"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": true});
    browser.call("Emulation.setDeviceMetricsOverride", phone).await;
    for page in PAGES {
        browser.open(page).await;
        let width = browser.eval("document.documentElement.scrollWidth").await;
        assert_eq!(width, json!(360), "{page}");
    }
}

#[tokio::test]
async fn the_reader_chooses_dark_and_the_language() {
    let world = World::lived_in();
    let Some(mut browser) = Browser::on(world.router.clone()).await else { return };
    browser.open("/").await;
    let light = browser.eval("getComputedStyle(document.body).backgroundColor").await;
    let dark = json!({"features": [{"name": "prefers-color-scheme", "value": "dark"}]});
    browser.call("Emulation.setEmulatedMedia", dark).await;
    let dark = browser.eval("getComputedStyle(document.body).backgroundColor").await;
    assert_ne!(light, dark);
    browser.follow(".aside a[hreflang=ja]").await;
    assert_eq!(browser.eval("document.documentElement.lang").await, json!("ja"));
    assert!(browser.text().await.contains("サイトを追加"));
    browser.open("/visits").await;
    assert!(browser.text().await.contains("訪問ログ"), "the choice is kept");
    browser.follow(".aside a[hreflang=en]").await;
    assert_eq!(browser.path().await, "/visits");
}

#[tokio::test]
async fn the_keyboard_reaches_the_content_and_the_menu() {
    let world = World::lived_in();
    let Some(mut browser) = Browser::on(world.router.clone()).await else { return };
    browser.open("/visits").await;
    browser.press("Tab", 9, "").await;
    browser.until("document.activeElement.className === 'skip'").await;
    browser.press("Enter", 13, "\r").await;
    browser.until("document.activeElement.id === 'main'").await;
    browser.press("Tab", 9, "").await;
    browser.until("document.activeElement.id === 'site'").await;
}

#[tokio::test]
async fn a_filter_is_applied_as_soon_as_it_is_chosen() {
    let world = World::lived_in();
    let Some(mut browser) = Browser::on(world.router.clone()).await else { return };
    browser.open("/visits").await;
    browser.eval("(s => { s.value = 'gone'; s.dispatchEvent(new Event('change', {bubbles: true})); })(document.querySelector('#outcome'))").await;
    browser
        .until("location.search.includes('outcome=gone') && document.readyState === 'complete'")
        .await;
    assert_eq!(browser.eval("document.querySelectorAll('tbody tr').length").await, json!(1));
}

#[tokio::test]
async fn everything_can_be_read_with_scripts_off() {
    let world = World::lived_in();
    let Some(mut browser) = Browser::on(world.router.clone()).await else { return };
    browser.call("Emulation.setScriptExecutionDisabled", json!({"value": true})).await;
    for page in PAGES.iter().take(11) {
        browser.open(page).await;
        assert!(browser.text().await.contains("Nenrin"), "{page}");
    }
    browser.open("/visits").await;
    assert!(browser.text().await.contains("UTC"), "times are there, in UTC");
    browser.open("/sites/new").await;
    let hidden = "document.querySelector('#other_period').closest('[hidden]')";
    assert_eq!(browser.eval(hidden).await, json!(null), "no field is out of reach");
}

#[tokio::test]
async fn times_are_shown_in_the_readers_zone() {
    let world = World::lived_in();
    let Some(mut browser) = Browser::on(world.router.clone()).await else { return };
    browser.call("Emulation.setTimezoneOverride", json!({"timezoneId": "Asia/Tokyo"})).await;
    browser.open("/sites/1").await;
    let shown = browser.eval("document.querySelector('time:not(.short)').textContent").await;
    assert!(shown.as_str().unwrap().ends_with(" 07:13:20"), "{shown}");
    let short = browser.eval("document.querySelector('time.short').textContent").await;
    assert!(short.as_str().unwrap().ends_with(" 07:13"), "{short}");
}

#[tokio::test]
async fn a_person_logs_in_and_out() {
    let options = WebOptions {
        admin_hash: Some(hash_password("right", [1; 16]).unwrap()),
        ..WebOptions::new([7; 32])
    };
    let world = World::with(options, false);
    world.live("paper", "https://e.com/");
    let Some(mut browser) = Browser::on(world.router.clone()).await else { return };
    browser.open("/sites/1?note=saved").await;
    assert!(browser.path().await.starts_with("/login"));
    browser.fill("#password", "wrong").await;
    browser.follow("form.sheet button.primary").await;
    assert!(browser.text().await.contains("Wrong password"));
    browser.fill("#password", "right").await;
    browser.follow("form.sheet button.primary").await;
    assert_eq!(browser.path().await, "/sites/1?note=saved");
    browser.follow("form[action='/logout'] button").await;
    assert!(browser.path().await.starts_with("/login"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
