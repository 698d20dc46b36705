//! Connections of readers: limited in number, and in the time that a request's head may take.
//!
//! When all connections are in use, one makes way for a new one: the one whose client has longest had
//! something to send, be it a request or the rest of its body. So clients that connect and send nothing,
//! or announce a form that never comes, cannot keep others out. Where no client has anything to send,
//! one that does not take its answer makes way.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes, HttpBody},
    extract::{ConnectInfo, Request},
    response::Response,
};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::Notify,
    time::Instant,
};
use tower::ServiceExt;

/// Connections to one listener. Browsers open six to an origin; a proxy in front opens as many as
/// requests are under way.
const CONNECTIONS_MAX: usize = 256;
/// Of these, connections from one address.
const FROM_ONE_ADDRESS_MAX: usize = 128;
/// A head comes within this time, and so does the next request on a connection that is kept open.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
/// Pages of strangers may set many cookies, and the browser sends them all: Chromium keeps 180 of
/// 4 KiB for a name.
const HEAD_BYTES_MAX: usize = 1 << 20;
/// A client that does not answer to a ping for this long is gone.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// Requests at once on one connection (HTTP/2).
const STREAMS_MAX: u32 = 64;
/// A client that has taken nothing of its answer for this long may make way for another: within the
/// second in which everybody gets an answer.
const STUCK: Duration = Duration::from_millis(500);
/// Pause after a connection could not be accepted: mostly because the process has no descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Connections accepted before they are looked at. Many more, and a flood would close connections whose
/// requests nobody has read; fewer, and the system's queue of new connections would become full, which
/// makes clients wait for a second.
const ACCEPTED_TOGETHER: usize = 16;
/// How many new connections the system may let wait, if it allows so many.
const BACKLOG: u32 = 4096;

/// Listens on an address.
///
/// # Errors
/// What the system says.
pub fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    // As others do: the address is free again as soon as the program has ended.
    socket.set_reuseaddr(cfg!(unix))?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Answers every connection to a listener, for ever.
pub async fn serve(listener: TcpListener, router: Router) {
    let connections = Arc::new(Connections::default());
    for accepted in 1_usize.. {
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::debug!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        // Refused by closing it: there is no space to hear what it wants.
        let Some(entry) = connections.enter(from.ip()) else { continue };
        tokio::spawn(answer(stream, from, router.clone(), entry));
        if accepted.is_multiple_of(ACCEPTED_TOGETHER) {
            tokio::task::yield_now().await;
        }
    }
}

async fn answer(stream: TcpStream, from: SocketAddr, router: Router, entry: Entry) {
    // Only latency is lost where this cannot be set.
    let _ = stream.set_nodelay(true);
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_INTERVAL)
        .max_concurrent_streams(STREAMS_MAX);
    let connection = entry.connection.clone();
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        let busy = Busy::new(connection.clone());
        let connection = connection.clone();
        let mut request: Request =
            request.map(|body| Body::new(HeardBody { body, connection, is_awaited: false }));
        request.extensions_mut().insert(ConnectInfo(from));
        let router = router.clone();
        async move {
            let Ok(answer) = router.oneshot(request).await;
            Ok::<_, Infallible>(kept_busy(answer, busy))
        }
    });
    tokio::select! {
        // A connection that breaks off is the client's affair.
        _ = builder.serve_connection_with_upgrades(TokioIo::new(stream), service) => {}
        () = entry.connection.closed.notified() => {}
    }
}

/// The connections of one listener.
#[derive(Default)]
struct Connections {
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    last: u64,
    connections: BTreeMap<u64, Arc<Connection>>,
}

struct Connection {
    from: IpAddr,
    /// Requests whose answers have not been sent to their end.
    busy: AtomicUsize,
    turn: Mutex<Turn>,
    closed: Notify,
}

