//! Connections that are used again.

use std::time::Duration;

use tokio::io::AsyncWriteExt;

use super::server::read_request;
use super::*;

/// Answers with the number of the connection and of the request on it.
async fn counting(requests_per_connection: usize, connection_header: &'static str) -> TestServer {
    TestServer::start(move |mut stream, connection| async move {
        for request in 0..requests_per_connection {
            if read_request(&mut stream).await.is_none() {
                return;
            }
            let body = format!("{connection}.{request}");
            let length = body.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\nX-Number: {body}\r\n{connection_header}Content-Length: {length}\r\n\r\n"
            );
            let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
        }
    })
    .await
}

async fn fetch_text(fetcher: &Fetcher, server: &TestServer) -> String {
    let exchange = fetcher.fetch(&request(&server.url("/"))).await.unwrap();
    let text = text(&exchange);
    assert_eq!(exchange.header("x-number").unwrap(), text, "each exchange has its own head");
    text
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let server = counting(usize::MAX, "").await;
    let fetcher = fetcher();
    for number in 0..5 {
        assert_eq!(fetch_text(&fetcher.clone(), &server).await, format!("0.{number}"));
    }
}

#[tokio::test]
async fn requests_at_the_same_time_have_connections_of_their_own() {
    let server = counting(usize::MAX, "").await;
    let fetcher = fetcher();
    let (a, b) = tokio::join!(fetch_text(&fetcher, &server), fetch_text(&fetcher, &server));
    assert_ne!(a, b);
    assert_eq!(server.accepted(), 2);
}

#[tokio::test]
async fn a_connection_that_the_server_ends_is_not_used_again() {
    let server = counting(usize::MAX, "Connection: close\r\n").await;
    let fetcher = fetcher();
    assert_eq!(fetch_text(&fetcher, &server).await, "0.0");
    assert_eq!(fetch_text(&fetcher, &server).await, "1.0");
}

#[tokio::test]
async fn a_connection_that_died_while_idle_is_replaced() {
    let server = counting(2, "").await;
    let fetcher = fetcher();
    for expected in ["0.0", "0.1", "1.0", "1.1", "2.0"] {
        assert_eq!(fetch_text(&fetcher, &server).await, expected);
    }
}

/// Closes only after it has read a second request on the same connection: the client cannot know
/// before it has sent it.
async fn closing_on_second_request(fresh_ones_answer: usize) -> TestServer {
    TestServer::start(move |mut stream, connection| async move {
        read_request(&mut stream).await;
        if connection < fresh_ones_answer {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
            read_request(&mut stream).await;
        }
    })
    .await
}

#[tokio::test]
async fn a_request_that_meets_a_stale_connection_is_sent_once_more() {
    let server = closing_on_second_request(2).await;
    let fetcher = fetcher();
    assert!(fetcher.fetch(&request(&server.url("/"))).await.is_ok());
    assert!(fetcher.fetch(&request(&server.url("/"))).await.is_ok());
    assert_eq!(server.accepted(), 2);
}

#[tokio::test]
async fn a_fresh_connection_that_dies_is_not_tried_again() {
    let server = closing_on_second_request(1).await;
    let fetcher = fetcher();
    assert!(fetcher.fetch(&request(&server.url("/"))).await.is_ok());
    let failure = fetcher.fetch(&request(&server.url("/"))).await.unwrap_err();
    assert_eq!(failure.kind(), "closed", "{failure}");
    assert_eq!(server.accepted(), 2, "once on the stale and once on a new connection");
}

#[tokio::test]
async fn a_connection_with_stray_bytes_is_not_used_again() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
    let server = TestServer::answering(format!("{head}ok\r\n")).await;
    let fetcher = fetcher();
    for _ in 0..3 {
        let exchange = fetcher.fetch(&request(&server.url("/"))).await.unwrap();
        assert_eq!((text(&exchange), exchange.response_head), ("ok".to_owned(), head.into()));
    }
    assert_eq!(server.accepted(), 3);
}

#[tokio::test]
async fn an_answer_that_nobody_asked_for_is_never_taken_for_one() {
    let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    let poison = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison";
    let server = TestServer::answering(format!("{answer}{poison}")).await;
    let fetcher = fetcher();
    for _ in 0..20 {
        let exchange = fetcher.fetch(&request(&server.url("/"))).await.unwrap();
        assert_eq!(text(&exchange), "ok");
    }
}

#[tokio::test]
async fn an_idle_connection_is_closed_after_its_time() {
    let (closed, mut was_closed) = tokio::sync::mpsc::unbounded_channel();
    let server = TestServer::start(move |mut stream, _| {
        let closed = closed.clone();
        async move {
            read_request(&mut stream).await;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
            let _ = closed.send(read_request(&mut stream).await.is_none());
        }
    })
    .await;
    let options = FetchOptions { max_idle_age: Duration::from_millis(100), ..quick() };
    let fetcher = Fetcher::new(options).unwrap();
    fetcher.fetch(&request(&server.url("/"))).await.unwrap();
    let closed = timeout(Duration::from_secs(2), was_closed.recv()).await.unwrap();
    assert_eq!(closed, Some(true), "without any further request");
}

#[tokio::test]
async fn a_connection_made_with_permission_is_not_lent_to_a_request_without() {
    let server = counting(usize::MAX, "").await;
    let fetcher = fetcher();
    fetch_text(&fetcher, &server).await;
    let mut request = request(&server.url("/"));
    request.addresses = AddressPolicy::Public;
    assert_eq!(fetcher.fetch(&request).await.unwrap_err().kind(), "address-refused");
}
