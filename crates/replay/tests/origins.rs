//! One origin for every archived server and date: addresses, redirects, fences between sites.

use crate::support;

use nenrin_replay::{MemoryArchive, ReplayOptions, router};
use std::sync::Arc;
use support::{Answer, HTML, ask, ask_by, at, url};

const HOME: &str = "replay.localhost:8081";
const SHELF: &str = "20240115000000-e-com.replay.localhost:8081";
const OTHER: &str = "20240115000000s-api-e-com.replay.localhost:8081";

fn served() -> axum::Router {
    let mut archive = MemoryArchive::new();
    let mut put = |text: &str, headers: &str, body: &str| {
        archive.put(&url(text), at(10, 0), 200, headers, body.to_owned());
    };
    let page = "<html><head></head><body><a href='/x'>x</a><a href='http://e.com/y'>y</a>\
        <img src='//f.org/i.png'><a href='https://api.e.com/'>z</a></body></html>";
    put("http://e.com/dir/page.html?a=1&b=/2", HTML, page);
    put("http://e.com/web/20240101000000/x", HTML, "a path of the server");
    put("http://e.com/robots.txt", "Content-Type: text/plain", "theirs");
    put("https://e.com/secure.html", HTML, "secure");
    put("https://e.com/s.css", "Content-Type: text/css", "a{b:url(/i.png) url(http://f.org/i)}");
    put("http://e.com/t.html", HTML, "<title>t</title>");
    let open = "Content-Type: application/json\r\nAccess-Control-Allow-Origin: *";
    put("https://api.e.com/open", open, "{}");
    let named = "Content-Type: application/json\r\nAccess-Control-Allow-Origin: http://e.com";
    put("https://api.e.com/named", named, "{}");
    put("https://api.e.com/closed", "Content-Type: application/json", "{}");
    archive.put(
        &url("http://e.com/old"),
        at(5, 0),
        301,
        "Location: https://api.e.com/closed#x",
        "",
    );
    let options = ReplayOptions {
        origin: Some(format!("http://{HOME}")),
        has_names_below: true,
        refuses_foreign_names: true,
        ..ReplayOptions::default()
    };
    router(Arc::new(archive), options)
}

fn on(host: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    ask(&served(), path, &[&[("host", host)], headers].concat())
}

const OPENED: [(&str, &str); 3] =
    [("sec-fetch-dest", "document"), ("sec-fetch-mode", "navigate"), ("sec-fetch-site", "none")];

#[test]
fn an_address_that_people_share_leads_to_the_servers_own_origin() {
    let page = "/web/20240115000000/http://e.com/dir/page.html?a=1&b=/2";
    let answer = on(HOME, page, &OPENED);
    assert_eq!(answer.status, 302);
    assert_eq!(answer.header("location"), format!("http://{SHELF}/dir/page.html?a=1&b=/2"));
    let bare = on(HOME, &page.replace("/http", "mp_/http"), &OPENED);
    let name = SHELF.replace("-e-com", "m-e-com");
    assert_eq!(bare.header("location"), format!("http://{name}/dir/page.html?a=1&b=/2"));
    // Programs get it where they ask.
    let program = on(HOME, page, &[]);
    assert_eq!(program.status, 200);
    assert!(program.text().contains("/web/20240115000000/http://e.com/x"));
    assert!(!program.header("content-security-policy").contains("allow-same-origin"));
    assert_eq!(on(HOME, "/web/20240115000000/http://e.com/none", &OPENED).status, 404);
    // Someone on another machine cannot reach the names below.
    assert_eq!(on("10.0.0.7:8081", page, &OPENED).status, 200);
}

