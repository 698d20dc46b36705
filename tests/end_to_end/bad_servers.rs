//! Servers that fail, send wrong data, drip or flood: each is observed, and nothing stored is harmed.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Kept, Reply, Site, deserted, until};

/// Collects a URL beside a page that is kept, and gives the last visit of the URL.
#[track_caller]
fn visit(kept: &Kept, url: &str, args: &[&str], code: i32) -> Value {
    kept.nenrin.collect(&[&[url], args].concat()).expect(code);
    kept.assert_intact();
    kept.nenrin.last_visits()[url].clone()
}

#[track_caller]
fn assert_visit(visit: &Value, outcome: &str, words: &[&str]) {
    assert_eq!(visit["outcome"], outcome, "{visit}");
    let detail = visit["detail"].as_str().unwrap_or_default();
    for word in words {
        assert!(detail.contains(word), "`{word}` is not in: {detail}");
    }
}

#[track_caller]
fn assert_no_version(kept: &Kept, url: &str) {
    kept.nenrin.run(&["versions", url]).expect_said(2, &[url, "no version"]);
}

#[test]
fn a_host_that_does_not_resolve_is_an_observation() {
    let kept = Kept::new();
    let found = visit(&kept, "http://nowhere.invalid/", &[], 1);
    assert_visit(&found, "failed", &["nowhere.invalid", "was not found"]);
    assert_no_version(&kept, "http://nowhere.invalid/");
}

#[test]
fn a_port_that_refuses_is_an_observation() {
    let url = format!("http://{}/", deserted());
    let kept = Kept::new();
    let found = visit(&kept, &url, &[], 1);
    assert_visit(&found, "failed", &["127.0.0.1", "no connection"]);
    assert_no_version(&kept, &url);
    // The server is left alone for a while, and `collect` says that it waits.
    let again = kept.nenrin.start(&["collect", &url]);
    until("the message about the pause", || again.stderr().contains("waiting"));
    again.kill();
    kept.assert_intact();
}

#[test]
fn a_server_that_comes_back_is_collected() {
    let address = deserted();
    let url = format!("http://{address}/");
    let kept = Kept::new();
    let config = kept.nenrin.file("nenrin.toml", "[politeness]\nrest_first = \"300ms\"\n");
    assert_visit(&visit(&kept, &url, &["--config", &config], 1), "failed", &["no connection"]);
    let _site = Site::serve_at(&address, |_| Reply::html("back"));
    assert_visit(&visit(&kept, &url, &["--config", &config], 0), "changed", &[]);
    assert_eq!(kept.nenrin.cat(&url), b"back");
}

#[test]
fn a_robots_txt_that_fails_once_does_not_close_the_site_for_a_day() {
    let failed = std::sync::atomic::AtomicBool::new(false);
    let site = Site::serve(move |request| match request.path.as_str() {
        "/robots.txt" if !failed.swap(true, std::sync::atomic::Ordering::SeqCst) => {
            Reply::status("500 Internal Server Error")
        }
        "/robots.txt" => Reply::status("404 Not Found"),
        _ => Reply::html("open"),
    });
    let kept = Kept::new();
    let config = kept.nenrin.file("nenrin.toml", "[politeness]\nrest_first = \"300ms\"\n");
    assert_visit(&visit(&kept, &site.top(), &["--config", &config], 1), "failed", &["robots.txt"]);
    assert_visit(&visit(&kept, &site.top(), &["--config", &config], 0), "changed", &[]);
}

#[test]
fn a_page_that_redirects_to_itself_is_an_observation() {
    let site = Site::of_pages(&[("/", Reply::redirect("/"))]);
    let kept = Kept::new();
    let found = visit(&kept, &site.top(), &[], 1);
    assert_visit(&found, "failed", &["redirects to itself"]);
    assert_eq!(site.asked().values().sum::<usize>(), 1);
    assert_no_version(&kept, &site.top());
}

#[test]
fn a_redirect_loop_is_an_observation() {
    let site = Site::of_pages(&[("/", Reply::redirect("/b")), ("/b", Reply::redirect("/"))]);
    let kept = Kept::new();
    kept.nenrin.collect(&[&site.top()]).expect(1);
    assert_eq!(site.asked().into_values().collect::<Vec<_>>(), [1, 1]);
    assert_visit(&kept.nenrin.last_visits()[&site.url("/b")], "failed", &["redirect loop"]);
    kept.assert_intact();
    // Nor does it go round for ever the next time.
    kept.nenrin.collect(&[&site.top()]).expect(1);
    assert_eq!(site.asked().into_values().collect::<Vec<_>>(), [2, 2]);
}

