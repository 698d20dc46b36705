//! Watches, ignored parts, lists of sites, patterns and downloads in a real browser, in both languages
//! and widths; and all pages checked with axe-core.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "what cannot be set up must fail the test, and what is skipped is said loudly"
)]

use crate::support;

use std::{path::PathBuf, sync::Arc};

use nenrin_archive::{Archive, Capture, OpenOptions, changes::ChangeReader};
use nenrin_browser::Browser;
use nenrin_search::{Keeper, Search};
use nenrin_state::{SiteId, WatchEvent, WatchFinding, WatchHit, WatchTrouble, WatchedPart};
use nenrin_web::{ReplayBase, StoreSummary, WebApp, WebOptions};
use serde_json::json;
use support::{FakeControl, NOW_S, conditions, url};

const HTML: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n";
const EVIL: &str = "<script>alert(1)</script>";

/// The interface over a real archive with one page in two versions.
struct Shelf {
    _folder: tempfile::TempDir,
    archive: Arc<Archive>,
    control: Arc<FakeControl>,
    router: axum::Router,
}

fn shelf() -> Shelf {
    let folder = tempfile::tempdir().unwrap();
    let archive = Arc::new(Archive::open(folder.path(), &OpenOptions::writing()).unwrap());
    let site = archive.state().add_site("shop", &conditions("https://e.com/"), 0).unwrap().id;
    let mut ingest = archive.ingest(site).unwrap();
    for (n, price) in [(1, 9), (2, 8)] {
        let body = format!(
            "<title>Shop {EVIL}</title><h1>Tea</h1><p class=price>{price} EUR</p><p>&lt;script&gt;alert(2)&lt;/script&gt;</p>\
             <div class=ad>Buy {n}</div><a href=/news/a>a</a>"
        );
        let at_s = NOW_S - 86_400 * (3 - n);
        ingest
            .take(&Capture::new(&url("https://e.com/"), at_s, 200, HTML, body.as_bytes()))
            .unwrap();
    }
    ingest.finish().unwrap();
    let mut keeper = Keeper::new(archive.clone());
    keeper.catch_up(&mut |_, _| {}).unwrap();
    keeper.finish().unwrap();
    let control = Arc::new(FakeControl::default());
    let app = WebApp {
        changes: ChangeReader::new(archive.state().clone(), archive.store().clone()),
        state: archive.state().clone(),
        store: Some(archive.store().clone()),
        control: control.clone(),
        store_stats: Arc::new(StoreSummary::default),
        replay_base: ReplayBase::Port(8081),
        options: WebOptions {
            search: Some(Arc::new(Search::new(archive.clone()))),
            ..WebOptions::new([7; 32])
        },
        now_s: || NOW_S,
    };
    Shelf { _folder: folder, archive, control, router: nenrin_web::router(app) }
}

/// No page is wider than the window, and nothing of an attacker runs or complains.
async fn looks_right(browser: &mut Browser, path: &str) {
    for (width, height, is_mobile) in [(1280, 900, false), (390, 844, true)] {
        browser.resize(width, height, is_mobile).await;
        for lang in ["en", "ja"] {
            browser.open(&format!("/lang?to={lang}&back={path}")).await;
            let code = browser.eval("document.documentElement.lang").await;
            assert_eq!(code, json!(lang), "{path}");
            let over = "document.documentElement.scrollWidth - innerWidth";
            let over = browser.eval(over).await.as_i64().unwrap();
            assert!(over <= 0, "{path} is {over} px too wide at {width}");
        }
    }
    browser.resize(1280, 900, false).await;
    browser.open(&format!("/lang?to=en&back={path}")).await;
    assert_eq!(browser.complaints(), Vec::<String>::new(), "{path}");
}

