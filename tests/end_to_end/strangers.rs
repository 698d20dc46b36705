//! More bad servers, with the settings that people get: nothing is made shorter or smaller for the
//! test. What must come of each is a line, as in the gallery.

use std::{fmt::Write as _, io::Write as _, time::Duration};

use crate::{
    gallery::{Kind, coded, gzip, hold, lines, raw, robots, server, top},
    support::{Reply, Request},
};

fn missing() -> Reply {
    Reply::status("404 Not Found")
}

fn brotli(text: &[u8]) -> Vec<u8> {
    let mut coded = Vec::new();
    let mut coder = brotli::CompressorWriter::new(&mut coded, 4096, 5, 24);
    coder.write_all(text).unwrap();
    drop(coder);
    coded
}

/// A gzip member whose head has an extra field and a name of this many bytes.
fn gzip_with_head(name_bytes: usize, text: &[u8]) -> Vec<u8> {
    let plain = gzip(text);
    let mut out = vec![0x1f, 0x8b, 8, 4 | 8, 0, 0, 0, 0, 0, 3, 0xff, 0xff];
    out.extend(vec![b'x'; 0xffff]);
    out.extend(vec![b'n'; name_bytes]);
    out.push(0);
    out.extend(&plain[10..]);
    out
}

/// Sends this without end.
fn endless(head: &str, part: impl Into<Vec<u8>>) -> Reply {
    Reply::raw(head.to_owned(), "").then(part, 1 << 20, Duration::ZERO)
}

fn codings() -> Vec<Kind> {
    let stacked = (0..10).fold(b"<p>deep".to_vec(), |body, _| gzip(&body));
    let many = ["gzip"; 50].join(", ");
    // A frame that asks for a window of 3.5 TB, and one block.
    let window = b"\x28\xb5\x2f\xfd\x00\xff\x01\x00\x00".to_vec();
    let members = gzip(b"").repeat(50_000);
    let skippable = b"\x50\x2a\x4d\x18\x00\x00\x00\x00".repeat(200_000);
    vec![
        top("has a brotli bomb of 2 GB", coded("br", brotli(&vec![0; 64 << 20])), "changed", &[]),
        top(
            "has a gzip head of 1 MB",
            coded("gzip", gzip_with_head(1 << 20, b"<p>x")),
            "changed",
            &[],
        ),
        top("has 50,000 gzip members", coded("gzip", members), "changed", &[]),
        top("wants a zstd window of terabytes", coded("zstd", window), "changed", &["zstd"]),
        top("has only zstd frames to skip", coded("zstd", skippable), "changed", &[]),
        top("names 50 codings", coded(&many, stacked.clone()), "changed", &["50"]),
        top("has ten codings", coded(&["gzip"; 10].join(","), stacked), "changed", &[]),
        top("has a coding of 8 KB", coded(&"x".repeat(8000), "x"), "changed", &[]),
    ]
}

fn heads() -> Vec<Kind> {
    let cookies: String =
        (0..150).map(|n| format!("Set-Cookie: c{n}={}\r\n", "x".repeat(300))).collect();
    let busy = "HTTP/1.1 429 Slow\r\nRetry-After: 1000000000000000000\r\nContent-Length: 0\r\n\r\n";
    let late =
        "Last-Modified: Fri, 31 Dec 9999 23:59:59 GMT\r\nDate: Fri, 31 Dec 9999 23:59:59 GMT";
    vec![
        top("sets 150 cookies", lines(cookies.trim_end()), "changed", &[]),
        top("wants patience for an age", raw(busy, ""), "failed", &["429"]),
        top("is from the year 9999", lines(late), "changed", &[]),
        top(
            "is from before time",
            lines("Last-Modified: Thu, 01 Jan 0000 00:00:00 GMT"),
            "changed",
            &[],
        ),
        top(
            "has a link header of 50 KB",
            lines(&format!("Link: {}", "<a>; rel=next,".repeat(3500))),
            "changed",
            &[],
        ),
        top(
            "has a link header of 1 MB",
            lines(&format!("Link: {}", "<a>;".repeat(250_000))),
            "failed",
            &["head"],
        ),
        top(
            "has a type of 50 KB",
            lines(&format!("Content-Type: text/html; a={}", "b".repeat(50_000))),
            "changed",
            &[],
        ),
        top(
            "has a tag of 50 KB",
            lines(&format!("ETag: \"{}\"", "e".repeat(50_000))),
            "changed",
            &[],
        ),
        top(
            "sends 103 without end",
            endless("", "HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n"),
            "failed",
            &[],
        ),
        top("continues without end", endless("", "HTTP/1.1 100 Continue\r\n\r\n"), "failed", &[]),
        top(
            "folds a header without end",
            endless("HTTP/1.1 200 OK\r\nX: a", "\r\n b"),
            "failed",
            &[],
        ),
        top(
            "has two lengths in two forms",
            raw("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: +5\r\n\r\n", "hello"),
            "failed",
            &[],
        ),
        top(
            "has trailers without end",
            endless(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n",
                "X: y\r\n",
            ),
            "failed",
            &[],
        ),
    ]
}

