//! Pages that scripts make: rendered from the archive, and what they lack collected like any part.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use std::time::Duration;

use crate::support::{Nenrin, Reply, Site};

const CONFIG: &str = "[render]\nas_root = true\n[politeness]\ndelay = \"100ms\"\n";

/// The URLs are put together from pieces, so that nobody finds them without running it.
const APP: &str = r#"
    const part = (...pieces) => pieces.join('');
    fetch(part('/se', 'cret.json')).catch(() => {});
    fetch(part('http://169.254.', '169.254/latest')).catch(() => {});
    fetch(part('/a', 'pi/list', '.json?t=', Date.now(), '&r=', Math.random()))
      .then((answer) => answer.json()).then((list) => {
        const app = document.getElementById('app');
        app.textContent = '';
        for (const item of list.items) {
          const link = document.createElement('a');
          link.href = part('/it', 'em/', item.id);
          link.textContent = item.title;
          const picture = new Image();
          picture.src = part('/pic', 'ture/', item.id, '.png');
          app.append(link, picture);
        }
      });
"#;

#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn chromium_is_here() -> bool {
    let found = std::process::Command::new("chromium").arg("--version").output();
    let is_here = found.is_ok_and(|output| output.status.success());
    if !is_here {
        eprintln!("SKIPPED: no chromium found (Debian: apt-get install chromium)");
    }
    is_here
}

/// A page that a script makes from a list, and some that need none.
fn application(edition: Arc<AtomicUsize>) -> Site {
    Site::serve(move |request| {
        let path = request.path.split('?').next().unwrap_or_default();
        let reply = match path {
            "/robots.txt" => Reply::text("User-agent: *\nDisallow: /secret"),
            "/" => Reply::html(
                "<div id=app>Loading</div><div style='height:2500px'></div><script src=/app.js></script>",
            ),
            "/app.js" => Reply::new("200 OK", "text/javascript", APP),
            "/api/list.json" => {
                let edition = edition.load(Ordering::SeqCst);
                let list = format!(
                    r#"{{"items": [{{"id": 1, "title": "First of edition {edition}"}}, {{"id": 2, "title": "Second"}}]}}"#
                );
                Reply::new("200 OK", "application/json", list)
            }
            "/item/1" | "/item/2" => Reply::html(format!("<p>{path} is plain")),
            "/picture/1.png" | "/picture/2.png" => {
                Reply::new("200 OK", "image/png", format!("\u{89}PNG {path}"))
            }
            _ => Reply::status("404 Not Found"),
        };
        reply.validated(request)
    })
}

/// The paths that have versions, without queries.
fn collected(nenrin: &Nenrin) -> Vec<String> {
    let visits = nenrin.last_visits();
    let mut paths: Vec<String> = visits
        .iter()
        .filter(|(url, visit)| visit["status"] == 200 && !url.contains(".rendered.invalid/"))
        .filter_map(|(url, _)| {
            let path = url.splitn(4, '/').nth(3)?;
            Some(format!("/{}", path.split('?').next()?))
        })
        .collect();
    paths.sort();
    paths
}

/// Collects once and says how many pages were rendered.
fn collect(nenrin: &Nenrin, site: &Site, render: &str) -> usize {
    let mut command =
        nenrin.command(&["collect", &site.url("/"), "--allow-private", "--render", render]);
    let output = command.env("NENRIN_LOG", "nenrin_archive=debug").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    said.lines().filter(|line| line.contains(" rendered")).count()
}

