//! Renders stored pages: a browser gets everything from the archive, and what it missed is reported.

use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nenrin_crawl::{DATA_MAX, Event, RenderOrder, Rendered, Ticket};
use nenrin_extract::{content_kind, decode_content, visible_text};
use nenrin_fetch::header_fields;
use nenrin_render::{
    Answer, Answers, Asked, Ended, RenderError, RenderOptions, Renderer, Rendering,
};
use nenrin_state::{Epoch, State};
use nenrin_store::{Store, Version};
use nenrin_urls::{CanonicalUrl, RenderedRecord};
use tokio::sync::mpsc;

use crate::{Archive, Capture, Posts, Result, visiting::read_small};

/// A browser that has nothing to do ends after this long.
const IDLE: Duration = Duration::from_secs(30);

/// The largest body that a page gets: a larger one is not what its text depends on.
const BODY_MAX_BYTES: u64 = 32 << 20;

/// The most of a page whose text is compared.
const TEXT_MAX_BYTES: usize = 4 << 20;

/// The most that is held of renderings that may have another pass.
const HELD_BYTES: usize = 64 << 20;

/// More new words than this are text that the plain page does not have.
const NEW_WORDS: usize = 20;

/// The renderings of a crawl, one after the other. The browser ends with the last clone.
#[derive(Clone)]
pub struct RenderWork {
    orders: mpsc::UnboundedSender<RenderOrder>,
    held: Arc<Mutex<Held>>,
}

impl RenderWork {
    /// Starts the task that renders, inside a tokio runtime; each order comes back as
    /// [`Event::Rendered`]. What is kept is committed under `epoch`.
    pub fn start(
        options: RenderOptions,
        store: Arc<Store>,
        (state, epoch): (Arc<dyn State>, Epoch),
        posts: Posts,
        tell: impl Fn(Event) + Send + 'static,
    ) -> Self {
        let (sender, orders) = mpsc::unbounded_channel();
        let archive = Arc::new(Archived { store, state, epoch, posts });
        let held = Arc::<Mutex<Held>>::default();
        tokio::spawn(serve(options, archive, (orders, held.clone()), tell));
        Self { orders: sender, held }
    }

    /// Renders this when it is its turn. The machine bounds how many wait.
    pub fn add(&self, order: RenderOrder) {
        // The task is there as long as this is.
        let _ = self.orders.send(order);
    }

    /// What a rendering brought is not wanted.
    pub fn forget(&self, ticket: Ticket) {
        lock(&self.held).take(ticket);
    }
}

async fn serve(
    options: RenderOptions,
    archive: Arc<Archived>,
    (mut orders, held): (mpsc::UnboundedReceiver<RenderOrder>, Arc<Mutex<Held>>),
    tell: impl Fn(Event),
) {
    let mut renderer: Option<Renderer> = None;
    loop {
        let order = match tokio::time::timeout(IDLE, orders.recv()).await {
            Ok(Some(order)) => order,
            Ok(None) => break,
            Err(_) => {
                if let Some(renderer) = &mut renderer {
                    renderer.end().await;
                }
                continue;
            }
        };
        let ticket = order.ticket;
        if let Some(of) = order.keeps {
            let (archive, records) = (archive.clone(), lock(&held).take(of));
            let kept = tokio::task::spawn_blocking(move || archive.keep(&order, records)).await;
            if let Ok(Err(error)) = kept {
                tracing::warn!("what a rendering brought was not stored: {error}");
            }
            let rendered = Box::new(Rendered { is_kept: true, ..Rendered::default() });
            tell(Event::Rendered { ticket, rendered });
            continue;
        }
        let rendered = match begin(&mut renderer, &options) {
            Ok(renderer) => render(renderer, &archive, order, &held).await,
            Err(error) => {
                tracing::warn!("pages are not rendered: {error}");
                Rendered { has_no_browser: true, ..Rendered::default() }
            }
        };
        tell(Event::Rendered { ticket, rendered: Box::new(rendered) });
    }
    if let Some(renderer) = &mut renderer {
        renderer.end().await;
    }
}

