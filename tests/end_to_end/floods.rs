//! Floods on the interface of the real program: whatever others do, a person gets an answer.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream, UdpSocket},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::net::TcpSocket;

use crate::support::{Nenrin, Reply, Running, STOPPED, Site, until};

/// Half of all answers come within this time.
const ANSWERED: Duration = Duration::from_secs(1);

/// And every answer within this one: within a second on a machine that has nothing else to do, but tests
/// run beside others, and a busy machine may let a process wait.
const ANSWERED_LAST: Duration = Duration::from_secs(5);

/// What the test itself waits for a connection.
const PATIENCE: Duration = Duration::from_secs(4);

struct Flooded {
    running: Running,
    interface: SocketAddr,
    replay: SocketAddr,
}

const ANYWHERE: [&str; 6] =
    ["run", "--json", "--interface", "127.0.0.1:0", "--replay", "127.0.0.1:0"];

fn served(nenrin: &Nenrin, more: &[&str]) -> Flooded {
    addressed(nenrin.start(&[more, &ANYWHERE].concat()))
}

fn addressed(running: Running) -> Flooded {
    let addresses = running.first_line();
    let address = |name: &str| {
        let text = addresses[name].as_str().unwrap();
        text.trim_start_matches("http://").trim_end_matches('/').parse().unwrap()
    };
    Flooded { interface: address("interface"), replay: address("replay"), running }
}

/// Where people ask from: the address of the floods, and another one, if this system has one.
const SOURCES: [&str; 2] =
    ["127.0.0.1:0", if cfg!(target_os = "linux") { "127.0.0.2:0" } else { "127.0.0.1:0" }];

