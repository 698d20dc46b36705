use std::error::Error as _;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{self, HeaderMap, HeaderValue};
use http::{Request, Response, StatusCode, Uri, Version};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Body, Incoming};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use nenrin_urls::{CanonicalUrl, Server};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::TlsConnector;

use crate::guard;
use crate::head::{render_request, render_response, status_digits};
use crate::pool::Pool;
use crate::request::{host_header, request_headers};
use crate::tee::{Recorder, Tee};
use crate::{
    AddressKind, AddressPolicy, Exchange, FetchError, FetchFailure, FetchOptions, FetchRequest,
    Protocol, Waiting,
};

/// How many names are looked up at once. The system's resolver holds a thread for each, also
/// after we have stopped waiting.
const MAX_LOOKUPS: usize = 64;

/// How long a resting connection may take to say that it is ready, before a new one is made.
const READY_TIMEOUT: Duration = Duration::from_secs(1);

/// How much more than Content-Length may come without the body being wrong: some servers end
/// every body with a line break that they do not count.
const TOLERATED_SURPLUS_BYTES: u64 = 2;

/// HTTP/2 flow control: how much one body may be ahead of our reading.
const H2_WINDOW_BYTES: u32 = 1024 * 1024;

/// The least buffer that the HTTP/1 library accepts.
const MIN_H1_BUFFER_BYTES: usize = 8192;

/// Sends requests. Clones share their resting connections. Must be used inside a tokio runtime.
#[derive(Clone)]
pub struct Fetcher(Arc<Shared>);

struct Shared {
    options: FetchOptions,
    tls: TlsConnector,
    lookups: Arc<Semaphore>,
    pool: Mutex<RestingPlace>,
}

struct RestingPlace {
    pool: Pool<Connection>,
    has_reaper: bool,
}

/// An open connection on which nothing goes on.
struct Connection {
    sender: Sender,
    address: IpAddr,
    tls: Option<String>,
    _task: ConnectionTask,
}

enum Sender {
    Http1 { sender: http1::SendRequest<Empty<Bytes>>, recorder: Recorder },
    Http2 { sender: http2::SendRequest<Empty<Bytes>> },
}

/// The task that moves the bytes of a connection; ends, and closes the socket, with its owner.
struct ConnectionTask(JoinHandle<()>);

impl Drop for ConnectionTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A request made ready to be sent, on a first and perhaps on a second connection.
struct Prepared<'a> {
    url: &'a CanonicalUrl,
    headers: HeaderMap,
    addresses: AddressPolicy,
    max_body_bytes: u64,
    started: Instant,
}

/// A failure on a connection, and whether the server had begun to answer.
struct Broken {
    failure: FetchFailure,
    is_unanswered: bool,
}

impl Broken {
    fn answered(failure: FetchFailure) -> Self {
        Self { failure, is_unanswered: false }
    }
}

impl Fetcher {
    /// Makes a fetcher; fails on options that cannot work.
    pub fn new(options: FetchOptions) -> Result<Self, FetchError> {
        options.check()?;
        let tls = tls_connector(&options.extra_roots_der)?;
        let pool = Pool::new(options.max_idle_connections, options.max_idle_age);
        Ok(Self(Arc::new(Shared {
            options,
            tls,
            lookups: Arc::new(Semaphore::new(MAX_LOOKUPS)),
            pool: Mutex::new(RestingPlace { pool, has_reaper: false }),
        })))
    }

    /// Sends one request and reads its whole response. Every status is an exchange, redirects
    /// too; a failure is what prevented one.
    pub async fn fetch(&self, request: &FetchRequest) -> Result<Exchange, FetchFailure> {
        let options = &self.0.options;
        let prepared = Prepared {
            url: &request.url,
            headers: request_headers(request, options)?,
            addresses: request.addresses,
            max_body_bytes: request.max_body_bytes.unwrap_or(options.max_body_bytes),
            started: Instant::now(),
        };
        match timeout(options.total_timeout, self.exchange(&prepared)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(prepared.timeout(Waiting::Exchange, options.total_timeout)),
        }
    }

