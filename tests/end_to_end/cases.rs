//! A site of pages that scripts make, one for each way of doing it: collected, the server stopped, and
//! every page shown again in a browser. A page that shows what it should has the title `ok`.

use nenrin_browser::{Browser, Names};

use crate::support::{Nenrin, Reply, Request, Site};

const CONFIG: &str = "[render]\nas_root = true\n[politeness]\ndelay = \"1ms\"\n";

/// Each case: its name, what is in its body, and its script. `u` puts URLs together, so that nobody
/// finds them without running it; `data` asks for JSON that says `ok`.
const CASES: [(&str, &str, &str); 30] = [
    ("static", "<p>plain", "ok()"),
    ("json", "<div id=app>Loading</div>", "data('/d/', 'json').then(ok)"),
    (
        "json-chain",
        "",
        "data('/d/', 'one').then(a => data('/d/', a.next)).then(b => data('/d/', b.next)).then(ok)",
    ),
    (
        "xhr",
        "",
        "const x = new XMLHttpRequest(); x.open('GET', u('/d/', 'xhr')); x.onload = () => x.status === 200 && ok(); x.send()",
    ),
    ("date", "", "data('/d/', 'date?t=' + Date.now()).then(ok)"),
    ("random", "", "data('/d/', 'random?r=' + Math.random()).then(ok)"),
    (
        "router",
        "<a id=a href=/c/static>x</a>",
        "history.pushState({}, '', '/c/router'); data('/d/', location.pathname.split('/')[2]).then(ok)",
    ),
    ("hash-router", "", "location.hash = '#/inner'; data('/d/', location.hash.slice(2)).then(ok)"),
    (
        "infinite-scroll",
        "<div id=list></div><div style='height:3000px'></div><p id=end>end",
        "new IntersectionObserver((e, o) => { if (e[0].isIntersecting) { o.disconnect(); data('/d/', 'page2').then(ok) } }).observe(document.getElementById('end'))",
    ),
    (
        "lazy-picture",
        "<div style='height:3000px'></div><div id=p></div>",
        "const i = new Image(); i.loading = 'lazy'; i.onload = ok; i.src = u('/p/', 'lazy.png'); document.getElementById('p').append(i)",
    ),
    ("picture", "", "const i = new Image(); i.onload = ok; i.src = u('/p/', 'new.png')"),
    (
        "srcset",
        "<img id=i>",
        "const i = document.getElementById('i'); i.onload = ok; i.srcset = u('/p/', 'set.png') + ' 1x'",
    ),
    (
        "style",
        "<p id=s>x",
        "const l = document.createElement('link'); l.rel = 'stylesheet'; l.href = u('/s/', 'a.css'); l.onload = () => getComputedStyle(document.getElementById('s')).width === '123px' && ok(); document.head.append(l)",
    ),
    ("module", "", "import(u('/m/', 'a.js')).then(m => m.value === 'b' && ok())"),
    (
        "script",
        "",
        "window.loaded = ok; const s = document.createElement('script'); s.src = u('/m/', 'classic.js'); document.head.append(s)",
    ),
    (
        "document-write",
        "",
        "window.loaded = ok; document.write('<script src=\"' + u('/m/', 'written.js') + '\"></' + 'script>')",
    ),
    (
        "worker",
        "",
        "const w = new Worker(u('/m/', 'worker.js')); w.onmessage = (e) => e.data === 'ok' && ok()",
    ),
    (
        "module-worker",
        "",
        "const w = new Worker(u('/m/', 'module-worker.js'), {type: 'module'}); w.onmessage = (e) => e.data === 'ok' && ok()",
    ),
    (
        "frame",
        "",
        "onmessage = (e) => e.data === 'framed' && ok(); const f = document.createElement('iframe'); f.src = u('/f/', 'frame'); document.body.append(f)",
    ),
    (
        "custom-element",
        "<x-a></x-a>",
        "customElements.define('x-a', class extends HTMLElement { connectedCallback() { data('/d/', 'element').then(ok) } })",
    ),
    (
        "shadow",
        "<div id=h></div>",
        "const r = document.getElementById('h').attachShadow({mode: 'open'}); r.innerHTML = '<img>'; r.firstChild.onload = ok; r.firstChild.src = u('/p/', 'shadow.png')",
    ),
    (
        "timers",
        "",
        "setInterval(() => { document.body.dataset.n = Date.now() }, 20); data('/d/', 'timers').then(ok)",
    ),
    ("dialogs", "", "alert('a'); confirm('b'); prompt('c'); data('/d/', 'dialogs').then(ok)"),
    (
        "download",
        "<a id=d download href=/file.zip>x</a>",
        "document.getElementById('d').click(); data('/d/', 'download').then(ok)",
    ),
    ("pop-up", "", "window.open('/c/static'); data('/d/', 'popup').then(ok)"),
    (
        "consent",
        "<div style='position:fixed;inset:0;background:#fff'>Cookies? <button>Yes</button></div>",
        "data('/d/', 'consent').then(ok)",
    ),
    (
        "web-socket",
        "",
        "const s = new WebSocket('ws://' + location.host + '/socket'); s.onerror = () => data('/d/', 'fallback').then(ok)",
    ),
    (
        "memory",
        "",
        "window.hog = []; for (let n = 0; n < 50; n++) hog.push(new Array(1e5).fill(n)); data('/d/', 'memory').then(ok)",
    ),
    ("late", "", "setTimeout(() => data('/d/', 'late').then(ok), 300)"),
    (
        "post",
        "",
        "fetch(u('/d/', 'post'), {method: 'POST', body: 'x'}).then(a => a.json()).then(a => a.say === 'ok' && ok())",
    ),
];

