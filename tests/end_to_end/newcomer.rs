//! A newcomer with an empty archive, who reads no documentation.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use nenrin_browser::{Browser, Names};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::support::{Nenrin, Reply, Site};

/// Reloads until the page says so.
async fn reload_until(browser: &mut Browser, place: &str, words: &str) {
    for _ in 0..60 {
        browser.open(place).await;
        if browser.text().await.contains(words) {
            return;
        }
        browser.wait(500).await;
    }
    panic!("{place} never said {words:?}: {}", browser.text().await);
}

#[test]
fn from_nothing_to_a_diff_and_a_replay_in_two_minutes() {
    let runtime = Runtime::new().unwrap();
    let Some(mut browser) = runtime.block_on(Browser::start(Names::Nothing)) else { return };
    let edition = Arc::new(AtomicU32::new(1));
    let shown = edition.clone();
    let site = Site::serve(move |request| match request.path.as_str() {
        "/" => Reply::html(format!(
            "<html><title>Rings</title><body><p>Edition {}</p><a href='/inner'>more</a></body></html>",
            shown.load(Ordering::SeqCst)
        )),
        "/inner" => Reply::html("<html><body>the inner page</body></html>"),
        _ => Reply::status("404 Not Found"),
    });
    let nenrin = Nenrin::new();
    let running =
        nenrin.start(&["run", "--json", "--interface", "127.0.0.1:0", "--replay", "127.0.0.1:0"]);
    let interface = running.first_line()["interface"].as_str().unwrap().to_owned();
    let began = Instant::now();
    runtime.block_on(async {
        browser.open(&interface).await;
        assert!(browser.text().await.contains("Welcome to Nenrin"));
        browser.fill("#url", &site.top()).await;
        browser.press("Enter", 13, "\r").await;
        browser.until("document.querySelector('form.sheet') && document.readyState === 'complete'").await;
        browser.follow("form.sheet button.primary").await;
        // A site of one's own network needs leave: the form says so and where.
        browser.until("document.querySelector('#allow_private-error')?.checkVisibility()").await;
        browser.eval("document.querySelector('#allow_private').click()").await;
        browser.follow("form.sheet button.primary").await;
        browser.until("location.pathname === '/sites/1' && document.readyState === 'complete'").await;
        assert!(browser.text().await.contains("collecting has begun"));
        let place = format!("{interface}sites/1");
        reload_until(&mut browser, &place, "Open as of this date").await;

        edition.store(2, Ordering::SeqCst);
        browser.follow("form[action$='/collect'] button").await;
        reload_until(&mut browser, &place, "Versions of the top page").await;
        browser.follow("a[href^='/page?url=']").await;
        let versions = browser.eval("location.href").await.as_str().unwrap().to_owned();
        reload_until(&mut browser, &versions, "what changed").await;

        browser.follow("td a[href*='/diff/']").await;
        browser.until("document.body.innerText.includes('Edition 2')").await;
        let diff = browser.text().await;
        assert!(diff.contains("Edition 1"), "{diff}");
        browser.open(&versions).await;
        browser.follow("tbody tr:last-child td a").await;
        let replayed = "document.body.innerText + [...document.querySelectorAll('iframe')].map(f => f.contentDocument?.body?.innerText ?? '').join()";
        let text = browser.eval(replayed).await;
        assert!(text.as_str().unwrap().contains("Edition 1"), "{text}");
        assert_ne!(browser.eval("location.origin + '/'").await, json!(interface));
    });
    assert!(began.elapsed() < Duration::from_secs(120), "it took {:?}", began.elapsed());
    eprintln!("from nothing to a replay: {:?}", began.elapsed());
}
