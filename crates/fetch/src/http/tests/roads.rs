//! Proxies, source addresses and certificates, each with a real server or proxy on loopback.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, OnceLock};

use nenrin_urls::Proxy;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::TcpStream;

use super::secure::Authority;
use super::server::read_request;
use super::*;

/// A proxy that writes down what it was asked for.
struct TestProxy {
    server: TestServer,
    asked: Arc<Mutex<Vec<String>>>,
}

impl TestProxy {
    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    fn road(&self, scheme: &str, login: &str) -> Road {
        let text = format!("{scheme}://{login}{}", self.server.address);
        Road { proxy: Some(text.parse().unwrap()), ..Road::default() }
    }
}

/// Every name leads to this port on loopback.
async fn reach(port: u16) -> TcpStream {
    #[expect(clippy::disallowed_methods, reason = "a proxy of a test")]
    let connecting = TcpStream::connect((Ipv4Addr::LOCALHOST, port));
    connecting.await.unwrap()
}

async fn http_proxy(password: Option<&'static str>) -> TestProxy {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = asked.clone();
    let server = TestServer::start(move |mut stream, _| {
        let log = log.clone();
        async move {
            let Some(head) = read_request(&mut stream).await else { return };
            let head = String::from_utf8(head).unwrap();
            let line = head.lines().next().unwrap().to_owned();
            log.lock().unwrap().push(line.clone());
            let wanted = password.map(|password| format!("Proxy-Authorization: {password}\r\n"));
            if wanted.is_some_and(|wanted| !head.contains(&wanted)) {
                let _ = stream.write_all(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n").await;
                return;
            }
            let target = line.split(' ').nth(1).unwrap();
            let port = target.trim_start_matches("http://").split('/').next().unwrap();
            let port = port.rsplit(':').next().unwrap().parse().unwrap();
            let mut server = reach(port).await;
            if line.starts_with("CONNECT ") {
                stream.write_all(b"HTTP/1.1 200 Fine\r\n\r\n").await.unwrap();
            } else {
                server.write_all(head.as_bytes()).await.unwrap();
            }
            let _ = copy_bidirectional(&mut stream, &mut server).await;
        }
    })
    .await;
    TestProxy { server, asked }
}

async fn socks_proxy(login: Option<(&'static str, &'static str)>) -> TestProxy {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = asked.clone();
    let server = TestServer::start(move |mut stream, _| {
        let log = log.clone();
        async move {
            let (target, port) = match socks_request(&mut stream, login).await {
                Ok(asked) => asked,
                Err(_) => return,
            };
            log.lock().unwrap().push(target.clone());
            if target.starts_with("forbidden") {
                let _ = stream.write_all(&[5, 2, 0, 1, 0, 0, 0, 0, 0, 0]).await;
                return;
            }
            let mut server = reach(port).await;
            let _ = stream.write_all(&[5, 0, 0, 3, 1, b'x', 0, 80]).await;
            let _ = copy_bidirectional(&mut stream, &mut server).await;
        }
    })
    .await;
    TestProxy { server, asked }
}

async fn socks_request(
    stream: &mut TcpStream,
    login: Option<(&str, &str)>,
) -> io::Result<(String, u16)> {
    assert_eq!(stream.read_u8().await?, 5);
    let mut methods = vec![0; usize::from(stream.read_u8().await?)];
    stream.read_exact(&mut methods).await?;
    match login {
        None => stream.write_all(&[5, 0]).await?,
        Some(_) if !methods.contains(&2) => {
            stream.write_all(&[5, 0xff]).await?;
            return Err(io::Error::other("no method"));
        }
        Some((user, password)) => {
            stream.write_all(&[5, 2]).await?;
            assert_eq!(stream.read_u8().await?, 1);
            let mut texts = Vec::new();
            for _ in 0..2 {
                let mut text = vec![0; usize::from(stream.read_u8().await?)];
                stream.read_exact(&mut text).await?;
                texts.push(String::from_utf8(text).unwrap());
            }
            let is_right = texts == [user, password];
            stream.write_all(&[1, u8::from(!is_right)]).await?;
        }
    }
    let mut head = [0; 4];
    stream.read_exact(&mut head).await?;
    assert_eq!(head[..3], [5, 1, 0]);
    let target = match head[3] {
        1 => {
            let mut octets = [0; 4];
            stream.read_exact(&mut octets).await?;
            Ipv4Addr::from(octets).to_string()
        }
        3 => {
            let mut name = vec![0; usize::from(stream.read_u8().await?)];
            stream.read_exact(&mut name).await?;
            String::from_utf8(name).unwrap()
        }
        other => panic!("{other}"),
    };
    Ok((target, stream.read_u16().await?))
}

/// A server that answers with the head of the request that it got.
async fn echo() -> TestServer {
    TestServer::start(|mut stream, _| async move {
        while let Some(head) = read_request(&mut stream).await {
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", head.len());
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.write_all(&head).await;
        }
    })
    .await
}

fn through(road: Road, url: &str) -> FetchRequest {
    FetchRequest { road, ..FetchRequest::new(CanonicalUrl::parse(url).unwrap()) }
}

#[tokio::test]
async fn an_http_proxy_gets_the_whole_url_and_the_record_is_as_without_it() {
    let (server, proxy) = (echo().await, http_proxy(Some("Basic bWU6czpjcmV0")).await);
    let url = format!("http://elsewhere.example:{}/a?b", server.address.port());
    let road = proxy.road("http", "me:s%3Acret@");
    let exchange = fetcher().fetch(&through(road, &url)).await.unwrap();
    assert_eq!(proxy.asked(), [format!("GET {url} HTTP/1.1")]);
    assert!(text(&exchange).starts_with(&format!("GET {url} HTTP/1.1\r\n")));
    let recorded = String::from_utf8(exchange.request_head.clone()).unwrap();
    assert!(recorded.starts_with("GET /a?b HTTP/1.1\r\n"), "{recorded}");
    assert!(!recorded.to_lowercase().contains("proxy"), "{recorded}");
    assert_eq!(exchange.server_address, None, "only the proxy knows it");
}

#[tokio::test]
async fn a_wrong_password_is_said_and_not_shown() {
    let (server, proxy) = (Authority::new(), http_proxy(Some("Basic other")).await);
    drop(server);
    let road = proxy.road("http", "me:sesame@");
    let failure =
        fetcher().fetch(&through(road, "https://elsewhere.example:1/")).await.unwrap_err();
    assert_eq!(failure.kind(), "connect");
    let message = failure.to_string();
    assert!(message.contains("407") && message.contains(&proxy.server.address.to_string()));
    assert!(!message.contains("sesame"), "{message}");
}

/// A server with TLS whose certificate is for `localhost` alone.
async fn secure_echo(authority: &Authority) -> TestServer {
    let acceptor = authority.acceptor(&["http/1.1"]);
    TestServer::start(move |stream, _| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            while read_request(&mut stream).await.is_some() {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
            }
        }
    })
    .await
}

