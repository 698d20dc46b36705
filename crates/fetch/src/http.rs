use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use http::{Response, StatusCode, Version, header};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use nenrin_urls::{CanonicalUrl, Proxy, ProxyKind, ProxyServer, Server};
use rustls::pki_types::ServerName;
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until, timeout};

use crate::connection::{Broken, Connection, error_text};
use crate::guard;
use crate::memory::Receiving;
use crate::pool::Pool;
use crate::prepared::Prepared;
use crate::request::{BodyLimit, request_headers};
use crate::road::{self, Target};
use crate::trust::Tls;
use crate::{
    AddressPolicy, Body, Exchange, FetchError, FetchFailure, FetchOptions, FetchRequest, Memory,
    Protocol, Road, Waiting,
};

/// How many names are looked up at once. The system's resolver holds a thread for each, even after
/// we have stopped waiting.
const MAX_LOOKUPS: usize = 64;

/// How long is waited for what a name means here, where a proxy looks it up anyway.
const HINT_TIMEOUT: Duration = Duration::from_secs(2);

/// How long an idle connection may take to become ready before a new one is made.
const READY_TIMEOUT: Duration = Duration::from_secs(1);

/// Surplus bytes after Content-Length that are tolerated: some servers end every body with a line
/// break that they do not count.
const TOLERATED_SURPLUS_BYTES: u64 = 2;

/// A body may come in this many parts (chunks, HTTP/2 frames) of any size.
const FREE_PARTS: u64 = 1 << 16;

/// In more parts than that, each has to bring this much on average: work follows bytes.
const MIN_PART_BYTES: u64 = 128;

/// Sends requests. Clones share their idle connections. Must be used inside a tokio runtime.
#[derive(Clone)]
pub struct Fetcher {
    shared: Arc<Shared>,
    memory: Option<Memory>,
}

struct Shared {
    options: FetchOptions,
    tls: Tls,
    lookups: Arc<Semaphore>,
    pool: Mutex<IdlePool>,
}

struct IdlePool {
    pool: Pool<Route, Connection>,
    has_reaper: bool,
}

/// Which requests may share a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Route {
    server: Server,
    road: Road,
    addresses: AddressPolicy,
}

impl Route {
    fn of(prepared: &Prepared<'_>) -> Self {
        let server = prepared.url.server();
        Self { server, road: prepared.road.clone(), addresses: prepared.addresses }
    }
}

impl Fetcher {
    /// Makes a fetcher; fails on unusable options.
    pub fn new(options: FetchOptions) -> Result<Self, FetchError> {
        options.check()?;
        let tls = Tls::new(&options)?;
        let pool = Pool::new(options.max_idle_connections, options.max_idle_age);
        let shared = Arc::new(Shared {
            options,
            tls,
            lookups: Arc::new(Semaphore::new(MAX_LOOKUPS)),
            pool: Mutex::new(IdlePool { pool, has_reaper: false }),
        });
        Ok(Self { shared, memory: None })
    }

    /// The same fetcher, with this memory for its bodies. Without one, bodies are held in memory and
    /// only their own limit bounds them.
    pub fn with_memory(self, memory: Memory) -> Self {
        Self { memory: Some(memory), ..self }
    }

    /// Whether servers may be asked now.
    pub fn may_ask(&self) -> bool {
        self.shared.options.permission.holds()
    }

    /// The memory for bodies, if it was given.
    pub fn memory(&self) -> Option<&Memory> {
        self.memory.as_ref()
    }

    /// Sends one request and reads its whole response. Any status is an exchange, including
    /// redirects; a failure says what prevented one.
    pub async fn fetch(&self, request: &FetchRequest) -> Result<Exchange, FetchFailure> {
        let options = &self.shared.options;
        let prepared = Prepared {
            url: &request.url,
            headers: request_headers(request, options)?,
            addresses: request.addresses,
            road: Road {
                proxy: request.road.proxy.clone().or_else(|| options.proxy.clone()),
                source: request.road.source.or(options.source),
                any_certificate: request.road.any_certificate,
            },
            post: request.post.as_ref(),
            limit: request.limit.unwrap_or(BodyLimit::Whole(options.max_body_bytes)),
            started: Instant::now(),
        };
        let most = request.timeout.unwrap_or(Duration::MAX).min(options.total_timeout);
        match timeout(most, self.exchange(&prepared)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(prepared.timeout(Waiting::Exchange, most)),
        }
    }

