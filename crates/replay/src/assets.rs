//! Our own files, inside the binary.

use axum::{
    body::Body,
    extract::Path,
    http::{HeaderValue, Response, StatusCode, header},
};

use crate::served::plain;

const FILES: [(&str, &str, &str); 3] = [
    ("replay.css", "text/css; charset=utf-8", include_str!("assets/replay.css")),
    ("client.js", "text/javascript; charset=utf-8", include_str!("assets/client.js")),
    ("worker.js", "text/javascript; charset=utf-8", include_str!("assets/worker.js")),
];

pub(crate) async fn serve(Path(name): Path<String>) -> Response<Body> {
    let Some((_, mime, text)) = FILES.into_iter().find(|(file, _, _)| *file == name) else {
        return plain(StatusCode::NOT_FOUND, "no such file");
    };
    let mut answer = plain(StatusCode::OK, text);
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(mime));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("max-age=300"));
    // The worker must control the whole origin.
    headers.insert("service-worker-allowed", HeaderValue::from_static("/"));
    answer
}

/// Robots are kept out: the content they would index is not ours.
pub(crate) async fn robots() -> Response<Body> {
    plain(StatusCode::OK, "User-agent: *\nDisallow: /\n")
}
