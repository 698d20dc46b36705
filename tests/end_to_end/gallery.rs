//! The gallery of bad servers: what each sends, and what must come of it.
//!
//! All are collected at once by one process, as a bad day would have it. Each kind is a line of a
//! table: a name, what the server answers, the outcome that must be logged, and words that its
//! reason must hold. To add a kind, add a line. TLS and HTTP/2 faults have tables of their own in
//! `crates/fetch`.

use std::{
    io::Write as _,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::support::{Nenrin, Reply, Request, Site};

/// One bad server.
pub(crate) struct Kind {
    answer: Box<dyn Fn(&Request) -> Reply + Send + Sync>,
    expected: Expected,
}

/// What must come of it.
struct Expected {
    name: &'static str,
    outcome: &'static str,
    words: &'static [&'static str],
}

/// A server whose top page is answered so; it has no robots.txt and nothing else.
pub(crate) fn top(
    name: &'static str,
    reply: Reply,
    outcome: &'static str,
    words: &'static [&'static str],
) -> Kind {
    let answer = move |request: &Request| match request.path.as_str() {
        "/" => reply.clone(),
        _ => Reply::status("404 Not Found"),
    };
    Kind { answer: Box::new(answer), expected: Expected { name, outcome, words } }
}

/// A server whose robots.txt is answered so; its top page is in order.
pub(crate) fn robots(
    name: &'static str,
    reply: Reply,
    outcome: &'static str,
    words: &'static [&'static str],
) -> Kind {
    let answer = move |request: &Request| match request.path.as_str() {
        "/robots.txt" => reply.clone(),
        "/" => Reply::html("open"),
        _ => Reply::status("404 Not Found"),
    };
    Kind { answer: Box::new(answer), expected: Expected { name, outcome, words } }
}

/// A server that is asked anything.
pub(crate) fn server(
    name: &'static str,
    answer: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    outcome: &'static str,
    words: &'static [&'static str],
) -> Kind {
    Kind { answer: Box::new(answer), expected: Expected { name, outcome, words } }
}

/// A head with these lines, and a short page.
pub(crate) fn lines(lines: &str) -> Reply {
    Reply::raw(format!("HTTP/1.1 200 OK\r\n{lines}\r\n\r\n"), "<p>page").and_close()
}

pub(crate) fn raw(head: impl Into<Vec<u8>>, body: impl Into<Vec<u8>>) -> Reply {
    Reply::raw(head, body).and_close()
}

fn chunked(body: impl Into<Vec<u8>>) -> Reply {
    raw("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n", body)
}

pub(crate) fn coded(coding: &str, body: impl Into<Vec<u8>>) -> Reply {
    Reply::html(body).header("Content-Encoding", coding)
}

pub(crate) fn gzip(text: &[u8]) -> Vec<u8> {
    let mut coder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    coder.write_all(text).unwrap();
    coder.finish().unwrap()
}

fn zlib(text: &[u8]) -> Vec<u8> {
    let mut coder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    coder.write_all(text).unwrap();
    coder.finish().unwrap()
}

fn deflate(text: &[u8]) -> Vec<u8> {
    let mut coder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    coder.write_all(text).unwrap();
    coder.finish().unwrap()
}

fn zeros(megabytes: usize) -> Vec<u8> {
    vec![b' '; megabytes << 20]
}

const DRIP: Duration = Duration::from_millis(100);

