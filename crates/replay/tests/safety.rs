//! Attempts to break out: by addresses, dates, headers, archived heads and pages.

use crate::support;

use nenrin_replay::MemoryArchive;
use proptest::prelude::*;
use support::{HTML, ask, at, served, url};

const SCRIPT: &str = "<script>alert(1)</script>";

fn archive() -> MemoryArchive {
    let mut archive = MemoryArchive::new();
    archive.put(&url("http://e.com/"), at(10, 0), 200, HTML, "<html><head></head><body>x");
    archive
}

#[test]
fn markup_in_addresses_and_dates_is_never_sent_back() {
    let mut archive = archive();
    let nasty =
        url("http://e.com/%3Cscript%3Ealert(1)%3C/script%3E?\"'><img src=x onerror=alert(1)>");
    archive.put(&nasty, at(10, 0), 200, HTML, "<html><head></head><body>x");
    let odd = url("http://e.com/odd");
    archive.put(&odd, at(10, 0), 200, &format!("Content-Type: text/{SCRIPT}"), SCRIPT);
    archive.put(&odd, at(11, 0), 200, HTML, format!("<title>{SCRIPT}</title>&lt;script>alert(1)"));
    let router = served(archive);
    for path in [
        "/web/*/http://e.com/odd",
        "/diff/20240110/20240111/http://e.com/odd",
        "/diff/side/20240110/20240111/http://e.com/odd",
        "/web/20240115000000/http://e.com/%22%3E%3Cscript%3Ealert(1)%3C/script%3E",
        "/web/%3Cscript%3Ealert(1)%3C/script%3E/http://e.com/",
        "/web/20240115000000/%3Cscript%3Ealert(1)%3C/script%3E",
        "/web/*/http://e.com/%3Cscript%3E\"'onload=alert(1)",
        "/web/*/http://e.com/*",
        "/diff/%3Cscript%3E/2024/http://e.com/",
        "/diff/2024/2024/http://e.com/'\"()",
        "/cdx?url=e.com&output=%3Cscript%3Ealert(1)%3C/script%3E",
        "/cdx?url=%3Cscript%3Ealert(1)%3C/script%3E",
        &format!(
            "/web/20240115000000/{}",
            nasty
                .as_str()
                .replace(' ', "%20")
                .replace('>', "%3E")
                .replace('<', "%3C")
                .replace('"', "%22")
        ),
        "/_nenrin/%3Cscript%3E",
        "/_nenrin/next/2024/%22onload=alert(1)",
        "/%3Cscript%3Ealert(1)%3C/script%3E",
    ] {
        let japanese = ask(&router, path, &[("accept-language", "ja")]).text();
        assert!(!japanese.contains(SCRIPT) && !japanese.contains("<img src=x"), "{path}");
        let answer = ask(&router, path, &[]);
        let text = answer.text();
        assert!(!text.contains(SCRIPT), "{path}: {text}");
        assert!(!text.contains("<img src=x"), "{path}: {text}");
        assert!(!text.contains("\"'onload"), "{path}: {text}");
        assert!(answer.status < 500, "{path}: {}", answer.status);
        if answer.header("content-type").starts_with("text/html") {
            assert!(answer.header("content-security-policy").contains("default-src"), "{path}");
        }
    }
}

#[test]
fn line_ends_never_reach_a_header() {
    let mut archive = archive();
    let headers = "Location: /a%0d%0aSet-Cookie:%20a=b\r\nX-A: b\rSet-Cookie: c=d\r\nRefresh: 0;url=http://e.com/\x01x";
    archive.put(&url("http://e.com/r"), at(10, 0), 302, headers, "");
    let router = served(archive);
    for path in [
        "/web/20240115000000/http://e.com/r",
        "/web/20240115000000/http://e.com/%0d%0aSet-Cookie:%20a=b",
        "/web/2024/http:/e.com/%0d%0aSet-Cookie:a=b",
        "/web/http://e.com%0d%0aSet-Cookie:a=b/",
    ] {
        let answer =
            ask(&router, path, &[("host", "a\u{9}b"), ("x-forwarded-proto", "https\u{9}")]);
        assert!(!answer.headers.contains_key("set-cookie"), "{path}");
        for (name, value) in &answer.headers {
            assert!(value.as_bytes().iter().all(|b| *b >= b' ' && *b != 0x7f), "{path}: {name}");
        }
    }
}

