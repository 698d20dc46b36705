//! Tests each protection of a replayed page alone: the others are removed in front of the router or
//! in the browser, and still nothing from the live web is requested.

use crate::support;

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{HeaderValue, header},
    middleware::{Next, from_fn},
    response::Response,
};
use nenrin_browser::{Browser, LiveWeb, Names, serve};
use nenrin_replay::{MemoryArchive, ReplayOptions, router};
use serde_json::json;
use support::{HTML, at, served, url};

/// Parts named in the page, in each way that needs no script.
const STILL: &str = "<!doctype html><title>still</title>\
    <link rel=stylesheet href='http://live.test/a.css'>\
    <style>@import 'http://live.test/b.css'; body{background:url(http://live.test/c.png)}</style>\
    <img src='http://live.test/d.png' srcset='http://live.test/e.png 1x, //live.test/e2.png 2x'>\
    <p style='background:url(//live.test/f.png)'>text</p>\
    <script src='http://live.test/g.js'></script>\
    <video src='http://live.test/h.mp4' poster='http://live.test/i.png'></video>\
    <audio src='http://live.test/j.mp3'></audio><object data='http://live.test/k.swf'></object>\
    <embed src='http://live.test/l.swf'><svg><image href='http://live.test/m.png' /></svg>\
    <input type=image src='http://live.test/n.png'><table background='http://live.test/o.png'></table>";

/// Parts that scripts request.
const MOVING: &str = "<!doctype html><title>moving</title><script>
    const quiet = () => {};
    fetch('http://live.test/a').catch(quiet);
    fetch('http://live.test/b', {mode: 'no-cors', method: 'POST', body: 'x'}).catch(quiet);
    const x = new XMLHttpRequest(); x.open('GET', 'http://live.test/c'); x.onerror = quiet; x.send();
    new Image().src = 'http://live.test/d.png';
    const s = document.createElement('script'); s.src = 'http://live.test/e.js'; document.head.append(s);
    document.head.insertAdjacentHTML('beforeend', '<link rel=stylesheet href=\"http://live.test/f.css\">');
    import('http://live.test/g.js').catch(quiet);
    new Audio('http://live.test/h.mp3').load();
    new FontFace('f', 'url(http://live.test/i.woff)').load().catch(quiet);
    setTimeout(() => { window.tried = true }, 300);
    </script>";

const BEACONS: &str = "<script>
    navigator.sendBeacon('http://live.test/j', 'x');
    try { new EventSource('http://live.test/k') } catch {}
    try { new WebSocket('ws://live.test/l') } catch {}
    </script>";

/// Removes rewriting and our script: the page comes as it was archived, its headers stay.
fn without_rewriting(router: Router, page: &'static str, with_policy: bool) -> Router {
    router.layer(from_fn(move |request: Request, next: Next| async move {
        let is_page = request.uri().path().ends_with("/bare.html");
        let mut answer: Response = next.run(request).await;
        if !with_policy {
            answer.headers_mut().remove(header::CONTENT_SECURITY_POLICY);
        }
        if is_page {
            answer.headers_mut().remove(header::CONTENT_LENGTH);
            answer
                .headers_mut()
                .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
            *answer.body_mut() = Body::from(page);
        }
        answer
    }))
}

fn archive(page: &str) -> MemoryArchive {
    let mut archive = MemoryArchive::new();
    for name in ["bare", "page", "other"] {
        let place = url(&format!("http://fence.test/{name}.html"));
        archive.put(&place, at(10, 0), 200, HTML, page.to_owned());
    }
    archive
}

/// The page itself at the top, where replay would show it in a frame of its own.
fn unframed(router: Router) -> Router {
    router.layer(from_fn(|mut request: Request, next: Next| {
        request.headers_mut().remove("sec-fetch-dest");
        next.run(request)
    }))
}

const BARE: &str = "/web/20240115000000mp_/http://fence.test/bare.html";

async fn visits_of(browser: &mut Browser, live: &LiveWeb, path: &str) -> usize {
    let before = live.visits();
    browser.open(path).await;
    browser.wait(900).await;
    live.visits() - before
}

