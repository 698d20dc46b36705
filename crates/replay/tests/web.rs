//! The router without sockets: addresses, dates, versions, answers.

use crate::support;

use nenrin_replay::MemoryArchive;
use support::{HTML, ask, ask_by, at, served, url};

const PAGE: &str = "http://e.com/dir/page.html";

fn archive() -> MemoryArchive {
    let mut archive = MemoryArchive::new();
    archive.put(
        &url(PAGE),
        at(10, 0),
        200,
        HTML,
        "<html><head></head><body>one <a href='/x'>x</a></body></html>",
    );
    archive.put(&url(PAGE), at(20, 0), 200, HTML, "<html><head></head><body>two</body></html>");
    archive.put(
        &url("http://e.com/s.css"),
        at(10, 1),
        200,
        "Content-Type: text/css",
        "a{b:url(/i.png)}",
    );
    archive.put(
        &url("http://e.com/i.png"),
        at(10, 2),
        200,
        "Content-Type: image/png",
        "0123456789",
    );
    archive
}

#[test]
fn a_full_date_shows_the_version_as_of_it() {
    let router = served(archive());
    let answer = ask(&router, &format!("/web/20240115000000/{PAGE}"), &[]);
    assert_eq!(answer.status, 200);
    assert!(answer.text().contains("one <a href='/web/20240115000000/http://e.com/x'>"));
    assert_eq!(answer.header("memento-datetime"), "Wed, 10 Jan 2024 00:00:00 GMT");
    assert_eq!(answer.header("content-location"), format!("/web/20240110000000/{PAGE}"));
    assert_eq!(answer.header("content-type"), "text/html");
    assert!(ask(&router, &format!("/web/20240120000000/{PAGE}"), &[]).text().contains("two"));
    assert!(ask(&router, &format!("/web/20230101000000/{PAGE}"), &[]).text().contains("one"));
}

#[test]
fn a_short_date_leads_to_the_exact_date_of_its_version() {
    let router = served(archive());
    for (date, expected) in
        [("2024", "20240120000000"), ("20240110", "20240110000000"), ("20240115", "20240115235959")]
    {
        let answer = ask(&router, &format!("/web/{date}mp_/{PAGE}"), &[]);
        assert_eq!(answer.status, 302);
        assert_eq!(answer.header("location"), format!("/web/{expected}mp_/{PAGE}"));
    }
}

#[test]
fn no_date_leads_to_the_newest_version_as_of_when_it_was_last_seen() {
    let mut archive = archive();
    let answer = ask(&served(archive), &format!("/web/{PAGE}"), &[]);
    assert_eq!(answer.header("location"), format!("/web/20240120000000/{PAGE}"));
    archive = self::archive();
    archive.seen(&url(PAGE), at(50, 0));
    let answer = ask(&served(archive), "/web/e.com/dir/page.html", &[]);
    assert_eq!(answer.header("location"), format!("/web/20240219000000/{PAGE}"));
}

#[test]
fn addresses_that_are_almost_right_lead_to_the_right_one() {
    let router = served(archive());
    for text in [
        "http:/e.com/dir/page.html",
        "e.com/dir/page.html",
        "http%3A%2F%2Fe.com%2Fdir%2Fpage.html",
        "https://www.e.com/dir/page.html/",
        "HTTP://E.com/dir/PAGE.html",
    ] {
        let answer = ask(&router, &format!("/web/20240115000000/{text}"), &[]);
        assert_eq!(answer.status, 302, "{text}");
        assert_eq!(answer.header("location"), format!("/web/20240115000000/{PAGE}"), "{text}");
    }
}