#[test]
fn what_a_script_asks_for_is_collected_politely_and_rendered_no_more_than_needed() {
    if !chromium_is_here() {
        return;
    }
    let edition = Arc::new(AtomicUsize::new(1));
    let site = application(edition.clone());
    let without = Nenrin::new().with_config(CONFIG);
    assert_eq!(collect(&without, &site, "never"), 0);
    assert_eq!(collected(&without), ["/", "/app.js"]);

    let nenrin = Nenrin::new().with_config(CONFIG);
    let before = site.requests().len();
    let rendered = collect(&nenrin, &site, "auto");
    assert!((2..=6).contains(&rendered), "{rendered} renderings");
    let expected = [
        "/",
        "/api/list.json",
        "/app.js",
        "/item/1",
        "/item/2",
        "/picture/1.png",
        "/picture/2.png",
    ];
    assert_eq!(collected(&nenrin), expected);
    let requests = site.requests()[before..].to_vec();
    assert!(requests.iter().all(|request| !request.path.starts_with("/secret")), "{requests:?}");
    for (earlier, later) in requests.iter().zip(&requests[1..]) {
        assert_eq!(later.beside, 0, "two requests at once: {}", later.path);
        let pause = later.began.duration_since(earlier.began);
        assert!(pause >= Duration::from_millis(95), "{} came {pause:?} after", later.path);
    }
    for request in requests.iter().filter(|request| request.path.starts_with("/api/")) {
        let url = site.url(&request.path);
        let body = String::from_utf8(nenrin.cat(&url)).unwrap();
        assert!(body.contains("First of edition 1"), "{body}");
    }

    shown_is_kept(&nenrin, &site.url("/"));

    // Only the data change: a new version of them, and nothing is rendered.
    edition.store(2, Ordering::SeqCst);
    assert_eq!(collect(&nenrin, &site, "auto"), 0);
    let list = requests.iter().find(|request| request.path.starts_with("/api/")).unwrap();
    let url = site.url(&list.path);
    assert_eq!(nenrin.versions(&url).len(), 2);
}

#[test]
fn without_a_browser_pages_are_collected_all_the_same() {
    let site = application(Arc::new(AtomicUsize::new(1)));
    let config = "[render]\nprogram = \"/nowhere/chromium\"\n[politeness]\ndelay = \"10ms\"\n";
    let nenrin = Nenrin::new().with_config(config);
    let args = ["collect", &site.url("/"), "--allow-private", "--render", "always"];
    nenrin.run(&args).expect_said(0, &["no Chromium was found"]);
    assert_eq!(collected(&nenrin), ["/", "/app.js"]);
}

#[test]
fn two_pages_of_a_family_are_tried_and_missing_parts_come_before_other_pages() {
    const APP: &str = "<p id=a>A<script>fetch(['/da', 'ta.json'].join(''))\
        .then(a => a.text()).then(t => { a.textContent += t })</script>";
    if !chromium_is_here() {
        return;
    }
    let site = Site::serve(|request| match request.path.as_str() {
        "/" => {
            let app = (0..3).map(|n| format!("<a href=/app/{n}>a</a>"));
            let news = (0..30).map(|n| format!("<a href=/news/{n}>n</a>"));
            Reply::html(app.chain(news).collect::<String>())
        }
        path if path.starts_with("/app/") => Reply::html(APP),
        // Slow, so that the first pages are rendered before the last are visited.
        path if path.starts_with("/news/") => {
            Reply::html("<p>News<script>document.title = 'x'</script>")
                .after(Duration::from_millis(500))
        }
        "/data.json" => Reply::new("200 OK", "application/json", "{}"),
        _ => Reply::status("404 Not Found"),
    });
    let config = "[render]\nas_root = true\n[politeness]\ndelay = \"20ms\"\n";
    let nenrin = Nenrin::new().with_config(config);
    let args = ["collect", &site.url("/"), "--allow-private", "--render", "auto"];
    let output = nenrin.command(&args).env("NENRIN_LOG", "nenrin_archive=debug").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let rendered = |path: &str| {
        let is_it = |line: &&str| line.contains(" rendered") && line.contains(path);
        said.lines().filter(is_it).count()
    };
    assert_eq!(rendered("/news/"), 2, "{said}");
    assert!(rendered("/app/") > 2, "{said}");
    let asked: Vec<String> = site.requests().into_iter().map(|request| request.path).collect();
    let data = asked.iter().position(|path| path == "/data.json").unwrap();
    let later = asked[data..].iter().filter(|path| path.starts_with("/news/")).count();
    assert!(later > 5, "{later} pages after the part: {asked:?}");
}