fn patient(extra_roots_der: Vec<Vec<u8>>) -> Fetcher {
    let slower = Duration::from_secs(5);
    let total_timeout = Duration::from_secs(20);
    let quick = quick();
    let options = FetchOptions {
        extra_roots_der,
        tls_timeout: slower,
        connect_timeout: slower,
        head_timeout: slower,
        total_timeout,
        ..quick
    };
    Fetcher::new(options).unwrap()
}

#[tokio::test]
async fn tls_goes_through_both_kinds_of_proxies_and_is_checked() {
    let authority = Authority::new();
    let server = secure_echo(&authority).await;
    let fetcher = patient(vec![authority.root_der.clone()]);
    let url = |host: &str| format!("https://{host}:{}/", server.address.port());
    for (proxy, scheme) in [(http_proxy(None).await, "http"), (socks_proxy(None).await, "socks5h")]
    {
        let road = proxy.road(scheme, "");
        let known = FetchRequest {
            addresses: AddressPolicy::AllowPrivate,
            ..through(road.clone(), &url("localhost"))
        };
        assert_eq!(text(&fetcher.fetch(&known).await.unwrap()), "ok");
        let failure = fetcher.fetch(&through(road, &url("other.example"))).await.unwrap_err();
        assert_eq!(failure.kind(), "tls", "the certificate is for another name: {failure}");
        assert_eq!(proxy.asked().len(), 2, "{:?}", proxy.asked());
    }
}

