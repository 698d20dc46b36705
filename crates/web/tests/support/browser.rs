//! A headless Chromium, spoken to over its DevTools protocol.
#![expect(clippy::unwrap_used, reason = "a browser that cannot be driven must fail the test")]

use std::{collections::VecDeque, process::Stdio, time::Duration};

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::{TcpListener, TcpStream},
    process::{Child, Command},
};
use tokio_tungstenite::{WebSocketStream, tungstenite::Message};

/// Serves a router on loopback and returns its origin.
pub(crate) async fn serve(router: axum::Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://127.0.0.1:{port}")
}

pub(crate) struct Browser {
    _process: Child,
    _profile: tempfile::TempDir,
    socket: WebSocketStream<TcpStream>,
    session: Option<String>,
    next_id: u64,
    events: VecDeque<Value>,
    origin: String,
}

impl Browser {
    #[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
    /// A browser on a page of the interface. `None`, and a loud word, where there is none.
    pub(crate) async fn on(router: axum::Router) -> Option<Self> {
        let named = std::env::var("CHROME").ok();
        let candidates = ["chromium", "chromium-browser", "google-chrome"];
        let program = named.as_deref().into_iter().chain(candidates).find(|program| {
            let mut command = std::process::Command::new(program);
            command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        });
        let Some(program) = program else {
            eprintln!("SKIPPED: no chromium found (Debian: apt-get install chromium)");
            return None;
        };
        let profile = tempfile::tempdir().unwrap();
        let mut process = Command::new(program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--lang=en"])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
            ])
            .args(["--disable-dev-shm-usage", "--disable-extensions", "--remote-debugging-port=0"])
            .args([
                "--window-size=1200,900",
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
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
        let mut browser = Self {
            _process: process,
            _profile: profile,
            socket,
            session: None,
            next_id: 0,
            events: VecDeque::new(),
            origin: serve(router).await,
        };
        browser.attach().await;
        Some(browser)
    }

    async fn attach(&mut self) {
        let made = self.call("Target.createTarget", json!({"url": "about:blank"})).await;
        let target = json!({"targetId": made["targetId"], "flatten": true});
        let attached = self.call("Target.attachToTarget", target).await;
        self.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            self.call(domain, json!({})).await;
        }
    }

    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Value {
        let answer = self.ask(method, params).await;
        assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
        answer["result"].clone()
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        let mut message = json!({"id": id, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.socket.send(Message::text(message.to_string())).await.unwrap();
        loop {
            let message = self.receive(Duration::from_secs(30)).await;
            let message = message.unwrap_or_else(|| panic!("no answer to {method}"));
            if message["id"] == json!(id) {
                return message;
            }
            self.events.push_back(message);
        }
    }

    async fn receive(&mut self, patience: Duration) -> Option<Value> {
        loop {
            match tokio::time::timeout(patience, self.socket.next()).await {
                Ok(Some(Ok(Message::Text(text)))) => return serde_json::from_str(&text).ok(),
                Ok(Some(Ok(_))) => {}
                Ok(Some(Err(_)) | None) | Err(_) => return None,
            }
        }
    }

    async fn loaded(&mut self, what: &str) {
        for _ in 0..400 {
            if let Some(at) = self.events.iter().position(|e| e["method"] == "Page.loadEventFired")
            {
                self.events.remove(at);
                return;
            }
            if let Some(event) = self.receive(Duration::from_millis(50)).await {
                self.events.push_back(event);
            }
        }
        panic!("{what} was not loaded in time");
    }

    /// Goes to a page of the interface and waits until it is there.
    pub(crate) async fn open(&mut self, path: &str) {
        let url = format!("{}{path}", self.origin);
        self.call("Page.navigate", json!({"url": url})).await;
        self.loaded(path).await;
    }

    /// Clicks on what a selector finds, which leads to another page.
    pub(crate) async fn follow(&mut self, selector: &str) {
        self.events.retain(|event| event["method"] != "Page.loadEventFired");
        self.eval(&format!("document.querySelector({selector:?}).click()")).await;
        self.loaded(selector).await;
    }

    /// Types into a field as a person does.
    pub(crate) async fn fill(&mut self, selector: &str, text: &str) {
        self.eval(&format!(
            "(f => {{ f.focus(); f.select(); }})(document.querySelector({selector:?}))"
        ))
        .await;
        self.call("Input.insertText", json!({"text": text})).await;
    }

    /// Presses a key.
    pub(crate) async fn press(&mut self, key: &str, code: u32, text: &str) {
        for kind in ["keyDown", "keyUp"] {
            let mut event =
                json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code});
            if kind == "keyDown" && !text.is_empty() {
                event["text"] = json!(text);
            }
            self.call("Input.dispatchKeyEvent", event).await;
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
    pub(crate) async fn until(&mut self, expression: &str) {
        for _ in 0..200 {
            // While one page gives way to the next there is nothing to ask.
            let params = json!({"expression": expression, "returnByValue": true});
            let answer = self.ask("Runtime.evaluate", params).await;
            if answer["result"]["result"]["value"] == json!(true) {
                return;
            }
            if let Some(event) = self.receive(Duration::from_millis(50)).await {
                self.events.push_back(event);
            }
        }
        panic!("never came true: {expression}");
    }

    pub(crate) async fn text(&mut self) -> String {
        self.eval("document.body.innerText").await.as_str().unwrap_or_default().to_owned()
    }

    pub(crate) async fn path(&mut self) -> String {
        self.eval("location.pathname + location.search").await.as_str().unwrap().to_owned()
    }

    /// What went wrong on the pages seen so far: errors, broken policies, dialogs.
    pub(crate) fn complaints(&self) -> Vec<String> {
        self.events
            .iter()
            .filter(|event| match event["method"].as_str() {
                Some("Runtime.exceptionThrown" | "Page.javascriptDialogOpening") => true,
                Some("Log.entryAdded") => event["params"]["entry"]["level"] == "error",
                _ => false,
            })
            .map(|event| event["params"].to_string())
            // A form with mistakes is answered by 422 and a wrong password by 401; the browser notes
            // both as errors of the network.
            .filter(|text| !text.contains("status of 422") && !text.contains("status of 401"))
            .collect()
    }
}
