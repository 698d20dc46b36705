//! Nothing that a server does takes more bytes or time than the options say.

use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::server::read_request;
use super::*;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\n";

/// Writes the same bytes again and again until the client closes; returns the number of bytes
/// written.
async fn write_for_ever(stream: &mut TcpStream, block: &[u8]) -> usize {
    let mut written = 0;
    while stream.write_all(block).await.is_ok() {
        written += block.len();
    }
    written
}

/// A server that starts an answer and then repeats the same bytes; reports how much it sent.
async fn endless(
    start: &'static [u8],
    block: Vec<u8>,
) -> (TestServer, tokio::sync::mpsc::UnboundedReceiver<usize>) {
    let (report, reports) = tokio::sync::mpsc::unbounded_channel();
    let server = TestServer::start(move |mut stream, _| {
        let (report, block) = (report.clone(), block.clone());
        async move {
            read_request(&mut stream).await;
            let _ = stream.write_all(start).await;
            let _ = report.send(write_for_ever(&mut stream, &block).await);
        }
    })
    .await;
    (server, reports)
}

/// A server that starts an answer and then sends one byte at a time.
async fn dripping(start: &'static [u8], pause: Duration) -> TestServer {
    TestServer::start(move |mut stream, _| async move {
        read_request(&mut stream).await;
        let _ = stream.write_all(start).await;
        while stream.write_all(b"x").await.is_ok() {
            tokio::time::sleep(pause).await;
        }
    })
    .await
}

#[tokio::test]
async fn a_head_of_ten_megabytes_is_cut_at_the_limit() {
    for (start, block) in [
        (OK, b"X-Filler: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n".to_vec()),
        (b"HTTP/1.1 200 OK\r\nX: ", vec![b'a'; 4096]),
        (b"", vec![b'a'; 4096]),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n".repeat(100)),
        (b"", b"\r\n".repeat(100)),
    ] {
        let (server, mut reports) = endless(start, block).await;
        let (head_timeout, total_timeout) = (Duration::from_secs(5), Duration::from_secs(10));
        let options = FetchOptions { head_timeout, total_timeout, ..quick() };
        let failure = Fetcher::new(options).unwrap().fetch(&request(&server.url("/"))).await;
        let failure = failure.unwrap_err();
        if start.is_empty() && failure.kind() == "protocol" {
            continue; // A parser may also see at once that this is not HTTP.
        }
        assert_eq!(failure.kind(), "head-too-large", "{failure}");
        assert!(failure.to_string().contains("65536 bytes"), "{failure}");
        let written = reports.recv().await.unwrap();
        assert!(written < 10_000_000, "the connection is closed, not drained: {written}");
    }
}

#[tokio::test]
async fn too_many_headers_are_refused_also_when_they_are_short() {
    let head = |count| {
        let lines: String = (0..count).map(|i| format!("X{i}: a\r\n")).collect();
        format!("HTTP/1.1 200 OK\r\n{lines}Content-Length: 0\r\n\r\n")
    };
    assert!(answered_with(head(200)).await.is_ok());
    let failure = answered_with(head(300)).await.unwrap_err();
    assert_eq!(failure.kind(), "head-too-large", "{failure}");
}

#[tokio::test]
async fn an_announced_gigabyte_is_refused_at_once() {
    let start = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n";
    let (server, mut reports) = endless(start, vec![0; 65536]).await;
    let failure = fetcher().fetch(&request(&server.url("/"))).await.unwrap_err();
    assert_eq!(
        failure,
        FetchFailure::BodyTooLarge {
            host: "127.0.0.1".to_owned(),
            limit: 100 * 1024 * 1024,
            announced: Some(1_000_000_000)
        }
    );
    assert!(reports.recv().await.unwrap() < 50_000_000);
}

#[tokio::test]
async fn an_endless_body_is_cut_at_the_limit() {
    let start = b"HTTP/1.1 200 OK\r\n\r\n";
    let (server, mut reports) = endless(start, vec![0; 65536]).await;
    let mut request = request(&server.url("/"));
    request.limit = Some(BodyLimit::Whole(1_000_000));
    let failure = fetcher().fetch(&request).await.unwrap_err();
    let host = "127.0.0.1".to_owned();
    assert_eq!(failure, FetchFailure::BodyTooLarge { host, limit: 1_000_000, announced: None });
    assert!(reports.recv().await.unwrap() < 50_000_000);
}

