//! A made site of script cases, run as it is and in replay: each case must give the same.
#![allow(clippy::unwrap_used, reason = "a site that cannot be served must fail the test")]

use crate::support;

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{Response, header},
};
use nenrin_browser::{Browser, Names, serve};
use nenrin_replay::MemoryArchive;
use nenrin_urls::PostedUrl;
use serde_json::{Map, Value, json};
use support::{HTML, at, serve_apart, url};

const SCRIPT: &str = "Content-Type: text/javascript";
const OPEN_SCRIPT: &str = "Content-Type: text/javascript\r\nAccess-Control-Allow-Origin: *";
const JSON: &str = "Content-Type: application/json";
const OPEN_JSON: &str = "Content-Type: application/json\r\nAccess-Control-Allow-Origin: *";
const STYLE: &str = "Content-Type: text/css";
const GIF: &str = "Content-Type: image/gif";
const PIXEL: &str = "GIF89a\u{1}\0\u{1}\0\0\0\0,\0\0\0\0\u{1}\0\u{1}\0\0\u{2}\0;";
const PAGE: &str = "http://site.test/dir/cases.html?a=1";

/// Requests with a body: address, the word in it by which the server knows it, the kind of the body
/// and the body as the archive has it, the head of the answer, and the answer.
const POSTED: [(&str, &str, &str, &str, &str, &str); 7] = [
    ("http://site.test/form", "oak", FORM, "tree=oak&age=1+2", JSON, "{\"posted\":\"form\"}"),
    ("http://site.test/form", "elm", FORM, "tree=elm", JSON, "{\"posted\":\"other form\"}"),
    (
        "http://site.test/graph?v=1",
        "rings",
        "application/json",
        "{\"query\":\"rings\",\"variables\":{\"first\":3,\"after\":null}}",
        JSON,
        "{\"posted\":\"graph\"}",
    ),
    (
        "http://site.test/text",
        "bark",
        "text/plain;charset=UTF-8",
        "bark",
        JSON,
        "{\"posted\":\"text\"}",
    ),
    (
        "http://site.test/parts",
        "leaf",
        "multipart/form-data; boundary=x",
        "--x\r\nContent-Disposition: form-data; name=\"part\"\r\n\r\nleaf\r\n--x--\r\n",
        JSON,
        "{\"posted\":\"parts\"}",
    ),
    (
        "http://cdn.test/far",
        "root",
        "application/json",
        "{\"q\":\"root\"}",
        OPEN_JSON,
        "{\"posted\":\"far\"}",
    ),
    (
        "http://site.test/shown",
        "trunk",
        FORM,
        "q=trunk",
        HTML,
        "<!DOCTYPE html><title>sent</title>",
    ),
];
const FORM: &str = "application/x-www-form-urlencoded;charset=UTF-8";

const WORKER: &str = "importScripts('/part.js'); onmessage = async () => { \
    const d = await (await fetch('/data.json')).json(); \
    const f = await (await fetch('http://cdn.test/open.json')).json(); \
    const w = self, t = eval('location.href') + new Function('return self.location.host')(); \
    postMessage([location.href, self.location.host, w.location.host, t, origin, part, d.a, f.c].join()) }";
const FRAME: &str = "<!DOCTYPE html><title>frame</title><body>in the frame<script>\
    window.framed = location.pathname; window.look = () => location.href; \
    window.sees = [parent === top, parent.location.pathname, parent.document.title].join();</script>";
const OTHER: &str = "<!DOCTYPE html><title>other</title><body>other<script>\
    parent.postMessage(location.host + ' ' + (parent === top) + ' ' + (top !== self), '*'); \
    onmessage = (e) => e.source.postMessage('far ' + e.data + ' ' + e.origin, e.origin)</script>";
const MODULE_WORKER: &str =
    "import late from './late.js'; postMessage(location.pathname + ' ' + late)";

