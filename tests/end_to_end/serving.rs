//! The interface, replay, the main job and the demo.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use nenrin_browser::{Browser, Names};
use serde_json::Value;

use crate::support::{Nenrin, Reply, Running, Site, get, get_with, until};

const ANYWHERE: [&str; 5] = ["--json", "--interface", "127.0.0.1:0", "--replay", "127.0.0.1:0"];

struct Served {
    running: Running,
    interface: String,
    replay: String,
}

fn start(nenrin: &Nenrin, command: &str) -> Served {
    let running = nenrin.start(&[&[command][..], &ANYWHERE].concat());
    let addresses = running.first_line();
    let address = |of: &Value| of.as_str().unwrap().to_owned();
    Served {
        interface: address(&addresses["interface"]),
        replay: address(&addresses["replay"]),
        running,
    }
}

/// A site in two editions: at most one second long, then collected again.
fn two_editions() -> (Nenrin, Site, Vec<String>) {
    let edition = Arc::new(AtomicU32::new(1));
    let shown = edition.clone();
    let site = Site::serve(move |request| match request.path.as_str() {
        "/" => Reply::html(format!(
            "<html><body>edition {} <a href='/inner'>inner</a><img src='/i.png'></body></html>",
            shown.load(Ordering::SeqCst)
        )),
        "/inner" => Reply::html("<html><body>the inner page</body></html>"),
        "/i.png" => Reply::new("200 OK", "image/png", "png"),
        _ => Reply::status("404 Not Found"),
    });
    let nenrin = Nenrin::new();
    nenrin.collect(&[&site.top()]).expect(0);
    let first = nenrin.versions(&site.top())[0]["timestamp"].clone();
    edition.store(2, Ordering::SeqCst);
    // Versions are distinguished by seconds.
    until("another second", || {
        nenrin.collect(&[&site.top()]).expect(0);
        let last = nenrin.versions(&site.top()).last().unwrap()["timestamp"].clone();
        let passed = last != first;
        if !passed {
            edition.fetch_add(1, Ordering::SeqCst);
        }
        passed
    });
    let dates = nenrin.versions(&site.top());
    let dates = dates.iter().map(|v| v["timestamp"].as_str().unwrap().to_owned()).collect();
    (nenrin, site, dates)
}

#[test]
fn serve_shows_the_sites_and_any_page_as_of_any_date() {
    let (nenrin, site, dates) = two_editions();
    let served = start(&nenrin, "serve");
    let (status, _, overview) = get(&served.interface);
    assert_eq!(status, 200);
    assert!(overview.contains(&site.address.to_string()), "{overview}");

    let (first, last) = (&dates[0], dates.last().unwrap());
    let page = |date: &str| get(&format!("{}web/{date}/{}", served.replay, site.top()));
    let (status, head, body) = page(last);
    assert_eq!(status, 200, "{head}");
    let newest = String::from_utf8(nenrin.cat(&site.top())).unwrap();
    let edition = newest.split_once("edition ").unwrap().1.split(' ').next().unwrap();
    assert!(body.contains(&format!("edition {edition}")), "{body}");
    assert!(
        body.contains(&format!("/web/{last}/{}", site.url("/inner"))),
        "links stay inside: {body}"
    );
    assert!(!body.contains("href='/inner'"), "{body}");
    let (_, _, old) = page(first);
    assert!(!old.contains(&format!("edition {edition}")), "{old}");

    let (status, _, inner) = get(&format!("{}web/{last}/{}", served.replay, site.url("/inner")));
    assert_eq!(status, 200);
    assert!(inner.contains("the inner page"), "{inner}");
    let (status, _, _) = get(&format!("{}web/{last}/{}", served.replay, site.url("/none")));
    assert_eq!(status, 404);
    served.running.signal("TERM");
    served.running.finish().expect(0);
}

#[test]
fn diff_names_the_lines_that_changed() {
    let (nenrin, site, dates) = two_editions();
    let text = nenrin.run(&["diff", &site.top()]).expect(0).text();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.iter().any(|line| line.starts_with("-edition ")), "{text}");
    assert!(lines.iter().any(|line| line.starts_with("+edition ")), "{text}");
    let (first, last) = (&dates[0], dates.last().unwrap());
    let found = nenrin
        .run(&["diff", &site.top(), "--from", first, "--to", last, "--json"])
        .expect(0)
        .document();
    let removed = found["removed"].as_array().unwrap();
    assert!(removed[0].as_str().unwrap().starts_with("edition "), "{found}");
    assert_eq!(found["same"], false);
    assert!(found["blocks"]["added"].as_u64().unwrap() > 0, "{found}");
    nenrin
        .run(&["diff", &site.top(), "--from", first, "--to", first])
        .expect_said(0, &["has one version for both dates"]);
    nenrin.run(&["diff", "http://nowhere.example/"]).expect_said(2, &["no version"]);
}

