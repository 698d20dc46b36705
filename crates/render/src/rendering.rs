use nenrin_urls::CanonicalUrl;
use serde::Serialize;

/// What came of rendering a page.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rendering {
    /// Where the page ended up: scripts may lead elsewhere.
    pub url: Option<CanonicalUrl>,
    /// The title.
    pub title: String,
    /// The text that a reader sees.
    pub text: String,
    /// The links of the document as it is now.
    pub links: Vec<RenderedLink>,
    /// The requests of the page and its parts, each once.
    pub requests: Vec<Request>,
    /// What the window shows, as PNG.
    pub view: Option<Vec<u8>>,
    /// The whole page down to a limit, as PNG.
    pub whole: Option<Vec<u8>>,
    /// How it ended.
    pub ended: Ended,
    /// Mistakes that the page's scripts reported, the first ones.
    pub complaints: Vec<String>,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u64,
}

impl Rendering {
    /// What was asked for by GET and may be had.
    pub fn missing(&self) -> impl Iterator<Item = &CanonicalUrl> {
        self.requests.iter().filter(|request| request.is_missing).map(|request| &request.url)
    }
}

/// A link of a rendered document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedLink {
    /// Its target.
    pub url: CanonicalUrl,
    /// Whether a document is shown within the page.
    pub is_frame: bool,
}

/// A request of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What was asked for.
    pub url: CanonicalUrl,
    /// How.
    pub method: String,
    /// Whether it got a response.
    pub is_answered: bool,
    /// Whether it may be had and was not there.
    pub is_missing: bool,
}

/// How rendering a page ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// Nothing was under way any more.
    #[default]
    Quiet,
    /// Its time was over; what was there then was taken.
    Time,
    /// It asked for too much, in number or bytes.
    Requests,
    /// Its scripts took too much memory, or the page crashed.
    Crashed,
    /// It did not answer any more.
    Hung,
}
