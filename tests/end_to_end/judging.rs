//! What is no page: soft 404s, challenges, traps; and what sites say of themselves.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use serde_json::Value;

use crate::support::{Nenrin, Reply, Site, get, until};

const SORRY: &str = "<title>Sorry</title><p>There is no such page here. Look for it in the index, \
    ask the keeper of the rings, or begin again at the front page of this archive.</p>";

fn article(name: &str) -> Reply {
    Reply::html(format!(
        "<title>{name}</title><p>The {name} grows where the water is, and what it says of the year \
         it says in a ring: {name}, {name} and once more {name}.</p>"
    ))
}

fn learnt(nenrin: &Nenrin) -> Value {
    nenrin.run(&["site", "show", "1", "--json"]).expect(0).document()["learnt"][0].clone()
}

#[test]
fn a_missing_page_with_a_good_status_is_gone_and_breeds_no_links() {
    let site = Site::serve(|request| match request.path.as_str() {
        "/" => Reply::html("<title>Top</title><a href='/oak'>o</a><a href='/dead'>d</a>"),
        "/oak" => article("oak"),
        "/robots.txt" => Reply::status("404 Not Found"),
        _ => Reply::html(format!("{SORRY}<a href='/bogus'>x</a>")),
    });
    let nenrin = Nenrin::new();
    nenrin.collect(&[&site.top()]).expect(0);
    assert_eq!(site.paths(), ["/", "/dead", "/oak"]);
    let visits = nenrin.last_visits();
    assert_eq!(visits[&site.url("/dead")]["outcome"], "gone");
    let why = visits[&site.url("/dead")]["detail"].as_str().unwrap();
    assert!(why.starts_with("soft 404"), "{why}");
    assert_eq!(visits[&site.url("/oak")]["outcome"], "changed");
    nenrin.run(&["versions", &site.url("/dead")]).expect(2);
    let learnt = learnt(&nenrin);
    assert_eq!(learnt["not_found"]["look"], "page");
    assert_eq!(learnt["not_found"]["called_gone"], 1);
    // The server is not asked again for what is known of it.
    site.take_requests();
    nenrin.collect(&[&site.top()]).expect(0);
    assert!(site.requests().iter().all(|request| !request.is_about_the_server()));
}

#[test]
fn a_missing_page_that_leads_home_is_gone() {
    let site = Site::serve(|request| match request.path.as_str() {
        "/" => Reply::html("<title>Top</title><a href='/oak'>o</a><a href='/dead'>d</a>"),
        "/oak" => article("oak"),
        "/robots.txt" => Reply::status("404 Not Found"),
        _ => Reply::redirect("/"),
    });
    let nenrin = Nenrin::new();
    nenrin.collect(&[&site.top()]).expect(0);
    assert_eq!(nenrin.last_visits()[&site.url("/dead")]["outcome"], "gone");
    assert_eq!(learnt(&nenrin)["not_found"]["look"], "redirect");
}

#[test]
fn pages_of_a_shell_that_scripts_fill_are_kept() {
    const SHELL: &str = "<title>App</title><p>This application needs scripts to show its pages, \
        so please let them run.</p><a href='/a'>a</a><a href='/b'>b</a><a href='/c'>c</a>";
    let site = Site::serve(|request| match request.path.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        _ => Reply::html(SHELL),
    });
    let nenrin = Nenrin::new();
    nenrin.collect(&[&site.top()]).expect(0);
    for path in ["/a", "/b", "/c"] {
        assert_eq!(nenrin.last_visits()[&site.url(path)]["outcome"], "changed", "{path}");
    }
    assert_eq!(learnt(&nenrin)["not_found"]["worthless"], true);
}

#[test]
fn a_challenge_is_no_version_and_keeps_the_page() {
    let guarded = Arc::new(AtomicU32::new(0));
    let state = guarded.clone();
    let site = Site::serve(move |request| match request.path.as_str() {
        "/" if state.load(Ordering::SeqCst) == 1 => {
            Reply::new("403 Forbidden", "text/html", "<title>Just a moment...</title>")
                .header("cf-mitigated", "challenge")
        }
        "/" => article("oak"),
        _ => Reply::status("404 Not Found"),
    });
    let nenrin = Nenrin::new();
    nenrin.collect(&[&site.top()]).expect(0);
    guarded.store(1, Ordering::SeqCst);
    nenrin.collect(&[&site.top()]);
    let visit = &nenrin.last_visits()[&site.top()];
    assert_eq!(visit["outcome"], "refused");
    assert!(visit["detail"].as_str().unwrap().contains("cloudflare"));
    assert_eq!(nenrin.versions(&site.top()).len(), 1);
    guarded.store(2, Ordering::SeqCst);
    nenrin.collect(&[&site.top()]).expect(0);
    assert_eq!(nenrin.versions(&site.top()).len(), 1, "the same page came back");
}

#[test]
fn a_loop_of_directories_ends_and_is_counted() {
    let site = Site::serve(|request| match request.path.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        "/" | "/sitemap.xml" => Reply::html("<title>Top</title><a href='/loop/'>in</a>"),
        path if path.starts_with("/loop/") => {
            Reply::html(format!("<title>{path}</title><p>{path}</p><a href='loop/'>on</a>"))
        }
        _ => Reply::status("404 Not Found"),
    });
    let nenrin = Nenrin::new();
    let ran = nenrin.collect(&[&site.top()]).expect(0);
    assert!(ran.said().contains("directories that repeat"), "{}", ran.said());
    assert_eq!(site.paths(), ["/", "/loop/", "/loop/loop/"]);
    assert_eq!(ran.document()["rounds"][0]["counts"]["trapped"], 1);
    let learnt = learnt(&nenrin);
    assert_eq!(learnt["traps"][0]["reason"], "repeated-segments");
    assert_eq!(learnt["traps"][0]["links"], 1);
    let shown = nenrin.run(&["site", "show", "1"]).expect(0).text();
    assert!(shown.contains("1 link not followed: directories that repeat"), "{shown}");
}