#[tokio::test]
async fn of_an_endless_body_the_front_is_taken_and_the_connection_is_left() {
    for start in
        [&b"HTTP/1.1 200 OK\r\n\r\n"[..], b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"]
    {
        let (server, mut reports) = endless(start, vec![b'a'; 65536]).await;
        let mut request = request(&server.url("/"));
        request.limit = Some(BodyLimit::Front(100_001));
        let exchange = fetcher().fetch(&request).await.unwrap();
        assert_eq!(exchange.body.len(), 100_001);
        assert!(reports.recv().await.unwrap() < 50_000_000);
    }
}

#[tokio::test]
async fn a_request_may_have_less_time_than_the_options_give() {
    let start = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n";
    let server = dripping(start, Duration::from_millis(20)).await;
    let ms = Duration::from_millis;
    let short = FetchOptions {
        dns_timeout: ms(50),
        connect_timeout: ms(150),
        tls_timeout: ms(50),
        head_timeout: ms(200),
        total_timeout: ms(450),
        ..quick()
    };
    for (options, asked, after) in [(quick(), ms(300), ms(300)), (short, Duration::MAX, ms(450))] {
        let request = FetchRequest { timeout: Some(asked), ..request(&server.url("/robots.txt")) };
        let failure = Fetcher::new(options).unwrap().fetch(&request).await.unwrap_err();
        let (host, waiting) = ("127.0.0.1".to_owned(), Waiting::Exchange);
        assert_eq!(failure, FetchFailure::Timeout { host, waiting, after });
    }
}

#[tokio::test]
async fn a_body_within_the_wanted_front_is_whole_and_its_connection_is_used_again() {
    let server =
        TestServer::answering("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789").await;
    let fetcher = fetcher();
    for limit in [10, 11] {
        let mut request = request(&server.url("/"));
        request.limit = Some(BodyLimit::Front(limit));
        assert_eq!(text(&fetcher.fetch(&request).await.unwrap()), "0123456789");
    }
    let mut request = request(&server.url("/"));
    request.limit = Some(BodyLimit::Front(9));
    assert_eq!(text(&fetcher.fetch(&request).await.unwrap()), "012345678");
}

#[tokio::test]
async fn a_body_of_just_the_limit_is_taken() {
    let server = TestServer::answering_once("HTTP/1.1 200 OK\r\n\r\n0123456789").await;
    let fetch = async |limit| {
        let mut request = request(&server.url("/"));
        request.limit = Some(BodyLimit::Whole(limit));
        fetcher().fetch(&request).await
    };
    assert_eq!(text(&fetch(10).await.unwrap()), "0123456789");
    assert_eq!(fetch(9).await.unwrap_err().kind(), "too-large");
}

#[tokio::test]
async fn a_body_shorter_or_longer_than_announced_is_cut() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nmuch longer",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n",
    ] {
        let failure = answered_with(answer).await.unwrap_err();
        assert_eq!(failure.kind(), "body-cut", "{answer:?}: {failure}");
        assert!(!failure.is_server_trouble());
    }
    let uncounted = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello\r\n";
    assert_eq!(text(&answered_with(uncounted).await.unwrap()), "hello");
}

#[tokio::test]
async fn a_server_that_closes_without_a_head_is_said_to() {
    for answer in ["", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\nServer: x\r\n"] {
        let failure = answered_with(answer).await.unwrap_err();
        assert_eq!(failure.kind(), "closed", "{answer:?}: {failure}");
        assert!(failure.is_server_trouble());
    }
}

