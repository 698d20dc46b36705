use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{collections::VecDeque, time::Duration};

use nenrin_render::{Cdp, CdpEvent, RenderError, RenderOptions};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{LiveWeb, Picture};

/// How long a page may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Full pictures end at this height: the rest of very long pages is not compared.
const MAX_PICTURE_HEIGHT: u64 = 4000;

/// What host names resolve to, other than loopback addresses and names below `localhost`.
#[derive(Clone, Copy)]
pub enum Names<'a> {
    /// Nowhere.
    Nothing,
    /// A server that counts visits.
    Live(&'a LiveWeb),
    /// One port on loopback, whatever the name.
    Port(u16),
}

/// A browser with one page open.
pub struct Browser {
    cdp: Cdp,
    _profile: tempfile::TempDir,
    session: Option<String>,
    /// Events from the browser since the last page was opened.
    pub events: VecDeque<Value>,
    /// The origin for paths that begin with `/`.
    pub origin: String,
}

impl Browser {
    /// Starts a browser. `None`, with a message, if there is none on this machine.
    #[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
    pub async fn start(names: Names<'_>) -> Option<Self> {
        let Some(program) = program() else {
            eprintln!("SKIPPED: no chromium found (Debian: apt-get install chromium)");
            return None;
        };
        let profile = tempfile::tempdir().unwrap();
        let mut command = command(&program, names, profile.path());
        command.arg("about:blank");
        let cdp = Cdp::start(command).unwrap();
        let mut browser = Self {
            cdp,
            _profile: profile,
            session: None,
            events: VecDeque::new(),
            origin: String::new(),
        };
        browser.attach().await;
        Some(browser)
    }

    /// Shows a page for a while in a browser that nobody drives: with a session of the protocol,
    /// Chromium does not open connections in advance. Returns whether there is a browser.
    pub async fn show(names: Names<'_>, address: &str, wait: Duration) -> bool {
        let Some(program) = program() else { return false };
        let profile = tempfile::tempdir().unwrap();
        let mut browser = tokio::process::Command::from(command(&program, names, profile.path()));
        browser.arg(address).stderr(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
        let mut process = browser.spawn().unwrap();
        tokio::time::sleep(wait).await;
        process.kill().await.unwrap();
        true
    }

    /// A browser for the pages of a router.
    pub async fn on(router: axum::Router) -> Option<Self> {
        let mut browser = Self::start(Names::Nothing).await?;
        browser.origin = crate::serve(router).await;
        Some(browser)
    }

    async fn attach(&mut self) {
        let made = self.call("Target.createTarget", json!({"url": "about:blank"})).await;
        let target = json!({"targetId": made["targetId"], "flatten": true});
        let attached = self.call("Target.attachToTarget", target).await;
        self.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page.enable", "Network.enable", "Runtime.enable", "Log.enable"] {
            self.call(domain, json!({})).await;
        }
    }

    /// Calls a method of the protocol.
    pub async fn call(&mut self, method: &str, params: Value) -> Value {
        self.ask(method, params).await.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    async fn ask(&mut self, method: &str, params: Value) -> Result<Value, RenderError> {
        let session = self.session.clone();
        let answer = self.cdp.call(session.as_deref(), method, params).await;
        while let Ok(event) = self.cdp.events.try_recv() {
            self.events.push_back(shown(event));
        }
        answer
    }

    async fn receive(&mut self, patience: Duration) -> Option<Value> {
        match tokio::time::timeout(patience, self.cdp.events.recv()).await {
            Ok(Some(event)) => Some(shown(event)),
            Ok(None) => panic!("the browser is gone"),
            Err(_) => None,
        }
    }

    async fn loaded(&mut self, what: &str) {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            let is_loaded = |event: &Value| event["method"] == "Page.loadEventFired";
            if let Some(at) = self.events.iter().position(is_loaded) {
                self.events.remove(at);
                return;
            }
            if let Some(event) = self.receive(Duration::from_millis(50)).await {
                self.events.push_back(event);
            }
        }
        let last: Vec<String> = self.events.iter().rev().take(6).map(Value::to_string).collect();
        panic!("{what} was not loaded in time; last: {last:#?}");
    }

    /// Goes to a page and waits until it is loaded.
    pub async fn open(&mut self, url: &str) {
        let url = match url.starts_with('/') {
            true => format!("{}{url}", self.origin),
            false => url.to_owned(),
        };
        self.events.retain(|event| event["method"] != "Page.loadEventFired");
        self.call("Page.navigate", json!({"url": url})).await;
        self.loaded(&url).await;
    }

    /// Clicks on the element of a selector, which opens another page.
    pub async fn follow(&mut self, selector: &str) {
        self.events.retain(|event| event["method"] != "Page.loadEventFired");
        self.eval(&format!("document.querySelector({selector:?}).click()")).await;
        self.loaded(selector).await;
    }

