//! Every form and every path through the interface in a real browser; and a check that none is left
//! out.

use crate::support;

use std::collections::BTreeSet;

use axum::{Router, http::Uri};
use nenrin_browser::Browser;
use nenrin_state::{Removal, ScheduleBy, SiteId};
use nenrin_web::{ReplayBase, WebOptions};
use serde_json::json;
use support::{NOW_S, World};

/// Where each route is opened or sent in a browser: here, or in `browser.rs`.
const TRIED: &[(&str, &str)] = &[
    ("/", "browser.rs: every test"),
    ("/now", "browser.rs: what is fetched now is shown live"),
    ("/demo", "browser.rs: the demo is one click away"),
    ("/sites", "browser.rs: a newcomer"),
    ("/sites/new", "browser.rs: mistakes"),
    ("/sites/new/look", "a look before anything is saved"),
    ("/sites/{id}", "every condition is set in the form"),
    ("/sites/{id}/edit", "every condition is set in the form"),
    ("/sites/{id}/look", "browser.rs: a first look"),
    ("/sites/{id}/collect", "browser.rs: buttons"),
    ("/sites/{id}/pause", "browser.rs: buttons"),
    ("/sites/{id}/resume", "browser.rs: buttons"),
    ("/sites/{id}/browse", "a date leads to replay and two versions to their difference"),
    ("/sites/{id}/remove", "a site is removed and restored"),
    ("/sites/{id}/restore", "a site is removed and restored"),
    ("/removals", "a site is removed and restored"),
    ("/sites/{id}/pages", "pages are walked through as a tree and as a list"),
    ("/sites/{id}/schedule", "the tabs of a site"),
    ("/sites/{id}/structure", "the tabs of a site"),
    ("/changes", "changes.rs: changes are shown by day"),
    ("/picture", "changes.rs: changes are shown by day"),
    ("/sites/{id}/between", "changes.rs: a site is compared on two dates"),
    ("/sites/{id}/events", "changes.rs: the first round is shown while it runs"),
    ("/visits", "browser.rs: a filter"),
    ("/page", "a date leads to replay and two versions to their difference"),
    ("/diff", "a date leads to replay and two versions to their difference"),
    ("/lab", "browser.rs: lab reports"),
    ("/lab/{name}", "browser.rs: lab reports"),
    ("/lab/{name}/results", "browser.rs: lab reports"),
    ("/login", "browser.rs: a person logs in and out"),
    ("/logout", "browser.rs: a person logs in and out"),
    ("/lang", "browser.rs: the reader chooses dark and the language"),
    ("/assets/{name}", "browser.rs: every test"),
    ("/sites/bulk", "browser_second.rs: many sites"),
    ("/sites/patterns", "browser_second.rs: patterns"),
    ("/watches", "browser_second.rs: a watch"),
    ("/watches/new", "browser_second.rs: a watch"),
    ("/watches/test-mail", "browser_second.rs: a watch"),
    ("/watches/{id}", "browser_second.rs: a watch"),
    ("/watches/{id}/pause", "browser_second.rs: a watch"),
    ("/watches/{id}/resume", "browser_second.rs: a watch"),
    ("/watches/{id}/remove", "browser_second.rs: a watch"),
    ("/ignore", "browser_second.rs: a part is ignored"),
    ("/downloads", "browser_second.rs: a download"),
    ("/downloads/{id}/file", "browser_second.rs: a download"),
    ("/api", "browser_second.rs: accessibility; pages.rs: the API has a page"),
    ("/search", "end_to_end/searching.rs: the interface finds"),
    ("/search.atom", "end_to_end/searching.rs: the interface finds"),
    ("/opensearch.xml", "end_to_end/searching.rs: the interface finds"),
    ("/blame", "end_to_end/searching.rs: the interface finds"),
    ("/feed.atom", "what is for programs opens in a browser too"),
    ("/metrics", "what is for programs opens in a browser too"),
];

