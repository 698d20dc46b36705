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
            "/" => Reply::html("<div id=app>Loading</div><script src=/app.js></script>"),
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

/// What the page showed is stored as records of its own, found by its words, exported and imported.
fn shown_is_kept(nenrin: &Nenrin, top: &str) {
    let kept =
        |nenrin: &Nenrin, kind: &str| nenrin.cat(&format!("http://{kind}.rendered.invalid/{top}"));
    let text = String::from_utf8(kept(nenrin, "text")).unwrap();
    assert!(text.contains("First of edition 1") && text.contains("Second"), "{text}");
    assert!(!text.contains("Loading"), "only the last pass is kept: {text}");
    let view = kept(nenrin, "view");
    assert!(view.starts_with(b"\x89PNG"), "{:?}", &view[..8.min(view.len())]);

    let found = nenrin.run(&["--json", "search", "\"First of edition\""]).expect(0);
    assert!(found.text().contains(&format!("\"{top}\"")), "{}", found.text());

    let warc = nenrin.archive().with_file_name("rendered.warc");
    nenrin.run(&["export", "warc", "-o", warc.to_str().unwrap()]).expect(0);
    let bytes = std::fs::read(&warc).unwrap();
    let exported = String::from_utf8_lossy(&bytes);
    for line in [
        format!("WARC-Target-URI: urn:text:{top}\r\n"),
        format!("WARC-Target-URI: urn:view:{top}\r\n"),
        "WARC-Type: resource\r\n".to_owned(),
    ] {
        assert!(exported.contains(&line), "{line}");
    }
    assert!(!exported.contains("rendered.invalid"));
    let other = Nenrin::new();
    other.run(&["import", "warc", warc.to_str().unwrap()]).expect(0);
    assert_eq!(kept(&other, "view"), view);
    assert_eq!(kept(&other, "text"), text.as_bytes());
    nenrin.assert_sound();
}