#[test]
fn a_query_belongs_to_the_archived_url() {
    let mut archive = MemoryArchive::new();
    archive.put(&url("http://e.com/q?a=1&b=/x"), at(1, 0), 200, HTML, "with");
    archive.put(&url("http://e.com/q"), at(1, 0), 200, HTML, "without");
    let router = served(archive);
    assert!(
        ask(&router, "/web/20250101000000mp_/http://e.com/q?a=1&b=/x", &[]).text().contains("with")
    );
    assert!(ask(&router, "/web/20250101000000mp_/http://e.com/q", &[]).text().contains("without"));
}

#[test]
fn what_is_missing_is_said_with_404_and_what_is_there() {
    let router = served(archive());
    let answer = ask(&router, "/web/20240115000000/http://e.com/dir/none", &[]);
    assert_eq!(answer.status, 404);
    assert!(answer.text().contains("/web/20240115000000/http://e.com/dir/page.html"));
    let part = ask(&router, "/web/20240115000000im_/http://e.com/none.png", &[]);
    assert_eq!((part.status, part.text().as_str()), (404, "not in the archive"));
    assert_eq!(ask(&router, "/web/20240115000000/http://other.org/", &[]).status, 404);
}

#[test]
fn an_archived_redirect_leads_into_the_archive() {
    let mut archive = archive();
    archive.put(&url("http://e.com/old"), at(5, 0), 301, "Location: dir/page.html#top", "");
    let answer = ask(&served(archive), "/web/20240115000000mp_/http://e.com/old", &[]);
    assert_eq!(answer.status, 301);
    assert_eq!(answer.header("location"), format!("/web/20240115000000mp_/{PAGE}#top"));
}

#[test]
fn identity_gives_the_exact_bytes() {
    let router = served(archive());
    let answer = ask(&router, &format!("/web/20240115000000id_/{PAGE}"), &[]);
    assert_eq!(answer.text(), "<html><head></head><body>one <a href='/x'>x</a></body></html>");
}

#[test]
fn the_banner_is_on_pages_and_not_in_frames() {
    let router = served(archive());
    let page = |m: &str, headers: &[(&str, &str)]| {
        ask(&router, &format!("/web/20240115000000{m}/{PAGE}"), headers).text()
    };
    assert!(page("", &[]).contains("<nenrin-banner"));
    assert!(page("", &[]).contains("2024-01-10 00:00:00"));
    for m in ["mp_", "if_", "fr_"] {
        assert!(!page(m, &[]).contains("<nenrin-banner"));
    }
    assert!(!page("", &[("sec-fetch-dest", "iframe")]).contains("<nenrin-banner"));
    assert!(page("mp_", &[]).contains("<script src=\"/_nenrin/client.js\""));
}

#[test]
fn style_sheets_are_rewritten() {
    let answer = ask(&served(archive()), "/web/20240115000000cs_/http://e.com/s.css", &[]);
    assert_eq!(answer.text(), "a{b:url(/web/20240115000000im_/http://e.com/i.png)}");
}

#[test]
fn a_wrong_type_does_not_make_a_document() {
    let mut archive = archive();
    archive.put(&url("http://e.com/f.woff"), at(10, 0), 200, HTML, "<a href='/x'>");
    let router = served(archive);
    for (m, destination) in
        [("", "font"), ("oe_", "font"), ("", "empty"), ("", "image"), ("", "script")]
    {
        let place = format!("/web/20240115000000{m}/http://e.com/f.woff");
        let answer = ask(&router, &place, &[("sec-fetch-dest", destination)]);
        assert_eq!(answer.text(), "<a href='/x'>", "{m} {destination}");
    }
    let object =
        ask(&router, "/web/20240115000000oe_/http://e.com/f.woff", &[("sec-fetch-dest", "object")]);
    assert!(object.text().contains("/web/20240115000000/http://e.com/x"));
}

