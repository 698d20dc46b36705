//! Requests from programs: Memento, the CDX API, spans and differences.

#![allow(clippy::unwrap_used, reason = "helpers of tests, which may panic")]

use crate::support;

use nenrin_replay::MemoryArchive;
use serde_json::{Value, json};
use support::{HTML, ask, at, served, url};

const PAGE: &str = "http://e.com/p";

fn archive() -> MemoryArchive {
    let mut archive = MemoryArchive::new();
    for (day, body) in [(10, "<p>one</p>\n<p>same</p>"), (20, "<p>two</p>\n<p>same</p>"), (30, "x")]
    {
        archive.put(&url(PAGE), at(day, 0), 200, HTML, body);
    }
    archive.put(&url("http://e.com/p/below.png"), at(11, 0), 404, "Content-Type: image/png", "no");
    archive.put(&url("http://sub.e.com/"), at(12, 0), 200, HTML, "sub");
    archive.put(&url("http://e.com:8080/"), at(12, 0), 200, HTML, "port");
    archive.put(&url("http://elsewhere.com/"), at(12, 0), 200, HTML, "else");
    archive
}

#[test]
fn the_gate_leads_to_the_version_for_a_date() {
    let router = served(archive());
    let asked = [("accept-datetime", "Thu, 25 Jan 2024 00:00:00 GMT"), ("host", "replay.test")];
    let answer = ask(&router, &format!("/web/{PAGE}"), &asked);
    assert_eq!(answer.status, 302);
    assert_eq!(answer.header("location"), format!("/web/20240120000000/{PAGE}"));
    assert_eq!(answer.header("vary"), "accept-datetime");
    let link = answer.header("link");
    assert!(link.contains(&format!("<{PAGE}>; rel=\"original\"")), "{link}");
    assert!(link.contains(&format!("<http://replay.test/web/20240110000000/{PAGE}>; rel=\"first prev memento\"; datetime=\"Wed, 10 Jan 2024 00:00:00 GMT\"")), "{link}");
    assert!(link.contains("rel=\"next last memento\""), "{link}");
    let bad = ask(&router, &format!("/web/{PAGE}"), &[("accept-datetime", "yesterday")]);
    assert_eq!(bad.status, 400);
}

#[test]
fn the_gate_leads_to_the_first_version_before_all_and_to_the_last_after_all() {
    let router = served(archive());
    for (asked, expected) in [
        ("Mon, 01 Jan 2001 00:00:00 GMT", "20240110000000"),
        ("Wed, 10 Jan 2024 00:00:00 GMT", "20240110000000"),
        ("Fri, 19 Jan 2024 23:59:59 GMT", "20240110000000"),
        ("Sat, 20 Jan 2024 00:00:00 GMT", "20240120000000"),
        ("Fri, 01 Jan 2100 00:00:00 GMT", "20240130000000"),
    ] {
        let answer = ask(&router, &format!("/web/{PAGE}"), &[("accept-datetime", asked)]);
        assert_eq!(answer.status, 302, "{asked}");
        assert_eq!(answer.header("location"), format!("/web/{expected}/{PAGE}"), "{asked}");
    }
}