#[test]
fn no_route_is_without_a_browser_test() {
    let source = include_str!("../src/router.rs");
    let routes: BTreeSet<&str> =
        source.split(".route(\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let tried: BTreeSet<&str> = TRIED.iter().map(|(route, _)| *route).collect();
    assert!(routes.len() > 20, "{routes:?}");
    assert_eq!(routes, tried);
}

async fn choose(browser: &mut Browser, selector: &str, value: &str) {
    let set = "((s, v) => { s.value = v; s.dispatchEvent(new Event('change', {bubbles: true})); })";
    browser.eval(&format!("{set}(document.querySelector({selector:?}), {value:?})")).await;
}

async fn is_shown(browser: &mut Browser, selector: &str) -> bool {
    browser.eval(&format!("document.querySelector({selector:?}).checkVisibility()")).await
        == json!(true)
}

#[tokio::test]
async fn every_condition_is_set_in_the_form() {
    let world = World::lived_in();
    let Some(mut browser) = Browser::on(world.router.clone()).await else { return };
    browser.open("/sites/1/edit").await;
    assert!(!is_shown(&mut browser, "#policy").await, "rounds need no rule");
    choose(&mut browser, "#period", "continuous").await;
    assert!(is_shown(&mut browser, "#policy").await);
    assert!(!is_shown(&mut browser, "#policy_text").await);
    choose(&mut browser, "#policy", "other").await;
    assert!(is_shown(&mut browser, "#policy_text").await);
    choose(&mut browser, "#schedule_by", "significant").await;
    for (field, text) in [
        ("#policy_text", "every(12h)"),
        ("#visits_per_day", "500"),
        ("#min", "2h"),
        ("#max", "90d"),
        ("#paths", "/news/* min=1h max=1d"),
        ("#windows", "mon-fri 22:00-06:00 Asia/Tokyo"),
        ("#delay", "3s"),
        ("#more_tops", "https://e.com/b/"),
        ("#max_pages", "1000"),
        ("#depth", "5"),
        ("#quota", "10GB"),
        ("#prune", "30d,month"),
    ] {
        browser.fill(field, text).await;
    }
    choose(&mut browser, "#scope", "domain").await;
    browser.eval("document.querySelector('#signals').click()").await;
    browser.eval("document.querySelector('#embeds').click()").await;
    browser.follow("form.sheet button.primary").await;
    browser.until("location.pathname === '/sites/1' && document.readyState === 'complete'").await;
    let conditions = world.state.sites().unwrap().remove(0).conditions;
    let settings = conditions.schedule.continuous().unwrap();
    assert_eq!(settings.policy.to_string(), "every(12h)");
    assert_eq!((settings.visits_per_day, settings.min_s), (Some(500), Some(7_200)));
    assert_eq!((settings.max_s, settings.paths.len()), (90 * 86_400, 1));
    assert_eq!(conditions.windows[0].to_string(), "mon,tue,wed,thu,fri 22:00-06:00 Asia/Tokyo");
    assert_eq!((conditions.tops.len(), conditions.depth), (2, 5));
    assert_eq!((conditions.max_pages, conditions.delay_ms), (Some(1_000), Some(3_000)));
    assert_eq!(conditions.hints.schedule_by, ScheduleBy::Significant);
    assert!(!conditions.hints.signals && !conditions.embeds);
    assert_eq!(conditions.keeping.quota_bytes, Some(10_000_000_000));
    assert_eq!(conditions.keeping.prune.unwrap().to_string(), "30d,month");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[tokio::test]
async fn every_mistake_is_shown_at_its_field() {
    let world = World::lived_in();
    let Some(mut browser) = Browser::on(world.router.clone()).await else { return };
    browser.open("/sites/1/edit").await;
    choose(&mut browser, "#period", "continuous").await;
    choose(&mut browser, "#policy", "other").await;
    choose(&mut browser, "#robots", "ignore").await;
    let typed = [
        ("url", "example"),
        ("policy_text", "weekly"),
        ("visits_per_day", "many"),
        ("min", "short"),
        ("max", "long"),
        ("paths", "/a min=1h\nnews"),
        ("windows", "at night"),
        ("delay", "soon"),
        ("more_tops", "ftp://x"),
        ("max_pages", "all"),
        ("depth", "deep"),
        ("quota", "much"),
        ("prune", "some"),
        ("robots_reason", " "),
    ];
    for (field, text) in typed {
        browser.fill(&format!("#{field}"), text).await;
    }
    browser.follow("form.sheet button.primary").await;
    for (field, text) in typed {
        let kept = browser.eval(&format!("document.querySelector('#{field}').value")).await;
        assert_eq!(kept, json!(text), "{field}");
        let error = format!("#{field}-error");
        assert!(is_shown(&mut browser, &error).await, "{field}");
        // The message is read out with the field, and is right below it.
        let described = format!(
            "document.querySelector('#{field}').getAttribute('aria-describedby').includes('{field}-error')"
        );
        assert_eq!(browser.eval(&described).await, json!(true), "{field}");
        let gap = format!(
            "document.querySelector('{error}').getBoundingClientRect().top - document.querySelector('#{field}').getBoundingClientRect().bottom"
        );
        assert!(browser.eval(&gap).await.as_f64().unwrap().abs() < 20.0, "{field}");
    }
    assert!(!world.control.asked.lock().unwrap().contains(&"changed".to_owned()));
    browser.open("/sites/1/browse?at=yesterday").await;
    assert_eq!(browser.path().await, "/sites/1?at=yesterday");
    assert!(is_shown(&mut browser, "#at-error").await);
    assert_eq!(browser.eval("document.querySelector('#at').value").await, json!("yesterday"));
}

#[tokio::test]
async fn a_look_before_anything_is_saved() {
    let world = World::new();
    let Some(mut browser) = Browser::on(world.router.clone()).await else { return };
    browser.open("/sites/new").await;
    browser.fill("#url", "e.com").await;
    browser.follow("button[formaction='/sites/new/look']").await;
    let text = browser.text().await;
    assert!(text.contains("A first look") && text.contains("<script>alert('robots')"), "{text}");
    assert!(world.state.sites().unwrap().is_empty());
    assert_eq!(browser.eval("document.querySelector('#url').value").await, json!("e.com"));
}

#[tokio::test]
async fn a_site_is_removed_and_given_back() {
    let world = World::lived_in();
    let Some(mut browser) = Browser::on(world.router.clone()).await else { return };
    browser.open("/sites/1").await;
    browser.follow("a[href='/sites/1/remove']").await;
    browser.follow("form.sheet button.danger").await;
    assert!(browser.text().await.contains("Choose one of these"));
    browser.eval("document.querySelector('[name=removal][value=delete]').click()").await;
    assert!(is_shown(&mut browser, "#confirm").await);
    browser.eval("document.querySelector('[name=removal][value=hide]').click()").await;
    assert!(!is_shown(&mut browser, "#confirm").await, "only deleting asks for the name");
    browser.fill("#reason", "it closed").await;
    browser.follow("form.sheet button.danger").await;
    assert_eq!(browser.path().await, "/?note=removed");
    assert!(world.control.asked.lock().unwrap().contains(&"remove 1 Hide it closed".to_owned()));
    // The control is a fake: the test does what it was asked to.
    world.state.remove_site(SiteId(1), Some(Removal::Hide), "it closed", NOW_S).unwrap();
    browser.open("/").await;
    browser.follow("a[href='/removals']").await;
    assert!(browser.text().await.contains("it closed"));
    browser.follow("a[href='/sites/1/restore']").await;
    browser.follow("form.sheet button.primary").await;
    assert!(browser.text().await.contains("Write the reason"));
    browser.fill("#reason", "it opened again").await;
    browser.follow("form.sheet button.primary").await;
    assert_eq!(browser.path().await, "/sites/1?note=restored");
    assert_eq!(world.state.sites().unwrap()[0].removed, None);
    let complaints = browser.complaints();
    assert!(complaints.iter().all(|c| c.contains("status of 422")), "{complaints:?}");
}

#[tokio::test]
async fn a_date_leads_to_replay_and_two_versions_to_their_difference() {
    let echo = Router::new().fallback(|uri: Uri| async move { format!("REPLAY {uri}") });
    let replay = nenrin_browser::serve(echo).await;
    let world = World::beside(ReplayBase::Origin(replay), WebOptions::new([7; 32]), false);
    world.live("paper", "https://e.com/");
    let Some(mut browser) = Browser::on(world.router.clone()).await else { return };
    browser.open("/sites/1").await;
    browser.eval("document.querySelector('#at').value = '2023-11-07'").await;
    browser.follow(".browse button").await;
    browser.until("document.body.innerText.includes('REPLAY')").await;
    let text = browser.text().await;
    assert!(text.contains("/web/20231107235959/https://e.com/"), "{text}");
    browser.open("/page?url=https%3A%2F%2Fe.com%2F").await;
    browser.follow("form[action='/diff'] button").await;
    browser.until("document.body.innerText.includes('REPLAY')").await;
    let text = browser.text().await;
    assert!(text.contains("/diff/20231104221320/20231105221320/https://e.com/"), "{text}");
    browser.open("/page?url=https%3A%2F%2Fe.com%2F").await;
    browser.follow("tbody td a").await;
    browser.until("document.body.innerText.includes('REPLAY /web/')").await;
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[tokio::test]
async fn pages_are_walked_through_as_a_tree_and_as_a_list() {
    let world = World::lived_in();
    let Some(mut browser) = Browser::on(world.router.clone()).await else { return };
    browser.open("/sites/1/pages").await;
    browser.follow("a.directory").await;
    assert!(browser.path().await.ends_with("&prefix=%2Fa%2F"));
    browser.open("/sites/1/pages?list=1").await;
    let text = browser.text().await;
    assert!(text.contains("/a/x") && text.contains("/img.png"), "{text}");
    browser.follow("main a[href^='/page?url=']").await;
    assert!(browser.path().await.starts_with("/page?url="));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[tokio::test]
async fn the_tabs_of_a_site_lead_round_and_sites_are_sorted_and_searched() {
    let world = World::lived_in();
    world.live("second", "https://f.com/");
    let Some(mut browser) = Browser::on(world.router.clone()).await else { return };
    browser.open("/sites/1").await;
    for (tab, path) in [
        ("pages", "/sites/1/pages"),
        ("schedule", "/sites/1/schedule"),
        ("structure", "/sites/1/structure"),
        ("between", "/sites/1/between"),
        ("/changes?site=1", "/changes?site=1"),
        ("/visits?site=1", "/visits?site=1"),
    ] {
        browser.open("/sites/1").await;
        browser.follow(&format!(".tabs a[href$='{tab}']")).await;
        assert_eq!(browser.path().await, path);
    }
    browser.open("/").await;
    browser.follow("thead a").await;
    assert!(browser.path().await.contains("sort="));
    browser.fill("#q", "second").await;
    browser.press("Enter", 13, "\r").await;
    browser
        .until("location.search.includes('q=second') && document.readyState === 'complete'")
        .await;
    let listed = "[...document.querySelectorAll('th a, td a')].map(a => a.getAttribute('href')).filter(h => /^\\/sites\\/[0-9]+$/.test(h))";
    assert_eq!(browser.eval(listed).await, json!(["/sites/2"]));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[tokio::test]
async fn what_is_for_programs_opens_in_a_browser_too() {
    let world = World::lived_in();
    world.state.keep_incidents(&[support::incident()]).unwrap();
    let Some(mut browser) = Browser::on(world.router.clone()).await else { return };
    browser.open("/metrics").await;
    assert!(browser.text().await.contains("nenrin_sites 1"));
    browser.open("/api/v1").await;
    assert!(browser.text().await.contains("openapi"));
    let parsed = "fetch('/feed.atom').then(a => a.text()).then(t => new DOMParser().parseFromString(t, 'application/xml')).then(d => [d.querySelectorAll('parsererror').length, d.querySelectorAll('entry').length])";
    browser.open("/").await;
    assert_eq!(browser.eval(parsed).await, json!([0, 4]));
    assert!(browser.text().await.contains("a sitemap or feed no longer answers"));
    assert_eq!(browser.eval("document.scripts.length").await, json!(1));
}