    async fn exchange(&self, prepared: &Prepared<'_>) -> Result<Exchange, FetchFailure> {
        if let Some(resting) = self.resting(prepared).await {
            match self.exchange_on(resting, prepared).await {
                // The server had closed it in the meantime: its right, and no failure.
                Err(Broken { is_unanswered: true, .. }) => {}
                outcome => return outcome.map_err(|broken| broken.failure),
            }
        }
        let connection = self.connect(prepared).await?;
        self.exchange_on(connection, prepared).await.map_err(|broken| broken.failure)
    }

    /// A resting connection to the server that can be used under the request's policy.
    async fn resting(&self, prepared: &Prepared<'_>) -> Option<Connection> {
        let server = prepared.url.server();
        loop {
            let mut connection = self.0.resting_place().pool.take(&server, Instant::now())?;
            let is_permitted = AddressKind::of(connection.address).permitted(prepared.addresses);
            if is_permitted && connection.is_ready().await {
                return Some(connection);
            }
        }
    }

    async fn exchange_on(
        &self,
        mut connection: Connection,
        prepared: &Prepared<'_>,
    ) -> Result<Exchange, Broken> {
        let options = &self.0.options;
        let sent = Instant::now();
        let answer = timeout(options.head_timeout, connection.send(prepared, options)).await;
        let response = match answer {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(connection.broken(&error, prepared, options)),
            Err(_) => {
                let failure = prepared.timeout(Waiting::Head, options.head_timeout);
                return Err(Broken::answered(failure));
            }
        };
        let time_to_head = sent.elapsed();
        let (status, version) = (response.status(), response.version());
        let (request_head, response_head) =
            connection.heads(&response, prepared, options).map_err(Broken::answered)?;
        let announced = announced_bytes(&response);
        let body =
            read_body(response.into_body(), prepared, options).await.map_err(Broken::answered)?;
        let surplus = connection.surplus_bytes(announced);
        if surplus > TOLERATED_SURPLUS_BYTES && has_body(status) {
            let reason = format!("Content-Length is at least {surplus} bytes too short");
            return Err(Broken::answered(prepared.body_cut(&body, reason)));
        }
        let exchange = Exchange {
            status: status.as_u16(),
            protocol: protocol(version),
            tls: connection.tls.clone(),
            server_address: connection.address,
            request_head,
            response_head,
            body,
            time_to_head,
            elapsed: prepared.started.elapsed(),
        };
        if surplus == 0 {
            self.rest(prepared.url.server(), connection);
        }
        Ok(exchange)
    }

    async fn connect(&self, prepared: &Prepared<'_>) -> Result<Connection, FetchFailure> {
        let options = &self.0.options;
        let addresses = self.addresses(prepared).await?;
        let permitted = guard::permitted(&addresses, prepared.addresses)
            .map_err(|refused| prepared.refused(refused))?;
        let stream = self.connect_to_any(&permitted, prepared).await?;
        let address = stream.peer_addr().map_err(|e| prepared.unconnected(e.to_string()))?.ip();
        if prepared.url.scheme() != "https" {
            let (sender, task) =
                http1(stream, options).await.map_err(|e| prepared.protocol(error_text(&e)))?;
            return Ok(Connection { sender, address, tls: None, _task: task });
        }
        match timeout(options.tls_timeout, self.secure(stream, prepared)).await {
            Ok(Ok((sender, task, tls))) => Ok(Connection { sender, address, tls, _task: task }),
            Ok(Err(failure)) => Err(failure),
            Err(_) => Err(prepared.timeout(Waiting::Handshake, options.tls_timeout)),
        }
    }

