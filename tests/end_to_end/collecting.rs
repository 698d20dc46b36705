//! A round of a site: what is asked, how often, how fast, and what a second round does.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use crate::support::{Nenrin, Reply, Request, Site};

/// Pages of the large site that robots.txt allows.
const PAGES: usize = 500;
/// Pages of the large site that robots.txt forbids.
const FORBIDDEN: usize = 20;

/// A site with every kind of link: path → content type and body.
fn large_site() -> BTreeMap<String, (&'static str, String)> {
    const HTML: &str = "text/html; charset=utf-8";
    let mut site = BTreeMap::new();
    let mut add =
        |path: &str, kind, body: &str| site.insert(path.to_owned(), (kind, body.to_owned()));
    add("/style.css", "text/css", "@import '/more.css'; body { background: url(img/bg.png) }");
    add("/more.css", "text/css", "p { background: url( \"/img/p.png\" ) }");
    for image in ["bg", "p", "one", "small", "large"] {
        add(&format!("/img/{image}.png"), "image/png", &format!("\u{89}PNG {image}"));
    }
    add("/frame.html", HTML, "<a href='/framed.html'>from the frame</a>");
    add("/framed.html", HTML, "framed");
    add("/base.html", HTML, "<base href='/deep/down/'><a href='one.html'>based</a>");
    add("/deep/down/one.html", HTML, "based");
    add("/refresh.html", HTML, "<meta http-equiv=refresh content='3; url=/refreshed.html'>");
    add("/refreshed.html", HTML, "refreshed");
    add("/search", HTML, "results");
    add("/script.js", "text/javascript", "let x = 1;");
    add(
        "/",
        HTML,
        "<link rel=stylesheet href=style.css><script src='/script.js'></script>
         <img src='img/one.png' srcset='img/small.png 1x, /img/large.png 2x'>
         <iframe src=frame.html></iframe><a href='/base.html#top'>based</a>
         <a href='refresh.html'>moved</a><form action='/search'><input name=q></form>
         <form method=post action='/posted'></form><a href='/p/0'>tree</a>
         <a href='mailto:a@example.com'>mail</a><a href='javascript:go()'>script</a>
         <a href='/private/0'>forbidden</a>",
    );
    let tree = PAGES - site.len();
    for n in 0..tree {
        let children = (8 * n + 1..=8 * n + 8).filter(|&child| child < tree);
        let across = [(n * 7) % tree, (n * 13 + 5) % tree];
        let mut body = format!("<title>{n}</title><a href='/private/{}'>no</a>", n % FORBIDDEN);
        for other in children.chain(across) {
            body += &format!("<a href='{other}'>{other}</a> <a href='../p/{other}#x'>again</a>");
        }
        site.insert(format!("/p/{n}"), (HTML, body));
    }
    for n in 0..FORBIDDEN {
        site.insert(format!("/private/{n}"), (HTML, "<a href='/private/only-here'>".to_owned()));
    }
    site
}