#[test]
fn a_page_on_its_own_origin_keeps_its_paths() {
    let answer = on(SHELF, "/dir/page.html?a=1&b=/2", &OPENED);
    assert_eq!(answer.status, 200);
    let text = answer.text();
    for kept in ["<a href='/x'>", &format!("<a href='http://{SHELF}/y'>")] {
        assert!(text.contains(kept), "{kept} in {text}");
    }
    let cdn = "http://20240115000000-f-org.replay.localhost:8081/i.png";
    assert!(text.contains(&format!("<img src='{cdn}'>")), "{text}");
    assert!(text.contains(&format!("<a href='http://{OTHER}/'>")), "{text}");
    assert!(text.contains("<nenrin-banner"), "{text}");
    assert!(text.contains(&format!("http://{HOME}/web/*/http://e.com/dir/")), "{text}");
    let policy = answer.header("content-security-policy");
    assert!(
        policy.contains("allow-same-origin") && policy.contains("http://*.replay.localhost:8081")
    );
    assert!(!policy.contains("default-src 'self' http://replay.localhost"), "{policy}");
    let memento = answer.header("memento-datetime");
    assert_eq!(memento, "Wed, 10 Jan 2024 00:00:00 GMT");
    let framed = on(SHELF, "/dir/page.html?a=1&b=/2", &[("sec-fetch-dest", "iframe")]);
    assert!(!framed.text().contains("<nenrin-banner"));
}

#[test]
fn every_path_but_ours_is_the_servers_own() {
    assert!(on(SHELF, "/web/20240101000000/x", &OPENED).text().contains("a path of the server"));
    assert_eq!(on(SHELF, "/robots.txt", &[]).text(), "theirs");
    assert!(on(SHELF, "/_nenrin/client.js", &[]).text().contains("addresses"));
    assert_eq!(
        on(SHELF, "/diff/2024/2025/http://f.org/", &[("sec-fetch-dest", "image")]).status,
        404
    );
    assert_eq!(on(HOME, "/robots.txt", &[]).text(), "User-agent: *\nDisallow: /\n");
}

#[test]
fn what_was_received_under_https_is_found_under_http() {
    let page = on(SHELF, "/secure.html", &OPENED);
    assert_eq!(page.status, 302);
    let to = "http://20240115000000s-e-com.replay.localhost:8081/secure.html";
    assert_eq!(page.header("location"), to);
    let style = on(SHELF, "/s.css", &[("sec-fetch-dest", "style")]);
    let cdn = "http://20240115000000-f-org.replay.localhost:8081/i";
    assert_eq!(style.text(), format!("a{{b:url(/i.png) url({cdn})}}"));
}

#[test]
fn redirects_lead_to_the_other_servers_origin() {
    let answer = on(SHELF, "/old", &OPENED);
    assert_eq!(
        (answer.status, answer.header("location")),
        (301, &*format!("http://{OTHER}/closed#x"))
    );
    let missing = on(SHELF, "/none?a", &OPENED);
    assert_eq!(missing.status, 302);
    let home = format!("http://{HOME}/web/20240115000000/http://e.com/none?a");
    assert_eq!(missing.header("location"), home);
    assert_eq!(on(SHELF, "/none", &[("sec-fetch-dest", "image")]).status, 404);
}

#[test]
fn sites_read_of_each_other_only_what_the_archived_answer_allowed() {
    let origin = format!("http://{SHELF}");
    let other = "http://20240115000000-g-net.replay.localhost:8081";
    let asked = |path: &str, origin: &str, mode: &str, site: &str| {
        let headers = [
            ("origin", origin),
            ("sec-fetch-dest", "empty"),
            ("sec-fetch-mode", mode),
            ("sec-fetch-site", site),
        ];
        let answer = on(OTHER, path, &headers);
        (answer.status, answer.header("access-control-allow-origin").to_owned())
    };
    assert_eq!(asked("/open", &origin, "cors", "same-site"), (200, origin.clone()));
    assert_eq!(asked("/open", other, "cors", "same-site"), (200, other.to_owned()));
    assert_eq!(asked("/named", &origin, "cors", "same-site"), (200, origin.clone()));
    assert_eq!(asked("/named", other, "cors", "same-site"), (200, String::new()));
    assert_eq!(asked("/closed", &origin, "cors", "same-site"), (200, String::new()));
    assert_eq!(asked("/open", "http://evil.test", "cors", "cross-site").0, 403);
    assert_eq!(asked("/open", "null", "cors", "cross-site").0, 403);
    assert_eq!(asked("/open", &origin, "no-cors", "same-site").0, 403);
    // Replay itself is closed to archived pages, except for links.
    let home = "/web/20240115000000id_/https://api.e.com/open";
    for (dest, mode, status) in
        [("empty", "cors", 403), ("script", "no-cors", 403), ("document", "navigate", 200)]
    {
        let headers =
            [("sec-fetch-dest", dest), ("sec-fetch-mode", mode), ("sec-fetch-site", "same-site")];
        assert_eq!(on(HOME, home, &headers).status, status, "{dest}");
    }
}

