//! What is recorded of an exchange.

use std::sync::{Arc, Mutex};

use tokio::io::AsyncWriteExt;

use super::server::read_request;
use super::*;
use crate::Validators;

#[tokio::test]
async fn the_heads_are_kept_byte_for_byte() {
    let head = b"HTTP/1.1 200 Fine by me\r\nserver:  odd \r\nX-Caf\xC3\xA9: \xE9\r\nCONTENT-length: 5\r\nX: a\r\n b\r\n\r\n";
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let server = TestServer::start(move |mut stream, _| {
        let log = Arc::clone(&log);
        async move {
            let request = read_request(&mut stream).await.unwrap();
            *log.lock().unwrap() = request;
            stream.write_all(head).await.unwrap();
            stream.write_all(b"hello").await.unwrap();
        }
    })
    .await;
    let mut request = request(&server.url("/a%20b?c=d|e"));
    request.validators = Validators {
        etag: Some("W/\"x\"".to_owned()),
        last_modified: Some("Sun, 06 Nov 1994 08:49:37 GMT".to_owned()),
    };
    request.headers.push(("Cookie".to_owned(), "k=v".to_owned()));
    let options = FetchOptions { from: Some("me@example.com".to_owned()), ..quick() };
    let exchange = Fetcher::new(options).unwrap().fetch(&request).await.unwrap();
    assert_eq!(exchange.response_head, head);
    assert_eq!(text(&exchange), "hello");
    assert_eq!((exchange.status, exchange.protocol), (200, Protocol::Http11));
    assert_eq!((exchange.server_address, &exchange.tls), (Some(server.address.ip()), &None));
    assert_eq!(exchange.header("x").as_deref(), Some("a b"));
    assert!(exchange.time_to_head <= exchange.elapsed);
    assert_eq!(exchange.request_head, *seen.lock().unwrap(), "what was sent is what arrived");
    let expected = format!(
        "GET /a%20b?c=d|e HTTP/1.1\r\nHost: {}\r\nUser-Agent: nenrin-test\r\n\
         From: me@example.com\r\nAccept: */*\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n\
         If-None-Match: W/\"x\"\r\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
         Cookie: k=v\r\n\r\n",
        server.address
    );
    assert_eq!(String::from_utf8(exchange.request_head).unwrap(), expected);
}

#[tokio::test]
async fn chunks_are_joined_and_their_header_is_kept() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n";
    let exchange =
        answered_with(format!("{head}4;ext=1\r\nWiki\r\n5\r\npedia\r\n0\r\nX: ignored\r\n\r\n"))
            .await
            .unwrap();
    assert_eq!(text(&exchange), "Wikipedia");
    assert_eq!(exchange.response_head, head.as_bytes());
}

#[tokio::test]
async fn a_content_coding_is_left_alone() {
    let answer =
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x00";
    let exchange = answered_with(*answer).await.unwrap();
    assert_eq!(*exchange.body.front(9).unwrap(), b"\x1f\x8b\x08\x00"[..]);
}

#[tokio::test]
async fn a_body_without_length_ends_with_the_connection() {
    let exchange = answered_with("HTTP/1.0 200 OK\r\n\r\nold but gold").await.unwrap();
    assert_eq!(text(&exchange), "old but gold");
    assert_eq!(exchange.protocol, Protocol::Http10);
}

#[tokio::test]
async fn interim_responses_are_not_the_answer() {
    let head = "HTTP/1.1 404 Gone fishing\r\nContent-Length: 2\r\n\r\n";
    let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    let exchange = answered_with(format!("{interim}{head}no")).await.unwrap();
    assert_eq!((exchange.status, exchange.response_head), (404, head.as_bytes().to_vec()));
}

