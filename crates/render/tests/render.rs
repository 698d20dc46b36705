//! Pages in a real Chromium that gets everything from a table.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test may fail and must tell")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nenrin_render::{
    Answer, Answers, Asked, Ended, RenderError, RenderOptions, Renderer, Rendering,
};
use nenrin_urls::CanonicalUrl;

/// Pages by URL; others are missing.
#[derive(Default)]
struct Table {
    pages: BTreeMap<String, (&'static str, String)>,
    asked: Mutex<Vec<String>>,
}

impl Table {
    fn new(pages: &[(&str, &'static str, &str)]) -> Arc<Self> {
        let page = |(url, kind, body): &(&str, &'static str, &str)| {
            ((*url).to_owned(), (*kind, (*body).to_owned()))
        };
        Arc::new(Self { pages: pages.iter().map(page).collect(), asked: Mutex::default() })
    }
}

impl Answers for Table {
    fn answer(&self, asked: &Asked) -> Answer {
        self.asked.lock().unwrap().push(asked.url.to_string());
        match self.pages.get(asked.url.as_str()) {
            _ if asked.url.path() == "/gone" => Answer::Nothing,
            None => Answer::Missing,
            Some((kind, body)) => Answer::Stored {
                status: 200,
                headers: vec![("Content-Type".to_owned(), kind.as_bytes().to_vec())],
                body: body.clone().into(),
            },
        }
    }
}

fn options() -> RenderOptions {
    RenderOptions { as_root: true, page_timeout: Duration::from_secs(8), ..Default::default() }
}

/// A renderer, unless there is no browser on this machine.
fn renderer(options: RenderOptions) -> Option<Renderer> {
    match Renderer::new(options) {
        Ok(renderer) => Some(renderer),
        Err(RenderError::NoBrowser) => {
            eprintln!("SKIPPED: no chromium found (Debian: apt-get install chromium)");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn url(text: &str) -> CanonicalUrl {
    CanonicalUrl::parse(text).unwrap()
}

const AT_MS: i64 = 1_700_000_000_000;

async fn render(renderer: &mut Renderer, page: &str, table: &Arc<Table>) -> Rendering {
    renderer.render(&url(page), AT_MS, table.clone()).await.unwrap()
}

fn missing(rendering: &Rendering) -> Vec<&str> {
    rendering.missing().map(|request| request.url.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_is_shown_from_the_table_and_what_it_lacks_is_reported() {
    let Some(mut renderer) = renderer(options()) else { return };
    let page = r#"<title>T</title><div id=a>plain</div><a href=/next>n</a>
        <script>fetch('/d.json?t=' + Date.now() + '&r=' + Math.random()).then(r => r.json())
          .then(d => { a.textContent = d.text; }).catch(() => {});
          fetch('https://secure.example/s.json').then(r => r.json())
          .then(d => { const b = document.createElement('a'); b.href = d.to; b.textContent = 'added';
            document.body.append(b); });
          fetch('/gone').catch(() => {});
          fetch('/post', {method: 'POST', body: 'x'}).then(a => a.text())
          .then(t => document.body.append(t), () => {});
          fetch('/put', {method: 'PUT', body: 'x'}).catch(() => {});
          navigator.sendBeacon('/beacon', 'x');
          new WebSocket('ws://plain.example/socket');
          const i = new Image(); i.src = '/late.png';</script>"#;
    let mut pages = vec![
        ("http://plain.example/", "text/html", page),
        ("https://secure.example/s.json", "application/json", r#"{"to": "/from-json"}"#),
    ];
    let table = Table::new(&pages);
    let first = render(&mut renderer, "http://plain.example/", &table).await;
    assert_eq!(first.ended, Ended::Quiet);
    assert_eq!(first.title, "T");
    assert!(first.text.contains("plain") && first.text.contains("added"), "{}", first.text);
    let links: Vec<&str> = first.links.iter().map(|link| link.url.as_str()).collect();
    assert_eq!(links, ["http://plain.example/next", "http://plain.example/from-json"]);
    let lacks = missing(&first).into_iter().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(lacks.len(), 3, "{lacks:?}");
    assert!(lacks[0].starts_with("http://plain.example/d.json?t=1700000000"), "{lacks:?}");
    assert_eq!(lacks[1], "http://plain.example/late.png");
    // A request with a body is known by what it sends; what cannot be read is not sent.
    assert_eq!(lacks[2], "http://plain.example/post?__wb_method=POST&__wb_post_data=eA==");
    let sent = first.missing().find_map(|request| request.body.clone()).unwrap();
    assert_eq!((&sent.bytes[..], &*sent.content_type), (&b"x"[..], "text/plain;charset=UTF-8"));
    for path in ["/put", "/beacon"] {
        let is_it = |request: &&nenrin_render::Request| request.url.path() == path;
        let other = first.requests.iter().find(is_it);
        assert!(other.is_none_or(|other| !other.is_answered && !other.is_missing), "{path}");
    }
    assert!(first.view.as_ref().is_some_and(|png| png.starts_with(b"\x89PNG")));
    assert!(first.whole.as_ref().is_some_and(|png| png.starts_with(b"\x89PNG")));

    // The second pass asks for the same, although time and chance are in the URL.
    pages.push((&lacks[0], "application/json", r#"{"text": "from data"}"#));
    pages.push((&lacks[2], "text/plain", "what was posted"));
    let second = render(&mut renderer, "http://plain.example/", &Table::new(&pages)).await;
    assert!(second.text.contains("from data"), "{}", second.text);
    assert!(second.text.contains("what was posted"), "{}", second.text);
    assert_eq!(missing(&second), ["http://plain.example/late.png"]);
    let process = renderer.process().unwrap();
    renderer.end().await;
    assert!(!std::path::Path::new(&format!("/proc/{process}/cmdline")).exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_that_do_their_worst_end_and_the_next_one_is_shown() {
    let limits =
        RenderOptions { page_timeout: Duration::from_secs(4), max_requests: 50, ..options() };
    let Some(mut renderer) = renderer(limits) else { return };
    let good = "<p id=a>x</p><script>a.textContent = 'works'</script>";
    let table = Table::new(&[
        ("http://e.example/good", "text/html", good),
        ("http://e.example/loop", "text/html", "<script>while (true) {}</script>"),
        (
            "http://e.example/box",
            "text/html",
            "<script>alert(1); confirm(2); prompt(3);</script><p>after</p>",
        ),
        (
            "http://e.example/timer",
            "text/html",
            "<p>tick<script>setInterval(() => document.title += '.', 1)</script>",
        ),
        (
            "http://e.example/asks",
            "text/html",
            "<p>asks<script>let n = 0; setInterval(() => fetch('/n' + n++), 5)</script>",
        ),
        (
            "http://e.example/hog",
            "text/html",
            "<script>const a = []; while (true) a.push(new Array(1e6).fill(a.length))</script>",
        ),
        (
            "http://e.example/popup",
            "text/html",
            "<p>opener<script>window.open('/other'); location.hash = 'x'</script>",
        ),
        ("http://e.example/down", "application/octet-stream", "bytes"),
    ]);
    for (path, expected, text) in [
        ("loop", &[Ended::Hung, Ended::Time, Ended::Crashed][..], ""),
        ("box", &[Ended::Quiet], "after"),
        ("timer", &[Ended::Quiet], "tick"),
        ("asks", &[Ended::Requests], "asks"),
        ("hog", &[Ended::Crashed, Ended::Hung, Ended::Time], ""),
        ("popup", &[Ended::Quiet], "opener"),
    ] {
        let ended = render(&mut renderer, &format!("http://e.example/{path}"), &table).await;
        assert!(expected.contains(&ended.ended), "{path}: {:?}", ended.ended);
        assert!(ended.text.contains(text), "{path}: {}", ended.text);
        let good = render(&mut renderer, "http://e.example/good", &table).await;
        assert_eq!((good.ended, good.text.trim()), (Ended::Quiet, "works"), "after {path}");
    }
    let _ = renderer.render(&url("http://e.example/down"), AT_MS, table.clone()).await;
    let good = render(&mut renderer, "http://e.example/good", &table).await;
    assert_eq!(good.text.trim(), "works");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_the_network_is_reached_but_through_the_table() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let Some(mut renderer) = renderer(options()) else { return };
    let page = format!(
        "<p>here</p><img src=http://127.0.0.1:{port}/a.png><img src=http://localhost:{port}/b.png>
         <img src=http://[::1]:{port}/c.png><link rel=preconnect href=http://127.0.0.1:{port}>
         <link rel=prefetch href=http://127.0.0.1:{port}/p><link rel=dns-prefetch href=//live.example>
         <iframe src=http://127.0.0.1:{port}/f></iframe>
         <script>navigator.sendBeacon('http://127.0.0.1:{port}/beacon', 'x');
         new WebSocket('ws://127.0.0.1:{port}/ws'); new EventSource('http://127.0.0.1:{port}/es');
         fetch('http://169.254.169.254/latest/meta-data/').catch(() => {{}});
         try {{ const c = new RTCPeerConnection({{iceServers: [{{urls: 'stun:127.0.0.1:{port}'}}]}});
           c.createDataChannel('x'); c.createOffer().then(o => c.setLocalDescription(o)); }} catch {{}}
         navigator.serviceWorker && navigator.serviceWorker.register('/sw.js').catch(() => {{}});
         </script>"
    );
    let table = Table::new(&[("https://e.example/", "text/html", page.as_str())]);
    let shown = render(&mut renderer, "https://e.example/", &table).await;
    assert!(shown.text.contains("here"));
    let connected = tokio::time::timeout(Duration::from_millis(500), listener.accept()).await;
    assert!(connected.is_err(), "{:?}", connected.unwrap().unwrap().1);
    let lacks = missing(&shown);
    let wanted = format!("http://127.0.0.1:{port}/a.png");
    assert!(lacks.contains(&wanted.as_str()), "it is for the crawl's guard to judge: {lacks:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lazy_pictures_workers_and_modules_are_asked_for() {
    // On a busy machine a worker takes its time to start.
    let patient = RenderOptions {
        quiet: Duration::from_secs(3),
        page_timeout: Duration::from_secs(20),
        ..options()
    };
    let Some(mut renderer) = renderer(patient) else { return };
    let page = "<div style='height:5000px'>tall</div><img loading=lazy src=/lazy.png>
        <script type=module>import {text} from '/m.js'; document.body.append(text);</script>
        <script>var worker = new Worker('/w.js'); worker.onmessage = (m) => document.body.append(m.data);
        new IntersectionObserver((seen, self) => { if (seen[0].isIntersecting) {
          self.disconnect(); fetch('/scrolled.json').catch(() => {}); } })
          .observe(document.querySelector('img'));</script>";
    let table = Table::new(&[
        ("http://e.example/", "text/html", page),
        ("http://e.example/m.js", "text/javascript", "export const text = 'from module '"),
        (
            "http://e.example/w.js",
            "text/javascript",
            "fetch('/of-worker.json').catch(() => {}).then(() => postMessage('from worker'))",
        ),
    ]);
    let shown = render(&mut renderer, "http://e.example/", &table).await;
    assert!(
        shown.text.contains("from module") && shown.text.contains("from worker"),
        "{}",
        shown.text
    );
    let lacks = missing(&shown);
    for path in ["lazy.png", "scrolled.json", "of-worker.json"] {
        let wanted = format!("http://e.example/{path}");
        assert!(lacks.contains(&wanted.as_str()), "{path}: {lacks:?}");
    }
}

#[test]
fn a_browser_that_is_not_there_is_said() {
    let none = RenderOptions { program: Some("/nowhere/chromium".into()), ..Default::default() };
    let error = Renderer::new(none).err().unwrap();
    assert!(matches!(error, RenderError::NoBrowser));
    assert!(error.to_string().contains("render.program"), "{error}");
}

/// Bytes of memory of this process.
fn own_memory() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// Processes of browsers that use a profile below a folder.
fn browsers(profiles: &str) -> Vec<u32> {
    let of = |entry: std::fs::DirEntry| -> Option<u32> {
        let process: u32 = entry.file_name().to_str()?.parse().ok()?;
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        String::from_utf8_lossy(&line).contains(profiles).then_some(process)
    };
    std::fs::read_dir("/proc").unwrap().flatten().filter_map(of).collect()
}

/// Run with `cargo nextest run -p nenrin-render --run-ignored all -E 'test(many_renderings)'`;
/// `NENRIN_RENDERINGS` says how many, 2,000 unless set. The browser is killed now and then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes an hour"]
async fn many_renderings_leave_nothing_behind() {
    let count = std::env::var("NENRIN_RENDERINGS").ok().and_then(|n| n.parse().ok());
    let count: u32 = count.unwrap_or(2000);
    let Some(mut renderer) = renderer(options()) else { return };
    let page = "<title>T</title><div id=a>plain</div><img src=/p.png><script>\
        fetch('/d.json').then(r => r.json()).then(d => { a.textContent = d.text });\
        fetch('/post', {method: 'POST', body: 'x'.repeat(1000)}).catch(() => {})</script>";
    let filler = "x".repeat(200_000);
    let table = Table::new(&[
        ("http://e.example/", "text/html", page),
        (
            "http://e.example/d.json",
            "application/json",
            &format!("{{\"text\": \"data {filler}\"}}"),
        ),
    ]);
    let mut after_warmup = 0;
    let (mut killed, mut failed) = (0, 0);
    for n in 1..=count {
        let shown = renderer.render(&url("http://e.example/"), AT_MS, table.clone()).await;
        match shown {
            Ok(shown) if shown.text.contains("data") => {}
            _ => failed += 1,
        }
        table.asked.lock().unwrap().clear();
        if n == 100.min(count / 2) {
            after_warmup = own_memory();
        }
        if n % 250 == 130
            && let Some(process) = renderer.process()
        {
            killed += 1;
            let mut kill = std::process::Command::new("kill");
            assert!(kill.args(["-KILL", &process.to_string()]).status().unwrap().success());
        }
        if n % 100 == 0 {
            let grown = own_memory().saturating_sub(after_warmup) / 1_000_000;
            eprintln!("{n} renderings: grown by {grown} MB, {failed} failed, {killed} killed");
        }
    }
    let grown = own_memory().saturating_sub(after_warmup);
    assert!(grown < 50 << 20, "{grown} bytes");
    // The rendering after a kill may fail; no other.
    assert!(failed <= killed, "{failed} failed, {killed} killed");
    renderer.end().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let profiles = std::env::temp_dir().join("nenrin-render-");
    let left = browsers(&format!("--user-data-dir={}", profiles.display()));
    assert!(left.is_empty(), "{left:?}");
}
