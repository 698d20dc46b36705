//! Replay in a real browser: nothing from the live web is loaded, and pages look as they did.

use crate::support;

use nenrin_browser::{Browser, LiveWeb, Names, serve};
use nenrin_replay::MemoryArchive;
use serde_json::json;
use support::{HTML, at, serve_apart, served, url};

/// A page that tries every way out that we know of. `LIVE` is replaced by the address of the live
/// web.
const TRICKS: &str = include_str!("support/tricks.html");

const SCRIPT: &str = "Content-Type: text/javascript\r\nAccess-Control-Allow-Origin: *";
const STYLE: &str = "Content-Type: text/css";
const JSON: &str = "Content-Type: application/json\r\nAccess-Control-Allow-Origin: *";

fn tricks(port: u16) -> MemoryArchive {
    let mut archive = MemoryArchive::new();
    let page = TRICKS.replace("LIVE", &format!("127.0.0.1:{port}"));
    let mut put = |text: &str, headers: &str, body: &str| {
        archive.put(&url(text), at(10, 0), 200, headers, body.to_owned());
    };
    put("http://tricks.test/dir/page.html", HTML, &page);
    put("http://tricks.test/root.js", SCRIPT, "window.rootScript = true");
    put("http://cdn.test/abs.js", SCRIPT, "window.absoluteScript = true");
    put("http://cdn.test/made.js", SCRIPT, "window.madeScript = true");
    put("http://cdn.test/written.js", SCRIPT, "window.writtenScript = true");
    put("http://cdn.test/module.js", SCRIPT, "import './part.js'; import '/other.js'");
    put("http://cdn.test/part.js", SCRIPT, "window.modulePart = true");
    put("http://cdn.test/other.js", SCRIPT, "window.moduleRoot = true");
    put("http://cdn.test/late.js", SCRIPT, "window.lateModule = true");
    put(
        "http://tricks.test/worker.js",
        SCRIPT,
        "fetch('http://cdn.test/data.json').catch(() => {}); postMessage('works')",
    );
    put("http://cdn.test/data.json", JSON, "{\"a\":1}");
    put("http://tricks.test/root.json", JSON, "{\"b\":2}");
    put("http://cdn.test/s.css", STYLE, "@import '/i.css'; #styled{width:321px}");
    put("http://cdn.test/i.css", STYLE, "#imported{width:123px}");
    put("http://cdn.test/next.html", HTML, "<title>next</title>archived next");
    put("http://cdn.test/next.html?q=1", HTML, "<title>next</title>archived answer");
    put(
        "http://tricks.test/frame.html",
        HTML,
        "<title>frame</title>in the frame<script>parent.postMessage('framed', '*')</script>",
    );
    let pixel = "GIF89a\u{1}\0\u{1}\0\0\0\0,\0\0\0\0\u{1}\0\u{1}\0\0\u{2}\0;";
    put("http://cdn.test/p.gif", "Content-Type: image/gif", pixel);
    put("http://tricks.test/p.gif", "Content-Type: image/gif", pixel);
    archive
}

/// What a page cannot do on the shared origin, where it has none of its own.
const LOST: [&str; 9] = [
    "fetched",
    "fetchedRoot",
    "xhr",
    "worker",
    // It cannot look into frames, so it finds nothing there that it could use.
    "framed",
    "noBannerInFrame",
    "noRtcInFrames",
    "noRtcInside",
    // The page around it has it.
    "banner",
];

