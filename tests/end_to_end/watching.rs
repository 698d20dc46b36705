//! Watches, pages as one file, patterns and headers: from the command line to the receiver.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use crate::support::{Nenrin, Reply, Site, until};

#[test]
fn a_watch_is_evaluated_on_every_new_version_and_reported() {
    let price = Arc::new(AtomicU32::new(9));
    let shown = price.clone();
    let site = Site::serve(move |request| match request.path.as_str() {
        "/" => Reply::html(format!("<p class=price>{} EUR</p>", shown.load(Ordering::SeqCst))),
        _ => Reply::status("404 Not Found"),
    });
    let hook = Site::serve(|_| Reply::text("thanks").and_close());
    let nenrin = Nenrin::new();
    let top = site.top();
    let add = ["site", "add", &top, "--allow-private", "--delay", "0s", "--period", "3s"];
    nenrin.run(&add).expect_said(0, &["nenrin run"]);
    nenrin.run(&["watch", "list"]).expect_said(0, &["No watches yet", "nenrin watch add"]);
    nenrin.run(&["watch", "add", &top, "--selector", "p:hover"]).expect_said(2, &[":hover"]);
    nenrin
        .run(&["watch", "add", &top, "--selector", "p.price", "--below", "8", "--name", "Tea"])
        .expect_said(0, &["watch 1: Tea"]);
    nenrin.run(&["watch", "remove", "7"]).expect_said(2, &["there is no watch 7"]);
    let config = nenrin.file(
        "hooks.toml",
        &format!(
            "[[webhook]]\nurl = \"{}\"\nsecret = \"a secret of both sides\"\nallow_private = true\nevents = [\"watch\"]\n",
            hook.url("/hook")
        ),
    );
    let ports = ["--interface", "127.0.0.1:0", "--replay", "127.0.0.1:0"];
    let running = nenrin.start(&[&["--config", &config, "run"][..], &ports].concat());
    let found = |text: &str| {
        let listed = nenrin.run(&["watch", "list", "--json"]).expect(0);
        listed.document()["last"]["text"] == text
    };
    until("the first version to be seen", || found("9 EUR"));
    assert!(hook.requests().is_empty(), "nothing has changed yet");
    price.store(7, Ordering::SeqCst);
    until("the new version to be seen", || found("7 EUR"));
    until("the report", || !hook.requests().is_empty());
    assert!(hook.requests()[0].headers["x-nenrin-delivery"].starts_with("watch-1-"));
    running.signal("TERM");
    running.finish().expect(0);
    nenrin.run(&["watch", "remove", "1"]).expect(0);
}

#[test]
fn patterns_headers_names_and_tags_are_set_and_obeyed() {
    let site = Site::of_pages(&[
        ("/", Reply::html("<a href=/news/1>1</a><a href=/calendar/2>2</a>")),
        ("/news/1", Reply::html("<p>page</p>")),
        ("/calendar/2", Reply::html("<p>page</p>")),
    ]);
    let nenrin = Nenrin::new();
    let top = site.top();
    nenrin
        .run(&[
            "collect",
            &top,
            "--allow-private",
            "--exclude",
            "/calendar/*",
            "--header",
            "Accept-Language: ja",
            "--group",
            "Test",
            "--tags",
            "a,b",
        ])
        .expect(0);
    let asked = site.requests();
    let has = |path: &str| asked.iter().any(|request| request.path == path);
    assert!(has("/news/1") && !has("/calendar/2"), "{asked:?}");
    let news = asked.iter().find(|request| request.path == "/news/1").unwrap();
    assert_eq!(news.headers["accept-language"], "ja");
    nenrin.run(&["site", "rename", "1", "renamed"]).expect_said(0, &["renamed"]);
    let shown = nenrin.run(&["--json", "site", "show", "renamed"]).document();
    assert_eq!(shown["conditions"]["labels"]["tags"], serde_json::json!(["a", "b"]), "{shown}");
    nenrin.run(&["site", "set", "renamed", "--header", "Host: x"]).expect_said(2, &["Host"]);
}

#[test]
fn a_page_is_exported_as_one_file_and_shells_are_completed() {
    let site = Site::serve(|request| match request.path.as_str() {
        "/" => Reply::html("<link rel=stylesheet href=/s.css><script>bad()</script><p>hello</p>"),
        "/s.css" => Reply::new("200 OK", "text/css", "p{color:red}"),
        _ => Reply::status("404 Not Found"),
    });
    let nenrin = Nenrin::new();
    let top = site.top();
    nenrin.run(&["collect", &top, "--allow-private"]).expect(0);
    let file = nenrin.file("page.html", "");
    nenrin.run(&["export", "page", &top, "-o", &file]).expect_said(0, &["1 part in it, 0 missing"]);
    let page = std::fs::read_to_string(&file).unwrap();
    assert!(page.contains("data:text/css;charset=utf-8;base64,"), "{page}");
    assert!(!page.contains("bad()") && page.contains("hello"), "{page}");
    nenrin
        .run(&["export", "page", &top, "--at", "2001", "-o", &file])
        .expect_said(2, &["no version"]);
    nenrin.run(&["completions", "bash"]).expect_said(0, &["NENRIN_COMPLETE"]);
    nenrin.run(&["completions", "tcsh"]).expect_said(2, &["tcsh", "bash"]);
}
