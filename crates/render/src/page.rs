//! One page: it is opened, scrolled to its end, waited for and looked at.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nenrin_urls::{CanonicalUrl, PostedUrl};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use crate::cdp::{Cdp, CdpEvent};
use crate::proxy::{Answers, Fate, Proxy};
use crate::rendering::{Ended, RenderedLink, Rendering, Request};
use crate::{RenderError, RenderOptions};

/// Mistakes of a page that are kept.
const MAX_COMPLAINTS: usize = 20;
const MAX_COMPLAINT_CHARS: usize = 500;

/// How long a look at a page may take: text, links, pictures.
const LOOK_TIMEOUT: Duration = Duration::from_secs(10);

/// How often the proxy is looked at while waiting.
const TICK: Duration = Duration::from_millis(50);

/// Fixes the clock and randomness, so that a page asks for the same in every pass.
const SHIMS: &str = include_str!("shims.js");

/// Scrolls to the end, slowly enough for pictures that load late.
const SCROLL: &str = include_str!("scroll.js");

/// What is read of a document, as one JSON value.
const READ: &str = include_str!("read.js");

pub(crate) struct Page<'b> {
    cdp: &'b mut Cdp,
    proxy: &'b Proxy,
    options: &'b RenderOptions,
    context: String,
    target: String,
    session: String,
    deadline: Instant,
    /// What the page and its parts asked for; the browser itself asks for more.
    asked: BTreeSet<(String, CanonicalUrl)>,
    /// Those that scripts made to read the answer.
    data: BTreeSet<(String, CanonicalUrl)>,
    complaints: Vec<String>,
    is_loaded: bool,
    has_crashed: bool,
}

impl<'b> Page<'b> {
    /// Opens an empty page in a context of its own: no page sees what another left behind.
    pub(crate) async fn open(
        cdp: &'b mut Cdp,
        proxy: &'b Proxy,
        options: &'b RenderOptions,
        deadline: Instant,
    ) -> Result<Self, RenderError> {
        while cdp.events.try_recv().is_ok() {}
        let made = cdp.call(None, "Target.createBrowserContext", json!({})).await?;
        let context = text(&made["browserContextId"]);
        let denied = json!({"behavior": "deny", "browserContextId": context});
        cdp.call(None, "Browser.setDownloadBehavior", denied).await?;
        let blank = json!({"url": "about:blank", "browserContextId": context});
        let made = cdp.call(None, "Target.createTarget", blank).await?;
        let target = text(&made["targetId"]);
        let flat = json!({"targetId": target, "flatten": true});
        let session = text(&cdp.call(None, "Target.attachToTarget", flat).await?["sessionId"]);
        Ok(Self {
            cdp,
            proxy,
            options,
            context,
            target,
            session,
            deadline,
            asked: BTreeSet::new(),
            data: BTreeSet::new(),
            complaints: Vec::new(),
            is_loaded: false,
            has_crashed: false,
        })
    }

    /// Renders a page; whatever happens, the context is closed by the caller afterwards.
    pub(crate) async fn render(
        &mut self,
        url: &CanonicalUrl,
        at_ms: i64,
        answers: Arc<dyn Answers>,
    ) -> Result<Rendering, RenderError> {
        let began = Instant::now();
        self.prepare(url, at_ms).await?;
        self.proxy.begin(answers);
        let target = json!({"url": url.as_str()});
        let went = self.call("Page.navigate", target, self.left()).await;
        let mut ended = match went {
            Ok(_) => self.settle().await,
            Err(RenderError::Silent { .. }) => Ended::Hung,
            Err(error) => return Err(error),
        };
        let mut rendering = match ended {
            Ended::Crashed | Ended::Hung => Rendering::default(),
            _ => match self.look().await {
                Ok(rendering) => rendering,
                Err(RenderError::Silent { .. } | RenderError::Refused { .. }) => {
                    ended = if self.has_crashed { Ended::Crashed } else { Ended::Hung };
                    Rendering::default()
                }
                Err(error) => return Err(error),
            },
        };
        self.proxy.finish();
        self.take_events().await?;
        rendering.requests = self.requests();
        rendering.complaints = std::mem::take(&mut self.complaints);
        rendering.ended = if self.has_crashed { Ended::Crashed } else { ended };
        let elapsed = began.elapsed().as_millis();
        rendering.elapsed_ms = u64::try_from(elapsed).unwrap_or(u64::MAX);
        Ok(rendering)
    }