/// What the page showed is stored as records of its own, found by its words, exported and imported.
fn shown_is_kept(nenrin: &Nenrin, top: &str) {
    let kept =
        |nenrin: &Nenrin, kind: &str| nenrin.cat(&format!("http://{kind}.rendered.invalid/{top}"));
    let text = String::from_utf8(kept(nenrin, "text")).unwrap();
    assert!(text.contains("First of edition 1") && text.contains("Second"), "{text}");
    assert!(!text.contains("Loading"), "only the last pass is kept: {text}");
    let view = kept(nenrin, "view");
    let whole = kept(nenrin, "whole");
    for (picture, name) in [(&view, "view"), (&whole, "whole")] {
        assert!(picture.starts_with(b"\x89PNG"), "{name}: {:?}", picture.get(..8));
    }
    // Width and height of a PNG.
    let size = |picture: &[u8]| {
        let number = |at: usize| u32::from_be_bytes(picture[at..at + 4].try_into().unwrap());
        (number(16), number(20))
    };
    // The window is 1280 by 800 with its frame.
    assert!(size(&view).0 == 1280 && (600..=800).contains(&size(&view).1), "{:?}", size(&view));
    assert!(size(&whole).0 == 1280 && size(&whole).1 > 2000, "{:?}", size(&whole));

    let found = nenrin.run(&["--json", "search", "\"First of edition\""]).expect(0);
    assert!(found.text().contains(&format!("\"{top}\"")), "{}", found.text());

    let warc = nenrin.archive().with_file_name("rendered.warc");
    nenrin.run(&["export", "warc", "-o", warc.to_str().unwrap()]).expect(0);
    let bytes = std::fs::read(&warc).unwrap();
    let exported = String::from_utf8_lossy(&bytes);
    for line in [
        format!("WARC-Target-URI: urn:text:{top}\r\n"),
        format!("WARC-Target-URI: urn:view:{top}\r\n"),
        format!("WARC-Target-URI: urn:fullPage:{top}\r\n"),
        "WARC-Type: resource\r\n".to_owned(),
    ] {
        assert!(exported.contains(&line), "{line}");
    }
    assert!(!exported.contains("rendered.invalid"));
    let other = Nenrin::new();
    other.run(&["import", "warc", warc.to_str().unwrap()]).expect(0);
    assert_eq!(kept(&other, "view"), view);
    assert_eq!(kept(&other, "whole"), whole);
    assert_eq!(kept(&other, "text"), text.as_bytes());
    nenrin.assert_sound();
}