#[tokio::test]
async fn selected_text_is_watched() {
    let shelf = shelf();
    let Some(mut browser) = Browser::on(shelf.router.clone()).await else { return };
    looks_right(&mut browser, "/blame%3Furl=e.com").await;
    let hidden = "document.querySelector('#watch-marked').hidden";
    assert_eq!(browser.eval(hidden).await, json!(true), "nothing is selected yet");
    let select = "(() => { const p = [...document.querySelectorAll('ol.blame p')].find(p => p.innerText.includes('8 EUR'));
        const range = document.createRange(); range.setStart(p.firstChild, 0); range.setEnd(p.firstChild, 5);
        getSelection().removeAllRanges(); getSelection().addRange(range); })()";
    browser.eval(select).await;
    browser.until("!document.querySelector('#watch-marked').hidden").await;
    browser.follow("#watch-marked").await;
    browser.follow("form.sheet button.primary").await;
    assert_eq!(browser.path().await, "/watches?note=added");
    let watch = shelf.archive.state().watches().unwrap().remove(0);
    assert_eq!(watch.part, WatchedPart::Selector { selector: "p.price".into(), nth: 1 });
    // Without scripts there is a link behind each paragraph.
    browser.open("/blame?url=e.com").await;
    let links = "[...document.querySelectorAll('ol.blame a.mark')].map(a => new URL(a.href).searchParams.get('text'))";
    let links = browser.eval(links).await;
    assert!(links.as_array().unwrap().contains(&json!("8 EUR")), "{links}");
}

#[tokio::test]
async fn a_search_is_narrowed_down_by_fields() {
    let shelf = shelf();
    let Some(mut browser) = Browser::on(shelf.router.clone()).await else { return };
    browser.open("/search?q=tea").await;
    looks_right(&mut browser, "/search%3Fq=tea").await;
    assert!(browser.text().await.contains("Shop"));
    browser.eval("document.querySelector('.narrow [name=kind]').value = 'pdf'").await;
    browser.follow(".narrow button").await;
    assert_eq!(browser.path().await, "/search?q=tea+type%3Apdf");
    assert!(browser.text().await.contains("Nothing was found"));
    browser.eval("document.querySelector('.narrow [name=kind]').value = ''").await;
    browser.eval("document.querySelector('.narrow [name=time]').value = 'at'").await;
    browser.eval("document.querySelector('.narrow [name=from]').value = '2019-01-01'").await;
    browser.follow(".narrow button").await;
    assert_eq!(
        browser.eval("document.querySelector('#words').value").await,
        json!("tea at:2019-01-01")
    );
    assert!(browser.text().await.contains("Nothing was found"), "before the archive began");
    browser.open("/search?q=9").await;
    browser.eval("document.querySelector('.narrow [name=time]').value = 'vanished'").await;
    browser.eval("document.querySelector('.narrow [name=from]').value = '2020-01-01'").await;
    browser.follow(".narrow button").await;
    assert!(browser.text().await.contains("Shop"), "{}", browser.text().await);
}

#[tokio::test]
async fn a_watch_is_made_from_a_block_tried_paused_and_removed() {
    let shelf = shelf();
    let Some(mut browser) = Browser::on(shelf.router.clone()).await else { return };
    looks_right(&mut browser, "/watches").await;
    browser.fill("#watch-url", "e.com").await;
    browser.follow("section.card form button.primary").await;
    looks_right(&mut browser, "/watches/new%3Furl=e.com").await;
    let text = browser.text().await;
    assert!(text.contains("9 EUR") || text.contains("8 EUR"), "{text}");
    assert!(text.contains("<script>alert(2)</script>"), "titles and texts are text: {text}");
    let pick = "[...document.querySelectorAll('.blocks label')].find(l => l.innerText.includes('8 EUR')).click()";
    browser.eval(pick).await;
    browser.follow("button[name=try]").await;
    assert!(browser.text().await.contains("8 EUR"));
    browser.eval("document.querySelector('#on').value = 'below'").await;
    browser.fill("#bound", "cheap").await;
    browser.follow("form.sheet button.primary").await;
    assert!(browser.text().await.contains("Write a number"), "a mistake is named");
    browser.fill("#bound", "5").await;
    browser.fill("#name", EVIL).await;
    browser.follow("form.sheet button.primary").await;
    assert_eq!(browser.path().await, "/watches?note=added");
    let watch = shelf.archive.state().watches().unwrap().remove(0);
    assert_eq!(watch.part, WatchedPart::Selector { selector: "p.price".into(), nth: 1 });
    assert_eq!((watch.on, watch.name.as_str()), (WatchEvent::Below(5.0), EVIL));
    let hit = WatchHit {
        id: 0,
        watch: watch.id,
        title: EVIL.into(),
        url: watch.url.clone(),
        at_s: NOW_S,
        before_s: Some(NOW_S - 86_400),
        before: Some(EVIL.into()),
        after: None,
        trouble: None,
        mailed: false,
    };
    let lost = WatchHit { trouble: Some(WatchTrouble::PageGone), ..hit.clone() };
    shelf.archive.state().keep_watch_hits(&[hit, lost]).unwrap();
    let last = Some(WatchFinding { at_s: NOW_S, text: Some(EVIL.repeat(40)) });
    shelf.archive.state().keep_watch(&nenrin_state::Watch { last, ..watch }).unwrap();
    looks_right(&mut browser, "/watches").await;
    looks_right(&mut browser, "/watches/1").await;
    assert!(browser.text().await.contains("does not exist any more"));
    browser.follow("form[action='/watches/1/pause'] button").await;
    assert!(shelf.archive.state().watches().unwrap()[0].paused);
    browser.follow("form[action='/watches/1/resume'] button").await;
    assert!(!shelf.archive.state().watches().unwrap()[0].paused);
    browser.follow("form[action='/watches/1/remove'] button").await;
    assert_eq!(shelf.archive.state().watches().unwrap(), []);
    browser.follow("form[action='/watches/test-mail'] button").await;
    assert_eq!(browser.path().await, "/watches?note=mailed");
    assert!(shelf.control.asked.lock().unwrap().contains(&"mail".to_owned()));
    browser.open("/feed.atom?watches=1").await;
    let feed = browser.text().await;
    assert!(feed.contains("watch"), "{feed}");
}