/// Address, headers and body of everything on the site.
fn files() -> Vec<(&'static str, &'static str, &'static str)> {
    vec![
        (PAGE, HTML, include_str!("support/cases.html")),
        (
            "http://site.test/app/route",
            HTML,
            "<!DOCTYPE html><title>route</title><script>document.title = 'at ' + location.pathname</script>",
        ),
        (
            "http://site.test/style.css",
            STYLE,
            "@import 'http://cdn.test/import.css'; #styled{width:77px}",
        ),
        ("http://cdn.test/import.css", STYLE, "#imported{width:88px}"),
        (
            "http://site.test/plain.js",
            SCRIPT,
            "window.plain = 'plain ' + location.host; window.plainSource = document.currentScript.src",
        ),
        (
            "http://cdn.test/lib.js",
            SCRIPT,
            "(function (window, document) { window.lib = document.location.pathname })(window, document)",
        ),
        (
            "http://site.test/dir/modules/static.js",
            SCRIPT,
            "import { deep } from '../../modules/deep.js'; export const value = 'static ' + deep",
        ),
        ("http://site.test/modules/deep.js", SCRIPT, "export const deep = location.host"),
        ("http://site.test/modules/bare.js", SCRIPT, "export default 'bare'"),
        ("http://site.test/dir/modules/late.js", SCRIPT, "export default 'late'"),
        ("http://site.test/modules/late.js", SCRIPT, "export default 'late at the root'"),
        (
            "http://site.test/modules/where.js",
            SCRIPT,
            "export default location.href + new URL('./x', import.meta.url).pathname",
        ),
        ("http://site.test/modules/worker.js", SCRIPT, MODULE_WORKER),
        (
            "http://site.test/modules/url.js",
            SCRIPT,
            "const near = new URL('late.js', import.meta.url); \
             export default import.meta.url + (await import(near)).default + (await (await fetch(near)).text()).length",
        ),
        ("http://cdn.test/far.js", OPEN_SCRIPT, "export default 'far'"),
        ("http://site.test/worker.js", SCRIPT, WORKER),
        ("http://site.test/part.js", SCRIPT, "self.part = 'part ' + typeof location"),
        ("http://site.test/where.js", SCRIPT, "location.href"),
        ("http://site.test/data.json", JSON, "{\"a\":1}"),
        ("http://site.test/dir/data.json?x=1", JSON, "{\"b\":2}"),
        ("http://cdn.test/open.json", OPEN_JSON, "{\"c\":3}"),
        ("http://cdn.test/closed.json", JSON, "{\"d\":4}"),
        ("http://site.test/video.bin", "Content-Type: video/mp4", "0123456789"),
        ("http://site.test/inserted.js", SCRIPT, "window.inserted = location.pathname"),
        ("http://cdn.test/inserted.js", SCRIPT, "window.insertedFar = location.host"),
        ("http://site.test/frame.html", HTML, FRAME),
        ("http://site.test/frame.html?made", HTML, FRAME),
        ("http://cdn.test/frame.html", HTML, OTHER),
        ("http://site.test/dir/p.gif", GIF, PIXEL),
        ("http://site.test/p.gif?lazy", GIF, PIXEL),
        ("http://site.test/p.gif?made", GIF, PIXEL),
        ("http://site.test/p.gif?shadow", GIF, PIXEL),
        ("http://site.test/p.gif?srcdoc", GIF, PIXEL),
        ("http://cdn.test/p.gif", GIF, PIXEL),
    ]
}

/// The site as it is on the web.
fn original() -> Router {
    let files: BTreeMap<String, (&str, &str)> =
        files().into_iter().map(|(url, head, body)| (url.to_owned(), (head, body))).collect();
    let files = Arc::new(files);
    Router::new().fallback(move |request: Request| async move {
        let host = request.headers()[header::HOST].to_str().unwrap().to_owned();
        let url = format!("http://{host}{}", request.uri().path_and_query().unwrap());
        if request.method() != "GET" {
            return posted(&url, request).await;
        }
        let Some((head, body)) = files.get(&url) else {
            return Response::builder().status(404).body(Body::from("not found")).unwrap();
        };
        let mut answer = Response::builder();
        for line in head.split("\r\n") {
            let (name, value) = line.split_once(": ").unwrap();
            answer = answer.header(name, value);
        }
        if request.headers().contains_key(header::RANGE) {
            let answer = answer.status(206).header("content-range", "bytes 2-5/10");
            return answer.body(Body::from(&body[2..6])).unwrap();
        }
        answer.body(Body::from(*body)).unwrap()
    })
}

