//! A site of pages that scripts make, one for each way of doing it: collected, the server stopped, and
//! every page shown again in a browser. A page that shows what it should has the title `ok`.

use nenrin_browser::{Browser, Names};

use crate::support::{Nenrin, Reply, Request, Site};

const CONFIG: &str = "[render]\nas_root = true\n[politeness]\ndelay = \"1ms\"\n";

/// Each case: its name, what is in its body, and its script. `data` asks for JSON that says `ok`. Where
/// addresses are put together by `u`, nobody finds them without running the script.
const CASES: [(&str, &str, &str); 40] = [
    ("static", "<p>plain", "ok()"),
    ("json", "<div id=app>Loading</div>", "fetch('/d/json').then(said).then(ok)"),
    (
        "xhr",
        "",
        "const x = new XMLHttpRequest(); x.open('GET', '/d/xhr'); x.onload = () => x.status === 200 && ok(); x.send()",
    ),
    ("spa", "<div id=app>Loading</div>", "data('/api', location.pathname, '.json').then(ok)"),
    (
        "router",
        "<a id=a href=/c/static>x</a>",
        "history.pushState({}, '', '/c/router/inner'); fetch('/d/inner').then(said)\
         .then(() => location.pathname === '/c/router/inner' && ok())",
    ),
    (
        "hash-router",
        "",
        "location.hash = '#/part'; fetch('/d/part').then(said).then(() => location.hash === '#/part' && ok())",
    ),
    (
        "json-chain",
        "",
        "data('/d/', 'one').then(a => data('/d/', a.next)).then(b => data('/d/', b.next)).then(ok)",
    ),
    (
        "state",
        "<script type=application/json id=state>{\"user\": 1, \"url\": \"/d/state.json\"}</script>",
        "fetch(JSON.parse(document.getElementById('state').textContent).url).then(said).then(ok)",
    ),
    (
        "infinite-scroll",
        "<div id=list></div><div style='height:3000px'></div><p id=end>end",
        "new IntersectionObserver((e, o) => { if (e[0].isIntersecting) { o.disconnect(); data('/d/page', 2).then(ok) } }).observe(document.getElementById('end'))",
    ),
    (
        "lazy-picture",
        "<div style='height:3000px'></div><img id=i loading=lazy src=/p/native.png>",
        "document.getElementById('i').onload = ok",
    ),
    (
        "late-attribute",
        "<div style='height:3000px'></div><img id=i data-src=/p/late.png>",
        "new IntersectionObserver((e) => { if (e[0].isIntersecting) { const i = document.getElementById('i'); i.onload = ok; i.src = i.dataset.src } }).observe(document.getElementById('i'))",
    ),
    (
        "late-set",
        "<img id=i data-srcset='/p/set1.png 1x, /p/set2.png 2x'>",
        "const i = document.getElementById('i'); i.onload = ok; i.srcset = i.dataset.srcset",
    ),
    (
        "late-background",
        "<div id=b data-bg=/p/background.png></div>",
        "const b = document.getElementById('b'), i = new Image(); i.onload = ok; i.src = b.dataset.bg; b.style.backgroundImage = `url(${b.dataset.bg})`",
    ),
    ("picture", "", "const i = new Image(); i.onload = ok; i.src = '/p/new.png'"),
    (
        "computed-picture",
        "",
        "const i = new Image(); i.onload = ok; i.src = u('/p/', 'made', '.png')",
    ),
    (
        "style",
        "<link rel=preload as=style href=/s/a.css onload=\"this.rel='stylesheet'\"><p id=s>x",
        "const look = setInterval(() => { if (getComputedStyle(document.getElementById('s')).width === '123px') { clearInterval(look); ok() } }, 50)",
    ),
    ("module", "", "import('/m/a.js').then(m => m.value === 'b' && ok())"),
    ("computed-module", "", "import(u('/m/', 'c', '.js')).then(m => m.value === 'b' && ok())"),
    (
        "import-map",
        "<script type=importmap>{\"imports\": {\"bare\": \"/m/bare.js\"}}</script><script type=module>import v from 'bare'; v === 'bare' && ok()</script>",
        "",
    ),
    (
        "script",
        "",
        "window.loaded = ok; const s = document.createElement('script'); s.src = '/m/classic.js'; document.head.append(s)",
    ),
    (
        "document-write",
        "",
        "window.loaded = ok; document.write('<script src=\"/m/written.js\"></' + 'script>')",
    ),
    (
        "worker",
        "",
        "const w = new Worker('/m/worker.js'); w.onmessage = (e) => e.data === 'ok' && ok()",
    ),
    (
        "module-worker",
        "",
        "const w = new Worker('/m/module-worker.js', {type: 'module'}); w.onmessage = (e) => e.data === 'ok' && ok()",
    ),
    (
        "computed-worker",
        "",
        "const w = new Worker(u('/m/', 'made-worker', '.js')); w.onmessage = (e) => e.data === 'ok' && ok()",
    ),
    ("frame", "<iframe src=/f/frame></iframe>", "onmessage = (e) => e.data === 'framed' && ok()"),
    (
        "made-frame",
        "",
        "onmessage = (e) => e.data === 'framed' && ok(); const f = document.createElement('iframe'); f.src = u('/f/', 'made'); document.body.append(f)",
    ),
    (
        "custom-element",
        "<x-a></x-a>",
        "customElements.define('x-a', class extends HTMLElement { connectedCallback() { fetch('/d/element').then(said).then(ok) } })",
    ),
    (
        "shadow",
        "<div id=h><template shadowrootmode=open><img src=/p/shadow.png></template></div>",
        "const i = document.getElementById('h').shadowRoot.querySelector('img'); i.complete && i.naturalWidth ? ok() : i.onload = ok",
    ),
    ("storage", "", "localStorage.setItem('k', 'v'); localStorage.getItem('k') === 'v' && ok()"),
    (
        "timers",
        "",
        "setInterval(() => { document.body.dataset.n = Date.now() }, 20); fetch('/d/timers').then(said).then(ok)",
    ),
    (
        "dialogs",
        "",
        "alert('a'); confirm('b'); prompt('c'); fetch('/d/dialogs').then(said).then(ok)",
    ),
    (
        "download",
        "<a id=d download href=/file.zip>x</a>",
        "document.getElementById('d').click(); fetch('/d/download').then(said).then(ok)",
    ),
    ("pop-up", "", "window.open('/c/static'); fetch('/d/popup').then(said).then(ok)"),
    (
        "consent",
        "<div style='position:fixed;inset:0;background:#fff'>Cookies? <button>Yes</button></div>",
        "fetch('/d/consent').then(said).then(ok)",
    ),
    (
        "web-socket",
        "",
        "const s = new WebSocket('ws://' + location.host + '/socket'); s.onerror = () => fetch('/d/fallback').then(said).then(ok)",
    ),
    (
        "memory",
        "",
        "window.hog = []; for (let n = 0; n < 50; n++) hog.push(new Array(1e5).fill(n)); fetch('/d/memory').then(said).then(ok)",
    ),
    (
        "expiry",
        "<form method=post action=/login><input type=password name=p></form>",
        "Date.now() - ISSUED < 3600e3 ? ok() : document.body.append('Your session has ended')",
    ),
    ("date", "", "data('/d/', 'date?t=', Date.now()).then(ok)"),
    ("random", "", "data('/d/', 'random?r=', Math.random()).then(ok)"),
    (
        "post",
        "",
        "fetch('/d/post', {method: 'POST', headers: {'Content-Type': 'application/json'}, \
         body: JSON.stringify({query: 'rings', first: 3})}).then(said).then(ok)",
    ),
];

