//! Our own files, inside the binary.

use std::sync::LazyLock;

use axum::{
    body::Body,
    extract::Path,
    http::{HeaderValue, Response, StatusCode, header},
};

use crate::served::plain;

const STEADY: &str = include_str!("assets/steady.js");
const ADDRESSES: &str = include_str!("assets/addresses.js");
const WORKER: &str = include_str!("assets/worker.js");
const CLIENT: &str = include_str!("assets/client.js");
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// Our script for pages, with the parts that it shares with workers.
static CLIENT_JS: LazyLock<String> = LazyLock::new(|| {
    let parts = [("steady", STEADY), ("addresses", ADDRESSES), ("inWorker", WORKER)];
    let parts: String =
        parts.map(|(name, text)| format!("const {name} = {}\n", expression(text))).concat();
    format!("(() => {{\n\"use strict\";\n{parts}{CLIENT}\n}})();\n")
});

fn expression(text: &'static str) -> String {
    // The comment in front is not part of it.
    let start =
        text.lines().take_while(|line| line.starts_with("//")).map(|line| line.len() + 1).sum();
    format!("{};", text[start..].trim())
}

/// A script that makes time and chance of a page repeatable, to be run before any other: its clock
/// starts at a moment, in milliseconds since the epoch, and its random numbers follow from a seed.
pub fn steady_script(start_ms: i64, seed: u32) -> String {
    format!("({})(globalThis,{start_ms},{seed});", expression(STEADY).trim_end_matches(';'))
}

/// What comes before the first line of a worker's script; `page` says what the page is, as JSON.
pub(crate) fn worker_start(page: &serde_json::Value) -> String {
    let [steady, addresses, worker] =
        [STEADY, ADDRESSES, WORKER].map(|text| expression(text).trim_end_matches(';').to_owned());
    let text = format!("({worker})({steady},{addresses},{page});");
    // Lines keep their numbers.
    let lines = text.lines().map(|line| line.split(" // ").next().unwrap_or_default().trim());
    lines.filter(|line| !line.starts_with("//")).collect::<Vec<_>>().join(" ")
}

pub(crate) async fn serve(Path(name): Path<String>) -> Response<Body> {
    file(&name)
}

/// One of our files.
pub(crate) fn file(name: &str) -> Response<Body> {
    let (mime, text) = match name {
        "replay.css" => ("text/css; charset=utf-8", include_str!("assets/replay.css")),
        "sides.js" => (JAVASCRIPT, include_str!("assets/sides.js")),
        "client.js" => (JAVASCRIPT, CLIENT_JS.as_str()),
        _ => return plain(StatusCode::NOT_FOUND, "no such file"),
    };
    let mut answer = plain(StatusCode::OK, text);
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(mime));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("max-age=300"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-site"));
    answer
}

/// Robots are kept out: the content they would index is not ours.
pub(crate) async fn robots() -> Response<Body> {
    plain(StatusCode::OK, "User-agent: *\nDisallow: /\n")
}
