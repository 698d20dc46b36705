//! Runs the program, and serves sites that behave as set up and remember every request.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Arc, LazyLock, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    runtime::Runtime,
};

/// A stop takes at most 5 s on a machine that has nothing else to do. Tests run beside others, so it may
/// take this long here; what this guards against took 20 s and more.
pub(crate) const STOPPED: Duration = Duration::from_secs(12);

/// Nothing in a test may take longer.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest request head that a test server reads.
const REQUEST_MAX_BYTES: usize = 64 << 10;

// The program.

/// The program: the one that was built with the tests, or the one that `NENRIN` names.
pub(crate) fn program() -> PathBuf {
    let named = std::env::var_os("NENRIN").map(PathBuf::from);
    named.unwrap_or_else(|| env!("CARGO_BIN_EXE_nenrin").into())
}

/// An archive of its own for one test, and the program on it.
pub(crate) struct Nenrin {
    folder: tempfile::TempDir,
    archive: PathBuf,
    config: Option<String>,
    variables: Vec<(String, String)>,
}

/// What the program answered.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// All that a person sees.
    pub(crate) fn said(&self) -> String {
        format!("{}{}", self.text(), self.stderr)
    }

    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}", self.said());
        self
    }

    #[track_caller]
    pub(crate) fn expect_said(self, code: i32, words: &[&str]) -> Self {
        let ran = self.expect(code);
        for word in words {
            assert!(ran.said().contains(word), "`{word}` is not in: {}", ran.said());
        }
        ran
    }

    /// The one JSON document that was printed.
    #[track_caller]
    pub(crate) fn document(&self) -> Value {
        serde_json::from_slice(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", self.said()))
    }

    /// The JSON lines that were printed.
    #[track_caller]
    pub(crate) fn lines(&self) -> Vec<Value> {
        let text = self.text();
        assert!(text.is_empty() || text.ends_with('\n'), "an unfinished line: {text}");
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
            .collect()
    }
}

impl Nenrin {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join("archive");
        Self { folder, archive, config: None, variables: Vec::new() }
    }

    /// The same with an archive elsewhere.
    pub(crate) fn with_archive(archive: PathBuf) -> Self {
        Self { archive, ..Self::new() }
    }

    /// The same with a configuration for every command.
    pub(crate) fn with_config(mut self, text: &str) -> Self {
        self.config = Some(self.file("nenrin.toml", text));
        self
    }

    /// The same with a variable for every command.
    pub(crate) fn with_env(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn archive(&self) -> &Path {
        &self.archive
    }

    /// Writes a file beside the archive.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// The program with these arguments, not started yet.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(program());
        command
            .args(args)
            .env("NENRIN_ARCHIVE", &self.archive)
            .env_remove("NENRIN_CONFIG")
            .env_remove("NENRIN_LOG")
            .env("NO_COLOR", "1")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(config) = &self.config {
            command.env("NENRIN_CONFIG", config);
        }
        command
    }

    /// Starts the program and goes on.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        Running::of(self.command(args))
    }

    /// Runs the program to its end.
    #[track_caller]
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.start(args).finish()
    }

    /// The same with something to read on standard input.
    #[track_caller]
    pub(crate) fn run_with_input(&self, args: &[&str], input: &str) -> Ran {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let stdout = drain(child.stdout.take().unwrap());
        let stderr = drain(child.stderr.take().unwrap());
        Running { child, stdout, stderr }.finish()
    }

    /// `collect` of loopback sites, with a JSON summary.
    #[track_caller]
    pub(crate) fn collect(&self, args: &[&str]) -> Ran {
        let mut all = vec!["collect", "--json", "--allow-private"];
        all.extend_from_slice(args);
        if !args.contains(&"--delay") {
            all.extend_from_slice(&["--delay", "0s"]);
        }
        self.run(&all)
    }

    /// The exact bytes that `cat` gives.
    #[track_caller]
    pub(crate) fn cat(&self, url: &str) -> Vec<u8> {
        self.run(&["cat", url]).expect(0).stdout
    }

    #[track_caller]
    pub(crate) fn versions(&self, url: &str) -> Vec<Value> {
        self.run(&["versions", "--json", url]).expect(0).lines()
    }

    /// The last visit of every page, by URL.
    pub(crate) fn last_visits(&self) -> BTreeMap<String, Value> {
        let mut visits =
            self.run(&["log", "--visits", "--json", "--limit", "100000"]).expect(0).lines();
        visits.reverse();
        visits.into_iter().map(|v| (v["url"].as_str().unwrap().to_owned(), v)).collect()
    }

    #[track_caller]
    pub(crate) fn assert_sound(&self) {
        let ran = self.run(&["verify", "--deep", "--json"]);
        assert_eq!(ran.code, Some(0), "{}", ran.said());
        assert_eq!(ran.document()["sound"], true);
    }

    /// Bytes of all packs.
    pub(crate) fn pack_bytes(&self) -> u64 {
        let packs = std::fs::read_dir(self.archive.join("packs")).unwrap();
        packs.map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
    }
}