    /// The addresses of the URL's host: itself, from the options, or looked up.
    async fn addresses(&self, prepared: &Prepared<'_>) -> Result<Vec<IpAddr>, FetchFailure> {
        let options = &self.0.options;
        let name = match prepared.url.as_url().host() {
            Some(url::Host::Ipv4(address)) => return Ok(vec![address.into()]),
            Some(url::Host::Ipv6(address)) => return Ok(vec![address.into()]),
            Some(url::Host::Domain(name)) => name.to_owned(),
            None => return Err(prepared.unresolved("the URL has no host".to_owned())),
        };
        let known = |(host, address): &(String, IpAddr)| {
            host.eq_ignore_ascii_case(&name).then_some(*address)
        };
        let known: Vec<IpAddr> = options.hosts.iter().filter_map(known).collect();
        if !known.is_empty() {
            return Ok(known);
        }
        match timeout(options.dns_timeout, look_up(&self.0.lookups, name)).await {
            Ok(Ok(addresses)) => Ok(addresses),
            Ok(Err(error)) => Err(prepared.unresolved(error.to_string())),
            Err(_) => Err(prepared.timeout(Waiting::Dns, options.dns_timeout)),
        }
    }

    /// Tries the addresses one after the other, each for its share of the time that is left.
    async fn connect_to_any(
        &self,
        addresses: &[IpAddr],
        prepared: &Prepared<'_>,
    ) -> Result<TcpStream, FetchFailure> {
        let options = &self.0.options;
        let tried = &addresses[..addresses.len().min(options.max_addresses)];
        let deadline = Instant::now() + options.connect_timeout;
        let mut failure = prepared.timeout(Waiting::Connect, options.connect_timeout);
        for (place, address) in tried.iter().enumerate() {
            let left = deadline.saturating_duration_since(Instant::now());
            let share = left / u32::try_from(tried.len() - place).unwrap_or(u32::MAX);
            let peer = SocketAddr::new(*address, prepared.url.port());
            #[expect(clippy::disallowed_methods, reason = "the addresses passed the guard")]
            let connecting = TcpStream::connect(peer);
            match timeout(share, connecting).await {
                Ok(Ok(stream)) => {
                    // Only latency is lost where this cannot be set.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(error)) => failure = prepared.unconnected(format!("{address}: {error}")),
                Err(_) => {}
            }
        }
        Err(failure)
    }

    /// The TLS handshake, and HTTP/2 or HTTP/1.1 as the server chooses.
    async fn secure(
        &self,
        stream: TcpStream,
        prepared: &Prepared<'_>,
    ) -> Result<(Sender, ConnectionTask, Option<String>), FetchFailure> {
        let options = &self.0.options;
        let name = server_name(prepared.url).map_err(|reason| prepared.insecure(reason))?;
        let stream =
            self.0.tls.connect(name, stream).await.map_err(|e| prepared.insecure(e.to_string()))?;
        let session = stream.get_ref().1;
        let version = session.protocol_version().map(|version| format!("{version:?}"));
        let is_http2 = session.alpn_protocol() == Some(b"h2");
        let opened =
            if is_http2 { http2(stream, options).await } else { http1(stream, options).await };
        let (sender, task) = opened.map_err(|e| prepared.protocol(error_text(&e)))?;
        Ok((sender, task, version))
    }

    /// Lets a connection rest, and sees to it that it does not rest for ever.
    fn rest(&self, server: Server, connection: Connection) {
        if connection.is_closed() {
            return;
        }
        let mut place = self.0.resting_place();
        place.pool.put(server, connection, Instant::now());
        if !std::mem::replace(&mut place.has_reaper, true) {
            tokio::spawn(reap(Arc::downgrade(&self.0)));
        }
    }
}

impl Shared {
    fn resting_place(&self) -> MutexGuard<'_, RestingPlace> {
        // The pool is consistent between any two statements that change it.
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes connections that have rested too long; ends when none rests.
async fn reap(shared: Weak<Shared>) {
    loop {
        let next_old = {
            let Some(shared) = shared.upgrade() else { return };
            let mut place = shared.resting_place();
            place.pool.drop_old(Instant::now());
            let next_old = place.pool.next_old();
            place.has_reaper = next_old.is_some();
            next_old
        };
        let Some(next_old) = next_old else { return };
        sleep_until(next_old).await;
    }
}

impl Connection {
    async fn is_ready(&mut self) -> bool {
        let ready = async {
            match &mut self.sender {
                Sender::Http1 { sender, .. } => sender.ready().await,
                Sender::Http2 { sender } => sender.ready().await,
            }
        };
        matches!(timeout(READY_TIMEOUT, ready).await, Ok(Ok(())))
    }