fn leading_on() -> Vec<Kind> {
    let longer = |request: &Request| format!("/?{}", "x".repeat(request.path.len()));
    vec![
        server(
            "redirects to an ever longer query",
            move |request| match request.path.as_str() {
                "/robots.txt" => missing(),
                _ => Reply::redirect(&longer(request)),
            },
            "changed",
            &[],
        ),
        top("redirects to its own fragment", Reply::redirect("/#again"), "failed", &["itself"]),
        top(
            "redirects to 60 KB",
            Reply::redirect(&format!("/{}", "r".repeat(60_000))),
            "failed",
            &["Location"],
        ),
        top("redirects into memory", Reply::redirect("data:text/html,x"), "failed", &["Location"]),
        server(
            "refreshes to an ever longer query",
            move |request| match request.path.as_str() {
                "/robots.txt" => missing(),
                _ => Reply::html(format!(
                    "<meta http-equiv=refresh content='0;url={}'>",
                    longer(request)
                )),
            },
            "changed",
            &[],
        ),
        robots(
            "sends robots.txt to the cloud",
            Reply::redirect("http://169.254.169.254/latest/"),
            "refused",
            &["169.254.169.254"],
        ),
        robots(
            "sends robots.txt to a port of ours",
            Reply::redirect("http://[::ffff:10.0.0.1]/robots.txt"),
            "refused",
            &[],
        ),
        server(
            "sends robots.txt round in circles",
            |request| match request.path.as_str() {
                "/" => Reply::html("open"),
                path => Reply::redirect(&format!("{path}x")),
            },
            "changed",
            &[],
        ),
        robots(
            "sends 3 GB of robots.txt",
            endless("HTTP/1.1 200 OK\r\nContent-Length: 3000000000\r\n\r\n", vec![b'\n'; 1 << 20]),
            "changed",
            &[],
        ),
        robots(
            "has 100,000 sitemaps and no patience",
            Reply::text(format!(
                "Crawl-delay: 1e308\nCrawl-delay: NaN\n{}",
                "Sitemap: /s.xml?a\nSitemap: ftp://x\n".repeat(50_000)
            )),
            "changed",
            &[],
        ),
        server(
            "has sitemaps of entities",
            |request| match request.path.as_str() {
                "/" => Reply::html("open"),
                "/robots.txt" => {
                    Reply::text(format!("Sitemap: http://{}/map\n", request.headers["host"]))
                }
                "/map" => {
                    let mut map = "<!DOCTYPE u [<!ENTITY e0 'http://x/'>".to_owned();
                    for n in 1..60 {
                        let _ =
                            write!(map, "<!ENTITY e{n} '{}'>", format!("&e{};", n - 1).repeat(10));
                    }
                    map.push_str("]><urlset><url><loc>&e59;</loc></url></urlset>");
                    Reply::new("200 OK", "application/xml", map)
                }
                _ => missing(),
            },
            "changed",
            &[],
        ),
        server(
            "has a sitemap without end at its usual path",
            |request| match request.path.as_str() {
                "/" => Reply::html("open"),
                "/sitemap.xml" => endless(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\n\r\n",
                    "<urlset><url><loc>/a</loc></url>".repeat(30_000),
                ),
                _ => missing(),
            },
            "changed",
            &[],
        ),
        server(
            "has a missing page without end",
            |request| match request.path.as_str() {
                "/" => Reply::html("open"),
                "/robots.txt" => missing(),
                _ => endless(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n",
                    "<p>not found ".repeat(80_000),
                ),
            },
            "changed",
            &[],
        ),
    ]
}