/// The program at work.
pub(crate) struct Running {
    pub(crate) child: Child,
    stdout: Arc<Mutex<Vec<u8>>>,
    stderr: Arc<Mutex<Vec<u8>>>,
}

fn drain(mut from: impl Read + Send + 'static) -> Arc<Mutex<Vec<u8>>> {
    let into = Arc::new(Mutex::new(Vec::new()));
    let seen = into.clone();
    std::thread::spawn(move || {
        let mut part = [0; 8192];
        while let Ok(length @ 1..) = from.read(&mut part) {
            seen.lock().unwrap().extend_from_slice(&part[..length]);
        }
    });
    into
}

impl Running {
    /// Starts what a command says, and hears it.
    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let stdout = drain(child.stdout.take().unwrap());
        let stderr = drain(child.stderr.take().unwrap());
        Self { child, stdout, stderr }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end.
    #[track_caller]
    pub(crate) fn finish(mut self) -> Ran {
        let status = self.wait();
        // The pipes are closed with the process; their readers need a moment more.
        let drained =
            || Arc::strong_count(&self.stdout) == 1 && Arc::strong_count(&self.stderr) == 1;
        until("the program's pipes to close", drained);
        Ran {
            code: status.code(),
            stdout: std::mem::take(&mut self.stdout.lock().unwrap()),
            stderr: String::from_utf8_lossy(&self.stderr.lock().unwrap()).into_owned(),
        }
    }

    #[track_caller]
    fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            if Instant::now() > deadline {
                let _ = self.child.kill();
                let said = String::from_utf8_lossy(&self.stderr.lock().unwrap()).into_owned();
                panic!("the program did not end within {PATIENCE:?}: {said}");
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Another signal, by its name.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    /// What was said on standard error so far.
    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr.lock().unwrap()).into_owned()
    }

    /// What was said on standard output so far.
    pub(crate) fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.stdout.lock().unwrap()).into_owned()
    }

    /// Waits for the first line on standard output, as JSON.
    #[track_caller]
    pub(crate) fn first_line(&self) -> Value {
        let line = || {
            let seen = self.stdout.lock().unwrap();
            let end = seen.iter().position(|&byte| byte == b'\n')?;
            Some(seen[..end].to_vec())
        };
        until("a line on standard output", || line().is_some());
        serde_json::from_slice(&line().unwrap()).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A loopback address on which nobody listens.
pub(crate) fn deserted() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

/// Waits for a condition, for a bounded time.
#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

// Servers.

pub(crate) static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
});

/// A request as a server saw it.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) path: String,
    /// What it sends, as text.
    pub(crate) body: String,
    /// Names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) began: Instant,
    /// When the last byte of the answer had been handed to the system.
    pub(crate) ended: Option<Instant>,
    /// Other requests under way at its beginning.
    pub(crate) beside: usize,
}

impl Request {
    /// Whether it is for robots.txt, for a sitemap by custom, or for a page that does not exist.
    pub(crate) fn is_about_the_server(&self) -> bool {
        let name = self.path.trim_start_matches('/');
        let is_probe = name.len() == 16 && name.bytes().all(|b| b.is_ascii_lowercase());
        is_probe || matches!(self.path.as_str(), "/robots.txt" | "/sitemap.xml")
    }

    pub(crate) fn is_conditional(&self) -> bool {
        ["if-none-match", "if-modified-since"].iter().any(|name| self.headers.contains_key(*name))
    }
}

/// What a server does to answer, byte by byte.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reply {
    pub(crate) head: Vec<u8>,
    pub(crate) body: Vec<u8>,
    /// After head and body: this, so many times, with a pause before each.
    then: Option<(Vec<u8>, u64, Duration)>,
    /// Wait before the first byte.
    wait: Duration,
    /// Never answer.
    silent: bool,
    /// Close the connection after the answer.
    closes: bool,
}

impl Reply {
    /// A status with a body, framed by its length.
    pub(crate) fn new(status: &str, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        Self { head: head.into_bytes(), body, ..Self::default() }
    }

    pub(crate) fn html(body: impl Into<Vec<u8>>) -> Self {
        Self::new("200 OK", "text/html; charset=utf-8", body)
    }

    pub(crate) fn text(body: impl Into<Vec<u8>>) -> Self {
        Self::new("200 OK", "text/plain", body)
    }

    pub(crate) fn status(status: &str) -> Self {
        Self::new(status, "text/plain", format!("this is {status}"))
    }

    pub(crate) fn redirect(to: &str) -> Self {
        Self::new("301 Moved Permanently", "text/plain", "moved").header("Location", to)
    }