#[tokio::test(flavor = "multi_thread")]
async fn nothing_from_the_live_web_is_asked_for() {
    for is_apart in [true, false] {
        let live = LiveWeb::start().await;
        let Some(mut browser) = Browser::start(Names::Live(&live)).await else { return };
        browser.wait(300).await;
        let before = live.visits();
        let origin = match is_apart {
            true => serve_apart(tricks(live.port)).await,
            false => serve(served(tricks(live.port))).await,
        };
        let page = format!("{origin}/web/20240115000000/http://tricks.test/dir/page.html");
        browser.open(&page).await;
        // On the shared origin the page is in a frame of ours, which answers when asked.
        let asked = match is_apart {
            true => "window.tried ? JSON.stringify(window.results()) : 'null'",
            false => {
                "new Promise(d => { addEventListener('message', e => d(e.data), {once: true}); \
                 frames[0].postMessage('results', '*'); setTimeout(() => d('null'), 500) })"
            }
        };
        let mut found = serde_json::Value::Null;
        for _ in 0..40 {
            browser.wait(500).await;
            let answer = browser.eval(asked).await;
            found = serde_json::from_str(answer.as_str().unwrap_or("null")).unwrap();
            if !found.is_null() {
                break;
            }
        }
        browser.wait(700).await;
        for (name, value) in found.as_object().unwrap() {
            let is_lost = !is_apart && LOST.contains(&name.as_str());
            assert!(is_lost || value == &json!(true), "{is_apart}: {name} in {found}");
        }
        assert_eq!(live.visits() - before, 0, "{is_apart}: {:?}", live.seen());
        // Leaving by script, by a form, by a new window and by a click stays inside.
        for leave in [
            "location.href = 'http://cdn.test/next.html'",
            "document.forms[0].requestSubmit()",
            "document.querySelector('#made').click()",
            "{ const m = document.createElement('meta'); m.httpEquiv = 'refresh'; \
              m.content = '0;url=http://cdn.test/next.html'; document.head.append(m) }",
        ] {
            browser.open(&page).await;
            browser.wait(700).await;
            if is_apart {
                browser.until("window.tried === true").await;
                browser.eval(&format!("{{ {leave} }}; true")).await;
                let arrived = "document.URL.startsWith('http://cdn.test/next.html') && document.title === 'next'";
                browser.until(arrived).await;
            } else {
                let leave = json!(format!("do {leave}"));
                browser.eval(&format!("frames[0].postMessage({leave}, '*'); true")).await;
                browser.wait(900).await;
            }
            assert_eq!(live.visits() - before, 0, "{is_apart} {leave}: {:?}", live.seen());
        }
        browser.open(&page).await;
        browser.eval("window.open('http://cdn.test/next.html'); true").await;
        browser.wait(400).await;
        assert_eq!(live.visits() - before, 0, "window.open: {:?}", live.seen());
        // The counter works: a page that is not replayed reaches it.
        browser.open("http://control.test/").await;
        assert!(live.visits() > before);
    }
}

