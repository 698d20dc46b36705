//! Text that a reader selects on an archived page, with a real mouse, can be watched.
#![allow(clippy::unwrap_used, reason = "an element that is not there must fail the test")]

use crate::support;

use std::sync::Arc;

use axum::{Router, extract::Request};
use nenrin_browser::{Browser, Names, serve};
use nenrin_replay::{MemoryArchive, ReplayOptions, router};
use serde_json::json;
use support::{HTML, at, url};

/// Presses a mouse button so many times in one place.
async fn press(browser: &mut Browser, (x, y): (f64, f64), count: u32) {
    for n in 1..=count {
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({"type": kind, "x": x, "y": y, "button": "left", "clickCount": n});
            browser.call("Input.dispatchMouseEvent", event).await;
        }
    }
}

/// The middle of an element that is found by an expression.
async fn middle(browser: &mut Browser, element: &str) -> (f64, f64) {
    let find = format!(
        "(r => [r.x + r.width / 2, r.y + r.height / 2])({element}.getBoundingClientRect())"
    );
    let found = browser.eval(&find).await;
    (found[0].as_f64().unwrap(), found[1].as_f64().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn selected_text_of_an_archived_page_is_led_to_the_form_of_watches() {
    let interface = |request: Request| async move { request.uri().to_string() };
    let interface = serve(Router::new().fallback(interface)).await;
    let page = "<!doctype html><title>Shop</title><style>p{margin:40px}</style>\
                <p id=one>Green tea: <b>9 &euro; &amp; more</b></p><p id=two>Black tea</p>\
                <script>Document.prototype.getSelection = () => 'a trick'</script>";
    for is_apart in [true, false] {
        let Some(mut browser) = Browser::start(Names::Nothing).await else { return };
        let mut archive = MemoryArchive::new();
        archive.put(&url("http://e.com/shop?a=1&b=2"), at(10, 0), 200, HTML, page);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let origin = format!("http://replay.localhost:{port}");
        let options = ReplayOptions {
            origin: is_apart.then(|| origin.clone()),
            has_names_below: is_apart,
            interface: interface.strip_prefix("http://").and_then(|at| at.parse().ok()),
            ..ReplayOptions::default()
        };
        assert!(options.interface.is_some(), "{interface}");
        let replay = router(Arc::new(archive), options);
        tokio::spawn(async move { axum::serve(listener, replay).await });
        let origin = if is_apart { origin } else { format!("http://127.0.0.1:{port}") };
        browser.open(&format!("{origin}/web/20240115000000/http://e.com/shop?a=1&b=2")).await;
        let link = match is_apart {
            true => "document.querySelector('nenrin-banner').shadowRoot.querySelector('.watch')",
            false => "document.querySelector('.watch')",
        };
        browser.wait(300).await;
        let is_hidden = format!("{link}.getBoundingClientRect().width === 0");
        browser.until(&is_hidden).await;
        // In the frame, the paragraph is in the same place of the window, below the bar.
        let top = match is_apart {
            true => 0.0,
            false => browser
                .eval("document.querySelector('iframe').getBoundingClientRect().y")
                .await
                .as_f64()
                .unwrap(),
        };
        press(&mut browser, (80.0, top + 50.0), 3).await;
        browser.until(&format!("{link}.getBoundingClientRect().width > 20")).await;
        // Two of the three clicks select a word, and the link follows each selection.
        browser.until(&format!("{link}.getAttribute('href').endsWith('more')")).await;
        let place = middle(&mut browser, link).await;
        press(&mut browser, place, 1).await;
        browser.until("location.pathname === '/watches/new'").await;
        assert_eq!(browser.eval("location.origin").await, json!(interface));
        let field = |name: &str| format!("new URLSearchParams(location.search).get('{name}')");
        assert_eq!(browser.eval(&field("url")).await, json!("http://e.com/shop?a=1&b=2"));
        assert_eq!(browser.eval(&field("text")).await, json!("Green tea: 9 € & more"));
    }
}