#[tokio::test]
async fn a_part_is_ignored_from_the_comparison() {
    let shelf = shelf();
    let Some(mut browser) = Browser::on(shelf.router.clone()).await else { return };
    let path = "/ignore?url=https://e.com/&text=Buy%202";
    browser.open(path).await;
    assert_eq!(browser.eval("document.querySelector('#selector').value").await, json!("div.ad"));
    looks_right(&mut browser, &path.replace('?', "%3F").replace('&', "%26")).await;
    browser.open(path).await;
    browser.fill("#pages", "/*").await;
    browser.follow("form.sheet button.primary").await;
    assert_eq!(browser.path().await, "/sites/1?note=ignored");
    let conditions = shelf.archive.state().sites().unwrap().remove(0).conditions;
    assert_eq!(conditions.ignored[0].to_string(), "/* 1 div.ad");
}

#[tokio::test]
async fn many_sites_are_added_at_once_and_mistakes_are_named_by_line() {
    let shelf = shelf();
    let Some(mut browser) = Browser::on(shelf.router.clone()).await else { return };
    looks_right(&mut browser, "/sites/bulk").await;
    let list = format!("a.org\nhttps://e.com/\nnot {EVIL}\nb.org/news/\n");
    browser.eval(&format!("document.querySelector('#list').value = {list:?}")).await;
    browser.fill("#tags", "tea, green").await;
    browser.fill("#group", "Food").await;
    browser.follow("form.sheet button.primary").await;
    let text = browser.text().await;
    assert!(text.contains("2 sites added, 1 registered already, 1 line with a mistake."), "{text}");
    assert!(text.contains("Line 3:"), "{text}");
    let known = browser.eval("document.querySelector('.notice details').textContent").await;
    assert!(known.as_str().unwrap().contains("Line 2: shop"), "{known}");
    let sites = shelf.archive.state().sites().unwrap();
    assert_eq!(sites.len(), 3);
    assert_eq!(sites[1].conditions.labels.tags, ["tea", "green"]);
    looks_right(&mut browser, "/").await;
    browser.follow("nav.chips a[href='/?label=Food']").await;
    let rows = browser.eval("document.querySelectorAll('table.sites tbody tr').length").await;
    assert_eq!(rows, json!(2));
}

