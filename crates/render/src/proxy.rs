//! The browser's whole network: a proxy on loopback that asks the caller for every answer.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use nenrin_urls::{CanonicalUrl, PostedUrl};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;

use crate::RenderError;
use crate::authority::Authority;
use crate::program::is_of_this_user;
use crate::rendering::SentBody;

/// Connections of the browser at once; it has some hundred at most.
const MAX_CONNECTIONS: usize = 512;

/// How long a connection may be silent before its first request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// The first byte of TLS.
const TLS_HANDSHAKE: u8 = 0x16;

/// The longest body of a request that is sent: what asks for data is short.
const BODY_MAX_BYTES: usize = 256 << 10;
/// The longest body that a person sends while logging in.
const PERSON_BODY_MAX_BYTES: usize = 16 << 20;

/// Bodies that are read at once.
const READ_AT_ONCE: usize = 2;
/// What bodies may take, in KiB, from when they have been read until the browser has taken them.
const HELD_KIB: u32 = 64 << 10;
/// A page whose browser takes nothing for this long asks for too much.
const ROOM_PATIENCE: Duration = Duration::from_secs(5);

/// A request of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// What is asked for; the [address](PostedUrl) of a request by POST.
    pub url: CanonicalUrl,
    /// How, such as `GET`.
    pub method: String,
    /// The whole request, where a person browses.
    pub whole: Option<WholeRequest>,
}

/// Header fields and body of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WholeRequest {
    /// The header fields in their order.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
}

/// What the caller gives for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// This response, its body with its content coding.
    Stored {
        /// The status.
        status: u16,
        /// The header fields in their order.
        headers: Vec<(String, Vec<u8>)>,
        /// The body.
        body: Bytes,
    },
    /// Nothing, and it may be had: it is reported as missing.
    Missing,
    /// Nothing, and nothing can be had: the server has none, or it may not be asked.
    Nothing,
}

/// Who answers the requests of a page. Called on threads where waiting is allowed.
pub trait Answers: Send + Sync {
    /// The answer to one request. Only requests by GET and HEAD are put to it, and those by POST whose
    /// answer the page can read.
    fn answer(&self, asked: &Asked) -> Answer;
}

/// What happened to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fate {
    Answered,
    Nothing,
    Missing,
    /// It has a body, or is no request for a file.
    NotSent,
}

/// The requests of the page that is being rendered.
pub(crate) struct Ledger {
    answers: Option<Arc<dyn Answers>>,
    /// A person browses: every request is put to the caller as it is.
    is_of_person: bool,
    /// By method and URL, each with the last fate.
    pub(crate) requests: BTreeMap<(String, CanonicalUrl), Fate>,
    /// What requests by POST send, by their addresses.
    pub(crate) bodies: BTreeMap<CanonicalUrl, SentBody>,
    pub(crate) under_way: usize,
    pub(crate) bytes: u64,
    pub(crate) count: usize,
    pub(crate) is_over_limit: bool,
    max_requests: usize,
    max_bytes: u64,
    reading: Arc<Semaphore>,
    room: Arc<Semaphore>,
}

/// The proxy; it ends when this is dropped.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    pub(crate) key_hash: String,
    ledger: Arc<Mutex<Ledger>>,
    task: JoinHandle<()>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Proxy {
    pub(crate) async fn start(max_requests: usize, max_bytes: u64) -> Result<Self, RenderError> {
        let authority = Arc::new(Authority::new()?);
        let key_hash = authority.key_hash();
        let ledger = Arc::new(Mutex::new(Ledger {
            answers: None,
            is_of_person: false,
            requests: BTreeMap::new(),
            bodies: BTreeMap::new(),
            under_way: 0,
            bytes: 0,
            count: 0,
            is_over_limit: false,
            max_requests,
            max_bytes,
            reading: Arc::new(Semaphore::new(READ_AT_ONCE)),
            room: Arc::new(Semaphore::new(HELD_KIB as usize)),
        }));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let task = tokio::spawn(accept(listener, authority, ledger.clone()));
        Ok(Self { port, key_hash, ledger, task })
    }

    /// From now on requests are those of another page.
    pub(crate) fn begin(&self, answers: Arc<dyn Answers>) {
        let mut ledger = self.ledger();
        ledger.answers = Some(answers);
        ledger.requests.clear();
        ledger.bodies.clear();
        (ledger.bytes, ledger.count, ledger.is_over_limit) = (0, 0, false);
    }

    /// From now on a person browses.
    pub(crate) fn open_for_person(&self, answers: Arc<dyn Answers>) {
        let mut ledger = self.ledger();
        (ledger.answers, ledger.is_of_person) = (Some(answers), true);
    }

    /// No page is being rendered: every request is refused.
    pub(crate) fn finish(&self) {
        self.ledger().answers = None;
    }

    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn accept(listener: TcpListener, authority: Arc<Authority>, ledger: Arc<Mutex<Ledger>>) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let Ok((stream, peer)) = listener.accept().await else { return };
        // Other users of this machine must not read the archive through it.
        let is_own = tokio::task::spawn_blocking(move || is_of_this_user(peer)).await;
        if !is_own.unwrap_or(false) {
            continue;
        }
        let (authority, ledger) = (authority.clone(), ledger.clone());
        tokio::spawn(async move {
            let _place = place;
            serve(stream, None, Some(authority), ledger).await;
        });
    }
}