    /// Exactly these bytes as a head, then the body.
    pub(crate) fn raw(head: impl Into<Vec<u8>>, body: impl Into<Vec<u8>>) -> Self {
        Self { head: head.into(), body: body.into(), ..Self::default() }
    }

    pub(crate) fn silent() -> Self {
        Self { silent: true, ..Self::default() }
    }

    pub(crate) fn and_close(mut self) -> Self {
        self.closes = true;
        self
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.head.truncate(self.head.len() - 2);
        self.head.extend_from_slice(format!("{name}: {value}\r\n\r\n").as_bytes());
        self
    }

    pub(crate) fn then(mut self, part: impl Into<Vec<u8>>, times: u64, pause: Duration) -> Self {
        self.then = Some((part.into(), times, pause));
        self
    }

    pub(crate) fn after(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Adds an ETag of the body, and answers 304 where the request knows it.
    pub(crate) fn validated(self, request: &Request) -> Self {
        let etag = format!("\"{}\"", &blake3::hash(&self.body).to_hex()[..16]);
        if request.headers.get("if-none-match") == Some(&etag) {
            let head = format!("HTTP/1.1 304 Not Modified\r\nETag: {etag}\r\n\r\n");
            return Self::raw(head, "");
        }
        self.header("ETag", &etag)
    }
}

/// A site on a loopback port, served until the test ends.
pub(crate) struct Site {
    pub(crate) address: SocketAddr,
    log: Arc<Mutex<Vec<Request>>>,
    listening: tokio::task::JoinHandle<()>,
}

impl Site {
    /// Serves what `answer` says, also for robots.txt.
    pub(crate) fn serve(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        Self::serve_at("127.0.0.1:0", answer)
    }

    /// The same on a port of one's choice.
    pub(crate) fn serve_at(
        address: &str,
        answer: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = RUNTIME.block_on(TcpListener::bind(address)).unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::new(Shared {
            log: log.clone(),
            under_way: AtomicUsize::new(0),
            answer: Box::new(answer),
        });
        let listening = RUNTIME.spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let _ = connection.set_nodelay(true);
                tokio::spawn(serve_connection(connection, shared.clone()));
            }
        });
        Self { address, log, listening }
    }

    /// Stops listening; returns where nobody is any more.
    pub(crate) fn close(self) -> SocketAddr {
        self.listening.abort();
        until("the server to be gone", || self.listening.is_finished());
        self.address
    }

    /// Serves pages by path; robots.txt and all else is not there.
    pub(crate) fn of_pages(pages: &[(&str, Reply)]) -> Self {
        let pages: BTreeMap<String, Reply> =
            pages.iter().map(|(path, reply)| ((*path).to_owned(), reply.clone())).collect();
        Self::serve(move |request| {
            pages.get(&request.path).cloned().unwrap_or_else(|| Reply::status("404 Not Found"))
        })
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn top(&self) -> String {
        self.url("/")
    }

    /// Every request so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.log.lock().unwrap().clone()
    }

    /// Every request since the last call.
    pub(crate) fn take_requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.log.lock().unwrap())
    }

    /// How often each path was asked for, without what is asked about the server itself.
    pub(crate) fn asked(&self) -> BTreeMap<String, usize> {
        let mut asked = BTreeMap::new();
        for request in self.requests().into_iter().filter(|r| !r.is_about_the_server()) {
            *asked.entry(request.path).or_default() += 1;
        }
        asked
    }

    /// The paths asked for, without what is asked about the server itself, in order of the alphabet.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.asked().into_keys().collect()
    }
}

struct Shared {
    log: Arc<Mutex<Vec<Request>>>,
    under_way: AtomicUsize,
    answer: Box<dyn Fn(&Request) -> Reply + Send + Sync>,
}

async fn serve_connection(mut connection: TcpStream, shared: Arc<Shared>) {
    let mut buffer = Vec::new();
    while let Some(mut request) = read_request(&mut connection, &mut buffer).await {
        request.beside = shared.under_way.fetch_add(1, Ordering::SeqCst);
        let reply = (shared.answer)(&request);
        let began = request.began;
        shared.log.lock().unwrap().push(request);
        let (sent, ended) = send(&mut connection, &reply).await;
        shared.under_way.fetch_sub(1, Ordering::SeqCst);
        let mut log = shared.log.lock().unwrap();
        if let Some(request) = log.iter_mut().rev().find(|request| request.began == began) {
            request.ended = Some(ended);
        }
        drop(log);
        if !sent {
            return;
        }
    }
}

