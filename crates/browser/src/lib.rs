//! A headless Chromium for tests, controlled by its DevTools protocol.
//!
//! Read in this order:
//! - [`Browser`]: opens pages, presses keys, asks scripts, takes pictures;
//! - [`Names`] and [`LiveWeb`]: what host names resolve to, and a server that counts visits;
//! - [`Picture`]: what was shown, to be compared pixel by pixel;
//! - [`serve`]: a router on loopback.
//!
//! It is not part of the product: only tests depend on it, and it panics where a test must fail.
#![expect(clippy::unwrap_used, reason = "a browser that cannot be driven must fail the test")]

mod browser;
mod live;
mod picture;

pub use browser::{Browser, Names};
pub use live::LiveWeb;
pub use picture::Picture;

/// Serves a router on loopback and returns its origin.
pub async fn serve(router: axum::Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://127.0.0.1:{port}")
}