const PIXEL: &[u8] = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\xff\xff\xff\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;";

fn page(body: &str, script: &str) -> Reply {
    Reply::html(format!(
        "<!doctype html><title>no</title><body>{body}<script>\
         const ok = () => {{ document.title = 'ok' }};\
         const u = (...pieces) => pieces.join('');\
         const data = (...pieces) => fetch(u(...pieces)).then(a => a.json())\
         .then(a => a.say === 'ok' ? a : Promise.reject(a));\
         {script}</script>"
    ))
}

fn script(text: &str) -> Reply {
    Reply::new("200 OK", "text/javascript", text)
}

fn answer(request: &Request) -> Reply {
    let path = request.path.split('?').next().unwrap_or_default();
    let json = |text: &str| Reply::new("200 OK", "application/json", text);
    if let Some(name) = path.strip_prefix("/c/") {
        return match CASES.iter().find(|case| case.0 == name) {
            Some((_, body, script)) => page(body, script),
            None => Reply::status("404 Not Found"),
        };
    }
    match path {
        "/" => {
            let link = |case: &(&str, &str, &str)| format!("<a href=/c/{0}>{0}</a> ", case.0);
            Reply::html(CASES.iter().map(link).collect::<String>())
        }
        "/d/one" => json(r#"{"say": "ok", "next": "two"}"#),
        "/d/two" => json(r#"{"say": "ok", "next": "three"}"#),
        path if path.starts_with("/d/") => json(r#"{"say": "ok"}"#),
        path if path.starts_with("/p/") => Reply::new("200 OK", "image/gif", PIXEL),
        "/s/a.css" => Reply::new("200 OK", "text/css", "#s{width:123px}"),
        "/m/a.js" => script("import v from './b.js'; export const value = v"),
        "/m/b.js" => script("export default 'b'"),
        "/m/classic.js" | "/m/written.js" => script("window.loaded()"),
        "/m/worker.js" | "/m/module-worker.js" => script(
            "fetch(['/d/', 'worker'].join('')).then(a => a.json()).then(a => postMessage(a.say))",
        ),
        "/f/frame" => Reply::html("<script>parent.postMessage('framed', '*')</script>"),
        _ => Reply::status("404 Not Found"),
    }
}

/// Which cases work when the server is gone.
fn working(render: &str) -> Option<Vec<&'static str>> {
    let site = Site::serve(answer);
    let top = site.url("/");
    let nenrin = Nenrin::new().with_config(CONFIG);
    // Some ninety renderings take longer than other tests may.
    let args = ["collect", &top, "--allow-private", "--render", render];
    let collected = nenrin.command(&args).output().unwrap();
    assert!(collected.status.success(), "{}", String::from_utf8_lossy(&collected.stderr));
    site.close();
    let anywhere = ["serve", "--json", "--interface", "127.0.0.1:0", "--replay", "127.0.0.1:0"];
    let running = nenrin.start(&anywhere);
    let replay = running.first_line()["replay"].as_str().unwrap().trim_end_matches('/').to_owned();
    tokio::runtime::Runtime::new().unwrap().block_on(shown(&replay, &top))
}

/// Which cases a browser shows as they should be.
async fn shown(replay: &str, top: &str) -> Option<Vec<&'static str>> {
    let mut browser = Browser::start(Names::Nothing).await?;
    // Nobody is there to close a box.
    let silent = "alert = confirm = prompt = () => {}";
    let silent = serde_json::json!({"source": silent, "runImmediately": true});
    browser.call("Page.addScriptToEvaluateOnNewDocument", silent).await;
    let mut working = Vec::new();
    for (name, ..) in CASES {
        browser.open(&format!("{replay}/web/2099/{top}c/{name}")).await;
        let shown = "new Promise(done => { scrollTo(0, document.body.scrollHeight); let n = 0; \
             const look = () => document.title.startsWith('ok') || n++ > 20 \
             ? done(document.title) : setTimeout(look, 100); look() })";
        if browser.eval(shown).await.as_str().is_some_and(|title| title.starts_with("ok")) {
            working.push(name);
        }
    }
    Some(working)
}

/// Run with `cargo nextest run --workspace --test end_to_end --run-ignored all -E 'test(pages_that_scripts_make)'`.
#[test]
#[ignore = "takes minutes"]
fn pages_that_scripts_make_are_shown_without_their_server() {
    let mut counts = Vec::new();
    for render in ["never", "auto"] {
        let Some(working) = working(render) else { return };
        let failed: Vec<&str> =
            CASES.iter().map(|case| case.0).filter(|name| !working.contains(name)).collect();
        eprintln!(
            "{render}: {} of {} work; not: {}",
            working.len(),
            CASES.len(),
            failed.join(", ")
        );
        counts.push(working.len());
    }
    assert!(counts[1] >= 27, "{counts:?}");
}