#[tokio::test(flavor = "multi_thread")]
async fn the_policy_alone_lets_no_part_in() {
    for page in [STILL, MOVING, BEACONS] {
        let live = LiveWeb::start().await;
        let Some(mut browser) = Browser::start(Names::Live(&live)).await else { return };
        browser.origin =
            serve(without_rewriting(unframed(served(archive(page))), page, true)).await;
        let visits = visits_of(&mut browser, &live, BARE).await;
        assert_eq!(visits, 0, "{:?}", live.seen());
        // The same without the policy: the page does try, and the counter works.
        browser.origin =
            serve(without_rewriting(unframed(served(archive(page))), page, false)).await;
        assert!(visits_of(&mut browser, &live, BARE).await > 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rewriting_alone_leads_every_part_of_a_page_into_the_archive() {
    let live = LiveWeb::start().await;
    let Some(mut browser) = Browser::start(Names::Live(&live)).await else { return };
    browser.origin = serve(unframed(served(archive(STILL)))).await;
    browser.call("Page.setBypassCSP", json!({"enabled": true})).await;
    // Without scripts ours does not run either.
    browser.call("Emulation.setScriptExecutionDisabled", json!({"value": true})).await;
    let page = "/web/20240115000000mp_/http://fence.test/page.html";
    assert_eq!(visits_of(&mut browser, &live, page).await, 0, "{:?}", live.seen());
    browser.origin = serve(without_rewriting(unframed(served(archive(STILL))), STILL, true)).await;
    assert!(visits_of(&mut browser, &live, BARE).await > 0, "the policy was turned off");
}

#[tokio::test(flavor = "multi_thread")]
async fn our_script_alone_leads_what_scripts_ask_for_into_the_archive() {
    let live = LiveWeb::start().await;
    let Some(mut browser) = Browser::start(Names::Live(&live)).await else { return };
    browser.origin = serve(unframed(served(archive(MOVING)))).await;
    browser.call("Page.setBypassCSP", json!({"enabled": true})).await;
    let page = "/web/20240115000000mp_/http://fence.test/page.html";
    let visits = visits_of(&mut browser, &live, page).await;
    assert_eq!(browser.eval("window.tried").await, json!(true));
    // Four ways bypass a script in the page: markup set as text, imports, sounds and fonts made by
    // constructors. The policy blocks them.
    let past = ["/f.css", "/g.js", "/h.mp3", "/i.woff"];
    let is_known = |line: &String| past.iter().any(|path| line.contains(path));
    assert!(live.seen().iter().all(is_known), "{visits}: {:?}", live.seen());
}

#[tokio::test(flavor = "multi_thread")]
async fn cookies_of_the_interface_and_of_replayed_pages_never_meet() {
    let Some(mut browser) = Browser::start(Names::Nothing).await else { return };
    let interface = serve(Router::new().fallback(|request: Request| async move {
        let cookie = request.headers().get(header::COOKIE).cloned();
        let mut answer = Response::new(Body::from(format!("cookie: {cookie:?}")));
        answer
            .headers_mut()
            .insert(header::SET_COOKIE, HeaderValue::from_static("session=ours; HttpOnly; Path=/"));
        answer
    }))
    .await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let page = "<title>p</title><script>document.cookie='session=theirs;path=/'; window.done = true</script>";
    let mut archive = MemoryArchive::new();
    archive.put(&url("http://e.com/"), at(10, 0), 200, HTML, page);
    let options = ReplayOptions {
        origin: Some(format!("http://replay.localhost:{port}")),
        has_names_below: true,
        refuses_foreign_names: true,
        ..ReplayOptions::default()
    };
    // What the browser sends to replay under its name is recorded on the way.
    let sent = Arc::new(std::sync::Mutex::new(Vec::new()));
    let noted = sent.clone();
    let replay =
        router(Arc::new(archive), options).layer(from_fn(move |request: Request, next: Next| {
            let is_own_name =
                |v: &HeaderValue| memchr::memmem::find(v.as_bytes(), b"replay.localhost").is_some();
            if request.headers().get(header::HOST).is_some_and(is_own_name) {
                noted.lock().unwrap().extend(request.headers().get(header::COOKIE).cloned());
            }
            next.run(request)
        }));
    tokio::spawn(async move { axum::serve(listener, replay).await });
    browser.open(&format!("{interface}/")).await;
    browser.open(&format!("http://127.0.0.1:{port}/web/20240115000000/http://e.com/")).await;
    let host = browser.eval("location.hostname").await;
    assert_eq!(host, json!("20240115000000-e-com.replay.localhost"), "led to the own name");
    browser.until("window.done === true").await;
    // Bypasses our script, as a hostile page would: cookies of the whole machine.
    browser
        .eval(
            "{ const f = document.createElement('iframe'); document.body.append(f); \
             Object.getOwnPropertyDescriptor(f.contentWindow.Document.prototype, 'cookie') \
             .set.call(document, 'session=fixed; domain=localhost'); 0 }",
        )
        .await;
    browser.open(&format!("{interface}/")).await;
    assert_eq!(browser.text().await, "cookie: Some(\"session=ours\")");
    browser.open(&format!("http://replay.localhost:{port}/web/20240115000000/http://e.com/")).await;
    assert!(sent.lock().unwrap().is_empty(), "{:?}", sent.lock().unwrap());
}
