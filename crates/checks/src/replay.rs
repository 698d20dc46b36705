//! Archived bodies on their way to a browser.

use std::sync::Arc;

use axum::{body::Body, http::Request};
use http_body_util::BodyExt;
use nenrin_replay::{MemoryArchive, ReplayOptions, router};
use nenrin_urls::CanonicalUrl;
use tower::ServiceExt;

use crate::chosen;

const AT_S: i64 = 1_704_067_200;

/// What replay answers for a path, if the path can be asked for.
fn ask(archive: MemoryArchive, path: &str) -> Option<(u16, Vec<u8>)> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let request = Request::builder().uri(path).body(Body::empty()).ok()?;
    let replay = router(Arc::new(archive), ReplayOptions::default());
    let answer = runtime.block_on(async {
        let answer = replay.oneshot(request).await.expect("every request is answered");
        let status = answer.status().as_u16();
        let policy = answer.headers().contains_key("content-security-policy");
        assert!(policy || status != 200, "an answer without a policy");
        let body = answer.into_body().collect().await.expect("a body");
        (status, body.to_bytes().to_vec())
    });
    Some(answer)
}

fn shown(modifier: &str, name: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let url = CanonicalUrl::parse(&format!("http://example.com/{name}")).expect("a URL");
    let mut archive = MemoryArchive::new();
    archive.put(&url, AT_S, 200, headers, body.to_vec());
    let path = format!("/web/20240101000000{modifier}/{url}");
    let (status, answer) = ask(archive, &path).expect("the path is one");
    assert_eq!(status, 200);
    answer
}

/// A page of any bytes is shown, within a bound of its size.
pub(crate) fn html(bytes: &[u8]) {
    let (choice, body) = chosen(bytes);
    let content_type = [
        "text/html",
        "text/html; charset=iso-2022-jp",
        "application/xhtml+xml",
        "image/svg+xml",
        "text/html; charset=utf-16be",
    ][choice % 5];
    let modifier = ["", "if_", "mp_", "id_"][choice / 5 % 4];
    let answer = shown(modifier, "a", &format!("Content-Type: {content_type}"), body);
    if modifier == "id_" {
        assert_eq!(answer, body);
    }
    // Each rewritten address becomes longer by about the archive's prefix.
    assert!(answer.len() <= 100_000 + body.len() * 60, "{} of {}", answer.len(), body.len());
}

/// So is a part of a page: a style sheet, a script, a manifest, a list of a film, a coded body,
/// anything.
pub(crate) fn part(bytes: &[u8]) {
    let (choice, body) = chosen(bytes);
    let (modifier, name, headers) = [
        ("cs_", "a.css", "Content-Type: text/css"),
        ("js_", "a.js", "Content-Type: text/javascript"),
        ("mp_", "manifest.json", "Content-Type: application/manifest+json"),
        ("im_", "a", "Content-Type: text/html\r\nContent-Encoding: gzip"),
        ("oe_", "a.pdf", "Content-Type: application/pdf, text/html"),
        ("", "a", "Content-Encoding: br, deflate"),
        ("cs_", "a", "Content-Type: text/plain"),
        ("js_", "a.mjs", "Content-Encoding: zstd"),
        ("mp_", "a.m3u8", "Content-Type: application/vnd.apple.mpegurl"),
        ("mp_", "a.mpd", "Content-Type: application/dash+xml"),
        ("mp_", "a.xml", "Content-Type: application/xml"),
    ][choice % 11];
    let answer = shown(modifier, name, headers, body);
    assert!(answer.len() <= (1 << 20) + body.len() * 2000);
}

/// Any path gets an answer.
pub(crate) fn path(bytes: &[u8]) {
    let text: String = String::from_utf8_lossy(bytes)
        .chars()
        .filter(|c| c.is_ascii_graphic() && *c != '#')
        .collect();
    let url = CanonicalUrl::parse("http://example.com/").expect("a URL");
    for prefix in ["/web/", "/", "/cdx?", "/_nenrin/", "/timemap/link/", "/_nenrin/span/"] {
        let mut archive = MemoryArchive::new();
        archive.put(&url, AT_S, 200, "Content-Type: text/html", &b"<p>x"[..]);
        if let Some((status, _)) = ask(archive, &format!("{prefix}{text}")) {
            assert!(status < 500, "{prefix}{text}: {status}");
        }
    }
}