#[tokio::test]
async fn patterns_are_counted_while_they_are_typed_and_conditions_are_copied() {
    let shelf = shelf();
    let Some(mut browser) = Browser::on(shelf.router.clone()).await else { return };
    browser.open("/sites/1/edit").await;
    browser.fill("#exclude", "/news/*").await;
    browser.until("document.querySelector('#pattern-count').innerText.includes('of')").await;
    let counted = browser.eval("document.querySelector('#pattern-count').innerText").await;
    assert!(counted.as_str().unwrap().starts_with("1 of"), "{counted}");
    browser.fill("#headers", "Accept-Language: ja").await;
    browser.fill("#name", "the shop").await;
    browser.fill("#ignored", "/* p:hover").await;
    browser.follow("form.sheet button.primary").await;
    assert!(browser.text().await.contains(":hover"), "a selector that is not understood is named");
    browser.fill("#ignored", "/* div.ad").await;
    browser.follow("form.sheet button.primary").await;
    let site = shelf.archive.state().sites().unwrap().remove(0);
    assert_eq!(site.name, "the shop");
    assert_eq!(site.conditions.pages.exclude[0].to_string(), "/news/*");
    assert_eq!(site.conditions.headers[0].to_string(), "Accept-Language: ja");
    browser.open("/sites/new?copy=1").await;
    let copied = "document.querySelector('#exclude').value + document.querySelector('#url').value";
    assert_eq!(browser.eval(copied).await, json!("/news/*"));
    looks_right(&mut browser, "/sites/new%3Fcopy=1").await;
}

#[tokio::test]
async fn a_download_is_made_and_fetched() {
    let shelf = shelf();
    let Some(mut browser) = Browser::on(shelf.router.clone()).await else { return };
    looks_right(&mut browser, "/downloads").await;
    browser.fill("#url", "https://e.com/").await;
    browser.follow("form:has(#url) button.primary").await;
    browser.until("!!document.querySelector('a[download]')").await;
    let fetched = "fetch(document.querySelector('a[download]').href).then(r => r.text())";
    assert_eq!(browser.eval(fetched).await, json!("FILE"));
    browser.eval("document.querySelector('#kind').value = 'mirror'").await;
    browser.follow("form:has(#kind) button.primary").await;
    browser.until("document.querySelectorAll('a[download]').length === 2").await;
    looks_right(&mut browser, "/downloads").await;
}

/// The source of axe-core, which `scripts/test` installs.
fn axe() -> Option<String> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let file = root.join("target/axe/node_modules/axe-core/axe.min.js");
    let found = std::fs::read_to_string(&file).ok();
    assert!(found.is_some() || std::env::var_os("CI").is_none(), "{} is missing", file.display());
    if found.is_none() {
        eprintln!("SKIPPED: axe-core is not installed; `scripts/test` does it");
    }
    found
}

#[tokio::test]
async fn no_page_violates_accessibility_rules() {
    let Some(axe) = axe() else { return };
    let shelf = shelf();
    let state = shelf.archive.state();
    let watch = nenrin_state::Watch {
        id: nenrin_state::WatchId(0),
        name: "price".into(),
        url: url("https://e.com/"),
        part: WatchedPart::Page,
        on: WatchEvent::Changes,
        paused: false,
        created_s: 0,
        last: None,
        trouble: Some(WatchTrouble::TooLarge),
    };
    state.keep_watch(&watch).unwrap();
    state.remove_site(SiteId(1), None, "a test", NOW_S).unwrap();
    let Some(mut browser) = Browser::on(shelf.router.clone()).await else { return };
    let mut problems = Vec::new();
    for scheme in ["light", "dark"] {
        let media = json!({"features": [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]});
        browser.call("Emulation.setEmulatedMedia", media).await;
        for path in PAGES {
            browser.open(path).await;
            browser.eval(&format!("{axe};0")).await;
            let run = "axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.map(v => v.id + ': ' + v.nodes.slice(0, 3).map(n => n.html.slice(0, 160) + ' ' + (n.any[0]?.message ?? '')).join(' | ')))";
            for violation in browser.eval(run).await.as_array().unwrap() {
                problems.push(format!("{scheme} {path}: {violation}"));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Every page that people see.
const PAGES: [&str; 21] = [
    "/",
    "/sites/1",
    "/sites/1/edit",
    "/sites/1/pages",
    "/sites/1/schedule",
    "/sites/1/structure",
    "/sites/1/remove",
    "/sites/1/restore",
    "/sites/new",
    "/sites/bulk",
    "/removals",
    "/visits",
    "/page?url=https://e.com/",
    "/watches",
    "/watches/1",
    "/watches/new?url=https://e.com/",
    "/ignore?url=https://e.com/&text=Buy%202",
    "/downloads",
    "/lab",
    "/api",
    "/nothing-here",
];