    async fn exchange(&self, prepared: &Prepared<'_>) -> Result<Exchange, FetchFailure> {
        if let Some(idle) = self.idle_connection(prepared).await {
            match self.exchange_on(idle, prepared).await {
                // The server had closed it in the meantime, as it may: this is not a failure.
                Err(Broken { is_unanswered: true, .. }) => {}
                outcome => return outcome.map_err(|broken| broken.failure),
            }
        }
        let connection = self.connect(prepared).await?;
        self.exchange_on(connection, prepared).await.map_err(|broken| broken.failure)
    }

    /// An idle connection that was made under the same policy, on the same road.
    async fn idle_connection(&self, prepared: &Prepared<'_>) -> Option<Connection> {
        let route = Route::of(prepared);
        loop {
            let mut connection = self.shared.idle_pool().pool.take(&route, Instant::now())?;
            if matches!(timeout(READY_TIMEOUT, connection.ready()).await, Ok(Ok(()))) {
                return Some(connection);
            }
        }
    }

    async fn exchange_on(
        &self,
        mut connection: Connection,
        prepared: &Prepared<'_>,
    ) -> Result<Exchange, Broken> {
        let options = &self.shared.options;
        let sent = Instant::now();
        let response = timeout(options.head_timeout, connection.send(prepared, options))
            .await
            .map_err(|_| prepared.timeout(Waiting::Head, options.head_timeout))??;
        let time_to_head = sent.elapsed();
        let (status, version) = (response.status(), response.version());
        let (request_head, response_head) = connection.heads(&response, prepared, options)?;
        let announced = announced_bytes(&response);
        let memory = self.memory.as_ref();
        let (body, is_whole) =
            read_body(response.into_body(), prepared, options, memory, &connection).await?;
        let surplus = if is_whole { connection.surplus_bytes(announced) } else { 0 };
        if surplus > TOLERATED_SURPLUS_BYTES && has_body(status) {
            let reason = format!("Content-Length is at least {surplus} bytes too short");
            return Err(prepared.body_cut(body.len(), reason).into());
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
        if surplus == 0 && is_whole {
            self.keep_idle(Route::of(prepared), connection);
        }
        Ok(exchange)
    }

    async fn connect(&self, prepared: &Prepared<'_>) -> Result<Connection, FetchFailure> {
        let options = &self.shared.options;
        let (stream, address, whole) = match &prepared.road.proxy {
            Some(Proxy::Server(proxy)) => {
                let proxy = self.with_login(proxy);
                self.connect_through(&proxy, prepared).await?
            }
            Some(Proxy::Direct) | None => {
                let permitted = self.permitted(prepared).await?;
                let port = prepared.url.port();
                let stream = self.connect_to_any(&permitted, port, prepared).await?;
                let peer = stream.peer_addr().map_err(|e| prepared.unconnected(e.to_string()))?;
                (stream, Some(peer.ip()), None)
            }
        };
        if prepared.url.scheme() != "https" {
            let opened = Connection::http1(stream, address, None, options).await;
            let opened = opened.map_err(|e| prepared.protocol(error_text(&e)))?;
            return Ok(match whole {
                Some(proxy) => opened.with_proxy(proxy),
                None => opened,
            });
        }
        match timeout(options.tls_timeout, self.secure(stream, address, prepared)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(prepared.timeout(Waiting::Handshake, options.tls_timeout)),
        }
    }

    /// The addresses of the URL's host that the policy allows.
    async fn permitted(&self, prepared: &Prepared<'_>) -> Result<Vec<IpAddr>, FetchFailure> {
        let addresses = self.addresses(prepared).await?;
        guard::permitted(&addresses, prepared.addresses)
            .map_err(|refused| prepared.refused(refused))
    }

    /// A proxy with the login that the options have for it.
    fn with_login(&self, proxy: &ProxyServer) -> ProxyServer {
        let options = &self.shared.options;
        let known = options.proxies.iter().chain(&options.proxy).find_map(|known| match known {
            Proxy::Server(known) if known.to_string() == proxy.to_string() => known.login.clone(),
            _ => None,
        });
        ProxyServer { login: proxy.login.clone().or(known), ..proxy.clone() }
    }

    /// Connects to a proxy, and through it to the server. Returns the server's address as far as it
    /// is known, and the proxy if it is to get whole requests instead of a connection.
    async fn connect_through(
        &self,
        proxy: &ProxyServer,
        prepared: &Prepared<'_>,
    ) -> Result<(TcpStream, Option<IpAddr>, Option<ProxyServer>), FetchFailure> {
        let options = &self.shared.options;
        let target = self.target(proxy.kind, prepared).await?;
        let address = match &target {
            Target::Address(address) => Some(*address),
            Target::Name(_) => None,
        };
        // The proxy itself may be anywhere: the operator named it.
        let name = proxy.host.trim_matches(['[', ']']);
        let of_proxy = match name.parse::<IpAddr>() {
            Ok(literal) => vec![literal],
            Err(_) => match timeout(options.dns_timeout, self.look_up(name)).await {
                Ok(Ok(found)) => found,
                Ok(Err(error)) => return Err(prepared.not_through(proxy, &error.to_string())),
                Err(_) => return Err(prepared.timeout(Waiting::Dns, options.dns_timeout)),
            },
        };
        let connected = self.connect_to_any(&of_proxy, proxy.port, prepared).await;
        let mut stream = connected.map_err(|failure| match failure {
            FetchFailure::Connect { reason, .. } => prepared.not_through(proxy, &reason),
            other => other,
        })?;
        let (port, login) = (prepared.url.port(), proxy.login.as_ref());
        let asking = async {
            match (proxy.kind, prepared.url.scheme()) {
                (ProxyKind::Http, "https") => {
                    road::http_connect(&mut stream, prepared.url.host(), port, login).await
                }
                (ProxyKind::Http, _) => Ok(()),
                _ => road::socks_connect(&mut stream, &target, port, login).await,
            }
        };
        match timeout(options.connect_timeout, asking).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(prepared.not_through(proxy, &error.to_string())),
            Err(_) => return Err(prepared.timeout(Waiting::Connect, options.connect_timeout)),
        }
        let gets_whole = proxy.kind == ProxyKind::Http && prepared.url.scheme() != "https";
        // An HTTP proxy connects by name, whatever was found here.
        let address = address.filter(|_| proxy.kind != ProxyKind::Http);
        Ok((stream, address, gets_whole.then(|| proxy.clone())))
    }