/// What is not HTTP, or hardly.
fn strange_heads() -> Vec<Kind> {
    let long = "x".repeat(2 << 20);
    vec![
        top("closes without a word", raw("", ""), "failed", &[]),
        top("sends one byte", raw("H", ""), "failed", &[]),
        top("speaks SMTP", raw("220 mail ready\r\n\r\n", ""), "failed", &["HTTP"]),
        top("speaks SSH", raw("SSH-2.0-OpenSSH_9.2\r\n", ""), "failed", &["HTTP"]),
        top(
            "speaks TLS on a plain port",
            raw(b"\x16\x03\x01\x00\x05hello".to_vec(), ""),
            "failed",
            &[],
        ),
        top("speaks HTTP/0.9", raw("<html>old</html>", ""), "failed", &["HTTP"]),
        top(
            "speaks HTTP/2 unasked",
            raw(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00".to_vec(), ""),
            "failed",
            &[],
        ),
        top("speaks HTTP/9.9", raw("HTTP/9.9 200 OK\r\n\r\n", ""), "failed", &["HTTP"]),
        top("sends zeros", raw(vec![0; 4096], ""), "failed", &[]),
        top(
            "sends noise",
            raw(
                (0..4096_u32)
                    .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
                    .collect::<Vec<_>>(),
                "",
            ),
            "failed",
            &[],
        ),
        top(
            "has a status that is a word",
            raw("HTTP/1.1 fine OK\r\n\r\n", ""),
            "failed",
            &["HTTP"],
        ),
        top("has status 1000", raw("HTTP/1.1 1000 OK\r\n\r\n", ""), "failed", &["HTTP"]),
        top("has status 99", raw("HTTP/1.1 099 OK\r\n\r\n", ""), "failed", &[]),
        top(
            "has status 999",
            raw("HTTP/1.1 999 Denied\r\nContent-Length: 0\r\n\r\n", ""),
            "failed",
            &["999"],
        ),
        top(
            "has status 600",
            raw("HTTP/1.1 600 What\r\nContent-Length: 0\r\n\r\n", ""),
            "failed",
            &["600"],
        ),
        top(
            "has no reason phrase",
            raw("HTTP/1.1 200\r\nContent-Length: 1\r\n\r\n", "x"),
            "changed",
            &[],
        ),
        top(
            "ends lines with LF alone",
            raw("HTTP/1.1 200 OK\nContent-Length: 1\n\n", "x"),
            "changed",
            &[],
        ),
        top("has a line without a colon", lines("Nonsense"), "changed", &[]),
        top("has a space in a name", lines("Bad Name: x"), "changed", &[]),
        top("has an empty name", lines(": x"), "changed", &[]),
        top("has a NUL in a value", lines("X: a\0b"), "failed", &[]),
        top("has a bare CR in a value", lines("X: a\rb"), "failed", &[]),
        top("has 8-bit values", lines("Content-Length: 7\r\nX: \u{e9}\u{1b}[31m"), "changed", &[]),
        top(
            "has one endless line",
            raw(format!("HTTP/1.1 200 OK\r\nX: {long}\r\n\r\n"), ""),
            "failed",
            &["head"],
        ),
        top("has a thousand lines", lines(&"X: y\r\n".repeat(1_000)), "failed", &[]),
        top(
            "has an endless status line",
            raw(format!("HTTP/1.1 200 {long}\r\n\r\n"), ""),
            "failed",
            &[],
        ),
        top(
            "never ends its head",
            Reply::raw("HTTP/1.1 200 OK\r\n", "").then("X: y\r\n", 1_000, DRIP),
            "failed",
            &[],
        ),
        top(
            "drips its head byte by byte",
            Reply::raw("H", "").then("T", 1_000, DRIP),
            "failed",
            &[],
        ),
        top("accepts and says nothing", Reply::silent(), "failed", &[]),
        top(
            "sends two answers at once",
            raw(
                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n",
                "aHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nb",
            ),
            "failed",
            &["too short"],
        ),
        top(
            "switches protocols",
            raw(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n",
                "",
            ),
            "failed",
            &[],
        ),
        top(
            "continues once",
            raw("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n", "x"),
            "changed",
            &[],
        ),
        top(
            "continues for ever",
            Reply::raw("", "").then("HTTP/1.1 100 Continue\r\n\r\n", 100_000, Duration::ZERO),
            "failed",
            &[],
        ),
        top(
            "hints for ever",
            Reply::raw("", "").then(
                "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n",
                100_000,
                Duration::ZERO,
            ),
            "failed",
            &[],
        ),
        top(
            "sends a hundred cookies",
            lines(&format!(
                "Content-Length: 7\r\n{}X: y",
                format!("Set-Cookie: a={}\r\n", "c".repeat(400)).repeat(100)
            )),
            "changed",
            &[],
        ),
        top(
            "has an endless ETag",
            lines(&format!("Content-Length: 7\r\nETag: \"{}\"", "e".repeat(60_000))),
            "changed",
            &[],
        ),
        top(
            "was modified in the year 9999",
            lines("Content-Length: 7\r\nLast-Modified: Fri, 31 Dec 9999 23:59:59 GMT"),
            "changed",
            &[],
        ),
        top(
            "was modified on no day",
            lines("Content-Length: 7\r\nLast-Modified: yesterday"),
            "changed",
            &[],
        ),
        top(
            "has a date before the web",
            lines("Content-Length: 7\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT"),
            "changed",
            &[],
        ),
    ]
}

/// Wrong lengths of bodies.
fn lengths() -> Vec<Kind> {
    let long = "0".repeat(100_000);
    vec![
        top(
            "says its length twice, equally",
            lines("Content-Length: 7\r\nContent-Length: 7"),
            "changed",
            &[],
        ),
        top("says two lengths", lines("Content-Length: 7\r\nContent-Length: 3"), "failed", &[]),
        top("says two lengths in one line", lines("Content-Length: 7, 3"), "failed", &[]),
        top("says a negative length", lines("Content-Length: -7"), "failed", &[]),
        top("says a length with a sign", lines("Content-Length: +7"), "failed", &[]),
        top(
            "says a length beyond numbers",
            lines("Content-Length: 99999999999999999999999"),
            "failed",
            &[],
        ),
        top("says a length in words", lines("Content-Length: seven"), "failed", &[]),
        top(
            "says a length beyond every disk",
            lines("Content-Length: 9223372036854775807"),
            "failed",
            &["limit"],
        ),
        top("sends less than it said", lines("Content-Length: 100"), "failed", &["cut"]),
        top("sends more than it said", lines("Content-Length: 3"), "failed", &["too short"]),
        top(
            "says length and chunks",
            raw(
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
                "1\r\na\r\n0\r\n\r\n",
            ),
            "changed",
            &[],
        ),
        top(
            "says chunks twice",
            raw(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n",
                "1\r\na\r\n0\r\n\r\n",
            ),
            "changed",
            &[],
        ),
        top("says chunks and sends none", chunked("plain text"), "failed", &[]),
        top(
            "ends chunks with a comma",
            raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked,\r\n\r\n", "1\r\na\r\n0\r\n\r\n"),
            "changed",
            &[],
        ),
        top(
            "has an unknown transfer coding",
            raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: magic\r\n\r\n", "x"),
            "changed",
            &[],
        ),
        top("never sends the last chunk", chunked("1\r\na\r\n"), "failed", &["cut"]),
        top("has a chunk beyond numbers", chunked("FFFFFFFFFFFFFFFFF\r\na\r\n"), "failed", &[]),
        top("has a chunk beyond every disk", chunked("7FFFFFFFFFFFFFFF\r\na"), "failed", &[]),
        top("has a negative chunk", chunked("-1\r\na\r\n0\r\n\r\n"), "failed", &[]),
        top(
            "pads a chunk's size with zeros",
            chunked(format!("{long}1\r\na\r\n0\r\n\r\n")),
            "changed",
            &[],
        ),
        top(
            "has an endless chunk extension",
            chunked(format!("1;{long}\r\na\r\n0\r\n\r\n")),
            "failed",
            &[],
        ),
        top("has no line end after a chunk", chunked("1\r\nab\r\n0\r\n\r\n"), "failed", &[]),
        top(
            "has endless trailers",
            chunked(format!("1\r\na\r\n0\r\n{}\r\n", "X: y\r\n".repeat(100_000))),
            "failed",
            &[],
        ),
        top(
            "sends one byte at a time for ever",
            Reply::raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "").then(
                "1\r\nx\r\n",
                u64::MAX,
                Duration::ZERO,
            ),
            "failed",
            &[],
        ),
        top(
            "drips its body",
            Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", "")
                .then("x", 1_000, DRIP),
            "failed",
            &[],
        ),
        top(
            "falls silent in its body",
            Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", "x").then(
                "y",
                1,
                Duration::from_secs(100),
            ),
            "failed",
            &[],
        ),
        top(
            "sends a body without end",
            Reply::raw("HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n", "").then(
                vec![b'x'; 1 << 20],
                4_096,
                Duration::ZERO,
            ),
            "failed",
            &["limit"],
        ),
        top("has an empty page", Reply::html(""), "changed", &[]),
    ]
}