/// The server's answer to a request with a body.
async fn posted(url: &str, request: Request) -> Response<Body> {
    let is_asked_first = request.method() == "OPTIONS";
    let body = axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap();
    let body = String::from_utf8(body.to_vec()).unwrap();
    let known = POSTED.iter().find(|known| known.0 == url && body.contains(known.1));
    let answer = Response::builder();
    match known {
        _ if is_asked_first => answer
            .header("access-control-allow-origin", "*")
            .header("access-control-allow-headers", "content-type")
            .body(Body::empty()),
        Some((.., head, text)) => {
            let mut answer = answer;
            for (name, value) in head.split("\r\n").filter_map(|line| line.split_once(": ")) {
                answer = answer.header(name, value);
            }
            answer.body(Body::from(*text))
        }
        None => answer.status(404).body(Body::from("not found")),
    }
    .unwrap()
}

fn archived() -> MemoryArchive {
    let mut archive = MemoryArchive::new();
    for (address, _, kind, body, head, text) in POSTED {
        let url = PostedUrl::of(&url(address), "POST", kind, body.as_bytes()).unwrap();
        archive.put(&url, at(10, 0), 200, head, text);
    }
    for (address, head, body) in files() {
        archive.put(&url(address), at(10, 0), 200, head, body);
    }
    archive
}

async fn results(browser: &mut Browser, address: &str) -> Map<String, Value> {
    browser.open(address).await;
    for _ in 0..60 {
        if browser.eval("typeof window.results").await == json!("string") {
            break;
        }
        browser.wait(500).await;
    }
    let found = browser.eval("window.results").await;
    serde_json::from_str(found.as_str().expect("the cases end")).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_case_gives_what_it_gave_on_the_web() {
    let origin = serve(original()).await;
    let port = origin.rsplit(':').next().unwrap().parse().unwrap();
    let Some(mut browser) = Browser::start(Names::Port(port)).await else { return };
    let before = results(&mut browser, PAGE).await;
    drop(browser);
    let Some(mut browser) = Browser::start(Names::Nothing).await else { return };
    let home = serve_apart(archived()).await;
    let after = results(&mut browser, &format!("{home}/web/20240110000000mp_/{PAGE}")).await;
    assert!(before.len() >= 110, "only {} cases", before.len());
    let broken: Vec<_> = before
        .iter()
        .filter(|(_, value)| value.to_string().contains("threw ") || *value == "too slow")
        .collect();
    assert!(broken.is_empty(), "cases that do not work on the web: {broken:#?}");
    let different: Vec<String> = before
        .iter()
        .filter(|(name, value)| after.get(*name) != Some(value))
        .map(|(name, value)| format!("{name}: {value} became {:?}", after.get(name)))
        .collect();
    assert!(different.is_empty(), "of {}: {different:#?}", before.len());
    // A router's page is loaded again under its own path.
    browser.open(&format!("{home}/web/20240110000000mp_/http://site.test/app/route")).await;
    assert_eq!(browser.eval("document.title").await, json!("at /app/route"));
    // A form that sends something shows the page that came.
    browser.open(&format!("{home}/web/20240110000000mp_/{PAGE}")).await;
    let send = "{ const f = document.createElement('form'); f.method = 'post'; f.action = '/shown'; \
        f.innerHTML = '<input name=q value=trunk>'; document.body.append(f); f.submit() } true";
    browser.eval(send).await;
    browser.until("document.title === 'sent'").await;
    // The clock starts at the version's date; chance repeats itself; service workers do not start.
    let page = format!("{home}/web/20240110000000mp_/{PAGE}");
    let mut chances = Vec::new();
    for _ in 0..2 {
        browser.open(&page).await;
        // The page before may answer a moment longer.
        browser.until("new Date().toISOString().startsWith('2024-01-10T00')").await;
        let ran = browser.eval("new Promise(d => { const a = Date.now(); setTimeout(() => d(Date.now() - a >= 40), 50) })").await;
        assert_eq!(ran, json!(true), "the clock runs");
        browser.open(&format!("{home}/web/20240110000000mp_/http://site.test/app/route")).await;
        chances.push(browser.eval("[Math.random(), Math.random()].join()").await);
    }
    assert_eq!(chances[0], chances[1]);
    let refused = browser
        .eval("navigator.serviceWorker.register('/worker.js').then(() => 'started', (e) => e.name)")
        .await;
    assert_eq!(refused, json!("SecurityError"));
}