#[test]
fn a_site_is_hidden_denied_given_back_and_deleted_each_with_its_reason() {
    let (nenrin, site, _) = two_editions();
    let other = Site::of_pages(&[("/", Reply::html("another site's page"))]);
    nenrin.collect(&[&other.top()]).expect(0);
    let name = site.address.to_string();
    let remove = |how: &str, more: &[&str]| {
        let args = ["site", "remove", &name, "--how", how, "--reason", "they asked"];
        nenrin.run(&[&args[..], more].concat())
    };
    let listed = || nenrin.run(&["site", "list", "--json"]).expect(0).lines().len();
    let served = start(&nenrin, "serve");
    let opened = || get(&format!("{}web/2/{}", served.replay, site.top())).0;

    remove("hide", &[]).expect(0);
    assert_eq!((listed(), opened()), (1, 200));
    nenrin.collect(&[&site.top()]).expect_said(2, &["removed (hide)", "restore"]);
    remove("deny", &[]).expect(0);
    assert_eq!(opened(), 403, "the page was archived");
    nenrin.run(&["cat", &site.top()]).expect_said(2, &["removed site"]);
    nenrin.run(&["site", "restore", &name, "--reason", "changed their mind"]).expect(0);
    assert_eq!((listed(), opened()), (2, 200));

    let before = nenrin.pack_bytes();
    remove("delete", &[]).expect_said(2, &["--confirm"]);
    remove("delete", &["--confirm", &name]).expect_said(0, &["deleted"]);
    assert_eq!(opened(), 403);
    assert!(nenrin.pack_bytes() < before, "room is given back");
    nenrin.assert_sound();
    nenrin.run(&["reindex"]).expect(0);
    nenrin.run(&["versions", &site.top()]).expect(2);
    assert_eq!(nenrin.cat(&other.top()), b"another site's page");
    nenrin.run(&["site", "restore", &name, "--reason", "oh"]).expect_said(2, &["deleted"]);
    let log = nenrin.run(&["site", "removals", "--json"]).expect(0).lines();
    let what: Vec<String> = log.iter().map(|row| row["removal"].to_string()).collect();
    assert_eq!(what, ["\"delete\"", "null", "\"deny\"", "\"hide\""]);
    assert!(log.iter().all(|row| !row["reason"].as_str().unwrap().is_empty()));
}

#[test]
fn run_collects_what_is_due_and_ends_well_on_sigterm() {
    let site = Site::serve(|request| match request.path.as_str() {
        "/" => Reply::html("<a href=/a>a</a>"),
        path => Reply::html(path),
    });
    let nenrin = Nenrin::new();
    let add = ["site", "add", &site.top(), "--allow-private", "--delay", "0s", "--period", "1s"];
    nenrin.run(&add).expect(0);
    let served = start(&nenrin, "run");
    until("two rounds", || finished_rounds(&nenrin) >= 2);
    let (status, _, overview) = get(&served.interface);
    assert_eq!(status, 200);
    assert!(overview.contains(&site.address.to_string()));
    served.running.signal("TERM");
    served.running.finish().expect(0);
    nenrin.assert_sound();
    assert_eq!(nenrin.versions(&site.url("/a")).len(), 1);
    assert!(site.asked()["/a"] >= 2);
}

fn finished_rounds(nenrin: &Nenrin) -> usize {
    let rounds = nenrin.run(&["log", "--json"]).expect(0).lines();
    rounds.iter().filter(|round| round["ended"].is_string()).count()
}

#[test]
fn webhooks_are_told_what_changed_signed_and_again_after_a_failure() {
    let tries = Arc::new(AtomicU32::new(0));
    let counted = tries.clone();
    let receiver = Site::serve(move |_| match counted.fetch_add(1, Ordering::SeqCst) {
        0 => Reply::status("500 Internal Server Error").and_close(),
        _ => Reply::text("thanks").and_close(),
    });
    let edition = Arc::new(AtomicU32::new(1));
    let shown = edition.clone();
    let site = Site::serve(move |request| match request.path.as_str() {
        "/" => Reply::html(format!("edition {}", shown.fetch_add(1, Ordering::SeqCst))),
        _ => Reply::status("404 Not Found"),
    });
    let nenrin = Nenrin::new();
    let add = ["site", "add", &site.top(), "--allow-private", "--delay", "0s", "--period", "3s"];
    nenrin.run(&add).expect(0);
    let hook = |secret: &str| {
        format!(
            "[[webhook]]\nurl = \"{}\"\nsecret = \"{secret}\"\nallow_private = true\n",
            receiver.url("/hook")
        )
    };
    let weak = nenrin.file("weak.toml", &hook("short"));
    nenrin.run(&["--config", &weak, "config"]).expect_said(2, &["webhook.secret"]);
    let config = nenrin.file("hooks.toml", &hook("a secret of both sides"));
    let running = nenrin.start(&[&["--config", &config, "run"][..], &ANYWHERE].concat());
    until("the webhook to be called again", || tries.load(Ordering::SeqCst) >= 2);
    let calls = receiver.requests();
    assert_eq!(calls[0].path, "/hook");
    assert_eq!(calls[0].headers["x-nenrin-delivery"], calls[1].headers["x-nenrin-delivery"]);
    assert!(calls[0].headers["x-nenrin-signature"].starts_with("sha256="), "{calls:?}");
    assert_eq!(calls[0].headers["content-type"], "application/json");
    running.signal("TERM");
    running.finish().expect(0);
}