/// A page that asks by POST for what it shows, as many applications do.
fn posting(edition: Arc<AtomicUsize>) -> Site {
    Site::serve(move |request| match (request.method.as_str(), request.path.as_str()) {
        (_, "/") => Reply::html(
            "<div id=app>Loading</div><a href='/other?__wb_method=POST&x=1'>a trap</a><script>\
                 const ask = (query) => fetch('/graph', {method: 'POST', headers: {'Content-Type': \
                 'application/json'}, body: JSON.stringify({query})}).then(a => a.json());\
                 ask('rings').then(a => { app.textContent = a.say; return ask('bark of ' + a.tree) })\
                 .then(a => { document.title = a.say });\
                 navigator.sendBeacon('/count', 'x'); fetch('/put', {method: 'PUT', body: 'x'})</script>",
        ),
        ("POST", "/graph") => {
            let edition = edition.load(Ordering::SeqCst);
            let say = match request.body.as_str() {
                r#"{"query":"rings"}"# => format!("{edition} rings"),
                r#"{"query":"bark of oak"}"# => "thick bark".to_owned(),
                _ => return Reply::status("400 Bad Request"),
            };
            let text = format!(r#"{{"say": "{say}", "tree": "oak"}}"#);
            Reply::new("200 OK", "application/json", text)
        }
        _ => Reply::status("404 Not Found"),
    })
}

#[test]
fn what_a_page_asks_for_by_post_is_collected_exported_imported_and_replayed() {
    if !chromium_is_here() {
        return;
    }
    let edition = Arc::new(AtomicUsize::new(1));
    let site = posting(edition.clone());
    let nenrin = Nenrin::new().with_config(CONFIG);
    collect(&nenrin, &site, "auto");
    let rings = site.url("/graph?__wb_method=POST&query=rings");
    assert!(String::from_utf8(nenrin.cat(&rings)).unwrap().contains("1 rings"));
    let posted = |site: &Site| {
        let is_post = |request: &&crate::support::Request| request.method != "GET";
        let sent = |request: &crate::support::Request| {
            let kind = request.headers.get("content-type").cloned().unwrap_or_default();
            (request.method.clone(), request.path.clone(), kind, request.body.clone())
        };
        site.requests().iter().filter(is_post).map(sent).collect::<Vec<_>>()
    };
    let sent = |body: &str| {
        let [method, path, kind] = ["POST", "/graph", "application/json"].map(str::to_owned);
        (method, path, kind, body.to_owned())
    };
    let both = [sent(r#"{"query":"rings"}"#), sent(r#"{"query":"bark of oak"}"#)];
    assert_eq!(posted(&site), both, "each once, and nothing that only reports or changes");

    // The same is asked for again with the same body, without rendering; a link leads to no request.
    edition.store(2, Ordering::SeqCst);
    assert_eq!(collect(&nenrin, &site, "auto"), 0);
    assert_eq!(nenrin.versions(&rings).len(), 2);
    assert_eq!(posted(&site).len(), 4);

    let warc = nenrin.archive().with_file_name("posted.warc");
    nenrin.run(&["export", "warc", "-o", warc.to_str().unwrap()]).expect(0);
    let exported = String::from_utf8_lossy(&std::fs::read(&warc).unwrap()).into_owned();
    assert!(!exported.contains("/graph?__wb_method"), "only other archives' indexes know that");
    assert!(exported.contains("POST /graph HTTP/1.1\r\n"));
    assert_eq!(exported.matches("\r\n\r\n{\"query\":\"rings\"}\r\n\r\n").count(), 2);
    let other = Nenrin::new();
    other.run(&["import", "warc", warc.to_str().unwrap()]).expect(0);
    assert_eq!(other.versions(&rings).len(), 2);
    other.assert_sound();
    site.close();
    for nenrin in [&nenrin, &other] {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let anywhere = ["serve", "--json", "--interface", "127.0.0.1:0", "--replay", "127.0.0.1:0"];
        let running = nenrin.start(&anywhere);
        let replay = running.first_line()["replay"].as_str().unwrap().to_owned();
        let top = rings.split("graph").next().unwrap();
        runtime.block_on(async {
            let browser = nenrin_browser::Browser::start(nenrin_browser::Names::Nothing);
            let mut browser = browser.await.unwrap();
            browser.open(&format!("{replay}web/2099/{top}")).await;
            browser.until("document.title === 'thick bark'").await;
            assert_eq!(browser.eval("app.textContent").await, "2 rings");
        });
    }
}

#[test]
fn a_killed_program_leaves_no_browser_behind() {
    if !chromium_is_here() {
        return;
    }
    let site = Site::serve(|request| match request.path.as_str() {
        "/" => Reply::html(
            "<p>busy<script>setInterval(() => fetch('/n' + Math.random()), 50)</script>",
        ),
        _ => Reply::status("404 Not Found"),
    });
    let nenrin = Nenrin::new().with_config(CONFIG);
    let profiles = tempfile::tempdir().unwrap();
    let args = ["collect", &site.url("/"), "--allow-private", "--render", "always"];
    let mut running = nenrin.command(&args).env("TMPDIR", profiles.path()).spawn().unwrap();
    let browsers = || {
        let uses = |entry: &std::fs::DirEntry| {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(profiles.path().to_str().unwrap())
        };
        std::fs::read_dir("/proc").unwrap().flatten().filter(uses).count()
    };
    crate::support::until("the browser to start", || browsers() > 2);
    running.kill().unwrap();
    running.wait().unwrap();
    crate::support::until("the browser to be gone", || browsers() == 0);
}

/// Run with `cargo nextest run -p nenrin --test end_to_end --run-ignored all -E 'test(static_sites)'`;
/// `NENRIN_SITES` names some of the sites, with spaces between.
#[test]
#[ignore = "takes many minutes"]
fn static_sites_are_hardly_rendered_and_stored_the_same() {
    let Some(materialise) = crate::faithful::materialise().filter(|_| chromium_is_here()) else {
        return;
    };
    let names = std::env::var("NENRIN_SITES");
    let names = names.unwrap_or("azhenley dplyr heise openbsd tromp umio vimdoc zeit".to_owned());
    let config = "[render]\nas_root = true\n[politeness]\ndelay = \"1ms\"\n";
    let (mut all_visits, mut all_renderings) = (0, 0);
    for name in names.split(' ') {
        let work = tempfile::tempdir().unwrap();
        let folder = |visit: usize| work.path().join(visit.to_string());
        for visit in [1, 4, 8] {
            let mut command = std::process::Command::new(&materialise);
            command.args([name, &visit.to_string()]).arg(folder(visit));
            assert!(command.status().unwrap().success());
        }
        let served = crate::faithful::Folder::serve(&folder(1));
        let archives = ["never", "auto"].map(|_| Nenrin::new().with_config(config));
        let (mut trials, mut later, mut visits) = (0, 0, 0);
        for visit in [1, 4, 8] {
            *served.folder.lock().unwrap() = folder(visit);
            for (nenrin, render) in archives.iter().zip(["never", "auto"]) {
                let top = served.site.url(crate::faithful::LIST);
                let args = ["collect", &top, "--allow-private", "--embeds", "false"];
                let mut command = nenrin.command(&[&args[..], &["--render", render]].concat());
                let before = served.site.requests().len();
                let output = command.env("NENRIN_LOG", "nenrin_archive=debug").output().unwrap();
                assert!(matches!(output.status.code(), Some(0 | 1)), "{name}: {output:?}");
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                let rendered = said.lines().filter(|line| line.contains(" rendered")).count();
                if render == "auto" {
                    let count = if visit == 1 { &mut trials } else { &mut later };
                    *count += rendered;
                    let made = served.site.requests().len() - before;
                    visits += if visit == 1 { 0 } else { made };
                }
            }
            std::thread::sleep(Duration::from_millis(1100));
        }
        let is_sampled = |n: &usize| n.is_multiple_of(10);
        let [never, auto] = archives.each_ref().map(|nenrin| {
            let all = nenrin.last_visits();
            let urls: Vec<String> =
                all.keys().filter(|url| !url.contains(".rendered.")).cloned().collect();
            let sample = urls.iter().enumerate().filter(|(n, _)| is_sampled(n));
            let sample: Vec<_> = sample
                .filter(|(_, url)| all[*url]["status"] == 200)
                .map(|(_, url)| (url.clone(), nenrin.versions(url).len(), nenrin.cat(url)))
                .collect();
            (urls, sample)
        });
        let missing = never.0.iter().filter(|url| !auto.0.contains(url)).count();
        let more = auto.0.iter().filter(|url| !never.0.contains(url)).count();
        let differing = never.1.iter().filter(|page| !auto.1.contains(page)).count();
        eprintln!(
            "{name}: {trials} renderings in the first round; then {later} of {visits} visits; \
             {more} pages more, {missing} fewer; {differing} of {} sampled pages stored otherwise",
            never.1.len()
        );
        all_visits += visits;
        all_renderings += later;
        assert_eq!((missing, differing), (0, 0), "{name}");
    }
    assert!(all_renderings * 50 <= all_visits, "{all_renderings} of {all_visits}");
}