fn numbered(before: &str, after: &str, count: usize) -> String {
    (0..count).map(|number| format!("{before}{number}{after}")).collect()
}

/// Attributes of different names, each of which scripts use for pictures.
fn late_attributes() -> String {
    let name = |number: usize| -> String {
        (0..17).map(|bit| ["-src", "-img"][number >> bit & 1]).collect()
    };
    (0..100_000).map(|number| format!("data{}=/{number}.png ", name(number))).collect()
}

fn contents() -> Vec<Kind> {
    let page = |name, body: String| top(name, Reply::html(body), "changed", &[]);
    let typed = |name, mime: &str, body: String| {
        top(name, Reply::new("200 OK", mime, body), "changed", &[])
    };
    vec![
        page("has a million attributes", format!("<a {}href=/x>", "a=b ".repeat(1_000_000))),
        page("has one attribute of 10 MB", format!("<a href='/{}'>", "x".repeat(10 << 20))),
        page("has a srcset of a million", format!("<img srcset='{}'>", "a 1x,".repeat(1_000_000))),
        page("has a million bases", "<base href='../'><a href=x>".repeat(300_000)),
        page("has bases of nothing", "<base href='data:,'><base href='//'><a href='?'>".to_owned()),
        page("has 100,000 open elements", "<div><b><table>".repeat(100_000)),
        page("has a comment of 15 MB", format!("<!--{}", "-".repeat(15 << 20))),
        page("has a title of 5 MB", format!("<title>{}", "&#x41;".repeat(1 << 20))),
        page(
            "has a million entities",
            format!("<p>{}", "&CounterClockwiseContourIntegral;".repeat(300_000)),
        ),
        page(
            "has 200,000 refreshes",
            "<meta http-equiv=refresh content='0;url=/r'>".repeat(200_000),
        ),
        page("has styles that open only", format!("<style>{}", "a{b:url((((".repeat(300_000))),
        typed("has a style of imports", "text/css", "@import 'a';@import url(\"b".repeat(100_000)),
        typed(
            "has a feed of brackets",
            "application/feed+json",
            format!("{{\"items\":{}", "[".repeat(2_000_000)),
        ),
        typed("has a feed of elements", "application/rss+xml", "<item><link>".repeat(500_000)),
        typed(
            "has a drawing of drawings",
            "image/svg+xml",
            "<svg><use href='#a'/>".repeat(300_000),
        ),
        typed("has a text of one line", "text/plain", "x".repeat(15 << 20)),
        page(
            "has short links for long addresses",
            format!("<base href='/{}/'>{}", "b".repeat(3_900), numbered("<a href=a", ">", 300_000)),
        ),
        page("has 100,000 attributes that load late", format!("<img {}>", late_attributes())),
        page("has four million attributes", format!("<img {}>", "a=b ".repeat(3_500_000))),
        page("has scripts that close themselves", "<script/>".repeat(1_500_000)),
        typed(
            "has a feed of empty entries",
            "application/feed+json",
            format!("{{\"items\":[{}{{}}]}}", "{},".repeat(5_000_000)),
        ),
        typed(
            "has a feed with one endless entry",
            "application/feed+json",
            format!("{{\"items\":[{{\"id\":[{}1]}}]}}", "1,".repeat(7_000_000)),
        ),
        typed(
            "has a feed of long addresses",
            "application/atom+xml",
            format!(
                "<feed xmlns='http://www.w3.org/2005/Atom' xml:base='/{}/'>{}",
                "b".repeat(3_900),
                numbered("<entry><link href='e", "'/></entry>", 300_000)
            ),
        ),
        typed("has 300 types", &vec!["text/html"; 300].join(", "), "<p>x".to_owned()),
        typed("has a script of strings", "text/javascript", "\"http://a/\"+`${`".repeat(300_000)),
    ]
}

#[test]
fn strangers_are_observed_with_the_settings_that_people_get() {
    let kinds = [codings(), heads(), leading_on(), contents()].into_iter().flatten().collect();
    // 300 MB is the aim (docs/reliability.md); beside other tests it may take more.
    hold(kinds, "", 400);
}