#[test]
fn run_greets_an_empty_archive() {
    let nenrin = Nenrin::new();
    let served = start(&nenrin, "run");
    let (status, _, body) = get(&served.interface);
    assert_eq!(status, 200);
    assert!(body.to_lowercase().contains("demo"), "{body}");
    served.running.signal("INT");
    served.running.finish().expect(0);
}

#[test]
fn a_port_in_use_is_named_with_the_way_out() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let nenrin = Nenrin::new();
    for what in ["--interface", "--replay"] {
        let mut args = vec!["run", "--interface", "127.0.0.1:0", "--replay", "127.0.0.1:0"];
        let place = args.iter().position(|arg| *arg == what).unwrap();
        args[place + 1] = &address;
        nenrin.run(&args).expect_said(2, &[&address, what]);
    }
    nenrin.run(&["run", "--interface", "0.0.0.0:0"]).expect_said(2, &["0.0.0.0", "password"]);
    nenrin.run(&["run", "--interface", "here"]).expect_said(2, &["here", "127.0.0.1:8080"]);
}

#[test]
fn beyond_loopback_a_password_is_needed_and_guessing_is_slowed_down() {
    let nenrin = Nenrin::new();
    let config = nenrin.file("nenrin.toml", "contact = \"me@example.org\" # kept\n");
    let set = ["--config", &config, "config", "set-password"];
    nenrin.run_with_input(&set, "short\n").expect_said(2, &["8 characters"]);
    nenrin.run_with_input(&set, "a long password\n").expect_said(0, &["serve.password"]);
    let reader = [&set[..], &["--reader"]].concat();
    nenrin.run_with_input(&reader, "the readers' password\n").expect(0);
    let text = std::fs::read_to_string(&config).unwrap();
    assert!(text.contains("# kept") && text.contains("$argon2id$"), "{text}");
    nenrin.run(&["--config", &config, "config"]).expect_said(0, &["(set)"]);
    nenrin.run(&["config", "set-password"]).expect_said(2, &["--config"]);
    let new = config.replace("nenrin.toml", "new.toml");
    nenrin.run(&["--config", &new, "config"]).expect_said(2, &[&new, "`nenrin config`"]);
    let set_new = ["--config", &new, "config", "set-password"];
    nenrin.run_with_input(&set_new, "a long password\n").expect_said(0, &[&new]);
    nenrin.run(&["--config", &new, "config"]).expect_said(0, &["(set)"]);

    let anywhere = ["--interface", "0.0.0.0:0", "--replay", "127.0.0.1:0"];
    nenrin.run(&[&["run"][..], &anywhere].concat()).expect_said(2, &["password"]);
    let args = [&["--config", &config, "run", "--json"][..], &anywhere].concat();
    let running = nenrin.start(&args);
    let interface = running.first_line()["interface"].as_str().unwrap().to_owned();
    let interface = interface.replace("0.0.0.0", "127.0.0.1");
    let (status, _, page) = get(&interface);
    assert_eq!(status, 200);
    assert!(page.contains("name=\"password\""), "asked for the password: {page}");
    let basic = |password: &str| get_with(&format!("{interface}api/v1/sites"), password).0;
    assert_eq!(basic("a long password"), 200);
    let refused: Vec<u16> = (0..8).map(|_| basic("a wrong password")).collect();
    assert_eq!(refused, [401, 401, 401, 401, 429, 429, 429, 429]);
    // Whoever guessed so often waits now, also with a right one, and one that is in use.
    assert_eq!(basic("the readers' password"), 429);
    assert_eq!(basic("a long password"), 429);
    running.signal("TERM");
    running.finish().expect(0);
}