/// The status of an answer, and how long it took. A connection that is closed for want of room is
/// tried again, as browsers do.
fn asked(source: &str, address: SocketAddr, path: &str) -> (u16, Duration) {
    let began = Instant::now();
    let once = || -> Option<u16> {
        let mut stream = connected(source.parse().unwrap(), address)?;
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).ok()?;
        std::str::from_utf8(&answer).ok()?.split(' ').nth(1)?.parse().ok()
    };
    loop {
        if let Some(status) = once() {
            return (status, began.elapsed());
        }
        assert!(began.elapsed() < ANSWERED_LAST, "{address} does not answer");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A connection from an address of this machine.
fn connected(source: SocketAddr, address: SocketAddr) -> Option<TcpStream> {
    let connecting = async {
        let socket = TcpSocket::new_v4().ok()?;
        socket.bind(source).ok()?;
        let connected = tokio::time::timeout(PATIENCE, socket.connect(address));
        connected.await.ok()?.ok()?.into_std().ok()
    };
    let stream = crate::support::RUNTIME.block_on(connecting)?;
    stream.set_nonblocking(false).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    Some(stream)
}

#[track_caller]
fn assert_answers(flooded: &Flooded, during: &str) {
    let pages = [(flooded.interface, "/login"), (flooded.interface, "/"), (flooded.replay, "/")];
    SOURCES.iter().for_each(|source| assert_answers_from(source, &pages, during));
}

#[track_caller]
#[expect(clippy::print_stderr, reason = "a figure for the documents")]
fn assert_answers_from(source: &str, pages: &[(SocketAddr, &str)], during: &str) {
    let mut times = Vec::new();
    for _ in 0..5 {
        for &(address, path) in pages {
            let (status, took) = asked(source, address, path);
            assert!(status < 500, "{during}: {path} {status}");
            assert!(took < ANSWERED_LAST, "{during}: {path} took {took:?}");
            times.push(took);
        }
    }
    times.sort();
    let (half, slowest) = (times[times.len() / 2], times[times.len() - 1]);
    eprintln!(
        "{during}, asked from {source}: half within {} ms, all within {} ms",
        half.as_millis(),
        slowest.as_millis()
    );
    assert!(half < ANSWERED, "{during}: half of the answers took {half:?} and more");
}

/// Repeats something on so many threads until the guard is dropped.
struct Flood {
    is_over: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Flood {
    fn of(threads: usize, again: impl Fn(usize) + Send + Sync + 'static) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let again = Arc::new(again);
        let threads = (0..threads)
            .map(|number| {
                let (is_over, again) = (is_over.clone(), again.clone());
                std::thread::spawn(move || {
                    // Bounded, should nobody end it.
                    for _ in 0..100_000 {
                        if is_over.load(Ordering::Relaxed) {
                            break;
                        }
                        again(number);
                    }
                })
            })
            .collect();
        Self { is_over, threads }
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn send(address: SocketAddr, text: &str) -> Option<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    let _ = stream.set_read_timeout(Some(PATIENCE));
    let _ = stream.set_write_timeout(Some(PATIENCE));
    stream.write_all(text.as_bytes()).ok()?;
    Some(stream)
}

/// The cookie that comes with the form for logging in, and the token in it.
fn login_form(interface: SocketAddr) -> (String, String) {
    let ask = format!("GET /login HTTP/1.1\r\nHost: {interface}\r\nConnection: close\r\n\r\n");
    let mut form = String::new();
    send(interface, &ask).unwrap().read_to_string(&mut form).unwrap();
    let between = |before: &str, after: char| {
        let rest = form.split_once(before).unwrap_or_else(|| panic!("{before} in {form}")).1;
        rest.split(after).next().unwrap().to_owned()
    };
    (between("set-cookie: ", ';'), between("name=\"token\" value=\"", '"'))
}

#[test]
fn the_interface_answers_during_every_flood() {
    let nenrin = Nenrin::new();
    let config = nenrin.file("nenrin.toml", "");
    let set = ["--config", &config, "config", "set-password"];
    nenrin.run_with_input(&set, "a long password\n").expect(0);
    let site = Site::of_pages(&[("/", Reply::html("open"))]);
    nenrin.collect(&[&site.top()]).expect(0);
    let flooded = served(&nenrin, &["--config", &config]);
    let (interface, replay) = (flooded.interface, flooded.replay);
    assert_answers(&flooded, "a quiet day");

    // 600 heads that are never finished, on both.
    let held: Vec<_> = (0..600)
        .filter_map(|n| {
            let address = if n % 2 == 0 { interface } else { replay };
            send(address, "GET / HTTP/1.1\r\nHost: x\r\nX:")
        })
        .collect();
    assert!(held.len() > 200, "{}", held.len());
    assert_answers(&flooded, "half-sent heads");
    drop(held);

    // Connections that ask and never read what comes.
    let unread: Vec<_> = (0..200)
        .filter_map(|_| send(interface, &"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".repeat(50)))
        .collect();
    assert_answers(&flooded, "answers that nobody reads");
    drop(unread);

    // Forms whose bodies never come, again and again.
    let form = format!(
        "POST /login HTTP/1.1\r\nHost: {interface}\r\nOrigin: http://{interface}\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 99\r\n\r\npass"
    );
    let flood = Flood::of(200, move |_| {
        if let Some(mut stream) = send(interface, &form) {
            let _ = stream.read(&mut [0; 12]);
        }
    });
    assert_answers(&flooded, "forms that are never sent to their end");
    drop(flood);

    // Connections that come and go.
    let flood = Flood::of(4, move |_| drop(TcpStream::connect_timeout(&interface, PATIENCE)));
    assert_answers(&flooded, "connections that come and go");
    drop(flood);

    // 300 log-ins at once.
    let (cookie, token) = login_form(interface);
    let body = format!("token={token}&password=wrong");
    let login = format!(
        "POST /login HTTP/1.1\r\nHost: {interface}\r\nOrigin: http://{interface}\r\nConnection: close\r\n\
         Cookie: {cookie}\r\nContent-Type: application/x-www-form-urlencoded\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let basic = format!(
        "GET /api/v1/sites HTTP/1.1\r\nHost: {interface}\r\nAuthorization: Basic bWU6d3Jvbmc=\r\n\
         Connection: close\r\n\r\n"
    );
    let (wrong, must_wait) = <(Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
    let counts = (wrong.clone(), must_wait.clone());
    let flood = Flood::of(100, move |number| {
        let text = if number % 2 == 0 { &login } else { &basic };
        for mut stream in (0..3).filter_map(|_| send(interface, text)).collect::<Vec<_>>() {
            let mut answer = [0; 12];
            let count = match stream.read_exact(&mut answer).is_ok().then_some(&answer[9..]) {
                Some(b"401") => &counts.0,
                Some(b"429") => &counts.1,
                _ => continue,
            };
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    assert_answers(&flooded, "log-ins");
    drop(flood);
    // Passwords were tried, and then almost none.
    let (wrong, must_wait) = (wrong.load(Ordering::Relaxed), must_wait.load(Ordering::Relaxed));
    assert!(wrong > 0 && must_wait > wrong, "{wrong} were tried, {must_wait} had to wait");

    flooded.running.signal("TERM");
    let began = Instant::now();
    flooded.running.finish().expect(0);
    assert!(began.elapsed() < STOPPED, "{:?}", began.elapsed());
}

/// A page of 5.6 MB.
fn long_page(edition: usize) -> String {
    let paragraph = |n: usize| match n % 50 {
        0 => format!(
            "<p>Paragraph {n} of edition {edition} has <a href=/{n}>a link</a> and some more words.\n"
        ),
        _ => format!(
            "<p>Paragraph {n} has <a href=/{n}>a link</a> and some more words, as on every day.\n"
        ),
    };
    (0..75_000).map(paragraph).collect()
}

#[test]
fn the_interface_answers_while_large_pages_are_read() {
    let nenrin = Nenrin::new();
    let edition = Arc::new(AtomicUsize::new(0));
    let shown = edition.clone();
    let site = Site::serve(move |request| match request.path.as_str() {
        "/" => Reply::html(long_page(shown.load(Ordering::Relaxed))),
        _ => Reply::status("404 Not Found"),
    });
    for number in 0..4 {
        edition.store(number, Ordering::Relaxed);
        nenrin.collect(&["--depth", "1", &site.top()]).expect(0);
        std::thread::sleep(Duration::from_millis(1100));
    }
    assert_eq!(nenrin.versions(&site.top()).len(), 4);
    let flooded = served(&nenrin, &[]);
    let (interface, replay) = (flooded.interface, flooded.replay);
    assert_answers(&flooded, "a quiet day");
    let top = site.top();
    let blame = format!("/blame?url={top}");
    type Path = Box<dyn Fn(usize) -> String + Send + Sync>;
    let floods: [(&str, SocketAddr, Path); 3] = [
        ("since when parts are there", interface, Box::new(move |_| blame.clone())),
        // Other dates each time, so that nothing is answered from what is kept.
        (
            "a site on two dates",
            interface,
            Box::new(|n| format!("/sites/1/between?from=20{:02}-01-02&to=2099-01-01", n % 90)),
        ),
        (
            "a large page in replay",
            replay,
            Box::new(move |n| format!("/web/20990101{:06}mp_/{top}", n % 235_959)),
        ),
    ];
    for (name, address, path) in floods {
        let count = AtomicUsize::new(0);
        let flood = Flood::of(300, move |_| {
            let path = path(count.fetch_add(1, Ordering::Relaxed));
            let ask =
                format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
            if let Some(mut stream) = send(address, &ask) {
                let mut part = vec![0; 1 << 16];
                while stream.read(&mut part).is_ok_and(|read| read > 0) {}
            }
        });
        std::thread::sleep(Duration::from_secs(2));
        // Connections to what is flooded itself have to wait.
        let pages = [(interface, "/login"), (interface, "/")];
        SOURCES.iter().for_each(|source| assert_answers_from(source, &pages, name));
        drop(flood);
    }
}

#[test]
fn the_interface_answers_while_names_are_looked_up_in_vain() {
    let nenrin = Nenrin::new();
    // Names that no resolver knows; where there is no network, looking them up takes its time.
    let links: String =
        (0..300).map(|n| format!("<a href='http://n{n}.invalid/'>{n}</a>")).collect();
    let site = Site::of_pages(&[("/", Reply::html(links))]);
    let (top, scope) = (site.top(), ["--scope", "any", "--depth", "2"]);
    let add = ["site", "add", &top, "--allow-private", "--delay", "0s"];
    nenrin.run(&[&add[..], &scope].concat()).expect(0);
    let flooded = served(&nenrin, &[]);
    until("the first page to be visited", || site.asked().contains_key("/"));
    assert_answers(&flooded, "look-ups");
    let began = Instant::now();
    flooded.running.signal("TERM");
    flooded.running.finish().expect(0);
    assert!(began.elapsed() < STOPPED, "{:?}", began.elapsed());
}

/// A name server on an address of its own that hears every question and never answers.
struct Deaf {
    resolver: UdpSocket,
    file: String,
}

impl Deaf {
    /// None where the system does not let a test change the name server of one process.
    fn listening(nenrin: &Nenrin) -> Option<Self> {
        let resolver = UdpSocket::bind("127.0.0.77:53").ok()?;
        resolver.set_nonblocking(true).ok()?;
        let settings = "nameserver 127.0.0.77\noptions timeout:30 attempts:5\n";
        let deaf = Self { resolver, file: nenrin.file("resolv.conf", settings) };
        let tried = deaf.around(&Command::new("true")).output().ok()?;
        tried.status.success().then_some(deaf)
    }

    /// The same command, with this name server as its only one.
    fn around(&self, command: &Command) -> Command {
        let mut around = Command::new("unshare");
        let script = "mount --bind \"$0\" /etc/resolv.conf && exec \"$@\"";
        around.args(["--mount", "sh", "-c", script, &self.file]);
        around.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => around.env(name, value),
                None => around.env_remove(name),
            };
        }
        around.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        around
    }

    fn questions(&self) -> usize {
        std::iter::from_fn(|| self.resolver.recv(&mut [0; 512]).ok()).count()
    }
}

#[test]
fn the_interface_answers_while_the_name_server_does_not() {
    let nenrin = Nenrin::new();
    let Some(deaf) = Deaf::listening(&nenrin) else {
        eprintln!("SKIPPED: only root may replace the name server of a process");
        return;
    };
    let names = (0..300).map(|n| format!("<a href='http://n{n}.example/'>{n}</a>"));
    let site = Site::of_pages(&[("/", Reply::html(names.collect::<String>()))]);
    let (top, scope) = (site.top(), ["--scope", "any", "--depth", "2"]);
    let add = ["site", "add", &top, "--allow-private", "--delay", "0s"];
    nenrin.run(&[&add[..], &scope].concat()).expect(0);
    let flooded = addressed(Running::of(deaf.around(&nenrin.command(&ANYWHERE))));
    let mut questions = 0;
    until("names to be asked for", || {
        questions += deaf.questions();
        questions > 30
    });
    for _ in 0..5 {
        assert_answers(&flooded, "a name server that does not answer");
        std::thread::sleep(Duration::from_millis(500));
    }
    let began = Instant::now();
    flooded.running.signal("TERM");
    flooded.running.finish().expect(0);
    assert!(began.elapsed() < STOPPED, "{:?}", began.elapsed());
}