#[tokio::test]
async fn socks5_is_asked_for_names_or_for_addresses() {
    let (server, proxy) = (echo().await, socks_proxy(Some(("me", "s:cret"))).await);
    let port = server.address.port();
    let by_name = proxy.road("socks5h", "me:s%3Acret@");
    let url = format!("http://only-the-proxy-knows.example:{port}/");
    let exchange = fetcher().fetch(&through(by_name.clone(), &url)).await.unwrap();
    assert!(text(&exchange).starts_with("GET / HTTP/1.1\r\n"));
    // Names are looked up here, and the guard sees what they mean.
    let by_address = proxy.road("socks5", "me:s%3Acret@");
    let hosts = vec![("named.example".to_owned(), IpAddr::from([203, 0, 113, 7]))];
    let fetcher = Fetcher::new(FetchOptions { hosts, ..quick() }).unwrap();
    let request = FetchRequest {
        addresses: AddressPolicy::AllowPrivate,
        ..through(by_address, &format!("http://named.example:{port}/"))
    };
    let exchange = fetcher.fetch(&request).await.unwrap();
    assert_eq!(exchange.server_address, Some(IpAddr::from([203, 0, 113, 7])));
    assert_eq!(proxy.asked(), ["only-the-proxy-knows.example", "203.0.113.7"]);
    let forbidden = through(by_name, &format!("http://forbidden.example:{port}/"));
    let message = fetcher.fetch(&forbidden).await.unwrap_err().to_string();
    assert!(message.contains("its rules forbid this connection"), "{message}");
    let wrong = through(proxy.road("socks5h", "me:x@"), &url);
    let message = fetcher.fetch(&wrong).await.unwrap_err().to_string();
    assert!(message.contains("another user name or password"), "{message}");
    let none = through(proxy.road("socks5h", ""), &url);
    let message = fetcher.fetch(&none).await.unwrap_err().to_string();
    assert!(message.contains("wants a user name and password"), "{message}");
}

#[tokio::test]
async fn the_guard_holds_for_what_a_proxy_is_asked_for() {
    for (proxy, scheme) in [
        (http_proxy(None).await, "http"),
        (socks_proxy(None).await, "socks5"),
        (socks_proxy(None).await, "socks5h"),
    ] {
        let hosts = vec![("rebound.example".to_owned(), IpAddr::from([10, 0, 0, 1]))];
        let fetcher = Fetcher::new(FetchOptions { hosts, ..quick() }).unwrap();
        for host in ["127.0.0.1", "[::1]", "169.254.169.254", "localhost", "x.local", "intranet"] {
            let url = format!("http://{host}/");
            let failure = fetcher.fetch(&through(proxy.road(scheme, ""), &url)).await.unwrap_err();
            assert!(
                matches!(failure.kind(), "address-refused" | "request" | "dns"),
                "{scheme} {host}: {failure}"
            );
        }
        if scheme != "socks5h" {
            let rebound = through(proxy.road(scheme, ""), "http://rebound.example/");
            let failure = fetcher.fetch(&rebound).await.unwrap_err();
            assert_eq!(failure.kind(), "address-refused", "{scheme}");
        }
        assert_eq!(proxy.asked(), Vec::<String>::new(), "{scheme}");
    }
}

#[tokio::test]
async fn a_proxy_of_all_is_left_out_where_a_request_says_so() {
    let (server, proxy) = (echo().await, http_proxy(None).await);
    let all = proxy.road("http", "").proxy;
    let fetcher = Fetcher::new(FetchOptions { proxy: all, ..quick() }).unwrap();
    let direct = Road { proxy: Some(Proxy::Direct), ..Road::default() };
    let url = server.url("/");
    fetcher.fetch(&FetchRequest { road: direct, ..request(&url) }).await.unwrap();
    assert_eq!(proxy.asked().len(), 0);
    // An idle connection of another road is not used.
    fetcher.fetch(&request(&url)).await.unwrap();
    assert_eq!(proxy.asked().len(), 1);
}