#[test]
fn ranges_heads_and_conditions_are_answered() {
    let router = served(archive());
    let image = "/web/20240115000000im_/http://e.com/i.png";
    let whole = ask(&router, image, &[]);
    assert_eq!((whole.status, whole.text().as_str()), (200, "0123456789"));
    assert_eq!(whole.header("accept-ranges"), "bytes");
    let part = ask(&router, image, &[("range", "bytes=2-4")]);
    assert_eq!((part.status, part.text().as_str()), (206, "234"));
    assert_eq!(part.header("content-range"), "bytes 2-4/10");
    assert_eq!(ask(&router, image, &[("range", "bytes=10-")]).status, 416);
    let head = ask_by("HEAD", &router, image, &[]);
    assert_eq!((head.status, head.body.len(), head.header("content-length")), (200, 0, "10"));
    let etag = whole.header("etag").to_owned();
    let again = ask(&router, image, &[("if-none-match", &etag)]);
    assert_eq!((again.status, again.body.len()), (304, 0));
    let since = ask(&router, image, &[("if-modified-since", "Wed, 10 Jan 2024 02:00:00 GMT")]);
    assert_eq!(since.status, 304);
    let other = ask(&router, image, &[("range", "bytes=2-4"), ("if-range", "\"else\"")]);
    assert_eq!(other.status, 200);
}

#[test]
fn a_path_that_a_page_took_for_its_own_leads_back_into_the_archive() {
    let router = served(archive());
    let from = format!("http://replay.test/web/20240115000000/{PAGE}");
    let answer = ask(&router, "/i.png?x=1", &[("referer", &from)]);
    assert_eq!(answer.status, 307);
    assert_eq!(answer.header("location"), "/web/20240115000000/http://e.com/i.png?x=1");
    assert_eq!(ask(&router, "/i.png", &[]).status, 404);
}

#[test]
fn the_calendar_lists_versions_by_day() {
    let router = served(archive());
    let text = ask(&router, &format!("/web/*/{PAGE}"), &[]).text();
    assert!(text.contains("2 versions"));
    assert!(text.contains(&format!("href=\"/web/20240110000000/{PAGE}\"")));
    let list = ask(&router, "/web/*/http://e.com/*", &[]).text();
    assert!(list.contains("/web/*/http://e.com/s.css"));
    assert_eq!(ask(&router, "/web/*/http://e.com/none", &[]).status, 404);
}

#[test]
fn previous_and_next_lead_to_neighbours() {
    let router = served(archive());
    let next = ask(&router, &format!("/_nenrin/next/20240110000000/{PAGE}"), &[]);
    assert_eq!(next.header("location"), format!("/web/20240120000000/{PAGE}"));
    let previous = ask(&router, &format!("/_nenrin/previous/20240120000000/{PAGE}"), &[]);
    assert_eq!(previous.header("location"), format!("/web/20240110000000/{PAGE}"));
    let none = ask(&router, &format!("/_nenrin/previous/20240110000000/{PAGE}"), &[]);
    assert_eq!(none.status, 404);
}

#[test]
fn forms_that_send_data_are_refused() {
    let answer = ask_by("POST", &served(archive()), &format!("/web/20240115000000/{PAGE}"), &[]);
    assert_eq!(answer.status, 405);
    assert_eq!(answer.header("allow"), "GET, HEAD");
}

#[test]
fn a_directory_without_a_version_leads_to_its_index_file() {
    let mut archive = MemoryArchive::new();
    archive.put(&url("http://e.com/a/index.html"), at(10, 0), 200, HTML, "the file");
    let router = served(archive);
    let answer = ask(&router, "/web/20240115000000/http://e.com/a/", &[]);
    assert_eq!(answer.status, 302);
    assert_eq!(answer.header("location"), "/web/20240115000000/http://e.com/a/index.html");
    let newest = ask(&router, "/web/http://e.com/a/", &[]);
    assert_eq!(newest.header("location"), "/web/20240110000000/http://e.com/a/index.html");
    assert_eq!(ask(&router, "/web/2024/http://e.com/b/", &[]).status, 404);
}