/// Content codings that are wrong, endless or unknown.
fn codings() -> Vec<Kind> {
    let mut cut = gzip(b"<p>a page that was longer than what came of it</p>");
    cut.truncate(cut.len() - 12);
    let mut wrong_sum = gzip(b"<p>page");
    let at = wrong_sum.len() - 6;
    wrong_sum[at] ^= 1;
    let mut tail = gzip(b"<p>page");
    tail.extend_from_slice(b"and more");
    let twice = gzip(&gzip(b"<p>page"));
    let bomb = gzip(&zeros(100));
    let nested = gzip(&gzip(&zeros(100)));
    vec![
        top("says gzip and sends text", coded("gzip", "<p>plain"), "changed", &[]),
        top("cuts its gzip", coded("gzip", cut), "changed", &[]),
        top("has a wrong gzip sum", coded("gzip", wrong_sum), "changed", &[]),
        top("has something after its gzip", coded("gzip", tail), "changed", &[]),
        top("has an empty gzip", coded("gzip", ""), "changed", &[]),
        top("packs twice", coded("gzip, gzip", twice), "changed", &[]),
        top("packs a hundred times", coded(&vec!["gzip"; 100].join(", "), "x"), "changed", &[]),
        top("packs a bomb", coded("gzip", bomb.clone()), "changed", &[]),
        top("packs a bomb in a bomb", coded("gzip, gzip", nested), "changed", &[]),
        top("packs a bomb with deflate", coded("deflate", zlib(&zeros(100))), "changed", &[]),
        top("says deflate and means zlib", coded("deflate", zlib(b"<p>page")), "changed", &[]),
        top(
            "says deflate and means deflate",
            coded("deflate", deflate(b"<p>page")),
            "changed",
            &[],
        ),
        top("says br and sends noise", coded("br", vec![0xff; 100]), "changed", &[]),
        top("says zstd and sends noise", coded("zstd", vec![0xff; 100]), "changed", &[]),
        top(
            "wants a window of 2 GB",
            coded("zstd", vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 1, 0, 0]),
            "changed",
            &[],
        ),
        top(
            "packs a bomb with zstd",
            coded("zstd", zstd::encode_all(&zeros(100)[..], 1).unwrap()),
            "changed",
            &[],
        ),
        top("has an unknown coding", coded("magic", "x"), "changed", &[]),
        top("has an endless coding", coded(&"x".repeat(50_000), "x"), "changed", &[]),
        robots(
            "has a bomb as robots.txt",
            Reply::text(bomb).header("Content-Encoding", "gzip"),
            "changed",
            &[],
        ),
    ]
}