    async fn prepare(&mut self, url: &CanonicalUrl, at_ms: i64) -> Result<(), RenderError> {
        let seed = url.as_str().bytes().fold(2_166_136_261_u32, |hash, byte| {
            (hash ^ u32::from(byte)).wrapping_mul(16_777_619)
        });
        let shims =
            SHIMS.replace("__NOW_MS__", &at_ms.to_string()).replace("__SEED__", &seed.to_string());
        for domain in ["Page.enable", "Network.enable", "Runtime.enable", "Inspector.enable"] {
            self.call(domain, json!({}), LOOK_TIMEOUT).await?;
        }
        // They wait until their requests are reported.
        let auto = json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true});
        self.call("Target.setAutoAttach", auto, LOOK_TIMEOUT).await?;
        self.call("Network.setBypassServiceWorker", json!({"bypass": true}), LOOK_TIMEOUT).await?;
        self.call("Network.setCacheDisabled", json!({"cacheDisabled": true}), LOOK_TIMEOUT).await?;
        let source = json!({"source": shims, "runImmediately": true});
        self.call("Page.addScriptToEvaluateOnNewDocument", source, LOOK_TIMEOUT).await?;
        Ok(())
    }

    /// Waits until the page is loaded, scrolls it, and waits until nothing is under way.
    async fn settle(&mut self) -> Ended {
        if let Some(ended) = self.until_quiet(true).await {
            return ended;
        }
        let params = json!({"expression": SCROLL, "awaitPromise": true, "returnByValue": true});
        let budget = self.left();
        match self.call("Runtime.evaluate", params, budget).await {
            Ok(_) | Err(RenderError::Refused { .. }) => {}
            Err(_) if self.has_crashed => return Ended::Crashed,
            // It still may answer a look: scrolling just had no time.
            Err(_) => return Ended::Time,
        }
        self.until_quiet(false).await.unwrap_or(Ended::Quiet)
    }

    /// Waits until nothing has been under way for a while. Says what ended it otherwise.
    async fn until_quiet(&mut self, for_load: bool) -> Option<Ended> {
        let mut quiet_since = Instant::now();
        let mut count = 0;
        loop {
            if self.take_events().await.is_err() || self.has_crashed {
                return Some(Ended::Crashed);
            }
            let now = Instant::now();
            let (under_way, now_count, is_over) = {
                let ledger = self.proxy.ledger();
                (ledger.under_way, ledger.count, ledger.is_over_limit)
            };
            if is_over {
                return Some(Ended::Requests);
            }
            if now >= self.deadline {
                return Some(Ended::Time);
            }
            let waits_for_load = for_load && !self.is_loaded;
            if under_way > 0 || now_count != count || waits_for_load {
                (quiet_since, count) = (now, now_count);
            }
            if now.duration_since(quiet_since) >= self.options.quiet {
                return None;
            }
            tokio::time::sleep(TICK).await;
        }
    }

    /// Text, links and pictures of the page as it is now.
    async fn look(&mut self) -> Result<Rendering, RenderError> {
        let params = json!({"expression": READ, "returnByValue": true});
        let read = self.call("Runtime.evaluate", params, LOOK_TIMEOUT).await?;
        let read = &read["result"]["value"];
        let limit = self.options.max_text_chars;
        let links = read["links"].as_array().map(Vec::as_slice).unwrap_or_default();
        let link = |link: &Value| {
            let url = CanonicalUrl::parse(link["url"].as_str()?).ok()?;
            Some(RenderedLink { url, is_frame: link["frame"] == true })
        };
        let links: Vec<RenderedLink> =
            links.iter().filter_map(link).take(self.options.max_links).collect();
        let view = self.picture(json!({"format": "png"})).await;
        let whole = self.whole_picture().await;
        Ok(Rendering {
            url: read["url"].as_str().and_then(|url| CanonicalUrl::parse(url).ok()),
            title: text(&read["title"]).chars().take(500).collect(),
            text: text(&read["text"]).chars().take(limit).collect(),
            links,
            view,
            whole,
            ..Rendering::default()
        })
    }

    async fn picture(&mut self, params: Value) -> Option<Vec<u8>> {
        let taken = self.call("Page.captureScreenshot", params, LOOK_TIMEOUT).await.ok()?;
        STANDARD.decode(taken["data"].as_str()?).ok()
    }

    async fn whole_picture(&mut self) -> Option<Vec<u8>> {
        let measures = self.call("Page.getLayoutMetrics", json!({}), LOOK_TIMEOUT).await.ok()?;
        let height = measures["cssContentSize"]["height"].as_f64().unwrap_or(1.0);
        let mut height = height.clamp(1.0, f64::from(self.options.max_picture_height)).ceil();
        loop {
            let clip = json!({
                "x": 0, "y": 0, "width": self.options.window.0, "height": height, "scale": 1,
            });
            let params = json!({"format": "png", "captureBeyondViewport": true, "clip": clip});
            let picture = self.picture(params).await?;
            let (bytes, most) = (picture.len(), self.options.max_picture_bytes);
            if bytes <= most || height <= 1.0 {
                return Some(picture).filter(|picture| picture.len() <= most);
            }
            // Pictures are not even: a little less than would fit if they were.
            height = (height * 0.9 * most as f64 / bytes as f64).floor().max(1.0);
        }
    }

    /// What the page asked for, and what became of it.
    fn requests(&self) -> Vec<Request> {
        let ledger = self.proxy.ledger();
        // The browser asks for it by itself; a page that has an icon names it.
        let is_icon = |url: &CanonicalUrl| url.path() == "/favicon.ico";
        let of_page = |((method, url), fate): (&(String, CanonicalUrl), &Fate)| {
            let body = ledger.bodies.get(url).cloned();
            let sent = PostedUrl::parse(url).map_or_else(|| url.clone(), |(_, sent)| sent);
            let key = (method.clone(), sent);
            let is_asked = self.asked.contains(&key) && !is_icon(url);
            is_asked.then(|| Request {
                is_data: self.data.contains(&key),
                url: url.clone(),
                method: method.clone(),
                body,
                is_answered: *fate == Fate::Answered,
                is_missing: *fate == Fate::Missing
                    && (method == "GET" || (method == "POST" && self.data.contains(&key))),
            })
        };
        ledger.requests.iter().filter_map(of_page).collect()
    }

    /// Looks at everything that the browser has reported.
    async fn take_events(&mut self) -> Result<(), RenderError> {
        loop {
            match self.cdp.events.try_recv() {
                Ok(event) => self.take_event(event).await?,
                Err(tokio::sync::mpsc::error::TryRecvError::Empty) => return Ok(()),
                Err(_) => return Err(RenderError::Gone("the pipe was closed".to_owned())),
            }
        }
    }

    async fn take_event(&mut self, event: CdpEvent) -> Result<(), RenderError> {
        let params = &event.params;
        let session = event.session.as_deref();
        match event.method.as_str() {
            "Network.requestWillBeSent" => {
                let request = &params["request"];
                let method = text(&request["method"]);
                // The rest was refused.
                let has_room = self.asked.len() <= self.options.max_requests;
                if let (true, Ok(url)) = (has_room, CanonicalUrl::parse(&text(&request["url"]))) {
                    if matches!(params["type"].as_str(), Some("XHR" | "Fetch")) {
                        self.data.insert((method.clone(), url.clone()));
                    }
                    self.asked.insert((method, url));
                }
            }
            "Page.loadEventFired" if session == Some(self.session.as_str()) => {
                self.is_loaded = true;
            }
            "Inspector.targetCrashed" | "Target.targetCrashed" => self.has_crashed = true,
            "Page.javascriptDialogOpening" => {
                let params = json!({"accept": false});
                self.cdp.tell(session, "Page.handleJavaScriptDialog", params).await?;
            }
            "Runtime.exceptionThrown" if self.complaints.len() < MAX_COMPLAINTS => {
                let details = &params["exceptionDetails"];
                let said = details["exception"]["description"].as_str();
                let said = said.or(details["text"].as_str()).unwrap_or_default();
                self.complaints.push(said.chars().take(MAX_COMPLAINT_CHARS).collect());
            }
            // Frames of other sites and workers have sessions of their own.
            "Target.attachedToTarget" => {
                let inner = text(&params["sessionId"]);
                for method in ["Network.enable", "Runtime.runIfWaitingForDebugger"] {
                    self.cdp.tell(Some(&inner), method, json!({})).await?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Calls a method of the page, and looks at what is reported meanwhile: a dialog box would block
    /// it otherwise.
    async fn call(
        &mut self,
        method: &str,
        params: Value,
        after: Duration,
    ) -> Result<Value, RenderError> {
        let session = self.session.clone();
        let silent = || RenderError::Silent { method: method.to_owned(), after };
        let until = Instant::now() + after;
        let mut answer = self.cdp.ask(Some(&session), method, params).await?;
        loop {
            let tick = (Instant::now() + TICK).min(until);
            match timeout_at(tick, &mut answer).await {
                Ok(found) => return Cdp::result(method, found),
                Err(_) if self.has_crashed || Instant::now() >= until => return Err(silent()),
                Err(_) => self.take_events().await?,
            }
        }
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Closes the page with everything that it opened.
    pub(crate) async fn close(self) -> Result<(), RenderError> {
        let Self { cdp, context, target, .. } = self;
        let soon = Duration::from_secs(5);
        // A page that hangs is closed with its context.
        let _ =
            cdp.call_within(None, "Target.closeTarget", json!({"targetId": target}), soon).await;
        let context = json!({"browserContextId": context});
        cdp.call_within(None, "Target.disposeBrowserContext", context, soon).await.map(drop)
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