#[test]
fn exact_bytes_run_no_script() {
    let answer = on(HOME, "/web/20240115000000id_/http://e.com/t.html", &OPENED);
    assert_eq!((answer.status, answer.text().as_str()), (200, "<title>t</title>"));
    let policy = answer.header("content-security-policy");
    assert!(policy.contains("; sandbox;") && !policy.contains("allow-scripts"), "{policy}");
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
}

#[test]
fn long_names_and_odd_ones_have_an_origin_too() {
    let long = format!("http://{}e.com/", "a-long-name.".repeat(5));
    let router = served();
    let to = format!("/_nenrin/to/{long}");
    let answer = ask(&router, &to, &[("host", SHELF)]);
    assert_eq!(answer.status, 307);
    let host =
        answer.header("location").trim_start_matches("http://").trim_end_matches('/').to_owned();
    assert!(host.starts_with("20240115000000x-"), "{host}");
    let there = ask(&router, "/", &[&[("host", &*host)][..], &OPENED].concat());
    assert_eq!(there.header("location"), format!("http://{HOME}/web/20240115000000/{long}"));
    // After a new start nobody knows it.
    let gone = on(&host, "/", &OPENED);
    assert_eq!(gone.status, 421);
    assert!(gone.text().contains("/web/&lt;date&gt;/&lt;url&gt;"), "{}", gone.text());
}

#[test]
fn pages_ask_about_themselves_only() {
    let about = |url: &str| on(SHELF, &format!("/_nenrin/span/20240115000000/{url}"), &[]).status;
    assert_eq!(about("http://e.com/dir/page.html?a=1&b=/2"), 200);
    assert_eq!(about("https://api.e.com/open"), 404);
    let diff = "/_nenrin/diff/old/2024/2024/https://api.e.com/open";
    assert_eq!(on(SHELF, diff, &[]).status, 404);
}

#[test]
fn workers_start_with_our_script_and_service_workers_do_not_start() {
    let mut archive = MemoryArchive::new();
    let script = "Content-Type: text/javascript";
    archive.put(&url("http://e.com/w.js"), at(10, 0), 200, script, "postMessage(location.href)");
    let options = ReplayOptions {
        origin: Some(format!("http://{HOME}")),
        has_names_below: true,
        ..ReplayOptions::default()
    };
    let router = router(Arc::new(archive), options);
    let asked =
        |headers: &[(&str, &str)]| ask(&router, "/w.js", &[&[("host", SHELF)], headers].concat());
    let worker = asked(&[("sec-fetch-dest", "worker")]).text();
    assert!(worker.ends_with("postMessage(__nenrin_location.href)"), "{worker}");
    assert!(worker.contains("\"server\":\"http://e.com\"") && !worker.contains('\n'), "{worker}");
    let read = asked(&[("sec-fetch-dest", "empty"), ("sec-fetch-site", "same-origin")]);
    assert_eq!(read.text(), "postMessage(location.href)");
    assert_eq!(asked(&[("service-worker", "script")]).status, 403);
    let post = ask_by("POST", &router, "/w.js", &[("host", SHELF)]);
    assert_eq!(post.status, 405);
}

#[test]
fn the_first_page_has_fields_for_an_address_and_for_words() {
    let front = on(HOME, "/", &OPENED);
    assert_eq!(front.status, 200);
    assert!(front.text().contains("name=\"url\""), "{}", front.text());
    let to = on(HOME, "/?url=e.com%2Fdir", &OPENED);
    assert_eq!((to.status, to.header("location")), (303, "/web/*/https://e.com/dir"));
}