/// Serves one connection: of the browser to the proxy, or, within it, to a server (`origin`).
async fn serve<S>(
    stream: S,
    origin: Option<Arc<str>>,
    authority: Option<Arc<Authority>>,
    ledger: Arc<Mutex<Ledger>>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let (origin, authority, ledger) = (origin.clone(), authority.clone(), ledger.clone());
        async move {
            let response = match (request.method() == Method::CONNECT, authority) {
                (true, Some(authority)) => tunnel(request, authority, ledger),
                (true, None) => plain(StatusCode::BAD_REQUEST),
                (false, _) => answer(request, origin.as_deref(), ledger).await,
            };
            Ok::<_, Infallible>(response)
        }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    // A browser that closes a connection is not an error.
    let _ = connection.await;
}

fn plain(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}

/// The browser wants a connection to a server: it gets one to us.
fn tunnel(
    request: Request<Incoming>,
    authority: Arc<Authority>,
    ledger: Arc<Mutex<Ledger>>,
) -> Response<Full<Bytes>> {
    let Some(target) = request.uri().authority().cloned() else {
        return plain(StatusCode::BAD_REQUEST);
    };
    tokio::spawn(async move {
        let Ok(upgraded) = hyper::upgrade::on(request).await else { return };
        // A boxed future, since a tunnel is served by what opens tunnels.
        let inside: std::pin::Pin<Box<dyn Future<Output = io::Result<()>> + Send>> =
            Box::pin(async move {
                let mut stream = BufReader::new(TokioIo::new(upgraded));
                let first = stream.fill_buf().await?.first().copied();
                if first == Some(TLS_HANDSHAKE) {
                    let acceptor = authority.acceptor(target.host()).map_err(io::Error::other)?;
                    let stream = acceptor.accept(stream).await?;
                    let origin = format!("https://{target}").into();
                    serve(stream, Some(origin), None, ledger).await;
                } else {
                    serve(stream, Some(format!("http://{target}").into()), None, ledger).await;
                }
                Ok(())
            });
        let _ = inside.await;
    });
    plain(StatusCode::OK)
}