/// Statuses, and redirects that lead nowhere.
fn statuses() -> Vec<Kind> {
    let to = |location: &str| Reply::redirect(location);
    let long = format!("/{}", "a".repeat(100_000));
    let status = |line: &'static str| Reply::status(line);
    vec![
        top("has no content", raw("HTTP/1.1 204 No Content\r\n\r\n", ""), "changed", &[]),
        top(
            "has content where there is none",
            raw("HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\n", "abc"),
            "changed",
            &[],
        ),
        top(
            "resets content",
            raw("HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n", ""),
            "changed",
            &[],
        ),
        top(
            "sends a part that nobody asked for",
            Reply::new("206 Partial Content", "text/html", "part")
                .header("Content-Range", "bytes 0-3/100"),
            "failed",
            &["206"],
        ),
        top(
            "has not been modified",
            raw("HTTP/1.1 304 Not Modified\r\n\r\n", ""),
            "failed",
            &["304"],
        ),
        top("offers choices", status("300 Multiple Choices"), "failed", &["300"]),
        top("redirects nowhere", status("301 Moved Permanently"), "failed", &["301"]),
        top("redirects to nothing", to(""), "failed", &[]),
        top("redirects to itself", to("/"), "failed", &["itself"]),
        top("redirects to a part of itself", to("/#part"), "failed", &["itself"]),
        top("redirects to a script", to("javascript:alert(1)"), "failed", &[]),
        top("redirects to a file", to("file:///etc/passwd"), "failed", &[]),
        top("redirects to data", to("data:text/html,x"), "failed", &[]),
        top("redirects to ftp", to("ftp://127.0.0.1/"), "failed", &[]),
        top("redirects to no host", to("http://"), "failed", &[]),
        top("redirects to a port that is none", to("http://127.0.0.1:99999/"), "failed", &[]),
        top("redirects with a password", to("http://user:secret@127.0.0.1:1/"), "changed", &[]),
        top("redirects far", to(&long), "failed", &[]),
        top(
            "wants a password",
            status("401 Unauthorized").header("WWW-Authenticate", "Basic"),
            "failed",
            &["401"],
        ),
        top("wants money", status("402 Payment Required"), "failed", &["402"]),
        top("forbids", status("403 Forbidden"), "failed", &["403"]),
        top("has lost it", status("404 Not Found"), "gone", &["404"]),
        top(
            "wants a proxy's password",
            status("407 Proxy Authentication Required"),
            "failed",
            &["407"],
        ),
        top("has waited too long", status("408 Request Timeout"), "failed", &["408"]),
        top("has removed it", status("410 Gone"), "gone", &["410"]),
        top("is a teapot", status("418 I'm a teapot"), "failed", &["418"]),
        top(
            "has had enough",
            status("429 Too Many Requests").header("Retry-After", "3600"),
            "failed",
            &["429"],
        ),
        top(
            "wants rest till the end of time",
            status("429 Too Many Requests").header("Retry-After", "99999999999999999999"),
            "failed",
            &["429"],
        ),
        top(
            "wants negative rest",
            status("429 Too Many Requests").header("Retry-After", "-5"),
            "failed",
            &["429"],
        ),
        top(
            "wants rest until the year 9999",
            status("503 Service Unavailable")
                .header("Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT"),
            "failed",
            &["503"],
        ),
        top("is closed by law", status("451 Unavailable For Legal Reasons"), "failed", &["451"]),
        top("has failed", status("500 Internal Server Error"), "failed", &["500"]),
        top("cannot do it", status("501 Not Implemented"), "failed", &["501"]),
        top("has a bad gateway", status("502 Bad Gateway"), "failed", &["502"]),
        top("has a slow gateway", status("504 Gateway Timeout"), "failed", &["504"]),
        top(
            "wants a log-in to the network",
            status("511 Network Authentication Required"),
            "failed",
            &["511"],
        ),
        top("has a status of its own", status("530 Frozen"), "failed", &["530"]),
    ]
}