    /// What a proxy is asked for. The guard holds as far as it can be known: for addresses, for names
    /// of this network, and for what a name means here.
    async fn target(
        &self,
        kind: ProxyKind,
        prepared: &Prepared<'_>,
    ) -> Result<Target, FetchFailure> {
        let is_literal = road::literal(prepared.url.as_url().host()).is_some();
        if is_literal || kind == ProxyKind::Socks5 {
            let permitted = self.permitted(prepared).await?;
            return Ok(Target::Address(permitted[0]));
        }
        let host = prepared.url.host();
        if prepared.addresses == AddressPolicy::Public {
            if road::is_local_name(host) {
                let reason = format!(
                    "`{host}` is a name of this network, which the proxy is not asked for; \
                     if it is yours, make it a top page and allow it: `nenrin site set SITE --allow-private`"
                );
                return Err(FetchFailure::Request { reason });
            }
            // A name that is not known here may be known to the proxy.
            if kind == ProxyKind::Http
                && let Ok(Ok(found)) = timeout(HINT_TIMEOUT, self.addresses(prepared)).await
            {
                guard::permitted(&found, prepared.addresses)
                    .map_err(|refused| prepared.refused(refused))?;
            }
        }
        Ok(Target::Name(host.to_owned()))
    }

    async fn look_up(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        look_up(&self.shared.lookups, name.to_owned()).await
    }