    fn is_closed(&self) -> bool {
        match &self.sender {
            Sender::Http1 { sender, .. } => sender.is_closed(),
            Sender::Http2 { sender } => sender.is_closed(),
        }
    }

    async fn send(
        &mut self,
        prepared: &Prepared<'_>,
        options: &FetchOptions,
    ) -> Result<Response<Incoming>, SendError> {
        match &mut self.sender {
            Sender::Http1 { sender, recorder } => {
                let request = prepared.http1_request()?;
                recorder.begin(options.max_head_bytes);
                Ok(sender.send_request(request).await?)
            }
            Sender::Http2 { sender } => Ok(sender.send_request(prepared.http2_request()?).await?),
        }
    }

    /// What an error before the response head means.
    fn broken(&self, error: &SendError, prepared: &Prepared<'_>, options: &FetchOptions) -> Broken {
        let error = match error {
            SendError::Unsendable(reason) => {
                return Broken::answered(FetchFailure::Request { reason: reason.clone() });
            }
            SendError::Http(error) => error,
        };
        let (is_answered, is_too_large) = match &self.sender {
            Sender::Http1 { recorder, .. } => {
                (recorder.is_answered(), recorder.is_head_too_large())
            }
            Sender::Http2 { .. } => (false, is_http2_flood(error)),
        };
        if is_too_large || error.is_parse_too_large() {
            Broken::answered(prepared.head_too_large(options))
        } else if is_closed_by_server(error) {
            let failure = FetchFailure::Closed { host: prepared.host() };
            Broken { failure, is_unanswered: !is_answered }
        } else {
            Broken::answered(prepared.protocol(error_text(error)))
        }
    }

    /// The heads of the exchange: as recorded for HTTP/1, as written by us for HTTP/2.
    fn heads(
        &self,
        response: &Response<Incoming>,
        prepared: &Prepared<'_>,
        options: &FetchOptions,
    ) -> Result<(Vec<u8>, Vec<u8>), FetchFailure> {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Err(prepared.protocol("it switches to a protocol nobody asked for".into()));
        }
        let (request_head, response_head) = match &self.sender {
            Sender::Http1 { recorder, .. } => recorder.take_heads().ok_or_else(|| {
                prepared.protocol("its answer began before the request was sent".into())
            })?,
            Sender::Http2 { .. } => (
                render_request(
                    prepared.url.path_and_query(),
                    &host_header(prepared.url),
                    &prepared.headers,
                ),
                render_response(response.status(), response.headers()),
            ),
        };
        if response_head.len() > options.max_head_bytes
            || response.headers().len() > options.max_headers
        {
            return Err(prepared.head_too_large(options));
        }
        if status_digits(&response_head) != Some(response.status().as_str().as_bytes()) {
            return Err(prepared.protocol("its status line cannot be told from its answer".into()));
        }
        Ok((request_head, response_head))
    }

    /// How many more bytes came than Content-Length announced, as far as they were read.
    fn surplus_bytes(&self, announced: Option<u64>) -> u64 {
        match (&self.sender, announced) {
            (Sender::Http1 { recorder, .. }, Some(announced)) => {
                recorder.after_head_bytes().saturating_sub(announced)
            }
            _ => 0,
        }
    }
}

/// Why a request did not bring a response head.
enum SendError {
    Unsendable(String),
    Http(hyper::Error),
}

impl From<hyper::Error> for SendError {
    fn from(error: hyper::Error) -> Self {
        Self::Http(error)
    }
}

impl From<http::Error> for SendError {
    fn from(error: http::Error) -> Self {
        Self::Unsendable(error.to_string())
    }
}

impl Prepared<'_> {
    /// With the target alone, and the host in a header of its own.
    fn http1_request(&self) -> Result<Request<Empty<Bytes>>, http::Error> {
        let mut request = Request::get(self.url.path_and_query()).body(Empty::new())?;
        let host = HeaderValue::try_from(host_header(self.url))?;
        request.headers_mut().insert(header::HOST, host);
        request.headers_mut().extend(self.headers.clone());
        Ok(request)
    }