/// Pages that are hard to read.
fn contents() -> Vec<Kind> {
    let html = |body: Vec<u8>| Reply::html(body);
    let typed = |kind: &str, body: &str| Reply::new("200 OK", kind, body);
    let laughs = "<?xml version=\"1.0\"?><!DOCTYPE l [<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\"><!ENTITY c \"&b;&b;&b;&b;&b;&b;&b;&b;\"><!ENTITY d \"&c;&c;&c;&c;&c;&c;&c;&c;\">]><urlset><url><loc>&d;</loc></url></urlset>";
    vec![
        top("has NULs in its page", html(b"<a\0 href=/x>\0\0<p>\0".to_vec()), "changed", &[]),
        top("is in UTF-16", html(b"\xff\xfe<\0p\0>\0".to_vec()), "changed", &[]),
        top("is in UTF-7", typed("text/html; charset=utf-7", "+ADw-script+AD4-"), "changed", &[]),
        top("is in no charset", typed("text/html; charset=klingon", "<p>x"), "changed", &[]),
        top("has bytes that are no text", html(vec![0xc3, 0x28, 0xa0, 0xa1, 0xe2, 0x28, 0xa1]), "changed", &[]),
        top("nests a hundred thousand deep", html("<div>".repeat(100_000).into_bytes()), "changed", &[]),
        top("nests lists in tables", html("<table><tr><td><ul><li>".repeat(20_000).into_bytes()), "changed", &[]),
        top("has an attribute of 5 MB", html(format!("<a title=\"{}\" href=/x>", "a".repeat(5 << 20)).into_bytes()), "changed", &[]),
        top("has a hundred thousand attributes", html(format!("<a {}>", (0..100_000).map(|n| format!("a{n} ")).collect::<String>()).into_bytes()), "changed", &[]),
        top("never ends a comment", html(b"<!-- <a href=/x> ".to_vec()), "changed", &[]),
        top("never ends a tag", html(b"<a href=\"/x".to_vec()), "changed", &[]),
        top("never ends a script", html(b"<script>var a='</scr'+'ipt".to_vec()), "changed", &[]),
        top("is one line of 8 MB", html(vec![b'x'; 8 << 20]), "changed", &[]),
        top("has entities that laugh", typed("application/xml", laughs), "changed", &[]),
        top("has a picture that is a page", typed("image/png", "<script>alert(1)</script>"), "changed", &[]),
        top("has a page that is a picture", html(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec()), "changed", &[]),
        top("has no type", raw("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", "<p>"), "changed", &[]),
        top("has an empty type", typed("", "<p>"), "changed", &[]),
        top("has two types", typed("application/pdf, text/html", "<p>"), "changed", &[]),
        top("has a type of 50 kB", typed(&"a".repeat(50_000), "<p>"), "changed", &[]),
        top("has a type with a script in it", typed("text/html\"><script>alert(1)</script>", "<p>"), "changed", &[]),
        top("refreshes itself for ever", html(b"<meta http-equiv=refresh content='0;url=/'>".to_vec()), "changed", &[]),
        top("has a base elsewhere", html(b"<base href='javascript:'><a href=x>".to_vec()), "changed", &[]),
        top("has links that are none", html(b"<a href='http://[::1'><a href='//'><a href='http://a b/'><a href='http://%zz/'><a href='\\\\host'><a href='http://x:99999/'><a href='data:,x'><a href='mailto:a@b'><a href=''>".to_vec()), "changed", &[]),
        top("has a link of 1 MB", html(format!("<a href=\"/{}\">", "a".repeat(1 << 20)).into_bytes()), "changed", &[]),
        top("has a picture set of 100,000", html(format!("<img srcset=\"{}\">", "a 1x,".repeat(100_000)).into_bytes()), "changed", &[]),
        top("has a style without end", html(format!("<style>{}", "a{b:url(".repeat(50_000)).into_bytes()), "changed", &[]),
        top("has a title of 3 MB", html(format!("<title>{}", "t".repeat(3 << 20)).into_bytes()), "changed", &[]),
        top("has escape codes in its title", html(b"<title>\x1b]0;owned\x07\x9b31m</title>".to_vec()), "changed", &[]),
        top("names a file outside", html(b"<p>".to_vec()).header("Content-Disposition", "attachment; filename=../../etc/passwd"), "changed", &[]),
    ]
}