#[tokio::test]
async fn a_proxy_that_is_not_there_or_says_nonsense_is_named() {
    let nonsense = TestServer::answering_once("SSH-2.0-x\r\n\r\n\r\n").await;
    for (address, scheme) in [
        ("127.0.0.1:1".to_owned(), "http"),
        (nonsense.address.to_string(), "http"),
        (nonsense.address.to_string(), "socks5h"),
    ] {
        let road = Road {
            proxy: Some(format!("{scheme}://{address}").parse().unwrap()),
            ..Road::default()
        };
        let failure = fetcher().fetch(&through(road, "https://e.example/")).await.unwrap_err();
        let message = failure.to_string();
        assert!(message.contains(&address) || failure.kind() == "timeout", "{message}");
    }
}

#[tokio::test]
async fn requests_leave_from_the_address_that_is_set() {
    let server = TestServer::start(|mut stream, _| async move {
        let from = stream.peer_addr().unwrap().ip().to_string();
        read_request(&mut stream).await;
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{from}", from.len());
        let _ = stream.write_all(answer.as_bytes()).await;
    })
    .await;
    let from = |source: &str| FetchRequest {
        road: Road { source: Some(source.parse().unwrap()), ..Road::default() },
        ..request(&server.url("/"))
    };
    for source in ["127.0.0.1", "127.0.0.9"] {
        assert_eq!(text(&fetcher().fetch(&from(source)).await.unwrap()), source);
    }
    let message = fetcher().fetch(&from("203.0.113.1")).await.unwrap_err().to_string();
    assert!(message.contains("cannot send from 203.0.113.1"), "{message}");
    let message = fetcher().fetch(&from("::1")).await.unwrap_err().to_string();
    assert!(message.contains("another kind"), "{message}");
}

#[tokio::test]
async fn certificates_of_files_are_trusted_and_any_certificate_only_where_it_is_said() {
    let authority = Authority::new();
    let server = secure_echo(&authority).await;
    let url = format!("https://localhost:{}/", server.address.port());
    let plain = patient(Vec::new());
    assert_eq!(plain.fetch(&request(&url)).await.unwrap_err().kind(), "tls");
    let any = Road { any_certificate: true, ..Road::default() };
    let exchange = plain.fetch(&FetchRequest { road: any, ..request(&url) }).await.unwrap();
    assert_eq!(text(&exchange), "ok");
    let failure = plain.fetch(&request(&url)).await.unwrap_err();
    assert_eq!(failure.kind(), "tls", "the connection of the other road is not used");

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    let pem =
        base64::Engine::encode(&base64::engine::general_purpose::STANDARD, &authority.root_der);
    let lines: Vec<&str> =
        pem.as_bytes().chunks(64).map(|l| std::str::from_utf8(l).unwrap()).collect();
    let pem = lines.join("\n");
    std::fs::write(
        &file,
        format!("# ours\n-----BEGIN CERTIFICATE-----\n{pem}\n-----END CERTIFICATE-----\n"),
    )
    .unwrap();
    let roots = crate::certificates_in(&file).unwrap();
    assert_eq!(roots, std::slice::from_ref(&authority.root_der));
    assert_eq!(text(&patient(roots).fetch(&request(&url)).await.unwrap()), "ok");
    std::fs::write(&file, "no certificate").unwrap();
    let message = crate::certificates_in(&file).unwrap_err().to_string();
    assert!(message.contains("ca.pem"), "{message}");
    let message = crate::certificates_in(&folder.path().join("none")).unwrap_err().to_string();
    assert!(message.contains("none"), "{message}");
}

#[tokio::test]
async fn the_systems_certificates_are_trusted_and_broken_ones_left_out() {
    static ROOTS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    let authority = Authority::new();
    ROOTS.set(vec![b"broken".to_vec(), authority.root_der.clone()]).unwrap();
    let server = secure_echo(&authority).await;
    let url = format!("https://localhost:{}/", server.address.port());
    let slower = Duration::from_secs(5);
    let options = FetchOptions {
        system_roots_der: || ROOTS.get().cloned().unwrap(),
        tls_timeout: slower,
        head_timeout: slower,
        total_timeout: Duration::from_secs(20),
        ..quick()
    };
    assert_eq!(text(&Fetcher::new(options).unwrap().fetch(&request(&url)).await.unwrap()), "ok");
    for der in crate::system_certificates() {
        assert!(der.len() > 100);
    }
}