/// Whose turn it is.
#[derive(Debug, Clone, Copy)]
enum Turn {
    Ours,
    /// The client has to send a request, or the rest of its body, since this time.
    Sends(Instant),
    /// The client has to take a part of an answer, since this time.
    Takes(Instant),
}

impl Connection {
    fn new(from: IpAddr) -> Self {
        let turn = Mutex::new(Turn::Sends(Instant::now()));
        Self { from, busy: AtomicUsize::new(0), turn, closed: Notify::new() }
    }

    fn note(&self, turn: Turn) {
        *self.turn.lock().unwrap_or_else(PoisonError::into_inner) = turn;
    }

    /// The least makes way first. `None` if it must not: its answer is being made, or taken.
    fn rank(&self) -> Option<(bool, Instant)> {
        match *self.turn.lock().unwrap_or_else(PoisonError::into_inner) {
            Turn::Sends(since) => Some((false, since)),
            Turn::Takes(since) if since.elapsed() > STUCK => Some((true, since)),
            Turn::Takes(_) | Turn::Ours => None,
        }
    }
}

impl Connections {
    /// Enters a connection; another one is closed for it if there are too many. `None` where none of
    /// them may make way.
    fn enter(self: &Arc<Self>, from: IpAddr) -> Option<Entry> {
        let mut open = self.open();
        let same = open.connections.values().filter(|other| other.from == from).count();
        let is_full = open.connections.len() >= CONNECTIONS_MAX;
        if is_full || same >= FROM_ONE_ADDRESS_MAX {
            let near = open.connections.iter().filter(|(_, other)| is_full || other.from == from);
            let ranked = near.filter_map(|(number, other)| Some((other.rank()?, *number)));
            let (_, number) = ranked.min()?;
            open.connections.remove(&number)?.closed.notify_one();
        }
        open.last += 1;
        let number = open.last;
        let connection = Arc::new(Connection::new(from));
        open.connections.insert(number, connection.clone());
        Some(Entry { number, connection, connections: self.clone() })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        // The map is whole between any two statements that change it.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open connection's entry, taken out when it ends.
struct Entry {
    number: u64,
    connection: Arc<Connection>,
    connections: Arc<Connections>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.connections.open().connections.remove(&self.number);
    }
}

/// While this lives, its connection is not closed for another.
struct Busy(Arc<Connection>);

impl Busy {
    fn new(connection: Arc<Connection>) -> Self {
        connection.busy.fetch_add(1, Ordering::Relaxed);
        connection.note(Turn::Ours);
        Self(connection)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let is_last = self.0.busy.fetch_sub(1, Ordering::Relaxed) == 1;
        self.0.note(if is_last { Turn::Sends(Instant::now()) } else { Turn::Ours });
    }
}

/// An answer that keeps its connection busy until its body has been sent.
fn kept_busy(answer: Response, busy: Busy) -> Response {
    answer.map(|body| Body::new(BusyBody { body, busy }))
}

struct BusyBody {
    body: Body,
    busy: Busy,
}

impl HttpBody for BusyBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        // It is asked for the next part when the client has taken what came before.
        self.busy.0.note(if polled.is_ready() { Turn::Takes(Instant::now()) } else { Turn::Ours });
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of a request. From the moment at which it is waited for until its end it is the client's
/// turn, however many small parts come.
struct HeardBody {
    body: Incoming,
    connection: Arc<Connection>,
    is_awaited: bool,
}

impl HttpBody for HeardBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if polled.is_pending() && !self.is_awaited {
            self.is_awaited = true;
            self.connection.note(Turn::Sends(Instant::now()));
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for HeardBody {
    fn drop(&mut self) {
        if self.is_awaited {
            self.connection.note(Turn::Ours);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    async fn started() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let hello = axum::routing::get(|| async { "hello" });
        tokio::spawn(serve(listener, Router::new().route("/", hello)));
        address
    }

    #[expect(clippy::disallowed_methods, reason = "a client of a test")]
    async fn connected(address: SocketAddr) -> TcpStream {
        tokio::net::TcpSocket::new_v4().unwrap().connect(address).await.unwrap()
    }

    async fn asked(address: SocketAddr) -> String {
        let mut stream = connected(address).await;
        let request = b"GET / HTTP/1.1\r\nhost: e\r\nconnection: close\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn half_sent_heads_keep_nobody_out() {
        let address = started().await;
        let mut held = Vec::new();
        for _ in 0..CONNECTIONS_MAX + 50 {
            let mut stream = connected(address).await;
            stream.write_all(b"GET / HTTP/1.1\r\nhost:").await.unwrap();
            held.push(stream);
        }
        assert!(asked(address).await.ends_with("hello"));
        // The first of them made way.
        let closed = tokio::time::timeout(HEAD_TIMEOUT / 2, held[0].read_u8()).await;
        assert!(closed.expect("it is closed before its head is overdue").is_err());
    }

    #[tokio::test]
    async fn a_busy_connection_does_not_make_way() {
        let connections = Arc::new(Connections::default());
        let from = IpAddr::from([192, 0, 2, 1]);
        let entries: Vec<Entry> =
            (0..FROM_ONE_ADDRESS_MAX).map(|_| connections.enter(from).unwrap()).collect();
        let busy: Vec<Busy> =
            entries.iter().map(|entry| Busy::new(entry.connection.clone())).collect();
        assert!(connections.enter(from).is_none());
        let elsewhere = connections.enter(IpAddr::from([192, 0, 2, 2]));
        assert!(elsewhere.is_some(), "others have connections of their own");
        drop(busy);
        assert!(connections.enter(from).is_some());
    }

    #[tokio::test]
    async fn clients_that_take_nothing_make_way() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let large = axum::routing::get(|| async { vec![b'x'; 32 << 20] });
        tokio::spawn(serve(listener, Router::new().route("/", large)));
        let mut held = Vec::new();
        for _ in 0..FROM_ONE_ADDRESS_MAX {
            let mut stream = connected(address).await;
            stream.write_all(b"GET / HTTP/1.1\r\nhost: e\r\n\r\n").await.unwrap();
            held.push(stream);
        }
        tokio::time::sleep(STUCK + Duration::from_millis(500)).await;
        let mut stream = connected(address).await;
        stream.write_all(b"GET / HTTP/1.1\r\nhost: e\r\n\r\n").await.unwrap();
        let mut answer = [0; 12];
        tokio::time::timeout(HEAD_TIMEOUT, stream.read_exact(&mut answer)).await.unwrap().unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
    }

    #[tokio::test]
    async fn clients_that_never_send_what_they_announced_make_way() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let echo = axum::routing::post(|body: Bytes| async { body });
        tokio::spawn(serve(listener, Router::new().route("/", echo)));
        let mut held = Vec::new();
        for number in 0..FROM_ONE_ADDRESS_MAX {
            let mut stream = connected(address).await;
            let head = b"POST / HTTP/1.1\r\nhost: e\r\ncontent-length: 99\r\n\r\n";
            stream.write_all(head).await.unwrap();
            if number % 2 == 0 {
                stream.write_all(b"a part").await.unwrap();
            }
            held.push(stream);
        }
        let mut stream = connected(address).await;
        let request = b"POST / HTTP/1.1\r\nhost: e\r\ncontent-length: 2\r\n\r\nok";
        stream.write_all(request).await.unwrap();
        let mut answer = [0; 12];
        tokio::time::timeout(HEAD_TIMEOUT, stream.read_exact(&mut answer)).await.unwrap().unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
    }

    #[tokio::test]
    async fn as_many_cookies_as_a_browser_keeps_are_heard() {
        let address = started().await;
        let mut stream = connected(address).await;
        let cookies = format!("c={}; ", "x".repeat(4_000)).repeat(180);
        let request =
            format!("GET / HTTP/1.1\r\nhost: e\r\nconnection: close\r\ncookie: {cookies}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}