/// What robots.txt can be.
fn robots_files() -> Vec<Kind> {
    let text = |body: &str| Reply::text(body.to_owned());
    vec![
        robots(
            "forbids everything",
            text("User-agent: *\nDisallow: /\n"),
            "refused",
            &["robots.txt"],
        ),
        robots(
            "forbids everything in capitals",
            text("USER-AGENT: *\nDISALLOW: /\n"),
            "refused",
            &["robots.txt"],
        ),
        robots(
            "forbids everything after a mark",
            text("\u{feff}User-agent: *\nDisallow: /\n"),
            "refused",
            &["robots.txt"],
        ),
        robots(
            "forbids with old line ends",
            text("User-agent: *\rDisallow: /\r"),
            "refused",
            &["robots.txt"],
        ),
        robots("has a page as robots.txt", Reply::html("<html>User-agent: *"), "changed", &[]),
        robots("has 10 MB of robots.txt", text(&"Disallow: /x\n".repeat(800_000)), "changed", &[]),
        robots(
            "has one rule of 1 MB",
            text(&format!("User-agent: *\nDisallow: /{}\n", "*a".repeat(500_000))),
            "changed",
            &[],
        ),
        robots("has NULs in robots.txt", text("User-agent: *\n\0\0Disallow: /x\n"), "changed", &[]),
        robots("has no robots.txt any more", Reply::status("410 Gone"), "changed", &[]),
        robots("hides robots.txt", Reply::status("403 Forbidden"), "changed", &[]),
        robots(
            "wants a password for robots.txt",
            Reply::status("401 Unauthorized"),
            "changed",
            &[],
        ),
        robots(
            "fails at robots.txt",
            Reply::status("500 Internal Server Error"),
            "failed",
            &["robots.txt"],
        ),
        robots(
            "is closed at robots.txt",
            Reply::status("503 Service Unavailable"),
            "failed",
            &["robots.txt"],
        ),
        robots(
            "cuts robots.txt",
            raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", "User-agent"),
            "failed",
            &["robots.txt", "cut"],
        ),
        robots(
            "never answers for robots.txt",
            Reply::silent(),
            "failed",
            &["robots.txt", "longer"],
        ),
        robots(
            "sends robots.txt without end",
            Reply::raw("HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n", "").then(
                vec![b'\n'; 1 << 20],
                4_096,
                Duration::ZERO,
            ),
            "changed",
            &[],
        ),
        robots("redirects robots.txt to itself", Reply::redirect("/robots.txt"), "changed", &[]),
        robots(
            "has a robots.txt that is not HTTP",
            raw("220 ready\r\n\r\n", ""),
            "failed",
            &["robots.txt", "HTTP"],
        ),
    ]
}

