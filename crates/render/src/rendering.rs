use bytes::Bytes;
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
    /// What was asked for and may be had.
    pub fn missing(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter().filter(|request| request.is_missing)
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
    /// What was asked for; the [address](nenrin_urls::PostedUrl) of a request by POST.
    pub url: CanonicalUrl,
    /// The method, such as `GET` or `POST`.
    pub method: String,
    /// What a request by POST sends.
    pub body: Option<SentBody>,
    /// Whether a script asked for it, to read it.
    pub is_data: bool,
    /// Whether it got a response.
    pub is_answered: bool,
    /// Whether it may be had and was not there.
    pub is_missing: bool,
}

/// The body of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentBody {
    /// Its type.
    pub content_type: String,
    /// Its bytes.
    pub bytes: Bytes,
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