fn begin<'r>(
    renderer: &'r mut Option<Renderer>,
    options: &RenderOptions,
) -> Result<&'r mut Renderer, RenderError> {
    if renderer.is_none() {
        *renderer = Some(Renderer::new(options.clone())?);
    }
    renderer.as_mut().ok_or(RenderError::NoBrowser)
}

async fn render(
    renderer: &mut Renderer,
    archive: &Arc<Archived>,
    order: RenderOrder,
    held: &Mutex<Held>,
) -> Rendered {
    let answers: Arc<dyn Answers> = archive.clone();
    let mut rendering = match renderer.render(&order.url, order.at_s * 1000, answers).await {
        Ok(rendering) => rendering,
        Err(error) => {
            tracing::warn!(url = %order.url, "not rendered: {error}");
            return Rendered::default();
        }
    };
    tracing::debug!(
        url = %order.url,
        ended = ?rendering.ended,
        missing = rendering.missing().count(),
        elapsed_ms = rendering.elapsed_ms,
        "rendered"
    );
    lock(held).hold(order.ticket, &mut rendering);
    let archive = archive.clone();
    let read = tokio::task::spawn_blocking(move || read(&archive, &order, rendering));
    read.await.unwrap_or_default()
}

fn lock(held: &Mutex<Held>) -> MutexGuard<'_, Held> {
    // The list is whole between any two statements that change it.
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What renderings brought, until the machine says whether it is wanted.
#[derive(Debug, Default)]
struct Held(VecDeque<(Ticket, Records)>);

/// What is stored of a rendering.
#[derive(Debug, Default)]
struct Records {
    text: String,
    view: Option<Vec<u8>>,
    whole: Option<Vec<u8>>,
}

impl Records {
    fn bytes(&self) -> usize {
        let pictures = [&self.view, &self.whole].into_iter().flatten();
        self.text.len() + pictures.map(Vec::len).sum::<usize>()
    }
}

impl Held {
    fn hold(&mut self, ticket: Ticket, rendering: &mut Rendering) {
        if matches!(rendering.ended, Ended::Crashed | Ended::Hung) {
            return;
        }
        let text = format!("{}\n\n{}\n", rendering.title.trim(), rendering.text.trim());
        let (view, whole) = (rendering.view.take(), rendering.whole.take());
        self.0.push_back((ticket, Records { text, view, whole }));
        // What is wanted waits in line with other pages; only before a long line it may have to go.
        while self.0.len() > 1 && self.0.iter().map(|(_, r)| r.bytes()).sum::<usize>() > HELD_BYTES
        {
            self.0.pop_front();
        }
    }

    fn take(&mut self, ticket: Ticket) -> Option<Records> {
        let at = self.0.iter().position(|(held, _)| *held == ticket)?;
        self.0.remove(at).map(|(_, records)| records)
    }
}

/// What the crawl learns of a rendering.
fn read(archive: &Archived, order: &RenderOrder, rendering: Rendering) -> Rendered {
    let page = read_small(&archive.store, order.version, BODY_MAX_BYTES);
    let plain = page.map(|page| text_of(&order.url, &page)).unwrap_or_default();
    for request in rendering.missing() {
        request.body.iter().for_each(|body| archive.posts.remember(&request.url, body));
    }
    let missing = rendering.missing().map(|request| request.url.clone()).collect();
    let elsewhere = rendering.url.iter().filter(|url| **url != order.url).cloned();
    let links = rendering.links.iter().map(|link| (link.url.clone(), link.is_frame));
    let is_data = |request: &&nenrin_render::Request| {
        request.is_data && (request.is_answered || request.is_missing)
    };
    let data = rendering.requests.iter().filter(is_data).map(|request| request.url.clone());
    Rendered {
        has_no_browser: false,
        data: data.take(DATA_MAX).collect(),
        missing,
        links: elsewhere.map(|url| (url, false)).chain(links).collect(),
        adds_text: adds_text(&plain, &rendering.text),
        is_kept: false,
        elapsed_ms: i64::try_from(rendering.elapsed_ms).unwrap_or(i64::MAX),
    }
}

fn text_of(url: &CanonicalUrl, page: &Version) -> String {
    let header = |name| crate::head::field(&page.head.response_head, name);
    let (coding, content_type) = (header("content-encoding"), header("content-type"));
    let Ok(body) = decode_content(coding.as_deref(), &page.body, TEXT_MAX_BYTES) else {
        return String::new();
    };
    let kind = content_kind(content_type.as_deref(), url, &body);
    visible_text(kind, content_type.as_deref(), &body, TEXT_MAX_BYTES)
}