    /// The addresses of the URL's host: itself, from the options, or looked up.
    async fn addresses(&self, prepared: &Prepared<'_>) -> Result<Vec<IpAddr>, FetchFailure> {
        let options = &self.shared.options;
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
        match timeout(options.dns_timeout, self.look_up(&name)).await {
            Ok(Ok(addresses)) => Ok(addresses),
            Ok(Err(error)) => Err(prepared.unresolved(error.to_string())),
            Err(_) => Err(prepared.timeout(Waiting::Dns, options.dns_timeout)),
        }
    }

    /// Tries the addresses one after the other, each for its share of the time that is left.
    async fn connect_to_any(
        &self,
        addresses: &[IpAddr],
        port: u16,
        prepared: &Prepared<'_>,
    ) -> Result<TcpStream, FetchFailure> {
        let options = &self.shared.options;
        let tried = &addresses[..addresses.len().min(options.max_addresses)];
        let deadline = Instant::now() + options.connect_timeout;
        let mut failure = prepared.timeout(Waiting::Connect, options.connect_timeout);
        for (nth, address) in tried.iter().enumerate() {
            let left = deadline.saturating_duration_since(Instant::now());
            let share = left / u32::try_from(tried.len() - nth).unwrap_or(u32::MAX);
            let peer = SocketAddr::new(*address, port);
            match timeout(share, connect_from(prepared.road.source, peer)).await {
                Ok(Ok(stream)) => {
                    // If this cannot be set, only latency suffers.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(error)) => {
                    if is_without_descriptors(&error) {
                        // Connections that are not in use are closed for the next request.
                        self.shared.idle_pool().pool.drop_all();
                    }
                    failure = prepared.unconnected(format!("{address}: {error}"));
                }
                Err(_) => {}
            }
        }
        Err(failure)
    }

    /// The TLS handshake, and HTTP/2 or HTTP/1.1 as the server chooses.
    async fn secure(
        &self,
        stream: TcpStream,
        address: Option<IpAddr>,
        prepared: &Prepared<'_>,
    ) -> Result<Connection, FetchFailure> {
        let options = &self.shared.options;
        let name = server_name(prepared.url).map_err(|reason| prepared.insecure(reason))?;
        let tls = match prepared.road.any_certificate {
            true => self.shared.tls.unchecked(),
            false => self.shared.tls.checked(),
        };
        let stream =
            tls.connect(name, stream).await.map_err(|e| prepared.insecure(e.to_string()))?;
        let session = stream.get_ref().1;
        let version = session.protocol_version().map(|version| format!("{version:?}"));
        let is_http2 = session.alpn_protocol() == Some(b"h2");
        let opened = if is_http2 {
            Connection::http2(stream, address, version, options).await
        } else {
            Connection::http1(stream, address, version, options).await
        };
        opened.map_err(|e| prepared.protocol(error_text(&e)))
    }

    /// Puts a connection into the idle pool and makes sure that it is closed in time.
    fn keep_idle(&self, route: Route, connection: Connection) {
        if connection.is_closed() {
            return;
        }
        let mut idle = self.shared.idle_pool();
        idle.pool.put(route, connection, Instant::now());
        if !std::mem::replace(&mut idle.has_reaper, true) {
            tokio::spawn(reap(Arc::downgrade(&self.shared)));
        }
    }
}

