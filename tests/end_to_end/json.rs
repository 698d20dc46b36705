//! `--json`: one document or one line for each item, and nothing else on standard output.

use serde_json::Value;

use crate::support::{Nenrin, Reply, Site};

fn archive() -> (Nenrin, Site) {
    let site = Site::of_pages(&[
        ("/", Reply::html("<a href=/a>a</a><a href=/none>none</a>")),
        ("/a", Reply::html("年輪")),
    ]);
    let nenrin = Nenrin::new();
    nenrin.collect(&[&site.top()]).expect(0);
    (nenrin, site)
}

#[track_caller]
fn assert_fields(value: &Value, fields: &[&str]) {
    for field in fields {
        assert!(value.get(field).is_some(), "`{field}` is not in {value}");
    }
}

#[test]
fn every_command_answers_in_json_alone() {
    let (nenrin, site) = archive();
    let (top, a) = (site.top(), site.url("/a"));
    let name = site.address.to_string();
    let round = nenrin.run(&["collect", "--json", &top]).expect(0);
    assert_fields(&round.document(), &["rounds", "problems", "interrupted", "elapsed_ms"]);
    for (args, fields) in [
        (&["site", "show", &name][..], &["site", "name", "conditions", "counts"][..]),
        (&["cat", &a], &["url", "at", "status", "response_head", "body", "digest"]),
        (&["verify"], &["sound", "packs", "versions", "damage"]),
        (&["verify", "--deep"], &["sound", "deep"]),
        (&["reindex"], &["versions", "adopted"]),
        (&["site", "pause", &name], &["paused"]),
        (&["site", "resume", &name], &["paused"]),
        (&["site", "set", &name, "--depth", "4"], &["conditions"]),
        (
            &["lab", "crawl", "--servers", "3", "--pages", "4", "--time", "30d"],
            &["fetches", "visits", "trace", "violations"],
        ),
    ] {
        let ran = nenrin.run(&[args, &["--json"]].concat()).expect(0);
        assert_fields(&ran.document(), fields);
        assert_eq!(ran.stderr, "", "{args:?}");
    }
    let config = nenrin.run(&["config", "--json"]).expect(0).document();
    assert_fields(&config[0], &["name", "value", "default", "reason"]);
    for (args, rows, fields) in [
        (&["site", "list"][..], 1, &["site", "name"][..]),
        (&["log"], 2, &["round", "site", "started", "ended", "visits", "counts"]),
        (&["log", "--site", &name], 2, &["round"]),
        (&["log", "--visits"], 6, &["at", "url", "outcome", "status", "elapsed_ms"]),
        (&["log", "--visits", "--limit", "4"], 4, &["at"]),
        (&["pages"], 3, &["url", "visits", "changes", "visited", "due", "why"]),
        (&["pages", "--limit", "2"], 2, &["url"]),
        (&["versions", &a], 1, &["url", "at", "timestamp", "version", "status", "mime", "bytes"]),
    ] {
        let lines = nenrin.run(&[args, &["--json"]].concat()).expect(0).lines();
        assert_eq!(lines.len(), rows, "{args:?}");
        lines.iter().for_each(|line| assert_fields(line, fields));
    }
}

#[test]
fn an_error_leaves_standard_output_empty() {
    let (nenrin, _) = archive();
    for args in [
        &["versions", "http://example.com/none"][..],
        &["cat", "http://example.com/none"],
        &["site", "show", "nobody"],
        &["collect", "ftp://example.com/"],
    ] {
        let ran = nenrin.run(&[args, &["--json"]].concat()).expect(2);
        assert_eq!(ran.text(), "", "{args:?}");
        assert!(ran.stderr.starts_with("nenrin: "), "{}", ran.stderr);
    }
}

#[test]
fn stats_tell_what_a_mirror_would_take_and_what_is_stored() {
    let (nenrin, site) = archive();
    nenrin.collect(&[&site.top()]).expect(0);
    let stats = nenrin.run(&["stats", "--json"]).expect(0).document();
    let number = |value: &Value, field: &str| {
        value[field].as_u64().unwrap_or_else(|| panic!("`{field}` is no number in {value}"))
    };
    for of in [&stats, &stats["sites"][0]] {
        assert_eq!(number(of, "pages"), 3);
        assert_eq!(number(of, "visits"), 6);
        assert_eq!(number(of, "versions"), 2);
        let each: u64 = ["/", "/a"].iter().map(|p| nenrin.cat(&site.url(p)).len() as u64).sum();
        assert_eq!(number(of, "unique_bytes"), each);
        assert_eq!(number(of, "raw_bytes"), 2 * each, "a mirror of every visit");
        let parts = ["html_bytes", "other_bytes", "index_bytes"].map(|part| number(of, part));
        assert_eq!(parts.iter().sum::<u64>(), number(of, "stored_bytes"));
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let (nenrin, _) = archive();
    let program = env!("CARGO_BIN_EXE_nenrin");
    let line =
        format!("'{program}' --archive '{}' pages --json | head -c 1", nenrin.archive().display());
    let shell = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
    assert_eq!(shell.stdout, b"{");
    assert_eq!(String::from_utf8_lossy(&shell.stderr), "");
}