#[test]
fn a_version_names_the_versions_around_it_once_each() {
    let router = served(archive());
    for (date, expected) in [
        ("20240110000000", ["first memento", "next memento", "last memento"].as_slice()),
        ("20240120000000", &["first prev memento", "memento", "next last memento"]),
        ("20240130000000", &["first memento", "prev memento", "last memento"]),
    ] {
        let answer = ask(&router, &format!("/web/{date}/{PAGE}"), &[]);
        assert_eq!(answer.status, 200);
        let link = answer.header("link");
        let rels: Vec<&str> = link
            .split("rel=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .filter(|rel| rel.ends_with("memento"))
            .collect();
        assert_eq!(rels, expected, "{link}");
    }
}

#[test]
fn a_version_names_its_date_its_gate_and_its_map() {
    let answer = ask(&served(archive()), &format!("/web/20240125000000mp_/{PAGE}"), &[]);
    assert_eq!(answer.header("memento-datetime"), "Sat, 20 Jan 2024 00:00:00 GMT");
    let link = answer.header("link");
    for part in [
        &format!("<{PAGE}>; rel=\"original\""),
        &format!("<http://localhost/web/{PAGE}>; rel=\"timegate\""),
        &format!("<http://localhost/web/timemap/link/{PAGE}>; rel=\"timemap\""),
        &format!("<http://localhost/web/20240120000000/{PAGE}>; rel=\"memento\""),
    ] {
        assert!(link.contains(part.as_str()), "{part} in {link}");
    }
}

#[test]
fn maps_list_every_version() {
    let router = served(archive());
    let map = ask(&router, &format!("/web/timemap/link/{PAGE}"), &[]);
    assert_eq!(map.header("content-type"), "application/link-format");
    let text = map.text();
    assert_eq!(text.matches("memento\"").count(), 3);
    assert!(
        text.contains("from=\"Wed, 10 Jan 2024 00:00:00 GMT\"; until=\"Tue, 30 Jan 2024"),
        "{text}"
    );
    let json: Value =
        serde_json::from_str(&ask(&router, &format!("/web/timemap/json/{PAGE}"), &[]).text())
            .unwrap();
    assert_eq!(json["mementos"]["list"].as_array().unwrap().len(), 3);
    assert_eq!(json["mementos"]["last"]["datetime"], "2024-01-30T00:00:00Z");
    let cdxj = ask(&router, &format!("/web/timemap/cdxj/{PAGE}"), &[]).text();
    assert!(cdxj.starts_with("com,e)/p 20240110000000 {"), "{cdxj}");
    assert_eq!(ask(&router, "/web/timemap/link/http://none.org/", &[]).status, 404);
    assert_eq!(ask(&router, &format!("/web/timemap/xml/{PAGE}"), &[]).status, 400);
}

fn cdx(query: &str) -> Vec<Value> {
    let text = ask(&served(archive()), &format!("/web/cdx?output=json&{query}"), &[]).text();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn stamps(query: &str) -> Vec<String> {
    cdx(query).iter().map(|line| line["timestamp"].as_str().unwrap()[..8].to_owned()).collect()
}

#[test]
fn the_index_answers_as_other_archives_do() {
    let all = cdx("url=http://e.com/p");
    assert_eq!(all.len(), 3);
    assert_eq!(all[0]["urlkey"], "com,e)/p");
    assert_eq!(all[0]["status"], json!("200"));
    assert_eq!(all[0]["mime"], "text/html");
    assert!(!all[0]["digest"].as_str().unwrap().is_empty());
    for (query, expected) in [
        ("url=e.com/p&from=20240115", vec!["20240120", "20240130"]),
        ("url=e.com/p&to=2024012", vec!["20240110", "20240120"]),
        ("url=e.com/p&limit=1", vec!["20240110"]),
        ("url=e.com/p&sort=reverse&limit=2", vec!["20240130", "20240120"]),
        ("url=e.com/p&closest=20240121&limit=2", vec!["20240120", "20240130"]),
        ("url=e.com/p&closest=20240121&sort=closest&limit=1", vec!["20240120"]),
        ("url=e.com/p&sort=reverse&from=20240115&to=20240125", vec!["20240120"]),
        ("url=e.com/p&from=20240111&to=20240119", vec![]),
        ("url=e.com/p&page=0&pageSize=2", vec!["20240110", "20240120"]),
        ("url=e.com/p&page=1&pageSize=2", vec!["20240130"]),
        ("url=e.com/p&page=2&pageSize=2", vec![]),
        ("url=e.com/p&page=0&pageSize=2&sort=reverse", vec!["20240130", "20240120"]),
        (
            "url=e.com/p&matchType=exact&filter=mime:html&filter=!=timestamp:20240120000000",
            vec!["20240110", "20240130"],
        ),
        ("url=e.com/p*&filter=!status:200", vec!["20240111"]),
        (
            "url=e.com/p&matchType=prefix&filter=~mime:text/.*&limit=9",
            vec!["20240110", "20240120", "20240130"],
        ),
        ("url=http://e.com/p/*", vec!["20240111"]),
        ("url=e.com&matchType=host&filter==status:404", vec!["20240111"]),
    ] {
        assert_eq!(stamps(query), expected, "{query}");
    }
    let urls = |query: &str| {
        let mut urls: Vec<String> =
            cdx(query).iter().map(|l| l["url"].as_str().unwrap().to_owned()).collect();
        urls.dedup();
        urls
    };
    let mut domain = urls("url=*.e.com");
    domain.sort();
    assert_eq!(
        domain,
        ["http://e.com/p", "http://e.com/p/below.png", "http://e.com:8080/", "http://sub.e.com/"]
    );
    let mut named = urls("url=e.com&matchType=domain");
    named.sort();
    assert_eq!(named, domain);
    assert_eq!(urls("url=e.com/p&matchType=exact"), ["http://e.com/p"]);
    assert_eq!(
        urls("url=e.com/p&matchType=prefix"),
        ["http://e.com/p", "http://e.com/p/below.png"]
    );
    let mut host = urls("url=e.com&matchType=host");
    host.sort();
    assert_eq!(host, ["http://e.com/p", "http://e.com/p/below.png", "http://e.com:8080/"]);
}

#[test]
fn the_index_collapses_cuts_and_resumes() {
    for (query, expected) in [
        ("url=e.com/p&offset=1", vec!["20240120", "20240130"]),
        ("url=e.com/p&offset=1&limit=1", vec!["20240120"]),
        ("url=e.com/p&offset=9", vec![]),
        ("url=e.com/p&limit=-1", vec!["20240130"]),
        ("url=e.com/p&limit=-2", vec!["20240120", "20240130"]),
        ("url=e.com/p&limit=-9", vec!["20240110", "20240120", "20240130"]),
        ("url=e.com/p&limit=-2&sort=reverse", vec!["20240120", "20240110"]),
        ("url=e.com/p&collapse=timestamp:6", vec!["20240110"]),
        ("url=e.com/p&collapse=timestamp:8", vec!["20240110", "20240120", "20240130"]),
        ("url=e.com/p&collapseTime=6", vec!["20240110"]),
        ("url=e.com/p&collapse=urlkey&sort=reverse", vec!["20240130"]),
        ("url=e.com/p*&collapse=urlkey", vec!["20240110", "20240111"]),
        ("url=e.com/p*&collapse=statuscode&limit=1", vec!["20240110"]),
        ("url=e.com/p*&collapse=urlkey&offset=1", vec!["20240111"]),
    ] {
        assert_eq!(stamps(query), expected, "{query}");
    }
    let line = &cdx("url=e.com/p&limit=1&resolveRevisits=true")[0];
    assert_eq!((&line["orig.offset"], &line["orig.filename"]), (&json!("-"), &json!("-")));

    let router = served(archive());
    let mut seen = Vec::new();
    let mut resume = String::new();
    for _ in 0..10 {
        let path = format!(
            "/cdx?url=*.e.com&output=text&fl=url,timestamp&limit=2&showResumeKey=true{resume}"
        );
        let text = ask(&router, &path, &[]).text();
        let (lines, key) = text.split_once("\n\n").unwrap_or((&text, ""));
        seen.extend(lines.lines().map(str::to_owned));
        if key.is_empty() {
            break;
        }
        resume = format!("&resumeKey={}", key.trim());
    }
    let all = ask(&router, "/cdx?url=*.e.com&output=text&fl=url,timestamp", &[]).text();
    assert_eq!(seen, all.lines().collect::<Vec<_>>());
    assert_eq!(seen.len(), 6);
}

#[test]
fn what_the_index_does_not_understand_is_refused_in_the_form_asked_for() {
    let router = served(archive());
    for bad in [
        "matchType=range",
        "collapse=shape",
        "collapse=timestamp:x",
        "collapse=timestamp:0",
        "offset=-1",
        "limit=x",
        "resumeKey=x",
        "showResumeKey=true&sort=reverse",
        "showResumeKey=true&limit=-3",
        "showDupeCount=true",
        "showPagedIndex=true",
        "fastLatest=true",
    ] {
        let answer = ask(&router, &format!("/cdx?url=e.com/p&{bad}"), &[]);
        assert_eq!(answer.status, 400, "{bad}");
        assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
        assert!(answer.text().starts_with("the parameter `"), "{bad}");
        let answer = ask(&router, &format!("/cdx?url=e.com/p&output=json&{bad}"), &[]);
        assert_eq!((answer.status, answer.header("content-type")), (400, "application/json"));
        let json: Value = serde_json::from_str(&answer.text()).unwrap();
        assert!(json["error"].as_str().unwrap().starts_with("the parameter `"), "{bad}");
    }
}

#[test]
fn the_index_is_written_in_other_forms() {
    let router = served(archive());
    let text = |query: &str| ask(&router, &format!("/cdx?url=e.com/p&{query}"), &[]).text();
    assert_eq!(text("output=text&fl=timestamp,status&limit=1"), "20240110000000 200\n");
    assert!(text("limit=1").starts_with("com,e)/p 20240110000000 {\"digest\":"));
    assert_eq!(
        text("output=text&fields=status,mime,url&limit=1"),
        "200 text/html http://e.com/p\n"
    );
    assert_eq!(
        text("output=json&fl=url,status&limit=1"),
        "{\"status\":\"200\",\"url\":\"http://e.com/p\"}\n"
    );
    assert_eq!(
        text("output=cdxj&fl=status&limit=1"),
        "com,e)/p 20240110000000 {\"status\":\"200\"}\n"
    );
    assert_eq!(text("output=link&sort=reverse"), text("output=link"));
    assert_eq!(text("output=link").matches("memento\"").count(), 3);
    assert_eq!(text("showNumPages=true&pageSize=2"), "{\"blocks\":3,\"pageSize\":2,\"pages\":2}\n");
    for bad in
        ["output=xml", "matchType=all", "from=x", "limit=-x", "filter=~url:(", "sort=closest"]
    {
        let answer = ask(&router, &format!("/cdx?url=e.com/p&{bad}"), &[]);
        assert_eq!(answer.status, 400, "{bad}");
    }
    assert_eq!(ask(&router, "/cdx", &[]).status, 400);
}

#[test]
fn the_span_of_a_page_says_how_far_its_parts_are_off() {
    let mut archive = MemoryArchive::new();
    let page = "<img src=near.png><img src=far.png><img src=none.png>";
    archive.put(&url("http://e.com/"), at(10, 0), 200, HTML, page);
    archive.put(&url("http://e.com/near.png"), at(9, 0), 200, "Content-Type: image/png", "n");
    archive.seen(&url("http://e.com/near.png"), at(40, 0));
    archive.put(&url("http://e.com/far.png"), at(100, 0), 200, "Content-Type: image/png", "f");
    let answer = ask(&served(archive), "/_nenrin/span/20240110000000/http://e.com/", &[]);
    let span: Value = serde_json::from_str(&answer.text()).unwrap();
    assert_eq!(
        (&span["parts"], &span["missing"], &span["wide"]),
        (&json!(3), &json!(1), &json!(true))
    );
    assert_eq!(span["off_s"], json!(90 * 86_400));
    assert_eq!(span["text"], "3 images and styles, some up to 90 days from this date, 1 missing");
}

#[test]
fn differences_are_shown_as_text_by_blocks_and_as_rendered() {
    let router = served(archive());
    let text = ask(&router, &format!("/diff/20240110/20240120/{PAGE}"), &[]).text();
    assert!(text.contains("<del>one</del>") && text.contains("<ins>two</ins>"), "{text}");
    assert!(text.contains("1 blocks (11 bytes) are the same"), "{text}");
    let japanese = [("accept-language", "ja,en;q=0.5")];
    let text = ask(&router, &format!("/diff/20240110/20240120/{PAGE}"), &japanese).text();
    assert!(text.contains("<html lang=\"ja\">") && text.contains("変更点"), "{text}");
    let sides = ask(&router, &format!("/diff/side/20240110/20240120/{PAGE}"), &[]).text();
    assert!(sides.contains(&format!("src=\"/diff/old/20240110000000/20240120000000/{PAGE}\"")));
    let mut archive = MemoryArchive::new();
    let page = |text: &str| {
        format!("<html><head></head><body><p>same<p>{text}<a href='/x'>l</a></body></html>")
    };
    archive.put(&url(PAGE), at(10, 0), 200, HTML, page("one"));
    archive.put(&url(PAGE), at(20, 0), 200, HTML, page("two"));
    let router = served(archive);
    let new = ask(&router, &format!("/diff/new/20240110/20240120/{PAGE}"), &[]).text();
    assert!(new.contains(">two</nenrin-mark>") && new.contains("<p>same<p>"), "{new}");
    assert!(new.contains("href='/web/20240120000000if_/http://e.com/x'"), "{new}");
    assert_eq!(ask(&router, "/diff/20240110/20240120/http://none.org/", &[]).status, 404);
    assert_eq!(ask(&router, &format!("/diff/x/20240120/{PAGE}"), &[]).status, 400);
}