async fn read_request(connection: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Request> {
    let end = loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if buffer.len() > REQUEST_MAX_BYTES || connection.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    };
    let began = Instant::now();
    let head = String::from_utf8(buffer[..end].to_vec()).ok()?;
    buffer.drain(..end + 4);
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    while buffer.len() < length {
        if length > REQUEST_MAX_BYTES || connection.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
    let body = String::from_utf8_lossy(&buffer.drain(..length).collect::<Vec<u8>>()).into_owned();
    Some(Request { method, path, body, headers, began, ended: None, beside: 0 })
}

/// Sends the answer; false when the connection can't be used again.
/// Whether another request may follow, and when the last bytes were handed over: the other side may
/// have them before a busy machine comes back here.
async fn send(connection: &mut TcpStream, reply: &Reply) -> (bool, Instant) {
    if reply.silent {
        // Until the other side has enough.
        let _ = connection.read_u8().await;
        return (false, Instant::now());
    }
    if !reply.wait.is_zero() {
        tokio::time::sleep(reply.wait).await;
    }
    let mut first = reply.head.clone();
    first.extend_from_slice(&reply.body);
    let mut ended = Instant::now();
    if connection.write_all(&first).await.is_err() {
        return (false, ended);
    }
    let Some((part, times, pause)) = &reply.then else { return (!reply.closes, ended) };
    for _ in 0..*times {
        if !pause.is_zero() {
            tokio::time::sleep(*pause).await;
        }
        ended = Instant::now();
        if connection.write_all(part).await.is_err() {
            return (false, ended);
        }
    }
    (true, ended)
}

// A reader of pages.

/// Gets a URL on loopback as a browser would, redirects followed: status, head and body.
#[track_caller]
pub(crate) fn get(url: &str) -> (u16, String, String) {
    let mut url = url.to_owned();
    for _ in 0..5 {
        let (status, head, body) = get_once(&url);
        let location = head.lines().find_map(|line| line.strip_prefix("location: "));
        match location.filter(|_| (300..400).contains(&status)) {
            None => return (status, head, body),
            Some(to) if to.starts_with("http://") => url = to.to_owned(),
            Some(to) => {
                let host_ends = url["http://".len()..].find('/').unwrap() + "http://".len();
                url = format!("{}{to}", &url[..host_ends]);
            }
        }
    }
    panic!("too many redirects, last to {url}");
}

/// The same with a password, as programs send it.
#[track_caller]
pub(crate) fn get_with(url: &str, password: &str) -> (u16, String, String) {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let plain = format!("me:{password}");
    let mut text = String::new();
    for part in plain.as_bytes().chunks(3) {
        let bits = part.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - part.len()));
        let digit = |place: usize| char::from(DIGITS[(bits >> (18 - 6 * place)) as usize & 63]);
        text.extend((0..=part.len()).map(digit));
    }
    ask_once(url, &format!("Authorization: Basic {text}\r\n"))
}

#[track_caller]
fn get_once(url: &str) -> (u16, String, String) {
    ask_once(url, "")
}

#[track_caller]
fn ask_once(url: &str, headers: &str) -> (u16, String, String) {
    let (status, head, body) = ask_with(url, headers);
    (status, head, String::from_utf8_lossy(&body).into_owned())
}

/// Gets a URL on loopback with further header lines: status, head and the bytes of the body.
#[track_caller]
pub(crate) fn ask_with(url: &str, headers: &str) -> (u16, String, Vec<u8>) {
    let rest = url.strip_prefix("http://").unwrap();
    let (address, path) = rest.split_once('/').unwrap();
    let request =
        format!("GET /{path} HTTP/1.1\r\nHost: {address}\r\n{headers}Connection: close\r\n\r\n");
    let mut answer = RUNTIME.block_on(async {
        let mut connection = TcpStream::connect(address).await.unwrap();
        connection.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let reading = connection.read_to_end(&mut answer);
        tokio::time::timeout(PATIENCE, reading).await.unwrap().unwrap();
        answer
    });
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let body = answer.split_off(end + 4);
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head, body)
}

/// An archive that holds a page already, to see that nothing harms it.
pub(crate) struct Kept {
    pub(crate) nenrin: Nenrin,
    site: Site,
}

const KEPT: &[u8] = b"kept from the beginning";

impl Kept {
    #[track_caller]
    pub(crate) fn new() -> Self {
        Self::within(Nenrin::new())
    }

    #[track_caller]
    pub(crate) fn within(nenrin: Nenrin) -> Self {
        let site = Site::of_pages(&[("/", Reply::html(KEPT))]);
        nenrin.collect(&[&site.top()]).expect(0);
        Self { nenrin, site }
    }

    /// The page's URL.
    pub(crate) fn url(&self) -> String {
        self.site.top()
    }

    #[track_caller]
    pub(crate) fn assert_intact(&self) {
        self.nenrin.assert_sound();
        assert_eq!(self.nenrin.cat(&self.site.top()), KEPT);
    }
}