async fn times_out(server: &TestServer, options: FetchOptions) -> Waiting {
    let failure = Fetcher::new(options).unwrap().fetch(&request(&server.url("/"))).await;
    match failure.unwrap_err() {
        FetchFailure::Timeout { waiting, .. } => waiting,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn silence_and_drips_run_out_of_time() {
    let ms = Duration::from_millis;
    let short = FetchOptions { head_timeout: ms(150), idle_timeout: ms(150), ..quick() };
    let silent = TestServer::start(|mut stream, _| async move {
        let _ = stream.read_to_end(&mut Vec::new()).await;
    })
    .await;
    assert_eq!(times_out(&silent, short.clone()).await, Waiting::Head);
    let slow_head = dripping(b"HTTP/1.1 200 OK\r\nX: ", ms(20)).await;
    assert_eq!(times_out(&slow_head, short.clone()).await, Waiting::Head);
    let stuck_body = dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", ms(600)).await;
    assert_eq!(times_out(&stuck_body, short.clone()).await, Waiting::Body);
    let slow_body = dripping(b"HTTP/1.1 200 OK\r\n\r\n", ms(20)).await;
    let hasty = FetchOptions {
        dns_timeout: ms(50),
        connect_timeout: ms(100),
        tls_timeout: ms(50),
        total_timeout: ms(400),
        ..short
    };
    assert_eq!(times_out(&slow_body, hasty).await, Waiting::Exchange);
}

#[tokio::test]
async fn a_body_below_the_least_rate_is_given_up() {
    let ms = Duration::from_millis;
    let slow_body = dripping(b"HTTP/1.1 200 OK\r\n\r\n", ms(20)).await;
    let options = FetchOptions { idle_timeout: ms(100), min_body_bytes_per_s: 1000, ..quick() };
    assert_eq!(times_out(&slow_body, options).await, Waiting::BodyRate);
}

#[tokio::test]
async fn a_refusing_port_and_an_unknown_name_give_different_errors() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let url = format!("http://127.0.0.1:{port}/");
    let failure = fetcher().fetch(&request(&url)).await.unwrap_err();
    assert_eq!(failure.kind(), "connect");
    assert!(failure.to_string().contains(&format!("`127.0.0.1` port {port}")), "{failure}");
    let url = "http://no-such-host.invalid/";
    let failure = fetcher().fetch(&request(url)).await.unwrap_err();
    assert_eq!(failure.kind(), "dns", "{failure}");
    assert!(failure.to_string().contains("`no-such-host.invalid`"), "{failure}");
    assert!(failure.is_server_trouble());
}

#[tokio::test]
async fn a_private_address_is_refused_before_anything_is_sent() {
    let server = TestServer::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let port = server.address.port();
    let hosts = vec![("inside.example".to_owned(), Ipv4Addr::LOCALHOST.into())];
    let fetcher = Fetcher::new(FetchOptions { hosts, ..quick() }).unwrap();
    for host in ["127.0.0.1", "localhost", "0x7f.1", "[::ffff:127.0.0.1]", "inside.example"] {
        let url = CanonicalUrl::parse(&format!("http://{host}:{port}/")).unwrap();
        let failure = fetcher.fetch(&FetchRequest::new(url.clone())).await.unwrap_err();
        assert_eq!(failure.kind(), "address-refused", "{host}: {failure}");
        assert!(!failure.is_server_trouble());
    }
    assert_eq!(server.accepted(), 0);
    let never = CanonicalUrl::parse("http://0.0.0.0/").unwrap().to_string();
    assert_eq!(fetcher.fetch(&request(&never)).await.unwrap_err().kind(), "address-refused");
}

#[tokio::test]
async fn the_next_address_is_tried_when_one_refuses() {
    let server = TestServer::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let name = "several.example".to_owned();
    let host = |last: u8| (name.clone(), Ipv4Addr::new(127, 0, 0, last).into());
    let url = format!("http://{name}:{}/", server.address.port());
    let fetch = async |hosts, max_addresses| {
        let options = FetchOptions { hosts, max_addresses, ..quick() };
        Fetcher::new(options).unwrap().fetch(&request(&url)).await
    };
    let hosts = vec![host(7), host(8), host(1)];
    let exchange = fetch(hosts.clone(), 3).await.unwrap();
    assert_eq!(exchange.server_address, Some(IpAddr::from([127, 0, 0, 1])));
    let failure = fetch(hosts, 2).await.unwrap_err();
    assert_eq!(failure.kind(), "connect", "only so many are tried: {failure}");
}

#[tokio::test]
async fn ipv6_is_spoken() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        eprintln!("SKIPPED: this machine has no IPv6 loopback");
        return;
    }
    let server = TestServer::start_on("[::1]:0", |mut stream, _| async move {
        read_request(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    })
    .await;
    let exchange = fetcher().fetch(&request(&server.url("/"))).await.unwrap();
    assert_eq!(exchange.server_address, Some(server.address.ip()));
}