#[tokio::test]
async fn odd_heads_are_taken_as_they_are() {
    for head in [
        "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\nContent-Length: 2\n\n",
        "HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon here\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nbad name: x\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\n: nameless\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: a\r\n\tb\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 999 Denied\r\nContent-Length: 2\r\n\r\n",
    ] {
        let exchange = answered_with(format!("{head}ok")).await.unwrap_or_else(|failure| {
            panic!("{head:?}: {failure}");
        });
        assert_eq!(
            (text(&exchange), exchange.response_head),
            ("ok".to_owned(), head.into()),
            "{head:?}"
        );
    }
}

#[tokio::test]
async fn redirects_and_errors_are_exchanges_and_are_not_followed() {
    let redirect = "HTTP/1.1 302 Found\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n";
    let exchange = answered_with(redirect).await.unwrap();
    assert_eq!((exchange.status, exchange.header("location").as_deref()), (302, Some("/next")));
    let broken = "HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n";
    let exchange = answered_with(broken).await.unwrap();
    assert_eq!(crate::retry_after(&exchange, 0), Some(7));
}

#[tokio::test]
async fn not_modified_has_no_body_whatever_its_length_says() {
    let server =
        TestServer::answering("HTTP/1.1 304 Not Modified\r\nContent-Length: 1000\r\n\r\n").await;
    let fetcher = fetcher();
    for _ in 0..3 {
        let exchange = fetcher.fetch(&request(&server.url("/"))).await.unwrap();
        assert_eq!((exchange.status, exchange.body.len()), (304, 0));
    }
    assert_eq!(server.accepted(), 1);
}

#[tokio::test]
async fn what_is_not_http_is_a_protocol_failure() {
    for answer in [
        "SSH-2.0-OpenSSH_9.2\r\n\r\n",
        "HTTP/1.1 abc\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
    ] {
        let failure = answered_with(answer).await.unwrap_err();
        assert_eq!(failure.kind(), "protocol", "{answer:?}: {failure}");
    }
}

/// Pieces that odd answers are made of.
fn piece() -> impl proptest::strategy::Strategy<Value = Vec<u8>> {
    use proptest::prelude::*;
    let text = proptest::sample::select(vec![
        "HTTP/1.1 200 OK",
        "HTTP/1.0 404",
        "HTTP/1.1 100 Continue",
        "HTTP/1.1 304 Same",
        "\r\n",
        "\r\n\r\n",
        "\n",
        "Content-Length: 3",
        "Content-Length: 0",
        "Connection: close",
        "Transfer-Encoding: chunked",
        "3\r\nabc\r\n",
        "0\r\n\r\n",
        "X: y",
        " folded",
        "abc",
    ]);
    prop_oneof![
        8 => text.prop_map(|text| text.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..5),
    ]
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(200))]

    #[test]
    fn whatever_a_server_sends_the_outcome_is_true_to_it(
        start in "(HTTP/1\\.1 200 OK\r\n)?",
        pieces in proptest::collection::vec(piece(), 0..12),
    ) {
        let wire = [start.into_bytes(), pieces.concat()].concat();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        if let Ok(exchange) = runtime.block_on(answered_with(wire.clone())) {
            let head = &exchange.response_head;
            let at = memchr::memmem::find(&wire, head);
            proptest::prop_assert!(at.is_some(), "a head that was not sent: {exchange:?}");
            let status_line = format!(" {}", exchange.status);
            proptest::prop_assert!(memchr::memmem::find(head, status_line.as_bytes()).is_some());
            proptest::prop_assert!(head.ends_with(b"\n\r\n") || head.ends_with(b"\n\n"));
            let after = &wire[at.unwrap_or(0) + head.len()..];
            let is_chunked = exchange.header("transfer-encoding").is_some();
            proptest::prop_assert!(is_chunked || after.starts_with(&exchange.body.front(usize::MAX).unwrap()));
        }
    }
}

#[test]
fn a_fetch_can_be_moved_between_threads() {
    fn is_send(_: &impl Send) {}
    let fetcher = fetcher();
    let request = request("http://127.0.0.1/");
    is_send(&fetcher.fetch(&request));
}