#[test]
fn a_number_that_never_repeats_is_ignored_where_the_archive_shows_it() {
    let mut archive = MemoryArchive::new();
    let json = "Content-Type: application/json";
    for (address, body) in [
        ("http://e.com/d?p=1&t=100", "one"),
        ("http://e.com/d?p=1&t=200", "one"),
        ("http://e.com/d?p=2&t=300", "two"),
        ("http://e.com/d?p=2&t=400", "two"),
    ] {
        archive.put(&url(address), at(10, 0), 200, json, body);
    }
    let router = served(archive);
    let asked =
        |path: &str| ask(&router, &format!("/web/20240115000000oe_/http://e.com/d{path}"), &[]);
    let found = asked("?p=2&t=999");
    assert_eq!((found.status, found.text().as_str()), (200, "two"));
    assert_eq!(found.header("x-nenrin-ignored-parameters"), "t");
    assert_eq!(asked("?p=2&t=300").header("x-nenrin-ignored-parameters"), "");
    assert_eq!(asked("?p=3&t=300").status, 404, "this one altered answers");
    assert_eq!(asked("?t=300").status, 404);
}

#[test]
fn next_never_leads_back_to_the_same_version() {
    let mut archive = MemoryArchive::new();
    let (bare, www) = ("http://e.com/a", "http://www.e.com/a");
    archive.put(&url(www), at(10, 0), 200, HTML, "one");
    archive.put(&url(bare), at(11, 0), 301, &format!("Location: {www}"), "");
    archive.put(&url(bare), at(12, 0), 301, &format!("Location: {www}"), "");
    let router = served(archive);
    let next = ask(&router, &format!("/_nenrin/next/20240110000000/{www}"), &[]);
    assert_eq!(next.status, 404, "{}", next.header("location"));
    let span = ask(&router, &format!("/_nenrin/span/20240115000000/{www}"), &[]);
    assert!(span.text().contains("\"next\":null"), "{}", span.text());
}

#[test]
fn a_page_outside_of_its_time_says_so() {
    let mut archive = archive();
    archive.gone(&url(PAGE), at(30, 0));
    let router = served(archive);
    let said = |date: &str| {
        let span = ask(&router, &format!("/_nenrin/span/{date}/{PAGE}"), &[]).text();
        serde_json::from_str::<serde_json::Value>(&span).unwrap()["warning"].clone()
    };
    assert_eq!(said("20240101000000"), "first seen 2024-01-10");
    assert_eq!(said("20240125000000"), serde_json::Value::Null);
    assert_eq!(said("20240301000000"), "gone since 2024-01-30");
    let early = ask(&router, &format!("/web/20240101000000/{PAGE}"), &[]).text();
    assert!(early.contains("class=\"warning\">first seen 2024-01-10"), "{early}");
    let parts = ask(&router, &format!("/_nenrin/parts/20240115000000/{PAGE}"), &[]);
    assert_eq!(parts.status, 200);
}

#[test]
fn on_the_shared_origin_browsers_see_pages_in_a_frame_of_ours() {
    let router = served(archive());
    let place = format!("/web/20240115000000/{PAGE}");
    let page = ask(&router, &place, &[("sec-fetch-dest", "document")]);
    assert_eq!(page.status, 200);
    let inside = format!("src=\"/web/20240115000000if_/{PAGE}\"");
    assert!(page.text().contains(&inside), "{}", page.text());
    assert!(page.header("content-security-policy").contains("frame-src 'self'"));
    let framed = format!("/web/20240115000000if_/{PAGE}");
    let framed = ask(&router, &framed, &[("sec-fetch-dest", "iframe")]);
    assert!(framed.text().contains("one <a href"));
    assert!(!framed.header("content-security-policy").contains("allow-same-origin"));
    let image = "/web/20240115000000/http://e.com/i.png";
    assert_eq!(ask(&router, image, &[("sec-fetch-dest", "document")]).text(), "0123456789");
}