    /// Types into a field as a person does.
    pub async fn fill(&mut self, selector: &str, text: &str) {
        let select = "(f => { f.focus(); f.select(); })";
        self.eval(&format!("{select}(document.querySelector({selector:?}))")).await;
        self.call("Input.insertText", json!({"text": text})).await;
    }

    /// Presses a key.
    pub async fn press(&mut self, key: &str, code: u32, text: &str) {
        for kind in ["keyDown", "keyUp"] {
            let mut event =
                json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code});
            if kind == "keyDown" && !text.is_empty() {
                event["text"] = json!(text);
            }
            self.call("Input.dispatchKeyEvent", event).await;
        }
    }

    /// Waits while the page works.
    pub async fn wait(&mut self, milliseconds: u64) {
        let end = Instant::now() + Duration::from_millis(milliseconds);
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            if let Some(event) = self.receive(left).await {
                self.events.push_back(event);
            }
        }
    }

    /// The value of an expression in the page.
    pub async fn eval(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let result = self.call("Runtime.evaluate", params).await;
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    pub async fn until(&mut self, expression: &str) {
        for _ in 0..200 {
            // While one page replaces the other, nothing can be evaluated.
            let params = json!({"expression": expression, "returnByValue": true});
            let answer = self.ask("Runtime.evaluate", params).await;
            if answer.is_ok_and(|answer| answer["result"]["value"] == json!(true)) {
                return;
            }
            self.wait(50).await;
        }
        let url = self.eval("location.href").await;
        panic!("never came true on {url}: {expression}");
    }

    /// The visible text.
    pub async fn text(&mut self) -> String {
        self.eval("document.body.innerText").await.as_str().unwrap_or_default().to_owned()
    }

    /// Path and query of the page.
    pub async fn path(&mut self) -> String {
        self.eval("location.pathname + location.search").await.as_str().unwrap().to_owned()
    }

    /// A picture of what is shown.
    pub async fn screenshot(&mut self) -> Picture {
        let result = self.call("Page.captureScreenshot", json!({"format": "png"})).await;
        Picture::from_base64(result["data"].as_str().unwrap_or_default())
    }

    /// A picture of the whole page, down to a limit.
    pub async fn full_screenshot(&mut self) -> Picture {
        let measures = self.call("Page.getLayoutMetrics", json!({})).await;
        let size = |name: &str| measures["cssContentSize"][name].as_f64().unwrap_or(1.0) as u64;
        let (width, height) = (size("width").clamp(1, 4000), size("height"));
        let clip = json!({
            "x": 0, "y": 0, "width": width, "height": height.clamp(1, MAX_PICTURE_HEIGHT),
            "scale": 1,
        });
        let params = json!({"format": "png", "captureBeyondViewport": true, "clip": clip});
        let result = self.call("Page.captureScreenshot", params).await;
        Picture::from_base64(result["data"].as_str().unwrap_or_default())
    }

    /// Shows pages at another size, like a phone or a desktop.
    pub async fn resize(&mut self, width: u32, height: u32, is_mobile: bool) {
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_mobile});
        self.call("Emulation.setDeviceMetricsOverride", size).await;
    }

    /// What went wrong on the pages seen so far: errors, broken policies, dialogs.
    pub fn complaints(&self) -> Vec<String> {
        self.events
            .iter()
            .filter(|event| match event["method"].as_str() {
                Some("Runtime.exceptionThrown" | "Page.javascriptDialogOpening") => true,
                Some("Log.entryAdded") => event["params"]["entry"]["level"] == "error",
                _ => false,
            })
            .map(|event| event["params"].to_string())
            // A form with mistakes is answered with 422 and a wrong password with 401; the browser
            // logs both as network errors.
            .filter(|text| !text.contains("status of 422") && !text.contains("status of 401"))
            .collect()
    }
}

/// The program with everything but a page to open.
fn command(program: &Path, names: Names<'_>, profile: &Path) -> Command {
    let target = match names {
        Names::Nothing => "~NOTFOUND".to_owned(),
        Names::Live(live) => format!("127.0.0.1:{}", live.port),
        Names::Port(port) => format!("127.0.0.1:{port}"),
    };
    let rules = format!("MAP * {target}, EXCLUDE 127.0.0.1, EXCLUDE *.localhost");
    let mut command = nenrin_render::command(program, profile, false);
    command.arg("--window-size=1200,900").arg(format!("--host-resolver-rules={rules}"));
    command
}

/// An event as the protocol writes it.
fn shown(event: CdpEvent) -> Value {
    json!({"method": event.method, "params": event.params, "sessionId": event.session})
}

fn program() -> Option<PathBuf> {
    let program = std::env::var_os("CHROME").map(PathBuf::from);
    nenrin_render::chromium(&RenderOptions { program, ..RenderOptions::default() })
}
