//! A site that puts scripts wherever it can: in the interface and on replay's own pages they are
//! text.

use nenrin_browser::{Browser, Names};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::support::{Nenrin, Reply, Running, Site};

const SCRIPT: &str = "\"'><script>alert('in')</script><img src=x onerror=alert('by')>";

fn hostile_site() -> Site {
    Site::serve(|request| {
        match request.path.split('?').next().unwrap_or_default() {
        "/robots.txt" => Reply::text(format!(
            "User-agent: {SCRIPT}\nDisallow: /{SCRIPT}\nUser-agent: *\nDisallow: /no\n\
             Sitemap: http://{}/sitemap.xml?{SCRIPT}\n",
            request.headers["host"]
        )),
        "/sitemap.xml" => Reply::new(
            "200 OK",
            "application/xml",
            format!("<urlset><url><loc>javascript:alert(1)</loc><lastmod>{SCRIPT}</lastmod></url></urlset>"),
        ),
        "/feed" => Reply::new(
            "200 OK",
            "application/atom+xml",
            format!("<feed><entry><title>{SCRIPT}</title><link href='javascript:alert(1)'/></entry></feed>"),
        ),
        "/" => Reply::new(
            "200 OK",
            "text/html; charset=<script>alert('type')</script>",
            format!(
                "<title>{SCRIPT}</title><link rel=alternate type='application/atom+xml' href='/feed'>\
                 <a href='/a%22%3E<script>alert(2)</script>?q=<img src=x onerror=alert(3)>'>{SCRIPT}</a>\
                 <a href='/no/{SCRIPT}'>x</a><a href='javascript:alert(4)'>y</a>\
                 <a href='/fails%3Cscript%3E'>z</a>"
            ),
        )
        .header("ETag", "\"<script>alert('etag')</script>\"")
        .header("X-Title", SCRIPT),
        path if path.starts_with("/fails") => {
            Reply::new("503 <script>alert('status')</script>", "text/html", SCRIPT)
        }
        path => Reply::html(format!("<title>{SCRIPT}</title>{path}")),
    }
    })
}

fn start(nenrin: &Nenrin) -> (Running, String, String) {
    let anywhere = ["run", "--json", "--interface", "127.0.0.1:0", "--replay", "127.0.0.1:0"];
    let running = nenrin.start(&anywhere);
    let addresses = running.first_line();
    let of = |name: &str| addresses[name].as_str().unwrap().to_owned();
    let replay = of("replay").replace("127.0.0.1", "replay.localhost");
    (running, of("interface"), replay)
}

#[test]
fn a_hostile_site_shows_nothing_but_text() {
    let runtime = Runtime::new().unwrap();
    let Some(mut browser) = runtime.block_on(Browser::start(Names::Nothing)) else { return };
    let site = hostile_site();
    let nenrin = Nenrin::new().with_config("[politeness]\nrest_first = \"300ms\"\n");
    let ran = nenrin.collect(&[&site.top()]);
    assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.said());
    let pages: Vec<String> = nenrin.last_visits().into_keys().collect();
    assert!(pages.len() >= 4, "{pages:?}");
    let (_running, interface, replay) = start(&nenrin);
    let mut places: Vec<String> =
        ["", "sites/1", "sites/1/edit", "sites/1/pages", "sites/1/schedule", "visits"]
            .iter()
            .map(|path| format!("{interface}{path}"))
            .collect();
    places.push(format!("{interface}sites/1/pages?list=1"));
    places.push(format!("{replay}web/*/{}*", site.top()));
    for page in &pages {
        let escaped: String = page.bytes().map(|byte| format!("%{byte:02X}")).collect();
        places.push(format!("{interface}page?url={escaped}"));
        places.push(format!("{replay}web/*/{page}"));
        places.push(format!("{replay}diff/2020/2030/{page}"));
    }
    for place in &places {
        runtime.block_on(async {
            browser.events.clear();
            browser.open(place).await;
            let foreign = "[...document.scripts].filter(s => !s.src.startsWith(location.origin)).length \
                + document.querySelectorAll('img, [onerror], a[href^=\"javascript:\"]').length";
            assert_eq!(browser.eval(foreign).await, json!(0), "{place}");
            let shown = browser.text().await;
            assert!(!shown.is_empty(), "{place}");
            let dialogs = browser
                .events
                .iter()
                .filter(|event| event["method"] == "Page.javascriptDialogOpening")
                .count();
            assert_eq!(dialogs, 0, "{place}");
        });
    }
    // The first look before a site is added says what robots.txt and the page hold.
    runtime.block_on(async {
        browser.open(&format!("{interface}sites/new")).await;
        browser.fill("#url", &site.top()).await;
        browser.eval("document.querySelector('details.fold').open = true").await;
        browser.eval("document.querySelector('[name=allow_private]').click()").await;
        browser.follow("button[formaction]").await;
        assert!(browser.text().await.contains("sitemap.xml"), "{}", browser.text().await);
        let foreign =
            "document.querySelectorAll('img, [onerror]').length + document.scripts.length";
        assert_eq!(browser.eval(foreign).await, json!(1));
    });
}
