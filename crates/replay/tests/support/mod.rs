//! What the tests of the router share.
#![allow(clippy::unwrap_used, dead_code, reason = "helpers of tests; no test uses all of them")]

use std::sync::Arc;

use axum::{Router, body::Body, http::Request};
use http_body_util::BodyExt;
use nenrin_replay::{MemoryArchive, ReplayOptions, router};
use nenrin_urls::CanonicalUrl;
use tower::ServiceExt;

pub(crate) const HTML: &str = "Content-Type: text/html";

/// An answer, read to its end.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: axum::http::HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |v| v.to_str().unwrap())
    }
}

pub(crate) fn url(text: &str) -> CanonicalUrl {
    CanonicalUrl::parse(text).unwrap()
}

/// Seconds of a date of fourteen digits in 2024, for readable tests: day of the year and hour.
pub(crate) fn at(day: i64, hour: i64) -> i64 {
    1_704_067_200 + (day - 1) * 86_400 + hour * 3600
}

pub(crate) fn served(archive: MemoryArchive) -> Router {
    router(Arc::new(archive), ReplayOptions::default())
}

/// Serves an archive on loopback with an origin for every archived server, and returns the origin of
/// replay itself.
pub(crate) async fn serve_apart(archive: MemoryArchive) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://replay.localhost:{}", listener.local_addr().unwrap().port());
    let options = ReplayOptions {
        origin: Some(origin.clone()),
        has_names_below: true,
        refuses_foreign_names: true,
        ..ReplayOptions::default()
    };
    let router = router(Arc::new(archive), options);
    tokio::spawn(async move { axum::serve(listener, router).await });
    origin
}

pub(crate) fn ask(router: &Router, path: &str, headers: &[(&str, &str)]) -> Answer {
    ask_by("GET", router, path, headers)
}

pub(crate) fn ask_by(
    method: &str,
    router: &Router,
    path: &str,
    headers: &[(&str, &str)],
) -> Answer {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::empty()).unwrap();
    runtime.block_on(async {
        let answer = router.clone().oneshot(request).await.unwrap();
        let (parts, body) = answer.into_parts();
        let body = body.collect().await.unwrap().to_bytes().to_vec();
        Answer { status: parts.status.as_u16(), headers: parts.headers, body }
    })
}