const PIXEL: &[u8] = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\xff\xff\xff\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;";

fn page(body: &str, script: &str) -> Reply {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let issued = now.as_millis();
    Reply::html(format!(
        "<!doctype html><title>no</title><body><script>\
         const ok = () => {{ document.title = 'ok' }};\
         const u = (...pieces) => pieces.join('');\
         const said = (a) => a.json().then(a => a.say === 'ok' ? a : Promise.reject(a));\
         const data = (...pieces) => fetch(u(...pieces)).then(said);\
         const ISSUED = {issued};</script>{body}<script>{script}</script>"
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
        "/d/post" if request.method != "POST" || !request.body.contains("rings") => {
            Reply::status("405 Method Not Allowed")
        }
        "/d/two" => json(r#"{"say": "ok", "next": "three"}"#),
        path if path.starts_with("/d/") => json(r#"{"say": "ok"}"#),
        path if path.starts_with("/p/") => Reply::new("200 OK", "image/gif", PIXEL),
        "/s/a.css" => Reply::new("200 OK", "text/css", "#s{width:123px}"),
        "/api/c/spa.json" => json(r#"{"say": "ok"}"#),
        "/m/bare.js" => script("export default 'bare'"),
        "/m/a.js" | "/m/c.js" => script("import v from './b.js'; export const value = v"),
        "/m/b.js" => script("export default 'b'"),
        "/m/classic.js" | "/m/written.js" => script("window.loaded()"),
        "/m/worker.js" | "/m/module-worker.js" => {
            script("fetch('/d/worker').then(a => a.json()).then(a => postMessage(a.say))")
        }
        "/m/made-worker.js" => script(
            "fetch(['/d/', 'made'].join('')).then(a => a.json()).then(a => postMessage(a.say))",
        ),
        "/f/frame" | "/f/made" => Reply::html("<script>parent.postMessage('framed', '*')</script>"),
        _ => Reply::status("404 Not Found"),
    }
}

/// Which cases work when the server is gone.
fn working(render: &str) -> Option<Vec<&'static str>> {
    let site = Site::serve(answer);
    let top = site.url("/");
    let nenrin = Nenrin::new().with_config(CONFIG);
    // Some hundred renderings take longer than other tests may.
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
    assert!(counts[0] >= 28 && counts[1] >= 36, "{counts:?}");
}