impl Shared {
    fn idle_pool(&self) -> MutexGuard<'_, IdlePool> {
        // The pool is consistent between any two statements that change it.
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes connections that were idle too long; ends when none is left.
async fn reap(shared: Weak<Shared>) {
    loop {
        let next_old = {
            let Some(shared) = shared.upgrade() else { return };
            let mut idle = shared.idle_pool();
            idle.pool.drop_old(Instant::now());
            let next_old = idle.pool.next_old();
            idle.has_reaper = next_old.is_some();
            next_old
        };
        let Some(next_old) = next_old else { return };
        sleep_until(next_old).await;
    }
}

/// Reads a body to its end or to the end of the wanted front, within its limits of size and time.
/// Says whether it is whole.
async fn read_body(
    mut body: Incoming,
    prepared: &Prepared<'_>,
    options: &FetchOptions,
    memory: Option<&Memory>,
    connection: &Connection,
) -> Result<(Body, bool), FetchFailure> {
    let announced = body.size_hint().exact();
    let max_bytes = prepared.limit.bytes();
    let takes_front = matches!(prepared.limit, BodyLimit::Front(_));
    if !takes_front && announced.is_some_and(|bytes| bytes > max_bytes) {
        return Err(prepared.body_too_large(announced));
    }
    let started = Instant::now();
    let mut received = Receiving::new(memory, announced);
    let mut parts = 0;
    loop {
        let frame = match timeout(options.idle_timeout, body.frame()).await {
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(error))) => {
                return Err(prepared.body_cut(received.length(), error_text(&error)));
            }
            Ok(None) => {
                return ended(received, true, prepared).await;
            }
            Err(_) => return Err(prepared.timeout(Waiting::Body, options.idle_timeout)),
        };
        // Trailers are not stored.
        let Some(data) = frame.data_ref() else { continue };
        let left = usize::try_from(max_bytes - received.length()).unwrap_or(usize::MAX);
        let is_cut = data.len() > left;
        if is_cut && !takes_front {
            return Err(prepared.body_too_large(None));
        }
        let data = &data[..data.len().min(left)];
        connection.allow(data.len());
        let length = received.length();
        received.take(data).await.map_err(|error| prepared.unkept(length, &error))?;
        if is_cut {
            return ended(received, false, prepared).await;
        }
        parts += 1;
        if parts > FREE_PARTS + received.length() / MIN_PART_BYTES {
            let reason = format!("it comes in too small parts: {parts} so far");
            return Err(prepared.body_cut(received.length(), reason));
        }
        let taken = started.elapsed();
        let least = taken.as_secs().saturating_mul(options.min_body_bytes_per_s);
        if taken > options.idle_timeout && received.length() < least {
            return Err(prepared.timeout(Waiting::BodyRate, taken));
        }
    }
}

async fn ended(
    received: Receiving<'_>,
    is_whole: bool,
    prepared: &Prepared<'_>,
) -> Result<(Body, bool), FetchFailure> {
    let length = received.length();
    let body = received.end().await.map_err(|error| prepared.unkept(length, &error))?;
    Ok((body, is_whole))
}

/// The Content-Length, where it applies.
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

/// Whether this process has as many files and connections as it may have.
fn is_without_descriptors(error: &io::Error) -> bool {
    // EMFILE and ENFILE, which have no kind of their own.
    cfg!(unix) && matches!(error.raw_os_error(), Some(24 | 23))
}

/// Opens a connection from an address, or from the one that the system chooses.
async fn connect_from(source: Option<IpAddr>, peer: SocketAddr) -> io::Result<TcpStream> {
    let socket = match peer {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    if let Some(source) = source {
        if source.is_ipv4() != peer.is_ipv4() {
            let why = format!("it cannot be reached from {source}, an address of another kind");
            return Err(io::Error::other(why));
        }
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("cannot send from {source}: {error}"))
        };
        socket.bind(SocketAddr::new(source, 0)).map_err(named)?;
    }
    #[expect(clippy::disallowed_methods, reason = "it passed the guard, or is a proxy")]
    let connecting = socket.connect(peer);
    connecting.await
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

#[cfg(test)]
mod tests;
