//! TLS, HTTP/2, and HTTP/1 over TLS.

use bytes::Bytes;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::AsyncWriteExt;
use tokio_rustls::TlsAcceptor;

use super::server::read_request;
use super::*;

/// A certificate authority of the test's own, and a server's certificate from it.
pub(super) struct Authority {
    pub(super) root_der: Vec<u8>,
    server: Arc<rustls::crypto::CryptoProvider>,
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Authority {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
        Self {
            root_der: issuer.der().to_vec(),
            server: Arc::new(rustls::crypto::ring::default_provider()),
            certificate: certificate.der().clone(),
            key: PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        }
    }

    pub(super) fn acceptor(&self, protocols: &[&str]) -> TlsAcceptor {
        let mut config = ServerConfig::builder_with_provider(Arc::clone(&self.server))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], self.key.clone_key())
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|p| p.as_bytes().to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }

    fn fetcher(&self) -> Fetcher {
        let extra_roots_der = vec![self.root_der.clone()];
        let (slower, total_timeout) = (Duration::from_secs(5), Duration::from_secs(20));
        Fetcher::new(FetchOptions {
            extra_roots_der,
            tls_timeout: slower,
            head_timeout: slower,
            total_timeout,
            ..quick()
        })
        .unwrap()
    }
}

fn https(server: &TestServer, host: &str, path: &str) -> FetchRequest {
    request(&format!("https://{host}:{}{path}", server.address.port()))
}

/// An HTTP/2 server. Some paths are answered in a way that a test wants; the others with the host
/// and user agent of the request.
async fn http2_server(authority: &Authority) -> TestServer {
    let acceptor = authority.acceptor(&["h2"]);
    TestServer::start(move |stream, _| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let _ = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service_fn(answer_http2))
                .await;
        }
    })
    .await
}

async fn answer_http2(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let response = Response::builder().header("x-path", request.uri().path());
    let response = match request.uri().path() {
        "/large-head" => response.header("x-large", "a".repeat(100_000)),
        "/huge-head" => response.header("x-large", "a".repeat(1_000_000)),
        "/many-headers" => {
            (0..300).fold(response, |response, i| response.header(format!("x{i}"), "a"))
        }
        _ => response.header("set-cookie", "a=1").header("set-cookie", "b=2"),
    };
    let body = match request.uri().path() {
        "/large-body" => Bytes::from(vec![0; 3_000_000]),
        _ => {
            let authority = request.uri().authority().map(ToString::to_string);
            let agent = request.headers()["user-agent"].to_str().unwrap();
            let has_host = request.headers().contains_key("host");
            format!("{authority:?} {agent} {has_host}").into()
        }
    };
    Ok(response.body(Full::new(body)).unwrap())
}

#[tokio::test]
async fn http2_is_spoken_where_the_server_offers_it() {
    let authority = Authority::new();
    let server = http2_server(&authority).await;
    let fetcher = authority.fetcher();
    let host = format!("localhost:{}", server.address.port());
    for _ in 0..3 {
        let exchange = fetcher.fetch(&https(&server, "localhost", "/a?b")).await.unwrap();
        assert_eq!(exchange.protocol, Protocol::Http2);
        assert_eq!(exchange.tls.as_deref(), Some("TLSv1_3"));
        assert_eq!(text(&exchange), format!("Some({host:?}) nenrin-test false"));
        let head = String::from_utf8(exchange.response_head.clone()).unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\nx-path: /a\r\n"), "{head}");
        assert!(head.ends_with("\r\n\r\n"), "{head}");
        assert_eq!(exchange.header_values("set-cookie").count(), 2);
        let head = String::from_utf8(exchange.request_head).unwrap();
        assert!(head.starts_with(&format!("GET /a?b HTTP/1.1\r\nhost: {host}\r\n")), "{head}");
    }
    assert_eq!(server.accepted(), 1, "the connection is used again");
}

#[tokio::test]
async fn http2_has_the_same_limits() {
    let authority = Authority::new();
    let server = http2_server(&authority).await;
    let fetcher = authority.fetcher();
    for path in ["/large-head", "/huge-head", "/many-headers"] {
        let failure = fetcher.fetch(&https(&server, "localhost", path)).await.unwrap_err();
        assert_eq!(failure.kind(), "head-too-large", "{path}: {failure}");
    }
    let mut request = https(&server, "localhost", "/large-body");
    assert_eq!(fetcher.fetch(&request).await.unwrap().body.len(), 3_000_000);
    request.limit = Some(BodyLimit::Whole(2_000_000));
    assert_eq!(fetcher.fetch(&request).await.unwrap_err().kind(), "too-large");
}