#[test]
fn an_endless_chain_of_redirects_ends() {
    let site = Site::serve(|request| match request.path.trim_start_matches('/').parse::<u32>() {
        Ok(n) => Reply::redirect(&format!("/{}", n + 1)),
        Err(_) if request.path == "/" => Reply::redirect("/1"),
        Err(_) => Reply::status("404 Not Found"),
    });
    let kept = Kept::new();
    kept.nenrin.collect(&[&site.top()]).expect(1);
    let asked = site.asked().values().sum::<usize>();
    assert!((20..=22).contains(&asked), "{asked}");
    let last = kept.nenrin.last_visits();
    let failed: Vec<_> = last.values().filter(|visit| visit["outcome"] == "failed").collect();
    assert_eq!(failed.len(), 1);
    assert_visit(failed[0], "failed", &["redirects in a row"]);
    kept.assert_intact();
    // The next round does not take the chain further.
    kept.nenrin.collect(&[&site.top()]).expect(1);
    assert_eq!(site.asked().len(), asked);
}

/// A gigabyte.
const LARGE_BYTES: u64 = 3 << 30;

#[test]
fn three_gigabytes_announced_are_given_up_at_once() {
    let part = vec![b'x'; 1 << 20];
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {LARGE_BYTES}\r\n\r\n"
    );
    let large = Reply::raw(head, "").then(part, LARGE_BYTES >> 20, Duration::ZERO);
    let site = Site::of_pages(&[("/", large)]);
    let kept = Kept::new();
    let began = Instant::now();
    let found = visit(&kept, &site.top(), &[], 1);
    assert_visit(&found, "failed", &["127.0.0.1", "3221225472", "limit"]);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_no_version(&kept, &site.top());
}

#[test]
fn a_body_without_end_is_given_up_at_the_limit() {
    let mut part = b"100000\r\n".to_vec();
    part.extend_from_slice(&vec![b'x'; 1 << 20]);
    part.extend_from_slice(b"\r\n");
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n";
    let endless = Reply::raw(head, "").then(part, LARGE_BYTES >> 20, Duration::ZERO);
    let site = Site::of_pages(&[("/", endless)]);
    let kept = Kept::new();
    let config = kept.nenrin.file("nenrin.toml", "[fetch]\nmax_body = \"8MiB\"\n");
    let found = visit(&kept, &site.top(), &["--config", &config], 1);
    assert_visit(&found, "failed", &["127.0.0.1", "8388608", "limit"]);
    assert_no_version(&kept, &site.top());
}

#[test]
fn a_small_body_that_unpacks_to_a_gigabyte_is_kept_but_not_read() {
    use std::io::Write;
    let mut coder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(1));
    let zeros = vec![b' '; 1 << 20];
    for _ in 0..300 {
        coder.write_all(&zeros).unwrap();
    }
    coder.write_all(b"<a href=/inside>").unwrap();
    let bomb = coder.finish().unwrap();
    let reply = Reply::html(bomb.clone()).header("Content-Encoding", "gzip");
    let site = Site::of_pages(&[("/", reply)]);
    let kept = Kept::new();
    let found = visit(&kept, &site.top(), &[], 0);
    assert_eq!(found["outcome"], "changed");
    assert!(found["detail"].as_str().unwrap().contains("16777216"), "{found}");
    assert!(kept.nenrin.cat(&site.top()) == bomb);
    assert_eq!(site.paths(), ["/"]);
}

#[test]
fn ten_megabytes_of_headers_are_given_up() {
    let line = format!("X-Long: {}\r\n", "x".repeat(1 << 10));
    let one = format!("HTTP/1.1 200 OK\r\nX-One: {}\r\n\r\n", "x".repeat(10 << 20));
    let many = Reply::raw("HTTP/1.1 200 OK\r\n", "").then(line, 10 << 10, Duration::ZERO);
    for reply in [many, Reply::raw(one, "")] {
        let site = Site::of_pages(&[("/", reply)]);
        let kept = Kept::new();
        let found = visit(&kept, &site.top(), &[], 1);
        assert_visit(&found, "failed", &["127.0.0.1", "head", "limit"]);
        assert_no_version(&kept, &site.top());
    }
}