#[test]
fn no_cookie_is_ever_set_and_every_page_has_its_policy() {
    let mut archive = archive();
    archive.put(
        &url("http://e.com/c"),
        at(10, 0),
        200,
        "Content-Type: text/html\r\nSet-Cookie: a=b\r\nContent-Security-Policy: default-src *\r\n\
         X-Frame-Options: DENY\r\nAccess-Control-Allow-Origin: *\r\nClear-Site-Data: \"*\"\r\n\
         Link: <http://live.test/>; rel=preconnect\r\nService-Worker-Allowed: /",
        "<html><head></head>x",
    );
    let answer = ask(&served(archive), "/web/20240115000000/http://e.com/c", &[]);
    for absent in [
        "set-cookie",
        "x-frame-options",
        "access-control-allow-origin",
        "clear-site-data",
        "service-worker-allowed",
    ] {
        assert!(!answer.headers.contains_key(absent), "{absent}");
    }
    assert!(!answer.header("link").contains("live.test"));
    assert_eq!(answer.header("x-archive-orig-x-frame-options"), "DENY");
    let policies: Vec<_> = answer.headers.get_all("content-security-policy").iter().collect();
    assert_eq!(policies.len(), 1);
    let policy = policies[0].to_str().unwrap();
    assert!(policy.starts_with("default-src 'self'"), "{policy}");
    for directive in
        ["form-action 'self'", "sandbox allow-scripts", "frame-src 'self'", "base-uri 'self'"]
    {
        assert!(policy.contains(directive), "{policy}");
    }
    assert!(
        !policy.contains("http:") && !policy.contains("ws:") && !policy.contains('*'),
        "{policy}"
    );
}

#[test]
fn archived_service_workers_are_refused() {
    let mut archive = archive();
    archive.put(&url("http://e.com/sw.js"), at(10, 0), 200, "Content-Type: text/javascript", "x");
    let asked = [("service-worker", "script")];
    let answer = ask(&served(archive), "/web/20240115000000js_/http://e.com/sw.js", &asked);
    assert_eq!(answer.status, 403);
}

#[test]
fn paths_lead_nowhere_but_into_the_archive() {
    let router = served(archive());
    for path in [
        "/web/20240115000000/../../../../etc/passwd",
        "/web/20240115000000/file:///etc/passwd",
        "/_nenrin/../Cargo.toml",
        "/_nenrin/..%2f..%2fCargo.toml",
        "/_nenrin/%2e%2e/Cargo.toml",
        "/web/20240115000000id_/http://e.com/../../../etc/passwd",
    ] {
        let answer = ask(&router, path, &[]);
        assert!(matches!(answer.status, 400 | 404), "{path}: {}", answer.status);
        assert!(!answer.text().contains("root:"), "{path}");
    }
}

#[test]
fn a_bomb_is_not_unpacked() {
    // A thousand times ten kilobytes of nothing, compressed: sent as it is, within the limit.
    let mut archive = archive();
    let bomb = vec![0_u8; 10_000_000];
    let packed = {
        use std::io::Write;
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(&bomb).unwrap();
        encoder.finish().unwrap()
    };
    archive.put(
        &url("http://e.com/bomb"),
        at(10, 0),
        200,
        "Content-Type: text/html\r\nContent-Encoding: gzip",
        packed.clone(),
    );
    let options =
        nenrin_replay::ReplayOptions { max_rewritten_bytes: 1_000_000, ..Default::default() };
    let router = nenrin_replay::router(std::sync::Arc::new(archive), options);
    let answer = ask(&router, "/web/20240115000000/http://e.com/bomb", &[]);
    assert_eq!(answer.body, packed);
    assert_eq!(answer.header("content-encoding"), "gzip");
}

#[test]
fn packed_content_is_passed_on_or_unpacked_as_the_client_likes() {
    use std::io::Write;
    let pack = |text: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let mut archive = archive();
    let image = pack("<not really an image>");
    archive.put(
        &url("http://e.com/i.bin"),
        at(10, 0),
        200,
        "Content-Type: application/octet-stream\r\nContent-Encoding: gzip",
        image.clone(),
    );
    archive.put(
        &url("http://e.com/p"),
        at(10, 0),
        200,
        "Content-Type: text/html\r\nContent-Encoding: gzip",
        pack("<a href='/x'>"),
    );
    let router = served(archive);
    let passed = ask(
        &router,
        "/web/20240115000000im_/http://e.com/i.bin",
        &[("accept-encoding", "gzip, br")],
    );
    assert_eq!(
        (passed.body, passed.headers["content-encoding"].to_str().unwrap()),
        (image.clone(), "gzip")
    );
    let unpacked = ask(&router, "/web/20240115000000im_/http://e.com/i.bin", &[]);
    assert_eq!(unpacked.text(), "<not really an image>");
    assert!(!unpacked.headers.contains_key("content-encoding"));
    let page =
        ask(&router, "/web/20240115000000mp_/http://e.com/p", &[("accept-encoding", "gzip")]);
    assert!(page.text().contains("/web/20240115000000mp_/http://e.com/x"));
    let exact = ask(&router, "/web/20240115000000id_/http://e.com/i.bin", &[]);
    assert_eq!(exact.body, image);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_path_is_answered_without_harm(path in "/(web|diff|cdx|_nenrin)/[!-~&&[^#<>\"\\\\^`{|}]]{0,40}") {
        let router = served(archive());
        let answer = ask(&router, &path, &[]);
        prop_assert!(answer.status < 500, "{}: {}", path, answer.status);
        prop_assert!(!answer.headers.contains_key("set-cookie"));
    }
}