/// Ways to connect without a request that a policy would stop, each tried on a page of its own. `OUT`
/// is an address of the live web.
const WAYS: [(&str, &str); 27] = [
    ("appended", "l.rel = 'preconnect'; l.href = OUT; document.head.append(l)"),
    ("href last", "l.rel = 'preconnect'; document.head.append(l); l.href = OUT"),
    ("rel last", "l.href = OUT; document.head.append(l); l.rel = 'preconnect'"),
    ("dns", "l.rel = 'dns-prefetch preconnect'; l.href = OUT; document.head.append(l)"),
    (
        "attributes",
        "document.head.append(l); l.setAttribute('href', OUT); l.setAttribute('rel', 'preconnect')",
    ),
    (
        "namespace",
        "document.head.append(l); l.setAttributeNS(null, 'href', OUT); l.setAttributeNS(null, 'rel', 'PreConnect')",
    ),
    (
        "list",
        "document.head.append(l); l.setAttributeNS(null, 'href', OUT); l.relList.add('preconnect')",
    ),
    (
        "list value",
        "document.head.append(l); l.setAttributeNS(null, 'href', OUT); l.relList.value = 'preconnect'",
    ),
    (
        "attribute node",
        "document.head.append(l); l.setAttributeNS(null, 'href', OUT); \
      const a = document.createAttribute('rel'); a.value = 'preconnect'; l.setAttributeNode(a)",
    ),
    (
        "attribute value",
        "l.rel = 'x'; document.head.append(l); l.setAttributeNS(null, 'href', OUT); \
      l.attributes.rel.value = 'preconnect'",
    ),
    (
        "attribute text",
        "l.rel = 'x'; document.head.append(l); l.setAttributeNS(null, 'href', OUT); \
      l.attributes.rel.textContent = 'preconnect'",
    ),
    ("markup", "document.body.innerHTML = `<link rel=preconnect href=${OUT}>`"),
    ("quoted markup", "document.body.innerHTML = `<link title='>' rel=preconnect href=${OUT}>`"),
    ("entities", "document.body.innerHTML = `<link rel='pre&#99;onnect' href=${OUT}>`"),
    (
        "adjacent",
        "document.body.insertAdjacentHTML('beforeend', `<link rel=preconnect href=${OUT}>`)",
    ),
    (
        "template",
        "const t = document.createElement('template'); t.innerHTML = `<link rel=preconnect href=${OUT}>`; \
      document.body.append(t.content.cloneNode(true))",
    ),
    (
        "parser",
        "document.body.append(document.adoptNode(new DOMParser().parseFromString( \
      `<link rel=preconnect href=${OUT}>`, 'text/html').querySelector('link')))",
    ),
    (
        "shadow",
        "document.body.attachShadow({mode: 'open'}).innerHTML = `<link rel=preconnect href=${OUT}>`",
    ),
    (
        "range",
        "const r = document.createRange(); r.selectNode(document.body.firstChild); \
      l.rel = 'preconnect'; l.href = OUT; r.insertNode(l)",
    ),
    (
        "written",
        "document.open(); document.write(`<link rel=preconnect href=${OUT}>`); document.close()",
    ),
    (
        "written in parts",
        "document.open(); document.write('<li'); document.write(`nk rel=preconnect href=${OUT}>`); \
      document.close()",
    ),
    (
        "frame",
        "const f = document.createElement('iframe'); document.body.append(f); const d = f.contentDocument; \
      const k = d.createElement('link'); k.rel = 'preconnect'; k.href = OUT; d.head.appendChild(k)",
    ),
    (
        "frame by number",
        "document.body.append(document.createElement('iframe')); const d = window[0].document; \
      d.body.innerHTML = `<link rel=preconnect href=${OUT}>`",
    ),
    (
        "frame's markup",
        "const f = document.createElement('iframe'); \
      f.setAttribute('srcdoc', `<link rel=preconnect href=${OUT}>`); document.body.append(f)",
    ),
    (
        "rules",
        "const s = document.createElement('script'); s.type = 'speculationrules'; \
      s.textContent = JSON.stringify({prefetch: [{urls: [OUT]}], prerender: [{urls: [OUT]}]}); document.head.append(s)",
    ),
    ("prefetch", "l.rel = 'prefetch'; l.href = OUT; document.head.append(l)"),
    (
        "calls",
        "const f = document.createElement('iframe'); document.body.append(f); \
      const P = f.contentWindow.RTCPeerConnection; if (P) { const p = new P({iceServers: \
      [{urls: 'turn:' + OUT.slice(7).replace('/', '') + '?transport=tcp', username: 'a', credential: 'b'}]}); \
      p.createDataChannel('x'); p.createOffer().then((o) => p.setLocalDescription(o)) }",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn scripts_find_no_way_to_connect() {
    let live = LiveWeb::start().await;
    let Some(mut browser) = Browser::start(Names::Live(&live)).await else { return };
    let mut archive = MemoryArchive::new();
    let page = |n: usize| format!("http://ways.test/{n}.html");
    let mut bare = axum::Router::new();
    for (n, (_, way)) in WAYS.iter().enumerate() {
        let way = way.replace("OUT", &format!("'http://out{n}.test:{}/'", live.port));
        let script = format!("const l = document.createElement('link'); {way}");
        let body = format!("<!doctype html><title>way</title><body>text<script>{script}</script>");
        archive.put(&url(&page(n)), at(10, 0), 200, HTML, body.clone());
        let answer = move || async move { axum::response::Html(body) };
        bare = bare.route(&format!("/{n}"), axum::routing::get(answer));
    }
    let frames = |name: fn(usize) -> String| {
        let frames = (0..WAYS.len()).map(|n| format!("<iframe src='{}'></iframe>", name(n)));
        format!("<!doctype html><title>ways</title>{}", frames.collect::<String>())
    };
    let index = frames(|n| format!("/{n}.html"));
    archive.put(&url("http://ways.test/"), at(10, 0), 200, HTML, index);
    let index = frames(|n| format!("/{n}"));
    let answer = move || async move { axum::response::Html(index) };
    bare = bare.route("/", axum::routing::get(answer));
    let (replayed, bare) = (serve_apart(archive).await, serve(bare).await);
    browser.wait(300).await;
    let (mut leaks, mut control) = (Vec::new(), Vec::new());
    for (n, (name, _)) in WAYS.iter().enumerate() {
        let inside = format!("{replayed}/web/20240115000000/{}", page(n));
        for (address, found) in [(inside, &mut leaks), (format!("{bare}/{n}"), &mut control)] {
            let before = live.visits();
            browser.open(&address).await;
            browser.wait(350).await;
            if live.visits() > before {
                found.push(*name);
            }
        }
    }
    // The same outside of replay does connect, where the browser does so while it is driven.
    assert!(control.contains(&"prefetch") && control.contains(&"calls"), "{control:?}");
    assert!(leaks.is_empty(), "{leaks:?} of {control:?}");
    // Connections in advance are seen only where nobody drives the browser: all ways at once.
    let before = live.visits();
    Browser::show(Names::Live(&live), &format!("{bare}/"), SHOWN).await;
    let control = live.visits() - before;
    assert!(control > WAYS.len() / 3, "only {control} connect in any case");
    let before = live.visits();
    let index = format!("{replayed}/web/20240115000000/http://ways.test/");
    Browser::show(Names::Live(&live), &index, SHOWN).await;
    assert_eq!(live.visits() - before, 0, "of {control} outside of replay: {:?}", live.seen());
}

/// More ways to send something, all tried at once, each in a frame of its own and to a host of its own.
/// `OUT` is an address of the live web.
const SENDS: [(&str, &str); 52] = [
    ("prerender", "l.rel = 'prerender'; l.href = OUT; document.head.append(l)"),
    ("dns", "l.rel = 'dns-prefetch'; l.href = OUT; document.head.append(l)"),
    ("module preload", "l.rel = 'modulepreload'; l.href = OUT; document.head.append(l)"),
    (
        "preload",
        "l.rel = 'preload'; l.as = 'font'; l.crossOrigin = ''; l.href = OUT; document.head.append(l)",
    ),
    ("icon", "l.rel = 'icon'; l.href = OUT; document.head.append(l)"),
    ("manifest", "l.rel = 'manifest'; l.href = OUT; document.head.append(l)"),
    ("style", "l.rel = 'stylesheet'; l.href = OUT; document.head.append(l)"),
    (
        "rules by document",
        "add('script', {type: 'speculationrules', textContent: JSON.stringify({prefetch: [{source: 'document', eagerness: 'immediate'}]})}); \
      document.body.insertAdjacentHTML('beforeend', `<a href=${OUT}>x</a>`)",
    ),
    (
        "rules as text",
        "document.body.innerHTML = '<div></div>'; const r = document.createRange(); document.body.append( \
      r.createContextualFragment(`<script type=speculationrules>{\"prerender\":[{\"urls\":[\"${OUT}\"]}]}</scr` + 'ipt>'))",
    ),
    ("beacon", "navigator.sendBeacon(OUT, 'x')"),
    ("frame's beacon", "inner().navigator.sendBeacon(OUT, 'x')"),
    ("native beacon", "Navigator.prototype.sendBeacon.call(navigator, OUT, 'x')"),
    ("fetch", "fetch(OUT, {mode: 'no-cors', keepalive: true})"),
    ("frame's fetch", "inner().fetch(OUT, {mode: 'no-cors'})"),
    ("fetch later", "fetchLater(OUT, {activateAfter: 0})"),
    ("frame's request", "const x = new (inner().XMLHttpRequest)(); x.open('GET', OUT); x.send()"),
    ("event source", "new EventSource(OUT)"),
    ("frame's event source", "new (inner().EventSource)(OUT)"),
    ("socket", "new WebSocket(OUT.replace('http', 'ws'))"),
    ("frame's socket", "new (inner().WebSocket)(OUT.replace('http', 'ws'))"),
    ("socket stream", "new WebSocketStream(OUT.replace('http', 'ws'))"),
    ("transport", "new (inner().WebTransport)(OUT.replace('http', 'https'))"),
    (
        "font face",
        "add('style', {textContent: `@font-face{font-family:q;src:url(${OUT})} body{font-family:q}`})",
    ),
    ("font object", "new FontFace('q', `url(${OUT})`).load()"),
    ("frame's font", "new (inner().FontFace)('q', `url(${OUT})`).load()"),
    ("inserted rule", "add('style', {}).sheet.insertRule(`body{background:url(${OUT})}`)"),
    (
        "adopted sheet",
        "const s = new CSSStyleSheet(); s.replaceSync(`body{background:url(${OUT})}`); document.adoptedStyleSheets = [s]",
    ),
    ("image set", "document.body.style.background = `image-set('${OUT}' 1x)`"),
    ("cursor", "document.body.style.cursor = `url(${OUT}), auto`"),
    (
        "custom property",
        "document.body.setAttribute('style', `--a:url(${OUT});background:var(--a)`)",
    ),
    ("filter", "document.body.style.filter = `url(${OUT}#f)`"),
    (
        "svg",
        "document.body.innerHTML = `<svg><filter><feImage href='${OUT}'/></filter><image href='${OUT}'/><use href='${OUT}#a'/><script href='${OUT}'/></svg>`",
    ),
    (
        "xslt",
        "const d = document.implementation.createDocument(null, 'a'); d.insertBefore(d.createProcessingInstruction('xml-stylesheet', `href='${OUT}' type='text/xsl'`), d.firstChild); \
      add('iframe', {src: URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(d)], {type: 'text/xml'}))})",
    ),
    ("portal", "add('portal', {src: OUT}).setAttribute('src', OUT)"),
    ("fenced frame", "const f = add('fencedframe', {}); f.config = new FencedFrameConfig(OUT)"),
    (
        "data frame",
        "document.body.append(Object.assign(document.createElement('iframe'), {src: `data:text/html,<img src=${OUT}>`}))",
    ),
    (
        "blob frame",
        "add('iframe', {src: URL.createObjectURL(new Blob([`<img src=${OUT}><script>fetch('${OUT}')</scr` + 'ipt>'], {type: 'text/html'}))})",
    ),
    ("nested markup", "add('iframe', {srcdoc: `<iframe srcdoc=\"<img src='${OUT}'>\"></iframe>`})"),
    ("object", "add('object', {data: OUT})"),
    ("embed", "add('embed', {src: OUT})"),
    (
        "track",
        "document.body.innerHTML = `<video src=/v.mp4><track default src='${OUT}'></video>`; document.querySelector('track').track.mode = 'showing'",
    ),
    (
        "ping",
        "const a = add('a', {href: '#x', ping: OUT}); a.setAttributeNS(null, 'ping', OUT); a.click()",
    ),
    (
        "policy report",
        "document.head.insertAdjacentHTML('beforeend', `<meta http-equiv=Content-Security-Policy content=\"img-src 'none'; report-uri ${OUT}\">`); new Image().src = '/p.gif'",
    ),
    (
        "refresh",
        "document.head.insertAdjacentHTML('beforeend', `<meta http-equiv=refresh content='0;url=${OUT}'>`)",
    ),
    ("form", "const f = add('form', {action: OUT, target: '_blank', method: 'post'}); f.submit()"),
    (
        "form attribute",
        "document.body.innerHTML = `<form><button formaction='${OUT}'>x</button></form>`; document.querySelector('button').click()",
    ),
    ("navigation", "navigation.navigate(OUT)"),
    ("opened", "open(OUT, '_blank', 'noopener')"),
    (
        "shared worker",
        "new SharedWorker(URL.createObjectURL(new Blob([`fetch('${OUT}', {mode: 'no-cors'}); importScripts('${OUT}')`])))",
    ),
    ("data worker", "new Worker(`data:text/javascript,fetch('${OUT}', {mode: 'no-cors'})`)"),
    ("worklet", "new AudioContext().audioWorklet.addModule(OUT)"),
    (
        "source map",
        "eval(`1;//# sourceMappingURL=${OUT}`); add('img', {attributionSrc: OUT}).setAttribute('attributionsrc', OUT); \
      navigator.mediaSession.metadata = new MediaMetadata({title: 'x', artwork: [{src: OUT}]})",
    ),
];

/// Headers of an archived answer that make browsers ask for something or send reports.
fn reporting_headers(out: &str) -> String {
    format!(
        "{HTML}\r\nReport-To: {{\"group\":\"g\",\"max_age\":999,\"endpoints\":[{{\"url\":\"{out}report-to\"}}]}}\r\n\
         Reporting-Endpoints: g=\"{out}endpoint\"\r\nNEL: {{\"report_to\":\"g\",\"max_age\":999,\"success_fraction\":1}}\r\n\
         Content-Security-Policy: img-src 'none'; report-uri {out}csp; report-to g\r\n\
         Content-Security-Policy-Report-Only: script-src 'none'; report-uri {out}only\r\n\
         Cross-Origin-Opener-Policy-Report-Only: same-origin; report-to=\"g\"\r\n\
         Link: <{out}preload.css>; rel=preload; as=style, <{out}>; rel=preconnect, <{out}next>; rel=prefetch\r\n\
         Speculation-Rules: \"{out}rules.json\"\r\nSourceMap: {out}map\r\nAlt-Svc: h2=\"out.test:443\"; ma=999\r\n\
         Clear-Site-Data: \"*\"\r\nAccept-CH: Sec-CH-UA-Model\r\nCritical-CH: Sec-CH-UA-Model\r\n\
         Set-Cookie: k=v; Domain=replay.localhost; Path=/\r\nOrigin-Agent-Cluster: ?0\r\n\
         Service-Worker-Allowed: /\r\nActivate-Storage-Access: load\r\nRefresh: 3; url={out}refresh"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_by_any_other_way() {
    let begin = "const l = document.createElement('link'); \
        const add = (name, given) => { const e = Object.assign(document.createElement(name), given); document.body.append(e); return e }; \
        const inner = () => add('iframe', {}).contentWindow;";
    let mut control = 0;
    for place in ["bare", "apart", "shared"] {
        let live = LiveWeb::start().await;
        let Some(mut browser) = Browser::start(Names::Live(&live)).await else { return };
        let mut archive = MemoryArchive::new();
        let mut bare = axum::Router::new();
        for (n, (_, way)) in SENDS.iter().enumerate() {
            let out = format!("http://send{n}.test:{}/x", live.port);
            let body = format!(
                "<!doctype html><title>way</title><body>text<script>{begin} const OUT = '{out}'; \
                 try {{ {way} }} catch {{}}</script>"
            );
            archive.put(
                &url(&format!("http://sends.test/{n}")),
                at(10, 0),
                200,
                HTML,
                body.clone(),
            );
            let answer = move || async move { axum::response::Html(body) };
            bare = bare.route(&format!("/{n}"), axum::routing::get(answer));
        }
        let frames = (0..SENDS.len()).map(|n| format!("<iframe src='/{n}'></iframe>"));
        let index = format!("<!doctype html><title>sends</title>{}", frames.collect::<String>());
        archive.put(&url("http://sends.test/"), at(10, 0), 200, HTML, index.clone());
        let answer = move || async move { axum::response::Html(index) };
        bare = bare.route("/", axum::routing::get(answer));
        let headers = reporting_headers(&format!("http://header.test:{}/", live.port));
        let page = "<!doctype html><title>headers</title><img src='/no.png'><script>1</script>";
        archive.put(&url("http://sends.test/headers"), at(10, 0), 200, &headers, page);
        let (first, second) = match place {
            "bare" => (serve(bare).await + "/", None),
            other => {
                let home = match other {
                    "apart" => serve_apart(archive).await,
                    _ => serve(served(archive)).await,
                };
                let page = format!("{home}/web/20240115000000/http://sends.test/");
                (page.clone(), Some(format!("{page}headers")))
            }
        };
        browser.wait(300).await;
        let before = live.visits();
        browser.open(&first).await;
        browser.wait(3000).await;
        if let Some(second) = second {
            browser.open(&second).await;
            browser.wait(4500).await;
            let title = browser.eval("document.cookie + document.title").await;
            assert!(!title.as_str().unwrap_or_default().contains("k=v"), "{place}: {title}");
            let leaks: Vec<String> = live.seen();
            let name = |line: &str| -> Option<&str> {
                let n: usize = line.split("send").nth(1)?.split(".test").next()?.parse().ok()?;
                SENDS.get(n).map(|(name, _)| *name)
            };
            let names: Vec<_> = leaks.iter().map(|line| (name(line), line)).collect();
            assert_eq!(live.visits() - before, 0, "{place}: {names:?}");
        } else {
            let hosts: std::collections::BTreeSet<String> = live
                .seen()
                .iter()
                .filter_map(|line| Some(line.split("send").nth(1)?.split('.').next()?.to_owned()))
                .collect();
            control = hosts.len();
        }
    }
    // Outside of replay most of them do send something.
    assert!(control > SENDS.len() / 2, "only {control} of {} send in any case", SENDS.len());
}

/// How long a page with all ways is shown.
const SHOWN: std::time::Duration = std::time::Duration::from_secs(8);

#[tokio::test(flavor = "multi_thread")]
async fn documents_inside_of_an_address_are_shown() {
    let live = LiveWeb::start().await;
    let Some(mut browser) = Browser::start(Names::Live(&live)).await else { return };
    let mut archive = MemoryArchive::new();
    let body = "<!doctype html><title>inside</title><body>\
        <iframe id=a src='data:text/html,<p id=p>in data</p>'></iframe><iframe id=b></iframe><script>\
        document.querySelector('#b').src = URL.createObjectURL(\
        new Blob(['<p id=p>in a blob</p>'], {type: 'text/html'}))</script>";
    archive.put(&url("http://inside.test/"), at(10, 0), 200, HTML, body.to_owned());
    browser.origin = serve_apart(archive).await;
    browser.open("/web/20240115000000/http://inside.test/").await;
    for (frame, text) in [("a", "in data"), ("b", "in a blob")] {
        let shown = format!(
            "document.querySelector('#{frame}').contentDocument?.querySelector('#p')?.textContent === '{text}' \
             && document.querySelector('#{frame}').contentWindow.RTCPeerConnection === undefined"
        );
        browser.until(&shown).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn japanese_pages_look_as_they_did() {
    let live = LiveWeb::start().await;
    let Some(mut browser) = Browser::start(Names::Live(&live)).await else { return };
    let text = "日本語の年輪、表示とソース";
    let mut archive = MemoryArchive::new();
    for (label, in_header) in [
        ("Shift_JIS", false),
        ("x-sjis", true),
        ("EUC-JP", false),
        ("ISO-2022-JP", false),
        ("ISO-2022-JP", true),
    ] {
        let encoding = encoding_rs::Encoding::for_label(label.as_bytes()).unwrap();
        let meta = if in_header {
            String::new()
        } else {
            format!("<meta http-equiv='Content-Type' content='text/html; charset={label}'>")
        };
        let page = format!(
            "<html><head>{meta}<title>{text}</title></head><body><a title='{text}' href='/x?q=表'>{text}</a></body></html>"
        );
        let headers = match in_header {
            true => format!("{HTML}; charset={label}"),
            false => HTML.to_owned(),
        };
        let page = encoding.encode(&page).0.into_owned();
        archive.put(
            &url(&format!("http://jp.test/{label}{in_header}")),
            at(1, 0),
            200,
            &headers,
            page,
        );
    }
    let origin = serve_apart(archive).await;
    for (label, in_header, expected) in [
        ("Shift_JIS", false, "Shift_JIS"),
        ("x-sjis", true, "Shift_JIS"),
        ("EUC-JP", false, "EUC-JP"),
        ("ISO-2022-JP", false, "ISO-2022-JP"),
        ("ISO-2022-JP", true, "ISO-2022-JP"),
    ] {
        let page = format!("{origin}/web/20240115000000/http://jp.test/{label}{in_header}");
        browser.open(&page).await;
        assert_eq!(browser.eval("document.characterSet").await, json!(expected));
        assert_eq!(browser.eval("document.title").await, json!(text), "{label}");
        assert_eq!(browser.eval("document.links[0].textContent").await, json!(text), "{label}");
        assert_eq!(browser.eval("document.links[0].title").await, json!(text), "{label}");
        let href = browser.eval("document.links[0].href").await;
        // A browser escapes a query in the encoding of its page: so the live site received it that
        // way.
        let query = match expected {
            "Shift_JIS" => "%95\\",
            "EUC-JP" => "%C9%BD",
            _ => "",
        };
        let wanted = format!("http://jp.test/x?q={query}");
        assert!(href.as_str().unwrap().contains(&wanted), "{label}: {href}");
        assert_eq!(
            browser
                .eval("!!document.querySelector('nenrin-banner').shadowRoot.querySelector('.bar')")
                .await,
            json!(true)
        );
    }
}
