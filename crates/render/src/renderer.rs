//! The browser that renders one page after the other, started when it is needed.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nenrin_urls::CanonicalUrl;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::cdp::Cdp;
use crate::page::Page;
use crate::program::{chromium, fenced, is_root, memory_of};
use crate::proxy::{Answers, Proxy};
use crate::rendering::{Ended, Rendering};
use crate::{RenderError, RenderOptions};

/// What closing and looking may take beyond the page's own time.
const GRACE: Duration = Duration::from_secs(20);

/// How often the browser's memory is looked at.
const MEMORY_TICK: Duration = Duration::from_secs(1);

/// Renders pages, one at a time. The browser ends with this.
pub struct Renderer {
    options: RenderOptions,
    program: PathBuf,
    running: Option<Running>,
}

struct Running {
    cdp: Cdp,
    proxy: Proxy,
    pages: u32,
    watchdog: Watchdog,
    /// Removed with the browser.
    _profile: tempfile::TempDir,
}

impl Renderer {
    /// Finds the browser; it is started with the first page.
    ///
    /// # Errors
    /// [`RenderError::NoBrowser`] without one on this machine; [`RenderError::Root`] as root unless
    /// the options allow that.
    pub fn new(options: RenderOptions) -> Result<Self, RenderError> {
        let program = chromium(&options).ok_or(RenderError::NoBrowser)?;
        if is_root() && !options.as_root {
            return Err(RenderError::Root);
        }
        // The sandbox is given up for root alone.
        let options = RenderOptions { as_root: options.as_root && is_root(), ..options };
        Ok(Self { options, program, running: None })
    }

    /// Renders a page as it would have been at a time, with these answers to all that it asks for.
    ///
    /// # Errors
    /// What the browser says, if it cannot be used. A page that crashes or hangs is no error.
    pub async fn render(
        &mut self,
        url: &CanonicalUrl,
        at_ms: i64,
        answers: Arc<dyn Answers>,
    ) -> Result<Rendering, RenderError> {
        let mut running = match self.running.take() {
            Some(running) if running.pages < self.options.recycle_after => running,
            Some(running) => {
                running.cdp.end().await;
                self.start().await?
            }
            None => self.start().await?,
        };
        running.pages += 1;
        let deadline = Instant::now() + self.options.page_timeout;
        let options = &self.options;
        let page = async {
            let Running { cdp, proxy, .. } = &mut running;
            let mut page = Page::open(cdp, proxy, options, deadline).await?;
            let rendering = page.render(url, at_ms, answers).await?;
            let closed = page.close().await;
            Ok::<_, RenderError>((rendering, closed.is_ok()))
        };
        let found = tokio::time::timeout(options.page_timeout + GRACE, page).await;
        let was_too_large = running.watchdog.has_ended_it.load(Ordering::Relaxed);
        match found {
            Ok(Ok((mut rendering, is_closed))) => {
                let is_well =
                    matches!(rendering.ended, Ended::Quiet | Ended::Time | Ended::Requests);
                if is_well && is_closed && !was_too_large {
                    self.running = Some(running);
                } else {
                    rendering.ended = if was_too_large { Ended::Crashed } else { rendering.ended };
                    running.cdp.end().await;
                }
                Ok(rendering)
            }
            Ok(Err(_)) | Err(_) if was_too_large => {
                running.cdp.end().await;
                Ok(Rendering { ended: Ended::Crashed, ..Rendering::default() })
            }
            Ok(Err(error)) => {
                running.cdp.end().await;
                Err(error)
            }
            Err(_) => {
                running.cdp.end().await;
                Ok(Rendering { ended: Ended::Hung, ..Rendering::default() })
            }
        }
    }

    async fn start(&self) -> Result<Running, RenderError> {
        let options = &self.options;
        let profile = tempfile::Builder::new().prefix("nenrin-render-").tempdir()?;
        let proxy = Proxy::start(options.max_requests, options.max_bytes).await?;
        let reached = (proxy.port, proxy.key_hash.as_str());
        let command = fenced(options, (&self.program, false), profile.path(), reached);
        let mut cdp = Cdp::start(command)?;
        let version = cdp.call(None, "Browser.getVersion", serde_json::json!({})).await?;
        tracing::debug!(browser = version["product"].as_str(), "the browser has started");
        let watchdog = Watchdog::start(cdp.process(), options.max_memory_bytes);
        Ok(Running { cdp, proxy, pages: 0, watchdog, _profile: profile })
    }

    /// Ends the browser, if one is running, and waits until it is gone.
    pub async fn end(&mut self) {
        if let Some(running) = self.running.take() {
            running.cdp.end().await;
        }
    }

    /// The number of the browser's first process, while there is one.
    pub fn process(&self) -> Option<u32> {
        self.running.as_ref()?.cdp.process()
    }
}

/// Looks at the memory of the browser and ends it beyond a limit.
struct Watchdog {
    has_ended_it: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Watchdog {
    fn start(process: Option<u32>, max_bytes: u64) -> Self {
        let has_ended_it = Arc::new(AtomicBool::new(false));
        let mark = has_ended_it.clone();
        let task = tokio::spawn(async move {
            let Some(process) = process else { return };
            loop {
                tokio::time::sleep(MEMORY_TICK).await;
                let looked = tokio::task::spawn_blocking(move || memory_of(process)).await;
                if looked.is_ok_and(|bytes| bytes > max_bytes) {
                    mark.store(true, Ordering::Relaxed);
                    let mut kill = std::process::Command::new("kill");
                    kill.args(["-KILL", &process.to_string()]);
                    let _ = tokio::task::spawn_blocking(move || kill.status()).await;
                    return;
                }
            }
        });
        Self { has_ended_it, task }
    }
}