/// Whether a rendered page shows words that its HTML does not have.
fn adds_text(plain: &str, rendered: &str) -> bool {
    let words = |text: &str| -> BTreeSet<String> {
        let is_between = |c: char| !c.is_alphanumeric();
        text.split(is_between).filter(|w| !w.is_empty()).map(str::to_lowercase).collect()
    };
    let (plain, rendered) = (words(plain), words(rendered));
    let new = rendered.difference(&plain).count();
    new > NEW_WORDS.min(plain.len() / 10 + 2)
}

/// The archive as a browser sees it: the newest version of everything.
struct Archived {
    store: Arc<Store>,
    state: Arc<dyn State>,
    epoch: Epoch,
    posts: Posts,
}

impl Archived {
    /// Stores what a rendering brought as pages of their own, as of the visit of the page.
    fn keep(&self, order: &RenderOrder, records: Option<Records>) -> Result<()> {
        let Some(records) = records else { return Ok(()) };
        let (state, store) = (self.state.clone(), self.store.clone());
        let archive = Archive::over(Path::new(""), state, store, Some(self.epoch));
        let mut ingest = archive.ingest(order.site)?.without_times();
        let text = (RenderedRecord::Text, "text/plain; charset=utf-8", records.text.into_bytes());
        let view = records.view.map(|view| (RenderedRecord::View, "image/png", view));
        let whole = records.whole.map(|whole| (RenderedRecord::Whole, "image/png", whole));
        for (kind, mime, body) in [Some(text), view, whole].into_iter().flatten() {
            let Some(url) = kind.of(&order.url) else { continue };
            let length = body.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\nContent-Length: {length}\r\n\r\n"
            );
            let capture = Capture::new(&url, order.at_s, 200, head.as_bytes(), &body);
            ingest.take(&Capture { protocol: "file", ..capture })?;
        }
        ingest.commit()
    }
}

impl Answers for Archived {
    fn answer(&self, asked: &Asked) -> Answer {
        // An archive that cannot be read now has nothing to give.
        let Ok(page) = self.state.page(&asked.url) else { return Answer::Nothing };
        let Some(page) = page else { return Answer::Missing };
        match page.version {
            Some(version) => match read_small(&self.store, version, BODY_MAX_BYTES) {
                Some(version) => stored(version),
                None => Answer::Nothing,
            },
            None if page.visited_s.is_some() => Answer::Nothing,
            None => Answer::Missing,
        }
    }
}

fn stored(version: Version) -> Answer {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let fields = header_fields(&version.head.response_head);
    Answer::Stored {
        status: version.head.status,
        headers: fields.map(|(name, value)| (text(name), value.into_owned())).collect(),
        body: version.body.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_wanted_of_a_rendering_is_not_held() {
        let (orders, _) = mpsc::unbounded_channel();
        let work = RenderWork { orders, held: Arc::default() };
        for ticket in 0..10 {
            let mut rendering = Rendering { view: Some(vec![0; 1000]), ..Rendering::default() };
            lock(&work.held).hold(Ticket(ticket), &mut rendering);
            if ticket != 3 {
                work.forget(Ticket(ticket));
            }
        }
        let held: Vec<Ticket> = lock(&work.held).0.iter().map(|(ticket, _)| *ticket).collect();
        assert_eq!(held, [Ticket(3)]);
    }

    #[test]
    fn text_that_scripts_bring_is_recognised() {
        let long: String = (0..300).map(|n| format!("word{n} ")).collect();
        for (plain, rendered, adds) in [
            ("", "", false),
            ("Loading", "Loading", false),
            ("Loading", "Loading 3 4", false),
            ("Loading", "The news of today: trees", true),
            (&long, &format!("{long} menu open close"), false),
            (
                &long,
                &format!("{long} {}", (0..30).map(|n| format!("new{n} ")).collect::<String>()),
                true,
            ),
        ] {
            assert_eq!(adds_text(plain, rendered), adds, "{plain:.20} {rendered:.40}");
        }
    }
}