#[tokio::test]
async fn an_idle_http2_connection_that_died_is_replaced() {
    let authority = Authority::new();
    let acceptor = authority.acceptor(&["h2"]);
    let server = TestServer::start(move |stream, _| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service_fn(answer_http2));
            // Cut off in the middle, without notice.
            let _ = timeout(Duration::from_millis(300), connection).await;
        }
    })
    .await;
    let fetcher = authority.fetcher();
    fetcher.fetch(&https(&server, "localhost", "/")).await.unwrap();
    tokio::time::sleep(Duration::from_millis(400)).await;
    fetcher.fetch(&https(&server, "localhost", "/")).await.unwrap();
    assert_eq!(server.accepted(), 2);
}

/// HTTP/1 over TLS with a fixed answer; ends TLS properly or just drops the connection.
async fn http1_server(
    authority: &Authority,
    protocols: &[&str],
    answer: &'static str,
    says_goodbye: bool,
) -> TestServer {
    let acceptor = authority.acceptor(protocols);
    TestServer::start(move |stream, _| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            read_request(&mut stream).await;
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.flush().await;
            if says_goodbye {
                let _ = stream.shutdown().await;
            }
        }
    })
    .await
}

#[tokio::test]
async fn http1_is_spoken_over_tls_with_and_without_alpn() {
    let authority = Authority::new();
    let answer = "HTTP/1.1 200 OK\r\nX-Odd:  y \r\nContent-Length: 2\r\n\r\nhi";
    for protocols in [&["http/1.1"][..], &[]] {
        let server = http1_server(&authority, protocols, answer, true).await;
        let exchange = authority.fetcher().fetch(&https(&server, "127.0.0.1", "/")).await.unwrap();
        assert_eq!((exchange.protocol, text(&exchange)), (Protocol::Http11, "hi".to_owned()));
        assert_eq!(exchange.tls.as_deref(), Some("TLSv1_3"));
        assert!(exchange.response_head.ends_with(b"X-Odd:  y \r\nContent-Length: 2\r\n\r\n"));
    }
}

#[tokio::test]
async fn a_server_that_ends_tls_without_a_word_is_understood() {
    let authority = Authority::new();
    let unframed = "HTTP/1.1 200 OK\r\n\r\nto the end";
    let server = http1_server(&authority, &[], unframed, false).await;
    let exchange = authority.fetcher().fetch(&https(&server, "localhost", "/")).await.unwrap();
    assert_eq!(text(&exchange), "to the end");
    let framed = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nnot to the end";
    let server = http1_server(&authority, &[], framed, false).await;
    let failure = authority.fetcher().fetch(&https(&server, "localhost", "/")).await.unwrap_err();
    assert_eq!(failure.kind(), "body-cut", "{failure}");
}

#[tokio::test]
async fn a_certificate_that_cannot_be_trusted_is_refused() {
    let authority = Authority::new();
    let server = http2_server(&authority).await;
    let failure = fetcher().fetch(&https(&server, "localhost", "/")).await.unwrap_err();
    assert_eq!(failure.kind(), "tls", "unknown authority: {failure}");
    assert!(failure.to_string().contains("`localhost`"), "{failure}");
    let hosts = vec![("other.example".to_owned(), server.address.ip())];
    let extra_roots_der = vec![authority.root_der.clone()];
    let options = FetchOptions { hosts, extra_roots_der, ..quick() };
    let fetcher = Fetcher::new(options).unwrap();
    let failure = fetcher.fetch(&https(&server, "other.example", "/")).await.unwrap_err();
    assert_eq!(failure.kind(), "tls", "another name: {failure}");
}

#[tokio::test]
async fn a_silent_or_plain_server_on_a_tls_port_is_noticed() {
    let silent = TestServer::start(|mut stream, _| async move {
        read_request(&mut stream).await;
    })
    .await;
    let options = FetchOptions { tls_timeout: Duration::from_millis(200), ..quick() };
    let fetcher = Fetcher::new(options).unwrap();
    let failure = fetcher.fetch(&https(&silent, "localhost", "/")).await.unwrap_err();
    let host = "localhost".to_owned();
    let after = Duration::from_millis(200);
    assert_eq!(failure, FetchFailure::Timeout { host, waiting: Waiting::Handshake, after });
    let plain = TestServer::start(|mut stream, _| async move {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        read_request(&mut stream).await;
    })
    .await;
    let failure = fetcher.fetch(&https(&plain, "localhost", "/")).await.unwrap_err();
    assert_eq!(failure.kind(), "tls", "{failure}");
}

#[test]
fn a_root_that_is_not_a_certificate_is_refused_at_once() {
    let options = FetchOptions { extra_roots_der: vec![vec![1, 2, 3]], ..quick() };
    let Err(error) = Fetcher::new(options) else { panic!("it was accepted") };
    assert!(error.to_string().contains("fetch.extra_roots_der "), "{error}");
}