    /// With the whole URL, from which HTTP/2 makes its own host field.
    fn http2_request(&self) -> Result<Request<Empty<Bytes>>, http::Error> {
        let uri: Uri = self.url.as_str().try_into()?;
        let mut request = Request::get(uri).body(Empty::new())?;
        *request.headers_mut() = self.headers.clone();
        Ok(request)
    }

    fn host(&self) -> String {
        self.url.host().to_owned()
    }

    fn timeout(&self, waiting: Waiting, after: Duration) -> FetchFailure {
        FetchFailure::Timeout { host: self.host(), waiting, after }
    }

    fn refused(&self, address: Option<IpAddr>) -> FetchFailure {
        match address {
            Some(address) => {
                let kind = AddressKind::of(address);
                FetchFailure::AddressRefused { host: self.host(), address, kind }
            }
            None => self.unresolved("the name has no address".to_owned()),
        }
    }

    fn unresolved(&self, reason: String) -> FetchFailure {
        FetchFailure::Dns { host: self.host(), reason }
    }

    fn unconnected(&self, reason: String) -> FetchFailure {
        FetchFailure::Connect { host: self.host(), port: self.url.port(), reason }
    }

    fn insecure(&self, reason: String) -> FetchFailure {
        FetchFailure::Tls { host: self.host(), reason }
    }

    fn protocol(&self, reason: String) -> FetchFailure {
        FetchFailure::Protocol { host: self.host(), reason }
    }

    fn head_too_large(&self, options: &FetchOptions) -> FetchFailure {
        FetchFailure::HeadTooLarge {
            host: self.host(),
            limit_bytes: options.max_head_bytes,
            limit_headers: options.max_headers,
        }
    }

    fn body_too_large(&self, announced: Option<u64>) -> FetchFailure {
        FetchFailure::BodyTooLarge { host: self.host(), limit: self.max_body_bytes, announced }
    }

    fn body_cut(&self, received: &[u8], reason: String) -> FetchFailure {
        FetchFailure::BodyCut { host: self.host(), received: received.len() as u64, reason }
    }
}

/// Reads a body to its end, within its limits of size and time.
async fn read_body(
    mut body: Incoming,
    prepared: &Prepared<'_>,
    options: &FetchOptions,
) -> Result<Bytes, FetchFailure> {
    let announced = body.size_hint().exact();
    if announced.is_some_and(|bytes| bytes > prepared.max_body_bytes) {
        return Err(prepared.body_too_large(announced));
    }
    let started = Instant::now();
    let mut received = BytesMut::new();
    loop {
        let frame = match timeout(options.idle_timeout, body.frame()).await {
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(error))) => return Err(prepared.body_cut(&received, error_text(&error))),
            Ok(None) => return Ok(received.freeze()),
            Err(_) => return Err(prepared.timeout(Waiting::Body, options.idle_timeout)),
        };
        // Trailers are not kept.
        let Some(data) = frame.data_ref() else { continue };
        if (received.len() + data.len()) as u64 > prepared.max_body_bytes {
            return Err(prepared.body_too_large(None));
        }
        received.extend_from_slice(data);
        let taken = started.elapsed();
        let least = taken.as_secs().saturating_mul(options.min_body_bytes_per_s);
        if taken > options.idle_timeout && (received.len() as u64) < least {
            return Err(prepared.timeout(Waiting::BodyRate, taken));
        }
    }
}

/// What Content-Length says, where it counts.
fn announced_bytes(response: &Response<Incoming>) -> Option<u64> {
    if has_body(response.status()) && !response.headers().contains_key(header::CONTENT_LENGTH) {
        return None;
    }
    response.body().size_hint().exact()
}