async fn answer(
    request: Request<Incoming>,
    origin: Option<&str>,
    ledger: Arc<Mutex<Ledger>>,
) -> Response<Full<Bytes>> {
    let (request, body) = request.into_parts();
    let uri = &request.uri;
    let target = match origin {
        Some(origin) => {
            format!("{origin}{}", uri.path_and_query().map_or("/", |path| path.as_str()))
        }
        None => uri.to_string(),
    };
    let Ok(url) = CanonicalUrl::parse(&target) else { return plain(StatusCode::BAD_REQUEST) };
    let lock = || ledger.lock().unwrap_or_else(PoisonError::into_inner);
    let (method, headers) = (&request.method, &request.headers);
    if *method == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD) {
        return allowed(plain(StatusCode::NO_CONTENT), headers);
    }
    let person = { Some(lock()).filter(|l| l.is_of_person).and_then(|l| l.answers.clone()) };
    if let Some(answers) = person {
        return answer_person(&request, (url, body), answers).await;
    }
    let is_read = *method == Method::GET || *method == Method::HEAD;
    let sent = if is_data(method, headers) { read_body(headers, body).await } else { None };
    let posted = sent
        .as_ref()
        .and_then(|sent| PostedUrl::of(&url, method.as_str(), &sent.content_type, &sent.bytes));
    let is_sent = is_read || posted.is_some();
    let url = posted.unwrap_or(url);
    let key = (method.to_string(), url.clone());
    let answers = {
        let mut ledger = lock();
        ledger.count += 1;
        ledger.is_over_limit |=
            ledger.count > ledger.max_requests || ledger.bytes > ledger.max_bytes;
        let Some(answers) = ledger.answers.clone() else {
            return plain(StatusCode::GATEWAY_TIMEOUT);
        };
        // What a page asks for beyond its limit is not even noted.
        if ledger.is_over_limit {
            return allowed(plain(StatusCode::GATEWAY_TIMEOUT), headers);
        }
        if !is_sent || headers.contains_key(header::UPGRADE) {
            ledger.requests.insert(key, Fate::NotSent);
            return allowed(plain(StatusCode::GATEWAY_TIMEOUT), headers);
        }
        if let Some(sent) = sent {
            ledger.bytes += sent.bytes.len() as u64;
            ledger.bodies.insert(url.clone(), sent);
        }
        ledger.under_way += 1;
        answers
    };
    let asked = Asked { url, method: method.to_string(), whole: None };
    let found = read_in_turn(asked, answers, &ledger).await;
    let mut ledger = lock();
    ledger.under_way -= 1;
    let (fate, response) = match found {
        Some(Answer::Stored { status, headers, body }) => {
            ledger.bytes += body.len() as u64;
            (Fate::Answered, stored(status, &headers, body, *method == Method::HEAD))
        }
        Some(Answer::Nothing) => (Fate::Nothing, plain(StatusCode::NOT_FOUND)),
        Some(Answer::Missing) => (Fate::Missing, plain(StatusCode::GATEWAY_TIMEOUT)),
        None => (Fate::Nothing, plain(StatusCode::BAD_GATEWAY)),
    };
    ledger.requests.insert(key, fate);
    drop(ledger);
    allowed(response, headers)
}

/// The caller's answer. It waits for its turn, and its body for room, which it has until the browser has
/// taken it.
async fn read_in_turn(
    asked: Asked,
    answers: Arc<dyn Answers>,
    ledger: &Mutex<Ledger>,
) -> Option<Answer> {
    let lock = || ledger.lock().unwrap_or_else(PoisonError::into_inner);
    let (reading, room) = {
        let ledger = lock();
        (ledger.reading.clone(), ledger.room.clone())
    };
    let _turn = reading.acquire().await.ok()?;
    let found = tokio::task::spawn_blocking(move || answers.answer(&asked)).await.ok()?;
    let Answer::Stored { status, headers, body } = found else { return Some(found) };
    let kib = u32::try_from(body.len().div_ceil(1024)).unwrap_or(u32::MAX).min(HELD_KIB);
    match tokio::time::timeout(ROOM_PATIENCE, room.acquire_many_owned(kib)).await {
        Ok(Ok(room)) => {
            let body = Bytes::from_owner(HeldBody { body, _room: room });
            Some(Answer::Stored { status, headers, body })
        }
        _ => {
            lock().is_over_limit = true;
            None
        }
    }
}

