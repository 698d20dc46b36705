//! Redirects, charsets and content codings: what is followed, and what comes back exactly.

use std::io::Write;

use crate::support::{Nenrin, Reply, Site};

#[test]
fn a_redirect_is_a_visit_of_its_own_and_is_followed() {
    let site = Site::of_pages(&[
        ("/", Reply::html("<a href='/old'>old</a>")),
        ("/old", Reply::redirect("/new")),
        ("/new", Reply::html("<a href='/beyond'>on</a>")),
        ("/beyond", Reply::html("beyond")),
    ]);
    let nenrin = Nenrin::new();
    nenrin.collect(&[&site.top()]).expect(0);
    assert_eq!(site.paths(), ["/", "/beyond", "/new", "/old"]);
    let old = nenrin.versions(&site.url("/old"));
    assert_eq!(old[0]["status"], 301);
    let head = nenrin.run(&["cat", "--headers", &site.url("/old")]).expect(0).text();
    assert!(head.starts_with("HTTP/1.1 301 Moved Permanently\r\n"), "{head}");
    assert!(head.contains("Location: /new\r\n"), "{head}");
    assert_eq!(nenrin.versions(&site.url("/new"))[0]["status"], 200);
}

#[test]
fn a_top_page_that_moved_to_another_server_takes_the_site_with_it() {
    let new = Site::of_pages(&[
        ("/home", Reply::html("<a href='/inner'>in</a>")),
        ("/inner", Reply::html("inner")),
    ]);
    let to = new.url("/home");
    let old = Site::serve(move |request| match request.path.as_str() {
        "/" => Reply::redirect(&to),
        _ => Reply::status("404 Not Found"),
    });
    let nenrin = Nenrin::new();
    nenrin.collect(&[&old.top()]).expect(0);
    assert_eq!(old.paths(), ["/"]);
    assert_eq!(new.paths(), ["/home", "/inner"]);
    assert!(new.requests().iter().any(|request| request.path == "/robots.txt"));
    let sites = nenrin.run(&["site", "list", "--json"]).expect(0).lines();
    assert_eq!(sites.len(), 1);
    let tops: Vec<&str> = sites[0]["conditions"]["tops"]
        .as_array()
        .unwrap()
        .iter()
        .map(|top| top.as_str().unwrap())
        .collect();
    assert_eq!(tops, [old.top(), new.url("/home")]);
}

#[test]
fn an_inner_page_that_moved_away_is_not_followed() {
    let elsewhere = Site::of_pages(&[("/", Reply::html("elsewhere"))]);
    let to = elsewhere.top();
    let site = Site::serve(move |request| match request.path.as_str() {
        "/" => Reply::html("<a href=/away>away</a>"),
        "/away" => Reply::redirect(&to),
        _ => Reply::status("404 Not Found"),
    });
    let nenrin = Nenrin::new();
    nenrin.collect(&[&site.top()]).expect(0);
    assert_eq!(site.paths(), ["/", "/away"]);
    assert!(elsewhere.requests().is_empty());
    assert_eq!(nenrin.versions(&site.url("/away"))[0]["status"], 301);
}

#[test]
fn links_in_shift_jis_are_followed() {
    // 年輪 in Shift_JIS, in a path (sent as UTF-8) and in a query (sent as Shift_JIS).
    const NENRIN: &[u8] = b"\x94\x4e\x97\xd6";
    let mut page = b"<meta charset=Shift_JIS><a href='/".to_vec();
    page.extend_from_slice(NENRIN);
    page.extend_from_slice(b"'>a</a><a href='/s?q=");
    page.extend_from_slice(NENRIN);
    page.extend_from_slice(b"'>b</a>");
    let exact = page.clone();
    let site = Site::serve(move |request| match request.path.as_str() {
        "/" => Reply::new("200 OK", "text/html", page.clone()),
        "/%E5%B9%B4%E8%BC%AA" | "/s?q=%94N%97%D6" => Reply::html("found"),
        _ => Reply::status("404 Not Found"),
    });
    let nenrin = Nenrin::new();
    nenrin.collect(&[&site.top()]).expect(0);
    assert_eq!(site.paths(), ["/", "/%E5%B9%B4%E8%BC%AA", "/s?q=%94N%97%D6"]);
    assert_eq!(nenrin.cat(&site.top()), exact);
    assert_eq!(nenrin.cat(&site.url("/年輪")), b"found");
}

fn coded(coding: &str, body: &[u8]) -> Vec<u8> {
    match coding {
        "gzip" => {
            let mut coder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(3));
            coder.write_all(body).unwrap();
            coder.finish().unwrap()
        }
        "deflate" => {
            let mut coder =
                flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(6));
            coder.write_all(body).unwrap();
            coder.finish().unwrap()
        }
        "br" => {
            let mut out = Vec::new();
            brotli::CompressorWriter::new(&mut out, 4096, 5, 20).write_all(body).unwrap();
            out
        }
        "zstd" => zstd::encode_all(body, 3).unwrap(),
        _ => body.to_vec(),
    }
}

#[test]
fn coded_bodies_are_read_for_links_and_given_back_exactly() {
    for coding in ["gzip", "deflate", "br", "zstd", "identity"] {
        let plain = format!("<a href='/found-in-{coding}'>{}</a>", "much the same ".repeat(300));
        let sent = coded(coding, plain.as_bytes());
        let reply = Reply::new("200 OK", "text/html", sent.clone())
            .header("X-Order", "1")
            .header("Content-Encoding", coding)
            .header("x-ORDER", "  2 ");
        let head = reply.head.clone();
        let site = Site::serve(move |request| match request.path.as_str() {
            "/" => reply.clone(),
            _ => Reply::html("found"),
        });
        let nenrin = Nenrin::new();
        nenrin.collect(&[&site.top()]).expect(0);
        assert_eq!(site.paths(), ["/".to_owned(), format!("/found-in-{coding}")]);
        assert!(nenrin.cat(&site.top()) == sent, "{coding}: the bytes as sent");
        let decoded = nenrin.run(&["cat", "--decode", &site.top()]).expect(0).stdout;
        assert!(decoded == plain.as_bytes(), "{coding}: the bytes as meant");
        let whole = nenrin.run(&["cat", "--headers", &site.top()]).expect(0).stdout;
        assert_eq!(
            String::from_utf8_lossy(&whole[..head.len()]),
            String::from_utf8_lossy(&head),
            "{coding}: the head as sent"
        );
        assert!(whole[head.len()..] == sent);
        nenrin.assert_sound();
    }
}

#[test]
fn chunked_bodies_are_kept_without_their_framing() {
    let site = Site::of_pages(&[(
        "/",
        Reply::raw(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n",
            "5\r\nhello\r\n7;ext=1\r\n, world\r\n0\r\nX-Trailer: 1\r\n\r\n",
        ),
    )]);
    let nenrin = Nenrin::new();
    nenrin.collect(&[&site.top()]).expect(0);
    assert_eq!(nenrin.cat(&site.top()), b"hello, world");
}

#[test]
fn a_coding_that_lies_is_kept_and_told() {
    let site = Site::of_pages(&[(
        "/",
        Reply::html("this is not gzip").header("Content-Encoding", "gzip"),
    )]);
    let nenrin = Nenrin::new();
    nenrin.collect(&[&site.top()]).expect(0);
    assert_eq!(nenrin.cat(&site.top()), b"this is not gzip");
    let visit = &nenrin.last_visits()[&site.top()];
    assert!(visit["detail"].as_str().unwrap().contains("gzip"), "{visit}");
    nenrin.run(&["cat", "--decode", &site.top()]).expect_said(1, &["gzip"]);
}
