//! A headless Chromium, spoken to over its DevTools protocol, and the live web that it must not
//! reach.
#![allow(dead_code, clippy::unwrap_used, clippy::print_stderr, reason = "helpers of tests")]

use std::{
    collections::VecDeque,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    process::{Child, Command},
};
use tokio_tungstenite::{WebSocketStream, tungstenite::Message};

/// Counts whoever comes, and says so in the answer.
pub(crate) struct LiveWeb {
    pub(crate) port: u16,
    visits: Arc<AtomicUsize>,
    requests: Arc<std::sync::Mutex<Vec<String>>>,
}

impl LiveWeb {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let visits = Arc::new(AtomicUsize::new(0));
        let requests = Arc::new(std::sync::Mutex::new(Vec::new()));
        let (counted, lines) = (Arc::clone(&visits), Arc::clone(&requests));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (counted, lines) = (Arc::clone(&counted), Arc::clone(&lines));
                tokio::spawn(async move {
                    let mut buffer = [0; 2000];
                    let n = stream.read(&mut buffer).await.unwrap_or(0);
                    let start = &buffer[..n];
                    // Browsers call home by TLS, whatever one tells them; the page's hosts end with
                    // `.test`, also in the name that TLS sends.
                    let is_own = start.first() == Some(&0x16)
                        && !start.windows(5).any(|window| window == b".test");
                    if is_own {
                        return;
                    }
                    counted.fetch_add(1, Ordering::SeqCst);
                    let line = String::from_utf8_lossy(start).lines().take(2).collect();
                    lines.lock().unwrap().push(line);
                    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlive";
                    let _ = stream.write_all(answer.as_bytes()).await;
                });
            }
        });
        Self { port, visits, requests }
    }

    /// Connections made so far: even one without a request is one too many.
    pub(crate) fn visits(&self) -> usize {
        self.visits.load(Ordering::SeqCst)
    }

    pub(crate) fn seen(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// Serves a router on loopback and returns its port.
pub(crate) async fn serve(router: axum::Router) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { axum::serve(listener, router).await });
    port
}

pub(crate) struct Browser {
    process: Child,
    profile: std::path::PathBuf,
    socket: WebSocketStream<TcpStream>,
    session: Option<String>,
    next_id: u64,
    pub(crate) events: VecDeque<Value>,
}

impl Browser {
    /// Starts a browser for which every host name is the live web. `None`, and a loud word, if
    /// there is none on this machine.
    pub(crate) async fn start(name: &str, live: &LiveWeb) -> Option<Self> {
        let candidates = ["chromium", "chromium-browser", "google-chrome", "chrome"];
        let named = std::env::var("CHROME").ok();
        let program = named.as_deref().into_iter().chain(candidates).find(|program| {
            std::process::Command::new(program)
                .arg("--version")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.success())
        });
        let Some(program) = program else {
            eprintln!("SKIPPED: no chromium found (Debian: apt-get install chromium)");
            return None;
        };
        let profile = std::env::temp_dir().join(format!("nenrin-{name}-{}", std::process::id()));
        let mut process = Command::new(program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update"])
            .args(["--disable-sync", "--disable-default-apps", "--disable-dev-shm-usage"])
            .args([
                "--disable-extensions",
                "--no-default-browser-check",
                "--metrics-recording-only",
            ])
            .args(["--remote-debugging-port=0", "--window-size=1200,800", "--hide-scrollbars"])
            .arg(format!("--host-resolver-rules=MAP * 127.0.0.1:{}, EXCLUDE 127.0.0.1", live.port))
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg("about:blank")
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let address = loop {
            let line = lines.next_line().await.unwrap().expect("the browser did not start");
            if let Some(address) = line.strip_prefix("DevTools listening on ") {
                break address.trim().to_owned();
            }
        };
        // Read on, or the browser would block on a full pipe.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let host = address.trim_start_matches("ws://").split('/').next().unwrap().to_owned();
        #[expect(clippy::disallowed_methods, reason = "a test speaks to its own browser")]
        let stream = TcpStream::connect(host).await.unwrap();
        let (socket, _) = tokio_tungstenite::client_async(&address, stream).await.unwrap();
        let mut browser =
            Self { process, profile, socket, session: None, next_id: 0, events: VecDeque::new() };
        let made = browser.call("Target.createTarget", json!({"url": "about:blank"})).await;
        let attached = browser
            .call("Target.attachToTarget", json!({"targetId": made["targetId"], "flatten": true}))
            .await;
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page.enable", "Network.enable", "Runtime.enable"] {
            browser.call(domain, json!({})).await;
        }
        Some(browser)
    }

    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        let mut message = json!({"id": id, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.socket.send(Message::text(message.to_string())).await.unwrap();
        loop {
            let message = self.receive(Duration::from_secs(20)).await;
            let message = message.unwrap_or_else(|| panic!("no answer to {method}"));
            if message["id"] == json!(id) {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
            self.events.push_back(message);
        }
    }

    async fn receive(&mut self, patience: Duration) -> Option<Value> {
        loop {
            match tokio::time::timeout(patience, self.socket.next()).await {
                Ok(Some(Ok(Message::Text(text)))) => return serde_json::from_str(&text).ok(),
                Ok(Some(Ok(_))) => {}
                Ok(end @ (Some(Err(_)) | None)) => panic!("the browser is gone: {end:?}"),
                Err(_) => return None,
            }
        }
    }

    /// Goes to a page and waits until it is loaded.
    pub(crate) async fn open(&mut self, url: &str) {
        self.events.clear();
        self.call("Page.navigate", json!({"url": url})).await;
        let end = tokio::time::Instant::now() + Duration::from_secs(20);
        while tokio::time::Instant::now() < end {
            let is_loaded = |e: &Value| e["method"] == "Page.loadEventFired";
            if self.events.iter().any(is_loaded) {
                return;
            }
            if let Some(event) = self.receive(Duration::from_millis(50)).await {
                self.events.push_back(event);
            }
        }
        let last: Vec<String> = self.events.iter().rev().take(6).map(Value::to_string).collect();
        panic!("{url} was not loaded in time; last: {last:#?}");
    }

    /// Lets the page do what it does.
    pub(crate) async fn wait(&mut self, milliseconds: u64) {
        let end = tokio::time::Instant::now() + Duration::from_millis(milliseconds);
        while let Some(left) = end.checked_duration_since(tokio::time::Instant::now()) {
            if let Some(event) = self.receive(left).await {
                self.events.push_back(event);
            }
        }
    }

    /// The value of an expression in the page.
    pub(crate) async fn eval(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let result = self.call("Runtime.evaluate", params).await;
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    pub(crate) async fn until(&mut self, expression: &str) -> bool {
        for _ in 0..100 {
            if self.eval(expression).await == json!(true) {
                return true;
            }
            self.wait(50).await;
        }
        false
    }

    /// A picture of what is shown, as PNG in base64.
    pub(crate) async fn screenshot(&mut self) -> String {
        let result = self.call("Page.captureScreenshot", json!({"format": "png"})).await;
        result["data"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) async fn close(mut self) {
        let _ = self.process.kill().await;
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}