fn sitemap(top: &str, day: u32) -> String {
    format!(
        "<urlset><url><loc>{top}hidden.html</loc><lastmod>2024-03-{day:02}</lastmod></url>\
         <url><loc>http://elsewhere.example/x</loc></url></urlset>"
    )
}

#[test]
fn a_sitemap_adds_pages_that_nothing_links_to() {
    let site = Site::serve(|request| match request.path.as_str() {
        "/" => Reply::html("<title>Top</title><a href='/oak'>o</a>"),
        "/oak" => article("oak"),
        "/hidden.html" => article("yew"),
        "/sitemap.xml" => {
            let host = request.headers.get("host").cloned().unwrap_or_default();
            Reply::new("200 OK", "application/xml", sitemap(&format!("http://{host}/"), 1))
        }
        _ => Reply::status("404 Not Found"),
    });
    let nenrin = Nenrin::new();
    nenrin.collect(&[&site.top()]).expect(0);
    assert_eq!(site.paths(), ["/", "/hidden.html", "/oak"]);
    assert_eq!(nenrin.versions(&site.url("/sitemap.xml")).len(), 1, "sitemaps are kept as well");
    let source = &learnt(&nenrin)["signals"][0];
    assert_eq!((&source["entries"], &source["kind"]), (&2.into(), &"sitemap".into()));
    // A site that wants none asks for none.
    let other = Nenrin::new();
    site.take_requests();
    other.collect(&[&site.top(), "--signals", "false"]).expect(0);
    assert!(site.requests().iter().all(|request| request.path != "/sitemap.xml"));
    assert_eq!(site.paths(), ["/", "/oak"]);
}

#[test]
fn a_counter_is_noise_and_its_version_is_kept() {
    let visits = Arc::new(AtomicU32::new(100));
    let count = visits.clone();
    let site = Site::serve(move |request| match request.path.as_str() {
        "/" => {
            let n = count.fetch_add(1, Ordering::SeqCst);
            let story = if n < 103 { "The oak grows slowly." } else { "The storm took the oak." };
            Reply::html(format!("<title>Rings</title><p>{story}</p><p>Visitors: {n}</p>"))
        }
        _ => Reply::status("404 Not Found"),
    });
    let nenrin = Nenrin::new();
    for _ in 0..4 {
        nenrin.collect(&[&site.top(), "--depth", "1"]).expect(0);
    }
    let versions = nenrin.versions(&site.top());
    let judged: Vec<&Value> = versions.iter().map(|version| &version["significant"]).collect();
    assert_eq!(judged, [true, false, false, true]);
    let page = nenrin.run(&["pages", "--json"]).expect(0).lines().remove(0);
    assert_eq!((&page["changes"], &page["significant"]), (&4.into(), &2.into()));
}

#[test]
fn collecting_pauses_without_room_and_goes_on_after_a_reload() {
    let site = Site::of_pages(&[("/", article("oak"))]);
    let nenrin = Nenrin::new();
    let config = nenrin.file("nenrin.toml", "[disk]\nmin_free = \"1000000000GiB\"\n");
    let add = ["site", "add", &site.top(), "--allow-private", "--depth", "1"];
    nenrin.run(&add).expect(0);
    let running = nenrin.start(&[
        "run",
        "--json",
        "--log-format",
        "json",
        "--config",
        &config,
        "--interface",
        "127.0.0.1:0",
        "--replay",
        "127.0.0.1:0",
    ]);
    let interface = running.first_line()["interface"].as_str().unwrap().to_owned();
    let figure = |name: &str| {
        let (_, _, text) = get(&format!("{interface}metrics"));
        let line = text.lines().find(|line| line.starts_with(&format!("{name} ")));
        line.and_then(|line| line.rsplit(' ').next()).and_then(|value| value.parse::<f64>().ok())
    };
    until("the pause", || figure("nenrin_collecting_paused") == Some(1.0));
    assert!(site.requests().is_empty());
    assert!(figure("nenrin_disk_free_bytes").unwrap() > 0.0);
    let said: Value =
        serde_json::from_str(running.stderr().lines().find(|l| l.contains("paused")).unwrap())
            .unwrap();
    assert_eq!(said["level"], "WARN");
    assert!(said["min_free_bytes"].as_u64().unwrap() > 0);
    // A configuration that is not right changes nothing.
    nenrin.file("nenrin.toml", "[disk]\nmin_free = \"soon\"\n");
    running.signal("HUP");
    until("the refusal", || running.stderr().contains("stays as it was"));
    nenrin.file("nenrin.toml", "[disk]\nmin_free = \"0\"\n");
    running.signal("HUP");
    until("the page", || site.requests().iter().any(|request| request.path == "/"));
    until("the figures", || figure("nenrin_collecting_paused") == Some(0.0));
    assert_eq!(figure("nenrin_config_reloads_total"), Some(1.0));
    running.signal("INT");
    running.finish().expect(0);
    assert_eq!(nenrin.versions(&site.top()).len(), 1);
}
