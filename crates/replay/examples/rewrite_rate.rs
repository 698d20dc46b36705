//! How fast scripts are rewritten: `rewrite_rate FILE…` answers each script again and again, each time under an
//! address of its own, and gives megabytes per second of one thread's time. The answers are made in full: choosing,
//! reading, rewriting, headers.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program that measures")]
#![expect(clippy::disallowed_methods, reason = "it measures time")]

use std::{sync::Arc, time::Instant};

use axum::{body::Body, http::Request};
use http_body_util::BodyExt;
use nenrin_replay::{MemoryArchive, ReplayOptions, router};
use nenrin_urls::CanonicalUrl;
use tower::ServiceExt;

const TIMES: usize = 40;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for path in std::env::args().skip(1) {
        let script = std::fs::read(&path).unwrap();
        let mut archive = MemoryArchive::new();
        for n in 0..TIMES {
            let url = CanonicalUrl::parse(&format!("http://e.com/{n}.js")).unwrap();
            archive.put(&url, 0, 200, "Content-Type: text/javascript", script.clone());
        }
        let router =
            router(Arc::new(archive), ReplayOptions { cache_bytes: 0, ..ReplayOptions::default() });
        let mut shortest = f64::MAX;
        let mut is_changed = false;
        for n in 0..TIMES {
            let request =
                Request::builder().uri(format!("/web/19700102000000js_/http://e.com/{n}.js"));
            let request = request.body(Body::empty()).unwrap();
            let begin = Instant::now();
            let body = runtime.block_on(async {
                let answer = router.clone().oneshot(request).await.unwrap();
                assert!(answer.status().is_success());
                answer.into_body().collect().await.unwrap().to_bytes()
            });
            shortest = shortest.min(begin.elapsed().as_secs_f64());
            is_changed = body != script;
        }
        let rate = script.len() as f64 / shortest / 1e6;
        println!("{rate:6.1} MB/s  {} bytes, changed: {is_changed}  {path}", script.len());
    }
}