#[test]
fn permission_for_private_addresses_is_for_the_hosts_of_top_pages_alone() {
    let other = Site::of_pages(&[("/x.png", Reply::text("inside")), ("/moved", Reply::text("x"))]);
    let elsewhere = format!("http://localhost:{}", other.address.port());
    let page =
        format!("<img src={elsewhere}/x.png><a href=/moved>m</a><a href={elsewhere}/a>a</a>");
    let moved = Reply::redirect(&format!("{elsewhere}/moved"));
    let top = Reply::redirect(&format!("{elsewhere}/top"));
    let site = Site::of_pages(&[("/", Reply::html(page)), ("/moved", moved), ("/top", top)]);
    let kept = Kept::new();
    for top in [site.top(), site.url("/top")] {
        kept.nenrin.collect(&["--scope", "any", &top]);
    }
    assert!(other.requests().is_empty(), "{:?}", other.requests());
    let visits = kept.nenrin.last_visits();
    let refused = &visits[&format!("{elsewhere}/x.png")];
    assert_visit(refused, "refused", &["localhost", "make it a top page"]);
    // A person can allow it.
    kept.nenrin.collect(&[&format!("{elsewhere}/x.png")]).expect(0);
    kept.assert_intact();
}

#[test]
fn a_private_address_needs_permission() {
    let site = Site::of_pages(&[("/", Reply::html("private"))]);
    let kept = Kept::new();
    let ran = kept.nenrin.run(&["collect", &site.top(), "--delay", "0s"]);
    ran.expect_said(1, &["127.0.0.1", "--allow-private"]);
    assert!(site.requests().is_empty(), "no server was asked");
    kept.assert_intact();
    assert_visit(&kept.nenrin.last_visits()[&site.top()], "refused", &["--allow-private"]);
    // The refusal is no lasting harm.
    kept.nenrin.collect(&[&site.top()]).expect(0);
    assert_eq!(kept.nenrin.cat(&site.top()), b"private");
}

#[test]
fn a_server_that_drips_its_head_is_given_up() {
    let drip =
        Reply::raw("HTTP/1.1 200 OK\r\n", "").then("X: y\r\n", 1_000, Duration::from_millis(50));
    let site = Site::of_pages(&[("/", drip)]);
    let kept = Kept::new();
    let config = kept.nenrin.file("nenrin.toml", "[fetch]\ntotal_timeout = \"1s\"\n");
    let began = Instant::now();
    let found = visit(&kept, &site.top(), &["--config", &config], 1);
    assert_visit(&found, "failed", &["127.0.0.1"]);
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
}

#[test]
fn a_server_that_drips_its_body_or_falls_silent_is_given_up() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n";
    let drip = Reply::raw(head, "").then("x", 1_000, Duration::from_millis(50));
    let silent = Reply::raw(head, "x").then("y", 1, Duration::from_secs(100));
    for reply in [drip, silent] {
        let site = Site::of_pages(&[("/", reply)]);
        let kept = Kept::new();
        let config = kept
            .nenrin
            .file("nenrin.toml", "[fetch]\nidle_timeout = \"500ms\"\ntotal_timeout = \"2s\"\n");
        let found = visit(&kept, &site.top(), &["--config", &config], 1);
        assert_visit(&found, "failed", &["127.0.0.1"]);
        assert_no_version(&kept, &site.top());
    }
}

#[test]
fn a_body_that_is_cut_is_no_version() {
    // The server says 100 bytes, sends 3 and closes.
    let cut = Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", "abc").and_close();
    let site = Site::of_pages(&[("/", cut)]);
    let kept = Kept::new();
    let found = visit(&kept, &site.top(), &[], 1);
    assert_visit(&found, "failed", &["cut", "3 bytes"]);
    assert_no_version(&kept, &site.top());
}

#[test]
fn what_is_not_http_is_an_observation() {
    let site = Site::of_pages(&[("/", Reply::raw("220 ready\r\n\r\n", "").and_close())]);
    let kept = Kept::new();
    let found = visit(&kept, &site.top(), &[], 1);
    assert_visit(&found, "failed", &["127.0.0.1", "HTTP"]);
}

#[test]
fn an_answer_of_304_that_nobody_asked_for_is_no_version() {
    let site = Site::of_pages(&[("/", Reply::raw("HTTP/1.1 304 Not Modified\r\n\r\n", ""))]);
    let kept = Kept::new();
    let found = visit(&kept, &site.top(), &[], 1);
    assert_visit(&found, "failed", &["304", "unconditional"]);
    assert_no_version(&kept, &site.top());
}

#[test]
fn an_error_of_the_server_is_no_version_and_the_old_one_stays() {
    let broken = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let switch = broken.clone();
    let site = Site::serve(move |request| match request.path.as_str() {
        "/" if broken.load(std::sync::atomic::Ordering::SeqCst) => {
            Reply::status("500 Internal Server Error")
        }
        "/" => Reply::html("whole"),
        _ => Reply::status("404 Not Found"),
    });
    let kept = Kept::new();
    assert_visit(&visit(&kept, &site.top(), &[], 0), "changed", &[]);
    switch.store(true, std::sync::atomic::Ordering::SeqCst);
    assert_visit(&visit(&kept, &site.top(), &[], 1), "failed", &["500"]);
    assert_eq!(kept.nenrin.cat(&site.top()), b"whole");
    assert_eq!(kept.nenrin.versions(&site.top()).len(), 1);
}