fn answer(site: &BTreeMap<String, (&'static str, String)>, request: &Request) -> Reply {
    if request.path == "/robots.txt" {
        return Reply::text("User-agent: *\nDisallow: /private/\n");
    }
    match site.get(&request.path) {
        Some((kind, body)) => Reply::new("200 OK", kind, body.as_bytes()).validated(request),
        None => Reply::status("404 Not Found"),
    }
}

#[test]
fn each_of_500_pages_is_asked_for_once_and_a_second_round_stores_nothing() {
    let content = large_site();
    let allowed: BTreeMap<String, usize> = content
        .keys()
        .filter(|path| !path.starts_with("/private/"))
        .map(|path| (path.clone(), 1))
        .collect();
    assert_eq!(allowed.len(), PAGES);
    let site = Site::serve(move |request| answer(&content, request));
    let nenrin = Nenrin::new();

    let first = nenrin.collect(&[&site.top()]).expect(0).document();
    assert_eq!(site.asked(), allowed);
    let requests = site.take_requests();
    assert_eq!(requests[0].path, "/robots.txt");
    assert_eq!(requests.iter().filter(|r| r.path == "/robots.txt").count(), 1);
    assert!(requests.iter().all(|request| request.beside == 0), "one request at a time");
    assert!(requests.iter().all(|request| !request.is_conditional()));
    let counts = &first["rounds"][0]["counts"];
    assert_eq!(counts["changed"], PAGES);
    assert_eq!(counts["refused"], FORBIDDEN);
    assert_eq!(counts["failed"], 0);
    let pack_bytes = nenrin.pack_bytes();

    let second = nenrin.collect(&[&site.top()]).expect(0).document();
    assert_eq!(site.asked(), allowed);
    assert!(site.requests().iter().all(Request::is_conditional), "{:?}", site.requests()[0]);
    let counts = &second["rounds"][0]["counts"];
    assert_eq!(counts["changed"], 0);
    assert_eq!(counts["not_modified"], PAGES);
    assert_eq!(nenrin.pack_bytes(), pack_bytes);
    nenrin.assert_sound();
}

/// A small site: the top page links to `/1` … `/n`.
fn star(n: usize) -> Site {
    Site::serve(move |request| match request.path.as_str() {
        "/" => Reply::html((1..=n).map(|i| format!("<a href='/{i}'>{i}</a>")).collect::<String>()),
        "/robots.txt" => Reply::status("404 Not Found"),
        path => Reply::html(format!("page {path}")),
    })
}

#[track_caller]
fn assert_pauses(requests: &[Request], delay: Duration) {
    for pair in requests.windows(2) {
        let ended = pair[0].ended.expect("answered");
        let pause = pair[1].began.saturating_duration_since(ended);
        assert!(pause >= delay, "{} then {} after {pause:?}", pair[0].path, pair[1].path);
    }
}

#[test]
fn the_delay_lies_between_any_two_requests() {
    let site = star(12);
    let nenrin = Nenrin::new();
    let delay = Duration::from_millis(50);
    nenrin.collect(&[&site.top(), "--delay", "50ms"]).expect(0);
    assert_eq!(site.asked().len(), 13);
    assert_pauses(&site.requests(), delay);
    // The pause holds from one process to the next as well.
    nenrin.collect(&[&site.top()]).expect(0);
    let requests = site.requests();
    assert_eq!(requests.len(), 3 + 2 * 13, "the server is asked about itself once");
    assert!(requests.iter().all(|request| request.beside == 0));
}

#[test]
fn a_crawl_delay_in_robots_txt_is_honoured() {
    let site = Site::serve(|request| match request.path.as_str() {
        "/robots.txt" => Reply::text("User-agent: nenrin\nCrawl-delay: 1\n"),
        "/" => Reply::html("<a href=/a>a</a>"),
        _ => Reply::html("a"),
    });
    let nenrin = Nenrin::new();
    nenrin.collect(&[&site.top()]).expect(0);
    let requests = site.requests();
    assert_eq!(requests.len(), 5, "robots.txt, the top page, two looks, the page");
    assert_pauses(&requests[1..], Duration::from_secs(1));
}

#[test]
fn two_servers_are_asked_side_by_side() {
    let slow = || {
        Site::serve(|request| match request.path.as_str() {
            "/" => Reply::html((1..=8).map(|i| format!("<a href='/{i}'>")).collect::<String>()),
            path => Reply::html(path).after(Duration::from_millis(50)),
        })
    };
    let (one, two) = (slow(), slow());
    let nenrin = Nenrin::new();
    let report = nenrin.collect(&[&one.top(), &two.top()]).expect(0).document();
    assert_eq!(report["rounds"].as_array().unwrap().len(), 2);
    let span = |site: &Site| {
        let requests = site.requests();
        assert_eq!(requests.len(), 12);
        (requests[0].began, requests[11].began)
    };
    let ((began_one, ended_one), (began_two, ended_two)) = (span(&one), span(&two));
    assert!(began_one < ended_two && began_two < ended_one, "the rounds overlap");
}

#[test]
fn the_depth_ends_a_chain() {
    let site = Site::serve(|request| {
        let n: u32 = request.path.trim_start_matches('/').parse().unwrap_or(1);
        Reply::html(format!("<a href='/{}'>deeper</a><img src='/{n}.png'>", n + 1))
    });
    let nenrin = Nenrin::new();
    nenrin.collect(&[&site.top(), "--depth", "3"]).expect(0);
    // What a page shows belongs to it, however deep the page is.
    assert_eq!(site.paths(), ["/", "/1.png", "/2", "/2.png", "/3", "/3.png"]);
}

#[test]
fn the_limit_on_pages_is_kept_and_told() {
    let site = star(30);
    let nenrin = Nenrin::new();
    let report = nenrin.collect(&[&site.top(), "--max-pages", "7"]).expect(0).document();
    assert_eq!(site.asked().values().sum::<usize>(), 7);
    assert_eq!(report["rounds"][0]["visits"], 7);
    assert_eq!(report["rounds"][0]["page_limit_reached"], true);
}

#[test]
fn each_scope_holds_what_it_says() {
    let pages = "<a href='/docs/a'>a</a><a href='b'>b</a><a href='/blog/'>c</a><a href='/'>d</a>";
    for (scope, expected) in [
        ("list", vec!["/docs/"]),
        ("prefix", vec!["/docs/", "/docs/a", "/docs/b"]),
        ("host", vec!["/", "/blog/", "/docs/", "/docs/a", "/docs/b"]),
    ] {
        let site = Site::serve(move |request| match request.path.as_str() {
            "/docs/" => Reply::html(pages),
            path => Reply::html(path),
        });
        let nenrin = Nenrin::new();
        nenrin.collect(&[&site.url("/docs/"), "--scope", scope]).expect(0);
        assert_eq!(site.paths(), expected, "{scope}");
    }
}

#[test]
fn another_host_is_left_alone_but_its_images_are_taken() {
    let other = Site::serve(|request| Reply::html(&*request.path));
    let (image, page) = (other.url("/image.png"), other.url("/page.html"));
    let site = Site::serve(move |request| match request.path.as_str() {
        "/" => Reply::html(format!("<a href='{page}'>elsewhere</a><img src='{image}'>")),
        _ => Reply::status("404 Not Found"),
    });
    let nenrin = Nenrin::new();
    nenrin.collect(&[&site.top()]).expect(0);
    assert_eq!(other.paths(), ["/image.png"]);
}

#[test]
fn a_round_of_one_site_leaves_the_others_alone() {
    let (site, other) = (star(2), star(2));
    let nenrin = Nenrin::new();
    nenrin.run(&["site", "add", &other.top(), "--allow-private", "--delay", "0s"]).expect(0);
    nenrin.collect(&[&site.top()]).expect(0);
    assert_eq!(site.asked().len(), 3);
    assert_eq!(other.requests().len(), 0, "a site that was not named is not collected");
}

#[test]
fn two_versions_within_one_second_are_both_kept() {
    let site = Site::serve(|request| {
        let stamp = request.began.elapsed().as_nanos();
        Reply::html(format!("{stamp} {:?}", request.began))
    });
    let nenrin = Nenrin::new();
    let began = Instant::now();
    for _ in 0..3 {
        nenrin.collect(&[&site.top()]).expect(0);
    }
    let versions = nenrin.versions(&site.top());
    assert_eq!(versions.len(), 3, "collected within {:?}", began.elapsed());
    let numbers: BTreeSet<u64> = versions.iter().map(|v| v["version"].as_u64().unwrap()).collect();
    assert_eq!(numbers.len(), 3);
    nenrin.assert_sound();
}

#[test]
fn what_changed_is_stored_and_the_rest_is_not() {
    let edition = std::sync::atomic::AtomicU32::new(1);
    let edition = std::sync::Arc::new(edition);
    let shown = edition.clone();
    let site = Site::serve(move |request| match request.path.as_str() {
        "/" => Reply::html("<a href=/news>news</a><a href=/still>still</a>"),
        "/news" => {
            let edition = shown.load(std::sync::atomic::Ordering::SeqCst);
            Reply::html(format!("edition {edition}")).validated(request)
        }
        _ => Reply::html("always the same"),
    });
    let nenrin = Nenrin::new();
    nenrin.collect(&[&site.top()]).expect(0);
    edition.store(2, std::sync::atomic::Ordering::SeqCst);
    let report = nenrin.collect(&[&site.top()]).expect(0).document();
    assert_eq!(report["rounds"][0]["counts"]["changed"], 1);
    assert_eq!(report["rounds"][0]["counts"]["same"], 2, "no validators: fetched, compared");
    assert_eq!(nenrin.cat(&site.url("/news")), b"edition 2");
    assert_eq!(nenrin.versions(&site.url("/news")).len(), 2);
    assert_eq!(nenrin.versions(&site.url("/still")).len(), 1);
}