/// Whether a response of this status can have a body.
fn has_body(status: StatusCode) -> bool {
    !matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

fn protocol(version: Version) -> Protocol {
    match version {
        Version::HTTP_2 => Protocol::Http2,
        Version::HTTP_11 => Protocol::Http11,
        _ => Protocol::Http10,
    }
}

/// Asks the system's resolver.
async fn look_up(lookups: &Arc<Semaphore>, name: String) -> io::Result<Vec<IpAddr>> {
    let permit = Arc::clone(lookups).acquire_owned().await.map_err(io::Error::other)?;
    let lookup = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let mut addresses: Vec<IpAddr> = Vec::new();
        for found in (name.as_str(), 0).to_socket_addrs()? {
            if !addresses.contains(&found.ip()) {
                addresses.push(found.ip());
            }
        }
        Ok(addresses)
    });
    lookup.await.map_err(io::Error::other)?
}

fn server_name(url: &CanonicalUrl) -> Result<ServerName<'static>, String> {
    match url.as_url().host() {
        Some(url::Host::Ipv4(address)) => Ok(IpAddr::from(address).into()),
        Some(url::Host::Ipv6(address)) => Ok(IpAddr::from(address).into()),
        _ => ServerName::try_from(url.host().to_owned()).map_err(|e| e.to_string()),
    }
}

fn tls_connector(extra_roots_der: &[Vec<u8>]) -> Result<TlsConnector, FetchError> {
    let refuse =
        |e: rustls::Error| FetchError::Option { option: "extra_roots_der", reason: e.to_string() };
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    for der in extra_roots_der {
        roots.add(CertificateDer::from(der.clone())).map_err(refuse)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(refuse)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Opens HTTP/1 on a stream, as lenient towards odd servers as the library can be.
async fn http1<T>(stream: T, options: &FetchOptions) -> hyper::Result<(Sender, ConnectionTask)>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (tee, recorder) = Tee::new(stream);
    let (sender, connection) = http1::Builder::new()
        .title_case_headers(true)
        .allow_spaces_after_header_name_in_responses(true)
        .allow_obsolete_multiline_headers_in_responses(true)
        .ignore_invalid_headers_in_responses(true)
        .max_headers(options.max_headers)
        .max_buf_size(options.max_head_bytes.saturating_add(MIN_H1_BUFFER_BYTES))
        .handshake(TokioIo::new(tee))
        .await?;
    // How the connection ends is seen by whoever waits for a response on it.
    let task = tokio::spawn(async move { drop(connection.await) });
    Ok((Sender::Http1 { sender, recorder }, ConnectionTask(task)))
}

/// Opens HTTP/2 on a stream.
async fn http2<T>(stream: T, options: &FetchOptions) -> hyper::Result<(Sender, ConnectionTask)>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    // Above its limit the library reports a broken protocol. With room to spare most heads that
    // are too large reach us, and are called what they are.
    let list_bytes = u32::try_from(options.max_head_bytes).unwrap_or(u32::MAX).saturating_mul(4);
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(H2_WINDOW_BYTES)
        .initial_connection_window_size(H2_WINDOW_BYTES)
        .max_header_list_size(list_bytes)
        .handshake(TokioIo::new(stream))
        .await?;
    let task = tokio::spawn(async move { drop(connection.await) });
    Ok((Sender::Http2 { sender }, ConnectionTask(task)))
}

/// Whether the connection was closed or broke, rather than carried something wrong.
fn is_closed_by_server(error: &hyper::Error) -> bool {
    let is_io = error.source().is_some_and(|source| source.is::<io::Error>());
    let is_http2_end = http2_error(error).is_some_and(|error| {
        let is_refused = error.reason() == Some(h2::Reason::REFUSED_STREAM);
        error.is_io() || (error.is_remote() && (error.is_go_away() || is_refused))
    });
    let is_end = error.is_incomplete_message() || error.is_canceled() || error.is_closed();
    is_end || is_io || is_http2_end
}

/// Whether our HTTP/2 library gave up on a header block that would not end.
fn is_http2_flood(error: &hyper::Error) -> bool {
    http2_error(error).is_some_and(|error| {
        error.is_library() && error.reason() == Some(h2::Reason::ENHANCE_YOUR_CALM)
    })
}

fn http2_error(error: &hyper::Error) -> Option<&h2::Error> {
    error.source().and_then(|source| source.downcast_ref())
}

/// An error with its causes.
fn error_text(error: &hyper::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests;