fn kinds() -> Vec<Kind> {
    [strange_heads(), lengths(), codings(), statuses(), contents(), robots_files()]
        .into_iter()
        .flatten()
        .collect()
}

/// The most memory that a process had so far, in kB, while it runs.
fn peak_kb(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[test]
fn every_bad_server_gets_its_observation_and_nothing_is_harmed() {
    let config = "[fetch]\nmax_body = \"64MiB\"\nidle_timeout = \"2s\"\ntotal_timeout = \"20s\"\n\
                  [politeness]\nrest_first = \"10s\"\n[crawl]\nparallel = 64\n";
    hold(kinds(), config, 300);
}

/// Collects them all at once: each must be observed as its line says, within little memory.
#[expect(clippy::print_stderr, reason = "a figure for the documents")]
pub(crate) fn hold(kinds: Vec<Kind>, config: &str, most_mb: u64) {
    let sites: Vec<(Expected, Site)> =
        kinds.into_iter().map(|kind| (kind.expected, Site::serve(kind.answer))).collect();
    let nenrin = Nenrin::new().with_config(config);
    let tops: Vec<String> = sites.iter().map(|(_, site)| site.top()).collect();
    let mut args = vec!["collect", "--json", "--allow-private", "--delay", "0s", "--depth", "1"];
    args.extend(tops.iter().map(String::as_str));
    let running = nenrin.start(&args);
    let pid = running.pid();
    let peak = Arc::new(AtomicU64::new(0));
    let watched = peak.clone();
    let watch = std::thread::spawn(move || {
        while let Some(now) = peak_kb(pid) {
            watched.fetch_max(now, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    running.finish().expect(1);
    watch.join().unwrap();
    let visits = nenrin.last_visits();
    let mut wrong = Vec::new();
    for (kind, site) in &sites {
        let Some(visit) = visits.get(&site.top()) else {
            wrong.push(format!("{}: was not visited", kind.name));
            continue;
        };
        let detail = visit["detail"].as_str().unwrap_or_default();
        let is_named = kind.words.iter().all(|word| detail.contains(word));
        let has_reason = kind.outcome == "changed" || !detail.is_empty();
        if visit["outcome"] != kind.outcome || !is_named || !has_reason {
            wrong.push(format!(
                "{}: expected {} {:?}, got {} {detail}",
                kind.name, kind.outcome, kind.words, visit["outcome"]
            ));
        }
        let has_version = nenrin.run(&["versions", &site.top()]).code == Some(0);
        if has_version != (kind.outcome == "changed") {
            wrong.push(format!("{}: version {has_version}", kind.name));
        }
    }
    assert!(wrong.is_empty(), "{} of {} kinds:\n{}", wrong.len(), sites.len(), wrong.join("\n"));
    let peak_mb = peak.load(Ordering::Relaxed) / 1000;
    eprintln!("{} kinds, peak memory {peak_mb} MB", sites.len());
    assert!(peak_mb < most_mb, "{peak_mb} MB");
    nenrin.assert_sound();
}
