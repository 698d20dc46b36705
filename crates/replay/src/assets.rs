//! Our own files, inside the binary.

use axum::{
    body::Body,
    extract::Path,
    http::{HeaderValue, Response, StatusCode, header},
};

use crate::{scripts, served::plain};

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

pub(crate) async fn serve(Path(name): Path<String>) -> Response<Body> {
    file(&name)
}

/// One of our files.
pub(crate) fn file(name: &str) -> Response<Body> {
    let (mime, text) = match name {
        "replay.css" => ("text/css; charset=utf-8", include_str!("assets/replay.css")),
        "framed.js" => (JAVASCRIPT, include_str!("assets/framed.js")),
        "sides.js" => (JAVASCRIPT, include_str!("assets/sides.js")),
        "client.js" => (JAVASCRIPT, scripts::CLIENT_JS.as_str()),
        _ => return plain(StatusCode::NOT_FOUND, "no such file"),
    };
    let mut answer = plain(StatusCode::OK, text);
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(mime));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("max-age=300"));
    answer
}

/// Robots are kept out: the content they would index is not ours.
pub(crate) async fn robots() -> Response<Body> {
    plain(StatusCode::OK, "User-agent: *\nDisallow: /\n")
}
