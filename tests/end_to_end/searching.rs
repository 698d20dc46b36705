//! Pages are found by their text, through the command line, the interface and the API.

use std::fs;

use nenrin_browser::{Browser, Names};

use crate::support::{Nenrin, get, until};

/// An archive of a folder at three dates.
fn archive() -> Nenrin {
    let nenrin = Nenrin::new();
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().to_str().unwrap();
    for (at, body) in [
        ("2024-01-01", "<title>Wood</title><p>Bark protects a tree.</p>"),
        (
            "2024-02-01",
            "<title>Wood</title><p>Bark protects a tree.</p><p>木の年輪の色 <b>rings</b></p>",
        ),
        (
            "2024-03-01",
            "<title>Wood</title><p>Every year another one.</p><p>Bark protects a tree.</p>",
        ),
    ] {
        fs::write(folder.path().join("wood.html"), body).unwrap();
        fs::write(
            folder.path().join("other.txt"),
            "plain words about oaks and other old trees of the forest",
        )
        .unwrap();
        nenrin.run(&["import", "mirror", from, "--url", "http://s.test/", "--at", at]).expect(0);
    }
    nenrin
}

#[test]
fn pages_are_found_by_their_text_and_the_time_it_was_there() {
    let nenrin = archive();
    let found =
        |args: &[&str]| nenrin.run(&[&["--json", "search"], args].concat()).expect(0).lines();
    let [ring] = found(&["年輪", "ring"]).try_into().unwrap();
    assert_eq!(ring["url"], "http://s.test/wood.html");
    assert_eq!((&ring["title"], &ring["site_name"]), (&"Wood".into(), &"s.test".into()));
    assert!(ring["from"].as_str().unwrap().starts_with("2024-02-01"), "{ring}");
    assert!(ring["to"].as_str().unwrap().starts_with("2024-03-01"), "{ring}");
    assert!(ring["snippet"].as_str().unwrap().contains("年輪の色 rings"), "{ring}");
    assert_eq!(found(&["ring", "--at", "2024-02-15"]).len(), 1);
    assert_eq!(found(&["ring", "--at", "2024-03-15"]).len(), 0);
    assert_eq!(found(&["bark", "--during", "2024-01..2024-02", "--site", "s.test"]).len(), 1);
    assert_eq!(found(&["ring", "--appeared", "2024-02"]).len(), 1);
    assert_eq!(found(&["ring", "--vanished", "2024-02"]).len(), 0);
    assert_eq!(found(&["oak", "type:text"]).len(), 1, "oaks in plain text");
    let text = nenrin.run(&["search", "bark"]).expect(0).text();
    assert!(text.contains("[Bark] protects") && text.contains("still there"), "{text}");
    nenrin
        .run(&["search", "bark", "type:video"])
        .expect_said(2, &["^^^^^", "is not a kind of page"]);
    nenrin.run(&["search", "bark", "--site", "nowhere"]).expect(2);
    let blame = nenrin.run(&["blame", "http://s.test/wood.html"]).expect(0).text();
    let line = |words: &str| blame.lines().find(|line| line.contains(words)).unwrap().to_owned();
    assert!(line("Bark").starts_with("2024-01-01"), "{blame}");
    assert!(line("Every year").starts_with("2024-03-01"), "{blame}");
    nenrin.run(&["blame", "http://s.test/wood.html", "--at", "2023"]).expect(2);
    let again = nenrin.run(&["--json", "reindex", "--search"]).expect(0).document();
    assert_eq!(again["pages"], 2);
    nenrin.run(&["reindex"]).expect(0);
    assert_eq!(found(&["ring"]).len(), 1, "built again after the packs were read");
    nenrin.assert_sound();
}

#[test]
fn the_interface_finds_what_was_collected_and_searching_can_be_switched_off() {
    let nenrin = archive();
    let ports = ["--interface", "127.0.0.1:0", "--replay", "127.0.0.1:0"];
    let running = nenrin.start(&[&["--json", "run"], &ports[..]].concat());
    let base = running.first_line()["interface"].as_str().unwrap().to_owned();
    let page = |path: &str| get(&format!("{base}{path}"));
    until("the index is there", || page("search?q=ring").2.contains("<mark>rings</mark>"));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    if let Some(mut browser) = runtime.block_on(Browser::start(Names::Nothing)) {
        runtime.block_on(async {
            browser.open(&base).await;
            browser.fill("#words", "rings").await;
            browser.press("Enter", 13, "\r").await;
            browser
                .until("location.pathname === '/search' && !!document.querySelector('mark')")
                .await;
            browser.open(&format!("{base}blame?url=http://s.test/wood.html")).await;
            assert!(browser.text().await.contains("Every year another one."));
        });
    }
    let (status, _, body) = page("search?q=%22bark+protects");
    assert!(status == 200 && body.contains("A quotation mark is not closed"), "{body}");
    assert!(page("search?q=s.test/wood.html").2.contains("This address is in the archive"));
    assert!(page("search.atom?q=bark").2.contains("<summary>Bark protects a tree.</summary>"));
    assert!(page("opensearch.xml").2.contains("/search?q={searchTerms}"));
    assert!(page("api/v1/search?q=bark").2.contains("\"url\":\"http://s.test/wood.html\""));
    assert_eq!(page("api/v1/search?q=").0, 400);
    assert!(page("blame?url=http://s.test/wood.html").2.contains("Every year another one."));
    assert!(page("").2.contains("role=\"search\""));
    running.kill();
    let off = nenrin.with_config("[search]\nindex = false\n");
    off.run(&["search", "bark"]).expect_said(2, &["switched off"]);
}