#[test]
fn the_demo_collects_several_versions_of_its_front_page() {
    let nenrin = Nenrin::new();
    let report = nenrin.run(&["demo", "--once", "--rounds", "3", "--json"]).expect(0).document();
    assert_eq!(report["rounds"], 3);
    assert!(report["versions"].as_u64().unwrap() >= 3, "{report}");
    let top = report["top"].as_str().unwrap();
    let versions = nenrin.versions(top);
    assert!(versions.len() >= 3);
    let front = |version: &Value| {
        nenrin.run(&["cat", top, "--at", version["timestamp"].as_str().unwrap()]).expect(0).stdout
    };
    assert_ne!(front(&versions[0]), front(versions.last().unwrap()));
    nenrin.assert_sound();
}

#[test]
fn the_demo_leaves_the_sites_of_its_archive_alone() {
    let site = Site::of_pages(&[("/", Reply::html("mine"))]);
    let nenrin = Nenrin::new();
    nenrin.run(&["site", "add", &site.top(), "--allow-private", "--delay", "0s"]).expect(0);
    nenrin.run(&["demo", "--once", "--rounds", "1", "--json"]).expect(0);
    assert!(site.requests().is_empty());
}

#[test]
fn a_request_is_receiving_then_reading_and_what_came_is_released() {
    const LINKS: usize = 120_000;
    let links: String = (0..LINKS).map(|n| format!("<p><a href=\"#{n}\">a page</a></p>")).collect();
    let site = Site::serve(move |request| match request.path.as_str() {
        "/" => Reply::html(links.clone()),
        "/slow" => {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 30\r\n\r\n";
            Reply::raw(head, "").then("x", 30, std::time::Duration::from_millis(100))
        }
        "/robots.txt" => Reply::text("User-agent: *\nAllow: /\n"),
        _ => Reply::status("404 Not Found"),
    });
    let nenrin = Nenrin::new();
    let tops = [site.url("/slow"), site.top()];
    for top in &tops {
        nenrin.run(&["site", "add", top, "--allow-private", "--depth", "1"]).expect(0);
    }
    let any = ["--interface", "127.0.0.1:0", "--replay", "127.0.0.1:0"];
    let running = nenrin.start(&[&["run", "--json"][..], &any].concat());
    let interface = running.first_line()["interface"].as_str().unwrap().to_owned();
    let now = || get(&format!("{interface}api/v1/now")).2;
    let has = |path: &str, phase: &str| {
        let requests: Vec<Value> = serde_json::from_str(&now()).unwrap_or_default();
        let is_it = |request: &&Value| request["url"].as_str().is_some_and(|u| u.ends_with(path));
        requests.iter().find(is_it).is_some_and(|request| request["phase"] == phase)
    };
    until("the slow page is being received", || has("/slow", "receiving"));
    until("the large page is being read", || has("/", "reading"));
    until("nothing is under way", || now() == "[]");
    let memory = || {
        let metrics = get(&format!("{interface}metrics")).2;
        let line = metrics.lines().find(|line| line.starts_with("nenrin_fetch_memory_bytes "));
        line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
    };
    // robots.txt, the look for missing pages and the sitemap are released like pages.
    until("what came is released", || memory() == Some(0.0));
    assert!(site.requests().iter().any(|request| request.path == "/robots.txt"));
    running.signal("TERM");
    running.finish().expect(0);
}

#[test]
fn a_page_of_a_removed_site_says_so_instead_of_never_archived() {
    let (nenrin, site, dates) = two_editions();
    let name = nenrin.run(&["site", "list", "--json"]).expect(0).lines()[0]["name"].clone();
    let name = name.as_str().unwrap();
    nenrin.run(&["site", "remove", name, "--how", "deny", "--reason", "asked to"]).expect(0);
    nenrin.run(&["cat", &site.top()]).expect_said(2, &["removed site"]);
    let served = start(&nenrin, "serve");
    let (status, _, page) = get(&format!("{}web/{}/{}", served.replay, dates[0], site.top()));
    assert_eq!(status, 403);
    assert!(page.contains("its site was removed from view"), "{page}");
    served.running.signal("TERM");
    served.running.finish().expect(0);
}

#[test]
fn a_first_look_at_a_host_that_does_not_exist_does_not_blame_its_robots_txt() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let Some(mut browser) = runtime.block_on(Browser::start(Names::Nothing)) else { return };
    let nenrin = Nenrin::new();
    let served = start(&nenrin, "run");
    runtime.block_on(async {
        browser.open(&format!("{}sites/new", served.interface)).await;
        browser.fill("#url", "http://no-such-host.invalid/").await;
        browser.follow("form.sheet button[formaction$='/look']").await;
        let text = browser.text().await;
        assert!(text.contains("not reached"), "{text}");
        assert!(!text.contains("forbids"), "{text}");
    });
    served.running.signal("TERM");
    served.running.finish().expect(0);
}