#[test]
fn a_page_that_is_not_there_is_gone() {
    let site = Site::of_pages(&[("/", Reply::html("<a href=/none>none</a>"))]);
    let kept = Kept::new();
    visit(&kept, &site.top(), &[], 0);
    assert_visit(&kept.nenrin.last_visits()[&site.url("/none")], "gone", &["404"]);
    assert_no_version(&kept, &site.url("/none"));
}

#[test]
fn a_server_that_asks_for_rest_is_left_alone_for_as_long() {
    let site = Site::serve(|request| match request.path.as_str() {
        "/" => Reply::html("<a href=/1>1</a><a href=/2>2</a><a href=/3>3</a>"),
        _ if request.is_about_the_server() => Reply::status("404 Not Found"),
        _ => Reply::status("429 Too Many Requests").header("Retry-After", "3600"),
    });
    let kept = Kept::new();
    let report = kept.nenrin.collect(&[&site.top()]).expect(1).document();
    assert_eq!(report["rounds"][0]["left"], 2);
    assert_eq!(site.asked().values().sum::<usize>(), 2, "nothing after the first 429");
    // Nor does the next process ask.
    let report = kept.nenrin.collect(&[&site.top()]).expect(1).document();
    assert_eq!(site.asked().values().sum::<usize>(), 2);
    assert_eq!(report["rounds"][0]["left"], 4);
    kept.assert_intact();
}

#[test]
fn a_short_rest_is_waited_for() {
    let site = Site::serve(|request| match request.path.as_str() {
        "/" => Reply::html("<a href=/1>1</a><a href=/2>2</a>"),
        "/1" => Reply::status("503 Service Unavailable").header("Retry-After", "1"),
        "/2" => Reply::html("two"),
        _ => Reply::status("404 Not Found"),
    });
    let kept = Kept::new();
    kept.nenrin.collect(&[&site.top()]).expect(1);
    let mut requests = site.requests();
    requests.retain(|request| !request.is_about_the_server());
    assert_eq!(requests[1].path, "/1");
    assert_eq!(requests[2].path, "/2");
    let rest = requests[2].began.duration_since(requests[1].ended.unwrap());
    assert!(rest >= Duration::from_secs(1), "{rest:?}");
    assert_eq!(kept.nenrin.cat(&site.url("/2")), b"two");
}

#[test]
fn an_empty_body_is_a_version() {
    let site = Site::of_pages(&[("/", Reply::html(""))]);
    let kept = Kept::new();
    assert_visit(&visit(&kept, &site.top(), &[], 0), "changed", &[]);
    assert_eq!(kept.nenrin.cat(&site.top()), b"");
    assert_visit(&visit(&kept, &site.top(), &[], 0), "same", &[]);
    assert_eq!(kept.nenrin.versions(&site.top())[0]["bytes"], 0);
}

#[test]
fn nothing_is_fetched_where_robots_txt_fails() {
    let site = Site::serve(|request| match request.path.as_str() {
        "/robots.txt" => Reply::status("500 Internal Server Error"),
        _ => Reply::html("open"),
    });
    let kept = Kept::new();
    let found = visit(&kept, &site.top(), &[], 1);
    assert_visit(&found, "failed", &["robots.txt", "500"]);
    assert!(site.asked().is_empty());
}

#[test]
fn a_site_that_robots_txt_forbids_is_reported() {
    let site = Site::serve(|request| match request.path.as_str() {
        "/robots.txt" => Reply::text("User-agent: *\nDisallow: /\n"),
        _ => Reply::html("open"),
    });
    let kept = Kept::new();
    let found = visit(&kept, &site.top(), &[], 1);
    assert_visit(&found, "refused", &["robots.txt line 2: Disallow: /"]);
    assert!(site.asked().is_empty());
}

#[test]
fn a_silent_server_is_given_up_and_the_others_go_on() {
    let silent = Site::serve(|request| match request.path.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        _ => Reply::silent(),
    });
    let well = Site::of_pages(&[("/", Reply::html("well"))]);
    let kept = Kept::new();
    let config = kept.nenrin.file("nenrin.toml", "[fetch]\ntotal_timeout = \"1s\"\n");
    kept.nenrin.collect(&[&silent.top(), &well.top(), "--config", &config]).expect(1);
    assert_visit(&kept.nenrin.last_visits()[&silent.top()], "failed", &["127.0.0.1"]);
    assert_eq!(kept.nenrin.cat(&well.top()), b"well");
    kept.assert_intact();
}