/// A body and its room.
struct HeldBody {
    body: Bytes,
    _room: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for HeldBody {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

async fn answer_person(
    request: &http::request::Parts,
    (url, body): (CanonicalUrl, Incoming),
    answers: Arc<dyn Answers>,
) -> Response<Full<Bytes>> {
    if request.headers.contains_key(header::UPGRADE) {
        return plain(StatusCode::NOT_IMPLEMENTED);
    }
    let Ok(body) = Limited::new(body, PERSON_BODY_MAX_BYTES).collect().await else {
        return plain(StatusCode::PAYLOAD_TOO_LARGE);
    };
    let field = |(name, value): (&HeaderName, &HeaderValue)| {
        Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
    };
    let headers = request.headers.iter().filter_map(field).collect();
    let whole = Some(WholeRequest { headers, body: body.to_bytes() });
    let asked = Asked { url, method: request.method.to_string(), whole };
    let is_head = request.method == Method::HEAD;
    match tokio::task::spawn_blocking(move || answers.answer(&asked)).await {
        Ok(Answer::Stored { status, headers, body }) => stored(status, &headers, body, is_head),
        _ => plain(StatusCode::BAD_GATEWAY),
    }
}

/// Whether a request with a body asks for data that the page can read. What a page only reports, or
/// where it leads, is not sent.
fn is_data(method: &Method, headers: &HeaderMap) -> bool {
    let mode = headers.get("sec-fetch-mode").map(HeaderValue::as_bytes);
    // Servers without encryption are not told the mode: there the browser's own report decides.
    *method == Method::POST && matches!(mode, None | Some(b"cors" | b"same-origin"))
}

async fn read_body(headers: &HeaderMap, body: Incoming) -> Option<SentBody> {
    let bytes = Limited::new(body, BODY_MAX_BYTES).collect().await.ok()?.to_bytes();
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    Some(SentBody { content_type: content_type.unwrap_or_default().to_owned(), bytes })
}

/// Headers of a stored response that concern its connection, or browsers beyond this page.
const LEFT_OUT: [&str; 10] = [
    "alt-svc",
    "clear-site-data",
    "connection",
    "content-length",
    "keep-alive",
    "public-key-pins",
    "strict-transport-security",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

fn stored(
    status: u16,
    fields: &[(String, Vec<u8>)],
    body: Bytes,
    is_head: bool,
) -> Response<Full<Bytes>> {
    let mut response = plain(StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY));
    for (name, value) in fields {
        let is_left_out = LEFT_OUT.iter().any(|left_out| name.eq_ignore_ascii_case(left_out));
        if let (false, Ok(name), Ok(value)) =
            (is_left_out, HeaderName::try_from(name.as_str()), HeaderValue::from_bytes(value))
        {
            response.headers_mut().append(name, value);
        }
    }
    if !is_head {
        *response.body_mut() = Full::new(body);
    }
    response
}

/// The archive asked without naming an origin, so servers may not have allowed one: whoever asks for
/// it here may read it.
fn allowed(mut response: Response<Full<Bytes>>, asked: &HeaderMap) -> Response<Full<Bytes>> {
    let Some(origin) = asked.get(header::ORIGIN).cloned() else { return response };
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("GET, HEAD, OPTIONS, POST"),
    );
    if let Some(wanted) = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned() {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted);
    }
    response
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const LARGE: usize = 30 << 20;

    #[derive(Default)]
    struct Large(AtomicUsize);

    impl Answers for Large {
        fn answer(&self, _: &Asked) -> Answer {
            self.0.fetch_add(1, Ordering::Relaxed);
            Answer::Stored { status: 200, headers: Vec::new(), body: vec![b'x'; LARGE].into() }
        }
    }

    #[expect(clippy::disallowed_methods, reason = "a client of a test")]
    async fn asked(proxy: &Proxy, number: usize) -> tokio::net::TcpStream {
        let address = ([127, 0, 0, 1], proxy.port).into();
        let mut stream = tokio::net::TcpSocket::new_v4().unwrap().connect(address).await.unwrap();
        let request = format!("GET http://e.example/{number} HTTP/1.1\r\nHost: e.example\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn bodies_that_nobody_takes_are_held_within_a_limit() {
        let proxy = Proxy::start(1_000, u64::MAX).await.unwrap();
        let answers = Arc::new(Large::default());
        proxy.begin(answers.clone());
        let mut streams = Vec::new();
        for number in 0..20 {
            streams.push(asked(&proxy, number).await);
        }
        let until = tokio::time::Instant::now() + ROOM_PATIENCE + Duration::from_secs(30);
        while !proxy.ledger().is_over_limit {
            assert!(tokio::time::Instant::now() < until, "it waits for ever");
            let read = answers.0.load(Ordering::Relaxed);
            assert!(read <= HELD_KIB as usize * 1024 / LARGE + READ_AT_ONCE, "{read}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // Whoever takes its answer gets all of it, and makes room for another page's.
        let (mut answer, mut taken) = (vec![0; 1 << 20], 0);
        let first = &mut streams[0];
        while taken < LARGE {
            let count = first.read(&mut answer).await.unwrap();
            assert!(count > 0, "{taken}");
            taken += count;
        }
        drop(streams);
        proxy.begin(answers.clone());
        let mut status = [0; 12];
        asked(&proxy, 99).await.read_exact(&mut status).await.unwrap();
        assert_eq!(&status, b"HTTP/1.1 200");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_is_asked_beyond_the_limit_is_not_noted() {
        let proxy = Proxy::start(3, u64::MAX).await.unwrap();
        proxy.begin(Arc::new(Large::default()));
        for number in 0..10 {
            let mut status = [0; 12];
            asked(&proxy, number).await.read_exact(&mut status).await.unwrap();
            let expected = if number < 3 { b"HTTP/1.1 200" } else { b"HTTP/1.1 504" };
            assert_eq!(&status, expected, "{number}");
        }
        assert_eq!(proxy.ledger().requests.len(), 3);
    }
}
