//! What all requests share, and the plain answers of several routes.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{HeaderValue, Response, StatusCode, header},
};
use bytes::Bytes;
use nenrin_urls::CanonicalUrl;

use crate::{
    Archive, Capture, ReplayError, ReplayOptions,
    answer::{PageCache, headers::Guard},
    choose::Choice,
    makers::Makers,
    modifier::Modifier,
    origins::Origins,
};

/// Shared by all requests.
pub(crate) struct Replay {
    pub(crate) archive: Arc<dyn Archive>,
    pub(crate) options: ReplayOptions,
    /// The origins of archived servers, where they have their own.
    pub(crate) origins: Option<Arc<Origins>>,
    pub(crate) guard: Guard,
    pub(crate) cache: PageCache,
    pub(crate) makers: Makers,
}

impl Replay {
    pub(crate) fn new(archive: Arc<dyn Archive>, options: ReplayOptions) -> Self {
        let below = options.origin.as_deref().filter(|_| options.has_names_below);
        let origins = below.and_then(Origins::below).map(Arc::new);
        Self {
            archive,
            guard: Guard::new(&options, origins.as_deref()),
            origins,
            cache: PageCache::new(options.cache_bytes),
            makers: Makers::new(processors()),
            options,
        }
    }

    /// The version of a URL for a date.
    pub(crate) fn choose(
        &self,
        url: &CanonicalUrl,
        at_s: i64,
        modifier: Modifier,
    ) -> Result<Option<Capture>, ReplayError> {
        let (archive, options) = (&*self.archive, &self.options);
        Ok(Choice { archive, options, url, at_s, modifier }.make()?)
    }
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(2, std::num::NonZero::get).max(2)
}

/// A page of our own.
pub(crate) fn own_page(replay: &Replay, status: StatusCode, page: &maud::Markup) -> Response<Body> {
    let mut answer = Response::new(Body::from(page.0.clone()));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::VARY, HeaderValue::from_static("accept-language, cookie"));
    replay.guard.own(headers);
    answer
}

/// A short answer that is not for people.
pub(crate) fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut answer = Response::new(Body::from(Bytes::from_static(text.as_bytes())));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

/// Redirects the client within the archive.
pub(crate) fn redirect(status: StatusCode, to: &str) -> Response<Body> {
    let Ok(location) = HeaderValue::from_str(to) else {
        return plain(StatusCode::BAD_REQUEST, "the address cannot be written in a header");
    };
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::LOCATION, location);
    answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    answer
}

/// Text for programs.
pub(crate) fn text_answer(replay: &Replay, mime: &'static str, body: String) -> Response<Body> {
    let mut answer = Response::new(Body::from(body));
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(mime));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    replay.guard.own(headers);
    answer
}
